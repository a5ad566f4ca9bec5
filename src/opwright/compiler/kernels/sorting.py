"""Sorting: the first k elements of a row in order, binary search in sorted rows, heaps.

Lives here: `sink`, `heaped`; the selectors of Ordered and KeyPlaces, their families.
Not here: the position of one extreme (axis_scans.py), the boxes that NMS keeps (nms.py), rows at known positions
(gather.py).

A heap holds the first k elements so far with the last of them at its top; vectors skip all that come after that one.
An entry is one int64: the key of an element above its inverted position, so that equal elements keep their order.
Elements of 64 bits have their position alone as the entry. An entry sinks in log2 k iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.indexing_ops import KeyPlaces
from ..loops.ops import Ordered
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

Before = Callable[[Any, Any], Any]


def sink(heap: Any, hole: Any, size: Any, taken: Any, before: Before) -> None:
    """Put `taken` into the hole of the heap [0, size), or below it. before(a, b): whether a is nearer to the top."""
    hole = kl.value(hole)
    child = 2 * hole + 1
    while child < size:
        right = kl.minimum(child + 1, size - 1)
        a, b = heap[child], heap[right]
        other = before(b, a)
        child, best = kl.select(other, right, child), kl.select(other, b, a)
        sinks = before(best, taken)
        if sinks:
            heap[hole] = best
            hole = child
        child = kl.select(sinks, 2 * child + 1, size)
    heap[hole] = taken


def heaped(heap: Any, size: Any, before: Before) -> None:
    """Bring the entries [0, size) into the order of a heap."""
    half = size // 2
    for k in range(half):
        at = half - 1 - k
        sink(heap, at, size, heap[at], before)


PLACES = (1 << 32) - 1  # a place's bits in an entry
INFINITE, LEAST = 0x7F800000, -(1 << 31)  # keys of infinity, and of what is below all numbers


def key_of_float(v: Any, rising: bool = False, nan: str = "last") -> Any:
    """int64 within 32 bits in the order of float32 v: -0.0 as 0.0; NaN as infinity, or below all. rising: turned."""
    bits = kl.bitcast(v, i32)
    key = kl.select(v == 0.0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))
    if nan == "infinite":
        key = kl.select(v == v, key, INFINITE)
    key = ~key if rising else key
    return (key if nan == "infinite" else kl.select(v == v, key, LEAST)).to(i64)


class _Row:
    """The entries of one row, and which of two comes later."""

    def __init__(self, a: Any, source: DType, rising: bool, nan: str) -> None:
        self.a, self.source, self.rising, self.nan = a, source, rising, nan
        self.by_place = source.size == 8

    def entry(self, i: Any) -> Any:
        if self.by_place:
            return kl.value(i)
        v = self.a[i]
        if self.source.is_floating:
            key = key_of_float(v, self.rising, self.nan)
        else:
            key = v.to(i64) - (1 << 31) if self.source.name == "uint32" else v.to(i64)
            key = ~key if self.rising else key
        return (key << 32) + (PLACES - i)

    def place(self, entry: Any) -> Any:
        return entry if self.by_place else PLACES - (entry & PLACES)

    def later(self, p: Any, q: Any) -> Any:
        if not self.by_place:
            return p < q
        a, b = self.a[p], self.a[q]
        return (a > b if self.rising else a < b) | ((a == b) & (p > q))

    def may_enter(self, v: Any, level: Any) -> Any:
        """Of a vector, which may be before the last of those held; all NaN may."""
        if self.source.is_floating:
            return ~(v >= level) if self.rising else ~(v <= level)
        return v < level if self.rising else v > level


@kl.family
def order_rows(work, x: ptr[u8], y: ptr[u8], n: i64, k: i64, *, source: DType, places: DType, rising: bool, nan: str):
    """Rows of n elements to the places of their first k: an item is a row."""
    x, y = x.cast(source, source.size), y.cast(places, places.size)
    lanes = work.target.vector_bytes // source.size
    heap = work.scratch(i64)
    for item in work.items():
        a = x + item * n
        row = _Row(a, source, rising, nan)
        for i in range(k):
            heap[i] = row.entry(i)
        heaped(heap, k, row.later)
        level = a[row.place(heap[0])]
        start = kl.value(k)
        while start < n:
            mask = kl.first(kl.minimum(n - start, lanes), lanes)
            if kl.any(row.may_enter(a.load(start, lanes, mask), level.splat(lanes)) & mask):
                for j in range(start, kl.minimum(n, start + lanes)):
                    entry = row.entry(j)
                    if row.later(heap[0], entry):
                        sink(heap, 0, k, entry, row.later)
                level = a[row.place(heap[0])]
            start = start + lanes
        b = y + item * k
        for j in range(k):
            last = k - 1 - j
            b[last] = row.place(heap[0]).to(places)
            sink(heap, 0, last, heap[last], row.later)


@selector(Ordered)
def select_order(form: Ordered, build: Builder) -> None:
    """Integers and float32."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or not x.shape or x.shape[:-1] != y.shape[:-1]:
        raise NoKernel(f"the order of {x!r}")
    n, k = x.shape[-1], y.shape[-1]
    if x.dtype.is_bool or (x.dtype.is_floating and x.dtype.size != 4) or not 0 < k <= n < 1 << 31:
        raise NoKernel(f"the order of {x!r}")
    rows = x.size // n
    code = order_rows.code(source=x.dtype, places=y.dtype, rising=form.rising, nan=form.nan)
    work = grain(n * x.dtype.size + 64 * k, rows)  # an entry that sinks costs about as much as 64 bytes
    build.step(code, [build.pointer(x), build.pointer(y), n, k], rows, scratch=8 * k, chunk=work)


