"""Matrix products of float32: the micro-kernels, rows at one pitch.

Lives here: `LhsF32`, `contract`, `multiply_panels` (a tile of rows by panels), `gemm`, `gemm_step`. Not here: packed
filters (weight_packing_f32.py), convolutions with windows (convolution_f32.py), few rows (gemv_f32.py), the selectors
(contractions_f32.py, matmul.py).

A tile of the output is rows x 2 registers; each step of the sum loads two vectors of the filter once and one number of
each row. Instructions of 64-bit ARM multiply by a lane: on it the numbers of a row are loaded four at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i64, ptr
from ..tuning.choices import BLOCKS_F32
from .epilogue import Epilogue
from .output_tiles import OutputTile, accumulators, float_output, store_registers, write_float_tile
from .tiling import (
    CACHE,
    MANY_TILES,
    Tiles,
    WorkBlocks,
    block_at,
    blocks,
    chunk_of,
    evened,
    for_height,
    has_all_panels,
    is_order_relevant,
    panel_blocks,
    row_tiles,
    tile_rows,
    tile_start,
)
from .weight_packing_f32 import PanelsF32, multiplies_by_lane

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..loops.plan_builder import Builder

AHEAD = 128
"""Steps by which a filter is prefetched: the filters of large networks come from memory every time, a latency that
nothing else hides (a third of their time); filters in the caches lose nothing by it."""


DEPTH_BLOCK = 256
"""Steps of a sum, of which a panel of AVX2 takes half of a first-level cache."""
CONFLICTING = 1024
"""Floats from row to row such that a first-level cache has all rows of a tile in the same sets, where the panel evicts
them: sums of 1024 steps are 6 % faster in blocks (Zen 3); those of rows at other pitches lose 2 %. The 13 rows of a
tile of AVX-512 evict each other, too, and are copied: 93 to 98 GFLOP/s instead of 90 to 92 (Zen 4)."""


HOISTING = 16
"""Lanes of AVX-512, for whose 32 registers LLVM loads the numbers of all rows of two steps first and spills the sums:
64 GFLOP/s instead of 107 of 110 (Zen 4). There, a row's number is loaded after the products of the row before it."""


class LhsF32(NamedTuple):
    """Rows of a tile: row r, segment s, step k is p[r * pitch + s * stride + k], for `segments` of `run` steps.

    by_lane: see `PanelsF32`.
    """

    p: Pointer
    pitch: Any
    segments: Any
    stride: Any
    run: Any
    by_lane: bool


def contract(rows: int, vectors: int, lanes: int, lhs: LhsF32, q: Pointer) -> Registers:
    """Compute the sums of a tile: the micro-kernel, rows x vectors registers. q: the panel."""
    sums = accumulators(f32, rows, vectors, lanes, q)
    _accumulate(sums, lhs, q + vectors * lanes)
    return sums


def _accumulate(sums: Registers, lhs: LhsF32, q: Pointer, is_distant: bool = True) -> None:
    """Add products to the sums of a tile. q: the panel's first step; is_distant: whether it is prefetched."""
    (rows, vectors), lanes = sums.shape, sums.count
    p, pitch = lhs.p, lhs.pitch
    for _ in range(lhs.segments):
        done = kl.value(0)
        if lhs.by_lane:
            done = lhs.run // lanes * lanes
            bases = [kl.opaque_pointer(p + r * pitch).cast(i8) for r in range(rows)]
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
                    _add_step(sums, p, pitch, k + i, q + i * vectors * lanes, is_distant)
                q = q + 2 * vectors * lanes
        for k in range(pairs_end, lhs.run):
            _add_step(sums, p, pitch, k, q, is_distant)
            q = q + vectors * lanes
        p = p + lhs.stride


