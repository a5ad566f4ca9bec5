"""Pools and resized images: AvgPool, MaxPool, their gradients, ResizeBilinear, ResizeNearestNeighbor.

Lives here: these rules.  Not here: windows (contractions.py).
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, int32
from ..loops.expressions import Expr, apply, arg, const
from ..loops.forms import Buffer, Pool, Reduce, Resize
from ..lowering.context import LoweringContext, NoLowering
from ..lowering.moves import writing
from ..lowering.registry import rule
from .contractions import window_of
from .elementwise import mapped


@rule("AvgPool", "MaxPool")
def pool(ctx: LoweringContext) -> None:
    x = ctx.operand(0).buffer
    ksize = [int(k) for k in ctx.attr("ksize")]
    if len(x.shape) != 4 or len(ksize) != 4 or ksize[0] != 1 or ksize[3] != 1 or x.dtype is not float32 or not x.size:
        raise NoLowering(f"a pool of {ksize} over {x}")
    window, sizes = window_of(ctx, x.shape, (ksize[1], ksize[2]))
    y = ctx.output((x.shape[0], *sizes, x.shape[3])).buffer
    total = arg(0, float32)
    if ctx.operator == "MaxPool":
        ctx.form(Pool, y, x, "max", total, window)
    else:
        ctx.form(Pool, y, x, "sum", apply("div", total, arg(1, float32)), window)


@rule("MaxPoolGrad")
def max_pool_grad(ctx: LoweringContext) -> None:
    """Of windows side by side: the gradient goes to the first pixel of the window that is its maximum."""
    x, y, dy = (ctx.operand(i).buffer for i in range(3))
    cut = _side_by_side(ctx, x, y)
    n, rows, height, columns, width, channels = cut
    pixels = ctx.viewed(x, cut)
    whole, gradient = (ctx.viewed(b, (n, rows, 1, columns, 1, channels)) for b in (y, dy))
    numbers = np.arange(height * width, dtype=np.int32).reshape(height, 1, width, 1)
    number = Buffer(f"{ctx.node.prefix}.numbers", int32, numbers.shape, numbers)
    marked, first = ctx.new(int32, cut), Buffer(f"{ctx.node.prefix}.first", int32, whole.shape)

    def mark(a: Expr, b: Expr, k: Expr) -> Expr:
        return apply("select", apply("equal", a, b, dtype=bool_), k, const(height * width, int32), dtype=int32)

    mapped(ctx, marked, [pixels, whole, number], mark)
    ctx.form(Reduce, first, marked, (2, 4), "min", arg(0, int32), arg(0, int32))

    def place(found: Expr, k: Expr, d: Expr) -> Expr:
        return apply("select", apply("equal", found, k, dtype=bool_), d, const(0, float32), dtype=float32)

    writing(ctx, ctx.output(x.shape).buffer, cut, lambda out: mapped(ctx, out, [first, number, gradient], place))


@rule("AvgPoolGrad")
def avg_pool_grad(ctx: LoweringContext) -> None:
    """Of windows side by side: each pixel gets its share."""
    y, dy = ctx.output().buffer, ctx.operand(1).buffer
    cut = _side_by_side(ctx, y, dy)
    n, rows, height, columns, width, channels = cut
    gradient = ctx.viewed(dy, (n, rows, 1, columns, 1, channels))
    writing(ctx, y, cut, lambda out: mapped(ctx, out, [gradient],
               lambda d: apply("mul", d, const(1.0 / (height * width), float32))))  # fmt: skip


def _side_by_side(ctx: LoweringContext, x: Buffer, y: Buffer) -> tuple[int, ...]:
    """The shape of images whose windows lie side by side, with the pixels of a window as axes of their own.

    raises NoLowering for other windows
    """
    ksize = [int(k) for k in ctx.attr("ksize")]
    if len(x.shape) != 4 or x.dtype is not float32 or not x.size or ksize[0] != 1 or ksize[3] != 1:
        raise NoLowering(f"a pool of {ksize} over {x}")
    window, sizes = window_of(ctx, x.shape, (ksize[1], ksize[2]))
    n, height, width, channels = x.shape
    apart = window.strides != window.size or any(window.padding)
    if apart or (sizes[0] * ksize[1], sizes[1] * ksize[2]) != (height, width) or y.shape != (n, *sizes, channels):
        raise NoLowering("windows that overlap or leave pixels out")
    return (n, sizes[0], ksize[1], sizes[1], ksize[2], channels)


@rule("ResizeBilinear", "ResizeNearestNeighbor")
def resize(ctx: LoweringContext) -> None:
    x, y = ctx.operand(0).buffer, ctx.output().buffer
    if x.dtype is not float32 or y.dtype is not float32 or len(x.shape) != 4 or not x.size or not y.size:
        raise NoLowering(f"{x} resized")
    kind = "bilinear" if ctx.operator == "ResizeBilinear" else "nearest"
    ctx.form(Resize, y, x, kind, bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers")), arg(0, float32))
