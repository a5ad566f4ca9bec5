"""erf, erfc and gelu of float32, computed in float64.

Lives here: these, and erfc of float64 for the needs of float32.  Not here: coefficients (polynomials.py).
"""

from __future__ import annotations

import math

from ..lanes import F32, F64, Lanes, absolute, copysign, fma, is_nan, polynomial, select
from . import polynomials
from .exponential import wide_exp

_CENTRE, _END = 2.0, 10.6  # beyond it erfc of float32 is 0


def _near(x: Lanes) -> Lanes:
    """erf of |x| <= 1."""
    return polynomial(x * x, polynomials.ERF) * x


def _tail(a: Lanes) -> Lanes:
    """erfc of a >= 1: exp(-a^2) q(t) / (1 + 2 a)."""
    a = select(a < _END, a, _END)
    t = (a - _CENTRE) / (a + _CENTRE)
    return wide_exp(-(a * a)) * polynomial(t, polynomials.ERFC) / fma(a, 2.0, 1.0)


def wide_erfc(x: Lanes) -> Lanes:
    """erfc of float64 for the needs of float32; of NaN anything."""
    a = absolute(x)
    tail = _tail(a)
    return select(a < 1.0, 1.0 - _near(x), select(x < 0.0, 2.0 - tail, tail))


def erf(x: Lanes) -> Lanes:
    a = absolute(x.to(F64))
    y = select(a < 1.0, _near(a), 1.0 - _tail(a))
    return select(is_nan(x), x, copysign(y.to(F32), x))


def erfc(x: Lanes) -> Lanes:
    return select(is_nan(x), x, wide_erfc(x.to(F64)).to(F32))


def gelu(x: Lanes) -> Lanes:
    """x erfc(-x / sqrt 2) / 2, which is exact far below 0, too."""
    wide = x.to(F64)
    y = wide * 0.5 * wide_erfc(wide * -math.sqrt(0.5))
    y = select(wide > -20.0, y, wide * 0.0)  # of -inf NaN, as the formula has it
    return select(is_nan(x), x, y.to(F32))
