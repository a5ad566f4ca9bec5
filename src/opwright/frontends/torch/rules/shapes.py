"""Rearrangements: shapes, orders, parts of tensors, joins.

Lives here: rules of ATen's views, slices, concatenations, pads. Not here: gathers and scatters (indexing.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array
from ....ops.array_shapes import axes_moved
from ....ops.tensor import TensorLike
from .table import (
    AtenCall,
    aten,
    dim_size,
    is_dynamic,
    rank_of,
    reshape_argument,
    shape_argument,
    sizes,
    tensor,
    vector,
)

LAST = 2**62  # ends beyond it mean the end of the dimension


@aten("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias")
def view(op: AtenCall, x: Any, dims: Any, *rest: Any) -> Any:
    return array.reshape(tensor(x), reshape_argument(op, dims))


@aten("unflatten")
def unflatten(op: AtenCall, x: Any, dim: int, dims: Sequence[Any]) -> Any:
    return _reshaped_from(op, tensor(x), dim, dim, dims)


@aten("flatten")
def flatten(op: AtenCall, x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    return _reshaped_from(op, tensor(x), start_dim, end_dim, [-1])


def _reshaped_from(op: AtenCall, x: Any, first: int, last: int, dims: Sequence[Any]) -> Any:
    """Return a tensor with other sizes in place of those from the first to the last of some dimensions."""
    rank = rank_of(x)
    kept = [dim_size(x, axis) for axis in range(rank)]
    if rank:
        first, last = first % rank, last % rank
    return array.reshape(x, reshape_argument(op, [*kept[:first], *dims, *kept[last + 1 :]]))


@aten("unsqueeze", "unsqueeze_copy")
def unsqueeze(op: AtenCall, x: Any, dim: int) -> Any:
    return array.expand_dims(tensor(x), dim)


@aten("squeeze", "squeeze_copy")
def squeeze(op: AtenCall, x: Any, dim: Any = None) -> Any:
    x = tensor(x)
    dims, rank = sizes(x), rank_of(x)
    axes = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [a % rank for a in axes] if rank else []
    ones = [a for a in axes if dims[a] == 1]
    return array.squeeze(x, ones) if ones else x


@aten("permute", "permute_copy")
def permute(op: AtenCall, x: Any, dims: Sequence[int]) -> Any:
    x = tensor(x)
    return array.transpose(x, [d % rank_of(x) for d in dims])


@aten("transpose", "transpose_copy", "swapaxes")
def transpose(op: AtenCall, x: Any, a: int, b: int) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    if not rank:
        return x
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return array.transpose(x, order)


@aten("t", "t_copy", "numpy_T", "adjoint", "mT")
def matrix_transpose(op: AtenCall, x: Any) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    return x if rank < 2 else array.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@aten("movedim")
def movedim(op: AtenCall, x: Any, source: Any, destination: Any) -> Any:
    x = tensor(x)
    return array.transpose(x, axes_moved(source, destination, rank_of(x)))


@aten("expand", "expand_copy", "broadcast_to", "expand_as")
def expand(op: AtenCall, x: Any, dims: Any, implicit: bool = False) -> Any:
    x = tensor(x)
    if not isinstance(dims, (list, tuple)):
        dims = op.shape if None not in op.shape else array.unstack(array.shape(dims), num=rank_of(dims))
    extra = len(dims) - rank_of(x)
    dims = [dim_size(x, i - extra) if isinstance(d, int) and d == -1 else d for i, d in enumerate(dims)]
    if not is_dynamic(dims) and sizes(x) == dims:
        return x
    return array.broadcast_to(x, shape_argument(op, dims))


@aten("repeat", "tile")
def repeat(op: AtenCall, x: Any, repeats: Sequence[Any]) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    repeats = [1] * (rank - len(repeats)) + list(repeats)
    if len(repeats) > rank:
        new = [1] * (len(repeats) - rank) + [dim_size(x, i) for i in range(rank)]
        x = array.reshape(x, vector(new) if is_dynamic(new) else new)
    return array.tile(x, vector(repeats) if is_dynamic(repeats) else repeats)


@aten("repeat_interleave")
def repeat_interleave(
    op: AtenCall, x: Any, repeats: Any = None, dim: int | None = None, output_size: Any = None
) -> Any:
    x = tensor(x)
    if repeats is None:
        return array.repeat(array.range(array.size(x), dtype=op.dtype), x)
    if dim is None:
        x, dim = array.reshape(x, [-1]), 0
    return array.repeat(x, repeats if isinstance(repeats, int) else tensor(repeats), axis=dim)


@aten("slice", "slice_copy")
def slice_(op: AtenCall, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    x = tensor(x)
    dim %= rank_of(x)
    if not isinstance(start, TensorLike) and not start:
        start = None
    if isinstance(end, int) and end >= LAST:
        end = None
    size = x.shape[dim]
    if isinstance(end, int) and size is not None and end >= size:
        end = None
    if start is None and end is None and step == 1:
        return x
    return x[(slice(None),) * dim + (slice(start, end, step if step != 1 else None),)]


@aten("narrow", "narrow_copy")
def narrow(op: AtenCall, x: Any, dim: int, start: Any, length: Any) -> Any:
    return slice_(op, x, dim, start, start + length)


@aten("select", "select_copy")
def select(op: AtenCall, x: Any, dim: int, index: Any) -> Any:
    x = tensor(x)
    if isinstance(index, TensorLike):
        return array.gather(x, index, axis=dim % rank_of(x))
    return x[(slice(None),) * (dim % rank_of(x)) + (index,)]


@aten("cat", "concat", "concatenate")
def cat(op: AtenCall, tensors: Sequence[Any], dim: int = 0) -> Any:
    parts = [tensor(t, op.dtype) for t in tensors]
    rank = max(map(rank_of, parts))
    parts = [p for p in parts if not (rank_of(p) == 1 and rank > 1)]  # an empty vector joins with anything
    return parts[0] if len(parts) == 1 else array.concat(parts, axis=dim % rank)


@aten("stack")
def stack(op: AtenCall, tensors: Sequence[Any], dim: int = 0) -> Any:
    parts = [tensor(t, op.dtype) for t in tensors]
    return array.stack(parts, axis=dim % (rank_of(parts[0]) + 1))


@aten("split.Tensor", "split_copy.Tensor")
def split(op: AtenCall, x: Any, size: int, dim: int = 0) -> Any:
    x = tensor(x)
    total = x.shape[dim]
    if total is None:
        raise ValueError("a split of a dimension of unknown size")
    parts = [min(size, total - i) for i in range(0, total, size)] if total else [0]
    return _split(x, parts, dim)


def _split(x: Any, parts: list[int], dim: int) -> list[Any]:
    if len(parts) == 1:
        return [x]
    return list(array.split(x, len(parts) if len(set(parts)) == 1 else parts, axis=dim % rank_of(x)))


@aten("split_with_sizes", "split_with_sizes_copy", "split.sizes")
def split_with_sizes(op: AtenCall, x: Any, parts: Sequence[Any], dim: int = 0) -> Any:
    if not any(isinstance(p, TensorLike) for p in parts):
        return _split(tensor(x), [int(p) for p in parts], dim)
    ends = list(itertools.accumulate(parts))
    return [slice_(op, x, dim, start, end) for start, end in zip([None, *ends], [*ends[:-1], None])]


@aten("chunk", "tensor_split.sections", "unsafe_chunk")
def chunk(op: AtenCall, x: Any, chunks: int, dim: int = 0) -> Any:
    return _split(tensor(x), [int(s[dim]) for s in op.shapes], dim)  # type: ignore[arg-type]


@aten("unbind", "unbind_copy")
def unbind(op: AtenCall, x: Any, dim: int = 0) -> Any:
    return list(array.unstack(tensor(x), axis=dim))


@aten("flip")
def flip(op: AtenCall, x: Any, dims: Sequence[int]) -> Any:
    x = tensor(x)
    return array.reverse(x, [d % rank_of(x) for d in dims]) if dims else x


@aten("roll")
def roll(op: AtenCall, x: Any, shifts: Any, dims: Any = ()) -> Any:
    x = tensor(x)
    shifts, dims = ([v] if isinstance(v, int) else list(v) for v in (shifts, dims))
    if not dims:
        return array.reshape(array.roll(array.reshape(x, [-1]), shifts, [0]), reshape_argument(op, op.shape))
    return array.roll(x, shifts, [d % rank_of(x) for d in dims])


@aten("constant_pad_nd")
def constant_pad(op: AtenCall, x: Any, pads: Sequence[Any], value: Any = 0) -> Any:
    return _pad(tensor(x), pads, "CONSTANT", value)


def _pad(x: Any, pads: Sequence[Any], mode: str, value: Any = 0) -> Any:
    """Pad by pairs of numbers, the last dimension first; negative ones cut off."""
    rank = rank_of(x)
    pairs: list[Any] = [[0, 0]] * (rank - len(pads) // 2) + [
        [pads[i], pads[i + 1]] for i in range(len(pads) - 2, -2, -2)
    ]
    cuts = tuple(slice(max(-a, 0), -max(-b, 0) or None) for a, b in pairs)
    if any(c != slice(0, None) for c in cuts):
        x = x[cuts]
    pairs = [[max(a, 0), max(b, 0)] for a, b in pairs]
    if not any(map(any, pairs)):
        return x
    if mode == "CONSTANT":
        return array.pad(x, pairs, constant_values=tensor(value, x.dtype))
    if 0 in sizes(x)[: rank - len(pads) // 2]:  # of no images
        return array.pad(x, pairs)
    return array.pad(x, pairs, mode)


@aten("pad")
def pad(op: AtenCall, x: Any, pads: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    if mode == "constant":
        return _pad(tensor(x), pads, "CONSTANT", value or 0)
    return {"reflect": reflection_pad, "replicate": replication_pad, "circular": circular_pad}[mode](op, x, pads)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(op: AtenCall, x: Any, pads: Sequence[int]) -> Any:
    if min(pads) < 0:  # mirrors what is cut off, too
        return _by_position(x, pads, lambda places, size: size - 1 - abs(size - 1 - abs(places)))
    return _pad(tensor(x), pads, "REFLECT")


def _by_position(x: Any, pads: Sequence[int], position: Any) -> Any:
    x = tensor(x)
    for i in range(0, len(pads), 2):
        axis = rank_of(x) - 1 - i // 2
        size = int(x.shape[axis])
        if pads[i] or pads[i + 1]:
            places = position(np.arange(-pads[i], size + pads[i + 1]), size)
            x = array.gather(x, places.astype(np.int32), axis=axis)
    return x


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(op: AtenCall, x: Any, pads: Sequence[int]) -> Any:
    return _by_position(x, pads, lambda places, size: np.clip(places, 0, size - 1))


@aten("_pad_circular")
def circular_pad(op: AtenCall, x: Any, pads: Sequence[int]) -> Any:
    return _by_position(_pad(tensor(x), [min(p, 0) for p in pads], "CONSTANT"), [max(p, 0) for p in pads], np.mod)


@aten("pixel_shuffle")
def pixel_shuffle(op: AtenCall, x: Any, factor: int) -> Any:
    x = tensor(x)
    *batch, channels, h, w = (-1 if d is None else d for d in sizes(x))
    n, r = len(batch), factor
    y = array.reshape(x, [*batch, channels // (r * r), r, r, h, w])
    y = array.transpose(y, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return array.reshape(y, [*batch, channels // (r * r), h * r, w * r])


@aten("pixel_unshuffle")
def pixel_unshuffle(op: AtenCall, x: Any, factor: int) -> Any:
    x = tensor(x)
    *batch, channels, h, w = (-1 if d is None else d for d in sizes(x))
    n, r = len(batch), factor
    y = array.reshape(x, [*batch, channels, h // r, r, w // r, r])
    y = array.transpose(y, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return array.reshape(y, [*batch, channels * r * r, h // r, w // r])


@aten("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(op: AtenCall, x: Any, groups: int) -> Any:
    x = tensor(x)
    n, channels, *space = (-1 if d is None else d for d in sizes(x))
    dims = [n, groups, channels // groups, *space]
    y = array.transpose(array.reshape(x, dims), [0, 2, 1, *range(3, len(dims))])
    return array.reshape(y, [n, channels, *space])


@aten("unfold", "unfold_copy")
def unfold(op: AtenCall, x: Any, dim: int, size: int, step: int) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    if not rank:
        return array.reshape(x, [size])
    dim %= rank
    count = (int(x.shape[dim]) - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)[None]
    y = array.gather(x, places.astype(np.int32), axis=dim)
    return array.transpose(y, [i for i in range(rank + 1) if i != dim + 1] + [dim + 1])


@aten("diagonal", "diagonal_copy")
def diagonal(op: AtenCall, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    dim1, dim2 = dim1 % rank, dim2 % rank
    x = array.transpose(x, [i for i in range(rank) if i not in (dim1, dim2)] + [dim1, dim2])
    rows, columns = (int(d) for d in sizes(x)[-2:])  # type: ignore[arg-type]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    i = np.arange(count)
    places = (i - min(offset, 0)) * columns + i + max(offset, 0)
    lead = [-1 if d is None else d for d in sizes(x)[:-2]]
    flat = array.reshape(x, [*lead, rows * columns])
    return array.gather(flat, places.astype(np.int32), axis=rank - 2)


@aten("diag_embed")
def diag_embed(op: AtenCall, x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    x = tensor(x)
    rank = rank_of(x) + 1
    n = int(x.shape[-1])
    size = n + abs(offset)
    places = np.full((size, size), n)
    places[np.arange(n) - min(offset, 0), np.arange(n) + max(offset, 0)] = np.arange(n)
    rows = array.gather(_pad(x, [0, 1], "CONSTANT"), places.astype(np.int32), axis=rank - 2)
    dim1, dim2 = dim1 % rank, dim2 % rank
    rest = iter(range(rank - 2))
    return array.transpose(
        rows, [rank - 2 if i == dim1 else rank - 1 if i == dim2 else next(rest) for i in range(rank)]
    )


@aten("diagonal_scatter")
def diagonal_scatter(op: AtenCall, x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a tensor whose diagonal is replaced."""
    x, source = tensor(x), tensor(source, op.dtype)
    rank = rank_of(x)
    dim1, dim2 = dim1 % rank, dim2 % rank
    order = [*(i for i in range(rank) if i not in (dim1, dim2)), dim1, dim2]
    base = array.transpose(x, order)
    rows, columns = (int(d) for d in sizes(base)[-2:])  # type: ignore[arg-type]
    count = int(sizes(source)[-1] or 0)
    if not count:
        return x
    places = np.full((rows, columns), count)
    at = np.arange(count)
    places[at - min(offset, 0), at + max(offset, 0)] = at
    matrix = array.gather(_pad(source, [0, 1], "CONSTANT"), places.astype(np.int32), axis=rank - 2)
    return array.transpose(array.where(tensor(places < count), matrix, base), np.argsort(order).tolist())


