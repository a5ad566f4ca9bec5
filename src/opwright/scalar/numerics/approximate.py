"""Exp, Log, Tanh and Sigmoid of float32 in float32 arithmetic: faster and less accurate than the exact code.

Lives here: functions used in kernels under the switch `fast_math`.
Not here: which operators use them (scalar/table.py).

All are right at the ends: NaN stays NaN, exp overflows to inf and underflows through denormals to 0, log(0) = -inf,
log(x < 0) = NaN, log(inf) = inf, tanh saturates at 1 and keeps -0.0. Polynomials are those of Cephes (S. L. Moshier,
single precision); no instruction here may be regrouped, as they rely on the order they stand in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import float32, int32
from ..formulas import is_nan, polynomial

# lowest power first
_EXP = (5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4)
_LOG = (
    3.3333331174e-1,
    -2.4999993993e-1,
    2.0000714765e-1,
    -1.6668057665e-1,
    1.4249322787e-1,
    -1.2420140846e-1,
    1.1676998740e-1,
    -1.1514610310e-1,
    7.0376836292e-2,
)

if TYPE_CHECKING:
    from ..namespace import MathNamespace, Values
_TANH = (-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


def _power_of_two(m: MathNamespace[Values], n: Values) -> Values:
    """Compute 2^n of an int32 in [-126, 127], by its bits."""
    return m.bitcast((n + 127) << 23, float32)


def exp(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 2^n e^r with r = x - n ln 2, with 2^n as two factors: only the last can overflow or be denormal."""
    x = m.select(x > 89.0, m.full_like(x, 89.0), x)
    x = m.select(x < -104.0, m.full_like(x, -104.0), x)
    n = m.round_even(x * 1.44269504088896341)
    r = m.fma(n, -_LN2_LOW, m.fma(n, -_LN2_HIGH, x))
    p = m.fma(polynomial(m, r, _EXP), r * r, r) + 1.0
    rounded = m.convert(m.select(is_nan(m, n), m.full_like(n, 0.0), n), int32)  # of a NaN it is undefined
    half = rounded >> 1
    return p * _power_of_two(m, half) * _power_of_two(m, rounded - half)


def log(m: MathNamespace[Values], x: Values) -> Values:
    """Compute e ln 2 + log(1 + f), with x = 2^e (1 + f) and 1 + f between the roots of 1/2 and 2."""
    tiny = x < 2.0**-126
    bits = m.bitcast(m.select(tiny, x * 2.0**23, x), int32)
    e = (bits - 0x3F3504F3) >> 23
    f = m.bitcast(bits - (e << 23), float32) - 1.0
    e = m.convert(e - m.select(tiny, m.full_like(e, 23), 0), float32)
    z = f * f
    y = m.fma(e, _LN2_LOW, polynomial(m, f, _LOG) * f * z)
    y = m.fma(e, _LN2_HIGH, f + m.fma(z, -0.5, y))
    y = m.select(x == 0.0, m.full_like(y, -float("inf")), y)
    y = m.select(x == float("inf"), x, y)
    return m.select((x < 0.0) | is_nan(m, x), m.full_like(y, float("nan")), y)


def tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute a polynomial near 0, else 1 - 2 / (e^2a + 1), a = |x|, with the sign of x."""
    a = m.abs(x)
    z = a * a
    near = m.fma(polynomial(m, z, _TANH) * z, a, a)
    far = 1.0 - 2.0 / (exp(m, a + a) + 1.0)
    return m.copysign(m.select(a < 0.625, near, far), x)


def sigmoid(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which cannot overflow."""
    e = exp(m, -m.abs(x))
    return m.select(x < 0.0, e, 1.0) / (e + 1.0)
