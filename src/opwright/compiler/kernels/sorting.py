"""Sorting and searching along an axis: top k, binary search, indices of extremes.

Lives here: `sink`, `heapify`, `key_of`; the selectors of Ordered, KeyPlaces, InsertionPlaces and ArgReduce,
their families.
Not here: the order of long rows (radix_sort.py), extremes themselves, sums to one element (reductions.py), prefix sums
(scans.py), the boxes that NMS keeps (nms.py), rows at known positions (gather.py).

A heap holds the first k elements so far with the last of them at its top; vectors skip all that come after that one.
An entry is one int64: the key of an element above its inverted position, so that equal elements keep their order.
Elements of 64 bits have their position alone as the entry. An entry sinks in log2 k iterations.

The search for an extreme's index computes the extreme without NaN first, then its first index; a row of NaN alone
yields 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.indexing_ops import InsertionPlaces, KeyPlaces
from ..loops.ops import ArgReduce, Ordered
from ..target import host
from . import NoKernel, selector
from .reductions import combine_ignoring_nan, neutral
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

Before: TypeAlias = "Callable[[Value, Value], Value]"


def sink(heap: Pointer, hole: Any, size: Any, entry: Value, before: Before) -> None:
    """Insert an entry at the hole of the heap [0, size) and move it down. before(a, b): whether a is above b."""
    hole = kl.value(hole)
    child = 2 * hole + 1
    while child < size:
        right = kl.minimum(child + 1, size - 1)
        a, b = heap[child], heap[right]
        other = before(b, a)
        child, best = kl.select(other, right, child), kl.select(other, b, a)
        sinks = before(best, entry)
        if sinks:
            heap[hole] = best
            hole = child
        child = kl.select(sinks, 2 * child + 1, size)
    heap[hole] = entry


def heapify(heap: Pointer, size: Value, before: Before) -> None:
    """Reorder the entries [0, size) as a heap."""
    half = size // 2
    for k in range(half):
        node = half - 1 - k
        sink(heap, node, size, heap[node], before)


POSITION_MASK = (1 << 32) - 1  # the bits of the position in an entry
INFINITY_KEY, NAN_KEY = 0x7F800000, -(1 << 31)  # keys of infinity, and of NaN below all numbers


def key_of_float(v: Value, rising: bool = False, nan: str = "last") -> Value:
    """Return an int64 within 32 bits that orders like float32 v, reversed if rising.

    -0.0 equals 0.0; NaN equals infinity, or is below all numbers.
    """
    bits = kl.bitcast(v, i32)
    key = kl.select(v == 0.0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))
    if nan == "infinite":
        key = kl.select(v == v, key, INFINITY_KEY)
    key = ~key if rising else key
    return (key if nan == "infinite" else kl.select(v == v, key, NAN_KEY)).to(i64)


def key_of(v: Value, source: DType, rising: bool, nan: str) -> Value:
    """Return an int64 within 32 bits that orders like an element of at most 32 bits, reversed if rising."""
    if source.is_floating:
        return key_of_float(v, rising, nan)
    key = v.to(i64) - (1 << 31) if source.name == "uint32" else v.to(i64)
    return ~key if rising else key


class _RowEntries:
    """The heap entries of one row and their order."""

    def __init__(self, a: Pointer, source: DType, rising: bool, nan: str) -> None:
        self.a, self.source, self.rising, self.nan = a, source, rising, nan
        self.by_position = source.size == 8

    def entry(self, i: Value | int) -> Value:
        if self.by_position:
            return kl.value(i)
        return (key_of(self.a[i], self.source, self.rising, self.nan) << 32) + (POSITION_MASK - i)

    def position(self, entry: Value) -> Value:
        return entry if self.by_position else POSITION_MASK - (entry & POSITION_MASK)

    def later(self, p: Value, q: Value) -> Value:
        """Return whether entry p comes after entry q."""
        if not self.by_position:
            return p < q
        a, b = self.a[p], self.a[q]
        return (a > b if self.rising else a < b) | ((a == b) & (p > q))

    def may_enter(self, v: Value, level: Value) -> Value:
        """Return the mask of elements that may precede the heap's top element; includes NaN."""
        if self.source.is_floating:
            return ~(v >= level) if self.rising else ~(v <= level)
        return v < level if self.rising else v > level


@kl.family
def order_rows(
    work: Work, x: ptr[u8], y: ptr[u8], n: i64, k: i64, *, source: DType, places: DType, rising: bool, nan: str
) -> None:
    """Write the positions of the first k of n elements in order. A work item is a row."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.lanes(source.size)
    heap = work.scratch(i64)
    for item in work.items():
        a = x + item * n
        row = _RowEntries(a, source, rising, nan)
        for i in range(k):
            heap[i] = row.entry(i)
        heapify(heap, k, row.later)
        level = a[row.position(heap[0])]
        start = kl.value(k)
        while start < n:
            mask = kl.tail_mask(n - start, lanes)
            if kl.any(row.may_enter(a.load(start, lanes, mask), level.splat(lanes)) & mask):
                for j in range(start, kl.minimum(n, start + lanes)):
                    entry = row.entry(j)
                    if row.later(heap[0], entry):
                        sink(heap, 0, k, entry, row.later)
                level = a[row.position(heap[0])]
            start = start + lanes
        b = y + item * k
        for j in range(k):
            last = k - 1 - j
            b[last] = row.position(heap[0]).to(places)
            sink(heap, 0, last, heap[last], row.later)


def check_order_of(form: Ordered) -> None:
    """Raise NoKernel but for the order of adjacent rows of integers or float32."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or not x.shape or x.shape[:-1] != y.shape[:-1]:
        raise NoKernel(f"the order of {x!r}")
    if x.dtype.is_bool or (x.dtype.is_floating and x.dtype.size != 4) or not 0 < y.shape[-1] <= x.shape[-1] < 1 << 31:
        raise NoKernel(f"the order of {x!r}")


