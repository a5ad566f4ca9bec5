"""Products of many rows by int4 weights with a scale for each block of a channel, by sums of int16.

Lives here: the family `gemm_int4_rows`, `unpacked_bytes`.
Not here: products of one row, and those with byte dot products (gemm_int4.py), the packed filter
(weight_packing_int8.py), its selector (contractions_int8.py).

A panel is unpacked once for all rows of a work item, in scratch memory, as the micro-kernel reads it: for each block
the scales, as float32, and the weights n = w + 8, a byte each. Unpacking it for each tile of four rows takes a seventh
of all vector instructions.

A tile's totals are in memory, and its sums of int16 in registers, so that one loop has rows x vectors registers of
sums, a vector of weights for each of these vectors, and one of a row's bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f16, f32, i8, i16, i32, i64, ptr, u8, u16
from .epilogue import Epilogue
from .gemm_int4 import halved_bytes
from .gemm_int16 import AHEAD
from .output_tiles import OutputTile, RowScales, TileEpilogue, tile_epilogue, write_tile
from .tiling import LINE_BYTES, TileBlock, Tiles, block_at, for_height, panel_blocks, tile_rows, tile_start

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work


def unpacked_bytes(width: int, blocks: int, quads: int) -> int:
    """Return the bytes of an unpacked panel of `width` channels, `blocks` blocks of `quads` times four weights."""
    return 4 * width * blocks * (1 + quads)


def unpack_panel(panel: Pointer, target: Pointer, blocks: Any, quads: Any, vectors: int, lanes: int) -> None:
    """Unpack a halved panel (gemm_int4.py) to `target`, f32."""
    width = vectors * lanes
    q, low = panel + 4 * width, kl.full(u8, 4 * lanes, 15)
    for _ in range(blocks):
        for v in range(vectors):
            target.store(q.cast(f16).load(v * lanes, lanes).to(f32), v * lanes)
        q, bytes_ = q + 2 * width, (target + width).cast(u8)
        for _ in range(quads // 2):
            for offset in range(0, 4 * width, LINE_BYTES):
                q.prefetch(AHEAD + offset)
            for v in range(vectors):
                pair = kl.bitcast(q.load(4 * v * lanes, 4 * lanes), u8)
                upper = kl.bitcast(kl.bitcast(pair, u16) >> 4, u8)
                bytes_.store(pair & low, 4 * v * lanes)
                bytes_.store(upper & low, 4 * (width + v * lanes))
            q, bytes_ = q + 4 * width, bytes_ + 8 * width
        target = bytes_.cast(f32)


class Panel(NamedTuple):
    """An unpacked panel, at `weights`. corrections: c of its channels (gemm_int4.py); both f32."""

    corrections: Pointer
    weights: Pointer
    vectors: int
    lanes: int


class BlockRows(NamedTuple):
    """Rows of a tile: bytes p[r * pitch + k], and -8 times the sums of their blocks, sums[r * blocks + block].

    quads: steps of four bytes in a block; group: of which int16 holds the sums, a divisor of quads. single: whether a
    block is one group: its sums then need no registers but those of int16, and products take 8 % less time.
    """

    p: Pointer
    pitch: Value
    sums: Pointer
    blocks: Value
    quads: Value
    group: int
    single: bool

    def moved(self, row: Any) -> BlockRows:
        """Return the rows from `row` on."""
        return self._replace(p=self.p + row * self.pitch, sums=self.sums + row * self.blocks)


def contract_unpacked(rows: int, lhs: BlockRows, panel: Panel, tile: OutputTile) -> Pointer:
    """Compute the scaled sums of a tile in memory, float32[rows, vectors * lanes]."""
    vectors, lanes = panel.vectors, panel.lanes
    width, rounded = vectors * lanes, tile.rounded
    assert rounded is not None  # blocks are of floats
    totals = kl.stack(f32, rows * width)
    for r in range(rows):
        zero = (-rounded.zeros[tile.row + r].to(f32)).splat(lanes)
        for v in range(vectors):
            totals.store(panel.corrections.load(v * lanes, lanes) * zero, r * width + v * lanes)
    p, block_sums, scales = lhs.p, lhs.sums, panel.weights
    for _ in range(lhs.blocks):
        sums = kl.registers(i32, lanes, rows, vectors)
        for r in range(rows):
            for v in range(vectors):
                sums[r, v] = block_sums[r * lhs.blocks].splat(lanes)
        q = (scales + width).cast(u8)
        for _ in range(1 if lhs.single else lhs.quads // lhs.group):
            _add_group(sums, p, lhs.pitch, q, lhs.group)
            p, q = p + 4 * lhs.group, q + 4 * width * lhs.group
        for v in range(vectors):
            scale = scales.load(v * lanes, lanes)
            for r in range(rows):
                index = r * width + v * lanes
                totals.store(kl.fma(sums[r, v].to(f32), scale, totals.load(index, lanes)), index)
        block_sums, scales = block_sums + 1, q.cast(f32)
    return totals


def _add_group(sums: Registers, p: Pointer, pitch: Value, q: Pointer, group: int) -> None:
    """Add the products of `group` steps to the sums of a tile. q: their weights."""
    (rows, vectors), lanes = sums.shape, sums.count
    short = kl.registers(i16, 2 * lanes, rows, vectors)
    for k in range(group):
        w = [q.load(4 * (k * vectors + v) * lanes, 4 * lanes) for v in range(vectors)]
        for r in range(rows):
            x = kl.bitcast((p + r * pitch).cast(i32)[k].splat(lanes), i8)
            for v in range(vectors):
                products = kl.saturating_dot2(w[v], x)
                short[r, v] = products if k == 0 else kl.opaque(short[r, v] + products)
    ones = kl.full(i16, 2 * lanes, 1)
    for r in range(rows):
        for v in range(vectors):
            sums[r, v] = kl.pair_dot(sums[r, v], short[r, v], ones)


class RowWalk(NamedTuple):
    """The tiles of a work item by one panel: block. lhs: all rows; cut, rows, short: see `gemm_int8`."""

    lhs: BlockRows
    cut: Tiles
    rows: int
    short: bool
    block: TileBlock
    ending: TileEpilogue


@kl.family(addressed=True)
def gemm_int4_rows(
    work: Work,
    x: ptr[i8],
    packed: ptr[i8],
    out: ptr[i8],
    quads: i64,
    x_pitch: i64,
    out_pitch: i64,
    features: i64,
    cut: Tiles,
    scales: ptr[f32],
    zeros: ptr[i32],
    blocks: i64,
    block_sums: ptr[i32],
    *more: i64,
    rows: int,
    vectors: int,
    short: bool,
    narrow: int,
    group: int,
    single: bool,
    epilogue: Epilogue,
) -> None:
    """Compute out[i, f] = epilogue(sum over blocks of scales[f, block] sum_k x[i, k] filter[f, k]): rounded rows x at
    x_pitch, a filter in halved panels, out at out_pitch.

    cut: see `gemm_int8`. Items: blocks of tiles by panels, panels first. blocks: their number; quads, group, single:
    see `BlockRows`; block_sums: see `sum_blocks`; narrow: see `PanelsInt8`.
    """
    lanes = work.lanes(i32)
    width = vectors * lanes
    number = (features + (width - 1)) // width
    across = panel_blocks(cut, number)
    ending = tile_epilogue(epilogue, more, work.target)
    output = ending.output(work, out, out_pitch, features, RowScales(scales, zeros, 1))
    size = halved_bytes(blocks, quads)
    lhs = BlockRows(x, x_pitch, block_sums, blocks, quads, group, single)
    for item in work.items():
        block = block_at(item, cut, number, across)
        for i in range(block.first, block.last):
            column = i * width
            halved = packed + column * size
            part = output._replace(column=column, rest=features - column)
            walk = RowWalk(lhs, cut, rows, short, TileBlock(block.start, block.end, i, i + 1), ending)
            if narrow:
                if features - column <= narrow * lanes:
                    _multiply(work, halved, narrow, lanes, walk, part)
                else:
                    _multiply(work, halved, vectors, lanes, walk, part)
            else:
                _multiply(work, halved, vectors, lanes, walk, part)


def _multiply(work: Work, halved: Pointer, vectors: int, lanes: int, walk: RowWalk, part: OutputTile) -> None:
    """Compute the tiles of a work item by a halved panel of `vectors` vectors, which is unpacked."""
    lhs, cut, rows, block = walk.lhs, walk.cut, walk.rows, walk.block
    panel = Panel(halved.cast(f32), work.scratch(f32), vectors, lanes)
    unpack_panel(halved, panel.weights, lhs.blocks, lhs.quads, vectors, lanes)
    for t in range(block.start, block.end):
        row, height = tile_start(t, cut.tall, rows, walk.short), tile_rows(t, cut.tall, rows, walk.short)
        at, tile = lhs.moved(row), part._replace(row=row)
        for_height(rows, t < cut.tall if walk.short else None, _multiply_tile, at, panel, tile)
        walk.ending.look_up_block(tile, block, vectors * lanes, height, work.target.vector_bytes)


def _multiply_tile(rows: int, lhs: BlockRows, panel: Panel, tile: OutputTile) -> None:
    width = panel.vectors * panel.lanes
    write_tile(tile, contract_unpacked(rows, lhs, panel, tile), rows, width, panel.lanes)
