"""Gradients of convolutions, of pooling, and of gathers.

Lives here: the rules of Conv2DBackpropInput, TRANSPOSE_CONV, Convolution2DTransposeBias (transposed convolutions, the
gradients by the input); of Conv2DBackpropFilter, DepthwiseConv2dNativeBackpropInput and -Filter, AvgPoolGrad,
MaxPoolGrad, AvgPool3DGrad, MaxPool3DGrad, GatherGrad.
Not here: convolutions and their epilogues (contractions.py), windows (nodes.py), sums that reverse broadcasting
(reductions.py).

The gradient by the input is a convolution with a spatially reversed filter if all strides are 1:

    y[n, i, j, c] = sum x[n, (i + top - ky) / s, (j + left - kx) / s, f] w[ky, kx, c, f]

The gradient by the filter is a convolution with batch and channels exchanged, and strides and dilations exchanged:

    dw[ky, kx, c, f] = sum x[n, y s + ky d - top, x s + kx d - left, c] dy[n, y, x, f]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int32, uint8
from ..loops.buffers import Buffer, Window
from ..loops.expressions import Expr, apply, arg, const, scalar
from ..loops.indexing_ops import ChannelFilterGradient, ScatterAt, Segments, WindowGradient
from ..loops.ops import Contract, Depthwise, MatMul, Reduce, TransposedContract
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import epilogue, hybrid_epilogue, is_hybrid, transposed, with_bias, zeros_of
from .data_movement import layout, move, move_view
from .nodes import window_of
from .operand_expressions import map_elements
from .pooling import pool_window
from .registry import CATALOGUE, rule


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
    groups = sizes[3] // features if catalogue and features else 1
    if (sizes[0], *counts, sizes[3]) != (*x.shape[:3], features * groups) or (groups > 1 and x.shape[3] % groups):
        raise NoLowering(f"a transposed convolution of {x} to {list(sizes)}")
    y = ctx.output(sizes)
    if catalogue:
        if {x.dtype, w.dtype} != {float32} or not x.size * w.size:
            raise NoLowering(f"the gradient of a convolution of {w} and {x}")
        if window.strides == (1, 1) or groups > 1 or window.dilations != (1, 1):
            _reversed_convolution(ctx, x, w, y, window, groups)
            return
        w = w.with_buffer(transposed(ctx, w.buffer, (2, 0, 1, 3)))
    if w.dtype is not uint8 and is_hybrid(x, w):
        operands, expr = hybrid_epilogue(ctx, w, y, features, bias=3)
        ctx.add(TransposedContract, y.buffer, x.buffer, w.buffer, operands, expr, window, rounding="asymmetric")
        return
    operands, expr = epilogue(ctx, x, w, y, features, bias=3)
    ctx.add(TransposedContract, y.buffer, x.buffer, w.buffer, operands, expr, window, *zeros_of(x, w))


def _reversed_convolution(
    ctx: LoweringContext, x: RuleOperand, w: RuleOperand, y: RuleOperand, window: Window, groups: int = 1
) -> None:
    """Add the convolution of a gradient by the reversed filter; with strides, of the gradient with zeros in between."""
    (n, *sizes, features), (tall, wide) = x.shape, window.strides
    image, (top, bottom, left, right) = x.buffer, _margins(window)
    if window.strides != (1, 1):
        apart = ctx.new(float32, (n, sizes[0], tall, sizes[1], wide, features), ".apart")
        move(ctx, apart, (image, layout(image)[:, :, None, :, None], (0,) * 6), fill=0.0)
        image = ctx.viewed(apart, (n, sizes[0] * tall, sizes[1] * wide, features))
        spans = [(k - 1) * d for k, d in zip(window.size, window.dilations)]
        bottom, right = (y.shape[i] + spans[i - 1] - image.shape[i] - (top, left)[i - 1] for i in (1, 2))
    if min(top, bottom, left, right) < 0:
        raise NoLowering(f"margins of {window.padding} around a window of {window.size}")
    window = Window(window.size, (1, 1), window.dilations, (top, bottom, left, right))
    ctx.add(Contract, y.buffer, image, _reversed(ctx, w.buffer, groups), (), arg(0, float32), window, groups)


def _margins(window: Window) -> tuple[int, int, int, int]:
    """Return the padding of the convolution by the reversed filter, whose window moves over the gradient."""
    spans = [(k - 1) * d for k, d in zip(window.size, window.dilations)]
    top, bottom, left, right = window.padding
    return spans[0] - top, spans[0] - bottom, spans[1] - left, spans[1] - right


def _reversed(ctx: LoweringContext, w: Buffer, groups: int) -> Buffer:
    """Return [height, width, out / groups, in] as [out, height, width, in / groups] with height and width reversed."""
    height, width, out, features = w.shape
    shape, order = (height, width, out, groups, features // groups), (3, 2, 0, 1, 4)
    result = (groups * out, height, width, features // groups)
    if w.constant is not None:
        array = np.ascontiguousarray(w.constant[::-1, ::-1].reshape(shape).transpose(order)).reshape(result)
        return Buffer(f"{w.name}.round", w.dtype, result, array)
    view = layout(w)[::-1, ::-1].reshape(shape).transpose(order)
    buffer = ctx.new(w.dtype, view.shape)
    move(ctx, buffer, (w, view, (0,) * 5))
    return ctx.viewed(buffer, result)


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


@rule("Conv2DBackpropFilter")
def by_filter(ctx: LoweringContext) -> None:
    x, dy = _images(ctx, 0, 2)
    dw = ctx.output().buffer
    kh, kw, channels, features = dw.shape
    window, sizes = window_of(ctx, x.shape, (kh, kw))
    groups = x.shape[3] // channels if channels else 0
    if dy.shape != (x.shape[0], *sizes, features) or not groups or x.shape[3] % channels or features % groups:
        raise NoLowering(f"the gradient {dy} of a convolution of {x} by a filter {dw}")
    if groups == 1:
        filter_gradient(ctx, x, dy, dw, window, sizes)
        return
    parts, count = [], features // groups
    for group in range(groups):
        image, gradient = (
            _channels(ctx, b, group * n, n, f".{name}{group}") for b, n, name in ((x, channels, "x"), (dy, count, "dy"))
        )
        part = ctx.new(float32, (kh, kw, channels, count), f".group{group}")
        filter_gradient(ctx, image, gradient, part, window, sizes)
        parts.append((part, layout(part), (0, 0, 0, group * count)))
    move(ctx, dw, *parts)


def _channels(ctx: LoweringContext, images: Buffer, start: int, count: int, name: str) -> Buffer:
    """Return some channels of images."""
    view = layout(images)[..., start : start + count]
    part = ctx.new(images.dtype, view.shape, name)
    move(ctx, part, (images, view, (0,) * 4))
    return part


def filter_gradient(
    ctx: LoweringContext, x: Buffer, dy: Buffer, dw: Buffer, window: Window, sizes: tuple[int, int]
) -> None:
    """Add the gradient of a convolution of images x by a filter dw [height, width, in, out]. sizes: of its result."""
    (kh, kw, channels, features), (n, height, width) = dw.shape, x.shape[:3]
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


@rule("DepthwiseConv2dNativeBackpropInput")
def depthwise_by_input(ctx: LoweringContext) -> None:
    x, w, dy = ctx.output(), ctx.operand(1).buffer, ctx.operand(2).buffer
    window = _depthwise_window(ctx, x.buffer, w, dy)
    margins = _margins(window)
    if window.strides == (1, 1) and w.shape[3] == 1 and min(margins) >= 0:  # a convolution by the reversed filter
        reversed_filter = ctx.new(float32, w.shape[:3])
        move(ctx, reversed_filter, (w, layout(w)[::-1, ::-1, :, 0], (0, 0, 0)))
        window = Window(window.size, (1, 1), window.dilations, margins)
        ctx.add(Depthwise, x.buffer, dy, reversed_filter, (), arg(0, float32), window)
        return
    ctx.add(WindowGradient, x.buffer, dy, (w,), "filter", window)


@rule("DepthwiseConv2dNativeBackpropFilter")
def depthwise_by_filter(ctx: LoweringContext) -> None:
    x, w, dy = ctx.operand(0).buffer, ctx.output().buffer, ctx.operand(2).buffer
    ctx.add(ChannelFilterGradient, w, x, dy, _depthwise_window(ctx, x, w, dy))


def _depthwise_window(ctx: LoweringContext, x: Buffer, w: Buffer, dy: Buffer) -> Window:
    """Return the window of a depthwise convolution of x by w, with the gradient dy. Raises NoLowering for other types
    than float32."""
    if {b.dtype for b in (x, w, dy)} != {float32} or {len(b.shape) for b in (x, w, dy)} != {4}:
        raise NoLowering(f"the gradient {dy} of a depthwise convolution of {x} by {w}")
    window, sizes = window_of(ctx, x.shape, w.shape[:2])
    if dy.shape != (x.shape[0], *sizes, w.shape[2] * w.shape[3]) or x.shape[3] != w.shape[2] or not x.size * w.size:
        raise NoLowering(f"the gradient {dy} of a depthwise convolution of {x} by {w}")
    return window


@rule("MaxPoolGrad")
def max_pool_grad(ctx: LoweringContext) -> None:
    """Lower MaxPoolGrad: the gradient goes to the first maximum of each window."""
    x, dy = ctx.operand(0), ctx.operand(2)
    window, sizes = pool_window(ctx, x)
    if x.dtype is not float32 or not x.size or dy.shape != (x.shape[0], *sizes, x.shape[3]) or not dy.size:
        raise NoLowering(f"the gradient {dy} of a pool over {x}")
    ctx.add(WindowGradient, ctx.output(x.shape).buffer, dy.buffer, (x.buffer,), "max", window)


def _windows_of(split: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of one element of each window."""
    return tuple([1 if axis % 2 == 0 and axis > 0 else n for axis, n in enumerate(split[:-1])]) + split[-1:]


