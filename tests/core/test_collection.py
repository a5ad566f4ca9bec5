"""Garbage collection is paused while something is built, and afterwards as it was."""

from __future__ import annotations

import gc
import threading

import pytest

from opwright.core.lazy_imports import paused


@pytest.mark.parametrize("before", [True, False])
def test_it_is_as_before_afterwards(before: bool) -> None:
    was = gc.isenabled()
    try:
        gc.enable() if before else gc.disable()
        with paused():
            assert not gc.isenabled()
            with paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
        assert gc.isenabled() is before
        with pytest.raises(KeyError), paused():
            raise KeyError
        assert gc.isenabled() is before
    finally:
        gc.enable() if was else gc.disable()


def test_the_last_thread_ends_the_pause() -> None:
    entered, leave = threading.Event(), threading.Event()

    def build() -> None:
        with paused():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=build)
    with paused():
        other.start()
        assert entered.wait(10)
    assert not gc.isenabled(), "the other thread is still building"
    leave.set()
    other.join()
    assert gc.isenabled()
