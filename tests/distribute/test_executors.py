"""Executors by name: the workers that they start, and the errors of names and engines that are not there."""

import multiprocessing
import multiprocessing.pool
import os
import signal
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor

import distribute_kit as kit
import pytest

import opwright as ow
from opwright import distribute
from opwright.distribute import executors, pools
from thorough import crossed


@pytest.mark.parametrize("name", ["", "thread", "threads:", "threads:0", "threads:x", "processes:-1", "http://host:1"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"processes\[:N\]"):
        executors.Workers(name)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("loky:2", "loky", "loky"),
        ("dask:2", "distributed", "dask"),
        ("dask://127.0.0.1:1", "distributed", "dask"),
        ("ray:2", "ray", "ray"),
        ("ray://127.0.0.1:1", "ray", "ray"),
        ("mpi:2", "mpi4py", "mpi"),
    ],
)
def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch, name, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=rf"pip install 'opwright\[{extra}\]'"):
        executors.Workers(name)


def test_an_executor_by_name_is_shut_down_at_the_end():
    with ow.distribute.executor("threads:3") as executor:
        assert isinstance(executor, ThreadPoolExecutor)
        assert executor.submit(pow, 2, 5).result() == 32
    with pytest.raises(RuntimeError, match="shutdown"):
        executor.submit(pow, 2, 5)


def test_counts_of_workers():
    for name, count in (("threads:3", 3), ("processes:2", 2)):
        workers = executors.Workers(name)
        assert workers.count == count
        assert workers.is_local
        workers.close()


def test_an_executor_of_the_caller_stays():
    with ThreadPoolExecutor(2) as pool:
        workers = executors.Workers(pool)
        workers.close()
        assert workers.submit(pow, 2, 5).result() == 32


def test_a_factory_builds_the_executor_again():
    pools = []

    def factory():
        pools.append(ProcessPoolExecutor(1))
        return pools[-1]

    workers = executors.Workers(factory)
    assert workers.restart()
    assert len(pools) == 2
    assert workers.executor is pools[1]
    workers.close()


def test_other_types_are_refused():
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"found +int"):
        executors.Workers(3)


# ---- pools that are no executors -------------------------------------------------------------------------------------


def test_a_pool_of_threads_is_an_executor():
    with multiprocessing.pool.ThreadPool(2) as pool:
        workers = executors.Workers(pool)
        assert workers.count == 2
        assert workers.submit(pow, 2, 5).result() == 32
        with pytest.raises(ZeroDivisionError):
            workers.submit(divmod, 1, 0).result()


