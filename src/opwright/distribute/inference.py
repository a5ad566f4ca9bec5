"""Batch inference: a model over many elements, on the workers of any executor.

Lives here: `map`, its results, `ElementError`, `Summary`.
Not here: what tasks carry (job.py), the worker's side (worker.py), the flow of tasks (dispatcher.py), outputs on disk
(sinks.py, journal.py).
"""

from __future__ import annotations

import builtins
import collections
import itertools
import operator
import pickle
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import errors
from ..core.errors import InvalidArgumentError, OpError, UnavailableError
from ..core.lazy_imports import finalizer
from . import worker
from .dispatcher import Dispatcher, Lost, Task, Unsendable
from .elements import ElementSource
from .executors import ExecutorLike, Workers
from .job import InferenceJob
from .portable_model import PortableModel
from .progress import Progress
from .task_size import MOST_BATCHES, TaskSize

if TYPE_CHECKING:
    from .sinks import Sink

KEPT_ERRORS = 100
"""Errors that a summary lists; all are counted, and all are in a sink's journal."""


class ElementError(OpError):
    """An element that the model did not compute; `map` yields it in place of the result.

    index: of the element; error_type: the name of the exception's class; traceback: the worker's, as text
    """

    code, code_name = errors.UNKNOWN, "UNKNOWN"

    def __init__(self, index: int, error_type: str, message: str, traceback: str = "") -> None:
        super().__init__(f"element {index}: {error_type}: {message}")
        self.index, self.error_type, self.error_message, self.traceback = index, error_type, message, traceback

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.index, self.error_type, self.error_message, self.traceback)


class Summary(NamedTuple):
    """The account of a job.

    elements: all, with those of earlier runs; failed: without a result; resumed: elements that a sink had already.
    seconds: of this run; worker_seconds: computing, summed over workers; lost_workers: how often an executor was
    rebuilt; errors: the first of them.
    """

    elements: int
    failed: int
    resumed: int
    seconds: float
    worker_seconds: float
    lost_workers: int
    errors: tuple[ElementError, ...]


def map(
    model: Any,
    elements: Iterable[Any],
    executor: ExecutorLike = None,
    *,
    batch: int = 1,
    ordered: bool = True,
    retries: int = 2,
    on_error: str = "return",
    sink: Sink | None = None,
    load: Callable[[Any], Any] | None = None,
    signature: str | None = None,
    custom_ops: Sequence[Any] = (),
    num_threads: int = 1,
    window: int | None = None,
    progress: bool = False,
) -> Results:
    """Run a model over elements on the workers of an executor; return an iterator of the results.

    model: the path or the bytes of a `.tflite` file, a `lite.Model` or `lite.Interpreter`, the folder of a saved model,
    or a `function` with an input_signature. elements: an array (its rows), a list, a Dataset, or any iterable. An
    element is an array, a tuple of arrays in the order of the model's inputs, or a dict of them by name; without the
    first axis of the inputs it is stacked with others, with it it is run as it is. A result is the output, or a dict of
    outputs by name, and lacks the first axis if the element does.

    executor: an executor, its name (`processes:4`; see `ow.distribute.executor`), a function that creates one, a Dask
    client, a pool of `multiprocessing`; by default one thread of this process. batch: elements of one run of the model.
    ordered: whether results have the order of the elements, or come as computed; `Results.items` yields them with their
    index. retries: how often a batch runs again because its worker died. on_error: "return" yields an `ElementError` in
    place of a result, "raise" raises it. sink: also store the results, and skip those stored by an earlier run. load: a
    function that reads an element on the worker, such as `np.load` for paths. signature: of several. custom_ops:
    `@ow.operator` classes that can be pickled. num_threads: of one run of the model. window: most batches in flight, by
    default twice the workers and one; elements are taken as results are consumed. progress: show a progress bar on
    stderr, if it is a terminal.

    >>> for y in ow.distribute.map("model.tflite", images, "processes:4", batch=32):
    ...     print(y.argmax())

    raises InvalidArgumentError for an argument, NotFoundError for a missing model, FailedPreconditionError for an
    engine that is not installed; while iterating, the OpError of a model that workers cannot open, UnavailableError if
    workers died and the executor cannot be created again
    """
    for name, value, least in (("batch", batch, 1), ("retries", retries, 0), ("num_threads", num_threads, 1)):
        _check_integer(name, value, least)
    if window is not None:
        _check_integer("window", window, 1)
    if on_error not in ("return", "raise"):
        raise InvalidArgumentError(op="map", what="unknown on_error", found=repr(on_error), wanted="'return', 'raise'")
    portable = PortableModel(model, signature, num_threads)
    try:
        workers = Workers(executor)
    except BaseException:
        portable.close()
        raise
    if load is not None and workers.pickles_by_name:
        try:
            pickle.dumps(load)
        except Exception as error:
            workers.close()
            portable.close()
            raise InvalidArgumentError(
                op="map", what=f"load= cannot be sent to other processes: {error}", do="a function of a module"
            ) from error
    job = InferenceJob(portable, workers, tuple(custom_ops), load)
    return Results(job, elements, batch, ordered, retries, on_error == "raise", sink, window, progress)


