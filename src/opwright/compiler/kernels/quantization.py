"""Quantization in kernels: floats rounded to int8 row by row, fixed-point arithmetic, products of columns.

Lives here: the family `round_rows`, `rounded_rows`, `rounded_floats`; `INT16`, `INT32`, the formulas of `scalar` on
values of the kernel language; the selector of FixedProduct, its family.
Not here: scales, zero points and formulas (opwright/scalar), contractions with integer filters
(contractions_int8.py), floating-point products (reductions.py).

Dynamic quantization: a row x (a row of a dense layer, an image of a convolution) becomes integers q with a scale and a
zero point, q = round(x / scale) + zero, halves away from zero; opwright/scalar/fixed_point.py defines both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType
from ...scalar.fixed_point import (
    ASYMMETRIC,
    MOST_LEFT,
    SYMMETRIC,
    FixedPoint,
    FixedPointInt32,
    asymmetric_steps,
    finite_round_away,
    short_multiplier,
    symmetric_steps,
)
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..loops.buffers import Buffer
from ..loops.domain_ops import FixedProduct
from ..target import host
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


class RoundedRows(NamedTuple):
    """Addresses of rounded rows, `pitch` bytes apart, of their scales and of their zero points."""

    x: Any
    pitch: int
    scales: Any
    zeros: Any


def _range(x: Pointer, n: Value, lanes: int) -> tuple[Value, Value]:
    """Return the minimum and the maximum of n floats and 0."""
    low, high = kl.zeros(f32, lanes), kl.zeros(f32, lanes)
    for i in range(0, n - (lanes - 1), lanes):
        v = x.load(i, lanes)
        low, high = kl.minimum(low, v), kl.maximum(high, v)
    minimum, maximum = kl.reduce_min(low), kl.reduce_max(high)
    for i in range(n // lanes * lanes, n):
        minimum, maximum = kl.minimum(minimum, x[i]), kl.maximum(maximum, x[i])
    return minimum, maximum


def _rounded(x: Value, factor: Value, zero: Value, symmetric: bool) -> Value:
    """Round to integers, as floats."""
    low, high = map(float, SYMMETRIC if symmetric else ASYMMETRIC)
    return kl.clamp(finite_round_away(kl, x * factor) + zero, low, high)


def _integers(x: Value, factor: Value, zero: Value, symmetric: bool) -> Value:
    return kl.to_int(_rounded(x, factor, zero, symmetric)).to(i8)


def _steps(low: Value, high: Value, symmetric: bool) -> tuple[Value, Value, Value]:
    """Return the scale, its inverse and the zero point of a row between low and high."""
    if symmetric:
        return *symmetric_steps(kl, low, high), kl.zeros(f32)
    return asymmetric_steps(kl, low, high)


def rounded_floats(x: Pointer, out: Pointer, n: Value, lanes: int, symmetric: bool) -> Value:
    """Write q - zero point for a row of n floats, a multiple of lanes, as floats; return the scale."""
    low, high = _range(x, n, lanes)
    scale, factor, zero = _steps(low, high, symmetric)
    for i in range(0, n, lanes):
        out.store(_rounded(x.load(i, lanes), factor, zero, symmetric) - zero, i)
    return scale


@kl.family
def round_rows(
    work: Work,
    x: ptr[f32],
    out: ptr[i8],
    scales: ptr[f32],
    zeros: ptr[i32],
    columns: i64,
    pitch: i64,
    out_pitch: i64,
    *,
    symmetric: bool,
) -> None:
    """Round rows of floats to int8 and write their scales and zero points. Items: rows."""
    lanes = work.lanes(f32)
    for row in work.items():
        source, target = x + row * pitch, out + row * out_pitch
        low, high = _range(source, columns, lanes)
        scale, factor, zero = _steps(low, high, symmetric)
        scales[row], zeros[row] = scale, zero.to(i32)
        for i in range(0, columns - (lanes - 1), lanes):
            target.store(_integers(source.load(i, lanes), factor, zero, symmetric), i)
        for i in range(columns // lanes * lanes, columns):
            target[i] = _integers(source[i], factor, zero, symmetric)


def rounded_rows(
    build: Builder, x: Buffer, rows: int, columns: int, pitch: int, symmetric: bool, align: int = 4
) -> RoundedRows:
    """Add a step that rounds `rows` rows of `columns` floats, `pitch` apart, to rows at multiples of `align` bytes.

    Operations that round the same rows share them: the queries, keys and values of attention, gates and what they gate.
    """
    out_pitch = -(-columns // align) * align

    def add() -> RoundedRows:
        integers = build.temporary(rows * out_pitch + 64)
        scales, zeros = build.temporary(rows * 4), build.temporary(rows * 4)
        build.step(
            round_rows.code(symmetric=symmetric),
            [build.pointer(x), integers, scales, zeros, columns, pitch, out_pitch],
            rows,
            chunk=grain(8 * columns, rows),
        )
        return RoundedRows(integers, out_pitch, scales, zeros)

    result: RoundedRows = build.derived(("rounded", rows, columns, pitch, symmetric, align), x, add)
    return result


INT16 = FixedPoint(kl, 16)
"""Fixed-point arithmetic of int16 in int32."""
INT32 = FixedPointInt32(kl)
"""Fixed-point arithmetic of int32 in int64."""


@kl.family
def fixed_product(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    n: i64,
    m: i64,
    zero: i64,
    short: i64,
    e: i64,
    output_zero: i64,
    *,
    source: DType,
) -> None:
    """Multiply the elements of each column, with rescaled factors. Items: vectors of columns."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = work.target.lanes(8)
    low, high = (int(limit) for limit in source.limits)
    for item in work.items():
        first = item * lanes
        mask = kl.first(kl.minimum(m - first, lanes), lanes)
        total = x.load(first, lanes, mask).to(i64) - zero
        for k in range(1, n):
            total = total * ((x + k * m).load(first, lanes, mask).to(i64) - zero)
            total = INT32.wrapped(INT32.rescale_wide(total, short, e))
        result = kl.clamp(INT32.rescale_wide(total, short, e) + output_zero, low, high)
        y.store(result.to(source), first, mask)


@selector(FixedProduct)
def select_fixed_product(form: FixedProduct, build: Builder) -> None:
    """Select products whose multiplier has 16 bits, so that a product by int32 fits 64 bits."""
    x, y = form.input, form.output
    m, e = form.factor
    if x.dtype not in (i8, i16) or y.dtype is not x.dtype or any(b.parent is not None for b in (x, y)):
        raise NoKernel(f"a product of {x!r} to {y!r}")
    if len(x.shape) != 2 or x.shape[1] != y.size or not 1 <= 15 - e <= MOST_LEFT:
        raise NoKernel(f"a product of {x!r}, rescaled by {m} 2^{e - 31}")
    lanes = host().lanes(8)
    items = -(-y.size // lanes)
    words = [build.pointer(x), build.pointer(y), *x.shape, form.zero, int(short_multiplier(m)), e, form.output_zero]
    build.step(fixed_product.code(source=x.dtype), words, items, chunk=grain(x.shape[0] * lanes * 8, items))
