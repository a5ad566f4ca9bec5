"""Order statistics, running extremes, histograms, distinct values.

Lives here: rules of ATen's medians, modes, cummax, histograms, unique. Not here: sorts (reductions.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import int32, int64
from ....ops import array, math
from ....ops.array.indexing import gather_along_axis
from .reductions import comparable, sorted_along
from .table import AtenCall, aten, dim_size, rank_of, sizes, tensor

# ---- running extremes -------------------------------------------------------------------------------------------


def _running(x: Any, dim: int, later: Any) -> tuple[Any, Any]:
    """Return running extremes and their positions: the last of equal ones, and NaN from the first one on.

    Doubling steps: after k of them each element knows the extreme of 2^k elements (Hillis and Steele, 1986).
    later: whether an element is taken rather than an earlier one
    """
    size = sizes(x)[dim]
    if size is None:
        raise ValueError("running extremes along a dimension of unknown size")
    shape = [1] * rank_of(x)
    shape[dim] = size
    place = tensor(np.arange(size).reshape(shape)) + array.cast(array.zeros_like(x), int64)
    before = (slice(None),) * dim
    step = 1
    while step < size:
        head, tail = (*before, slice(0, step)), (*before, slice(step, None))
        early = (*before, slice(0, size - step))
        taken = later(x[early], x[tail])
        values = array.where(taken, x[tail], x[early])
        places = array.where(taken, place[tail], place[early])
        x, place = array.concat([x[head], values], axis=dim), array.concat([place[head], places], axis=dim)
        step *= 2
    return x, place


def _cumulative(name: str, compare: Any) -> None:
    def rule(op: AtenCall, x: Any, dim: int) -> Any:
        x = tensor(x)
        if not rank_of(x):
            return x, array.zeros([], int64)
        keys = comparable(x)

        def later(a: Any, b: Any) -> Any:
            if not keys.dtype.is_floating:
                return compare(b, a)
            return math.logical_or(math.is_nan(b), math.logical_and(math.logical_not(math.is_nan(a)), compare(b, a)))

        values, places = _running(keys, dim % rank_of(x), later)
        return array.cast(values, op.dtype), places

    aten(name)(rule)


_cumulative("cummax", math.greater_equal)
_cumulative("cummin", math.less_equal)


# ---- statistics of order ----------------------------------------------------------------------------------------


@aten("mode")
def mode(op: AtenCall, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the most frequent element, of several the least, and the last position of it."""
    x = tensor(x)
    if not rank_of(x):
        return x, array.zeros([], int64)
    dim %= rank_of(x)
    values, places = sorted_along(x, dim, False)
    size = sizes(x)[dim]
    if size is None:
        raise ValueError("the mode of a dimension of unknown size")
    keys = comparable(values)
    before = (slice(None),) * dim
    new = math.not_equal(keys[(*before, slice(1, None))], keys[(*before, slice(0, -1))])
    shape = [1] * rank_of(x)
    shape[dim] = size
    place = tensor(np.arange(size).reshape(shape))
    starts = array.concat(
        [
            array.cast(array.zeros_like(keys[(*before, slice(0, 1))]), int64),
            array.where(new, place[(*before, slice(1, None))], tensor(0, int64)),
        ],
        axis=dim,
    )
    starts, _ = _running(starts, dim, lambda a, b: b >= a)
    best = array.expand_dims(math.argmax(place - starts, axis=dim, output_type=int64), dim)
    values, places = gather_along_axis(values, best, dim), gather_along_axis(places, best, dim)
    return (values, places) if keepdim else (array.squeeze(values, [dim]), array.squeeze(places, [dim]))


