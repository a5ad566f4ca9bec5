"""Detection of objects: boxes, classes and scores from the output of a detector: TFLite_Detection_PostProcess.

Lives here: the operator, and `partial_sort`, which selects the k greatest in the order of the official kernels.
Not here: NON_MAX_SUPPRESSION_V4 and _V5 (lite/ops/selection.py).

Official kernels select the first k by C++'s `partial_sort`, which is not stable: the order of equal values, such as the
scores of quantized models, follows from its heap. `partial_sort` performs the same steps: it builds a heap of the first
k with the least at the root, replaces the root by each greater element, and takes the heap apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.box_suppression import BoxAreas, Overlaps, uncovered
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.quantized.operand import Operand
from ..ops.shapes import bounded, refuse, same, text
from .definition import custom_operator

_F = (float32,)


def decoded(op: Any, codes: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Decode boxes to (ymin, xmin, ymax, xmax), float32 [n, 4]. codes: (y, x, h, w, ...) by anchor (y, x, h, w)."""
    y, x, h, w = (codes[:, i].astype(np.float64) for i in range(4))
    ay, ax, ah, aw = (anchors[:, i].astype(np.float64) for i in range(4))
    with np.errstate(all="ignore"):
        middles = [(y / np.float32(op.y_scale) * ah + ay), (x / np.float32(op.x_scale) * aw + ax)]
        halves = [0.5 * np.exp(h / np.float32(op.h_scale)) * ah, 0.5 * np.exp(w / np.float32(op.w_scale)) * aw]
        ym, xm = (m.astype(np.float32) for m in middles)
        hh, hw = (m.astype(np.float32) for m in halves)
        return np.stack([ym - hh, xm - hw, ym + hh, xm + hw], 1)


def non_max_suppression(op: Any, iou: Overlaps, scores: np.ndarray, max_count: int, above: Any = -np.inf) -> list[int]:
    """Return the boxes kept by non-maximum suppression, in descending order of scores.

    above: scores must exceed this one.
    """
    candidates = np.flatnonzero((scores >= np.float32(op.nms_score_threshold)) & (scores > above))
    order = candidates[np.argsort(-scores[candidates], kind="stable")]
    limit = np.float32(op.nms_iou_threshold)
    selected: list[int] = uncovered(order, lambda i, better: iou(i, better) > limit, max_count).tolist()
    return selected


