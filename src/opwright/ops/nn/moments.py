"""Moments of tensors, and batch normalization by given statistics.

Lives here: moments, weighted_moments, sufficient_statistics, normalize_moments, batch_normalization.
Not here: batch normalization in one operator (normalization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32
from .. import dispatch
from ..array import cast, gather, ones_like, rank
from ..array.run_time_axes import as_axes
from ..array.shape_operators import shape_op
from ..inference import is_static, static_axes
from ..math import divide_no_nan, reduce_mean, reduce_prod, reduce_sum, rsqrt, square, squared_difference
from ..windows import wide_dtype

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
    """Compute mean and variance from the results of sufficient_statistics."""
    counts, mean_ss, variance_ss = (dispatch.to_tensor(t) for t in (counts, mean_ss, variance_ss))
    shifted = mean_ss / counts
    mean = shifted if shift is None else shifted + shift
    return mean, variance_ss / counts - square(shifted)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """Normalize x by given statistics, which broadcast with it. offset, scale: may be None.

    .. math:: y = scale \\frac{x - mean}{\\sqrt{variance + variance\\_epsilon}} + offset

    For 16-bit x, wider statistics and parameters are combined in float32, then rounded to the dtype of x.
    """
    x = dispatch.to_tensor(x)
    dtype = x.dtype
    if dtype.size == 2 and any(getattr(v, "dtype", dtype) != dtype for v in (mean, variance, offset, scale)):
        dtype = float32
    mean, variance = (cast(m, dtype) for m in (mean, variance))
    inverse = rsqrt(variance + variance_epsilon)
    if scale is not None:
        inverse = inverse * cast(scale, dtype)
    base = -mean * inverse if offset is None else cast(offset, dtype) - mean * inverse
    result: Tensor = x * cast(inverse, x.dtype) + cast(base, x.dtype)
    return result


def batch_norm_with_global_normalization(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """Compute batch_normalization, with its argument names of TensorFlow 1."""
    return batch_normalization(
        input, mean, variance, beta, gamma if scale_after_normalization else None, variance_epsilon, name
    )
