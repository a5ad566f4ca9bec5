"""sin, cos, tan of float32 over all of its range, and their inverses, computed in float64.

Lives here: the reduction by pi / 2, sin, cos, tan, asin, acos, atan, atan2.  Not here: coefficients (polynomials.py).

Below 2^28 the reduction subtracts n pi / 2 in two parts; n times the first is exact, as that has 25 bits. Above it, the
bits of 2 / pi that matter are multiplied with x's as integers (M. Payne, R. Hanek, Radian reduction for trigonometric
functions, 1983), one lane after the other, and only where a lane is so large.
"""

from __future__ import annotations

import math

from llvmlite import ir

from ..lanes import F32, F64, I32, I64, Lanes, absolute, copysign, fma, is_nan, nearest, polynomial, select, sqrt
from . import polynomials

HALF_PI = math.pi / 2
_FIRST, _REST = float.fromhex("0x1.921FB5p+0"), float.fromhex("0x1.110B4611A6263p-26")  # of pi / 2
_LARGE = 2.0**28
_WORD = (1 << 32) - 1


def _turns(module: ir.Module) -> ir.Function:
    """The function float -> i64 that gives |x| 2 / pi modulo 4, with 62 bits behind the point, of finite x >= 2^28."""
    name = "turns.f32"
    known = module.globals.get(name)
    if known is not None:
        return known
    words = polynomials.TWO_OVER_PI
    kind = ir.ArrayType(I32, len(words))
    table = ir.GlobalVariable(module, kind, "two_over_pi")
    table.initializer, table.global_constant, table.linkage = ir.Constant(kind, list(words)), True, "internal"
    function = ir.Function(module, ir.FunctionType(I64, [F32]), name)
    function.linkage = "internal"
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def number(value: int) -> ir.Constant:
        return ir.Constant(I64, value)

    bits = b.zext(b.bitcast(function.args[0], I32), I64)
    exponent = b.and_(b.lshr(bits, number(23)), number(255))
    mantissa = b.or_(b.and_(bits, number((1 << 23) - 1)), number(1 << 23))
    # x = mantissa 2^(exponent - 150): bits of 2 / pi before this one only give multiples of 4
    first = b.sub(exponent, number(152))
    word, shift = b.lshr(first, number(5)), b.and_(first, number(31))
    held = [b.zext(b.load(b.gep(table, [ir.Constant(I32, 0), b.add(word, number(i))]), typ=I32), I64) for i in range(4)]
    parts = [b.and_(b.lshr(b.or_(b.shl(held[i], number(32)), held[i + 1]), b.sub(number(32), shift)), number(_WORD))
             for i in range(3)]  # fmt: skip
    low = b.mul(mantissa, parts[2])
    middle = b.add(b.mul(mantissa, parts[1]), b.lshr(low, number(32)))
    high = b.add(b.mul(mantissa, parts[0]), b.lshr(middle, number(32)))
    b.ret(b.or_(b.shl(high, number(32)), b.and_(middle, number(_WORD))))
    return function


def _large_turns(a: Lanes, large: Lanes) -> Lanes:
    """The turns of lanes that are large, where there are any; of others anything."""
    b = a.b
    entry = b.block
    with b.if_then(large.any(), likely=False):
        safe = select(large & (a < float("inf")), a, _LARGE)
        found = safe.map(lambda x: b.call(_turns(b.module), [x]), I64)
        end = b.block
    merged = b.phi(found.x.type)
    merged.add_incoming(a.full(0, I64).x, entry)
    merged.add_incoming(found.x, end)
    return Lanes(b, merged)


def _reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """r of float64, |r| <= pi / 4, and n of int32 modulo 4, with |x| = n pi / 2 + r; NaN of inf and NaN."""
    a = absolute(x)
    small = a < _LARGE
    wide = select(small, a, 0.0).to(F64)
    n = nearest(wide * (1 / HALF_PI))
    r = fma(n, -_REST, fma(n, -_FIRST, wide))
    turns = _large_turns(a, ~small)
    whole = (turns + (1 << 61)) >> 62
    rest = (turns - (whole << 62)).to(F64) * (HALF_PI * 2.0**-62)
    r = select(small, r, rest)
    return select(a < float("inf"), r, r.full(float("nan"))), select(small, n.to(I32), whole.to(I32))


def _sine(r: Lanes, z: Lanes) -> Lanes:
    return fma(polynomial(z, polynomials.SIN) * z, r, r)


def _cosine(z: Lanes) -> Lanes:
    return fma(polynomial(z, polynomials.COS), z * z, fma(z, -0.5, 1.0))


def _signed(y: Lanes, negative: Lanes) -> Lanes:
    return select(negative, -y, y)


def sin(x: Lanes) -> Lanes:
    r, n = _reduced(x)
    z = r * r
    y = select((n & 1) == 0, _sine(r, z), _cosine(z)).to(F32)
    y = _signed(y, (n & 2) != 0)
    return select(x == 0.0, x, _signed(y, x < 0.0))


def cos(x: Lanes) -> Lanes:
    r, n = _reduced(x)
    z = r * r
    y = select((n & 1) == 0, _cosine(z), _sine(r, z)).to(F32)
    return _signed(y, ((n + 1) & 2) != 0)


def tan(x: Lanes) -> Lanes:
    r, n = _reduced(x)
    z = r * r
    s, c = _sine(r, z), _cosine(z)
    even = (n & 1) == 0
    y = (select(even, s, c) / select(even, c, -s)).to(F32)
    return select(x == 0.0, x, _signed(y, x < 0.0))


def _arctangent(t: Lanes) -> Lanes:
    """atan of float64, |t| <= 1."""
    z = t * t
    return fma(polynomial(z, polynomials.ATAN) * z, t, t)


def atan(x: Lanes) -> Lanes:
    a = absolute(x.to(F64))
    steep = a > 1.0
    p = _arctangent(select(steep, 1.0 / a, a))
    return copysign(select(steep, HALF_PI - p, p).to(F32), x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y), in (-pi, pi]; of zeros and infinities what C's atan2 gives."""
    wide_x, wide_y = x.to(F64), y.to(F64)
    ax, ay = absolute(wide_x), absolute(wide_y)
    steep = ay > ax
    less, more = select(steep, ax, ay), select(steep, ay, ax)
    t = select(less == more, less.full(1.0), less / more)  # 0 / 0 and inf / inf too
    t = select(more == 0.0, more.full(0.0), t)
    p = _arctangent(t)
    p = select(steep, HALF_PI - p, p)
    p = select(wide_x.bits() < 0, math.pi - p, p)
    found = copysign(p.to(F32), y)
    return select(is_nan(x) | is_nan(y), found.full(float("nan")), found)


def _arcsine(t: Lanes) -> Lanes:
    """asin of float64, |t| <= 1/2."""
    z = t * t
    return fma(polynomial(z, polynomials.ASIN) * z, t, t)


def _steep(a: Lanes) -> Lanes:
    """2 asin(sqrt((1 - a) / 2)) = acos(a), a above 1/2; NaN above 1."""
    return _arcsine(sqrt(fma(a, -0.5, 0.5))) * 2.0


def asin(x: Lanes) -> Lanes:
    a = absolute(x.to(F64))
    y = select(a > 0.5, HALF_PI - _steep(a), _arcsine(a)).to(F32)
    return select(is_nan(x), x, copysign(y, x))


def acos(x: Lanes) -> Lanes:
    wide = x.to(F64)
    a = absolute(wide)
    edge = _steep(a)
    return select(a > 0.5, select(wide < 0.0, math.pi - edge, edge), HALF_PI - _arcsine(wide)).to(F32)
