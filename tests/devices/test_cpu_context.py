"""The processor's context: threads, aligned memory, scratch memory, random numbers."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright.devices.context import ContextRandom, checked
from opwright.devices.cpu import CPUDeviceContext, ThreadPool


@pytest.fixture
def cpu():
    context = CPUDeviceContext()
    yield context
    context.close()


# --- threads ----------------------------------------------------------------------------------------------------------


@given(n=st.integers(0, 300), grain=st.integers(1, 90), threads=st.integers(1, 5), deterministic=st.booleans())
def test_each_number_is_covered_once(n, grain, threads, deterministic):
    counts, ranges = np.zeros(n, int), []

    def count(begin, end):
        counts[begin:end] += 1
        ranges.append((begin, end))

    with ow.flags(num_threads=threads, deterministic=deterministic):
        SHARED.parallel_for(n, count, grain)
    assert (counts == 1).all()
    lengths = [end - begin for begin, end in sorted(ranges)]
    assert all(length >= grain for length in lengths[:-1])


SHARED = ThreadPool()


def test_several_threads_take_part(cpu):
    with ow.flags(num_threads=4):
        together = threading.Barrier(4)
        names = set()

        def work(begin, end):
            if begin < 4:  # the first range of each thread: nobody goes on before all four are here
                together.wait(10)
            names.add(threading.current_thread().name)

        cpu.parallel_for(4, work, 1)
    assert len(names) == 4


@pytest.mark.parametrize(("threads", "n", "grain"), [(1, 100, 1), (4, 100, 100), (4, 3, 100)])
def test_what_is_not_worth_a_thread_runs_on_the_callers(cpu, threads, n, grain):
    found = []
    with ow.flags(num_threads=threads):
        cpu.parallel_for(n, lambda a, b: found.append((a, b, threading.get_ident())), grain)
    assert found == [(0, n, threading.get_ident())]


def test_nested_loops_run_on_the_thread_they_are_on(cpu):
    """A pool whose workers wait for its workers would stand still."""
    found = []

    def outer(begin, end):
        me = threading.get_ident()
        cpu.parallel_for(50, lambda a, b: found.append((a, b, threading.get_ident() == me)), 5)

    with ow.flags(num_threads=3):
        cpu.parallel_for(6, outer, 1)
    assert found == [(0, 50, True)] * 6
    with ow.flags(num_threads=3):  # and the caller is not taken for a worker afterwards
        count = []
        cpu.parallel_for(6, lambda a, b: count.append(a), 1)
    assert sorted(count) == [0, 1, 2, 3, 4, 5]


def test_the_error_of_the_lowest_range_is_raised(cpu):
    def work(begin, end):
        if begin >= 2:
            raise ValueError(f"at {begin}")

    for threads in (1, 4):
        with ow.flags(num_threads=threads, deterministic=True), pytest.raises(ValueError, match="at 2"):
            cpu.parallel_for(8, work, 1)
    cpu.parallel_for(8, lambda a, b: None, 1)  # and the pool goes on


def test_ranges_follow_from_n_and_grain_alone_when_deterministic(cpu):
    found = []
    for threads in (1, 2, 5):
        ranges = []
        with ow.flags(num_threads=threads, deterministic=True):
            cpu.parallel_for(103, lambda a, b, ranges=ranges: ranges.append((a, b)), 10)
        found.append(sorted(ranges))
    assert found[0] == found[1] == found[2] == [(a, min(a + 10, 103)) for a in range(0, 103, 10)]


def test_callers_on_several_threads_share_the_pool(cpu):
    sums = np.zeros(6)

    def caller(index):
        for _ in range(20):
            parts = np.zeros(40)
            cpu.parallel_for(40, lambda a, b, parts=parts: parts.__setitem__(slice(a, b), 1), 2)
            sums[index] += parts.sum()

    with ow.flags(num_threads=3):
        threads = [threading.Thread(target=caller, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (sums == 800).all()


def test_errstate_of_the_caller_holds_on_all_threads(cpu):
    """Kernels divide by zero in silence; a warning raised on a worker would be an error in one run and not the next."""
    zero = np.zeros(4)
    with ow.flags(num_threads=3), np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        cpu.parallel_for(30, lambda a, b: 1 / zero, 1)
    with ow.flags(num_threads=3), np.errstate(divide="ignore"):
        cpu.parallel_for(30, lambda a, b: 1 / zero, 1)


def test_number_of_threads(cpu):
    with ow.flags(num_threads=7):
        assert cpu.num_threads == 7
    with ow.flags(num_threads=0):
        assert cpu.num_threads >= 1
    code = "import opwright as ow; print(ow.DeviceContextPool.instance().get('cpu').num_threads)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "OPWRIGHT_NUM_THREADS": "3"},
    )
    assert ran.stdout.strip() == "3"


def test_the_process_ends_with_threads_around():
    code = """
import atexit, opwright as ow
cpu = ow.DeviceContextPool.instance().get("cpu")
def late():                                   # after the threads are gone it runs on the caller's
    got = []
    cpu.parallel_for(4, lambda a, b: got.append((a, b)), 1)
    print(sum(b - a for a, b in got))
