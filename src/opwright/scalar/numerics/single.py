"""Functions in float32 only, where float64 would double the cost: faster and less accurate than the other modules.

Lives here: exp, sin, cos, within 3e-7 |y| of the exact value y; sigmoid, silu, tanh, elu, erf, erfc, within
1e-6 |y| + 2e-36 for |x| <= 6, else 6e-6 |y| + 2e-36; gelu and gelu_tanh, within 2.4e-7 |x|, as a sum of 1 and erf or
tanh leaves them. `exp_nonpositive`, for softmax. `relaxed_exp`, `relaxed_log`, `relaxed_tanh`, `relaxed_sigmoid` of
`fast_math`, over all of float32's range.
Not here: functions within about one unit in the last place (the other modules); which operators use these
(scalar/table.py).

NaN stays NaN. No operation may be reassociated. The relaxed functions are right at the ends: exp overflows to inf and
underflows through denormals to 0, log(0) = -inf, log(x < 0) = NaN, log(inf) = inf, tanh saturates at 1 and keeps -0.0.
The polynomials of log and tanh are those of Cephes (S. L. Moshier, single precision).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import float32, int32
from ..formulas import is_nan, polynomial
from . import polynomials, trigonometric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..namespace import MathNamespace, Values

_LOG2E, _LOG2E_REST = 1.4426950408889634, 1.925963033500011e-08  # the second is what the first loses as float32
_MAGIC = 1.5 * 2.0**23 + 127  # added to a number below 2^22, it leaves the nearest whole number as an exponent's bits
_LEAST, _MOST = -87.3, 88.3  # exp of these, and what lies between, is normal
_UNDERFLOW = -88.05  # -127 ln 2, rounded down
_FLAT, _OVER = 87.3, 88.8  # 1 + exp of the negative of one is 1, exp of the other is inf
_ERFC_END = 9.34  # where erfc is not a normal number
_TANH_END = 9.02  # where tanh is 1
# where the odd parts of gelu and gelu_tanh are 1 / 2, with a fused multiply-add and without
_GELU_END, _GELU_TANH_END = 5.4000125, 5.0000043
_ERFC_SLOPE = 0.4  # of the t = 1 / (1 + 0.4 a) of polynomials.SINGLE_ERFC
_SHIFT = 1.5 * 2.0**23  # added to a number below 2^22, it leaves the nearest whole number in the lowest bits
_HALF_PI = tuple(map(float.fromhex, ("0x1.92p+0", "0x1.fb4p-12", "0x1.444p-24", "0x1.68c234p-39")))
# parts of pi / 2: multiples of 2^-11, 2^-23, 2^-35, and the rest; products of the first three and n are exact
_MANY_TURNS = 2.0**12  # beyond it n has more than 12 bits


def _within(m: MathNamespace[Values], x: Values, low: float, high: float) -> Values:
    """Clamp to low <= x <= high; NaN stays. One instruction each."""
    return m.maximum(m.full_like(x, low), _at_most(m, x, high))


def _at_most(m: MathNamespace[Values], x: Values, limit: float) -> Values:
    """Clamp to x <= limit; NaN stays. One instruction."""
    return m.minimum(m.full_like(x, limit), x)


def _split(m: MathNamespace[Values], x: Values) -> tuple[Values, Values]:
    """Compute 2^n and r, with x / ln 2 = n + r. float32's log2(e) is 1.4e-8 off."""
    z = m.fma(x, _LOG2E, _MAGIC)
    return m.bitcast(m.bitcast(z, int32) << 23, float32), m.fma(x, _LOG2E, _MAGIC - z)


def _reduced(m: MathNamespace[Values], x: Values, step: float) -> tuple[Values, Values]:
    """Compute 2^n and r, with x = step n ln 2 + r. ln 2 has two parts, of which the first times n is exact."""
    z = m.fma(x, _LOG2E / step, _MAGIC)
    n = z - _MAGIC
    r = m.fma(n, -step * _LN2_LOW, m.fma(n, -step * _LN2_HIGH, x))
    return m.bitcast(m.bitcast(z, int32) << 23, float32), r


def _exp(m: MathNamespace[Values], x: Values, more: Values | None = None) -> Values:
    """Compute exp(x + more) of x within _LEAST and _MOST and a very small `more`: 2^n 2^r.

    The factor 2^n is made of bits. Adding n to the bits of 2^r would save the product, and make numbers of some NaN.
    """
    scale, r = _split(m, x)
    if more is not None:
        r = m.fma(more, _LOG2E, r)
    return m.fma(polynomial(m, r, polynomials.SINGLE_EXP2), r, 1.0) * scale


def _expm1(m: MathNamespace[Values], x: Values) -> Values:
    """Compute exp(x) - 1 of x within _LEAST and _MOST: 2^n (2^r - 1) + (2^n - 1)."""
    scale, r = _split(m, x)
    return m.fma(polynomial(m, r, polynomials.SINGLE_EXP2) * r, scale, scale - 1.0)


