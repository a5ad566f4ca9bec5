"""Functions of one and two elements that frameworks name and the catalogue composes of its operators.

Lives here: their formulas, on tensors of one floating dtype (a few on complex numbers, too), for keras.ops and for the
importers of other frameworks.
Not here: operators (math/, nn/), promotion of dtypes (nn/keras_ops/promotion.py), activations (nn/activations.py),
functions whose NaN policy is one framework's own.
"""

from __future__ import annotations

import math as numbers
from typing import TYPE_CHECKING, Any

from ..core.dtypes import float32
from . import array, dispatch, math

if TYPE_CHECKING:
    from .tensor import Tensor


def exp2(x: Any) -> Tensor:
    """Compute powers of two; those of integers are exact."""
    return math.exp(x * numbers.log(2)) if x.dtype.is_complex else math.pow(_constant(2, x), x)


def log2(x: Any) -> Tensor:
    """Compute logarithms to the base 2."""
    return math.log(x) / numbers.log(2)


def log10(x: Any) -> Tensor:
    """Compute logarithms to the base 10."""
    return math.log(x) / numbers.log(10)


def cbrt(x: Any) -> Tensor:
    """Compute real cube roots, of 16-bit floats in float32."""
    wide = array.cast(x, float32) if x.dtype.size < 4 else x
    return array.cast(math.sign(wide) * math.pow(math.abs(wide), _constant(1 / 3, wide)), x.dtype)


def hypot(x: Any, y: Any) -> Tensor:
    r"""Compute :math:`\sqrt{x^2 + y^2}` without overflow: the larger operand is the scale."""
    a, b = math.abs(x), math.abs(y)
    large = math.maximum(a, b)
    root = large * math.sqrt(math.square(math.divide_no_nan(math.minimum(a, b), large)) + 1.0)
    return array.where(math.logical_or(math.is_inf(a), math.is_inf(b)), _constant(numbers.inf, x), root)


def logaddexp(x: Any, y: Any, *, halves: bool = False) -> Tensor:
    r"""Compute :math:`\log(e^x + e^y)` without overflow.

    halves: the gradient at finite equal operands is a half for each, as PyTorch has it; else x has all of it, as in
    TensorFlow and Keras
    """
    difference = x - y
    larger = math.maximum(x, y)
    if halves:
        larger = array.where(math.equal(difference, array.zeros_like(x)), x * 0.5 + y * 0.5, larger)
    return array.where(math.is_nan(difference), x + y, larger + math.log1p(math.exp(-math.abs(difference))))


def logaddexp2(x: Any, y: Any, *, halves: bool = False) -> Tensor:
    r"""Compute :math:`\log_2(2^x + 2^y)` without overflow. halves: as of `logaddexp`."""
    return logaddexp(x * numbers.log(2), y * numbers.log(2), halves=halves) / numbers.log(2)


def sinc(x: Any) -> Tensor:
    r"""Compute :math:`\sin(\pi x) / (\pi x)`, 1 at 0, where its derivative is 0."""
    angle = x * numbers.pi
    at_zero, one = math.equal(angle, array.zeros_like(angle)), array.ones_like(angle)
    return array.where(at_zero, one, math.sin(angle) / array.where(at_zero, one, angle))


def trunc(x: Any) -> Tensor:
    """Round towards zero."""
    return array.where(math.less(x, array.zeros_like(x)), math.ceil(x), math.floor(x))


def deg2rad(x: Any) -> Tensor:
    """Convert angles from degrees to radians."""
    y: Tensor = x * (numbers.pi / 180)
    return y


def rad2deg(x: Any) -> Tensor:
    """Convert angles from radians to degrees."""
    y: Tensor = x * (180 / numbers.pi)
    return y


def signbit(x: Any) -> Tensor:
    """Return whether the sign bit is set: of negative numbers and of -0."""
    bits = array.bitcast(x, {2: "int16", 4: "int32", 8: "int64"}[x.dtype.size])
    return math.less(bits, array.zeros_like(bits))


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities, the latter by the dtype's largest and smallest number unless given."""
    high, low = x.dtype.max if posinf is None else posinf, x.dtype.min if neginf is None else neginf
    y = array.where(math.is_nan(x), _constant(nan, x), x)
    for infinity, limit in ((numbers.inf, high), (-numbers.inf, low)):
        y = array.where(math.equal(x, _constant(infinity, x)), _constant(limit, x), y)
    return y


def _constant(number: Any, like: Any) -> Tensor:
    return dispatch.to_tensor(number, like.dtype)
