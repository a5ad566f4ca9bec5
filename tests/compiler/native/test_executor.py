"""Test plans on one thread, on several, concurrently, after forks and until the process ends."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from images_kit import ADD_ONE, ANSWER, GUARD, MEET, SCRATCH, SPIN

from opwright.compiler.native.call_traces import trace_calls
from opwright.compiler.native.executor import Executor, Step, StepError, call
from opwright.compiler.native.store import find_module
from opwright.compiler.native.workers import REST, pool_of
from opwright.core.errors import ResourceExhaustedError

TURNS = 1 << 33  # of a kernel that waits for another thread: seconds


def kernel(text: str) -> int:
    return find_module("kernel", text, "k").address


def add(array: np.ndarray, **more: int) -> Step:
    return Step(kernel(ADD_ONE), [array.ctypes.data], array.size, **more)


def meet(counter: np.ndarray, threads: int) -> Step:
    """A step that ends once a number of threads are in it."""
    return Step(kernel(MEET), [counter.ctypes.data, threads, TURNS], threads, chunk=1)


def long() -> Step:
    """A long step: plans that end at once wake no worker."""
    return Step(kernel(SPIN), [1 << 18], 1)


threaded = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")


@pytest.fixture(autouse=True)
def always_shared() -> Iterator[None]:
    """Steps that end only when threads meet in them are shared on a busy machine, too."""
    for threads in (2, 3, 4):
        pool_of(threads).set_rest(0)
    yield
    for threads in (2, 3, 4):
        pool_of(threads).set_rest(REST)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize(("items", "chunk"), [(1, 0), (7, 1), (100, 0), (1000, 3), (64, 64), (64, 63), (0, 0), (5, 9)])
def test_each_item_is_done_once(threads: int, items: int, chunk: int) -> None:
    array = np.zeros(items, np.int64)
    executor = Executor([add(array, chunk=chunk)] * 5, threads)
    for _ in range(20):
        executor.run()
    assert array.tolist() == [100] * items


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_strands_run_whole_and_in_order(threads: int) -> None:
    """Each step adds to what the one before it in its strand wrote; what follows finds all of them done."""
    arrays = [np.zeros(64, np.int64) for _ in range(3)]
    strands = [add(a)._replace(strand=i) for i, a in enumerate(arrays) for _ in range(i + 1)]
    head = Step(0, [], len(arrays), chunk=1, covers=len(strands))
    executor = Executor([long(), head, *strands, *map(add, arrays)], threads)
    for _ in range(50):
        executor.run()
    assert [a.tolist() for a in arrays] == [[50 * n] * 64 for n in (2, 3, 4)]
    executor.run_profiled()
    assert [a[0] for a in arrays] == [51 * n for n in (2, 3, 4)]


@threaded
def test_strands_run_concurrently() -> None:
    counter = np.zeros(1, np.int64)
    met = Step(kernel(MEET), [counter.ctypes.data, 2, TURNS], 1)
    Executor([long(), Step(0, [], 2, chunk=1, covers=2), met, met._replace(strand=1)], 2).run()
    assert counter[0] == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_a_guard_in_a_strand_stops_the_plan(threads: int) -> None:
    array = np.zeros(4, np.int64)
    steps = [add(array), Step(kernel(GUARD), [0, 1], 1, strand=1)]
    executor = Executor([Step(0, [], 2, chunk=1, covers=2), *steps, add(array)], threads)
    with pytest.raises(StepError) as error:
        executor.run()
    assert error.value.status == 7
    assert array.tolist() in ([1] * 4, [0] * 4)  # the strand beside it may not have begun; what follows is left out


def test_an_empty_plan_runs() -> None:
    Executor([]).run()
    Executor([], threads=2).run()
    assert Executor([]).run_profiled().size == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("profiled", [False, True])
def test_a_guard_stops_the_plan(threads: int, profiled: bool) -> None:
    before, after = np.zeros(50, np.int64), np.zeros(50, np.int64)
    steps = [add(before, chunk=2), Step(kernel(GUARD), [0, 30], 40, chunk=4), add(after, chunk=2)]
    executor = Executor(steps, threads)
    for turn in range(1, 4):
        with pytest.raises(StepError) as caught:
            executor.run_profiled() if profiled else executor.run()
        assert (caught.value.step, caught.value.status) == (1, 7)
        assert (before == turn).all()
        assert not after.any()
    executor.words[1][1] = 1000  # the guard is content
    executor.run()
    assert (after == 1).all()


@pytest.mark.parametrize("status", [1, -1, 1 << 40, -(1 << 63)])
def test_any_status_but_zero_is_a_failure(status: int) -> None:
    with pytest.raises(StepError) as caught:
        Executor([Step(kernel(ANSWER.replace("VALUE", str(status))), [], 1)]).run()
    assert caught.value.status == status
    assert call(kernel(ANSWER.replace("VALUE", str(status))), np.zeros(1, np.int64)) == status


def test_words_may_change_between_runs() -> None:
    first, second = np.zeros(8, np.int64), np.zeros(8, np.int64)
    executor = Executor([add(first)], keep=[first, second])
    executor.run()
    executor.words[0][0] = second.ctypes.data
    executor.run()
    executor.run()
    assert (first.tolist(), second.tolist()) == ([1] * 8, [2] * 8)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("size", [8, 64, 1000])
def test_each_thread_has_scratch_memory(threads: int, size: int) -> None:
    places = np.zeros(4096, np.int64)
    executor = Executor([Step(kernel(SCRATCH), [places.ctypes.data], 4096, chunk=16, scratch=size)], threads)
    for _ in range(50):
        executor.run()
        result = np.unique(places)
        assert not (result % 64).any()
        assert (np.diff(result) >= size).all()
        assert result.size <= threads


@pytest.mark.parametrize("size", [1 << 50, 1 << 62])
def test_too_much_scratch_is_an_error(size: int) -> None:
    with pytest.raises(ResourceExhaustedError, match="memory"):
        Executor([Step(kernel(SCRATCH), [0], 1, scratch=size)])


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_are_timed(threads: int) -> None:
    array = np.zeros(4, np.int64)
    turns = 1 << 21
    executor = Executor([add(array), Step(kernel(SPIN), [turns], 1), add(array)], threads)
    result = []
    for _ in range(20):
        start = time.perf_counter_ns()
        result.append(executor.run_profiled())
        assert 0 <= result[-1].sum() <= time.perf_counter_ns() - start
    times = np.min(result, axis=0)
    assert times[1] > 100_000
    assert 10 * max(times[0], times[2]) < times[1]
    assert array.tolist() == [40] * 4


def test_python_goes_on_meanwhile() -> None:
    executor = Executor([Step(kernel(SPIN), [1 << 27], 1)])
    done = threading.Event()

    def run() -> None:
        executor.run()
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 5


# --- threads ------------------------------------------------------------------------------------------------------


@threaded
@pytest.mark.parametrize("threads", [2, 3, 4])
def test_workers_come_however_long_they_slept(threads: int) -> None:
    """Each step ends only when every thread is in it: a worker that is not woken is a step that fails."""
    counter = np.zeros(1, np.int64)
    executor = Executor([meet(counter, threads), long()], threads)
    random = np.random.default_rng(threads)
    count = 60 if threads == 2 else 5  # who waits keeps a processor, which this machine may not have to spare
    for pause in (*[0.0] * count, *random.uniform(0, 3e-4, count), 0.02, 0.05):  # around what a worker waits awake
        end = time.perf_counter() + pause
        while time.perf_counter() < end:
            pass
        counter[0] = 0
        executor.run()
    assert counter[0] == threads


@threaded
def test_many_tiny_steps() -> None:
    array, alone = np.zeros(4, np.int64), np.zeros(1, np.int64)
    for threads in (2, 3):
        array[:], alone[:] = 0, 0
        executor = Executor([add(array, chunk=1), add(alone)] * 500, threads)
        for _ in range(100):
            executor.run()
        assert array.tolist() == [50_000] * 4
        assert alone.tolist() == [50_000]


@threaded
def test_plans_run_concurrently() -> None:
    """Eight Python threads, each with plans of its own, all of the same two pools."""

    def work(seed: int) -> int:
        array = np.zeros(200 + seed, np.int64)
        executors = [Executor([add(array, chunk=7)] * 20, threads) for threads in (1, 2, 3)]
        for turn in range(60):
            executors[turn % 3].run()
        return int((array == 60 * 20).sum()) - array.size

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [0] * 8


@threaded
def test_plans_come_and_go() -> None:
    for turn in range(300):
        array = np.zeros(64, np.int64)
        Executor([add(array, chunk=1, scratch=1 << 16)] * 3, 2 + turn % 2).run()
        assert (array == 3).all()


def in_child(work) -> int:
    """The status of a fork that does `work`."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@threaded
