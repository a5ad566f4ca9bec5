"""Gather: slices by index, elements along an axis or at coordinates, dynamic slices, reversed sequences.

Lives here: the selectors of Gather, GatherNd, SliceAt, UpdateSlice and ReverseStart, their families.
Not here: moves whose offsets are known when a plan is made, such as the reversal of whole axes (moves.py).

An index outside its axis reads the first slice, and the kernel reports failure at its end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i16, i32, i64, ptr, u8
from ..loops.buffers import Buffer
from ..loops.indexing_ops import Gather, GatherNd, ReverseStart, SliceAt, UpdateSlice
from . import NoKernel, selector
from .boxes import Axis, joined, place, table_of
from .moves import BLOCK, copy_run, run_width
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

INDICES = (i16, i32, i64)


@kl.family
def gather_runs(
    work,
    x: ptr[u8],
    indices: ptr[u8],
    y: ptr[u8],
    count: i64,
    outer: i64,
    n: i64,
    run: i64,
    *,
    places: DType,
    width: int,
):
    """Arrays [batch, outer, n] of runs of bytes, indices [batch, count] to [batch, outer, count]: an item is a run."""
    indices = indices.cast(places, places.size)
    failed, item = kl.value(0), work.begin
    while item < work.end:
        first, row = item % count, item // count
        ids = indices + (row // outer) * count
        a = x + row * n * run
        last = kl.minimum(count, first + work.end - item)
        for i in range(first, last):
            place = ids[i].to(i64)
            inside = (place >= 0) & (place < n)
            failed = kl.select(inside, failed, 1)
            copy_run(y + (item + i - first) * run, a + kl.select(inside, place, 0) * run, run, width)
        item = item + last - first
    return failed


@selector(Gather)
def select_gather(form: Gather, build: Builder) -> None:
    """Any dtype: bytes are moved."""
    x, indices, y = form.input, form.indices, form.output
    if indices.dtype not in INDICES or x.dtype is not y.dtype:
        raise NoKernel(f"slices of {x!r} by {indices!r}")
    if any(b.parent is not None for b in (x, indices, y)):
        raise NoKernel("slices of a slice")
    batch = form.batch_dims
    before, after = x.shape[batch : form.axis], x.shape[form.axis + 1 :]
    rest = indices.shape[batch:]
    if x.shape[:batch] != indices.shape[:batch] or y.shape != (*x.shape[:batch], *before, *rest, *after):
        raise NoKernel(f"slices of {x!r} by {indices!r} to {y!r}")
    if not x.size and y.size:
        raise NoKernel(f"slices of {x!r}: there are none")
    outer, count = math.prod(before), math.prod(rest)
    run = math.prod(after) * x.dtype.size
    items = math.prod(x.shape[:batch]) * outer * count
    if not items or not run:
        raise NoKernel("no slices")  # whose indices are still looked at
    words: list[Any] = [
        build.pointer(x),
        build.pointer(indices),
        build.pointer(y),
        count,
        outer,
        x.shape[form.axis],
        run,
    ]
    code = gather_runs.code(places=indices.dtype, width=run_width(run))
    build.step(code, words, items, chunk=grain(run, items))


@kl.family
def gather_places(
    work, x: ptr[u8], indices: ptr[u8], y: ptr[u8], table: ptr[i64], run: i64, *, places: DType, width: int, depth: int
):
    """Runs of bytes at coordinates, `depth` each. table: for each its limit, and the bytes from one to the next."""
    indices = indices.cast(places, places.size)
    failed = kl.value(0)
    for item in work.items():
        offset, fits = kl.value(0), kl.value(0) == 0
        for k in range(depth):
            place = indices[item * depth + k].to(i64)
            fits = fits & (place >= 0) & (place < table[2 * k])
            offset = offset + place * table[2 * k + 1]
        failed = kl.select(fits, failed, 1)
        copy_run(y + item * run, x + kl.select(fits, offset, 0), run, width)
    return failed


@selector(GatherNd)
def select_gather_nd(form: GatherNd, build: Builder) -> None:
    """Any dtype: bytes are moved."""
    x, indices, y = form.input, form.indices, form.output
    if indices.dtype not in INDICES or x.dtype is not y.dtype or any(b.parent is not None for b in (x, indices, y)):
        raise NoKernel(f"slices of {x!r} by {indices!r}")
    depth = indices.shape[-1]
    if not 0 < depth <= len(x.shape) or y.shape != (*indices.shape[:-1], *x.shape[depth:]) or not x.size or not y.size:
        raise NoKernel(f"slices of {x!r} by {indices!r} to {y!r}")
    run = math.prod(x.shape[depth:]) * x.dtype.size
    steps = [math.prod(x.shape[k + 1 :]) * x.dtype.size for k in range(depth)]
    table = build.constant(np.array([*zip(x.shape[:depth], steps)], np.int64))
    items = math.prod(indices.shape[:-1])
    code = gather_places.code(places=indices.dtype, width=run_width(run), depth=depth)
    words = [build.pointer(x), build.pointer(indices), build.pointer(y), table, run]
    build.step(code, words, items, chunk=grain(run, items))


@kl.family
def slice_box(
    work,
    x: ptr[u8],
    starts: ptr[u8],
    y: ptr[u8],
    limits: ptr[i64],
    table: ptr[i64],
    run: i64,
    *,
    places: DType,
    width: int,
    rank: int,
    outer: int,
):
    """Rows of a box of x into y; limits, table: as update_box has them, x's steps first."""
    starts = starts.cast(places, places.size)
    corner, fits = kl.value(0), kl.value(0) == 0
    for axis in range(rank):
        start = starts[axis].to(i64)
        fits = fits & (start >= 0) & (start <= limits[2 * axis])
        corner = corner + start * limits[2 * axis + 1]
    corner = kl.select(fits, corner, 0)
    for item in work.items():
        source, target = place(item, table, outer)
        copy_run(y + target, x + (corner + source), run, width)
    return kl.select(fits, kl.value(0), 1)


