"""Exponential, hyperbolic and error functions, logarithms and powers of float32, computed in float64.

Lives here: exp, expm1, log, log1p, pow, sigmoid, softplus, rsqrt; sinh, cosh, tanh and their inverses; erf, erfc, gelu;
the cores that other modules use (`wide_*`, with float32's accuracy; `exp_parts`, `decompose`, `power_of_two`).
Not here: coefficients (polynomials.py).

float64 represents the ends of float32's range without overflow or denormals: these arise in the last step, when the
result is rounded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import float32, float64, int32, int64
from ..formulas import is_nan, polynomial
from . import polynomials

if TYPE_CHECKING:
    from ..namespace import MathNamespace, Values

LN2, LOG2E, ROOT_HALF_BITS = 0.6931471805599453, 1.4426950408889634, 0x3FE6A09E667F3BCD
_MANTISSA, _BIAS = 52, 1023


def power_of_two(m: MathNamespace[Values], n: Values) -> Values:
    """Compute 2^n as float64, of integers in float64, |n| <= 1000."""
    return m.bitcast((m.convert(m.convert(n, int32), int64) + _BIAS) << _MANTISSA, float64)


def _clamped(m: MathNamespace[Values], x: Values, limit: float) -> Values:
    """Clamp to [-limit, limit]; NaN becomes limit."""
    x = m.select(x < limit, x, limit)
    return m.select(x > -limit, x, -limit)


def wide_exp(m: MathNamespace[Values], x: Values) -> Values:
    """Compute exp in float64 with float32's accuracy: 2^n exp(r), r = x - n ln 2, |x| clamped to 400."""
    f, n = exp_parts(m, _clamped(m, x, 400.0))
    return f * power_of_two(m, n)


def exp_parts(m: MathNamespace[Values], x: Values) -> tuple[Values, Values]:
    """Compute f and an integer n, both float64, with exp(x) = f 2^n and f between the roots of 1/2 and 2; finite x."""
    n = m.round_even(x * LOG2E)
    r = m.fma(n, -LN2, x)
    return m.fma(polynomial(m, r, polynomials.EXP), r * r, r) + 1.0, n


def wide_expm1(m: MathNamespace[Values], x: Values) -> Values:
    """Compute exp(x) - 1 without cancellation: 2^n (exp(r) - 1) + (2^n - 1)."""
    x = _clamped(m, x, 400.0)
    n = m.round_even(x * LOG2E)
    r = m.fma(n, -LN2, x)
    scale = power_of_two(m, n)
    return m.fma(m.fma(polynomial(m, r, polynomials.EXP), r * r, r), scale, scale - 1.0)


def decompose(m: MathNamespace[Values], x: Values) -> tuple[Values, Values]:
    """Split positive normal float64 into e and f, x = 2^e f with f between the roots of 1/2 and 2."""
    bits = m.bitcast(x, int64)
    e = (bits - ROOT_HALF_BITS) >> _MANTISSA
    return m.convert(m.convert(e, int32), float64), m.bitcast(bits - (e << _MANTISSA), float64)


def _log_of(m: MathNamespace[Values], e: Values, above: Values, below: Values) -> Values:
    """Compute e ln 2 + log(f) from f - 1 and f + 1: 2 atanh((f - 1) / (f + 1)) by its series."""
    s = above / below
    z = s * s
    return m.fma(e, LN2, m.fma(polynomial(m, z, polynomials.LOG) * z, s, s + s))