def _lower_median(x: Any, dim: int, ignore_nan: bool) -> tuple[Any, Any]:
    """Return the lower median along a dimension, which is kept, and its position."""
    values, places = sorted_along(x, dim, False)
    size = sizes(x)[dim]
    if x.dtype.is_floating:
        missing = math.is_nan(x)
        present = math.reduce_sum(array.cast(math.logical_not(missing), int64), [dim], True)
        middle = math.maximum((present - tensor(1, int64)) // tensor(2, int64), tensor(0, int64))
        if not ignore_nan:
            first = array.expand_dims(math.argmax(array.cast(missing, int32), axis=dim, output_type=int64), dim)
            some = math.reduce_any(missing, [dim], True)
            value = array.where(some, tensor(float("nan"), x.dtype), gather_along_axis(values, middle, dim))
            return value, array.where(some, first, gather_along_axis(places, middle, dim))
        return gather_along_axis(values, middle, dim), gather_along_axis(places, middle, dim)
    if size is None:
        raise ValueError("the median of a dimension of unknown size")
    part = (slice(None),) * dim + (slice((size - 1) // 2, (size - 1) // 2 + 1),)
    return values[part], places[part]


def _median(name: str, ignore_nan: bool) -> None:
    def along(op: AtenCall, x: Any, dim: int, keepdim: bool = False) -> Any:
        x = tensor(x)
        if not rank_of(x):
            return x, array.zeros([], int64)
        dim %= rank_of(x)
        results = _lower_median(x, dim, ignore_nan)
        return results if keepdim else tuple(array.squeeze(r, [dim]) for r in results)

    def of_all(op: AtenCall, x: Any) -> Any:
        return array.reshape(_lower_median(array.reshape(tensor(x), [-1]), 0, ignore_nan)[0], [])

    aten(f"{name}.dim")(along)
    aten(name)(of_all)


_median("median", False)
_median("nanmedian", True)


# ---- histograms -------------------------------------------------------------------------------------------------


def _counted(bins: Any, count: int, weights: Any) -> Any:
    """Return the sums of the weights of each bin; positions outside have none."""
    inside = math.logical_and(bins >= tensor(0, bins.dtype), bins < tensor(count, bins.dtype))
    return math.unsorted_segment_sum(weights, array.where(inside, bins, tensor(-1, bins.dtype)), count)


@aten("histc")
def histc(op: AtenCall, x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    x = array.reshape(tensor(x, op.dtype), [-1])
    low, high = tensor(float(min), op.dtype), tensor(float(max), op.dtype)
    if min == max:
        if not sizes(x)[0]:
            return array.zeros([bins], op.dtype)
        low, high = math.reduce_min(x), math.reduce_max(x)
        equal = math.equal(low, high)
        one = tensor(1, op.dtype)
        low, high = array.where(equal, low - one, low), array.where(equal, high + one, high)
    place = array.cast(math.floor((x - low) / (high - low) * tensor(float(bins), op.dtype)), int32)
    place = array.where(math.equal(x, high), tensor(bins - 1, int32), place)
    inside = math.logical_and(x >= low, x <= high)
    return _counted(array.where(inside, place, tensor(-1, int32)), bins, array.ones_like(x))


def _edges(op: AtenCall, x: Any, bins: int, limits: Sequence[float] | None) -> Any:
    """Return bins + 1 edges between limits, or the extremes of a vector."""
    if limits is not None:
        low, high = (tensor(float(v), x.dtype) for v in limits)
    elif sizes(x)[0] == 0:
        low, high = tensor(0, x.dtype), tensor(1, x.dtype)
    else:
        low, high = math.reduce_min(x), math.reduce_max(x)
    same, half = math.equal(low, high), tensor(0.5, x.dtype)
    low, high = array.where(same, low - half, low), array.where(same, high + half, high)
    step = (high - low) / tensor(float(bins), x.dtype)
    number = np.arange(bins + 1)  # from both ends, as linspace has it: the last edge is the limit itself
    ups, downs = (tensor(v.astype(x.dtype.np)) for v in (number, bins - number))
    return array.where(tensor(number < (bins + 1) // 2), low + step * ups, high - step * downs)


def _histogram(op: AtenCall, x: Any, edges: list[Any], weight: Any, density: bool) -> Any:
    """Return the sums of weights of points [..., n] in the boxes between edges; the last edges belong to them."""
    points = array.reshape(x, [-1, len(edges)])
    counts = [int(sizes(e)[0] or 0) - 1 for e in edges]
    flat: Any = tensor(0, int32)
    outside: Any = tensor(np.zeros([], bool))
    for i, (e, n) in enumerate(zip(edges, counts)):
        column = points[:, i]
        place = array.searchsorted(e, column, side="right") - tensor(1, int32)
        place = array.where(math.equal(column, e[-1]), tensor(n - 1, int32), place)
        beyond = math.logical_or(place < tensor(0, int32), place >= tensor(n, int32))
        outside = math.logical_or(math.logical_or(outside, beyond), math.is_nan(column))
        flat = flat * tensor(n, int32) + place
    weights = array.ones_like(points[:, 0]) if weight is None else array.reshape(tensor(weight, x.dtype), [-1])
    y = _counted(array.where(outside, tensor(-1, int32), flat), int(np.prod(counts)), weights)
    y = array.reshape(y, counts)
    if density:
        y = y / math.reduce_sum(y)
        for i, e in enumerate(edges):
            shape = [1] * len(edges)
            shape[i] = -1
            y = y / array.reshape(e[1:] - e[:-1], shape)
    return y


@aten("histogram.bin_ct")
def histogram(
    op: AtenCall, x: Any, bins: int = 100, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    x = array.reshape(tensor(x), [-1])
    edges = _edges(op, x, bins, range)
    return _histogram(op, x, [edges], weight, density), edges


@aten("histogram.bins_tensor")
def histogram_edges(op: AtenCall, x: Any, bins: Any, weight: Any = None, density: bool = False) -> Any:
    return _histogram(op, tensor(x), [tensor(bins)], weight, density), tensor(bins)


@aten("_histogramdd_bin_edges")
def histogram_bin_edges(
    op: AtenCall, x: Any, bins: Sequence[int], range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    points = array.reshape(tensor(x), [-1, len(bins)])
    limits = [None] * len(bins) if range is None else [range[2 * i : 2 * i + 2] for i in np.arange(len(bins))]
    return [_edges(op, points[:, i], b, limits[i]) for i, b in enumerate(bins)]


@aten("_histogramdd_from_bin_cts")
def histogram_counts(
    op: AtenCall, x: Any, bins: Sequence[int], range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    return _histogram(op, tensor(x), histogram_bin_edges(op, x, bins, range), weight, density)


@aten("_histogramdd_from_bin_tensors")
def histogram_tensors(op: AtenCall, x: Any, bins: Sequence[Any], weight: Any = None, density: bool = False) -> Any:
    return _histogram(op, tensor(x), [tensor(b) for b in bins], weight, density)


# ---- distinct values --------------------------------------------------------------------------------------------


@aten("_unique2", "_unique")
def unique(op: AtenCall, x: Any, *options: Any, **named: Any) -> Any:
    """Return sorted distinct values, the place of each element among them, how often each occurs."""
    x = tensor(x)
    flat = math.sort(comparable(array.reshape(x, [-1])))
    values, _, counts = array.unique_with_counts(flat, int64)
    places = array.searchsorted(values, array.reshape(comparable(x), [-1]), out_type=int64)
    return array.cast(values, op.dtype), array.reshape(places, array.shape(x)), counts


@aten("unique_dim")
def unique_dim(op: AtenCall, x: Any, dim: int, *options: Any, **named: Any) -> Any:
    """Return sorted distinct slices along a dimension, the place of each slice among them, how often each occurs."""
    x = tensor(x)
    order = _first(dim, rank_of(x))
    rows = array.transpose(x, order)
    if None in sizes(rows)[1:]:
        raise ValueError("unique slices of unknown size")
    keys = array.reshape(comparable(rows), [dim_size(rows, 0), int(np.prod(sizes(rows)[1:]))])  # type: ignore[arg-type]
    at = array.range(array.shape(keys)[0])
    for i in reversed(range(int(sizes(keys)[1] or 0))):  # stable sorts, the first key last
        at = array.gather(at, math.argsort(array.gather(keys[:, i], at), stable=True))
    values, runs, counts = _runs(array.gather(rows, at))
    return array.transpose(values, np.argsort(order).tolist()), array.gather(runs, math.argsort(at)), counts


def _first(dim: int, rank: int) -> list[int]:
    """Return the order of axes with one of them first."""
    return [dim % rank, *(i for i in range(rank) if i != dim % rank)]


def _runs(rows: Any) -> tuple[Any, Any, Any]:
    """Return the first of each run of equal rows, the run of each, and the lengths of runs."""
    if sizes(rows)[0] == 0:
        first: Any = array.zeros([0], "bool")
    else:
        changed = math.not_equal(rows[1:], rows[:-1])
        if rank_of(rows) > 1:
            changed = math.reduce_any(changed, list(range(1, rank_of(rows))))
        first = array.concat([array.ones([1], "bool"), changed], axis=0)
    runs = math.cumsum(array.cast(first, int64)) - tensor(1, int64)
    values = array.boolean_mask(rows, first)
    return values, runs, math.unsorted_segment_sum(array.ones_like(runs), runs, array.shape(values)[0])


@aten("unique_consecutive")
def unique_consecutive(
    op: AtenCall, x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the first of each run of equal elements or slices, the run of each, and the lengths of runs."""
    x = tensor(x)
    if dim is None or not rank_of(x):
        values, runs, counts = _runs(array.reshape(x, [-1]))
        return values, array.reshape(runs, array.shape(x)), counts
    order = _first(dim, rank_of(x))
    values, runs, counts = _runs(array.transpose(x, order))
    return array.transpose(values, np.argsort(order).tolist()), runs, counts