@selector(Ordered)
def select_order(form: Ordered, build: Builder) -> None:
    """Select for integers and float32."""
    check_order_of(form)
    x, y = form.input, form.output
    n, k = x.shape[-1], y.shape[-1]
    rows = x.size // n
    code = order_rows.code(source=x.dtype, places=y.dtype, rising=form.rising, nan=form.nan)
    work = grain(n * x.dtype.size + 64 * k, rows)  # moving an entry down costs about as much as 64 bytes
    build.step(code, [build.pointer(x), build.pointer(y), n, k], rows, scratch=8 * k, chunk=work)


STEP_BYTES = 16  # bytes of memory traffic that take as long as a step of a search


@kl.family
def check_order(work: Work, keys: ptr[i32], n: i64) -> Value:
    """Return 0 if n keys are in ascending order, else 1."""
    descents, lanes = kl.value(0), work.target.vector_bytes // 4
    i = kl.value(1)
    while i < n:
        mask = kl.tail_mask(n - i, lanes)
        descending = (keys.load(i, lanes, mask) < keys.load(i - 1, lanes, mask)) & mask
        descents = kl.select(kl.any(descending), 1, descents)
        i = i + lanes
    return descents


@kl.family
def search_keys(work: Work, keys: ptr[i32], queries: ptr[i32], y: ptr[i32], n: i64) -> None:
    """Search keys by bisection: keys before `low` are less, keys from `high` on are not. A work item is a query."""
    for item in work.items():
        key, low, high = queries[item], kl.value(0), kl.value(n)
        while low < high:
            middle = (low + high) // 2
            less = keys[middle] < key
            low, high = kl.select(less, middle + 1, low), kl.select(less, high, middle)
        position = kl.value(-1)
        if low < n:
            position = kl.select(keys[low] == key, low, -1)
        y[item] = position.to(i32)


@selector(KeyPlaces)
def select_key_places(form: KeyPlaces, build: Builder) -> None:
    """Select for int32."""
    keys, queries, y = form.keys, form.wanted, form.output
    if any(b.dtype is not i32 or b.parent is not None or len(b.shape) != 1 for b in (keys, queries, y)):
        raise NoKernel(f"places of {queries!r} among {keys!r}")
    if queries.size != y.size or not keys.size < 1 << 31:
        raise NoKernel(f"places {y!r} of {queries!r} among {keys!r}")
    if not form.in_order:
        build.step(check_order.code(), [build.pointer(keys), keys.size], 1, chunk=1)
    words = [build.pointer(keys), build.pointer(queries), build.pointer(y), keys.size]
    work = STEP_BYTES * keys.size.bit_length()
    build.step(search_keys.code(), words, queries.size, chunk=grain(work, queries.size))


@kl.family
def search_bounds(
    work: Work, keys: ptr[u8], values: ptr[u8], y: ptr[u8], n: i64, m: i64, *, source: DType, places: DType, upper: bool
) -> None:
    """Return where each of m values of a row belongs in the sorted row of n keys, by binary search. Items: values."""
    keys, values, y = keys.cast(source, source.size), values.cast(source, source.size), y.cast(places, places.size)
    for item in work.items():
        row, value = keys + item // m * n, values[item]
        low, high = kl.value(0), n + 0
        while low < high:
            middle = (low + high) // 2
            key = row[middle]
            below = key <= value if upper else key < value
            if source.is_floating:
                below = below | (value != value)
            low, high = kl.select(below, middle + 1, low), kl.select(below, high, middle)
        y[item] = low.to(places)


@selector(InsertionPlaces)
def select_insertion_places(form: InsertionPlaces, build: Builder) -> None:
    """Select for numbers of 32 and 64 bits."""
    keys, values, y = form.sorted, form.values, form.output
    if any(b.parent is not None or len(b.shape) != 2 for b in (keys, values, y)) or keys.dtype is not values.dtype:
        raise NoKernel(f"places of {values!r} among {keys!r}")
    if keys.dtype.size < 4 or keys.dtype.is_bool or y.shape != values.shape or keys.shape[0] != values.shape[0]:
        raise NoKernel(f"places {y!r} of {values!r} among {keys!r}")
    n, m = keys.shape[1], values.shape[1]
    words = [build.pointer(keys), build.pointer(values), build.pointer(y), n, m]
    code = search_bounds.code(source=keys.dtype, places=y.dtype, upper=form.upper)
    build.step(code, words, values.size, chunk=grain(STEP_BYTES * n.bit_length(), values.size))


