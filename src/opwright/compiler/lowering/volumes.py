"""Convolutions and pooling over volumes: CONV_3D, CONV_3D_TRANSPOSE, Conv3D with its gradients, MaxPool3D, AvgPool3D.

Lives here: their rules.  Not here: images (contractions.py, pooling.py), gradients of pools (gradients.py).

A slice of the result depends on a few slices of the volume. These are gathered as channels of one image, which reduces
the convolution to one of images, with a filter of as many channels:

    x' [n, od, h, w, kd c] = x[n, od s + i d - front, h, w, c] for i < kd, 0 outside

The transposed convolution is lowered likewise for each phase, the slices with the same remainder by the stride, which
depend on the same taps; the phases are then interleaved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32, int8, int16, int32
from ...ops.windows import pairs, window
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.expressions import Expr, apply, arg, convert
from ..loops.ops import Contract, Map, Move, ReduceWindow, TransposedContract
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import with_bias
from .data_movement import layout, move
from .gradients import filter_gradient
from .nodes import SlidingWindow, sliding_of
from .operand_expressions import clamped, same_numbers
from .registry import CATALOGUE, rule


def _axes(ctx: LoweringContext) -> tuple[SlidingWindow, SlidingWindow]:
    """Read the windows along the depth, as rows of a column, and over the slices. Raises NoLowering for others."""
    if ctx.node.dialect != CATALOGUE:
        padding = ctx.attr("padding") or "SAME"
        steps = ctx.attr("stride_d"), ctx.attr("dilation_d_factor") or 1
        return SlidingWindow(padding, (steps[0], 1), (steps[1], 1), truncates=True), sliding_of(ctx)
    strides, dilations, padding = ctx.attr("strides"), ctx.attr("dilations") or (1,) * 5, ctx.attr("padding")
    if ctx.attr("data_format") != "NDHWC" or {strides[0], strides[4], dilations[0], dilations[4]} != {1}:
        raise NoLowering(f"volumes in {ctx.attr('data_format')}, strides {list(strides)}, dilations {list(dilations)}")
    pads: Any = pairs(ctx.attr("explicit_paddings") or (), 5)
    depth = SlidingWindow(padding, (strides[1], 1), (dilations[1], 1), (pads[1], (0, 0)))
    return depth, SlidingWindow(padding, strides[2:4], dilations[2:4], pads[2:4])


def _depth(sliding: SlidingWindow, size: int, kernel: int) -> tuple[int, int, int, int]:
    """Return stride, dilation, padding before, and output size along the depth axis."""
    window, (count, _) = sliding.over((size, 1), (kernel, 1))
    return window.strides[0], window.dilations[0], window.padding[0], count


def _gathered_slices(
    ctx: LoweringContext, x: RuleOperand, count: int, taps: list[tuple[int, int]], name: str
) -> Buffer:
    """Return [n * count, h, w, taps * c]: for slice q and each tap (step, first), the slice q step + first; zeros
    outside."""
    n, d, h, w, c = x.shape
    if count == d and taps == [(1, 0)]:
        return ctx.viewed(x.buffer, (n * d, h, w, c))
    gathered = ctx.new(float32, (n, count, h * w, len(taps), c), name)
    maps, is_dense = [], True
    for k, (step, first) in enumerate(taps):
        low = max(0, -(first // step))
        high = min(count, -(-(d - first) // step))
        is_dense &= (low, high) == (0, count)
        if low < high:
            slice_ = h * w * c
            maps.append(
                IndexMap(
                    (0, low, 0, k, 0),
                    (n, high - low, h * w, 1, c),
                    (first + low * step) * slice_,
                    (d * slice_, step * slice_, c, 0, 1),
                )
            )
    ctx.add(Move, gathered, (x.buffer,) * len(maps), tuple(maps), None if is_dense else 0.0)
    return ctx.viewed(gathered, (n * count, h, w, len(taps) * c))


def _filter(ctx: LoweringContext, w: RuleOperand, order: tuple[int, ...], taps: list[int]) -> Buffer:
    """Return a filter as [features, kh, kw, taps * c]. order: of these axes, with depth before c."""
    if w.constant is None:
        places, axis = layout(w), order.index(0)
        parts = [places[tap : tap + 1].transpose(order) for tap in taps]
        features, kh, kw, _, c = parts[0].shape
        taken = ctx.new(float32, (features, kh, kw, len(taps), c), f".taps{'_'.join(map(str, taps))}")
        starts = [[i if k == axis else 0 for k in range(len(order))] for i in range(len(taps))]
        move(ctx, taken, *((w.buffer, part, start) for part, start in zip(parts, starts)))
        return ctx.viewed(taken, (features, kh, kw, len(taps) * c))
    filter = np.ascontiguousarray(w.constant.astype(np.float32, copy=False)[taps].transpose(order))
    shape = (*filter.shape[:3], filter.shape[3] * filter.shape[4])
    return Buffer(f"{w.buffer.name}.taps{'_'.join(map(str, taps))}", float32, shape, filter.reshape(shape))


def _check(x: RuleOperand, w: RuleOperand, y: RuleOperand) -> None:
    if any(o.dtype is not float32 or len(o.shape) != 5 or not o.size for o in (x, w, y)):
        raise NoLowering(f"a convolution of {x} and {w} to {y}")


@rule("Conv3D", "CONV_3D")
def conv_3d(ctx: LoweringContext) -> None:
    x, w, y = ctx.operand(0), ctx.operand(1), ctx.output()
    _check(x, w, y)
    (n, d, height, width, c), (kd, kh, kw, depth, features) = x.shape, w.shape
    if c != depth:
        raise NoLowering(f"a convolution of {x} and {w}")
    along, plane = _axes(ctx)
    window, sizes = plane.over((height, width), (kh, kw))
    stride, dilation, front, count = _depth(along, d, kd)
    ctx.output((n, count, *sizes, features))
    operands, expr = with_bias(_bias(ctx, 2), float32, features)
    expr = clamped(expr, ctx.node.activation)
    image = _gathered_slices(ctx, x, count, [(stride, i * dilation - front) for i in range(kd)], ".slices")
    with ctx.reshaped(y, (n * count, *sizes, features)) as target:
        ctx.add(Contract, target, image, _filter(ctx, w, (4, 1, 2, 0, 3), list(range(kd))), operands, expr, window)


def _bias(ctx: LoweringContext, index: int) -> RuleOperand | None:
    return None if ctx.node.dialect == CATALOGUE else ctx.optional(index)


@rule("Conv3DBackpropFilter")
def by_filter(ctx: LoweringContext) -> None:
    """Lower the gradient by the filter: that of the convolution of images with slices as channels."""
    x, dw, dy = ctx.operand(0), ctx.output(), ctx.operand(2)
    _check(x, dw, dy)
    (n, d, height, width, c), (kd, kh, kw, depth, features) = x.shape, dw.shape
    along, plane = _axes(ctx)
    window, sizes = plane.over((height, width), (kh, kw))
    stride, dilation, front, count = _depth(along, d, kd)
    if dy.shape != (n, count, *sizes, features) or c != depth:
        raise NoLowering(f"the gradient {dy} of a convolution of {x} by a filter {dw}")
    image = _gathered_slices(ctx, x, count, [(stride, i * dilation - front) for i in range(kd)], ".slices")
    gradient = ctx.new(float32, (kh, kw, kd * c, features), ".taps")
    filter_gradient(ctx, image, ctx.viewed(dy.buffer, (n * count, *sizes, features)), gradient, window, sizes)
    split = ctx.viewed(gradient, (kh, kw, kd, c, features))
    move(ctx, dw.buffer, (split, layout(split).transpose(2, 0, 1, 3, 4), (0,) * 5))


@rule("Conv3DBackpropInput", "CONV_3D_TRANSPOSE")
def conv_3d_transpose(ctx: LoweringContext) -> None:
    w, x = ctx.operand(1), ctx.operand(2)
    sizes = ctx.output().shape if ctx.node.dialect == CATALOGUE else tuple(map(int, ctx.constant(0)))
    y = ctx.output(sizes)
    _check(x, w, y)
    (n, out, height, width, features), (kd, kh, kw, depth, c) = sizes, w.shape
    along, plane = _axes(ctx)
    window, counts = plane.over((height, width), (kh, kw))
    stride, dilation, front, count = _depth(along, out, kd)
    if (n, count, *counts, c) != x.shape or depth != features:
        raise NoLowering(f"a transposed convolution of {x} by {w} to {list(sizes)}")
    operands, expr = with_bias(_bias(ctx, 3), float32, features)
    expr = clamped(expr, ctx.node.activation)
    size = height * width * features
    is_even = out % stride == 0
    parts, boxes = [], []
    for phase in range(min(stride, out)):
        number = -(-(out - phase) // stride)
        offsets = [(i, phase + front - i * dilation) for i in range(kd)]
        taps = [(i, offset // stride) for i, offset in offsets if offset % stride == 0] or [
            (0, count)
        ]  # or a tap outside of the volume
        image = _gathered_slices(ctx, x, number, [(1, first) for _, first in taps], f".slices{phase}")
        filter = _filter(ctx, w, (3, 1, 2, 0, 4), [i for i, _ in taps])
        phase_output = ctx.new(float32, (n * number, *sizes[2:]), f".phase{phase}")
        ctx.add(TransposedContract, phase_output, image, filter, operands, expr, window)
        if is_even:
            parts.append(phase_output)
            boxes.append(IndexMap((0, 0, phase, 0), (n, number, 1, size), 0, (number * size, size, 0, 1)))
            continue
        for k in range(number):
            parts.append(phase_output)
            boxes.append(IndexMap((0, phase + k * stride, 0), (n, 1, size), k * size, (number * size, 0, 1)))
    with ctx.reshaped(y, (n, out // stride, stride, size) if is_even else (n, out, size)) as target:
        ctx.add(Move, target, tuple(parts), tuple(boxes))


@rule("MaxPool3D", "AvgPool3D", custom=("MaxPool3D", "AvgPool3D", "AveragePool3D"))
def pool(ctx: LoweringContext) -> None:
    """Lower pooling one axis after the other; the mean of integers is rounded with ties away from zero."""
    x, call = ctx.operand(0), ctx.node.call
    if (
        len(x.shape) != 5
        or x.dtype not in (float32, int8, int16)
        or not x.size
        or (x.dtype is not float32 and not x.is_quantized)
    ):
        raise NoLowering(f"a volume {x}")
    if ctx.node.dialect == CATALOGUE and (ctx.attr("data_format") != "NDHWC" or call.padding == "EXPLICIT"):
        raise NoLowering(f"volumes in {ctx.attr('data_format')} with {call.padding} padding")
    if {call.ksize[0], call.ksize[4], call.strides[0], call.strides[4]} != {1}:
        raise NoLowering(f"a pool of {list(call.ksize)} over {x}")
    windows = [window(n, k, s, 1, call.padding) for n, k, s in zip(x.shape[1:4], call.ksize[1:4], call.strides[1:4])]
    y = ctx.output((x.shape[0], *(w.out for w in windows), x.shape[4]))
    same_numbers(x, y)
    is_max = ctx.operator == "MaxPool3D"
    dtype = x.dtype if is_max or x.dtype is float32 else int32
    total = _reduced(ctx, _padded(ctx, x, windows, dtype, is_max), windows, dtype, "max" if is_max else "sum")
    value: Expr = arg(0, dtype)
    operands: tuple[Buffer, ...] = (total,)
    if not is_max:
        tap_counts = [
            np.array(
                [
                    min(w.size, i * w.stride - w.before + w.kernel) - max(0, i * w.stride - w.before)
                    for i in range(w.out)
                ],
                np.float32,
            )
            for w in windows
        ]
        counts = (tap_counts[0][:, None, None] * tap_counts[1][:, None] * tap_counts[2])[..., None]
        operands = (total, Buffer(f"{y.buffer.name}.counts", float32, counts.shape, np.ascontiguousarray(counts)))
        value = apply("div", convert(value, float32), arg(1, float32))
        if dtype is int32:
            value = convert(apply("round_away", value), y.dtype)
    ctx.add(Map, y.buffer, operands, value)


def _padded(ctx: LoweringContext, x: RuleOperand, windows: list[Any], dtype: DType, is_max: bool) -> Buffer:
    """Return the volume in another type, padded with the reduction's identity."""
    source = x.buffer
    if dtype is not x.dtype:
        source = ctx.new(dtype, x.shape, ".wide")
        ctx.add(Map, source, (x.buffer,), convert(arg(0, x.dtype), dtype))
    after = [max(0, (w.out - 1) * w.stride + w.kernel - w.size - w.before) for w in windows]
    low = (0, *(w.before for w in windows), 0)
    if not any((*low, *after)):
        return source
    shape = (x.shape[0], *(w.before + w.size + more for w, more in zip(windows, after)), x.shape[4])
    padded = ctx.new(dtype, shape, ".padded")
    fill = 0.0 if not is_max else -math.inf if dtype is float32 else float(dtype.min)
    ctx.add(Move, padded, (source,), (IndexMap(low, x.shape, 0, row_major(x.shape)),), fill)
    return padded


def _reduced(ctx: LoweringContext, source: Buffer, windows: list[Any], dtype: DType, kind: str) -> Buffer:
    for axis, w in enumerate(windows, 1):
        reduced = ctx.new(dtype, (*source.shape[:axis], w.out, *source.shape[axis + 1 :]), f".axis{axis}")
        ctx.add(ReduceWindow, reduced, source, axis, w.kernel, w.stride, 1, kind)
        source = reduced
    return source
