"""Micro-kernels of int8 for processors without a byte dot product: pairs of int16, or bytes summed in int16.

Lives here: `contract_widened`, `add_products`, `widen_rows`, `widens`, `room`, `order_steps`; `add_bounded`,
`steps_of`.
Not here: the families that read the sums (gemm_int8.py, gemm_blocks.py), the instructions (../language/dots.py).

Rows are widened to int16 once a tile, in scratch memory, and serve all its panels. Weights stay bytes, half the memory
to read; they are widened as they are loaded, a vector for all rows. `vpmaddwd` cannot saturate: its operands are 16
bits, of which bytes fill 9. Bytes of either sign are taken as they are, so a panel's starts compensate zero points
alone, as with tiles (gemm_tiles.py).

A step of a panel, four bytes of each channel, is ordered as two steps of two bytes:

    of channels a, b, c, d     a0 a1 a2 a3 b0 b1 b2 b3 ...  ->  a0 a1 b0 b1 c0 c1 d0 d1 | a2 a3 b2 b3 c2 c3 d2 d3

Filters whose weights are small enough are multiplied as bytes. `vpmaddubsw` multiplies bytes, one side unsigned, and
adds neighbours as int16, which saturates. A step adds at most 255 (|w0| + |w1|): int4 weights leave room for eight
steps, whose sums one `vpmaddwd` by ones adds as int32. That is half the instructions of widened rows. Weights of int8
with a scale for each channel reach 127 in every channel, so only filters of fewer bits have such bounds. Rows and
panels are those of `kl.dot4`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int4
from .. import language as kl
from ..language import i8, i16, i32, u8

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value
    from ..loops.buffers import Buffer
    from ..target import Target
    from .gemm_int8 import Source

AHEAD = 16 << 10
"""Bytes of a filter that are asked for before they are needed."""
LINE = 64
"""Bytes of a cache line."""


def widens(target: Target) -> bool:
    """Whether rows are widened on a target: it is an x86 without VNNI."""
    return target.triple.startswith("x86_64") and not target.vnni_lanes


def room(target: Target, elements: int) -> int:
    """Bytes of scratch memory for so many elements of rows, and for what is written behind them."""
    return 2 * elements + target.vector_bytes


def order_steps(q: Pointer, steps: Any, vectors: int, lanes: int) -> None:
    """Order a panel's steps, each so many vectors of channels with four bytes."""
    for k in range(steps):
        step = q.cast(i16) + k * (2 * vectors * lanes)
        pairs = [step.load(2 * v * lanes, 2 * lanes) for v in range(vectors)]
        for half in range(2):
            for v in range(vectors):
                step.store(kl.shuffle(pairs[v], None, range(half, 2 * lanes, 2)), (half * vectors + v) * lanes)


def widen_rows(x: Pointer, pitch: Any, target: Pointer, rows: Any, count: Any, lanes: int) -> None:
    """Write `rows` rows of `count` bytes, a multiple of four, as int16, one after the other. lanes: of a vector."""
    for _ in range(rows):
        if count >= lanes:
            for i in range(0, count, lanes):
                at = kl.minimum(i, count - lanes)
                target.store(x.load(at, lanes).to(i16), at)
        else:
            for i in range(0, count, 4):
                target.store(x.load(i, 4).to(i16), i)
        x, target = x + pitch, target + count


def add_products(sums: Registers, p: Pointer, pitch: Any, quads: Any, q: Pointer) -> Pointer:
    """Add the products of so many steps to the sums of a tile. p: widened rows, `pitch` bytes apart; q: the steps, i8.

    Gives what follows the steps.
    """
    (rows, vectors), lanes = sums.shape, sums.count
    width = vectors * lanes
    for k in range(quads):
        for at in range(0, 4 * width, LINE):
            q.prefetch(AHEAD + at)
        for half in range(2):
            w = [q.load((half * vectors + v) * 2 * lanes, 2 * lanes).to(i16) for v in range(vectors)]
            for r in range(rows):
                x = kl.bitcast((p + r * pitch).cast(i32)[2 * k + half].splat(lanes), i16)
                for v in range(vectors):
                    sums[r, v] = kl.pair_dot(sums[r, v], x, w[v])
        q = q + 4 * width
    return q


