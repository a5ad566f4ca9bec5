"""Matrix products of float64 and int32, of unpacked operands.

Lives here: the selector of `MatMul` for both types, its family.
Not here: products of float32, int8 and int16 (matmul.py); the size from which NumPy's BLAS computes products of float64
(../lowering/matmul.py).

A tile of rows by vectors of columns is accumulated in registers over the whole depth. Rows of b are read where they
are: tiles of a column of them share it in the second-level cache.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType, float64, int32
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.ops import MatMul
from ..target import host
from . import NoKernel, selector
from .epilogue import Epilogue, epilogue_of, share_output
from .matmul import batches_of, transposed
from .tiling import chunk_of

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

ROWS, VECTORS = 4, 2
"""Rows and vectors of columns of a tile: eight accumulators, as many as hide the latency of multiply-adds."""


@kl.family
def matmul_unpacked(
    work: Work,
    a: ptr[u8],
    b: ptr[u8],
    y: ptr[u8],
    rows: i64,
    depth: i64,
    columns: i64,
    a_row: i64,
    a_depth: i64,
    b_pitch: i64,
    y_pitch: i64,
    a_step: i64,
    b_step: i64,
    tiles: i64,
    panels: i64,
    *more: i64,
    source: DType,
    height: int,
    epilogue: Epilogue,
) -> None:
    """Multiply matrices. a_row, a_depth: elements between rows and between steps of a; a_step, b_step: between
    matrices. Items: tiles of `height` rows and VECTORS vectors; the last rows of a matrix are a tile with those before
    them."""
    a, b = a.cast(source, source.size), b.cast(source, source.size)
    y = y.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish = epilogue.bind(more)
    lanes = work.target.lanes(source.size)
    for item in work.items():
        product, tile = item // (tiles * panels), item % (tiles * panels)
        row = kl.minimum(tile % tiles * height, rows - height)
        column = tile // tiles * (VECTORS * lanes)
        left, right = a + (product * a_step + row * a_row), b + (product * b_step + column)
        masks = [kl.tail_mask(columns - column - k * lanes, lanes) for k in range(VECTORS)]
        sums = _tile(left, right, depth, a_row, a_depth, b_pitch, source, height, lanes, masks)
        for r in range(height):
            line = product * rows + row + r
            for k in range(VECTORS):
                at = column + k * lanes
                (y + line * y_pitch).store(finish(sums[r, k], line, at, lanes, masks[k]), at, masks[k])


def _tile(
    left: Pointer,
    right: Pointer,
    depth: Value,
    a_row: Value,
    a_depth: Value,
    b_pitch: Value,
    source: DType,
    height: int,
    lanes: int,
    masks: list[Value],
) -> Any:
    """Return the sums of a tile."""
    sums = kl.registers(source, lanes, height, VECTORS)
    for r in range(height):
        for k in range(VECTORS):
            sums[r, k] = kl.zeros(source, lanes)
    for i in range(depth):
        line = right + i * b_pitch
        parts = [line.load(k * lanes, lanes, masks[k]) for k in range(VECTORS)]
        for r in range(height):
            x = left[r * a_row + i * a_depth].splat(lanes)
            for k in range(VECTORS):
                sums[r, k] = kl.fma(x, parts[k], sums[r, k])
    return sums


@selector(MatMul)
def select_matmul_unpacked(form: MatMul, build: Builder) -> None:
    """Add the steps of a product of float64 or int32; one that transposes b, if needed."""
    a, b, out = form.a, form.b, form.output
    if a.dtype not in (float64, int32) or b.dtype is not a.dtype or form.a_zero or form.b_zero or form.rounding:
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    rows, columns = out.shape[-2:]
    depth = a.shape[-2] if form.transpose_a else a.shape[-1]
    parts = batches_of(form, a, bool(form.operands))
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    if form.transpose_b:
        b = transposed(b, build)
    a_row, a_depth = (1, a.pitch) if form.transpose_a else (a.pitch, 1)
    height, width = min(rows, ROWS), VECTORS * host().lanes(a.dtype.size)
    tiles, panels = -(-rows // height), -(-columns // width)
    code = matmul_unpacked.code(more=len(more), source=a.dtype, height=height, epilogue=epilogue)
    a_size, b_size = a.shape[-2] * a.pitch, b.shape[-2] * b.pitch
    for part in parts:
        words = [
            *(build.pointer(a, part.a * a_size), build.pointer(b, part.b * b_size)),
            build.pointer(out, part.first * rows * out.pitch),
            *(rows, depth, columns, a_row, a_depth, b.pitch, out.pitch),
            *(a_size * part.a_moves, b_size * part.b_moves, tiles, panels, *more),
        ]
        items = part.products * tiles * panels
        build.step(code, words, items, chunk=chunk_of(2 * math.prod((part.products, rows, columns, depth)), items))
    share_output(form, build, form.operands, epilogue)