def _exp_of_any(m: MathNamespace[Values], x: Values) -> Values:
    """Compute exp(x); below -87.3 possibly that of -87.3, above 88.3 possibly inf.

    With AVX-512 2^t is 2^(t - floor(t)) scaled by 2^floor(t), two instructions that need no bounds. t is rounded, so
    that 6e-8 |x| are lost.
    """
    if not m.has_exponents(x):
        return m.select(x > _MOST, m.full_like(x, float("inf")), _exp(m, _within(m, x, _LEAST, _MOST)))
    t = x * _LOG2E
    return m.scale(polynomial(m, m.fraction(t), polynomials.SINGLE_FRACTION), t)


def exp(m: MathNamespace[Values], x: Values) -> Values:
    """Compute exp(x) over all of its range, within 2 units in the last place."""
    if not m.has_exponents(x):
        return relaxed_exp(m, x)
    x = _within(m, x, -105.0, 89.5)
    n = m.round_exponent(x * _LOG2E)
    r = m.fma(x, _LOG2E_REST, m.fma(x, _LOG2E, -n))
    return m.scale(m.fma(polynomial(m, r, polynomials.SINGLE_EXP2), r, 1.0), n)


def exp_nonpositive(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 2^n e^r of x <= 0 with r = x - n ln 2; 0 where it is not a normal number: the factor 2^-127 has the bits
    of 0.
    """
    if m.has_exponents(x):
        return exp(m, x)
    scale, r = _reduced(m, m.maximum(m.full_like(x, _UNDERFLOW), x), 1.0)
    return m.fma(polynomial(m, r, polynomials.SINGLE_EXP), r, 1.0) * scale


def sigmoid(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 1 / (1 + exp(-x))."""
    return 1.0 / (_exp_of_any(m, -x) + 1.0)


def silu(m: MathNamespace[Values], x: Values) -> Values:
    """Compute x / (1 + exp(-x)); NaN of -inf.

    Without AVX-512's instructions t = -x / ln 2 is rounded before it is split: other ports than those of the
    polynomial add. Where it is 128 the factor 2^n is inf.
    """
    if m.has_exponents(x):
        return x / (_exp_of_any(m, -x) + 1.0)
    t = _within(m, x, -_OVER, _FLAT) * -_LOG2E
    z = t + _MAGIC
    r = t + (_MAGIC - z)
    scale = m.bitcast(m.bitcast(z, int32) << 23, float32)
    return x / m.fma(m.fma(polynomial(m, r, polynomials.SHORT_EXP2), r, 1.0), scale, 1.0)


def tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute x p(x^2) / q(x^2), at most 1."""
    x = _within(m, x, -_TANH_END, _TANH_END)
    z = x * x
    y = polynomial(m, z, polynomials.SINGLE_TANH) * x / polynomial(m, z, polynomials.SINGLE_TANH_DIVISOR)
    return _within(m, y, -1.0, 1.0)


def elu(m: MathNamespace[Values], x: Values, alpha: Values | float = 1.0) -> Values:
    """Compute x, below 0 alpha (exp(x) - 1)."""
    return m.select(x < 0.0, _expm1(m, _within(m, x, _LEAST, 0.0)) * alpha, x)


def _erfc(m: MathNamespace[Values], a: Values, square: Values, more: Values) -> Values:
    """Compute erfc of a, 0 <= a < 9.4, with square + more = -a^2."""
    t = 1.0 / m.fma(a, _ERFC_SLOPE, 1.0)
    return _exp(m, square, more) * (polynomial(m, t, polynomials.SINGLE_ERFC) * t)


def erf(m: MathNamespace[Values], x: Values) -> Values:
    """Compute a polynomial near 0, else 1 - erfc(|x|)."""
    a = _at_most(m, m.abs(x), 4.0)
    z = a * a
    far = 1.0 - _erfc(m, a, -z, m.full_like(a, 0.0))
    return m.copysign(m.select(a < 1.0, polynomial(m, z, polynomials.SINGLE_ERF) * a, far), x)


def erfc(m: MathNamespace[Values], x: Values) -> Values:
    """Compute erfc(|x|), of negative numbers less than 2; beyond 9.34 it is 0."""
    a = _at_most(m, m.abs(x), _ERFC_END)
    square = a * a
    tail = _erfc(m, a, -square, m.fma(-a, a, square))
    zero = m.full_like(x, 0.0)
    return m.select(zero > x, 2.0 - tail, m.select(x > _ERFC_END, zero, tail))


def _gelu(
    m: MathNamespace[Values], x: Values, end: float, numerator: Sequence[float], denominator: Sequence[float]
) -> Values:
    """Compute x (1 / 2 + f(x)) of an odd f = x p(x^2) / q(x^2), at most 1 / 2; NaN of -inf.

    f of +-end is +-1 / 2, or one bit above it, which the sum loses: gelu is x beyond it, and -0.0 below -end.
    """
    c = _within(m, x, -end, end)
    z = c * c
    share = m.fma(c, polynomial(m, z, numerator) / polynomial(m, z, denominator), 0.5)
    return x * m.maximum(m.full_like(x, 0.0), share)


def gelu(m: MathNamespace[Values], x: Values) -> Values:
    """Compute x (1 + erf(x / sqrt 2)) / 2."""
    return _gelu(m, x, _GELU_END, polynomials.SINGLE_GELU, polynomials.SINGLE_GELU_DIVISOR)


def gelu_tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. source: Hendrycks and Gimpel, 2016."""
    return _gelu(m, x, _GELU_TANH_END, polynomials.SINGLE_GELU_TANH, polynomials.SINGLE_GELU_TANH_DIVISOR)


# ---- sin and cos --------------------------------------------------------------------------------------------------


def _sine(m: MathNamespace[Values], x: Values, quarters: int) -> Values:
    """Compute the sine of x + quarters pi / 2, |x| <= _MANY_TURNS.

    Differences with the first two parts of n pi / 2 are exact: multiples of 2^-24 or of the last bit of x, below 1.
    """
    z = m.fma(x, 2.0 / math.pi, _SHIFT)
    n = z - _SHIFT
    r = x
    for part in _HALF_PI:
        r = m.fma(n, -part, r)
    square = r * r
    sine = m.fma(polynomial(m, square, polynomials.SINGLE_SIN) * square, r, r)
    cosine = m.fma(polynomial(m, square, polynomials.SINGLE_COS), square, 1.0)
    quadrant = m.bitcast(z, int32) + quarters
    y = m.select((quadrant & 1) == 0, sine, cosine)
    return m.bitcast(m.bitcast(y, int32) ^ ((quadrant & 2) << 30), float32)


def _or_exact(
    m: MathNamespace[Values], x: Values, y: Values, exact: Callable[[MathNamespace[Values], Values], Values]
) -> Values:
    """Return y, or exact(x) beyond _MANY_TURNS and of NaN."""
    beyond = ~(m.abs(x) <= _MANY_TURNS)
    return m.where_any(beyond, lambda: m.select(beyond, exact(m, x), y), y)


def sin(m: MathNamespace[Values], x: Values) -> Values:
    """Compute sin; -0.0 stays."""
    return _or_exact(m, x, m.select(x == 0.0, x, _sine(m, x, 0)), trigonometric.sin)


def cos(m: MathNamespace[Values], x: Values) -> Values:
    """Compute cos."""
    return _or_exact(m, x, _sine(m, x, 1), trigonometric.cos)


# ---- relaxed functions --------------------------------------------------------------------------------------------

# lowest power first
_RELAXED_LOG = (
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
_RELAXED_TANH = (-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


def relaxed_exp(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 2^n 2^n e^r with r = x - 2 n ln 2: either factor is normal, and only the last product can overflow or be
    denormal.
    """
    scale, r = _reduced(m, _within(m, x, -104.0, 89.0), 2.0)
    return m.fma(polynomial(m, r, polynomials.SINGLE_WIDE_EXP), r, 1.0) * scale * scale


def relaxed_log(m: MathNamespace[Values], x: Values) -> Values:
    """Compute e ln 2 + log(1 + f), with x = 2^e (1 + f) and 1 + f between the roots of 1/2 and 2."""
    tiny = x < 2.0**-126
    bits = m.bitcast(m.select(tiny, x * 2.0**23, x), int32)
    e = (bits - 0x3F3504F3) >> 23
    f = m.bitcast(bits - (e << 23), float32) - 1.0
    e = m.convert(e - m.select(tiny, m.full_like(e, 23), 0), float32)
    z = f * f
    y = m.fma(e, _LN2_LOW, polynomial(m, f, _RELAXED_LOG) * f * z)
    y = m.fma(e, _LN2_HIGH, f + m.fma(z, -0.5, y))
    y = m.select(x == 0.0, m.full_like(y, -float("inf")), y)
    y = m.select(x == float("inf"), x, y)
    return m.select((x < 0.0) | is_nan(m, x), m.full_like(y, float("nan")), y)


def relaxed_tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute a polynomial near 0, else 1 - 2 / (e^2a + 1), a = |x|, with the sign of x."""
    a = m.abs(x)
    z = a * a
    near = m.fma(polynomial(m, z, _RELAXED_TANH) * z, a, a)
    far = 1.0 - 2.0 / (relaxed_exp(m, a + a) + 1.0)
    return m.copysign(m.select(a < 0.625, near, far), x)


def relaxed_sigmoid(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which cannot overflow."""
    e = relaxed_exp(m, -m.abs(x))
    return m.select(x < 0.0, e, 1.0) / (e + 1.0)
