"""Matrix products of float32 whose operands may both be computed: batches, broadcasting, either operand transposed.

Lives axis_moves: the selector of `MatMul` for float32, the family `transpose`, `product_batches`.
Not axis_moves: the micro-kernel (gemm_f32.py), panels (weight_packing_f32.py).

The second operand is packed in panels, once if it is a constant and otherwise by a step; another step transposes the
first operand if needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import bfloat16, float16, float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.buffers import Buffer
from ..loops.ops import MatMul
from ..native import executor
from ..target import host
from . import NoKernel, selector
from .epilogue import Epilogue, epilogue_of, share_output
from .gemm_f32 import ProductBatch, gemm_step
from .gemv_f32 import ACROSS, gemv, gevm
from .tiling import chunk_of
from .weight_packing_f32 import PanelsF32, pack, pack_code, panels_of

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.plan_builder import Builder

FEW = 4
"""Rows up to which a computed second operand is read unpacked."""
STEP_LIMIT = 64
"""Steps of a product whose batches broadcast in a pattern that no single step covers."""


@kl.family
def transpose(work: Work, x: ptr[f32], out: ptr[f32], rows: i64, columns: i64, pitch: i64, *, block: int) -> None:
    """Transpose: out[batch, column, row] = x[batch, row, column], rows of x at `pitch`. Items: batches by blocks."""
    blocks = (columns + (block - 1)) // block
    for item in work.items():
        batch, first = item // blocks, item % blocks * block
        source = x + (batch * rows * pitch + first)
        target = out + (batch * columns + first) * rows
        count = kl.minimum(columns - first, block)
        for r in range(rows):
            for c in range(count):
                target[c * rows + r] = source[r * pitch + c]


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


@selector(MatMul)
def select_matmul(form: MatMul, build: Builder) -> None:
    """Add the steps of a product of float32; b may be a constant of float16 or bfloat16."""
    a, b, out = form.a, form.b, form.output
    if a.dtype is not float32 or b.dtype not in (float32, float16, bfloat16):
        raise NoKernel(f"a product of {a.dtype.name} and {b.dtype.name}")
    rows, columns = out.shape[-2:]
    depth = a.shape[-2] if form.transpose_a else a.shape[-1]
    lead, a_lead, b_lead = out.shape[:-2], a.shape[:-2], b.shape[:-2]
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    panels = panels_of(host(), columns, depth)
    x: Any = build.pointer(a)
    pitch = a.pitch
    if form.transpose_a:
        x, pitch = _transposed(a, build), depth
    few = rows <= FEW and b.constant is None
    packed: Any = None if few else _packed(form, panels, build)
    if not few and math.prod(b_lead) == 1 and a.shape[:-2] == lead:  # all rows of all batches, one product
        batch = ProductBatch(math.prod(lead) * rows, pitch)
        gemm_step(build, panels, x, packed, build.pointer(out), out.pitch, batch, epilogue, more)
        share_output(form, build, form.operands, epilogue)
        return
    parts = list(product_batches(lead, a_lead, b_lead))
    if len(parts) > STEP_LIMIT or (len(parts) > 1 and form.operands):
        raise NoKernel(f"batches {list(a_lead)} by {list(b_lead)}")
    for part in parts:
        if few:
            _add_few(form, part, x, pitch, epilogue, more, build)
            continue
        batch = ProductBatch(rows, pitch, part.products, rows * pitch * part.a_moves, panels.size * part.b_moves)
        gemm_step(
            build,
            panels,
            x.moved(4 * part.a * rows * pitch),
            packed.moved(4 * part.b * panels.size),
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
    lanes = host().vector_bytes // 4
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
        items = part.products * rows * -(-columns // lanes)
    else:
        code = gevm.code(more=len(more), rows=rows, dtype=b.dtype, epilogue=epilogue)
        words += [*steps, *more]
        items = part.products * -(-columns // (ACROSS * lanes))
    build.step(code, words, items, chunk=chunk_of(2 * part.products * rows * columns * depth, items))


def _transposed(a: Buffer, build: Builder) -> Any:
    """Add a step that transposes the matrices of a, [..., k, m] to [..., m, k]; return its output."""
    depth, rows = a.shape[-2:]
    number = math.prod(a.shape[:-2])
    result = build.temporary(a.size * 4)
    block = 16
    words = [build.pointer(a), result, depth, rows, a.pitch]
    build.step(transpose.code(block=block), words, number * -(-rows // block))
    return result


def _packed(form: MatMul, panels: PanelsF32, build: Builder) -> Any:
    """Return the address of the packed matrices of b, one after the other."""
    b = form.b
    number = math.prod(b.shape[:-2])
    code = pack_code(panels, b.dtype, False, form.transpose_b)
    source_batch = b.shape[-2] * b.pitch
    items = number * panels.number
    if b.constant is not None:

        def fill(out: np.ndarray) -> None:
            matrices = np.ascontiguousarray(b.constant)
            words = pack.words([matrices, 0, out, panels.features, 1, panels.run, b.pitch, source_batch, panels.size])
            executor.call(code.address, words, 0, items)

        key = (b, "panels of columns", form.transpose_b, panels)
        return build.packed((number * panels.size,), np.float32, fill, key)
    packed = build.temporary(number * panels.size * 4)
    words = [build.pointer(b), 0, packed, panels.features, 1, panels.run, b.pitch, source_batch, panels.size]
    build.step(code, words, items)
    return packed
