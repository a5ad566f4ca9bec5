"""Transformations between elements and batches: batch, unbatch, rebatch.

Lives here: the classes, and stacking.  Not here: padded batches (padded_batch.py), windows (windows.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.lod_tensor import LoDTensorSpec
from ..tracing.symbolic import SymbolicTensor
from .base import UNKNOWN, Rows, int_operand, static_int
from .context import IteratorContext
from .dataset import Dataset
from .functions import Failure
from .sources import row_spec
from .structure import ElementStructure, Flat, map_leaves, operand, row


def batched_spec(spec: Any, size: int | None) -> Any:
    """Return the type of stacked elements. Raises TypeError if they cannot be stacked."""
    if isinstance(spec, TensorSpec) and not spec.dtype.is_handle:
        dims = spec.shape.dims
        return TensorSpec(None if dims is None else (size, *dims), spec.dtype)
    batch = getattr(spec, "_batch", None)
    if batch is None:
        do = ""
        if isinstance(spec, LoDTensorSpec):
            do = ". A LoDTensor is a batch already; to batch sequences, use padded_batch and ow.sequence.unpad"
        raise TypeError(
            f"`batch` of elements of type {spec!r} is not supported: they cannot be stacked to a tensor{do}"
        )
    return batch(size)


def stack_elements(items: Sequence[Flat], form: ElementStructure) -> Failure | tuple[Any, ...]:
    """Stack flat elements to one, or return the Failure that explains why they cannot be stacked."""
    columns: list[Any] = []
    n = len(items)
    for k, spec in enumerate(form.components):
        first = items[0][k]
        shape = first.shape
        out = np.empty((n, *shape), spec.dtype.np)
        for i, item in enumerate(items):
            array = item[k]
            if array.shape != shape:
                what = (
                    f"Cannot batch tensors with different shapes in component {k}. First element had shape "
                    f"{list(shape)} and element {i} had shape {list(array.shape)}. Cannot add tensor to the batch: "
                    f"number of elements does not match. Shapes are: [tensor]: {list(array.shape)}, [batch]: "
                    f"{list(shape)}"
                )
                return Failure(InvalidArgumentError(op="Dataset.batch", what=what, do="padded_batch"))
            out[i] = array
        columns.append(out)
    return tuple(columns)


class _BatchDataset(Dataset):
    def __init__(self, input_dataset: Any, batch_size: Any, drop_remainder: Any) -> None:
        size = int_operand(batch_size, "batch_size")
        self._drop = static_bool(drop_remainder)
        static_size = static_int(size) if self._drop else None
        spec = map_leaves(lambda s: batched_spec(s, static_size), input_dataset.element_spec)
        super().__init__(spec, (input_dataset,), (size,))
        self.begin()

    def begin(self) -> None:
        check_batch_size(self._operands[0], "batch")

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        size, source = int(self._operands[0]), self._inputs[0]
        rows = source.rows(context.input())
        if rows is not None:
            return _batch_rows(rows, size, self._drop)
        return _batch_elements(source.flow(context.input()), size, self._drop, source._form)

    def _cardinality(self) -> int:
        return batch_count(self, self._operands[0], self._drop)


def batch_count(dataset: Any, size: Any, drop: bool) -> int:
    """Return the number of batches of `size` in the input of `dataset`."""
    n = int(dataset._inputs[0]._cardinality())
    if n < 0:
        return n
    if not dataset._is_known():
        return UNKNOWN
    return n // int(size) if drop else -(-n // int(size))


def static_bool(value: Any) -> bool:
    """Return a truth value that may be a constant tensor."""
    constant = getattr(value, "constant", value)
    if constant is None and value is not None:
        raise ValueError(f"drop_remainder must be known while tracing; found {value!r}")
    return bool(constant)


def check_batch_size(size: Any, name: str) -> None:
    """Raise InvalidArgumentError for a batch size below 1."""
    if type(size) is not SymbolicTensor and size < 1:
        raise InvalidArgumentError(op=f"Dataset.{name}", what="Batch size must be greater than zero.", found=size)


def _batch_rows(rows: Rows, size: int, drop: bool) -> Iterator[Any]:
    """Yield batches of rows of arrays: a slice for consecutive rows, else one indexing operation."""
    arrays, order = rows
    numbers = order()
    while True:
        chosen = list(itertools.islice(numbers, size))
        n = len(chosen)
        if n < size and (drop or n == 0):
            return
        first = chosen[0]
        if chosen[-1] - first == n - 1 and chosen == list(range(first, first + n)):
            yield tuple([a[first : first + n] for a in arrays])
        else:
            yield tuple([a.take(chosen, 0) for a in arrays])


def _batch_elements(items: Iterator[Any], size: int, drop: bool, form: ElementStructure) -> Iterator[Any]:
    buffer: list[Flat] = []
    for item in items:
        if type(item) is Failure:
            buffer = []
            yield item
            continue
        buffer.append(item)
        if len(buffer) == size:
            yield stack_elements(buffer, form)
            buffer = []
    if buffer and not drop:
        yield stack_elements(buffer, form)


class _UnbatchDataset(Dataset):
    def __init__(self, input_dataset: Any) -> None:
        spec = input_dataset.element_spec
        size: int | None = None
        for component in input_dataset._form.components:
            if component.shape.rank == 0:
                raise ValueError("Cannot unbatch an input with scalar components.")
            if component.shape.rank and component.shape[0] is not None:
                if size is not None and size != component.shape[0]:
                    raise ValueError(
                        "`unbatch()` is only supported for datasets of elements whose components have a matching "
                        f"leading dimension. Encountered both {size} and {component.shape[0]}."
                    )
                size = component.shape[0]
        self._size = size
        super().__init__(map_leaves(row_spec, spec), (input_dataset,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            sizes = {a.shape[0] if a.ndim else -1 for a in item}
            if len(sizes) > 1 or -1 in sizes:
                what = f"Dataset.unbatch: the components of an element differ in their first dimension: {sizes}"
                yield Failure(InvalidArgumentError(op="Dataset.unbatch", what=what))
                continue
            for i in range(sizes.pop()):
                yield tuple([row(a, i) for a in item])

    def _cardinality(self) -> int:
        n = int(self._inputs[0]._cardinality())
        return UNKNOWN if self._size is None and n != 0 else n if n < 0 else n * (self._size or 0)


class _RebatchDataset(Dataset):
    """Batches of other sizes, used in turn."""

    def __init__(self, input_dataset: Any, batch_size: Any, drop_remainder: Any) -> None:
        sizes = operand(dispatch.to_tensor(batch_size))
        self._drop = static_bool(drop_remainder)
        static_size = None
        if type(sizes) is not SymbolicTensor:
            sizes = np.asarray(sizes, np.int64).reshape(-1)
            if sizes.size == 0 or (sizes < 1).any():
                raise InvalidArgumentError(
                    op="Dataset.rebatch", found=sizes.tolist(), what="batch sizes must be greater than zero"
                )
            n = int(input_dataset._cardinality())
            total = input_dataset._form.components[0].shape
            even = n >= 0 and total.rank and total[0] is not None and n * total[0] % int(sizes.sum()) == 0
            if (self._drop or even) and len(set(sizes.tolist())) == 1:
                static_size = int(sizes[0])

        def rebatched_spec(spec: Any) -> TensorSpec:
            if not isinstance(spec, TensorSpec) or spec.shape.rank == 0:
                raise ValueError(
                    "Invalid `batch_sizes`. Expected dataset with rank of >= 1 but found a dataset with "
                    "scalar elements. Fix the issue by adding the `batch` transformation to the dataset."
                )
            return TensorSpec(None if spec.shape.rank is None else (static_size, *spec.shape[1:]), spec.dtype)

        super().__init__(map_leaves(rebatched_spec, input_dataset.element_spec), (input_dataset,), (sizes,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        sizes = itertools.cycle(np.asarray(self._operands[0]).reshape(-1).tolist())
        parts: list[Flat] = []
        buffered, target = 0, next(sizes)
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            offset, n = 0, len(item[0])
            while n - offset + buffered >= target:
                end = offset + target - buffered
                parts.append(tuple([a[offset:end] for a in item]))
                yield _concatenated(parts)
                parts, buffered, offset, target = [], 0, end, next(sizes)
            if offset < n:
                parts.append(tuple([a[offset:] for a in item]))
                buffered += n - offset
        if parts and not self._drop:
            yield _concatenated(parts)


def _concatenated(parts: Sequence[Flat]) -> Flat:
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts))
