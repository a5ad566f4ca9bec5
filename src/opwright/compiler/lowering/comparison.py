"""Comparison and choice in files: EQUAL to GREATER_EQUAL, SELECT, SELECT_V2.

Lives here: these rules.  Not here: MAXIMUM and MINIMUM (arithmetic.py), logic and bits (functions.py).

Quantised tensors are compared as the operator's rule has it: in fixed point, of 8 more bits, which is a table of each
operand.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import complex64, int8, int16, int64, uint8
from ...scalar import numpy_namespace
from ...scalar.fixed_point_int32 import FixedPointInt32
from ...scalar.multipliers import multiplier
from ...scalar.table import OF_BUILTIN, TESTS
from ..kernels.expression import DTYPES
from ..loops.expressions import Expr, arg, lookup
from ..loops.forms import Bitcast, Buffer, Map
from .context import LoweringContext, NoLowering, Operand
from .elementwise import alike, broadcast, every, mapped, plain, truth
from .registry import rule

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
        ctx.form(Map, y.buffer, (a.buffer, b.buffer, *tables), truth(op, *sides))
    else:
        raise NoLowering(f"the output is {y.dtype.name}")


def _fixed_point(ctx: LoweringContext, o: Operand) -> Buffer:
    """For each integer of an operand, the number that it stands for, in units of 2^-8."""
    if o.dtype not in (int8, uint8, int16) or o.scale <= 0.0:
        raise NoLowering(f"elements of type {o.dtype.name}, or no scale")
    size = 1 << (8 * o.dtype.size)
    q = np.arange(size, dtype=f"u{o.dtype.size}").view(o.dtype.np).astype(np.int64)
    table = np.asarray(FixedPointInt32(numpy_namespace).rescale((q - o.zero) << 8, *multiplier(o.scale)), np.int64)
    return Buffer(f"{o.buffer.name}.fixed", int64, (size,), table)


# ---- choice --------------------------------------------------------------------------------------------------------


def _as_bits(ctx: LoweringContext, o: Operand) -> Operand:
    """Complex numbers as what is moved for them: integers of as many bytes."""
    return o if o.dtype is not complex64 else o.with_buffer(ctx.bits(o.buffer, int64, o.shape))


def _chosen(operands: tuple[Operand, ...]) -> Expr:
    condition, a, b = operands
    alike(a, b)
    if condition.dtype is not bool_ or a.dtype not in DTYPES:
        raise NoLowering(f"{condition.dtype.name} chooses among {a.dtype.name}")
    return Expr("select", a.dtype, tuple(every(operands)))


@rule("SELECT_V2")
def select_v2(ctx: LoweringContext) -> None:
    operands = ctx.operand(0), *(_as_bits(ctx, ctx.operand(i)) for i in (1, 2))
    y = ctx.output(broadcast(*operands))
    _written(ctx, y, tuple(o.buffer for o in operands), _chosen(operands))


def _written(ctx: LoweringContext, y: Operand, operands: tuple[Buffer, ...], expr: Expr) -> None:
    """The map that writes y, or the bits of its complex numbers. Raises NoLowering for other types."""
    if y.dtype is expr.dtype:
        ctx.form(Map, y.buffer, operands, expr)
        return
    if y.dtype is not complex64 or expr.dtype is not int64:
        raise NoLowering(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    made = ctx.new(int64, y.shape, ".chosen")
    ctx.form(Map, made, operands, expr)
    ctx.form(Bitcast, y.buffer, made)


@rule("SELECT")
def select(ctx: LoweringContext) -> None:
    """The condition is of x's shape, a scalar, or has an element for each of x's first dimension."""
    given = ctx.operand(1)
    c, a, b = operands = ctx.operand(0), _as_bits(ctx, given), _as_bits(ctx, ctx.operand(2))
    y, expr = ctx.output(a.shape), _chosen(operands)
    if a.shape != b.shape or y.dtype is not given.dtype:
        raise NoLowering("x and y differ, or the output's type")
    condition = c.buffer
    if c.shape != a.shape and c.shape:
        if len(c.shape) != 1 or not a.shape or c.size not in (1, a.shape[0]):
            raise NoLowering("the condition does not fit x")
        condition = ctx.viewed(condition, c.shape + (1,) * (len(a.shape) - 1))
    _written(ctx, y, (condition, a.buffer, b.buffer), expr)
