"""Background work: compilation, and writing compiled code to the cache, on a bounded number of threads.

Lives here: `Job`, `Worker`, the process's two workers.  Not here: what jobs do.

A worker is at most one daemon thread, which ends when its queue is empty. Jobs run in the order they were submitted;
urgent ones go first. In a fork's child queues are empty, and jobs of the parent are `lost`. When the process ends,
urgent jobs are done and all others dropped; a compiling thread then waits before its next call into LLVM, whose memory
the system is about to release.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from ..core import forks

_PATIENCE = 10.0  # seconds that the end of the process waits for a job that runs


class Job:
    """A call to be made in the background. error: its exception, once it is done."""

    def __init__(self, work: Callable[[], Any], urgent: bool) -> None:
        self._work: Callable[[], Any] | None = work
        self._generation = forks.generation
        self._event = threading.Event()
        self.urgent = urgent
        self.error: BaseException | None = None

    @property
    def lost(self) -> bool:
        """Return whether its thread belongs to the parent process of a fork."""
        return self._generation != forks.generation and not self._event.is_set()

    @property
    def done(self) -> bool:
        """Return whether it has ended: run, dropped or lost."""
        return self._event.is_set() or self.lost

    def cancel(self) -> None:
        """Drop it if it has not begun."""
        if self._take() is not None:
            self._event.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is done, or for so long."""
        if not self.done:
            self._event.wait(seconds)

    def run(self) -> None:
        """Run it on this thread, unless another thread has begun it or it was dropped. Propagates exceptions that are
        not an Exception."""
        work = self._take()
        if work is not None:
            try:
                work()
            except Exception as error:
                self.error = error
            except BaseException as error:
                self.error = error
                raise
            finally:
                self._event.set()

    def _take(self) -> Callable[[], Any] | None:
        # One call, which hands the work to one thread only.
        work: Callable[[], Any] | None = self.__dict__.pop("_work", None)
        return work


class Worker:
    """A queue and a thread of that name, which lives while there are jobs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = forks.lock()
        self._queue: collections.deque[Job] = collections.deque()
        self._thread: threading.Thread | None = None
        self._current: Job | None = None
        forks.in_child(self._begin)

    def _begin(self) -> None:
        self._queue, self._thread, self._current = collections.deque(), None, None

    def submit(self, work: Callable[[], Any], *, urgent: bool = False) -> Job:
        """Queue a function of no arguments. urgent: run it before other jobs, and before the process ends.

        If the system starts no more threads, call it at once.
        """
        job = Job(work, urgent)
        with self._lock:
            if urgent:
                index = next((i for i, other in enumerate(self._queue) if not other.urgent), len(self._queue))
                self._queue.insert(index, job)
            else:
                self._queue.append(job)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread = thread
                try:
                    thread.start()
                except RuntimeError:  # the process is ending, or the system has no more threads
                    self._thread = None
                    self._queue.remove(job)
        if self._thread is None:
            job.run()
        return job

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._thread = None
                    return
                self._current = self._queue.popleft()
            with contextlib.suppress(BaseException):  # it is the job's error
                self._current.run()
            self._current = None

    def finish(self, until: float) -> None:
        """Run urgent jobs at the end of the process, drop the others, wait for a running urgent job."""
        with self._lock:
            jobs, self._queue = self._queue, collections.deque()
            current = self._current
        for job in jobs:
            if job.urgent:
                job.run()
            else:
                job.cancel()
        if current is not None and current.urgent and not current.done:
            current._event.wait(max(until - time.monotonic(), 0.0))


compiling = Worker("opwright-compiler")
"""Worker that stages kernels, plans, and writes plans to the cache."""
generating = Worker("opwright-llvm")
"""Worker that calls LLVM for kernels that another thread stages."""
LLVM = forks.held_through_forks()
"""Lock of calls to LLVM, whose state must not be split by a fork or the end of the process."""


def _at_exit() -> None:
    until = time.monotonic() + _PATIENCE
    for worker in (compiling, generating):
        worker.finish(until)
    LLVM.acquire(timeout=max(until - time.monotonic(), 0.0))  # for good


atexit.register(_at_exit)
