"""Pools with the places of the greatest elements, and their inverse, as MediaPipe's and TensorFlow's models have them:
MaxPoolingWithArgmax2D, MaxPoolWithArgmax, MaxUnpooling2D.

Lives here: their rules.  Not here: other pools (pooling.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.forms import Buffer, Map, Window
from ..loops.indexing_forms import MaxPlaces, PutInWindows
from .context import LoweringContext, NoLowering
from .elementwise import truth
from .quantized import clamped
from .registry import rule
from .windows import Sliding


@rule("MaxPoolingWithArgmax2D")
def pool_with_places(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    call: Any = ctx.node.call
    if x.dtype is not float32 or len(x.shape) != 4 or not x.size:
        raise NoLowering(f"windows of {x}")
    window, sizes = Sliding(call.padding_name(), (call.stride_h, call.stride_w)).over(
        x.shape[1:3], (call.filter_height, call.filter_width)
    )
    shape = (x.shape[0], *sizes, x.shape[3])
    outputs = [ctx.output(shape, k) for k in range(2)]
    if any(o.dtype is not float32 for o in outputs):
        raise NoLowering("results of other types")
    expr = clamped(arg(0, float32), call.fused_activation_function)

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.form(MaxPlaces, whole, x.buffer, results, expr, window, call.place_offset())

    ctx.with_results(make, *(o.buffer for o in outputs))


@rule("MaxPoolWithArgmax")
def pool_with_indices(ctx: LoweringContext) -> None:
    """Places within the image: (row * width + column) * channels + channel, of the tap that is greatest."""
    x = ctx.operand(0)
    call: Any = ctx.node.call
    if x.dtype is not float32 or len(x.shape) != 4 or not x.size or len(call.ksize) != 4 or len(call.strides) != 4:
        raise NoLowering(f"windows of {x}")
    (_, high, wide, _), (n, h, w, c) = call.ksize, x.shape
    window, sizes = Sliding(call.padding, call.strides[1:3]).over((h, w), (high, wide))
    y, index = ctx.output((n, *sizes, c)), ctx.output((n, *sizes, c), 1)
    if y.dtype is not float32 or index.dtype not in (int32, int64) or not y.size:
        raise NoLowering(f"places {index}")
    taps = ctx.new(float32, y.shape, ".taps")

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.form(MaxPlaces, whole, x.buffer, results, arg(0, float32), window, 0.0)

    ctx.with_results(make, y.buffer, taps)
    top, left = window.padding[0], window.padding[2]
    corners = (
        (np.arange(sizes[0]) * window.strides[0] - top)[:, None] * w + np.arange(sizes[1]) * window.strides[1] - left
    ).astype(np.int32)
    more = np.arange(c, dtype=np.int64) + (np.arange(n) * (h * w * c if call.include_batch_in_index else 0)).reshape(
        -1, 1, 1, 1
    )
    known = [
        Buffer(f"{index.buffer.name}.{name}", kind, a.shape, np.ascontiguousarray(a, kind.np))
        for name, kind, a in (("corners", int32, corners[..., None]), ("more", int64, more))
    ]
    tap, columns = convert(arg(0, float32), int32), const(wide, int32)
    row = apply("div", tap, columns)
    column = apply("sub", tap, apply("mul", row, columns))
    place = apply("add", apply("add", apply("mul", row, const(w, int32)), column), arg(2, int32))
    found = truth("greater", arg(1, float32), const(float(np.finfo(np.float32).min), float32))
    wider = convert(Expr("select", int32, (found, place, const(0, int32))), int64)
    value = apply("add", apply("mul", wider, const(c, int64)), arg(3, int64))
    ctx.form(Map, index.buffer, (taps, y.buffer, *known), convert(value, index.dtype))


@rule("MaxUnpooling2D")
def unpool(ctx: LoweringContext) -> None:
    x, places = ctx.operand(0), ctx.operand(1)
    call: Any = ctx.node.call
    if any(o.dtype is not float32 for o in (x, places)) or len(x.shape) != 4 or places.shape != x.shape or not x.size:
        raise NoLowering(f"elements {x} at {places}")
    sizes = call.image_size(x.shape, True)
    y = ctx.output((x.shape[0], *sizes, x.shape[3]))
    kernel, strides = (call.filter_height, call.filter_width), (call.stride_h, call.stride_w)
    top, left = call.margins(x.shape[1:3], sizes)
    ctx.form(PutInWindows, y.buffer, x.buffer, places.buffer, Window(kernel, strides, (1, 1), (top, 0, left, 0)))
