"""Non-maximum suppression: select boxes by score, and discard boxes that overlap a better one.

Lives here: the operators NonMaxSuppression, NonMaxSuppressionPadded and NonMaxSuppressionWithOverlaps, and TensorFlow's
functions over them.
Not here: of all classes at once (combined_nms.py), suppression on arrays (../box_suppression.py).

Boxes are [..., 4]: two opposite corners, (y1, x1, y2, x2). The overlap of two boxes is the area of their intersection
divided by the area of their union. The first of boxes with equal scores is better.
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from ...core.dtypes import float32, float64, floating, int32
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import box_suppression, dispatch
from ..accumulation import widened
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .geometry import static_or_tensor


def static_number(operand: Any) -> Any:
    return None if operand.constant is None else operand.constant.item()


def check_thresholds(*arrays: Any) -> None:
    """Check that thresholds are in [0, 1] and counts not negative. Raises InvalidArgumentError."""
    for operand, name in arrays:
        value = operand if not hasattr(operand, "constant") else static_number(operand)
        if value is None:
            continue
        if name.endswith("threshold") and not 0 <= value <= 1:
            raise InvalidArgumentError(what=f"{name} must be in [0, 1]", found=f"{name} {value}")
        if name == "soft_nms_sigma" and not value >= 0:
            raise InvalidArgumentError(what="soft_nms_sigma must be non-negative", found=f"soft_nms_sigma {value}")
        if name.startswith("max_") and value < 0:
            raise InvalidArgumentError(what=f"{name} must be non-negative", found=f"{name} {value}")


def check_boxes(op: Any, *classes: Any) -> None:
    """Check that boxes have 4 columns, and one score each, or one per class. Raises InvalidArgumentError."""
    boxes, scores, boxes_type = op.boxes.spec.shape, op.scores.spec.shape, op.boxes.spec.short()
    if boxes.rank is None:
        return
    if boxes.rank < 2 or boxes[-1] not in (4, None):
        raise InvalidArgumentError(what="boxes must have 4 columns", found=boxes_type)
    if not scores.is_compatible_with([*boxes.dims[: 2 if classes else -1], *classes]):
        raise InvalidArgumentError(
            what="scores has incompatible shape",
            wanted="one score for each box",
            found={"boxes": boxes_type, "scores": op.scores.spec.short()},
        )


@operator
class NonMaxSuppression(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Select boxes by non-maximum suppression; return indices by decreasing score.

    .. math:: s_i' = s_i \\prod_{j \\text{ selected before}} w(IoU(b_i, b_j)), \\quad
              w(u) = \\begin{cases} e^{-u^2 / (2\\, soft\\_nms\\_sigma)} & soft\\_nms\\_sigma > 0 \\\\
              [u \\le iou\\_threshold] & \\text{else} \\end{cases}

    boxes: [n, 4]; scores: [n]. With soft_nms_sigma 0 a selected box keeps its score. Only boxes with a score above
    score_threshold are considered. selected_indices: int32 [m], m at most max_output_size, with
    pad_to_max_output_size padded with 0; selected_scores: s'; valid_outputs: the number selected.
    raises InvalidArgumentError for inconsistent shapes of boxes and scores, or a threshold out of [0, 1]
    """

    boxes = Input(floating, rank=2)
    scores = Input(floating, rank=1, like="boxes")
    max_output_size = Input(int32, rank=0)
    iou_threshold = Input(floating, rank=0, like="boxes")
    score_threshold = Input(floating, rank=0, like="boxes")
    soft_nms_sigma = Input(floating, rank=0, like="boxes")
    selected_indices = Output(dtype=int32)
    selected_scores = Output(like="boxes")
    valid_outputs = Output(dtype=int32)
    pad_to_max_output_size = Attr(bool, default=False)
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        check_boxes(op)
        check_thresholds(
            (op.iou_threshold, "iou_threshold"),
            (op.soft_nms_sigma, "soft_nms_sigma"),
            (op.max_output_size, "max_output_size"),
        )
        number = static_number(op.max_output_size) if op.pad_to_max_output_size else None
        return TensorSpec([number], int32), TensorSpec([number], op.boxes.spec.dtype), TensorSpec([], int32)

    def compute(
        op, boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any, soft_nms_sigma: Any
    ) -> tuple[np.ndarray, np.ndarray, np.generic]:
        check_thresholds(
            (iou_threshold, "iou_threshold"), (soft_nms_sigma, "soft_nms_sigma"), (max_output_size, "max_output_size")
        )
        max_boxes, wide = int(max_output_size), widened(boxes)
        kind = wide.dtype.type
        chosen, kept_scores = box_suppression.suppressed(
            box_suppression.BoxAreas(wide).iou,
            widened(scores),
            max_boxes,
            None if soft_nms_sigma > 0 else lambda shares: shares > kind(iou_threshold),
            kind(score_threshold),
            float(soft_nms_sigma),
        )
        padding = max_boxes - len(chosen) if op.pad_to_max_output_size else 0
        indices, kept_scores = (np.pad(x, (0, padding)) for x in (chosen, kept_scores))
        return indices.astype(np.int32), kept_scores.astype(boxes.dtype), np.int32(len(chosen))


