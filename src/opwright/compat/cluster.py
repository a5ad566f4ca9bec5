"""Descriptions of clusters and of threads that stop together, under the names of `tf.train`.

Lives here: `ClusterSpec`, `Coordinator`.
Not here: work on several processes (distribute/), resolvers of clusters (distribute/cluster_resolver.py).
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from ..core.errors import OutOfRangeError

Jobs = dict[str, dict[int, str]]


class ClusterSpec:
    """The addresses of the tasks of each job: `ClusterSpec({"worker": ["host0:2222", "host1:2222"]})`.

    cluster: by job a list of addresses, or a dictionary of them by task; another ClusterSpec.
    raises TypeError for others
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_dict()
        if not isinstance(cluster, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses"
            )
        self._jobs: Jobs = {}
        for job, tasks in cluster.items():
            if isinstance(tasks, Mapping):
                numbered = {int(i): tasks[i] for i in sorted(tasks)}
            elif isinstance(tasks, (list, tuple)):
                numbered = dict(enumerate(tasks))
            else:
                raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
            if any(not isinstance(address, str) for address in numbered.values()):
                raise TypeError(f"Task addresses must be strings; job {job!r} has {tasks!r}")
            self._jobs[str(job)] = numbered

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({', '.join(f'{job!r}: {tasks!r}' for job, tasks in self.as_dict().items())})"

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def as_dict(self) -> dict[str, Any]:
        """Return the addresses by job: a list where tasks are numbered from 0 without gaps, else a dictionary."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]

    def num_tasks(self, job_name: str) -> int:
        """Return the number of tasks of a job. Raises ValueError for an unknown one."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the numbers of the tasks of a job."""
        return sorted(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the address of a task. Raises ValueError for an unknown one."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Return the addresses of a job's tasks by number, None where there is none."""
        tasks = self._tasks(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]


class Coordinator:
    """The stop of several threads: one of them asks for it, and all look at `should_stop`.

    clean_stop_exception_types: exceptions that stop the threads without being raised by `join`; OutOfRangeError by
    default.
    """

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else tuple(clean_stop_exception_types)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._joined = False

    @property
    def joined(self) -> bool:
        """Whether `join` has returned."""
        return self._joined

    def request_stop(
        self, ex: BaseException | tuple[type[BaseException], BaseException, TracebackType] | None = None
    ) -> None:
        """Ask the threads to stop. ex: an exception (or `sys.exc_info()`), which `join` raises: the first counts."""
        error = ex[1] if isinstance(ex, tuple) else ex
        if not self._stop.is_set():
            self._joined = False
            if error is not None and not isinstance(error, self._clean):
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Forget the request to stop, and its exception."""
        self._joined, self._error = False, None
        self._stop.clear()

    def should_stop(self) -> bool:
        """Return whether a thread asked for a stop."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Return a context whose exceptions become requests to stop."""
        try:
            yield
        except Exception:
            self.request_stop(sys.exc_info()[1])

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait for a request to stop; return whether there is one."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Add a thread that `join` waits for."""
        self._threads.add(thread)

    def raise_requested_exception(self) -> None:
        """Raise the exception of the request to stop, if it had one."""
        if self._error is not None:
            raise self._error

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until threads end, at most stop_grace_period_secs after a request to stop; raise its exception.

        raises RuntimeError for threads that go on, unless ignore_live_threads
        """
        waiting = self._threads | set(threads or ())
        while any(t.is_alive() for t in waiting) and not self._stop.wait(0.01):
            pass
        end = time.monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(end - time.monotonic(), 0.0))
        alive = [t.name for t in waiting if t.is_alive()]
        self._joined, self._threads = True, set()
        self.raise_requested_exception()
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")
