"""Matrix products whose operands may both be computed: batches, broadcasting, either operand transposed.

Lives here: the selectors of `MatMul` for float32, for int8, for floats quantized dynamically against int8, and for
int16; the family `transpose`; `product_batches`, `batches_of`, `words_of`.
Not here: the micro-kernels (gemm_f32.py, gemm_int8.py, gemv_int8.py), panels (weight_packing_f32.py,
weight_packing_int8.py), int16 by constant int8 weights (contractions_int8.py).

The second operand is packed in panels, once if it is a constant and otherwise by a step or by the product itself; a
step transposes the first operand if needed. Products of two int16 elements are int32 and widened to int64 before they
are accumulated, since few of them may exceed int32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, int8, int16, uint8
from .. import language as kl
from ..language import i16, i32, i64, ptr, u8
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.ops import MatMul, Move
from ..native import executor
from ..target import host
from . import NoKernel, select, selector, weight_packing_f32, weight_packing_int8
from .contraction_steps_f32 import ProductBatch, gemm_step
from .contraction_steps_int8 import QuantizedRows, gemm_int8_step, round_to_int8
from .convolution_int8 import patches
from .epilogue import Epilogue, epilogue_of, share_output
from .gemm_deep_f32 import is_deep, packs_itself
from .gemm_int8 import FLIP
from .gemv_f32 import ACROSS, blocks_of, gemv, gevm
from .gemv_int8 import column_blocks, few_rows_int8
from .register_tiles import PanelsInt8, parts_of, tile_of, vector_tile
from .tiling import blocks, chunk_of, row_tiles
from .weight_packing_f32 import PanelsF32, pack, panels_of
from .weight_packing_int8 import pack_int8

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address

FEW = 4
"""Rows up to which a computed second operand is read unpacked."""
STEP_LIMIT = 64
"""Steps of a product whose batches broadcast in a pattern that no single step covers."""


class BroadcastBatch(NamedTuple):
    """Products of one step. a, b: the first matrix of each operand; a_moves, b_moves: whether each product has one of
    its own; first: the first product."""

    products: int
    a: int
    b: int
    a_moves: bool
    b_moves: bool
    first: int


def product_batches(out: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[BroadcastBatch]:
    """Divide products over leading axes `out` into steps; leading axes a and b of the operands broadcast to them."""
    a, b = (1,) * (len(out) - len(a)) + a, (1,) * (len(out) - len(b)) + b
    moves: tuple[bool, bool] | None = None
    inner = len(out)
    while inner > 0:
        n = inner - 1
        if out[n] > 1:
            axis_moves = a[n] > 1, b[n] > 1
            if moves is not None and axis_moves != moves:
                break
            moves = axis_moves
        inner = n
    products = math.prod(out[inner:])
    a_moves, b_moves = moves or (False, False)
    for number, outer in enumerate(np.ndindex(*out[:inner])):
        first = []
        for shape in (a, b):
            index = tuple(i if n > 1 else 0 for i, n in zip(outer, shape)) + (0,) * (len(shape) - inner)
            first.append(int(np.ravel_multi_index(index, shape)) if shape else 0)
        yield BroadcastBatch(products, first[0], first[1], a_moves, b_moves, number * products)


def batches_of(form: MatMul, a: Buffer, by_element: bool) -> list[BroadcastBatch]:
    """Return the steps of products of the batches of a. by_element: whether the epilogue reads by element of the whole
    output, which several steps cannot. Raises NoKernel for that and for too many steps."""
    lead, a_lead, b_lead = (x.shape[:-2] for x in (form.output, a, form.b))
    parts = list(product_batches(lead, a_lead, b_lead))
    if len(parts) > STEP_LIMIT or (len(parts) > 1 and by_element):
        raise NoKernel(f"batches {list(a_lead)} by {list(b_lead)}")
    return parts


def words_of(form: MatMul, part: BroadcastBatch, a: Buffer, build: Builder) -> list[Any]:
    """Return the addresses, sizes, pitches and distances of matrices of a step that reads b unpacked."""
    b, out = form.b, form.output
    rows, columns = out.shape[-2:]
    a_size, b_size = rows * a.pitch, b.shape[-2] * b.pitch
    return [
        build.pointer(a, part.a * a_size),
        build.pointer(b, part.b * b_size),
        build.pointer(out, part.first * rows * out.pitch),
        *(rows, a.shape[-1], columns),
        *(a.pitch, b.pitch, out.pitch),
        *(a_size * part.a_moves, b_size * part.b_moves),
    ]


@selector(MatMul)
def select_matmul(form: MatMul, build: Builder) -> None:
    """Add the steps of a product of float32; b may be a constant of float16 or bfloat16."""
    a, b, out = form.a, form.b, form.output
    if a.dtype is not float32 or b.dtype not in (float32, float16, bfloat16):
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    rows, columns = out.shape[-2:]
    depth = a.shape[-2] if form.transpose_a else a.shape[-1]
    lead, b_lead = out.shape[:-2], b.shape[:-2]
    parts = batches_of(form, a, bool(form.operands))
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    panels = panels_of(host(), columns, depth)
    few = rows <= FEW and b.constant is None
    readable = not few and b.constant is None and not form.transpose_b  # b has rows of the panels
    turned = form.transpose_a and not few
    products = parts[0].products if parts else 0
    packs = turned and readable and packs_itself(rows, panels, products)
    packs = packs and is_deep(rows, panels, a.pitch, True, True, products)
    turned = turned and (packs or is_deep(rows, panels, a.pitch, True, False, products))
    if form.transpose_a and not turned:
        a = transposed(a, build)
    x, pitch = build.pointer(a), a.pitch
    if few or packs:
        packed, matrix = build.pointer(b), b.shape[-2] * b.pitch
    else:
        packed, matrix = _packed_f32(form, panels, build), panels.size
    single = not few and not turned and math.prod(b_lead) == 1 and a.shape[:-2] == lead
    if single:  # all rows of all batches, one product
        batch = ProductBatch(math.prod(lead) * rows, pitch)
        gemm_step(build, panels, x, packed, build.pointer(out), out.pitch, batch, epilogue, more)
        share_output(form, build, form.operands, epilogue)
        return
    a_size = a.shape[-2] * pitch
    for part in parts:
        if few:
            _add_few(form, part, x, pitch, epilogue, more, build)
            continue
        steps = part.products, a_size * part.a_moves, matrix * part.b_moves
        batch = ProductBatch(rows, pitch, *steps, turned, b.pitch if packs else 0)
        gemm_step(
            build,
            panels,
            x.moved(4 * part.a * a_size),
            packed.moved(4 * part.b * matrix),
            build.pointer(out, part.first * rows * out.pitch),
            out.pitch,
            batch,
            epilogue,
            more,
        )
    share_output(form, build, form.operands, epilogue)


def _add_few(
    form: MatMul, part: BroadcastBatch, x: Any, pitch: int, epilogue: Epilogue, more: list[Any], build: Builder
) -> None:
    """Add products of few rows, which read b once, unpacked."""
    b, out = form.b, form.output
    rows, columns = out.shape[-2:]
    depth = b.shape[-1] if form.transpose_b else b.shape[-2]
    matrix = b.shape[-2] * b.pitch
    words: list[Any] = [
        x.moved(4 * part.a * rows * pitch),
        build.pointer(b, part.b * matrix),
        build.pointer(out, part.first * rows * out.pitch),
        depth,
        columns,
        pitch,
        b.pitch,
        out.pitch,
    ]
    steps = rows * pitch * part.a_moves, matrix * part.b_moves
    if form.transpose_b:
        code = gemv.code(more=len(more), dtype=b.dtype, epilogue=epilogue)
        words += [rows, *steps, *more]
        items = part.products * rows * blocks_of(columns)
    else:
        code = gevm.code(more=len(more), rows=rows, dtype=b.dtype, epilogue=epilogue)
        words += [*steps, *more]
        items = part.products * -(-columns // (ACROSS * host().vector_bytes // 4))
    build.step(code, words, items, chunk=chunk_of(2 * part.products * rows * columns * depth, items))


def _packed_f32(form: MatMul, panels: PanelsF32, build: Builder) -> Address:
    """Return the address of the packed matrices of b, one after the other."""
    b = form.b
    number = math.prod(b.shape[:-2])
    code = weight_packing_f32.pack_code(b.dtype, False, form.transpose_b)
    source_batch = b.shape[-2] * b.pitch
    sizes = [panels.features, 1, panels.run, b.pitch, source_batch, panels.size, panels.halves]
    items = number * panels.number
    if b.constant is not None:

        def fill(out: np.ndarray) -> None:
            matrices = np.ascontiguousarray(b.constant)
            words = pack.words([matrices, 0, out, *sizes])
            executor.call(code.address, words, 0, items)

        key = (b, "panels of columns", form.transpose_b, panels)
        return build.packed((number * panels.size,), np.float32, fill, key)
    packed = build.temporary(number * panels.size * 4)
    build.step(code, [build.pointer(b), 0, packed, *sizes], items)
    return packed


@selector(MatMul)
def select_matmul_int8(form: MatMul, build: Builder) -> None:
    """Add the steps of a product of int8 or uint8 matrices with zero points, or of floats to be rounded by int8."""
    a, b, out = form.a, form.b, form.output
    rounded = a.dtype is float32 and bool(form.rounding) and b.dtype is int8 and form.b_zero == 0
    if not rounded and (a.dtype not in (int8, uint8) or b.dtype not in (int8, uint8)):
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    rows, columns = out.shape[-2:]
    if form.transpose_a:
        a = transposed(a, build)
    lead = out.shape[:-2]
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    if rows <= FEW and b.constant is None and not rounded and host().lanes(4) > 1:
        _add_few_int8(form, a, epilogue, more, build)
        share_output(form, build, form.operands, epilogue)
        return
    depth = a.shape[-1]
    tile = tile_of(host(), rows, columns, -(-depth // 4), rows * columns * depth) or vector_tile(host(), columns)
    panels = PanelsInt8(columns, 1, depth, tile, parts_of(b.dtype, form.b_zero))
    if rounded and math.prod(a.shape[:-2]) != math.prod(lead):  # the scales of rows are read by row of the output
        a = repeated(a, lead, build)
    parts = batches_of(form, a, bool(form.operands) or rounded)
    if rounded:
        lhs = round_to_int8(build, a, math.prod(a.shape[:-1]), a.shape[-1], a.pitch, form.rounding)
    else:
        lhs = _integer_lhs(a, build)
    packed = _packed_int8(form, panels, 128 if rounded else tile.offset(form.a_zero, a.dtype), build)
    cut, pitch = row_tiles(rows, tile.rows), lhs.pitch
    work = 8 * cut.height * panels.steps * tile.width
    block = blocks(cut.tiles, panels.number, cut.height * pitch, tile.width * panels.steps * 4, work)
    for part in parts:
        items = block.items * part.products
        gemm_int8_step(
            build,
            panels,
            lhs._replace(x=lhs.x.moved(part.a * rows * pitch)),
            packed.moved(4 * part.b * panels.size),
            build.pointer(out, part.first * rows * out.pitch),
            out.pitch,
            cut,
            block,
            epilogue,
            more,
            int8 if rounded else a.dtype,
            chunk_of(work * cut.tiles * panels.number * part.products, items),
            products=part.products,
            x_batch=rows * pitch * part.a_moves,
            packed_batch=panels.size * part.b_moves,
        )
    share_output(form, build, form.operands, epilogue)


def _add_few_int8(form: MatMul, a: Buffer, epilogue: Epilogue, more: list[Any], build: Builder) -> None:
    """Add products of few rows, which read b once, unpacked. Raises NoKernel."""
    b = form.b
    (rows, columns), depth = form.output.shape[-2:], a.shape[-1]
    code = few_rows_int8.code(
        more=len(more), a_dtype=a.dtype, b_dtype=b.dtype, along=form.transpose_b, epilogue=epilogue
    )
    for part in batches_of(form, a, bool(form.operands)):
        words = [*words_of(form, part, a, build), form.a_zero, form.b_zero, *more]
        items = part.products * rows * column_blocks(columns)
        build.step(code, words, items, chunk=chunk_of(2 * part.products * rows * columns * depth, items))


def repeated(a: Buffer, lead: Sequence[int], build: Builder) -> Buffer:
    """Add a step that broadcasts the matrices of a to a shape of batches; return its output."""
    shape = (*lead, *a.shape[-2:])
    sizes = (1,) * (len(shape) - len(a.shape)) + tuple(a.shape)
    strides = tuple(0 if size == 1 else step for size, step in zip(sizes, row_major(sizes)))
    result = Buffer(f"{a.name} repeated", a.dtype, shape)
    select(Move(result, (a,), (IndexMap((0,) * len(shape), shape, 0, strides),)), build)
    return result


def transposed(a: Buffer, build: Builder) -> Buffer:
    """Add a step that transposes the matrices of a, [..., k, m] to [..., m, k]; return its output."""
    *lead, depth, rows = a.shape
    number = math.prod(lead)
    box = IndexMap((0, 0, 0), (number, rows, depth), 0, (depth * rows, 1, rows))
    flat = Buffer(f"{a.name} turned", a.dtype, (number, rows, depth))
    select(Move(flat, (a,), (box,)), build)
    return Buffer(flat.name, a.dtype, (*lead, rows, depth), parent=flat)


def _integer_lhs(a: Buffer, build: Builder) -> QuantizedRows:
    """Return the rows of a; a step copies them if they are not a multiple of four bytes."""
    depth, rows = a.shape[-1], math.prod(a.shape[:-1])
    flip = FLIP if a.dtype is int8 else 0
    if depth % 4 == 0:
        return QuantizedRows(build.pointer(a), a.pitch, 0, flip)
    pitch = -(-depth // 4) * 4 + host().vector_bytes
    padded = build.temporary(rows * pitch)
    size = (rows - 1) * a.pitch + depth
    words = [build.pointer(a), padded, size, 1, rows, a.pitch, depth, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, rows, pitch, 0]
    build.step(patches.code(rounded=False), words, rows, chunk=chunk_of(16 * rows * pitch, rows))
    return QuantizedRows(padded, pitch, 0, flip)


def _packed_int8(form: MatMul, panels: PanelsInt8, offset: int, build: Builder) -> Address:
    """Return the address of the packed matrices of b, one after the other."""
    b = form.b
    number = math.prod(b.shape[:-2])
    code = weight_packing_int8.pack_code(panels, b.dtype)
    pitch, step = (b.pitch, 1) if form.transpose_b else (1, b.pitch)
    items = number * panels.number
    sizes = [panels.features, 1, panels.run, pitch, step, form.b_zero, offset, b.shape[-2] * b.pitch, panels.size]
    if b.constant is not None:

        def fill(out: np.ndarray) -> None:
            words = pack_int8.words([np.ascontiguousarray(b.constant), 0, out, *sizes])
            executor.call(code.address, words, 0, items)

        key = (b, "panels of columns of int8", form.transpose_b, panels, form.b_zero, offset)
        sums = functools.partial(weight_packing_int8.initial_sums, panels)
        return build.packed((number * panels.size,), np.int32, fill, key, sums)
    packed = build.temporary(number * panels.size * 4)
    build.step(code, [build.pointer(b), 0, packed, *sizes], items)
    return packed


@kl.family
def matmul_int16(
    work: Work,
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
) -> None:
    """Multiply matrices of int16 by int8 or int16. a_step, b_step: elements from the matrix of one product to the next.

    along: whether rows of b run along the depth; otherwise along the columns. Items: rows of products.
    """
    b, y = b.cast(dtype, dtype.size), y.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish = epilogue.bind(more)
    lanes = work.target.lanes(8)
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


def _product(a: Value, b: Value) -> Value:
    return (a.to(i32) * b.to(i32)).to(i64)


@selector(MatMul)
def select_matmul_int16(form: MatMul, build: Builder) -> None:
    """Add the steps of a product of int16 by int8 or int16, with zero points of 0."""
    a, b, out = form.a, form.b, form.output
    if a.dtype is not int16 or b.dtype not in (int8, int16) or form.a_zero or form.b_zero or form.rounding:
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    if b.constant is not None and not b.constant.flags.c_contiguous:
        raise NoKernel("a constant with gaps")
    rows, columns = out.shape[-2:]
    if form.transpose_a:
        a = transposed(a, build)
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    code = matmul_int16.code(more=len(more), dtype=b.dtype, along=form.transpose_b, epilogue=epilogue)
    for part in batches_of(form, a, bool(form.operands)):
        items = part.products * rows
        chunk = chunk_of(4 * items * columns * a.shape[-1], items)
        build.step(code, [*words_of(form, part, a, build), *more], items, chunk=chunk)
    share_output(form, build, form.operands, epilogue)
