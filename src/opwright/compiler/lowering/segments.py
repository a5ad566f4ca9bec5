"""Rows by segments and lengths: SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN, REVERSE_SEQUENCE.

Lives here: these rules.  Not here: updates added at coordinates (lookups.py).
"""

from __future__ import annotations

from ...core.dtypes import int32, int64
from ..loops.forms import ReverseStart, Segments
from .context import LoweringContext, NoLowering
from .quantized import same_numbers
from .registry import rule

KINDS = {"SEGMENT_SUM": "sum", "UNSORTED_SEGMENT_SUM": "sum", "UNSORTED_SEGMENT_PROD": "prod",
         "UNSORTED_SEGMENT_MAX": "max", "UNSORTED_SEGMENT_MIN": "min"}  # fmt: skip
"""By operator, how the elements of a segment are joined."""


@rule(*KINDS)
def segments(ctx: LoweringContext) -> None:
    x, ids = ctx.operand(0), ctx.operand(1)
    rank = len(ids.shape)
    if ctx.operator == "SEGMENT_SUM":
        listed = ctx.constant(1)
        if listed.size and ((listed < 0).any() or (listed[1:] < listed[:-1]).any()):
            raise NoLowering("segment ids that are negative, or fall")
        count = int(listed[-1]) + 1 if listed.size else 0
    else:
        count = int(ctx.constant(2).reshape(-1)[0])
        known = ids.constant
        if known is not None and known.size and int(known.max()) >= count:
            raise NoLowering("a segment id is out of range")
    if x.shape[:rank] != ids.shape:
        raise NoLowering(f"segments {ids} of {x}")
    y = ctx.output((count, *x.shape[rank:]))
    same_numbers(x, y)
    ctx.form(Segments, y.buffer, x.buffer, ids.buffer, KINDS[ctx.operator])


@rule("REVERSE_SEQUENCE")
def reverse_sequence(ctx: LoweringContext) -> None:
    x, lengths, time, batch = ctx.operand(0), ctx.operand(1), ctx.attr("seq_dim"), ctx.attr("batch_dim")
    y = ctx.output(x.shape)
    same_numbers(x, y)
    if not (0 <= time < len(x.shape) and 0 <= batch < len(x.shape)) or time == batch:
        raise NoLowering(f"axes {time} and {batch} of {x}")
    if lengths.dtype not in (int32, int64) or lengths.shape != (x.shape[batch],):
        raise NoLowering(f"lengths {lengths}")
    ctx.form(ReverseStart, y.buffer, x.buffer, lengths.buffer, time, batch)
