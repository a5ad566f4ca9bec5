"""Kernels of boxes: on every target, and what they touch. Their answers: tests/lite/compiled/test_compiled_boxes.py."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, targets
from test_guard_pages import check

from opwright.compiler.kernels.moves import copy_checked
from opwright.compiler.kernels.nms import suppress_boxes
from opwright.compiler.kernels.ssd_postprocess import detect
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import Detection, Suppression
from opwright.core.dtypes import float32, int8, int32, uint8

LINE = 64


@targets(
    (suppress_boxes, {"soft": False}),
    (suppress_boxes, {"soft": True}),
    (detect, {"by_class": False}),
    (detect, {"by_class": True}),
    (copy_checked, {"source": int8, "refused": "equal"}),
)
def test_they_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("n", [1, 15, 16, 40])
def test_suppression_touches_nothing_outside(n, at_end):
    """Boxes side by side: all are chosen, by falling score."""
    rng, most = np.random.default_rng(n), 33
    left = np.arange(n, dtype=np.float32)
    boxes = np.stack([left * 0, left, left * 0 + 1, left + 1], 1).astype(np.float32)
    scores = rng.random(n).astype(np.float32)
    inputs = {buffer(boxes, "boxes"): boxes, buffer(scores, "scores"): scores}
    for name, value in (("limit", 0.5), ("least", -1.0)):
        inputs[buffer(np.float32([value]), name)] = np.float32([value])
    start = -(-4 * most // LINE) * LINE
    whole = Buffer("whole", uint8, (start + 4,))
    results = ((Buffer("places", int32, (most,)), 0), (Buffer("number", int32, ()), start))
    chosen = np.argsort(-scores, kind="stable")[:most]
    expected = np.zeros(most, np.int32)
    expected[: len(chosen)] = chosen
    packed = np.zeros(start + 4, np.uint8)
    packed[: 4 * most], packed[start:] = expected.view(np.uint8), np.int32([len(chosen)]).view(np.uint8)
    check(Suppression(whole, *inputs, (), results), inputs, packed, at_end, gaps=slice(4 * most, start))


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("at_end", [False, True])
def test_detection_touches_nothing_outside(by_class, at_end):
    """Anchors side by side, each of a class of its own score: all are found, the best first."""
    n, classes, most = 17, 3, 20
    rng = np.random.default_rng(5)
    anchors = np.stack([np.zeros(n), np.arange(n), np.ones(n), np.ones(n)], 1).astype(np.float32)
    codes, scores = np.zeros((n, 4), np.float32), np.zeros((n, classes), np.float32)
    kinds = rng.integers(0, classes, n)
    scores[np.arange(n), kinds] = 0.5 + 0.5 * rng.random(n)
    seen = np.ascontiguousarray(scores.T) if by_class else scores
    inputs = {buffer(codes, "codes"): codes, buffer(seen, "scores"): seen, buffer(anchors, "anchors"): anchors}
    sizes, starts, size = (4 * most, most, most, 1), [], 0
    for count in sizes:
        starts.append(size)
        size += 4 * count
    results = tuple((Buffer(f"y{i}", float32, (count,)), s) for i, (count, s) in enumerate(zip(sizes, starts)))
    form = Detection(
        Buffer("whole", uint8, (size,)),
        *inputs,
        results,
        classes,
        most,
        1,
        most,
        by_class,
        0.1,
        0.5,
        (1.0, 1.0, 1.0, 1.0),
    )
    best = scores.max(1)
    order = np.argsort(-best, kind="stable")
    where, kind, value = np.zeros((most, 4), np.float32), np.zeros(most, np.float32), np.zeros(most, np.float32)
    where[:n] = np.stack([anchors[:, 0] - 0.5, anchors[:, 1] - 0.5, anchors[:, 0] + 0.5, anchors[:, 1] + 0.5], 1)[order]
    kind[:n], value[:n] = kinds[order], best[order]
    expected = np.concatenate([where.reshape(-1), kind, value, [n]]).astype(np.float32)
    check(form, inputs, expected.view(np.uint8), at_end)
