"""Moments of tensors: mean and variance over axes, weighted or from sums.

Not here: operators that normalize (normalization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import dispatch
from ..accumulation import wide_dtype
from ..array import cast, gather, ones_like, rank
from ..array.run_time_axes import as_axes
from ..array.shape_operators import shape_op
from ..math import divide_no_nan, reduce_mean, reduce_prod, reduce_sum, square, squared_difference
from ..shape_inference import is_static, static_axes
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..tensor import Tensor


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute mean and variance over `axes`, in float32 for 16-bit floats. shift: ignored, as in TensorFlow.

    .. math:: mean = \\frac{1}{n} \\sum x, \\quad variance = \\frac{1}{n} \\sum (x - mean)^2
    """
    x = dispatch.to_tensor(x)
    axes = static_axes(axes, "axes") if is_static(axes) else axes
    y = cast(x, wide_dtype(x.dtype))
    mean = reduce_mean(y, axis=axes, keepdims=True)
    variance = reduce_mean(squared_difference(y, mean), axis=axes, keepdims=True)
    if not keepdims:
        mean, variance = (reduce_sum(m, axis=axes) for m in (mean, variance))  # removes dimensions of size 1
    return cast(mean, x.dtype), cast(variance, x.dtype)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Compute weighted mean and variance over `axes`. frequency_weights: broadcast with x.

    .. math:: mean = \\frac{\\sum w x}{\\sum w}, \\quad variance = \\frac{\\sum w (x - mean)^2}{\\sum w}
    """
    x = dispatch.to_tensor(x)
    axes = static_axes(axes, "axes") if is_static(axes) else axes
    y = cast(x, wide_dtype(x.dtype))
    weights = dispatch.to_tensor(frequency_weights, None if hasattr(frequency_weights, "spec") else y.dtype)
    weights = cast(weights, y.dtype) * ones_like(y)
    total = reduce_sum(weights, axis=axes, keepdims=True)
    mean = divide_no_nan(reduce_sum(weights * y, axis=axes, keepdims=True), total)
    variance = divide_no_nan(reduce_sum(weights * squared_difference(y, mean), axis=axes, keepdims=True), total)
    if not keepdims:
        mean, variance = (reduce_sum(m, axis=axes) for m in (mean, variance))
    return cast(mean, x.dtype), cast(variance, x.dtype)


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Compute the arguments of normalize_moments: count, sums of x - shift and of (x - shift)^2 over `axes`, shift."""
    x = dispatch.to_tensor(x)
    axes = static_axes(axes, "axes") if is_static(axes) else axes
    sizes = shape_op(x)
    if is_static(axes):
        reduced = range(x.shape.rank or 0) if axes is None else axes
        count = cast(reduce_prod([sizes[a] for a in reduced]), x.dtype) if len(reduced) else cast(1, x.dtype)
    else:
        count = cast(reduce_prod(gather(sizes, as_axes(axes, rank(x)))), x.dtype)
    if shift is not None:
        shift = dispatch.to_tensor(shift, None if hasattr(shift, "spec") else x.dtype)
        shifted, squares = x - shift, squared_difference(x, shift)
    else:
        shifted, squares = x, square(x)
    return (
        count,
        reduce_sum(shifted, axis=axes, keepdims=keepdims),
        reduce_sum(squares, axis=axes, keepdims=keepdims),
        shift,
    )


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the results of `sufficient_statistics`.

    .. math:: mean = m / n + shift, \\quad variance = v / n - (m / n)^2

    counts n: the number of elements; mean_ss m, variance_ss v: sums of x - shift and of its square; shift: None for 0
    """
    counts, mean_ss, variance_ss = (dispatch.to_tensor(t) for t in (counts, mean_ss, variance_ss))
    shifted = mean_ss / counts
    mean = shifted if shift is None else shifted + shift
    return mean, variance_ss / counts - square(shifted)
