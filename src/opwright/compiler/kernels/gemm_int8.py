"""Matrix products of int8: the micro-kernel, rows at one pitch.

Lives here: `contract`, `tile`, `panels`, the family `gemm_int8`.
Not here: packed filters and how signs are kept (panels_int8.py), convolutions with windows (convolution_int8.py), the
makers (contractions_int8.py).

A tile of the output is rows x vectors registers of int32; each step takes four bytes of each row and of each channel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from .epilogue import Epilogue
from .gemm_blocks import contract_blocks
from .gemm_bounded import add_bounded
from .gemm_int16 import contract_wide
from .gemm_neon import Grouped, contract_grouped
from .gemm_tiles import contract_tiles, prepare, short_first
from .gemm_widened import contract_widened, widen_rows

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value

FLIP = -0x7F7F7F80
"""The sign bits of four bytes, as int32."""

AHEAD = 16 << 10
"""Bytes of a filter that are asked for before they are needed: it may have to come from memory."""


LIGHT = 16
"""Weight of an epilogue whose code may be there for each row of a tile."""


class Source(NamedTuple):
    """Rows of a tile: in line l and segment s, byte 4 k of row r is p[r * pitch + l * line + s * segment + 4 k].

    quads: k of a segment. flip: bits of each four bytes to change: FLIP makes signed ones unsigned. wide: two bytes
    are one number, see gemm_int16.py. blocked: a line is a block with scales of its own, see gemm_blocks.py.
    tiled: the dtype of rows that tiles multiply, `depth` quads at a time, see gemm_tiles.py. widened: elements are
    int16, see gemm_widened.py. bounded: steps whose sums int16 holds, see gemm_bounded.py. grouped: how rows are
    multiplied on 64-bit ARM, see gemm_neon.py.
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
    bounded: int = 0
    grouped: Grouped | None = None


def contract(rows: int, vectors: int, lanes: int, source: Source, q: Pointer) -> Registers:
    """The micro-kernel: the sums of a tile, rows x vectors registers. q: the panel, int32."""
    sums = kl.registers(i32, lanes, rows, vectors)
    for v in range(vectors):
        start = q.load(v * lanes, lanes)
        for r in range(rows):
            sums[r, v] = start
    q = q + vectors * lanes
    pitch, flip = source.pitch, kl.opaque(source.flip.splat(lanes))
    for line in range(source.lines):
        for segment in range(source.segments):
            p = source.p + (line * source.line + segment * source.segment)
            if source.bounded:
                q = add_bounded(sums, p, pitch, source.quads, q, flip, source.bounded)
            else:
                q = _add_steps(sums, p, pitch, source.quads, q, flip)
    return sums


