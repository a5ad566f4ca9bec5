"""Element-wise arithmetic of two tensors or more: ADD to POW, MAXIMUM, with an activation where they have one;
STABLEHLO_ADD to STABLEHLO_SHIFT_LEFT, whose quantised tensors are their integers, which wrap.

Lives here: these rules.  Not here: comparisons and bits (comparison.py), functions of one operand (elementwise.py).

Quantised sums and products need few steps each: with a = q_a - zero_a and so on, in steps of the output,

    y = a (s_a / s_y) +- b (s_b / s_y)      as two fused multiply-adds, the zero points in one constant
    y = a b (s_a s_b / s_y)
    y = a (s_a / (s_b s_y)) / b
    y = (a (s_a / t) - b (s_b / t))^2       t = sqrt s_y
"""

from __future__ import annotations

import math

from ...core.dtypes import complex64, float32, float64, int8, int16, uint8
from ...scalar.table import ANALYSIS, ARITHMETIC, DIVISION, OF_BUILTIN
from ..loops.expressions import Expr, apply, arg, convert, scalar
from ..loops.forms import Checked
from .context import LoweringContext, NoLowering, Operand
from .elementwise import alike, broadcast, every, mapped, plain, truth
from .quantized import NARROW, clamped, in_steps, real, real_number, steps, steps_per
from .registry import rule
from .spectral import product

OPERATIONS = tuple(row.builtin for row in (*ARITHMETIC, *DIVISION, *ANALYSIS) if row.builtin and row.arity == 2)


