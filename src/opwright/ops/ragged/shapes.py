"""Shapes of ragged tensors: axes inserted and merged, joins, stacks, repetition.

Lives here: functions that move whole rows.  Not here: rows chosen by number (rows.py), slices (slices.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtypes import int64
from .. import array, debugging, dispatch
from .conversions import from_tensor
from .ragged_tensor import RaggedTensor
from .row_partitions import splits_of
from .rows import gather_rows, ranges


def expand_dims(x: RaggedTensor, axis: int) -> Any:
    """Return x with a new dimension of size 1 at an axis."""
    rank = x.shape.rank
    axis = axis + rank + 1 if axis < 0 and rank is not None else axis
    if axis == 0:
        return RaggedTensor.from_row_splits(x, array.stack([array.cast(0, int64), x.nrows()]), validate=False)
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(x, 1, x.nrows(), validate=False)
    values = x.values
    inner = expand_dims(values, axis - 1) if isinstance(values, RaggedTensor) else array.expand_dims(values, axis - 1)
    return x.with_values(inner)


def squeeze(x: RaggedTensor, axes: Sequence[int]) -> Any:
    """Return x without these dimensions, whose rows all have one value.

    raises ValueError without axes or with one that x does not have, InvalidArgumentError for rows of other lengths
    """
    rank = x.shape.rank
    if not axes:
        raise ValueError("squeeze: axis must be specified for ragged tensors")
    if rank is None or any(not -rank <= axis < rank for axis in axes):
        raise ValueError(f"squeeze: axis={list(axes)} out of bounds of rank {rank}")
    result: Any = x
    for axis in sorted({axis % rank for axis in axes}, reverse=True):
        result = _without(result, axis)
    return result


def _without(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return array.squeeze(x, [axis])
    if axis > 1:
        return x.with_values(_without(x.values, axis - 1))
    lengths = x.row_lengths() if axis else array.reshape(x.nrows(), [1])
    debugging.assert_equal(lengths, array.ones_like(lengths), f"squeeze: the given axis ({axis}) is not squeezable")
    return x.values


def concat(parts: Sequence[Any], axis: int) -> Any:
    """Return ragged tensors, and tensors, joined along an axis."""
    rank: Any = next(p.shape.rank for p in parts if isinstance(p, RaggedTensor))
    axis = axis % rank
    parts = _as_ragged(parts, axis)
    if not any(isinstance(p, RaggedTensor) for p in parts):
        return array.concat(list(parts), axis)
    if axis == 0:
        return _concat_rows(parts)
    if axis == 1:
        return _joined_rows(parts)
    inner = concat([p.values for p in parts], axis - 1) if _any_ragged(parts) else None
    if inner is None:
        inner = array.concat([p.values for p in parts], axis - 1)
    return parts[0].with_values(inner)


def _any_ragged(parts: Sequence[Any]) -> bool:
    return any(isinstance(p.values, RaggedTensor) for p in parts)


def _as_ragged(parts: Sequence[Any], axis: int) -> list[Any]:
    """Return all operands with as many partitions as the one with most, at least to reach the axis."""
    most = max(p.ragged_rank for p in parts if isinstance(p, RaggedTensor))
    return [_deeper(p, max(most, min(axis, most))) for p in parts]


def _deeper(x: Any, ragged_rank: int) -> Any:
    """Return x with this number of partitions."""
    if not isinstance(x, RaggedTensor):
        return from_tensor(dispatch.to_tensor(x), None, None, ragged_rank)
    if x.ragged_rank >= ragged_rank:
        return x
    return x.with_values(_deeper(x.values, ragged_rank - 1))


def _concat_rows(parts: Sequence[Any]) -> Any:
    if not isinstance(parts[0], RaggedTensor):
        return array.concat(list(parts), 0)
    lengths = array.concat([p.row_lengths() for p in parts], 0)
    values = _concat_rows([p.values for p in parts])
    return RaggedTensor.from_row_splits(values, splits_of(lengths), validate=False)


def _interleaved(parts: Sequence[Any]) -> Any:
    """Return the first rows of all operands, then the second rows, ..."""
    count, rows = len(parts), parts[0].nrows()
    for p in parts[1:]:
        debugging.assert_equal(p.nrows(), rows, "ragged operands differ in their number of rows")
    order = array.transpose(array.reshape(array.range(rows * count, dtype=int64), array.stack([count, rows])))
    return gather_rows(_concat_rows(parts), array.reshape(order, [-1]))


def _joined_rows(parts: Sequence[Any]) -> Any:
    mixed = _interleaved(parts)
    return RaggedTensor.from_row_splits(mixed.values, mixed.row_splits[:: len(parts)], validate=False)


def stack(parts: Sequence[Any], axis: int) -> Any:
    """Return ragged tensors, and tensors, along a new axis."""
    rank = max(p.shape.rank for p in parts)
    axis = axis + rank + 1 if axis < 0 else axis
    most = max([p.ragged_rank for p in parts if isinstance(p, RaggedTensor)], default=0)
    if not most and rank > 0:
        if axis == 0:
            lengths = array.stack([array.shape(p, int64)[0] for p in parts])
            return RaggedTensor.from_row_splits(array.concat(list(parts), 0), splits_of(lengths), validate=False)
        most = 1
    parts = [_deeper(p, most) for p in parts]
    if axis == 0:
        rows = splits_of(array.stack([p.nrows() for p in parts]))
        return RaggedTensor.from_row_splits(_concat_rows(parts), rows, validate=False)
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(_interleaved(parts), len(parts), parts[0].nrows(), validate=False)
    inner = [p.values for p in parts]
    ragged = any(isinstance(v, RaggedTensor) for v in inner)
    return parts[0].with_values(stack(inner, axis - 1) if ragged else array.stack(inner, axis - 1))


def merge_dims(x: Any, outer: int, inner: int) -> Any:
    """Return x with the dimensions from `outer` to `inner` as one."""
    rank = x.shape.rank
    for axis in (outer, inner):
        if not isinstance(axis, int):
            raise TypeError(f"axis must be an int; got {axis!r}")
        if rank is not None and not -rank <= axis < rank:
            raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    if rank is not None:
        outer, inner = outer % rank, inner % rank
    if outer >= inner:
        raise ValueError(f"Expected outer_axis ({outer}) to be less than inner_axis ({inner})")
    if not isinstance(x, RaggedTensor):
        shape = array.shape(x)
        return array.reshape(x, array.concat([shape[:outer], [-1], shape[inner + 1 :]], 0))
    if outer > 1:
        return x.with_values(merge_dims(x.values, outer - 1, inner - 1))
    splits, values = x.row_splits, x.values
    for _ in range(inner - outer if outer else inner - 1):
        if isinstance(values, RaggedTensor):
            splits, values = array.gather(values.row_splits, splits), values.values
        else:
            shape = array.shape(values, int64)
            splits, values = splits * shape[1], array.reshape(values, array.concat([[-1], shape[2:]], 0))
    return RaggedTensor.from_row_splits(values, splits, validate=False) if outer else values


def tile(x: RaggedTensor, multiples: Any) -> Any:
    """Return x repeated along its axes, multiples[axis] times."""
    repeats = dispatch.to_tensor(multiples)
    numbers = repeats.constant if repeats.constant is not None else getattr(repeats, "_array", None)
    return _tiled(x, array.cast(repeats, int64), None if numbers is None else numbers.tolist())


def _tiled(x: Any, multiples: Any, numbers: list[int] | None) -> Any:
    """Repeat along all axes. numbers: multiples, if they are known."""
    if not isinstance(x, RaggedTensor):
        return array.tile(x, multiples)
    inner = None if numbers is None else [1, *numbers[2:]]
    if inner is None or any(n != 1 for n in inner):
        x = x.with_values(_tiled(x.values, array.concat([array.cast([1], int64), multiples[2:]], 0), inner))
    if numbers is None or numbers[1] != 1:
        lengths, times = x.row_lengths(), multiples[1]
        starts = _each_repeated(x.row_starts(), times)
        values = gather_rows(x.values, ranges(starts, _each_repeated(lengths, times)))
        x = RaggedTensor.from_row_splits(values, x.row_splits * times, validate=False)
    if numbers is None or numbers[0] != 1:
        x = gather_rows(x, array.tile(array.range(x.nrows(), dtype=int64), multiples[:1]))
    return x


def _each_repeated(x: Any, times: Any) -> Any:
    """Return every element of a vector `times` times, one after another."""
    columns = array.broadcast_to(array.expand_dims(x, 1), array.stack([array.shape(x, int64)[0], times]))
    return array.reshape(columns, [-1])
