"""The micro-kernel of int8 where no instruction adds products of bytes: pairs of int16 are multiplied and added.

Lives here: `contract_widened`, `add_products`, `widen_rows`, `widens`, which says when, `room`, `order_steps` for
panels.
Not here: what reads the sums (gemm_int8.py), the instructions (../language/dots.py).

Rows are widened to int16 once a tile, in scratch memory, and serve all its panels. Weights stay bytes, half the memory
to read; they are widened as they are loaded, a vector for all rows. `vpmaddwd` has no bounds to prove: its operands
are 16 bits, of which bytes fill 9. Bytes of either sign are taken as they are, so that a panel's starts make up for
zero points alone, as with tiles (gemm_tiles.py).

A step of a panel, four bytes of each channel, is ordered as two steps of two bytes:

    of channels a, b, c, d     a0 a1 a2 a3 b0 b1 b2 b3 ...  ->  a0 a1 b0 b1 c0 c1 d0 d1 | a2 a3 b2 b3 c2 c3 d2 d3

Filters of so small weights that products of bytes may be added in 16 bits are not widened (gemm_bounded.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import i8, i16, i32

if TYPE_CHECKING:
    from ..language import Pointer, Registers
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
