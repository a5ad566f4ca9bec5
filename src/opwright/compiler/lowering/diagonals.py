"""Diagonals and bands of matrices.

Lives here: the rules of MatrixBandPart, MatrixDiag, MatrixDiagPart and MatrixSetDiag.
Not here: the builtins MATRIX_DIAG and MATRIX_SET_DIAG (padding.py), the packed form of bands (ops/linalg/diagonals.py).

A diagonal that is written is a column vector, with an element for each row, which a mask selects. A diagonal that is
read is a box of the result: its elements are n + 1 apart in a matrix of n columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.dtypes import bool as bool_
from ...ops.linalg.diagonals import packing
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, arg, const
from ..loops.ops import Map, Move
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import rule

MOST_DIAGONALS = 15
"""Diagonals that are written: each has a mask and a vector among the operands of one map."""


def _check(*operands: RuleOperand) -> None:
    """Raise NoLowering for elements of unsupported types, and for none."""
    for o in operands:
        if o.dtype not in DTYPES or not o.size:
            raise NoLowering(f"diagonals of {o}")


@rule("MatrixBandPart")
def band_part(ctx: LoweringContext) -> None:
    """Lower the part of matrices in a band, whose widths are constant, by a mask."""
    x, (lower, upper) = ctx.operand(0), (int(ctx.constant(i).reshape(-1)[0]) for i in (1, 2))
    _check(x)
    y, (m, n) = ctx.output(x.shape), x.shape[-2:]
    below = np.arange(m)[:, None] - np.arange(n)
    inside = np.ascontiguousarray(((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper)))
    zero = const(False if x.dtype.is_bool else 0, x.dtype)
    value = Expr("select", x.dtype, (arg(0, bool_), arg(1, x.dtype), zero))
    ctx.add(Map, y.buffer, (Buffer(f"{y.buffer.name}.band", bool_, (m, n), inside), x.buffer), value)


class _Diagonal(NamedTuple):
    """One diagonal: its row in the packed form and where it begins there, its first element in the matrix, its
    length."""

    packed_row: int
    packed_start: int
    row: int
    column: int
    size: int


def _diagonals(ctx: LoweringContext, rows: int, columns: int) -> list[_Diagonal]:
    """Return the diagonals of a node's band that have elements."""
    packed = packing(tuple(ctx.attr("k")), rows, columns, ctx.attr("align"))
    return [_Diagonal(row, span.start, int(i[0]), int(j[0]), len(i)) for row, span, i, j in packed if len(i)]


def _with_diagonals(ctx: LoweringContext, y: RuleOperand, band: RuleOperand, base: Buffer) -> None:
    """Write matrices with a packed band of diagonals; base: the other elements, a matrix or one number."""
    dtype, (rows, columns), batch = y.dtype, y.shape[-2:], y.shape[:-2]
    count, longest = (1 if ctx.attr("k")[0] == ctx.attr("k")[1] else band.shape[-2]), band.shape[-1]
    diagonals = _diagonals(ctx, rows, columns)
    if len(diagonals) > MOST_DIAGONALS:
        raise NoLowering(f"{len(diagonals)} diagonals")
    operands, value = [base], arg(0, dtype)
    sizes, outer = math.prod(batch), tuple(batch)
    for d in diagonals:
        column = ctx.new(dtype, (sizes, rows), f".diagonal{d.packed_row}")
        offset, steps = d.packed_row * longest + d.packed_start, (count * longest, 1)
        box = IndexMap((0, d.row), (sizes, d.size), offset, steps)
        ctx.add(Move, column, (band.buffer,), (box,), None if d.size == rows else 0)
        mask = np.eye(rows, columns, d.column - d.row, dtype=bool)
        operands.append(Buffer(f"{column.name}.mask", bool_, (rows, columns), mask))
        operands.append(ctx.viewed(column, (*outer, rows, 1)))
        index = len(operands)
        value = Expr("select", dtype, (arg(index - 2, bool_), arg(index - 1, dtype), value))
    ctx.add(Map, y.buffer, tuple(operands), value)


@rule("MatrixDiag")
def diag(ctx: LoweringContext) -> None:
    """Lower matrices of given diagonals and one number elsewhere."""
    band, padding, y = ctx.operand(0), ctx.operand(1), ctx.output()
    _check(band, y)
    _with_diagonals(ctx, y, band, ctx.viewed(padding.buffer, ()))


@rule("MatrixSetDiag")
def set_diag(ctx: LoweringContext) -> None:
    """Lower matrices with replaced diagonals."""
    x, band = ctx.operand(0), ctx.operand(1)
    _check(x, band)
    _with_diagonals(ctx, ctx.output(x.shape), band, x.buffer)


@rule("MatrixDiagPart")
def diag_part(ctx: LoweringContext) -> None:
    """Lower the diagonals of matrices to a box each; padding of shorter ones is constant."""
    x, y = ctx.operand(0), ctx.output()
    _check(x, y)
    rows, columns = x.shape[-2:]
    diagonals, (low, high) = _diagonals(ctx, rows, columns), ctx.attr("k")
    count, longest = high - low + 1, y.shape[-1]
    is_padded = len(diagonals) < count or any(d.size < longest for d in diagonals)
    fill = ctx.constant(1).reshape(-1)[0].item() if is_padded else None
    size = x.size // (rows * columns)
    steps = (rows * columns, 0, columns + 1)
    boxes = [
        IndexMap((0, d.packed_row, d.packed_start), (size, 1, d.size), d.row * columns + d.column, steps)
        for d in diagonals
    ]
    with ctx.reshaped(y, (size, count, longest)) as out:
        ctx.add(Move, out, (x.buffer,) * len(boxes), tuple(boxes), fill)
