"""Ragged tensors from padded ones, and as padded and sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import int64
from .. import array, dispatch, math
from ..sparse.sparse_tensor import SparseTensor
from .ragged_tensor import RaggedTensor
from .row_partitions import row_ids, splits_of
from .rows import range_in_rows, ranges


def from_tensor(tensor: Any, lengths: Any, padding: Any, ragged_rank: int) -> Any:
    """Return the rows of a tensor; see RaggedTensor.from_tensor."""
    tensor = dispatch.to_tensor(tensor)
    if lengths is not None and padding is not None:
        raise ValueError("Specify argument `lengths` or `padding`, but not both.")
    if tensor.shape.rank is not None and not 0 < ragged_rank < max(tensor.shape.rank, 1):
        raise ValueError(f"ragged_rank must be greater than 0 and less than the rank. Found {ragged_rank}")
    if isinstance(lengths, (list, tuple)) and lengths and not isinstance(lengths[0], (int, np.integer)):
        return RaggedTensor.from_nested_row_lengths(_flat_by_nested_lengths(tensor, list(lengths)), lengths)
    shape = array.shape(tensor, int64)
    if ragged_rank > 1:
        if lengths is not None:
            raise ValueError("If lengths are a vector, then ragged_rank must be 1")
        flat = array.reshape(tensor, array.concat([array.reshape(shape[0] * shape[1], [1]), shape[2:]], 0))
        values = from_tensor(flat, None, padding, ragged_rank - 1)
        return RaggedTensor.from_uniform_row_length(values, shape[1], shape[0], validate=False)
    rows = array.reshape(tensor, array.concat([array.reshape(shape[0] * shape[1], [1]), shape[2:]], 0))
    if lengths is None and padding is None:
        return RaggedTensor.from_uniform_row_length(rows, shape[1], shape[0], validate=False)
    if lengths is None:
        pad = dispatch.to_tensor(padding, tensor.dtype)
        other = math.not_equal(tensor, pad)
        rank = tensor.shape.rank
        if rank > 2:
            other = math.reduce_any(other, axis=list(range(2, rank)))
        places = array.where(other, array.range(1, shape[1] + 1, dtype=int64), array.cast(0, int64))
        start = array.zeros([shape[0], 1], int64)
        lengths = math.reduce_max(array.concat([start, places], 1), axis=1)
    lengths = math.minimum(array.cast(lengths, int64), shape[1])
    places = ranges(array.range(shape[0], dtype=int64) * shape[1], lengths)
    return RaggedTensor.from_row_splits(array.gather(rows, places), splits_of(lengths), validate=False)


def _flat_by_nested_lengths(tensor: Any, lengths: list[Any]) -> Any:
    """Return the flat values of nested rows of a tensor, without what is beyond their lengths."""
    outer = from_tensor(tensor, lengths[0], None, 1).values
    return _flat_by_nested_lengths(outer, lengths[1:]) if len(lengths) > 1 else outer


def to_tensor(x: RaggedTensor, default: Any, shape: Any) -> Any:
    """Return the rows padded; see RaggedTensor.to_tensor."""
    sizes = None if shape is None else list(getattr(shape, "dims", None) or shape)
    sizes = None if sizes is None else [None if s in (None, -1) else s for s in sizes]
    if default is None:
        default = b"" if x.dtype is dtypes.string else array.zeros([], x.dtype)
    fill = dispatch.to_tensor(default, x.dtype)
    result = _padded(x, fill, None if sizes is None else sizes[1:])
    if sizes is not None and sizes[0] is not None:
        rows = array.shape(result)
        result = result[: sizes[0]]
        extra = math.maximum(array.cast(sizes[0], dtypes.int32) - rows[0], 0)
        tail = array.broadcast_to(fill, array.concat([array.reshape(extra, [1]), rows[1:]], 0))
        result = array.concat([result, tail], 0)
    static_sizes = [x.shape[0], *[None] * x.ragged_rank, *x.flat_values.shape[1:]]
    if sizes is not None:
        static_sizes = [a if s is None else s for a, s in zip(static_sizes, sizes)]
    return array.ensure_shape(result, static_sizes) if None in result.shape.as_list() and any(static_sizes) else result


def _padded(x: RaggedTensor, fill: Any, sizes: list[Any] | None) -> Any:
    values: Any = x.values
    if isinstance(values, RaggedTensor):
        values = _padded(values, fill, None if sizes is None else sizes[1:])
    count, lengths = array.shape(values, int64)[0], x.row_lengths()
    if sizes is None or sizes[0] is None:
        width = math.reduce_max(array.concat([lengths, array.cast([0], int64)], 0))
    else:
        width = array.cast(sizes[0], int64)
    columns = array.range(width, dtype=int64)
    inside = columns < array.expand_dims(lengths, 1)
    places = array.where(inside, array.expand_dims(x.row_starts(), 1) + columns, count)
    row = array.broadcast_to(fill, array.concat([[1], array.shape(values)[1:]], 0))
    return array.gather(array.concat([values, row], 0), places)  # the row of padding is behind all others


def to_sparse(x: RaggedTensor) -> Any:
    """Return the values with their positions as a SparseTensor."""
    places = [array.range(x.nrows(), dtype=int64)]
    for splits in x.nested_row_splits:
        lengths = splits[1:] - splits[:-1]
        rows = row_ids(splits, splits[-1])
        places = [array.gather(p, rows) for p in places] + [range_in_rows(lengths)]
    values = x.flat_values
    for axis in range(1, values.shape.rank):
        size, count = array.shape(values, int64)[axis], array.shape(places[0], int64)[0]
        places = [array.repeat(p, size) for p in places] + [array.tile(array.range(size, dtype=int64), [count])]
    return SparseTensor(array.stack(places, 1), array.reshape(values, [-1]), x.bounding_shape())
