"""A worker's part of batches.

Lives here: `DistributedDataset`, `SharedBatches`, `OwnBatches`, the bounds of a part.
Not here: `Dataset.shard`, which takes every n-th element (data/transformations.py).

Worker r of n has the examples [r * b / n, (r + 1) * b / n) of a batch of b, so that the workers' parts, one after the
other, are the batch that one worker would have. In `fit` and `evaluate` all workers run the same steps, since they wait
for each other in each: one that has no examples runs the step on examples of others, which count nothing.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core import nest
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..nn.training.batches import ArrayBatches, Batches
from ..ops import array
from .collectives import Group
from .communicators import Communicator


class BatchPart(NamedTuple):
    """A worker's part of a batch.

    size: its examples that count; of: those of the whole batch; has_idle: whether some worker has none; digest: of the
    first batch of an epoch, None of others
    """

    size: int
    of: int
    has_idle: bool
    digest: np.ndarray | None = None


def _bounds_of(rank: int, count: int, size: int) -> slice:
    return slice(count * rank // size, count * (rank + 1) // size)


def _length(batch: Any) -> Any:
    """Return the number of examples: a tensor if it is not known while a function is traced."""
    first = next(x for x in nest.flatten(batch) if x is not None)
    return array.shape(first)[0] if first.shape[0] is None else int(first.shape[0])


def _part(batch: Any, part: slice) -> Any:
    return nest.map_structure(lambda x: None if x is None else x[part], batch)


class DistributedDataset:
    """This worker's part of a dataset, iterated like the dataset. Parts of a batch with too few examples are empty.

    communicator: the workers that share each batch; None if the dataset is this worker's own already.
    """

    def __init__(self, dataset: Any, communicator: Communicator | None) -> None:
        self._dataset, self._communicator = dataset, communicator

    @property
    def whole(self) -> Any:
        """The dataset of global batches; None if the dataset is this worker's own."""
        return None if self._communicator is None else self._dataset

    @property
    def element_spec(self) -> Any:
        """The types of the elements; batches are parts of those."""
        return self._dataset.element_spec

    def cardinality(self) -> Any:
        """Return the number of batches."""
        return self._dataset.cardinality()

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._dataset)  # created here, as the first `next` may be one that a function traces
        shared = self._communicator is not None and self._communicator.size > 1
        return self._parts(batches) if shared else batches

    def _parts(self, batches: Iterator[Any]) -> Iterator[Any]:
        communicator: Any = self._communicator
        for batch in batches:
            yield _part(batch, _bounds_of(communicator.rank, _length(batch), communicator.size))


def innermost(batches: Any) -> Any:
    """Return the batches that others limit or weight."""
    while (inner := getattr(batches, "inner", None)) is not None:
        batches = inner
    return batches


class OwnBatches(Batches):
    """Batches of this worker's own dataset, and its last one again until those of all workers end.

    examples: of the batches that have been drawn, in order; 0 of one that is drawn again.
    """

    def __init__(self, batches: Batches, group: Group) -> None:
        self._batches, self._group = batches, group
        self.steps, self.samples = batches.steps, batches.samples
        self.examples: deque[int] = deque()

    def restart(self) -> None:
        """Start the next epoch at the first batch."""
        self._batches.restart()

    def epoch(self) -> Iterator[Any]:
        """Yield the batches of the next epoch, and the last one without end; None if there is no batch."""
        self.examples.clear()
        batch = None
        for batch in self._batches.epoch():
            self.examples.append(_length(batch))
            yield batch
        while True:
            self.examples.append(0 if batch is not None else -1)
            yield batch

    def next_part(self) -> BatchPart:
        """Return what is this worker's of the next batches of all; of no examples if all datasets have ended.

        raises FailedPreconditionError if a worker's dataset has no batch, WorkerLostError
        """
        size = np.array(self.examples.popleft(), np.int64)
        sizes = self._group.run(lambda: [self._group.communicator.all_gather(size)])[0]
        if (sizes < 0).any() and (sizes > 0).any():
            raise FailedPreconditionError(
                op="MultiWorker",
                what=f"the dataset of worker {int(sizes.argmin())} has no batch",
                wanted="one batch or more on each worker",
            )
        return BatchPart(int(size), int(np.maximum(sizes, 0).sum()), bool((sizes <= 0).any()))


