"""Element-wise operators of the catalogue: each is a map of its broadcast operands.

Lives here: their rules.
Not here: the functions, and which operator is which (scalar/table.py), builtins (arithmetic.py, comparison.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import DType, float64
from ...core.dtypes import bool as bool_
from ...scalar.table import OF_OPERATOR, chosen
from ..loops.expressions import Expr, apply, const, convert
from ..loops.forms import Checked
from .context import LoweringContext, NoLowering
from .elementwise import map_elements
from .registry import IN_NUMPY, rule

GUARDED = ("FloorDiv", "FloorMod")
"""Whose integer divisors are looked at first."""
BOUNDING = ("Maximum", "Minimum", "ClipByValue")
"""Whose expressions depend on which operands are numbers."""
SAME = tuple(name for name in OF_OPERATOR if name not in (*GUARDED, *BOUNDING, *IN_NUMPY))


def applied(name: str, attribute: Callable[[str], Any], *xs: Expr) -> Expr | None:
    """An operator of SAME as a function of the table; None of dtypes that it is not of. attribute: gives it by name."""
    row, dtype = chosen(OF_OPERATOR[name], attribute), xs[-1].dtype
    if not row.takes(dtype) or (name == "Pow" and not dtype.is_floating):  # that has an error for exponents below 0
        return None
    numbers = [const(float(attribute(key)), dtype) for key in row.attributes]
    return apply(row.name, *xs, *numbers, dtype=bool_ if row.is_test else dtype)


@rule(*SAME)
def same(ctx: LoweringContext) -> None:
    def expr(*xs: Expr) -> Expr:
        found = applied(ctx.operator, ctx.attr, *xs)
        if found is None:
            raise NoLowering(f"{ctx.operator} of {xs[-1].dtype.name}")
        return found

    map_elements(ctx, ctx.output().buffer, [o.buffer for o in ctx.operands], expr)


# ---- bounds ---------------------------------------------------------------------------------------------------------


def _extremum(op: str) -> Callable[[Expr, Expr], Expr]:
    """NaN where one of the operands is. Beside a number, which is none, one instruction gives that: its second operand
    where one is NaN."""

    def expr(x: Expr, y: Expr) -> Expr:
        if not x.dtype.is_floating or x.op == "scalar":
            return apply(op, x, y)
        if y.op == "scalar" and y.value == y.value:
            return apply(op, y, x)
        return apply(f"ieee_{op}", x, y)

    return expr


maximum, minimum = _extremum("maximum"), _extremum("minimum")
BOUNDS: dict[str, Callable[..., Expr]] = {
    "Maximum": maximum,
    "Minimum": minimum,
    "ClipByValue": lambda x, low, high: maximum(minimum(x, high), low),
}


@rule(*BOUNDS)
def bounds(ctx: LoweringContext) -> None:
    map_elements(ctx, ctx.output().buffer, [o.buffer for o in ctx.operands], BOUNDS[ctx.operator])


@rule(*GUARDED)
def whole_division(ctx: LoweringContext) -> None:
    """By integers that are guarded: the operator has an error for 0."""
    x, y = [o.buffer for o in ctx.operands]
    if x.dtype is float64:
        raise NoLowering("a remainder of float64")
    if not x.dtype.is_floating and y.constant is not None and not y.constant.all():
        raise NoLowering("a divisor of 0, which is an error")
    if not x.dtype.is_floating and y.constant is None:
        divisors = ctx.new(y.dtype, y.shape)
        ctx.form(Checked, divisors, y)
        y = divisors
    map_elements(ctx, ctx.output().buffer, [x, y], lambda a, b: apply(OF_OPERATOR[ctx.operator].name, a, b))


@rule("Cast")
def cast(ctx: LoweringContext) -> None:
    y = ctx.output().buffer
    map_elements(ctx, y, [o.buffer for o in ctx.operands], lambda x: _converted(x, y.dtype))


def _converted(x: Expr, dtype: DType) -> Expr:
    if dtype is bool_ and x.dtype is not bool_:
        return apply("not_equal", x, const(0, x.dtype), dtype=bool_)
    return convert(x, dtype)


@rule("AddN")
def add_n(ctx: LoweringContext) -> None:
    def total(*xs: Expr) -> Expr:
        found = xs[0]
        for x in xs[1:]:
            found = apply("add", found, x)
        return found

    operands = [o.buffer for o in ctx.operands]
    if len(operands) > 32:
        raise NoLowering("too many operands for one kernel")
    map_elements(ctx, ctx.output().buffer, operands, total)


@rule("BiasAdd")
def bias_add(ctx: LoweringContext) -> None:
    x, bias = [o.buffer for o in ctx.operands]
    behind: Any = 0 if ctx.attr("data_format").endswith("C") else len(x.shape) - 2
    spread = ctx.viewed(bias, (*bias.shape, *[1] * behind))
    map_elements(ctx, ctx.output().buffer, [x, spread], lambda a, b: apply("add", a, b))
