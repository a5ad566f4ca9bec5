"""Pooling: AvgPool, MaxPool and their builtins, L2_POOL_2D; pooling with argmax and its inverse.

Lives here: these rules, MaxPoolingWithArgmax2D (MediaPipe), MaxPoolWithArgmax (TensorFlow) and MaxUnpooling2D.
Not here: gradients of pooling (gradients.py), windows (windows.py), pooling over volumes (volumes.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float16, float32, int8, int16, int32, int64, uint8
from ..loops.buffers import Buffer, Window
from ..loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from ..loops.indexing_ops import MaxPlaces, PutInWindows
from ..loops.ops import Map, Pool
from .context import LoweringContext, NoLowering, RuleOperand
from .elementwise import truth
from .registry import CATALOGUE, rule
from .requantization import clamped, in_steps
from .windows import SlidingWindow, window_of

NARROW = (int8, uint8, int16)


@rule("AvgPool", "MaxPool", "AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(ctx: LoweringContext) -> None:
    x, y, window = _images(ctx)
    activation = ctx.node.activation
    if x.dtype is float16 and y.dtype is float16 and ctx.operator == "AVERAGE_POOL_2D":
        _in_float32(ctx, x, y, window, activation)
        return
    if x.dtype is not y.dtype or (x.dtype is not float32 and (x.dtype not in NARROW or not _alike(x, y))):
        raise NoLowering(f"a pool of {x} to {y}")
    if ctx.operator in ("MaxPool", "MAX_POOL_2D"):
        ctx.add(Pool, y.buffer, x.buffer, "max", _within(arg(0, x.dtype), y, activation), window)
        return
    count = arg(1, float32)
    if x.dtype is float32:
        expr = clamped(apply("div", arg(0, float32), count), activation)
    else:
        mean = apply("round_away", apply("div", convert(arg(0, int32), float32), count))  # as in the official kernel
        expr = _within(quantize(mean, 0, y.dtype), y, activation)
    ctx.add(Pool, y.buffer, x.buffer, "sum", expr, window)


def _in_float32(ctx: LoweringContext, x: RuleOperand, y: RuleOperand, window: Window, activation: object) -> None:
    """Lower the mean of float16, computed in float32."""
    widened, mean = ctx.new(float32, x.shape, ".wide"), ctx.new(float32, y.shape, ".mean")
    ctx.add(Map, widened, (x.buffer,), convert(arg(0, float16), float32))
    ctx.add(Pool, mean, widened, "sum", apply("div", arg(0, float32), arg(1, float32)), window)
    ctx.add(Map, y.buffer, (mean,), clamped(convert(arg(0, float32), float16), activation))


@rule("L2_POOL_2D")
def root_of_squares(ctx: LoweringContext) -> None:
    x, y, window = _images(ctx)
    if x.dtype is not float32 or y.dtype is not float32:
        raise NoLowering(f"a pool of {x} to {y}")
    squares = ctx.new(float32, x.shape)
    ctx.add(Map, squares, (x.buffer,), apply("square", arg(0, float32)))
    mean = apply("sqrt", apply("div", arg(0, float32), arg(1, float32)))
    ctx.add(Pool, y.buffer, squares, "sum", clamped(mean, ctx.node.activation), window)


def _images(ctx: LoweringContext) -> tuple[RuleOperand, RuleOperand, Window]:
    """Return input, output and window of a pool."""
    x = ctx.operand(0)
    window, sizes = pool_window(ctx, x)
    return x, ctx.output((x.shape[0], *sizes, x.shape[3])), window


def pool_window(ctx: LoweringContext, x: RuleOperand) -> tuple[Window, tuple[int, int]]:
    """Return the window of a pool over x, and how often it fits. Raises NoLowering for pools over other axes."""
    ksize = (
        ctx.attr("ksize")
        if ctx.node.dialect == CATALOGUE
        else (1, ctx.attr("filter_height"), ctx.attr("filter_width"), 1)
    )
    if len(x.shape) != 4 or len(ksize) != 4 or ksize[0] != 1 or ksize[3] != 1:
        raise NoLowering(f"a pool of {list(ksize)} over {x}")
    return window_of(ctx, x.shape, [int(k) for k in ksize[1:3]])


def _alike(x: RuleOperand, y: RuleOperand) -> bool:
    return x.is_quantized and y.is_quantized and x.scale == y.scale and x.zero == y.zero


def _within(value: Expr, y: RuleOperand, activation: object) -> Expr:
    """Return an element after an activation; integers remain integers."""
    if y.dtype is float32:
        return clamped(value, activation)
    if activation == "NONE":
        return value
    steps = apply("sub", convert(value, float32), scalar(y.zero, float32))
    return in_steps(steps, y, activation)


@rule(custom=("MaxPoolingWithArgmax2D",))
def pool_with_places(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    call: Any = ctx.node.call
    if x.dtype is not float32 or len(x.shape) != 4 or not x.size:
        raise NoLowering(f"windows of {x}")
    window, sizes = SlidingWindow(call.padding_name(), (call.stride_h, call.stride_w)).over(
        x.shape[1:3], (call.filter_height, call.filter_width)
    )
    shape = (x.shape[0], *sizes, x.shape[3])
    outputs = [ctx.output(shape, k) for k in range(2)]
    if any(o.dtype is not float32 for o in outputs):
        raise NoLowering("results of other types")
    expr = clamped(arg(0, float32), call.fused_activation_function)

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(MaxPlaces, packed, x.buffer, results, expr, window, call.place_offset())

    ctx.with_results(make, *(o.buffer for o in outputs))


@rule(custom=("MaxPoolWithArgmax",))
def pool_with_indices(ctx: LoweringContext) -> None:
    """Lower pooling with argmax; indices are (row * width + column) * channels + channel."""
    x = ctx.operand(0)
    call: Any = ctx.node.call
    if x.dtype is not float32 or len(x.shape) != 4 or not x.size or len(call.ksize) != 4 or len(call.strides) != 4:
        raise NoLowering(f"windows of {x}")
    (_, high, wide, _), (n, h, w, c) = call.ksize, x.shape
    window, sizes = SlidingWindow(call.padding, call.strides[1:3]).over((h, w), (high, wide))
    y, index = ctx.output((n, *sizes, c)), ctx.output((n, *sizes, c), 1)
    if y.dtype is not float32 or index.dtype not in (int32, int64) or not y.size:
        raise NoLowering(f"indices {index}")
    taps = ctx.new(float32, y.shape, ".taps")

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(MaxPlaces, packed, x.buffer, results, arg(0, float32), window, 0.0)

    ctx.with_results(make, y.buffer, taps)
    top, left = window.padding[0], window.padding[2]
    corners = (
        (np.arange(sizes[0]) * window.strides[0] - top)[:, None] * w + np.arange(sizes[1]) * window.strides[1] - left
    ).astype(np.int32)
    bases = np.arange(c, dtype=np.int64) + (np.arange(n) * (h * w * c if call.include_batch_in_index else 0)).reshape(
        -1, 1, 1, 1
    )
    offsets = [
        Buffer(f"{index.buffer.name}.{name}", kind, a.shape, np.ascontiguousarray(a, kind.np))
        for name, kind, a in (("corners", int32, corners[..., None]), ("more", int64, bases))
    ]
    tap, columns = convert(arg(0, float32), int32), const(wide, int32)
    row = apply("div", tap, columns)
    column = apply("sub", tap, apply("mul", row, columns))
    position = apply("add", apply("add", apply("mul", row, const(w, int32)), column), arg(2, int32))
    is_number = truth("greater", arg(1, float32), const(float(np.finfo(np.float32).min), float32))
    clamped = convert(Expr("select", int32, (is_number, position, const(0, int32))), int64)
    value = apply("add", apply("mul", clamped, const(c, int64)), arg(3, int64))
    ctx.add(Map, index.buffer, (taps, y.buffer, *offsets), convert(value, index.dtype))


@rule(custom=("MaxUnpooling2D",))
def unpool(ctx: LoweringContext) -> None:
    x, taps = ctx.operand(0), ctx.operand(1)
    call: Any = ctx.node.call
    if any(o.dtype is not float32 for o in (x, taps)) or len(x.shape) != 4 or taps.shape != x.shape or not x.size:
        raise NoLowering(f"elements {x} at {taps}")
    sizes = call.image_size(x.shape, True)
    y = ctx.output((x.shape[0], *sizes, x.shape[3]))
    kernel, strides = (call.filter_height, call.filter_width), (call.stride_h, call.stride_w)
    top, left = call.margins(x.shape[1:3], sizes)
    ctx.add(PutInWindows, y.buffer, x.buffer, taps.buffer, Window(kernel, strides, (1, 1), (top, 0, left, 0)))
