"""NumPy implementations of functions of the table that are not a ufunc, or faster than their formula.

Lives here: functions of arrays, in place where possible; `wide_erf` and `wide_erfc`, the error functions of float64,
with `polynomial` and `piecewise`, building blocks of such approximations.
Not here: formulas (formulas.py; tests compare both), ufuncs (table.py), vector code (numerics/).

out: an array for the result, which may be an operand.

Rational approximations are minimax fits from the cited paper; coefficients run from the highest power down. They apply
to every array that implements NumPy's protocols.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import formulas, numpy_namespace
from .formulas import CLAMPS, GELU_CUBIC, GELU_SLOPE, SELU_ALPHA, SELU_SCALE

Array = np.ndarray


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate a polynomial of at least two coefficients by Horner's rule, highest power first. x: an array, or a value
    of a kernel."""
    first, second, *others = coefficients
    total = x * first + second
    for c in others:
        total = total * x + c
    return total


def piecewise(x: Array, pieces: Sequence[tuple[Array, Callable[[Array], Array]]]) -> Array:
    """Evaluate each element by the first piece whose condition it meets; NaN if it meets none."""
    out = np.full_like(x, np.nan)
    left = np.full_like(x, True, dtype=np.bool_)
    for condition, function in pieces:
        chosen = left & condition
        if chosen.any():
            out[chosen] = function(x[chosen])
        left &= ~chosen
    return out


# ---- error function: W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969) ----

_ERF_TOP = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_ERF_BOTTOM = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_ERFC_TOP = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_ERFC_BOTTOM = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_TAIL_TOP = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_TAIL_BOTTOM = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


ERF_SMALL, ERFC_MIDDLE = 0.46875, 4.0
"""Up to which |x| erf, and up to which x > ERF_SMALL the first form of erfc, is computed."""
ERF_END, ERFC_END = 6.5, 30.0
"""Where erf is 1, and erfc 0."""


def erf_small(x: Any) -> Any:
    """Compute erf for |x| <= ERF_SMALL."""
    square = x * x
    return x * polynomial(square, _ERF_TOP) / polynomial(square, _ERF_BOTTOM)


def erfc_middle(x: Any) -> Any:
    """Compute erfc(x) exp(x^2) for ERF_SMALL < x <= ERFC_MIDDLE."""
    return polynomial(x, _ERFC_TOP) / polynomial(x, _ERFC_BOTTOM)


def erfc_far(x: Any) -> Any:
    """Compute erfc(x) exp(x^2) for x >= ERFC_MIDDLE."""
    inverse = 1 / (x * x)
    tail = inverse * polynomial(inverse, _TAIL_TOP) / polynomial(inverse, _TAIL_BOTTOM)
    return (1 / math.sqrt(math.pi) - tail) / x


def _exp_minus_square(x: Array) -> Array:
    """Compute exp(-x^2) without the rounding of x^2: x is split into a part with few bits and the rest."""
    high = np.trunc(x * 16) / 16
    result: Array = np.exp(-high * high) * np.exp(-(x - high) * (x + high))
    return result


def _erfc_large(x: Array) -> Array:
    """Compute erfc for x > ERF_SMALL."""
    bounded = np.minimum(x, ERFC_END)
    scaled = np.where(x <= ERFC_MIDDLE, erfc_middle(np.minimum(x, ERFC_MIDDLE)), erfc_far(x))
    result: Array = _exp_minus_square(bounded) * scaled
    return result


