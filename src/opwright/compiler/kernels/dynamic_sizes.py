"""Results with data-dependent sizes: expected elements and counts, nonzero positions, unique elements, ranges,
broadcast shapes.

Lives here: the selectors of Expected, ExpectedCount, ExpectedNumber, Places, Distinct, Numbers and BroadcastSizes,
their families.
Not here: guards of indices (gather.py), sorting (sorting.py).

Each is one work item, as positions depend on the number of earlier results.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i32, i64, ptr, u8
from ..loops.indexing_ops import BroadcastSizes, Distinct, Expected, ExpectedCount, ExpectedNumber, Numbers, Places
from . import NoKernel, selector

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder

HASH_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)
"""2^64 divided by the golden ratio, as int64: the high bits of a product with it depend on all bits of a number."""
MAX_PROBES = 32
"""Limit of the average probes of the hash table per element; beyond it the kernel fails, and sorting is used instead,
whose time does not depend on the elements."""


@kl.family
def compare_bytes(work: Work, x: ptr[u8], elements: ptr[u8], n: i64) -> Value:
    """Return 0 if n bytes are equal, else 1."""
    differs = kl.value(0)
    for i in range(n):
        differs = kl.select(x[i] == elements[i], differs, 1)
    return differs


@selector(Expected)
def select_expected(form: Expected, build: Builder) -> None:
    """Select for any dtype; bytes are compared."""
    x, expected = form.input, form.elements.constant
    rows = x.parent is not None and x.size != x.shape[-1]
    if rows or expected is None or x.dtype is not form.elements.dtype or x.size != form.elements.size:
        raise NoKernel(f"{x!r} expected to be {form.elements!r}")
    array = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    words = [build.pointer(x), build.constant(array), array.size]
    build.step(compare_bytes.code(), words, 1, chunk=1)


@kl.family
def compare_counts(work: Work, count: ptr[i64]) -> Value:
    """Return 0 if a count equals the expected one, else 1."""
    return kl.select(count[0] == count[1], kl.value(0), 1)


@selector(ExpectedCount)
def select_counted(form: ExpectedCount, build: Builder) -> None:
    """Build the step, which follows all others."""
    build.step(compare_counts.code(), [build.pointer(form.count)], 1, chunk=1)


@kl.family
def compare_numbers(work: Work, number: ptr[i64], count: ptr[i64]) -> Value:
    """Store a number as a count; return 0 if it equals the expected one, else 1."""
    count[0] = number[0]
    return kl.select(number[0] == count[1], kl.value(0), 1)


@selector(ExpectedNumber)
def select_number(form: ExpectedNumber, build: Builder) -> None:
    """Select for any place of the number."""
    build.step(compare_numbers.code(), [build.pointer(form.number), build.pointer(form.count)], 1, chunk=1)


@kl.family
def places_of_elements(
    work: Work,
    x: ptr[u8],
    y: ptr[i64],
    count: ptr[i64],
    table: ptr[i64],
    rows: i64,
    n: i64,
    *,
    source: DType,
    outer: int,
) -> int:
    """Write the coordinates of nonzero elements in `rows` rows of n. table: the sizes of the axes before the last."""
    unit = u8 if source.is_bool else source
    x = x.cast(unit, unit.size)
    lanes = work.target.lanes(unit.size)
    zero, rank = kl.full(unit, lanes, 0.0 if unit.is_floating else 0), outer + 1
    filled = kl.value(0)
    for r in range(rows):
        row, i = x + r * n, kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            if kl.any((row.load(i, lanes, mask) != zero) & mask):
                for j in range(i, kl.minimum(n, i + lanes)):
                    is_nonzero = row[j] != kl.value(0.0 if unit.is_floating else 0, unit)
                    if is_nonzero:
                        offset, remaining = filled * rank, kl.value(r)
                        y[offset + outer] = kl.value(j)
                        for k in range(outer):
                            axis = outer - 1 - k
                            y[offset + axis] = remaining % table[axis]
                            remaining = remaining // table[axis]
                    filled = kl.select(is_nonzero, filled + 1, filled)
            i = i + lanes
    count[0] = filled
    return 0


@selector(Places)
def select_places(form: Places, build: Builder) -> None:
    """Select for numbers and bools."""
    x, y = form.input, form.output
    rank = len(x.shape)
    if x.parent is not None or y.parent is not None or y.dtype is not i64 or not rank or y.shape != (x.size, rank):
        raise NoKernel(f"places {y!r} of {x!r}")
    if (x.dtype.is_floating and x.dtype.size < 4) or x.dtype.size > 8 or not x.size:
        raise NoKernel(f"places of {x!r}")
    *outer, n = x.shape
    table = build.constant(np.array([*outer, 1], np.int64))
    words: list[Any] = [build.pointer(x), build.pointer(y), build.pointer(form.count), table, math.prod(outer), n]
    build.step(places_of_elements.code(source=x.dtype, outer=len(outer)), words, 1, chunk=1)


@kl.family
def distinct_elements(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    numbers: ptr[u8],
    count: ptr[i64],
    table: ptr[i32],
    n: i64,
    bits: i64,
    *,
    source: DType,
    places: DType,
) -> Value:
    """Write the unique elements and the number of each element among them.

    table: an open-addressing hash table of 2^bits entries, at least 2 n: 1 + the number of a unique element.
    """
    x, y, numbers = x.cast(source, source.size), y.cast(source, source.size), numbers.cast(places, places.size)
    size = kl.value(1) << bits
    for k in range(size):
        table[k] = kl.value(0, i32)
    num_unique, probes = kl.value(0), kl.value(0)
    for i in range(n):
        v = x[i]
        bucket = ((_key_of(v, source) * HASH_FACTOR) >> (64 - bits)) & (size - 1)
        number, continuing = kl.value(-1), kl.value(1)
        if source.is_floating:
            continuing = kl.select(v == v, continuing, 0)  # NaN equals no element
        while continuing != 0:
            entry = table[bucket].to(i64)
            probes = probes + 1
            if entry == 0:
                table[bucket] = (num_unique + 1).to(i32)
                continuing = kl.value(0)
            elif y[entry - 1] == v:
                number = entry - 1
                continuing = kl.value(0)
            else:
                bucket = (bucket + 1) & (size - 1)
                continuing = kl.select(probes > MAX_PROBES * n, 0, continuing)
        if number < 0:
            y[num_unique] = v
            number = num_unique
            num_unique = num_unique + 1
        numbers[i] = number.to(places)
    failed = probes > MAX_PROBES * n
    count[0] = kl.select(failed, -1, num_unique)
    return kl.select(failed, kl.value(1), 0)


def _key_of(v: Value, source: DType) -> Value:
    """Return an int64 that is equal for equal elements."""
    if source.is_floating:
        return kl.bitcast(kl.select(v == 0.0, kl.value(0.0, source), v), i32 if source.size == 4 else i64).to(i64)
    return v.to(i64)


@selector(Distinct)
def select_distinct(form: Distinct, build: Builder) -> None:
    """Select for integers and float32 or wider floats."""
    x, ((values, first), (which, second)) = form.input, form.results
    if x.parent is not None or values.dtype is not x.dtype or len(x.shape) != 1 or which.shape != x.shape:
        raise NoKernel(f"different elements of {x!r}")
    if x.dtype.is_bool or (x.dtype.is_floating and x.dtype.size < 4) or not 0 < x.size < 1 << 28:
        raise NoKernel(f"different elements of {x!r}")
    if which.dtype not in (i32, i64) or values.size != x.size:
        raise NoKernel(f"places {which!r} of {values!r}")
    bits = max(4, (2 * x.size - 1).bit_length())
    y = build.pointer(form.output)
    words = [
        build.pointer(x),
        y.moved(first),
        y.moved(second),
        build.pointer(form.count),
        build.temporary(4 << bits),
        x.size,
        bits,
    ]
    build.step(distinct_elements.code(source=x.dtype, places=which.dtype), words, 1, chunk=1)


@kl.family
def count_up(
    work: Work, start: ptr[u8], limit: ptr[u8], delta: ptr[u8], y: ptr[u8], count: ptr[i64], room: i64, *, source: DType
) -> Value:
    """Write a range of numbers; floats are counted and accumulated in their own dtype."""
    start, limit, delta, y = (p.cast(source, source.size) for p in (start, limit, delta, y))
    first, last, step = start[0], limit[0], delta[0]
    if source.is_floating:
        exact = kl.ceil((last - first) / step)
        valid = (exact >= 0.0) & (exact <= room.to(source)) & (step != 0.0)  # false for NaN
        n = kl.to_int(kl.select(valid, exact, 0.0)).to(i64)
    else:
        a, b, d = first.to(i64), last.to(i64), step.to(i64)
        distance, magnitude = kl.select(d < 0, a - b, b - a), kl.select(d < 0, -d, d)
        divisor = kl.select(magnitude > 0, magnitude, 1)
        n = distance // divisor + kl.select(distance % divisor != 0, kl.value(1), 0)
        valid = (distance >= 0) & (magnitude > 0) & (n <= room) & kl.select(d < 0, a >= b, b >= a)
        n = kl.select(valid, n, 0)
    i = kl.value(0)
    if source.is_floating:
        value = first
        while i < n:
            y[i] = value
            value = value + step
            i = i + 1
    else:
        lanes = work.target.lanes(source.size)
        values = first.splat(lanes) + kl.iota(source, lanes) * step.splat(lanes)
        while i < n:
            y.store(values, i, mask=kl.tail_mask(n - i, lanes))
            values = values + (step * lanes).splat(lanes)
            i = i + lanes
    count[0] = kl.select(valid, n, -1)
    return kl.select(valid, kl.value(0), 1)


@selector(Numbers)
def select_numbers(form: Numbers, build: Builder) -> None:
    """Select for int32, int64 and float32."""
    y, operands = form.output, (form.start, form.limit, form.delta)
    if any(b.parent is not None or b.dtype is not y.dtype for b in (y, *operands)) or any(
        b.size != 1 for b in operands
    ):
        raise NoKernel(f"numbers {y!r} by {operands!r}")
    if y.dtype not in (i32, i64, f32) or not y.size < 1 << 23:  # which float32 represents exactly
        raise NoKernel(f"numbers {y!r}")
    words = [*map(build.pointer, operands), build.pointer(y), build.pointer(form.count), y.size]
    build.step(count_up.code(source=y.dtype), words, 1, chunk=1)


@kl.family
def broadcast_sizes(work: Work, a: ptr[u8], b: ptr[u8], y: ptr[u8], m: i64, n: i64, *, source: DType) -> Value:
    """Broadcast shapes of m and n sizes, aligned at their last axes; fail if they are incompatible."""
    a, b, y = (p.cast(source, source.size) for p in (a, b, y))
    rank, failed = kl.maximum(m, n), kl.value(0)
    one = kl.value(1, source)
    for i in range(rank):
        p, q = i - (rank - m), i - (rank - n)
        u, v = one, one
        if p >= 0:
            u = a[p]
        if q >= 0:
            v = b[q]
        compatible = (u == v) | (u == one) | (v == one)
        failed = kl.select(compatible & (u >= 0) & (v >= 0), failed, 1)
        y[i] = kl.select(u == one, v, u)
    return failed


@selector(BroadcastSizes)
def select_broadcast_sizes(form: BroadcastSizes, build: Builder) -> None:
    """Select for int32 and int64."""
    a, b, y = form.a, form.b, form.output
    if any(s.parent is not None or s.dtype is not a.dtype or len(s.shape) != 1 for s in (a, b, y)):
        raise NoKernel(f"shapes {a!r} and {b!r}")
    if a.dtype not in (i32, i64) or y.size != max(a.size, b.size):
        raise NoKernel(f"shapes {a!r} and {b!r}")
    words = [build.pointer(a), build.pointer(b), build.pointer(y), a.size, b.size]
    build.step(broadcast_sizes.code(source=a.dtype), words, 1, chunk=1)
