"""Softmax of int16 by tables of exp and of the reciprocal, bit for bit as the reference computes it.

Lives here: the maker of TabledSoftmax, its family.
Not here: the tables and the same on arrays (lite/ops/quantized/softmax.py), softmax of reals (rows.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import int16
from .. import language as kl
from ..language import f64, i16, i32, i64, ptr
from ..loops.forms import TabledSoftmax
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

ENTRIES = 513
LONGEST = 65535  # elements of a row: their sum has 31 bits
LOW, HIGH = -32768, 32767


def interpolated(table: Any, v: Any) -> Any:
    """The value at int64 v of 16 bits, between two entries; their difference wraps to 16 bits."""
    i, offset = (v >> 7) + 256, v & 127
    if v.count:
        base, after = kl.gather(table, i), kl.gather(table, i + 1)
    else:
        base, after = table[i], table[i + 1]
    slope = ((after - base) << 48) >> 48
    return base + ((slope * offset + 64) >> 7)


def rescaled(x: Any, m: Any, left: Any, right: Any) -> Any:
    """x m 2^(left - right - 31), rounded to the nearest twice: halves up, then away from zero; int64 of 32 bits."""
    x = ((x << (left + 32)) >> 32) * m
    y = (x + (1 << 30)) >> 31
    half = (kl.value(1) << right) >> 1
    return (y + half + kl.select(right > 0, y >> 63, 0)) >> right


@kl.family
def tabled_softmax(work, x: ptr[i16], y: ptr[i16], tables: ptr[i64], n: i64, x_pitch: i64, y_pitch: i64, m: i64,
                   left: i64, right: i64):  # fmt: skip
    """An item is a row of n elements."""
    lanes = work.target.vector_bytes // 8
    held = work.scratch(i32)
    inverses = tables + ENTRIES
    by, down, up = m.splat(lanes), right.splat(lanes), left.splat(lanes)
    for item in work.items():
        a, b = x + item * x_pitch, y + item * y_pitch
        most, i = kl.full(i16, lanes, LOW), kl.value(0)
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            most = kl.maximum(kl.select(mask, a.load(i, lanes, mask), LOW), most)
            i = i + lanes
        greatest = kl.reduce_max(most).to(i64).splat(lanes)
        sums, i = kl.zeros(i64, lanes), kl.value(0)
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            d = rescaled(kl.select(mask, a.load(i, lanes, mask), LOW).to(i64) - greatest, by, up, down)
            e = interpolated(tables, kl.clamp(d + HIGH, LOW, HIGH))
            held.store(e.to(i32), i)
            sums = sums + kl.select(mask, e, 0)
            i = i + lanes
        total = kl.reduce_add(sums)
        bits = (kl.bitcast(total.to(f64), i64) >> 52) - 1023  # floor log2
        w = ((total << (30 - bits)) + (1 << 13)) >> 14
        inverse = interpolated(inverses, kl.clamp(w - (1 << 15) - (1 << 16), LOW, HIGH)).splat(lanes)
        half, shift = ((kl.value(1) << bits) >> 1).splat(lanes), bits.splat(lanes)
        i = kl.value(0)
        while i < n:
            mask = kl.first(kl.minimum(n - i, lanes), lanes)
            out = (held.load(i, lanes).to(i64) * inverse + half) >> shift
            b.store(kl.clamp(out, 0, HIGH).to(i16), i, mask=mask)
            i = i + lanes


@maker(TabledSoftmax)
def make_tabled_softmax(form: TabledSoftmax, build: Builder) -> None:
    """Rows of up to LONGEST elements."""
    x, y, (m, e) = form.input, form.output, form.factor
    n = x.shape[-1]
    if x.dtype is not int16 or y.dtype is not int16 or x.shape != y.shape or not 0 < n <= LONGEST:
        raise Unmade(f"softmax of {x!r} to {y!r}")
    if form.tables.shape != (2, ENTRIES) or form.tables.dtype.name != "int64" or not -31 <= e <= 31:
        raise Unmade(f"softmax of {x!r} by {form.tables!r}, factor {form.factor}")
    build.share(x)
    words = [build.pointer(x), build.pointer(y), build.pointer(form.tables), n, x.pitch, y.pitch, m, max(e, 0),
             max(-e, 0)]  # fmt: skip
    rows = x.size // n
    build.step(tabled_softmax.code(), words, rows, scratch=4 * (n + 64), chunk=grain(32 * n, rows))
