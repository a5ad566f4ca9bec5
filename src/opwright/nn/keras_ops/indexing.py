"""Elements chosen by index, by order or by value in `keras.ops`.

Lives here: takes, scatters, sorts, searches, counts of values.  Not here: shapes (arrays.py).
"""

from __future__ import annotations

import builtins
import math as math_
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import int32, int64
from ...ops import array, dispatch, math
from ...ops.array.indexing import gather_along_axis
from ...ops.shape_inference import axis_in
from . import arrays
from .creation import linspace
from .promotion import as_boolean, as_floating, as_tensor, convert, promote, rank_of

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def get_item(x: Any, key: Any) -> Tensor:
    """Return x[key]."""
    return dispatch.to_tensor(x)[key]


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """Return x1 where a condition holds, else x2; without both, the indices where it holds, as `nonzero`.

    raises ValueError for one of x1 and x2 alone
    """
    if (x1 is None) != (x2 is None):
        raise ValueError("`x1` and `x2` either both should be `None` or both should have non-None value.")
    if x1 is None:
        return nonzero(condition)
    a, b = promote(x1, x2)
    return array.where(as_boolean(condition), a, b)


def nonzero(x: Any) -> tuple[Tensor, ...]:
    """Return the int32 indices of elements that differ from 0, a vector for each axis."""
    places = array.cast(array.where(as_boolean(x)), "int32")
    return tuple(array.unstack(places, dispatch.to_tensor(x).shape.rank, axis=1))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Return elements of the choice of the first condition that holds, else the default."""
    *choices, result = promote(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices))):
        result = array.where(as_boolean(condition), choice, result)
    return result


def _wrapped(indices: Any, size: Any) -> Tensor:
    """Return indices from the end as indices from the start."""
    i = dispatch.to_tensor(indices)
    i = i if i.dtype.is_integer and i.dtype.size >= 4 else array.cast(i, "int32")
    return array.where(math.less(i, convert(0, i.dtype)), i + convert(size, i.dtype), i)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Return slices along an axis by indices, negative ones from the end; axis None: elements of the flat tensor."""
    x = dispatch.to_tensor(x)
    if axis is None:
        x, axis = array.reshape(x, [-1]), 0
    return array.gather(x, _wrapped(indices, array.shape(x)[axis]), axis=axis)


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Return elements by indices along an axis, of the shape of indices but for broadcast axes."""
    x, indices = dispatch.to_tensor(x), dispatch.to_tensor(indices)
    if axis is None:
        return take(x, array.reshape(indices, [-1]))
    axis = axis_in(axis, rank_of(x))
    indices = _wrapped(indices, array.shape(x)[axis])
    before, after = (
        array.broadcast_dynamic_shape(array.shape(x)[part], array.shape(indices)[part])
        for part in (builtins.slice(axis), builtins.slice(axis + 1, None))
    )
    x, indices = (
        array.broadcast_to(each, array.concat([before, array.shape(each)[axis : axis + 1], after], 0))
        for each in (x, indices)
    )
    return gather_along_axis(x, indices, axis)


def slice(inputs: Any, start_indices: Any, shape: Any) -> Tensor:
    """Return the part of a shape that begins at indices."""
    return array.slice(dispatch.to_tensor(inputs), start_indices, shape)


def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Tensor:
    """Return inputs with the part that begins at indices replaced by updates."""
    x, y = dispatch.to_tensor(inputs), dispatch.to_tensor(updates)
    axes = [array.range(n) for n in array.unstack(array.shape(y), y.shape.rank)]
    grid = array.stack(array.meshgrid(*axes, indexing="ij"), axis=-1)
    return array.tensor_scatter_nd_update(
        x, grid + convert(array.stack(list(start_indices)), "int32"), convert(y, x.dtype)
    )


def scatter(indices: Any, values: Any, shape: Any) -> Tensor:
    """Add values at indices [..., axes] to zeros of a shape."""
    return array.scatter_nd(_integers(indices), dispatch.to_tensor(values), shape)


def _integers(indices: Any) -> Any:
    """Return indices as integers, which those of another dtype become."""
    i = dispatch.to_tensor(indices)
    return i if i.dtype in (int32, int64) else array.cast(i, int32)


def _factors(x: Any, indices: Any, updates: Any) -> Tensor:
    """Return the product of the updates of each element of x, 1 where there is none."""
    sizes = array.shape(x)
    depth = indices.shape[-1]
    strides = math.cumprod(sizes[:depth], 0, exclusive=True, reverse=True)
    segments = math.reduce_sum(array.cast(indices, int32) * strides, axis=-1)
    rows = array.reshape(updates, array.concat([[-1], sizes[depth:]], 0))
    count = math.reduce_prod(sizes[:depth])
    products = math.unsorted_segment_prod(rows, array.reshape(segments, [-1]), count)
    factors: Tensor = array.reshape(products, sizes)
    return factors


_UPDATES = {
    None: array.tensor_scatter_nd_update,
    "add": array.tensor_scatter_nd_add,
    "max": array.tensor_scatter_nd_max,
    "min": array.tensor_scatter_nd_min,
}


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Tensor:
    """Return inputs with elements at indices replaced, or combined with updates.

    reduction: None, "add", "max", "min" or "mul"
    raises ValueError for another one
    """
    x = dispatch.to_tensor(inputs)
    y = convert(updates, x.dtype)
    indices = _integers(indices)
    if reduction == "mul":
        return x * _factors(x, indices, y)
    if reduction not in _UPDATES:
        raise ValueError(f"Unsupported reduction: {reduction!r}; it is None, 'add', 'max', 'min' or 'mul'")
    return _UPDATES[reduction](x, indices, y)


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Convert indices of the flat tensor to indices of each axis."""
    i = _wrapped(indices, math_.prod(shape))
    flat = array.unravel_index(array.reshape(i, [-1]), convert(list(shape), i.dtype))
    return tuple(array.reshape(v, array.shape(i)) for v in array.unstack(flat, len(shape)))


