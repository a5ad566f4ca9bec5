"""Sorting rows: Sort, TopK.

Lives here: these rules; values are gathered by their places.  Not here: the first place alone (reductions.py).
"""

from __future__ import annotations

from ..loops.forms import Buffer, Gather, Ordered
from ..lowering.context import LoweringContext, NoLowering
from ..lowering.registry import rule


@rule("Sort")
def sort(ctx: LoweringContext) -> None:
    _ordered(ctx, ctx.operand(0).buffer, ctx.attr("direction") == "ASCENDING", "last")


@rule("TopK")
def top_k(ctx: LoweringContext) -> None:
    x, k = ctx.operand(0).buffer, int(ctx.constant(1))
    if not x.shape or not 0 < k <= x.shape[-1]:
        raise NoLowering(f"the first {k} of {x}")
    _ordered(ctx, x, False, "infinite")


def _ordered(ctx: LoweringContext, x: Buffer, rising: bool, nan: str) -> None:
    values, places = ctx.output(place=0).buffer, ctx.output(place=1).buffer
    axis = len(x.shape) - 1
    if places.dtype.name == "int64":
        raise NoLowering("places of 64 bits")
    ctx.form(Ordered, places, x, rising, nan)
    ctx.form(Gather, values, x, places, axis, axis)
