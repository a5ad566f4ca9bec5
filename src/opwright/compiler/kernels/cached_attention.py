"""Attention of few queries over keys and values in place: a decoding step over a cache.

Lives here: the family `attend_cached`; the family `visible_keys`, which locates what masks hide; `CacheStrides`,
`MaskStrides`.
Not here: the selector, attention of many queries, for which keys are packed (grouped_attention.py).

Each key and value is used by few queries, so that the time is that of reading memory. In a cache the groups of a key
follow each other. Hardware reads ahead of what it sees as sequences: four times as fast as keys of one group, which are
short runs far from each other (526 KB from memory on one core of Zen 4: 16 us one key after the other with all groups,
44 with groups one after the other, 4 to 32 keys at a time). So all groups advance together, by one key in each of
several parts of the cache. As the scores of all keys need not fit a cache, sums are of exponentials relative to the
greatest score so far, and scaled when it grows (online softmax: Milakov and Gimelshein 2018).

A product of a query with a key is a vector of partial sums; a transposed addition of as many as a vector has lanes
gives their scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i32, i64, ptr
from .expression import exp_nonpositive
from .gemv_f32 import horizontal_sums
from .output_tiles import accumulators
from .tiling import LINE_BYTES

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..target import Target

HIDDEN, VISIBLE = -1e30, -1e20
"""Numbers of a mask: litert-torch hides an entry of a cache by the least float32, other models by minus infinity."""

KEYS = 512
"""Keys whose scores are computed before their values are read."""
ACROSS = 4
"""Vectors of values that are added up at a time: a head of 64 with AVX-512."""
AHEAD, LINE, SECOND = 2, LINE_BYTES // 4, 2
"""Keys by which those of a part are prefetched; floats of a cache line; the locality of the second cache, from which
processors continue: 28 us instead of 34 for 526 KB, 37 by way of the first."""


class CacheStrides(NamedTuple):
    """Elements from the keys, or values, of a batch to those of the next one, of a group, and from key to key."""

    batch: Any
    group: Any
    key: Any


class MaskStrides(NamedTuple):
    """Rows of a mask from that of a batch, head and step to the next one, and elements of a row."""

    batch: Any
    head: Any
    step: Any
    row: Any


class Queries(NamedTuple):
    """Queries of several groups in scratch memory, tile by tile of `rows` queries; `tiles` of a group.

    states: of a query its elements, then the greatest score so far and the sum of exponentials, a vector each, and the
    weighted sums of values; `words` floats, the elements and sums padded to whole vectors of `lanes`. scores: KEYS of
    each query; partial: products of each query, a vector for each lane.
    """

    states: Pointer
    scores: Pointer
    partial: Pointer
    words: Value
    size: Value
    tiles: Value
    groups: Value
    rows: int
    lanes: int


class Rows(NamedTuple):
    """Keys, or values, of a block: address of the first of the first group, and their number."""

    p: Pointer
    number: Value
    strides: CacheStrides


@kl.family
def visible_keys(work: Work, mask: ptr[f32], ranges: ptr[i32], keys: i64, pitch: i64) -> None:
    """Write, for each row of a mask, the first key that has a weight and the one behind the last. Items: rows.

    A key at minus infinity has none. A key at HIDDEN or below has none either if another one is at VISIBLE or above:
    the exponential of the difference is 0, for any score that is a finite number of ordinary size.
    """
    lanes = work.lanes(f32)
    numbers = kl.constant_vector(i32, range(lanes))
    for row in work.items():
        values = mask + row * pitch
        limits = (-math.inf, HIDDEN)
        firsts = kl.registers(i32, lanes, len(limits))
        ends = kl.registers(i32, lanes, len(limits))
        for i in range(len(limits)):
            firsts[i], ends[i] = keys.to(i32), 0
        top = kl.full(f32, lanes, -math.inf)
        for start in range(0, keys, lanes):
            valid = kl.first(keys - start, lanes)
            x = kl.select(valid, values.load(start, lanes, valid), -math.inf)
            number = numbers + kl.value(start).to(i32).splat(lanes)
            for i in range(len(limits)):
                hidden = x <= limits[i]
                firsts[i] = kl.minimum(firsts[i], kl.select(hidden, keys.to(i32).splat(lanes), number))
                ends[i] = kl.maximum(ends[i], kl.select(hidden, 0, number + 1))
            top = kl.maximum(x, top)
        shown = kl.reduce_max(top) >= VISIBLE
        end = kl.select(shown, kl.reduce_max(ends[1]), kl.reduce_max(ends[0]))
        ranges[2 * row] = kl.minimum(kl.select(shown, kl.reduce_min(firsts[1]), kl.reduce_min(firsts[0])), end)
        ranges[2 * row + 1] = end


def widened(ranges: Pointer, row: Any, first: Value, end: Value) -> tuple[Value, Value]:
    """Return a range of keys that contains another one and that of a row of a mask."""
    return kl.minimum(first, ranges[2 * row].to(i64)), kl.maximum(end, ranges[2 * row + 1].to(i64))


@kl.family
def attend_cached(
    work: Work,
    q: ptr[f32],
    k: ptr[f32],
    v: ptr[f32],
    mask: ptr[f32],
    ranges: ptr[i32],
    y: ptr[f32],
    keys: i64,
    size: i64,
    steps: i64,
    groups: i64,
    each: i64,
    q_pitch: i64,
    y_pitch: i64,
    of_keys: CacheStrides,
    of_values: CacheStrides,
    of_mask: MaskStrides,
    scale: f32,
    *,
    rows: int,
) -> None:
    """Compute attention of all queries of a group, in tiles of `rows`; those behind the last one repeat it and are not
    stored. Items: batches by groups.

    ranges: of `visible_keys`. each: queries of a group at a step. Pitches are elements from one head to the next.
    Scratch: `scratch_floats`.
    """
    lanes, count = work.lanes(f32), each * steps
    tiles, words = (count + (rows - 1)) // rows, state_floats(size, lanes)
    states = work.scratch(f32)
    item = work.begin
    while item < work.end:
        batch, start = item // groups, item % groups
        number = kl.minimum(work.end - item, groups - start)
        every = number * tiles * rows
        first, end = keys, kl.value(0, i64)
        for step in range(steps):
            for head in range(groups * each):  # also of other calls: the order of sums depends on the range
                row = batch * of_mask.batch + head * of_mask.head + step * of_mask.step
                first, end = widened(ranges, row, first, end)
        for i in range(every):
            n, group = kl.minimum(i % (tiles * rows), count - 1), start + i // (tiles * rows)
            place = (batch * steps + n // each) * (groups * each) + group * each + n % each
            state = states + i * words
            for j in range(0, words, lanes):
                state.store(kl.zeros(f32, lanes), j)
            for j in range(0, size, lanes):
                valid = kl.first(size - j, lanes)
                state.store((q + place * q_pitch).load(j, lanes, valid), j)
            state.store(kl.full(f32, lanes, -math.inf), padded(size, lanes))
        scores = states + every * words
        queries = Queries(states, scores, scores + every * KEYS, words, size, tiles, number, rows, lanes)
        for key in range(first, end, KEYS):
            here = kl.minimum(end - key, KEYS)
            keys_here = k + (batch * of_keys.batch + start * of_keys.group + key * of_keys.key)
            _write_products(queries, Rows(keys_here, here, of_keys))
            for i in range(every):
                n, group = kl.minimum(i % (tiles * rows), count - 1), start + i // (tiles * rows)
                row = batch * of_mask.batch + (group * each + n % each) * of_mask.head + n // each * of_mask.step
                shown = mask + (row * of_mask.row + key)
                _write_exponentials(scores + i * KEYS, shown, here, scale, states + i * words, size, lanes)
            values_here = v + (batch * of_values.batch + start * of_values.group + key * of_values.key)
            _add_values(queries, Rows(values_here, here, of_values))
        for i in range(number * count):
            n, group = i % count, start + i // count
            state = states + (i // count * (tiles * rows) + n) * words + padded(size, lanes)
            factor = (1.0 / kl.reduce_add(state.load(lanes, lanes))).splat(lanes)
            place = (batch * steps + n // each) * (groups * each) + group * each + n % each
            for j in range(0, size, lanes):
                valid = kl.first(size - j, lanes)
                (y + place * y_pitch).store(state.load(2 * lanes + j, lanes) * factor, j, valid)
        item = item + number


def padded(size: Any, lanes: int) -> Any:
    """Return a size rounded up to whole vectors."""
    return (size + (lanes - 1)) // lanes * lanes


def state_floats(size: Any, lanes: int) -> Any:
    """Return the floats of the state of a query with heads of a size, see `Queries`."""
    return 2 * padded(size, lanes) + 2 * lanes


def scratch_floats(queries: int, size: int, lanes: int) -> int:
    """Return the floats of scratch memory of a number of queries with heads of a size."""
    return queries * int(state_floats(size, lanes) + KEYS + lanes * lanes)


def rows_in_place(target: Target) -> int:
    """Return the queries of a tile, at most: registers hold sums of as many by four keys, or by ACROSS vectors."""
    return 4 if target.registers >= 32 else 3


def streams_of(rows: int, lanes: int) -> int:
    """Return the parts of a cache that are read side by side: with `rows` sums of each, what registers hold."""
    return max(1, min(8 if rows == 1 else 4, lanes // 2))


def _write_products(queries: Queries, keys: Rows) -> None:
    """Write the products of all queries with the keys of a block, and of what pads it with the last of them."""
    rows, lanes, size = queries.rows, queries.lanes, queries.size
    streams = streams_of(rows, lanes)
    run = lanes // streams  # keys of a stream in a vector of scores
    length = (keys.number + (lanes - 1)) // lanes * run
    whole, of_tile = size // lanes * lanes, rows * lanes * lanes
    for first in range(0, length, run):
        for j in kl.loop(run):
            at = [
                keys.p + kl.minimum(s * length + first + j, keys.number - 1) * keys.strides.key for s in range(streams)
            ]
            for group in range(queries.groups):
                near = [p + group * keys.strides.group for p in at]
                _prefetch(near, keys.strides.key, size)
                for tile in range(group * queries.tiles, (group + 1) * queries.tiles):
                    q = queries.states + tile * (rows * queries.words)
                    sums = accumulators(f32, rows, streams, lanes, None)
                    for i in range(0, whole, lanes):
                        xs = [q.load(r * queries.words + i, lanes) for r in range(rows)]
                        for s in range(streams):
                            key = near[s].load(i, lanes)
                            for r in range(rows):
                                sums[r, s] = kl.fma(xs[r], key, sums[r, s])
                    if whole < size:
                        valid = kl.first(size - whole, lanes)
                        for s in range(streams):
                            key = near[s].load(whole, lanes, valid)
                            for r in range(rows):
                                x = q.load(r * queries.words + whole, lanes)
                                sums[r, s] = kl.fma(x, key, sums[r, s])
                    for r in range(rows):
                        for s in range(streams):
                            queries.partial.store(sums[r, s], tile * of_tile + (r * lanes + s * run + j) * lanes)
        for i in range(queries.groups * queries.tiles * rows):
            products = [queries.partial.load((i * lanes + n) * lanes, lanes) for n in range(lanes)]
            scores = horizontal_sums(products)
            for s in range(streams):
                queries.scores.store(kl.part(scores, s * run, run), i * KEYS + s * length + first)


def _prefetch(near: list[Pointer], step: Value, size: Value) -> None:
    for p in near:
        for line in range(0, size, LINE):
            (p + AHEAD * step).prefetch(line, locality=SECOND)


def _write_exponentials(
    row: Pointer, mask: Pointer, count: Value, scale: Value, state: Pointer, size: Value, lanes: int
) -> None:
    """Replace products by exponentials of scores relative to the greatest score so far; update a query's state."""
    numbers = state + padded(size, lanes)
    before = numbers.load(0, lanes)
    top = before
    for i in range(0, count, lanes):
        valid = kl.first(count - i, lanes)
        score = kl.select(valid, kl.fma(row.load(i, lanes), scale.splat(lanes), mask.load(i, lanes, valid)), -math.inf)
        row.store(score, i)
        top = kl.maximum(score, top)
    greatest = kl.reduce_max(top).splat(lanes)
    base = kl.select(greatest == -math.inf, 0.0, greatest)  # without a visible key so far, exponentials are 0
    factor = exp_nonpositive(before - base)
    total = numbers.load(lanes, lanes) * factor
    for i in range(0, count, lanes):
        e = exp_nonpositive(row.load(i, lanes) - base)
        row.store(e, i)
        total = total + e
    numbers.store(greatest, 0)
    numbers.store(total, lanes)
    for i in range(0, size, lanes):
        numbers.store(numbers.load(2 * lanes + i, lanes) * factor, 2 * lanes + i)