def test_a_fork_has_workers_of_its_own() -> None:
    counter, array = np.zeros(1, np.int64), np.zeros(100, np.int64)
    executor = Executor([meet(counter, 2), add(array, chunk=5), long()], 2)
    executor.run()

    def work() -> None:
        for turn in range(2, 5):
            counter[0] = 0
            executor.run()
            assert (array == turn).all()
        new = np.zeros(100, np.int64)
        Executor([add(new, chunk=3)], 3).run()
        assert (new == 1).all()
        assert in_child(lambda: executor.run_profiled()) == 0

    assert in_child(work) == 0
    counter[0] = 0
    executor.run()
    assert (array == 2).all()


@threaded
def test_a_fork_while_plans_run() -> None:
    """Whatever the pools' state is at that moment, the child's plans run."""
    array, mine = np.zeros(1000, np.int64), np.zeros(1000, np.int64)
    busy, executor = Executor([add(array, chunk=1)] * 50, 2), Executor([add(mine, chunk=10)], 2)
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            busy.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(10):
            assert in_child(executor.run) == 0
    finally:
        stop.set()
        thread.join()


EXIT = """
import threading, time
import numpy as np
from opwright.compiler.native.call_traces import trace_calls
from opwright.compiler.native.executor import Executor, Step
from opwright.compiler.native.store import find_module

array = np.zeros(4096, np.int64)
code = find_module("kernel", TEXT, "k")

def run():
    executor = Executor([Step(code.address, [array.ctypes.data], 4096, chunk=64)] * 100, 3, keep=[array])
    while True:
        executor.run()

for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
print("end")
"""


