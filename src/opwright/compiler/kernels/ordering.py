"""The places of the first k of a row in falling or rising order.

Lives here: the maker of Ordered, its family, what floats are compared by.
Not here: the first one alone (searches.py), heaps (heaps.py).

A heap holds the first k so far, the last of them at the top; what is not before that is passed over in vectors. An
entry is one int64, the key of an element above its place turned round, so that equal elements keep their order; of
elements of 64 bits it is the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i32, i64, ptr, u8
from ..loops.forms import Ordered
from . import Unmade, maker
from .grains import grain
from .heaps import heaped, sink

if TYPE_CHECKING:
    from ..loops.planning import Builder

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


@maker(Ordered)
def make_order(form: Ordered, build: Builder) -> None:
    """Integers and float32."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or not x.shape or x.shape[:-1] != y.shape[:-1]:
        raise Unmade(f"the order of {x!r}")
    n, k = x.shape[-1], y.shape[-1]
    if x.dtype.is_bool or (x.dtype.is_floating and x.dtype.size != 4) or not 0 < k <= n < 1 << 31:
        raise Unmade(f"the order of {x!r}")
    rows = x.size // n
    code = order_rows.code(source=x.dtype, places=y.dtype, rising=form.rising, nan=form.nan)
    work = grain(n * x.dtype.size + 64 * k, rows)  # an entry that sinks costs about as much as 64 bytes
    build.step(code, [build.pointer(x), build.pointer(y), n, k], rows, scratch=8 * k, chunk=work)
