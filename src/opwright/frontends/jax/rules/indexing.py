"""Rules of computed indices: gather, dynamic slices and their updates.

Lives here: gather with any dimension numbers, as Gather or GatherNd; `index_rows`, which scatter.py shares.
Not here: scatter (scatter.py), static slices (arrays.py).

A gather reads, for each row of `start_indices`, a slice of the operand. Axes that are read in part become additional
batch axes, with one index for each element; what remains reads single positions of some axes and all of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....ops import array, dispatch, math
from ....ops.array.slices import TensorStridedSliceUpdate
from ...importing import known, tensor_of
from ..execution import RULES, JaxprContext
from ..operands import broadcast, cast, dims, dtype_of, like, like_shape, reshape, sized, transpose
from ..sizes import dense, is_open, open_sizes
from .arrays import positions, strided
from .cumulative import highest, lowest

CLIP, FILL = "CLIP", "FILL_OR_DROP"


def mode_name(mode: Any) -> str:
    """Return the name of a GatherScatterMode; None is FILL_OR_DROP, as `GatherScatterMode.from_any`."""
    return FILL if mode is None else str(getattr(mode, "name", mode)).rpartition(".")[2].upper()


class IndexRows(NamedTuple):
    """Positions in the axes that are indexed.

    rows: int32 [batch..., part..., len(axes)]. axes: the operand's axes that are indexed, ascending. batch: sizes of
    the batch axes. parts: the operand's axes that are read in part: the axes after the batch. inside: a bool for each
    batch position, whether its slice lies within the operand; None if all do.
    """

    rows: Any
    axes: list[int]
    batch: tuple[int, ...]
    parts: list[int]
    inside: Any


def index_rows(
    sizes: Sequence[int],
    indices: Any,
    start_index_map: Sequence[int],
    batching: Sequence[int],
    index_batching: Sequence[int],
    slice_sizes: Sequence[int],
    removed: Sequence[int],
    mode: str,
) -> IndexRows:
    """Return the positions that a gather or scatter indexes. removed: axes of the operand that slices do not keep."""
    indices = _signed(indices)
    batch = dims(indices)[:-1]
    columns: dict[int, Any] = {}
    inside = None
    for k, axis in enumerate(start_index_map):
        column, limit = _column(indices, k), sizes[axis] - slice_sizes[axis]
        if mode != "PROMISE_IN_BOUNDS" or limit == 0:
            column, valid = _bounded(column, limit, mode)
            inside = valid if inside is None else inside if valid is None else _both(inside, valid)
        columns[axis] = column
    for axis, k in zip(batching, index_batching):
        columns[axis] = dense(positions(batch, k))
    parts = [a for a in columns if a not in removed and a not in batching and slice_sizes[a] < sizes[a]]
    whole = [a for a in columns if a not in removed and a not in batching and slice_sizes[a] == sizes[a]]
    for axis in whole:  # they start at 0
        del columns[axis]
    parts += [a for a in range(len(sizes)) if a not in columns and a not in whole and slice_sizes[a] < sizes[a]]
    parts = sorted(a for a in parts if slice_sizes[a] != sizes[a] and a not in removed)
    axes = sorted({*columns, *parts})
    extra = tuple(slice_sizes[a] for a in parts)
    full = (*batch, *extra)
    members = []
    for axis in axes:
        column = columns[axis] if axis in columns else broadcast(np.zeros((), np.int32), batch)
        column = reshape(dense(column), [*batch, *[1] * len(parts)])
        if axis in parts:
            place = parts.index(axis)
            shape = [1] * len(batch) + [extra[i] if i == place else 1 for i in range(len(parts))]
            offsets = dense(positions(shape, len(batch) + place))
            known_column = isinstance(column, np.ndarray) and isinstance(offsets, np.ndarray)
            column = column if known_column else tensor_of(column)
            total = [*batch, *(extra[i] if i == place else 1 for i in range(len(parts)))]
            column = (
                column + offsets
                if known_column
                else sized(math.add(column, cast(tensor_of(offsets), column.dtype)), total)
            )
        members.append(dense(broadcast(column, full)))
    if not members:
        return IndexRows(None, [], batch, [], inside)
    rows = (
        np.stack(members, -1)
        if all(isinstance(m, np.ndarray) for m in members)
        else sized(array.stack([cast(tensor_of(m), np.int32) for m in members], -1), [*full, len(members)])
    )
    return IndexRows(rows, axes, batch, parts, inside)


def _signed(indices: Any) -> Any:
    if isinstance(indices, np.ndarray):
        return indices.astype(np.int64)
    return indices if dtype_of(indices) in (np.int32, np.int64) else cast(indices, np.int32)


def _column(indices: Any, k: int) -> Any:
    if isinstance(indices, np.ndarray):
        return indices[..., k]
    column = strided(indices, [0] * (len(dims(indices)) - 1) + [k], [*dims(indices)[:-1], k + 1])
    return sized(array.squeeze(column, [-1]), dims(indices)[:-1])


def _bounded(column: Any, limit: int, mode: str) -> tuple[Any, Any]:
    """Return starts within [0, limit], and whether each was there before (None: all)."""
    if isinstance(column, np.ndarray):
        valid = (column >= 0) & (column <= limit)
        return np.clip(column, 0, limit), None if mode != FILL or valid.all() else valid
    low, high = like(0, column), like(limit, column)
    clipped = like_shape(math.minimum(math.maximum(column, low), high), column)
    if mode != FILL:
        return clipped, None
    return clipped, like_shape(math.equal(clipped, column), column)


def _both(a: Any, b: Any) -> Any:
    return (
        a & b
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        else like_shape(math.logical_and(tensor_of(a), tensor_of(b)), a)
    )


@RULES.rule("gather")
def gather(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return slices of x at `start_indices`, whose last axis holds starts in the axes of `start_index_map`."""
    x, indices = inputs[0], inputs[1]
    numbers_ = params["dimension_numbers"]
    mode, sizes, slice_sizes = mode_name(params["mode"]), dims(x), tuple(params["slice_sizes"])
    removed = (*numbers_.collapsed_slice_dims, *numbers_.operand_batching_dims)
    if 0 in context.shape:
        return np.zeros(context.shape, context.dtype.as_numpy_dtype)
    if is_open(slice_sizes) and isinstance(indices, np.ndarray) and indices.ndim == 1:
        starts = {axis: int(start) for axis, start in zip(numbers_.start_index_map, indices)}
        limits = {axis: sizes[axis] - slice_sizes[axis] for axis in starts}
        if not is_open(limits.values()) and all(0 <= starts[axis] <= limits[axis] for axis in starts):
            begin = [starts.get(axis, 0) for axis in range(len(sizes))]
            return reshape(strided(x, begin, [b + s for b, s in zip(begin, slice_sizes)]), context.shape)
    where = index_rows(
        sizes,
        indices,
        numbers_.start_index_map,
        numbers_.operand_batching_dims,
        numbers_.start_indices_batching_dims,
        slice_sizes,
        removed,
        mode,
    )
    kept = [a for a in range(len(sizes)) if a not in where.axes]
    if where.rows is None:
        result = dense(broadcast(reshape(x, [*[1] * len(where.batch), *sizes]), [*where.batch, *sizes]))
        order_of = {a: len(where.batch) + a for a in range(len(sizes))}
    else:
        result = _read(x, where, kept)
        result = sized(result, [*where.batch, *(slice_sizes[a] for a in where.parts), *(sizes[a] for a in kept)])
        count = len(where.batch)
        order_of = {a: count + i for i, a in enumerate([*where.parts, *kept])}
    # axes of size 1 that slices do not keep, and that no index selects
    gone = [a for a in kept if a in removed]
    result = reshape(result, [s for i, s in enumerate(dims(result)) if i not in {order_of[a] for a in gone}])
    position = {
        p: i
        for i, p in enumerate(
            i for i in range(len(where.batch) + len(order_of)) if i not in {order_of[a] for a in gone}
        )
    }
    offsets = [position[order_of[a]] for a in range(len(sizes)) if a not in removed]
    remaining = iter(range(len(where.batch)))
    rank, offset_dims = len(context.shape), list(numbers_.offset_dims)
    order = [offsets[offset_dims.index(d)] if d in offset_dims else next(remaining) for d in range(rank)]
    result = transpose(result, order)
    if where.inside is None:
        return result
    batch_axes = [d for d in range(rank) if d not in offset_dims]
    shape = [1] * rank
    for d, size in zip(batch_axes, where.batch):
        shape[d] = size
    fill = _fill(params.get("fill_value"), context.dtype)
    inside = tensor_of(reshape(where.inside, shape))
    return sized(array.where(inside, tensor_of(result), dispatch.to_tensor(fill)), context.shape)


