"""Data movement: boxes of an output, each an affine map of an input; elements are copied as bytes.

Lives here: the selector of Move, the families that copy runs, transpose blocks and copy single elements; the selectors
of Part (one result of an operation with several) and Checked (a copy whose elements are checked).
Not here: gathers of rows, bounds of indices (gather.py), the operators that are moves (rules of the dialects),
operations with several results (user_kernels.py, nms.py).

A box is reduced to as few axes as possible (axes of size 1 are dropped, adjacent axes joined if both sides allow it).
The stride of the innermost axis in the input selects the kernel: a run of bytes, one repeated element, a reversed run;
otherwise, if another axis is contiguous in the input, a transposition.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.buffers import Buffer, IndexMap, SameMemory, row_major
from ..loops.ops import Checked, Move, Part
from ..target import host
from . import NoKernel, selector
from .boxes import BLOCK as PAIR_BLOCK
from .boxes import UNITS, Axis, box_offsets, every_second, interleave, join_pairs, merged_axes, table_of
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

LONG = 1024  # bytes of a run from which memcpy is faster than a loop over vectors
BLOCK = 32768  # bytes of one long run per work item
PAGE = 4096  # bytes between lines of one set of an L1 cache, 64 sets of 64 bytes
TILES = 64  # bytes along the input's contiguous axis per work item of a transposition


@kl.family
def move_runs(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    table: ptr[i64],
    run: i64,
    rows: i64,
    row_in: i64,
    row_out: i64,
    *,
    kind: str,
    size: int,
    width: int,
    outer: int,
) -> None:
    """Move runs of `run` bytes. A work item is a run: there are `rows` of them for each index of the outer axes.

    kind: "copy", "spread" (repeat one element) or "reverse". size: bytes of an element. width: bytes of a vector, at
    most those of a run, whose last vector overlaps the one before; 0: memcpy. Steps are in bytes.
    """
    item = work.begin
    while item < work.end:
        row = item % rows
        count = kl.minimum(rows - row, work.end - item)
        source, target = box_offsets(item // rows, table, outer)
        a, b = x + (source + row * row_in), y + (target + row * row_out)
        for _ in range(count):
            if kind == "copy":
                copy_run(b, a, run, width)
            elif kind == "spread":
                spread_run(b, a, run, size, width)
            else:
                for i in range(0, run - width, width):
                    b.store(_reversed(a, i, size, width), i)
                b.store(_reversed(a, run - width, size, width), run - width)
            a, b = a + row_in, b + row_out
        item = item + count


def copy_run(b: Pointer, a: Pointer, run: Any, width: int) -> None:
    """Copy a run of bytes by vectors of `width` bytes, at most `run`; by memcpy if width is 0."""
    if width == 0:
        kl.copy(b, a, run)
        return
    for i in range(0, run - width, width):
        b.store(a.load(i, width), i)
    b.store(a.load(run - width, width), run - width)


def spread_run(b: Pointer, a: Pointer, run: Any, size: int, width: int) -> None:
    """Fill a run with the element of `size` bytes at a."""
    element = a.cast(UNITS[min(size, 8)]).load(0, max(size // 8, 1))
    v = kl.bitcast(kl.shuffle(element, None, [i % element.count for i in range(width // min(size, 8))]), u8)
    for i in range(0, run - width, width):
        b.store(v, i)
    b.store(v, run - width)


def _reversed(a: Pointer, i: Any, size: int, width: int) -> Value:
    """Load a vector of a run at offset i whose elements precede a in reverse order."""
    v = a.load(size - width - i, width)
    return kl.shuffle(v, None, [width - size - i + 2 * (i % size) for i in range(width)])


@kl.family
def move_block(work: Work, x: ptr[u8], y: ptr[u8], size: i64, block: i64) -> None:
    """Copy one run of `size` bytes. A work item is `block` bytes."""
    start = work.begin * block
    kl.copy(y + start, x + start, kl.minimum(work.end * block, size) - start)


@kl.family
def move_elements(
    work: Work, x: ptr[u8], y: ptr[u8], table: ptr[i64], n: i64, step_in: i64, step_out: i64, *, size: int, outer: int
) -> None:
    """Copy single elements. A work item is a row of n elements; steps are in bytes."""
    for item in work.items():
        source, target = box_offsets(item, table, outer)
        a, b = x + source, y + target
        for _ in range(n):
            if size in UNITS:
                b.cast(UNITS[size]).store(a.cast(UNITS[size])[0])
            else:
                b.store(a.load(0, size))
            a, b = a + step_in, b + step_out


@kl.family
def move_transposed(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    table: ptr[i64],
    columns: i64,
    rows: i64,
    row_in: i64,
    column_out: i64,
    blocks: i64,
    *,
    size: int,
    tile: int,
    across: int,
    parts: int,
    outer: int,
) -> None:
    """Transpose matrices of rows x columns. A work item is a block of columns.

    Tiles of tile x across elements are transposed in registers; the last tile of a row or column overlaps the one
    before. rows are at least `tile`, columns `across`. row_in, column_out: in bytes. parts: tiles of rows that are
    transposed one after the other before the next columns.
    """
    unit = UNITS[size]
    wide = max(TILES // size, across)
    for item in work.items():
        source, target = box_offsets(item // blocks, table, outer)
        block = item % blocks
        first = block * wide
        last = kl.select(block == blocks - 1, columns, first + wide) - across
        for line in range(0, rows, parts * tile):
            row = kl.minimum(line, rows - tile)  # the only one if parts is 1
            for j in range(first, last + across, across):
                column = kl.minimum(j, last)
                a, b = x + (source + column * size), y + (target + column * column_out)
                if parts == 1:
                    _transpose_tile(a + row * row_in, b + row * size, row_in, column_out, unit, tile, across)
                    continue
                for part in range(line, kl.minimum(line + parts * tile, rows), tile):
                    at = kl.minimum(part, rows - tile)
                    _transpose_tile(a + at * row_in, b + at * size, row_in, column_out, unit, tile, across)


def _transpose_tile(
    a: Pointer, b: Pointer, row_in: Value, column_out: Value, unit: DType, tile: int, across: int
) -> None:
    """Transpose `tile` rows at a of `across` elements each, to columns at b."""
    lines = [(a + i * row_in).cast(unit).load(0, across) for i in range(tile)]
    vectors = transposed(lines) if tile == across else transposed_by_halves(lines)
    for i in range(across):
        (b + i * column_out).cast(unit).store(vectors[i])


def transposed(vectors: list[Value]) -> list[Value]:
    """Transpose a square tile of vectors: each iteration exchanges one bit of the row index and of the lane index."""
    n = len(vectors)
    half = n // 2
    for _ in range(n.bit_length() - 1):
        pairs = zip(vectors[:half], vectors[half:])
        orders = [[start + i // 2 + n * (i % 2) for i in range(n)] for start in (0, half)]
        vectors = [kl.shuffle(a, b, order) for a, b in pairs for order in orders]
    return vectors


def transposed_by_halves(vectors: list[Value]) -> list[Value]:
    """Transpose twice as many vectors as they have lanes.

    Two are joined as they are loaded, so that lanes are exchanged within halves of a register only.
    """
    n = len(vectors) // 2
    joined = [kl.shuffle(a, b, list(range(2 * n))) for a, b in zip(vectors[:n], vectors[n:])]
    half = n // 2
    for _ in range(n.bit_length() - 1):
        orders = [[start + i // 2 + 2 * n * (i % 2) + part for part in (0, n) for i in range(n)] for start in (0, half)]
        joined = [kl.shuffle(a, b, order) for a, b in zip(joined[:half], joined[half:]) for order in orders]
    return joined


@selector(Move)
def select_move(form: Move, build: Builder) -> None:
    """Build the steps of the boxes, in order, after filling the elements that no box covers."""
    if _joins_pairs(form):
        size, n = form.output.dtype.size, form.operands[0].size
        items = -(-n // PAIR_BLOCK)
        words = [*map(build.pointer, (*form.operands, form.output)), n]
        build.step(join_pairs.code(size=size), words, items, chunk=grain(2 * PAIR_BLOCK * size, items))
        return
    if form.fill is not None:
        _fill(form, build)
    for operand, box in zip(form.operands, form.maps):
        if operand.dtype.size != form.output.dtype.size:
            raise NoKernel(f"a move of {operand.dtype.name} to {form.output.dtype.name}")
        _box(form.output, operand, box, build)


def _joins_pairs(form: Move) -> bool:
    """Return whether the elements of two arrays alternate in the output."""
    shape, size = form.output.shape, form.output.dtype.size
    lead = shape[:-1]
    if len(form.maps) != 2 or shape[-1:] != (2,) or size not in UNITS or math.prod(lead) < host().lanes(size):
        return False
    return (
        all(
            b.parent is None
            and (b.size, b.dtype.size) == (math.prod(lead), size)
            and (box.start, box.extent, box.offset) == ((*(0,) * len(lead), k), (*lead, 1), 0)
            and box.strides[:-1] == row_major(lead)
            for k, (b, box) in enumerate(zip(form.operands, form.maps))
        )
        and form.output.parent is None
    )


def _fill(form: Move, build: Builder) -> None:
    shape, boxes = form.output.shape, form.maps
    uncovered = _complement(shape, boxes[0]) if len(boxes) == 1 else [((0,) * len(shape), shape)]
    value = np.full(1, form.fill, form.output.dtype.np)
    source = build.constant(value, key=("fill", form.fill, form.output.dtype.name))
    for start, extent in uncovered:
        box = IndexMap(start, extent, 0, (0,) * len(shape))
        _steps(form.output, box, [0] * len(shape), source, build)


def _complement(shape: tuple[int, ...], box: IndexMap) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the complement of a box as disjoint boxes: before and after it along each axis."""
    boxes = []
    start, extent = [0] * len(shape), list(shape)
    for axis, n in enumerate(shape):
        a, b = box.start[axis], box.start[axis] + box.extent[axis]
        for low, high in ((0, a), (b, n)):
            if low < high:
                begin, size = list(start), list(extent)
                begin[axis], size[axis] = low, high - low
                boxes.append((tuple(begin), tuple(size)))
        start[axis], extent[axis] = a, b - a
    return boxes


