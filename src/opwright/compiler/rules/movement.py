"""Operators that move elements: each is a move by index maps, or a look-up.

Lives here: these rules. A map is read off a NumPy view: what the operator does to an array of places says which of them
it takes, by offset and strides.
Not here: shapes alone (shaping.py), moves as index maps (../loops/forms.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...ops import registry
from ..loops.expressions import Expr, apply
from ..loops.forms import Buffer, Gather, GatherNd
from ..lowering.context import LoweringContext, NoLowering
from ..lowering.moves import layout, move, move_view
from ..lowering.registry import rule
from .elementwise import mapped


@rule("BroadcastTo", "Reverse", "Slice", "Split", "SplitV", "StridedSlice", "Transpose", "Unpack")
def by_view(ctx: LoweringContext) -> None:
    """Operators whose computation gives views: they are asked for those of an array of places."""
    x = ctx.operand(0).buffer
    constants = [ctx.constant(i) for i in range(1, len(ctx.node.inputs))]
    for place, view in enumerate(taken(ctx.node.node.op, ctx.node.node.attrs, layout(x), constants)):
        move_view(ctx, ctx.output(place=place).buffer, x, view)


def taken(op: Any, attrs: Mapping[str, Any], dummy: np.ndarray, constants: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The views of an array of places that an operator takes; one of a single element has one axis.

    raises NoLowering where it copies
    """
    compute = op.reference(op.bind(dict(attrs)))
    views = list(op.flat_outputs(compute(dummy, *constants)))
    if any(not isinstance(v, np.ndarray) for v in views):  # single elements: NumPy gives numbers, not views
        numbers = op.flat_outputs(compute(np.arange(dummy.size).reshape(dummy.shape), *constants))
        flat = dummy.reshape(-1)
        views = [v if isinstance(v, np.ndarray) else flat[int(n) : int(n) + 1] for v, n in zip(views, numbers)]
    if any(v.size and not np.may_share_memory(v, dummy) for v in views):
        raise NoLowering("the computation gives no view")
    return views


@rule("Concat", "Pack")
def joined(ctx: LoweringContext) -> None:
    y, parts = ctx.output().buffer, [o.buffer for o in ctx.operands]
    axis, packed = int(ctx.attr("axis")) % len(y.shape), ctx.operator == "Pack"
    moves, begin = [], 0
    for part in parts:
        view = layout(part)
        view = np.expand_dims(view, axis) if packed else view
        moves.append((part, view, tuple(begin if i == axis else 0 for i in range(len(y.shape)))))
        begin += view.shape[axis]
    if begin != y.shape[axis]:
        raise NoLowering(f"{begin} rows for {y}")
    move(ctx, y, *moves)


@rule("Pad")
def pad(ctx: LoweringContext) -> None:
    x, y, margins = ctx.operand(0).buffer, ctx.output().buffer, ctx.constant(1)
    value = None if ctx.optional(2) is None else ctx.constant(2)
    if (margins < 0).any() or tuple(np.add(x.shape, margins.sum(1))) != y.shape:
        raise NoLowering(f"margins {margins.tolist()}")
    fill = 0 if value is None else value.reshape(-1)[0].item()
    move(ctx, y, (x, layout(x), margins[:, 0].tolist()), fill=fill)


