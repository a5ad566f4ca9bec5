"""erf, erfc and gelu of float32, computed in float64.

Lives here: these functions, and erfc of float64 with float32's accuracy.  Not here: coefficients (polynomials.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import float32, float64
from ..formulas import is_nan, polynomial
from . import polynomials
from .exponential import wide_exp

if TYPE_CHECKING:
    from ..namespace import MathNamespace, Values

_CENTRE, _END = 2.0, 10.6  # beyond it erfc of float32 is 0


def _near(m: MathNamespace, x: Values) -> Values:
    """Compute erf of |x| <= 1."""
    return polynomial(m, x * x, polynomials.ERF) * x


def _tail(m: MathNamespace, a: Values) -> Values:
    """Compute erfc of a >= 1: exp(-a^2) q(t) / (1 + 2 a)."""
    a = m.select(a < _END, a, _END)
    t = (a - _CENTRE) / (a + _CENTRE)
    return wide_exp(m, -(a * a)) * polynomial(m, t, polynomials.ERFC) / m.fma(a, 2.0, 1.0)


def wide_erfc(m: MathNamespace, x: Values) -> Values:
    """Compute erfc in float64 with float32's accuracy; undefined for NaN."""
    a = m.abs(x)
    tail = _tail(m, a)
    return m.select(a < 1.0, 1.0 - _near(m, x), m.select(x < 0.0, 2.0 - tail, tail))


def erf(m: MathNamespace, x: Values) -> Values:
    a = m.abs(m.convert(x, float64))
    y = m.select(a < 1.0, _near(m, a), 1.0 - _tail(m, a))
    return m.select(is_nan(m, x), x, m.copysign(m.convert(y, float32), x))


def erfc(m: MathNamespace, x: Values) -> Values:
    return m.select(is_nan(m, x), x, m.convert(wide_erfc(m, m.convert(x, float64)), float32))


def gelu(m: MathNamespace, x: Values) -> Values:
    """Compute x erfc(-x / sqrt 2) / 2, which is exact far below 0, too."""
    wide = m.convert(x, float64)
    y = wide * 0.5 * wide_erfc(m, wide * -math.sqrt(0.5))
    y = m.select(wide > -20.0, y, wide * 0.0)  # of -inf NaN, as the formula has it
    return m.select(is_nan(m, x), x, m.convert(y, float32))
