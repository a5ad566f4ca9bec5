"""Products of few rows of bytes with an unpacked matrix of bytes that a run computes.

Lives here: the family `few_rows_int8`, `column_blocks`.
Not here: many rows, for which the matrix is packed (gemm_int8.py); int16 (matmul.py); float32 (gemv_f32.py).

Packing a matrix takes longer than one row's product with it: 12 times as long on Zen 3, for 512 rows of 32 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import DType
from .. import language as kl
from ..language import i16, i32, i64, ptr, u8
from .epilogue import Epilogue
from .gemv_f32 import horizontal_sums

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work

COLUMNS = 64
"""Columns of a work item."""


def column_blocks(columns: int) -> int:
    """Return the work items of a row."""
    return -(-columns // COLUMNS)


@kl.family
def few_rows_int8(
    work: Work,
    a: ptr[u8],
    b: ptr[u8],
    y: ptr[u8],
    rows: i64,
    depth: i64,
    columns: i64,
    a_pitch: i64,
    b_pitch: i64,
    y_pitch: i64,
    a_step: i64,
    b_step: i64,
    a_zero: i64,
    b_zero: i64,
    *more: i64,
    a_dtype: DType,
    b_dtype: DType,
    along: bool,
    epilogue: Epilogue,
) -> None:
    """Multiply rows of bytes by matrices of bytes, with zero points: sums of (a - a_zero) (b - b_zero) in int32.

    a_step, b_step: elements from the matrix of one product to the next. along: whether rows of b run along the depth;
    otherwise along the columns. Items: rows of all products by `column_blocks(columns)`, blocks first.
    """
    a, b, y = a.cast(a_dtype), b.cast(b_dtype), y.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish = epilogue.bind(more)
    lanes = work.target.lanes(4)
    zeros = a_zero.to(i16), b_zero.to(i16)
    blocks = (columns + (COLUMNS - 1)) // COLUMNS
    for item in work.items():
        row, first = item // blocks, item % blocks * COLUMNS
        left, right = a + (row // rows * a_step + row % rows * a_pitch), b + row // rows * b_step
        last = kl.minimum(columns, first + COLUMNS)
        for n in range(first, last, lanes):
            mask = kl.first(kl.minimum(last - n, lanes), lanes)
            if along:
                channels = [right + kl.minimum(n + i, last - 1) * b_pitch for i in range(lanes)]
                total = horizontal_sums([_along(left, channel, depth, zeros, 2 * lanes) for channel in channels])
            elif n + lanes <= last:
                total = _across(left, right + n, b_pitch, depth, zeros, None, lanes)
            else:
                total = _across(left, right + n, b_pitch, depth, zeros, mask, lanes)
            (y + row * y_pitch).store(finish(total, row, n, lanes, mask), n, mask)


def _along(a: Pointer, b: Pointer, depth: Value, zeros: tuple[Value, Value], wide: int) -> Value:
    """Return the product of two rows as sums of the lanes of a vector."""
    total = kl.zeros(i32, wide // 2)
    whole = depth // wide * wide
    for k in range(0, whole, wide):
        pair = (p.load(k, wide).to(i16) - zero for p, zero in zip((a, b), zeros))
        total = kl.pair_dot(total, *pair)
    if whole < depth:
        mask = kl.first(depth - whole, wide)
        pair = (kl.select(mask, p.load(whole, wide, mask).to(i16) - zero, 0) for p, zero in zip((a, b), zeros))
        total = kl.pair_dot(total, *pair)
    return total


def _across(
    a: Pointer, b: Pointer, pitch: Value, depth: Value, zeros: tuple[Value, Value], mask: Value | None, lanes: int
) -> Value:
    """Return the products of a row with `lanes` columns, two rows of them at a time."""
    zipped = [side * lanes + i for i in range(lanes) for side in (0, 1)]

    def elements(k: Value) -> Value:
        return (b + k * pitch).load(0, lanes, mask).to(i16) - zeros[1]

    def factors(first: Value, second: Value) -> Value:
        return kl.shuffle(first.splat(lanes), second.splat(lanes), zipped)

    total = kl.zeros(i32, lanes)
    for k in range(0, depth // 2 * 2, 2):
        first, second = (a[k + i].to(i16) - zeros[0] for i in (0, 1))
        total = kl.pair_dot(
            total, factors(first, second), kl.shuffle(elements(kl.value(k)), elements(kl.value(k + 1)), zipped)
        )
    if depth % 2 != 0:
        v = elements(depth - 1)
        pair = factors(a[depth - 1].to(i16) - zeros[0], kl.value(0, i16))
        total = kl.pair_dot(total, pair, kl.shuffle(v, v, zipped))
    return total