@rule("StridedSliceGrad")
def strided_slice_grad(ctx: LoweringContext) -> None:
    """The gradient where it was taken from, zeros elsewhere; for slices of neighbours."""
    y, dy = ctx.output().buffer, ctx.operand(4).buffer
    op = registry.get("StridedSlice")
    dummy = layout(y)
    (view,) = taken(op, ctx.node.node.attrs, dummy, [ctx.constant(i) for i in (1, 2, 3)])
    start = view.__array_interface__["data"][0] - dummy.__array_interface__["data"][0]
    first, box, at_axis = [], [], 0
    for stride, n in zip(dummy.strides, y.shape):
        first.append(start // stride % n if n else 0)
        whole = at_axis < view.ndim and view.strides[at_axis] == stride and view.shape[at_axis] <= n
        box.append(view.shape[at_axis] if whole else 1)
        at_axis += whole
    if at_axis != view.ndim or math.prod(box) != dy.size:
        raise NoLowering("a slice with steps")
    source = ctx.viewed(dy, tuple(box))
    move(ctx, y, (source, layout(source), first), fill=0)


@rule("Tile")
def tile(ctx: LoweringContext) -> None:
    x, y, times = ctx.operand(0).buffer, ctx.output().buffer, ctx.constant(1).tolist()
    shape = [v for m, n in zip(times, x.shape) for v in (m, n)]
    apart = layout(x).reshape([v for n in x.shape for v in (1, n)])
    move_view(ctx, y, x, np.broadcast_to(apart, shape))


@rule("SpaceToDepth", "DepthToSpace")
def blocks(ctx: LoweringContext) -> None:
    x, s = ctx.operand(0).buffer, int(ctx.attr("block_size"))
    if ctx.attr("data_format") != "NHWC":
        raise NoLowering("images with channels first")
    n, h, w, c = x.shape
    if ctx.operator == "SpaceToDepth":
        cut = layout(x).reshape(n, h // s, s, w // s, s, c)
    else:
        cut = layout(x).reshape(n, h, w, s, s, c // (s * s))
    move_view(ctx, ctx.output().buffer, x, cut.transpose(0, 1, 3, 2, 4, 5))


@rule("SpaceToBatchND")
def space_to_batch(ctx: LoweringContext) -> None:
    x, sizes, margins = ctx.operand(0).buffer, ctx.constant(1).tolist(), ctx.constant(2).tolist()
    m, rest = len(sizes), len(x.shape) - len(sizes) - 1
    borders = [(0, 0), *map(tuple, margins), *[(0, 0)] * rest]
    padded = x
    if any(map(any, borders)):
        padded = ctx.new(x.dtype, [d + sum(p) for d, p in zip(x.shape, borders)])
        move(ctx, padded, (x, layout(x), [b for b, _ in borders]), fill=0)
    n, spatial, tail = x.shape[0], padded.shape[1 : m + 1], x.shape[m + 1 :]
    cut = layout(padded).reshape([n, *(v for d, b in zip(spatial, sizes) for v in (d // b, b)), *tail])
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + rest)]
    move_view(ctx, ctx.output().buffer, padded, cut.transpose(order))


@rule("BatchToSpaceND")
def batch_to_space(ctx: LoweringContext) -> None:
    x, sizes, crops = ctx.operand(0).buffer, ctx.constant(1).tolist(), ctx.constant(2)
    m, n = len(sizes), x.shape[0] // math.prod(sizes)
    spatial, tail = x.shape[1 : m + 1], x.shape[m + 1 :]
    if crops.any():
        raise NoLowering("crops")
    cut = layout(x).reshape([*sizes, n, *spatial, *tail])
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, cut.ndim)]
    move_view(ctx, ctx.output().buffer, x, cut.transpose(order))


@rule("Gather")
def gather(ctx: LoweringContext) -> None:
    x, indices = ctx.operand(0).buffer, ctx.operand(1).buffer
    axis, batch = int(ctx.attr("axis")) % max(len(x.shape), 1), int(ctx.attr("batch_dims"))
    if not x.shape or batch < 0:
        raise NoLowering(f"rows of {x}")
    ctx.form(Gather, ctx.output().buffer, x, indices, axis, batch)


@rule("GatherNd")
def gather_nd(ctx: LoweringContext) -> None:
    if int(ctx.attr("batch_dims")):
        raise NoLowering("batches")
    ctx.form(GatherNd, ctx.output().buffer, ctx.operand(0).buffer, ctx.operand(1).buffer)


@rule("OneHot")
def one_hot(ctx: LoweringContext) -> None:
    """on where the place along the new axis is the index, off elsewhere."""
    indices, y = ctx.operand(0).buffer, ctx.output().buffer
    axis = int(ctx.attr("axis")) % len(y.shape)
    depth = y.shape[axis]
    column = np.arange(depth, dtype=indices.dtype.np).reshape(depth, *[1] * (len(y.shape) - axis - 1))
    counted = Buffer(f"{ctx.node.prefix}.places", indices.dtype, column.shape, column)
    spread = ctx.viewed(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))

    def expr(i: Expr, k: Expr, on: Expr, off: Expr) -> Expr:
        return apply("select", apply("equal", i, k, dtype=bool_), on, off, dtype=y.dtype)

    mapped(ctx, y, [spread, counted, ctx.operand(2).buffer, ctx.operand(3).buffer], expr)