@rule(*OPERATIONS)
def binary(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    y, name = ctx.output(broadcast(a, b)), ctx.operator
    activation = ctx.attr("fused_activation_function")
    if ctx.node.quantized:
        b = _checked_quantized(ctx, name, b)
        mapped(ctx, y, _quantized(name, a, b, y, activation), a, b)
        return
    alike(a, b)
    if a.dtype is complex64 and name == "MUL" and activation in (0, "NONE"):
        product(ctx, a, b, y)
        return
    dtype = plain(ctx, a, b)
    b = _checked_second(ctx, name, a, b)
    x, z = every((a, b))
    if name == "FLOOR_DIV" and dtype is float32:  # a quotient just below an integer stays below
        found = convert(apply("floor", apply("div", convert(x, float64), convert(z, float64))), dtype)
    elif name == "DIV" and not dtype.is_floating:  # the one overflow gives the greatest integer
        found = convert(apply("div", convert(x, float64), convert(z, float64)), dtype)
    elif name == "SQUARED_DIFFERENCE":  # short floats are rounded twice
        found = apply("square", apply("sub", x, z))
    elif name == "POW" and not dtype.is_floating and not (b.size == 1 and b.shape != a.shape):
        found = apply("pow_or_least", x, z)
    else:
        found = convert(apply(OF_BUILTIN[name].name, x, z), dtype)
    mapped(ctx, y, _fused(found, activation), a, b)


def _fused(x: Expr, activation: object) -> Expr:
    if x.dtype.is_unsigned and activation not in (0, "NONE"):
        raise NoLowering(f"an activation of {x.dtype.name}")
    return clamped(x, activation)


def _checked_second(ctx: LoweringContext, name: str, a: Operand, b: Operand) -> Operand:
    """The second operand, guarded where elements of it may be an error as it runs. Raises NoLowering
    where they may make it another function."""
    integers = not b.dtype.is_floating
    if name == "POW" and integers:
        return _exponents(ctx, b)
    if name == "FLOOR_DIV" or (name in ("DIV", "FLOOR_MOD") and integers):
        return _divisors(ctx, b, 0)
    return b


def _checked_quantized(ctx: LoweringContext, name: str, b: Operand) -> Operand:
    return _divisors(ctx, b, b.zero) if name == "DIV" else b


def _divisors(ctx: LoweringContext, b: Operand, zero: int) -> Operand:
    """The divisors, guarded where they are computed; zero: the element that stands for 0."""
    if b.constant is None:
        guarded = ctx.new(b.dtype, b.shape, ".divisors")
        ctx.form(Checked, guarded, b.buffer, "equal", zero)
        return b.with_buffer(guarded)
    if (b.constant == zero).any():
        raise NoLowering("divisors may be 0")
    return b


def _exponents(ctx: LoweringContext, b: Operand) -> Operand:
    """Integers as exponents, guarded where they are computed: negative ones are refused."""
    if b.constant is None:
        guarded = ctx.new(b.dtype, b.shape, ".exponents")
        ctx.form(Checked, guarded, b.buffer, "below", 0)
        return b.with_buffer(guarded)
    if (b.constant < 0).any():
        raise NoLowering("negative exponents")
    return b


# ---- quantised -----------------------------------------------------------------------------------------------------


def _quantized(name: str, a: Operand, b: Operand, y: Operand, activation: object) -> Expr:
    types = (a.dtype, b.dtype, y.dtype)
    products = ((int16, int16, int8), (int16, int16, uint8)) if name == "MUL" else ()
    if (
        name not in ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE")
        or a.dtype not in NARROW
        or (len(set(types)) > 1 and types not in products)
        or (name == "SQUARED_DIFFERENCE" and a.dtype is not int8)
    ):
        raise NoLowering(f"{name} of {a.dtype.name} and {b.dtype.name} to {y.dtype.name}")
    for o in (a, b, y):
        if o.scale <= 0.0 or (o.dtype is int16 and o.zero):
            raise NoLowering(f"the parameters of {o.name!r}")
    for scale in {"MUL": (a.scale * b.scale,), "DIV": (a.scale / b.scale,)}.get(name, (a.scale, b.scale)):
        steps_per(scale, y)
    if name == "MUL":
        return in_steps(_product(a, b, y), y, activation)
    if name == "DIV":
        return in_steps(_quotient(a, b, y), y, activation)
    if name != "SQUARED_DIFFERENCE":
        return in_steps(_sum(a, b, y.scale, -1.0 if name == "SUB" else 1.0), y, activation)
    return in_steps(apply("square", _sum(a, b, math.sqrt(y.scale), -1.0)), y)


def _sum(a: Operand, b: Operand, unit: float, sign: float) -> Expr:
    """a + sign b, in units."""
    offset, terms = 0.0, []
    for place, o, factor in ((0, a, 1.0), (1, b, sign)):
        if o.size == 1 and o.constant is not None:
            offset += factor * real_number(o) / unit
            continue
        factor *= o.scale / unit
        offset -= factor * o.zero
        terms.append((convert(arg(place, o.dtype), float32), factor))
    total = scalar(offset, float32)
    for x, factor in terms:
        total = apply("fma", x, scalar(factor, float32), total)
    return total


def _product(a: Operand, b: Operand, y: Operand) -> Expr:
    factor, parts = 1.0 / y.scale, []
    for place, o in ((0, a), (1, b)):
        if o.size == 1 and o.constant is not None:
            factor *= real_number(o)
        else:
            factor *= o.scale
            parts.append(steps(o, place))
    total = scalar(factor, float32)
    for x in reversed(parts):
        total = apply("mul", x, total)
    return total


def _quotient(a: Operand, b: Operand, y: Operand) -> Expr:
    """In steps of the output."""
    above = apply("mul", real(a, 0), scalar(1.0 / y.scale, float32))
    return apply("div", above, real(b, 1))


STABLEHLO = {
    "STABLEHLO_ADD": ("add", "logical_or"),
    "STABLEHLO_MULTIPLY": ("mul", "logical_and"),
    "STABLEHLO_MAXIMUM": ("maximum", "logical_or"),
    "STABLEHLO_MINIMUM": ("minimum", "logical_and"),
    "STABLEHLO_AND": ("bitwise_and", "logical_and"),
    "STABLEHLO_SHIFT_LEFT": ("shift_left_or_zero", ""),
}
"""By operator, the operation on numbers, and on truth values."""


@rule(*STABLEHLO)
def stablehlo_binary(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    if a.shape != b.shape:
        raise NoLowering(f"{a} and {b} differ in shape")
    alike(a, b)
    dtype = plain(ctx, a, b)
    name = STABLEHLO[ctx.operator][dtype.is_bool]
    x, y = every((a, b))
    found = apply(name, x, y)
    if name in ("maximum", "minimum") and dtype.is_floating:  # the second operand stands for both where one is NaN
        found = Expr("select", dtype, (truth("equal", x, x), found, x))
    mapped(ctx, ctx.output(a.shape), found, a, b)
