"""Sorting rows and the greatest elements of each: Sort, TopK, TOPK_V2.

Lives here: these rules; values are gathered by their places.
Not here: the greatest one (reductions.py), boxes by score (suppression.py).
"""

from __future__ import annotations

from typing import Literal

from ...core.dtypes import int16, int32
from ..loops.forms import Gather, Ordered
from .below_a_byte import check_whole_bytes
from .context import LoweringContext, NoLowering, Operand
from .quantized import same_numbers
from .registry import CATALOGUE, rule


@rule("Sort")
def sort(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    _ordered(ctx, x, x.shape, ctx.attr("direction") == "ASCENDING", "last")


@rule("TopK", "TOPK_V2")
def top_k(ctx: LoweringContext) -> None:
    """NaN counts as infinity in the catalogue and comes last in files."""
    x, k = ctx.operand(0), ctx.constant(1)
    check_whole_bytes(x)
    if not x.shape or k.size != 1 or not 0 < int(k.reshape(-1)[0]) <= x.shape[-1]:
        raise NoLowering(f"the first {k.tolist()} of {x}")
    shape = (*x.shape[:-1], int(k.reshape(-1)[0]))
    _ordered(ctx, x, shape, False, "infinite" if ctx.node.dialect == CATALOGUE else "last")


def _ordered(
    ctx: LoweringContext, x: Operand, shape: tuple[int, ...], rising: bool, nan: Literal["last", "infinite"]
) -> None:
    values, places = ctx.output(shape), ctx.output(shape, 1)
    same_numbers(x, values)
    if places.dtype not in (int16, int32):
        raise NoLowering(f"places {places}")
    axis = len(x.shape) - 1
    ctx.form(Ordered, places.buffer, x.buffer, rising, nan)
    ctx.form(Gather, values.buffer, x.buffer, places.buffer, axis, axis)
