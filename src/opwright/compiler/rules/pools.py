"""Pools and resized images: AvgPool, MaxPool, their gradients, ResizeBilinear, ResizeNearestNeighbor.

Lives here: these rules.  Not here: windows (contractions.py).
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, int32
from ..loops.expressions import Expr, apply, arg, const
from ..loops.forms import Buffer, Pool, Reduce, Resize
from .contractions import window_of
from .elementwise import mapped
from .nodes import At, Refused
from .registry import rule


@rule("AvgPool", "MaxPool")
def pool(at: At) -> None:
    x = at.operand(0)
    ksize = [int(k) for k in at.attr("ksize")]
    if len(x.shape) != 4 or len(ksize) != 4 or ksize[0] != 1 or ksize[3] != 1 or x.dtype is not float32 or not x.size:
        raise Refused(f"a pool of {ksize} over {x}")
    window, sizes = window_of(at, x.shape, (ksize[1], ksize[2]))
    y = at.output(shape=(x.shape[0], *sizes, x.shape[3]))
    total = arg(0, float32)
    if at.node.op.name == "MaxPool":
        at.form(Pool, y, x, "max", total, window)
    else:
        at.form(Pool, y, x, "sum", apply("div", total, arg(1, float32)), window)


@rule("MaxPoolGrad")
def max_pool_grad(at: At) -> None:
    """Of windows side by side: the gradient goes to the first pixel of the window that is its maximum."""
    x, y, dy = (at.operand(i) for i in range(3))
    cut = _side_by_side(at, x, y)
    n, rows, height, columns, width, channels = cut
    pixels = at.viewed(x, cut)
    whole, gradient = (at.viewed(b, (n, rows, 1, columns, 1, channels)) for b in (y, dy))
    numbers = np.arange(height * width, dtype=np.int32).reshape(height, 1, width, 1)
    number = Buffer(f"{at.node.name}.numbers", int32, numbers.shape, numbers)
    marked, first = at.new(int32, cut), Buffer(f"{at.node.name}.first", int32, whole.shape)

    def mark(a: Expr, b: Expr, k: Expr) -> Expr:
        return apply("select", apply("equal", a, b, dtype=bool_), k, const(height * width, int32), dtype=int32)

    mapped(at, marked, [pixels, whole, number], mark)
    at.form(Reduce, first, marked, (2, 4), "min", arg(0, int32), arg(0, int32))

    def place(found: Expr, k: Expr, d: Expr) -> Expr:
        return apply("select", apply("equal", found, k, dtype=bool_), d, const(0, float32), dtype=float32)

    at.written(at.output(shape=x.shape), cut, lambda out: mapped(at, out, [first, number, gradient], place))


@rule("AvgPoolGrad")
def avg_pool_grad(at: At) -> None:
    """Of windows side by side: each pixel gets its share."""
    y, dy = at.output(), at.operand(1)
    cut = _side_by_side(at, y, dy)
    n, rows, height, columns, width, channels = cut
    gradient = at.viewed(dy, (n, rows, 1, columns, 1, channels))
    at.written(y, cut, lambda out: mapped(at, out, [gradient],
               lambda d: apply("mul", d, const(1.0 / (height * width), float32))))  # fmt: skip


def _side_by_side(at: At, x: Buffer, y: Buffer) -> tuple[int, ...]:
    """The shape of images whose windows lie side by side, with the pixels of a window as axes of their own.

    raises Refused for other windows
    """
    ksize = [int(k) for k in at.attr("ksize")]
    if len(x.shape) != 4 or x.dtype is not float32 or not x.size or ksize[0] != 1 or ksize[3] != 1:
        raise Refused(f"a pool of {ksize} over {x}")
    window, sizes = window_of(at, x.shape, (ksize[1], ksize[2]))
    n, height, width, channels = x.shape
    apart = window.strides != window.size or any(window.padding)
    if apart or (sizes[0] * ksize[1], sizes[1] * ksize[2]) != (height, width) or y.shape != (n, *sizes, channels):
        raise Refused("windows that overlap or leave pixels out")
    return (n, sizes[0], ksize[1], sizes[1], ksize[2], channels)


@rule("ResizeBilinear", "ResizeNearestNeighbor")
def resize(at: At) -> None:
    x, y = at.operand(0), at.output()
    if x.dtype is not float32 or y.dtype is not float32 or len(x.shape) != 4 or not x.size or not y.size:
        raise Refused(f"{x} resized")
    kind = "bilinear" if at.node.op.name == "ResizeBilinear" else "nearest"
    at.form(Resize, y, x, kind, bool(at.attr("align_corners")), bool(at.attr("half_pixel_centers")), arg(0, float32))
