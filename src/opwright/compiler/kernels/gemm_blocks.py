"""Sums of rounded floats by weights with a scale for each block of a channel: the micro-kernel.

Lives here: `contract_blocks`.  Not here: the family (gemm_int8.py), packed filters and the selector (int4.py).

    s = sum over blocks of scales[channel, block] * sum over the block of (q - zero[row]) * w
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import language as kl
from ..language import f32, i8, i32, u8
from .gemm_widened import add_bounded, add_products

if TYPE_CHECKING:
    from ..language import Pointer
    from .gemm_int8 import Source
    from .tile_writing import Sink


def contract_blocks(rows: int, vectors: int, lanes: int, source: Source, sink: Sink) -> Pointer:
    """The micro-kernel: the scaled sums of a tile in memory, float32[rows, vectors * lanes]."""
    width, q, there = vectors * lanes, sink.panel, sink.rounded
    flip = kl.opaque(source.flip.splat(lanes))
    dot = kl.dot4_signed if source.signed else kl.dot4
    kept = kl.stack(f32, rows * width)
    for i in kl.loop(0, rows * width, lanes):
        kept.store(kl.zeros(f32, lanes), i)
    for block in range(source.lines):
        p = source.p + block * source.line
        sums = kl.registers(i32, lanes, rows, vectors)
        head = q
        for v in range(vectors):
            start = kl.zeros(i32, lanes) if source.widened or source.signed else head.load(v * lanes, lanes)
            for r in range(rows):
                sums[r, v] = start
        q = q + 2 * width
        if source.widened:
            q = add_products(sums, p, source.pitch, source.quads, q.cast(i8)).cast(i32)
        elif source.bounded:
            q = add_bounded(sums, p, source.pitch, source.quads, q, flip, source.bounded)
        else:
            for k in range(source.quads):
                w = [kl.bitcast(q.load(v * lanes, lanes), i8) for v in range(vectors)]
                for r in range(rows):
                    x = (p + r * source.pitch).cast(i32)[k].splat(lanes)
                    x = kl.bitcast(x, i8) if source.signed else kl.bitcast(x ^ flip, u8)
                    for v in range(vectors):
                        sums[r, v] = dot(sums[r, v], x, w[v])
                q = q + width
        for r in range(rows):
            zero = there.zeros[sink.row + r]
            for v in range(vectors):
                weights = head.load(v * lanes, lanes) >> 7
                found = (sums[r, v] + weights * zero).to(f32)
                at = r * width + v * lanes
                scale = head.cast(f32).load(width + v * lanes, lanes)
                kept.store(kl.fma(found, scale, kept.load(at, lanes)), at)
    return kept
