"""Comparison, logic, choice and bits: EQUAL to LOGICAL_OR, SELECT, SELECT_V2, BITWISE_XOR, RIGHT_SHIFT.

Lives here: these rules.  Not here: MAXIMUM and MINIMUM (arithmetic.py).

Quantised tensors are compared as the operator's rule has it: in fixed point, of 8 more bits, which is a table of each
operand.
"""

from __future__ import annotations

import numpy as np

from ....compiler.kernels.expression import DTYPES
from ....compiler.loops.expressions import Expr, apply, arg, lookup
from ....compiler.loops.forms import Bitcast, Buffer, Map
from ....core.dtypes import bool as bool_
from ....core.dtypes import complex64, int8, int16, int64, uint8
from ....scalar import table
from ....scalar.multipliers import multiplier
from ....scalar.table import OF_BUILTIN, TESTS
from ...ops.quantized.fixed_point import INT32
from ..nodes import At, Operand, Refused
from .elementwise import alike, broadcast, every, mapped, plain, quantized, truth
from .registry import rule

COMPARISONS = tuple(row.builtin for row in TESTS if row.builtin)
LOGIC = tuple(row.builtin for row in table.BITS if row.builtin and row.arity == 2 and row.takes(bool_))
BITS = tuple(row.builtin for row in table.BITS if row.builtin and row.arity == 2 and not row.takes(bool_))


@rule(*COMPARISONS)
def comparison(at: At) -> None:
    a, b = at.operand(0), at.operand(1)
    y, op = at.output(broadcast(a, b)), OF_BUILTIN[at.node.name].name
    alike(a, b)
    if not quantized(at):
        plain(at, a, b)
        mapped(at, y, truth(op, *every((a, b))), a, b)
    elif a.dtype is int16 and op not in ("equal", "not_equal"):
        mapped(at, y, truth(op, *every((a, b))), a, b)
    elif y.dtype is bool_:
        tables = [_fixed_point(at, o) for o in (a, b)]
        sides = [lookup(arg(k, o.dtype), arg(2 + k, int64)) for k, o in enumerate((a, b))]
        at.form(Map, y.buffer, (a.buffer, b.buffer, *tables), truth(op, *sides))
    else:
        raise Refused(f"the output is {y.dtype.name}")


def _fixed_point(at: At, o: Operand) -> Buffer:
    """For each integer of an operand, the number that it stands for, in units of 2^-8."""
    if o.dtype not in (int8, uint8, int16) or o.scale <= 0.0:
        raise Refused(f"elements of type {o.dtype.name}, or no scale")
    size = 1 << (8 * o.dtype.size)
    q = np.arange(size, dtype=f"u{o.dtype.size}").view(o.dtype.np).astype(np.int64)
    table = np.asarray(INT32.rescale((q - o.zero) << 8, *multiplier(o.scale)), np.int64)
    return Buffer(f"{o.buffer.name}.fixed", int64, (size,), table)


@rule(*LOGIC)
def logic(at: At) -> None:
    a, b = at.operand(0), at.operand(1)
    plain(at, a, b)
    mapped(at, at.output(broadcast(a, b)), apply(OF_BUILTIN[at.node.name].name, *every((a, b))), a, b)


@rule(*BITS)
def bits(at: At) -> None:
    a, b = at.operand(0), at.operand(1)
    alike(a, b)
    plain(at, a, b)
    mapped(at, at.output(broadcast(a, b)), apply(OF_BUILTIN[at.node.name].name, *every((a, b))), a, b)


# ---- choice --------------------------------------------------------------------------------------------------------


def _as_bits(at: At, o: Operand) -> Operand:
    """Complex numbers as what is moved for them: integers of as many bytes."""
    return o if o.dtype is not complex64 else Operand(o.tensor, at.bits(o.buffer, int64, o.shape))


def _chosen(operands: tuple[Operand, ...]) -> Expr:
    condition, a, b = operands
    alike(a, b)
    if condition.dtype is not bool_ or a.dtype not in DTYPES:
        raise Refused(f"{condition.dtype.name} chooses among {a.dtype.name}")
    return Expr("select", a.dtype, tuple(every(operands)))


@rule("SELECT_V2")
def select_v2(at: At) -> None:
    operands = at.operand(0), *(_as_bits(at, at.operand(i)) for i in (1, 2))
    y = at.output(broadcast(*operands))
    _written(at, y, tuple(o.buffer for o in operands), _chosen(operands))


def _written(at: At, y: Operand, operands: tuple[Buffer, ...], expr: Expr) -> None:
    """The map that writes y, or the bits of its complex numbers. Raises Refused for other types."""
    if y.dtype is expr.dtype:
        at.form(Map, y.buffer, operands, expr)
        return
    if y.dtype is not complex64 or expr.dtype is not int64:
        raise Refused(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    made = at.new(int64, y.shape, ".chosen")
    at.form(Map, made, operands, expr)
    at.form(Bitcast, y.buffer, made)


@rule("SELECT")
def select(at: At) -> None:
    """The condition is of x's shape, a scalar, or has an element for each of x's first dimension."""
    given = at.operand(1)
    c, a, b = operands = at.operand(0), _as_bits(at, given), _as_bits(at, at.operand(2))
    y, expr = at.output(a.shape), _chosen(operands)
    if a.shape != b.shape or y.dtype is not given.dtype:
        raise Refused("x and y differ, or the output's type")
    condition = c.buffer
    if c.shape != a.shape and c.shape:
        if len(c.shape) != 1 or not a.shape or c.size not in (1, a.shape[0]):
            raise Refused("the condition does not fit x")
        condition = at.viewed(condition, c.shape + (1,) * (len(a.shape) - 1))
    _written(at, y, (condition, a.buffer, b.buffer), expr)
