"""Matrix products of int8: the micro-kernels of vectors and of AMX, rows at one pitch.

Lives here: `LhsInt8`, `contract`, `multiply_panels`, `flip_rows`, the family `gemm_int8`; on AMX `contract_tiles`,
`configure_tiles`, `short_tile`, and `amx_shape`, the condition of its use.
Not here: epilogues of tiles (output_tiles.py), packed filters and how signs are preserved (weight_packing_int8.py),
convolutions with windows (convolution_int8.py), the selectors (contractions_int8.py), instructions of AMX
(../language/dots.py).

A tile of the output is rows x vectors registers of int32; each step multiplies four bytes of each row and each channel.

The micro-kernel of AMX computes 2 by 2 tiles of sums, 32 rows by 32 channels, from the same panels: a tile of a panel
is `depth` of its steps, by 16 channels. A tile of the input is 16 rows in place, by as many bytes. The instructions
multiply bytes of either sign, so that the initial sums of a panel compensate zero points alone.

    tiles 0 1    sums of the upper rows          4    upper rows     6 7    the filter
          2 3    and of the lower                5    lower rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from .epilogue import Epilogue
from .gemm_int4 import contract_halved, halved_bytes
from .gemm_int16 import add_bounded, contract_blocks, contract_int16, contract_widened, prefetch_panels, widen_rows
from .gemm_neon import Grouped, contract_grouped, steps_for
from .output_tiles import (
    OutputTile,
    RowScales,
    rows_per_vector,
    spilled,
    stored_rows,
    tile_epilogue,
    write_registers,
    write_tile,
)
from .tiling import ABREAST, Tiles, block_at, for_height, panel_blocks, tile_rows, tile_start

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..target import Target

ROWS, HALF, ROW_BYTES = 32, 16, 64
"""Rows of an output tile, rows of a tile of the processor, and bytes of its rows."""
DEPTH = 16
"""Steps of a panel in a tile of the processor, at most."""
FEW_ROWS, FEW_STEPS, SHALLOW, FEW_PRODUCTS = 4, 8, 6, 1 << 17
"""Rows, steps, steps at a time, and products in all below which vectors are as fast: to configure and release the tiles
takes 0.2 us, and a product of tiles 16 cycles, whatever their size."""


def amx_shape(target: Target, rows: int, features: int, quads: int, products: int) -> tuple[int, int, int, int] | None:
    """Return rows, vectors, lanes and depth of the tile for rows at one pitch, channels, steps per run and products.

    None without AMX, and if vectors are as fast.
    """
    depth = depth_of(quads)
    few = rows < FEW_ROWS or quads < FEW_STEPS or depth < SHALLOW or products < FEW_PRODUCTS
    if few or not target.has("amx-int8") or target.vector_bytes < ROW_BYTES:  # a vector is a row of sums
        return None
    return ROWS, 1 if features <= HALF else 2, HALF, depth


def depth_of(quads: int) -> int:
    """Return the steps of a tile: the largest divisor of quads."""
    return max((d for d in range(1, DEPTH + 1) if quads and quads % d == 0), default=0)


def _upper(rows: int) -> int:
    return -(-rows // 2) if rows > HALF else rows


def configure_tiles(rows: int, depth: Any) -> None:
    """Configure the tiles for a number of rows."""
    upper = _upper(rows)
    lower = max(rows - upper, 1)
    sums = [(upper, ROW_BYTES)] * 2 + [(lower, ROW_BYTES)] * 2
    kl.tile_config([*sums, (upper, depth * 4), (lower, depth * 4), (depth, ROW_BYTES), (depth, ROW_BYTES)])


def short_tile(t: Any, short: Any, rows: int) -> tuple[Value, Value]:
    """Return the first row of a tile, and its number of rows: `short` tiles have one less, and come first.

    So all compute the same number: the row after a short tile belongs to the next one.
    """
    return t * (rows - 1) + kl.maximum(t - short, 0), kl.select(t < short, rows - 1, kl.value(rows))


def contract_tiles(rows: int, vectors: int, lanes: int, lhs: LhsInt8, q: Pointer, biased: bool) -> Pointer:
    """Compute the sums of rows x vectors lanes in memory. q: the panel; biased: its first row is initial sums."""
    width, upper = vectors * lanes, _upper(rows)
    halves = (0, 1) if rows > upper else (0,)
    sums = kl.stack(i32, rows * width)
    for h in halves:
        for v in range(vectors):
            if biased:
                kl.tile_load(2 * h + v, q + v * lanes, 0)
            else:
                kl.tile_zero(2 * h + v)
    q = q + width
    depth = lhs.depth
    for line in range(lhs.lines):
        for segment in range(lhs.segments):
            p = lhs.p + (line * lhs.line + segment * lhs.segment)
            for _ in range(lhs.quads // depth):
                for h in halves:
                    kl.tile_load(4 + h, p + h * upper * lhs.pitch, lhs.pitch)
                    for v in range(vectors):
                        if h == 0:
                            kl.tile_load(6 + v, q + v * lanes, 4 * width)
                        kl.tile_dot(2 * h + v, 4 + h, 6 + v, lhs.tiled, i8)
                p = p + depth * 4
                q = q + depth * width
    for h in halves:
        for v in range(vectors):
            kl.tile_store(2 * h + v, sums + (h * upper * width + v * lanes), 4 * width)
    return sums


FLIP = -0x7F7F7F80
"""The sign bits of four bytes, as int32."""
POINTERS = 8
"""Rows whose addresses have registers of their own."""


class LhsInt8(NamedTuple):
    """Rows of a tile: in line l and segment s, byte 4 k of row r is p[r * pitch + l * line + s * segment + 4 k].

    quads: k of a segment. flip: bits of each four bytes to change: FLIP makes signed ones unsigned. wide: elements are
    int16. blocked: a line is a block with scales of its own. widened: elements are int8 widened to int16; bounded:
    steps whose sums int16 holds (all gemm_int16.py). tiled: the dtype of rows that AMX multiplies, `depth` quads at a
    time (gemm_int8.py). flipped: rows are unsigned copies, see `flip_rows`. grouped: the multiplication on 64-bit ARM
    (gemm_neon.py). signed: whether bytes of blocks are multiplied without the 128 that makes them unsigned. block_sums:
    of halved panels (gemm_int4.py), sums of the rows' bytes over each block, row by row.
    """

    p: Pointer
    pitch: Value
    quads: Value
    flip: Value
    lines: Any = 1
    line: Any = 0
    segments: Any = 1
    segment: Any = 0
    wide: bool = False
    blocked: bool = False
    tiled: Any = None
    depth: Any = 0
    widened: bool = False
    flipped: bool = False
    bounded: int = 0
    grouped: Grouped | None = None
    signed: bool = False
    block_sums: Pointer | None = None


def contract(
    rows: int, vectors: int, lanes: int, lhs: LhsInt8, q: Pointer, abreast: int = 1, apart: Any = 0
) -> Registers:
    """Compute the sums of a tile: the micro-kernel, rows x (abreast * vectors) registers.

    q: the panel, int32, or the first of `abreast` panels, `apart` words from one to the next.
    """
    sums = kl.registers(i32, lanes, rows, abreast * vectors)
    for v in range(abreast * vectors):
        start = (q + v // vectors * apart).load(v % vectors * lanes, lanes)
        for r in range(rows):
            sums[r, v] = start
    q = q + vectors * lanes
    pitch, flip = lhs.pitch, None if lhs.flipped else kl.opaque(lhs.flip.splat(lanes))
    for line in range(lhs.lines):
        for segment in range(lhs.segments):
            p = lhs.p + (line * lhs.line + segment * lhs.segment)
            if lhs.bounded:
                assert flip is not None  # rows for bounded filters are not copied
                q = add_bounded(sums, p, pitch, lhs.quads, q, flip, lhs.bounded)
            else:
                q = _add_steps(sums, p, pitch, lhs.quads, q, flip, abreast, apart)
    return sums


def _add_steps(
    sums: Registers, p: Pointer, pitch: Value, quads: Any, q: Pointer, flip: Value | None, abreast: int, apart: Any
) -> Pointer:
    """Add the products of `quads` steps to the sums of a tile; return the address after the steps."""
    (rows, every), lanes = sums.shape, sums.count
    vectors = every // abreast
    row = [(p + r * pitch).cast(i32) for r in range(rows)]
    if flip is None and rows <= POINTERS:
        row = [kl.opaque_pointer(one) for one in row]
    for k in range(quads):
        w = [
            kl.bitcast((q + panel * apart).load(v * lanes, lanes), i8)
            for panel in range(abreast)
            for v in range(vectors)
        ]
        step = 4 * vectors * lanes
        prefetch_panels(q.cast(i8), (kl.value(quads) - k) * step, step, abreast, 4 * apart)
        for r in range(rows):
            x = row[r][k].splat(lanes)
            for v in range(every):
                sums[r, v] = kl.dot4(sums[r, v], kl.bitcast(x if flip is None else x ^ flip, u8), w[v])
        q = q + vectors * lanes
    return q


def flip_rows(x: Pointer, pitch: Any, target: Pointer, rows: Any, count: Any, flip: Value, lanes: int) -> None:
    """Write `rows` rows of `count` bytes, a multiple of four, contiguously with the bits of `flip` changed."""
    flips = kl.opaque(flip.splat(lanes // 4))
    for _ in range(rows):
        if count >= lanes:
            for i in range(0, count, lanes):
                offset = kl.minimum(i, count - lanes)
                target.store(x.load(offset, lanes) ^ kl.bitcast(flips, i8), offset)
        else:
            for i in range(0, count, 4):
                target.cast(i32)[i // 4] = x.cast(i32)[i // 4] ^ flip
        x, target = x + pitch, target + count


def _multiply_panel(rows: int, vectors: int, lanes: int, lhs: LhsInt8, tile: OutputTile) -> None:
    """Compute a tile of the output: its sums go through memory, and a loop over rows applies the epilogue.

    The epilogue is applied to as many rows at a time as have results of one vector. Light epilogues are computed in
    registers.
    """
    width = vectors * lanes
    if lhs.grouped is not None:
        sums = contract_grouped(rows, vectors, lanes, lhs, lhs.grouped, tile.panel, tile.rounded is None)
        if tile.light:
            write_registers(tile, sums, width, 1)
        else:
            write_tile(tile, stored_rows(sums, width), rows, width, lanes)
    elif tile.light and rows > 1 and _is_of_vectors(lhs, tile):
        if lhs.widened:
            registers = contract_widened(rows, vectors, lanes, lhs, tile.panel, True)
        else:
            registers = contract(rows, vectors, lanes, lhs, tile.panel)
        sums = [kl.joined([registers[r, v] for v in range(vectors)]) for r in range(rows)]
        write_registers(tile, sums, width, rows_per_vector(tile, width, lanes))
    else:
        write_tile(tile, _contracted(rows, vectors, lanes, lhs, tile), rows, width, lanes)


def _is_of_vectors(lhs: LhsInt8, tile: OutputTile) -> bool:
    """Return whether `contract` computes a tile, of bytes that were not floats."""
    others = lhs.wide, lhs.blocked, lhs.tiled is not None, lhs.bounded, tile.rounded
    return not any(others)


def _contracted(rows: int, vectors: int, lanes: int, lhs: LhsInt8, tile: OutputTile) -> Pointer:
    """Compute the sums of a tile in memory."""
    if lhs.wide:
        return contract_int16(rows, vectors, lanes, lhs, tile.panel)
    if lhs.block_sums is not None:
        return contract_halved(rows, vectors, lanes, lhs, lhs.block_sums, tile)
    if lhs.blocked:
        return contract_blocks(rows, vectors, lanes, lhs, tile)
    if lhs.tiled is not None:
        return contract_tiles(rows, vectors, lanes, lhs, tile.panel, tile.rounded is None)
    if lhs.widened:
        return spilled(contract_widened(rows, vectors, lanes, lhs, tile.panel, tile.rounded is None))
    return spilled(contract(rows, vectors, lanes, lhs, tile.panel))


class PanelRangeInt8(NamedTuple):
    """Panels [first, last) of a packed filter of `features` channels, each of `vectors` vectors and `steps` steps.

    narrow: vectors of the last panel of the filter, see `PanelsInt8`.
    """

    packed: Pointer
    features: Value
    first: Value
    last: Value
    steps: Value
    vectors: int
    narrow: int


def multiply_panels(
    lhs: LhsInt8, panels: PanelRangeInt8, tile: OutputTile, rows: int, lanes: int, is_tall: Value | None = None
) -> None:
    """Compute a tile of rows by panels. is_tall: see `for_height`."""
    for_height(rows, is_tall, _multiply, lanes, lhs, panels, tile)


def _multiply(rows: int, lanes: int, lhs: LhsInt8, panels: PanelRangeInt8, tile: OutputTile) -> None:
    vectors, narrow, start = panels.vectors, panels.narrow, panels.first
    if rows == 1 and _are_read_abreast(lhs):
        whole = kl.minimum(panels.last, panels.features // (vectors * lanes))
        start = start + kl.maximum(whole - start, 0) // ABREAST * ABREAST
        for i in range(panels.first, start, ABREAST):
            _multiply_abreast(lhs, panels, _part_of(tile, lhs, panels, i, lanes), lanes)
    for i in range(start, panels.last):
        part = _part_of(tile, lhs, panels, i, lanes)
        column = part.column
        if narrow:
            if panels.features - column <= narrow * lanes:
                _multiply_panel(rows, narrow, lanes, lhs, part)
            else:
                _multiply_panel(rows, vectors, lanes, lhs, part)
        else:
            _multiply_panel(rows, vectors, lanes, lhs, part)


def _are_read_abreast(lhs: LhsInt8) -> bool:
    """Return whether one row is multiplied by several panels at a time: memory is read faster in several streams."""
    if lhs.wide or lhs.tiled is not None or lhs.grouped is not None or lhs.bounded:
        return False
    return not lhs.blocked or lhs.block_sums is not None


def _part_of(tile: OutputTile, lhs: LhsInt8, panels: PanelRangeInt8, number: Any, lanes: int) -> OutputTile:
    """Return the part of a tile by a panel."""
    column = number * (panels.vectors * lanes)
    if lhs.block_sums is not None:
        q = (panels.packed.cast(i8) + column * panels.steps).cast(i32)
    elif lhs.wide:
        q = panels.packed.cast(i16) + column * panels.steps
    else:
        q = panels.packed + column * (panels.steps + 1)
    return tile._replace(column=column, rest=panels.features - column, panel=q)


def _multiply_abreast(lhs: LhsInt8, panels: PanelRangeInt8, tile: OutputTile, lanes: int) -> None:
    """Compute one row by ABREAST panels from that of `tile` on, all of whose channels exist."""
    vectors, width = panels.vectors, panels.vectors * lanes
    apart = width * (panels.steps + 1)  # words
    if lhs.block_sums is not None:
        sums = contract_halved(1, vectors, lanes, lhs, lhs.block_sums, tile, ABREAST, width * panels.steps)
        apart = width * panels.steps // 4
    elif lhs.widened:
        sums = spilled(contract_widened(1, vectors, lanes, lhs, tile.panel, tile.rounded is None, ABREAST, apart))
    else:
        sums = spilled(contract(1, vectors, lanes, lhs, tile.panel, ABREAST, apart))
    for i in kl.loop(ABREAST):
        column, rest = tile.column + i * width, tile.rest - i * width
        part = tile._replace(column=column, rest=rest, panel=tile.panel + i * apart)
        write_tile(part, sums + i * width, 1, width, lanes)


@kl.family(addressed=True)
def gemm_int8(
    work: Work,
    x: ptr[i8],
    packed: ptr[i32],
    out: ptr[i8],
    quads: i64,
    x_pitch: i64,
    out_pitch: i64,
    features: i64,
    cut: Tiles,
    flip: i32,
    x_batch: i64,
    packed_batch: i64,
    scales: ptr[f32],
    zeros: ptr[i32],
    each: i64,
    blocks: i64,
    block_sums: ptr[i32],
    depth: i64,
    *more: i64,
    rows: int,
    vectors: int,
    short: bool,
    narrow: int,
    parts: int,
    rounded: bool,
    wide: bool,
    blocked: bool,
    tiled: Any,
    widened: Any,
    flipped: bool,
    bounded: int,
    halved: bool,
    grouped: Grouped | None,
    epilogue: Epilogue,
) -> None:
    """Compute out[b m + i, f] = epilogue(sum_k x[b][i, k] filter[b][f, k]): x at x_pitch, a packed filter, out at
    out_pitch.

    cut: tiles of the m rows of a batch; if short, tiles that are not tall have a row less than `rows`. Items: batches,
    x_batch and packed_batch apart, by blocks of tiles by panels, panels first.
    narrow, parts: see `PanelsInt8`. rounded: see `RowScales`. wide, blocked, tiled, depth, bounded, grouped: see
    `LhsInt8`; blocks: their number. widened: the dtype of rows that are widened, in scratch memory. halved: see
    `RegisterTile`; block_sums: of halved panels, see `sum_blocks`.
    """
    lanes, lookup_lanes = work.lanes(i32), work.target.vector_bytes
    width = vectors * lanes
    number = (features + (width - 1)) // width
    across, down = panel_blocks(cut, number), (cut.tiles + (cut.tile_block - 1)) // cut.tile_block
    ending = tile_epilogue(epilogue, more, work.target)
    output = ending.output(work, out, out_pitch, features, RowScales(scales, zeros, each) if rounded else None)
    lines, steps = blocks if blocked else 1 if parts == 1 else kl.value(parts), parts * quads
    if blocked:
        steps = halved_bytes(blocks, quads) if halved else blocks * (quads + 2) - 1
    shortened = short and tiled is None  # AMX computes all rows, of which short tiles store one less
    if tiled is not None:
        configure_tiles(rows, depth)
    for item in work.items():
        batch = item // (across * down)
        block = block_at(item % (across * down), cut, number, across)
        q, above = packed + batch * packed_batch, batch * (cut.tiles * (rows - 1) + cut.tall)
        panels = PanelRangeInt8(q, features, block.first, block.last, steps, vectors, narrow)
        for t in range(block.start, block.end):
            row, height = tile_start(t, cut.tall, rows, shortened), tile_rows(t, cut.tall, rows, short)
            count = None
            if short and tiled is not None:
                row, count = short_tile(t, cut.tiles - cut.tall, rows)
            lhs = LhsInt8(
                x + (batch * x_batch + row * x_pitch),
                x_pitch,
                quads,
                flip,
                lines,
                4 * quads if blocked else 0,
                wide=wide,
                blocked=blocked,
                tiled=tiled,
                depth=depth,
                bounded=bounded,
                grouped=grouped,
                signed=steps_for(work.target) in (1, 2),
            )
            if halved:
                lhs = lhs._replace(block_sums=block_sums + (above + row) * blocks)
            if widened is not None:
                copies = work.scratch(i16)
                elements = 4 * quads * blocks if blocked else 4 * quads
                widen_rows(lhs.p.cast(widened), x_pitch, copies, height, elements, 2 * lanes)
                lhs = lhs._replace(p=copies.cast(i8), pitch=2 * elements, line=2 * lhs.line, widened=True)
            if flipped:
                copies = work.scratch(i8)
                flip_rows(lhs.p, x_pitch, copies, height, 4 * quads, flip, work.target.vector_bytes)
                lhs = lhs._replace(p=copies, pitch=4 * quads, flipped=True)
            tile = output._replace(row=above + row, count=count)
            multiply_panels(lhs, panels, tile, rows, lanes, t < cut.tall if shortened else None)
            ending.look_up_block(tile, block, width, height if count is None else count, lookup_lanes)
    if tiled is not None:
        kl.tile_release()