def contract_widened(rows: int, vectors: int, lanes: int, source: Source, q: Pointer, started: bool) -> Pointer:
    """The micro-kernel: the sums of a tile in memory, int32[rows, vectors * lanes]. q: the panel.

    started: whether sums start with the panel's first row.
    """
    width = vectors * lanes
    sums = kl.registers(i32, lanes, rows, vectors)
    for v in range(vectors):
        start = q.load(v * lanes, lanes) if started else kl.zeros(i32, lanes)
        for r in range(rows):
            sums[r, v] = start
    q = q.cast(i8) + 4 * width
    for line in range(source.lines):
        for segment in range(source.segments):
            p = source.p + (line * source.line + segment * source.segment)
            q = add_products(sums, p, source.pitch, source.quads, q)
    kept = kl.stack(i32, rows * width)
    for r in range(rows):
        for v in range(vectors):
            kept.store(sums[r, v], r * width + v * lanes)
    return kept


LARGEST_BYTE, LARGEST_SUM = 255, (1 << 15) - 1
MOST = 64
"""Steps beyond which more are not felt."""


def steps_of(target: Target, filters: Buffer, run: int) -> int:
    """Steps of a filter, four bytes each, whose sums int16 holds; 0: none, or the target multiplies otherwise.

    run: neighbouring bytes of a channel that steps are made of, from the first of them on.
    """
    if not (widens(target) and target.has("avx2") and target.vector_bytes < 64) or filters.constant is None:
        return 0
    rows = filters.constant.reshape(-1, run)
    if filters.dtype is int4:
        largest = 2 * max(abs(int(end)) for end in int4.limits)
    elif _largest_pair(rows[:1]) * LARGEST_BYTE > LARGEST_SUM:  # as of most filters
        return 0
    else:
        largest = _largest_pair(rows)
    return min(LARGEST_SUM // max(LARGEST_BYTE * largest, 1), MOST)


def _largest_pair(rows: np.ndarray) -> int:
    """The largest |w0| + |w1| of neighbours; an odd last one stands alone."""
    sizes = np.abs(rows.astype(np.int16))
    pairs = sizes[:, 0::2].copy()
    pairs[:, : sizes.shape[1] // 2] += sizes[:, 1::2]
    return int(pairs.max(initial=0))


def add_bounded(sums: Registers, p: Pointer, pitch: Any, quads: Any, q: Pointer, flip: Value, steps: int) -> Pointer:
    """Add the products of `quads` steps to the sums of a tile. p: rows of bytes, `pitch` apart; q: the steps, int32.

    flip: what makes bytes of rows unsigned. steps: those that int16 holds. Gives what follows the steps.
    """
    (rows, vectors), lanes = sums.shape, sums.count
    for start in range(0, quads, steps):
        short = kl.registers(i16, 2 * lanes, rows, vectors)
        for r in range(rows):
            for v in range(vectors):
                short[r, v] = 0
        for k in range(start, kl.minimum(start + steps, quads)):
            w = [kl.bitcast(q.load(v * lanes, lanes), i8) for v in range(vectors)]
            for r in range(rows):
                x = kl.bitcast((p + r * pitch).cast(i32)[k].splat(lanes) ^ flip, u8)
                for v in range(vectors):
                    short[r, v] = short[r, v] + kl.saturating_dot2(x, w[v])
            q = q + vectors * lanes
        for r in range(rows):
            for v in range(vectors):
                sums[r, v] = kl.pair_dot(sums[r, v], short[r, v], kl.full(i16, 2 * lanes, 1))
    return q