@pytest.mark.parametrize("code", [1, 0])
def test_a_process_of_a_pool_that_ends_breaks_it(code):
    """With exit code 0, too, unless the pool ends its processes after some tasks."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        workers = executors.Workers(pool)
        assert workers.submit(pow, 2, 5).result() == 32
        with pytest.raises(BrokenExecutor, match=f"exit code {code}"):
            workers.submit(os._exit, code).result(timeout=60)
        with pytest.raises(BrokenExecutor, match="of the pool ended"):
            workers.submit(pow, 2, 5)
        assert not workers.restart()


def test_the_end_of_a_process_whose_pipe_another_process_holds_is_noticed(monkeypatch):
    """A fork of another thread, at the wrong moment, inherits the pipe that tells of the end."""
    monkeypatch.setattr(pools.connection, "wait", lambda sentinels, timeout: time.sleep(timeout) or [])
    with multiprocessing.get_context("fork").Pool(2) as pool, pytest.raises(BrokenExecutor, match="exit code 3"):
        pools.PoolExecutor(pool).submit(os._exit, 3).result(timeout=60)


def test_a_pool_whose_processes_end_after_some_tasks_is_whole():
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        workers = executors.Workers(pool)
        assert [workers.submit(pow, 2, n).result(timeout=60) for n in range(8)] == [2**n for n in range(8)]


def test_a_pool_that_was_created_here_is_closed():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        workers = executors.Workers(lambda: pool)
        assert isinstance(workers.executor, pools.PoolExecutor)
        assert workers.submit(pow, 2, 5).result() == 32
        workers.close()
        with pytest.raises(ValueError, match="not running"):
            workers.submit(pow, 2, 5)


# ---- executors that end while a job runs -----------------------------------------------------------------------------


def killed(pool):
    for process in list(pool._processes.values() if isinstance(pool, ProcessPoolExecutor) else pool._pool):
        os.kill(process.pid, signal.SIGKILL)


def terminated(pool):
    """Terminate a pool from another thread: in Python 3.11 its own threads can wait for each other for ever."""
    threading.Thread(target=pool.terminate, daemon=True).start()


ENDS = {
    "a pool terminates": (kit.forked_pool, terminated, "worker process died|shut down"),
    "a pool closes": (kit.forked_pool, lambda pool: pool.close(), "shut down"),
    "processes of a pool die": (kit.forked_pool, killed, "worker process died"),
    "a pool of threads terminates": (
        lambda: multiprocessing.pool.ThreadPool(2),
        lambda pool: pool.terminate(),
        "shut down",
    ),
    "threads cancel": (
        lambda: ThreadPoolExecutor(2),
        lambda executor: executor.shutdown(wait=False, cancel_futures=True),
        "shut down",
    ),
    "processes cancel": (
        kit.forked,
        lambda executor: executor.shutdown(wait=False, cancel_futures=True),
        "shut down|worker process died",
    ),
    "processes die": (kit.forked, killed, "worker process died"),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.tflite"
    file.write_bytes(kit.convert(kit.function()))
    return file


@pytest.mark.parametrize(("end", "ordered"), crossed(ENDS, [True, False]))
def test_an_executor_that_its_owner_ends_is_an_error_at_once(end, ordered, path):
    create, action, message = ENDS[end]
    executor = create()
    try:
        results = distribute.map(path, range(100_000), executor, load=kit.row_in_a_while, ordered=ordered)
        next(results)
        action(executor)
        start = time.monotonic()
        with pytest.raises(ow.errors.UnavailableError, match=message):
            list(results)
        assert time.monotonic() - start < 20
    finally:
        if isinstance(executor, multiprocessing.pool.Pool):
            pools.kill_processes(executor)


def test_a_pool_whose_processes_were_killed_is_collected():
    """An idle process dies with the lock of the tasks' queue, for which the pool's finalizer would wait."""
    holder = [kit.forked_pool()]
    assert holder[0].apply(pow, (2, 5)) == 32
    pools.kill_processes(holder[0])
    collection = threading.Thread(target=holder.clear, daemon=True)
    collection.start()
    collection.join(60)
    assert not collection.is_alive()


@pytest.mark.parametrize("end", [["terminate"], ["close"], ["__exit__", None, None, None]], ids=lambda end: end[0])
def test_a_pool_that_lost_a_process_is_ended(end):
    """Even where one died while it waited for a task, with the queue's lock, for which `Pool.terminate`, `join` and the
    interpreter's exit would wait for ever. Other tasks of the pool fail, too."""
    pool = kit.forked_pool()
    executor = pools.PoolExecutor(pool)
    processes = list(pool._pool)
    assert executor.submit(pow, 2, 5).result(timeout=60) == 32
    others = [pool.apply_async(time.sleep, (60,)), pool.map_async(time.sleep, [60, 60])]
    iterator = pool.imap(time.sleep, [60, 60])
    future = executor.submit(time.sleep, 60)
    killed(pool)
    with pytest.raises(BrokenExecutor):
        future.result(timeout=60)
    for result in others:
        with pytest.raises(BrokenExecutor):
            result.get(60)
    with pytest.raises(BrokenExecutor):
        iterator.next(60)
    getattr(pool, end[0])(*end[1:])
    pool.join()
    executor.shutdown()
    threads = [pool._worker_handler, pool._task_handler, pool._result_handler]
    assert not [p for p in [*processes, *pool._pool, *threads] if p.is_alive()]


def test_a_pool_that_had_lost_a_process_takes_no_task(monkeypatch):
    """The process died before, with the lock of the tasks' queue, and another one in its place waits for the lock."""
    monkeypatch.setattr(pools, "STUCK_SECONDS", 0.5)
    pool = kit.forked_pool()
    assert pool.apply(pow, (2, 5)) == 32
    before = list(pool._pool)
    time.sleep(0.2)  # the process that computed it returns the lock of the results, without which others wait unseen
    killed(pool)
    while any(process in pool._pool for process in before):
        time.sleep(0.01)
    with pytest.raises(BrokenExecutor, match="takes no tasks"):
        pools.PoolExecutor(pool).submit(pow, 2, 5).result(timeout=60)
    pool.terminate()
    pool.join()
