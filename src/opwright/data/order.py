"""Transformations that select and reorder elements: take, skip, repeat, shard, shuffle, concatenate.

Lives here: the classes, generic over items.  Not here: transformations of element values (elementwise.py, batch.py).

Such a transformation is independent of its items. If the elements are rows of arrays it reorders row indices, so that a
shuffled batch is one indexing operation; otherwise it reorders the elements.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from ..core.errors import InvalidArgumentError
from ..ops.random.state import seeds_for
from ..tracing.symbolic import SymbolicTensor
from .base import INFINITE, UNKNOWN, Rows, int_operand, static_int
from .dataset import Dataset
from .functions import Failure, IteratorContext, RandomPasses
from .sources import iterate_rows
from .structure import common_spec

StartPass = Callable[[], Iterator[Any]]


class ReorderingDataset(Dataset):
    """Base class of datasets that reorder, repeat or drop items of one input; subclasses override `order`."""

    def __init__(self, input_dataset: Any, operands: Any = ()) -> None:
        super().__init__(input_dataset.element_spec, (input_dataset,), operands)
        self.begin()

    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        """Yield the items of one pass. start: starts a pass over the input."""
        raise TypeError(f"{type(self).__name__} must define order(context, start)")

    def rows(self, context: IteratorContext) -> Rows | None:
        input_rows = self._inputs[0].rows(context.input())
        if input_rows is None:
            return None
        arrays, start = input_rows
        return arrays, lambda: self.order(context, start)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        rows = self.rows(context)
        start = functools.partial(self._inputs[0].flow, context.input())
        return self.order(context, start) if rows is None else iterate_rows(*rows)

    def _static_operand(self) -> int:
        """Return the operand, or UNKNOWN while it is symbolic."""
        number = static_int(self._operands[0])
        return UNKNOWN if number is None else number


class _CountedDataset(ReorderingDataset):
    def __init__(self, input_dataset: Any, count: Any) -> None:
        super().__init__(input_dataset, (int_operand(count, "count"),))


class _TakeDataset(_CountedDataset):
    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        left = self._static_operand()
        if left < 0:
            yield from start()
            return
        if left == 0:
            return
        for item in start():
            yield item
            if type(item) is not Failure:
                left -= 1
                if left == 0:
                    return

    def _cardinality(self) -> int:
        n = self._inputs[0]._cardinality()
        if not self._is_known() or n == UNKNOWN:
            return UNKNOWN
        count = self._static_operand()
        return n if count < 0 else count if n == INFINITE else min(n, count)


class _SkipDataset(_CountedDataset):
    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        count = self._static_operand()
        if count < 0:
            return
        items = start()
        left = count
        for item in items if count else ():
            if type(item) is Failure:
                yield item
                left = count
                continue
            left -= 1
            if left == 0:
                break
        yield from items

    def _cardinality(self) -> int:
        n = self._inputs[0]._cardinality()
        if not self._is_known():
            return UNKNOWN
        count = self._static_operand()
        return 0 if count < 0 else n if n < 0 else max(0, n - count)


class _RepeatDataset(ReorderingDataset):
    def __init__(self, input_dataset: Any, count: Any) -> None:
        super().__init__(input_dataset, (-1 if count is None else int_operand(count, "count"),))

    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        count = self._static_operand()
        for _ in itertools.count() if count < 0 else range(count):
            item = empty = object()
            for item in start():
                yield item
            if count < 0 and item is empty:  # an empty input would loop forever
                return

    def _cardinality(self) -> int:
        n = self._inputs[0]._cardinality()
        if not self._is_known():
            return UNKNOWN
        count = self._static_operand()
        if count == 0 or n == 0:
            return 0
        return INFINITE if count < 0 or n == INFINITE else n * count if n >= 0 else UNKNOWN


class _ShardDataset(ReorderingDataset):
    def __init__(self, input_dataset: Any, num_shards: Any, index: Any) -> None:
        super().__init__(input_dataset, (int_operand(num_shards, "num_shards"), int_operand(index, "index")))

    def begin(self) -> None:
        if any(type(o) is SymbolicTensor for o in self._operands):
            return
        n, i = map(int, self._operands)
        if n < 1:
            raise InvalidArgumentError(op="Dataset.shard", what="Number of shards must be greater than zero", found=n)
        if not 0 <= i < n:
            raise InvalidArgumentError(
                op="Dataset.shard", what=f"Index must be between 0 and {n - 1} (currently index = {i})."
            )

    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        n, i = map(int, self._operands)
        return itertools.islice(start(), i, None, n)

    def _cardinality(self) -> int:
        n = self._inputs[0]._cardinality()
        if n < 0 or not self._is_known():
            return n if n < 0 else UNKNOWN
        shards, index = map(int, self._operands)
        result: int = (n - index + shards - 1) // shards
        return result


class _ShuffleDataset(RandomPasses, ReorderingDataset):
    """Buffer of items; a random one is output as another is added."""

    def __init__(self, input_dataset: Any, buffer_size: Any, seed: Any, reshuffle: bool | None) -> None:
        self._seeds = seeds_for(seed)
        self._reshuffle = reshuffle is not False
        super().__init__(input_dataset, (int_operand(buffer_size, "buffer_size"),))

    def begin(self) -> None:
        super().begin()
        size = static_int(self._operands[0])
        if size is not None and size < 1 and size != UNKNOWN:
            raise InvalidArgumentError(
                op="Dataset.shuffle", found=size, what="buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
            )

    def _generator(self, context: IteratorContext) -> random.Random:
        first, second = self._seeds["seed"], self._seeds["seed2"]
        epoch = context.epoch(self, self._reshuffle)
        if first == 0 and second == 0:
            first = self._entropy
        return random.Random(f"{first} {second} {epoch}")

    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        size = self._static_operand()
        draw = self._generator(context).random
        items = start()
        buffer: list[Any] = []
        for item in items if size == UNKNOWN else itertools.islice(items, size):
            if type(item) is Failure:
                yield item
            else:
                buffer.append(item)
        n = len(buffer)
        for item in items:
            if type(item) is Failure:
                yield item
                continue
            i = int(draw() * n)
            out, buffer[i] = buffer[i], item
            yield out
        while n:
            i = int(draw() * n)
            out = buffer[i]
            n -= 1
            buffer[i] = buffer[n]
            buffer.pop()
            yield out

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


class _OptionsDataset(ReorderingDataset):
    def __init__(self, input_dataset: Any, options: Any) -> None:
        super().__init__(input_dataset)
        self._options = options

    def order(self, context: IteratorContext, start: StartPass) -> Iterator[Any]:
        return start()

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


class _ConcatenateDataset(Dataset):
    def __init__(self, first: Any, second: Any) -> None:
        if not isinstance(second, Dataset):
            raise TypeError(f"Dataset.concatenate takes a dataset, found a {type(second).__name__}")
        super().__init__(common_spec((first, second)), (first, second))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        return itertools.chain.from_iterable(d.flow(context.input(i)) for i, d in enumerate(self._inputs))

    def _cardinality(self) -> int:
        a, b = (d._cardinality() for d in self._inputs)
        return INFINITE if INFINITE in (a, b) else UNKNOWN if UNKNOWN in (a, b) else a + b