def _add_values(queries: Queries, values: Rows) -> None:
    """Add the values of a block, weighted by exponentials, to the sums of each query."""
    streams = streams_of(queries.rows, queries.lanes)
    length = values.number // streams
    for j in range(length):
        _add_rows(queries, values, [s * length + j for s in range(streams)])
    for j in range(streams * length, values.number):
        _add_rows(queries, values, [j])


def _add_rows(queries: Queries, values: Rows, numbers: list[Any]) -> None:
    """Add the values of some keys to the sums of each query."""
    rows, lanes, size = queries.rows, queries.lanes, queries.size
    at = [values.p + n * values.strides.key for n in numbers]
    whole = size // (ACROSS * lanes) * (ACROSS * lanes)
    for group in range(queries.groups):
        near = [p + group * values.strides.group for p in at]
        _prefetch(near, values.strides.key, size)
        for tile in range(group * queries.tiles, (group + 1) * queries.tiles):
            memory = queries.states + tile * (rows * queries.words) + (padded(size, lanes) + 2 * lanes)
            scores = [queries.scores + (tile * (rows * KEYS) + n) for n in numbers]
            for column in range(0, whole, ACROSS * lanes):
                _add_columns(queries, near, scores, memory, column, [None] * ACROSS)
            if whole < size:
                masks = [kl.first(kl.clamp(size - whole - i * lanes, 0, lanes), lanes) for i in range(ACROSS)]
                _add_columns(queries, near, scores, memory, whole, masks)


def _add_columns(
    queries: Queries,
    values: list[Pointer],
    scores: list[Pointer],
    memory: Pointer,
    column: Any,
    masks: Sequence[Value | None],
) -> None:
    """Add columns of values to the sums of a tile in memory, from `column` on. masks: of the vectors, None for all."""
    rows, lanes, across = queries.rows, queries.lanes, len(masks)
    sums = kl.registers(f32, lanes, rows, across)
    for r in range(rows):
        for i in range(across):
            sums[r, i] = memory.load(r * queries.words + column + i * lanes, lanes, masks[i])
    for p, x in zip(values, scores):
        xs = [x[r * KEYS].splat(lanes) for r in range(rows)]
        for i in range(across):
            value = p.load(column + i * lanes, lanes, masks[i])
            for r in range(rows):
                sums[r, i] = kl.fma(xs[r], value, sums[r, i])
    for r in range(rows):
        for i in range(across):
            memory.store(sums[r, i], r * queries.words + column + i * lanes, masks[i])