def _box(output: Buffer, operand: Buffer, box: IndexMap, build: Builder) -> None:
    if 0 in box.extent:
        return
    spans = [s * (n - 1) for n, s in zip(box.extent, box.strides)]
    low, high = (box.offset + sum(f(span, 0) for span in spans) for f in (min, max))
    inside = all(a >= 0 and a + n <= size for a, n, size in zip(box.start, box.extent, output.shape))
    if low < 0 or high >= operand.size or not inside:
        raise NoKernel(f"a move from outside of {operand!r}: elements {low} to {high}" if inside else "a box too large")
    strides, offset = _within_slice(operand, box)
    source = build.pointer(operand, offset)
    _steps(output, box, [s * operand.dtype.size for s in strides], source, build)


def copy_buffer(source: Buffer, target: Buffer, build: Builder) -> None:
    """Build the steps of a copy of all elements of a buffer to one of the same size and dtype."""
    y, x = (SameMemory(b.name, b.dtype, (b.size,), b.constant, of=b) for b in (target, source))
    select_move(Move(y, (x,), (IndexMap((0,), (y.size,), 0, (1,)),)), build)


def _within_slice(operand: Buffer, box: IndexMap) -> tuple[list[int], int]:
    """Return a box's strides and offset in memory, where rows of a slice of another buffer have a larger pitch."""
    pitch = operand.pitch
    columns = operand.shape[-1] if operand.shape else 1
    if pitch == columns:
        return list(box.strides), box.offset
    strides, low, high = [], box.offset % columns, box.offset % columns
    for n, s in zip(box.extent, box.strides):
        if s % columns == 0:
            strides.append(s // columns * pitch)
            continue
        strides.append(s)
        low, high = low + min(s, 0) * (n - 1), high + max(s, 0) * (n - 1)
    if low < 0 or high >= columns:
        raise NoKernel("a move across the rows of a slice")
    return strides, box.offset // columns * pitch + box.offset % columns


def _steps(output: Buffer, box: IndexMap, strides: list[int], source: Any, build: Builder) -> None:
    """Build the steps of one box. strides: of the input, in bytes; source: the address of the box's first element."""
    size = output.dtype.size
    steps, step = [], size
    for k, n in enumerate(reversed(output.shape)):
        steps.append(step)
        step = output.pitch * size if k == 0 else step * n
    steps.reverse()
    target = build.pointer(output).moved(sum(s * i for s, i in zip(steps, box.start)))
    axes = merged_axes([Axis(n, s, t) for n, s, t in zip(box.extent, strides, steps)])
    _choose(axes, size, source, target, build)


def _choose(axes: list[Axis], size: int, source: Any, target: Any, build: Builder) -> None:
    inner = axes[-1] if axes else Axis(1, size, size)
    if inner.target != size or (inner.source not in (size, 0, -size)):
        if interleave(axes, size, source, target, build) or every_second(axes, size, source, target, build):
            return
        across = next((a for a in axes if a.source == size), None)
        if inner.target == size and across is not None and size in UNITS:
            tile = _tile(min(across.extent, inner.extent), size)
            if tile:
                by_halves = (size, host().vector_bytes) == (4, 32) and inner.extent >= 8 and inner.source % PAGE
                sides = (8, 4) if by_halves else (tile, tile)
                _transpose(axes, across, inner, size, sides, source, target, build)
                return
        _elements(axes, size, source, target, build)
        return
    kind = {size: "copy", 0: "spread", -size: "reverse"}[inner.source]
    run = inner.extent * size
    if len(axes) <= 1 and kind == "copy" and run >= LONG:
        items = -(-run // BLOCK)
        build.step(move_block.code(), [source, target, run, BLOCK], items, chunk=grain(BLOCK, items))
        return
    outer = axes[:-1]
    middle = outer.pop() if outer else Axis(1, 0, 0)
    items = math.prod(a.extent for a in outer) * middle.extent
    width = run_width(run) if kind == "copy" else _width(run, size)
    code = move_runs.code(kind=kind, size=size if kind != "copy" else 1, width=width, outer=len(outer))
    words = [source, target, table_of(outer, build), run, middle.extent, middle.source, middle.target]
    build.step(code, words, items, chunk=grain(run, items))


def run_width(run: int) -> int:
    """Return the width for `copy_run`: the longest vector within the run; 0 for long runs."""
    return 0 if run >= LONG else _width(run, 1)


def _width(run: int, size: int) -> int:
    return max(size, min(host().vector_bytes, 1 << (run.bit_length() - 1)))


def _tile(extent: int, size: int) -> int:
    """Return the side of a tile that is transposed in registers, in elements; 0 if the axis is too short."""
    tile = min(16, max(16, host().vector_bytes) // size, 1 << (extent.bit_length() - 1))
    return tile if tile >= min(4, 16 // size) else 0


def _transpose(
    axes: list[Axis],
    across: Axis,
    inner: Axis,
    size: int,
    sides: tuple[int, int],
    source: Any,
    target: Any,
    build: Builder,
) -> None:
    """Build a step that transposes two axes. sides: of a tile along the inner axis and across."""
    tile, narrow = sides
    outer = [a for a in axes if a is not across and a is not inner]
    wide = max(TILES // size, narrow)
    # Lines a multiple of 4 KB apart fall into one set of the L1 cache: those of the output are written as a whole
    one_set = across.target % PAGE == 0 and inner.source % PAGE != 0
    parts = max(TILES // (size * tile), 1) if one_set else 1
    blocks = max(1, across.extent // wide)
    items = math.prod(a.extent for a in outer) * blocks
    words = [source, target, table_of(outer, build), across.extent, inner.extent, inner.source, across.target]
    words.append(blocks)
    code = move_transposed.code(size=size, tile=tile, across=narrow, parts=parts, outer=len(outer))
    build.step(code, words, items, chunk=grain(wide * inner.extent * size, items))


def _elements(axes: list[Axis], size: int, source: Any, target: Any, build: Builder) -> None:
    inner = max(axes, key=lambda a: a.extent)
    outer = [a for a in axes if a is not inner]
    items = math.prod(a.extent for a in outer)
    words = [source, target, table_of(outer, build), inner.extent, inner.source, inner.target]
    build.step(move_elements.code(size=size, outer=len(outer)), words, items, chunk=grain(inner.extent * size, items))


PART_BLOCK = 1 << 16  # bytes per work item of copy_bytes
CHECKED_BLOCK = 16384  # elements per work item of copy_checked


@kl.family
def copy_bytes(work: Work, out: ptr[u8], source: ptr[u8], n: i64, block: i64) -> None:
    """Copy n bytes. A work item is a block."""
    for item in work.items():
        start = item * block
        kl.copy(out + start, source + start, kl.minimum(n - start, block))


@selector(Part)
def select_part(form: Part, build: Builder) -> None:
    """Copy the bytes of one result."""
    if form.output.parent is not None:
        raise NoKernel("a slice of another buffer")
    n = math.prod(form.output.shape) * form.output.dtype.size
    build.step(
        copy_bytes.code(),
        [build.pointer(form.output), build.pointer(form.input).moved(form.start), n, PART_BLOCK],
        -(-n // PART_BLOCK),
    )


@kl.family
def copy_checked(work: Work, x: ptr[u8], y: ptr[u8], n: i64, limit: ptr[u8], *, source: DType, refused: str) -> Value:
    """Copy n elements from x to y, which may be the same memory; fail if any is rejected."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.lanes(source.size)
    failed, bound = kl.value(0), limit.cast(source, source.size)[0]
    for item in work.items():
        i, end = item * CHECKED_BLOCK, kl.minimum(n, (item + 1) * CHECKED_BLOCK)
        while i < end:
            mask = kl.tail_mask(end - i, lanes)
            v = x.load(i, lanes, mask)
            failed = kl.select(kl.any(is_rejected(refused, v, bound) & mask), 1, failed)
            y.store(v, i, mask=mask)
            i = i + lanes
    return failed


def is_rejected(refused: str, v: Value, limit: Value) -> Value:
    """Return whether `Checked` rejects elements."""
    if refused == "equal":
        return v == limit
    return v < limit if refused == "below" else (v > limit) | (v < -limit)


@selector(Checked)
def select_checked(form: Checked, build: Builder) -> None:
    """Copy in place if the input has no other reader."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or x.dtype is not y.dtype or x.dtype.is_bool or x.size != y.size:
        raise NoKernel(f"elements {x!r} to be checked")
    if x.dtype.is_floating and x.dtype.size < 4:
        raise NoKernel(f"elements {x!r} to be checked")
    build.share(x)
    items = -(-x.size // CHECKED_BLOCK)
    limit = build.constant(np.array([form.limit], x.dtype.np))
    code = copy_checked.code(source=x.dtype, refused=form.refused)
    words = [build.pointer(x), build.pointer(y), x.size, limit]
    build.step(code, words, items, chunk=grain(CHECKED_BLOCK * x.dtype.size, items))
