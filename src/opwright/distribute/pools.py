"""Executors over pools that are none: of `multiprocessing`, of `ray.util.multiprocessing`; over a client of Dask.

Lives here: `PoolExecutor`, which notices workers that die and pools that end; `RayPoolExecutor`; `DaskExecutor`.
Not here: executors by name (executors.py), how often a task runs again (dispatcher.py).

A pool of `multiprocessing` starts another process for one that died, and never reports the task that died with it. Its
processes are therefore watched while tasks are in flight: after a death all of them fail with BrokenExecutor, as those
of a ProcessPoolExecutor do, and the pool is ended, also one of the caller's: a process that dies may hold the locks of
its queues, for which the pool's other processes, its `terminate` and the interpreter's exit would wait for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing import connection
from multiprocessing.pool import TERMINATE, IMapIterator, ThreadPool
from typing import Any

from ..core import forks

WATCHED_SECONDS = 0.2
"""How long a new process of a pool, in the place of one that ended as it should, may be unwatched."""
STUCK_SECONDS = 10.0
"""How long a task may wait while a process has the lock to take it, until that process counts as dead."""
ENDING_SECONDS = 1.0
"""How long a thread or a killed process of a broken pool may take to end."""


def kill_processes(pool: Any) -> None:
    """Kill the processes of a `multiprocessing.Pool`, and keep it from starting others in their place.

    Its own `terminate` waits for ever for the lock of a queue that a killed process held.
    """
    if isinstance(pool, ThreadPool):
        return
    pool._terminate.cancel()  # otherwise the garbage collection that finds the pool waits, in any thread
    starter = pool._worker_handler
    starter._state = TERMINATE
    pool._change_notifier.put(None)  # wakes it
    starter.join(ENDING_SECONDS)
    for process in list(pool._pool):
        process.kill()
    for process in list(pool._pool):
        process.join(ENDING_SECONDS)


def end_broken(pool: Any, loss: BaseException) -> None:
    """End a `multiprocessing.Pool` that has lost a process: its tasks raise `loss`, `terminate` and `join` return.

    Its threads wait for locks and ends of messages that the process may have taken with it: all of its processes are
    killed, then no process has the locks.
    """
    kill_processes(pool)
    pool._state = pool._task_handler._state = pool._result_handler._state = TERMINATE
    for lock in (pool._inqueue._rlock, pool._outqueue._wlock):
        lock.acquire(timeout=WATCHED_SECONDS)  # by now a dead process has it, or this thread
        lock.release()
    for result in list(pool._cache.values()):
        while result._job in pool._cache:  # of a `map`, one after the other
            result._set(getattr(result, "_index", 0), (False, loss))
            if isinstance(result, IMapIterator):
                break
    pool._inqueue._reader.close()  # a thread may be writing to the full pipe
    pool._taskqueue.put(None)
    pool._outqueue.put(None)  # as another fork may hold the pipe, its end is not enough
    pool._outqueue._writer.close()
    for thread in (pool._task_handler, pool._result_handler):
        thread.join(ENDING_SECONDS)


class PoolTerminated(RuntimeError):
    """A pool of threads was terminated, which never ends the tasks that it had."""


class PoolExecutor(Executor):
    """The interface of executors over a pool with `apply_async`, as `multiprocessing.Pool`."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self._lock = forks.lock()
        self._flying: set[Future[Any]] = set()
        self._processes: dict[int, Any] = {}
        self._watch: threading.Thread | None = None
        self._loss: RuntimeError | None = None

    @property
    def num_workers(self) -> int:
        """The tasks that the pool runs at once."""
        return int(self.pool._processes)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule `fn(*args, **kwargs)`.

        raises BrokenExecutor once a process of the pool has died, PoolTerminated, ValueError for a pool that was closed
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._loss is not None:
                raise self._loss
            self._flying.add(future)
            self._watch_processes()
        try:
            self.pool.apply_async(
                fn, args, kwargs, lambda result: self._end(future, result, None), lambda e: self._end(future, None, e)
            )
        except BaseException as error:
            self._flying.discard(future)
            if self._loss is not None:  # ended meanwhile
                raise self._loss from error
            raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool; a broken one has ended."""
        if self._loss is None:
            self.pool.close()
            if wait:
                self.pool.join()

    def _end(self, future: Future[Any], result: Any, error: BaseException | None) -> None:
        """Complete a future, unless it failed with the pool."""
        with self._lock:
            if future not in self._flying:
                return
            self._flying.discard(future)
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    # ---- processes -----------------------------------------------------------------------------------------------

    def _watch_processes(self) -> None:
        """Start the thread that watches the processes, unless it runs. The caller holds the lock."""
        if self._watch is None:
            watch = self._wait_for_end if isinstance(self.pool, ThreadPool) else self._wait_for_death
            self._watch = threading.Thread(target=watch, name="pool watch", daemon=True)
            self._watch.start()

    def _wait_for_end(self) -> None:
        while self.pool._state != TERMINATE:
            time.sleep(WATCHED_SECONDS)
            with self._lock:
                if not self._flying:
                    self._watch = None
                    return
        self._fail(PoolTerminated("the pool of threads was terminated"))

    def _wait_for_death(self) -> None:
        taken = time.monotonic()
        while True:
            self._processes.update((process.pid, process) for process in list(self.pool._pool))
            connection.wait([p.sentinel for p in self._processes.values()], WATCHED_SECONDS)
            with self._lock:
                if not self._flying:
                    self._watch = None
                    return
            taken = time.monotonic() if self._takes_tasks() else taken
            loss = self._lost_process()
            if loss is None and time.monotonic() - taken > STUCK_SECONDS:
                loss = f"the pool takes no tasks for {STUCK_SECONDS:.0f} s: a process died earlier that was taking one"
            if loss is not None:
                self._loss = BrokenExecutor(loss)
                try:
                    if self.pool._state != TERMINATE:  # otherwise its owner is ending it
                        end_broken(self.pool, self._loss)  # before its owner hears of it and calls `terminate`
                finally:
                    self._fail(self._loss)
                return

    def _lost_process(self) -> str | None:
        """Return which process ended that should not have; None if there is none."""
        # A sentinel may stay silent: a process that another thread forked at the same time holds its pipe open.
        for process, code in [(p, p.exitcode) for p in self._processes.values()]:
            if code is not None:
                del self._processes[process.pid]
                if code or (self.pool._maxtasksperchild is None and self.pool._state == "RUN"):
                    return f"process {process.pid} of the pool ended with exit code {code}"
        return None

    def _takes_tasks(self) -> bool:
        """Return whether no task waits, or no process has the lock to take one: one that has it and is alive takes it
        at once."""
        tasks = self.pool._inqueue
        if not tasks._reader.poll():
            return True
        is_free: bool = tasks._rlock.acquire(block=False)
        if is_free:
            tasks._rlock.release()
        return is_free

    def _fail(self, loss: RuntimeError) -> None:
        with self._lock:
            self._loss = loss
            flying, self._flying = self._flying, set()
        for future in flying:
            future.set_exception(loss)


class RayPoolExecutor(PoolExecutor):
    """The interface of executors over a `ray.util.multiprocessing.Pool`, which reports the task of a lost worker.

    The pool would go on sending tasks to the actor that died, so another one takes its place.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool; Ray stays."""
        self.pool.close()
        if wait:
            self.pool.join()

    @property
    def num_workers(self) -> int:
        """The tasks that the pool runs at once."""
        return len(self.pool._actor_pool)

    def _watch_processes(self) -> None:
        """Return: Ray watches."""

    def _end(self, future: Future[Any], result: Any, error: BaseException | None) -> None:
        died = getattr(error, "actor_id", None)
        if died is not None:
            with self._lock:
                for i, (actor, _) in enumerate(self.pool._actor_pool):
                    if actor._actor_id.hex() == died:
                        self.pool._actor_pool[i] = self.pool._new_actor_entry()
        super()._end(future, result, getattr(error, "underlying", error))


class DaskExecutor(Executor):
    """A `ClientExecutor` of Dask each of whose futures ends.

    Dask's own leaves the future of a task pending for ever that is lost after it was computed and before its result was
    fetched, if running it again fails: it expects an error from the task alone, not from fetching the result.

    executor: whose client, options and shutdown are used
    """

    def __init__(self, executor: Any) -> None:
        self._executor, self._client = executor, executor._client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule `fn(*args, **kwargs)`. Raises RuntimeError once the executor was shut down."""
        if self._executor._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        remote = self._client.submit(fn, *args, **{**self._executor._kwargs, **kwargs})
        self._executor._futures.add(remote)  # for its shutdown
        future: Future[Any] = Future()
        future.add_done_callback(lambda future: remote.cancel() if future.cancelled() else None)
        remote.add_done_callback(lambda remote: self._finish(remote, future))
        return future

    def _finish(self, remote: Any, future: Future[Any]) -> None:
        """Give a future the outcome of Dask's, on the thread of Dask's callbacks."""
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = remote.result()
        except BaseException as error:  # CancelledError is one: of a client that was closed
            future.set_exception(error)
        else:
            future.set_result(result)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the tasks, or wait for them; the client stays."""
        self._executor.shutdown(wait)