def _add_step(sums: Registers, p: Pointer, pitch: Any, k: Any, q: Pointer, is_distant: bool) -> None:
    """Add the products of one step."""
    (rows, vectors), lanes = sums.shape, sums.count
    if lanes == HOISTING:
        q = kl.after(q, sums[rows - 1, vectors - 1])
    w = [q.load(v * lanes, lanes) for v in range(vectors)]
    if is_distant:
        for v in range(vectors):
            q.prefetch((AHEAD * vectors + v) * lanes)
    if lanes == HOISTING:
        row = p + k
        for r in range(rows):
            x = row[0].splat(lanes)
            for v in range(vectors):
                sums[r, v] = kl.fma(x, w[v], sums[r, v])
            row = kl.after(row + pitch, sums[r, vectors - 1])
    else:
        for r in range(rows):
            x = (p + r * pitch)[k].splat(lanes)
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


def _loaded(rows: int, lanes: int, sums: Pointer) -> Registers:
    """Load the sums of a tile from memory, [rows, 2 * lanes]."""
    registers = kl.registers(f32, lanes, rows, 2)
    for r in range(rows):
        for v in range(2):
            registers[r, v] = sums.load((2 * r + v) * lanes, lanes)
    return registers


def _write_sums(rows: int, lanes: int, sums: Pointer, tile: OutputTile) -> None:
    """Apply the epilogue to the sums of a tile in memory."""
    write_float_tile(_loaded(rows, lanes, sums), tile)


def _add_depth_block(rows: int, lanes: int, sums: Pointer, lhs: LhsF32, q: Pointer) -> None:
    """Add the products of some steps to the sums of a tile in memory."""
    registers = _loaded(rows, lanes, sums)
    _accumulate(registers, lhs, q, is_distant=False)
    store_registers(registers, sums)


@kl.family
def gemm_deep(
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
    epilogue: Epilogue,
) -> None:
    """Compute as `gemm`, bit by bit, with sums that are interrupted after each DEPTH_BLOCK steps.

    These steps of a panel stay in a first-level cache while they serve all tiles of an item. features: a multiple of
    the panels' width. Scratch: the sums of an item's tiles by one panel.
    """
    lanes, by_lane = work.lanes(f32), multiplies_by_lane(work.target)
    width = 2 * lanes
    number = features // width
    across, output = panel_blocks(cut, number), float_output(work, out, out_pitch, features, epilogue, more)
    sums, step = work.scratch(f32), rows * width
    for item in work.items():
        batch = item // batch_items
        block = block_at(item % batch_items, cut, number, across)
        for i in range(block.first, block.last):
            q = packed + batch * packed_batch + i * width * (depth + 1)
            initial = [q.load(v * lanes, lanes) for v in range(2)]
            for t in range((block.end - block.start) * rows):
                for v in range(2):
                    sums.store(initial[v], t * width + v * lanes)
            q = q + width
            for k in range(0, depth, DEPTH_BLOCK):
                run, part = kl.minimum(depth - k, DEPTH_BLOCK), q + k * width
                for t in range(block.start, block.end):
                    row = tile_start(t, cut.tall, rows, short)
                    lhs = LhsF32(x + (batch * x_batch + row * x_pitch + k), x_pitch, 1, 0, run, by_lane)
                    tile_sums, is_tall = sums + (t - block.start) * step, t < cut.tall if short else None
                    for_height(rows, is_tall, _add_depth_block, lanes, tile_sums, lhs, part)
            for t in range(block.start, block.end):
                row, column = batch * batch_rows + tile_start(t, cut.tall, rows, short), i * width
                tile = output._replace(row=row, column=column, rest=features - column)
                tile_sums, is_tall = sums + (t - block.start) * step, t < cut.tall if short else None
                for_height(rows, is_tall, _write_sums, lanes, tile_sums, tile)


