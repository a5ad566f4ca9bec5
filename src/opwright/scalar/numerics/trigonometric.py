"""sin, cos, tan of float32 over all of its range, and their inverses, computed in float64.

Lives here: the reduction by pi / 2, sin, cos, tan, asin, acos, atan, atan2.  Not here: coefficients (polynomials.py).

Below 2^28 the reduction subtracts n pi / 2 in two parts; n times the first is exact, as that has 25 bits. Above it, the
bits of 2 / pi that matter are multiplied with x's as integers (M. Payne, R. Hanek, Radian reduction for trigonometric
functions, 1983), one lane after the other, and only where a lane is so large.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import float32, float64, int32, int64
from ..formulas import is_nan, polynomial
from . import polynomials

if TYPE_CHECKING:
    from ..namespace import MathNamespace, Values

HALF_PI = math.pi / 2
_FIRST, _REST = float.fromhex("0x1.921FB5p+0"), float.fromhex("0x1.110B4611A6263p-26")  # of pi / 2
_LARGE = 2.0**28
_WORD = (1 << 32) - 1


def _turns(m: MathNamespace[Values], x: Values) -> Values:
    """Compute x 2 / pi modulo 4 of finite x >= 2^28, an int64 with 62 fraction bits."""
    bits = m.convert(m.bitcast(x, int32), int64)
    exponent = (bits >> 23) & 255
    mantissa = (bits & ((1 << 23) - 1)) | (1 << 23)
    # x = mantissa 2^(exponent - 150): bits of 2 / pi before this one only give multiples of 4
    first = exponent - 152
    word, shift = first >> 5, first & 31
    words = [m.table_element("two_over_pi", polynomials.TWO_OVER_PI, word + i) for i in range(4)]
    parts = [((words[i] << 32 | words[i + 1]) >> (32 - shift)) & _WORD for i in range(3)]
    low = mantissa * parts[2]
    middle = mantissa * parts[1] + (low >> 32)
    high = mantissa * parts[0] + (middle >> 32)
    return (high << 32) | (middle & _WORD)


def _large_turns(m: MathNamespace[Values], a: Values, large: Values) -> Values:
    """Compute the turns of large lanes, if any; other lanes are undefined."""

    def reduce_large() -> Values:
        safe = m.select(large & (a < float("inf")), a, _LARGE)
        return m.each_lane("turns.f32", _turns, safe, int64)

    return m.where_any(large, reduce_large, m.full_like(a, 0, int64))


def _reduced(m: MathNamespace[Values], x: Values) -> tuple[Values, Values]:
    """Compute r of float64, |r| <= pi / 4, and n of int32 modulo 4, with |x| = n pi / 2 + r; NaN of inf and NaN."""
    a = m.abs(x)
    small = a < _LARGE
    wide = m.convert(m.select(small, a, 0.0), float64)
    n = m.round_even(wide * (1 / HALF_PI))
    r = m.fma(n, -_REST, m.fma(n, -_FIRST, wide))
    turns = _large_turns(m, a, ~small)
    quarter_turns = (turns + (1 << 61)) >> 62
    remainder = m.convert(turns - (quarter_turns << 62), float64) * (HALF_PI * 2.0**-62)
    r = m.select(small, r, remainder)
    n = m.select(small, m.convert(n, int32), m.convert(quarter_turns, int32))
    return m.select(a < float("inf"), r, m.full_like(r, float("nan"))), n


def _sine(m: MathNamespace[Values], r: Values, z: Values) -> Values:
    return m.fma(polynomial(m, z, polynomials.SIN) * z, r, r)


def _cosine(m: MathNamespace[Values], z: Values) -> Values:
    return m.fma(polynomial(m, z, polynomials.COS), z * z, m.fma(z, -0.5, 1.0))


def _signed(m: MathNamespace[Values], y: Values, negative: Values) -> Values:
    return m.select(negative, -y, y)


def sin(m: MathNamespace[Values], x: Values) -> Values:
    r, n = _reduced(m, x)
    z = r * r
    y = m.convert(m.select((n & 1) == 0, _sine(m, r, z), _cosine(m, z)), float32)
    y = _signed(m, y, (n & 2) != 0)
    return m.select(x == 0.0, x, _signed(m, y, x < 0.0))


def cos(m: MathNamespace[Values], x: Values) -> Values:
    r, n = _reduced(m, x)
    z = r * r
    y = m.convert(m.select((n & 1) == 0, _cosine(m, z), _sine(m, r, z)), float32)
    return _signed(m, y, ((n + 1) & 2) != 0)


def tan(m: MathNamespace[Values], x: Values) -> Values:
    r, n = _reduced(m, x)
    z = r * r
    s, c = _sine(m, r, z), _cosine(m, z)
    even = (n & 1) == 0
    y = m.convert(m.select(even, s, c) / m.select(even, c, -s), float32)
    return m.select(x == 0.0, x, _signed(m, y, x < 0.0))


def _arctangent(m: MathNamespace[Values], t: Values) -> Values:
    """Compute atan of float64, |t| <= 1."""
    z = t * t
    return m.fma(polynomial(m, z, polynomials.ATAN) * z, t, t)


def atan(m: MathNamespace[Values], x: Values) -> Values:
    a = m.abs(m.convert(x, float64))
    steep = a > 1.0
    p = _arctangent(m, m.select(steep, 1.0 / a, a))
    return m.copysign(m.convert(m.select(steep, HALF_PI - p, p), float32), x)


def atan2(m: MathNamespace[Values], y: Values, x: Values) -> Values:
    """Compute the angle of the point (x, y), in (-pi, pi]; of zeros and infinities as C's atan2."""
    wide_x, wide_y = m.convert(x, float64), m.convert(y, float64)
    ax, ay = m.abs(wide_x), m.abs(wide_y)
    steep = ay > ax
    less, more = m.select(steep, ax, ay), m.select(steep, ay, ax)
    t = m.select(less == more, m.full_like(less, 1.0), less / more)  # 0 / 0 and inf / inf too
    t = m.select(more == 0.0, m.full_like(more, 0.0), t)
    p = _arctangent(m, t)
    p = m.select(steep, HALF_PI - p, p)
    p = m.select(m.bitcast(wide_x, int64) < 0, math.pi - p, p)
    angle = m.copysign(m.convert(p, float32), y)
    return m.select(is_nan(m, x) | is_nan(m, y), m.full_like(angle, float("nan")), angle)


def _arcsine(m: MathNamespace[Values], t: Values) -> Values:
    """Compute asin of float64, |t| <= 1/2."""
    z = t * t
    return m.fma(polynomial(m, z, polynomials.ASIN) * z, t, t)


def _steep(m: MathNamespace[Values], a: Values) -> Values:
    """Compute 2 asin(sqrt((1 - a) / 2)) = acos(a), a above 1/2; NaN above 1."""
    return _arcsine(m, m.sqrt(m.fma(a, -0.5, 0.5))) * 2.0


def asin(m: MathNamespace[Values], x: Values) -> Values:
    a = m.abs(m.convert(x, float64))
    y = m.convert(m.select(a > 0.5, HALF_PI - _steep(m, a), _arcsine(m, a)), float32)
    return m.select(is_nan(m, x), x, m.copysign(y, x))


def acos(m: MathNamespace[Values], x: Values) -> Values:
    wide = m.convert(x, float64)
    a = m.abs(wide)
    edge = _steep(m, a)
    y = m.select(a > 0.5, m.select(wide < 0.0, math.pi - edge, edge), HALF_PI - _arcsine(m, wide))
    return m.convert(y, float32)
