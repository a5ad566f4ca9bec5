"""Formulas of one element over an array namespace `m`: arithmetic without an instruction of its own, and activations.

Lives here: division, powers and shifts of integers; signs, rounding, bounds, the NaN policies of minimum and maximum;
polynomials; activations and other compositions of elementary functions; the constants of activations.
Not here: the namespaces (numpy_namespace.py, compiler/), elementary functions, which `m` provides under the names of
table.py (exp, expm1, log1p, erfc), faster code (numerics/), names (table.py).

Integers wrap. Quotients and remainders by 0 are 0: in kernels no element may end the process, and operators that reject
divisors of 0 check for them before. No activation cancels: 1 + erf(-a) is erfc(a), log(1 + e^x) has its larger term
taken out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.dtypes import int64

if TYPE_CHECKING:
    from .namespace import MathNamespace, Namespace, Values

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Klambauer et al., Self-normalizing neural networks, 2017, appendix A.1, rounded to the nearest float64."""

CLAMPS: dict[str, tuple[int, Any]] = {
    "RELU": (0, None),
    "RELU_N1_TO_1": (-1, 1),
    "RELU6": (0, 6),
    "RELU_0_TO_1": (0, 1),
}
"""Activations that clamp, by their name in files: the bounds; None for no upper bound."""

FUSED_CLAMPS = ("RELU", "RELU_N1_TO_1", "RELU6")
"""Clamps that an operator of a file can apply to its own result."""

GELU_CUBIC, GELU_SLOPE = 0.044715, 0.7978845608028654
"""Constants of x (1 + tanh(slope (x + cubic x^3))) / 2, slope = sqrt(2 / pi): Hendrycks and Gimpel, Gaussian error
linear units (GELUs), 2016, section 2."""


def polynomial(m: Namespace[Values], x: Values, coefficients: Sequence[float]) -> Values:
    """Return coefficients[0] + coefficients[1] x + ..., by Horner's rule."""
    total = m.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = m.fma(total, x, c)
    return total


def is_nan(m: Namespace[Values], x: Values) -> Values:
    """Return whether a float is NaN, the only value that differs from itself."""
    return x != x


# ---- division of integers -------------------------------------------------------------------------------------------


