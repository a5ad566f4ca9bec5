"""Non-maximum suppression on arrays: how much boxes overlap, and which are left.

Lives here: `Boxes`, `suppressed`, `strict`.  Not here: the operators (image/nms.py, lite/ops/suppression.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np


def wide(x: np.ndarray) -> np.ndarray:
    """16-bit floats as float32."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


class Boxes:
    """Boxes [n, 4] with their areas, any two opposite corners."""

    def __init__(self, boxes: np.ndarray) -> None:
        self.low = np.minimum(boxes[:, :2], boxes[:, 2:])
        self.high = np.maximum(boxes[:, :2], boxes[:, 2:])
        self.area = (self.high - self.low).prod(1)

    def with_one(self, i: int, others: Any) -> np.ndarray:
        """The area that box i shares with each of others, by the area they cover together; 0 where one is empty."""
        sides = np.minimum(self.high[i], self.high[others]) - np.maximum(self.low[i], self.low[others])
        shared = np.maximum(sides, 0).prod(-1)
        empty = (self.area[i] <= 0) | (self.area[others] <= 0)  # an area of NaN is not empty, as in the official kernel
        with np.errstate(all="ignore"):
            return np.where(empty, 0, shared / (self.area[i] + self.area[others] - shared)).astype(shared.dtype)


def suppressed(
    with_one: Callable[[int, Any], np.ndarray],
    scores: np.ndarray,
    most: int,
    covers: Callable[[np.ndarray], np.ndarray] | None,
    lowest: Any,
    sigma: Any,
) -> tuple[list[int], list[Any]]:
    """Return the indices that are selected, with their scores, which fall as `sigma` and overlaps say (0: not at all).

    A box waits in a queue by its score. Whenever it comes to the front it is compared with those selected since it was
    last there; if its score fell it goes back into the queue, and is selected once it no longer does (Bodla et al.
    2017, in the lazy form that selects the same boxes). covers: whether
    an overlap with a better box leaves a box out; None where none does.
    """
    kind = scores.dtype.type
    falloff = kind(-0.5 / sigma) if sigma > 0 else kind(0)
    queue = [(-float(scores[i]), i, 0) for i in np.flatnonzero(scores > lowest).tolist()]
    heapq.heapify(queue)
    chosen: list[int] = []
    kept: list[Any] = []
    while queue and len(chosen) < most:
        negative, i, seen = heapq.heappop(queue)
        before = score = kind(-negative)
        if seen < len(chosen):
            shares = with_one(i, np.array(chosen[seen:]))[::-1]
            covered = np.zeros(len(shares), np.bool_) if covers is None else covers(shares)
            for share, is_covered in zip(shares, covered) if sigma > 0 else ():
                if is_covered or score <= lowest:
                    break
                score = kind(score * np.exp(falloff * share * share))
            if covered.any():
                continue
        if score == before:
            chosen.append(i)
            kept.append(score)
        elif score > lowest:
            heapq.heappush(queue, (-float(score), i, len(chosen)))
    return chosen, kept


def strict(boxes: np.ndarray, most: int, threshold: Any) -> list[int]:
    """Of boxes by falling score, with their upper left corner first, those that no better one covers by `threshold`."""
    sides = boxes[:, 2:] - boxes[:, :2]
    area = sides.prod(1)
    chosen: list[int] = []
    for i in np.flatnonzero((boxes > 0).any(1)).tolist():
        if len(chosen) == most:
            break
        others = np.array(chosen, np.intp)
        common = np.minimum(boxes[i, 2:], boxes[others, 2:]) - np.maximum(boxes[i, :2], boxes[others, :2])
        shared = np.maximum(common, 0).prod(1)
        share = shared / (area[i] + area[others] - shared + boxes.dtype.type(1e-8))
        if not ((share >= threshold) & (share > 0)).any():
            chosen.append(i)
    return chosen