# ---- strides ----------------------------------------------------------------------------------------------------


def _memory(op: AtenCall, x: Any) -> tuple[Any, list[int]]:
    """Return a tensor as it lies in memory, flat, and the order of its axes there."""
    order = list(range(rank_of(x)))
    if op.strides is not None:
        order.sort(key=lambda axis: (-op.strides[axis], axis))  # type: ignore[index]
        extents = [int(sizes(x)[a] or 0) for a in order]
        dense = np.cumprod([1, *extents[:0:-1]])[::-1].tolist() if extents else []
        if any(op.strides[a] != s for a, s, d in zip(order, dense, extents) if d > 1):
            raise ValueError("strides of a view of a larger tensor")
    return array.reshape(array.transpose(x, order), [-1]), order


def _places(dims: Sequence[int], strides: Sequence[int], offset: int | None) -> np.ndarray:
    places = np.full(tuple(dims), offset or 0, np.int64)
    for axis, (d, s) in enumerate(zip(dims, strides)):
        places += (np.arange(d) * s).reshape([-1] + [1] * (len(dims) - axis - 1))
    return places


@aten("as_strided", "as_strided_copy")
def as_strided(op: AtenCall, x: Any, dims: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Any:
    """Return the elements of a tensor's memory at places by strides. The tensor must fill its memory."""
    if is_dynamic(dims) or is_dynamic(strides):
        raise ValueError("strides of unknown sizes")
    flat, _ = _memory(op, tensor(x))
    places = _places(dims, strides, offset)
    if not places.size:
        return array.zeros(list(places.shape), op.dtype)
    if places.max() >= (sizes(flat)[0] or 0):
        raise ValueError("strides beyond the tensor's own memory")
    return array.gather(flat, places.astype(np.int32))


@aten("as_strided_scatter")
def as_strided_scatter(
    op: AtenCall, x: Any, source: Any, dims: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Any:
    x = tensor(x)
    flat, order = _memory(op, x)
    places = _places(dims, strides, offset).reshape(-1, 1)
    y = array.tensor_scatter_nd_update(flat, places, array.reshape(tensor(source, op.dtype), [-1]))
    inner = [int(sizes(x)[a] or 0) for a in order]
    return array.transpose(array.reshape(y, inner), np.argsort(order).tolist())
