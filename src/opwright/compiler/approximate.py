"""Exp, Log, Tanh and Sigmoid of float32 as straight-line instructions, which LLVM makes vectors of.

Lives here: instructions for one scalar each, used in kernels under the switch `fast_math`.
Not here: which operators use them (elementwise.py).

All are right at the ends: NaN stays NaN, exp overflows to inf and underflows through denormals to 0, log(0) = -inf,
log(x < 0) = NaN, log(inf) = inf, tanh saturates at 1 and keeps -0.0. Polynomials are those of Cephes (S. L. Moshier,
single precision); no instruction here may be regrouped, as they rely on the order they stand in.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from llvmlite import ir

_F32, _I32 = ir.FloatType(), ir.IntType(32)

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


def _number(value: float) -> ir.Constant:
    return ir.Constant(_F32, struct.unpack("f", struct.pack("f", value))[0])


def _call(b: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    return b.call(b.module.declare_intrinsic(f"llvm.{name}", [_F32]), list(args))


def _fused(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """x * y + z, rounded once where the processor can."""
    kind = ir.FunctionType(_F32, [_F32] * 3)
    return b.call(b.module.declare_intrinsic("llvm.fmuladd", [_F32], kind), [x, y, z])


def _polynomial(b: ir.IRBuilder, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    total = _number(coefficients[0])
    for c in coefficients[1:]:
        total = _fused(b, total, x, _number(c))
    return total


def _power_of_two(b: ir.IRBuilder, n: ir.Value) -> ir.Value:
    """2^n of an int32 in [-126, 127], by its bits."""
    return b.bitcast(b.shl(b.add(n, ir.Constant(_I32, 127)), ir.Constant(_I32, 23)), _F32)


def exp(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """2^n e^r with r = x - n ln 2. 2^n goes in as two factors: it overflows, and is denormal, only at the last."""
    x = b.select(b.fcmp_ordered(">", x, _number(89.0)), _number(89.0), x)
    x = b.select(b.fcmp_ordered("<", x, _number(-104.0)), _number(-104.0), x)
    n = _call(b, "rint", b.fmul(x, _number(1.44269504088896341)))
    r = _fused(b, n, _number(-_LN2_HIGH), x)
    r = _fused(b, n, _number(-_LN2_LOW), r)
    p = _fused(b, _polynomial(b, r, _EXP), b.fmul(r, r), r)
    p = b.fadd(p, _number(1.0))
    whole = b.fptosi(b.select(b.fcmp_unordered("uno", n, n), _number(0.0), n), _I32)  # of a NaN it is undefined
    half = b.ashr(whole, ir.Constant(_I32, 1))
    p = b.fmul(p, _power_of_two(b, half))
    return b.fmul(p, _power_of_two(b, b.sub(whole, half)))


def log(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """e ln 2 + log(1 + f), with x = 2^e (1 + f) and 1 + f between the roots of 1/2 and 2."""
    tiny = b.fcmp_ordered("<", x, _number(2.0**-126))
    bits = b.bitcast(b.select(tiny, b.fmul(x, _number(2.0**23)), x), _I32)
    e = b.ashr(b.sub(bits, ir.Constant(_I32, 0x3F3504F3)), ir.Constant(_I32, 23))
    f = b.fsub(b.bitcast(b.sub(bits, b.shl(e, ir.Constant(_I32, 23))), _F32), _number(1.0))
    e = b.sitofp(b.sub(e, b.select(tiny, ir.Constant(_I32, 23), ir.Constant(_I32, 0))), _F32)
    z = b.fmul(f, f)
    y = b.fmul(b.fmul(_polynomial(b, f, _LOG), f), z)
    y = _fused(b, e, _number(_LN2_LOW), y)
    y = _fused(b, z, _number(-0.5), y)
    y = _fused(b, e, _number(_LN2_HIGH), b.fadd(f, y))
    infinity = _number(float("inf"))
    y = b.select(b.fcmp_ordered("==", x, _number(0.0)), _number(float("-inf")), y)
    y = b.select(b.fcmp_ordered("==", x, infinity), infinity, y)
    return b.select(b.fcmp_unordered("<", x, _number(0.0)), _number(float("nan")), y)  # below 0, or a NaN


def tanh(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """A polynomial near 0, else 1 - 2 / (e^2a + 1), a = |x|; the sign is x's."""
    a = _call(b, "fabs", x)
    z = b.fmul(a, a)
    near = _fused(b, b.fmul(_polynomial(b, z, _TANH), z), a, a)
    e = exp(b, b.fadd(a, a))
    far = b.fsub(_number(1.0), b.fdiv(_number(2.0), b.fadd(e, _number(1.0))))
    kind = ir.FunctionType(_F32, [_F32] * 2)
    y = b.select(b.fcmp_ordered("<", a, _number(0.625)), near, far)
    return b.call(b.module.declare_intrinsic("llvm.copysign", [_F32], kind), [y, x])


def sigmoid(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which cannot overflow."""
    e = exp(b, b.fneg(_call(b, "fabs", x)))
    above = b.select(b.fcmp_ordered("<", x, _number(0.0)), e, _number(1.0))
    return b.fdiv(above, b.fadd(_number(1.0), e))