VECTORS = 4  # accumulators in registers
LIMIT = 2**31 - 1  # elements of an axis: indices are int32
SHORT = 16  # elements of a row up to which a vector holds an element of several rows


@kl.family
def search_rows(work: Work, x: ptr[u8], y: ptr[u8], n: i64, *, kind: str, source: DType, places: DType) -> None:
    """Return the index of the extreme of each row of n elements. Items: rows."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.lanes(max(source.size, 4))  # as many as indices in a vector
    start = neutral(kind, source)
    for item in work.items():
        a = x + item * n
        extremes = kl.registers(source, lanes, VECTORS)
        for k in range(VECTORS):
            extremes[k] = kl.full(source, lanes, start)
        i = kl.value(0)
        while i + VECTORS * lanes <= n:
            for k in range(VECTORS):
                extremes[k] = combine_ignoring_nan(kind, a.load(i + k * lanes, lanes), extremes[k])
            i = i + VECTORS * lanes
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            extremes[0] = combine_ignoring_nan(kind, kl.select(mask, a.load(i, lanes, mask), start), extremes[0])
            i = i + lanes
        for k in range(1, VECTORS):
            extremes[0] = combine_ignoring_nan(kind, extremes[0], extremes[k])
        extreme = kl.reduce_lanes(extremes[0], functools.partial(combine_ignoring_nan, kind)).splat(lanes)
        i, index = kl.value(0), kl.value(0, i32)
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            same = (a.load(i, lanes, mask) == extreme) & mask
            if kl.any(same):
                lane = kl.reduce_min(kl.select(same, kl.iota(i32, lanes), LIMIT))
                index = i.to(i32) + lane
                i = n
            i = i + lanes
        y[item] = index.to(places)


@kl.family
def search_short_rows(
    work: Work, x: ptr[u8], y: ptr[u8], rows: i64, n: i64, *, kind: str, source: DType, places: DType
) -> None:
    """Return the index of the extreme of each row of n elements. Items: vectors of rows, the last overlapping."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.lanes(max(source.size, 4))
    steps = kl.iota(i64, lanes) * n
    for item in work.items():
        row = kl.minimum(item * lanes, rows - lanes)
        a = x + row * n
        extreme, index = kl.full(source, lanes, neutral(kind, source)), kl.full(i32, lanes, -1)
        for i in range(n):
            v = kl.gather(a + i, steps)
            better = v > extreme if kind == "max" else v < extreme
            found = better | ((v == extreme) & (index < 0))  # the first of elements that equal the initial one
            extreme, index = kl.select(found, v, extreme), kl.select(found, kl.value(i).to(i32).splat(lanes), index)
        y.store(kl.maximum(index, 0).to(places), row)


@kl.family
def search_columns(
    work: Work, x: ptr[u8], y: ptr[u8], n: i64, inner: i64, panels: i64, *, kind: str, source: DType, places: DType
) -> None:
    """Return the index of the extreme of each column of [outer, n, inner]. Items: vectors of columns."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.lanes(max(source.size, 4))
    for item in work.items():
        outer, column = item // panels, item % panels * lanes
        mask = kl.first(kl.minimum(inner - column, lanes), lanes)
        a = x + (outer * n * inner + column)
        extreme = kl.full(source, lanes, neutral(kind, source))
        for i in range(n):
            extreme = combine_ignoring_nan(kind, a.load(i * inner, lanes, mask), extreme)
        index = kl.zeros(i32, lanes)
        for i in range(n):
            row = n - 1 - i
            index = kl.select(a.load(row * inner, lanes, mask) == extreme, row.to(i32).splat(lanes), index)
        y.store(index.to(places), outer * inner + column, mask=mask)


@selector(ArgReduce)
def select_search(form: ArgReduce, build: Builder) -> None:
    """Select the search of rows if the axis is the last with more than one element, otherwise of columns."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or not x.size or x.shape[form.axis] > LIMIT:
        raise NoKernel(f"a search in {x!r}")
    source = u8 if x.dtype.is_bool else x.dtype
    if source.is_floating and source.size < 4:
        raise NoKernel(f"a search in {x.dtype.name}")
    axis = form.axis % len(x.shape)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    constants: dict[str, Any] = {"kind": form.kind, "source": source, "places": y.dtype}
    words: list[Any] = [build.pointer(x), build.pointer(y), n]
    lanes = host().lanes(max(source.size, 4))
    if inner == 1 and n <= SHORT and outer >= lanes > 1:
        vectors = -(-outer // lanes)
        work = grain(lanes * n * source.size, vectors)
        build.step(search_short_rows.code(**constants), [*words[:2], outer, n], vectors, chunk=work)
        return
    if inner == 1:
        build.step(search_rows.code(**constants), words, outer, chunk=grain(2 * n * source.size, outer))
        return
    panels = -(-inner // lanes)
    work = grain(2 * n * lanes * source.size, outer * panels)
    build.step(search_columns.code(**constants), [*words, inner, panels], outer * panels, chunk=work)
