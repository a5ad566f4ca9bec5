"""Scatters: tensors with elements or slices replaced, added to or reduced at positions; segments.

Lives here: rules of ATen's scatter, index_add, index_reduce, masked_scatter, put, segments and bags of embeddings.
Not here: gathers and assignments by index tensors (indexing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int32, int64
from ....ops import array, math
from .indexing import wrapped
from .table import AtenCall, aten, dim_size, is_dynamic, rank_of, sizes, tensor, vector


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
NEUTRAL = {"amax": float("-inf"), "amin": float("inf")}


def _segments(x: Any, places: Any, values: Any, reduce: str, include_self: bool) -> Any:
    """Return products or means of the values at each of the places [..., axes] of a tensor."""
    count = places.shape[-1]
    dims = [int(d) for d in sizes(x)]  # type: ignore[arg-type]
    strides = np.cumprod([1, *dims[:count][::-1]])[-2::-1]
    flat = array.reshape(math.reduce_sum(array.cast(places, int64) * strides.astype(np.int64), [-1]), [-1])
    rows = array.reshape(values, [-1, *dims[count:]])
    total = int(np.prod(dims[:count]))
    ones = array.ones_like(rows)
    counts = math.unsorted_segment_sum(ones, flat, total)
    base = array.reshape(x, [total, *dims[count:]])
    touched = counts > tensor(0, counts.dtype)
    if reduce in ("prod", "multiply"):
        y = math.unsorted_segment_prod(rows, flat, total)
        y = base * y if include_self else array.where(touched, y, base)
    else:
        y = math.unsorted_segment_sum(rows, flat, total)
        if include_self:
            y, counts = base + y, counts + tensor(1, counts.dtype)
        safe = array.where(counts > tensor(0, counts.dtype), counts, array.ones_like(counts))
        y = array.where(touched, math.floordiv(y, safe) if x.dtype.is_integer else y / safe, base)
    return array.reshape(y, dims)


def _reducing(reduce: str, include_self: bool) -> Any:
    """Return a scatter that reduces the values of each place."""
    if reduce in ("prod", "multiply", "mean"):
        return lambda x, places, values: _segments(x, places, values, reduce, include_self)
    if include_self:
        return REDUCTIONS[reduce]
    neutral = NEUTRAL.get(reduce, 0.0)

    def scatter(x: Any, places: Any, values: Any) -> Any:
        empty = array.fill(array.shape(values), tensor(neutral, x.dtype))
        return REDUCTIONS[reduce](array.tensor_scatter_nd_update(x, places, empty), places, values)

    return scatter


@aten("scatter.reduce", "scatter.value_reduce", "scatter_reduce.two")
def scatter_reduce(
    op: AtenCall, x: Any, dim: int, index: Any, values: Any, reduce: str, include_self: bool = True
) -> Any:
    return _scatter(op, x, dim, index, values, _reducing(reduce, include_self))


@aten("index_reduce")
def index_reduce(
    op: AtenCall, x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    x, source = tensor(x), tensor(source, op.dtype)
    if not rank_of(x):
        vector_ = index_reduce(op, array.reshape(x, [1]), 0, index, array.reshape(source, [-1]), reduce, include_self)
        return array.reshape(vector_, [])
    return _along(x, dim % rank_of(x), index, source, _reducing(reduce, include_self))


@aten("masked_scatter")
def masked_scatter(op: AtenCall, x: Any, mask: Any, source: Any) -> Any:
    """Put the elements of the source, in order, where the mask is true."""
    x, mask = tensor(x), tensor(mask)
    shape = array.broadcast_dynamic_shape(array.shape(x), array.shape(mask))
    if sizes(x) != sizes(mask):
        x, mask = array.broadcast_to(x, shape), array.broadcast_to(mask, shape)
    number = math.cumsum(array.cast(array.reshape(mask, [-1]), int64)) - tensor(1, int64)
    taken = array.gather(array.reshape(tensor(source), [-1]), math.maximum(number, tensor(0, int64)))
    return array.where(mask, array.reshape(taken, array.shape(x)), x)


@aten("put")
def put(op: AtenCall, x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    x = tensor(x)
    flat = array.reshape(x, [-1])
    places = array.reshape(wrapped(index, dim_size(flat, 0)), [-1, 1])
    scatter = array.tensor_scatter_nd_add if accumulate else array.tensor_scatter_nd_update
    return array.reshape(scatter(flat, places, array.reshape(tensor(source, op.dtype), [-1])), array.shape(x))


@aten("take")
def take(op: AtenCall, x: Any, index: Any) -> Any:
    flat = array.reshape(tensor(x), [-1])
    return array.gather(flat, wrapped(index, dim_size(flat, 0)))


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


# ---- segments ---------------------------------------------------------------------------------------------------


def _segmented(rows: Any, ids: Any, count: int, reduce: str) -> Any:
    """Return the sums, means or extremes of rows by the number of their segment; of none, 0."""
    if reduce in ("sum", "mean", "prod"):
        sums = {"prod": math.unsorted_segment_prod}.get(reduce, math.unsorted_segment_sum)(rows, ids, count)
        if reduce != "mean":
            return sums
        ones = array.ones_like(rows)
        return sums / math.maximum(math.unsorted_segment_sum(ones, ids, count), tensor(1, rows.dtype))
    extreme = {"max": math.unsorted_segment_max, "min": math.unsorted_segment_min}[reduce]
    present = math.unsorted_segment_sum(array.ones_like(rows), ids, count) > tensor(0, rows.dtype)
    return array.where(present, extreme(rows, ids, count), tensor(0, rows.dtype))


def _numbers(offsets: Any, count: Any) -> Any:
    """Return the segment of each of `count` rows from where segments begin."""
    places = array.range(tensor(count, int64))
    return array.searchsorted(array.cast(tensor(offsets), int64), places, side="right") - tensor(1, int32)


@aten("embedding_renorm")
def embedding_renorm(op: AtenCall, weight: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scale the rows at indices whose norm is larger than max_norm to it."""
    weight = tensor(weight)
    power, size = tensor(float(norm_type), op.dtype), math.abs(weight)
    if norm_type == 2:
        norms = math.sqrt(math.reduce_sum(math.square(weight), [1], True))
    else:
        norms = math.pow(math.reduce_sum(math.pow(size, power), [1], True), math.reciprocal(power))
    flat = array.reshape(tensor(indices), [-1])
    touched = math.unsorted_segment_sum(array.ones_like(flat), flat, dim_size(weight, 0)) > tensor(0, flat.dtype)
    limit = tensor(max_norm, op.dtype)
    large = math.logical_and(array.expand_dims(touched, 1), norms > limit)
    return array.where(large, weight * (limit / (norms + tensor(1e-7, op.dtype))), weight)


