"""Activations in float32 alone: for the ends of products and convolutions, where float64 would cost as much as those.

Lives here: exp; sigmoid, tanh, elu, erf, gelu: within 1e-6 |y| + 2e-36 of the exact value y for |x| <= 6, else
6e-6 |y| + 2e-36 (gelu 8e-6 where a processor has no fused multiply-add); gelu_tanh, ten times as far (what its
exponent is off by is that many times as much).
Not here: functions that are right to the last place or nearly (the other modules), those of `fast_math`, which are
right over all of float32's range (../approximate.py).

NaN stays NaN. No operation may be regrouped.
"""

from __future__ import annotations

import math

from llvmlite import ir

from ...core.constants import GELU_CUBIC, GELU_SLOPE
from ...ops import dispatch
from .. import approximate
from ..lanes import I32, Lanes, absolute, copysign, fma, polynomial, select
from . import polynomials

_LOG2E, _LOG2E_REST = 1.4426950408889634, 1.925963033500011e-08  # the second is what the first loses as float32
_MAGIC = 1.5 * 2.0**23  # added to a number below 2^22, it leaves the nearest whole number in the last bits
_LEAST, _MOST = -87.3, 88.3  # exp of these, and what lies between, is normal
_FAR = 14.0  # where gelu is no normal number


def _within(x: Lanes, low: float, high: float) -> Lanes:
    """low <= x <= high; NaN stays. One instruction each."""
    x = select(x.full(high) < x, x.full(high), x)
    return select(x.full(low) > x, x.full(low), x)


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    """The bits of n moved to the exponent's place, and r, with x / ln 2 = n + r. float32's log2(e) is 1.4e-8 off."""
    z = fma(x, _LOG2E, _MAGIC)
    return z.bits() << 23, fma(x, _LOG2E, _MAGIC - z)


def _exp(x: Lanes, more: Lanes | None = None) -> Lanes:
    """exp(x + more) of x within _LEAST and _MOST and a very small `more`: 2^n 2^r.

    The factor 2^n is made of bits. Adding n to the bits of 2^r would save the product, and make numbers of some NaN.
    """
    exponent, r = _split(x)
    if more is not None:
        r = fma(more, _LOG2E, r)
    return fma(polynomial(r, polynomials.SINGLE_EXP2), r, 1.0) * (exponent + 0x3F800000).as_float()


def _expm1(x: Lanes) -> Lanes:
    """exp(x) - 1 of x within _LEAST and _MOST: 2^n (2^r - 1) + (2^n - 1)."""
    exponent, r = _split(x)
    scale = (exponent + 0x3F800000).as_float()
    return fma(polynomial(r, polynomials.SINGLE_EXP2) * r, scale, scale - 1.0)


def _exp_of_any(x: Lanes) -> Lanes:
    """exp(x); below -87.3 possibly that of -87.3, above 88.3 possibly inf.

    With AVX-512 2^t is 2^(t - floor(t)) scaled by 2^floor(t), two instructions that need no bounds. t is rounded, so
    that 6e-8 |x| are lost.
    """
    if not _has_scaling(x):
        return select(x > _MOST, x.full(float("inf")), _exp(_within(x, _LEAST, _MOST)))
    t = x * _LOG2E
    r = _masked("reduce", t, ir.Constant(I32, 9), rounding=8)  # t - floor(t), of infinities 0
    return _masked("scalef", polynomial(r, polynomials.SINGLE_FRACTION), t.x, rounding=4)


def exp(x: Lanes) -> Lanes:
    """exp(x) over all of its range, within 2 units in the last place."""
    if not _has_scaling(x):
        return approximate.exp(x)
    x = _within(x, -105.0, 89.5)
    n = _masked("rndscale", x * _LOG2E, ir.Constant(I32, 8), rounding=8)
    r = fma(x, _LOG2E_REST, fma(x, _LOG2E, -n))
    return _masked("scalef", fma(polynomial(r, polynomials.SINGLE_EXP2), r, 1.0), n.x, rounding=4)


