"""Reductions, scans, sorting.

Lives here: rules of ATen's sums, extremes, moments, cumulative sums, sorts. Not here: norms of layers
(normalization.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ....core.dtypes import bool as bool_
from ....core.dtypes import int64
from ....eager.tape import custom_gradient
from ....ops import array, math
from ....ops.array.indexing import gather_along_axis
from .elementwise import _truth as truth
from .table import AtenCall, aten, axes_of, rank_of, reshape_argument, sizes, tensor


def _reduce(*names: str) -> Callable[[Callable[..., Any]], None]:
    """Add a reduction with the arguments `dim` and `keepdim`. Its operand has the dtype of the result."""

    def add(function: Callable[..., Any]) -> None:
        def rule(op: AtenCall, x: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
            x = tensor(x, op.dtype)
            return function(x, axes_of(dim, rank_of(x)), keepdim)

        aten(*names)(rule)

    return add


_reduce("sum")(math.reduce_sum)
_reduce("mean")(math.reduce_mean)
_reduce("amax")(math.reduce_max)
_reduce("amin")(math.reduce_min)
_reduce("logsumexp", "special_logsumexp")(math.reduce_logsumexp)
_reduce("prod", "prod.dim_int")(math.reduce_prod)
_reduce("max")(math.reduce_max)
_reduce("min")(math.reduce_min)
_reduce("nansum")(lambda x, axes, keep: math.reduce_sum(array.where(math.is_nan(x), tensor(0, x.dtype), x), axes, keep))


@aten("any", "any.dim", "any.dims")
def any_(op: AtenCall, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return array.cast(math.reduce_any(truth(x), axes_of(dim, rank_of(x)), keepdim), op.dtype)


@aten("all", "all.dim", "all.dims")
def all_(op: AtenCall, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return array.cast(math.reduce_all(truth(x), axes_of(dim, rank_of(x)), keepdim), op.dtype)


@aten("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(op: AtenCall, x: Any, dim: Any = None) -> Any:
    return math.reduce_sum(array.cast(truth(x), int64), axes_of(dim, rank_of(x)))


def comparable(x: Any) -> Any:
    """Return a tensor that can be compared: of uint8 for truth values."""
    x = tensor(x)
    return array.cast(x, "uint8") if x.dtype is bool_ else x


def _position(x: Any, dim: int, best: Any, largest: bool) -> Any:
    """Return the index of the extreme along a dimension: of the first NaN if there is one, as PyTorch does."""
    position = best(x, axis=dim, output_type=int64)
    if not x.dtype.is_floating:
        return position
    missing = math.is_nan(x)
    return array.where(
        math.reduce_any(missing, [dim]),
        math.argmax(array.cast(missing, "int32"), axis=dim, output_type=int64),
        position,
    )


def _extreme(name: str, reduce: Any, best: Any) -> None:
    def rule(op: AtenCall, x: Any, dim: int, keepdim: bool = False) -> Any:
        x = tensor(x)
        if not rank_of(x):
            return x, array.zeros([], int64)
        dim %= rank_of(x)
        position = best(comparable(x), axis=dim, output_type=int64)
        values = array.cast(reduce(comparable(x), [dim], keepdim), op.dtype)
        return values, array.expand_dims(position, dim) if keepdim else position

    aten(f"{name}.dim")(rule)

    def argument(op: AtenCall, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        x = comparable(x)
        rank = rank_of(x)
        if dim is None or not rank:
            position = best(array.reshape(x, [-1]), axis=0, output_type=int64)
            return array.reshape(position, [1] * rank) if keepdim else position
        position = best(x, axis=dim % rank, output_type=int64)
        return array.expand_dims(position, dim % rank) if keepdim else position

    aten(f"arg{name}")(argument)


_extreme("max", math.reduce_max, math.argmax)
_extreme("min", math.reduce_min, math.argmin)


@aten("aminmax")
def aminmax(op: AtenCall, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    x = tensor(x)
    axes = axes_of(dim, rank_of(x))
    return math.reduce_min(x, axes, keepdim), math.reduce_max(x, axes, keepdim)


def moments(x: Any, axes: list[int], keepdim: bool, correction: float) -> tuple[Any, Any]:
    """Return variance, divided by the number of elements less the correction, and mean."""
    mean = math.reduce_mean(x, axes, True)
    away = x - mean
    squares = math.square(math.abs(away) if x.dtype.is_complex else away)
    dims = sizes(x)
    if builtins.all(dims[a] is not None for a in axes):
        count: Any = 1
        for a in axes:
            count *= dims[a]
        divisor: Any = tensor(float(max(count - correction, 0)), squares.dtype)
    else:
        count = math.reduce_prod(array.gather(array.shape(x), axes))
        divisor = array.cast(count, squares.dtype) - tensor(correction, squares.dtype)
    if correction:
        variance = math.reduce_sum(squares, axes, keepdim) / divisor
    else:
        variance = math.reduce_mean(squares, axes, keepdim)
    return variance, mean if keepdim else array.squeeze(mean, axes) if axes else mean


def _correction(unbiased: Any, correction: Any) -> float:
    return float(correction) if correction is not None else float(unbiased is not False)


def _of_variance(name: str, result: Callable[[Any, Any], Any]) -> None:
    def rule(
        op: AtenCall, x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        x = tensor(x)
        return result(*moments(x, axes_of(dim, rank_of(x)), keepdim, _correction(unbiased, correction)))

    aten(name)(rule)


def root(total: Any) -> Any:
    """Return a square root whose gradient is 0 where it is 0, as of norms and standard deviations in PyTorch."""

    def of_total(total: Any) -> Any:
        y = math.sqrt(total)
        return y, lambda dy: math.divide_no_nan(dy, 2.0 * y)

    return custom_gradient(of_total)(total)


_of_variance("var", lambda variance, mean: variance)
_of_variance("std", lambda variance, mean: root(variance))
_of_variance("var_mean", lambda variance, mean: (variance, mean))
_of_variance("std_mean", lambda variance, mean: (root(variance), mean))


@aten("linalg_vector_norm", "norm.ScalarOpt_dim", "norm.Scalar")
def vector_norm(op: AtenCall, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    x = tensor(x)
    x = math.abs(x) if x.dtype.is_complex else tensor(x, op.dtype)
    axes = axes_of(dim, rank_of(x))
    size = math.abs(x)
    order = 2.0 if ord is None else float(ord)
    if order == 2.0:
        return root(math.reduce_sum(math.square(x), axes, keepdim))
    if order == 1.0:
        return math.reduce_sum(size, axes, keepdim)
    if order in (float("inf"), float("-inf")):
        return (math.reduce_max if order > 0 else math.reduce_min)(size, axes, keepdim)
    if order == 0.0:
        return math.reduce_sum(array.cast(truth(x), op.dtype), axes, keepdim)
    total = math.reduce_sum(math.pow(size, tensor(order, op.dtype)), axes, keepdim)
    return math.pow(total, tensor(1.0 / order, op.dtype))


# ---- scans ------------------------------------------------------------------------------------------------------


@aten("cumsum")
def cumsum(op: AtenCall, x: Any, dim: int, **options: Any) -> Any:
    x = tensor(x, op.dtype)
    return math.cumsum(x, axis=dim % rank_of(x)) if rank_of(x) else x


@aten("cumprod")
def cumprod(op: AtenCall, x: Any, dim: int, **options: Any) -> Any:
    x = tensor(x, op.dtype)
    return math.cumprod(x, axis=dim % rank_of(x)) if rank_of(x) else x


@aten("logcumsumexp")
def logcumsumexp(op: AtenCall, x: Any, dim: int) -> Any:
    x = tensor(x)
    return math.cumulative_logsumexp(x, axis=dim % rank_of(x)) if rank_of(x) else x


# ---- sorting ----------------------------------------------------------------------------------------------------


def sorted_along(x: Any, dim: int, descending: bool) -> tuple[Any, Any]:
    """Return sorted values, NaN last or, descending, first, and their positions; equal ones stay in order."""
    x = tensor(x)
    rank = rank_of(x)
    if not rank:
        return x, array.zeros([], int64)
    dim %= rank
    order = math.argsort(comparable(x), axis=dim, direction="DESCENDING" if descending else "ASCENDING", stable=True)
    return gather_along_axis(x, order, dim), array.cast(order, int64)


@aten("sort")
def sort(op: AtenCall, x: Any, dim: int = -1, descending: bool = False, **options: Any) -> Any:
    return sorted_along(x, dim, descending)


@aten("sort.stable")
def sort_stable(op: AtenCall, x: Any, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    return sorted_along(x, dim, descending)


@aten("argsort", "argsort.stable")
def argsort(op: AtenCall, x: Any, dim: int = -1, descending: bool = False, **options: Any) -> Any:
    return sorted_along(x, dim, descending)[1]


@aten("topk")
def topk(op: AtenCall, x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    x = tensor(x)
    rank = rank_of(x)
    if not rank:
        return x, array.zeros([], int64)
    dim %= rank
    if largest and dim == rank - 1:
        values, indices = math.top_k(x, k)
        return values, array.cast(indices, int64)
    values, indices = sorted_along(x, dim, largest)
    part = (slice(None),) * dim + (slice(0, k),)
    return values[part], indices[part]


@aten("kthvalue")
def kthvalue(op: AtenCall, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, indices = sorted_along(x, dim, False)
    if not rank_of(values):
        return values, indices
    part = (slice(None),) * (dim % rank_of(values)) + (slice(k - 1, k),)
    values, indices = values[part], indices[part]
    return (values, indices) if keepdim else (array.squeeze(values, [dim]), array.squeeze(indices, [dim]))


@aten("bucketize")
def bucketize(op: AtenCall, x: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    return _search(op, boundaries, x, right)


@aten("searchsorted")
def searchsorted(
    op: AtenCall,
    boundaries: Any,
    x: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    if sorter is not None:
        boundaries = gather_along_axis(tensor(boundaries), tensor(sorter), rank_of(boundaries) - 1)
    return _search(op, boundaries, x, right or side == "right")


def _search(op: AtenCall, boundaries: Any, x: Any, right: bool) -> Any:
    """Return places in sorted rows: of all values in one row, or of each row of values in a row of its own."""
    x, boundaries = tensor(x), tensor(boundaries)
    values = array.reshape(x, [-1]) if rank_of(boundaries) == 1 else x
    if not builtins.all(sizes(boundaries)):
        return array.cast(array.zeros_like(x), op.dtype)
    places = array.searchsorted(boundaries, array.cast(values, boundaries.dtype), side="right" if right else "left")
    return array.cast(array.reshape(places, reshape_argument(op, op.shape)), op.dtype)