BAGS = ("sum", "mean", "max")


@aten("_embedding_bag_forward_only", "_embedding_bag")
def embedding_bag(
    op: AtenCall,
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Return sums, means or maxima of the rows of each bag; what gradients alone need is empty."""
    weight, indices = tensor(weight), array.cast(tensor(indices), int64)
    ids = _numbers(offsets, dim_size(indices, 0))
    bags = int(op.shape[0] or 0)
    rows = array.gather(weight, indices)
    if per_sample_weights is not None:
        rows = rows * array.expand_dims(tensor(per_sample_weights, op.dtype), 1)
    if padding_idx >= 0:
        ids = array.where(math.equal(indices, tensor(padding_idx, int64)), tensor(-1, int32), ids)
    y = _segmented(rows, ids, bags, BAGS[mode])
    return [y, *(array.zeros([0], d) for d in op.dtypes[1:])]


@aten("segment_reduce")
def segment_reduce(
    op: AtenCall,
    x: Any,
    reduce: str,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    x = tensor(x)
    edges = tensor(lengths if offsets is None else offsets, int64)
    if axis != rank_of(edges) - 1:
        raise ValueError("segments of another axis than the last one of their lengths")
    dims = [-1 if d is None else int(d) for d in sizes(x)]
    edges = array.reshape(edges, [-1, int(sizes(edges)[-1] or 0)])
    if offsets is None:
        edges = array.pad(math.cumsum(edges, axis=1), [[0, 0], [1, 0]])
    groups, each = int(sizes(edges)[0] or 0), int(op.shape[axis] or 0)
    places = array.broadcast_to(tensor(np.arange(dims[axis])), [groups, dims[axis]])
    ids = array.searchsorted(edges, places, side="right") - tensor(1, int32)
    inside = math.logical_and(ids >= tensor(0, int32), ids < tensor(each, int32))
    ids = array.where(inside, ids + tensor(np.arange(groups, dtype=np.int32)[:, None] * each), tensor(-1, int32))
    x, ids, count = array.reshape(x, [-1, *dims[axis + 1 :]]), array.reshape(ids, [-1]), groups * each
    y = _segmented(x, ids, count, reduce)
    present = math.unsorted_segment_sum(array.ones_like(x), ids, count)
    start: Any = {"prod": 1.0, "max": float("-inf"), "min": float("inf"), "mean": float("nan")}.get(reduce, 0.0)
    none = tensor(start if initial is None else initial, op.dtype)
    if initial is not None:
        if reduce == "sum":
            y = y + none
        elif reduce == "prod":
            y = y * none
        elif reduce == "mean":
            y = y + none / math.maximum(present, tensor(1, op.dtype))
        else:
            y = (math.maximum if reduce == "max" else math.minimum)(y, none)
    y = array.where(present > tensor(0, op.dtype), y, none)
    return array.reshape(y, [*dims[:axis], each, *dims[axis + 1 :]])
