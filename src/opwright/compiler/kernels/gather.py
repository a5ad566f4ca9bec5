"""Copies by index: gathers, dynamic slices and updates, reversed sequences.

Lives here: the selectors of Gather, GatherAt, SliceAt, UpdateSlice and ReverseStart, their families.
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
from ..loops.buffers import Buffer, row_major
from ..loops.indexing_ops import Gather, GatherAt, ReverseStart, SliceAt, UpdateSlice
from . import NoKernel, selector
from .boxes import Axis, box_offsets, merged_axes, table_of
from .moves import BLOCK, copy_run, run_width
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

INDICES = (i16, i32, i64)


@kl.family
def gather_runs(
    work: Work,
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
) -> Value:
    """Gather from [batch, outer, n] runs of bytes by indices [batch, count] to [batch, outer, count]. Items: runs."""
    indices = indices.cast(places, places.size)
    failed, item = kl.value(0), work.begin
    while item < work.end:
        first, row = item % count, item // count
        ids = indices + (row // outer) * count
        a = x + row * n * run
        last = kl.minimum(count, first + work.end - item)
        for i in range(first, last):
            index = ids[i].to(i64)
            inside = (index >= 0) & (index < n)
            failed = kl.select(inside, failed, 1)
            copy_run(y + (item + i - first) * run, a + kl.select(inside, index, 0) * run, run, width)
        item = item + last - first
    return failed


@selector(Gather)
def select_gather(form: Gather, build: Builder) -> None:
    """Add the step of a gather along an axis, of any dtype."""
    x, indices, y = form.input, form.indices, form.output
    if indices.dtype not in INDICES or x.dtype is not y.dtype:
        raise NoKernel(f"slices of {x!r} by {indices!r}")
    if any(b.parent is not None for b in (x, indices, y)):
        raise NoKernel("slices of a slice")
    batch = form.batch_dims
    before, after = x.shape[batch : form.axis], x.shape[form.axis + 1 :]
    index_shape = indices.shape[batch:]
    if x.shape[:batch] != indices.shape[:batch] or y.shape != (*x.shape[:batch], *before, *index_shape, *after):
        raise NoKernel(f"slices of {x!r} by {indices!r} to {y!r}")
    if not x.size and y.size:
        raise NoKernel(f"slices of {x!r}: there are none")
    outer, count = math.prod(before), math.prod(index_shape)
    run = math.prod(after) * x.dtype.size
    items = math.prod(x.shape[:batch]) * outer * count
    if not items or not run:
        raise NoKernel("no slices")  # whose indices are still checked
    pointers = [build.pointer(x), build.pointer(indices), build.pointer(y)]
    words: list[Any] = [*pointers, count, outer, x.shape[form.axis], run]
    code = gather_runs.code(places=indices.dtype, width=run_width(run))
    build.step(code, words, items, chunk=grain(run, items))


@kl.family
def gather_places(
    work: Work,
    x: ptr[u8],
    indices: ptr[u8],
    y: ptr[u8],
    table: ptr[i64],
    run: i64,
    *,
    places: DType,
    width: int,
    depth: int,
) -> Value:
    """Gather runs of bytes at coordinates of `depth` components. table: the limit and stride in bytes of each."""
    indices = indices.cast(places, places.size)
    failed = kl.value(0)
    for item in work.items():
        offset, fits = offset_of(indices, item, table, depth)
        failed = kl.select(fits, failed, 1)
        copy_run(y + item * run, x + kl.select(fits, offset, 0), run, width)
    return failed


def offset_of(indices: Pointer, item: Value | int, table: Pointer, depth: int) -> tuple[Value, Value]:
    """Return the offset of an item's coordinates, and whether each is within its limit. table: limits and strides."""
    offset, fits = kl.value(0), kl.value(0) == 0
    for k in range(depth):
        index = indices[item * depth + k].to(i64)
        fits = fits & (index >= 0) & (index < table[2 * k])
        offset = offset + index * table[2 * k + 1]
    return offset, fits


