"""Products of few rows with an unpacked matrix, at the speed of memory.

Lives here: the families `gemv` (a matrix whose rows run along the sum) and `gevm` (columns), `horizontal_sums`.
Not here: many rows, for which the matrix is packed (gemm_f32.py).

`gemv` sums `SIDE` channels side by side, each along its row of the filter, into a vector each; a transposed addition of
as many as a vector has lanes returns one vector of sums. Rows whose distance is a multiple of 4 KB share the sets of
the first cache, which has eight ways: of sixteen such rows at a time, 128 x 640 took 9.9 us on Zen 4, of eight 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i64, ptr
from ..target import host
from .epilogue import Epilogue
from .tiling import LINE_BYTES

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work


def horizontal_sums(vectors: Sequence[Value]) -> Value:
    """Return the sum of the lanes of each vector: as many vectors as lanes, lane i of vector i."""
    lanes = vectors[0].count
    level, block = list(vectors), lanes  # lanes that hold partial sums of one vector
    while len(level) > 1:
        half = block // 2
        starts = range(0, lanes, block)
        low = [s + i for s in starts for i in range(half)]
        high = [s + half + i for s in starts for i in range(half)]
        level = [
            kl.shuffle(a, b, low + [lanes + i for i in low]) + kl.shuffle(a, b, high + [lanes + i for i in high])
            for a, b in zip(level[::2], level[1::2])
        ]
        block = half
    return level[0]


@kl.family(addressed=True)
def gemv(
    work: Work,
    x: ptr[f32],
    weights: ptr[kl.u8],
    out: ptr[f32],
    depth: i64,
    features: i64,
    x_pitch: i64,
    pitch: i64,
    out_pitch: i64,
    rows: i64,
    x_batch: i64,
    batch: i64,
    *more: i64,
    dtype: DType,
    epilogue: Epilogue,
) -> None:
    """Compute out[n, m, f] = epilogue(sum_k x[n, m, k] weights[n, f, k]) for `rows` rows m.

    weights: of `dtype`, float32 or narrower. x_batch, batch: elements from the operands of one product to the next.
    Items: rows of all products by `blocks_of(features)`, blocks first.
    """
    lanes = work.lanes(f32)
    block = lanes * lanes
    masked = work.target.vector_bytes == 64
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    filters = weights.cast(dtype, dtype.size)
    finish = epilogue.bind(more)
    blocks = (features + (block - 1)) // block
    for item in work.items():
        row, first = item // blocks, item % blocks * block
        p = x + (row // rows * x_batch + row % rows * x_pitch)
        matrix = filters + row // rows * batch
        for step in range((kl.minimum(features - first, block) + (lanes - 1)) // lanes):
            column = first + step * lanes
            channels = [matrix + kl.minimum(column + i, features - 1) * pitch for i in range(lanes)]
            vectors: list[Value] = []
            for i in range(0, lanes, SIDE):
                vectors += _row_sums(p, channels[i : i + SIDE], depth, lanes, masked)
            total, y = horizontal_sums(vectors), target + row * out_pitch
            _write(y, total, finish, row, column, features - column, lanes, masked)


def blocks_of(features: int, lanes: int | None = None) -> int:
    """Return the number of blocks of channels that `gemv` has as items. lanes: of a vector, by default the host's."""
    lanes = lanes or host().vector_bytes // 4
    return -(-features // (lanes * lanes))


SIDE = 8
"""Rows of the filter that are read at a time: a cache has eight ways, and two additions a cycle of latency four."""
AHEAD = 1024
"""Bytes by which prefetching is ahead in each row, where a vector is a line."""


def _row_sums(p: Pointer, channels: Sequence[Pointer], depth: Value, lanes: int, masked: bool) -> list[Value]:
    """Return the products of p with rows of the filter, each the sum of a vector's lanes."""
    count = len(channels)
    sums = kl.registers(f32, lanes, count)
    for i in range(count):
        sums[i] = 0.0
    size = channels[0].dtype.size
    near = 2 if lanes > 1 else 4  # vectors: a line of each row at a time, as rows a multiple of 4 KB apart share sets
    whole = depth // (near * lanes) * (near * lanes)
    done = depth // lanes * lanes if lanes > 1 else whole
    for k in range(0, whole, near * lanes):
        parts = [p.load(k + j * lanes, lanes) for j in range(near)]
        for i in range(count):
            for j in range(0, near * lanes, LINE_BYTES // size) if masked else ():
                channels[i].prefetch(k + j + AHEAD // size)
            for j in range(near):
                sums[i] = kl.fma(parts[j], channels[i].load(k + j * lanes, lanes).to(f32), sums[i])
    if whole < done:
        v = p.load(whole, lanes)
        for i in range(count):
            sums[i] = kl.fma(v, channels[i].load(whole, lanes).to(f32), sums[i])
    if masked:
        if done < depth:
            mask = kl.first(depth - done, lanes)
            v = p.load(done, lanes, mask=mask)
            for i in range(count):
                sums[i] = kl.fma(v, channels[i].load(done, lanes, mask=mask).to(f32), sums[i])
    else:
        for k in range(done, depth):
            v = _first_lane(p[k], lanes)
            for i in range(count):
                sums[i] = kl.fma(v, _first_lane(channels[i][k].to(f32), lanes), sums[i])
    return [sums[i] for i in range(count)]


def _first_lane(x: Value, lanes: int) -> Value:
    """Return a vector of x and zeros. Both factors of a product need zeros, as 0 times an infinity is not 0."""
    return kl.insert(kl.zeros(f32, lanes), 0, x)


def _write(
    out: Pointer,
    sums: Value,
    finish: Callable[..., Value],
    row: Value,
    column: Value,
    rest: Value,
    lanes: int,
    masked: bool,
) -> None:
    if masked:
        mask = kl.first(rest, lanes)
        out.store(finish(sums, row, column, lanes, mask), column, mask)
    elif rest >= lanes:
        out.store(finish(sums, row, column, lanes), column)
    else:
        memory = kl.stack(f32, lanes)
        memory.store(sums)
        for c in range(rest):
            out[column + c] = finish(memory[c], row, column + c, 0)


ACROSS = 4
"""Vectors of columns that `gevm` sums at a time."""


@kl.family
def gevm(
    work: Work,
    a: ptr[f32],
    b: ptr[kl.u8],
    out: ptr[f32],
    depth: i64,
    columns: i64,
    a_pitch: i64,
    b_pitch: i64,
    out_pitch: i64,
    a_batch: i64,
    b_batch: i64,
    *more: i64,
    rows: int,
    dtype: DType,
    epilogue: Epilogue,
) -> None:
    """Compute out[n, m, c] = epilogue(sum_k a[n, m, k] b[n, k, c]) for `rows` rows m.

    b: of `dtype`, float32 or narrower. a_batch, b_batch: elements from the operands of one product to the next.
    Items: products by blocks of columns.
    """
    lanes = work.lanes(f32)
    wide = ACROSS * lanes
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    matrix = b.cast(dtype, dtype.size)
    finish = epilogue.bind(more)
    blocks = (columns + (wide - 1)) // wide
    for item in work.items():
        batch, column = item // blocks, item % blocks * wide
        p, q, row = a + batch * a_batch, matrix + (batch * b_batch + column), batch * rows
        rest = columns - column
        y = target + row * out_pitch
        if work.target.vector_bytes == 64:
            masks = [kl.first(rest - v * lanes, lanes) for v in range(ACROSS)]
            _columns(p, q, y, depth, a_pitch, b_pitch, out_pitch, rows, lanes, masks, finish, row, column)
        elif rest >= wide:
            none = [None] * ACROSS
            _columns(p, q, y, depth, a_pitch, b_pitch, out_pitch, rows, lanes, none, finish, row, column)
        else:
            for r in kl.loop(rows):
                for c in range(rest):
                    total = kl.full(f32, 0, 0.0)
                    for k in range(depth):
                        total = kl.fma(p[r * a_pitch + k], q[k * b_pitch + c].to(f32), total)
                    y[r * out_pitch + column + c] = finish(total, row + r, column + c, 0)


def _columns(
    p: Pointer,
    q: Pointer,
    out: Pointer,
    depth: Value,
    a_pitch: Value,
    b_pitch: Value,
    out_pitch: Value,
    rows: int,
    lanes: int,
    masks: Sequence[Value | None],
    finish: Callable[..., Value],
    row: Value,
    column: Value,
) -> None:
    """Compute all rows of a block of columns."""
    sums = kl.registers(f32, lanes, rows, ACROSS)
    for r in range(rows):
        for v in range(ACROSS):
            sums[r, v] = 0.0
    for k in range(depth):
        line = q + k * b_pitch
        w = [line.load(v * lanes, lanes, masks[v]).to(f32) for v in range(ACROSS)]
        for r in range(rows):
            x = p[r * a_pitch + k]
            for v in range(ACROSS):
                sums[r, v] = kl.fma(x, w[v], sums[r, v])
    for r in range(rows):
        for v in range(ACROSS):
            results = finish(sums[r, v], row + r, column + v * lanes, lanes, masks[v])
            out.store(results, r * out_pitch + column + v * lanes, masks[v])
