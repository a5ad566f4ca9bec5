"""Indexing of ragged tensors by integers, slices and new axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import int64
from ...core.errors import InvalidArgumentError
from .. import array, math
from ..tensor import TensorLike
from .ragged_tensor import RaggedTensor
from .row_partitions import splits_of
from .rows import gather_rows, ranges
from .shapes import expand_dims


def getitem(x: Any, key: Any) -> Any:
    """Return rows and parts of rows, as `x[key]`. Raises ValueError for a position in rows of different lengths."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [k for k in keys if not isinstance(k, (TensorLike, np.ndarray))]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (x.shape.rank - (len(keys) - 1))
    return _sliced(x, keys)


def _sliced(x: Any, keys: list[Any]) -> Any:
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return x[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is None:
        return expand_dims(_sliced(x, rest), 0)
    if not isinstance(first, slice):
        return _sliced(row(x, first), rest)
    rows = x if first == slice(None) else gather_rows(x, _chosen(first, x.nrows()))
    return _sliced_inside(rows, rest)


def row(x: RaggedTensor, i: Any) -> Any:
    splits = x.row_splits
    rows = x.shape[0]
    if isinstance(i, (int, np.integer)):
        if rows is not None and not -rows <= i < rows:
            raise InvalidArgumentError(op="RaggedTensor", what=f"index {i} out of range for {rows} rows")
        if i < 0:
            i = x.nrows() + int(i)
    i = array.cast(i, int64)
    return _between(x.values, array.gather(splits, i), array.gather(splits, i + 1))


def _between(values: Any, start: Any, end: Any) -> Any:
    """Return the rows from `start` to `end`."""
    if not isinstance(values, RaggedTensor):
        return values[start:end]
    splits = values.row_splits[start : end + 1]
    inner = _between(values.values, splits[0], splits[-1])
    return RaggedTensor.from_row_splits(inner, splits - splits[0], validate=False)


def _chosen(part: slice, count: Any) -> Any:
    """Return the positions of a slice of `count` rows."""
    start, length, step = _bounds(part, count)
    return start + array.range(length, dtype=int64) * step


def _bounds(part: slice, count: Any) -> tuple[Any, Any, int]:
    """Return where a slice of `count` elements begins, how many it has, and its step, as Python's; of each row."""
    step = 1 if part.step is None else int(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low: Any = array.cast(0 if step > 0 else -1, int64)
    high = count if step > 0 else count - 1

    def end(value: Any, default: Any) -> Any:
        if value is None:
            return default + array.zeros_like(count)
        place = array.cast(value, int64)
        return math.minimum(math.maximum(array.where(place < 0, place + count, place), low), high)

    start, stop = (
        (end(part.start, low), end(part.stop, high)) if step > 0 else (end(part.start, high), end(part.stop, low))
    )
    span = stop - start if step > 0 else start - stop
    size = abs(step)
    return start, math.maximum(math.floordiv(span + (size - 1), array.cast(size, int64)), array.zeros_like(count)), step


def _sliced_inside(x: RaggedTensor, keys: list[Any]) -> Any:
    """Return parts of each row."""
    if not keys:
        return x
    first, rest = keys[0], keys[1:]
    if first is None:
        return expand_dims(_sliced_inside(x, rest), 1)
    if not isinstance(first, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    if first != slice(None):
        start, length, step = _bounds(first, x.row_lengths())
        values = gather_rows(x.values, ranges(x.row_starts() + start, length, step))
        x = RaggedTensor.from_row_splits(values, splits_of(length), validate=False)
    if not rest:
        return x
    values = x.values
    inside = _sliced_inside(values, rest) if isinstance(values, RaggedTensor) else values[(slice(None), *rest)]
    return x.with_values(inside)
