"""Transposed convolutions, the gradients of convolutions by their input: Conv2DBackpropInput, TRANSPOSE_CONV,
Convolution2DTransposeBias.

Lives here: their rules.  Not here: convolutions and their epilogues (contractions.py), other gradients (gradients.py).

    y[n, i, j, c] = sum x[n, (i + top - ky) / s, (j + left - kx) / s, f] w[ky, kx, c, f]

With strides of 1, this is a convolution with a spatially reversed filter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, uint8
from ..loops.buffers import Buffer, Window
from ..loops.expressions import arg
from ..loops.ops import Contract, TransposedContract
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import epilogue, hybrid_epilogue, is_hybrid, transposed, with_bias, zeros_of
from .data_movement import layout, move
from .registry import CATALOGUE, rule
from .windows import window_of


@rule("Conv2DBackpropInput", "TRANSPOSE_CONV")
def transpose_conv(ctx: LoweringContext) -> None:
    """Lower a transposed convolution. Filters are [height, width, out, in] in the catalogue, [out, height, width, in]
    in files."""
    catalogue, w, x = ctx.node.dialect == CATALOGUE, ctx.operand(1), ctx.operand(2)
    sizes = ctx.output().shape if catalogue else tuple(map(int, ctx.constant(0)))
    if len(x.shape) != 4 or len(w.shape) != 4 or x.shape[3] != w.shape[3] or len(sizes) != 4:
        raise NoLowering(f"a transposed convolution of {x} and {w} to {list(sizes)}")
    *size, features = w.shape[:3] if catalogue else (*w.shape[1:3], w.shape[0])
    window, counts = window_of(ctx, sizes, size)
    if (sizes[0], *counts, sizes[3]) != (*x.shape[:3], features):
        raise NoLowering(f"a transposed convolution of {x} to {list(sizes)}")
    y = ctx.output(sizes)
    if catalogue:
        if {x.dtype, w.dtype} != {float32} or not x.size * w.size:
            raise NoLowering(f"the gradient of a convolution of {w} and {x}")
        if window.strides == (1, 1):
            _reversed_convolution(ctx, x, w, y, window)
            return
        if window.dilations != (1, 1):
            raise NoLowering("strides and dilations")
        w = w.with_buffer(transposed(ctx, w.buffer, (2, 0, 1, 3)))
    if w.dtype is not uint8 and is_hybrid(x, w):
        operands, expr = hybrid_epilogue(ctx, w, y, features, bias=3)
        ctx.add(TransposedContract, y.buffer, x.buffer, w.buffer, operands, expr, window, rounding="asymmetric")
        return
    operands, expr = epilogue(ctx, x, w, y, features, bias=3)
    ctx.add(TransposedContract, y.buffer, x.buffer, w.buffer, operands, expr, window, *zeros_of(x, w))


def _reversed_convolution(ctx: LoweringContext, x: RuleOperand, w: RuleOperand, y: RuleOperand, window: Window) -> None:
    spans = [(k - 1) * d for k, d in zip(window.size, window.dilations)]
    top, bottom, left, right = window.padding
    margins = (spans[0] - top, spans[0] - bottom, spans[1] - left, spans[1] - right)
    if min(margins) < 0:
        raise NoLowering(f"margins of {window.padding} around a window of {window.size}")
    window = Window(window.size, (1, 1), window.dilations, margins)
    ctx.add(Contract, y.buffer, x.buffer, _reversed(ctx, w.buffer), (), arg(0, float32), window)


def _reversed(ctx: LoweringContext, w: Buffer) -> Buffer:
    """Return [height, width, out, in] as [out, height, width, in] with height and width reversed."""
    if w.constant is not None:
        array = np.ascontiguousarray(w.constant[::-1, ::-1].transpose(2, 0, 1, 3))
        return Buffer(f"{w.name}.round", w.dtype, array.shape, array)
    view = layout(w)[::-1, ::-1].transpose(2, 0, 1, 3)
    buffer = ctx.new(w.dtype, view.shape)
    move(ctx, buffer, (w, view, (0, 0, 0, 0)))
    return buffer


@rule(custom=("Convolution2DTransposeBias",))
def transpose_conv_bias(ctx: LoweringContext) -> None:
    x, w = ctx.operand(0), ctx.operand(1)
    call: Any = ctx.node.call
    if len(x.shape) != 4 or len(w.shape) != 4 or x.shape[3] != w.shape[3] or not x.size or not w.size:
        raise NoLowering(f"a transposed convolution of {x} and {w}")
    size, strides = (w.shape[1], w.shape[2]), (call.stride_h, call.stride_w)
    (height, top), (width, left) = (call.result_size(n, k, s) for n, k, s in zip(x.shape[1:3], size, strides))
    y = ctx.output((x.shape[0], height, width, w.shape[0]))
    operands, expr = with_bias(ctx.operand(2), float32, w.shape[0])
    if (x.dtype, w.dtype, y.dtype) != (float32, float32, float32):
        raise NoLowering(f"{x.dtype.name} by {w.dtype.name} to {y.dtype.name}")
    ctx.add(
        TransposedContract,
        y.buffer,
        x.buffer,
        w.buffer,
        operands,
        expr,
        Window(size, strides, (1, 1), (top, 0, left, 0)),
    )
