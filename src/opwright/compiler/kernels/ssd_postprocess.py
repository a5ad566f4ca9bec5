"""Boxes of detected objects, from what a detector says of its anchors.

Lives here: the selector of Detection, its families.  Not here: overlaps and the greedy choice (nms.py).

A box is worked out when it is first asked for: in float64, as the reference does. Where an anchor's height or width is
below 0 the kernel fails, and the reference says what is wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f32, f64, i32, i64, ptr, u8
from ..loops.image_ops import Detection
from ..target import host
from . import NoKernel, selector
from .nms import FIELDS, Box, Boxes, area_of, candidate, greedy

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
EXP = tuple(1.0 / math.factorial(k) for k in range(14))
"""The series of exp, within 1e-17 of it where |r| <= ln 2 / 2."""


def wide_exp(x: Any) -> Any:
    """exp of float64, within 1e-16 of it; 0 below -708, where float32 has been 0 for long."""
    held = kl.select(x < 710.0, kl.select(x > -708.0, x, -708.0), 710.0)
    n = kl.round_even(held * LOG2E)
    r = (held - n * LN2_HIGH) - n * LN2_LOW
    y = kl.value(EXP[-1], f64)
    for c in reversed(EXP[:-1]):
        y = y * r + c
    half = kl.bitcast(((n.to(i64) - 1) + 1023) << 52, f64)  # 2^(n - 1): 2^1024 has no float64
    y = y * half * 2.0
    y = kl.select(x > -708.0, y, 0.0)
    return kl.select(x == x, y, x)


class Decoded:
    """The boxes of the anchors; each is worked out once."""

    def __init__(self, codes: Any, depth: Any, anchors: Any, known: Any, memory: Any, scales: Any) -> None:
        self.codes, self.depth, self.anchors = codes, depth, anchors
        self.known, self.memory, self.scales = known, memory, scales

    def box(self, i: Any) -> Box:
        held = self.memory + FIELDS * i
        if self.known[i] == 0:
            code, anchor = self.codes + i * self.depth, self.anchors + 4 * i
            y, x, h, w = (code[k].to(f64) / self.scales[k].to(f64) for k in range(4))
            ay, ax, ah, aw = (anchor[k].to(f64) for k in range(4))
            ym, xm = (y * ah + ay).to(f32), (x * aw + ax).to(f32)
            hh, hw = (0.5 * wide_exp(h) * ah).to(f32), (0.5 * wide_exp(w) * aw).to(f32)
            for k, v in enumerate(area_of(ym - hh, xm - hw, ym + hh, xm + hw)):
                held[k] = v
            self.known[i] = kl.value(1, u8)
        return held[0], held[1], held[2], held[3], held[4]


def best_of(row: Any, classes: Any, lanes: int) -> Any:
    """The greatest of a row; NaN where one is NaN."""
    low = kl.full(f32, lanes, -math.inf)
    greatest, nan, k = low, kl.zeros(f32, lanes), kl.value(0)
    while k < classes:
        mask = kl.first(kl.minimum(classes - k, lanes), lanes)
        v = kl.select(mask, row.load(k, lanes, mask), low)
        greatest = kl.maximum(v, greatest)
        nan = kl.select(v == v, nan, v)
        k = k + lanes
    return kl.select(kl.all(nan == nan), kl.reduce_max(greatest), math.nan)


def first_classes(row: Any, order: Any, classes: Any, k: Any) -> None:
    """The first k classes of a row by falling score into order, equal scores as C++'s partial_sort leaves them: see
    lite/customs/arrays.py, which takes the same steps."""
    for i in range(classes):
        order[i] = kl.value(i).to(i32)
    for back in range(k // 2):
        parent = k // 2 - 1 - back
        _sift(row, order, parent, k, order[parent])
    for i in range(k, classes):
        if row[order[i].to(i64)] > row[order[0].to(i64)]:
            taken = order[i]
            order[i] = order[0]
            _sift(row, order, 0, k, taken)
    for back in range(k - 1):
        last = k - 1 - back
        taken = order[last]
        order[last] = order[0]
        _sift(row, order, 0, last, taken)


def _sift(row: Any, heap: Any, top: Any, size: Any, taken: Any) -> None:
    """The hole at `top` goes down to a leaf, then `taken` rises from there."""
    top = kl.value(top)
    hole, child, value = top, top, row[taken.to(i64)]
    while child < (size - 1) // 2:
        right = 2 * child + 2
        child = kl.select(row[heap[right].to(i64)] > row[heap[right - 1].to(i64)], right - 1, right)
        heap[hole] = heap[child]
        hole = child
    if (size % 2 == 0) & (2 * child + 2 == size):
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    going = kl.value(1)
    while (hole > top) & (going != 0):
        above = (hole - 1) // 2
        if row[heap[above].to(i64)] > value:
            heap[hole] = heap[above]
            hole = above
        else:
            going = kl.value(0)
    heap[hole] = taken


def _cleared(where: Any, classes: Any, values: Any, rows: Any) -> None:
    for k in range(rows):
        classes[k], values[k] = kl.value(0.0, f32), kl.value(0.0, f32)
        for c in range(4):
            where[4 * k + c] = kl.value(0.0, f32)


def _put(where: Any, row: Any, box: Box) -> None:
    for c in range(4):
        where[4 * row + c] = box[c]


@kl.family
def detect(
    work,
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
    every: i64,
    classes: i64,
    most: i64,
    several: i64,
    each: i64,
    room: i64,
    least: f32,
    limit: f32,
    s0: f32,
    s1: f32,
    s2: f32,
    s3: f32,
    *,
    by_class: bool,
):
    """One item. memory: n int64; FIELDS float32 a box; Boxes of the room; 4 of each of `most` (by_class), or int32 of
    `classes`; n bytes. every: scores of a row."""
    heap = memory.cast(i64, 8)
    boxes = (heap + n).cast(f32, 4)
    held = boxes + FIELDS * n
    lists = held + FIELDS * room
    known = (lists + (4 * most if by_class else classes)).cast(u8, 1)
    lanes = work.target.vector_bytes // 4
    failed = kl.value(0)
    for i in range(n):
        known[i] = kl.value(0, u8)
        failed = kl.select((anchors[4 * i + 2] < 0.0) | (anchors[4 * i + 3] < 0.0), 1, failed)
    _cleared(where, kinds, values, most * several)
    decoded, chosen = Decoded(codes, depth, anchors, known, boxes, (s0, s1, s2, s3)), Boxes(held, room, lanes)
    if by_class:
        count = _by_class(decoded, scores, heap, chosen, lists, n, classes, most, each, least, limit, lanes)
        best, own, kind = lists, (lists + most).cast(i32, 4), (lists + 2 * most).cast(i32, 4)
        for row in range(count):
            _put(where, row, decoded.box(own[row].to(i64)))
            kinds[row], values[row] = kind[row].to(f32), best[row]
    else:
        count = _by_best_class(
            decoded,
            scores + (every - classes),
            every,
            heap,
            chosen,
            lists.cast(i32, 4),
            where,
            kinds,
            values,
            n,
            classes,
            most,
            several,
            least,
            limit,
            lanes,
        )
    number[0] = count.to(f32)
    return failed


def _by_best_class(
    decoded: Decoded,
    scores: Any,
    every: Any,
    heap: Any,
    chosen: Boxes,
    order: Any,
    where: Any,
    kinds: Any,
    values: Any,
    n: Any,
    classes: Any,
    most: Any,
    several: Any,
    least: Any,
    limit: Any,
    lanes: int,
) -> Any:
    """Each box counts with its best class; the best classes of those chosen are given."""
    size = kl.value(0)
    for i in range(n):
        score = best_of(scores + i * every, classes, lanes)
        if score >= least:
            heap[size] = candidate(score, i)
            size = size + 1
    given = kl.minimum(several, classes)

    def take(count: Any, i: Any) -> None:
        row = scores + i * every
        first_classes(row, order, classes, given)
        for j in range(given):
            at = several * count + j
            _put(where, at, decoded.box(i))
            kinds[at], values[at] = order[j].to(f32), row[order[j].to(i64)]

    return greedy(heap, size, most, chosen, decoded.box, take, limit, True)


def _by_class(
    decoded: Decoded,
    scores: Any,
    heap: Any,
    chosen: Boxes,
    lists: Any,
    n: Any,
    classes: Any,
    most: Any,
    each: Any,
    least: Any,
    limit: Any,
    lanes: int,
) -> Any:
    """Each class by itself; of all that is chosen, the best so far are kept: their scores, boxes and classes."""
    best, own, kind = lists, (lists + most).cast(i32, 4), (lists + 2 * most).cast(i32, 4)
    new = (lists + 3 * most).cast(i32, 4)
    count, above = kl.value(0), kl.value(-math.inf, f32)
    for c in range(classes):
        row = scores + c * n
        size, i = kl.value(0), kl.value(0)
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            v = row.load(i, lanes, mask)
            if kl.any((v >= least) & (v > above) & mask):
                for j in range(i, kl.minimum(n, i + lanes)):
                    score = row[j]
                    if (score >= least) & (score > above):
                        heap[size] = candidate(score, j)
                        size = size + 1
            i = i + lanes

        def take(count: Any, i: Any) -> None:
            new[count] = i.to(i32)

        found = greedy(heap, size, kl.minimum(each, most), chosen, decoded.box, take, limit, True)
        p, q, place = count - 1, found - 1, count + found - 1
        while q >= 0:  # merged from the end; of equal scores those that were there go first
            fresh = new[q].to(i64)
            score = row[fresh]
            older = kl.maximum(p, 0)
            stays = (p >= 0) & (best[older] < score)
            if place < most:
                best[place] = kl.select(stays, best[older], score)
                own[place] = kl.select(stays, own[older], fresh.to(i32))
                kind[place] = kl.select(stays, kind[older], kl.value(c).to(i32))
            p = kl.select(stays, p - 1, p)
            q = kl.select(stays, q, q - 1)
            place = place - 1
        count = kl.minimum(count + found, most)
        above = kl.select(count == most, best[most - 1], above)
    return count


@selector(Detection)
def select_detection(form: Detection, build: Builder) -> None:
    """One step."""
    codes, scores, anchors = form.codes, form.scores, form.anchors
    n, depth = anchors.shape[0], codes.shape[-1]
    every = scores.shape[0 if form.by_class else 1]
    if any(b.dtype is not f32 or b.parent is not None for b in (codes, scores, anchors)):
        raise NoKernel(f"codes {codes!r}, scores {scores!r}, anchors {anchors!r}")
    if anchors.shape != (n, 4) or codes.size != n * depth or scores.size != n * every or not n < 1 << 31:
        raise NoKernel(f"codes {codes!r}, scores {scores!r}, anchors {anchors!r}")
    if not 0 < form.classes <= every or form.most < 1 or form.several < 1 or form.each < 1:
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
        every,
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
