"""Matrix products of float32: the micro-kernels, rows at one pitch.

Lives here: `LhsF32`, `contract`, `accumulate`, `multiply_panels` (a tile of rows by panels), `gemm`. Not here: products
in blocks of steps (gemm_deep_f32.py), which of the two computes a product (contraction_steps_f32.py), packed filters
(weight_packing_f32.py), convolutions with windows (convolution_f32.py), few rows (gemv_f32.py).

A tile of the output is rows x 2 registers; each step of the sum loads two vectors of the filter once and one number of
each row. Instructions of 64-bit ARM multiply by a lane: on it the numbers of a row are loaded four at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i64, ptr
from .epilogue import Epilogue
from .output_tiles import OutputTile, accumulators, float_output, write_float_tile
from .tiling import LINE_BYTES, Tiles, block_at, for_height, panel_blocks, tile_start
from .weight_packing_f32 import multiplies_by_lane

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work

AHEAD = 128
"""Steps by which a filter is prefetched: the filters of large networks come from memory every time, a latency that
nothing else hides (a third of their time); filters in the caches lose nothing by it."""


HOISTING = 16
"""Lanes of AVX-512, for whose 32 registers LLVM loads the numbers of all rows of two steps first and spills the sums:
64 GFLOP/s instead of 107 of 110 (Zen 4). There, a row's number is loaded after the products of the row before it."""


class LhsF32(NamedTuple):
    """Rows of a tile: row r, segment s, step k is p[r * pitch + s * stride + k], for `segments` of `run` steps.

    by_lane: see `PanelsF32`. step: floats from step to step, 1 if by_lane.
    """

    p: Pointer
    pitch: Any
    segments: Any
    stride: Any
    run: Any
    by_lane: bool
    step: int = 1


def contract(rows: int, vectors: int, lanes: int, lhs: LhsF32, q: Pointer) -> Registers:
    """Compute the sums of a tile: the micro-kernel, rows x vectors registers. q: the panel."""
    sums = accumulators(f32, rows, vectors, lanes, q)
    accumulate(sums, lhs, q + vectors * lanes)
    return sums


def accumulate(sums: Registers, lhs: LhsF32, q: Pointer, is_distant: bool = True) -> None:
    """Add products to the sums of a tile. q: the panel's first step; is_distant: whether it is prefetched."""
    (rows, vectors), lanes = sums.shape, sums.count
    p, pitch = lhs.p, lhs.pitch
    for _ in range(lhs.segments):
        done, starts = kl.value(0), row_starts(lhs, p, rows, lanes)
        if lhs.by_lane:
            done = lhs.run // lanes * lanes
            bases = [start.cast(i8) for start in starts]
            offset, end = kl.value(0), done // (2 * lanes) * (8 * lanes)
            while offset < end:  # unrolled twice, as below
                _add_by_lane(sums, bases, offset, q)
                offset = kl.opaque(offset + 4 * lanes)
                _add_by_lane(sums, bases, offset, q + lanes * vectors * lanes)
                offset = kl.opaque(offset + 4 * lanes)
                q = q + 2 * lanes * vectors * lanes
            if end < 4 * done:
                _add_by_lane(sums, bases, end, q)
                q = q + lanes * vectors * lanes
        pairs_end = done
        if lanes < HOISTING:  # AVX-512 has no more to do in a step than its multiplications, and half the code to make
            pairs_end = done + (lhs.run - done) // 2 * 2
            for k in range(done, pairs_end, 2):  # unrolled twice, which halves counting and branching
                for i in range(2):
                    add_step(sums, starts, pitch, k + i, q + i * vectors * lanes, is_distant, lhs.step)
                q = q + 2 * vectors * lanes
        for k in range(pairs_end, lhs.run):
            add_step(sums, starts, pitch, k, q, is_distant, lhs.step)
            q = q + vectors * lanes
        p = p + lhs.stride