@selector(GatherAt)
def select_gather_nd(form: GatherAt, build: Builder) -> None:
    """Add the step of a gather by coordinates, of any dtype."""
    x, indices, y = form.input, form.indices, form.output
    if indices.dtype not in INDICES or x.dtype is not y.dtype or any(b.parent is not None for b in (x, indices, y)):
        raise NoKernel(f"slices of {x!r} by {indices!r}")
    depth = indices.shape[-1]
    if not 0 < depth <= len(x.shape) or y.shape != (*indices.shape[:-1], *x.shape[depth:]) or not x.size or not y.size:
        raise NoKernel(f"slices of {x!r} by {indices!r} to {y!r}")
    run = math.prod(x.shape[depth:]) * x.dtype.size
    steps = [n * x.dtype.size for n in row_major(x.shape)]
    table = build.constant(np.array([*zip(x.shape[:depth], steps)], np.int64))
    items = math.prod(indices.shape[:-1])
    code = gather_places.code(places=indices.dtype, width=run_width(run), depth=depth)
    words = [build.pointer(x), build.pointer(indices), build.pointer(y), table, run]
    build.step(code, words, items, chunk=grain(run, items))


@kl.family
def slice_box(
    work: Work,
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
) -> Value:
    """Copy the rows of a box of x to y. limits, table: as for update_box, strides of x first. Items: rows."""
    starts = starts.cast(places, places.size)
    corner, fits = kl.value(0), kl.value(0) == 0
    for axis in range(rank):
        start = starts[axis].to(i64)
        fits = fits & (start >= 0) & (start <= limits[2 * axis])
        corner = corner + start * limits[2 * axis + 1]
    corner = kl.select(fits, corner, 0)
    for item in work.items():
        source, target = box_offsets(item, table, outer)
        copy_run(y + target, x + (corner + source), run, width)
    return kl.select(fits, kl.value(0), 1)


@selector(SliceAt)
def select_slice(form: SliceAt, build: Builder) -> None:
    """Add the step of a slice at computed starts, of any dtype."""
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


def _fits(part: Buffer, array: Buffer) -> bool:
    return len(part.shape) == len(array.shape) and all(u <= n for u, n in zip(part.shape, array.shape))


def _box_of(array: Buffer, part: Buffer, build: Builder) -> tuple[Any, list[Axis], int]:
    """Return the limits of the start of a part, its outer axes from part to array, and the bytes of its runs."""
    size = array.dtype.size
    steps, own = ([n * size for n in row_major(b.shape)] for b in (array, part))
    limits = np.array([(n - u, s) for n, u, s in zip(array.shape, part.shape, steps)], np.int64)
    axes = merged_axes([Axis(n, a, b) for n, a, b in zip(part.shape, own, steps)])
    inner = axes.pop() if axes and axes[-1].source == axes[-1].target == size else Axis(1, size, size)
    return build.constant(limits), axes, inner.extent * size


STREAMED, AHEAD, LINES = 8 << 20, 2048, 4
"""Bytes of all arrays that the updates of a plan copy from which copies bypass the caches, which these would fill;
bytes by which their source is prefetched; vectors of a step. 24 caches of 1 MiB take 1.04 ms instead of 1.54 on one
core of Zen 4: lines that are only written are not read before."""


@kl.family
def copy_unless_shared(work: Work, x: i64, y: i64, size: i64, block: i64, *, streamed: bool) -> None:
    """Copy the bytes of x to y unless they share memory. Items: `block` bytes. streamed: whether to bypass the
    caches."""
    start = work.begin * block
    if x != y:
        source, target = kl.pointer(x, u8) + start, kl.pointer(y, u8) + start
        nbytes = kl.minimum(work.end * block, size) - start
        if streamed:
            _copy_streamed(source, target, nbytes, work.target.vector_bytes)
        else:
            kl.copy(target, source, nbytes)


