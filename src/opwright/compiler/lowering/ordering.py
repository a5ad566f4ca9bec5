"""The greatest of each row: TOPK_V2.

Lives here: its rule.  Not here: the greatest one (reductions.py), boxes by score (suppression.py).
"""

from __future__ import annotations

from ...core.dtypes import int16, int32
from ..loops.forms import Gather, Ordered
from .below_a_byte import check_whole_bytes
from .context import LoweringContext, NoLowering
from .quantized import same_numbers
from .registry import rule


@rule("TOPK_V2")
def top_k(ctx: LoweringContext) -> None:
    x, k = ctx.operand(0), ctx.constant(1)
    check_whole_bytes(x)
    if not x.shape or k.size != 1 or not 0 < int(k.reshape(-1)[0]) <= x.shape[-1]:
        raise NoLowering(f"the first {k.tolist()} of {x}")
    shape = (*x.shape[:-1], int(k.reshape(-1)[0]))
    values, places = ctx.output(shape), ctx.output(shape, place=1)
    same_numbers(x, values)
    if places.dtype not in (int16, int32):
        raise NoLowering(f"places {places}")
    ctx.form(Ordered, places.buffer, x.buffer)
    ctx.form(Gather, values.buffer, x.buffer, places.buffer, len(shape) - 1, len(shape) - 1)
