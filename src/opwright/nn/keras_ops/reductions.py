"""Reductions of `keras.ops`: sums, extremes, statistics, cumulative sums, with and without NaN.

Lives here: functions with `axis` and `keepdims`.  Not here: order statistics by sorting alone (indexing.py).

axis: None for all axes, an integer, or several; keepdims: keep reduced axes with size 1. Integers are averaged as
`backend.floatx`, summed and multiplied in at least 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, math
from ...ops import nn as ops_nn
from .elementwise import isclose
from .promotion import as_boolean, as_floating, as_tensor, convert, promote, rank_of, sum_dtype

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _axis(axis: Any) -> Any:
    return list(axis) if isinstance(axis, tuple) else axis


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Sum elements over axes; integers of fewer than 32 bits and Booleans in 32."""
    x = dispatch.to_tensor(x)
    return math.reduce_sum(convert(x, sum_dtype(x.dtype)), _axis(axis), keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """Multiply elements over axes; integers of fewer than 32 bits and Booleans in 32."""
    x = dispatch.to_tensor(x)
    return math.reduce_prod(convert(x, dtype or sum_dtype(x.dtype)), _axis(axis), keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Average elements over axes; integers as `backend.floatx`."""
    return math.reduce_mean(as_floating(x), _axis(axis), keepdims)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute variances, divided by the number of elements."""
    return math.reduce_variance(as_floating(x), _axis(axis), keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute standard deviations, the square roots of variances."""
    return math.reduce_std(as_floating(x), _axis(axis), keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements over axes differ from 0."""
    return math.reduce_all(as_boolean(x), _axis(axis), keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether some element over axes differs from 0."""
    return math.reduce_any(as_boolean(x), _axis(axis), keepdims)


def _extreme(x: Any, axis: Any, keepdims: bool, initial: Any, reduce: Any, combine: Any) -> Tensor:
    """Reduce by maximum or minimum; Booleans through int32. initial: an element more."""
    x = dispatch.to_tensor(x)
    if x.dtype.name == "bool":
        return array.cast(_extreme(array.cast(x, "int32"), axis, keepdims, initial, reduce, combine), "bool")
    if initial is None:
        if x.shape.num_elements() == 0:
            raise ValueError("Cannot compute the extreme of an empty tensor without `initial`.")
        return as_tensor(reduce(x, _axis(axis), keepdims))
    start = convert(initial, x.dtype)
    return as_tensor(combine(reduce(x, _axis(axis), keepdims), start))


def max(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """Compute the largest elements; initial: a lower bound of the result. Raises ValueError for no elements."""
    return _extreme(x, axis, keepdims, initial, math.reduce_max, math.maximum)


def min(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """Compute the smallest elements; initial: an upper bound of the result. Raises ValueError for no elements."""
    return _extreme(x, axis, keepdims, initial, math.reduce_min, math.minimum)


def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute the largest elements, as `max`."""
    return max(x, axis, keepdims)


def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute the smallest elements, as `min`."""
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute ranges: the largest element minus the smallest."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def _position(x: Any, axis: int | None, keepdims: bool, find: Callable[..., Tensor]) -> Tensor:
    """Return indices of extremes as int32; axis None: in the flat tensor."""
    x = dispatch.to_tensor(x)
    if x.dtype.name == "bool":
        x = array.cast(x, "int32")
    if axis is None:
        index = _position(array.reshape(x, [-1]), 0, False, find)
        return array.reshape(index, [1] * x.shape.rank) if keepdims else index
    index = find(x, axis, "int32")
    if x.dtype.is_floating:  # the first NaN, as in NumPy
        nan = math.is_nan(x)
        index = array.where(math.reduce_any(nan, axis), math.argmax(array.cast(nan, "uint8"), axis, "int32"), index)
    return array.expand_dims(index, axis) if keepdims else index


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return int32 indices of the largest elements; the first of equal ones."""
    return _position(x, axis, keepdims, math.argmax)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return int32 indices of the smallest elements; the first of equal ones."""
    return _position(x, axis, keepdims, math.argmin)


def count_nonzero(x: Any, axis: Any = None) -> Tensor:
    """Count elements that differ from 0, as int32."""
    return math.reduce_sum(array.cast(as_boolean(x), "int32"), _axis(axis))


def average(x: Any, axis: Any = None, weights: Any = None) -> Tensor:
    """Average elements by weights, of the shape of x, or of its size along one axis.

    raises ValueError for a vector of weights without an axis
    """
    if weights is None:
        return mean(x, axis)
    x, w = promote(x, weights, floating=True)
    if w.shape.rank == 1 and x.shape.rank != 1:
        if not isinstance(axis, int):
            raise ValueError(
                f"`weights` must have the same shape as `x` when `axis` is not a single axis. Received: axis={axis}, "
                f"weights.shape={tuple(w.shape)}, x.shape={tuple(x.shape)}"
            )
        shape = [1] * x.shape.rank
        shape[axis] = -1
        w = array.reshape(w, shape)
    w = array.broadcast_to(w, array.shape(x))
    return math.reduce_sum(x * w, _axis(axis)) / math.reduce_sum(w, _axis(axis))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    r"""Compute :math:`\log \sum e^x` over axes without overflow."""
    return math.reduce_logsumexp(as_floating(x), _axis(axis), keepdims)


def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """Compute means and variances over axes; half precision through float32, at most the greatest number of float16.

    raises NotImplementedError for `synchronized`: layers synchronize over workers (BatchNormalization)
    """
    if synchronized:
        raise NotImplementedError(
            "Argument synchronized=True: moments over workers are computed by layers.BatchNormalization"
            "(synchronized=True) within distribute.MultiWorker"
        )
    x = as_floating(x)
    wide = convert(x, "float32") if x.dtype.size < 4 else x
    m, v = ops_nn.moments(wide, _axis(axes), keepdims=keepdims)
    if x.dtype.name == "float16":
        v = math.minimum(v, x.dtype.max)
    return convert(m, x.dtype), convert(v, x.dtype)


def _cumulative(x: Any, axis: int | None, dtype: Any, accumulate: Callable[..., Tensor]) -> Tensor:
    x = dispatch.to_tensor(x)
    x = convert(x, dtype or ("int32" if x.dtype.name == "bool" else x.dtype))
    return accumulate(array.reshape(x, [-1]), 0) if axis is None else accumulate(x, axis)


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Compute cumulative sums along an axis, None for those of the flat tensor."""
    return _cumulative(x, axis, dtype, math.cumsum)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Compute cumulative products along an axis, None for those of the flat tensor."""
    return _cumulative(x, axis, dtype, math.cumprod)


# ---- without NaN --------------------------------------------------------------------------------------------------


def _without_nan(x: Any, value: float) -> Tensor:
    x = dispatch.to_tensor(x)
    if not x.dtype.is_floating:
        return as_tensor(x)
    return array.where(math.is_nan(x), convert(value, x.dtype), x)


def _numbers(x: Any, axis: Any, keepdims: bool) -> Tensor:
    """Count the elements that are not NaN, in the dtype of x."""
    x = as_floating(x)
    return math.reduce_sum(convert(math.logical_not(math.is_nan(x)), x.dtype), _axis(axis), keepdims)


def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Sum elements over axes, NaN as 0."""
    return sum(_without_nan(x, 0.0), axis, keepdims)


def nanprod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Multiply elements over axes, NaN as 1."""
    return prod(_without_nan(x, 1.0), axis, keepdims)


def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Average the elements over axes that are not NaN; NaN where all are."""
    return nansum(as_floating(x), axis, keepdims) / _numbers(x, axis, keepdims)


def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute variances of the elements that are not NaN."""
    x = as_floating(x)
    deviations = math.square(x - nanmean(x, axis, True))
    return nansum(deviations, axis, keepdims) / _numbers(x, axis, keepdims)


def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute standard deviations of the elements that are not NaN."""
    return math.sqrt(nanvar(x, axis, keepdims))


def _nan_extreme(x: Any, axis: Any, keepdims: bool, reduce: Callable[..., Tensor], bound: float) -> Tensor:
    x = dispatch.to_tensor(x)
    result = reduce(_without_nan(x, bound), axis, keepdims)
    if not x.dtype.is_floating:
        return result
    none = math.reduce_all(math.is_nan(x), _axis(axis), keepdims)
    return array.where(none, convert(float("nan"), x.dtype), result)


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute the largest elements but NaN; NaN where there is no other."""
    return _nan_extreme(x, axis, keepdims, max, float("-inf"))


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute the smallest elements but NaN; NaN where there is no other."""
    return _nan_extreme(x, axis, keepdims, min, float("inf"))


def _nan_position(x: Any, axis: int | None, keepdims: bool, find: Callable[..., Tensor], bound: float) -> Tensor:
    x = dispatch.to_tensor(x)
    index = find(_without_nan(x, bound), axis, keepdims)
    if not x.dtype.is_floating:
        return index
    return array.where(math.reduce_all(math.is_nan(x), axis, keepdims), convert(-1, "int32"), index)


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return int32 indices of the largest elements but NaN; -1 where there is no other."""
    return _nan_position(x, axis, keepdims, argmax, float("-inf"))


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return int32 indices of the smallest elements but NaN; -1 where there is no other."""
    return _nan_position(x, axis, keepdims, argmin, float("inf"))


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Compute cumulative sums along an axis, NaN as 0; None: of the flat tensor."""
    return cumsum(_without_nan(x, 0.0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Compute cumulative products along an axis, NaN as 1; None: of the flat tensor."""
    return cumprod(_without_nan(x, 1.0), axis, dtype)


# ---- quantiles ----------------------------------------------------------------------------------------------------

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _last(x: Tensor, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
    """Return x with the reduced axes as its last one, and the numbers of these axes."""
    rank = rank_of(x)
    axes = tuple(range(rank)) if axis is None else tuple(a % rank for a in ([axis] if isinstance(axis, int) else axis))
    rest = [a for a in range(rank) if a not in axes]
    sizes = array.shape(x)
    shape = array.concat([array.gather(sizes, rest or array.zeros([0], "int32")), [-1]], 0)
    return array.reshape(array.transpose(x, [*rest, *axes]), shape), axes


def _between(ordered: Tensor, positions: Tensor, method: str) -> Tensor:
    """Return elements at fractional positions [..., n] along the last axis of sorted rows [..., m]."""
    low = math.floor(positions)
    part = positions - low
    if method == "nearest":
        positions = math.round(positions)
    elif method != "linear":
        share = {"lower": 0.0, "higher": 1.0, "midpoint": 0.5}[method]
        part = array.where(math.equal(part, convert(0, part.dtype)), part, convert(share, part.dtype))
    rank = rank_of(ordered) - 1
    if method == "nearest":
        return array.gather(ordered, array.cast(positions, "int32"), axis=-1, batch_dims=rank)
    a = array.gather(ordered, array.cast(low, "int32"), axis=-1, batch_dims=rank)
    b = array.gather(ordered, array.cast(math.ceil(positions), "int32"), axis=-1, batch_dims=rank)
    part = convert(part, a.dtype)
    return array.where(math.equal(part, convert(0, part.dtype)), a, a + (b - a) * part)


def quantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Compute quantiles q in [0, 1]; the axes of q come first in the result.

    method: the value between two elements: "linear", "lower", "higher", "midpoint" or "nearest"
    raises ValueError for another method
    """
    return _quantile(x, q, axis, method, keepdims, ignore_nan=False)


def nanquantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Compute quantiles of the elements that are not NaN. Arguments: see `quantile`."""
    return _quantile(x, q, axis, method, keepdims, ignore_nan=True)


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, ignore_nan: bool) -> Tensor:
    if method not in _BETWEEN:
        raise ValueError(f"Argument `method` must be one of {', '.join(_BETWEEN)}. Received: method={method!r}")
    x = as_floating(x)
    rows, axes = _last(x, axis)
    nan = math.is_nan(rows)
    ordered = math.sort(array.where(nan, convert(float("inf"), rows.dtype), rows), axis=-1)
    total = array.cast(array.shape(rows)[-1], "float64")
    q = array.cast(dispatch.to_tensor(q), "float64")
    flat = array.reshape(q, [-1])
    if ignore_nan:
        count = math.reduce_sum(array.cast(math.logical_not(nan), "float64"), -1, True)
    else:
        count = array.zeros_like(math.reduce_sum(rows, -1, True), "float64") + total
    positions = math.maximum(count - 1, convert(0, "float64")) * flat
    values = _between(ordered, positions, method)
    invalid = math.equal(count, convert(0, "float64")) if ignore_nan else math.reduce_any(nan, -1, True)
    values = array.where(invalid, convert(float("nan"), values.dtype), values)
    if q.shape.rank:
        values = array.transpose(values, [rank_of(values) - 1, *range(rank_of(values) - 1)])
        if keepdims:
            for a in sorted(axes):
                values = array.expand_dims(values, a + 1)
        if q.shape.rank == 1:
            return values
        return array.reshape(values, array.concat([array.shape(q), array.shape(values)[1:]], 0))
    values = values[..., 0]
    if keepdims:
        for a in sorted(axes):
            values = array.expand_dims(values, a)
    return values


def percentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Compute percentiles q in [0, 100]. Arguments: see `quantile`."""
    return quantile(x, convert(q, "float64") / 100, axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Compute percentiles of the elements that are not NaN. Arguments: see `quantile`."""
    return nanquantile(x, convert(q, "float64") / 100, axis, method, keepdims)


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute medians, the means of the two middle elements of an even number."""
    return quantile(x, 0.5, axis, "linear", keepdims)


def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute medians of the elements that are not NaN."""
    return nanquantile(x, 0.5, axis, "linear", keepdims)


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether all elements are close. Arguments: see `isclose`."""
    return math.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))
