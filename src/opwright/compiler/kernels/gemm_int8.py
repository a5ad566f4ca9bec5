"""Matrix products of int8: the micro-kernel, rows at one pitch.

Lives here: `contract`, `tile`, `panels`, `flip_rows`, the family `gemm_int8`.
Not here: what becomes of sums (tile_writing.py), packed filters and how signs are kept (weight_packing_int8.py),
convolutions with windows (convolution_int8.py), the selectors (contractions_int8.py).

A tile of the output is rows x vectors registers of int32; each step takes four bytes of each row and of each channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from .epilogue import Epilogue
from .gemm_blocks import contract_blocks
from .gemm_int16 import contract_wide
from .gemm_neon import Grouped, contract_grouped, steps_for
from .gemm_tiles import contract_tiles, prepare, short_first
from .gemm_widened import LINE, add_bounded, contract_widened, widen_rows
from .tile_writing import Rounded, Sink, ending_of, kept_sums, together, write_registers, write_tile
from .tiling import Tiles

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value

FLIP = -0x7F7F7F80
"""The sign bits of four bytes, as int32."""

AHEAD = 16 << 10
"""Bytes of a filter that are asked for before they are needed: it may have to come from memory."""


POINTERS = 8
"""Rows that have registers of their own for where they begin."""


class Source(NamedTuple):
    """Rows of a tile: in line l and segment s, byte 4 k of row r is p[r * pitch + l * line + s * segment + 4 k].

    quads: k of a segment. flip: bits of each four bytes to change: FLIP makes signed ones unsigned. wide: two bytes
    are one number, see gemm_int16.py. blocked: a line is a block with scales of its own, see gemm_blocks.py.
    tiled: the dtype of rows that tiles multiply, `depth` quads at a time, see gemm_tiles.py. widened: elements are
    int16, see gemm_widened.py. flipped: they are unsigned copies, see `flip_rows`. bounded: steps whose sums int16
    holds, see gemm_widened.py. grouped: how rows are multiplied on 64-bit ARM, see gemm_neon.py. signed: whether bytes
    of blocks are multiplied as they are, without the 128 that makes them unsigned.
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


def contract(rows: int, vectors: int, lanes: int, source: Source, q: Pointer) -> Registers:
    """The micro-kernel: the sums of a tile, rows x vectors registers. q: the panel, int32."""
    sums = kl.registers(i32, lanes, rows, vectors)
    for v in range(vectors):
        start = q.load(v * lanes, lanes)
        for r in range(rows):
            sums[r, v] = start
    q = q + vectors * lanes
    pitch, flip = source.pitch, None if source.flipped else kl.opaque(source.flip.splat(lanes))
    for line in range(source.lines):
        for segment in range(source.segments):
            p = source.p + (line * source.line + segment * source.segment)
            if source.bounded:
                assert flip is not None  # rows are as they are where filters are bounded
                q = add_bounded(sums, p, pitch, source.quads, q, flip, source.bounded)
            else:
                q = _add_steps(sums, p, pitch, source.quads, q, flip)
    return sums


