"""Ragged and sparse tensors as parts of elements: stacked to batches, and split to rows, as arrays.

Lives here: `STACK` and `ROWS`, by the type of a part, `split`, the rows of an element, and datasets whose dense
elements become ragged or sparse.
Not here: other parts and the transformations (batch.py, sources.py), the types (ops/ragged, ops/sparse).

Arrays are in the order of the specs' components: the flat values and the row splits from the outermost to the
innermost; indices, values and dense_shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import DataLossError, InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops.ragged.ragged_tensor import RaggedTensorSpec
from ..ops.sparse.sparse_tensor import SparseTensorSpec
from .dataset import Dataset
from .functions import Failure, IteratorContext
from .structure import ElementStructure, Flat, map_leaves, row

Rows = tuple[int, Callable[[int], Flat]]


def _splits(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _stack_ragged(items: Sequence[Flat]) -> Failure | Flat:
    """Return ragged arrays with one more partition: an element is a row."""
    shapes = sorted({tuple(item[0].shape[1:]) for item in items})
    if len(shapes) > 1:
        what = "Cannot batch ragged tensors whose values differ in their inner shape"
        return Failure(InvalidArgumentError(op="Dataset.batch", what=what, found=shapes))
    depth = len(items[0]) - 1
    outer = _splits([len(item[1]) - 1 if depth else len(item[0]) for item in items])
    inner = []
    for k in range(1, depth + 1):
        lengths = [np.diff(item[k]) for item in items]
        inner.append(_splits(np.concatenate(lengths).tolist()))
    return (np.concatenate([item[0] for item in items]), outer, *inner)


def _ragged_rows(arrays: Flat) -> Rows:
    """Return the number of rows of ragged arrays, and the function that returns one as arrays."""
    values, *splits = arrays
    if not splits:
        return len(values), lambda i: (row(values, i),)

    def get(i: int) -> Flat:
        begin, end = splits[0][i], splits[0][i + 1]
        inner = []
        for each in splits[1:]:
            part = each[begin : end + 1]
            inner.append(part - part[0])
            begin, end = part[0], part[-1]
        return (values[begin:end], *inner)

    return len(splits[0]) - 1, get


def _stack_sparse(items: Sequence[Flat]) -> Failure | Flat:
    """Return sparse arrays of one more dimension; the others are as large as the largest."""
    ranks = sorted({len(item[2]) for item in items})
    if len(ranks) > 1:
        what = "Cannot batch sparse tensors of different ranks"
        return Failure(InvalidArgumentError(op="Dataset.batch", what=what, found=ranks))
    numbers = np.repeat(np.arange(len(items)), [len(item[1]) for item in items])[:, None]
    indices = np.concatenate([numbers, np.concatenate([item[0] for item in items])], 1)
    shape = np.concatenate([[len(items)], np.max([item[2] for item in items], 0)])
    return indices.astype(np.int64), np.concatenate([item[1] for item in items]), shape.astype(np.int64)


def _sparse_rows(arrays: Flat) -> Rows:
    """Return the number of rows of sparse arrays, and the function that returns one as arrays."""
    indices, values, shape = arrays
    order = np.argsort(indices[:, 0], kind="stable")
    ends = np.searchsorted(indices[order, 0], np.arange(shape[0] + 1))

    def get(i: int) -> Flat:
        chosen = order[ends[i] : ends[i + 1]]
        return indices[chosen, 1:], values[chosen], shape[1:]

    return int(shape[0]), get


def _array_rows(array: Any) -> Rows:
    """Return the number of rows of an array, -1 for a scalar, and the function that returns one."""
    return (array.shape[0] if array.ndim else -1), lambda i: (row(array, i),)


STACK: dict[type, Callable[[Sequence[Flat]], Failure | Flat]] = {
    RaggedTensorSpec: _stack_ragged,
    SparseTensorSpec: _stack_sparse,
}
ROWS: dict[type, Callable[[Flat], Rows]] = {RaggedTensorSpec: _ragged_rows, SparseTensorSpec: _sparse_rows}


def has_composites(form: ElementStructure) -> bool:
    """Return whether elements have ragged or sparse parts."""
    return any(type(spec) in STACK for spec, _, _ in form.parts)


def sized_parts(form: ElementStructure) -> list[Any]:
    """Return the specs whose first dimension is that of the element: of ragged and sparse tensors as a whole."""
    return [
        spec
        for leaf, start, stop in form.parts
        for spec in ([leaf] if type(leaf) in STACK else form.components[start:stop])
    ]


def split(form: ElementStructure, item: Flat, op: str) -> Failure | Rows:
    """Return the number of rows of an element and the function that returns one, or why it has none."""
    parts: list[Rows] = []
    for spec, start, stop in form.parts:
        rule = ROWS.get(type(spec))
        if rule is not None:
            parts.append(rule(item[start:stop]))
            continue
        parts += [_array_rows(array) for array in item[start:stop]]
    sizes = {n for n, _ in parts}
    if len(sizes) != 1 or -1 in sizes:
        what = "the components of an element differ in their first dimension"
        return Failure(InvalidArgumentError(op=op, what=what, found=sorted(sizes)))
    return sizes.pop(), lambda i: tuple([array for _, get in parts for array in get(i)])


class _RaggedElementsDataset(Dataset):
    """The elements of a dataset, with dense parts of unknown sizes as ragged tensors, which always stack."""

    def __init__(self, input_dataset: Any) -> None:
        super().__init__(map_leaves(_ragged_spec, input_dataset.element_spec), (input_dataset,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            out: list[Any] = []
            for (before, start, stop), (after, _, _) in zip(self._inputs[0]._form.parts, self._form.parts):
                arrays = item[start:stop]
                out += arrays if type(before) is type(after) else _rows_as_ragged(arrays[0], after.ragged_rank)
            yield tuple(out)

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


def _ragged_spec(spec: Any) -> Any:
    """Return the type of a part that `ragged_batch` stacks: ragged up to the last axis of unknown size."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank in (0, None) or spec.shape.is_fully_defined():
        return spec
    axes = [axis for axis, size in enumerate(spec.shape) if size is None]
    return RaggedTensorSpec(spec.shape, spec.dtype, axes[-1])


