"""Exponentials, logarithms and powers of float32, computed in float64.

Lives here: exp, expm1, exp2's core, log, log1p, pow, sigmoid, softplus; the cores that other modules use (`wide_*`).
Not here: hyperbolic functions (hyperbolic.py), coefficients (polynomials.py).

float64 has no trouble with the ends of float32's range: what overflows, or is denormal, becomes so at the last step,
when the result is rounded.
"""

from __future__ import annotations

from typing import Any

from ..lanes import F32, F64, I32, I64, Lanes, absolute, copysign, fma, is_nan, nearest, polynomial, select, truncate
from . import polynomials

LN2, LOG2E, ROOT_HALF_BITS = 0.6931471805599453, 1.4426950408889634, 0x3FE6A09E667F3BCD
_MANTISSA, _BIAS = 52, 1023


def _power_of_two(n: Lanes) -> Lanes:
    """2^n as float64, of whole numbers in float64, |n| <= 1000."""
    return ((n.to(I32).to(I64) + _BIAS) << _MANTISSA).as_float()


def _clamped(x: Lanes, limit: float) -> Lanes:
    """Within -limit and limit; NaN is limit."""
    x = select(x < limit, x, limit)
    return select(x > -limit, x, -limit)


def wide_exp(x: Lanes) -> Lanes:
    """exp of float64 for the needs of float32: 2^n exp(r), r = x - n ln 2, |x| held below 400."""
    x = _clamped(x, 400.0)
    n = nearest(x * LOG2E)
    r = fma(n, -LN2, x)
    return (fma(polynomial(r, polynomials.EXP), r * r, r) + 1.0) * _power_of_two(n)


def wide_expm1(x: Lanes) -> Lanes:
    """exp(x) - 1 without cancellation: 2^n (exp(r) - 1) + (2^n - 1)."""
    x = _clamped(x, 400.0)
    n = nearest(x * LOG2E)
    r = fma(n, -LN2, x)
    scale = _power_of_two(n)
    return fma(fma(polynomial(r, polynomials.EXP), r * r, r), scale, scale - 1.0)


def _decompose(x: Lanes) -> tuple[Lanes, Lanes]:
    """e and m of positive normal float64, x = 2^e m with m between the roots of 1/2 and 2."""
    bits = x.bits()
    e = (bits - ROOT_HALF_BITS) >> _MANTISSA
    return e.to(I32).to(F64), (bits - (e << _MANTISSA)).as_float()


def _log_of(e: Lanes, above: Lanes, below: Lanes) -> Lanes:
    """e ln 2 + log(m), of m - 1 and m + 1: 2 atanh((m - 1) / (m + 1)) by its series."""
    s = above / below
    z = s * s
    return fma(e, LN2, fma(polynomial(z, polynomials.LOG) * z, s, s + s))


def wide_log(x: Lanes) -> Lanes:
    """log of positive normal float64; what it is of others the callers see to."""
    e, m = _decompose(x)
    return _log_of(e, m - 1.0, m + 1.0)


def wide_log1p(x: Lanes) -> Lanes:
    """log(1 + x) of x > -1, and what IEEE 754 has for -1, below, inf and NaN."""
    near = absolute(x) < 0.25
    e, m = _decompose(x + 1.0)
    found = _log_of(select(near, 0.0, e), select(near, x, m - 1.0), select(near, x + 2.0, m + 1.0))
    return _ends(x, -1.0, found)


def _ends(x: Lanes, pole: float, found: Lanes) -> Lanes:
    """A logarithm with its pole: -inf there, NaN below it and of NaN, inf of inf."""
    found = select(x > pole, found, select(x == pole, found.full(-float("inf")), float("nan")))
    return select(x == float("inf"), x, found)


def exp(x: Lanes) -> Lanes:
    return select(is_nan(x), x, wide_exp(x.to(F64)).to(F32))


def expm1(x: Lanes) -> Lanes:
    """exp(x) - 1; -0.0 stays."""
    y = copysign(wide_expm1(x.to(F64)).to(F32), x)
    return select(is_nan(x), x, y)


def log(x: Lanes) -> Lanes:
    wide = x.to(F64)
    return _ends(wide, 0.0, wide_log(wide)).to(F32)


def log1p(x: Lanes) -> Lanes:
    """log(1 + x); -0.0 stays."""
    return select(x == 0.0, x, wide_log1p(x.to(F64)).to(F32))


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + exp(-x))."""
    return select(is_nan(x), x, (1.0 / (wide_exp(-x.to(F64)) + 1.0)).to(F32))


def softplus(x: Lanes) -> Lanes:
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    wide = x.to(F64)
    y = wide_log1p(wide_exp(-absolute(wide))) + select(wide > 0.0, wide, 0.0)
    return select(is_nan(x), x, y.to(F32))


def pow(x: Lanes, y: Lanes) -> Lanes:
    """x^y = 2^(y log2 |x|), with the sign and the ends that C's pow has."""
    base, power = x.to(F64), y.to(F64)
    size = absolute(base)
    t = _clamped(power * (wide_log(size) * LOG2E), 400.0)
    n = nearest(t)
    r = t - n
    found = fma(polynomial(r, polynomials.EXP2), r, 1.0) * _power_of_two(n)
    infinity = float("inf")
    found = select(size == 0.0, select(power > 0.0, found.full(0.0), infinity), found)
    found = select(size == infinity, select(power > 0.0, found.full(infinity), 0.0), found)
    whole = truncate(power) == power
    odd = whole & (truncate(power * 0.5) * 2.0 != power)
    found = select(odd, copysign(found, base), found)
    found = select((base < 0.0) & ~whole & (size != infinity), found.full(float("nan")), found)
    found = select(is_nan(base) | is_nan(power), found.full(float("nan")), found)
    one: Any = (base == 1.0) | (power == 0.0) | ((size == 1.0) & (absolute(power) == infinity))
    return select(one, found.full(1.0), found).to(F32)
