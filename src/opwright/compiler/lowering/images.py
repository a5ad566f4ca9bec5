"""Images: resizing, affine and dense warping, non-maximum suppression and object detection.

Lives here: the rules of ResizeBilinear, ResizeNearestNeighbor and their builtins; TransformLandmarks,
Landmarks2TransformMatrix, TransformTensorBilinear in both versions; DenseImageWarp, Resampler; NON_MAX_SUPPRESSION_V4
and _V5, TFLite_Detection_PostProcess.
Not here: sampling positions (scalar/fixed_point_layers.py), the operators (lite/customs/detection.py, image_warp.py),
the kernels (../kernels/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64, uint8
from ..loops.buffers import Buffer, IndexMap
from ..loops.domain_ops import (
    AffineImage,
    AffinePoints,
    CropMatrix,
    Detection,
    PixelsAt,
    Resize,
    ResizeGradient,
    Suppression,
)
from ..loops.expressions import Expr, arg, quantize
from ..loops.ops import Map, Move
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import NARROW, real
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
        ctx.add(Resize, y.buffer, x.buffer, "nearest", aligned, centered, arg(0, x.dtype))
    else:
        differences = ctx.node.dialect == CATALOGUE and x.dtype is float32
        ctx.add(Resize, y.buffer, x.buffer, "bilinear", aligned, centered, _mean(x, y), differences)


@rule("ResizeBilinearGrad", "ResizeNearestNeighborGrad")
def resize_gradient(ctx: LoweringContext) -> None:
    dy, dx = ctx.operand(0), ctx.output()
    if dy.dtype is not float32 or dx.dtype is not float32 or not dy.size or not dx.size:
        raise NoLowering(f"the gradient of a resize of {dx} to {dy}")
    kind = "nearest" if ctx.operator == "ResizeNearestNeighborGrad" else "bilinear"
    aligned, centered = bool(ctx.attr("align_corners")), bool(ctx.attr("half_pixel_centers"))
    ctx.add(ResizeGradient, dx.buffer, dy.buffer, kind, aligned, centered)


def _mean(x: RuleOperand, y: RuleOperand) -> Expr:
    if x.dtype is float32:
        return arg(0, float32)
    if x.dtype not in NARROW or x.scale != y.scale or x.zero != y.zero:
        raise NoLowering(f"a bilinear resize of {x} to {y}")
    return quantize(arg(0, float32), 0, y.dtype)


def _call(ctx: LoweringContext, *indices: int) -> Any:
    """Return the node's attributes. Raises NoLowering for operands of other types."""
    operands = [*map(ctx.operand, indices), ctx.output()]
    if any(o.dtype is not float32 or not o.size for o in operands):
        raise NoLowering(f"{', '.join(map(repr, operands))}")
    return ctx.node.call


