"""Pooling and reductions of windows: AvgPool, MaxPool and their builtins, L2_POOL_2D; REDUCE_WINDOW.

Lives here: these rules and STABLEHLO_REDUCE_WINDOW; pooling with argmax and its inverse: MaxPoolingWithArgmax2D
(MediaPipe), MaxPoolWithArgmax (TensorFlow), MaxUnpooling2D; `combination_kind`, the kind of reduction that a subgraph
of two numbers computes.
Not here: gradients of pooling (gradients.py), the attributes of windows (nodes.py), pooling over volumes (volumes.py).

A window over several axes of a tensor of any rank is reduced one axis after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float16, float32, int32, int64, uint8
from ...core.errors import OpError
from ..loops.buffers import Buffer, Window
from ..loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from ..loops.indexing_ops import MaxPlaces, PutInWindows
from ..loops.ops import Map, Move, Pool, ReduceWindow
from .context import LoweringContext, NoLowering, RuleOperand
from .nodes import SlidingWindow, window_of
from .operand_expressions import NARROW, clamped, in_steps, truth
from .padding import padded
from .registry import CATALOGUE, rule


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
        expr = _within(arg(0, x.dtype), y, activation)
        ctx.add(Pool, y.buffer, x.buffer, "max", expr, window, ctx.node.dialect == CATALOGUE)  # NaN as in each dialect
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


KINDS: dict[Any, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
"""Kinds of reductions by the function of two numbers."""
BOOL_KINDS = {"sum": "max", "any": "max", "max": "max", "prod": "min", "all": "min", "min": "min"}
"""Kinds of reductions of booleans as bytes of 0 and 1."""


@rule("REDUCE_WINDOW")
def reduce_window(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    window, strides, dilations = ([int(n) for n in ctx.constant(index)] for index in (2, 3, 4))
    function = ctx.node.call.reducer()
    if function is None or not len(window) == len(strides) == len(dilations) == len(x.shape):
        raise NoLowering(f"windows {window} over {x}")
    _windows(ctx, x.buffer, ctx.operand(1), KINDS[function], window, strides, dilations)


@rule("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(ctx: LoweringContext) -> None:
    """Lower STABLEHLO_REDUCE_WINDOW; the tensor is first dilated and padded with the initial value."""
    x, start, rank = ctx.operand(0), ctx.operand(1), len(ctx.operand(0).shape)
    window, strides, base, dilations = (
        numbers_of(ctx, name) or [1] * rank
        for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    )
    padding = numbers_of(ctx, "padding") or [0] * (2 * rank)
    kind = combination_kind(ctx)
    lists = (window, strides, base, dilations)
    if kind is None or len(padding) != 2 * rank or any(len(numbers) != rank for numbers in lists):
        raise NoLowering(f"windows {window} over {x}")
    source = x.buffer
    if any(padding) or any(n != 1 for n in base):
        low, high = padding[::2], padding[1::2]
        sizes = [a + (n - 1) * k + 1 + b for a, n, k, b in zip(low, x.shape, base, high)]
        if min(sizes, default=1) < 1 or not x.size:
            raise NoLowering(f"{x} padded to {sizes}")
        source = ctx.new(x.dtype, sizes, ".padded")
        padded(ctx, source, x, low, [k - 1 for k in base], start)
    _windows(ctx, source, start, kind, window, strides, dilations)


def numbers_of(ctx: LoweringContext, name: str) -> list[int]:
    """Return an attribute that is a list; empty if the file omits it."""
    return [int(n) for n in ctx.attr(name) or ()]


def combination_kind(ctx: LoweringContext) -> str | None:
    """Return the kind of reduction that the node's graph of two numbers computes; None for its second argument
    itself."""
    try:
        function = ctx.node.call.combination()
    except OpError as error:
        raise NoLowering(error.message) from None
    return None if function is None else KINDS[function]


def _windows(
    ctx: LoweringContext,
    x: Buffer,
    start: RuleOperand,
    kind: str,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> None:
    """Reduce windows, the last axis first. Raises NoLowering for unsupported windows."""
    shape = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(x.shape, window, strides, dilations)]
    if min(*window, *strides, *dilations, 1) < 1 or start.size != 1 or start.dtype is not x.dtype:
        raise NoLowering(f"windows {list(window)} over {x}")
    y = ctx.output([max(n, 0) for n in shape])
    if y.dtype is not x.dtype:
        raise NoLowering(f"windows over {x} to {y}")
    if not y.size:
        ctx.add(Move, y.buffer, (), (), 0)
        return
    first, target, close = ctx.viewed(start.buffer, ()), y.buffer, None
    if x.dtype is bool_:
        kind = BOOL_KINDS[kind]
        x, first = ctx.bits(x, uint8, x.shape), ctx.bits(first, uint8, ())
        target = ctx.new(uint8, shape, ".truth")
        close = target
    elif kind in ("all", "any"):
        x, first = (_as_truth(ctx, b) for b in (x, first))
        kind = BOOL_KINDS[kind]
    axes = [axis for axis in reversed(range(len(shape))) if window[axis] > 1 or strides[axis] > 1] or [len(shape) - 1]
    for number, axis in enumerate(axes):
        last = number == len(axes) - 1
        sizes = (*x.shape[:axis], shape[axis], *x.shape[axis + 1 :])
        reduced = target if last else ctx.new(x.dtype, sizes, f".axis{axis}")
        ctx.add(
            ReduceWindow, reduced, x, axis, window[axis], strides[axis], dilations[axis], kind, (first,) if last else ()
        )
        x = reduced
    if close is not None:
        ctx.add(Map, y.buffer, (close,), truth("not_equal", arg(0, uint8), const(0, uint8)))


def _as_truth(ctx: LoweringContext, b: Buffer) -> Buffer:
    """Return elements as 0 or 1."""
    flags = ctx.new(b.dtype, b.shape, f".{b.name}.truth")
    ctx.add(Map, flags, (b,), convert(truth("not_equal", arg(0, b.dtype), const(0, b.dtype)), b.dtype))
    return flags