def _route_to_first(ctx: LoweringContext, x: RuleOperand, dy: RuleOperand, split: tuple[int, ...]) -> None:
    """Add the gradient of pools without overlap. split: see `_boxes`."""
    pixels, windows = ctx.viewed(x.buffer, split), _windows_of(split)
    axes = tuple(range(2, len(split) - 1, 2))
    gradient = ctx.viewed(dy.buffer, windows)
    size = math.prod(split[axis] for axis in axes)
    behind = size  # a pool with NaN is NaN, a reduction ignores NaN: numbers come last
    maximum = Buffer(f"{ctx.node.prefix}.maximum", float32, windows)
    ctx.add(Reduce, maximum, pixels, axes, "max", arg(0, float32), arg(0, float32))
    numbers = np.arange(size, dtype=np.int32).reshape([n if i in axes else 1 for i, n in enumerate(split)][1:])
    number = Buffer(f"{ctx.node.prefix}.numbers", int32, numbers.shape, numbers)
    marked, first = ctx.new(int32, split), Buffer(f"{ctx.node.prefix}.first", int32, maximum.shape)

    def mark(a: Expr, b: Expr, k: Expr) -> Expr:
        place = apply("add", k, const(behind, int32))
        place = apply("select", apply("equal", a, b, dtype=bool_), place, const(size + behind, int32), dtype=int32)
        return apply("select", apply("not_equal", a, a, dtype=bool_), k, place, dtype=int32)

    map_elements(ctx, marked, [pixels, maximum, number], mark)
    ctx.add(Reduce, first, marked, axes, "min", arg(0, int32), arg(0, int32))

    def route(index: Expr, k: Expr, d: Expr) -> Expr:
        routed = apply("select", apply("equal", index, k, dtype=bool_), d, const(0, float32), dtype=float32)
        place = apply("sub", index, const(behind, int32))
        return apply("select", apply("equal", place, k, dtype=bool_), d, routed, dtype=float32)

    with ctx.reshaped(ctx.output(x.shape).buffer, split) as out:
        map_elements(ctx, out, [first, number, gradient], route)


