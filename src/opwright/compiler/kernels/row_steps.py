"""Steps of optimizers by sparse rows inside of plans: rows in any order, equal ones among them.

Lives here: the selector of RowsUpdate, its families `sort_rows` and `update_sorted_rows`; `merge_sorted_rows`, which
merges rows alone (../merge_calls.py calls it).
Not here: rows that are merged before (`update_rows` in updates.py, called by ../update_calls.py), the formulas
(ops/optimizer_rules.py).

Rows are sorted by a radix sort of their indices with their positions, which keeps the order of equal ones. The first
row of equal ones adds the others to itself in that order, as `merge` of ops/array_functions.py does, and then meets
the rule.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType, int32, int64
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.ops import RowsUpdate
from . import NoKernel, selector
from .expression import check
from .tiling import grain
from .updates import RowsPattern, rows_pattern, update

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

DIGIT_BITS = 11
"""Bits of a digit: its counters, 16 KiB, fit the first cache with the keys."""
POSITION_BITS = 32
"""The lower bits of a key, which are the position; the others are the row."""
IDLE_ROWS = 256
"""Rows of a table in a work item, where rows without a gradient move, too."""


@kl.family
def sort_rows(work: Work, indices: ptr[u8], keys: ptr[i64], n: i64, *, dtype: DType, digits: int) -> None:
    """Write the keys of n rows in ascending order: keys has room for 2 n, and they are the last n if digits is odd.

    A work item is all of them. Scratch: a counter for each value of a digit
    """
    source, count, mask = indices.cast(dtype, dtype.size), 1 << DIGIT_BITS, (1 << DIGIT_BITS) - 1
    counters = work.scratch(i64)
    for _ in work.items():
        for i in range(n):
            keys[i] = (source[i].to(i64) << POSITION_BITS) + i
        for digit in range(digits):
            shift = POSITION_BITS + digit * DIGIT_BITS
            unsorted, target = (keys, keys + n) if digit % 2 == 0 else (keys + n, keys)
            for k in kl.loop(count):
                counters[k] = kl.value(0)
            for i in range(n):
                place = (unsorted[i] >> shift) & mask
                counters[place] = counters[place] + 1
            start = kl.value(0)
            for k in kl.loop(count):
                number = counters[k]
                counters[k] = start
                start = start + number
            for i in range(n):
                key = unsorted[i]
                place = (key >> shift) & mask
                target[counters[place]] = key
                counters[place] = counters[place] + 1


@kl.family
def merge_sorted_rows(
    work: Work,
    keys: ptr[i64],
    n: i64,
    width: i64,
    values: ptr[u8],
    rows: ptr[u8],
    merged: ptr[u8],
    count: ptr[i64],
    *,
    dtype: DType,
    index: DType,
) -> None:
    """Write the distinct rows of n sorted keys, and for each the sum of its values, in their order. A work item is all.

    rows, merged: with room for n; count: receives the number of distinct rows
    """
    source, target = values.cast(dtype, dtype.size), merged.cast(dtype, dtype.size)
    places = rows.cast(index, index.size)
    mask, lanes = (1 << POSITION_BITS) - 1, work.lanes(dtype)
    for _ in work.items():
        distinct = kl.value(0)
        for k in range(n):
            key = keys[k]
            given, x = key >> POSITION_BITS, source + (key & mask) * width
            if (k == 0) | ((keys[kl.maximum(k - 1, 0)] >> POSITION_BITS) != given):
                y = target + distinct * width
                for i in range(0, width, lanes):
                    tail = kl.tail_mask(width - i, lanes)
                    y.store(x.load(i, lanes, tail), i, tail)
                places[distinct] = given.to(index)
                distinct = distinct + 1
            else:
                y = target + (distinct - 1) * width
                for i in range(0, width, lanes):
                    tail = kl.tail_mask(width - i, lanes)
                    y.store(y.load(i, lanes, tail) + x.load(i, lanes, tail), i, tail)
        count[0] = distinct


@kl.family
def update_sorted_rows(
    work: Work, keys: ptr[i64], n: i64, height: i64, width: i64, *more: i64, pattern: RowsPattern
) -> None:
    """Update rows of tables of `height` rows in place, by the n rows of a gradient in the order of keys.

    more: addresses of the targets, the gradient's rows and scalars. A work item is a row of the gradient; with idle
    rows, IDLE_ROWS of the tables. Scratch: a row
    """
    arrays = [kl.pointer(x, d) for x, d in zip(more, pattern.step.dtypes)]
    targets, gradient, scalars = arrays[: pattern.targets], arrays[pattern.targets], arrays[pattern.targets + 1 :]
    total, zero = work.scratch(pattern.step.dtypes[0]), height - height
    for item in work.items():
        if pattern.idle is None:
            given = keys[item] >> POSITION_BITS
            if (item == 0) | ((keys[kl.maximum(item - 1, 0)] >> POSITION_BITS) != given):
                end = _end_of(keys, item, n)
                own = [p + given * width for p in targets]
                summed = _sum(work, keys, gradient, total, item, end, width)
                update(work, pattern.step, [*own, summed, *scalars], zero, width)
        else:
            first = item * IDLE_ROWS
            k = _place_of(keys, n, first)
            for row in range(first, kl.minimum(first + IDLE_ROWS, height)):
                own = [p + row * width for p in targets]
                if (k < n) & ((keys[kl.minimum(k, n - 1)] >> POSITION_BITS) == row):
                    end = _end_of(keys, k, n)
                    summed = _sum(work, keys, gradient, total, k, end, width)
                    update(work, pattern.step, [*own, summed, *scalars], zero, width)
                    k = end
                else:
                    update(work, pattern.idle, [*own, *scalars], zero, width)


def _end_of(keys: Pointer, first: Value, n: Value) -> Value:
    """Return the end of the keys of one row."""
    row, end = keys[first] >> POSITION_BITS, first + 1
    while (end < n) & ((keys[kl.minimum(end, n - 1)] >> POSITION_BITS) == row):
        end = end + 1
    return end


def _place_of(keys: Pointer, n: Value, row: Value) -> Value:
    """Return the number of keys of rows before one."""
    low, high = kl.value(0), n + 0
    while low < high:
        middle = (low + high) // 2
        below = (keys[middle] >> POSITION_BITS) < row
        low, high = kl.select(below, middle + 1, low), kl.select(below, high, middle)
    return low


def _sum(work: Work, keys: Pointer, gradient: Pointer, total: Pointer, first: Value, end: Value, width: Value) -> Any:
    """Return the sum of rows [first, end) in their order: the row itself if it is one, else in `total`."""
    mask = (1 << POSITION_BITS) - 1
    lanes = work.lanes(gradient.dtype)
    row = gradient + (keys[first] & mask) * width
    for k in range(first + 1, end):
        other = gradient + (keys[k] & mask) * width
        for i in range(0, width, lanes):
            tail = kl.tail_mask(width - i, lanes)
            before = kl.select(k == first + 1, row.load(i, lanes, tail), total.load(i, lanes, tail))
            total.store(before + other.load(i, lanes, tail), i, tail)
    return kl.select(end - first > 1, total, row)


@selector(RowsUpdate)
def select_rows_update(form: RowsUpdate, build: Builder) -> None:
    """Build the sort and the step. Raises NoKernel for operations without code, and for tables that are too high."""
    indices, (gradient, *scalars) = form.indices, form.operands
    n, (height, *row) = gradient.shape[0], form.output.shape
    width, dtype = math.prod(row), form.output.dtype
    for expr in (*form.exprs, *form.idle):
        check(expr)
    if max(n, height) >= 1 << (POSITION_BITS - 1) or indices.dtype not in (int32, int64) or not n * width:
        raise NoKernel(f"a step by {n} rows of {form.output!r}")
    if any(b.parent is not None for b in form.inputs):
        raise NoKernel(f"a step by rows that are slices of {form.output!r}")
    digits = max(1, -(-(height - 1).bit_length() // DIGIT_BITS))
    keys = build.temporary(16 * n)
    sort = sort_rows.code(dtype=indices.dtype, digits=digits)
    build.step(sort, [build.pointer(indices), keys, n], 1, 8 << DIGIT_BITS)
    pattern, count = rows_pattern(form.exprs, form.idle, dtype, len(scalars), bool(form.idle))
    items = -(-height // IDLE_ROWS) if form.idle else n
    moved = 2 * len(form.targets) * width * dtype.size * (IDLE_ROWS if form.idle else 1)
    words: list[Any] = [keys.moved(8 * n * (digits % 2)), n, height, width]
    words += [build.pointer(b) for b in (*form.targets, gradient, *scalars)]
    code = update_sorted_rows.code(pattern=pattern, more=count)
    build.step(code, words, items, dtype.size * width, grain(moved, items))
