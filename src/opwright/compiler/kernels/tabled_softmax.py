"""Softmax of int16 by tables of exp and of the reciprocal, bit-exact with the reference.

Lives here: the selector of TabledSoftmax, its family.
Not here: the arithmetic (opwright/scalar), the tables (lite/ops/quantized/normalization.py), softmax of floats
(rows.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import int16
from ...scalar.fixed_point import ENTRIES
from ...scalar.integer_layers import SoftmaxOfInt16
from .. import language as kl
from ..language import i16, i32, i64, ptr
from ..loops.numeric_ops import TabledSoftmax
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

MAX_LENGTH = 65535  # elements of a row, whose sum has 31 bits
ARITHMETIC = SoftmaxOfInt16(kl)
LOW, HIGH = int(int16.min), int(int16.max)


@kl.family
def tabled_softmax(
    work, x: ptr[i16], y: ptr[i16], tables: ptr[i64], n: i64, x_pitch: i64, y_pitch: i64, m: i64, exponent: i64
):
    """Compute softmax. A work item is a row of n elements."""
    lanes = work.target.vector_bytes // 8
    exponentials = work.scratch(i32)
    inverses = tables + ENTRIES
    multiplier, power = m.splat(lanes), exponent.splat(lanes)
    for item in work.items():
        a, b = x + item * x_pitch, y + item * y_pitch
        running_max, i = kl.full(i16, lanes, LOW), kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            running_max = kl.maximum(kl.select(mask, a.load(i, lanes, mask), LOW), running_max)
            i = i + lanes
        greatest = kl.reduce_max(running_max).to(i64).splat(lanes)
        sums, i = kl.zeros(i64, lanes), kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            difference = kl.select(mask, a.load(i, lanes, mask), LOW).to(i64) - greatest
            e = ARITHMETIC.exponential(tables, difference, multiplier, power)
            exponentials.store(e.to(i32), i)
            sums = sums + kl.select(mask, e, 0)
            i = i + lanes
        reciprocal, shift = ARITHMETIC.reciprocal(inverses, kl.reduce_add(sums))
        i = kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            b.store(ARITHMETIC.share(exponentials.load(i, lanes).to(i64), reciprocal, shift).to(i16), i, mask=mask)
            i = i + lanes


@selector(TabledSoftmax)
def select_tabled_softmax(form: TabledSoftmax, build: Builder) -> None:
    """Select for rows of up to MAX_LENGTH elements."""
    x, y, (m, e) = form.input, form.output, form.factor
    n = x.shape[-1]
    if x.dtype is not int16 or y.dtype is not int16 or x.shape != y.shape or not 0 < n <= MAX_LENGTH:
        raise NoKernel(f"softmax of {x!r} to {y!r}")
    if form.tables.shape != (2, ENTRIES) or form.tables.dtype.name != "int64" or not -31 <= e <= 31:
        raise NoKernel(f"softmax of {x!r} by {form.tables!r}, factor {form.factor}")
    build.share(x)
    words = [build.pointer(x), build.pointer(y), build.pointer(form.tables), n, x.pitch, y.pitch, m, e]
    rows = x.size // n
    build.step(tabled_softmax.code(), words, rows, scratch=4 * (n + 64), chunk=grain(32 * n, rows))