def row_starts(lhs: LhsF32, p: Pointer, rows: int, lanes: int) -> list[Pointer]:
    """Return the addresses of the rows of a tile that begins at p: in registers, so that no loop computes them, unless
    the pitch is part of instructions; with AVX-512 that of the first row only."""
    if lanes == HOISTING:
        return [p]
    starts = [p + r * lhs.pitch for r in range(rows)]
    return starts if isinstance(lhs.pitch, int) and not lhs.by_lane else [kl.opaque_pointer(start) for start in starts]


def add_step(
    sums: Registers, starts: list[Pointer], pitch: Any, k: Any, q: Pointer, is_distant: bool, step: int
) -> None:
    """Add the products of one step. starts: from `row_starts`; a pitch that is known is part of an instruction."""
    (rows, vectors), lanes = sums.shape, sums.count
    if lanes == HOISTING:
        q = kl.after(q, sums[rows - 1, vectors - 1])
    w = [q.load(v * lanes, lanes) for v in range(vectors)]
    if is_distant:
        for offset in range(0, vectors * lanes, LINE_BYTES // 4):
            q.prefetch(AHEAD * vectors * lanes + offset)
    if lanes == HOISTING:
        row = starts[0] + k * step
        for r in range(rows):
            x = (row + r * pitch if isinstance(pitch, int) else row)[0].splat(lanes)
            for v in range(vectors):
                sums[r, v] = kl.fma(x, w[v], sums[r, v])
            row = kl.after(row if isinstance(pitch, int) else row + pitch, sums[r, vectors - 1])
    else:
        for r in range(rows):
            x = starts[r][k * step].splat(lanes)
            for v in range(vectors):
                sums[r, v] = kl.fma(x, w[v], sums[r, v])


def _add_by_lane(sums: Registers, bases: list[Pointer], offset: Any, q: Pointer) -> None:
    """Add the products of as many steps as a vector has lanes. bases: the rows; offset: of the first step, in bytes."""
    (rows, vectors), lanes = sums.shape, sums.count
    x = [kl.bitcast(bases[r].load(offset, 4 * lanes), f32) for r in range(rows)]
    for i in range(lanes):
        w = [q.load((i * vectors + v) * lanes, lanes) for v in range(vectors)]
        for r in range(rows):
            number = kl.shuffle(x[r], None, [i] * lanes)
            for v in range(vectors):
                sums[r, v] = kl.fma(number, w[v], sums[r, v])


def contract_pairs(rows: int, halves: int, lanes: int, lhs: LhsF32, first: int, q: Pointer) -> Registers:
    """Compute the sums of a last panel of `halves` vectors for rows from `first` on, in the order of channels."""
    pairs = accumulators(f32, rows, halves, lanes, q)
    q = q + halves * lanes
    pitch = lhs.pitch
    p = lhs.p + first * pitch
    first_of_pair = kl.constant_vector(kl.bool1, [i % 2 == 0 for i in range(lanes)])
    for _ in range(lhs.segments):
        for k in range(0, lhs.run - 1, 2):
            w = [q.load(v * lanes, lanes) for v in range(halves)]
            for r in range(rows):
                x = kl.bitcast((p + r * pitch + k).cast(kl.f64, 4)[0].splat(lanes // 2), f32)
                for v in range(halves):
                    pairs[r, v] = kl.fma(x, w[v], pairs[r, v])
            q = q + halves * lanes
        if lhs.run % 2 > 0:
            w = [q.load(v * lanes, lanes) for v in range(halves)]
            for r in range(rows):
                x = kl.select(first_of_pair, (p + r * pitch)[lhs.run - 1].splat(lanes), 0.0)
                for v in range(halves):
                    pairs[r, v] = kl.fma(x, w[v], pairs[r, v])
            q = q + halves * lanes
        p = p + lhs.stride
    sums = kl.registers(f32, lanes, rows, (halves + 1) // 2)
    even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    for r in range(rows):
        for v in range(0, halves, 2):
            a, b = pairs[r, v], pairs[r, min(v + 1, halves - 1)]
            sums[r, v // 2] = kl.shuffle(a, b, even) + kl.shuffle(a, b, odd)
    return sums


class PanelRangeF32(NamedTuple):
    """Panels [first, last) of a packed filter of `features` channels. wide, halves: see `PanelsF32`."""

    packed: Pointer
    features: Value
    first: Value
    last: Value
    wide: bool
    halves: int


def multiply_panels(
    lhs: LhsF32, panels: PanelRangeF32, tile: OutputTile, rows: int, lanes: int, is_tall: Value | None = None
) -> None:
    """Compute a tile of rows by panels. is_tall: see `for_height`."""
    for_height(rows, is_tall, _multiply, lanes, lhs, panels, tile)


def _multiply(rows: int, lanes: int, lhs: LhsF32, panels: PanelRangeF32, tile: OutputTile) -> None:
    width = 2 * lanes
    depth = lhs.segments * lhs.run
    for i in range(panels.first, panels.last):
        column = i * width
        q = panels.packed + column * (depth + 1)
        part = tile._replace(column=column, rest=panels.features - column)
        if panels.wide and panels.halves:
            if panels.features - column < width:
                _multiply_last(lhs, q, part, rows, lanes, panels.halves, panels.wide)
            else:
                write_float_tile(contract(rows, 2, lanes, lhs, q), part)
        elif panels.wide:
            write_float_tile(contract(rows, 2, lanes, lhs, q), part)
        else:
            _multiply_last(lhs, q, part, rows, lanes, panels.halves, panels.wide)


def _multiply_last(lhs: LhsF32, q: Pointer, tile: OutputTile, rows: int, lanes: int, halves: int, wide: bool) -> None:
    split = rows // 2 if wide and halves == 3 else 0  # registers hold three vectors of half the rows
    parts = [(0, rows - split), (rows - split, split)] if split else [(0, rows)]
    for start, count in parts:
        part = tile._replace(row=tile.row + start)
        write_float_tile(contract_pairs(count, halves, lanes, lhs, start, q), part)


@kl.family(addressed=True)
def gemm(
    work: Work,
    x: ptr[f32],
    packed: ptr[f32],
    out: ptr[f32],
    depth: i64,
    x_pitch: i64,
    out_pitch: i64,
    features: i64,
    cut: Tiles,
    batch_items: i64,
    x_batch: i64,
    packed_batch: i64,
    batch_rows: i64,
    *more: i64,
    rows: int,
    short: bool,
    wide: bool,
    halves: int,
    epilogue: Epilogue,
) -> None:
    """Compute out[m, f] = epilogue(sum_k x[m, k] filter[f, k]): x at x_pitch, a packed filter, out at out_pitch.

    cut: tiles of rows; if short, tiles that are not tall have a row less than `rows`. Items: blocks of tiles by panels,
    panels first. wide, halves: see `PanelsF32`. Each of several products has batch_items items; operands of the next
    one are x_batch and packed_batch floats further, its output batch_rows rows.
    """
    lanes, by_lane = work.lanes(f32), multiplies_by_lane(work.target)
    number = (features + (2 * lanes - 1)) // (2 * lanes)
    across, output = panel_blocks(cut, number), float_output(work, out, out_pitch, features, epilogue, more)
    for item in work.items():
        batch = item // batch_items
        block = block_at(item % batch_items, cut, number, across)
        panels = PanelRangeF32(packed + batch * packed_batch, features, block.first, block.last, wide, halves)
        for t in range(block.start, block.end):
            row = tile_start(t, cut.tall, rows, short)
            lhs = LhsF32(x + (batch * x_batch + row * x_pitch), x_pitch, 1, 0, depth, by_lane)
            tile = output._replace(row=batch * batch_rows + row)
            multiply_panels(lhs, panels, tile, rows, lanes, t < cut.tall if short else None)
