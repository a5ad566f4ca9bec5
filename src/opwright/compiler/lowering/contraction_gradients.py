"""Gradients of convolutions, as convolutions: Conv2DBackpropInput, Conv2DBackpropFilter.

Lives here: their rules.  Not here: windows (contractions.py).

    dx[n, y, x, c] = sum dy[n, y + top - ky, x + left - kx, f] w[ky, kx, c, f]
    dw[ky, kx, c, f] = sum x[n, y s + ky d - top, x s + kx d - left, c] dy[n, y, x, f]

The first, with strides of 1, is a convolution by the filter turned round; in the second images and channels change
places, strides and dilations too.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import arg
from ..loops.forms import Buffer, Contract, MatMul, TransposedContract, Window
from .context import LoweringContext, NoLowering
from .contractions import transposed
from .moves import layout, move, writing
from .registry import rule
from .windows import window_of


@rule("Conv2DBackpropInput")
def by_input(ctx: LoweringContext) -> None:
    w, dy = _images(ctx, 1, 2)
    y = ctx.output().buffer
    kh, kw, channels, features = w.shape
    window, sizes = window_of(ctx, y.shape, (kh, kw))
    if dy.shape != (y.shape[0], *sizes, features) or y.shape[3] != channels:
        raise NoLowering(f"the gradient {dy} of a convolution of {y} and {w}")
    if window.strides != (1, 1):
        if window.dilations != (1, 1):
            raise NoLowering("strides and dilations")
        ctx.form(TransposedContract, y, dy, transposed(ctx, w, (2, 0, 1, 3)), (), arg(0, float32), window)
        return
    spans = [(k - 1) * d for k, d in zip(window.size, window.dilations)]
    top, bottom, left, right = window.padding
    margins = (spans[0] - top, spans[0] - bottom, spans[1] - left, spans[1] - right)
    if min(margins) < 0:
        raise NoLowering(f"margins of {window.padding} around a window of {window.size}")
    filter = _turned_round(ctx, w)
    ctx.form(Contract, y, dy, filter, (), arg(0, float32), Window(window.size, (1, 1), window.dilations, margins))


def _turned_round(ctx: LoweringContext, w: Buffer) -> Buffer:
    """[height, width, in, out] as [in, height, width, out], height and width backwards."""
    if w.constant is not None:
        array = np.ascontiguousarray(w.constant[::-1, ::-1].transpose(2, 0, 1, 3))
        return Buffer(f"{w.name}.round", w.dtype, array.shape, array)
    view = layout(w)[::-1, ::-1].transpose(2, 0, 1, 3)
    made = ctx.new(w.dtype, view.shape)
    move(ctx, made, (w, view, (0, 0, 0, 0)))
    return made


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
        writing(ctx, dw, (channels, features), lambda out: ctx.form(MatMul, out, a, b, (), total, True, False))
        return
    extents, margins = [], []
    for i, size in enumerate((height, width)):
        before = window.padding[2 * i]
        span = (window.size[i] - 1) * window.dilations[i] + (sizes[i] - 1) * window.strides[i] + 1
        behind = span - size - before
        extents.append(size + min(behind, 0))  # rows that no window reaches are left out
        margins += [before, max(behind, 0)]
    if min(extents) < 1:
        raise NoLowering(f"images {x} that windows do not reach")
    view = layout(x)[:, : extents[0], : extents[1]].transpose(3, 1, 2, 0)
    images = ctx.new(x.dtype, view.shape)
    move(ctx, images, (x, view, (0, 0, 0, 0)))
    seen = Window((sizes[0], sizes[1]), window.dilations, window.strides,
                  (margins[0], margins[1], margins[2], margins[3]))  # fmt: skip
    found = ctx.new(float32, (channels, kh, kw, features))
    ctx.form(Contract, found, images, transposed(ctx, dy, (3, 1, 2, 0)), (), total, seen)
    move(ctx, dw, (found, layout(found).transpose(1, 2, 0, 3), (0, 0, 0, 0)))


def _images(ctx: LoweringContext, *places: int) -> tuple[Buffer, Buffer]:
    a, b = (ctx.operand(i).buffer for i in places)
    if a.dtype is not float32 or b.dtype is not float32 or {len(a.shape), len(b.shape)} != {4} or not a.size * b.size:
        raise NoLowering(f"the gradient of a convolution of {a} and {b}")
    return a, b
