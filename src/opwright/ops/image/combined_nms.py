"""Non-maximum suppression of all classes and batches at once: CombinedNonMaxSuppression.

Not here: of one class (nms.py), suppression on arrays (../box_suppression.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import float32, float64, int32
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import box_suppression
from ..array import cast
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .nms import NO_THRESHOLD, check_boxes, check_thresholds, output_capacity, static_number


@operator
class CombinedNonMaxSuppression(OperatorDefinition[tuple[Tensor, Tensor, Tensor, Tensor]]):
    """Select boxes of every class by non-maximum suppression, then the best of all classes.

    .. math:: selected_c = \\{i : scores_{i,c} > score\\_threshold,\\; IoU(b_i, b_j) \\le iou\\_threshold
              \\text{ for all selected before}\\}

    boxes: [n, k, q, 4], q 1 or the number of classes; scores: [n, k, classes]. nmsed_boxes: [n, m, 4], nmsed_scores
    and nmsed_classes: [n, m], padded with 0; valid_detections: int32 [n]. m is max_total_size, with pad_per_class
    at most max_output_size_per_class * classes. clip_boxes: corners are clipped to [0, 1].
    raises InvalidArgumentError for inconsistent shapes of boxes and scores, or a threshold out of [0, 1]
    """

    boxes = Input((float32, float64), rank=4)
    scores = Input((float32, float64), rank=3, like="boxes")
    max_output_size_per_class = Input(int32, rank=0)
    max_total_size = Input(int32, rank=0)
    iou_threshold = Input((float32, float64), rank=0)
    score_threshold = Input((float32, float64), rank=0)
    nmsed_boxes = Output(like="boxes")
    nmsed_scores = Output(like="boxes")
    nmsed_classes = Output(like="boxes")
    valid_detections = Output(dtype=int32)
    pad_per_class = Attr(bool, default=False)
    clip_boxes = Attr(bool, default=True)
    lod = "as boxes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
        boxes, scores = op.boxes.spec.shape, op.scores.spec.shape
        n, classes = None, None
        if boxes.rank is not None:
            check_boxes(op, None)
            n = boxes[0]
        if scores.rank is not None:
            n, classes = scores[0] if n is None else n, scores[2]
        if boxes.rank is not None and boxes[2] not in (None, 1) and classes not in (None, boxes[2]):
            raise InvalidArgumentError(
                what="third dimension of boxes must be either 1 or num classes",
                found=boxes[2],
                wanted=f"1 or {classes}",
            )
        check_combined(op)
        per_class, total = static_number(op.max_output_size_per_class), static_number(op.max_total_size)
        max_boxes = output_capacity(op, per_class, total, classes)
        dtype = op.boxes.spec.dtype
        return (
            TensorSpec([n, max_boxes, 4], dtype),
            TensorSpec([n, max_boxes], dtype),
            TensorSpec([n, max_boxes], dtype),
            TensorSpec([n], int32),
        )

    def compute(
        op,
        boxes: Any,
        scores: Any,
        max_output_size_per_class: Any,
        max_total_size: Any,
        iou_threshold: Any,
        score_threshold: Any,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        check_thresholds((iou_threshold, "iou_threshold"))
        n, classes = len(scores), int(scores.shape[2])
        per_class, total = int(max_output_size_per_class), int(max_total_size)
        max_boxes = output_capacity(op, per_class, total, classes)
        out_boxes, out_scores = np.zeros((n, max_boxes, 4), boxes.dtype), np.zeros((n, max_boxes), boxes.dtype)
        out_classes, valid = np.zeros((n, max_boxes), boxes.dtype), np.zeros(n, np.int32)
        kind = boxes.dtype.type
        for b in range(n):
            candidates: list[tuple[Any, int, Any]] = []
            for c in range(classes):
                class_boxes = np.ascontiguousarray(boxes[b, :, c if boxes.shape[2] > 1 else 0])
                chosen, kept_scores = box_suppression.suppressed(
                    box_suppression.BoxAreas(class_boxes).iou,
                    scores[b, :, c],
                    per_class,
                    lambda shares: shares > kind(iou_threshold),
                    kind(score_threshold),
                    0.0,
                )
                candidates.extend((score, c, class_boxes[i]) for i, score in zip(chosen, kept_scores))
            candidates.sort(key=lambda candidate: -candidate[0])
            valid[b] = min(len(candidates), max_boxes)
            for k, (score, c, box) in enumerate(candidates[:max_boxes]):
                out_boxes[b, k] = np.clip(box, 0, 1) if op.clip_boxes else box
                out_scores[b, k], out_classes[b, k] = score, c
        return out_boxes, out_scores, out_classes, valid


def check_combined(op: Any) -> None:
    """Check threshold and counts of a combined suppression. Raises InvalidArgumentError."""
    check_thresholds((op.iou_threshold, "iou_threshold"))
    for name in ("max_output_size_per_class", "max_total_size"):
        value = static_number(getattr(op, name))
        if value is not None and value <= 0:
            raise InvalidArgumentError(what=f"{name} must be > 0", found=f"{name} {value}")


class CombinedBoxes(NamedTuple):
    """Selected boxes of a batch: boxes [n, m, 4], scores [n, m], classes [n, m] and their numbers [n]."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


@documented_by(CombinedNonMaxSuppression)
def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = NO_THRESHOLD,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedBoxes:
    """Select boxes of a batch by non-maximum suppression per class; return boxes, scores, classes and counts."""
    outputs: Any = CombinedNonMaxSuppression(
        boxes,
        scores,
        max_output_size_per_class,
        max_total_size,
        cast(iou_threshold, float32),
        cast(score_threshold, float32),
        pad_per_class=pad_per_class,
        clip_boxes=clip_boxes,
        name=name,
    )
    return CombinedBoxes(*outputs)