@operator
class NonMaxSuppressionWithOverlaps(OperatorDefinition):
    """Select boxes by non-maximum suppression from given overlaps; return indices by decreasing score.

    .. math:: selected = \\{i : scores_i > score\\_threshold,\\; overlaps_{i,j} \\le overlap\\_threshold
              \\text{ for all selected before}\\}

    overlaps: [n, n]; scores: [n]. selected_indices: int32 [m], m at most max_output_size.
    raises InvalidArgumentError for inconsistent shapes of overlaps and scores
    """

    overlaps = Input((float32, float64), rank=2)
    scores = Input((float32, float64), rank=1, like="overlaps")
    max_output_size = Input(int32, rank=0)
    overlap_threshold = Input((float32, float64), rank=0, like="overlaps")
    score_threshold = Input((float32, float64), rank=0, like="overlaps")
    selected_indices = Output(dtype=int32)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        overlaps, scores = op.overlaps.spec.shape, op.scores.spec.shape
        if overlaps.rank is not None and not (
            overlaps.is_compatible_with([overlaps[1], overlaps[0]]) and scores.is_compatible_with([overlaps[0]])
        ):
            raise InvalidArgumentError(
                what="overlaps must be square, with a row for each score",
                found={"overlaps": op.overlaps.spec.short(), "scores": op.scores.spec.short()},
            )
        check_thresholds((op.max_output_size, "max_output_size"))
        return TensorSpec([None], int32)

    def compute(
        op, overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any, score_threshold: Any
    ) -> np.ndarray:
        check_thresholds((max_output_size, "max_output_size"))
        chosen, _ = box_suppression.suppressed(
            lambda i, others: overlaps[i, others],
            scores,
            int(max_output_size),
            lambda shares: shares > overlap_threshold,
            score_threshold,
            0.0,
        )
        return chosen.astype(np.int32)


