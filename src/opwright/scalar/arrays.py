"""NumPy implementations of functions of the table that are no ufunc, or faster than their formula.

Lives here: functions of arrays, in place where possible.
Not here: their formulas (formulas.py; tests compare both), ufuncs (table.py).

out: an array for the result, which may be an operand.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..core.constants import CLAMPS, GELU_CUBIC, GELU_SLOPE, SELU_ALPHA, SELU_SCALE
from . import error_arrays, formulas, numpy_namespace


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
    if x.dtype.itemsize < 8:  # a quotient of float32 that is no integer stays below the next one in float64
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
    if x.dtype.kind != "i" or not np.any(y < 0):
        result: np.ndarray = np.power(x, y)
        return result
    return formulas.integer_power(numpy_namespace, x, y)


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
    return error_arrays.erf(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)


def erfc(x: Any) -> np.ndarray:
    """Compute the complementary error function, rounded once from float64."""
    return error_arrays.erfc(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)


def gelu(x: Any) -> np.ndarray:
    """Compute x erfc(-x / sqrt 2) / 2, rounded once from float64."""
    wide = x.astype(np.float64, copy=False)
    result: np.ndarray = (0.5 * wide * error_arrays.erfc(wide * -math.sqrt(0.5))).astype(x.dtype, copy=False)
    return result


def gelu_tanh(x: Any) -> np.ndarray:
    """Compute x / (1 + exp(-2 t)), t = slope (x + cubic x^3), rounded once from float64."""
    wide = x.astype(np.float64, copy=False)
    exponent = wide * (wide * wide * (-2 * GELU_SLOPE * GELU_CUBIC) - 2 * GELU_SLOPE)
    result: np.ndarray = (wide / (1 + np.exp(exponent))).astype(x.dtype, copy=False)
    return result
