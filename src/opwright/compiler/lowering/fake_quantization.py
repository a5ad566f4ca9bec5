"""Fake quantization: floats rounded to the numbers of a quantized type.

Lives here: the rules of FakeQuantWithMinMaxArgs, -Vars and -VarsPerChannel, and of FAKE_QUANT.
Not here: conversion to integers (type_conversion.py), the arithmetic of ranges (scalar/fixed_point.py).

y = floor((clamp(x, low, high) - low) / s + 1/2) s + low, with the ends of a range in which 0 is exact.
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64
from ...ops.quantization import Bits
from ...scalar.fixed_point import nudged
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, apply, arg, const, scalar
from ..loops.ops import Map
from .context import LoweringContext, NoLowering
from .operand_expressions import mapped, truth
from .registry import CATALOGUE, rule


def _clamped(x: Expr, low: Expr, high: Expr) -> Expr:
    """Return x between two bounds, NaN where one is."""
    return apply("ieee_minimum", apply("ieee_maximum", x, low), high)


def _rounded(clamped: Expr, low: Expr, inverse: Expr, step: Expr) -> Expr:
    """Return the nearest number of the quantized type."""
    steps = apply("mul", apply("sub", clamped, low), inverse)
    whole = apply("floor", apply("add", steps, const(0.5, low.dtype)))
    return apply("add", apply("mul", whole, step), low)


@rule("FakeQuantWithMinMaxArgs", "FAKE_QUANT")
def fake_quant(ctx: LoweringContext) -> None:
    """Lower rounding to a range that is known."""
    x, f = ctx.operand(0), ctx.operand(0).dtype.np.type
    y, is_builtin = ctx.output(x.shape), ctx.node.dialect != CATALOGUE
    least, most, bits = f(ctx.attr("min")), f(ctx.attr("max")), int(ctx.attr("num_bits"))
    if x.dtype not in (float32, float64) or (is_builtin and x.dtype is float64) or not 2 <= bits <= 16:
        raise NoLowering("options out of range")
    if not least < most:
        raise NoLowering("options out of range")
    step, low, high = nudged(least, most, *map(f, Bits(bits, bool(ctx.attr("narrow_range"))).ends))
    origin, end = (scalar(float(v), x.dtype) for v in (low, high))
    if is_builtin:
        clamped = apply("minimum", apply("maximum", arg(0, x.dtype), origin), end)
    else:
        clamped = _clamped(arg(0, x.dtype), origin, end)
    inverse = scalar(float(f(1) / step), x.dtype)
    mapped(ctx, y, _rounded(clamped, origin, inverse, scalar(float(step), x.dtype)), x)


@rule("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_between(ctx: LoweringContext) -> None:
    """Lower rounding to computed ranges, one or one a channel: their steps and ends first. An empty range gives 0."""
    x, low, high = (ctx.operand(i) for i in range(3))
    y, dtype = ctx.output(x.shape), ctx.operand(0).dtype
    if {low.dtype, high.dtype} != {dtype} or low.shape != high.shape or not x.size:
        raise NoLowering(f"{x} between {low} and {high}")
    smallest, largest = Bits(int(ctx.attr("num_bits")), bool(ctx.attr("narrow_range"))).ends
    q, most, one = (const(v, dtype) for v in (smallest, largest, 1.0))

    def computed(name: str, value: Expr, *operands: Buffer) -> Buffer:
        result = ctx.new(value.dtype, low.shape, f".{name}")
        ctx.add(Map, result, operands, value)
        return result

    a, b, zero = arg(0, dtype), arg(1, dtype), const(0.0, dtype)
    width = apply("div", apply("sub", b, a), const(largest - smallest, dtype))
    step = computed("step", width, low.buffer, high.buffer)
    inexact = _clamped(apply("sub", q, apply("div", a, b)), q, most)
    origin = apply("floor", apply("add", inexact, const(0.5, dtype)))
    zero_point = computed("zero", origin, low.buffer, step)
    ends = [computed(f"end{n.value}", apply("mul", apply("sub", n, a), b), zero_point, step) for n in (q, most)]
    inverse = computed("inverse", apply("div", one, a), step)
    both_zero = apply("logical_and", truth("equal", a, zero), truth("equal", b, zero), dtype=bool_)
    is_empty = computed("empty", both_zero, low.buffer, high.buffer)
    args: list[Any] = [arg(i, dtype) for i in range(5)]
    value = _rounded(_clamped(args[0], args[1], args[2]), args[1], args[3], args[4])
    value = Expr("select", dtype, (arg(5, bool_), zero, value))
    ctx.add(Map, y.buffer, (x.buffer, *ends, inverse, step, is_empty), value)
