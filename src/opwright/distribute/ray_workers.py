"""Data-parallel programs on Ray: a worker is an actor, which the others call.

Lives here: `run_on_ray`.  Not here: mailboxes (mailboxes.py), executors (executors.py).

Arrays travel as arguments of actor calls: from worker to worker through Ray's object store, and never through the
driver.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import FailedPreconditionError
from .communicators import TIMEOUT, WorkerLostError
from .mailboxes import Mailbox, MailboxCommunicator


class _Worker:
    """The actor of one worker: its program runs on one thread, calls of the others on another."""

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self._rank, self._size, self._timeout, self._mailbox = rank, size, timeout, Mailbox()

    def run(self, function: Callable[..., Any], peers: Sequence[Any], args: Sequence[Any]) -> Any:
        """Return function(communicator, *args)."""
        import ray

        pending: list[Any] = []

        def finish(count: int) -> None:
            try:
                while len(pending) > count:
                    ray.get(pending.pop(0))
            except ray.exceptions.RayError as error:
                raise WorkerLostError(op="run_on_ray", what=f"another worker was lost: {error}") from None

        def deliver(target: int, number: int, source: int, arrays: list[Any]) -> None:
            pending.append(peers[target].deliver.remote(number, source, arrays))
            finish(4 * self._size)

        communicator = MailboxCommunicator(self._rank, self._size, self._mailbox, deliver, self._timeout)
        result = function(communicator, *args)
        finish(0)  # Ray drops the calls of an actor that is gone
        return result

    def deliver(self, number: int, source: int, arrays: Sequence[Any]) -> None:
        """Add a message to the mailbox."""
        self._mailbox.deliver(number, source, arrays)

    def fail(self, reason: str) -> None:
        """End the program where it waits for others."""
        self._mailbox.fail(reason)


def run_on_ray(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    workers: int = 2,
    restarts: int = 0,
    options: dict[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> list[Any]:
    """Return function(communicator, *args) of each worker of a data-parallel program on Ray, by rank.

    options: of the actors, such as {"num_cpus": 4}. restarts: how often the program starts again after a worker was
    lost, on the workers that the cluster has then, at most `workers`: the function resumes from its last checkpoint.
    timeout: seconds that a worker waits for the others. `ray.init` is the caller's.
    raises WorkerLostError if a worker is lost once more than that, what the function raised (as Ray's error of it),
    FailedPreconditionError without Ray
    """
    try:
        import ray
    except ImportError:
        raise FailedPreconditionError(
            op="run_on_ray", what="Ray is not installed", do="pip install 'opwright[ray]'"
        ) from None
    options = {"num_cpus": 1, **(options or {})}
    lost: BaseException | None = None
    for attempt in itertools.count():
        count = workers if attempt == 0 else min(workers, _room(ray, float(options["num_cpus"])))
        actors = [
            ray.remote(_Worker).options(max_concurrency=2, **options).remote(rank, count, timeout)
            for rank in range(count)
        ]
        try:
            return _results(ray, [a.run.remote(function, actors, list(args)) for a in actors], actors)
        except WorkerLostError as error:
            lost = error
        finally:
            for actor in actors:
                ray.kill(actor)
        if attempt == restarts:
            raise lost
    raise AssertionError("the loop returns or raises")


def _room(ray: Any, cpus: float) -> int:
    """Return the number of workers for which the cluster has processors; at least one."""
    total = float(ray.cluster_resources().get("CPU", 1))
    return max(1, int(total // cpus)) if cpus else 1


def _results(ray: Any, runs: list[Any], actors: list[Any]) -> list[Any]:
    """Wait for all workers; of the first error the others are told. Raises WorkerLostError for a worker that died."""
    remaining = list(runs)
    error: BaseException | None = None
    while remaining:
        done, remaining = ray.wait(remaining)
        try:
            ray.get(done)
        except ray.exceptions.RayActorError as died:
            rank = runs.index(done[0])
            error = WorkerLostError(op="run_on_ray", what=f"worker {rank} of {len(runs)} was lost: {died}")
            break
        except ray.exceptions.RayTaskError as raised:
            error = _cause(raised, runs.index(done[0]), len(runs))
            break
    if error is not None:
        for actor in actors:
            actor.fail.remote(str(error))
        raise error
    return [ray.get(run) for run in runs]


def _cause(raised: Any, rank: int, size: int) -> BaseException:
    """Return the error to raise for one of a worker's function: WorkerLostError if it could not reach another one."""
    cause = getattr(raised, "cause", None)
    if isinstance(cause, WorkerLostError):
        return WorkerLostError(op="run_on_ray", what=f"worker {rank} of {size} lost another one: {cause}")
    error: BaseException = raised
    return error
