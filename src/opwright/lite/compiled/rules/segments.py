"""Rows by segments and lengths: SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN, REVERSE_SEQUENCE.

Lives here: these rules.  Not here: updates added at coordinates (lookups.py).
"""

from __future__ import annotations

from ....compiler.loops.forms import ReverseStart, Segments
from ....core.dtypes import int32, int64
from ..nodes import At, Refused
from .moving import same_numbers
from .registry import rule

KINDS = {"SEGMENT_SUM": "sum", "UNSORTED_SEGMENT_SUM": "sum", "UNSORTED_SEGMENT_PROD": "prod",
         "UNSORTED_SEGMENT_MAX": "max", "UNSORTED_SEGMENT_MIN": "min"}  # fmt: skip
"""By operator, how the elements of a segment are joined."""


@rule(*KINDS)
def segments(at: At) -> None:
    x, ids = at.operand(0), at.operand(1)
    rank = len(ids.shape)
    if at.node.name == "SEGMENT_SUM":
        listed = at.constant(1)
        if listed.size and ((listed < 0).any() or (listed[1:] < listed[:-1]).any()):
            raise Refused("segment ids that are negative, or fall")
        count = int(listed[-1]) + 1 if listed.size else 0
    else:
        count = int(at.constant(2).reshape(-1)[0])
        known = ids.constant
        if known is not None and known.size and int(known.max()) >= count:
            raise Refused("a segment id is out of range")
    if x.shape[:rank] != ids.shape:
        raise Refused(f"segments {ids} of {x}")
    y = at.output((count, *x.shape[rank:]))
    same_numbers(x, y)
    at.form(Segments, y.buffer, x.buffer, ids.buffer, KINDS[at.node.name])


@rule("REVERSE_SEQUENCE")
def reverse_sequence(at: At) -> None:
    x, lengths, time, batch = at.operand(0), at.operand(1), at.option("seq_dim"), at.option("batch_dim")
    y = at.output(x.shape)
    same_numbers(x, y)
    if not (0 <= time < len(x.shape) and 0 <= batch < len(x.shape)) or time == batch:
        raise Refused(f"axes {time} and {batch} of {x}")
    if lengths.dtype not in (int32, int64) or lengths.shape != (x.shape[batch],):
        raise Refused(f"lengths {lengths}")
    at.form(ReverseStart, y.buffer, x.buffer, lengths.buffer, time, batch)