def _fill(value: Any, dtype: Any) -> np.ndarray:
    """Return what is read outside: NaN, the least signed or the greatest unsigned integer, True."""
    if value is not None:
        return np.asarray(value, dtype.as_numpy_dtype)
    if dtype.is_floating or dtype.is_complex:
        return np.asarray(np.nan, dtype.as_numpy_dtype)
    bound: np.ndarray = highest(dtype) if dtype.is_bool or dtype.is_unsigned else lowest(dtype)
    return bound


def _read(x: Any, where: IndexRows, kept: Sequence[int]) -> Any:
    """Return x at the rows: [batch..., part..., kept...]."""
    if len(where.axes) == 1:
        axis = where.axes[0]
        rows = (
            sized(array.squeeze(tensor_of(where.rows), [-1]), dims(where.rows)[:-1])
            if not isinstance(where.rows, np.ndarray)
            else tensor_of(where.rows[..., 0].astype(np.int32))
        )
        if axis == 0 or not dims(rows):
            return array.gather(tensor_of(x), rows, axis=axis)
        result = array.gather(tensor_of(x), rows, axis=axis)
        count = len(dims(rows))
        before = list(range(axis))
        rank = count + len(dims(x)) - 1
        return transpose(result, [*range(axis, axis + count), *before, *range(axis + count, rank)])
    moved = transpose(x, [*where.axes, *kept])
    rows = where.rows.astype(np.int32) if isinstance(where.rows, np.ndarray) else where.rows
    return array.gather_nd(tensor_of(moved), tensor_of(rows))


