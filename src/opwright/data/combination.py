"""Transformations of several datasets, and of datasets of datasets.

Lives here: zip, interleave, flat_map, choosing among datasets, rejection resampling.
Not here: window and group_by_window (windows.py), concatenation (order.py), datasets as values of a graph (dataset.py).

Resampling keeps an element of class c with probability a_c = (t_c / p_c) / max_k (t_k / p_k), for the target
distribution t and the class frequencies p: rejection sampling (von Neumann 1951) with the elements as proposals.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograph.api import convert_if_enabled
from ..core import flags
from ..core.dtypes import int64
from ..core.errors import InvalidArgumentError
from ..core.processors import usable_processors
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.random.state import seeds_for
from ..tracing.symbolic import SymbolicTensor
from .base import INFINITE, UNKNOWN, DatasetSpec, int_operand
from .buffers import num_threads, prefetch_items
from .dataset import Dataset
from .functions import ElementFunction, Failure, IteratorContext, RandomPasses
from .structure import common_spec, flatten, map_leaves, operand

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class _ZipDataset(Dataset):
    def __init__(self, datasets: Any) -> None:
        super().__init__(map_leaves(lambda d: d.element_spec, datasets), flatten(datasets))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        flows = [d.flow(context.input(i)) for i, d in enumerate(self._inputs)]
        for items in zip(*flows):
            failed = [item for item in items if type(item) is Failure]
            yield failed[0] if failed else tuple(itertools.chain.from_iterable(items))

    def _cardinality(self) -> int:
        counts = [d._cardinality() for d in self._inputs]
        finite = [n for n in counts if n != INFINITE]
        return INFINITE if not finite else UNKNOWN if UNKNOWN in finite else min(finite)


def dataset_function(function: Any, spec: Any, transformation: str, argument: str) -> ElementFunction:
    """Trace a function from elements to datasets. Raises TypeError if it returns another type."""
    traced = ElementFunction(function, spec, transformation, argument)
    if not isinstance(traced.form.spec, DatasetSpec):
        raise TypeError(
            f"The `{argument}` argument must return a `Dataset` object. {traced.name} returns {traced.form.spec!r}."
        )
    return traced


class _FlatMapDataset(Dataset):
    def __init__(self, input_dataset: Any, map_func: Any) -> None:
        traced = dataset_function(map_func, input_dataset.element_spec, "flat_map", "map_func")
        super().__init__(traced.form.spec.element_spec, (input_dataset,), functions=(traced,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        call = self._functions[0].caller(context)
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            try:
                (handle,) = call(*item)
                flow = handle.dataset.flow(context.input("computed"))
            except Exception as error:
                yield Failure(error)
                continue
            yield from flow


class _InterleaveDataset(Dataset):
    """Interleaving of `cycle_length` open datasets, `block_length` elements of each in turn."""

    def __init__(
        self, input_dataset: Any, map_func: Any, cycle_length: Any, block_length: Any, num_parallel_calls: Any = None
    ) -> None:
        traced = dataset_function(map_func, input_dataset.element_spec, "interleave", "map_func")
        self._prefetches = num_threads(num_parallel_calls) > 1
        if cycle_length is None:
            cycle_length = num_parallel_calls if type(num_parallel_calls) is int else -1
        cycle = int_operand(cycle_length, "cycle_length")
        block = int_operand(1 if block_length is None else block_length, "block_length")
        super().__init__(traced.form.spec.element_spec, (input_dataset,), (cycle, block), (traced,))
        self.begin()

    def begin(self) -> None:
        cycle, block = self._operands
        if type(cycle) is not SymbolicTensor and cycle < 1 and cycle != -1:
            raise InvalidArgumentError(op="Dataset.interleave", what="`cycle_length` must be > 0", found=cycle)
        if type(block) is not SymbolicTensor and block < 1:
            raise InvalidArgumentError(op="Dataset.interleave", what="`block_length` must be > 0", found=block)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        call, items = self._functions[0].caller(context), self._inputs[0].flow(context.input())
        cycle, block = map(int, self._operands)
        ahead = self._prefetches and not flags.deterministic  # threads would race for one random sequence
        cycle = usable_processors() if cycle == -1 else cycle
        slots: list[Iterator[Any] | None] = [None] * cycle
        slot = block_count = opened = 0
        more = True
        end: Any = object()
        while more or opened:
            source = slots[slot]
            if source is not None:
                item = next(source, end)
                if item is not end:
                    block_count += 1
                    if block_count == block:
                        slot, block_count = (slot + 1) % cycle, 0
                    yield item
                    continue
                slots[slot] = None
                opened -= 1
            elif more:
                item = next(items, end)
                if item is end:
                    more = False
                elif type(item) is Failure:
                    yield item
                else:
                    try:
                        (handle,) = call(*item)
                        flow = functools.partial(handle.dataset.flow, context.input("computed"))
                        slots[slot] = prefetch_items(flow, 2) if ahead else flow()
                        opened += 1
                    except Exception as error:
                        yield Failure(error)
                continue
            slot, block_count = (slot + 1) % cycle, 0


class _DirectedInterleaveDataset(Dataset):
    """Elements of the datasets selected by the first input."""

    def __init__(self, choices: Any, datasets: Sequence[Any], stop_on_empty: bool) -> None:
        spec = common_spec(datasets)
        super().__init__(spec, (choices, *datasets))
        self._stop = stop_on_empty

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        flows: list[Any] = [d.flow(context.input(i)) for i, d in enumerate(self._inputs[1:], 1)]
        left, end = len(flows), object()
        for choice in self._inputs[0].flow(context.input()):
            if type(choice) is Failure:
                yield choice
                continue
            k = int(choice[0])
            if not 0 <= k < len(flows):
                what = f"the choice is out of range: {k}"
                yield Failure(
                    InvalidArgumentError(op="Dataset.choose_from_datasets", what=what, wanted=f"0 to {len(flows) - 1}")
                )
                continue
            if flows[k] is None:
                continue
            item = next(flows[k], end)
            if item is end:
                if self._stop:
                    return
                flows[k] = None
                left -= 1
                if not left:
                    return
                continue
            yield item

    def _cardinality(self) -> int:
        return UNKNOWN


class _SampleDataset(RandomPasses, Dataset):
    """Dataset indices drawn by weights."""

    def __init__(self, weights: Any, seed: Any, rerandomize: bool | None) -> None:
        super().__init__(TensorSpec((), "int64"), (weights,) if isinstance(weights, Dataset) else ())
        self._weights = None if isinstance(weights, Dataset) else np.asarray(weights, np.float64)
        self._seeds, self._rerandomize = seeds_for(seed), bool(rerandomize)
        self.begin()

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        seeds = self._seeds
        epoch = context.epoch(self, self._rerandomize)
        source = seeds if any(seeds.values()) else self._entropy if context.random_access else None
        draw = random.Random(None if source is None else f"{source} {epoch}").random
        changing = self._inputs[0].flow(context.input()) if self._inputs else None
        weights = self._weights
        bounds: Any = None
        while True:
            if changing is not None:
                item = next(changing, None)
                if item is None:
                    return
                if type(item) is Failure:
                    yield item
                    continue
                weights, bounds = np.asarray(item[0], np.float64), None
            if bounds is None:
                assert weights is not None
                bounds = np.cumsum(weights) / weights.sum()
            yield (np.array(min(int(np.searchsorted(bounds, draw(), "right")), len(bounds) - 1)),)

    def _cardinality(self) -> int:
        return INFINITE


class _ResampleDataset(Dataset):
    def __init__(self, input_dataset: Any, class_func: Any, target_dist: Any, initial_dist: Any, seed: Any) -> None:
        traced = ElementFunction(class_func, input_dataset.element_spec, "rejection_resample", "class_func")
        class_spec = traced.form.spec
        if not isinstance(class_spec, TensorSpec) or class_spec.dtype.name not in ("int32", "int64"):
            raise TypeError(f"{traced.name} must return the class as an integer scalar, found {class_spec!r}")
        operands = [operand(dispatch.to_tensor(d)) for d in (target_dist, initial_dist) if d is not None]
        super().__init__((class_spec, input_dataset.element_spec), (input_dataset,), operands, (traced,))
        self._seeds = seeds_for(seed)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        target = np.asarray(self._operands[0], np.float64)
        counts = np.ones_like(target)
        fixed = np.asarray(self._operands[1], np.float64) if len(self._operands) > 1 else None
        class_of = self._functions[0].caller(context)
        draw = random.Random(str(self._seeds) if any(self._seeds.values()) else None).random
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            try:
                (label,) = class_of(*item)
                c = int(label)
                if not 0 <= c < len(target):
                    raise InvalidArgumentError(
                        op="Dataset.rejection_resample",
                        what=f"class {c} is out of range",
                        wanted=f"0 to {len(target) - 1}",
                    )
            except Exception as error:
                yield Failure(error)
                continue
            counts[c] += fixed is None
            frequency = counts / counts.sum() if fixed is None else fixed
            ratios = target / np.maximum(frequency, np.finfo(np.float64).tiny)
            if draw() * ratios.max() <= ratios[c] and ratios[c] > 0:
                yield (label, *item)


def int64_key(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a key function so that Python numbers become int64."""

    @functools.wraps(function)
    def key(*args: Any) -> Tensor:
        result = convert_if_enabled(function)(*args)
        return dispatch.to_tensor(result, int64) if isinstance(result, int) else result

    return key
