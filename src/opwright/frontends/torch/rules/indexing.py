"""Gathers and scatters by index tensors and masks.

Lives here: rules of ATen's index, gather, scatter, embedding operators. Not here: slices (shapes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import bool as bool_
from ....core.dtypes import int64
from ....ops import array, math
from ....ops.array.indexing import gather_along_axis
from .table import AtenCall, aten, dim_size, is_dynamic, rank_of, sizes, tensor, vector


def wrapped(index: Any, size: Any) -> Any:
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
        parts.append(wrapped(index, dim_size(x, axis)))
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
    if index.dtype.name not in ("int32", "int64"):
        index = array.cast(index, int64)
    if not rank:
        return array.reshape(array.gather(array.reshape(x, [1]), array.reshape(index, [-1])), sizes(index))
    if not rank_of(index):
        return array.reshape(array.gather(x, array.reshape(index, [1])), [])
    dim %= rank
    outer, inner = sizes(x), sizes(index)
    cut = tuple(
        slice(None) if i == dim or (d == e and d is not None) else slice(0, dim_size(index, i))
        for i, (d, e) in enumerate(zip(outer, inner))
    )
    if any(c != slice(None) for c in cut):
        x = x[cut]
    return gather_along_axis(x, index, dim)


@aten("nonzero")
def nonzero(op: AtenCall, x: Any) -> Any:
    return array.cast(array.where(tensor(x)), int64)


@aten("nonzero_static")
def nonzero_static(op: AtenCall, x: Any, size: int, fill_value: int = -1) -> Any:
    places = nonzero(op, x)
    rest = array.fill([size, rank_of(x)], tensor(fill_value, int64))
    return array.concat([places, rest], axis=0)[:size]


@aten("masked_select")
def masked_select(op: AtenCall, x: Any, mask: Any) -> Any:
    x, mask = tensor(x), tensor(mask)
    if not rank_of(x) and not rank_of(mask):
        x = array.reshape(x, [1])
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
