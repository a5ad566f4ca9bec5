"""Non-maximum suppression of many boxes against its definition: one box at a time, in float64."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright.ops.box_suppression import BLOCK


def iou(a: np.ndarray, b: np.ndarray) -> float:
    """Return the intersection over union of two boxes (y1, x1, y2, x2)."""
    height, width = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    shared = max(height, 0.0) * max(width, 0.0)
    area, other = ((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b))
    return shared / (area + other - shared) if area > 0 and other > 0 else 0.0


def selected_by_definition(
    boxes: np.ndarray, scores: np.ndarray, max_output: int, threshold: float, lowest: float
) -> list[int]:
    order = sorted((i for i in range(len(scores)) if scores[i] > lowest), key=lambda i: (-scores[i], i))
    chosen: list[int] = []
    for i in order:
        if len(chosen) < max_output and all(iou(boxes[i], boxes[j]) <= threshold for j in chosen):
            chosen.append(i)
    return chosen


@pytest.mark.parametrize("max_output", [0, 1, BLOCK, BLOCK + 1, 1000])
@pytest.mark.parametrize("side", [0.02, 0.2])
def test_many_boxes(side: float, max_output: int) -> None:
    """Sizes on a grid, so that overlaps are exact in float32; equal scores; empty boxes; few and many covered."""
    rng = np.random.default_rng([int(side * 100), max_output])
    n = 5 * BLOCK + 3
    corners = rng.integers(0, 64, (n, 2)) / 64
    sides = rng.integers(0, max(2, int(side * 128)), (n, 2)) / 64
    boxes = np.concatenate([corners, corners + sides], 1).astype(np.float32)
    scores = (rng.integers(0, 50, n) / 50).astype(np.float32)
    expected = selected_by_definition(boxes.astype(np.float64), scores, max_output, 0.3, 0.1)
    flipped = np.where(rng.random((n, 1)) < 0.5, boxes, boxes[:, [2, 3, 0, 1]])  # any two opposite corners
    for given in (boxes, flipped):
        selected, kept = ow.image.non_max_suppression_with_scores(given, scores, max_output, 0.3, 0.1)
        assert selected.numpy().tolist() == expected
        np.testing.assert_array_equal(kept.numpy(), scores[expected])


def test_no_candidates() -> None:
    boxes = np.zeros((3, 4), np.float32)
    selected = ow.image.non_max_suppression(boxes, np.float32([0.1, np.nan, 0.2]), 5, 0.5, 0.5)
    assert selected.numpy().tolist() == []
