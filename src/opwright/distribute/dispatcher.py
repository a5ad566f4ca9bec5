"""The flow of tasks to workers and of results back: back-pressure, order, lost workers.

Lives here: `Task`, `Dispatcher`, outcomes of tasks without a result.
Not here: executors (executors.py), what a task computes (worker.py, sweeps.py).

Tasks are taken from their iterator only as results are consumed, so memory is bounded by the window: twice the workers
and one in flight, and in order at most as many again that wait for an earlier one.

A task whose worker died runs again, up to `retries` times, divided into its batches. An executor of processes is then
broken as a whole and fails every task in flight, guilty or not: all run again on a new executor. A task with one
attempt left therefore runs alone, and only a loss then is its own fault; several elements are then halved until the
guilty ones are alone and given up.
"""

from __future__ import annotations

import collections
import contextlib
import pickle
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UnavailableError
from .executors import Workers

COUNTED_SECONDS = 5.0
"""How long a count of workers is used: asking Dask's scheduler takes a millisecond."""


class Task:
    """Consecutive elements that one call on a worker computes.

    start: the index of the first element; batch: elements that the worker computes at once, by default all; attempts:
    how often its worker was lost
    """

    __slots__ = ("attempts", "batch", "count", "elements", "left", "origin", "results", "start")

    def __init__(
        self, start: int, elements: list[Any] | np.ndarray, batch: int = 0, root: Task | None = None, attempts: int = 0
    ) -> None:
        self.start, self.elements, self.attempts = start, elements, attempts
        self.count = len(elements)
        self.batch = batch or self.count
        self.origin = root  # None for a root: a reference to itself would keep it until a garbage collection
        self.left = self.count  # of a root: elements without a result
        self.results: list[tuple[Task, Any]] = []  # of a root whose results wait for their order

    def parts(self, size: int) -> list[Task]:
        """Return tasks with `size` of the elements each; the last one has the rest."""
        return [
            Task(self.start + at, self.elements[at : at + size], min(self.batch, size), self.root, self.attempts)
            for at in range(0, self.count, size)
        ]

    @property
    def root(self) -> Task:
        """The task that this one is a part of, itself unless it was divided."""
        return self.origin or self

    def drop_elements(self) -> None:
        """Free the elements of a task that has been computed: its result may wait for those of earlier tasks."""
        self.elements = []

    def batches(self) -> list[Task]:
        """Return a task for each batch, this one itself if it has one."""
        return [self] if self.count <= self.batch else self.parts(self.batch)

    def halves(self) -> list[Task]:
        """Return two tasks with half of the elements each, the first one with the larger half."""
        return self.parts(-(-self.count // 2))


class Lost:
    """The outcome of a task that was given up. attempts: how often it ran; error: the executor's last one."""

    __slots__ = ("attempts", "error")

    def __init__(self, attempts: int, error: BaseException) -> None:
        self.attempts, self.error = attempts, error


class Unsendable(NamedTuple):
    """The outcome of a task whose only element, or its result, cannot be pickled. error: of pickle."""

    error: BaseException


def _is_of_pickle(error: BaseException) -> bool:
    """Return whether an error says that a value cannot be pickled: pickle raises several types."""
    return isinstance(error, pickle.PicklingError) or (
        isinstance(error, TypeError | AttributeError) and ("pickle" in str(error) or "serialize" in str(error))
    )


def _refusal(workers: Workers, error: BaseException | None) -> UnavailableError:
    """Return the error of an executor that was shut down while the job runs. error: its own, if it raised one."""
    reason = "tasks were cancelled" if error is None else f"{type(error).__name__}: {error}"
    return UnavailableError(
        what="the executor was shut down while a job runs on it",
        found=f"{type(workers.executor).__name__}, {reason}",
        do="end the job first: results.close(), or `with map(...) as results`",
    )


class Dispatcher:
    """Runs tasks on workers.

    submit: start a task, return its future. retries: how often a task runs again after the loss of its worker.
    ordered: yield the results in the order of the tasks. receive: turn the result of a call into the outcome of its
    task, None if the task must be submitted again. window: most tasks in flight, by default twice the workers and one.
    """

    def __init__(
        self,
        workers: Workers,
        submit: Callable[[Task], Future[Any]],
        *,
        retries: int,
        ordered: bool = True,
        receive: Callable[[Task, Any], Any] | None = None,
        window: int | None = None,
    ) -> None:
        self._workers, self._submit = workers, submit
        self._retries, self._ordered, self._receive, self._window = retries, ordered, receive, window
        self._again: collections.deque[Task] = collections.deque()
        self._order: collections.deque[Task] = collections.deque()  # roots, until their results are yielded
        self._finished: queue.SimpleQueue[tuple[Task, Future[Any]]] = queue.SimpleQueue()
        self._flying: set[Future[Any]] = set()
        self._broken = self._alone = False
        self._counted, self._count = 0.0, 0
        self.lost_workers = 0

    def results(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
        """Yield tasks and their outcomes: of the call, `Lost` or `Unsendable`.

        A task that was halved is yielded as its parts. Closing the iterator cancels what has not begun.
        raises UnavailableError if the workers died and the executor cannot be rebuilt, or it was shut down; the errors
        of calls
        """
        source: Iterator[Task] | None = iter(tasks)
        try:
            while True:
                source = self._fill(source)
                if not self._flying:
                    if self._broken:
                        self._rebuild()
                        continue
                    if not self._again and source is None:
                        return
                task, future = self._finished.get()
                self._flying.discard(future)
                self._alone = False
                yield from self._settle(task, future)
        finally:
            for future in self._flying:
                future.cancel()

    @property
    def workers(self) -> int:
        """The number of workers, counted now and then."""
        now = time.monotonic()
        if not self._count or now - self._counted > COUNTED_SECONDS:
            self._counted, self._count = now, self._workers.count
        return self._count

    def _fill(self, source: Iterator[Task] | None) -> Iterator[Task] | None:
        """Submit tasks while the window has room; return the iterator, None once it is exhausted."""
        limit = self._window or 2 * self.workers + 1
        while len(self._flying) < limit and not self._broken and not self._alone:
            if self._again:
                task = self._again[0]
                alone = 0 < self._retries <= task.attempts
                if alone and self._flying:
                    break
                self._alone = alone
                self._again.popleft()
            else:
                if source is None or (self._ordered and len(self._order) >= 2 * limit):
                    break
                new = next(source, None)
                if new is None:
                    source = None
                    break
                task = new
                if self._ordered:
                    self._order.append(task)
            try:
                future = self._submit(task)
            except BrokenExecutor:  # noticed before a task in flight failed, or while none was
                self._again.appendleft(task)
                self._broken, self._alone = True, False
                break
            except Exception as error:
                if not _is_of_pickle(error):
                    raise _refusal(self._workers, error) from error
                future = Future()  # of an engine that pickles at once
                future.set_exception(error)
            self._flying.add(future)
            future.add_done_callback(lambda future, task=task: self._finished.put((task, future)))  # type: ignore[misc]
        return source

    def _settle(self, task: Task, future: Future[Any]) -> Iterator[tuple[Task, Any]]:
        """Yield the results that a finished call completes; schedule the task again if its worker was lost."""
        if future.cancelled():
            raise _refusal(self._workers, None)
        error = future.exception()
        if error is None:
            outcome = future.result()
            if self._receive is not None:
                outcome = self._receive(task, outcome)
                if outcome is None:
                    self._again.append(task)
                    return
        elif self._workers.is_loss(error):
            alone = 0 < self._retries <= task.attempts
            self._broken |= isinstance(error, BrokenExecutor)
            task.attempts += 1
            if task.attempts <= self._retries:
                self._again.extend(task.batches())
                return
            if alone and task.count > 1:
                task.attempts = self._retries
                self._again.extendleft(reversed(task.halves()))
                return
            outcome = Lost(task.attempts, error)
        elif _is_of_pickle(error):
            if task.count > 1:
                self._again.extendleft(reversed(task.halves()))
                return
            outcome = Unsendable(error)
        elif self._workers.is_shutdown(error):
            raise _refusal(self._workers, error) from error
        else:
            raise error
        if not self._ordered:
            yield task, outcome
            return
        root = task.root
        root.results.append((task, outcome))
        root.left -= task.count
        while self._order and not self._order[0].left:
            complete = self._order.popleft()
            yield from sorted(complete.results, key=lambda result: result[0].start)
            complete.results.clear()

    def _rebuild(self) -> None:
        """Replace a broken executor. Raises UnavailableError if the caller passed it."""
        self.lost_workers += 1
        if not self._workers.restart():
            raise UnavailableError(
                what="a worker process died, and its executor cannot be used any more",
                found=type(self._workers.executor).__name__,
                wanted="an executor that can be created again",
                do="pass its name, such as executor='processes:4', or a function that returns a new one",
            )
        self._broken = False


@contextlib.contextmanager
def closing(workers: Workers) -> Iterator[Workers]:
    """Close the workers at the end of the context."""
    try:
        yield workers
    finally:
        workers.close()
