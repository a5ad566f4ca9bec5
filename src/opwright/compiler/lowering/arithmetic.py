"""Binary arithmetic, comparison and selection: ADD to POW, Maximum and Minimum, EQUAL to GREATER_EQUAL, SELECT.

Lives here: these rules; STABLEHLO_ADD to STABLEHLO_SHIFT_LEFT, which compute on the integers of quantized tensors and
wrap.
Not here: functions of the scalar table (functions.py), operands as expressions (operand_expressions.py).

Quantized sums and products take few instructions. With a = q_a - zero_a and so on, in steps of the output's scale,

    y = a (s_a / s_y) +- b (s_b / s_y)      two fused multiply-adds, both zero points in one constant; of int16 by
                                            shifts (pot_scale_int16), operands are rounded before the sum
    y = a b (s_a s_b / s_y)
    y = a (s_a / (s_b s_y)) / b
    y = (a (s_a / t) - b (s_b / t))^2       t = sqrt s_y

Quantized comparisons rescale both operands to fixed point with 8 fractional bits, by a table for each operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import complex64, float32, float64, int8, int16, int64, uint8
from ...scalar import numpy_namespace
from ...scalar.fixed_point import FixedPointInt32, log2_of_scale, multiplier
from ...scalar.table import ANALYSIS, ARITHMETIC, DIVISION, OF_BUILTIN, TESTS
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, apply, arg, convert, lookup, scalar
from ..loops.ops import Checked, Map, Reinterpret
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import (
    NARROW,
    alike,
    broadcast,
    clamped,
    every,
    in_steps,
    map_elements,
    mapped,
    plain,
    power,
    real,
    real_number,
    steps,
    steps_of_constant,
    steps_per,
    truth,
)
from .registry import CATALOGUE, rule
from .spectral import product

BUILTINS = tuple(row.builtin for row in (*ARITHMETIC, *DIVISION, *ANALYSIS) if row.builtin and row.arity == 2)
OPERATIONS = tuple(name for name in BUILTINS if name not in ("MAXIMUM", "MINIMUM"))


@rule(*OPERATIONS)
def binary(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    y, name = ctx.output(broadcast(a, b)), ctx.operator
    activation = ctx.attr("fused_activation_function")
    if ctx.node.quantized:
        b = _checked_quantized(ctx, name, b)
        mapped(ctx, y, _quantized(ctx, name, a, b, y, activation), a, b)
        return
    alike(a, b)
    if a.dtype is complex64 and name == "MUL" and activation in (0, "NONE"):
        product(ctx, a, b, y)
        return
    dtype = plain(ctx, a, b)
    b = _checked_second(ctx, name, a, b)
    x, z = every((a, b))
    if name == "FLOOR_DIV" and dtype is float32:  # a quotient just below an integer stays below
        value = convert(apply("floor", apply("div", convert(x, float64), convert(z, float64))), dtype)
    elif name == "DIV" and not dtype.is_floating:  # the only overflow saturates
        value = convert(apply("div", convert(x, float64), convert(z, float64)), dtype)
    elif name == "SQUARED_DIFFERENCE":  # short floats are rounded twice
        value = apply("square", apply("sub", x, z))
    elif name == "POW" and not dtype.is_floating and not (b.size == 1 and b.shape != a.shape):
        value = apply("pow_or_least", x, z)
    elif name == "POW" and dtype.is_floating:
        value = convert(power(x, z), dtype)
    else:
        value = convert(apply(OF_BUILTIN[name].name, x, z), dtype)
    mapped(ctx, y, _fused(value, activation), a, b)


def _propagating(op: str) -> Callable[[Expr, Expr], Expr]:
    """Return a maximum or minimum that is NaN if an operand is.

    The instruction returns its second operand if one is NaN, so that it suffices if the first is a number.
    """

    def expr(x: Expr, y: Expr) -> Expr:
        if not x.dtype.is_floating or x.op == "scalar":
            return apply(op, x, y)
        if y.op == "scalar" and y.value == y.value:
            return apply(op, y, x)
        return apply(f"ieee_{op}", x, y)

    return expr


maximum, minimum = _propagating("maximum"), _propagating("minimum")
BOUNDS: dict[str, Callable[..., Expr]] = {
    "Maximum": maximum,
    "Minimum": minimum,
    "ClipByValue": lambda x, low, high: maximum(minimum(x, high), low),
    "MAXIMUM": partial(apply, "maximum"),
    "MINIMUM": partial(apply, "minimum"),
}
"""The catalogue's operators propagate NaN; the builtins return the second operand if one is NaN."""


@rule(*BOUNDS)
def bounds(ctx: LoweringContext) -> None:
    operands, expr = ctx.operands, BOUNDS[ctx.operator]
    if ctx.node.dialect == CATALOGUE:
        map_elements(ctx, ctx.output().buffer, [o.buffer for o in operands], expr)
        return
    y = ctx.output(broadcast(*operands))
    if ctx.node.quantized:
        raise NoLowering(f"{ctx.operator} of quantized tensors")
    alike(*operands)
    plain(ctx, *operands)
    mapped(ctx, y, expr(*every(operands)), *operands)