def _add_steps(sums: Registers, p: Pointer, pitch: Value, quads: Any, q: Pointer, flip: Value) -> Pointer:
    """Add the products of so many steps to the sums of a tile. Gives what follows the steps."""
    (rows, vectors), lanes = sums.shape, sums.count
    for k in range(quads):
        w = [kl.bitcast(q.load(v * lanes, lanes), i8) for v in range(vectors)]
        for v in range(vectors):
            q.prefetch(AHEAD // 4 + v * lanes)
        for r in range(rows):
            x = kl.bitcast((p + r * pitch).cast(i32)[k].splat(lanes) ^ flip, u8)
            for v in range(vectors):
                sums[r, v] = kl.dot4(sums[r, v], x, w[v])
        q = q + vectors * lanes
    return q


class Rounded(NamedTuple):
    """Rows that were floats: row r of the output is of scales[r // each] and zeros[r // each]."""

    scales: Pointer
    zeros: Pointer
    each: Any


class Sink(NamedTuple):
    """Where a tile is written: out[row * pitch + column], `rest` channels from `column` on.

    rounded: what makes floats of the sums, if the input was rounded; panel: of the filter. count: how many rows are
    written, if not all. light: whether the epilogue is few instructions.
    """

    out: Pointer
    pitch: Value
    row: Any
    column: Any
    rest: Any
    finish: Callable[..., Value]
    masked: bool
    rounded: Any = None
    panel: Any = None
    count: Any = None
    light: bool = False

    def value(self, sums: Value, r: Any, c: Any) -> Value:
        """What the epilogue is given for sums of row r and of the panel's channels from c on.

        A panel starts with -128 times the sums of the weights where there is no bias, and no zero point but the rows'.
        """
        if self.rounded is None:
            return sums
        at = (self.row + r) // self.rounded.each
        if sums.dtype is f32:
            return sums * self.rounded.scales[at]
        weights = self.panel.load(c, sums.count) >> 7
        return (sums + weights * self.rounded.zeros[at]).to(f32) * self.rounded.scales[at]


def tile(rows: int, vectors: int, lanes: int, source: Source, sink: Sink) -> None:
    """A tile of the output: its sums go through memory, and a loop over rows finishes them, which is little code.

    So many rows are finished at a time that their results are one vector. Light epilogues on 64-bit ARM are computed in
    registers.
    """
    width = vectors * lanes
    if source.grouped is not None:
        found = contract_grouped(rows, vectors, lanes, source, source.grouped, sink.panel, sink.rounded is None)
        if sink.light:
            _write_registers(sink, found, width)
        else:
            _write_tile(sink, _kept(found, width), rows, width, lanes)
    else:
        _write_tile(sink, _contracted(rows, vectors, lanes, source, sink), rows, width, lanes)


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


def _kept(found: list[Value], width: int) -> Pointer:
    """The sums of each row in memory."""
    kept = kl.stack(i32, len(found) * width)
    for r in range(len(found)):
        kept.store(found[r], r * width)
    return kept


def _write_registers(sink: Sink, found: list[Value], width: int) -> None:
    """Finish and write the sums of each row."""
    if sink.rest >= width:
        for r in range(len(found)):
            _write(sink, found[r], r, 0, width)
    else:
        _write_some(sink, _kept(found, width), len(found), width)


def _write_tile(sink: Sink, kept: Pointer, rows: int, width: int, lanes: int) -> None:
    if sink.masked or sink.rest >= width:
        _write_rows(sink, kept, rows, width, lanes)
    else:
        _write_some(sink, kept, rows, width)


def _write_some(sink: Sink, kept: Pointer, rows: int, width: int) -> None:
    """The channels that there are, one by one."""
    for r in kl.loop(rows):
        for c in range(sink.rest):
            _write(sink, kept[r * width + c], r, c, 0)


def _write_rows(sink: Sink, kept: Pointer, rows: int, width: int, lanes: int) -> None:
    """All rows of a tile, with as many of their channels as there are."""
    alone = sink.rounded is not None or kept.dtype is not i32
    group = 1 if alone else max(1, 4 * lanes // (width * sink.out.dtype.size))
    mask = kl.first(sink.rest, width) if sink.masked else None
    count = rows if sink.count is None else sink.count
    for r in kl.loop(0, count // group * group, group):
        _write(sink, kept.load(r * width, group * width), r, 0, width, mask, group)
    for r in range(count // group * group, count):
        _write(sink, kept.load(r * width, width), r, 0, width, mask)


def _write(sink: Sink, sums: Value, r: Any, c: Any, lanes: int, mask: Value | None = None, rows: int = 1) -> None:
    found = sink.finish(sink.value(sums, r, c), sink.row + r, sink.column + c, lanes, mask, rows)
    for i in range(rows):
        one = found if rows == 1 else kl.part(found, i * lanes, lanes)
        (sink.out + (sink.row + r + i) * sink.pitch + sink.column).store(one, c, mask)


def panels(source: Source, packed: Pointer, steps: Value, sink: Sink, features: Value, first: Value, last: Value,
           rows: int, vectors: int, lanes: int, narrow: int) -> None:  # fmt: skip
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


def _rows_of(t: Any, tiles: Value, tall: Value, rows: int, short: bool, tiled: Any) -> tuple[Any, Any]:
    """The first row of a tile, and how many rows are written, if not all that are computed."""
    if not short:
        return t * rows, None
    if tiled is not None:
        return short_first(t, tiles - tall, rows)
    return t * rows - kl.maximum(t - tall, 0), None


@kl.family
def gemm_int8(work, x: ptr[i8], packed: ptr[i32], out: ptr[i8], quads: i64, x_pitch: i64, out_pitch: i64,
              features: i64, tiles: i64, tall: i64, tile_block: i64, panel_block: i64, flip: i32, x_batch: i64,
              packed_batch: i64, scales: ptr[f32], zeros: ptr[i32], each: i64, blocks: i64, depth: i64, *more: i64,
              rows: int, vectors: int, short: bool, narrow: int, parts: int, rounded: bool, wide: bool, blocked: bool,
              tiled: Any, widened: Any, bounded: int, grouped: Grouped | None, epilogue: Epilogue):  # fmt: skip
    """out[b m + i, f] = epilogue(sum_k x[b][i, k] filter[b][f, k]): x at x_pitch, a packed filter, out at out_pitch.

    tiles: of a batch's m rows, `tall` of them of `rows` rows and the others (if short) of one less. Items:
    batches, x_batch and packed_batch apart, by blocks of tile_block tiles by panel_block panels, panels first.
    narrow: vectors of the last panel, see `Panels`. parts: of the filter, see `Panels`. rounded: see `Rounded`.
    wide, blocked, tiled, depth, bounded, grouped: see `Source`; blocks: how many there are. widened: the dtype of rows
    that are, in scratch memory.
    """
    lanes = work.lanes(i32)
    number = (features + (vectors * lanes - 1)) // (vectors * lanes)
    across = (number + (panel_block - 1)) // panel_block
    down = (tiles + (tile_block - 1)) // tile_block
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    masked = work.target.vector_bytes == 64
    finish, light = epilogue.bind(more), epilogue.weight <= LIGHT
    there = Rounded(scales, zeros, each) if rounded else None
    lines, steps = blocks if blocked else 1 if parts == 1 else kl.value(parts), parts * quads
    if blocked:
        steps = blocks * (quads + 2) - 1
    if tiled is not None:
        prepare(rows, depth)
    for item in work.items():
        batch = item // (across * down)
        start = item // across % down * tile_block
        first = item % across * panel_block
        last = kl.minimum(first + panel_block, number)
        q, above = packed + batch * packed_batch, batch * (tiles * (rows - 1) + tall)
        for t in range(start, kl.minimum(start + tile_block, tiles)):
            row, count = _rows_of(t, tiles, tall, rows, short, tiled)
            source = Source(x + (batch * x_batch + row * x_pitch), x_pitch, quads, flip, lines,
                            4 * quads if blocked else 0, wide=wide, blocked=blocked, tiled=tiled, depth=depth,
                            bounded=bounded, grouped=grouped)
            if widened is not None:
                near = work.scratch(i16)
                number_of_rows = kl.select(t < tall, kl.value(rows), rows - 1) if short else rows
                elements = 4 * quads * blocks if blocked else 4 * quads
                widen_rows(source.p.cast(widened), x_pitch, near, number_of_rows, elements, 2 * lanes)
                source = source._replace(p=near.cast(i8), pitch=2 * elements, line=2 * source.line, widened=True)
            sink = Sink(target, out_pitch, above + row, 0, features, finish, masked, there, None, count, light)
            if short and tiled is None:
                if t < tall:
                    panels(source, q, steps, sink, features, first, last, rows, vectors, lanes, narrow)
                else:
                    panels(source, q, steps, sink, features, first, last, rows - 1, vectors, lanes, narrow)
            else:
                panels(source, q, steps, sink, features, first, last, rows, vectors, lanes, narrow)
    if tiled is not None:
        kl.tile_release()