class SharedBatches(Batches):
    """This worker's part of the batches of `fit`. parts: what it has of the batches that have been drawn, in order.

    whole_rests: of a batch with fewer examples than there are workers, each of them has all; otherwise the ones without
    examples draw all, and count none.
    """

    def __init__(self, batches: Batches, group: Group, whole_rests: bool = False) -> None:
        communicator = group.communicator
        self._group = group
        self._batches, self._communicator, self._whole_rests = batches, communicator, whole_rests
        self.steps, self.samples = batches.steps, batches.samples
        self.parts: deque[BatchPart] = deque()
        arrays = innermost(batches)
        self._is_checked = not isinstance(arrays, ArrayBatches)  # arrays are equal, as far as a user can tell
        if isinstance(arrays, ArrayBatches):
            seed = np.array(arrays.seed, np.int64)
            group.broadcast(seed)
            arrays.reseed(int(seed))
        self._arrays = batches if isinstance(batches, ArrayBatches) else None
        if self._arrays is not None:
            self._arrays.part_of = self.part_of

    def part_of(self, count: int) -> slice:
        """Return the examples of a batch that this worker draws."""
        own = self._own(count)
        return own if own.start < own.stop else slice(0, count)

    def _own(self, count: int) -> slice:
        """Return the examples of a batch that count on this worker."""
        if self._whole_rests and count < self._communicator.size:
            return slice(0, count)
        return _bounds_of(self._communicator.rank, count, self._communicator.size)

    def restart(self) -> None:
        """Start the next epoch at the first batch."""
        self._batches.restart()

    def epoch(self) -> Iterator[Any]:
        """Yield this worker's parts of the batches of the next epoch."""
        self.parts.clear()
        for number, batch in enumerate(self._batches.epoch()):
            digest = None
            if self._arrays is None:
                count = _length(batch)
                if number == 0 and self._is_checked:
                    digest = np.array([_digest(batch)], np.uint32)
                batch = _part(batch, self.part_of(count))
            else:
                count = self._arrays.count_of(number)
            own = self._own(count)
            self.parts.append(BatchPart(own.stop - own.start, count, count < self._communicator.size, digest))
            yield batch

    def gathered(self, arrays: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
        """Return the rows of all workers for a batch of `count` examples, of which `arrays` are this worker's part.

        raises InvalidArgumentError for an array of another length, WorkerLostError
        """
        size, rank = self._communicator.size, self._communicator.rank
        parts = [_bounds_of(r, count, size) for r in range(size)]
        own = parts[rank].stop - parts[rank].start
        if wrong := [a.shape for a in arrays if a.ndim == 0 or len(a) != own]:
            raise InvalidArgumentError(
                op="MultiWorker", what="an output has no row for each example", found=wrong[0], wanted=[own, "..."]
            )
        whole = [np.empty((count, *a.shape[1:]), a.dtype) for a in arrays]
        received = [[w[part] for w in whole] for part in parts]
        for place, values in zip(received[rank], arrays):
            place[...] = values

        def collective() -> list[np.ndarray]:
            self._communicator.exchange([arrays] * size, received)
            return []

        self._group.run(collective)
        return whole


def _digest(batch: Any) -> int:
    crc = 0
    for x in nest.flatten(batch):
        if x is not None:
            array = np.ascontiguousarray(x.numpy())
            crc = zlib.crc32(array.tobytes() if array.dtype != object else repr(array.tolist()).encode(), crc)
    return crc
