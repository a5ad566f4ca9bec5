"""Boxes of arrays in memory: their axes, and transpositions of two to four planes.

Lives here: `Axis`, `merged_axes`, `table_of` and, in kernels, `box_offsets`; `interleave`, `every_second`, their
families; `join_pairs`.
Not here: copies and wider transpositions (moves.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import language as kl
from ..language import i64, ptr, u8, u16, u32, u64
from ..target import host
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address

UNITS = {1: u8, 2: u16, 4: u32, 8: u64}
"""Dtypes that elements are moved as, by their bytes."""


class Axis(NamedTuple):
    """An axis of a box: its extent, and the bytes from one element to the next, in the input and in the output."""

    extent: int
    source: int
    target: int


def merged_axes(axes: list[Axis]) -> list[Axis]:
    """Drop axes of extent 1 and merge adjacent axes that one stride describes."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        outer = merged[-1] if merged else None
        if outer and outer.source == axis.extent * axis.source and outer.target == axis.extent * axis.target:
            merged[-1] = Axis(outer.extent * axis.extent, axis.source, axis.target)
        else:
            merged.append(axis)
    return merged


def table_of(axes: list[Axis], build: Builder) -> Address | int:
    """Return the outer axes as the table of `box_offsets`."""
    if not axes:
        return 0
    return build.constant(np.array(axes, np.int64), key=("axes", tuple(axes)))


def box_offsets(item: Value, table: Pointer, axes: int) -> tuple[Value, Value]:
    """Return the offsets of item i of the outer axes of a box in the input and the output.

    table: (extent, steps) of each axis.
    """
    remaining, source, target = item, kl.value(0), kl.value(0)
    for axis in reversed(range(axes)):
        extent = table[3 * axis]
        index = remaining % extent if axis else remaining
        remaining = remaining // extent if axis else remaining
        source = source + index * table[3 * axis + 1]
        target = target + index * table[3 * axis + 2]
    return source, target


PLANES = 4  # at most
BLOCK = 4096  # elements of each plane per item