@rule("MaxPool3DGrad")
def max_pool_3d_grad(ctx: LoweringContext) -> None:
    x, dy = ctx.operand(0), ctx.operand(2)
    _route_to_first(ctx, x, dy, _boxes(ctx, x, dy))


@rule("AvgPool3DGrad")
def avg_pool_3d_grad(ctx: LoweringContext) -> None:
    y, dy = ctx.output(), ctx.operand(1)
    _share_equally(ctx, y, dy, _boxes(ctx, y, dy))


def _share_equally(ctx: LoweringContext, y: RuleOperand, dy: RuleOperand, split: tuple[int, ...]) -> None:
    """Add the gradient of means without overlap. split: see `_side_by_side`."""
    gradient = ctx.viewed(dy.buffer, _windows_of(split))
    share = scalar(1.0 / math.prod(split[2:-1:2]), float32)
    with ctx.reshaped(y.buffer, split) as out:
        map_elements(ctx, out, [gradient], lambda d: apply("mul", d, share))


def _boxes(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> tuple[int, ...]:
    """Return the shape of volumes with the elements of each window as separate axes. Raises NoLowering if windows
    overlap or omit elements, and for other types than float32."""
    size, strides = (tuple(map(int, ctx.attr(name))) for name in ("ksize", "strides"))
    if x.dtype is not float32 or len(x.shape) != 5 or ctx.attr("data_format") != "NDHWC" or not x.size * y.size:
        raise NoLowering(f"a pool over {x}")
    if size != strides or size[0] != 1 or size[4] != 1 or x.shape != tuple(n * k for n, k in zip(y.shape, size)):
        raise NoLowering(f"windows {list(size)} with strides {list(strides)} over {x}")
    n, depth, height, width, channels = y.shape
    return (n, depth, size[1], height, size[2], width, size[3], channels)


@rule("AvgPoolGrad")
def avg_pool_grad(ctx: LoweringContext) -> None:
    """Lower AvgPoolGrad: each pixel of a window receives an equal share."""
    y, dy = ctx.output(), ctx.operand(1)
    split = _side_by_side(ctx, y, dy)
    if split is None:
        window, _ = pool_window(ctx, y)
        ctx.add(WindowGradient, y.buffer, dy.buffer, (), "mean", window)
        return
    _share_equally(ctx, y, dy, split)


def _side_by_side(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> tuple[int, ...] | None:
    """Return the shape of images with the pixels of each window as separate axes; None if windows overlap or omit
    pixels. Raises NoLowering for other types than float32."""
    window, sizes = pool_window(ctx, x)
    (n, height, width, channels), (tall, wide) = x.shape, window.size
    if x.dtype is not float32 or not x.size:
        raise NoLowering(f"a pool over {x}")
    apart = window.strides != window.size or any(window.padding)
    if y.shape != (n, *sizes, channels) or not y.size:
        raise NoLowering(f"a pool of {x} to {y}")
    if apart or (sizes[0] * tall, sizes[1] * wide) != (height, width):
        return None
    return (n, sizes[0], tall, sizes[1], wide, channels)


@rule("GatherGrad")
def gather_gradient(ctx: LoweringContext) -> None:
    """Lower the gradient of a gather to sums along its axis, moved to the front: of segments at constant indices, at
    coordinates otherwise, which are a batch and an index in it for gathers by batch."""
    dy, indices, y = ctx.operand(0), ctx.operand(1), ctx.output()
    rank, batch = len(y.shape), ctx.attr("batch_dims")
    axis, batch = ctx.attr("axis") % rank if rank else 0, batch + len(indices.shape) if batch < 0 else batch
    floats = (float32,) if indices.is_constant else (float32, float64)
    if dy.dtype not in floats or not (dy.size and y.size) or (batch and (indices.is_constant or axis != batch)):
        raise NoLowering(f"the gradient {dy} of a gather from {y}")
    n, before, after = y.shape[axis], math.prod(y.shape[:axis]), math.prod(y.shape[axis + 1 :])
    if batch:
        with ctx.reshaped(y.buffer, (before, n, after)) as out:
            slices = ctx.viewed(dy.buffer, (indices.size, after))
            ctx.add(ScatterAt, out, slices, _batch_coordinates(ctx, indices, before))
        return
    slices = ctx.viewed(dy.buffer, (before, indices.size, after))
    if before > 1:
        sums = ctx.new(dy.dtype, (n, before, after), ".sums")
        _add_slices(ctx, sums, transposed(ctx, slices, (1, 0, 2)), indices)
        move_view(ctx, y.buffer, sums, (whole := layout(sums)).transpose(1, 0, 2), whole)
        return
    with ctx.reshaped(y.buffer, (n, after)) as out:
        _add_slices(ctx, out, ctx.viewed(slices, (indices.size, after)), indices)


def _add_slices(ctx: LoweringContext, sums: Buffer, slices: Buffer, indices: RuleOperand) -> None:
    """Add the sums of slices by index along the first axis."""
    numbers = indices.constant
    if numbers is None:
        ctx.add(ScatterAt, sums, slices, ctx.viewed(indices.buffer, (indices.size, 1)))
        return
    if not 0 <= numbers.min() <= numbers.max() < sums.shape[0]:
        raise NoLowering("an index is out of bounds")
    ids = Buffer(f"{sums.name}.ids", int32, (numbers.size,), numbers.reshape(-1).astype(np.int32))
    ctx.add(Segments, sums, slices, ids, "sum")


def _batch_coordinates(ctx: LoweringContext, indices: RuleOperand, batches: int) -> Buffer:
    """Return [indices, 2]: the batch of each index, and the index."""
    coordinates = ctx.new(indices.dtype, (indices.size, 2), ".places")
    numbers = np.repeat(np.arange(batches, dtype=indices.dtype.np), indices.size // batches)[:, None]
    parts = (
        Buffer(f"{coordinates.name}.batches", indices.dtype, numbers.shape, numbers),
        ctx.viewed(indices.buffer, numbers.shape),
    )
    move(ctx, coordinates, *((part, layout(part), (0, i)) for i, part in enumerate(parts)))
    return coordinates