def _fused(x: Expr, activation: object) -> Expr:
    if x.dtype.is_unsigned and activation not in (0, "NONE"):
        raise NoLowering(f"an activation of {x.dtype.name}")
    return clamped(x, activation)


def _checked_second(ctx: LoweringContext, name: str, a: RuleOperand, b: RuleOperand) -> RuleOperand:
    """Return the second operand, guarded if run-time elements may be an error."""
    integers = not b.dtype.is_floating
    if name == "POW" and integers:
        return _exponents(ctx, b)
    if name == "FLOOR_DIV" or (name in ("DIV", "FLOOR_MOD") and integers):
        return _divisors(ctx, b, 0)
    return b


def _checked_quantized(ctx: LoweringContext, name: str, b: RuleOperand) -> RuleOperand:
    return _divisors(ctx, b, b.zero) if name == "DIV" else b


def _divisors(ctx: LoweringContext, b: RuleOperand, zero: int) -> RuleOperand:
    """Return divisors, guarded if they are computed. zero: the integer that represents 0."""
    if b.constant is None:
        guarded = ctx.new(b.dtype, b.shape, ".divisors")
        ctx.add(Checked, guarded, b.buffer, "equal", zero)
        return b.with_buffer(guarded)
    if (b.constant == zero).any():
        raise NoLowering("divisors may be 0")
    return b


def _exponents(ctx: LoweringContext, b: RuleOperand) -> RuleOperand:
    """Return integer exponents, guarded against negative ones if they are computed."""
    if b.constant is None:
        guarded = ctx.new(b.dtype, b.shape, ".exponents")
        ctx.add(Checked, guarded, b.buffer, "below", 0)
        return b.with_buffer(guarded)
    if (b.constant < 0).any():
        raise NoLowering("negative exponents")
    return b


def _quantized(
    ctx: LoweringContext, name: str, a: RuleOperand, b: RuleOperand, y: RuleOperand, activation: object
) -> Expr:
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
        if o.unbounded_scale <= 0.0 or (o.dtype is int16 and o.zero):
            raise NoLowering(f"the parameters of {o.name!r}")
    if name == "MUL":
        steps_per(a.unbounded_scale * b.unbounded_scale, y, y.unbounded_scale)
        return in_steps(_product(a, b, y), y, activation)
    for scale in (a.scale / b.scale,) if name == "DIV" else (a.scale, b.scale):
        steps_per(scale, y)
    if name == "DIV":
        return in_steps(_quotient(a, b, y), y, activation)
    if name != "SQUARED_DIFFERENCE":
        by_shifts = a.dtype is int16 and ctx.attr("pot_scale_int16")
        total = _sum_by_shifts(a, b, y, name.lower()) if by_shifts else None
        return in_steps(total or _sum(a, b, y.scale, -1.0 if name == "SUB" else 1.0), y, activation)
    return in_steps(apply("square", _sum(a, b, math.sqrt(y.scale), -1.0)), y)


def _sum(a: RuleOperand, b: RuleOperand, unit: float, sign: float) -> Expr:
    """Return a + sign b in multiples of `unit`."""
    offset, terms = 0.0, []
    for index, o, factor in ((0, a, 1.0), (1, b, sign)):
        if o.size == 1 and o.constant is not None:
            offset += factor * real_number(o) / unit
            continue
        factor *= o.scale / unit
        offset -= factor * o.zero
        terms.append((convert(arg(index, o.dtype), float32), factor))
    total = scalar(offset, float32)
    for x, factor in terms:
        total = apply("fma", x, scalar(factor, float32), total)
    return total


def _sum_by_shifts(a: RuleOperand, b: RuleOperand, y: RuleOperand, function: str) -> Expr | None:
    """Return a sum or difference of int16 whose scales are powers of two, in steps of the output; None for others.

    The reference kernel shifts the operand of the smaller scale, which rounds half away from zero, before it adds.
    """
    exponents = [log2_of_scale(o.scale) for o in (a, b, y)]
    p, q, r = exponents
    if p is None or q is None or r is None:
        return None
    if max(p, q) != r or min(p, q) < r - 30:
        raise NoLowering(f"a sum by shifts of the scales {a.scale} and {b.scale} to {y.scale}")
    terms = [
        apply("round_away", apply("mul", convert(arg(i, int16), float32), scalar(2.0 ** (e - r), float32)))
        for i, e in enumerate((p, q))
    ]
    return apply(function, *terms)


