"""The replica of a data-parallel program that this process is, for layers below `distribute`.

Lives here: `Replica`, what optimizers, tapes, layers, random operators and training loops ask of it; `current`,
`entered`.
Not here: strategies, collectives and communicators (distribute/), which install themselves here.

Without a replica, `current()` is None, and every caller does what it does on one worker.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Replica(Protocol):
    """One worker of a data-parallel program. All workers call the methods in the same order."""

    @property
    def stages_gradients(self) -> bool:
        """Whether the reduction of gradients overlaps the backward pass."""
        ...

    @property
    def random_offset(self) -> int:
        """The number that is added to those of random draws: a multiple of 2^48, 0 outside of steps."""
        ...

    def staged_gradients(self, records: list[Any], start: dict[int, Any], sources: Sequence[Any]) -> list[Any]:
        """Return the gradients of the sources by stages of the reverse pass, whose reductions have been started."""
        ...

    def reduce_gradients(self, grads: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Return the gradients of all workers, reduced."""
        ...

    def batch_moments(self, mean: Any, variance: Any, count: Any) -> tuple[Any, Any]:
        """Return mean and variance of the batches of all workers from those of this one, of `count` elements."""
        ...

    def local_loss(self, loss: Any) -> Any:
        """Return the loss of this worker's part of a batch, weighted by the size of the part."""
        ...

    def reduced_metrics(self, variables: Sequence[Any], result: Callable[[], Any]) -> Any:
        """Return `result()` of metrics whose state is the sum of the states of all workers."""
        ...

    def shared_batches(self, batches: Any, whole_rests: bool = False) -> Any:
        """Return this worker's part of each batch.

        whole_rests: of a batch with fewer examples than there are workers, each of them has all; otherwise some have
        examples that count nothing
        """
        ...

    def gathered_outputs(self, outputs: Any, batches: Any) -> Any:
        """Return the outputs of all workers for their parts of the next batch."""
        ...

    def begin_step(self, kind: str, batches: Any, model: Any) -> bool:
        """Take note of the part of the next batch that this worker has; return whether any worker has one."""
        ...

    def end_step(self, kind: str, model: Any, result: Any) -> Any:
        """Follow a step of `fit` or `evaluate`: average the weights if they are due; return the step's result."""
        ...

    def synchronize(self, model: Any) -> None:
        """Give all workers the weights of the first one, before training."""

    def average_statistics(self, model: Any) -> None:
        """Average weights that steps assign without gradients, such as moving averages, over all workers."""

    def in_fit(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which gradients are those of the mean over all workers' examples."""
        ...

    def written(self, write: Callable[[], Any]) -> Any:
        """Call `write` on one worker, and wait for it on all; return its result there, None on the others."""


class _CurrentReplica(threading.local):
    replica: Replica | None = None


_current = _CurrentReplica()


def current() -> Replica | None:
    """Return the replica of this thread, None outside of a strategy."""
    return _current.replica


def random_offset() -> int:
    """Return what is added to the number of a random draw, so that workers' draws of a step differ: 0 on one worker."""
    replica = _current.replica
    return 0 if replica is None else replica.random_offset


def written(write: Callable[[], R]) -> R | None:
    """Return `write()`, which writes files; of several workers one calls it, and the others wait and return None."""
    replica = _current.replica
    return write() if replica is None else replica.written(write)


@contextlib.contextmanager
def entered(replica: Replica | None) -> Iterator[None]:
    """Return a context whose replica is `replica`."""
    before, _current.replica = _current.replica, replica
    try:
        yield
    finally:
        _current.replica = before
