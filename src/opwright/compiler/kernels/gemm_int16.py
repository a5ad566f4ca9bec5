"""Micro-kernels of integers by multiply-adds of int16: widened int8 rows, int16 rows, weights with block scales.

Lives here: `contract_widened`, `add_products`, `widen_rows`, `widens`, `widened_bytes`, `order_steps`; `add_bounded`,
`bounded_steps`; `contract_int16`; `contract_blocks`.
Not here: blocks of int4 (gemm_int4.py), the families that use them (gemm_int8.py, convolution_int8.py), packed filters
(weight_packing_int8.py), the instructions (../language/dots.py).

Processors without a byte dot product widen rows to int16 once a tile, in scratch memory, for all of its panels. Weights
remain bytes, half the memory traffic; they are widened as they are loaded, a vector for all rows. `vpmaddwd` cannot
saturate: its operands are 16 bits, of which bytes fill 9. It multiplies bytes with or without a sign, so the initial
sums of a panel compensate zero points alone, as with AMX (gemm_int8.py).

A step of a panel, four bytes of each channel, is ordered as two steps of two bytes:

    channels a, b, c, d     a0 a1 a2 a3 b0 b1 b2 b3 ...  ->  a0 a1 b0 b1 c0 c1 d0 d1 | a2 a3 b2 b3 c2 c3 d2 d3

Filters with sufficiently small weights are multiplied as bytes. `vpmaddubsw` multiplies bytes, one side unsigned, and
adds neighbours as int16, which saturates. A step adds at most 255 (|w0| + |w1|): int4 weights permit eight steps, whose
sums one `vpmaddwd` by ones adds as int32. That is half the instructions of widened rows. Weights of int8 with a scale
for each channel reach 127 in every channel, so only filters of fewer bits have such bounds. Rows and panels are those
of `kl.dot4`.

Rows of int16 are multiplied by widened int8 weights. |x w| <= 2^22, so 2^9 products stay below 2^31, and sums move to
int64 after that many. A panel has the two bytes of each channel for every two k; it has no initial sums.

Weights with a scale for each block of a channel: s = sum over blocks of scales[channel, block] * sum over the block of
(q - zero[row]) * w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int4
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, u8
from .output_tiles import OutputTile, accumulators
from .tiling import LINE_BYTES

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value
    from ..loops.buffers import Buffer
    from ..target import Target
    from .gemm_int8 import LhsInt8

AHEAD = 16 << 10
"""Bytes by which a filter is prefetched: it may come from memory."""
NEAR = 512
"""The same for panels that are read side by side (`ABREAST` in tiling.py)."""


def prefetch_panels(q: Pointer, left: Value, step: int, abreast: int, apart: Any) -> None:
    """Prefetch a step of `step` bytes of each of `abreast` panels, `apart` bytes from one to the next. left: bytes of a
    panel from q on.

    Where panels that are read side by side end, the next group of panels is prefetched: products of 82 M weights of
    int4 in blocks take 1.92 ms instead of 2.15, by way of the second-level cache (Zen 4).
    """
    if abreast == 1:
        for offset in range(0, step, LINE_BYTES):
            q.prefetch(AHEAD + offset)
        return
    ahead = kl.select(left > NEAR, kl.value(NEAR), NEAR + (abreast - 1) * apart)
    for panel in range(abreast):
        for offset in range(0, step, LINE_BYTES):
            (q + panel * apart).prefetch(ahead + offset, locality=2)


# ---- int8 without byte dot products ----------------------------------------------------------------------------------


def widens(target: Target) -> bool:
    """Return whether rows are widened on a target: where products of pairs of int16 are an instruction, and of bytes
    are not, as on x86 without VNNI and in WebAssembly."""
    has_pairs = target.triple.startswith("x86_64") or (target.is_wasm and target.has("simd128"))
    return has_pairs and not target.vnni_lanes


def widened_bytes(target: Target, elements: int) -> int:
    """Return the scratch memory of rows of `elements` elements, including a vector behind them."""
    return 2 * elements + target.vector_bytes


def order_steps(q: Pointer, steps: Any, vectors: int, lanes: int) -> None:
    """Reorder the steps of a panel, each of `vectors` vectors of channels with four bytes."""
    for k in range(steps):
        step = q.cast(i16) + k * (2 * vectors * lanes)
        pairs = [step.load(2 * v * lanes, 2 * lanes) for v in range(vectors)]
        for half in range(2):
            for v in range(vectors):
                step.store(kl.shuffle(pairs[v], None, range(half, 2 * lanes, 2)), (half * vectors + v) * lanes)


def widen_rows(x: Pointer, pitch: Any, target: Pointer, rows: Any, count: Any, lanes: int) -> None:
    """Write `rows` rows of `count` bytes, a multiple of four, contiguously as int16. lanes: of a vector."""
    for _ in range(rows):
        if count >= lanes:
            for i in range(0, count, lanes):
                offset = kl.minimum(i, count - lanes)
                target.store(x.load(offset, lanes).to(i16), offset)
        else:
            for i in range(0, count, 4):
                target.store(x.load(i, 4).to(i16), i)
        x, target = x + pitch, target + count


def add_products(
    sums: Registers, p: Pointer, pitch: Any, quads: Any, q: Pointer, abreast: int = 1, apart: Any = 0
) -> Pointer:
    """Add the products of `quads` steps to the sums of a tile; return the address after the steps.

    p: widened rows, `pitch` bytes apart; q: the steps, i8. abreast: panels of the tile, `apart` bytes from one to the
    next.
    """
    (rows, every), lanes = sums.shape, sums.count
    vectors = every // abreast
    width = vectors * lanes
    for k in range(quads):
        for panel in range(abreast):  # with AVX2, `prefetch_panels` gains nothing
            for offset in range(0, 4 * width, LINE_BYTES):
                (q + panel * apart).prefetch(AHEAD + offset if abreast == 1 else NEAR + offset)
        for half in range(2):
            w = [
                (q + panel * apart).load((half * vectors + v) * 2 * lanes, 2 * lanes).to(i16)
                for panel in range(abreast)
                for v in range(vectors)
            ]
            for r in range(rows):
                x = kl.bitcast((p + r * pitch).cast(i32)[2 * k + half].splat(lanes), i16)
                for v in range(every):
                    sums[r, v] = kl.pair_dot(sums[r, v], x, w[v])
        q = q + 4 * width
    return q


def contract_widened(
    rows: int, vectors: int, lanes: int, lhs: LhsInt8, q: Pointer, biased: bool, abreast: int = 1, apart: Any = 0
) -> Registers:
    """Compute the sums of a tile, rows x (abreast * vectors) registers.

    q: the panel, or the first of `abreast` panels, `apart` words from one to the next; biased: it has initial sums.
    """
    sums = kl.registers(i32, lanes, rows, abreast * vectors)
    for v in range(abreast * vectors):
        start = (q + v // vectors * apart).load(v % vectors * lanes, lanes) if biased else kl.zeros(i32, lanes)
        for r in range(rows):
            sums[r, v] = start
    q = q.cast(i8) + 4 * vectors * lanes
    for line in range(lhs.lines):
        for segment in range(lhs.segments):
            p = lhs.p + (line * lhs.line + segment * lhs.segment)
            q = add_products(sums, p, lhs.pitch, lhs.quads, q, abreast, 4 * apart)
    return sums


LARGEST_BYTE, LARGEST_SUM = 255, (1 << 15) - 1
STEP_LIMIT = 64
"""Steps beyond which more have no measurable effect."""


def bounded_steps(target: Target, filters: Buffer, run: int) -> int:
    """Return the steps of a filter, four bytes each, whose sums int16 holds; 0 if none or on other targets.

    run: contiguous bytes of a channel that are divided into steps.
    """
    if not (widens(target) and target.has("avx2") and target.vector_bytes < 64) or filters.constant is None:
        return 0
    rows = filters.constant.reshape(-1, run)
    if filters.dtype is int4:
        largest = 2 * max(abs(int(end)) for end in int4.limits)
    elif _largest_pair(rows[:1]) * LARGEST_BYTE > LARGEST_SUM:  # true of most filters
        return 0
    else:
        largest = _largest_pair(rows)
    return min(LARGEST_SUM // max(LARGEST_BYTE * largest, 1), STEP_LIMIT)


def _largest_pair(rows: np.ndarray) -> int:
    """Return the largest |w0| + |w1| of neighbours; an odd last one has none."""
    sizes = np.abs(rows.astype(np.int16))
    pairs = sizes[:, 0::2].copy()
    pairs[:, : sizes.shape[1] // 2] += sizes[:, 1::2]
    return int(pairs.max(initial=0))


def add_bounded(sums: Registers, p: Pointer, pitch: Any, quads: Any, q: Pointer, flip: Value, steps: int) -> Pointer:
    """Add the products of `quads` steps to the sums of a tile; return the address after the steps.

    p: rows of bytes, `pitch` apart; q: the steps, int32. flip: bits that make the bytes of rows unsigned. steps: the
    number whose sums int16 holds.
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


