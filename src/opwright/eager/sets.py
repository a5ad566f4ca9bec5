"""`ow.sets`: sets in the last dimension of sparse and dense tensors.

Lives here: the functions, which run in Python. Not here: distinct values of a vector (`ow.unique`).

A set is a row: the values at one position of all dimensions but the last. Results are sparse, the values of a row in
ascending order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.sparse.sparse_tensor import SparseTensor
from ..ops.tensor import Tensor
from .python_functions import call_on_arrays, check_size

__all__ = ["difference", "intersection", "size", "union"]

Sets = dict[tuple[int, ...], set[Any]]
DTYPES = (*dtypes.signed_integer, dtypes.uint8, dtypes.uint16, dtypes.string)


def _parts(x: Any, op: str) -> list[Tensor]:
    """Return a sparse tensor's indices, values and shape, or a dense tensor. Raises InvalidArgumentError."""
    sparse = isinstance(x, SparseTensor)
    values = x.values if sparse else dispatch.to_tensor(x)
    if values.dtype not in DTYPES:
        raise InvalidArgumentError(
            op=op, what="sets are of integers or strings", found=values.dtype.name, wanted=[d.name for d in DTYPES]
        )
    if not sparse and values.shape.rank is not None and values.shape.rank < 2:
        raise InvalidArgumentError(op=op, what="sets have rank 2 or more", found=f"shape {values.shape}")
    return [x.indices, x.values, x.dense_shape] if sparse else [values]


def _sets(arrays: tuple[Any, ...], validate: bool, op: str) -> tuple[Sets, list[int]]:
    """Return the sets by their position, and the shape of all positions."""
    sets: Sets = {}
    if len(arrays) == 1:
        shape = list(arrays[0].shape[:-1])
        return {p: set(arrays[0][p].tolist()) for p in np.ndindex(*shape)}, shape
    indices, values, dense_shape = arrays
    if validate and len(indices) > 1:
        step = np.diff(indices, axis=0)
        first = np.take_along_axis(step, (step != 0).argmax(1)[:, None], 1)
        if (first <= 0).any():
            raise InvalidArgumentError(op=op, what="the indices are out of order or repeated", do="ow.sparse.reorder")
    if len(indices) and ((indices < 0).any() or (indices >= dense_shape).any()):
        raise InvalidArgumentError(op=op, what="Index out of range", found=dense_shape.tolist())
    for position, value in zip(map(tuple, indices[:, :-1].tolist()), values.tolist()):
        sets.setdefault(position, set()).add(value)
    return sets, dense_shape[:-1].tolist()


def _combined(
    a: Any, b: Any, validate: bool, op: str, combine: Callable[[set[Any], set[Any]], set[Any]]
) -> SparseTensor:
    first, second = _parts(a, op), _parts(b, op)
    dtype, rank = first[-1 if len(first) == 1 else 1].dtype, a.shape.rank if isinstance(a, SparseTensor) else None
    other = second[-1 if len(second) == 1 else 1].dtype
    if dtype is not other:
        raise InvalidArgumentError(op=op, what="the dtypes of the sets differ", found=(dtype.name, other.name))
    rank = first[0].shape.rank if len(first) == 1 else rank

    def run(*arrays: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sets, shape = _sets(arrays[: len(first)], validate, op)
        others, other_shape = _sets(arrays[len(first) :], validate, op)
        if shape != other_shape:
            raise InvalidArgumentError(op=op, what="all sizes but the last have to agree", found=(shape, other_shape))
        empty: set[Any] = set()
        rows = {p: sorted(combine(sets.get(p, empty), others.get(p, empty))) for p in sorted({*sets, *others})}
        indices = [(*p, i) for p, row in rows.items() for i in range(len(row))]
        values = np.empty(len(indices), dtype.np)
        values[:] = [v for row in rows.values() for v in row]
        longest = max(map(len, rows.values()), default=0)
        places = np.array(indices, np.int64).reshape(len(indices), len(shape) + 1)
        return places, values, np.array([*shape, longest], np.int64)

    specs = [TensorSpec([None, rank], dtypes.int64), TensorSpec([None], dtype), TensorSpec([rank], dtypes.int64)]
    return SparseTensor.of(*call_on_arrays(run, [*first, *second], specs))


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Return the values that are in both of two sets, row by row.

    a, b: sparse or dense tensors of integers or strings, whose sizes agree in all dimensions but the last.
    validate_indices: whether indices must be in row-major order.
    raises InvalidArgumentError for others, other dtypes and sizes

    >>> ow.sparse.to_dense(ow.sets.intersection([[1, 2, 3]], [[3, 1, 5]])).numpy().tolist()
    [[1, 3]]
    """
    return _combined(a, b, validate_indices, "sets.intersection", set.intersection)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Return the values that are in one of two sets, row by row. Arguments: see `intersection`."""
    return _combined(a, b, validate_indices, "sets.union", set.union)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """Return the values of a set that are not in the other, row by row. aminusb: whether of a; else of b.

    Other arguments: see `intersection`.
    """

    def combine(x: set[Any], y: set[Any]) -> set[Any]:
        return x - y if aminusb else y - x

    return _combined(a, b, validate_indices, "sets.difference", combine)


def size(a: SparseTensor, validate_indices: bool = True) -> Tensor:
    """Return the number of distinct values of each row of a SparseTensor: int32, without its last dimension."""
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a!r}.")

    def run(*arrays: Any) -> np.ndarray:
        sets, shape = _sets(arrays, validate_indices, "sets.size")
        check_size(4 * math.prod(shape), "sets.size")
        counts = np.zeros(shape, np.int32)
        for position, values in sets.items():
            counts[position] = len(values)
        return counts

    result: Tensor = call_on_arrays(run, _parts(a, "sets.size"), TensorSpec(a.shape[:-1], dtypes.int32))
    return result