def _has_scaling(x: Lanes) -> bool:
    """Whether there are AVX-512's instructions for exponents, for these lanes."""
    target = getattr(dispatch.state.trace, "target", None)
    return target is not None and x.count in (16, 32, 64) and bool(target.has("avx512dq"))


def _masked(name: str, x: Lanes, operand: ir.Value, rounding: int) -> Lanes:
    """An instruction of AVX-512 on float32, 16 at a time. operand: a vector of as many, or a constant."""
    b = x.b
    if x.count > 16:
        half = x.count // 2
        low, high = (_masked(name, Lanes(b, _lanes(b, x.x, None, start, half)),
                             _lanes(b, operand, None, start, half) if operand.type == x.x.type else operand,
                             rounding).x for start in (0, half))  # fmt: skip
        return Lanes(b, _lanes(b, low, high, 0, x.count))
    kind, bits = x.x.type, ir.IntType(16)
    full = f"llvm.x86.avx512.mask.{name}.ps.512"
    operands = [x.x, operand, ir.Constant(kind, None), ir.Constant(bits, -1), ir.Constant(I32, rounding)]
    function = b.module.globals.get(full) or ir.Function(
        b.module, ir.FunctionType(kind, [o.type for o in operands]), full)  # fmt: skip
    return Lanes(b, b.call(function, operands))


def _lanes(b: ir.IRBuilder, low: ir.Value, high: ir.Value | None, start: int, count: int) -> ir.Value:
    """count lanes from `start` on, of one vector or of two after another."""
    places = ir.Constant(ir.VectorType(I32, count), [ir.Constant(I32, start + i) for i in range(count)])
    return b.shuffle_vector(low, ir.Constant(low.type, ir.Undefined) if high is None else high, places)


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + exp(-x))."""
    return 1.0 / (_exp_of_any(-x) + 1.0)


def tanh(x: Lanes) -> Lanes:
    """t / (t + 2), t = exp(2 |x|) - 1; beyond 10 it is 1."""
    t = _expm1(_within(absolute(x), 0.0, 10.0) * 2.0)
    return copysign(t / (t + 2.0), x)


def elu(x: Lanes, alpha: Lanes | float = 1.0) -> Lanes:
    """x, below 0 alpha (exp(x) - 1)."""
    return select(x < 0.0, _expm1(_within(x, _LEAST, 0.0)) * alpha, x)


def _erfc(a: Lanes, square: Lanes, more: Lanes) -> Lanes:
    """erfc of a, 0 <= a < 10, with square + more = -a^2."""
    t = 1.0 / fma(a, 0.4, 1.0)
    return _exp(_within(square, _LEAST, 0.0), more) * (polynomial(t, polynomials.SINGLE_ERFC) * t)


def erf(x: Lanes) -> Lanes:
    """A polynomial near 0, else 1 - erfc(|x|)."""
    a = _within(absolute(x), 0.0, 4.0)
    z = a * a
    far = 1.0 - _erfc(a, -z, a.full(0.0))
    return copysign(select(a < 1.0, polynomial(z, polynomials.SINGLE_ERF) * a, far), x)


def _beyond(x: Lanes, y: Lanes) -> Lanes:
    """y, and -0.0 where x is below -_FAR; NaN of -inf."""
    return select(x.full(-_FAR) > x, x * 0.0, y)


def gelu(x: Lanes) -> Lanes:
    """x erfc(-x / sqrt 2) / 2 = max(x, 0) - |x| erfc(|x| / sqrt 2) / 2, whose parts never cancel; NaN of -inf."""
    a = _within(absolute(x), 0.0, _FAR)
    half = a * -0.5
    square = half * a
    tail = _erfc(a * math.sqrt(0.5), square, fma(half, a, -square))
    return _beyond(x, fma(half, tail, select(x.full(0.0) > x, x.full(0.0), x)))


def gelu_tanh(x: Lanes) -> Lanes:
    """x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)); D. Hendrycks and K. Gimpel, Gaussian error linear units, 2016."""
    held = _within(x, -_FAR, _FAR)
    inner = fma(held * held, -GELU_CUBIC, -1.0) * held * (2.0 * GELU_SLOPE)
    return _beyond(x, x / (_exp_of_any(inner) + 1.0))
