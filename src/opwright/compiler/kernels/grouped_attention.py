"""Grouped attention: several heads of queries share the keys and values of one, with masks and caches of steps.

Lives here: the selector of GroupedAttention, the families of many queries: `pack_cache`, `attend_groups`.
Not here: few queries (cached_attention.py), attention of equal heads (attention.py), separate products and softmax
(matmul.py, rows.py).

A mask hides the part of a cache that is not filled yet, or comes later, or is behind a sliding window; what is visible
is located first (`visible_keys`), and nothing else is copied or read. For many queries keys are packed in panels, and
values copied without the gaps between those of a group.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i32, i64, ptr
from ..loops.buffers import Buffer
from ..loops.ops import GroupedAttention
from ..target import host
from . import NoKernel, selector
from .attention import SCORE_BYTES, VECTORS, multiply_panels, pack_panel, softmax
from .cached_attention import (
    CacheStrides,
    MaskStrides,
    attend_cached,
    rows_in_place,
    scratch_floats,
    visible_keys,
    widened,
)
from .output_tiles import accumulators
from .tiling import grain, row_tiles

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address

FEW, MANY_ROWS = 16, 6
"""Queries of a group for which its keys are read in place; rows of a tile by two vectors of packed ones."""


@kl.family
def pack_cache(
    work: Work,
    k: ptr[f32],
    v: ptr[f32],
    ranges: ptr[i32],
    packed: ptr[f32],
    values: ptr[f32],
    keys: i64,
    size: i64,
    groups: i64,
    panels: i64,
    masks: i64,
    of_keys: CacheStrides,
    of_values: CacheStrides,
    *,
    tiled: bool,
) -> None:
    """Pack the keys of each group in panels, and copy its values, as far as one of the masks shows them.

    Items: batches by groups by panels. tiled: see `pack_keys`.
    """
    lanes = work.lanes(f32)
    width = VECTORS * lanes
    first, end = keys, kl.value(0, i64)
    for row in range(masks):
        first, end = widened(ranges, row, first, end)
    for item in work.items():
        matrix, start = item // panels, item % panels * width
        batch, group = matrix // groups, matrix % groups
        if (start < end) & (start + width > first):
            near = k + (batch * of_keys.batch + group * of_keys.group)
            pack_panel(near, of_keys.key, start, keys, size, packed + item * width * size, lanes, tiled)
            source = v + (batch * of_values.batch + group * of_values.group)
            for key in range(start, kl.minimum(start + width, keys)):
                target = values + (matrix * keys + key) * size
                for j in range(0, size, lanes):
                    valid = kl.first(size - j, lanes)
                    target.store((source + key * of_values.key).load(j, lanes, valid), j, valid)


@kl.family
def attend_groups(
    work: Work,
    q: ptr[f32],
    packed: ptr[f32],
    v: ptr[f32],
    mask: ptr[f32],
    ranges: ptr[i32],
    y: ptr[f32],
    keys: i64,
    size: i64,
    steps: i64,
    groups: i64,
    each: i64,
    tiles: i64,
    panels: i64,
    q_pitch: i64,
    y_pitch: i64,
    of_mask: MaskStrides,
    scale: f32,
    *,
    rows: int,
) -> None:
    """Compute attention of `rows` queries of one group. Items: batches by groups by tiles; queries behind the last one
    repeat it and are not stored.

    packed, v: of `pack_cache`; ranges: of `visible_keys`. each: queries of a group at a step. Pitches are elements from
    one head to the next. Scratch: rows of scores, of whole panels.
    """
    lanes = work.lanes(f32)
    width = VECTORS * lanes
    scores, pitch = work.scratch(f32), (keys + (width - 1)) // width * width + width  # rows in sets of their own
    count, across = each * steps, 12 // rows
    for item in work.items():
        matrix, first = item // tiles, item % tiles * rows
        batch, group = matrix // groups, matrix % groups
        queries, results, masks = [], [], []
        start, end = keys, kl.value(0, i64)
        for r in range(rows):
            number = kl.minimum(first + r, count - 1)
            step, head = number // each, group * each + number % each
            place = (batch * steps + step) * (groups * each) + head
            queries.append(q + place * q_pitch)
            results.append(y + place * y_pitch)
            row = batch * of_mask.batch + head * of_mask.head + step * of_mask.step
            masks.append(mask + row * of_mask.row)
            start, end = widened(ranges, row, start, end)
        start = start // width * width
        count_visible = end - start
        near = packed + (matrix * panels * width + start) * size
        multiply_panels(queries, near, scores, pitch, count_visible, size, lanes)
        padded = (count_visible + (lanes - 1)) // lanes * lanes
        factors = []
        for r in range(rows):
            row, shown = scores + r * pitch, masks[r] + start

            def finish(sums: Value, _: Value, i: Any, n: int, valid: Value | None, shown: Pointer = shown) -> Value:
                return kl.fma(sums, scale.splat(n), shown.load(i, n, valid))

            factors.append(softmax(row, kl.value(0), count_visible, padded, lanes, finish))
        values, wide = v + (matrix * keys + start) * size, across * lanes
        for column in range(0, size, wide):
            parts = [kl.first(kl.clamp(size - column - i * lanes, 0, lanes), lanes) for i in range(across)]
            sums = _mean(scores, pitch, values + column, count_visible, size, rows, lanes, parts)
            for r in range(rows):
                if first + r < count:
                    for i in range(across):
                        results[r].store(sums[r, i] * factors[r], column + i * lanes, parts[i])


def _mean(
    scores: Pointer, pitch: Value, values: Pointer, count: Value, step: Value, rows: int, lanes: int, masks: list[Value]
) -> Registers:
    """Return the sums of values, weighted by each row of exponentials."""
    sums = accumulators(f32, rows, len(masks), lanes, None)
    p = values
    for j in range(count):
        near = [p.load(i * lanes, lanes, masks[i]) for i in range(len(masks))]
        for r in range(rows):
            x = scores[r * pitch + j].splat(lanes)
            for i in range(len(masks)):
                sums[r, i] = kl.fma(x, near[i], sums[r, i])
        p = p + step
    return sums


@selector(GroupedAttention)
def select_grouped_attention(form: GroupedAttention, build: Builder) -> None:
    """Add the steps of attention over a cache. For many queries keys and values are copied group by group, and keys
    packed."""
    q, k, v, mask, y = form.q, form.k, form.v, form.mask, form.output
    (b, s, n, h), (_, t, m, _) = q.shape, k.shape
    each, lanes = n // m, host().vector_bytes // 4
    if any(x.dtype is not float32 for x in (q, k, v, mask, y)) or mask.shape[3] != t:
        raise NoKernel(f"attention of {q!r} to {k!r} by {mask!r}")
    few = each * s <= FEW
    rows = row_tiles(each * s, rows_in_place(host())).height if few else MANY_ROWS
    width = VECTORS * lanes
    tiles, panels = -(-each * s // rows), -(-t // width)
    scratch = 4 * rows * (panels + 1) * width
    if few:
        scratch = 4 * scratch_floats(m * tiles * rows, h, lanes)
    if scratch > SCORE_BYTES:
        raise NoKernel(f"attention of {q!r} to {k!r}: {scratch} bytes of scores")
    masks = math.prod(mask.shape[:3])
    ranges = build.derived(("visible keys", mask.shape, mask.pitch), mask, lambda: _add_ranges(mask, build))
    of_keys, of_values = (CacheStrides(t * m * x.pitch, x.pitch, m * x.pitch) for x in (k, v))
    common = [build.pointer(mask), ranges, build.pointer(y), t, h, s, m, each]
    ending = [q.pitch, y.pitch]
    strides = [*_mask_strides(mask), form.scale]
    if few:
        words = [build.pointer(q), build.pointer(k), build.pointer(v), *common, *ending, *of_keys, *of_values, *strides]
        build.step(attend_cached.code(rows=rows), words, b * m, scratch)
        return
    packed, values = (build.temporary(4 * b * m * count * h) for count in (panels * width, t))
    sizes = [t, h, m, panels, masks, *of_keys, *of_values]
    words = [build.pointer(k), build.pointer(v), ranges, packed, values, *sizes]
    build.step(pack_cache.code(tiled=h >= lanes), words, b * m * panels)
    words = [build.pointer(q), packed, values, *common, tiles, panels, *ending, *strides]
    build.step(attend_groups.code(rows=rows), words, b * m * tiles, scratch)


def _add_ranges(mask: Buffer, build: Builder) -> Address:
    """Add the step that locates the visible keys of each row of a mask; all layers of a model share it."""
    keys, rows = mask.shape[3], math.prod(mask.shape[:3])
    ranges = build.temporary(8 * rows)
    build.step(visible_keys.code(), [build.pointer(mask), ranges, keys, mask.pitch], rows, chunk=grain(keys, rows))
    return ranges


def _mask_strides(mask: Buffer) -> MaskStrides:
    batches, heads, steps, _ = mask.shape
    strides = (heads * steps, steps, 1)
    batch, head, step = (n if size > 1 else 0 for n, size in zip(strides, (batches, heads, steps)))
    return MaskStrides(batch, head, step, mask.pitch)