def wide_log(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log of positive normal float64; callers handle all other values."""
    e, f = decompose(m, x)
    return _log_of(m, e, f - 1.0, f + 1.0)


def wide_log1p(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log(1 + x) of x > -1, and IEEE 754's values for -1, below, inf and NaN."""
    near = m.abs(x) < 0.25
    e, f = decompose(m, x + 1.0)
    logarithm = _log_of(m, m.select(near, 0.0, e), m.select(near, x, f - 1.0), m.select(near, x + 2.0, f + 1.0))
    return _ends(m, x, -1.0, logarithm)


def _ends(m: MathNamespace[Values], x: Values, pole: float, logarithm: Values) -> Values:
    """Add the pole of a logarithm: -inf there, NaN below it and of NaN, inf of inf."""
    logarithm = m.select(x > pole, logarithm, m.select(x == pole, m.full_like(logarithm, -float("inf")), float("nan")))
    return m.select(x == float("inf"), x, logarithm)


def exp(m: MathNamespace[Values], x: Values) -> Values:
    return m.select(is_nan(m, x), x, m.convert(wide_exp(m, m.convert(x, float64)), float32))


def expm1(m: MathNamespace[Values], x: Values) -> Values:
    """Compute exp(x) - 1; -0.0 stays."""
    y = m.copysign(m.convert(wide_expm1(m, m.convert(x, float64)), float32), x)
    return m.select(is_nan(m, x), x, y)


def log(m: MathNamespace[Values], x: Values) -> Values:
    wide = m.convert(x, float64)
    return m.convert(_ends(m, wide, 0.0, wide_log(m, wide)), float32)


def log1p(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log(1 + x); -0.0 stays."""
    return m.select(x == 0.0, x, m.convert(wide_log1p(m, m.convert(x, float64)), float32))


def sigmoid(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 1 / (1 + exp(-x))."""
    return m.select(is_nan(m, x), x, m.convert(1.0 / (wide_exp(m, -m.convert(x, float64)) + 1.0), float32))


def softplus(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    wide = m.convert(x, float64)
    y = wide_log1p(m, wide_exp(m, -m.abs(wide))) + m.select(wide > 0.0, wide, 0.0)
    return m.select(is_nan(m, x), x, m.convert(y, float32))


def pow(m: MathNamespace[Values], x: Values, y: Values) -> Values:
    """Compute x^y = 2^(y log2 |x|), with the sign and special values of C's pow."""
    base, power = m.convert(x, float64), m.convert(y, float64)
    size = m.abs(base)
    t = _clamped(m, power * (wide_log(m, size) * LOG2E), 400.0)
    n = m.round_even(t)
    r = t - n
    power_ = m.fma(polynomial(m, r, polynomials.EXP2), r, 1.0) * power_of_two(m, n)
    infinity = float("inf")
    power_ = m.select(size == 0.0, m.select(power > 0.0, m.full_like(power_, 0.0), infinity), power_)
    power_ = m.select(size == infinity, m.select(power > 0.0, m.full_like(power_, infinity), 0.0), power_)
    is_integral = m.trunc(power) == power
    odd = is_integral & (m.trunc(power * 0.5) * 2.0 != power)
    power_ = m.select(odd, m.copysign(power_, base), power_)
    power_ = m.select((base < 0.0) & ~is_integral & (size != infinity), m.full_like(power_, float("nan")), power_)
    power_ = m.select(is_nan(m, base) | is_nan(m, power), m.full_like(power_, float("nan")), power_)
    one = (base == 1.0) | (power == 0.0) | ((size == 1.0) & (m.abs(power) == infinity))
    return m.convert(m.select(one, m.full_like(power_, 1.0), power_), float32)


def rsqrt(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 1 / sqrt(x)."""
    return m.convert(1.0 / m.sqrt(m.convert(x, float64)), float32)


def _odd(m: MathNamespace[Values], x: Values, size: Values) -> Values:
    """Extend a function of |x| to an odd function of x; 0.0 and -0.0 stay."""
    return m.select(is_nan(m, x), x, m.copysign(m.convert(size, float32), x))


def sinh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute (t + t / (t + 1)) / 2, t = exp(|x|) - 1."""
    t = wide_expm1(m, m.abs(m.convert(x, float64)))
    return _odd(m, x, (t + t / (t + 1.0)) * 0.5)


def cosh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute (t + 1 / t) / 2, t = exp(|x|)."""
    t = wide_exp(m, m.abs(m.convert(x, float64)))
    return m.select(is_nan(m, x), x, m.convert((t + 1.0 / t) * 0.5, float32))


def tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute t / (t + 2), t = exp(2 |x|) - 1; beyond 20 it is 1."""
    a = m.abs(m.convert(x, float64))
    t = wide_expm1(m, m.select(a < 20.0, a, 20.0) * 2.0)
    return _odd(m, x, t / (t + 2.0))


def asinh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|."""
    a = m.abs(m.convert(x, float64))
    square = a * a
    y = wide_log1p(m, a + square / (m.sqrt(square + 1.0) + 1.0))
    return _odd(m, x, m.select(a == float("inf"), a, y))


def acosh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log1p(t + sqrt(2 t + t^2)), t = x - 1; NaN below 1."""
    t = m.convert(x, float64) - 1.0
    y = wide_log1p(m, t + m.sqrt(m.fma(t, t, t + t)))
    return m.select(x < 1.0, m.full_like(x, float("nan")), m.convert(y, float32))


def atanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log1p(2 a / (1 - a)) / 2, a = |x|; NaN beyond 1."""
    a = m.abs(m.convert(x, float64))
    return _odd(m, x, wide_log1p(m, (a + a) / (1.0 - a)) * 0.5)


_CENTRE, _END = 2.0, 10.6  # beyond it erfc of float32 is 0


def _near(m: MathNamespace[Values], x: Values) -> Values:
    """Compute erf of |x| <= 1."""
    return polynomial(m, x * x, polynomials.ERF) * x


def _tail(m: MathNamespace[Values], a: Values) -> Values:
    """Compute erfc of a >= 1: exp(-a^2) q(t) / (1 + 2 a)."""
    a = m.select(a < _END, a, _END)
    t = (a - _CENTRE) / (a + _CENTRE)
    return wide_exp(m, -(a * a)) * polynomial(m, t, polynomials.ERFC) / m.fma(a, 2.0, 1.0)


def wide_erfc(m: MathNamespace[Values], x: Values) -> Values:
    """Compute erfc in float64 with float32's accuracy; undefined for NaN."""
    a = m.abs(x)
    tail = _tail(m, a)
    return m.select(a < 1.0, 1.0 - _near(m, x), m.select(x < 0.0, 2.0 - tail, tail))


def erf(m: MathNamespace[Values], x: Values) -> Values:
    a = m.abs(m.convert(x, float64))
    y = m.select(a < 1.0, _near(m, a), 1.0 - _tail(m, a))
    return m.select(is_nan(m, x), x, m.copysign(m.convert(y, float32), x))


def erfc(m: MathNamespace[Values], x: Values) -> Values:
    return m.select(is_nan(m, x), x, m.convert(wide_erfc(m, m.convert(x, float64)), float32))


def gelu(m: MathNamespace[Values], x: Values) -> Values:
    """Compute x erfc(-x / sqrt 2) / 2, which is exact far below 0, too."""
    wide = m.convert(x, float64)
    y = wide * 0.5 * wide_erfc(m, wide * -math.sqrt(0.5))
    y = m.select(wide > -20.0, y, wide * 0.0)  # of -inf NaN, as the formula has it
    return m.select(is_nan(m, x), x, m.convert(y, float32))
