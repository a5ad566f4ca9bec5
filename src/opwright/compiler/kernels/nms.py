"""Boxes without those that share too much with better ones.

Lives here: the selector of Suppression, its family; the greedy choice, which ssd_postprocess.py makes, too (`Boxes`,
`greedy`).
Not here: what boxes detectors mean (ssd_postprocess.py), heaps (sorting.py).

Candidates wait in a heap by their score; of equal scores the first box goes first. Who comes to the top is compared
with all that are chosen, whose corners lie in arrays of their own, a vector at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.image_ops import Suppression
from ..target import host
from . import NoKernel, selector
from .sorting import PLACES, heaped, key_of_float, sink

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

Box = tuple[Any, Any, Any, Any, Any]  # y1, x1, y2, x2 and the area
FIELDS = 5


def least_of(a: Any, b: Any) -> Any:
    """The smaller; NaN where one is NaN."""
    return kl.select(a != a, a, kl.minimum(a, b))


def greatest_of(a: Any, b: Any) -> Any:
    """The larger; NaN where one is NaN."""
    return kl.select(a != a, a, kl.maximum(a, b))


def area_of(y1: Any, x1: Any, y2: Any, x2: Any) -> Box:
    """A box with its area."""
    return y1, x1, y2, x2, (y2 - y1) * (x2 - x1)


def share_of(a: Box, b: Box) -> Any:
    """The area of both by that of either; 0 where one is flat."""
    height = least_of(a[2], b[2]) - greatest_of(a[0], b[0])
    width = least_of(a[3], b[3]) - greatest_of(a[1], b[1])
    both = kl.select(height < 0.0, 0.0, height) * kl.select(width < 0.0, 0.0, width)
    flat = (a[4] <= 0.0) | (b[4] <= 0.0)
    return kl.select(flat, 0.0, both / kl.select(flat, 1.0, a[4] + b[4] - both))


class Boxes:
    """The boxes chosen: FIELDS arrays of `room` float32 each."""

    def __init__(self, memory: Any, room: Any, lanes: int) -> None:
        self.memory, self.room, self.lanes = memory, room, lanes

    def put(self, i: Any, box: Box) -> None:
        for k, v in enumerate(box):
            self.memory[k * self.room + i] = v

    def get(self, i: Any) -> Box:
        y1, x1, y2, x2, area = (self.memory[k * self.room + i] for k in range(FIELDS))
        return y1, x1, y2, x2, area

    def covers(self, box: Box, count: Any, limit: Any, strict: bool) -> Any:
        """1 where one of the first `count` shares the limit (strict: more than that) with a box, else 0."""
        found, i = kl.value(0), kl.value(0)
        y1, x1, y2, x2, area = (v.splat(self.lanes) for v in box)
        while i < count:
            mask = kl.first(kl.minimum(count - i, self.lanes), self.lanes)
            a, b, c, d, e = (self.memory.load(k * self.room + i, self.lanes, mask) for k in range(FIELDS))
            u = share_of((y1, x1, y2, x2, area), (a, b, c, d, e))
            over = (u > limit if strict else u >= limit) & mask
            found = kl.select(kl.any(over), 1, found)
            i = kl.select(kl.any(over), count, i + self.lanes)
        return found


def first_of(p: Any, q: Any) -> Any:
    """Whether a candidate goes before another."""
    return p > q


def candidate(score: Any, i: Any) -> Any:
    """The entry of box i."""
    return (key_of_float(score) << 32) + (PLACES - i)


def box_of(entry: Any) -> Any:
    """The box of an entry."""
    return PLACES - (entry & PLACES)


def greedy(
    heap: Any,
    size: Any,
    most: Any,
    chosen: Boxes,
    at: Callable[[Any], Box],
    take: Callable[[Any, Any], None],
    limit: Any,
    strict: bool,
) -> Any:
    """Choose until nobody waits, or `most` are chosen; how many are. at(i): box i; take(count, i): it is chosen."""
    count, left = kl.value(0), kl.value(size)
    heaped(heap, left, first_of)
    while (left > 0) & (count < most):
        i = box_of(heap[0])
        left = left - 1
        sink(heap, 0, left, heap[left], first_of)
        box = at(i)
        if chosen.covers(box, count, limit, strict) == 0:
            chosen.put(count, box)
            take(count, i)
            count = count + 1
    return count


@kl.family
def suppress_boxes(
    work,
    boxes: ptr[f32],
    scores: ptr[f32],
    limit: ptr[f32],
    least: ptr[f32],
    sigma: ptr[f32],
    places: ptr[i32],
    kept: ptr[f32],
    number: ptr[i32],
    memory: ptr[u8],
    n: i64,
    most: i64,
    room: i64,
    *,
    soft: bool,
):
    """One item. memory: n int64, (soft) n float32 and n int32, then Boxes of the room for them."""
    heap = memory.cast(i64, 8)
    now = (heap + n).cast(f32, 4)
    begin = (now + (n if soft else 0)).cast(i32, 4)
    lanes = work.target.vector_bytes // 4
    chosen = Boxes((begin + (n if soft else 0)).cast(f32, 4), room, lanes)
    threshold, lowest = limit[0], least[0]
    for k in range(most):
        places[k] = kl.value(0, i32)
        if soft:
            kept[k] = kl.value(0.0, f32)
    size = kl.value(0)
    for i in range(n):
        score = scores[i]
        if score > lowest:
            heap[size] = candidate(score, i)
            size = size + 1
        if soft:
            now[i] = score
            begin[i] = kl.value(0, i32)

    def at(i: Any) -> Box:
        b = boxes + 4 * i
        y, x, v, u = b[0], b[1], b[2], b[3]
        return area_of(least_of(y, v), least_of(x, u), greatest_of(y, v), greatest_of(x, u))

    def take(count: Any, i: Any) -> None:
        places[count] = i.to(i32)

    failed = kl.value(0)
    if soft:
        failed = kl.select(sigma[0] >= 0.0, failed, 1)
        count = _soft(heap, size, most, chosen, at, threshold, lowest, sigma[0], now, begin, places, kept)
    else:
        count = greedy(heap, size, most, chosen, at, take, threshold, False)
    number[0] = count.to(i32)
    return failed


def _soft(
    heap: Any,
    size: Any,
    most: Any,
    chosen: Boxes,
    at: Any,
    limit: Any,
    lowest: Any,
    sigma: Any,
    now: Any,
    begin: Any,
    places: Any,
    kept: Any,
) -> Any:
    """As greedy, of scores that fall: a box whose score fell waits again, and is compared with those chosen since.
    now: the scores; begin: how many were chosen when they fell last."""
    falls = sigma > 0.0
    factor = kl.select(falls, -0.5 / kl.select(falls, sigma, 1.0), 0.0)
    count = kl.value(0)
    heaped(heap, size, first_of)
    while (size > 0) & (count < most):
        i = box_of(heap[0])
        size = size - 1
        sink(heap, 0, size, heap[size], first_of)
        box, original = at(i), now[i]
        score, covered, falling = original, kl.value(0), kl.select(falls, kl.value(1), 0)
        j, first = count - 1, begin[i].to(i64)
        while j >= first:
            u = share_of(box, chosen.get(j))
            covered = kl.select(u >= limit, 1, covered)
            falling = kl.select(u >= limit, 0, falling)
            if falling != 0:
                score = score * kl.exp(factor * u * u)
                falling = kl.select(score <= lowest, 0, falling)
            j = j - 1
        if covered == 0:
            if score == original:
                chosen.put(count, box)
                places[count] = i.to(i32)
                kept[count] = score
                count = count + 1
            elif score > lowest:
                now[i] = score
                begin[i] = count.to(i32)
                last = size
                heap[last] = candidate(score, i)
                size = size + 1
                _rise(heap, last)
    return count


def _rise(heap: Any, last: Any) -> None:
    """Bring the last entry of a heap to its place."""
    entry, hole = heap[last], kl.value(last)
    going = kl.value(1)
    while (hole > 0) & (going != 0):
        above = (hole - 1) // 2
        other = heap[above]
        if entry > other:
            heap[hole] = other
            hole = above
        else:
            going = kl.value(0)
    heap[hole] = entry


@selector(Suppression)
def select_suppression(form: Suppression, build: Builder) -> None:
    """One step."""
    n, soft = form.boxes.shape[0], bool(form.sigma)
    (places, first), *scores, (number, last) = form.results
    operands = (form.boxes, form.scores, form.threshold, form.least, *form.sigma)
    if any(b.dtype is not f32 or b.parent is not None for b in operands) or len(scores) != soft:
        raise NoKernel(f"boxes {form.boxes!r}")
    if form.boxes.shape != (n, 4) or form.scores.shape != (n,) or not n < 1 << 31 or number.size != 1:
        raise NoKernel(f"boxes {form.boxes!r} and scores {form.scores!r}")
    most = math.prod(places.shape)
    lanes = host().vector_bytes // 4
    room = min(n, most) + lanes
    memory = build.temporary(8 * n + (8 * n if soft else 0) + 4 * FIELDS * room)
    y = build.pointer(form.output)
    kept = y.moved(scores[0][1]) if soft else 0
    words = [
        *map(build.pointer, operands),
        *([] if soft else [0]),
        y.moved(first),
        kept,
        y.moved(last),
        memory,
        n,
        most,
        room,
    ]
    build.step(suppress_boxes.code(soft=soft), words, 1, chunk=1)
