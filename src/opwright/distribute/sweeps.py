"""Sweeps: one function on many sets of parameters, on the workers of any executor, and one report of all results.

Lives here: `sweep`, `grid`, `SweepReport`, `Trial`.
Not here: the functions (the command line's, benchmarks' and tests' own), the flow of tasks (dispatcher.py).
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from ..core.errors import InvalidArgumentError, NotFoundError
from .dispatcher import Dispatcher, Lost, Task, Unsendable, closing
from .executors import ExecutorLike, Workers
from .progress import Progress
from .worker import ErrorText, error_text


class Trial(NamedTuple):
    """One job of a sweep.

    number: its position; parameters: the arguments of the call; value: the result, None if it failed; error: the
    exception as text, None if it succeeded; seconds: on the worker.
    """

    number: int
    parameters: dict[str, Any]
    value: Any
    error: ErrorText | None
    seconds: float


class SweepReport(list[Trial]):
    """The trials of a sweep, in the order of its jobs."""

    @property
    def failures(self) -> list[Trial]:
        """The trials that failed."""
        return [trial for trial in self if trial.error is not None]

    def best(self, key: str | Callable[[Any], float] | None = None, *, largest: bool = False) -> Trial:
        """Return the trial with the smallest value, or the largest; of equal ones the first.

        key: of a value that is a dict, or a function of the value; None for values that are numbers. NaN never wins.
        raises NotFoundError if no trial has a value
        """
        take: Callable[[Any], Any] = key if callable(key) else (lambda value: value if key is None else value[key])
        sign = -1 if largest else 1
        scores = [(sign * take(trial.value), trial) for trial in self if trial.error is None]
        scores = [(score, trial) for score, trial in scores if not math.isnan(score)]
        if not scores:
            raise NotFoundError(what="no trial of the sweep has a value", found=f"{len(self)} trials")
        return min(scores, key=lambda pair: pair[0])[1]

    def to_json(self) -> str:
        """Return the trials as JSON; parameters and values must have JSON's types, others become text."""
        rows = [trial._asdict() | {"error": trial.error and trial.error._asdict()} for trial in self]
        return json.dumps(rows, indent=1, default=str)


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the jobs of all combinations of parameters, the last one varying fastest.

    >>> ow.distribute.grid(bits=[8, 16], threads=[1, 2])
    """
    return [dict(zip(values, combination)) for combination in itertools.product(*values.values())]


def sweep(
    function: Callable[..., Any],
    jobs: Iterable[Mapping[str, Any]],
    executor: ExecutorLike = None,
    *,
    retries: int = 1,
    on_trial: Callable[[Trial], object] | None = None,
    progress: bool = False,
) -> SweepReport:
    """Call a function with each set of parameters on the workers of an executor; return the report of all trials.

    function: of a module, so that it can be pickled by name; results must be picklable. jobs: keyword arguments of each
    call, such as `grid` returns. executor: as for `map`. retries: how often a job runs again because its worker died.
    on_trial: called with each trial as it completes, in this process. progress: show a bar on stderr, if it is a
    terminal. A job that raises is a failed trial and does not end the sweep.

    >>> report = ow.distribute.sweep(measure, ow.distribute.grid(bits=[4, 8]), "processes:2")
    >>> report.best("error").parameters

    raises InvalidArgumentError for an unknown executor or jobs that are not mappings; UnavailableError as `map`
    """
    parameters = [_checked(job) for job in jobs]
    trials: list[Trial | None] = [None] * len(parameters)
    bar = Progress(len(parameters), "jobs") if progress else None
    with closing(Workers(executor)) as workers:

        def submit(task: Task) -> Future[Any]:
            return workers.submit(_run_job, function, task.elements[0])

        dispatcher = Dispatcher(workers, submit, retries=retries, ordered=False)
        if bar is not None:
            bar.start()
        try:
            for task, outcome in dispatcher.results(_tasks(parameters)):
                trial = _trial(task, outcome)
                trials[trial.number] = trial
                if bar is not None:
                    bar.advance(1, int(trial.error is not None))
                if on_trial is not None:
                    on_trial(trial)
        finally:
            if bar is not None:
                bar.stop()
    return SweepReport(trial for trial in trials if trial is not None)


def _checked(job: Any) -> dict[str, Any]:
    if not isinstance(job, Mapping) or not all(isinstance(name, str) for name in job):
        raise InvalidArgumentError(
            op="sweep", what="a job is not a mapping of keyword arguments", found=repr(job), do="grid(name=[...])"
        )
    return dict(job)


def _tasks(parameters: Sequence[dict[str, Any]]) -> Iterator[Task]:
    return (Task(index, [job]) for index, job in enumerate(parameters))


def _trial(task: Task, outcome: Any) -> Trial:
    if isinstance(outcome, Lost):
        text = ErrorText("WorkerLost", f"its worker died in each of {outcome.attempts} runs: {outcome.error}", "")
        return Trial(task.start, task.elements[0], None, text, 0.0)
    if isinstance(outcome, Unsendable):
        return Trial(task.start, task.elements[0], None, error_text(outcome.error), 0.0)
    value, error, seconds = outcome
    return Trial(task.start, task.elements[0], value, error, seconds)


def _run_job(function: Callable[..., Any], parameters: dict[str, Any]) -> tuple[Any, ErrorText | None, float]:
    """Run one job on a worker: its value, its error, its seconds."""
    start = time.perf_counter()
    try:
        return function(**parameters), None, time.perf_counter() - start
    except (Exception, SystemExit) as error:
        return None, error_text(error), time.perf_counter() - start