@rule(custom=("TransformLandmarks",))
def transform_landmarks(ctx: LoweringContext) -> None:
    call, x, matrix = _call(ctx, 0, 1), ctx.operand(0), ctx.operand(1)
    y = ctx.output(x.shape)
    numbers = getattr(call, "dimensions", x.shape[-1])
    if numbers not in (2, 3) or x.size % numbers or matrix.size != 16:
        raise NoLowering(f"points {x} with {numbers} coordinates")
    shape = (x.size // numbers, numbers)
    with ctx.reshaped(y, shape) as target:
        ctx.add(AffinePoints, target, ctx.viewed(x.buffer, shape), matrix.buffer, float(getattr(call, "scale", 1.0)))


@rule(custom=("TransformTensorBilinear", "TransformTensor"))
def transform_tensor(ctx: LoweringContext) -> None:
    call, x, matrix = _call(ctx, 0, 1), ctx.operand(0), ctx.operand(1)
    is_centred = not hasattr(call, "output_size")
    sizes = (call.output_height, call.output_width) if is_centred else tuple(call.output_size)
    if len(x.shape) != 4 or x.shape[0] != 1 or matrix.size != 16:
        raise NoLowering(f"an image {x} by {matrix}")
    y = ctx.output((1, *sizes, x.shape[3]))
    ctx.add(AffineImage, y.buffer, x.buffer, matrix.buffer, is_centred)


@rule(custom=("DenseImageWarp", "Resampler"))
def read_at(ctx: LoweringContext) -> None:
    _call(ctx, 0, 1)
    x, places, flow = ctx.operand(0), ctx.operand(1), ctx.operator == "DenseImageWarp"
    if len(x.shape) != 4 or len(places.shape) != 4 or (flow and min(x.shape[1:3]) < 2):
        raise NoLowering(f"an image {x} read at {places}")
    y = ctx.output(x.shape)
    ctx.add(PixelsAt, y.buffer, x.buffer, places.buffer, flow)


@rule(custom=("Landmarks2TransformMatrix",))
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
        ctx.add(
            CropMatrix,
            target,
            ctx.viewed(x.buffer, (x.size // 3, 3)),
            Buffer(f"{y.buffer.name}.subset", int64, subset.shape, subset),
            ends,
            0.0 if first else float(call.target_rotation_radians),
            first,
            *map(tuple, numbers),
        )


Results = tuple[tuple[Buffer, int], ...]


@rule("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def suppression(ctx: LoweringContext) -> None:
    boxes, scores, limit, score_threshold = (ctx.operand(i) for i in (0, 1, 3, 4))
    soft = ctx.operator == "NON_MAX_SUPPRESSION_V5"
    sigma = (ctx.operand(5),) if soft else ()
    capacity, n = int(ctx.constant(2).reshape(-1)[0]), boxes.shape[0]
    if boxes.shape != (n, 4) or scores.shape != (n,) or any(o.size != 1 for o in (limit, score_threshold, *sigma)):
        raise NoLowering(f"boxes {boxes} and scores {scores}")
    if any(o.dtype is not float32 or o.is_quantized for o in (boxes, scores, limit, score_threshold, *sigma)):
        raise NoLowering(f"boxes {boxes} and scores {scores}")
    outputs = [
        ctx.output((capacity,)),
        *([ctx.output((capacity,), 1)] if soft else []),
        ctx.output((), 2 if soft else 1),
    ]
    if [o.dtype for o in outputs] != [int32, *([float32] if soft else []), int32]:
        raise NoLowering("results of other types")

    def make(packed: Buffer, results: Results) -> None:
        ctx.add(
            Suppression,
            packed,
            boxes.buffer,
            scores.buffer,
            limit.buffer,
            score_threshold.buffer,
            tuple(o.buffer for o in sigma),
            results,
        )

    ctx.with_results(make, *(o.buffer for o in outputs))


@rule(custom=("TFLite_Detection_PostProcess",))
def detection(ctx: LoweringContext) -> None:
    codes, scores, anchors = (ctx.operand(i) for i in range(3))
    call: Any = ctx.node.call
    n = anchors.shape[0] if anchors.shape else 0
    classes, max_detections, classes_per_box = call.num_classes, call.max_detections, call.max_classes_per_detection
    if len(codes.shape) != 3 or codes.shape[:2] != (1, n) or codes.shape[2] < 4 or anchors.shape != (n, 4):
        raise NoLowering(f"codes {codes}, anchors {anchors}")
    if len(scores.shape) != 3 or scores.shape[:2] != (1, n) or scores.shape[2] not in (classes, classes + 1):
        raise NoLowering(f"scores {scores}")
    rows = max_detections * classes_per_box
    outputs = [ctx.output(shape, k) for k, shape in enumerate(((1, rows, 4), (1, rows), (1, rows), (1,)))]
    if any(o.dtype is not float32 for o in outputs):
        raise NoLowering("results of other types")
    by_class = bool(call.use_regular_nms)
    chances = ctx.viewed(_real(ctx, scores, "scores"), (n, scores.shape[2]))
    if by_class:  # one class at a time, without the background
        transposed = ctx.new(float32, (classes, n), ".by_class")
        all_classes = scores.shape[2]
        ctx.add(
            Move, transposed, (chances,), (IndexMap((0, 0), (classes, n), all_classes - classes, (1, all_classes)),)
        )
        chances = transposed
    boxes, centres = _real(ctx, codes, "codes"), _real(ctx, anchors, "anchors")
    scales = (call.y_scale, call.x_scale, call.h_scale, call.w_scale)

    def make(packed: Buffer, results: Results) -> None:
        ctx.add(
            Detection,
            packed,
            boxes,
            chances,
            centres,
            results,
            classes,
            max_detections,
            classes_per_box,
            call.detections_per_class,
            by_class,
            call.nms_score_threshold,
            call.nms_iou_threshold,
            scales,
        )

    ctx.with_results(make, *(o.buffer for o in outputs))


def _real(ctx: LoweringContext, x: RuleOperand, role: str) -> Buffer:
    """Return the real values of an operand in the kernel's representation."""
    if x.dtype is float32:
        return x.buffer
    if x.dtype is not uint8:
        raise NoLowering(f"{role} {x}")
    values = ctx.new(float32, x.shape, f".{role}")
    ctx.add(Map, values, (x.buffer,), real(x, 0))
    return values
