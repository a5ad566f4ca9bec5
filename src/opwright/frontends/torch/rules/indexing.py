"""Gathers and scatters by index tensors and masks.

Lives here: rules of ATen's index, gather, scatter, embedding operators. Not here: slices (shapes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import bool as bool_
from ....core.dtypes import int64
from ....core.errors import UnimplementedError
from ....ops import array, math
from .reductions import take_along
from .table import AtenCall, aten, dim_size, is_dynamic, rank_of, sizes, tensor, vector


def _wrapped(index: Any, size: Any) -> Any:
    """Return an index without negative ones. A constant one is computed now."""
    if isinstance(index, np.ndarray) and isinstance(size, int):
        return np.where(index < 0, index + size, index)
    index = tensor(index)
    return array.where(index < tensor(0, index.dtype), index + tensor(size, index.dtype), index)


@aten("index_select", "index_select_copy")
def index_select(op: AtenCall, x: Any, dim: int, index: Any) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    index = array.reshape(tensor(index), [-1])
    return (
        array.gather(x, index, axis=dim % rank)
        if rank
        else array.reshape(array.gather(array.reshape(x, [1]), index), [])
    )


@aten("embedding")
def embedding(op: AtenCall, weight: Any, indices: Any, *rest: Any, **options: Any) -> Any:
    return array.gather(tensor(weight), tensor(indices), axis=0)


def _index_parts(x: Any, indices: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Return the indexed axes, and their indices broadcast to one shape. Masks become positions."""
    axes: list[int] = []
    parts: list[Any] = []
    axis = 0
    for index in indices:
        if index is None:
            axis += 1
            continue
        if index.dtype.name in ("bool", "uint8"):
            places = array.where(tensor(index))
            for k in range(rank_of(index)):
                axes.append(axis)
                parts.append(places[:, k])
                axis += 1
            continue
        axes.append(axis)
        parts.append(_wrapped(index, dim_size(x, axis)))
        axis += 1
    return axes, parts


def _joined(parts: list[Any]) -> Any:
    """Return indices of several axes as [..., axes], after broadcasting."""
    parts = [array.cast(tensor(p), int64) for p in parts]
    if len(parts) == 1:
        return array.expand_dims(parts[0], -1)
    if any(sizes(p) != sizes(parts[0]) or None in sizes(p) for p in parts):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        zero = total - total
        parts = [p + zero for p in parts]
    return array.stack(parts, axis=-1)


@aten("index", "_unsafe_index")
def index(op: AtenCall, x: Any, indices: Sequence[Any]) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    axes, parts = _index_parts(x, indices)
    if not axes:
        return x
    consecutive = axes == list(range(axes[0], axes[0] + len(axes)))
    if len(axes) == 1:
        return array.gather(x, parts[0], axis=axes[0])
    rest = [i for i in range(rank) if i not in axes]
    places = _joined(parts)
    y = array.gather_nd(x if axes == list(range(len(axes))) else array.transpose(x, [*axes, *rest]), places)
    count = rank_of(places) - 1
    if not consecutive or axes[0] == 0:
        return y
    before = axes[0]  # dimensions before the indexed ones stay before them
    order = [*range(count, count + before), *range(count), *range(count + before, count + len(rest))]
    return array.transpose(y, order)


