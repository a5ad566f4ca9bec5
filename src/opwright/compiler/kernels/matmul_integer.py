"""Matrix products of two integer operands: batches, broadcasting, either operand transposed.

Lives here: the selectors of `MatMul` for int8, for floats quantised dynamically against int8, and for int16.
Not here: the micro-kernel of int8 (gemm_int8.py), packed weights (weight_packing_int8.py), int16 by constant int8
weights (gemm_int16.py), how batches broadcast (matmul.py).

Products of two int16 elements are int32 and widened to int64 before they are accumulated, since few of them may exceed
int32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, float32, int8, int16, uint8
from .. import language as kl
from ..language import i16, i32, i64, ptr, u8
from ..loops.buffers import Buffer, IndexMap
from ..loops.ops import MatMul, Move
from ..native import executor
from ..target import host
from . import NoKernel, select, selector
from .contractions_f32 import chunk_of, share
from .convolution_int8 import patches
from .dynamic_quantization import rounded_rows
from .epilogue import Epilogue, epilogue_of
from .gemm_int8 import FLIP, gemm_int8
from .gemm_neon import Grouped
from .gemm_tiles import tiles_for
from .gemm_widened import room
from .matmul import MOST_STEPS, batches
from .tiling import Tiles, balanced, blocks
from .weight_packing_int8 import Panels, grouped_tile, pack_code, pack_int8, parts_of, tile_of

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder


class Left(NamedTuple):
    """The first operand's rows: `pitch` bytes apart; flip: what makes them unsigned.

    rounded: whether they were floats, whose rows have scales and zero points of their own.
    """

    x: Any
    pitch: int
    flip: int
    rounded: bool = False
    scales: Any = 0
    zeros: Any = 0


@selector(MatMul)
def select_matmul_int8(form: MatMul, build: Builder) -> None:
    """Steps of a product of int8 or uint8 matrices with zero points, sums int32, or of floats to be rounded by int8."""
    a, b, out = form.a, form.b, form.output
    rounded = a.dtype is float32 and bool(form.rounding) and b.dtype is int8 and form.b_zero == 0
    if not rounded and (a.dtype not in (int8, uint8) or b.dtype not in (int8, uint8)):
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    rows, columns = out.shape[-2:]
    if form.transpose_a:
        a = turned(a, build)
    lead = out.shape[:-2]
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    depth = a.shape[-1]
    tile = (
        tiles_for(host(), rows, columns, -(-depth // 4), rows * columns * depth)
        or grouped_tile(host(), columns)
        or tile_of(host(), columns)
    )
    panels = Panels(columns, 1, depth, tile, parts_of(b.dtype, form.b_zero))
    parts = list(batches(lead, a.shape[:-2], b.shape[:-2]))
    if len(parts) > MOST_STEPS or (len(parts) > 1 and (form.operands or rounded)):
        raise NoKernel(f"batches {list(a.shape[:-2])} by {list(b.shape[:-2])}")
    if rounded and math.prod(a.shape[:-2]) != math.prod(lead):
        raise NoKernel("floats to be rounded that serve several products")
    left = _rounded(form, a, build) if rounded else _as_it_is(form, a, build)
    packed = _packed(form, panels, 128 if rounded else tile.offset(form.a_zero, a.dtype), build)
    cut, pitch = balanced(rows, tile.rows), left.pitch
    work = 8 * cut.height * panels.steps * panels.tile.width
    block = blocks(cut.tiles, panels.number, cut.height * pitch, panels.tile.width * panels.steps * 4, work)
    dtype = int8 if rounded else a.dtype
    code = gemm_int8.code(
        more=len(more),
        rows=cut.height,
        vectors=panels.tile.vectors,
        short=cut.tall != cut.tiles,
        narrow=panels.narrow,
        parts=panels.parts,
        rounded=rounded,
        wide=False,
        blocked=False,
        tiled=dtype if tile.depth else None,
        widened=dtype if tile.widened else None,
        flipped=False,
        bounded=0,
        grouped=Grouped(tile.grouped, dtype, False) if tile.grouped else None,
        epilogue=epilogue,
    )
    scratch = room(host(), 4 * panels.quads * cut.height) if tile.widened else 0
    for part in parts:
        words = [
            left.x.moved(part.a * rows * pitch),
            packed.moved(4 * part.b * panels.size),
            build.pointer(out, part.first * rows * out.pitch),
            panels.quads,
            pitch,
            out.pitch,
            columns,
            *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
            left.flip,
            rows * pitch * part.a_moves,
            panels.size * part.b_moves,
            left.scales,
            left.zeros,
            1,
            0,
            tile.depth,
            *more,
        ]
        items = block.items * part.products
        build.step(code, words, items, scratch, chunk_of(work * cut.tiles * panels.number * part.products, items))
    share(form, build, form.operands, epilogue)


def _as_it_is(form: MatMul, a: Buffer, build: Builder) -> Left:
    return Left(*_in_fours(a, build), FLIP if a.dtype is int8 else 0)


def _rounded(form: MatMul, a: Buffer, build: Builder) -> Left:
    made = rounded_rows(build, a, math.prod(a.shape[:-1]), a.shape[-1], a.pitch, form.rounding == "symmetric")
    return Left(made.x, made.pitch, FLIP, True, made.scales, made.zeros)


def turned(a: Buffer, build: Builder) -> Buffer:
    """a's matrices, each turned, [..., k, m] to [..., m, k]."""
    if a.parent is not None:
        raise NoKernel("a slice that is stored the other way round")
    *lead, depth, rows = a.shape
    turned = Buffer(f"{a.name} turned", a.dtype, (*lead, rows, depth))
    number = math.prod(lead)
    box = IndexMap((0, 0, 0), (number, rows, depth), 0, (depth * rows, 1, rows))
    flat = Buffer(turned.name, a.dtype, (number, rows, depth))
    select(Move(flat, (a,), (box,)), build)
    return Buffer(turned.name, a.dtype, turned.shape, parent=flat)