# ---- dynamic slices --------------------------------------------------------------------------------------------------


def _starts(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> list[int] | Any:
    """Return starts within bounds: a list if all are known, else an int32 vector."""
    limits = [d - s for d, s in zip(dims(x), sizes)]
    if is_open(limits):
        raise ValueError("a computed slice of part of an axis whose size is open")
    values = [known(s) if limit else np.asarray(0) for s, limit in zip(starts, limits)]
    if all(v is not None for v in values):
        return [min(max(int(v), 0), limit) for v, limit in zip(values, limits)]  # type: ignore[arg-type]
    members = []
    for start, value, limit in zip(starts, values, limits):
        if value is not None:
            members.append(dispatch.to_tensor(np.asarray(min(max(int(value), 0), limit), np.int32)))
            continue
        start = tensor_of(start)
        if start.dtype not in (np.int32,):
            start = (
                cast(math.minimum(start, like(np.iinfo(np.int32).max, start)), np.int32)
                if start.dtype.size > 4
                else (cast(start, np.int32))
            )
        members.append(math.minimum(math.maximum(start, like(0, start)), like(limit, start)))
    return array.stack(members)


@RULES.rule("dynamic_slice")
def dynamic_slice(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the slice of static sizes at starts, which are moved so that it lies within x."""
    sizes = list(params["slice_sizes"])
    begin = _starts(inputs[0], inputs[1:], sizes)
    if isinstance(begin, list):
        return strided(inputs[0], begin, [b + s for b, s in zip(begin, sizes)])
    return array.slice(tensor_of(inputs[0]), begin, open_sizes().vector(sizes) if is_open(sizes) else sizes)


@RULES.rule("dynamic_update_slice")
def dynamic_update_slice(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x with a slice replaced; its starts are moved so that it lies within x."""
    x, update = tensor_of(inputs[0]), tensor_of(inputs[1])
    sizes = dims(update)
    if sizes == dims(x):
        return update
    begin = _starts(x, inputs[2:], sizes)
    if 0 in sizes:
        return x
    ends = (
        [b + s for b, s in zip(begin, sizes)]
        if isinstance(begin, list)
        else math.add(begin, open_sizes().vector(sizes) if is_open(sizes) else tensor_of(np.asarray(sizes, np.int32)))
    )
    if isinstance(ends, list) and is_open(ends):
        ends, begin = open_sizes().vector(ends), tensor_of(np.asarray(begin, np.int32))
    return TensorStridedSliceUpdate(x, begin, ends, [1] * len(sizes), update)
