"""The order of long rows, by a radix sort of their keys.

Lives here: the selector of Ordered for many places of long rows, its family.
Not here: keys, and few places of a row (sorting.py), which is the heap's to find.

An entry is the key's complement above the position. Four passes distribute entries by eight bits of the key each, in
order, so that equal elements keep theirs: no comparison, and as long for any elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.ops import Ordered
from . import NoKernel, selector
from .sorting import POSITION_MASK, check_order_of, key_of
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.plan_builder import Builder

BITS, PASSES = 8, 4
BUCKETS = 1 << BITS
LEAST, MOST = 512, 1 << 25
"""Places of a row from which a sort is faster than a heap; elements of a row whose entries are kept twice."""
SHARE = 8
"""A heap is faster for less than one in SHARE elements, as vectors skip elements that cannot enter it."""


@kl.family
def sort_rows(
    work: Work, x: ptr[u8], y: ptr[u8], n: i64, k: i64, *, source: DType, places: DType, rising: bool, nan: str
) -> None:
    """Write the positions of the first k of n elements in order. A work item is a row.

    Scratch: the entries of a row, twice; how many have each value of each digit, which become their places.
    """
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    entries = work.scratch(i64)
    others = entries + n
    counts = (others + n).cast(i32)
    for item in work.items():
        row = x + item * n
        for i in range(PASSES * BUCKETS):
            counts[kl.value(i)] = kl.value(0, i32)
        for i in range(n):
            key = (1 << 31) - 1 - key_of(row[i], source, rising, nan)
            entries[i] = (key << 32) + i
            for digit in kl.unroll(PASSES):
                at = ((key >> (BITS * digit)) & (BUCKETS - 1)) + BUCKETS * digit
                counts[at] = counts[at] + 1
        for digit in kl.unroll(PASSES):
            place = kl.value(0, i32)
            for value in kl.loop(BUCKETS):
                count = counts[value + BUCKETS * digit]
                counts[value + BUCKETS * digit] = place
                place = place + count
            read, write = (entries, others) if digit % 2 == 0 else (others, entries)
            for i in range(n):
                entry = read[i]
                at = ((entry >> (32 + BITS * digit)) & (BUCKETS - 1)) + BUCKETS * digit
                place = counts[at]
                counts[at] = place + 1
                write[place.to(i64)] = entry
        for i in range(k):
            y[item * k + i] = (entries[i] & POSITION_MASK).to(places)


@selector(Ordered)
def select_sort(form: Ordered, build: Builder) -> None:
    """Select for elements of at most 32 bits, if a good part of a long row is asked for."""
    check_order_of(form)
    x, y = form.input, form.output
    n, k = x.shape[-1], y.shape[-1]
    if x.dtype.size > 4 or k < LEAST or k * SHARE < n or n > MOST:
        raise NoKernel(f"{k} of {n} elements of {x.dtype.name}")
    rows = x.size // n
    code = sort_rows.code(source=x.dtype, places=y.dtype, rising=form.rising, nan=form.nan)
    scratch = 16 * n + 4 * PASSES * BUCKETS
    build.step(code, [build.pointer(x), build.pointer(y), n, k], rows, scratch=scratch, chunk=grain(128 * n, rows))
