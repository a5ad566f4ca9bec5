"""Products and convolutions: MatMul, Conv2D, DepthwiseConv2dNative.

Lives here: their rules, windows with their padding.
Not here: gradients of convolutions (contraction_gradients.py), what fuses with them (../loops/fusion.py).

Filters lie [height, width, in, out] in the catalogue and [out, height, width, in] in forms: constants are turned when
the plan is made, others by a move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import arg
from ..loops.forms import Buffer, Contract, Depthwise, MatMul, Window
from ..lowering.context import LoweringContext, NoLowering
from ..lowering.moves import layout, move, writing
from ..lowering.registry import rule


@rule("MatMul")
def matmul(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0).buffer, ctx.operand(1).buffer
    y = ctx.output().buffer
    if a.dtype is not float32 or b.dtype is not float32 or y.dtype is not float32:
        raise NoLowering(f"a product of {a} and {b} to {y.dtype.name}")
    if len(a.shape) < 2 or len(b.shape) < 2 or not y.size or not a.size:
        raise NoLowering(f"a product of {a} and {b}")
    turned_a = bool(ctx.attr("transpose_a") or ctx.attr("adjoint_a"))
    turned_b = bool(ctx.attr("transpose_b") or ctx.attr("adjoint_b"))
    total = arg(0, float32)
    if len(b.shape) == 2 and not turned_a and (turned_b or b.constant is not None):
        filter = b if turned_b else turned(ctx, b, (1, 0))
        features, channels = filter.shape
        rows = a.size // channels
        source, filter = ctx.viewed(a, (rows, 1, 1, channels)), ctx.viewed(filter, (features, 1, 1, channels))
        writing(ctx, y, (rows, 1, 1, features),
                   lambda out: ctx.form(Contract, out, source, filter, (), total, Window((1, 1))))  # fmt: skip
        return
    ctx.form(MatMul, y, a, b, (), total, turned_a, turned_b)


def turned(ctx: LoweringContext, x: Buffer, order: Sequence[int]) -> Buffer:
    """The buffer with its axes in another order."""
    if x.constant is not None:
        array = np.ascontiguousarray(x.constant.transpose(order))
        return Buffer(f"{x.name}.turned", x.dtype, array.shape, array)
    made = ctx.new(x.dtype, [x.shape[i] for i in order])
    move(ctx, made, (x, layout(x).transpose(order), (0,) * len(order)))
    return made


@rule("Conv2D")
def conv_2d(ctx: LoweringContext) -> None:
    x, w = floats(ctx, 0, 1)
    y = ctx.output().buffer
    kh, kw, channels, features = w.shape
    if not channels or x.shape[3] % channels:
        raise NoLowering(f"a convolution of {x} and {w}")
    window, sizes = window_of(ctx, x.shape, (kh, kw))
    ctx.output((x.shape[0], *sizes, features))
    if w.constant is None and window == Window((1, 1)) and channels == x.shape[3]:
        rows = x.size // channels  # a product: nothing has to be turned
        a, b = ctx.viewed(x, (rows, channels)), ctx.viewed(w, (channels, features))
        writing(ctx, y, (rows, features), lambda out: ctx.form(MatMul, out, a, b, (), arg(0, float32)))
        return
    ctx.form(Contract, y, x, turned(ctx, w, (3, 0, 1, 2)), (), arg(0, float32), window, x.shape[3] // channels)


@rule("DepthwiseConv2dNative")
def depthwise(ctx: LoweringContext) -> None:
    x, w = floats(ctx, 0, 1)
    kh, kw, channels, multiplier = w.shape
    window, sizes = window_of(ctx, x.shape, (kh, kw))
    y = ctx.output((x.shape[0], *sizes, channels * multiplier)).buffer
    filter = ctx.viewed(w, (kh, kw, channels * multiplier))
    ctx.form(Depthwise, y, x, filter, (), arg(0, float32), window, multiplier)


def floats(ctx: LoweringContext, *which: int) -> tuple[Buffer, Buffer]:
    a, b = (ctx.operand(i).buffer for i in which)
    if a.dtype is not float32 or b.dtype is not float32 or len(a.shape) != 4 or len(b.shape) != 4 \
            or not a.size or not b.size:  # fmt: skip
        raise NoLowering(f"a convolution of {a} and {b}")
    return a, b


def window_of(ctx: LoweringContext, image: Sequence[int], size: tuple[int, int]) -> tuple[Window, tuple[int, int]]:
    """The window that a node's attributes mean over images of this shape, and how often it fits along each axis.

    raises NoLowering for channels first, and windows that never fit
    """
    attrs = ctx.node.node.attrs
    strides, dilations = attrs["strides"], attrs.get("dilations", (1, 1, 1, 1))
    if attrs["data_format"] != "NHWC" or {strides[0], strides[3], dilations[0], dilations[3]} != {1}:
        raise NoLowering(f"{attrs['data_format']}, strides {list(strides)}, dilations {list(dilations)}")
    explicit = attrs.get("explicit_paddings") or (0,) * 8
    counts: list[int] = []
    margins: list[int] = []
    for i, (n, k) in enumerate(zip(image[1:3], size), 1):
        span, s = (k - 1) * dilations[i] + 1, int(strides[i])
        if attrs["padding"] == "SAME":
            count = -(-n // s)
            missing = max((count - 1) * s + span - n, 0)
            before, behind = missing // 2, missing - missing // 2
        else:
            before, behind = int(explicit[2 * i]), int(explicit[2 * i + 1])
            count = (n + before + behind - span) // s + 1
        if count < 1:
            raise NoLowering(f"a window of {size} in an image of {list(image)}")
        counts.append(count)
        margins += [before, behind]
    window = Window(size, (int(strides[1]), int(strides[2])), (int(dilations[1]), int(dilations[2])),
                    (margins[0], margins[1], margins[2], margins[3]))  # fmt: skip
    return window, (counts[0], counts[1])
