"""Grouped attention: several heads of queries share the keys and values of one, with masks and caches of steps.

Lives here: the selector of GroupedAttention, its family. Not here: attention of equal heads (attention.py), separate
products and softmax (matmul.py, rows.py).

Attention of few queries reads keys and values where they are, as each is used once: products with as many keys
as a vector has lanes are a vector of partial sums for each key, and a transposed addition of these gives the scores. A
mask hides the part of a cache that is not filled yet, or comes later; that part is located first, and not read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i32, i64, ptr
from ..loops.buffers import Buffer, IndexMap
from ..loops.ops import GroupedAttention, Move
from ..target import host
from . import NoKernel, select, selector
from .attention import SCORE_BYTES, VECTORS, multiply_panels, pack_keys, softmax
from .gemv_f32 import horizontal_sums
from .output_tiles import accumulators

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..loops.plan_builder import Builder

HIDDEN, VISIBLE = -1e30, -1e20
"""Numbers of a mask: litert-torch hides an entry of a cache by the least float32, other models by minus infinity."""

AHEAD, LINE, SECOND = 32, 16, 2
"""Keys by which those of a cache are prefetched, and values; floats of a cache line; the locality of the second cache.
A group's keys are short runs, far from each other, which hardware does not follow: the first group prefetches those of
all, one after the other, and values with keys, as two streams take less time than one. 257 keys of 4 groups from
memory take 45 to 53 us, 57 to 59 without values there, on one core of Zen 4 next to other work."""

FEW_ROWS, MANY_ROWS = 3, 6
"""Rows of a tile: by four keys, or four vectors of values, where these are read in place; by two vectors of packed
ones."""


class HeadStrides(NamedTuple):
    """Elements from the keys, or values, of a batch to those of the next one, of a group, and from key to key."""

    batch: Any
    group: Any
    key: Any


class MaskStrides(NamedTuple):
    """Elements from a row of a mask to that of the next batch, head and step."""

    batch: Any
    head: Any
    step: Any


@kl.family
def attend_groups(
    work: Work,
    q: ptr[f32],
    k: ptr[f32],
    v: ptr[f32],
    mask: ptr[f32],
    y: ptr[f32],
    keys: i64,
    size: i64,
    steps: i64,
    groups: i64,
    each: i64,
    tiles: i64,
    q_pitch: i64,
    y_pitch: i64,
    of_keys: HeadStrides,
    of_values: HeadStrides,
    of_mask: MaskStrides,
    scale: f32,
    *,
    rows: int,
    packed: bool,
) -> None:
    """Compute attention of `rows` queries of one group. Items: batches by groups by tiles; queries behind the last one
    repeat it and are not stored.

    packed: whether keys are panels of `pack_keys`. each: queries of a group at a step. Pitches are elements from one
    head to the next. Scratch: rows of scores, of whole panels.
    """
    lanes = work.lanes(f32)
    width = VECTORS * lanes
    scores, pitch = work.scratch(f32), (keys + (width - 1)) // width * width + width  # rows in sets of their own
    count, across = each * steps, 12 // rows if rows > 1 else 8
    previous = kl.value(-1, i64)
    for item in work.items():
        matrix, first = item // tiles, item % tiles * rows
        batch, group = matrix // groups, matrix % groups
        ahead = kl.select((batch == previous) | packed, kl.value(0), (groups - group) * size)
        previous = batch
        queries, results, masks, seen = [], [], [], kl.value(0, i32)
        for r in range(rows):
            number = kl.minimum(first + r, count - 1)
            step, head = number // each, group * each + number % each
            place = (batch * steps + step) * (groups * each) + head
            queries.append(q + place * q_pitch)
            results.append(y + place * y_pitch)
            masks.append(mask + (batch * of_mask.batch + head * of_mask.head + step * of_mask.step))
            seen = kl.maximum(seen, _permitted(masks[r], keys, lanes))
        end = seen.to(i64)
        near = k + (batch * of_keys.batch + group * of_keys.group)
        if packed:
            multiply_panels(queries, near, scores, pitch, end, size, lanes)
        else:
            later = v + (batch * of_values.batch + group * of_values.group)
            _multiply_keys(queries, near, later, scores, pitch, end, of_keys.key, of_values.key, size, lanes, ahead)
        padded = (end + (lanes - 1)) // lanes * lanes
        factors = []
        for r in range(rows):
            row, shown = scores + r * pitch, masks[r]

            def finish(sums: Value, _: Value, i: Any, count: int, valid: Value, shown: Pointer = shown) -> Value:
                return kl.fma(sums, scale.splat(count), shown.load(i, count, valid))

            factors.append(softmax(row, kl.value(0), end, padded, lanes, finish))
        values, wide = v + (batch * of_values.batch + group * of_values.group), across * lanes
        for column in range(0, size, wide):
            rest = size - column
            if rest >= wide:
                none: list[Value | None] = [None] * across
                sums = _mean(scores, pitch, values + column, end, of_values.key, rows, lanes, none, ahead)
                _store_rows(results, sums, factors, column, first, count, lanes, none)
            else:
                parts = [kl.first(kl.clamp(rest - i * lanes, 0, lanes), lanes) for i in range(across)]
                sums = _mean(scores, pitch, values + column, end, of_values.key, rows, lanes, parts, ahead)
                _store_rows(results, sums, factors, column, first, count, lanes, parts)


def _permitted(mask: Pointer, keys: Value, lanes: int) -> Value:
    """Return the number of keys up to the last one that has a weight.

    A key at minus infinity has none. A key at HIDDEN or below has none either if another one is at VISIBLE or above:
    the exponential of the difference is 0, for any score that is a finite number of ordinary size.
    """
    numbers = kl.constant_vector(i32, range(1, lanes + 1))
    finite, shown = kl.zeros(i32, lanes), kl.zeros(i32, lanes)
    top, done = kl.full(f32, lanes, -math.inf), keys // lanes * lanes
    for i in range(0, done, lanes):
        number, x = numbers + kl.value(i).to(i32).splat(lanes), mask.load(i, lanes)
        finite = kl.maximum(finite, kl.select(x == -math.inf, 0, number))
        shown = kl.maximum(shown, kl.select(x <= HIDDEN, 0, number))
        top = kl.maximum(x, top)
    if done < keys:
        valid = kl.first(keys - done, lanes)
        number, x = numbers + done.to(i32).splat(lanes), mask.load(done, lanes, valid)
        finite = kl.maximum(finite, kl.select(valid, kl.select(x == -math.inf, 0, number), 0))
        shown = kl.maximum(shown, kl.select(valid, kl.select(x <= HIDDEN, 0, number), 0))
        top = kl.maximum(kl.select(valid, x, -math.inf), top)
    return kl.select(kl.reduce_max(top) >= VISIBLE, kl.reduce_max(shown), kl.reduce_max(finite))


def _multiply_keys(
    queries: list[Pointer],
    k: Pointer,
    values: Pointer,
    scores: Pointer,
    pitch: Value,
    end: Value,
    key_step: Value,
    value_step: Value,
    size: Value,
    lanes: int,
    ahead: Value,
) -> None:
    """Write the products of each query with the first `end` keys, read in place, as many at a time as a vector has
    lanes; those behind the last repeat it. ahead: floats of a later key, and of values, to prefetch."""
    rows = len(queries)
    number = min(lanes, 8 if rows == 1 else 4)
    for start in range(0, end, lanes):
        for i in kl.loop(lanes):
            for line in range(0, ahead, LINE):
                (k + (start + AHEAD + i) * key_step).prefetch(line, locality=SECOND)
                (values + (start + i) * value_step).prefetch(line, locality=SECOND)
        memory = kl.stack(f32, rows * lanes * lanes)
        for part in range(0, lanes, number):
            near = [k + kl.minimum(start + (part + i), end - 1) * key_step for i in range(number)]
            sums = accumulators(f32, rows, number, lanes, None)
            done = size // lanes * lanes
            for j in range(0, done, lanes):
                xs = [queries[r].load(j, lanes) for r in range(rows)]
                for i in range(number):
                    key = near[i].load(j, lanes)
                    for r in range(rows):
                        sums[r, i] = kl.fma(xs[r], key, sums[r, i])
            if done < size:
                valid = kl.first(size - done, lanes)
                for r in range(rows):
                    x = queries[r].load(done, lanes, valid)
                    for i in range(number):
                        sums[r, i] = kl.fma(x, near[i].load(done, lanes, valid), sums[r, i])
            for r in range(rows):
                for i in range(number):
                    memory.store(sums[r, i], (r * lanes + part + i) * lanes)
        for r in range(rows):
            products = [memory.load((r * lanes + i) * lanes, lanes) for i in range(lanes)]
            scores.store(horizontal_sums(products), r * pitch + start)


def _mean(
    scores: Pointer,
    pitch: Value,
    values: Pointer,
    end: Value,
    step: Value,
    rows: int,
    lanes: int,
    masks: Sequence[Value | None],
    ahead: Value,
) -> Registers:
    """Return the sums of values, weighted by each row of exponentials. ahead: floats of a later value to prefetch."""
    sums = accumulators(f32, rows, len(masks), lanes, None)
    p = values
    for j in range(end):
        xs = [scores[r * pitch + j].splat(lanes) for r in range(rows)] if len(masks) > rows else []
        near = [] if xs else [p.load(i * lanes, lanes, masks[i]) for i in range(len(masks))]
        for i in range(0, ahead, LINE):
            p.prefetch(i + AHEAD * step, locality=SECOND)
        for r in range(rows):
            x = xs[r] if xs else scores[r * pitch + j].splat(lanes)
            for i in range(len(masks)):
                value = p.load(i * lanes, lanes, masks[i]) if xs else near[i]
                sums[r, i] = kl.fma(x, value, sums[r, i])
        p = p + step
    return sums


def _store_rows(
    results: list[Pointer],
    sums: Registers,
    factors: list[Value],
    column: Any,
    first: Value,
    count: Value,
    lanes: int,
    masks: Sequence[Value | None],
) -> None:
    for r in range(len(results)):
        if first + r < count:
            for i in range(len(masks)):
                results[r].store(sums[r, i] * factors[r], column + i * lanes, masks[i])


@selector(GroupedAttention)
def select_grouped_attention(form: GroupedAttention, build: Builder) -> None:
    """Add the steps of attention over a cache. For many queries keys and values are copied group by group, and keys
    packed."""
    q, k, v, mask, y = form.q, form.k, form.v, form.mask, form.output
    (b, s, n, h), (_, t, m, _) = q.shape, k.shape
    each, lanes = n // m, host().vector_bytes // 4
    packed = each * s > FEW_ROWS
    rows, width = MANY_ROWS if packed else each * s, VECTORS * lanes
    panels = -(-t // width)
    scratch = 4 * rows * (panels + 1) * width
    if any(x.dtype is not float32 for x in (q, k, v, mask, y)) or scratch > SCORE_BYTES or mask.shape[3] != t:
        raise NoKernel(f"attention of {q!r} to {k!r} by {mask!r}")
    if packed:
        keys, values = (_by_group(x, build) for x in (k, v))
        key_words = build.temporary(4 * b * m * panels * width * h)
        code = pack_keys.code(turned=False, tiled=h >= lanes)
        build.step(code, [build.pointer(keys), key_words, t, h, panels], b * m * panels)
        value_words = build.pointer(values)
        of_keys = HeadStrides(m * panels * width * h, panels * width * h, 0)
        of_values = HeadStrides(m * t * h, t * h, h)
    else:
        key_words, value_words = build.pointer(k), build.pointer(v)
        of_keys, of_values = (HeadStrides(t * m * x.pitch, x.pitch, m * x.pitch) for x in (k, v))
    sizes, strides, step = mask.shape[:3], [], mask.pitch
    for size in sizes[::-1]:
        strides.append(step if size > 1 else 0)
        step *= size
    tiles = -(-each * s // rows)
    words = [
        *(build.pointer(q), key_words, value_words, build.pointer(mask), build.pointer(y)),
        *(t, h, s, m, each, tiles, q.pitch, y.pitch),
        *of_keys,
        *of_values,
        *MaskStrides(strides[2], strides[1], strides[0]),
        form.scale,
    ]
    build.step(attend_groups.code(rows=rows, packed=packed), words, b * m * tiles, scratch)


def _by_group(x: Buffer, build: Builder) -> Buffer:
    """Add a step that copies [b, t, m, h] to [b, m, t, h]; return its output."""
    b, t, m, h = x.shape
    box = IndexMap((0, 0, 0, 0), (b, m, t, h), 0, (t * m * x.pitch, x.pitch, m * x.pitch, 1))
    result = Buffer(f"{x.name} by group", float32, (b, m, t, h))
    select(Move(result, (x,), (box,)), build)
    return result
