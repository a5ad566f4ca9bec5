"""Resizing and warping of images, by the catalogue's, the builtins' and MediaPipe's operators.

Lives here: the rules of ResizeBilinear, ResizeNearestNeighbor and their builtins; TransformLandmarks,
Landmarks2TransformMatrix, TransformTensorBilinear in both versions; DenseImageWarp and Resampler.
Not here: sampling positions (scalar/resampling.py), the operators (lite/customs/landmarks.py, warping.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int8, int64, uint8
from ..loops.expressions import Expr, arg, quantize
from ..loops.forms import Buffer, Resize
from ..loops.image_forms import AffineImage, AffinePoints, CropMatrix, PixelsAt
from .context import LoweringContext, NoLowering, Operand
from .registry import CATALOGUE, rule


@rule("ResizeBilinear", "ResizeNearestNeighbor", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(ctx: LoweringContext) -> None:
    x, y = ctx.operand(0), ctx.output()
    sizes = tuple(y.shape[1:3]) if ctx.node.dialect == CATALOGUE else tuple(map(int, ctx.constant(1)))
    if len(x.shape) != 4 or len(sizes) != 2 or x.size == 0:
        raise NoLowering(f"a resize of {x} to {list(sizes)}")
    ctx.output((x.shape[0], *sizes, x.shape[3]))
    aligned, centered = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
    if x.dtype is not y.dtype:
        raise NoLowering(f"a resize of {x} to {y}")
    if ctx.operator in ("ResizeNearestNeighbor", "RESIZE_NEAREST_NEIGHBOR"):
        ctx.form(Resize, y.buffer, x.buffer, "nearest", aligned, centered, arg(0, x.dtype))
    else:
        ctx.form(Resize, y.buffer, x.buffer, "bilinear", aligned, centered, _mean(x, y))


def _mean(x: Operand, y: Operand) -> Expr:
    if x.dtype is float32:
        return arg(0, float32)
    if x.dtype not in (int8, uint8) or x.scale != y.scale or x.zero != y.zero:
        raise NoLowering(f"a bilinear resize of {x} to {y}")
    return quantize(arg(0, float32), 0, y.dtype)


def _call(ctx: LoweringContext, *places: int) -> Any:
    """The node's attributes. Raises NoLowering for operands of other types."""
    operands = [*map(ctx.operand, places), ctx.output()]
    if any(o.dtype is not float32 or not o.size for o in operands):
        raise NoLowering(f"{', '.join(map(repr, operands))}")
    return ctx.node.call


@rule("TransformLandmarks")
def transform_landmarks(ctx: LoweringContext) -> None:
    call, x, matrix = _call(ctx, 0, 1), ctx.operand(0), ctx.operand(1)
    y = ctx.output(x.shape)
    numbers = getattr(call, "dimensions", x.shape[-1])
    if numbers not in (2, 3) or x.size % numbers or matrix.size != 16:
        raise NoLowering(f"points {x} of {numbers} numbers")
    shape = (x.size // numbers, numbers)
    with ctx.reshaped(y, shape) as target:
        ctx.form(AffinePoints, target, ctx.viewed(x.buffer, shape), matrix.buffer, float(getattr(call, "scale", 1.0)))


@rule("TransformTensorBilinear", "TransformTensor")
def transform_tensor(ctx: LoweringContext) -> None:
    call, x, matrix = _call(ctx, 0, 1), ctx.operand(0), ctx.operand(1)
    centred = not hasattr(call, "output_size")
    sizes = (call.output_height, call.output_width) if centred else tuple(call.output_size)
    if len(x.shape) != 4 or x.shape[0] != 1 or matrix.size != 16:
        raise NoLowering(f"an image {x} by {matrix}")
    y = ctx.output((1, *sizes, x.shape[3]))
    ctx.form(AffineImage, y.buffer, x.buffer, matrix.buffer, centred)


@rule("DenseImageWarp", "Resampler")
def read_at(ctx: LoweringContext) -> None:
    _call(ctx, 0, 1)
    x, places, flow = ctx.operand(0), ctx.operand(1), ctx.operator == "DenseImageWarp"
    if len(x.shape) != 4 or len(places.shape) != 4 or (flow and min(x.shape[1:3]) < 2):
        raise NoLowering(f"an image {x} read at {places}")
    y = ctx.output(x.shape)
    ctx.form(PixelsAt, y.buffer, x.buffer, places.buffer, flow)


@rule("Landmarks2TransformMatrix")
def landmarks_to_matrix(ctx: LoweringContext) -> None:
    call, x, y = _call(ctx, 0), ctx.operand(0), ctx.output((1, 4, 4))
    if x.size % 3:
        raise NoLowering(f"landmarks {x}")
    first = hasattr(call, "input_hw")
    subset = np.array(call.subset if first else call.subset_idxs, np.int64)
    ends = (int(call.left_rotation_idx), int(call.right_rotation_idx))
    if first:
        unit = float(call.landmarks_range)
        corner = [(n - 1) / 2 for n in call.input_hw[::-1]]
        steps = [n - 1 for n in call.output_hw[::-1]]
        numbers = [
            corner,
            [2 * call.bbox_size_multiplier / unit / n for n in steps],
            [2 * c / unit for c in corner],
            [n / 2 for n in steps],
        ]
    else:
        sizes = (call.output_width, call.output_height)
        numbers = [
            [1.0, 1.0],
            [s / n for s, n in zip((call.scale_x, call.scale_y), sizes)],
            [1.0, 1.0],
            [n / 2 for n in sizes],
        ]
    with ctx.reshaped(y, (4, 4)) as target:
        ctx.form(
            CropMatrix,
            target,
            ctx.viewed(x.buffer, (x.size // 3, 3)),
            Buffer(f"{y.buffer.name}.subset", int64, subset.shape, subset),
            ends,
            0.0 if first else float(call.target_rotation_radians),
            first,
            *map(tuple, numbers),
        )
