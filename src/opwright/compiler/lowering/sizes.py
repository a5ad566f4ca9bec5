"""Operators that tell sizes, or have results as long as there are elements: SHAPE, RANK, BROADCAST_ARGS, WHERE, UNIQUE.

What is known before a run is a constant, which a run copies. WHERE and UNIQUE have memory for as many elements as there
may be.

Lives here: these rules.
Not here: sizes that other nodes read, which are settled before there is a plan
(lite/runtime/shape_constant_folding.py).
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import int32, int64
from ..loops.forms import Buffer, IndexMap, Move
from ..loops.sized_forms import BroadcastSizes, Distinct, Places
from .context import LoweringContext, NoLowering
from .quantized import same_numbers
from .registry import rule


@rule("SHAPE", "RANK")
def sizes(ctx: LoweringContext) -> None:
    shape = ctx.operand(0).shape
    told = np.asarray(shape if ctx.operator == "SHAPE" else len(shape))
    y = ctx.output(told.shape)
    if y.dtype not in (int32, int64):
        raise NoLowering(f"sizes {y}")
    known = Buffer(f"{y.buffer.name}.sizes", y.dtype, told.shape, told.astype(y.dtype.np))
    ctx.form(Move, y.buffer, (known,), (IndexMap((0,) * told.ndim, told.shape, 0, (1,) * told.ndim),))


@rule("BROADCAST_ARGS")
def broadcast_args(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    if any(o.dtype not in (int32, int64) or o.dtype is not a.dtype or len(o.shape) != 1 for o in (a, b)):
        raise NoLowering(f"shapes {a} and {b}")
    y = ctx.output((max(a.size, b.size),))
    ctx.form(BroadcastSizes, y.buffer, a.buffer, b.buffer)


@rule("WHERE")
def where(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y, count = ctx.counted(lambda _: x.size)
    if y.dtype is not int64 or y.shape != (x.size, len(x.shape)):
        raise NoLowering(f"places {y} of {x}")
    ctx.form(Places, y.buffer, x.buffer, count)


@rule("UNIQUE")
def unique(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    (y, count), places = ctx.counted(lambda _: x.size), ctx.output(x.shape, 1)
    same_numbers(x, y)
    if len(x.shape) != 1 or y.shape != x.shape or places.dtype not in (int32, int64):
        raise NoLowering(f"different elements of {x}")

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.form(Distinct, whole, x.buffer, count, results)

    ctx.with_results(make, y.buffer, places.buffer)
