"""Sorting, segments and data-dependent sizes.

Lives here: the rules of Sort, TopK, TOPK_V2; SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN, REVERSE_SEQUENCE;
SHAPE, RANK, BROADCAST_ARGS, WHERE, UNIQUE.
Not here: argmax (reductions.py), non-maximum suppression (images.py), updates at coordinates (gather_scatter.py), sizes
read by other nodes, which are folded before planning (lite/runtime/shape_constant_folding.py).

Sorted values are gathered by their positions. Sizes known before a run are constants that a run copies. WHERE and
UNIQUE have memory for the largest possible number of elements.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...core.dtypes import int16, int32, int64
from ..loops.buffers import Buffer, IndexMap
from ..loops.indexing_ops import BroadcastSizes, Distinct, Gather, Places, ReverseStart, Segments
from ..loops.ops import Move, Ordered
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import CATALOGUE, rule
from .requantization import same_numbers
from .type_conversion import check_whole_bytes


@rule("Sort")
def sort(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    _ordered(ctx, x, x.shape, ctx.attr("direction") == "ASCENDING", "last")


@rule("TopK", "TOPK_V2")
def top_k(ctx: LoweringContext) -> None:
    """Lower TopK. NaN counts as infinity in the catalogue and comes last in files."""
    x, k = ctx.operand(0), ctx.constant(1)
    check_whole_bytes(x)
    if not x.shape or k.size != 1 or not 0 < int(k.reshape(-1)[0]) <= x.shape[-1]:
        raise NoLowering(f"the first {k.tolist()} of {x}")
    shape = (*x.shape[:-1], int(k.reshape(-1)[0]))
    _ordered(ctx, x, shape, False, "infinite" if ctx.node.dialect == CATALOGUE else "last")


def _ordered(
    ctx: LoweringContext, x: RuleOperand, shape: tuple[int, ...], ascending: bool, nan: Literal["last", "infinite"]
) -> None:
    values, positions = ctx.output(shape), ctx.output(shape, 1)
    same_numbers(x, values)
    if positions.dtype not in (int16, int32):
        raise NoLowering(f"positions {positions}")
    axis = len(x.shape) - 1
    ctx.add(Ordered, positions.buffer, x.buffer, ascending, nan)
    ctx.add(Gather, values.buffer, x.buffer, positions.buffer, axis, axis)


KINDS = {
    "SEGMENT_SUM": "sum",
    "UNSORTED_SEGMENT_SUM": "sum",
    "UNSORTED_SEGMENT_PROD": "prod",
    "UNSORTED_SEGMENT_MAX": "max",
    "UNSORTED_SEGMENT_MIN": "min",
}
"""Kinds of segment reductions by operator."""


@rule(*KINDS)
def segments(ctx: LoweringContext) -> None:
    x, ids = ctx.operand(0), ctx.operand(1)
    rank = len(ids.shape)
    if ctx.operator == "SEGMENT_SUM":
        constant_ids = ctx.constant(1)
        if constant_ids.size and ((constant_ids < 0).any() or (constant_ids[1:] < constant_ids[:-1]).any()):
            raise NoLowering("segment ids that are negative or descend")
        count = int(constant_ids[-1]) + 1 if constant_ids.size else 0
    else:
        count = int(ctx.constant(2).reshape(-1)[0])
        constant = ids.constant
        if constant is not None and constant.size and int(constant.max()) >= count:
            raise NoLowering("a segment id is out of range")
    if x.shape[:rank] != ids.shape:
        raise NoLowering(f"segments {ids} of {x}")
    y = ctx.output((count, *x.shape[rank:]))
    same_numbers(x, y)
    ctx.add(Segments, y.buffer, x.buffer, ids.buffer, KINDS[ctx.operator])


@rule("REVERSE_SEQUENCE")
def reverse_sequence(ctx: LoweringContext) -> None:
    x, lengths, time, batch = ctx.operand(0), ctx.operand(1), ctx.attr("seq_dim"), ctx.attr("batch_dim")
    y = ctx.output(x.shape)
    same_numbers(x, y)
    if not (0 <= time < len(x.shape) and 0 <= batch < len(x.shape)) or time == batch:
        raise NoLowering(f"axes {time} and {batch} of {x}")
    if lengths.dtype not in (int32, int64) or lengths.shape != (x.shape[batch],):
        raise NoLowering(f"lengths {lengths}")
    ctx.add(ReverseStart, y.buffer, x.buffer, lengths.buffer, time, batch)


@rule("SHAPE", "RANK")
def sizes(ctx: LoweringContext) -> None:
    shape = ctx.operand(0).shape
    values = np.asarray(shape if ctx.operator == "SHAPE" else len(shape))
    y = ctx.output(values.shape)
    if y.dtype not in (int32, int64):
        raise NoLowering(f"sizes {y}")
    constant = Buffer(f"{y.buffer.name}.sizes", y.dtype, values.shape, values.astype(y.dtype.np))
    ctx.add(Move, y.buffer, (constant,), (IndexMap((0,) * values.ndim, values.shape, 0, (1,) * values.ndim),))


@rule("BROADCAST_ARGS")
def broadcast_args(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    if any(o.dtype not in (int32, int64) or o.dtype is not a.dtype or len(o.shape) != 1 for o in (a, b)):
        raise NoLowering(f"shapes {a} and {b}")
    y = ctx.output((max(a.size, b.size),))
    ctx.add(BroadcastSizes, y.buffer, a.buffer, b.buffer)


@rule("WHERE")
def where(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y, count = ctx.counted(lambda _: x.size)
    if y.dtype is not int64 or y.shape != (x.size, len(x.shape)):
        raise NoLowering(f"coordinates {y} of {x}")
    ctx.add(Places, y.buffer, x.buffer, count)


@rule("UNIQUE")
def unique(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    (y, count), positions = ctx.counted(lambda _: x.size), ctx.output(x.shape, 1)
    same_numbers(x, y)
    if len(x.shape) != 1 or y.shape != x.shape or positions.dtype not in (int32, int64):
        raise NoLowering(f"distinct elements of {x}")

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(Distinct, packed, x.buffer, count, results)

    ctx.with_results(make, y.buffer, positions.buffer)
