"""Activations: functions of one operand, float32 or quantised.

Lives here: the rules of RELU and its kin, GELU, LEAKY_RELU, PRELU.
Not here: quantised ones, which are tables (elementwise.py), but for PRELU; other functions (functions.py).
"""

from __future__ import annotations

import math

import numpy as np

from ...core.constants import CLAMPS, GELU_CUBIC, GELU_SLOPE
from ...core.dtypes import float16, float32, int8, int16, uint8
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from .context import LoweringContext, NoLowering
from .elementwise import alike, broadcast, mapped, plain, truth, unary
from .quantized import clamped, in_steps, real_number, steps, steps_per
from .registry import rule


@rule(*CLAMPS)
def clamp(ctx: LoweringContext) -> None:
    unary(ctx, lambda x: clamped(x, ctx.operator))


@rule("GELU")
def gelu(ctx: LoweringContext) -> None:
    if ctx.operand(0).dtype is float16:
        unary(ctx, _gelu_by_steps if ctx.attr("approximate") else _gelu_by_complement)
        return
    unary(ctx, lambda x: apply("gelu_tanh" if ctx.attr("approximate") else "gelu", x))


def _gelu_by_steps(x: Expr) -> Expr:
    """x (1 + tanh(a (x + b x^3))) / 2, each step of which is rounded to float16."""
    slope, cubic, half, one = (const(float(np.float16(n)), float16) for n in (GELU_SLOPE, GELU_CUBIC, 0.5, 1.0))
    cube = apply("mul", apply("mul", x, x), x)
    inner = apply("mul", slope, apply("add", x, apply("mul", cubic, cube)))
    return apply("mul", apply("mul", half, x), apply("add", one, apply("tanh", inner)))


def _gelu_by_complement(x: Expr) -> Expr:
    """x erfc(-x / sqrt 2) / 2, each step of which is rounded to float16."""
    slope, half = const(float(np.float16(-math.sqrt(0.5))), float16), const(0.5, float16)
    return apply("mul", apply("mul", half, x), apply("erfc", apply("mul", x, slope)))


@rule("LEAKY_RELU")
def leaky_relu(ctx: LoweringContext) -> None:
    unary(ctx, lambda x: _leaky(x, convert(scalar(float(ctx.attr("alpha")), float32), x.dtype)))


def _leaky(x: Expr, alpha: Expr) -> Expr:
    return apply("select", truth("greater", x, const(0.0, x.dtype)), x, apply("mul", x, alpha), dtype=x.dtype)


@rule("PRELU")
def prelu(ctx: LoweringContext) -> None:
    """x, below 0 alpha x; of integers in steps of the output: x s_x / s_y and x alpha s_x s_alpha / s_y."""
    x, alpha = ctx.operand(0), ctx.operand(1)
    y = ctx.output(broadcast(x, alpha))
    if y.shape != x.shape:
        raise NoLowering("alpha is larger than x")
    if not ctx.node.quantized:
        alike(x, alpha)
        dtype = plain(ctx, x, alpha)
        a, b = arg(0, dtype), arg(1, dtype)
        below = truth("less", a, const(0.0, dtype))
        mapped(ctx, y, apply("select", below, apply("mul", a, b), a, dtype=dtype), x, alpha)
        return
    if (x.dtype, alpha.dtype, y.dtype) not in ((int8,) * 3, (uint8,) * 3, (int16, int8, int16)):
        raise NoLowering(f"{x.dtype.name} and {alpha.dtype.name} to {y.dtype.name}")
    factor = steps_per(x.scale, y)
    value = steps(x, 0)
    if alpha.size == 1 and alpha.constant is not None:
        below = apply("mul", value, scalar(factor * real_number(alpha), value.dtype))
    else:
        below = apply("mul", apply("mul", value, steps(alpha, 1)), scalar(factor * alpha.scale, value.dtype))
    above = apply("mul", value, scalar(factor, value.dtype))
    negative = truth("less", value, const(0.0, value.dtype))
    mapped(ctx, y, in_steps(apply("select", negative, below, above, dtype=value.dtype), y), x, alpha)
