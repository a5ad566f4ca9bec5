"""Functions of float64, in float64: exp, log and log1p within 1 unit in the last place, expm1 within 2, tanh and erf
within 3, erfc within 6.

Lives here: vector code, of any array namespace with the functions of `MathNamespace`.
Not here: functions of float32 (the other modules), coefficients (polynomials.py), the pieces of erf (../arrays.py), the
functions of float64 that the C library computes (../table.py).

Results overflow to inf and underflow through denormals to 0; NaN stays NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arrays import ERF_END, ERF_SMALL, ERFC_END, ERFC_MIDDLE, erf_small, erfc_far, erfc_middle
from ..formulas import is_nan, polynomial
from . import polynomials
from .exponential import LOG2E, decompose, power_of_two

if TYPE_CHECKING:
    from ..namespace import MathNamespace, Values

_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
# parts of ln 2; the first has 32 bits, so that its products with exponents are exact
_LEAST, _MOST = -746.0, 710.0  # exp of these is 0 and inf
_NORMAL = 2.0**-1022
_TANH_END = 22.0  # where tanh is 1
_INFINITY, _NAN = float("inf"), float("nan")


def _reduced(m: MathNamespace[Values], x: Values) -> tuple[Values, Values]:
    """Compute a whole n and exp(r) - 1, x = n ln 2 + r and |r| <= ln 2 / 2."""
    n = m.round_even(x * LOG2E)
    r = m.fma(n, -_LN2_LOW, m.fma(n, -_LN2_HIGH, x))
    return n, m.fma(polynomial(m, r, polynomials.DOUBLE_EXP), r * r, r)


def _bounded(m: MathNamespace[Values], x: Values) -> Values:
    """Clamp to where exp is neither 0 nor inf; NaN stays."""
    return m.minimum(m.full_like(x, _MOST), m.maximum(m.full_like(x, _LEAST), x))


def exp(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 2^n exp(r); 2^n in two factors, as neither 2^1024 nor 2^-1075 is a normal number."""
    n, less = _reduced(m, _bounded(m, x))
    half = m.floor(n * 0.5)
    return m.select(is_nan(m, x), x, (less + 1.0) * power_of_two(m, half) * power_of_two(m, n - half))


def expm1(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 2^n (exp(r) - 1) + (2^n - 1); 2^n doubled at the end, as 2^1024 is not a number. -0.0 stays."""
    n, less = _reduced(m, _bounded(m, x))
    half = power_of_two(m, m.maximum(m.full_like(n, -100.0), n - 1.0))
    result = m.fma(less, half, half - 0.5) * 2.0
    return m.select((x == 0.0) | is_nan(m, x), x, result)


def _logarithm(m: MathNamespace[Values], e: Values, less: Values, rest: Values) -> Values:
    """Compute e ln 2 + log(1 + less) + rest by 2 atanh(s), s = less / (2 + less), with the exact `less` apart."""
    s = less / (less + 2.0)
    z = s * s
    half = less * less * 0.5
    tail = m.fma(s, m.fma(polynomial(m, z, polynomials.DOUBLE_LOG), z, half), m.fma(e, _LN2_LOW, rest))
    return m.fma(e, _LN2_HIGH, less - (half - tail))


def _ends(m: MathNamespace[Values], x: Values, pole: float, logarithm: Values) -> Values:
    """Add the pole of a logarithm: -inf there, NaN below it and of NaN, inf of inf."""
    logarithm = m.select(x > pole, logarithm, m.select(x == pole, m.full_like(x, -_INFINITY), _NAN))
    return m.select(x == _INFINITY, x, logarithm)


def log(m: MathNamespace[Values], x: Values) -> Values:
    """Compute e ln 2 + log(f), x = 2^e f; denormal numbers are scaled first."""
    small = x < _NORMAL
    e, f = decompose(m, m.select(small, x * 2.0**54, x))
    return _ends(m, x, 0.0, _logarithm(m, m.select(small, e - 54.0, e), f - 1.0, m.full_like(x, 0.0)))


def log1p(m: MathNamespace[Values], x: Values) -> Values:
    """Compute log(y) + (1 + x - y) / y of y = 1 + x, rounded; x itself where it is small. -0.0 stays."""
    y = x + 1.0
    lost = m.select(x > 1.0, 1.0 - (y - x), x - (y - 1.0))
    e, f = decompose(m, y)
    is_near = (x > -0.25) & (x < 0.375)
    e, less = m.select(is_near, 0.0, e), m.select(is_near, x, f - 1.0)
    logarithm = _logarithm(m, e, less, m.select(is_near, 0.0, lost / y))
    return m.select(x == 0.0, x, _ends(m, x, -1.0, logarithm))


def tanh(m: MathNamespace[Values], x: Values) -> Values:
    """Compute t / (t + 2), t = exp(2 |x|) - 1; -0.0 stays."""
    a = m.abs(x)
    n, less = _reduced(m, m.select(a < _TANH_END, a, _TANH_END) * 2.0)
    scale = power_of_two(m, n)
    t = m.fma(less, scale, scale - 1.0)
    return m.select(is_nan(m, x), x, m.copysign(t / (t + 2.0), x))


def _exp_minus_square(m: MathNamespace[Values], a: Values) -> Values:
    """Compute exp(-a^2) of 0 <= a <= 30, without the rounding of a^2."""
    square = a * a
    lost = m.fma(a, a, -square)
    n, less = _reduced(m, -square)
    half = m.floor(n * 0.5)
    f = less + 1.0
    return m.fma(f, -lost, f) * power_of_two(m, half) * power_of_two(m, n - half)


def _erfc_large(m: MathNamespace[Values], a: Values) -> Values:
    """Compute erfc of a > ERF_SMALL."""
    bounded = m.select(a < ERFC_END, a, ERFC_END)
    middle = erfc_middle(m.select(a < ERFC_MIDDLE, a, ERFC_MIDDLE))
    far = erfc_far(m.select(bounded > ERFC_MIDDLE, bounded, ERFC_MIDDLE))
    return _exp_minus_square(m, bounded) * m.select(a <= ERFC_MIDDLE, middle, far)


def erf(m: MathNamespace[Values], x: Values) -> Values:
    a = m.abs(x)
    large = m.copysign(1.0 - _erfc_large(m, m.select(a < ERF_END, a, ERF_END)), x)
    small = erf_small(m.select(a < ERF_SMALL, x, ERF_SMALL))
    return m.select(is_nan(m, x), x, m.select(a <= ERF_SMALL, small, large))


def erfc(m: MathNamespace[Values], x: Values) -> Values:
    """Compute 1 - erf(x), to full relative accuracy."""
    a = m.abs(x)
    large = _erfc_large(m, a)
    small = 1.0 - erf_small(m.select(a < ERF_SMALL, x, ERF_SMALL))
    result = m.select(a <= ERF_SMALL, small, m.select(x < 0.0, 2.0 - large, large))
    return m.select(is_nan(m, x), x, result)
