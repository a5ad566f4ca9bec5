"""A few planes to pixels, and pixels to planes: transpositions of two to four rows.

Lives here: `interleave`, its family.  Not here: wider transpositions (moves.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import i64, ptr, u8
from ..target import host
from .boxes import UNITS, Axis, place, table_of
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

MOST = 4  # planes
BLOCK = 4096  # elements of each plane that an item moves


@kl.family
def move_interleaved(
    work,
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
):
    """`count` planes of n elements, `plane` bytes apart, to n groups side by side; apart: the other way round.

    An item is a block of elements; n is no less than lanes. The last vector of a block overlaps the one before it.
    """
    unit = UNITS[size]
    lanes = work.target.vector_bytes // size
    for item in work.items():
        source, target = place(item // blocks, table, outer)
        first = item % blocks * BLOCK
        last = kl.select(item % blocks == blocks - 1, n, first + BLOCK)
        for i in range(first, last, lanes):
            at = kl.minimum(i, last - lanes)
            groups, planes = (x + source, y + target) if apart else (y + target, x + source)
            group = (groups + at * (count * size)).cast(unit, size)
            rows = [(planes + (k * plane + at * size)).cast(unit, size) for k in range(count)]
            if apart:
                v = _pairs([group.load(k * lanes, lanes) for k in range(count)])
                for k in range(count):
                    rows[k].store(kl.shuffle(*v, [j * count + k for j in range(lanes)]))
            else:
                v = _pairs([row.load(0, lanes) for row in rows])
                for k in range(count):
                    places = [divmod(k * lanes + j, count) for j in range(lanes)]
                    group.store(kl.shuffle(*v, [which * lanes + element for element, which in places]), k * lanes)


def _pairs(vectors: list[Any]) -> tuple[Any, Any]:
    """Up to four vectors as two of twice as many lanes; what is missing is anything."""
    lanes = vectors[0].count
    anything = [-1] * lanes
    first = kl.concat(vectors[0], vectors[1])
    if len(vectors) == 2:
        return first, first
    if len(vectors) == 3:
        return first, kl.shuffle(vectors[2], None, [*range(lanes), *anything])
    return first, kl.concat(vectors[2], vectors[3])


def interleave(axes: list[Axis], size: int, source: Any, target: Any, build: Builder) -> bool:
    """Add the step of a box whose innermost axes are a few planes, or pixels of a few channels; False: it is none."""
    if len(axes) < 2 or size not in UNITS:
        return False
    outer, (before, last) = axes[:-2], axes[-2:]
    apart = before.extent <= MOST and before.source == size and last.source == before.extent * size
    joins = last.extent <= MOST and before.source == size and before.target == last.extent * size
    planes, along = (before, last) if apart else (last, before)
    if not (apart or joins) or last.target != size or along.extent < host().vector_bytes // size:
        return False
    plane = planes.target if apart else planes.source
    blocks = max(1, along.extent // BLOCK)
    items = math.prod(a.extent for a in outer) * blocks
    code = move_interleaved.code(size=size, count=planes.extent, apart=apart, outer=len(outer))
    words = [source, target, table_of(outer, build), along.extent, plane, blocks]
    build.step(code, words, items, chunk=grain(min(BLOCK, along.extent) * planes.extent * size, items))
    return True