def _rows_as_ragged(array: Any, ragged_rank: int) -> Flat:
    splits = []
    for _ in range(ragged_rank):
        count, length = array.shape[:2]
        splits.append(np.arange(count + 1, dtype=np.int64) * length)
        array = array.reshape(count * length, *array.shape[2:])
    return (array, *splits)


class _SparseElementsDataset(Dataset):
    """Dense elements as sparse tensors of all their values. row_shape: sizes, -1 or None for the largest of a batch."""

    def __init__(self, input_dataset: Any, row_shape: Any) -> None:
        spec = input_dataset.element_spec
        sizes = TensorShape(row_shape)
        if not isinstance(spec, TensorSpec) or spec.shape.rank not in (None, sizes.rank):
            raise TypeError(
                f"`sparse_batch` is only supported for datasets of single tensors of the rank of row_shape, {sizes}; "
                f"found {spec!r}"
            )
        self._sizes = sizes.as_list()
        super().__init__(SparseTensorSpec(sizes, spec.dtype), (input_dataset,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            array = item[0]
            shape = [n if size is None else size for n, size in zip(array.shape, self._sizes)]
            if array.ndim != len(self._sizes) or any(n > size for n, size in zip(array.shape, shape)):
                what = "an element is larger than row_shape"
                yield Failure(
                    DataLossError(op="Dataset.sparse_batch", what=what, found=array.shape, wanted=tuple(self._sizes))
                )
                continue
            indices = np.indices(array.shape).reshape(array.ndim, -1).T
            yield indices.astype(np.int64), array.reshape(-1), np.asarray(shape, np.int64)

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())
