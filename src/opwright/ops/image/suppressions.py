"""Boxes that overlap better ones left out, under TensorFlow's names.

Lives here: non_max_suppression and its kin.  Not here: the operators (suppression.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.dtypes import float32
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array import cast
from .sizes import known
from .suppression import (
    CombinedNonMaxSuppression,
    NonMaxSuppression,
    NonMaxSuppressionPadded,
    NonMaxSuppressionWithOverlaps,
)

EVERY = float("-inf")


def _suppressed(boxes: Any, scores: Any, most: Any, iou: Any, lowest: Any, sigma: Any, name: str | None) -> Any:
    return NonMaxSuppression(dispatch.to_tensor(boxes), scores, most, iou, lowest, sigma, name=name)


def non_max_suppression(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                        score_threshold: Any = EVERY, name: str | None = None) -> Any:  # fmt: skip
    """Indices of boxes by falling score, without those that overlap a better one. See NonMaxSuppression."""
    return _suppressed(boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0, name)[0]


def non_max_suppression_with_scores(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                                    score_threshold: Any = EVERY, soft_nms_sigma: Any = 0.0, name: str | None = None
                                    ) -> tuple[Any, Any]:  # fmt: skip
    """Indices and scores of boxes; with soft_nms_sigma those that overlap fall in score. See NonMaxSuppression."""
    return tuple(_suppressed(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma, name)[:2])


def non_max_suppression_overlaps(overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5,
                                 score_threshold: Any = EVERY, name: str | None = None) -> Any:  # fmt: skip
    """Indices of boxes by falling score, by given overlaps. See NonMaxSuppressionWithOverlaps."""
    return NonMaxSuppressionWithOverlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold,
                                         name=name)  # fmt: skip


def non_max_suppression_padded(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                               score_threshold: Any = EVERY, pad_to_max_output_size: bool = False,
                               name: str | None = None, sorted_input: bool = False,
                               canonicalized_coordinates: bool = False, tile_size: int = 512
                               ) -> tuple[Any, Any]:  # fmt: skip
    """Indices of boxes [max_output_size], and how many are valid; of a batch each. See NonMaxSuppressionPadded.

    pad_to_max_output_size: False gives the valid indices alone, which a batch does not allow. tile_size: of no effect.
    raises InvalidArgumentError for a batch that is not to be padded
    """
    boxes = dispatch.to_tensor(boxes)
    rank = boxes.shape.rank
    if not pad_to_max_output_size and rank is not None and rank > 2:
        raise InvalidArgumentError(op="non_max_suppression_padded", node=name, found=boxes.spec.short(),
                                   what="'pad_to_max_output_size' (value False) must be True for batched input",
                                   do="pad_to_max_output_size=True")  # fmt: skip
    idx, valid = NonMaxSuppressionPadded(boxes, scores, known(max_output_size), iou_threshold, score_threshold,
                                         sorted_input=sorted_input,
                                         canonicalized_coordinates=canonicalized_coordinates, name=name)  # fmt: skip
    return (idx, valid) if pad_to_max_output_size else (idx[:valid], valid)


class CombinedBoxes(NamedTuple):
    """The best boxes of a batch: [n, m, 4], [n, m], [n, m] and how many of each are valid, [n]."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


def combined_non_max_suppression(boxes: Any, scores: Any, max_output_size_per_class: Any, max_total_size: Any,
                                 iou_threshold: Any = 0.5, score_threshold: Any = EVERY, pad_per_class: bool = False,
                                 clip_boxes: bool = True, name: str | None = None) -> CombinedBoxes:  # fmt: skip
    """Boxes, scores and classes of the best of a batch, and how many are valid. See CombinedNonMaxSuppression."""
    found: Any = CombinedNonMaxSuppression(
        boxes, scores, max_output_size_per_class, max_total_size, cast(iou_threshold, float32),
        cast(score_threshold, float32), pad_per_class=pad_per_class, clip_boxes=clip_boxes, name=name)  # fmt: skip
    return CombinedBoxes(*found)
