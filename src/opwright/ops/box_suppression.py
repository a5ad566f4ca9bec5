"""Non-maximum suppression on arrays: the boxes that no better one covers.

Lives here: intersection over union of boxes, greedy and soft suppression, of the operators of both dialects.
Not here: the operators (image/nms.py, image/combined_nms.py, lite/ops/selection.py, lite/customs/detection.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Overlaps: TypeAlias = "Callable[[Any, Any], np.ndarray]"
"""Overlaps of boxes with others, by their numbers, which broadcast."""
BLOCK = 64
"""Candidates that one call compares: 458 of 500 boxes are selected in a tenth of the time of one at a time."""


class BoxAreas:
    """Boxes [n, 4] with their areas, any two opposite corners."""

    def __init__(self, boxes: np.ndarray) -> None:
        self._low = np.minimum(boxes[:, :2], boxes[:, 2:]).T.copy()
        self._high = np.maximum(boxes[:, :2], boxes[:, 2:]).T.copy()
        height, width = self._high - self._low
        self.area = height * width

    def iou(self, i: Any, others: Any) -> np.ndarray:
        """Return the intersection over union of boxes; 0 if one of two is empty."""
        height, width = (
            np.maximum(np.minimum(high[i], high[others]) - np.maximum(low[i], low[others]), 0)
            for low, high in zip(self._low, self._high)
        )
        shared = height * width
        # an area of NaN is not empty, as in the official kernel
        empty = (self.area[i] <= 0) | (self.area[others] <= 0)
        with np.errstate(all="ignore"):
            return np.where(empty, 0, shared / (self.area[i] + self.area[others] - shared)).astype(shared.dtype)


def uncovered(order: np.ndarray, covers: Overlaps, max_output: int) -> np.ndarray:
    """Return the boxes of `order`, the best first, that none returned before them covers; at most `max_output`.

    covers(boxes, better): whether each box is covered by a better one
    """
    chosen, count = np.empty(min(max_output, len(order)), np.intp), 0
    for start in range(0, len(order) if len(chosen) else 0, BLOCK):
        block = order[start : start + BLOCK]
        if count:
            block = block[~covers(block[:, None], chosen[:count]).any(1)]
        rows, is_covered = covers(block, block[:, None]), np.zeros(len(block), np.bool_)
        for k, box in enumerate(block.tolist()):
            if not is_covered[k]:
                chosen[count] = box
                count += 1
                if count == len(chosen):
                    return chosen
                is_covered |= rows[k]
    return chosen[:count]


def suppressed(
    overlaps: Overlaps,
    scores: np.ndarray,
    max_output: int,
    covers: Callable[[np.ndarray], np.ndarray] | None,
    lowest: Any,
    sigma: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the boxes selected by non-maximum suppression, by decreasing score, and their scores.

    The first of boxes with equal scores is better. covers: whether an overlap with a better box removes a box; None
    if none does. lowest: a score is above it. sigma: positive, overlaps reduce scores (`_softly_suppressed`)
    """
    if sigma > 0:
        return _softly_suppressed(overlaps, scores, max_output, covers, lowest, sigma)
    candidates = np.flatnonzero(scores > lowest)
    chosen = candidates[np.argsort(-scores[candidates], kind="stable")]
    if covers is not None:
        chosen = uncovered(chosen, lambda i, better: covers(overlaps(i, better)), max_output)
    return chosen[:max_output], scores[chosen[:max_output]]


def _softly_suppressed(
    overlaps: Overlaps,
    scores: np.ndarray,
    max_output: int,
    covers: Callable[[np.ndarray], np.ndarray] | None,
    lowest: Any,
    sigma: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the boxes selected if overlaps with better ones reduce scores, by decreasing score, and their scores.

    .. math:: s_i' = s_i \\prod_{j \\text{ selected before}} e^{-u_{ij}^2 / (2\\, sigma)}

    Candidates wait in a priority queue by score. The front one is compared with the boxes selected since it was last
    examined; if its score fell it returns to the queue, otherwise it is selected (Soft-NMS, Bodla et al. 2017, in the
    lazy form, which selects the same boxes).
    """
    kind = scores.dtype.type
    falloff = kind(-0.5 / sigma)
    queue = [(-float(scores[i]), i, 0) for i in np.flatnonzero(scores > lowest).tolist()]
    heapq.heapify(queue)
    chosen: list[int] = []
    selected_scores: list[Any] = []
    while queue and len(chosen) < max_output:
        negative, i, seen = heapq.heappop(queue)
        before = score = kind(-negative)
        if seen < len(chosen):
            shares = overlaps(i, np.array(chosen[seen:]))[::-1]
            covered = np.zeros(len(shares), np.bool_) if covers is None else covers(shares)
            for share, is_covered in zip(shares, covered):
                if is_covered or score <= lowest:
                    break
                score = kind(score * np.exp(falloff * share * share))
            if covered.any():
                continue
        if score == before:
            chosen.append(i)
            selected_scores.append(score)
        elif score > lowest:
            heapq.heappush(queue, (-float(score), i, len(chosen)))
    return np.array(chosen, np.intp), np.array(selected_scores, scores.dtype)


def strictly_uncovered(boxes: np.ndarray, max_output: int, threshold: Any) -> np.ndarray:
    """Return the boxes, sorted by score, that no better one overlaps by `threshold`; upper left corner first."""
    top, left, bottom, right = boxes.T.copy()
    area = (bottom - top) * (right - left)

    def covers(i: Any, better: Any) -> np.ndarray:
        height = np.minimum(bottom[i], bottom[better]) - np.maximum(top[i], top[better])
        width = np.minimum(right[i], right[better]) - np.maximum(left[i], left[better])
        shared = np.maximum(height, 0) * np.maximum(width, 0)
        share = shared / (area[i] + area[better] - shared + boxes.dtype.type(1e-8))
        result: np.ndarray = (share >= threshold) & (share > 0)
        return result

    return uncovered(np.flatnonzero((boxes > 0).any(1)), covers, max_output)
