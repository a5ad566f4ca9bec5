"""Hyperbolic functions of float32 and their inverses, computed in float64 from exp(x) - 1 and log(1 + x).

Lives here: sinh, cosh, tanh, asinh, acosh, atanh.  Not here: what they are made of (exponential.py).
"""

from __future__ import annotations

from ..lanes import F32, F64, Lanes, absolute, copysign, fma, is_nan, select, sqrt
from .exponential import wide_exp, wide_expm1, wide_log1p


def _odd(x: Lanes, size: Lanes) -> Lanes:
    """An odd function of x, of what it is of |x|; 0.0 and -0.0 stay."""
    return select(is_nan(x), x, copysign(size.to(F32), x))


def sinh(x: Lanes) -> Lanes:
    """(t + t / (t + 1)) / 2, t = exp(|x|) - 1."""
    t = wide_expm1(absolute(x.to(F64)))
    return _odd(x, (t + t / (t + 1.0)) * 0.5)


def cosh(x: Lanes) -> Lanes:
    """(t + 1 / t) / 2, t = exp(|x|)."""
    t = wide_exp(absolute(x.to(F64)))
    return select(is_nan(x), x, ((t + 1.0 / t) * 0.5).to(F32))


def tanh(x: Lanes) -> Lanes:
    """t / (t + 2), t = exp(2 |x|) - 1; beyond 20 it is 1."""
    a = absolute(x.to(F64))
    t = wide_expm1(select(a < 20.0, a, 20.0) * 2.0)
    return _odd(x, t / (t + 2.0))


def asinh(x: Lanes) -> Lanes:
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|."""
    a = absolute(x.to(F64))
    square = a * a
    y = wide_log1p(a + square / (sqrt(square + 1.0) + 1.0))
    return _odd(x, select(a == float("inf"), a, y))


def acosh(x: Lanes) -> Lanes:
    """log1p(t + sqrt(2 t + t^2)), t = x - 1; NaN below 1."""
    t = x.to(F64) - 1.0
    y = wide_log1p(t + sqrt(fma(t, t, t + t)))
    return select(x < 1.0, x.full(float("nan")), y.to(F32))


def atanh(x: Lanes) -> Lanes:
    """log1p(2 a / (1 - a)) / 2, a = |x|; NaN beyond 1."""
    a = absolute(x.to(F64))
    return _odd(x, wide_log1p((a + a) / (1.0 - a)) * 0.5)
