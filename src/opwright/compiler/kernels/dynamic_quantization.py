"""Dynamic quantization: floats rounded to int8 row by row, for contractions with integer filters.

Lives here: the family `round_rows`, `rounded_rows`, `rounded_floats`.
Not here: scales and zero points (opwright/scalar/quantization.py), the contractions (contractions_int8.py).

A row x (a row of a dense layer, an image of a convolution) becomes integers q with a scale and a zero point,
q = round(x / scale + zero), halves away from zero; opwright/scalar/quantization.py defines both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...scalar.quantization import ASYMMETRIC, SYMMETRIC, asymmetric_steps, finite_round_away, symmetric_steps
from .. import language as kl
from ..language import f32, i8, i32, i64, ptr
from ..loops.buffers import Buffer
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
    return kl.clamp(finite_round_away(kl, x * factor + zero), low, high)


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
    """Add a step that rounds `rows` rows of `columns` floats, `pitch` apart, to rows at multiples of `align` bytes."""
    out_pitch = -(-columns // align) * align
    integers = build.temporary(rows * out_pitch + 64)
    scales, zeros = build.temporary(rows * 4), build.temporary(rows * 4)
    build.step(
        round_rows.code(symmetric=symmetric),
        [build.pointer(x), integers, scales, zeros, columns, pitch, out_pitch],
        rows,
        chunk=grain(8 * columns, rows),
    )
    return RoundedRows(integers, out_pitch, scales, zeros)