@kl.family
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
    copied: bool,
) -> None:
    """Compute out[m, f] = epilogue(sum_k x[m, k] filter[f, k]): x at x_pitch, a packed filter, out at out_pitch.

    cut: tiles of rows; if short, tiles that are not tall have a row less than `rows`. Items: blocks of tiles by panels,
    panels first. wide, halves: see `PanelsF32`. Each of several products has batch_items items; operands of the next
    one are x_batch and packed_batch floats further, its output batch_rows rows. copied: whether the rows of a tile are
    copied to the scratch, at another pitch.
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
            p, pitch = x + (batch * x_batch + row * x_pitch), x_pitch
            if copied:
                p, pitch = _copied_rows(p, pitch, tile_rows(t, cut.tall, rows, short), depth, work.scratch(f32), lanes)
            lhs = LhsF32(p, pitch, 1, 0, depth, by_lane)
            tile = output._replace(row=batch * batch_rows + row)
            multiply_panels(lhs, panels, tile, rows, lanes, t < cut.tall if short else None)


def _copied_rows(
    p: Pointer, pitch: Value, rows: Value, depth: Value, copy: Pointer, lanes: int
) -> tuple[Pointer, Value]:
    """Copy rows of `depth` numbers, a multiple of the lanes; return the copy and its pitch, at which rows lie in
    different sets of a cache."""
    copy_pitch = depth + lanes
    for r in range(rows):
        for k in range(0, depth, lanes):
            copy.store((p + r * pitch).load(k, lanes), r * copy_pitch + k)
    return copy, copy_pitch


class ProductBatch(NamedTuple):
    """Products of `rows` rows each, x[row, k] at `pitch`; operands of the next one are `..._batch` floats further."""

    rows: int
    pitch: int
    products: int = 1
    x_batch: int = 0
    packed_batch: int = 0


def gemm_step(
    build: Builder,
    panels: PanelsF32,
    x: Any,
    packed: Any,
    out: Any,
    out_pitch: int,
    batch: ProductBatch,
    epilogue: Epilogue,
    more: Sequence[Any],
) -> None:
    """Add the step of products with a packed filter. x, packed, out: addresses."""
    depth = panels.depth
    cut = row_tiles(batch.rows, panels.rows)
    work = 2 * cut.height * depth * panels.width
    panel_bytes = panels.width * depth * 4
    scratch = 0
    conflicting = batch.pitch % CONFLICTING == 0 and depth > DEPTH_BLOCK
    copied = conflicting and panels.lanes == HOISTING and depth % HOISTING == 0
    if deep := conflicting and not copied and not panels.halves and cut.tiles >= MANY_TILES:
        height = max(1, min(cut.tiles, CACHE // 2 // (4 * cut.height * depth)))
        height = -(-cut.tiles // -(-cut.tiles // height))
        block = WorkBlocks(height, 1, -(-cut.tiles // height) * panels.number)
        scratch = 4 * height * cut.height * panels.width
    else:
        default = int(has_all_panels(cut.tiles, panels.number, panel_bytes))
        ways = (0, 1) if is_order_relevant(cut.tiles, panels.number, panel_bytes) else (default,)
        all_panels = build.choose(BLOCKS_F32, ways, default, batch.rows, depth, panels.features) > 0
        block = blocks(cut.tiles, panels.number, cut.height * depth * 4, panel_bytes, work, all_panels)
        block = evened(block, cut.tiles, panels.number)
        scratch = 4 * cut.height * (depth + panels.lanes) if copied else 0
    words = [
        x,
        packed,
        out,
        depth,
        batch.pitch,
        out_pitch,
        panels.features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        block.items,
        batch.x_batch,
        batch.packed_batch,
        batch.rows,
        *more,
    ]
    if deep:
        code = gemm_deep.code(more=len(more), rows=cut.height, short=cut.short, epilogue=epilogue)
    else:
        code = gemm.code(
            more=len(more),
            rows=cut.height,
            short=cut.short,
            wide=panels.wide,
            halves=panels.halves,
            epilogue=epilogue,
            copied=copied,
        )
    items = block.items * batch.products
    build.step(code, words, items, scratch, chunk_of(work * cut.tiles * panels.number * batch.products, items))
