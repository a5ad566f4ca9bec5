"""Non-maximum suppression of boxes.

Lives here: the selector of Suppression, its family; the greedy algorithm (`SelectedBoxes`, `greedy`), also used by
ssd_postprocess.py.
Not here: decoding the boxes of detectors (ssd_postprocess.py), heaps (sorting.py).

Candidates are in a heap ordered by score, equal scores by box number. The top candidate is compared with all selected
boxes, whose coordinates are in separate arrays, one vector at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.domain_ops import Suppression
from ..target import host
from . import NoKernel, selector
from .sorting import POSITION_MASK, heapify, key_of_float, sink

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

Box: TypeAlias = "tuple[Value, Value, Value, Value, Value]"  # y1, x1, y2, x2 and the area
FIELDS = 5


def min_of(a: Value, b: Value) -> Value:
    """Return the smaller operand; NaN if either is NaN."""
    return kl.select(a != a, a, kl.minimum(a, b))


def max_of(a: Value, b: Value) -> Value:
    """Return the larger operand; NaN if either is NaN."""
    return kl.select(a != a, a, kl.maximum(a, b))


def with_area(y1: Value, x1: Value, y2: Value, x2: Value) -> Box:
    """Return a box with its area."""
    return y1, x1, y2, x2, (y2 - y1) * (x2 - x1)


def intersection_over_union(a: Box, b: Box) -> Value:
    """Return the intersection over union of two boxes; 0 if one has no area."""
    height = min_of(a[2], b[2]) - max_of(a[0], b[0])
    width = min_of(a[3], b[3]) - max_of(a[1], b[1])
    both = kl.select(height < 0.0, 0.0, height) * kl.select(width < 0.0, 0.0, width)
    flat = (a[4] <= 0.0) | (b[4] <= 0.0)
    return kl.select(flat, 0.0, both / kl.select(flat, 1.0, a[4] + b[4] - both))


class SelectedBoxes:
    """The selected boxes: FIELDS arrays of `room` float32 each."""

    def __init__(self, memory: Pointer, room: Any, lanes: int) -> None:
        self.memory, self.room, self.lanes = memory, room, lanes

    def put(self, i: Any, box: Box) -> None:
        for k, v in enumerate(box):
            self.memory[k * self.room + i] = v

    def get(self, i: Any) -> Box:
        y1, x1, y2, x2, area = (self.memory[k * self.room + i] for k in range(FIELDS))
        return y1, x1, y2, x2, area

    def overlaps(self, box: Box, count: Value, limit: Value, strict: bool) -> Value:
        """Return 1 if a box overlaps one of the first `count` by the limit (strict: by more), else 0."""
        any_overlap, i = kl.value(0), kl.value(0)
        y1, x1, y2, x2, area = (v.splat(self.lanes) for v in box)
        while i < count:
            mask = kl.tail_mask(count - i, self.lanes)
            a, b, c, d, e = (self.memory.load(k * self.room + i, self.lanes, mask) for k in range(FIELDS))
            u = intersection_over_union((y1, x1, y2, x2, area), (a, b, c, d, e))
            over = (u > limit if strict else u >= limit) & mask
            any_overlap = kl.select(kl.any(over), 1, any_overlap)
            i = kl.select(kl.any(over), count, i + self.lanes)
        return any_overlap


def precedes(p: Value, q: Value) -> Value:
    """Return whether a candidate precedes another."""
    return p > q


def candidate(score: Value, i: Value | int) -> Value:
    """Return the heap entry of box i."""
    return (key_of_float(score) << 32) + (POSITION_MASK - i)


def box_number(entry: Value) -> Value:
    """Return the number of the box of a heap entry."""
    return POSITION_MASK - (entry & POSITION_MASK)


def greedy(
    heap: Pointer,
    size: Any,
    max_count: Any,
    selected: SelectedBoxes,
    box_of: Callable[[Value], Box],
    select: Callable[[Value, Value], None],
    limit: Value,
    strict: bool,
) -> Value:
    """Select boxes until no candidate remains or `max_count` are selected; return their number.

    box_of(i): returns box i; select(count, i): called for each selected box.
    """
    count, remaining = kl.value(0), kl.value(size)
    heapify(heap, remaining, precedes)
    while (remaining > 0) & (count < max_count):
        i = box_number(heap[0])
        remaining = remaining - 1
        sink(heap, 0, remaining, heap[remaining], precedes)
        box = box_of(i)
        if selected.overlaps(box, count, limit, strict) == 0:
            selected.put(count, box)
            select(count, i)
            count = count + 1
    return count


@kl.family
def suppress_boxes(
    work: Work,
    boxes: ptr[f32],
    scores: ptr[f32],
    limit: ptr[f32],
    score_limit: ptr[f32],
    sigma: ptr[f32],
    indices: ptr[i32],
    selected_scores: ptr[f32],
    valid: ptr[i32],
    memory: ptr[u8],
    n: i64,
    max_count: i64,
    room: i64,
    *,
    soft: bool,
) -> Value:
    """Select boxes; one work item. memory: n int64, (soft) n float32 and n int32, then SelectedBoxes."""
    heap = memory.cast(i64, 8)
    soft_scores = (heap + n).cast(f32, 4)
    compared = (soft_scores + (n if soft else 0)).cast(i32, 4)
    lanes = work.target.vector_bytes // 4
    selected = SelectedBoxes((compared + (n if soft else 0)).cast(f32, 4), room, lanes)
    threshold, lowest_score = limit[0], score_limit[0]
    for k in range(max_count):
        indices[k] = kl.value(0, i32)
        if soft:
            selected_scores[k] = kl.value(0.0, f32)
    size = kl.value(0)
    for i in range(n):
        score = scores[i]
        if score > lowest_score:
            heap[size] = candidate(score, i)
            size = size + 1
        if soft:
            soft_scores[i] = score
            compared[i] = kl.value(0, i32)

    def box_of(i: Value) -> Box:
        b = boxes + 4 * i
        y, x, v, u = b[0], b[1], b[2], b[3]
        return with_area(min_of(y, v), min_of(x, u), max_of(y, v), max_of(x, u))

    def select(count: Value, i: Value) -> None:
        indices[count] = i.to(i32)

    failed = kl.value(0)
    if soft:
        failed = kl.select(sigma[0] >= 0.0, failed, 1)
        count = _soft(
            heap,
            size,
            max_count,
            selected,
            box_of,
            threshold,
            lowest_score,
            sigma[0],
            soft_scores,
            compared,
            indices,
            selected_scores,
        )
    else:
        count = greedy(heap, size, max_count, selected, box_of, select, threshold, False)
    valid[0] = count.to(i32)
    return failed


def _soft(
    heap: Pointer,
    size: Value,
    max_count: Value,
    selected: SelectedBoxes,
    box_of: Callable[[Value], Box],
    limit: Value,
    score_limit: Value,
    sigma: Value,
    scores: Pointer,
    compared: Pointer,
    indices: Pointer,
    selected_scores: Pointer,
) -> Value:
    """Select boxes by soft non-maximum suppression.

    A candidate whose score decays returns to the heap and is later compared with the boxes selected since.
    scores: the decayed scores; compared: the number of boxes compared so far.
    """
    decays = sigma > 0.0
    factor = kl.select(decays, -0.5 / kl.select(decays, sigma, 1.0), 0.0)
    count = kl.value(0)
    heapify(heap, size, precedes)
    while (size > 0) & (count < max_count):
        i = box_number(heap[0])
        size = size - 1
        sink(heap, 0, size, heap[size], precedes)
        box, original = box_of(i), scores[i]
        score, covered, decaying = original, kl.value(0), kl.select(decays, kl.value(1), 0)
        j, first = count - 1, compared[i].to(i64)
        while j >= first:
            u = intersection_over_union(box, selected.get(j))
            covered = kl.select(u >= limit, 1, covered)
            decaying = kl.select(u >= limit, 0, decaying)
            if decaying != 0:
                score = score * kl.exp(factor * u * u)
                decaying = kl.select(score <= score_limit, 0, decaying)
            j = j - 1
        if covered == 0:
            if score == original:
                selected.put(count, box)
                indices[count] = i.to(i32)
                selected_scores[count] = score
                count = count + 1
            elif score > score_limit:
                scores[i] = score
                compared[i] = count.to(i32)
                last = size
                heap[last] = candidate(score, i)
                size = size + 1
                _sift_up(heap, last)
    return count


def _sift_up(heap: Pointer, last: Value) -> None:
    """Move the last entry of a heap up to its position."""
    entry, hole = heap[last], kl.value(last)
    active = kl.value(1)
    while (hole > 0) & (active != 0):
        parent = (hole - 1) // 2
        other = heap[parent]
        if entry > other:
            heap[hole] = other
            hole = parent
        else:
            active = kl.value(0)
    heap[hole] = entry


@selector(Suppression)
def select_suppression(form: Suppression, build: Builder) -> None:
    """Build one step."""
    n, soft = form.boxes.shape[0], bool(form.sigma)
    (indices, first), *scores, (valid, last) = form.results
    operands = (form.boxes, form.scores, form.threshold, form.least, *form.sigma)
    if any(b.dtype is not f32 or b.parent is not None for b in operands) or len(scores) != soft:
        raise NoKernel(f"boxes {form.boxes!r}")
    if form.boxes.shape != (n, 4) or form.scores.shape != (n,) or not n < 1 << 31 or valid.size != 1:
        raise NoKernel(f"boxes {form.boxes!r} and scores {form.scores!r}")
    max_count = math.prod(indices.shape)
    lanes = host().vector_bytes // 4
    room = min(n, max_count) + lanes
    memory = build.temporary(8 * n + (8 * n if soft else 0) + 4 * FIELDS * room)
    y = build.pointer(form.output)
    selected_scores = y.moved(scores[0][1]) if soft else 0
    words = [
        *map(build.pointer, operands),
        *([] if soft else [0]),
        y.moved(first),
        selected_scores,
        y.moved(last),
        memory,
        n,
        max_count,
        room,
    ]
    build.step(suppress_boxes.code(soft=soft), words, 1, chunk=1)
