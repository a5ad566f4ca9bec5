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
from .output_tiles import LIGHT_FLOAT, OutputTile, accumulators, store_registers, write_float_tile
from .tiling import (
    CACHE,
    MANY_TILES,
    Tiles,
    WorkBlocks,
    blocks,
    chunk_of,
    evened,
    has_all_panels,
    is_order_relevant,
    row_tiles,
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
them: sums of 1024 steps are 6 % faster in blocks (Zen 3); those of rows at other pitches lose 2 %."""


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
    w = [q.load(v * lanes, lanes) for v in range(vectors)]
    if is_distant:
        for v in range(vectors):
            q.prefetch((AHEAD * vectors + v) * lanes)
    for r in range(rows):
        x = (p + r * pitch)[k]
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
    """Compute a tile of rows by panels. is_tall: whether it has `rows` rows or one less; None: it has `rows`."""
    if is_tall is not None:
        if is_tall:
            _multiply(lhs, panels, tile, rows, lanes)
        else:
            _multiply(lhs, panels, tile, rows - 1, lanes)
    else:
        _multiply(lhs, panels, tile, rows, lanes)


def _multiply(lhs: LhsF32, panels: PanelRangeF32, tile: OutputTile, rows: int, lanes: int) -> None:
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


def _loaded(sums: Pointer, rows: int, lanes: int) -> Registers:
    """Load the sums of a tile from memory, [rows, 2 * lanes]."""
    registers = kl.registers(f32, lanes, rows, 2)
    for r in range(rows):
        for v in range(2):
            registers[r, v] = sums.load((2 * r + v) * lanes, lanes)
    return registers


def _add_depth_block(sums: Pointer, lhs: LhsF32, q: Pointer, rows: int, lanes: int) -> None:
    """Add the products of some steps to the sums of a tile in memory."""
    registers = _loaded(sums, rows, lanes)
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
    lanes = work.lanes(f32)
    width = 2 * lanes
    number = features // width
    across = (number + (cut.panel_block - 1)) // cut.panel_block
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    masked, light = work.target.vector_bytes == 64, epilogue.weight <= LIGHT_FLOAT
    finish, by_lane = epilogue.bind(more), multiplies_by_lane(work.target)
    sums, step = work.scratch(f32), rows * width
    for item in work.items():
        batch, block = item // batch_items, item % batch_items
        start = block // across * cut.tile_block
        end = kl.minimum(start + cut.tile_block, cut.tiles)
        first = block % across * cut.panel_block
        for i in range(first, kl.minimum(first + cut.panel_block, number)):
            q = packed + batch * packed_batch + i * width * (depth + 1)
            initial = [q.load(v * lanes, lanes) for v in range(2)]
            for t in range((end - start) * rows):
                for v in range(2):
                    sums.store(initial[v], t * width + v * lanes)
            q = q + width
            for k in range(0, depth, DEPTH_BLOCK):
                run = kl.minimum(depth - k, DEPTH_BLOCK)
                for t in range(start, end):
                    row = _first_row(t, cut, rows, short)
                    lhs = LhsF32(x + (batch * x_batch + row * x_pitch + k), x_pitch, 1, 0, run, by_lane)
                    tile_sums, part = sums + (t - start) * step, q + k * width
                    if not short or t < cut.tall:
                        _add_depth_block(tile_sums, lhs, part, rows, lanes)
                    else:
                        _add_depth_block(tile_sums, lhs, part, rows - 1, lanes)
            for t in range(start, end):
                row = batch * batch_rows + _first_row(t, cut, rows, short)
                column = i * width
                tile = OutputTile(target, out_pitch, row, column, features - column, finish, masked, light)
                tile_sums = sums + (t - start) * step
                if not short or t < cut.tall:
                    write_float_tile(_loaded(tile_sums, rows, lanes), tile)
                else:
                    write_float_tile(_loaded(tile_sums, rows - 1, lanes), tile)


def _first_row(t: Any, cut: Tiles, rows: int, short: bool) -> Any:
    """Return the first row of a tile."""
    row = kl.value(t) * rows
    return row - kl.maximum(t - cut.tall, 0) if short else row


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
) -> None:
    """Compute out[m, f] = epilogue(sum_k x[m, k] filter[f, k]): x at x_pitch, a packed filter, out at out_pitch.

    cut: tiles of rows; if short, tiles that are not tall have a row less than `rows`. Items: blocks of tiles by panels,
    panels first. wide, halves: see `PanelsF32`. Each of several products has batch_items items; operands of the next
    one are x_batch and packed_batch floats further, its output batch_rows rows.
    """
    lanes = work.lanes(f32)
    number = (features + (2 * lanes - 1)) // (2 * lanes)
    across = (number + (cut.panel_block - 1)) // cut.panel_block
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    masked, light = work.target.vector_bytes == 64, epilogue.weight <= LIGHT_FLOAT
    finish, by_lane = epilogue.bind(more), multiplies_by_lane(work.target)
    for item in work.items():
        batch, block = item // batch_items, item % batch_items
        start = block // across * cut.tile_block
        first = block % across * cut.panel_block
        last = kl.minimum(first + cut.panel_block, number)
        panels = PanelRangeF32(packed + batch * packed_batch, features, first, last, wide, halves)
        for t in range(start, kl.minimum(start + cut.tile_block, cut.tiles)):
            row = _first_row(t, cut, rows, short)
            lhs = LhsF32(x + (batch * x_batch + row * x_pitch), x_pitch, 1, 0, depth, by_lane)
            tile = OutputTile(target, out_pitch, batch * batch_rows + row, 0, features, finish, masked, light)
            multiply_panels(lhs, panels, tile, rows, lanes, t < cut.tall if short else None)


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
    if deep := conflicting and not panels.halves and cut.tiles >= MANY_TILES:
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
            more=len(more), rows=cut.height, short=cut.short, wide=panels.wide, halves=panels.halves, epilogue=epilogue
        )
    items = block.items * batch.products
    build.step(code, words, items, scratch, chunk_of(work * cut.tiles * panels.number * batch.products, items))