def _check_integer(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgumentError(op="map", what=f"{name} is out of range", found=repr(value), wanted=f">= {least}")


class Results:
    """The results of `map`: an iterator, which ends the job when it is exhausted or closed.

    `with map(...) as results` closes it; `items()` yields indices, too; `summary()` runs the job to its end.
    """

    def __init__(
        self,
        job: InferenceJob,
        elements: Iterable[Any],
        batch: int,
        ordered: bool,
        retries: int,
        raises: bool,
        sink: Sink | None,
        window: int | None,
        progress: bool,
    ) -> None:
        self._job, self._raises, self._sink = job, raises, sink
        self._elements, self._batch = elements, batch
        self._dispatcher = Dispatcher(
            job.workers, job.submit, retries=retries, ordered=ordered, receive=job.receive, window=window
        )
        self._total = len(elements) if isinstance(elements, Sized) else None
        alone = job.workers.shares_process or window is not None or not retries  # retries=0: a loss takes a batch
        job.size = TaskSize(batch, 1 if alone else MOST_BATCHES, self._total)
        self._progress = Progress(self._total) if progress else None
        self._begun = time.monotonic()
        self._read = self._failed = self._resumed = 0
        self._worker_seconds = 0.0
        self._errors: list[ElementError] = []
        self._warned = False
        self._tasks_done = self._run()
        self._left: Iterator[tuple[int, Any]] = iter(())  # of the last task, what has not been yielded
        self._items = itertools.chain.from_iterable(self._tasks_done)

    def __iter__(self) -> Iterator[Any]:
        return builtins.map(operator.itemgetter(1), self._items)

    def __next__(self) -> Any:
        return next(self._items)[1]

    def items(self) -> Iterator[tuple[int, Any]]:
        """Yield the index of each element with its result."""
        return self._items

    def summary(self) -> Summary:
        """Run the job to its end without keeping results; return what it did."""
        collections.deque(self._items, 0)
        return Summary(
            self._read,
            self._failed,
            self._resumed,
            time.monotonic() - self._begun,
            self._worker_seconds,
            self._dispatcher.lost_workers,
            tuple(self._errors),
        )

    def close(self) -> None:
        """End the job: batches that have not begun are cancelled, workers that the job started are shut down."""
        self._tasks_done.close()
        collections.deque(self._left, 0)
        self._job.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @finalizer
    def __del__(self) -> None:
        if "_items" in self.__dict__:
            self.close()

    # ---- the job -----------------------------------------------------------------------------------------------------

    def _run(self) -> Generator[Iterator[tuple[int, Any]], None, None]:
        """Yield, for each task, an iterator of index and result of its elements. Raises the job's errors.

        Elements are iterated over by C: a generator that yields each takes 0.2 us of the driver's time for it.
        """
        try:
            if self._sink is not None:
                self._sink.open(self._job.reference, self._batch, self._total)
            if self._progress is not None:
                self._progress.start()
            for task, outcome in self._dispatcher.results(self._tasks()):
                values = self._stored(task.start, self._values(task, outcome))
                failed = _failed_of(values)
                self._count_failed(failed)
                if self._progress is not None:
                    self._progress.advance(len(values), len(failed))
                error = failed[0] if self._raises and failed else None
                if error is not None:
                    del values[error.index - task.start :]
                self._left = enumerate(values, task.start)
                yield self._left
                if error is not None:
                    raise error
                values = failed = []  # not kept while waiting for the next
                self._left = iter(())
            if self._sink is not None:
                self._sink.finish(self._read)
        finally:
            if self._sink is not None:
                self._sink.close()
            if self._progress is not None:
                self._progress.stop()
            self._job.close()

    def _stored(self, start: int, values: list[Any]) -> list[Any]:
        """Pass results to the sink; return them, with an error in place of each that it cannot store."""
        if self._sink is None:
            return values
        kept = self._sink.take(start, values)
        if not (self._raises and _failed_of(kept)):  # the next run computes again what this one raises
            self._sink.add(start, kept)
        return [k if isinstance(k, ElementError) else value for k, value in zip(kept, values)]

    def _count_failed(self, failed: list[ElementError]) -> None:
        self._failed += len(failed)
        self._errors += failed[: KEPT_ERRORS - len(self._errors)]

    def _tasks(self) -> Iterator[Task]:
        """Yield the batches of elements that the sink lacks."""
        source = ElementSource(self._elements)
        done = self._sink.done if self._sink is not None else None
        while True:
            skipped = 0 if done is None else done(self._read)
            if skipped:
                failed = self._sink.errors(self._read) if self._sink is not None else []
                skipped = source.skip(skipped)
                if not skipped:
                    return
                if self._raises and failed:
                    raise failed[0]
                self._count_failed(failed)
                self._read += skipped
                self._resumed += skipped
                if self._progress is not None:
                    self._progress.advance(skipped, 0)
                continue
            part = None if self._sink is None else self._sink.rows - self._read % self._sink.rows
            elements = source.take(self._job.size.elements(self._read, self._dispatcher.workers, part))
            if not len(elements):
                return
            task = Task(self._read, elements, self._batch)
            self._read += len(elements)
            yield task

    def _values(self, task: Task, outcome: Any) -> list[Any]:
        """Return the result or the error of each element of a task. Raises the error of a model that does not open."""
        if isinstance(outcome, worker.ModelError):
            raise _as_error(outcome.error)
        if isinstance(outcome, Lost):
            text = f"its worker died in each of {outcome.attempts} runs: {outcome.error}"
            indices = range(task.start, task.start + task.count)
            return [ElementError(index, "WorkerLost", text) for index in indices]
        if isinstance(outcome, Unsendable):
            return [ElementError(task.start, *worker.error_text(outcome.error))]
        starts = itertools.count(task.start, task.batch)
        return [value for start, result in zip(starts, outcome) for value in self._batch_values(start, result)]

    def _batch_values(self, start: int, outcome: worker.BatchOutcome) -> list[Any]:
        """Return the result or the error of each element of a batch."""
        self._worker_seconds += outcome.seconds
        if outcome.reason and not self._warned:
            self._warned = True
            warnings.warn(
                f"the model runs its elements one by one, since a batch of {len(outcome.rows)} fails: "
                f"{outcome.reason.splitlines()[0]}",
                RuntimeWarning,
                stacklevel=2,
            )
        names = outcome.names
        if outcome.stacked is not None:
            if len(names) == 1:
                return list(outcome.stacked[0])
            return [dict(zip(names, row)) for row in zip(*outcome.stacked)]
        return [
            ElementError(index, *row)
            if isinstance(row, worker.ErrorText)
            else row[0]
            if len(names) == 1
            else dict(zip(names, row))
            for index, row in enumerate(outcome.rows, start)
        ]


def _failed_of(values: Iterable[Any]) -> list[ElementError]:
    return [value for value in values if isinstance(value, ElementError)]


def _as_error(error: worker.ErrorText) -> OpError:
    """Return an error that a worker reported, as an object of its class if that is one of this package's."""
    cls = getattr(errors, error.type, None)
    status: type[OpError] = cls if isinstance(cls, type) and issubclass(cls, OpError) else UnavailableError
    result = status(f"a worker cannot open the model: {error.message}")
    result.add_note(error.traceback)
    return result