# ---- order --------------------------------------------------------------------------------------------------------


def _sortable(x: Any) -> Tensor:
    x = dispatch.to_tensor(x)
    return array.cast(x, "uint8") if x.dtype.name == "bool" else as_tensor(x)


def sort(x: Any, axis: int | None = -1) -> Tensor:
    """Sort along an axis from least to greatest, None for the flat tensor."""
    y = _sortable(x)
    y = math.sort(array.reshape(y, [-1]) if axis is None else y, axis=0 if axis is None else axis)
    return convert(y, dispatch.to_tensor(x).dtype)


def argsort(x: Any, axis: int | None = -1) -> Tensor:
    """Return int32 indices that sort along an axis, equal elements in their order."""
    y = _sortable(x)
    y = array.reshape(y, [-1]) if axis is None else y
    return array.cast(math.argsort(y, axis=0 if axis is None else axis, stable=True), "int32")


def argpartition(x: Any, kth: int, axis: int = -1) -> Tensor:
    """Return int32 indices by which the element at `kth` is in its sorted place."""
    return argsort(x, axis)


def top_k(x: Any, k: int, sorted: bool = True) -> Any:
    """Return the k greatest elements along the last axis, and their int32 indices."""
    return math.top_k(dispatch.to_tensor(x), k, sorted)


