"""Operators on ragged tensors: element by element, reductions, rows chosen, joined and padded.

Lives here: calls of the catalogue's operators with ragged operands (`call`), slices, conversions.
Not here: the type (ragged_tensor.py), public functions (functions.py), construction from lists (constructors.py).

A call maps the flat values where the operator works element by element; what else is supported has a row in `CALLS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError, UnimplementedError
from .. import array, debugging, dispatch, math
from ..sparse.sparse_tensor import SparseTensor
from ..tensor import TensorLike
from .ragged_tensor import RaggedTensor, row_ids, splits_of

int64 = dtypes.int64

# ---- positions -------------------------------------------------------------------------------------------------------


def ranges(starts: Any, lengths: Any, step: int = 1) -> Any:
    """Return start, start + step, ... of each row, `lengths` of them, one row after another: int64."""
    splits = splits_of(lengths)
    total = splits[-1]
    rows = row_ids(splits, total)
    return array.gather(starts - splits[:-1] * step, rows) + array.range(total, dtype=int64) * step


def range_in_rows(lengths: Any) -> Any:
    """Return the position of each value in its row."""
    return ranges(array.zeros_like(lengths), lengths)


def gather_rows(x: Any, rows: Any) -> Any:
    """Return the rows of a tensor or ragged tensor at positions int64 [n]."""
    if not isinstance(x, RaggedTensor):
        return array.gather(x, rows)
    starts, lengths = array.gather(x.row_starts(), rows), array.gather(x.row_lengths(), rows)
    values = gather_rows(x.values, ranges(starts, lengths))
    return RaggedTensor.from_row_splits(values, splits_of(lengths), validate=False)


# ---- element by element ----------------------------------------------------------------------------------------------

UNARY = frozenset(
    {
        *("Cast", "AsString", "StringToNumber", "StringLower", "StringUpper", "StringStrip", "StringLength", "Substr"),
        *("RegexReplace", "RegexFullMatch", "UnicodeTranscode", "UnicodeScript", "ClipByValue"),
        *("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringJoin", "Select"),
        *("ZerosLike", "OnesLike", "StopGradient"),
    }
)
"""Operators that work on single elements, besides others that declare it (`Operator.elementwise`)."""


def _elementwise(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    ragged = [x for group in inputs for x in _group(group) if isinstance(x, RaggedTensor)]
    first = max(ragged, key=lambda x: x.ragged_rank)

    def flat(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return tuple(map(flat, x))
        if isinstance(x, RaggedTensor):
            return _matching(x, first, op.name)
        return x if x is None or _is_flat(x, first) else _broadcast(x, first, op.name)

    return first.with_flat_values(dispatch.call(op, [flat(x) for x in inputs], bound, name))


def _group(x: Any) -> Sequence[Any]:
    return x if isinstance(x, (tuple, list)) else (x,)


def _is_flat(x: Any, like: RaggedTensor) -> bool:
    """Return whether a tensor broadcasts against the flat values as it is."""
    rank, inner = x.shape.rank, like.flat_values.shape.rank
    return bool((rank is not None and inner is not None and rank < inner) or rank == 0)


def _matching(x: RaggedTensor, like: RaggedTensor, name: str) -> Any:
    """Return the flat values of a tensor with the same partitions. Raises InvalidArgumentError for others."""
    if x is like:
        return x.flat_values
    if x.ragged_rank != like.ragged_rank:
        inner = RaggedTensor.of(like.flat_values, like.nested_row_splits[-x.ragged_rank :])
        return _matching(x, inner, name)
    for mine, other in zip(x.nested_row_splits, like.nested_row_splits):
        if mine is not other:
            if mine.shape.is_fully_defined() and other.shape.is_fully_defined() and mine.shape != other.shape:
                raise InvalidArgumentError(
                    op=name,
                    what="the rows of ragged operands do not match",
                    found=f"{mine.shape[0] - 1} and {other.shape[0] - 1} rows",
                )
            debugging.assert_equal(mine, other, f"{name}: the rows of ragged operands differ in length")
    return x.flat_values


def _broadcast(x: Any, like: RaggedTensor, name: str) -> Any:
    """Return a tensor [rows, 1, ...] or [rows, n, ...] as values of the rows of `like`."""
    rank = x.shape.rank
    if like.ragged_rank == 1 and rank is not None and rank >= 2:
        if x.shape[1] == 1:
            return array.gather(array.squeeze(x, [1]), _row_or_first(x, like))
        lengths = array.fill([like.nrows()], array.shape(x, int64)[1])
        debugging.assert_equal(like.row_lengths(), lengths, f"{name}: rows and the tensor's rows differ in length")
        return array.reshape(x, array.concat([[-1], array.shape(x)[2:]], 0))
    raise UnimplementedError(
        op=name,
        what="a tensor does not broadcast to a ragged one",
        found=f"{x.spec.short()} to shape {like.shape}",
        wanted="a scalar, or one value or row of values for each row",
        do="RaggedTensor.from_tensor, to_tensor()",
    )


def _row_or_first(x: Any, like: RaggedTensor) -> Any:
    rows = like.value_rowids()
    return array.zeros_like(rows) if x.shape[0] == 1 else rows


# ---- reductions ------------------------------------------------------------------------------------------------------

SEGMENTS: dict[str, Callable[..., Any]] = {
    "Sum": lambda *a: math.unsorted_segment_sum(*a),
    "Prod": lambda *a: math.unsorted_segment_prod(*a),
    "Max": lambda *a: math.unsorted_segment_max(*a),
    "Min": lambda *a: math.unsorted_segment_min(*a),
    "All": lambda x, *a: array.cast(math.unsorted_segment_min(array.cast(x, dtypes.int32), *a), dtypes.bool),
    "Any": lambda x, *a: math.unsorted_segment_max(array.cast(x, dtypes.int32), *a) > 0,
}
"""For each reduction the one of segments."""


def _reduction(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    x, axis, keepdims = inputs[0], bound.axis, bound.keepdims
    if axis is None:
        result = op(x.flat_values, axis=None, name=name)
        if keepdims:
            result = array.reshape(result, [1] * (x.shape.rank or 0))
        return result
    rank = x.shape.rank
    axes = sorted({a % rank if rank is not None else a for a in axis}, reverse=True)
    if op.name == "Mean":
        ones = x.with_flat_values(array.ones_like(x.flat_values))
        total, count = x, ones
        for a in axes:
            total, count = _reduced("Sum", total, a, keepdims), _reduced("Sum", count, a, keepdims)
        return total / count
    result = x
    for a in axes:
        result = _reduced(op.name, result, a, keepdims)
    return result


def _reduced(kind: str, x: Any, axis: int, keepdims: bool) -> Any:
    """Return x reduced along one axis."""
    if not isinstance(x, RaggedTensor):
        plain: dict[str, Any] = {
            "Sum": math.reduce_sum,
            "Prod": math.reduce_prod,
            "Max": math.reduce_max,
            "Min": math.reduce_min,
            "All": math.reduce_all,
            "Any": math.reduce_any,
        }
        return plain[kind](x, axis=axis, keepdims=keepdims)
    if axis > 1:
        return x.with_values(_reduced(kind, x.values, axis - 1, keepdims))
    if axis == 1 and not isinstance(x.values, RaggedTensor):
        result = SEGMENTS[kind](x.values, x.value_rowids(), x.nrows())
        return array.expand_dims(result, 1) if keepdims else result
    columns = range_in_rows(x.row_lengths()) if axis == 0 else None
    if axis == 0 and not isinstance(x.values, RaggedTensor):
        width = math.reduce_max(array.concat([x.row_lengths(), array.cast([0], int64)], 0))
        result = SEGMENTS[kind](x.values, columns, width)
        return array.expand_dims(result, 0) if keepdims else result
    raise UnimplementedError(
        op=kind,
        what=f"axis {axis} of a ragged tensor with {x.ragged_rank} partitions has rows inside",
        wanted="the innermost ragged axis, or one inside of it",
        do="to_tensor()",
    )


# ---- shapes ----------------------------------------------------------------------------------------------------------


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


# ---- conversions -----------------------------------------------------------------------------------------------------


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


# ---- slices ----------------------------------------------------------------------------------------------------------


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
        return _sliced(_row(x, first), rest)
    rows = x if first == slice(None) else gather_rows(x, _chosen(first, x.nrows()))
    return _sliced_inside(rows, rest)


def _row(x: RaggedTensor, i: Any) -> Any:
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


# ---- calls -----------------------------------------------------------------------------------------------------------


def _gather(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    params, indices = inputs
    if bound.batch_dims or bound.axis % (params.shape.rank or 1):
        raise UnimplementedError(
            op="Gather", what="ragged operands are gathered by rows", wanted="axis=0, batch_dims=0"
        )
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(_gather_rows_of(params, indices.flat_values))
    return _gather_rows_of(params, indices)


def _gather_rows_of(params: Any, indices: Any) -> Any:
    if not isinstance(params, RaggedTensor):
        return array.gather(params, indices)
    rank = indices.shape.rank
    if rank == 0:
        return _row(params, indices)
    if rank == 1:
        return gather_rows(params, array.cast(indices, int64))
    shape = array.shape(indices)
    flat = _gather_rows_of(params, array.reshape(indices, array.concat([[-1], shape[2:]], 0)))
    return RaggedTensor.from_uniform_row_length(flat, shape[1], shape[0], validate=False)


def _of_first(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Map the first operand; the others are no elements."""
    x = inputs[0]
    return x.with_flat_values(dispatch.call(op, [x.flat_values, *inputs[1:]], bound, name))


