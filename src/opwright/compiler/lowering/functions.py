"""Element-wise functions of the scalar table, and activations.

Lives here: the rules of functions of the scalar table, sums of several operands, guarded integer divisions, RELU and
its bounded variants, GELU, LEAKY_RELU, PRELU.
Not here: the functions and their operators (scalar/table.py); binary arithmetic and comparison (arithmetic.py), casts
(type_conversion.py); look-up tables of quantized functions (elementwise.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from ...core.constants import CLAMPS, GELU_CUBIC, GELU_SLOPE
from ...core.dtypes import bool as bool_
from ...core.dtypes import float16, float32, float64, int8, int16, uint8
from ...scalar.table import ACTIVATIONS, BITS, OF_BUILTIN, OF_OPERATOR, chosen
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.ops import Checked
from .context import LoweringContext, NoLowering
from .elementwise import alike, broadcast, map_elements, mapped, plain, tabulated, truth, unary
from .registry import LITE, rule
from .requantization import clamped, in_steps, real_number, steps, steps_per

GUARDED = ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")
"""Operators whose integer divisors are guarded."""
BOUNDS = ("Maximum", "Minimum", "ClipByValue")
"""Operators whose expressions depend on which operands are numbers (arithmetic.py)."""
SAME = tuple(name for name in OF_OPERATOR if name not in (*GUARDED, *BOUNDS))


def applied(name: str, attribute: Callable[[str], Any], *xs: Expr) -> Expr | None:
    """Return an operator of SAME as an expression, or None for unsupported dtypes. attribute: returns attributes by
    name."""
    row, dtype = chosen(OF_OPERATOR[name], attribute), xs[-1].dtype
    if not row.takes(dtype) or (name == "Pow" and not dtype.is_floating):  # negative integer exponents are an error
        return None
    numbers = [const(float(attribute(key)), dtype) for key in row.attributes]
    return apply(row.name, *xs, *numbers, dtype=bool_ if row.is_test else dtype)


BUILTINS = tuple(
    name
    for name, row in OF_BUILTIN.items()
    if name in ("LOGISTIC", "HARD_SWISH", "ELU") or (row not in ACTIVATIONS and (row.arity == 1 or row in BITS))
)
"""Builtins that are functions of the scalar table, of real and quantized tensors."""


@rule(*(name for name in SAME if name != "Select"), *BUILTINS, custom=("Sign", "Atan2"))
def function(ctx: LoweringContext) -> None:
    """Lower a function of the scalar table; of quantized tensors, the table of the operator's integer rule.

    Shipped custom operators have the catalogue's names.
    """
    operands = ctx.operands
    y = ctx.output(broadcast(*operands))
    if ctx.node.quantized:
        tabulated(ctx, operands[0], y)
        return
    plain(ctx, *operands)

    def expr(*xs: Expr) -> Expr:
        if ctx.node.dialect == LITE:
            alike(*operands)
            return apply(OF_BUILTIN[ctx.operator].name, *xs)
        value = applied(ctx.operator, ctx.attr, *xs)
        if value is None:
            raise NoLowering(f"{ctx.operator} of {xs[-1].dtype.name}")
        return value

    map_elements(ctx, y.buffer, [o.buffer for o in operands], expr)


@rule("ZEROS_LIKE")
def zeros_like(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    mapped(ctx, y, const(0, plain(ctx, x)))


@rule(*GUARDED)
def whole_division(ctx: LoweringContext) -> None:
    """Lower an integer division, whose divisors are guarded against 0."""
    x, y = [o.buffer for o in ctx.operands]
    if x.dtype is float64:
        raise NoLowering("a remainder of float64")
    if not x.dtype.is_floating and y.constant is not None and not y.constant.all():
        raise NoLowering("a divisor is 0")
    if not x.dtype.is_floating and y.constant is None:
        divisors = ctx.new(y.dtype, y.shape)
        ctx.add(Checked, divisors, y)
        y = divisors
    map_elements(ctx, ctx.output().buffer, [x, y], lambda a, b: apply(OF_OPERATOR[ctx.operator].name, a, b))


MAX_OPERANDS = 32
"""Maximum number of operands of one kernel."""


@rule("AddN", "ADD_N")
def add_n(ctx: LoweringContext) -> None:
    operands = ctx.operands
    several = any(o.shape != operands[0].shape for o in operands)
    if not 0 < len(operands) <= MAX_OPERANDS or ctx.node.quantized or several:
        raise NoLowering("operands of several shapes, quantized operands, or too many")
    alike(*operands)
    plain(ctx, *operands)
    y = ctx.output(operands[0].shape)
    map_elements(ctx, y.buffer, [o.buffer for o in operands], lambda *xs: reduce(partial(apply, "add"), xs))


@rule("BiasAdd")
def bias_add(ctx: LoweringContext) -> None:
    x, bias = [o.buffer for o in ctx.operands]
    spatial_rank: Any = 0 if ctx.attr("data_format").endswith("C") else len(x.shape) - 2
    spread = ctx.viewed(bias, (*bias.shape, *[1] * spatial_rank))
    map_elements(ctx, ctx.output().buffer, [x, spread], lambda a, b: apply("add", a, b))


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
    """Return x (1 + tanh(a (x + b x^3))) / 2 with each step rounded to float16."""
    slope, cubic, half, one = (const(float(np.float16(n)), float16) for n in (GELU_SLOPE, GELU_CUBIC, 0.5, 1.0))
    cube = apply("mul", apply("mul", x, x), x)
    inner = apply("mul", slope, apply("add", x, apply("mul", cubic, cube)))
    return apply("mul", apply("mul", half, x), apply("add", one, apply("tanh", inner)))


def _gelu_by_complement(x: Expr) -> Expr:
    """Return x erfc(-x / sqrt 2) / 2 with each step rounded to float16."""
    slope, half = const(float(np.float16(-math.sqrt(0.5))), float16), const(0.5, float16)
    return apply("mul", apply("mul", half, x), apply("erfc", apply("mul", x, slope)))


@rule("LEAKY_RELU")
def leaky_relu(ctx: LoweringContext) -> None:
    unary(ctx, lambda x: _leaky(x, convert(scalar(float(ctx.attr("alpha")), float32), x.dtype)))


def _leaky(x: Expr, alpha: Expr) -> Expr:
    return apply("select", truth("greater", x, const(0.0, x.dtype)), x, apply("mul", x, alpha), dtype=x.dtype)


@rule("PRELU")
def prelu(ctx: LoweringContext) -> None:
    """Lower PRELU: x, below 0 alpha x; of integers x s_x / s_y and x alpha s_x s_alpha / s_y in steps of the output."""
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
