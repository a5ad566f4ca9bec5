"""Overlapping windows as tensors: frames of signals, their sums, patches of images.

Lives here: the rules of Frame, OverlapAndAdd and ExtractImagePatches.
Not here: pooling (pooling.py), convolutions (contractions.py), transforms of frames (spectral.py).
"""

from __future__ import annotations

import math
from functools import partial, reduce

from ...core.dtypes import float32, float64, int32, int64
from ..loops.buffers import IndexMap, row_major
from ..loops.expressions import apply, arg
from ..loops.ops import Map, Move
from .context import LoweringContext, NoLowering
from .data_movement import layout, move
from .nodes import SlidingWindow
from .registry import rule

MOST_PIECES = 32
"""Operands of one sum."""


def _scalar(ctx: LoweringContext, index: int) -> int:
    """Return the number that an input is. Raises NoLowering if it is computed."""
    return int(ctx.constant(index).reshape(-1)[0])


@rule("Frame")
def frame(ctx: LoweringContext) -> None:
    """Lower frames of a signal to one box, which reads samples several times; padded at its end first."""
    x, length, step, padding = ctx.operand(0), _scalar(ctx, 1), _scalar(ctx, 2), ctx.optional(3)
    y, axis = ctx.output(), ctx.attr("axis") % len(x.shape)
    if not x.size or not y.size:
        raise NoLowering("no elements")
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    frames = y.shape[axis]
    signal, missing = ctx.viewed(x.buffer, (outer, n, inner)), (frames - 1) * step + length - n
    if missing > 0:
        if padding is None:
            raise NoLowering(f"{frames} frames of {x}")
        padded = ctx.new(x.dtype, (outer, n + missing, inner), ".padded")
        move(ctx, padded, (signal, layout(signal), (0, 0, 0)), fill=ctx.constant(3).reshape(-1)[0].item())
        signal, n = padded, n + missing
    steps = (n * inner, step * inner, inner, 1)
    with ctx.reshaped(y, (outer, frames, length, inner)) as out:
        ctx.add(Move, out, (signal,), (IndexMap((0,) * 4, out.shape, 0, steps),))


@rule("OverlapAndAdd")
def overlap_and_add(ctx: LoweringContext) -> None:
    """Lower a sum of overlapping frames: pieces of `step` samples of each, which are added some rows later."""
    x, step = ctx.operand(0), _scalar(ctx, 1)
    y, axis = ctx.output(), ctx.attr("axis") % (len(x.shape) - 1)
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 2 :])
    frames, length = x.shape[axis : axis + 2]
    count = -(-length // step)
    if x.dtype not in (float32, float64, int32, int64) or not x.size or count > MOST_PIECES:
        raise NoLowering(f"{count} overlapping frames of {x}")
    rows, pieces = frames + count - 1, []
    steps = (frames * length * inner, length * inner, inner, 1)
    for i in range(count):
        piece = ctx.new(x.dtype, (outer, rows, step, inner), f".piece{i}")
        extent = (outer, frames, min(step, length - i * step), inner)
        is_all = extent == piece.shape
        ctx.add(
            Move, piece, (x.buffer,), (IndexMap((0, i, 0, 0), extent, i * step * inner, steps),), None if is_all else 0
        )
        pieces.append(piece)
    total = ctx.new(x.dtype, (outer, rows, step, inner), ".sum")
    add = partial(apply, "add")
    ctx.add(Map, total, tuple(pieces), reduce(add, (arg(i, x.dtype) for i in range(count))))
    n = y.shape[axis]
    with ctx.reshaped(y, (outer, n, inner)) as out:
        flat = ctx.viewed(total, (outer, rows * step, inner))
        ctx.add(Move, out, (flat,), (IndexMap((0, 0, 0), out.shape, 0, row_major(flat.shape)),))


@rule("ExtractImagePatches")
def patches(ctx: LoweringContext) -> None:
    """Lower patches of images to one box, which reads pixels several times; padded with zeros first."""
    x, y = ctx.operand(0), ctx.output()
    sizes, strides, rates = (tuple(ctx.attr(name))[1:3] for name in ("sizes", "strides", "rates"))
    if not x.size or not y.size:
        raise NoLowering("no elements")
    window, out_sizes = SlidingWindow(ctx.attr("padding"), strides, rates).over(x.shape[1:3], sizes)
    n, h, w, c = x.shape
    top, bottom, left, right = window.padding
    image = x.buffer
    if any(window.padding):
        h, w = h + top + bottom, w + left + right
        image = ctx.new(x.dtype, (n, h, w, c), ".padded")
        move(ctx, image, (x.buffer, layout(x), (0, top, left, 0)), fill=False if x.dtype.is_bool else 0)
    rows, columns = w * c, c
    steps = (h * w * c, strides[0] * rows, strides[1] * columns, rates[0] * rows, rates[1] * columns, 1)
    with ctx.reshaped(y, (n, *out_sizes, *sizes, c)) as out:
        ctx.add(Move, out, (image,), (IndexMap((0,) * 6, out.shape, 0, steps),))
