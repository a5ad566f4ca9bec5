"""Arithmetic of StableHLO, of two tensors of one shape: STABLEHLO_ADD to STABLEHLO_SHIFT_LEFT.

Lives here: these rules.  Not here: padding (filling.py), windows and updates (reducing.py).

Quantised tensors are their integers, which wrap. Of truth values a sum is one of both, a product both.
"""

from __future__ import annotations

from ..loops.expressions import Expr, apply
from .context import LoweringContext, NoLowering
from .elementwise import alike, every, mapped, plain, truth
from .registry import rule

OPERATIONS = {
    "STABLEHLO_ADD": ("add", "logical_or"), "STABLEHLO_MULTIPLY": ("mul", "logical_and"),
    "STABLEHLO_MAXIMUM": ("maximum", "logical_or"), "STABLEHLO_MINIMUM": ("minimum", "logical_and"),
    "STABLEHLO_AND": ("bitwise_and", "logical_and"), "STABLEHLO_SHIFT_LEFT": ("shift_left_or_zero", ""),
}  # fmt: skip
"""By operator, the operation on numbers, and on truth values."""


@rule(*OPERATIONS)
def binary(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    if a.shape != b.shape:
        raise NoLowering(f"{a} and {b} differ in shape")
    alike(a, b)
    dtype = plain(ctx, a, b)
    name = OPERATIONS[ctx.operator][dtype.is_bool]
    x, y = every((a, b))
    found = apply(name, x, y)
    if name in ("maximum", "minimum") and dtype.is_floating:  # the second operand stands for both where one is NaN
        found = Expr("select", dtype, (truth("equal", x, x), found, x))
    mapped(ctx, ctx.output(a.shape), found, a, b)
