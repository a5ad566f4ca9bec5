"""Postprocessing of single-shot detectors (SSD): decode boxes from anchors, then non-maximum suppression.

Lives here: the selector of Detection, its families.  Not here: overlaps and greedy selection (nms.py).

Boxes are decoded lazily, in float64 like the reference. If an anchor has a negative height or width, the kernel fails
and the reference reports the error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f32, f64, i32, i64, ptr, u8
from ..loops.domain_ops import Detection
from ..target import host
from . import NoKernel, selector
from .exponential import exp_f64
from .nms import FIELDS, Box, SelectedBoxes, candidate, greedy, with_area

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


class DecodedBoxes:
    """The boxes of the anchors, each decoded once. decoded: a flag for each box."""

    def __init__(
        self,
        codes: Pointer,
        depth: Value,
        anchors: Pointer,
        decoded: Pointer,
        memory: Pointer,
        scales: tuple[Value, Value, Value, Value],
    ) -> None:
        self.codes, self.depth, self.anchors = codes, depth, anchors
        self.decoded, self.memory, self.scales = decoded, memory, scales

    def box(self, i: Any) -> Box:
        """Return a box; decode it on first use."""
        fields = self.memory + FIELDS * i
        if self.decoded[i] == 0:
            code, anchor = self.codes + i * self.depth, self.anchors + 4 * i
            y, x, h, w = (code[k].to(f64) / self.scales[k].to(f64) for k in range(4))
            ay, ax, ah, aw = (anchor[k].to(f64) for k in range(4))
            ym, xm = (y * ah + ay).to(f32), (x * aw + ax).to(f32)
            hh, hw = (0.5 * exp_f64(h) * ah).to(f32), (0.5 * exp_f64(w) * aw).to(f32)
            for k, v in enumerate(with_area(ym - hh, xm - hw, ym + hh, xm + hw)):
                fields[k] = v
            self.decoded[i] = kl.value(1, u8)
        return fields[0], fields[1], fields[2], fields[3], fields[4]


def best_score(row: Pointer, classes: Value, lanes: int) -> Value:
    """Return the maximum of a row; NaN if it has any."""
    low = kl.full(f32, lanes, -math.inf)
    greatest, nan, k = low, kl.zeros(f32, lanes), kl.value(0)
    while k < classes:
        mask = kl.tail_mask(classes - k, lanes)
        v = kl.select(mask, row.load(k, lanes, mask), low)
        greatest = kl.maximum(v, greatest)
        nan = kl.select(v == v, nan, v)
        k = k + lanes
    return kl.select(kl.all(nan == nan), kl.reduce_max(greatest), math.nan)


def top_classes(row: Pointer, order: Pointer, classes: Value, k: Value) -> None:
    """Write the k classes with the highest scores to `order`, descending, with ties in the order of C++'s partial_sort.

    lite/customs/detection.py has the same algorithm.
    """
    for i in range(classes):
        order[i] = kl.value(i).to(i32)
    for back in range(k // 2):
        parent = k // 2 - 1 - back
        _sift_down_up(row, order, parent, k, order[parent])
    for i in range(k, classes):
        if row[order[i].to(i64)] > row[order[0].to(i64)]:
            entry = order[i]
            order[i] = order[0]
            _sift_down_up(row, order, 0, k, entry)
    for back in range(k - 1):
        last = k - 1 - back
        entry = order[last]
        order[last] = order[0]
        _sift_down_up(row, order, 0, last, entry)


def _sift_down_up(row: Pointer, heap: Pointer, top: Any, size: Value, entry: Value) -> None:
    """Move the hole at `top` down to a leaf, then insert `entry` and move it up."""
    top = kl.value(top)
    hole, child, value = top, top, row[entry.to(i64)]
    while child < (size - 1) // 2:
        right = 2 * child + 2
        child = kl.select(row[heap[right].to(i64)] > row[heap[right - 1].to(i64)], right - 1, right)
        heap[hole] = heap[child]
        hole = child
    if (size % 2 == 0) & (2 * child + 2 == size):
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    continuing = kl.value(1)
    while (hole > top) & (continuing != 0):
        parent = (hole - 1) // 2
        if row[heap[parent].to(i64)] > value:
            heap[hole] = heap[parent]
            hole = parent
        else:
            continuing = kl.value(0)
    heap[hole] = entry


def _clear(where: Pointer, classes: Pointer, values: Pointer, rows: Value) -> None:
    for k in range(rows):
        classes[k], values[k] = kl.value(0.0, f32), kl.value(0.0, f32)
        for c in range(4):
            where[4 * k + c] = kl.value(0.0, f32)


def _store_box(where: Pointer, row: Any, box: Box) -> None:
    for c in range(4):
        where[4 * row + c] = box[c]


@kl.family
def detect(
    work: Work,
    codes: ptr[f32],
    scores: ptr[f32],
    anchors: ptr[f32],
    where: ptr[f32],
    kinds: ptr[f32],
    values: ptr[f32],
    number: ptr[f32],
    memory: ptr[u8],
    n: i64,
    depth: i64,
    row_scores: i64,
    classes: i64,
    max_detections: i64,
    classes_per_box: i64,
    boxes_per_class: i64,
    room: i64,
    score_limit: f32,
    limit: f32,
    s0: f32,
    s1: f32,
    s2: f32,
    s3: f32,
    *,
    by_class: bool,
) -> Value:
    """Postprocess detections; one work item.

    memory: n int64; FIELDS float32 per box; SelectedBoxes; 4 lists of `max_detections` (by_class), or `classes` int32;
    n bytes. row_scores: scores of a row.
    """
    heap = memory.cast(i64, 8)
    boxes = (heap + n).cast(f32, 4)
    selected_memory = boxes + FIELDS * n
    lists = selected_memory + FIELDS * room
    decoded_flags = (lists + (4 * max_detections if by_class else classes)).cast(u8, 1)
    lanes = work.target.vector_bytes // 4
    failed = kl.value(0)
    for i in range(n):
        decoded_flags[i] = kl.value(0, u8)
        failed = kl.select((anchors[4 * i + 2] < 0.0) | (anchors[4 * i + 3] < 0.0), 1, failed)
    _clear(where, kinds, values, max_detections * classes_per_box)
    decoded, selected = (
        DecodedBoxes(codes, depth, anchors, decoded_flags, boxes, (s0, s1, s2, s3)),
        SelectedBoxes(selected_memory, room, lanes),
    )
    if by_class:
        count = _suppress_each_class(
            decoded,
            scores,
            heap,
            selected,
            lists,
            n,
            classes,
            max_detections,
            boxes_per_class,
            score_limit,
            limit,
            lanes,
        )
        best_scores, best_boxes, best_classes = _best_lists(lists, max_detections)
        for row in range(count):
            _store_box(where, row, decoded.box(best_boxes[row].to(i64)))
            kinds[row], values[row] = best_classes[row].to(f32), best_scores[row]
    else:
        count = _suppress_best_class(
            decoded,
            scores + (row_scores - classes),
            row_scores,
            heap,
            selected,
            lists.cast(i32, 4),
            where,
            kinds,
            values,
            n,
            classes,
            max_detections,
            classes_per_box,
            score_limit,
            limit,
            lanes,
        )
    number[0] = count.to(f32)
    return failed


def _suppress_best_class(
    decoded: DecodedBoxes,
    scores: Pointer,
    row_scores: Value,
    heap: Pointer,
    selected: SelectedBoxes,
    order: Pointer,
    where: Pointer,
    kinds: Pointer,
    values: Pointer,
    n: Value,
    classes: Value,
    max_detections: Value,
    classes_per_box: Value,
    score_limit: Value,
    limit: Value,
    lanes: int,
) -> Value:
    """Suppress boxes by their best score; write the best classes of each selected box."""
    size = kl.value(0)
    for i in range(n):
        score = best_score(scores + i * row_scores, classes, lanes)
        if score >= score_limit:
            heap[size] = candidate(score, i)
            size = size + 1
    num_classes = kl.minimum(classes_per_box, classes)

    def select(count: Any, i: Any) -> None:
        row = scores + i * row_scores
        top_classes(row, order, classes, num_classes)
        for j in range(num_classes):
            index = classes_per_box * count + j
            _store_box(where, index, decoded.box(i))
            kinds[index], values[index] = order[j].to(f32), row[order[j].to(i64)]

    return greedy(heap, size, max_detections, selected, decoded.box, select, limit, True)


def _best_lists(lists: Pointer, max_detections: Value) -> tuple[Pointer, Pointer, Pointer]:
    """Return the scores, boxes and classes of the best detections, which scratch memory begins with."""
    return lists, (lists + max_detections).cast(i32, 4), (lists + 2 * max_detections).cast(i32, 4)


def _suppress_each_class(
    decoded: DecodedBoxes,
    scores: Pointer,
    heap: Pointer,
    selected: SelectedBoxes,
    lists: Pointer,
    n: Value,
    classes: Value,
    max_detections: Value,
    boxes_per_class: Value,
    score_limit: Value,
    limit: Value,
    lanes: int,
) -> Value:
    """Suppress the boxes of each class separately; merge the best scores with their boxes and classes."""
    best_scores, best_boxes, best_classes = _best_lists(lists, max_detections)
    class_boxes = (lists + 3 * max_detections).cast(i32, 4)
    count, bound = kl.value(0), kl.value(-math.inf, f32)
    for c in range(classes):
        row = scores + c * n
        size, i = kl.value(0), kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            v = row.load(i, lanes, mask)
            if kl.any((v >= score_limit) & (v > bound) & mask):
                for j in range(i, kl.minimum(n, i + lanes)):
                    score = row[j]
                    if (score >= score_limit) & (score > bound):
                        heap[size] = candidate(score, j)
                        size = size + 1
            i = i + lanes

        def select(count: Any, i: Any) -> None:
            class_boxes[count] = i.to(i32)

        num_selected = greedy(
            heap, size, kl.minimum(boxes_per_class, max_detections), selected, decoded.box, select, limit, True
        )
        p, q, position = count - 1, num_selected - 1, count + num_selected - 1
        while q >= 0:  # merge from the end; earlier classes precede at equal scores
            box = class_boxes[q].to(i64)
            score = row[box]
            previous = kl.maximum(p, 0)
            keeps = (p >= 0) & (best_scores[previous] < score)
            if position < max_detections:
                best_scores[position] = kl.select(keeps, best_scores[previous], score)
                best_boxes[position] = kl.select(keeps, best_boxes[previous], box.to(i32))
                best_classes[position] = kl.select(keeps, best_classes[previous], kl.value(c).to(i32))
            p = kl.select(keeps, p - 1, p)
            q = kl.select(keeps, q, q - 1)
            position = position - 1
        count = kl.minimum(count + num_selected, max_detections)
        bound = kl.select(count == max_detections, best_scores[max_detections - 1], bound)
    return count


@selector(Detection)
def select_detection(form: Detection, build: Builder) -> None:
    """Build one step."""
    codes, scores, anchors = form.codes, form.scores, form.anchors
    n, depth = anchors.shape[0], codes.shape[-1]
    row_scores = scores.shape[0 if form.by_class else 1]
    if any(b.dtype is not f32 or b.parent is not None for b in (codes, scores, anchors)):
        raise NoKernel(f"codes {codes!r}, scores {scores!r}, anchors {anchors!r}")
    if anchors.shape != (n, 4) or codes.size != n * depth or scores.size != n * row_scores or not n < 1 << 31:
        raise NoKernel(f"codes {codes!r}, scores {scores!r}, anchors {anchors!r}")
    if not 0 < form.classes <= row_scores or form.most < 1 or form.several < 1 or form.each < 1:
        raise NoKernel(f"{form.classes} classes, {form.most} detections")
    room = min(n, form.most) + host().vector_bytes // 4
    lists = 4 * form.most if form.by_class else form.classes
    memory = build.temporary(8 * n + 4 * (FIELDS * (n + room) + lists) + n)
    y = build.pointer(form.output)
    words = [
        *map(build.pointer, (codes, scores, anchors)),
        *(y.moved(start) for _, start in form.results),
        memory,
        n,
        depth,
        row_scores,
        form.classes,
        form.most,
        form.several,
        form.each,
        room,
        form.least,
        form.threshold,
        *form.scales,
    ]
    build.step(detect.code(by_class=form.by_class), words, 1, chunk=1)
