"""Attention: softmax(q k^T) v without the full matrix of scores.

Lives here: the selector of FusedAttention, its family. Not here: grouped heads and caches (grouped_attention.py),
separate products and softmax, which run instead of FusedAttention for few rows (matmul.py, rows.py).

An item is some rows of q of one head. Their scores remain in the scratch memory of the thread: products with all keys,
exponentials, products with all values. Keys are transposed into panels before, once a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr, u8
from ..loops.buffers import Buffer
from ..loops.expressions import parametrised
from ..loops.ops import FusedAttention
from ..loops.plans import word
from ..target import host
from . import NoKernel, selector
from .epilogue import ELEMENT, Epilogue
from .expression import check, exp_nonpositive
from .moves import transposed
from .output_tiles import accumulators

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

VECTORS = 2  # vectors of keys or values that are multiplied at a time
SCORE_BYTES = 1 << 20  # of an item, at most


@kl.family
def pack_keys(
    work: Work, k: ptr[f32], packed: ptr[f32], n: i64, d: i64, panels: i64, *, turned: bool, tiled: bool
) -> None:
    """Pack matrices [n, d] (if turned, [d, n]) in panels [d, width]; the last panel repeats the last key.

    Items: panels. tiled: whether d is at least lanes; blocks are then transposed in registers.
    """
    lanes = work.lanes(f32)
    width = VECTORS * lanes
    for item in work.items():
        matrix, first = k + (item // panels) * n * d, item % panels * width
        out = packed + item * width * d
        if turned:
            for row in range(d):
                for offset in range(0, width, lanes):
                    mask = kl.first(kl.clamp(n - first - offset, 0, lanes), lanes)
                    out.store((matrix + row * n + first).load(offset, lanes, mask), row * width + offset)
        else:
            pack_panel(matrix, d, first, n, d, out, lanes, tiled)


def pack_panel(k: Pointer, pitch: Any, first: Any, n: Any, d: Any, out: Pointer, lanes: int, tiled: bool) -> None:
    """Pack the keys from `first` on, `pitch` floats apart, in one panel. tiled: see `pack_keys`."""
    width = VECTORS * lanes
    if tiled:
        for offset in range(0, width, lanes):
            rows = [k + kl.minimum(first + offset + i, n - 1) * pitch for i in range(lanes)]
            for j in range(0, d, lanes):
                column = kl.minimum(j, d - lanes)
                vectors = transposed([r.load(column, lanes) for r in rows])
                for i in range(lanes):
                    out.store(vectors[i], (column + i) * width + offset)
    else:
        for key in range(width):
            row = k + kl.minimum(first + key, n - 1) * pitch
            for j in range(d):
                out[j * width + key] = row[j]


@kl.family
def attend(
    work: Work,
    q: ptr[f32],
    packed: ptr[f32],
    v: ptr[f32],
    y: ptr[f32],
    table: ptr[i64],
    m: i64,
    n: i64,
    d: i64,
    e: i64,
    blocks: i64,
    panels: i64,
    *more: i64,
    rows: int,
    before: Epilogue,
) -> None:
    """Compute attention of `rows` rows of one head. Items: rows; those behind the last repeat it and are not stored.

    table: byte offsets, for each head, of q, its panels, v and each operand. Scratch: rows of scores, then a vector for
    each row.
    """
    lanes = work.lanes(f32)
    width = VECTORS * lanes
    pitch = panels * width
    scores = work.scratch(f32)
    factors = scores + rows * pitch
    count = len(before.kinds)
    for item in work.items():
        head, first = item // blocks, item % blocks * rows
        offsets = table + head * (3 + count)
        words = [more[i] + (offsets[3 + i // 2] if i < 2 * count and i % 2 == 0 else 0) for i in range(len(more))]
        finish = before.bind(words)
        a = [_moved(q, offsets[0]) + kl.minimum(first + r, m - 1) * d for r in range(rows)]
        w = _moved(packed, offsets[1])
        multiply_panels(a, w, scores, pitch, pitch, d, lanes)
        for r in kl.loop(rows):
            row = scores + r * pitch
            factors.store(softmax(row, kl.minimum(first + r, m - 1), n, pitch, lanes, finish), r * lanes)
        values = _moved(v, offsets[2])
        for column in range(0, e, width):
            masks = [kl.first(kl.clamp(e - column - k * lanes, 0, lanes), lanes) for k in range(VECTORS)]
            sums = accumulators(f32, rows, VECTORS, lanes, None)
            p = values + column
            for j in range(n):
                parts = [p.load(k * lanes, lanes, masks[k]) for k in range(VECTORS)]
                for r in range(rows):
                    x = scores[r * pitch + j].splat(lanes)
                    for k in range(VECTORS):
                        sums[r, k] = kl.fma(x, parts[k], sums[r, k])
                p = p + e
            for r in range(rows):
                if first + r < m:
                    out = y + ((head * m + first + r) * e + column)
                    for k in range(VECTORS):
                        out.store(sums[r, k] * factors.load(r * lanes, lanes), k * lanes, mask=masks[k])


def _moved(p: Pointer, nbytes: Value) -> Pointer:
    return (p.cast(u8) + nbytes).cast(f32, 4)


def softmax(row: Pointer, number: Value, n: Value, pitch: Value, lanes: int, finish: Callable[..., Value]) -> Value:
    """Replace the products of a row by exponentials of scores; return 1 / their sum, in all lanes."""
    top = kl.full(f32, lanes, -math.inf)
    whole = kl.clamp(n, 0, pitch) // lanes * lanes  # AVX2 loads masked bytes of an operand one by one
    for i in range(0, whole, lanes):
        score = finish(row.load(i, lanes), number, i, lanes, None)
        row.store(score, i)
        top = kl.maximum(score, top)
    for i in range(whole, pitch, lanes):
        mask = kl.first(kl.clamp(n - i, 0, lanes), lanes)
        score = kl.select(mask, finish(row.load(i, lanes), number, i, lanes, mask), -math.inf)
        row.store(score, i)
        top = kl.maximum(score, top)
    maximum = kl.reduce_max(top).splat(lanes)
    total = kl.zeros(f32, lanes)
    for i in range(0, pitch, lanes):
        e = exp_nonpositive(row.load(i, lanes) - maximum)
        row.store(e, i)
        total = total + e
    return (1.0 / kl.reduce_add(total)).splat(lanes)


@selector(FusedAttention)
def select_attention(form: FusedAttention, build: Builder) -> None:
    """Add the steps of attention with enough rows to share panels of keys."""
    q, k, v, y = form.q, form.k, form.v, form.output
    if any(b.parent is not None or b.dtype is not float32 for b in (q, k, v, y)) or not y.size:
        raise NoKernel("attention of a slice, or of other types than float32")
    (m, d), (n, e) = q.shape[-2:], v.shape[-2:]
    lead = y.shape[:-2]
    many_registers = host().registers >= 32
    rows = next((r for r in ((12, 4) if many_registers else (6, 4)) if m >= r), 0)
    lanes = host().vector_bytes // 4
    width = VECTORS * lanes
    panels, blocks = -(-n // width), -(-m // rows) if rows else 0
    scratch = 4 * rows * (panels * width + lanes)
    if not rows or not n or not d or scratch > SCORE_BYTES:
        raise NoKernel(f"attention of {m} rows to {n} keys")
    check(form.before)
    skeleton, numbers = parametrised(form.before)
    words, offsets = [], [_offsets(b, lead) for b in (q, k, v)]
    for operand in form.operands:
        words += [build.pointer(operand), _row_pitch(operand, lead, m, n)]
        offsets.append(_offsets(operand, lead))
    offsets[1] = offsets[1] // (n * d) * (panels * width * d)
    heads = math.prod(lead)
    sizes = [4, 4, 4, *(b.dtype.size for b in form.operands)]
    table = np.stack([np.broadcast_to(o, lead).reshape(-1) * s for o, s in zip(offsets, sizes)], 1).astype(np.int64)
    epilogue = Epilogue(skeleton, tuple((ELEMENT, b.dtype) for b in form.operands), tuple(t for _, t in numbers))
    words += [word(x, t) for x, t in numbers]
    matrices = math.prod(k.shape[:-2])
    packed = build.temporary(4 * matrices * panels * width * d)
    code = pack_keys.code(turned=form.turned, tiled=d >= lanes)
    build.step(code, [build.pointer(k), packed, n, d, panels], matrices * panels)
    arguments = [
        build.pointer(q),
        packed,
        build.pointer(v),
        build.pointer(y),
        build.constant(table),
        m,
        n,
        d,
        e,
        blocks,
        panels,
    ]
    build.step(attend.code(rows=rows, before=epilogue, more=len(words)), [*arguments, *words], heads * blocks, scratch)


def _offsets(b: Buffer, lead: tuple[int, ...]) -> np.ndarray:
    """Return the first element of the matrix of b for each index of the leading axes."""
    shape = (1,) * (len(lead) + 2 - len(b.shape)) + b.shape
    numbers: np.ndarray = np.arange(math.prod(shape[:-2]), dtype=np.int64).reshape(shape[:-2])
    return np.broadcast_to(numbers * math.prod(shape[-2:]), lead)


def _row_pitch(operand: Buffer, lead: tuple[int, ...], m: int, n: int) -> int:
    """Return the elements from one row of an operand to the next: 0 if all rows share one."""
    shape = (1,) * (len(lead) + 2 - len(operand.shape)) + operand.shape
    if operand.parent is not None or shape[-1] != n or shape[-2] not in (1, m) or len(shape) != len(lead) + 2:
        raise NoKernel(f"attention with {operand!r}")
    return n if shape[-2] == m and m > 1 else 0


def multiply_panels(
    queries: list[Pointer], panels: Pointer, scores: Pointer, pitch: Value, end: Value, size: Value, lanes: int
) -> None:
    """Write the products of each query with the first `end` keys, by panels."""
    rows, width = len(queries), VECTORS * lanes
    for start in range(0, end, width):
        w = panels + start * size
        sums = accumulators(f32, rows, VECTORS, lanes, None)
        for j in range(size):
            near = [w.load(i * lanes, lanes) for i in range(VECTORS)]
            for r in range(rows):
                x = queries[r][j].splat(lanes)
                for i in range(VECTORS):
                    sums[r, i] = kl.fma(x, near[i], sums[r, i])
            w = w + width
        for r in range(rows):
            for i in range(VECTORS):
                scores.store(sums[r, i], r * pitch + start + i * lanes)