def detections(op: Any, codes: np.ndarray, scores: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the four outputs.

    codes: float32 [n, 4 or more]; scores: [n, classes, background first]; anchors: [n, 4]
    """
    boxes = decoded(op, codes, anchors)
    if np.any((boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3])):
        raise refuse("a box ends before it begins", wanted="anchors of positive size, positive scales")
    scores = scores[:, scores.shape[1] - op.num_classes :]
    rows = op.max_detections * op.max_classes_per_detection
    where, classes, values = np.zeros((1, rows, 4), np.float32), *np.zeros((2, 1, rows), np.float32)
    choose = _by_class if op.use_regular_nms else _by_best_class
    count, detected = choose(op, BoxAreas(boxes).iou, scores)
    for row, box, kind in detected:
        where[0, row], classes[0, row], values[0, row] = boxes[box], kind, scores[box, kind]
    return where, classes, values, np.array([count], np.float32)


def _by_best_class(op: Any, iou: Overlaps, scores: Any) -> tuple[int, list[tuple[int, int, int]]]:
    """Suppress boxes by their best class; return the best classes of the boxes kept."""
    n = min(op.max_classes_per_detection, op.num_classes)
    best = scores.max(1) if len(scores) else np.zeros(0, np.float32)
    selected = non_max_suppression(op, iou, best, op.max_detections)
    detected = [
        (op.max_classes_per_detection * i + j, box, kind)
        for i, box in enumerate(selected)
        for j, kind in enumerate(partial_sort(scores[box], n))
    ]
    return len(selected), detected


def _by_class(op: Any, iou: Overlaps, scores: Any) -> tuple[int, list[tuple[int, int, int]]]:
    """Suppress boxes class by class; return the best of all that are kept."""
    best: list[tuple[int, int]] = []
    max_count, above = min(op.detections_per_class, op.max_detections), -np.inf  # no class contributes more
    for kind in range(op.num_classes):
        best += [(box, kind) for box in non_max_suppression(op, iou, scores[:, kind], max_count, above)]
        best = sorted(best, key=lambda detected: -scores[detected])[
            : op.max_detections
        ]  # stable: the first class goes first
        if len(best) == op.max_detections and best:
            above = scores[best[-1]]  # ties come after it
    return len(best), [(row, box, kind) for row, (box, kind) in enumerate(best)]


def _quantized(op: Any, codes: Operand, scores: Operand, anchors: Operand, *outputs: Operand) -> Callable[..., Any]:
    """Build the kernel for uint8: codes and anchors are both quantized or both float, scores independently."""
    kinds = (codes.type, scores.type, anchors.type)
    if kinds[0] != kinds[2] or any(k not in ("FLOAT32", "UINT8") for k in kinds):
        raise UnimplementedError(
            op=op.operator.name,
            what="no kernel for these types",
            found=", ".join(kinds),
            wanted="FLOAT32 or UINT8, boxes and anchors alike",
        )

    def real(operand: Operand, q: np.ndarray) -> np.ndarray:
        return q if operand.type == "FLOAT32" else operand.centred(q, np.int32).astype(np.float32) * operand.scale

    def run(c: np.ndarray, s: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
        return detections(op, real(codes, c)[0], real(scores, s)[0], real(anchors, a))

    return run


@custom_operator("TFLite_Detection_PostProcess")
class DetectionPostProcessOp(LiteDefinition):
    """Boxes, classes and scores of detections, the best first, after non-maximum suppression.

    .. math:: y_c = y / s_y h_a + y_a, \\quad h = e^{h / s_h} h_a, \\quad
              box = (y_c - h / 2, x_c - w / 2, y_c + h / 2, x_c + w / 2)

    codes: [1, n, 4 or more], of which (y, x, h, w) count; scores: [1, n, num_classes, or one more with the background
    first]; anchors: [n, 4] as (y, x, h, w). float32, or uint8 with scales.
    boxes: float32 [1, m, 4], classes and scores: [1, m], count: [1]; m = max_detections * max_classes_per_detection.
    Rows that hold nothing are 0. use_regular_nms: overlaps within each class by itself, of which detections_per_class
    are kept; else by each box's best class, and of a box kept the max_classes_per_detection best classes are given.
    """

    codes = Input(_F, rank=3)
    scores = Input(_F, rank=3)
    anchors = Input(_F, rank=2)
    boxes = Output(dtype=float32)
    classes = Output(dtype=float32)
    values = Output(dtype=float32)
    count = Output(dtype=float32)
    max_detections = Attr(int, default=0)
    max_classes_per_detection = Attr(int, default=0)
    detections_per_class = Attr(int, default=100)
    use_regular_nms = Attr(bool, default=False)
    nms_score_threshold = Attr(float, default=0.0)
    nms_iou_threshold = Attr(float, default=0.0)
    num_classes = Attr(int, default=0)
    y_scale = Attr(float, default=0.0)
    x_scale = Attr(float, default=0.0)
    h_scale = Attr(float, default=0.0)
    w_scale = Attr(float, default=0.0)
    quantized = _quantized

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
        codes, scores, anchors = op.codes.spec.shape, op.scores.spec.shape, op.anchors.spec.shape
        _check_options(op)
        depth, classes = codes[2], scores[2]
        if not same(codes[0], 1) or not same(scores[0], 1):
            raise refuse(
                "there is more than one image",
                found={"codes": text(codes), "scores": text(scores)},
                wanted="a batch of 1",
            )
        if not same(codes[1], scores[1], anchors[0]) or not same(anchors[1], 4) or (depth is not None and depth < 4):
            raise refuse(
                "codes, scores and anchors do not fit each other",
                wanted="[1,n,4 or more], [1,n,c], [n,4]",
                found={"codes": text(codes), "scores": text(scores), "anchors": text(anchors)},
            )
        if classes is not None and not 0 <= classes - op.num_classes <= 1:
            raise refuse(
                "scores have another number of classes",
                found=classes,
                wanted=f"num_classes, {op.num_classes}, or one more for the background",
            )
        rows = op.max_detections * op.max_classes_per_detection
        bounded((rows, 4), float32, "the list of boxes")
        return (
            TensorSpec((1, rows, 4), float32),
            TensorSpec((1, rows), float32),
            TensorSpec((1, rows), float32),
            TensorSpec((1,), float32),
        )

    def compute(op: Any, codes: np.ndarray, scores: np.ndarray, anchors: np.ndarray) -> tuple[np.ndarray, ...]:
        return detections(op, codes[0], scores[0], anchors)


def _check_options(op: Any) -> None:
    minimums = (
        ("max_detections", 0),
        ("num_classes", 1),
        ("max_classes_per_detection", 1),
        ("detections_per_class", 1),
    )
    for name, low in minimums:
        if getattr(op, name) < low:
            raise refuse(f"{name} is too small", found=getattr(op, name), wanted=f"at least {low}")
    if not 0 < op.nms_iou_threshold <= 1:
        raise refuse("nms_iou_threshold is out of its range", found=op.nms_iou_threshold, wanted="above 0, at most 1")
    for name in ("y_scale", "x_scale", "h_scale", "w_scale"):
        if not getattr(op, name) > 0:
            raise refuse(f"{name} is not positive", found=getattr(op, name), wanted="a number above 0")


def partial_sort(values: np.ndarray, k: int) -> list[int]:
    """Return the indices of the k greatest in descending order. values: float32 [n]; 1 <= k <= n."""
    if k == 1:
        return [int(np.argmax(values))]
    if len(np.unique(values)) == len(values):
        return [int(i) for i in np.argsort(-values, kind="stable")[:k]]
    listed = values.tolist()
    return _heap_select(listed, list(range(len(listed))), k)


def _heap_select(values: list[float], indices: list[int], k: int) -> list[int]:
    for parent in range(k // 2 - 1, -1, -1):
        _sift(values, indices, parent, k, indices[parent])
    for i in range(k, len(indices)):
        if values[indices[i]] > values[indices[0]]:
            index, indices[i] = indices[i], indices[0]
            _sift(values, indices, 0, k, index)
    for last in range(k - 1, 0, -1):
        index, indices[last] = indices[last], indices[0]
        _sift(values, indices, 0, last, index)
    return indices[:k]


def _sift(values: list[float], heap: list[Any], hole: int, size: int, index: int) -> None:
    """Put `taken` where the heap [0, size) has a hole: the hole goes down to a leaf, then `taken` rises from there."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * child + 2
        if values[heap[child]] > values[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and values[heap[(hole - 1) // 2]] > values[index]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = index