def _where(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Return the positions of true values."""
    x = inputs[0]
    return array.boolean_mask(to_sparse(x).indices, array.reshape(x.flat_values, [-1]))


def select_rows(condition: Any, x: Any, y: Any) -> Any:
    """Return rows of x where a vector is true and rows of y elsewhere, of tensors and ragged tensors."""
    parts = [p if isinstance(p, RaggedTensor) else dispatch.to_tensor(p) for p in (x, y)]
    numbers = array.range(array.shape(condition, int64)[0], dtype=int64)
    rows = array.where(condition, numbers, numbers + array.shape(condition, int64)[0])
    return gather_rows(concat(parts, 0), rows)


CALLS: dict[str, Callable[[Any, Sequence[Any], Any, str | None], Any]] = {
    **dict.fromkeys((*SEGMENTS, "Mean"), _reduction),
    "Concat": lambda op, inputs, bound, name: concat(list(inputs[0]), bound.axis),
    "Pack": lambda op, inputs, bound, name: stack(list(inputs[0]), bound.axis),
    "ExpandDims": lambda op, inputs, bound, name: expand_dims(inputs[0], bound.axis),
    "Gather": _gather,
    "OneHot": _of_first,
    "Tile": lambda op, inputs, bound, name: tile(inputs[0], inputs[1]),
    "Where": _where,
    "LookupTableFind": _of_first,
    "Identity": lambda op, inputs, bound, name: inputs[0],
}
"""By operator, its call with ragged operands."""


def call(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Return the result of an operator on ragged operands. Raises UnimplementedError if it takes none."""
    rule = CALLS.get(op.name)
    if rule is None and (op.elementwise or op.name in UNARY):
        rule = _elementwise
    if rule is None:
        raise UnimplementedError(
            op=op.name, what="the operator takes no ragged tensors", do="to_tensor(), or ow.ragged.map_flat_values"
        )
    return rule(op, inputs, bound, name)