def _in_fours(a: Buffer, build: Builder) -> tuple[Any, int]:
    """Where a's rows are, and how many bytes apart: copied where they are no whole number of fours."""
    depth, rows = a.shape[-1], math.prod(a.shape[:-1])
    if depth % 4 == 0:
        return build.pointer(a), a.pitch
    pitch = -(-depth // 4) * 4 + host().vector_bytes
    place = build.temporary(rows * pitch)
    size = (rows - 1) * a.pitch + depth
    words = [build.pointer(a), place, size, 1, rows, a.pitch, depth, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, rows, pitch, 0]
    build.step(patches.code(rounded=False), words, rows, chunk=chunk_of(16 * rows * pitch, rows))
    return place, pitch


def _packed(form: MatMul, panels: Panels, offset: int, build: Builder) -> Any:
    """The address of b's matrices, packed one after the other."""
    b = form.b
    number = math.prod(b.shape[:-2])
    code = pack_code(panels, b.dtype)
    pitch, step = (b.pitch, 1) if form.transpose_b else (1, b.pitch)
    items = number * panels.number
    rest = [panels.features, 1, panels.run, pitch, step, form.b_zero, offset, b.shape[-2] * b.pitch, panels.size]
    if b.constant is not None:

        def fill(out: np.ndarray) -> None:
            words = pack_int8.words([np.ascontiguousarray(b.constant), 0, out, *rest])
            executor.call(code.address, words, 0, items)

        key = (b, "panels of columns of int8", form.transpose_b, panels, form.b_zero, offset)
        return build.packed((number * panels.size,), np.int32, fill, key)
    place = build.temporary(number * panels.size * 4)
    build.step(code, [build.pointer(b), 0, place, *rest], items)
    return place


@kl.family
def matmul_int16(
    work,
    a: ptr[i16],
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
    *more: i64,
    dtype: DType,
    along: bool,
    epilogue: Epilogue,
):
    """An item is a row of a product. a_step, b_step: elements from one product's matrix to the next. along: rows of b
    run along the depth; else along the columns."""
    b, y = b.cast(dtype, dtype.size), y.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish = epilogue.bind(more)
    lanes = work.target.vector_bytes // 8
    for item in work.items():
        product = item // rows
        left, right = a + (product * a_step + item % rows * a_pitch), b + product * b_step
        for n in range(0, columns, 1 if along else lanes):
            if along:
                total = kl.zeros(i64, lanes)
                for k in range(0, depth, lanes):
                    mask = kl.first(kl.minimum(depth - k, lanes), lanes)
                    pair = (left.load(k, lanes, mask), (right + n * b_pitch).load(k, lanes, mask))
                    total = total + _product(*pair)
                (y + item * y_pitch)[n] = finish(kl.reduce_add(total), item, n, 0)
            else:
                mask = kl.first(kl.minimum(columns - n, lanes), lanes)
                total = kl.zeros(i64, lanes)
                for k in range(depth):
                    total = total + _product(left[k].splat(lanes), (right + k * b_pitch).load(n, lanes, mask))
                (y + item * y_pitch).store(finish(total, item, n, lanes, mask), n, mask)


def _product(a: Any, b: Any) -> Any:
    return (a.to(i32) * b.to(i32)).to(i64)


@selector(MatMul)
def select_matmul_int16(form: MatMul, build: Builder) -> None:
    """Zero points are 0."""
    a, b, out = form.a, form.b, form.output
    if a.dtype is not int16 or b.dtype not in (int8, int16) or form.a_zero or form.b_zero or form.rounding:
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    if b.constant is not None and not b.constant.flags.c_contiguous:
        raise NoKernel("a constant with gaps")
    rows, columns = out.shape[-2:]
    if form.transpose_a:
        a = turned(a, build)
    lead = out.shape[:-2]
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    parts = list(batches(lead, a.shape[:-2], b.shape[:-2]))
    if len(parts) > MOST_STEPS or (len(parts) > 1 and form.operands):
        raise NoKernel(f"batches {list(a.shape[:-2])} by {list(b.shape[:-2])}")
    depth = a.shape[-1]
    code = matmul_int16.code(more=len(more), dtype=b.dtype, along=form.transpose_b, epilogue=epilogue)
    a_size, b_size = rows * a.pitch, b.shape[-2] * b.pitch
    for part in parts:
        words = [
            build.pointer(a, part.a * a_size),
            build.pointer(b, part.b * b_size),
            build.pointer(out, part.first * rows * out.pitch),
            rows,
            depth,
            columns,
            a.pitch,
            b.pitch,
            out.pitch,
            a_size * part.a_moves,
            b_size * part.b_moves,
            *more,
        ]
        items = part.products * rows
        build.step(code, words, items, chunk=chunk_of(4 * items * columns * depth, items))
    share(form, build, form.operands, epilogue)