# ---- int16 -----------------------------------------------------------------------------------------------------------

PAIRS = 255
"""Steps of two products that int32 can accumulate."""


def _cleared(dtype: Any, rows: int, width: int, lanes: int) -> Pointer:
    """Return sums [rows, width] of zeros on the stack."""
    sums = kl.stack(dtype, rows * width)
    for i in kl.loop(0, rows * width, lanes):
        sums.store(kl.zeros(dtype, lanes), i)
    return sums


def contract_int16(rows: int, vectors: int, lanes: int, lhs: LhsInt8, q: Pointer) -> Pointer:
    """Compute the sums of a tile in memory, int64[rows, vectors * lanes]. q: the panel, int16."""
    width = vectors * lanes
    totals = _cleared(i64, rows, width, lanes)
    for line in range(lhs.lines):
        for segment in range(lhs.segments):
            p = lhs.p + (line * lhs.line + segment * lhs.segment)
            for start in range(0, lhs.quads, PAIRS):
                sums = accumulators(i32, rows, vectors, lanes, None)
                for k in range(start, kl.minimum(start + PAIRS, lhs.quads)):
                    w = [kl.bitcast(q.load(v * lanes, lanes), i8).to(i16) for v in range(vectors)]
                    for r in range(rows):
                        x = kl.bitcast((p + r * lhs.pitch).cast(i32)[k].splat(lanes), i16)
                        for v in range(vectors):
                            sums[r, v] = kl.pair_dot(sums[r, v], x, w[v])
                    q = q + width
                for r in range(rows):
                    for v in range(vectors):
                        index = r * width + v * lanes
                        totals.store(totals.load(index, lanes) + sums[r, v].to(i64), index)
    return totals