def wide_erf(x: Array) -> Array:
    """Compute 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    size = np.abs(x)
    return piecewise(
        x,
        [
            (size <= ERF_SMALL, erf_small),
            (size > ERF_SMALL, lambda x: np.copysign(1.0 - _erfc_large(np.minimum(np.abs(x), ERF_END)), x)),
        ],
    )


def wide_erfc(x: Array) -> Array:
    """Compute 1 - erf(x), to full relative accuracy."""
    return piecewise(
        x,
        [
            (np.abs(x) <= ERF_SMALL, lambda x: 1.0 - erf_small(x)),
            (x > 0, _erfc_large),
            (x < 0, lambda x: 2.0 - _erfc_large(-x)),
        ],
    )


@functools.cache
def _numbers(dtype: np.dtype) -> tuple[Any, Any]:
    """Return 0 and 1 as arrays, which are faster operands of ufuncs than scalars."""
    return np.zeros((), dtype), np.ones((), dtype)


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def divide(x: Any, y: Any) -> np.ndarray:
    """Compute x / y: of floats by IEEE 754, of integers rounded toward zero, and 0 where y is 0."""
    return _quotient(x, y) if x.dtype.kind in "iu" else np.true_divide(x, y)


def _quotient(x: Any, y: Any) -> np.ndarray:
    """Compute x / y of integers, rounded toward zero; NumPy has 0 where y is 0."""
    down = np.floor_divide(x, y)
    result: np.ndarray = down + ((down < 0) & (down * y != x)).astype(x.dtype)
    return result


def truncate_div(x: Any, y: Any) -> np.ndarray:
    """Return x / y rounded toward zero; of integers 0 where y is 0."""
    if x.dtype.kind in "iu":
        return _quotient(x, y)
    if x.dtype.itemsize < 8:  # a quotient of float32 that is not an integer stays below the next one in float64
        result: np.ndarray = np.trunc(np.true_divide(x.astype(np.float64), y.astype(np.float64))).astype(x.dtype)
        return result
    quotient = np.true_divide(x, y)
    # Rounding first would make 3 of 2.99...: x less the exact remainder is a multiple of y, but for rounding.
    rounded = np.rint(np.true_divide(x - np.fmod(x, y), y))
    exact = np.isfinite(quotient) & np.isfinite(y)
    output: np.ndarray = np.where(exact, np.copysign(rounded, quotient), np.trunc(quotient))
    return output


def fma(x: Any, y: Any, z: Any) -> np.ndarray:
    """Compute x y + z, rounded twice."""
    result: np.ndarray = x * y + z
    return result


def squared_difference(x: Any, y: Any, out: Any = None) -> np.ndarray:
    """Compute |x - y|^2."""
    difference = np.subtract(x, y, out)
    result: np.ndarray = np.multiply(
        difference, np.conj(difference) if difference.dtype.kind == "c" else difference, out
    )
    return result


def reciprocal(x: Any, out: Any = None) -> np.ndarray:
    """Compute 1 / x."""
    result: np.ndarray = np.true_divide(x.dtype.type(1), x, out)
    return result


def rsqrt(x: Any, out: Any = None) -> np.ndarray:
    """Compute 1 / sqrt(x)."""
    result: np.ndarray = np.true_divide(x.dtype.type(1), np.sqrt(x, out), out)
    return result


def power(x: Any, y: Any) -> np.ndarray:
    """Compute x^y; of integers as formulas.integer_power."""
    if x.dtype.kind == "i" and np.any(y < 0):
        return formulas.integer_power(numpy_namespace, x, y)
    result: np.ndarray = np.power(x, y)
    if x.dtype.kind == "f" and y.size == 1 and y.item() == 0.5:  # NumPy takes roots: NaN of -inf, -0 of -0
        result = np.where(x == -np.inf, -x, result + x.dtype.type(0))
    return result


def round_even(x: Any, out: Any = None) -> np.ndarray:
    """Round to the nearest integer, ties to even; integers stay."""
    result: np.ndarray = x if x.dtype.kind in "iu" else np.rint(x, out)
    return result


def shift_left(x: Any, y: Any, out: Any = None) -> np.ndarray:
    """Compute x 2^y without the bits beyond the dtype, y held within [0, bits - 1]."""
    result: np.ndarray = np.left_shift(x, _distance(x, y), out)
    return result


def shift_right(x: Any, y: Any, out: Any = None) -> np.ndarray:
    """Compute x 2^-y rounded down, y held within [0, bits - 1]."""
    result: np.ndarray = np.right_shift(x, _distance(x, y), out)
    return result


def _distance(x: Any, y: Any) -> np.ndarray:
    result: np.ndarray = np.clip(y, y.dtype.type(0), y.dtype.type(8 * x.dtype.itemsize - 1))
    return result


# ---- choices --------------------------------------------------------------------------------------------------------


def minimum(x: Any, y: Any) -> np.ndarray:
    """Compute the smaller of two; of floats y where one is NaN."""
    result: np.ndarray = np.minimum(x, y) if x.dtype.kind in "iub" else np.where(x < y, x, y)
    return result


def maximum(x: Any, y: Any) -> np.ndarray:
    """Compute the larger of two; of floats y where one is NaN."""
    result: np.ndarray = np.maximum(x, y) if x.dtype.kind in "iub" else np.where(x > y, x, y)
    return result


def clip(x: Any, low: Any, high: Any, out: Any = None) -> np.ndarray:
    """Compute max(min(x, high), low), NaN where one is."""
    result: np.ndarray = np.maximum(np.minimum(x, high, out=out), low, out=out)
    return result


def divide_no_nan(x: Any, y: Any) -> np.ndarray:
    """Compute x / y, 0 where y is 0."""
    zero = y == 0
    result: np.ndarray = np.where(zero, x.dtype.type(0), np.divide(x, np.where(zero, y.dtype.type(1), y)))
    return result


def zero_or_quotient(x: Any, y: Any) -> np.ndarray:
    """Compute x / y, 0 where x is 0."""
    result: np.ndarray = np.where(x == 0, x.dtype.type(0), np.true_divide(x, y))
    return result


# ---- activations ----------------------------------------------------------------------------------------------------


def relu(x: Any, out: Any = None) -> np.ndarray:
    """Compute max(x, 0); NaN stays."""
    result: np.ndarray = np.maximum(x, x.dtype.type(0), out=out)
    return result


def relu6(x: Any, out: Any = None) -> np.ndarray:
    """Compute min(max(x, 0), 6); NaN stays."""
    low, high = CLAMPS["RELU6"]
    result: np.ndarray = np.minimum(np.maximum(x, x.dtype.type(low), out=out), x.dtype.type(high), out=out)
    return result


def leaky_relu(x: Any, alpha: Any) -> np.ndarray:
    """Compute x where it is positive, else alpha x; alpha: a number, or elements."""
    if np.ndim(alpha):
        result: np.ndarray = np.where(x > 0, x, x * alpha)
        return result
    slope = x.dtype.type(alpha)
    other = np.multiply(x, slope, out=np.empty_like(x))
    if 0 < slope <= 1:  # 4 ms faster than a branch for a million unpredictable signs
        output: np.ndarray = np.maximum(x, other, out=other)
        return output
    if slope > 1 and slope < np.inf:
        values: np.ndarray = np.minimum(x, other, out=other)
        return values
    combined: np.ndarray = np.where(x > 0, x, other)
    return combined


def sigmoid(x: Any, out: Any = None) -> np.ndarray:
    """Compute 1 / (1 + exp(-x)), by e = exp(-|x|), which never overflows."""
    if x.dtype.kind == "c":
        unit = x.dtype.type(1)
        result: np.ndarray = np.true_divide(unit, unit + np.exp(-x), out)
        return result
    zero, one = _numbers(x.dtype)
    small = np.exp(-np.absolute(x))
    above = np.exp(np.minimum(x, zero, out=out), out)  # small where x < 0, else 1
    if small.ndim == 0:
        output: np.ndarray = above / (small + one)
        return output
    small += one
    above /= small
    values: np.ndarray = above
    return values


def softplus(x: Any) -> np.ndarray:
    """Compute log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    result: np.ndarray = np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.absolute(x)))
    return result


