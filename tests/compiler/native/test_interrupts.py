"""Signals reach Python while machine code runs: Ctrl-C ends it, other handlers run, and everything works afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import opwright as ow
from opwright import language as kl
from opwright.compiler.language import family, i64, ptr
from opwright.compiler.native.executor import Executor, Step
from opwright.compiler.native.image import runs_images

pytestmark = pytest.mark.skipif(not runs_images(), reason="code is loaded by LLVM, and does not poll")
LONG = 20.0  # seconds after which code that was to end is taken to hang


@ow.kernel
def forever(x: kl.Array(kl.i64, "n"), more: kl.i64):
    for i in kl.parallel(x.shape[0]):
        n = x[i]
        while n >= 0:
            n = (n * 3 + more) & 1023
        x[i] = n


@ow.kernel
def one_range(x: kl.Array(kl.f64, "n"), turns: kl.i64):
    for _ in range(turns):
        x[0] = x[0] * 0.999 + 1.0


@ow.kernel
def short_ranges(x: kl.Array(kl.f64, "n"), turns: kl.i64):
    for _ in range(turns):
        for _ in range(x.shape[0]):
            for i in range(x.shape[0]):
                x[i] = x[i] * 0.999 + 1.0


@ow.kernel
def steps(x: kl.Array(kl.f64, "n"), turns: kl.i64, step: kl.i64):
    for _ in range(0, turns, step):
        x[0] = x[0] * 0.999 + 1.0


KERNELS = {
    "while": (forever, np.zeros(3, np.int64), (1,)),
    "range": (one_range, np.zeros(3), (2**62,)),
    "short ranges": (short_ranges, np.zeros(3), (2**60,)),
    "steps": (steps, np.zeros(3), (2**62, 1)),
}


@pytest.fixture
def soon():
    """Send a signal to this process in a moment, as a terminal does; an alarm where nothing comes of it."""
    timers = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it

    def send(number: int = signal.SIGINT, after: float = 0.3) -> None:
        timers.append(threading.Timer(after, os.kill, (os.getpid(), number)))
        timers[-1].start()

    yield send
    for timer in timers:
        timer.cancel()
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_ctrl_c_ends_a_kernel(name, threads, soon):
    kernel, x, words = KERNELS[name]
    with ow.flags(num_threads=threads):
        start = time.monotonic()
        soon()
        with pytest.raises(KeyboardInterrupt):
            kernel(x, *words)
        assert time.monotonic() - start < LONG
        if kernel is not forever:  # the next call runs to its end
            kernel(x, 2, *words[1:])
            assert np.isfinite(x).all()


@pytest.mark.slow
def test_a_handler_that_raises_nothing_runs_and_the_kernel_goes_on(soon):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
    try:
        x = np.zeros(3)
        one_range(x, 100)
        times = []
        for _ in range(3):
            start = time.monotonic()
            one_range(x, 10_000_000)
            times.append(time.monotonic() - start)
        turns = int(10_000_000 * max(1.0, 1.5 / min(times)))  # some 1.5 s
        x[0] = 0
        soon(signal.SIGUSR1)
        one_range(x, turns)
        end = time.monotonic()
        while not seen and time.monotonic() < end + LONG:  # without a handler the signal ends the process
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1
    assert seen[0] < end - 0.2
    np.testing.assert_allclose(x[0], 1000.0)


def test_the_exception_of_a_handler_comes_out(soon):
    def handler(*_):
        raise LookupError("from the handler")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        soon(signal.SIGUSR1)
        with pytest.raises(LookupError, match="from the handler"):
            forever(np.zeros(1, np.int64), 1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_code_of_another_thread_is_left_alone(soon):
    x, done = np.zeros(3), threading.Event()

    def run() -> None:
        one_range(x, 100_000_000)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    soon(after=0.1)
    with pytest.raises(KeyboardInterrupt):
        forever(np.zeros(1, np.int64), 1)
    thread.join()
    assert done.is_set()
    np.testing.assert_allclose(x[0], 1000.0)


@family
def spin(work, x: ptr[kl.f64], n: i64):
    for item in work.items():
        for _ in range(n):
            x[item] = x[item] * 0.999 + 1.0


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_plan_between_its_steps(threads, soon):
    x = np.zeros(4)
    code = spin.code()
    words = [x.ctypes.data, 3_000_000]
    plan = Executor([Step(code.address, words, 4) for _ in range(4000)], threads=threads, keep=(x,))
    start = time.monotonic()
    soon()
    with pytest.raises(KeyboardInterrupt):
        plan.run()
    assert time.monotonic() - start < LONG
    short = Executor([Step(code.address, [x.ctypes.data, 5], 4)], threads=threads, keep=(x,))
    for _ in range(3):
        short.run()
    assert short._plan[8] == 0, "a quick plan does not poll any more"


def test_an_operator_of_users_in_a_function_is_ended(soon):
    @ow.operator
    class Spin:
        x: ow.Input = ow.Input(dtypes=(ow.float64,))
        y: ow.Output = ow.Output()

        def infer(op):
            return op.x.spec

        def compute(op, x):
            raise AssertionError("the kernel computes")

        @ow.kernel
        def kernel(x: kl.Array(kl.f64, "n"), y: kl.Array(kl.f64, "n")):
            y[0] = x[0]
            while y[0] >= 0.0:
                y[0] = y[0] * 0.5 + 1.0

    soon()
    with pytest.raises(KeyboardInterrupt):
        Spin(np.ones(3))


@ow.operator
class Halved:
    """y = x halved until it is less than 1, for ever where x is infinite."""

    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output(like="x")

    def compute(op, x):
        return np.where(np.isfinite(x), x / 2.0 ** np.maximum(np.floor(np.log2(x)) + 1, 0), x)

    @ow.kernel
    def kernel(x):
        while x >= 1.0:
            x = x * 0.5
        return x


def test_ctrl_c_ends_a_loop_on_scalars(soon):
    x = np.array([5.0, 0.5, 1024.0] * 40, np.float32)
    expected = np.array([0.625, 0.5, 0.5] * 40)
    function = ow.function(lambda x: Halved(x) + 1.0, jit_compile=True)
    for call, more in ((Halved, 0.0), (function, 1.0)):
        np.testing.assert_array_equal(np.asarray(call(x)), expected + more)
        soon()
        with pytest.raises(KeyboardInterrupt):
            call(np.full(120, np.inf, np.float32))
        np.testing.assert_array_equal(np.asarray(call(x)), expected + more)
