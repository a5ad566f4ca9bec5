"""Boxes that overlap better ones left out: NON_MAX_SUPPRESSION_V4 and _V5, TFLite_Detection_PostProcess.

Lives here: these rules.  Not here: the kernels (compiler/kernels/nms.py, detection.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32, int32, uint8
from ..loops.forms import Buffer, IndexMap, Map, Move
from ..loops.image_forms import Detection, Suppression
from .context import LoweringContext, NoLowering, Operand
from .quantized import real
from .registry import rule

Results = tuple[tuple[Buffer, int], ...]


@rule("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def suppression(ctx: LoweringContext) -> None:
    boxes, scores, limit, least = (ctx.operand(i) for i in (0, 1, 3, 4))
    soft = ctx.operator == "NON_MAX_SUPPRESSION_V5"
    sigma = (ctx.operand(5),) if soft else ()
    most, n = int(ctx.constant(2).reshape(-1)[0]), boxes.shape[0]
    if boxes.shape != (n, 4) or scores.shape != (n,) or any(o.size != 1 for o in (limit, least, *sigma)):
        raise NoLowering(f"boxes {boxes} and scores {scores}")
    if any(o.dtype is not float32 or o.is_quantized for o in (boxes, scores, limit, least, *sigma)):
        raise NoLowering(f"boxes {boxes} and scores {scores}")
    outputs = [ctx.output((most,)), *([ctx.output((most,), 1)] if soft else []), ctx.output((), 2 if soft else 1)]
    if [o.dtype for o in outputs] != [int32, *([float32] if soft else []), int32]:
        raise NoLowering("results of other types")

    def make(whole: Buffer, results: Results) -> None:
        ctx.form(
            Suppression,
            whole,
            boxes.buffer,
            scores.buffer,
            limit.buffer,
            least.buffer,
            tuple(o.buffer for o in sigma),
            results,
        )

    ctx.with_results(make, *(o.buffer for o in outputs))


@rule("TFLite_Detection_PostProcess")
def detection(ctx: LoweringContext) -> None:
    codes, scores, anchors = (ctx.operand(i) for i in range(3))
    call: Any = ctx.node.call
    n = anchors.shape[0] if anchors.shape else 0
    classes, most, several = call.num_classes, call.max_detections, call.max_classes_per_detection
    if len(codes.shape) != 3 or codes.shape[:2] != (1, n) or codes.shape[2] < 4 or anchors.shape != (n, 4):
        raise NoLowering(f"codes {codes}, anchors {anchors}")
    if len(scores.shape) != 3 or scores.shape[:2] != (1, n) or scores.shape[2] not in (classes, classes + 1):
        raise NoLowering(f"scores {scores}")
    rows = most * several
    outputs = [ctx.output(shape, k) for k, shape in enumerate(((1, rows, 4), (1, rows), (1, rows), (1,)))]
    if any(o.dtype is not float32 for o in outputs):
        raise NoLowering("results of other types")
    by_class = bool(call.use_regular_nms)
    chances = ctx.viewed(_real(ctx, scores, "scores"), (n, scores.shape[2]))
    if by_class:  # a class after the other, without the background
        turned = ctx.new(float32, (classes, n), ".by_class")
        whole = scores.shape[2]
        ctx.form(Move, turned, (chances,), (IndexMap((0, 0), (classes, n), whole - classes, (1, whole)),))
        chances = turned
    boxes, centres = _real(ctx, codes, "codes"), _real(ctx, anchors, "anchors")
    scales = (call.y_scale, call.x_scale, call.h_scale, call.w_scale)

    def make(whole: Buffer, results: Results) -> None:
        ctx.form(
            Detection,
            whole,
            boxes,
            chances,
            centres,
            results,
            classes,
            most,
            several,
            call.detections_per_class,
            by_class,
            call.nms_score_threshold,
            call.nms_iou_threshold,
            scales,
        )

    ctx.with_results(make, *(o.buffer for o in outputs))


def _real(ctx: LoweringContext, x: Operand, what: str) -> Any:
    """The numbers that an operand stands for, as the kernel has them: whole steps times the scale."""
    if x.dtype is float32:
        return x.buffer
    if x.dtype is not uint8:
        raise NoLowering(f"{what} {x}")
    made = ctx.new(float32, x.shape, f".{what}")
    ctx.form(Map, made, (x.buffer,), real(x, 0))
    return made