# ---- block scales ----------------------------------------------------------------------------------------------------


def contract_blocks(rows: int, vectors: int, lanes: int, lhs: LhsInt8, tile: OutputTile) -> Pointer:
    """Compute the scaled sums of a tile in memory, float32[rows, vectors * lanes]."""
    width, q, rounded = vectors * lanes, tile.panel, tile.rounded
    assert rounded is not None  # blocks are of floats
    flip = kl.opaque(lhs.flip.splat(lanes))
    dot = kl.dot4_signed if lhs.signed else kl.dot4
    totals = _cleared(f32, rows, width, lanes)
    for block in range(lhs.lines):
        p = lhs.p + block * lhs.line
        head = q
        sums = accumulators(i32, rows, vectors, lanes, None if lhs.widened or lhs.signed else head)
        q = q + 2 * width
        if lhs.widened:
            q = add_products(sums, p, lhs.pitch, lhs.quads, q.cast(i8)).cast(i32)
        elif lhs.bounded:
            q = add_bounded(sums, p, lhs.pitch, lhs.quads, q, flip, lhs.bounded)
        else:
            for k in range(lhs.quads):
                w = [kl.bitcast(q.load(v * lanes, lanes), i8) for v in range(vectors)]
                for r in range(rows):
                    x = (p + r * lhs.pitch).cast(i32)[k].splat(lanes)
                    x = kl.bitcast(x, i8) if lhs.signed else kl.bitcast(x ^ flip, u8)
                    for v in range(vectors):
                        sums[r, v] = dot(sums[r, v], x, w[v])
                q = q + width
        for r in range(rows):
            zero = rounded.zeros[tile.row + r]
            for v in range(vectors):
                weights = head.load(v * lanes, lanes) >> 7
                block_sums = (sums[r, v] + weights * zero).to(f32)
                index = r * width + v * lanes
                scale = head.cast(f32).load(width + v * lanes, lanes)
                totals.store(kl.fma(block_sums, scale, totals.load(index, lanes)), index)
    return totals