@threaded
def test_the_process_ends_while_plans_run() -> None:
    for _ in range(3):
        program = EXIT.replace("TEXT", repr(ADD_ONE))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_are_traced(threads: int) -> None:
    """Each item of each step is in one call, calls of a thread follow each other, and steps run as before."""
    array, sizes = np.zeros(1000, np.int64), [1000, 1, 1000, 1000]
    head = Step(0, [], 2, chunk=1, covers=2)
    steps = [add(array), long(), add(array, chunk=10), add(array)._replace(strand=1)]
    plan = [steps[0], steps[1], steps[2], head, steps[3]._replace(strand=0), steps[3]]
    executor = Executor(plan, threads)
    block = executor.block.copy()
    log = trace_calls(executor)
    assert (executor.block == block).all()
    assert log.lost == 0
    calls = log.calls
    for step, size in zip((0, 1, 2, 4, 5), (*sizes, 1000)):
        items = [i for one in calls if one.step == step for i in range(one.begin, one.end)]
        assert sorted(items) == list(range(size))
    own = {one.thread for one in calls if one.step == 1}
    assert own == {threading.get_ident()}
    assert len({one.thread for one in calls}) <= threads
    for thread in {one.thread for one in calls}:
        times = [(one.start, one.stop) for one in calls if one.thread == thread]
        assert all(start <= stop <= after for (start, stop), (after, _) in itertools.pairwise(times))
    assert (array == 4).all()
    executor.run()
    assert (array == 8).all()


def test_a_guard_stops_a_traced_plan() -> None:
    array = np.zeros(10, np.int64)
    executor = Executor([add(array), Step(kernel(ANSWER.replace("VALUE", "7")), [], 1), add(array)])
    with pytest.raises(StepError) as caught:
        trace_calls(executor)
    assert (caught.value.step, caught.value.status) == (1, 7)
    assert (array == 1).all()
