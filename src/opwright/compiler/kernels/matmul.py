"""Matrix products of two operands that need no constant: batches, broadcasting, either stored the other way round.

Lives here: the selector of `MatMul` for float32, the family `transpose`.
Not here: the micro-kernel (gemm_f32.py), panels (weight_packing_f32.py).

The second operand is packed in panels, at once where it is a constant and else by a step; a first operand that is
stored the other way round is turned by a step.
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
from .contractions_f32 import share
from .epilogue import Epilogue, epilogue_of
from .gemm_f32 import Panels, Product, gemm_step, panels_of
from .gemv_f32 import ACROSS, gemv, gevm
from .tiling import chunk_of
from .weight_packing_f32 import pack, pack_code

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

FEW = 4
"""Rows for which a second operand that is no constant is read as it is, not packed."""
MOST_STEPS = 64
"""Steps of one product, where batches broadcast in more ways than one step can do."""


@kl.family
def transpose(work, x: ptr[f32], out: ptr[f32], rows: i64, columns: i64, pitch: i64, *, block: int):
    """out[batch, column, row] = x[batch, row, column], x's rows at `pitch`. Items: batches by blocks of columns."""
    blocks = (columns + (block - 1)) // block
    for item in work.items():
        batch, first = item // blocks, item % blocks * block
        source = x + (batch * rows * pitch + first)
        target = out + (batch * columns + first) * rows
        count = kl.minimum(columns - first, block)
        for r in range(rows):
            for c in range(count):
                target[c * rows + r] = source[r * pitch + c]


class Batch(NamedTuple):
    """Products that one step does. a, b: the first matrix of each operand; whether each has one a product, or one."""

    products: int
    a: int
    b: int
    a_moves: bool
    b_moves: bool
    first: int


def batches(out: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[Batch]:
    """How products over leading axes `out` are done where operands have leading axes a and b that broadcast to them."""
    a, b = (1,) * (len(out) - len(a)) + a, (1,) * (len(out) - len(b)) + b
    moves: tuple[bool, bool] | None = None
    inner = len(out)
    while inner > 0:
        n = inner - 1
        if out[n] > 1:
            there = a[n] > 1, b[n] > 1
            if moves is not None and there != moves:
                break
            moves = there
        inner = n
    each = math.prod(out[inner:])
    a_moves, b_moves = moves or (False, False)
    for number, at in enumerate(np.ndindex(*out[:inner])):
        places = []
        for shape in (a, b):
            index = tuple(i if n > 1 else 0 for i, n in zip(at, shape)) + (0,) * (len(shape) - inner)
            places.append(int(np.ravel_multi_index(index, shape)) if shape else 0)
        yield Batch(each, places[0], places[1], a_moves, b_moves, number * each)


@selector(MatMul)
def select_matmul(form: MatMul, build: Builder) -> None:
    """Steps of a product of float32; b may be a constant of float16 or bfloat16."""
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
        x, pitch = _turned(a, build), depth
    few = rows <= FEW and b.constant is None
    packed: Any = None if few else _packed(form, panels, build)
    if not few and math.prod(b_lead) == 1 and a.shape[:-2] == lead:  # all rows of all batches, one product
        product = Product(math.prod(lead) * rows, pitch)
        gemm_step(build, panels, x, packed, build.pointer(out), out.pitch, product, epilogue, more)
        share(form, build, form.operands, epilogue)
        return
    parts = list(batches(lead, a_lead, b_lead))
    if len(parts) > MOST_STEPS or (len(parts) > 1 and form.operands):
        raise NoKernel(f"batches {list(a_lead)} by {list(b_lead)}")
    for part in parts:
        if few:
            _make_few(form, part, x, pitch, epilogue, more, build)
            continue
        product = Product(rows, pitch, part.products, rows * pitch * part.a_moves, panels.size * part.b_moves)
        gemm_step(
            build,
            panels,
            x.moved(4 * part.a * rows * pitch),
            packed.moved(4 * part.b * panels.size),
            build.pointer(out, part.first * rows * out.pitch),
            out.pitch,
            product,
            epilogue,
            more,
        )
    share(form, build, form.operands, epilogue)


def _make_few(
    form: MatMul, part: Batch, x: Any, pitch: int, epilogue: Epilogue, more: list[Any], build: Builder
) -> None:
    """Products of few rows: b is read once, where it is."""
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


def _turned(a: Buffer, build: Builder) -> Any:
    """The address of a's matrices, each turned, [..., k, m] to [..., m, k]."""
    depth, rows = a.shape[-2:]
    number = math.prod(a.shape[:-2])
    place = build.temporary(a.size * 4)
    block = 16
    build.step(transpose.code(block=block), [build.pointer(a), place, depth, rows, a.pitch], number * -(-rows // block))
    return place


def _packed(form: MatMul, panels: Panels, build: Builder) -> Any:
    """The address of b's matrices, packed one after the other."""
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
    place = build.temporary(number * panels.size * 4)
    words = [build.pointer(b), 0, place, panels.features, 1, panels.run, b.pitch, source_batch, panels.size]
    build.step(code, words, items)
    return place
