"""Reductions made of others: variance, standard deviation, logsumexp, scaling to length one.

Lives here: reduce_logsumexp, reduce_variance, reduce_std, l2_normalize.  Not here: the operators (reduction.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import array, dispatch, math
from .arithmetic import _conj as conj_of_complex
from .reduction import Max, Mean, Sum, reduced

if TYPE_CHECKING:
    from ..tensor import Tensor


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow: the maximum is taken out first. Of no elements, minus infinity.

    input_tensor: floating.
    """
    x = dispatch.to_tensor(input_tensor)
    peak = array.stop_gradient(reduced(Max, x, axis, keepdims=True))
    peak = array.where(math.is_finite(peak), peak, array.zeros_like(peak))
    total = math.log(reduced(Sum, math.exp(x - peak), axis, keepdims))
    if not keepdims:
        peak = array.reshape(peak, array.shape_op(total))
    return array.identity(total + peak, name=name)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the variance over axes: the mean squared distance from the mean, real for complex numbers.

    raises TypeError for integers
    """
    x = dispatch.to_tensor(input_tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
    distance = x - reduced(Mean, x, axis, keepdims=True)
    squared = math.real(distance * conj_of_complex(distance)) if x.dtype.is_complex else distance * distance
    return reduced(Mean, squared, axis, keepdims, name)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Square root of reduce_variance, which see."""
    return math.sqrt(reduce_variance(input_tensor, axis, keepdims), name=name)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """Scale to unit L2 norm along axes: x / sqrt(max(sum(|x|^2), epsilon))."""
    x = dispatch.to_tensor(x)
    squared = math.real(x * conj_of_complex(x)) if x.dtype.is_complex else x * x
    inverse = math.rsqrt(math.maximum(reduced(Sum, squared, axis, keepdims=True), epsilon))
    return array.identity(x * array.cast(inverse, x.dtype), name=name)
