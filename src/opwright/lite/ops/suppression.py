"""Boxes that overlap better ones left out: NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5.

Lives here: the two operators, whose thresholds leave out overlaps that are equal to them.
Not here: the suppression (ops/array_functions.py), how one dialect's becomes the other's (convert/rules/images.py).

Boxes are [n, 4], two opposite corners (y1, x1, y2, x2). A box goes if it shares iou_threshold or more with one
chosen before it, or if its score, which softly falls with what it shares, is not above score_threshold any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int32
from ...core.specs import TensorSpec
from ...ops.array_functions import BoxAreas, suppressed
from ...ops.slots import Input, Output
from .definition import lite_operator
from .shapes import bounded, ints, refuse, same, spec, text


def _count(op: Any) -> int | None:
    """The number of indices given, after checking the operands."""
    boxes, scores, most = op.boxes.spec.shape, op.scores.spec.shape, ints(op.max_output_size)
    if not same(boxes[1], 4) or not same(boxes[0], scores[0]):
        raise refuse(
            "boxes and scores do not fit", found={"boxes": text(boxes), "scores": text(scores)}, wanted="[n,4] and [n]"
        )
    if most is None:
        return None
    if most[0] < 0:
        raise refuse("max_output_size is negative", found=most[0], wanted="at least 0")
    bounded((most[0], 2), float32, "the list of boxes")
    return most[0]


def select(boxes: Any, scores: Any, most: int, threshold: Any, least: Any, sigma: Any) -> tuple[list[int], list[Any]]:
    """Return the boxes chosen, in falling order of their score, and that score."""
    return suppressed(BoxAreas(boxes).with_one, scores, most, lambda shares: shares >= threshold, least, sigma)


def _number(operand: Any) -> Any:
    return operand.reshape(-1)[0]


def _filled(found: list[Any], most: int, dtype: Any) -> np.ndarray:
    y = np.zeros(most, dtype)
    y[: len(found)] = found
    return y


@lite_operator("NON_MAX_SUPPRESSION_V4")
class NonMaxSuppressionV4:
    """Indices of boxes by falling score, without those that share iou_threshold or more with a better one.

    boxes: float32 [n, 4]; scores: [n]; the others one number each. selected_indices: int32 [max_output_size], filled
    up with 0; num_selected: int32, how many count.
    """

    boxes = Input((float32,), rank=2)
    scores = Input((float32,), rank=1)
    max_output_size = Input((int32,), rank=0)
    iou_threshold = Input((float32,), rank=0)
    score_threshold = Input((float32,), rank=0)
    selected_indices = Output(dtype=int32)
    num_selected = Output(dtype=int32)

    def infer(op: Any) -> Any:
        return spec((_count(op),), int32), TensorSpec((), int32)

    def compute(
        op: Any, boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
    ) -> Any:
        most = int(max_output_size)
        chosen, _ = select(boxes, scores, most, _number(iou_threshold), _number(score_threshold), np.float32(0))
        return _filled(chosen, most, np.int32), np.array(len(chosen), np.int32)


@lite_operator("NON_MAX_SUPPRESSION_V5")
class NonMaxSuppressionV5:
    """As NON_MAX_SUPPRESSION_V4, with scores that fall by what a box shares with better ones.

    .. math:: s_i' = s_i \\prod_{j \\text{ chosen before}} e^{-u_{ij}^2 / (2\\, soft\\_nms\\_sigma)}

    selected_scores: float32 [max_output_size], s' filled up with 0. soft_nms_sigma 0: scores stay.
    """

    boxes = Input((float32,), rank=2)
    scores = Input((float32,), rank=1)
    max_output_size = Input((int32,), rank=0)
    iou_threshold = Input((float32,), rank=0)
    score_threshold = Input((float32,), rank=0)
    soft_nms_sigma = Input((float32,), rank=0)
    selected_indices = Output(dtype=int32)
    selected_scores = Output(dtype=float32)
    num_selected = Output(dtype=int32)

    def infer(op: Any) -> Any:
        count = _count(op)
        sigma = op.soft_nms_sigma.constant
        if sigma is not None and not sigma >= 0:
            raise refuse("soft_nms_sigma is negative", found=float(sigma), wanted="at least 0")
        return spec((count,), int32), spec((count,), float32), TensorSpec((), int32)

    def compute(
        op: Any,
        boxes: Any,
        scores: Any,
        max_output_size: Any,
        iou_threshold: Any,
        score_threshold: Any,
        soft_nms_sigma: Any,
    ) -> Any:
        most = int(max_output_size)
        if not soft_nms_sigma >= 0:
            raise refuse("soft_nms_sigma is negative", found=float(soft_nms_sigma), wanted="at least 0")
        chosen, kept = select(
            boxes, scores, most, _number(iou_threshold), _number(score_threshold), _number(soft_nms_sigma)
        )
        return _filled(chosen, most, np.int32), _filled(kept, most, np.float32), np.array(len(chosen), np.int32)