@operator
class NonMaxSuppressionPadded(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Select boxes of a batch by non-maximum suppression.

    .. math:: selected = \\{i : scores_i > score\\_threshold,\\; IoU(b_i, b_j) < iou\\_threshold
              \\text{ for all selected before}\\}

    boxes: [..., n, 4]; scores: [..., n]. Unlike NonMaxSuppression, also discards boxes whose overlap equals
    iou_threshold, and boxes without a positive coordinate. sorted_input: scores are in descending order.
    canonicalized_coordinates: the first corner is the upper left; else the first box determines it. idx: int32
    [..., max_output_size], padded with 0; num_valid: int32 [...].
    raises InvalidArgumentError for inconsistent shapes of boxes and scores
    """

    boxes = Input(floating)
    scores = Input(floating, like="boxes")
    max_output_size = Input(int32, rank=0)
    iou_threshold = Input((float32, float64), rank=0)
    score_threshold = Input((float32, float64), rank=0)
    idx = Output(dtype=int32)
    num_valid = Output(dtype=int32)
    sorted_input = Attr(bool, default=False)
    canonicalized_coordinates = Attr(bool, default=False)
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        boxes, scores = op.boxes.spec.shape, op.scores.spec.shape
        check_boxes(op)
        check_thresholds((op.max_output_size, "max_output_size"))
        if boxes.rank is None:
            lead = None if scores.rank is None else list(scores[:-1])
        else:
            lead = list(boxes[:-2])
        if lead is None:
            return TensorSpec(None, int32), TensorSpec(None, int32)
        return TensorSpec([*lead, static_number(op.max_output_size)], int32), TensorSpec(lead, int32)

    def compute(
        op, boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        lead, number, max_boxes = boxes.shape[:-2], boxes.shape[-2], int(max_output_size)
        flat = widened(boxes).reshape(math.prod(lead), number, 4)
        flat_scores = widened(scores).reshape(flat.shape[:2])
        if score_threshold != -np.inf:
            above = flat_scores > score_threshold
            flat, flat_scores = flat * above[..., None], flat_scores * above
        if not op.canonicalized_coordinates and flat.size:
            y, x = (
                ((0, 2) if flat[0, 0, 0] <= flat[0, 0, 2] else (2, 0)),
                ((1, 3) if flat[0, 0, 1] <= flat[0, 0, 3] else (3, 1)),
            )
            flat = flat[..., [y[0], x[0], y[1], x[1]]]
        idx = np.zeros((len(flat), max_boxes), np.int32)
        counts = np.zeros(len(flat), np.int32)
        for k, (image_boxes, image_scores) in enumerate(zip(flat, flat_scores)):
            order = np.arange(number) if op.sorted_input else np.argsort(-image_scores, kind="stable")
            chosen = box_suppression.strictly_uncovered(image_boxes[order], max_boxes, iou_threshold)
            counts[k] = len(chosen)
            idx[k, : len(chosen)] = order[chosen]
        return idx.reshape(*lead, max_boxes), counts.reshape(lead)


@overload
def output_capacity(op: Any, per_class: int, total: int, classes: int) -> int: ...
@overload
def output_capacity(op: Any, per_class: int | None, total: int | None, classes: int | None) -> int | None: ...
def output_capacity(op: Any, per_class: int | None, total: int | None, classes: int | None) -> int | None:
    """Return the number of boxes per image in the outputs; None if unknown."""
    if not op.pad_per_class or total is None:
        return total
    return None if per_class is None or classes is None else min(total, per_class * classes)


NO_THRESHOLD = float("-inf")


@documented_by(NonMaxSuppression)
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = NO_THRESHOLD,
    name: str | None = None,
) -> Tensor:
    """Select boxes by non-maximum suppression; return their indices by decreasing score."""
    boxes = dispatch.to_tensor(boxes)
    return NonMaxSuppression(boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0, name=name)[0]


@documented_by(NonMaxSuppression)
def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = NO_THRESHOLD,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Select boxes by non-maximum suppression; return indices and scores.

    soft_nms_sigma: with a positive value, overlaps decay scores instead of removing boxes (Soft-NMS).
    """
    indices, kept_scores, _ = NonMaxSuppression(
        dispatch.to_tensor(boxes), scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma, name=name
    )
    return indices, kept_scores


@documented_by(NonMaxSuppressionWithOverlaps)
def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = NO_THRESHOLD,
    name: str | None = None,
) -> Tensor:
    """Select boxes by non-maximum suppression from a matrix of overlaps; return indices by decreasing score."""
    return NonMaxSuppressionWithOverlaps(
        overlaps, scores, max_output_size, overlap_threshold, score_threshold, name=name
    )


@documented_by(NonMaxSuppressionPadded)
def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = NO_THRESHOLD,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Any, Any]:
    """Select boxes of each image by non-maximum suppression; return indices [max_output_size] and counts.

    pad_to_max_output_size: False returns the valid indices only; required for batches. tile_size: ignored.
    raises InvalidArgumentError for a batch without padding
    """
    boxes = dispatch.to_tensor(boxes)
    rank = boxes.shape.rank
    if not pad_to_max_output_size and rank is not None and rank > 2:
        raise InvalidArgumentError(
            op="non_max_suppression_padded",
            node=name,
            found=boxes.spec.short(),
            what="'pad_to_max_output_size' (value False) must be True for batched input",
            do="pad_to_max_output_size=True",
        )
    idx, valid = NonMaxSuppressionPadded(
        boxes,
        scores,
        static_or_tensor(max_output_size),
        iou_threshold,
        score_threshold,
        sorted_input=sorted_input,
        canonicalized_coordinates=canonicalized_coordinates,
        name=name,
    )
    return (idx, valid) if pad_to_max_output_size else (idx[:valid], valid)