def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Return whether the prediction of each target class is among the k greatest of its row."""
    return math.in_top_k(dispatch.to_tensor(targets), dispatch.to_tensor(predictions), k)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    """Return the int32 places of values in a sorted vector; side: before ("left") or after equal elements."""
    a, v = promote(sorted_sequence, values)
    if a.shape.rank != 1:
        raise ValueError(f"`searchsorted` only supports 1-D sorted sequences. Received: shape={a.shape}")
    flat = array.searchsorted(a, array.reshape(v, [-1]), side)
    return array.reshape(array.cast(flat, "int32"), array.shape(v))


def digitize(x: Any, bins: Any) -> Tensor:
    """Return the int32 index of each element's bin; bins: increasing limits, each the first of its bin."""
    return searchsorted(bins, x, "right")


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return whether elements of x1 are among those of x2, or are not if `invert`."""
    a, b = promote(x1, x2)
    among = math.reduce_any(math.equal(array.expand_dims(a, -1), array.reshape(b, [-1])), -1)
    return math.logical_not(among) if invert else among


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Return the distinct elements in order, or the distinct slices along an axis.

    return_index: also the first index of each; return_inverse: also, for each element, the index of its value;
    return_counts: also how often each occurs. size: the number of results, cut or filled with `fill_value`, by default
    the least element
    """
    x = dispatch.to_tensor(x)
    rows = array.reshape(x, [-1, 1]) if axis is None else arrays.moveaxis(x, axis, 0)
    shape = array.shape(rows)
    flat = array.reshape(rows, array.stack([shape[0], -1]))
    order = _lexicographic(flat)
    ordered = array.gather(flat, order)
    differs = math.reduce_any(math.not_equal(ordered[1:], ordered[:-1]), -1)
    first = array.concat([array.ones([math.minimum(shape[0], 1)], "bool"), differs], 0)
    starts = array.cast(array.boolean_mask(array.range(shape[0]), first), "int32")
    values = array.gather(ordered, starts)
    index = array.gather(order, starts)
    group = math.cumsum(array.cast(first, "int32")) - 1
    inverse = array.scatter_nd(order[:, None], group, shape[:1])
    counts = math.unsorted_segment_sum(array.ones_like(group), group, array.shape(starts)[0])
    if size is not None:
        filler = values[:1] if fill_value is None else array.zeros_like(values[:1]) + convert(fill_value, x.dtype)
        index, counts = _sized(index, index[:1], size), _sized(counts, array.zeros_like(counts[:1]), size)
        values = _sized(values, filler, size)
    values = (
        array.reshape(values, [-1])
        if axis is None
        else arrays.moveaxis(array.reshape(values, array.concat([[-1], shape[1:]], 0)), 0, axis)
    )
    inverse = array.reshape(inverse, array.shape(x)) if axis is None else inverse
    chosen = [y for y, wanted in ((index, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *chosen) if chosen else values


def _sized(x: Tensor, filler: Tensor, size: int) -> Tensor:
    x = x[:size]
    more = array.reshape(size - array.shape(x)[:1], [])
    return array.concat([x, array.repeat(filler, more, 0)], 0)


def _lexicographic(rows: Tensor) -> Tensor:
    """Return indices that sort rows by their first element, then by their second, ..."""
    columns = rows.shape[1]
    if columns is None:
        raise ValueError("Slices of a size that is known only at run time cannot be ordered")
    order = array.range(array.shape(rows)[0])
    for column in reversed(range(columns)):
        key = _sortable(array.gather(rows[:, column], order))
        order = array.gather(order, math.argsort(key, stable=True))
    return array.cast(order, "int32")


# ---- counts -------------------------------------------------------------------------------------------------------


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """Count each integer, or sum its weights, in rows of the last axis. Raises ValueError for `sparse`."""
    if sparse:
        raise ValueError("bincount gives dense tensors alone. Received: sparse=True")
    x = dispatch.to_tensor(x)
    x = array.cast(x, "int32")
    count = math.maximum(math.reduce_max(x) + 1, minlength)
    one = array.one_hot(x, count, dtype="int32" if weights is None else _summable(weights).dtype)
    if weights is not None:
        one *= array.expand_dims(_summable(weights), -1)
    return math.reduce_sum(one, -2)


def _summable(weights: Any) -> Tensor:
    """Return weights in a dtype of at least 32 bits."""
    w = dispatch.to_tensor(weights)
    return w if w.dtype.is_floating else array.cast(w, "int32")


def histogram(x: Any, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Tensor, Tensor]:
    """Count elements in equal bins between the limits of a range, by default of x; return counts and edges.

    raises ValueError for a number of bins below 1, or a range whose end is before its start
    """
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"Argument `bins` should be a non-negative integer. Received: bins={bins}")
    if range is not None and range[1] < range[0]:
        raise ValueError(f"Argument `range` must have its start before its end. Received: range={range}")
    x = array.reshape(as_floating(x), [-1])
    low = math.reduce_min(x) if range is None else convert(float(range[0]), x.dtype)
    high = math.reduce_max(x) if range is None else convert(float(range[1]), x.dtype)
    same = math.equal(low, high)
    low, high = array.where(same, low - 0.5, low), array.where(same, high + 0.5, high)
    edges = linspace(low, high, bins + 1)
    inside = math.logical_and(x >= low, x <= high)
    place = math.minimum(searchsorted(edges, x, "right") - 1, convert(bins - 1, "int32"))
    place = array.where(inside, place, array.zeros_like(place) + bins)
    counts = math.unsorted_segment_sum(array.ones_like(x, "int32"), place, bins + 1)
    return array.cast(counts[:-1], edges.dtype), edges
