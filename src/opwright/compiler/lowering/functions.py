"""Element-wise operators that are functions of the scalar table: each is a map of its broadcast operands.

Lives here: their rules, and those of the catalogue's bounds, divisions, conversions and sums.
Not here: the functions, and which operator is which (scalar/table.py); builtins whose arithmetic is their own
(arithmetic.py, comparison.py, activations.py, type_conversion.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from ...core.dtypes import DType, float64
from ...core.dtypes import bool as bool_
from ...scalar.table import ACTIVATIONS, BITS, OF_BUILTIN, OF_OPERATOR, chosen
from ..loops.expressions import Expr, apply, const, convert
from ..loops.forms import Checked
from .context import LoweringContext, NoLowering
from .elementwise import alike, broadcast, map_elements, mapped, plain, tabulated
from .registry import LITE, rule

GUARDED = ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")
"""Whose integer divisors are looked at first."""
BOUNDING = ("Maximum", "Minimum", "ClipByValue")
"""Whose expressions depend on which operands are numbers."""
SAME = tuple(name for name in OF_OPERATOR if name not in (*GUARDED, *BOUNDING))


def applied(name: str, attribute: Callable[[str], Any], *xs: Expr) -> Expr | None:
    """An operator of SAME as a function of the table; None of dtypes that it is not of. attribute: gives it by name."""
    row, dtype = chosen(OF_OPERATOR[name], attribute), xs[-1].dtype
    if not row.takes(dtype) or (name == "Pow" and not dtype.is_floating):  # that has an error for exponents below 0
        return None
    numbers = [const(float(attribute(key)), dtype) for key in row.attributes]
    return apply(row.name, *xs, *numbers, dtype=bool_ if row.is_test else dtype)


BUILTINS = tuple(
    name
    for name, row in OF_BUILTIN.items()
    if name in ("LOGISTIC", "HARD_SWISH", "ELU") or (row not in ACTIVATIONS and (row.arity == 1 or row in BITS))
)
"""Builtins that are a function of the table, of reals as well as of quantised tensors."""


@rule(*SAME, *BUILTINS)
def function(ctx: LoweringContext) -> None:
    """A function of the table; of quantised tensors, the table of the operator's integer rule.

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


MOST_OPERANDS = 32
"""Operands of one kernel."""


@rule("AddN", "ADD_N")
def add_n(ctx: LoweringContext) -> None:
    operands = ctx.operands
    several = any(o.shape != operands[0].shape for o in operands)
    if not 0 < len(operands) <= MOST_OPERANDS or ctx.node.quantized or several:
        raise NoLowering("operands of several shapes, quantised ones, or too many")
    alike(*operands)
    plain(ctx, *operands)
    y = ctx.output(operands[0].shape)
    map_elements(ctx, y.buffer, [o.buffer for o in operands], lambda *xs: reduce(partial(apply, "add"), xs))


@rule("BiasAdd")
def bias_add(ctx: LoweringContext) -> None:
    x, bias = [o.buffer for o in ctx.operands]
    behind: Any = 0 if ctx.attr("data_format").endswith("C") else len(x.shape) - 2
    spread = ctx.viewed(bias, (*bias.shape, *[1] * behind))
    map_elements(ctx, ctx.output().buffer, [x, spread], lambda a, b: apply("add", a, b))
