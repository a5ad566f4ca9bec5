"""Ctrl-C at any moment of tracing, compiling, differentiating and running: the next call works."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.ops.dispatch import state
from thorough import THOROUGH

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that send signals")
X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
SECONDS = 2.0 if THOROUGH else 0.3


def traced(jit_compile: bool | None) -> Any:
    def f(x: Any) -> Any:
        y = ow.zeros_like(x)
        for _ in ow.range(3):
            if ow.reduce_sum(x) > 100.0:
                y += ow.tanh(x)
            else:
                y -= ow.exp(x)
        return y

    return ow.function(f, jit_compile=jit_compile)


def trace(n: int) -> None:
    np.testing.assert_allclose(traced(None)(ow.constant(X)).numpy(), -3 * np.exp(X), rtol=1e-5)


def compile(n: int) -> None:
    np.testing.assert_allclose(traced(True)(ow.constant(X)).numpy(), -3 * np.exp(X), rtol=1e-5)


def differentiate(n: int) -> None:
    variable = ow.Variable(X)
    f = traced(None)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(f(variable))
    np.testing.assert_allclose(tape.gradient(loss, variable).numpy(), -3 * np.exp(X), rtol=1e-5)


def iterate(n: int) -> None:
    result = [int(x) for x in ow.data.Dataset.range(30).map(lambda i: i * 2, num_parallel_calls=2).prefetch(2)]
    assert result == [2 * i for i in range(30)]


def write(n: int) -> None:
    variable = ow.Variable(X)
    for _ in range(20):
        variable.assign_add(X)
        variable.scatter_nd_add([[1, 2]], [1.0])
    expected = 21 * X.astype(np.float64)
    expected[1, 2] += 20
    np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("action", [trace, compile, differentiate, iterate, write])
def test_an_interrupt_at_any_moment(action: Callable[[int], None]) -> None:
    action(0)
    start = time.perf_counter()
    action(1)
    long = time.perf_counter() - start
    rng = np.random.default_rng(0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupts, until = 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < until or interrupts <= 3:
            try:
                signal.setitimer(signal.ITIMER_REAL, max(float(rng.uniform(0, long)), 1e-6))
                action(2)
                time.sleep(long)  # where the interrupt is still to come, and did not fall into a finaliser
            except KeyboardInterrupt:
                pass
            except RuntimeError as error:  # CPython's own Thread.start, interrupted while its Condition waits
                if not isinstance(error.__context__, KeyboardInterrupt):
                    raise
            signal.setitimer(signal.ITIMER_REAL, 0)
            interrupts += 1
            assert state.trace is None, "tracing has not ended"
            with ow.GradientTape():  # which forgets one whose `__exit__` was interrupted before its first line
                pass
            assert not state.tapes, "a tape is still recording"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 3
    action(3)


def test_a_tape_that_nobody_can_stop_is_forgotten() -> None:
    """As where a signal's exception comes between a `with` block and its `__exit__`."""
    tape = ow.GradientTape()
    tape.__enter__()
    with ow.GradientTape() as inner:
        assert state.tapes == (tape, inner)
    del tape
    with ow.GradientTape(), ow.GradientTape():
        assert len(state.tapes) == 2
    assert not state.tapes