def _product(a: RuleOperand, b: RuleOperand, y: RuleOperand) -> Expr:
    """Return the product in steps of the output. The factor is computed in float64, so that scales may have any size.

    Masks of attention have the least float32 for their least number.
    """
    factor, parts = 1.0 / y.unbounded_scale, []
    for index, o in ((0, a), (1, b)):
        factor *= o.unbounded_scale
        if o.size == 1 and o.constant is not None:
            factor *= steps_of_constant(o)
        else:
            parts.append(steps(o, index))
    total = scalar(factor, float32)
    for x in reversed(parts):
        total = apply("mul", x, total)
    return total


def _quotient(a: RuleOperand, b: RuleOperand, y: RuleOperand) -> Expr:
    """Return the quotient in steps of the output."""
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
    value = apply(name, x, y)
    if name in ("maximum", "minimum") and dtype.is_floating:  # NaN of the first operand propagates
        value = Expr("select", dtype, (truth("equal", x, x), value, x))
    mapped(ctx, ctx.output(a.shape), value, a, b)


COMPARISONS = tuple(row.builtin for row in TESTS if row.builtin)


@rule(*COMPARISONS)
def comparison(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    y, op = ctx.output(broadcast(a, b)), OF_BUILTIN[ctx.operator].name
    alike(a, b)
    if not ctx.node.quantized:
        plain(ctx, a, b)
        mapped(ctx, y, truth(op, *every((a, b))), a, b)
    elif a.dtype is int16 and op not in ("equal", "not_equal"):
        mapped(ctx, y, truth(op, *every((a, b))), a, b)
    elif y.dtype is bool_:
        tables = [_fixed_point(ctx, o) for o in (a, b)]
        sides = [lookup(arg(k, o.dtype), arg(2 + k, int64)) for k, o in enumerate((a, b))]
        ctx.add(Map, y.buffer, (a.buffer, b.buffer, *tables), truth(op, *sides))
    else:
        raise NoLowering(f"the output is {y.dtype.name}")


def _fixed_point(ctx: LoweringContext, o: RuleOperand) -> Buffer:
    """Return the table of an operand's values by integer, in units of 2^-8."""
    if o.dtype not in (int8, uint8, int16) or o.scale <= 0.0:
        raise NoLowering(f"elements of type {o.dtype.name}, or no scale")
    size = 1 << (8 * o.dtype.size)
    q = np.arange(size, dtype=f"u{o.dtype.size}").view(o.dtype.np).astype(np.int64)
    table = np.asarray(FixedPointInt32(numpy_namespace).rescale((q - o.zero) << 8, *multiplier(o.scale)), np.int64)
    return Buffer(f"{o.buffer.name}.fixed", int64, (size,), table)


def _as_bits(ctx: LoweringContext, o: RuleOperand) -> RuleOperand:
    """Return complex numbers as int64, by which they are moved."""
    return o if o.dtype is not complex64 else o.with_buffer(ctx.bits(o.buffer, int64, o.shape))


@rule("Select", "SELECT", "SELECT_V2")
def select(ctx: LoweringContext) -> None:
    """Select elements by a condition that broadcasts, except SELECT's, which may have one element per first index."""
    if ctx.node.dialect == CATALOGUE:
        operands = ctx.operands
        ctx.output(broadcast(*operands))
        plain(ctx, *operands)
        buffers = [o.buffer for o in operands]
        map_elements(ctx, ctx.output().buffer, buffers, lambda c, a, b: apply("select", c, a, b, dtype=b.dtype))
        return
    c, a, b = operands = [ctx.operand(0), *(_as_bits(ctx, ctx.operand(i)) for i in (1, 2))]
    y = ctx.output(a.shape if ctx.operator == "SELECT" else broadcast(*operands))
    alike(a, b)
    if c.dtype is not bool_ or a.dtype not in DTYPES:
        raise NoLowering(f"a condition of {c.dtype.name} for elements of {a.dtype.name}")
    if y.dtype is not ctx.operand(1).dtype:
        raise NoLowering(f"the output is {y.dtype.name}, {ctx.operand(1).dtype.name} follows from the inputs")
    condition = _condition(ctx, c, a, b) if ctx.operator == "SELECT" else c.buffer
    target = ctx.new(int64, y.shape, ".bits") if y.dtype is complex64 else y.buffer
    ctx.add(Map, target, (condition, a.buffer, b.buffer), Expr("select", a.dtype, tuple(every(operands))))
    if target is not y.buffer:
        ctx.add(Reinterpret, y.buffer, target)


def _condition(ctx: LoweringContext, c: RuleOperand, a: RuleOperand, b: RuleOperand) -> Buffer:
    """Return the condition of SELECT under a shape that broadcasts to the operands' shape."""
    if a.shape != b.shape:
        raise NoLowering(f"{a} and {b} differ in shape")
    if c.shape in (a.shape, ()):
        return c.buffer
    if len(c.shape) != 1 or not a.shape or c.size not in (1, a.shape[0]):
        raise NoLowering(f"the condition {c} does not fit {a}")
    return ctx.viewed(c.buffer, c.shape + (1,) * (len(a.shape) - 1))
