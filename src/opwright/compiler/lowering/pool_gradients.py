"""Gradients of pools whose windows lie side by side: AvgPoolGrad, MaxPoolGrad.

Lives here: these rules.  Not here: pools (pooling.py).
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, int32
from ..loops.expressions import Expr, apply, arg, const
from ..loops.forms import Buffer, Reduce
from .context import LoweringContext, NoLowering, Operand
from .elementwise import map_elements
from .moves import writing
from .pooling import pool_window
from .registry import rule


@rule("MaxPoolGrad")
def max_pool_grad(ctx: LoweringContext) -> None:
    """Of windows side by side: the gradient goes to the first pixel of the window that is its maximum."""
    x, y, dy = (ctx.operand(i) for i in range(3))
    cut = _side_by_side(ctx, x, y)
    n, rows, height, columns, width, channels = cut
    pixels = ctx.viewed(x.buffer, cut)
    whole, gradient = (ctx.viewed(o.buffer, (n, rows, 1, columns, 1, channels)) for o in (y, dy))
    numbers = np.arange(height * width, dtype=np.int32).reshape(height, 1, width, 1)
    number = Buffer(f"{ctx.node.prefix}.numbers", int32, numbers.shape, numbers)
    marked, first = ctx.new(int32, cut), Buffer(f"{ctx.node.prefix}.first", int32, whole.shape)

    def mark(a: Expr, b: Expr, k: Expr) -> Expr:
        return apply("select", apply("equal", a, b, dtype=bool_), k, const(height * width, int32), dtype=int32)

    map_elements(ctx, marked, [pixels, whole, number], mark)
    ctx.form(Reduce, first, marked, (2, 4), "min", arg(0, int32), arg(0, int32))

    def place(found: Expr, k: Expr, d: Expr) -> Expr:
        return apply("select", apply("equal", found, k, dtype=bool_), d, const(0, float32), dtype=float32)

    writing(ctx, ctx.output(x.shape).buffer, cut, lambda out: map_elements(ctx, out, [first, number, gradient], place))


@rule("AvgPoolGrad")
def avg_pool_grad(ctx: LoweringContext) -> None:
    """Of windows side by side: each pixel gets its share."""
    y, dy = ctx.output(), ctx.operand(1)
    cut = _side_by_side(ctx, y, dy)
    n, rows, height, columns, width, channels = cut
    gradient = ctx.viewed(dy.buffer, (n, rows, 1, columns, 1, channels))
    share = const(1.0 / (height * width), float32)
    writing(ctx, y.buffer, cut, lambda out: map_elements(ctx, out, [gradient], lambda d: apply("mul", d, share)))


def _side_by_side(ctx: LoweringContext, x: Operand, y: Operand) -> tuple[int, ...]:
    """Return the shape of images whose windows lie side by side, with the pixels of a window as axes of their own.

    raises NoLowering for other windows
    """
    window, sizes = pool_window(ctx, x)
    (n, height, width, channels), (tall, wide) = x.shape, window.size
    if x.dtype is not float32 or not x.size:
        raise NoLowering(f"a pool over {x}")
    apart = window.strides != window.size or any(window.padding)
    if apart or (sizes[0] * tall, sizes[1] * wide) != (height, width) or y.shape != (n, *sizes, channels):
        raise NoLowering("windows that overlap or leave pixels out")
    return (n, sizes[0], tall, sizes[1], wide, channels)