@aten("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(op: AtenCall, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, *rest: Any) -> Any:
    x, values = tensor(x), tensor(values, op.dtype)
    rank = rank_of(x)
    axes, parts = _index_parts(x, indices)
    if (
        len(indices) == 1
        and indices[0] is not None
        and tensor(indices[0]).dtype is bool_
        and sizes(indices[0]) == sizes(x)
        and not rank_of(values)
        and not accumulate
    ):
        return array.where(tensor(indices[0]), values, x)
    others = [i for i in range(rank) if i not in axes]
    order = [*axes, *others]
    base = array.transpose(x, order) if order != list(range(rank)) else x
    places = _joined(parts)
    count = rank_of(places) - 1
    shape = [dim_size(places, i) for i in range(count)] + [dim_size(x, i) for i in others]
    consecutive = axes == list(range(axes[0], axes[0] + len(axes)))
    if consecutive and axes[0] and rank_of(values) > 1:
        before = axes[0]
        full = [dim_size(x, i) for i in range(before)] + shape[:count] + [dim_size(x, i) for i in others[before:]]
        values = array.broadcast_to(values, vector(full) if is_dynamic(full) else full)
        values = array.transpose(
            values, [*range(before, before + count), *range(before), *range(before + count, len(full))]
        )
    else:
        values = array.broadcast_to(values, vector(shape) if is_dynamic(shape) else shape)
    y = (array.tensor_scatter_nd_add if accumulate else array.tensor_scatter_nd_update)(base, places, values)
    return array.transpose(y, np.argsort(order).tolist()) if order != list(range(rank)) else y


@aten("gather")
def gather(op: AtenCall, x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    x, index = tensor(x), tensor(index)
    rank = rank_of(x)
    if not rank:
        return array.reshape(array.gather(array.reshape(x, [1]), array.reshape(index, [-1])), [])
    dim %= rank
    outer, inner = sizes(x), sizes(index)
    cut = tuple(
        slice(None) if i == dim or (d == e and d is not None) else slice(0, dim_size(index, i))
        for i, (d, e) in enumerate(zip(outer, inner))
    )
    if any(c != slice(None) for c in cut):
        x = x[cut]
    return take_along(x, index, dim)


def _scatter_places(x: Any, dim: int, index: Any) -> Any:
    """Return the positions [..., rank] of elements along a dimension."""
    dims = [d for d in sizes(index) if d is not None]
    if len(dims) < rank_of(index):
        raise ValueError("a scatter of unknown sizes")
    grids: list[Any] = list(np.indices(dims))
    grids[dim] = array.cast(tensor(index), int64)
    return array.stack([array.cast(tensor(g), int64) for g in grids], axis=-1)


def _scatter(op: AtenCall, x: Any, dim: int, index: Any, values: Any, scatter: Any) -> Any:
    x, index, values = tensor(x), tensor(index), tensor(values, op.dtype)
    rank = rank_of(x)
    if not rank:
        flat = scatter(array.reshape(x, [1]), array.zeros([1, 1], int64), array.reshape(values, [-1])[:1])
        return array.reshape(flat, [])
    dim %= rank
    dims = [int(d) for d in sizes(index)]  # type: ignore[arg-type]
    if not rank_of(values):
        values = array.broadcast_to(values, dims)
    elif sizes(values) != dims:
        values = values[tuple(slice(0, d) for d in dims)]
    return scatter(x, _scatter_places(x, dim, index), values)


@aten("scatter.src", "scatter.value")
def scatter(op: AtenCall, x: Any, dim: int, index: Any, values: Any) -> Any:
    return _scatter(op, x, dim, index, values, array.tensor_scatter_nd_update)


@aten("scatter_add")
def scatter_add(op: AtenCall, x: Any, dim: int, index: Any, values: Any) -> Any:
    return _scatter(op, x, dim, index, values, array.tensor_scatter_nd_add)


REDUCTIONS = {
    "add": array.tensor_scatter_nd_add,
    "sum": array.tensor_scatter_nd_add,
    "amax": array.tensor_scatter_nd_max,
    "amin": array.tensor_scatter_nd_min,
}


@aten("scatter.reduce", "scatter.value_reduce", "scatter_reduce.two")
def scatter_reduce(
    op: AtenCall, x: Any, dim: int, index: Any, values: Any, reduce: str, include_self: bool = True
) -> Any:
    if reduce not in REDUCTIONS:
        raise UnimplementedError(what=f"scatter with reduce={reduce!r}")
    if not include_self:
        neutral = {"amax": float("-inf"), "amin": float("inf")}.get(reduce, 0.0)
        x = _scatter(op, x, dim, index, neutral, array.tensor_scatter_nd_update)
    return _scatter(op, x, dim, index, values, REDUCTIONS[reduce])


def _along(x: Any, dim: int, index: Any, values: Any, scatter: Any) -> Any:
    """Scatter slices along a dimension."""
    rank = rank_of(x)
    order = [dim, *(i for i in range(rank) if i != dim)]
    back = np.argsort(order).tolist()
    base, updates = (array.transpose(v, order) if dim else v for v in (x, values))
    y = scatter(base, array.expand_dims(array.reshape(tensor(index), [-1]), -1), updates)
    return array.transpose(y, back) if dim else y


@aten("index_add")
def index_add(op: AtenCall, x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    x, source = tensor(x), tensor(source, op.dtype) * tensor(alpha, op.dtype)
    if not rank_of(x):
        return x + math.reduce_sum(source)
    if not rank_of(source):
        source = array.reshape(source, [1])
    return _along(x, dim % rank_of(x), index, source, array.tensor_scatter_nd_add)


@aten("index_copy")
def index_copy(op: AtenCall, x: Any, dim: int, index: Any, source: Any) -> Any:
    x, source = tensor(x), tensor(source, op.dtype)
    if not rank_of(x):
        return array.reshape(source, [])
    return _along(x, dim % rank_of(x), index, source, array.tensor_scatter_nd_update)


@aten("index_fill")
def index_fill(op: AtenCall, x: Any, dim: int, index: Any, value: Any) -> Any:
    x = tensor(x)
    if not rank_of(x):
        return tensor(value, op.dtype)
    dim %= rank_of(x)
    index = array.reshape(tensor(index), [-1])
    shape = [dim_size(x, i) for i in range(rank_of(x))]
    shape[dim] = dim_size(index, 0)
    values = array.fill(vector(shape) if is_dynamic(shape) else shape, tensor(value, op.dtype))
    return _along(x, dim, index, values, array.tensor_scatter_nd_update)


@aten("slice_scatter")
def slice_scatter(
    op: AtenCall, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    x, source = tensor(x), tensor(source, op.dtype)
    dim %= rank_of(x)
    size = x.shape[dim]
    if size is None or hasattr(start, "dtype") or hasattr(end, "dtype"):
        length = dim_size(source, dim)
        first = tensor(start or 0, int64)
        places = first + array.range(tensor(length, int64)) * tensor(step, int64)
        return _along(x, dim, places, source, array.tensor_scatter_nd_update)
    covered = range(int(size))[slice(start, end, step)]
    if len(covered) == size:
        return source
    if step == 1:  # two joins copy once each; a scatter has a position for each row
        before = (slice(None),) * dim
        parts = [x[(*before, slice(0, covered.start))]] if covered.start else []
        parts += [source]
        parts += [x[(*before, slice(covered.stop, None))]] if covered.stop < size else []
        return array.concat(parts, axis=dim)
    return _along(x, dim, np.array(covered), source, array.tensor_scatter_nd_update)


@aten("select_scatter")
def select_scatter(op: AtenCall, x: Any, source: Any, dim: int, index: int) -> Any:
    x = tensor(x)
    dim %= rank_of(x)
    index = index % int(x.shape[dim]) if isinstance(index, int) and x.shape[dim] is not None else index
    return slice_scatter(op, x, array.expand_dims(tensor(source, op.dtype), dim), dim, index, index + 1)


@aten("nonzero")
def nonzero(op: AtenCall, x: Any) -> Any:
    return array.cast(array.where(tensor(x)), int64)


@aten("masked_select")
def masked_select(op: AtenCall, x: Any, mask: Any) -> Any:
    x, mask = tensor(x), tensor(mask)
    if sizes(x) != sizes(mask):
        shape = array.broadcast_dynamic_shape(array.shape(x), array.shape(mask))
        x, mask = array.broadcast_to(x, shape), array.broadcast_to(mask, shape)
    return array.boolean_mask(x, mask)


@aten("one_hot")
def one_hot(op: AtenCall, x: Any, classes: int = -1) -> Any:
    return array.one_hot(tensor(x), classes, dtype=int64)


@aten("bincount")
def bincount(op: AtenCall, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    return array.cast(math.bincount(array.cast(tensor(x), "int32"), weights, minlength=minlength), op.dtype)