def _add_steps(sums: Registers, p: Pointer, pitch: Value, quads: Any, q: Pointer, flip: Value | None) -> Pointer:
    """Add the products of so many steps to the sums of a tile. Gives what follows the steps."""
    (rows, vectors), lanes = sums.shape, sums.count
    row = [(p + r * pitch).cast(i32) for r in range(rows)]
    if flip is None and rows <= POINTERS:
        row = [kl.opaque_pointer(one) for one in row]
    for k in range(quads):
        w = [kl.bitcast(q.load(v * lanes, lanes), i8) for v in range(vectors)]
        for at in range(0, vectors * lanes, LINE // 4):
            q.prefetch(AHEAD // 4 + at)
        for r in range(rows):
            x = row[r][k].splat(lanes)
            for v in range(vectors):
                sums[r, v] = kl.dot4(sums[r, v], kl.bitcast(x if flip is None else x ^ flip, u8), w[v])
        q = q + vectors * lanes
    return q


def flip_rows(x: Pointer, pitch: Any, target: Pointer, rows: Any, count: Any, flip: Value, lanes: int) -> None:
    """Write `rows` rows of `count` bytes, a multiple of four, with the bits of `flip` changed, one after the other."""
    flips = kl.opaque(flip.splat(lanes // 4))
    for _ in range(rows):
        if count >= lanes:
            for i in range(0, count, lanes):
                at = kl.minimum(i, count - lanes)
                target.store(x.load(at, lanes) ^ kl.bitcast(flips, i8), at)
        else:
            for i in range(0, count, 4):
                target.cast(i32)[i // 4] = x.cast(i32)[i // 4] ^ flip
        x, target = x + pitch, target + count


def tile(rows: int, vectors: int, lanes: int, source: Source, sink: Sink) -> None:
    """A tile of the output: its sums go through memory, and a loop over rows finishes them, which is little code.

    So many rows are finished at a time that their results are one vector. Light epilogues are computed in registers.
    """
    width = vectors * lanes
    if source.grouped is not None:
        found = contract_grouped(rows, vectors, lanes, source, source.grouped, sink.panel, sink.rounded is None)
        if sink.light:
            write_registers(sink, found, width, 1)
        else:
            write_tile(sink, kept_sums(found, width), rows, width, lanes)
    elif sink.light and rows > 1 and _is_of_vectors(source, sink):
        sums = contract(rows, vectors, lanes, source, sink.panel)
        found = [kl.joined([sums[r, v] for v in range(vectors)]) for r in range(rows)]
        write_registers(sink, found, width, together(sink, width, lanes))
    else:
        write_tile(sink, _contracted(rows, vectors, lanes, source, sink), rows, width, lanes)


def _is_of_vectors(source: Source, sink: Sink) -> bool:
    """Whether `contract` computes a tile, of bytes that were not floats."""
    others = source.wide, source.blocked, source.tiled is not None, source.widened, source.bounded, sink.rounded
    return not any(others)


def _contracted(rows: int, vectors: int, lanes: int, source: Source, sink: Sink) -> Pointer:
    """The sums of a tile in memory."""
    if source.wide:
        kept = contract_wide(rows, vectors, lanes, source, sink.panel)
    elif source.blocked:
        kept = contract_blocks(rows, vectors, lanes, source, sink)
    elif source.tiled is not None:
        kept = contract_tiles(rows, vectors, lanes, source, sink.panel, sink.rounded is None)
    elif source.widened:
        kept = contract_widened(rows, vectors, lanes, source, sink.panel, sink.rounded is None)
    else:
        kept = kl.stack(i32, rows * vectors * lanes)
        sums = contract(rows, vectors, lanes, source, sink.panel)
        for r in range(rows):
            for v in range(vectors):
                kept.store(sums[r, v], (r * vectors + v) * lanes)
    return kept


def panels(
    source: Source,
    packed: Pointer,
    steps: Value,
    sink: Sink,
    features: Value,
    first: Value,
    last: Value,
    rows: int,
    vectors: int,
    lanes: int,
    narrow: int,
) -> None:
    """A tile of rows by panels [first, last). steps: of the micro-kernel."""
    width = vectors * lanes
    for i in range(first, last):
        column = i * width
        q = packed.cast(i16) + column * steps if source.wide else packed + column * (steps + 1)
        there = sink._replace(column=column, rest=features - column, panel=q)
        if narrow:
            if features - column <= narrow * lanes:
                tile(rows, narrow, lanes, source, there)
            else:
                tile(rows, vectors, lanes, source, there)
        else:
            tile(rows, vectors, lanes, source, there)


def _rows_of(t: Any, cut: Tiles, rows: int, short: bool, tiled: Any) -> tuple[Any, Any]:
    """The first row of a tile, and how many rows are written, if not all that are computed."""
    if not short:
        return t * rows, None
    if tiled is not None:
        return short_first(t, cut.tiles - cut.tall, rows)
    return t * rows - kl.maximum(t - cut.tall, 0), None


@kl.family
def gemm_int8(
    work,
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
    grouped: Grouped | None,
    epilogue: Epilogue,
):
    """out[b m + i, f] = epilogue(sum_k x[b][i, k] filter[b][f, k]): x at x_pitch, a packed filter, out at out_pitch.

    cut: of a batch's m rows; tiles that are not tall (if short) have a row less than `rows`. Items: batches, x_batch
    and packed_batch apart, by blocks of tiles by panels, panels first.
    narrow: vectors of the last panel, see `Panels`. parts: of the filter, see `Panels`. rounded: see `Rounded`.
    wide, blocked, tiled, depth, bounded, grouped: see `Source`; blocks: how many there are. widened: the dtype of rows
    that are, in scratch memory.
    """
    lanes = work.lanes(i32)
    number = (features + (vectors * lanes - 1)) // (vectors * lanes)
    across = (number + (cut.panel_block - 1)) // cut.panel_block
    down = (cut.tiles + (cut.tile_block - 1)) // cut.tile_block
    ending = ending_of(epilogue, more, work.target)
    target = out.cast(ending.dtype, ending.dtype.size)
    masked = work.target.vector_bytes == 64
    there = Rounded(scales, zeros, each) if rounded else None
    lines, steps = blocks if blocked else 1 if parts == 1 else kl.value(parts), parts * quads
    if blocked:
        steps = blocks * (quads + 2) - 1
    if tiled is not None:
        prepare(rows, depth)
    for item in work.items():
        batch = item // (across * down)
        start = item // across % down * cut.tile_block
        first = item % across * cut.panel_block
        last = kl.minimum(first + cut.panel_block, number)
        q, above = packed + batch * packed_batch, batch * (cut.tiles * (rows - 1) + cut.tall)
        for t in range(start, kl.minimum(start + cut.tile_block, cut.tiles)):
            row, count = _rows_of(t, cut, rows, short, tiled)
            source = Source(
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
            if widened is not None:
                near = work.scratch(i16)
                number_of_rows = kl.select(t < cut.tall, kl.value(rows), rows - 1) if short else rows
                elements = 4 * quads * blocks if blocked else 4 * quads
                widen_rows(source.p.cast(widened), x_pitch, near, number_of_rows, elements, 2 * lanes)
                source = source._replace(p=near.cast(i8), pitch=2 * elements, line=2 * source.line, widened=True)
            if flipped:
                near = work.scratch(i8)
                number_of_rows = kl.select(t < cut.tall, kl.value(rows), rows - 1) if short else rows
                flip_rows(source.p, x_pitch, near, number_of_rows, 4 * quads, flip, work.target.vector_bytes)
                source = source._replace(p=near, pitch=4 * quads, flipped=True)
            sink = Sink(
                target, out_pitch, above + row, 0, features, ending.finish, masked, there, None, count, ending.light
            )
            if short and tiled is None:
                if t < cut.tall:
                    panels(source, q, steps, sink, features, first, last, rows, vectors, lanes, narrow)
                else:
                    panels(source, q, steps, sink, features, first, last, rows - 1, vectors, lanes, narrow)
            else:
                panels(source, q, steps, sink, features, first, last, rows, vectors, lanes, narrow)
            if ending.table is not None:
                written = rows if count is None else count
                if short and tiled is None:
                    written = kl.select(t < cut.tall, kl.value(rows), rows - 1)
                here, end = first * (vectors * lanes), kl.minimum(features, last * (vectors * lanes))
                place = target + ((above + row) * out_pitch + here)
                ending.look_up(place, out_pitch, written, end - here, work.target.vector_bytes)
    if tiled is not None:
        kl.tile_release()