def softsign(x: Any) -> np.ndarray:
    """Compute x / (1 + |x|)."""
    result: np.ndarray = x / (x.dtype.type(1) + np.absolute(x))
    return result


def elu(x: Any) -> np.ndarray:
    """Compute x, below 0 exp(x) - 1."""
    below = np.minimum(x, x.dtype.type(0), out=np.empty_like(x))
    result: np.ndarray = np.maximum(
        x, np.expm1(below, out=below), out=below
    )  # e^x - 1 >= x; no choice by sign: see leaky_relu
    return result


def selu(x: Any) -> np.ndarray:
    """Compute scale max(x, 0) + scale alpha (exp(min(x, 0)) - 1)."""
    kind = x.dtype.type
    below = np.minimum(x, kind(0), out=np.empty_like(x))
    np.multiply(np.expm1(below, out=below), kind(SELU_SCALE * SELU_ALPHA), out=below)
    above = np.maximum(x, kind(0), out=np.empty_like(x))
    result: np.ndarray = np.add(np.multiply(above, kind(SELU_SCALE), out=above), below, out=above)
    return result


# ---- error functions ------------------------------------------------------------------------------------------------


def erf(x: Any) -> np.ndarray:
    """Compute the error function, rounded once from float64."""
    return wide_erf(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)


def erfc(x: Any) -> np.ndarray:
    """Compute the complementary error function, rounded once from float64."""
    return wide_erfc(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)


def gelu(x: Any) -> np.ndarray:
    """Compute x erfc(-x / sqrt 2) / 2, rounded once from float64."""
    wide = x.astype(np.float64, copy=False)
    result: np.ndarray = (0.5 * wide * wide_erfc(wide * -math.sqrt(0.5))).astype(x.dtype, copy=False)
    return result


def gelu_tanh(x: Any) -> np.ndarray:
    """Compute x / (1 + exp(-2 t)), t = slope (x + cubic x^3), rounded once from float64."""
    wide = x.astype(np.float64, copy=False)
    exponent = wide * (wide * wide * (-2 * GELU_SLOPE * GELU_CUBIC) - 2 * GELU_SLOPE)
    result: np.ndarray = (wide / (1 + np.exp(exponent))).astype(x.dtype, copy=False)
    return result
