"""Hyperbolic functions of float32 and their inverses, computed in float64 from exp(x) - 1 and log(1 + x).

Lives here: sinh, cosh, tanh, asinh, acosh, atanh.  Not here: what they are made of (exponential.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32, float64
from ..arithmetic import is_nan
from .exponential import wide_exp, wide_expm1, wide_log1p


def _odd(m: Any, x: Any, size: Any) -> Any:
    """An odd function of x, of what it is of |x|; 0.0 and -0.0 stay."""
    return m.select(is_nan(m, x), x, m.copysign(m.convert(size, float32), x))


def sinh(m: Any, x: Any) -> Any:
    """(t + t / (t + 1)) / 2, t = exp(|x|) - 1."""
    t = wide_expm1(m, m.abs(m.convert(x, float64)))
    return _odd(m, x, (t + t / (t + 1.0)) * 0.5)


def cosh(m: Any, x: Any) -> Any:
    """(t + 1 / t) / 2, t = exp(|x|)."""
    t = wide_exp(m, m.abs(m.convert(x, float64)))
    return m.select(is_nan(m, x), x, m.convert((t + 1.0 / t) * 0.5, float32))


def tanh(m: Any, x: Any) -> Any:
    """t / (t + 2), t = exp(2 |x|) - 1; beyond 20 it is 1."""
    a = m.abs(m.convert(x, float64))
    t = wide_expm1(m, m.select(a < 20.0, a, 20.0) * 2.0)
    return _odd(m, x, t / (t + 2.0))


def asinh(m: Any, x: Any) -> Any:
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|."""
    a = m.abs(m.convert(x, float64))
    square = a * a
    y = wide_log1p(m, a + square / (m.sqrt(square + 1.0) + 1.0))
    return _odd(m, x, m.select(a == float("inf"), a, y))


def acosh(m: Any, x: Any) -> Any:
    """log1p(t + sqrt(2 t + t^2)), t = x - 1; NaN below 1."""
    t = m.convert(x, float64) - 1.0
    y = wide_log1p(m, t + m.sqrt(m.fma(t, t, t + t)))
    return m.select(x < 1.0, m.full_like(x, float("nan")), m.convert(y, float32))


def atanh(m: Any, x: Any) -> Any:
    """log1p(2 a / (1 - a)) / 2, a = |x|; NaN beyond 1."""
    a = m.abs(m.convert(x, float64))
    return _odd(m, x, wide_log1p(m, (a + a) / (1.0 - a)) * 0.5)