atexit.register(late)
ow.flags(num_threads=3).__enter__()
cpu.parallel_for(8, lambda a, b: None, 1)
sim = ow.DeviceContextPool.instance().get("sim:0")
import numpy as np
x = sim.to_device(np.ones(3)) + 1
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "4", "")


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ow.bfloat16, ow.float64])
def test_memory_is_aligned(cpu, dtype):
    for shape in ((), (0,), (3,), (2, 5), ow.TensorShape([4, 3])):
        array = cpu.empty(shape, dtype)
        assert array.dtype == (dtype.np if isinstance(dtype, ow.DType) else dtype)
        assert array.shape == tuple(shape)
        assert array.size == 0 or array.ctypes.data % 64 == 0
    assert cpu.allocate(100).nbytes == 100


def test_scratch_memory_grows_and_is_shared(cpu):
    small = cpu.workspace(100)
    assert (small.shape, small.dtype) == ((100,), np.uint8)
    large = cpu.workspace(5000)
    assert large.nbytes == 5000
    again = cpu.workspace(2000)
    assert again.nbytes == 2000
    assert np.shares_memory(again, large)
    assert cpu.workspace(0).nbytes == 0


def test_scratch_memory_is_each_threads_own(cpu):
    mine = cpu.workspace(1000)
    other = []
    thread = threading.Thread(target=lambda: other.append(cpu.workspace(1000)))
    thread.start()
    thread.join()
    assert not np.shares_memory(mine, other[0])


# --- work -------------------------------------------------------------------------------------------------------------


def test_work_runs_at_once(cpu):
    x, out = np.arange(4.0), np.zeros(4)
    cpu.launch(np.add, x, 1.0, out)
    assert out.tolist() == [1, 2, 3, 4]
    assert (cpu.stream, cpu.asynchronous) == (None, False)
    assert cpu.wait() is None
    with pytest.raises(ZeroDivisionError):
        cpu.launch(lambda: 1 // 0)


def test_compute_gives_what_its_specs_say(cpu):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (y,) = cpu.compute(lambda a: a.sum(axis=1), [ow.TensorSpec([2], ow.float32)], x)
    assert y.tolist() == [3, 12]
    both = cpu.compute(lambda a: (a, a > 2), [ow.TensorSpec([2, 3], ow.float32), ow.TensorSpec([2, 3], ow.bool)], x)
    assert len(both) == 2


@pytest.mark.parametrize("result", [np.zeros(3), np.zeros(2), np.zeros((2, 1), np.float32), (), [1.0, 2.0]])
def test_results_other_than_promised(result):
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"kernel_k(.|\n)*float32\[2\]"):
        checked(result, [ow.TensorSpec([2], ow.float32)], "kernel_k")


def test_copies_of_the_host_are_the_array_itself(cpu):
    x = np.arange(3.0)
    assert cpu.to_device(x) is x
    assert cpu.to_host(x) is x
    out = np.zeros(3)
    assert cpu.to_host(x, out) is out
    assert out.tolist() == [0, 1, 2]
    assert cpu.owns(x)
    assert not cpu.owns([1.0])
    assert cpu.describe()
    with cpu as entered:
        assert entered is cpu


# --- random numbers ---------------------------------------------------------------------------------------------------


def test_numbers_are_philoxs_of_key_and_counter():
    """NumPy's Philox under the documented key and counter is the oracle."""
    rng = ContextRandom(device=2, seed=7)
    for call in range(3):
        expected = np.random.Generator(np.random.Philox(key=[7, 2], counter=[0, 0, call, 0])).random(5)
        assert rng.next().random(5).tolist() == expected.tolist()


def test_one_seed_returns_the_same_numbers_again():
    rng = ContextRandom(seed=5)
    first = [rng.next().random() for _ in range(4)]
    assert len(set(first)) == 4
    rng.reseed(5)
    assert [rng.next().random() for _ in range(4)] == first
    assert rng.state == (5, 4)
    rng.state = (5, 2)
    assert [rng.next().random() for _ in range(2)] == first[2:]
    rng.reseed(-1)
    assert rng.state == ((1 << 64) - 1, 0)
    with pytest.raises(AttributeError):
        rng.reseed("5")


def test_devices_of_a_number_agree_and_others_differ():
    pool = ow.DeviceContextPool._apart()
    drawn = {}
    for place in (ow.CPUPlace(), ow.SimulatedPlace(0), ow.SimulatedPlace(1)):
        context = pool.get(place)
        context.rng.reseed(11)
        drawn[place] = context.rng.next().random(3).tolist()
    assert drawn[ow.CPUPlace()] == drawn[ow.SimulatedPlace(0)] != drawn[ow.SimulatedPlace(1)]


def test_without_a_seed_contexts_differ():
    assert ContextRandom().state != ContextRandom().state


def test_threads_get_different_generators():
    rng, drawn = ContextRandom(seed=1), []
    threads = [threading.Thread(target=lambda: drawn.extend(rng.next().random() for _ in range(50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 400
    rng.reseed(1)
    assert sorted(drawn) == sorted(rng.next().random() for _ in range(400))
