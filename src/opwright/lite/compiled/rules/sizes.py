"""Operators that tell sizes, or have results as long as there are elements: SHAPE, RANK, BROADCAST_ARGS, WHERE, UNIQUE.

What is known before a run is a constant, which a run copies. WHERE and UNIQUE have memory for as many elements as there
may be.

Lives here: these rules.
Not here: sizes that other nodes read, which are settled before there is a plan (lite/runtime/settling.py).
"""

from __future__ import annotations

import numpy as np

from ....compiler.loops.forms import Buffer, IndexMap, Move
from ....compiler.loops.sized_forms import BroadcastSizes, Distinct, Places
from ....core.dtypes import int32, int64
from ..nodes import At, Refused
from .moving import same_numbers
from .registry import rule


@rule("SHAPE", "RANK")
def sizes(at: At) -> None:
    shape = at.operand(0).shape
    told = np.asarray(shape if at.node.name == "SHAPE" else len(shape))
    y = at.output(told.shape)
    if y.dtype not in (int32, int64):
        raise Refused(f"sizes {y}")
    known = Buffer(f"{y.buffer.name}.sizes", y.dtype, told.shape, told.astype(y.dtype.np))
    at.form(Move, y.buffer, (known,), (IndexMap((0,) * told.ndim, told.shape, 0, (1,) * told.ndim),))


@rule("BROADCAST_ARGS")
def broadcast_args(at: At) -> None:
    a, b = at.operand(0), at.operand(1)
    if any(o.dtype not in (int32, int64) or o.dtype is not a.dtype or len(o.shape) != 1 for o in (a, b)):
        raise Refused(f"shapes {a} and {b}")
    y = at.output((max(a.size, b.size),))
    at.form(BroadcastSizes, y.buffer, a.buffer, b.buffer)


@rule("WHERE")
def where(at: At) -> None:
    x = at.operand(0)
    y, count = at.counted(x.size)
    if y.dtype is not int64 or y.shape != (x.size, len(x.shape)):
        raise Refused(f"places {y} of {x}")
    at.form(Places, y.buffer, x.buffer, count)


@rule("UNIQUE")
def unique(at: At) -> None:
    x = at.operand(0)
    (y, count), places = at.counted(x.size), at.output(x.shape, 1)
    same_numbers(x, y)
    if len(x.shape) != 1 or y.shape != x.shape or places.dtype not in (int32, int64):
        raise Refused(f"different elements of {x}")

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        at.form(Distinct, whole, x.buffer, count, results)

    at.with_results(make, y.buffer, places.buffer)
