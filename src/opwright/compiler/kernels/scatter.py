"""Scatter: updates combined at coordinates, cache entries replaced at positions, segment reductions.

Lives here: the selectors of ScatterAt, PutEntries, AppendEntries and Segments, their families; `update_run`.
Not here: gathers (gather.py), slices at computed starts (slices.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, int32, int64
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.buffers import row_major
from ..loops.indexing_ops import AppendEntries, PutEntries, ScatterAt, Segments
from ..loops.ops import Move
from . import NoKernel, selector
from .gather import INDICES, copy_unless_shared, offset_of
from .moves import BLOCK, copy_buffer, copy_run, run_width, select_move
from .pooling import combine
from .reductions import combine_ignoring_nan, neutral
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def scatter(
    work: Work,
    updates: ptr[u8],
    indices: ptr[u8],
    y: ptr[u8],
    table: ptr[i64],
    count: i64,
    run: i64,
    *,
    source: DType,
    places: DType,
    depth: int,
    kind: str,
) -> Value:
    """Apply `count` updates of `run` elements in order, in one work item, since several may have one target.

    table: for each coordinate its limit and its stride in elements.
    """
    unit = u8 if source.is_bool else source
    updates, y, indices = updates.cast(unit, unit.size), y.cast(unit, unit.size), indices.cast(places, places.size)
    lanes = work.target.lanes(unit.size)
    failed = kl.value(0)
    for p in range(count):
        offset, fits = offset_of(indices, p, table, depth)
        failed = kl.select(fits, failed, 1)
        a, b = updates + p * run, y + kl.select(fits, offset, 0)
        update_run(kind, source, a, b, kl.value(0), run, lanes)
    return failed


def update_run(kind: str, source: DType, update: Pointer, y: Pointer, i: Value, end: Value, lanes: int) -> None:
    """Update elements i to end of a run."""
    while i + lanes <= end:
        y.store(_updated(kind, source, y.load(i, lanes), update.load(i, lanes)), i)
        i = i + lanes
    while i < end:
        y[i] = _updated(kind, source, y[i], update[i])
        i = i + 1


def _updated(kind: str, source: DType, a: Value, b: Value) -> Value:
    """Return elements a updated by b; 16-bit floats are combined in float32."""
    if kind == "set":
        return b
    if source.is_floating and source.size < 4:
        return _updated(kind, f32, a.to(f32), b.to(f32)).to(source)
    if source.is_bool:
        return a & b if kind in ("prod", "min") else a | b
    return combine(kind, a, b)


@selector(ScatterAt)
def select_scatter(form: ScatterAt, build: Builder) -> None:
    """Initialize the output, then apply the updates."""
    updates, indices, y = form.updates, form.indices, form.output
    dtype = updates.dtype
    if indices.dtype not in INDICES or dtype is not y.dtype or any(b.parent is not None for b in (updates, indices, y)):
        raise NoKernel(f"{updates!r} at {indices!r}")
    if dtype.size > 8 or (dtype.is_floating and dtype.size < 4) or not y.size or not updates.size:
        raise NoKernel(f"{updates!r} at {indices!r}")
    depth = indices.shape[-1]
    if not 0 < depth <= len(y.shape) or updates.shape != (*indices.shape[:-1], *y.shape[depth:]):
        raise NoKernel(f"{updates!r} at {indices!r}")
    if form.base:
        (base,) = form.base
        if base.dtype is not dtype or base.shape != y.shape or base.parent is not None:
            raise NoKernel(f"updates of {base!r}")
        copy_buffer(base, y, build)
    else:
        select_move(Move(y, (), (), form.fill), build)
    table = build.constant(np.array([*zip(y.shape[:depth], row_major(y.shape))], np.int64))
    run = math.prod(y.shape[depth:])
    code = scatter.code(source=dtype, places=indices.dtype, depth=depth, kind=form.kind)
    words: list[Any] = [
        build.pointer(updates),
        build.pointer(indices),
        build.pointer(y),
        table,
        updates.size // run,
        run,
    ]
    build.step(code, words, 1, chunk=1)


@kl.family
def put_entries(
    work: Work, update: ptr[u8], positions: ptr[i32], y: ptr[u8], n: i64, entries: i64, run: i64, *, width: int
) -> Value:
    """Write n entries of `run` bytes, in one work item, up to the first descending position; fail if out of bounds."""
    failed, earlier, ended = kl.value(0), kl.full(i32, 0, -(1 << 31)), kl.value(0)
    for i in range(n):
        destination = positions[i]
        ended = kl.select(destination < earlier, 1, ended)
        earlier = destination
        inside = (destination >= 0) & (destination.to(i64) < entries)
        failed = kl.select(inside | (ended == 1), failed, 1)
        if inside & (ended == 0):
            copy_run(y + destination.to(i64) * run, update + i * run, run, width)
    return failed


@selector(PutEntries)
def select_entries(form: PutEntries, build: Builder) -> None:
    """Update in place if the input has no other reader."""
    x, update, positions, y = form.input, form.update, form.positions, form.output
    if any(b.parent is not None for b in (x, update, positions, y)) or positions.dtype is not int32:
        raise NoKernel(f"entries of {x!r} at {positions!r}")
    if {update.dtype, y.dtype} != {x.dtype} or y.shape != x.shape or update.shape != (positions.size, *x.shape[1:]):
        raise NoKernel(f"entries {update!r} of {x!r}")
    build.share(x)
    nbytes = x.size * x.dtype.size
    blocks = -(-nbytes // BLOCK)
    build.step(
        copy_unless_shared.code(streamed=False),
        [build.pointer(x), build.pointer(y), nbytes, BLOCK],
        blocks,
        chunk=grain(BLOCK, blocks),
    )
    run = math.prod(x.shape[1:]) * x.dtype.size
    words = [build.pointer(update), build.pointer(positions), build.pointer(y), positions.size, x.shape[0], run]
    build.step(put_entries.code(width=run_width(run)), words, 1, chunk=1)


@kl.family
def append_entries(
    work: Work, x: i64, update: ptr[u8], offset: ptr[i64], y: i64, n: i64, entries: i64, run: i64, *, width: int
) -> None:
    """Append n entries of `run` bytes to x, in one work item. x, y: addresses, which may be the same."""
    at = offset[0]
    shift = kl.maximum(at - (entries - n), 0)
    moved = kl.select(shift < entries, shift, 0)
    source, target = kl.pointer(x, u8), kl.pointer(y, u8)
    kept = kl.select(moved > 0, entries - moved, 0)  # entries that move; each ends before its new place begins
    for i in range(kept):
        copy_run(target + i * run, source + (i + moved) * run, run, width)
    if x != y:
        kl.copy(target + kept * run, source + kept * run, (entries - kept) * run)
    for i in range(n):
        copy_run(target + (at - shift + i) * run, update + i * run, run, width)


@selector(AppendEntries)
def select_append(form: AppendEntries, build: Builder) -> None:
    """Append in place if the input has no other reader."""
    x, update, offset, y = form.input, form.update, form.offset, form.output
    if any(b.parent is not None for b in (x, update, offset, y)) or offset.dtype is not int64 or offset.size != 1:
        raise NoKernel(f"entries of {x!r} at {offset!r}")
    n = update.shape[0]
    if {update.dtype, y.dtype} != {x.dtype} or y.shape != x.shape or update.shape[1:] != x.shape[1:]:
        raise NoKernel(f"entries {update!r} of {x!r}")
    if not 0 < n <= x.shape[0] or not x.size:
        raise NoKernel(f"entries {update!r} of {x!r}")
    build.share(x)
    run = math.prod(x.shape[1:]) * x.dtype.size
    words = [*map(build.pointer, (x, update, offset, y)), n, x.shape[0], run]
    build.step(append_entries.code(width=run_width(run)), words, 1, chunk=1)


SEGMENT_COLUMNS = 256
"""Elements of a row per work item, through all rows in order: sums do not depend on the number of threads."""


@kl.family
def join_segments(
    work: Work,
    x: ptr[u8],
    ids: ptr[u8],
    y: ptr[u8],
    rows: i64,
    run: i64,
    segments: i64,
    *,
    source: DType,
    index: DType,
    kind: str,
    start: Any,
    exact: bool,
) -> Value:
    """Reduce rows of `run` elements to segments. Rows with negative ids are ignored; ids beyond the last fail.

    start: the result of no rows. exact: see `Segments`; segments with rows then start with the identity of the kind.
    """
    x, y, ids = x.cast(source, source.size), y.cast(source, source.size), ids.cast(index, index.size)
    join = combine if exact else combine_ignoring_nan
    lanes = work.target.lanes(source.size)
    failed = kl.value(0)
    for item in work.items():
        first = item * SEGMENT_COLUMNS
        count = kl.minimum(run - first, SEGMENT_COLUMNS)
        for s in range(segments):
            _fill(y + (s * run + first), count, start, source, lanes)
        if exact:
            for r in range(rows):
                segment = ids[r].to(i64)
                if (segment >= 0) & (segment < segments):
                    _fill(y + (segment * run + first), count, neutral(kind, source), source, lanes)
        for r in range(rows):
            segment = ids[r].to(i64)
            failed = kl.select(segment < segments, failed, 1)
            if (segment >= 0) & (segment < segments):
                a, b = x + (r * run + first), y + (segment * run + first)
                i = kl.value(0)
                while i < count:
                    mask = kl.tail_mask(count - i, lanes)
                    b.store(join(kind, a.load(i, lanes, mask), b.load(i, lanes, mask)), i, mask=mask)
                    i = i + lanes
    return failed


def _fill(y: Pointer, count: Value, v: float, dtype: DType, lanes: int) -> None:
    """Write a number `count` times."""
    i = kl.value(0)
    while i < count:
        y.store(kl.full(dtype, lanes, v), i, mask=kl.tail_mask(count - i, lanes))
        i = i + lanes


IDENTITIES: dict[str, Any] = {"sum": 0, "prod": 1}


@selector(Segments)
def select_segments(form: Segments, build: Builder) -> None:
    """Select for float32 and int32: the extreme of no rows is the extreme finite number."""
    x, ids, y = form.input, form.ids, form.output
    if x.dtype.name not in ("float32", "int32") or ids.dtype not in (i32, i64) or x.dtype is not y.dtype:
        raise NoKernel(f"segments {ids!r} of {x!r}")
    rank = len(ids.shape)
    if x.shape[:rank] != ids.shape or y.shape[1:] != x.shape[rank:] or any(b.parent is not None for b in (x, ids, y)):
        raise NoKernel(f"segments {ids!r} of {x!r} to {y!r}")
    low, high = x.dtype.limits
    start = IDENTITIES.get(form.kind, low if form.kind == "max" else high)
    start = float(start) if x.dtype.is_floating else int(start)
    run = math.prod(y.shape[1:])
    words = [build.pointer(x), build.pointer(ids), build.pointer(y), ids.size, run, y.shape[0]]
    items = -(-run // SEGMENT_COLUMNS)
    exact = form.exact and form.kind in ("max", "min") and x.dtype.is_floating
    code = join_segments.code(source=x.dtype, index=ids.dtype, kind=form.kind, start=start, exact=exact)
    build.step(code, words, items, chunk=grain((ids.size + y.shape[0]) * SEGMENT_COLUMNS * 4, items))
