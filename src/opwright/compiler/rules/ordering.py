"""Sorting rows: Sort, TopK.

Lives here: these rules; values are gathered by their places.  Not here: the first place alone (reductions.py).
"""

from __future__ import annotations

from ..loops.forms import Buffer, Gather, Ordered
from .nodes import At, Refused
from .registry import rule


@rule("Sort")
def sort(at: At) -> None:
    _ordered(at, at.operand(0), at.attr("direction") == "ASCENDING", "last")


@rule("TopK")
def top_k(at: At) -> None:
    x, k = at.operand(0), int(at.constant(1))
    if not x.shape or not 0 < k <= x.shape[-1]:
        raise Refused(f"the first {k} of {x}")
    _ordered(at, x, False, "infinite")


def _ordered(at: At, x: Buffer, rising: bool, nan: str) -> None:
    values, places = at.output(0), at.output(1)
    axis = len(x.shape) - 1
    if places.dtype.name == "int64":
        raise Refused("places of 64 bits")
    at.form(Ordered, places, x, rising, nan)
    at.form(Gather, values, x, places, axis, axis)