STEP_BYTES = 16  # of memory moved that take about as long as a step of a search


@kl.family
def check_order(work, keys: ptr[i32], n: i64):
    """0 where n keys do not fall, else 1."""
    falls, lanes = kl.value(0), work.target.vector_bytes // 4
    i = kl.value(1)
    while i < n:
        mask = kl.first(kl.minimum(n - i, lanes), lanes)
        fallen = (keys.load(i, lanes, mask) < keys.load(i - 1, lanes, mask)) & mask
        falls = kl.select(kl.any(fallen), 1, falls)
        i = i + lanes
    return falls


@kl.family
def search_keys(work, keys: ptr[i32], wanted: ptr[i32], y: ptr[i32], n: i64):
    """Bisection: before `low` all keys are less, from `high` on none is."""
    for item in work.items():
        key, low, high = wanted[item], kl.value(0), kl.value(n)
        while low < high:
            middle = (low + high) // 2
            less = keys[middle] < key
            low, high = kl.select(less, middle + 1, low), kl.select(less, high, middle)
        found = kl.value(-1)
        if low < n:
            found = kl.select(keys[low] == key, low, -1)
        y[item] = found.to(i32)


@selector(KeyPlaces)
def select_key_places(form: KeyPlaces, build: Builder) -> None:
    """Of int32."""
    keys, wanted, y = form.keys, form.wanted, form.output
    if any(b.dtype is not i32 or b.parent is not None or len(b.shape) != 1 for b in (keys, wanted, y)):
        raise NoKernel(f"places of {wanted!r} among {keys!r}")
    if wanted.size != y.size or not keys.size < 1 << 31:
        raise NoKernel(f"places {y!r} of {wanted!r} among {keys!r}")
    if not form.in_order:
        build.step(check_order.code(), [build.pointer(keys), keys.size], 1, chunk=1)
    words = [build.pointer(keys), build.pointer(wanted), build.pointer(y), keys.size]
    work = STEP_BYTES * keys.size.bit_length()
    build.step(search_keys.code(), words, wanted.size, chunk=grain(work, wanted.size))
