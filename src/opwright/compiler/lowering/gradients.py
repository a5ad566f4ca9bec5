"""Gradients of convolutions by their filters, which are convolutions, and of pooling with non-overlapping windows.

Lives here: the rules of Conv2DBackpropFilter, AvgPoolGrad, MaxPoolGrad.
Not here: windows (windows.py), gradients by the input (transposed_convolutions.py), sums that reverse broadcasting
(reductions.py).

    dw[ky, kx, c, f] = sum x[n, y s + ky d - top, x s + kx d - left, c] dy[n, y, x, f]

This is a convolution with batch and channels exchanged, and strides and dilations exchanged.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, int32
from ..loops.buffers import Buffer, Window
from ..loops.expressions import Expr, apply, arg, const
from ..loops.ops import Contract, MatMul, Reduce
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import transposed
from .data_movement import layout, move
from .elementwise import map_elements
from .pooling import pool_window
from .registry import rule
from .windows import window_of


@rule("Conv2DBackpropFilter")
def by_filter(ctx: LoweringContext) -> None:
    x, dy = _images(ctx, 0, 2)
    dw = ctx.output().buffer
    kh, kw, channels, features = dw.shape
    window, sizes = window_of(ctx, x.shape, (kh, kw))
    n, height, width = x.shape[:3]
    if dy.shape != (n, *sizes, features) or x.shape[3] != channels:
        raise NoLowering(f"the gradient {dy} of a convolution of {x} by a filter {dw}")
    total = arg(0, float32)
    if window.size == window.strides == (1, 1) and not any(window.padding):
        rows = n * height * width
        a, b = ctx.viewed(x, (rows, channels)), ctx.viewed(dy, (rows, features))
        with ctx.reshaped(dw, (channels, features)) as out:
            ctx.add(MatMul, out, a, b, (), total, True, False)
        return
    extents, margins = [], []
    for i, size in enumerate((height, width)):
        before = window.padding[2 * i]
        span = (window.size[i] - 1) * window.dilations[i] + (sizes[i] - 1) * window.strides[i] + 1
        after = span - size - before
        extents.append(size + min(after, 0))  # rows outside of all windows are omitted
        margins += [before, max(after, 0)]
    if min(extents) < 1:
        raise NoLowering(f"no window covers {x}")
    view = layout(x)[:, : extents[0], : extents[1]].transpose(3, 1, 2, 0)
    images = ctx.new(x.dtype, view.shape)
    move(ctx, images, (x, view, (0, 0, 0, 0)))
    exchanged = Window(
        (sizes[0], sizes[1]), window.dilations, window.strides, (margins[0], margins[1], margins[2], margins[3])
    )
    gradient = ctx.new(float32, (channels, kh, kw, features))
    ctx.add(Contract, gradient, images, transposed(ctx, dy, (3, 1, 2, 0)), (), total, exchanged)
    move(ctx, dw, (gradient, layout(gradient).transpose(1, 2, 0, 3), (0, 0, 0, 0)))


def _images(ctx: LoweringContext, *places: int) -> tuple[Buffer, Buffer]:
    a, b = (ctx.operand(i).buffer for i in places)
    if a.dtype is not float32 or b.dtype is not float32 or {len(a.shape), len(b.shape)} != {4} or not a.size * b.size:
        raise NoLowering(f"the gradient of a convolution of {a} and {b}")
    return a, b


@rule("MaxPoolGrad")
def max_pool_grad(ctx: LoweringContext) -> None:
    """Lower MaxPoolGrad of non-overlapping windows: the gradient goes to the first maximum of each window."""
    x, y, dy = (ctx.operand(i) for i in range(3))
    split = _side_by_side(ctx, x, y)
    n, rows, height, columns, width, channels = split
    pixels = ctx.viewed(x.buffer, split)
    maximum, gradient = (ctx.viewed(o.buffer, (n, rows, 1, columns, 1, channels)) for o in (y, dy))
    numbers = np.arange(height * width, dtype=np.int32).reshape(height, 1, width, 1)
    number = Buffer(f"{ctx.node.prefix}.numbers", int32, numbers.shape, numbers)
    marked, first = ctx.new(int32, split), Buffer(f"{ctx.node.prefix}.first", int32, maximum.shape)

    def mark(a: Expr, b: Expr, k: Expr) -> Expr:
        return apply("select", apply("equal", a, b, dtype=bool_), k, const(height * width, int32), dtype=int32)

    map_elements(ctx, marked, [pixels, maximum, number], mark)
    ctx.add(Reduce, first, marked, (2, 4), "min", arg(0, int32), arg(0, int32))

    def route(index: Expr, k: Expr, d: Expr) -> Expr:
        return apply("select", apply("equal", index, k, dtype=bool_), d, const(0, float32), dtype=float32)

    with ctx.reshaped(ctx.output(x.shape).buffer, split) as out:
        map_elements(ctx, out, [first, number, gradient], route)


@rule("AvgPoolGrad")
def avg_pool_grad(ctx: LoweringContext) -> None:
    """Lower AvgPoolGrad of non-overlapping windows: each pixel receives an equal share."""
    y, dy = ctx.output(), ctx.operand(1)
    split = _side_by_side(ctx, y, dy)
    n, rows, height, columns, width, channels = split
    gradient = ctx.viewed(dy.buffer, (n, rows, 1, columns, 1, channels))
    share = const(1.0 / (height * width), float32)
    with ctx.reshaped(y.buffer, split) as out:
        map_elements(ctx, out, [gradient], lambda d: apply("mul", d, share))


def _side_by_side(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> tuple[int, ...]:
    """Return the shape of images with the pixels of each window as separate axes.

    raises NoLowering for windows that overlap or omit pixels
    """
    window, sizes = pool_window(ctx, x)
    (n, height, width, channels), (tall, wide) = x.shape, window.size
    if x.dtype is not float32 or not x.size:
        raise NoLowering(f"a pool over {x}")
    apart = window.strides != window.size or any(window.padding)
    if apart or (sizes[0] * tall, sizes[1] * wide) != (height, width) or y.shape != (n, *sizes, channels):
        raise NoLowering("windows that overlap or omit pixels")
    return (n, sizes[0], tall, sizes[1], wide, channels)