@selector(SliceAt)
def select_slice(form: SliceAt, build: Builder) -> None:
    """Any dtype: bytes are moved."""
    x, starts, y = form.input, form.starts, form.output
    rank = len(x.shape)
    if any(b.parent is not None for b in (x, starts, y)) or starts.dtype not in (i32, i64) or not rank:
        raise NoKernel(f"a slice of {x!r} at {starts!r}")
    if y.dtype is not x.dtype or starts.shape != (rank,) or not _fits(y, x) or not y.size:
        raise NoKernel(f"a slice of {x!r} to {y!r}")
    limits, axes, run = _box_of(x, y, build)
    axes = [Axis(a.extent, a.target, a.source) for a in axes]  # from x to y
    items = math.prod(a.extent for a in axes)
    code = slice_box.code(places=starts.dtype, width=run_width(run), rank=rank, outer=len(axes))
    words = [build.pointer(x), build.pointer(starts), build.pointer(y), limits, table_of(axes, build), run]
    build.step(code, words, items, chunk=grain(run, items))


def _fits(part: Buffer, whole: Buffer) -> bool:
    return len(part.shape) == len(whole.shape) and all(u <= n for u, n in zip(part.shape, whole.shape))


def _box_of(whole: Buffer, part: Buffer, build: Builder) -> tuple[Any, list[Axis], int]:
    """The limits of a part's place, its outer axes from the part to the whole, and the bytes of its runs."""
    size, rank = whole.dtype.size, len(whole.shape)
    steps, own = ([math.prod(b.shape[k + 1 :]) * size for k in range(rank)] for b in (whole, part))
    limits = np.array([(n - u, s) for n, u, s in zip(whole.shape, part.shape, steps)], np.int64)
    axes = joined([Axis(n, a, b) for n, a, b in zip(part.shape, own, steps)])
    inner = axes.pop() if axes and axes[-1].source == axes[-1].target == size else Axis(1, size, size)
    return build.constant(limits), axes, inner.extent * size


@kl.family
def copy_unless_shared(work, x: i64, y: i64, size: i64, block: i64):
    """x's bytes to y, `block` of them an item; nothing where both are one place."""
    start = work.begin * block
    if x != y:
        kl.copy(kl.pointer(y, u8) + start, kl.pointer(x, u8) + start, kl.minimum(work.end * block, size) - start)