@kl.family
def move_interleaved(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    table: ptr[i64],
    n: i64,
    plane: i64,
    blocks: i64,
    *,
    size: int,
    count: int,
    apart: bool,
    outer: int,
) -> None:
    """Interleave `count` planes of n elements, `plane` bytes apart, to n groups; apart: separate groups into planes.

    Items: blocks of elements; n is at least lanes. The last vector of a block overlaps the one before it.
    """
    unit = UNITS[size]
    lanes = work.target.lanes(size)
    for item in work.items():
        source, target = box_offsets(item // blocks, table, outer)
        first = item % blocks * BLOCK
        last = kl.select(item % blocks == blocks - 1, n, first + BLOCK)
        for i in range(first, last, lanes):
            index = kl.minimum(i, last - lanes)
            groups, planes = (x + source, y + target) if apart else (y + target, x + source)
            group = (groups + index * (count * size)).cast(unit, size)
            rows = [(planes + (k * plane + index * size)).cast(unit, size) for k in range(count)]
            if apart:
                v = _pairs([group.load(k * lanes, lanes) for k in range(count)])
                for k in range(count):
                    rows[k].store(kl.shuffle(*v, [j * count + k for j in range(lanes)]))
            else:
                v = _pairs([row.load(0, lanes) for row in rows])
                for k in range(count):
                    order = [divmod(k * lanes + j, count) for j in range(lanes)]
                    group.store(kl.shuffle(*v, [p * lanes + element for element, p in order]), k * lanes)


def _pairs(vectors: list[Value]) -> tuple[Value, Value]:
    """Concatenate up to four vectors to two; missing lanes are undefined."""
    lanes = vectors[0].count
    undefined = [-1] * lanes
    first = kl.concat(vectors[0], vectors[1])
    if len(vectors) == 2:
        return first, first
    if len(vectors) == 3:
        return first, kl.shuffle(vectors[2], None, [*range(lanes), *undefined])
    return first, kl.concat(vectors[2], vectors[3])


@kl.family
def join_pairs(work: Work, a: ptr[u8], b: ptr[u8], y: ptr[u8], n: i64, *, size: int) -> None:
    """Interleave two arrays of n elements. Items: blocks of elements; n is at least lanes, and the last vector of a
    block overlaps the one before it."""
    unit = UNITS[size]
    lanes = work.target.lanes(size)
    a, b, y = (p.cast(unit, size) for p in (a, b, y))
    for item in work.items():
        first = item * BLOCK
        last = kl.minimum(n, first + BLOCK)
        for i in range(first, last, lanes):
            index = kl.minimum(i, last - lanes)
            pairs = kl.concat(a.load(index, lanes), b.load(index, lanes))
            for k in range(2):
                order = [divmod(k * lanes + j, 2) for j in range(lanes)]
                v = kl.shuffle(pairs, None, [second * lanes + element for element, second in order])
                y.store(v, 2 * index + k * lanes)


@kl.family
def take_every_second(
    work: Work, x: ptr[u8], y: ptr[u8], table: ptr[i64], n: i64, blocks: i64, *, size: int, outer: int
) -> None:
    """Copy n elements that are two apart. Items: blocks of elements, as of `join_pairs`. No element behind the last is
    read: the second vector of a pair begins at the last element of the first."""
    unit = UNITS[size]
    lanes = work.target.lanes(size)
    for item in work.items():
        source, target = box_offsets(item // blocks, table, outer)
        a, b = (x + source).cast(unit, size), (y + target).cast(unit, size)
        first = item % blocks * BLOCK
        last = kl.minimum(n, first + BLOCK)
        for i in range(first, last, lanes):
            index = kl.minimum(i, last - lanes)
            pair = kl.concat(a.load(2 * index, lanes), a.load(2 * index + (lanes - 1), lanes))
            half = lanes // 2
            b.store(kl.shuffle(pair, None, [2 * j if j < half else 2 * j + 1 for j in range(lanes)]), index)


def every_second(axes: list[Axis], size: int, source: Any, target: Any, build: Builder) -> bool:
    """Add the step of a box of elements two apart; return whether it is one."""
    inner = axes[-1] if axes else Axis(1, size, size)
    lanes = host().lanes(size)
    if size not in UNITS or (inner.source, inner.target) != (2 * size, size) or inner.extent < lanes or lanes < 2:
        return False
    blocks = -(-inner.extent // BLOCK)
    items = math.prod(a.extent for a in axes[:-1]) * blocks
    words = [source, target, table_of(axes[:-1], build), inner.extent, blocks]
    code = take_every_second.code(size=size, outer=len(axes) - 1)
    build.step(code, words, items, chunk=grain(min(BLOCK, inner.extent) * 2 * size, items))
    return True


def interleave(axes: list[Axis], size: int, source: Any, target: Any, build: Builder) -> bool:
    """Add the step of a box whose innermost axes are a few planes or channels; return whether it is one."""
    if len(axes) < 2 or size not in UNITS:
        return False
    outer, (before, last) = axes[:-2], axes[-2:]
    apart = before.extent <= PLANES and before.source == size and last.source == before.extent * size
    joins = last.extent <= PLANES and before.source == size and before.target == last.extent * size
    planes, along = (before, last) if apart else (last, before)
    if not (apart or joins) or last.target != size or along.extent < host().lanes(size):
        return False
    plane = planes.target if apart else planes.source
    blocks = max(1, along.extent // BLOCK)
    items = math.prod(a.extent for a in outer) * blocks
    code = move_interleaved.code(size=size, count=planes.extent, apart=apart, outer=len(outer))
    words = [source, target, table_of(outer, build), along.extent, plane, blocks]
    build.step(code, words, items, chunk=grain(min(BLOCK, along.extent) * planes.extent * size, items))
    return True