def _copy_streamed(source: Pointer, target: Pointer, nbytes: Value, lanes: int) -> None:
    """Copy bytes, whole steps of vectors of `lanes` bytes from the first aligned one on by stores past the caches."""
    step = LINES * lanes
    head = kl.minimum(-target.address() & (lanes - 1), nbytes)
    done = head + (nbytes - head) // step * step
    kl.copy(target, source, head)
    for i in range(head, done, step):
        for line in range(LINES):
            (source + i).prefetch(AHEAD + line * lanes)
        vectors = [(source + i).load(line * lanes, lanes) for line in range(LINES)]
        for line in range(LINES):
            (target + i).cast(u8, lanes).store(vectors[line], line * lanes, temporal=False)
    kl.copy(target + done, source + done, nbytes - done)
    kl.fence()


@kl.family
def update_box(
    work: Work,
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
) -> Value:
    """Copy the rows of an update into y. Items: rows.

    limits: the last start of the box along each axis, and the stride in bytes; table: see `box_offsets`. guarded:
    whether a start outside along the first axis is reported as failure.
    """
    starts = starts.cast(places, places.size)
    corner, failed = kl.value(0), kl.value(0)
    for axis in range(rank):
        start = starts[axis].to(i64)
        if guarded and axis == 0:
            failed = kl.select((start >= 0) & (start <= limits[0]), failed, 1)
        corner = corner + kl.clamp(start, 0, limits[2 * axis]) * limits[2 * axis + 1]
    for item in work.items():
        source, target = box_offsets(item, table, outer)
        copy_run(y + (corner + target), update + source, run, width)
    return failed


@selector(UpdateSlice)
def select_update(form: UpdateSlice, build: Builder) -> None:
    """Add the step of an update at computed starts, in place if the input has no later use."""
    x, update, starts, y = form.input, form.update, form.starts, form.output
    rank, size = len(x.shape), x.dtype.size
    if any(b.parent is not None for b in (x, update, starts, y)) or update is x or not rank:
        raise NoKernel(f"an update of {x!r} at {starts!r}")
    if starts.dtype not in (i32, i64) or starts.shape != (rank,):
        raise NoKernel(f"an update of {x!r} at {starts!r}")
    same = update.dtype is x.dtype and y.dtype is x.dtype and y.shape == x.shape
    if not same or not _fits(update, x) or not update.size:
        raise NoKernel(f"an update of {x!r} by {update!r}")
    build.share(x)
    nbytes = x.size * size
    blocks = -(-nbytes // BLOCK)
    words: list[Any] = [build.pointer(x), build.pointer(y), nbytes, BLOCK]
    build.step(copy_unless_shared.code(streamed=build.copied >= STREAMED), words, blocks, chunk=grain(BLOCK, blocks))
    limits, axes, run = _box_of(x, update, build)
    items = math.prod(a.extent for a in axes)
    code = update_box.code(places=starts.dtype, width=run_width(run), rank=rank, outer=len(axes), guarded=form.guarded)
    words = [build.pointer(update), build.pointer(starts), build.pointer(y), limits, table_of(axes, build), run]
    build.step(code, words, items, chunk=grain(run, items))


@kl.family
def reverse_starts(
    work: Work,
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
) -> Value:
    """Reverse the starts of sequences in [outer, high, between, low] runs of bytes. Items: runs.

    batch_first: whether high counts sequences and low their elements, or the reverse.
    """
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
    """Add the step of a reversal of the starts of sequences, of any dtype."""
    x, lengths, y = form.input, form.lengths, form.output
    if any(b.parent is not None for b in (x, lengths, y)) or x.dtype is not y.dtype or x.shape != y.shape:
        raise NoKernel(f"sequences of {x!r} to {y!r}")
    if lengths.dtype not in (i32, i64) or lengths.shape != (x.shape[form.batch],):
        raise NoKernel(f"lengths {lengths!r} of {x!r}")
    first, last = sorted((form.time, form.batch))
    run = math.prod(x.shape[last + 1 :]) * x.dtype.size
    items = math.prod(x.shape[: last + 1])
    code = reverse_starts.code(held=lengths.dtype, width=run_width(run), batch_first=form.batch == first)
    pointers = [build.pointer(x), build.pointer(lengths), build.pointer(y)]
    words: list[Any] = [*pointers, x.shape[first], math.prod(x.shape[first + 1 : last]), x.shape[last], run]
    build.step(code, words, items, chunk=grain(run, items))