@kl.family
def update_box(
    work,
    update: ptr[u8],
    starts: ptr[u8],
    y: ptr[u8],
    limits: ptr[i64],
    table: ptr[i64],
    run: i64,
    *,
    places: DType,
    width: int,
    rank: int,
    outer: int,
    guarded: bool,
):
    """Rows of the update into y. limits: for each axis its last place for the box, and the bytes from one to the next;
    table: as `place` takes it. An item is a row. guarded: gives 1 for a place outside along the first axis."""
    starts = starts.cast(places, places.size)
    corner, failed = kl.value(0), kl.value(0)
    for axis in range(rank):
        at = starts[axis].to(i64)
        if guarded and axis == 0:
            failed = kl.select((at >= 0) & (at <= limits[0]), failed, 1)
        corner = corner + kl.clamp(at, 0, limits[2 * axis]) * limits[2 * axis + 1]
    for item in work.items():
        source, target = place(item, table, outer)
        copy_run(y + (corner + target), update + source, run, width)
    return failed


@selector(UpdateSlice)
def select_update(form: UpdateSlice, build: Builder) -> None:
    """In place where nobody needs the input later."""
    x, update, starts, y = form.input, form.update, form.starts, form.output
    rank, size = len(x.shape), x.dtype.size
    if (
        any(b.parent is not None for b in (x, update, starts, y))
        or update is x
        or starts.dtype not in (i32, i64)
        or not rank
    ):
        raise NoKernel(f"an update of {x!r} at {starts!r}")
    if (
        update.dtype is not x.dtype
        or y.dtype is not x.dtype
        or y.shape != x.shape
        or starts.shape != (rank,)
        or len(update.shape) != rank
        or any(u > n for u, n in zip(update.shape, x.shape))
        or not update.size
    ):
        raise NoKernel(f"an update of {x!r} by {update!r}")
    build.share(x)
    nbytes = x.size * size
    blocks = -(-nbytes // BLOCK)
    build.step(
        copy_unless_shared.code(),
        [build.pointer(x), build.pointer(y), nbytes, BLOCK],
        blocks,
        chunk=grain(BLOCK, blocks),
    )
    limits, axes, run = _box_of(x, update, build)
    items = math.prod(a.extent for a in axes)
    code = update_box.code(places=starts.dtype, width=run_width(run), rank=rank, outer=len(axes), guarded=form.guarded)
    words = [build.pointer(update), build.pointer(starts), build.pointer(y), limits, table_of(axes, build), run]
    build.step(code, words, items, chunk=grain(run, items))


@kl.family
def reverse_starts(
    work,
    x: ptr[u8],
    lengths: ptr[u8],
    y: ptr[u8],
    high: i64,
    between: i64,
    low: i64,
    run: i64,
    *,
    held: DType,
    width: int,
    batch_first: bool,
):
    """Arrays [outer, high, between, low] of runs of bytes: an item is a run. batch_first: high counts sequences, and
    low their elements; else the other way round."""
    lengths = lengths.cast(held, held.size)
    failed = kl.value(0)
    for item in work.items():
        b, a = item % low, item // (low * between) % high
        sequence, t = (a, b) if batch_first else (b, a)
        length = lengths[sequence].to(i64)
        fits = (length >= 0) & (length <= (low if batch_first else high))
        failed = kl.select(fits, failed, 1)
        step = kl.select(fits & (t < length), length - 1 - 2 * t, 0)  # to length - 1 - t
        source = item + (step if batch_first else step * (low * between))
        copy_run(y + item * run, x + source * run, run, width)
    return failed


@selector(ReverseStart)
def select_reverse(form: ReverseStart, build: Builder) -> None:
    """Any dtype: bytes are moved."""
    x, lengths, y = form.input, form.lengths, form.output
    if any(b.parent is not None for b in (x, lengths, y)) or x.dtype is not y.dtype or x.shape != y.shape:
        raise NoKernel(f"sequences of {x!r} to {y!r}")
    if lengths.dtype not in (i32, i64) or lengths.shape != (x.shape[form.batch],):
        raise NoKernel(f"lengths {lengths!r} of {x!r}")
    first, last = sorted((form.time, form.batch))
    run = math.prod(x.shape[last + 1 :]) * x.dtype.size
    items = math.prod(x.shape[: last + 1])
    code = reverse_starts.code(held=lengths.dtype, width=run_width(run), batch_first=form.batch == first)
    words = [
        build.pointer(x),
        build.pointer(lengths),
        build.pointer(y),
        x.shape[first],
        math.prod(x.shape[first + 1 : last]),
        x.shape[last],
        run,
    ]
    build.step(code, words, items, chunk=grain(run, items))
