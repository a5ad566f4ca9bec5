"""Micro-kernels of int4 weights with a scale for each block of a channel, by rows of int8.

Lives here: `contract_halved`, `sum_blocks`, `halved_bytes`, `halved_group`.
Not here: products of several tiles of rows without byte dot products (gemm_int4_rows.py); weights of other types, and
scales that float16 does not hold (`contract_blocks` in gemm_int16.py); packed filters (weight_packing_int8.py), the
family that uses them (gemm_int8.py).

Panels are halved: a byte holds the weights n = w + 8 of two k, and scales are float16, as in files. A product of one
row is as fast as memory is read, and 32 weights are 18 bytes instead of 40. `vpmaddubsw` multiplies n, unsigned, by q,
signed; a step adds at most 2 * 15 * 128, so int16 holds eight. With VNNI `vpdpbusd` adds them as int32. As n and q need
no sign bits flipped,

    s = sum over blocks of scales[channel, block] * (sum n q - 8 sum q) - zero[row] * c[channel]

where c = sum over blocks of scales[channel, block] * sum w, a number of each channel. A panel consists of c and, for
each block, the scales and its weights: the bytes of the channels for four k, with those for the next four above them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f16, f32, i8, i16, i32, i64, ptr, u8, u16
from .gemm_int16 import AHEAD, prefetch_panels
from .output_tiles import OutputTile, spilled
from .tiling import LINE_BYTES

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from .gemm_int8 import LhsInt8

HALVED_QUADS = 8
"""Steps of four products by n that int16 holds."""


def halved_bytes(blocks: Any, quads: Any) -> Any:
    """Return the bytes of a channel in a halved panel of `blocks` blocks, each of `quads` times four weights."""
    return 4 + blocks * (2 + 2 * quads)


def halved_group(quads: int) -> int:
    """Return the greatest even divisor of an even number of steps of which int16 holds the sums."""
    return max(n for n in range(2, HALVED_QUADS + 1, 2) if quads % n == 0)


@kl.family
def sum_blocks(work: Work, x: ptr[i8], sums: ptr[i32], pitch: i64, blocks: i64, block: i64, *, has_pairs: bool) -> None:
    """Write -8 times the sum of the bytes of each block of each row: sums[row, blocks]. Items: rows of x, at `pitch`.

    block: bytes of a block; has_pairs: whether there are no byte dot products.
    """
    lanes = work.target.vector_bytes
    widths = (lanes,) if has_pairs else (lanes, lanes // 2, lanes // 4)  # blocks of 32 are half a vector
    for row in work.items():
        for i in range(blocks):
            p = x + (row * pitch + i * block)
            rest = kl.value(0, i32)
            for n in widths:
                total = kl.zeros(i32, n // 4)
                for k in range(0 if n == lanes else block // (2 * n) * (2 * n), block - (n - 1), n):
                    total = _with_bytes(total, p.load(k, n), has_pairs)
                rest = rest + kl.reduce_add(total)
            for k in range(block // widths[-1] * widths[-1], block):
                rest = rest + p[k].to(i32)
            sums[row * blocks + i] = rest * -8


def _with_bytes(total: Value, x: Value, pairs: bool) -> Value:
    """Add each four bytes of x to a lane of int32. pairs: without byte dot products."""
    ones = kl.full(u8, x.count, 1)
    if pairs:
        return kl.pair_dot(total, kl.saturating_dot2(ones, x), kl.full(i16, x.count // 2, 1))
    return kl.dot4(total, ones, x)


def contract_halved(
    rows: int,
    vectors: int,
    lanes: int,
    lhs: LhsInt8,
    block_sums: Pointer,
    tile: OutputTile,
    abreast: int = 1,
    apart: Any = 0,
) -> Pointer:
    """Compute the scaled sums of a tile by a halved panel in memory, float32[rows, abreast * vectors * lanes].

    abreast: panels of the tile, `apart` bytes from one to the next.
    """
    width, rounded = vectors * lanes, tile.rounded
    assert rounded is not None  # blocks are of floats
    every = abreast * vectors
    panel = tile.panel.cast(i8)
    corrections = [(panel + i * apart).cast(f32) for i in range(abreast)]
    q = panel + 4 * width
    totals = kl.registers(f32, lanes, rows, every)
    for r in range(rows):
        zero = -rounded.zeros[tile.row + r].to(f32)
        for v in range(every):
            totals[r, v] = corrections[v // vectors].load(v % vectors * lanes, lanes) * zero
    for block in range(lhs.lines):
        p = lhs.p + block * lhs.line
        heads = [(q + i * apart).cast(f16) for i in range(abreast)]
        q = q + 2 * width
        sums = kl.registers(i32, lanes, rows, every)
        for r in range(rows):
            start = block_sums[r * lhs.lines + block].splat(lanes)
            for v in range(every):
                sums[r, v] = start
        if lhs.bounded:
            for first in range(0, lhs.quads, HALVED_QUADS):
                _add_halved_pairs(sums, p, lhs, q + first * (2 * width), first)
        else:
            left = (lhs.lines - block) * (width * (2 + 2 * lhs.quads)) - 2 * width
            _add_halved(sums, p, lhs, q, abreast, apart, left)
        q = q + 2 * width * lhs.quads
        for r in range(rows):
            for v in range(every):
                scales = heads[v // vectors].load(v % vectors * lanes, lanes).to(f32)
                totals[r, v] = kl.fma(sums[r, v].to(f32), scales, totals[r, v])
    return spilled(totals)


def _halves(pairs: list[Value]) -> tuple[list[Value], list[Value]]:
    """Return the weights of the first and of the second four k of vectors of bytes that hold two."""
    low = kl.full(u8, pairs[0].count, 15)
    upper = [kl.bitcast((kl.bitcast(pair, u16) >> 4), u8) & low for pair in pairs]
    return [pair & low for pair in pairs], upper


def _add_halved(sums: Registers, p: Pointer, lhs: LhsInt8, q: Pointer, abreast: int, apart: Any, left: Value) -> None:
    """Add the products of a block to the sums of a tile, by byte dot products. q: its weights in the first panel; left:
    bytes of a panel from them on."""
    (rows, every), lanes = sums.shape, sums.count
    vectors = every // abreast
    for k in range(0, lhs.quads, 2):
        at = q + k * (2 * vectors * lanes)
        prefetch_panels(at, left - k * (2 * vectors * lanes), 4 * vectors * lanes, abreast, apart)
        pairs = [
            kl.bitcast((at + i * apart).load(4 * v * lanes, 4 * lanes), u8)
            for i in range(abreast)
            for v in range(vectors)
        ]
        lower, upper = _halves(pairs)
        for r in range(rows):
            x = (p + r * lhs.pitch).cast(i32)
            for step, weights in ((k, lower), (k + 1, upper)):
                bytes_of_row = kl.bitcast(x[step].splat(lanes), i8)
                for v in range(every):
                    sums[r, v] = kl.dot4(sums[r, v], weights[v], bytes_of_row)


def _add_halved_pairs(sums: Registers, p: Pointer, lhs: LhsInt8, q: Pointer, first: Any) -> None:
    """Add the products of up to HALVED_QUADS steps of a block from `first` on, by sums of int16. q: their weights."""
    (rows, vectors), lanes = sums.shape, sums.count
    short = kl.registers(i16, 2 * lanes, rows, vectors)
    for r in range(rows):
        for v in range(vectors):
            short[r, v] = 0
    for k in range(first, kl.minimum(first + HALVED_QUADS, lhs.quads), 2):
        pairs = [kl.bitcast(q.load(4 * v * lanes, 4 * lanes), u8) for v in range(vectors)]
        for offset in range(0, 4 * vectors * lanes, LINE_BYTES):
            q.prefetch(AHEAD + offset)
        lower, upper = _halves(pairs)
        for r in range(rows):
            x = (p + r * lhs.pitch).cast(i32)
            for step, weights in ((k, lower), (k + 1, upper)):
                bytes_of_row = kl.bitcast(x[step].splat(lanes), i8)
                for v in range(vectors):
                    short[r, v] = short[r, v] + kl.saturating_dot2(weights[v], bytes_of_row)
        q = q + 4 * vectors * lanes
    ones = kl.full(i16, 2 * lanes, 1)
    for r in range(rows):
        for v in range(vectors):
            sums[r, v] = kl.pair_dot(sums[r, v], short[r, v], ones)
