"""The greatest of each row: TOPK_V2.

Lives here: its rule.  Not here: the greatest one (reductions.py), boxes by score (suppression.py).
"""

from __future__ import annotations

from ....compiler.loops.forms import Gather, Ordered
from ....core.dtypes import int16, int32
from ..nodes import At, Refused
from .below_a_byte import check_whole_bytes
from .moving import same_numbers
from .registry import rule


@rule("TOPK_V2")
def top_k(at: At) -> None:
    x, k = at.operand(0), at.constant(1)
    check_whole_bytes(x)
    if not x.shape or k.size != 1 or not 0 < int(k.reshape(-1)[0]) <= x.shape[-1]:
        raise Refused(f"the first {k.tolist()} of {x}")
    shape = (*x.shape[:-1], int(k.reshape(-1)[0]))
    values, places = at.output(shape), at.output(shape, place=1)
    same_numbers(x, values)
    if places.dtype not in (int16, int32):
        raise Refused(f"places {places}")
    at.form(Ordered, places.buffer, x.buffer)
    at.form(Gather, values.buffer, x.buffer, places.buffer, len(shape) - 1, len(shape) - 1)