def quotient(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x / y rounded toward zero, 0 where y is 0.

    Processors trap on a divisor of 0, and on -1 where the quotient does not fit: they get another divisor there.
    """
    none = y == 0
    if m.type_of(x).is_unsigned:
        truncated = m.truncated_quotient(x, m.select(none, 1, y))
    else:
        minus = y == -1
        truncated = m.select(minus, -x, m.truncated_quotient(x, m.select(none | minus, 1, y)))
    return m.select(none, 0, truncated)


def remainder(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x - y (x / y) with the quotient rounded toward zero: it has the sign of x. 0 where y is 0."""
    return m.select(y == 0, 0, x - quotient(m, x, y) * y)


def unlike_signs(m: Namespace[Values], remainder: Values, y: Values) -> Values:
    """Return whether a nonzero remainder has the opposite sign of the divisor."""
    return (remainder != 0) & ((remainder < 0) != (y < 0))


def floor_quotient(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x / y rounded down, 0 where y is 0."""
    truncated = quotient(m, x, y)
    if m.type_of(x).is_unsigned:
        return truncated
    remainder_ = m.select(y == 0, 0, x - truncated * y)
    return m.select(unlike_signs(m, remainder_, y), truncated - 1, truncated)


def floor_remainder(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x - y (x / y) with the quotient rounded down: it has the sign of y. 0 where y is 0."""
    truncated = remainder(m, x, y)
    return truncated if m.type_of(x).is_unsigned else m.select(unlike_signs(m, truncated, y), truncated + y, truncated)


# ---- powers and shifts of integers ----------------------------------------------------------------------------------


def integer_power(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x^y by squaring; of y < 0 it is 1 / x^-y rounded toward zero, and 0 of x = 0."""
    dtype = m.type_of(x)
    total, base, exponent = m.full_like(x, 1), x, m.maximum(y, 0)
    for _ in range(dtype.size * 8 - 1):
        total = m.select((exponent & 1) != 0, total * base, total)
        base, exponent = base * base, exponent >> 1
    if dtype.is_unsigned:
        return total
    unit = m.select((y & 1) != 0, m.full_like(x, -1), 1)
    below = m.select(x == 1, 1, m.select(x == -1, unit, 0))
    return m.select(y < 0, below, total)


def power_or_least(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x^y of int32, the least int32 if it is beyond them; y is not negative."""
    limit = 1 << 31
    base, exponent = m.convert(x, int64), y
    total = m.full_like(base, 1)
    for _ in range(31):
        total = m.select((exponent & 1) != 0, m.clamp(total * base, -limit, limit), total)
        base, exponent = m.clamp(base * base, -limit, limit), exponent >> 1
    return m.convert(m.select((total >= limit) | (total <= -limit), -limit, total), m.type_of(x))


def _distance(m: Namespace[Values], x: Values, by: Values) -> Values:
    """Return the distance of a shift clamped to [0, bits - 1]. source: TensorFlow, left_shift and right_shift"""
    return m.clamp(by, 0, m.type_of(x).size * 8 - 1)


def shift_left(m: Namespace[Values], x: Values, by: Values) -> Values:
    """Return x 2^by without the bits beyond the dtype, `by` clamped to [0, bits - 1]."""
    return x << _distance(m, x, by)


def shift_left_or_zero(m: Namespace[Values], x: Values, by: Values) -> Values:
    """Return x 2^by without the bits beyond the dtype; 0 where `by` is negative, or as many bits or more.

    source: the StableHLO specification, shift_left
    """
    inside = (by >= 0) & (by < m.type_of(x).size * 8)
    return m.select(inside, x << m.select(inside, by, 0), 0)


def shift_right(m: Namespace[Values], x: Values, by: Values) -> Values:
    """Return x 2^-by rounded down, `by` clamped to [0, bits - 1]."""
    return x >> _distance(m, x, by)


# ---- signs, roundings, bounds ---------------------------------------------------------------------------------------


def divide(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x / y: of floats by IEEE 754, of integers rounded toward zero."""
    return x / y if m.type_of(x).is_floating else quotient(m, x, y)


def sign(m: Namespace[Values], x: Values) -> Values:
    """Return -1, 0 or 1; NaN stays, and 0.0 is the sign of both zeros."""
    dtype = m.type_of(x)
    if dtype.is_unsigned:
        return m.minimum(x, 1)
    one = m.full_like(x, 1)
    return m.select(x > 0, one, m.select(x < 0, -one, x + 0.0 if dtype.is_floating else x))


def round_even(m: Namespace[Values], x: Values) -> Values:
    """Round to the nearest integer, ties to even; integers stay."""
    return m.round_even(x) if m.type_of(x).is_floating else x


def round_away(m: Namespace[Values], x: Values) -> Values:
    """Round to the nearest integer, ties away from zero."""
    truncated = m.trunc(x)
    return truncated + m.select(m.abs(x - truncated) >= 0.5, sign(m, x), 0.0)


def squared_difference(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return (x - y)^2."""
    difference = x - y
    return difference * difference


def bounded(m: Namespace[Values], x: Values, low: Values | float, high: Values | float) -> Values:
    """Return x within [low, high], low <= high; NaN stays, and of equal zeros x's."""
    return m.minimum(high, m.maximum(low, x))


def ieee_maximum(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return the larger of two, NaN if one is. source: IEEE 754-2019, maximum, but for the sign of zeros"""
    larger = m.maximum(x, y)  # y where one is NaN
    return m.select(is_nan(m, x), x, larger) if m.type_of(x).is_floating else larger


def ieee_minimum(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return the smaller of two, NaN if one is. source: IEEE 754-2019, minimum, but for the sign of zeros"""
    smaller = m.minimum(x, y)
    return m.select(is_nan(m, x), x, smaller) if m.type_of(x).is_floating else smaller


def clip(m: Namespace[Values], x: Values, low: Values, high: Values) -> Values:
    """Return max(min(x, high), low), NaN if an operand is; `low` if the bounds are in the wrong order."""
    return ieee_maximum(m, ieee_minimum(m, x, high), low)


def divide_no_nan(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x / y, 0 where y is 0."""
    return m.select(y == 0, 0, x / y)


def zero_or_quotient(m: Namespace[Values], x: Values, y: Values) -> Values:
    """Return x / y, 0 where x is 0."""
    return m.select(x == 0, 0, x / y)


def relu(m: MathNamespace[Values], x: Values) -> Values:
    """Return max(x, 0); NaN and -0.0 stay."""
    return m.maximum(0, x)


def relu6(m: MathNamespace[Values], x: Values) -> Values:
    """Return min(max(x, 0), 6); NaN and -0.0 stay."""
    result: Values = bounded(m, x, *CLAMPS["RELU6"])
    return result


def leaky_relu(m: MathNamespace[Values], x: Values, alpha: Values | float) -> Values:
    """Return x if it is positive, else alpha x; alpha: a number, or elements."""
    return m.select(x > 0, x, x * alpha)


def hard_swish(m: MathNamespace[Values], x: Values) -> Values:
    """Return x (min(max(x + 3, 0), 6) / 6). source: A. Howard et al., Searching for MobileNetV3, 2019, section 5.2"""
    return x * (bounded(m, x + 3.0, 0.0, 6.0) * (1.0 / 6.0))


def sigmoid(m: MathNamespace[Values], x: Values) -> Values:
    """Return 1 / (1 + exp(-x)), by e = exp(-|x|), which never overflows."""
    e = m.exp(-m.abs(x))
    return m.select(x < 0.0, e, 1.0) / (e + 1.0)


def silu(m: MathNamespace[Values], x: Values) -> Values:
    """Return x sigmoid(x). source: P. Ramachandran et al., Searching for activation functions, 2017"""
    return x * m.sigmoid(x)


def softplus(m: MathNamespace[Values], x: Values) -> Values:
    """Return log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    return m.log1p(m.exp(-m.abs(x))) + m.select(x > 0.0, x, 0.0)


def softsign(m: MathNamespace[Values], x: Values) -> Values:
    """Return x / (1 + |x|)."""
    return x / (m.abs(x) + 1.0)


def elu(m: MathNamespace[Values], x: Values) -> Values:
    """Return x, below 0 exp(x) - 1. source: D. Clevert et al., ELUs, 2015"""
    return m.select(x < 0.0, m.expm1(x), x)


def selu(m: MathNamespace[Values], x: Values) -> Values:
    """Return scale max(x, 0) + scale alpha (exp(min(x, 0)) - 1). source: that of its constants"""
    below = m.expm1(m.minimum(x, 0.0))  # 0 where x is NaN, which the other term keeps
    return m.fma(below, SELU_SCALE * SELU_ALPHA, relu(m, x) * SELU_SCALE)


def gelu(m: MathNamespace[Values], x: Values) -> Values:
    """Return x erfc(-x / sqrt 2) / 2. source: that of its constants"""
    return x * 0.5 * m.erfc(x * -math.sqrt(0.5))


def gelu_tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Return x (1 + tanh(t)) / 2 = x sigmoid(2 t), t = slope (x + cubic x^3). source: that of its constants"""
    return x * m.sigmoid((x * x * x * GELU_CUBIC + x) * (2.0 * GELU_SLOPE))
