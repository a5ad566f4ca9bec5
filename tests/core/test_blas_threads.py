"""Limits of the threads of NumPy's BLAS: they hold together, and end with the last one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import opwright as ow
from opwright.core.blas_threads import at_most, num_threads, thread_settings

pytestmark = pytest.mark.skipif(not thread_settings(), reason="this BLAS has no switch for its threads")


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = num_threads()
    for _, put in thread_settings():
        put(4)
    yield
    for (_, put), count in zip(thread_settings(), before):
        put(count)


def counts() -> set[int]:
    return set(num_threads())


def test_the_least_limit_holds() -> None:
    with at_most(3):
        assert counts() == {3}
        with at_most(2), at_most(9):
            assert counts() == {2}
        assert counts() == {3}
    assert counts() == {4}


def test_contexts_of_threads_end_in_any_order() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with at_most(2):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with at_most(3):
        thread.start()
        assert entered.wait(60)
        assert counts() == {2}
    assert counts() == {2}  # the other one is still there
    leave.set()
    thread.join()
    assert counts() == {4}


PINNED = """
import opwright as ow
from opwright.core.blas_threads import num_threads
x = ow.ones((2, 2))
with ow.flags(deterministic=True):
    ow.matmul(x, x)
    assert set(num_threads()) == {1}, num_threads()
"""


def test_determinism_pins_blas_in_a_new_process() -> None:
    """The module that pinned BLAS was one that a first answer does not import."""
    subprocess.run([sys.executable, "-c", PINNED], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "2"})


def test_determinism_outlives_a_context() -> None:
    ow.ones(1)  # operators follow the flag
    with at_most(3):
        with ow.flags(deterministic=True):
            assert counts() == {1}
        assert counts() == {3}
    with ow.flags(deterministic=True), at_most(3):
        assert counts() == {1}
    assert counts() == {4}
