"""Matrix products of float32: the micro-kernels, rows at one pitch.

Lives here: `Panels` (how a filter is packed), `panels` (a tile of rows by panels), `gemm`, `gemm_step`.
Not here: packing (weight_packing_f32.py), convolutions with windows (convolution_f32.py), few rows (gemv_f32.py), the
selectors (contractions_f32.py, matmul.py).

A tile of the output is rows x 2 registers; each step of the sum loads two vectors of the filter once and one number of
each row. The filter is packed in panels of so many channels,

    panel[0] = what the sums start with (the bias), panel[1 + k] = filter[channels, k],

zero beyond the last channel. Where the last panel has no more than three quarters of its channels, it is of `halves`
vectors that each hold half as many channels, two steps side by side: the numbers of a row are read in pairs, and even
and odd steps are added in the end. So 24 channels cost what they should.

Instructions of 64-bit ARM multiply by a lane: there a row's numbers are loaded four at a time (`by_lane`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i64, ptr
from ..target import Target
from ..tuning.choices import BLOCKS_F32
from .epilogue import Epilogue
from .tiling import Tiles, balanced, blocks, chunk_of, for_two, has_all_panels, is_order_felt

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value
    from ..loops.plan_builder import Builder

LIGHT = 6
"""Weight of epilogues that are computed in registers, one after the other; others are a loop over rows."""


AHEAD = 128
"""Steps that a filter is asked for before it is needed: large networks' filters come from memory every time, which
hides no other way (a third of their time); filters that are in the caches lose nothing by it."""


class Panels(NamedTuple):
    """How a filter [features, segments, run] is packed for a target with so many registers of so many lanes.

    by_lane: whether numbers of rows are loaded a vector at a time.
    """

    features: int
    segments: int
    run: int
    registers: int
    lanes: int
    by_lane: bool = False

    @property
    def depth(self) -> int:
        """Steps of a sum."""
        return self.segments * self.run

    @property
    def width(self) -> int:
        """Channels of a panel."""
        return 2 * self.lanes

    @property
    def number(self) -> int:
        """How many panels."""
        return -(-self.features // self.width)

    @property
    def halves(self) -> int:
        """Vectors of the last panel where each holds half as many channels, two steps side by side; or 0."""
        count = -(-(self.features % self.width) // (self.lanes // 2))
        return count if count < 4 else 0

    @property
    def wide(self) -> bool:
        """Whether there are panels of two vectors."""
        return self.number > 1 or self.halves == 0

    @property
    def rows(self) -> int:
        """The most rows of a tile: its sums leave registers for the filter and a row's number, or a vector of each."""
        if self.wide and self.by_lane:
            return (self.registers - 4) // 3
        return (
            (self.registers - 4) // 2
            if self.wide
            else {1: self.registers - 4, 2: (self.registers - 4) // 2, 3: self.registers // 4}[self.halves]
        )

    @property
    def size(self) -> int:
        """Floats that they take."""
        last = self.halves * self.lanes * (self.segments * -(-self.run // 2) + 1)
        return (self.number - (self.halves > 0)) * self.width * (self.depth + 1) + last


def panels_of(target: Target, features: int, run: int, segments: int = 1) -> Panels:
    """How a filter [features, segments, run] is packed for a target."""
    return Panels(features, segments, run, target.registers, target.vector_bytes // 4, multiplies_by_lane(target))


def multiplies_by_lane(target: Target) -> bool:
    """Whether instructions multiply a vector by a lane of another."""
    return target.is_aarch64


# ---- in kernels -------------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """Rows of a tile: row r, segment s, step k is p[r * pitch + s * stride + k], for `segments` of `run` steps.

    by_lane: see `Panels`.
    """

    p: Pointer
    pitch: Any
    segments: Any
    stride: Any
    run: Any
    by_lane: bool


def contract(rows: int, vectors: int, lanes: int, source: Source, q: Pointer) -> Registers:
    """The micro-kernel: the sums of a tile, rows x vectors registers. q: the panel."""
    sums = kl.registers(f32, lanes, rows, vectors)
    for v in range(vectors):
        start = q.load(v * lanes, lanes)
        for r in range(rows):
            sums[r, v] = start
    q = q + vectors * lanes
    p, pitch = source.p, source.pitch
    for _ in range(source.segments):
        done = kl.value(0)
        if source.by_lane:
            done = source.run // lanes * lanes
            near = [kl.opaque_pointer(p + r * pitch).cast(i8) for r in range(rows)]
            at, end = kl.value(0), done // (2 * lanes) * (8 * lanes)
            while at < end:  # twice, so that counting and branching are half as much
                _add_by_lane(sums, near, at, q)
                at = kl.opaque(at + 4 * lanes)
                _add_by_lane(sums, near, at, q + lanes * vectors * lanes)
                at = kl.opaque(at + 4 * lanes)
                q = q + 2 * lanes * vectors * lanes
            if end < 4 * done:
                _add_by_lane(sums, near, end, q)
                q = q + lanes * vectors * lanes
        for k in range(done, source.run):
            w = [q.load(v * lanes, lanes) for v in range(vectors)]
            for v in range(vectors):
                q.prefetch((AHEAD * vectors + v) * lanes)
            for r in range(rows):
                x = (p + r * pitch)[k]
                for v in range(vectors):
                    sums[r, v] = kl.fma(x, w[v], sums[r, v])
            q = q + vectors * lanes
        p = p + source.stride
    return sums


def _add_by_lane(sums: Registers, near: list[Pointer], at: Any, q: Pointer) -> None:
    """Add the products of as many steps as a vector has lanes. near: the rows; at: the steps' first byte there."""
    (rows, vectors), lanes = sums.shape, sums.count
    x = [kl.bitcast(near[r].load(at, 4 * lanes), f32) for r in range(rows)]
    for i in range(lanes):
        w = [q.load((i * vectors + v) * lanes, lanes) for v in range(vectors)]
        for r in range(rows):
            number = kl.shuffle(x[r], None, [i] * lanes)
            for v in range(vectors):
                sums[r, v] = kl.fma(number, w[v], sums[r, v])


def contract_pairs(rows: int, halves: int, lanes: int, source: Source, first: int, q: Pointer) -> Registers:
    """The micro-kernel of a last panel of `halves` vectors: rows from `first` on. Sums in the order of channels."""
    pairs = kl.registers(f32, lanes, rows, halves)
    for v in range(halves):
        start = q.load(v * lanes, lanes)
        for r in range(rows):
            pairs[r, v] = start
    q = q + halves * lanes
    pitch = source.pitch
    p = source.p + first * pitch
    first_of_pair = kl.constant_vector(kl.bool1, [i % 2 == 0 for i in range(lanes)])
    for _ in range(source.segments):
        for k in range(0, source.run - 1, 2):
            w = [q.load(v * lanes, lanes) for v in range(halves)]
            for r in range(rows):
                x = kl.bitcast((p + r * pitch + k).cast(kl.f64, 4)[0].splat(lanes // 2), f32)
                for v in range(halves):
                    pairs[r, v] = kl.fma(x, w[v], pairs[r, v])
            q = q + halves * lanes
        if source.run % 2 > 0:
            w = [q.load(v * lanes, lanes) for v in range(halves)]
            for r in range(rows):
                x = kl.select(first_of_pair, (p + r * pitch)[source.run - 1].splat(lanes), 0.0)
                for v in range(halves):
                    pairs[r, v] = kl.fma(x, w[v], pairs[r, v])
            q = q + halves * lanes
        p = p + source.stride
    sums = kl.registers(f32, lanes, rows, (halves + 1) // 2)
    even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    for r in range(rows):
        for v in range(0, halves, 2):
            a, b = pairs[r, v], pairs[r, min(v + 1, halves - 1)]
            sums[r, v // 2] = kl.shuffle(a, b, even) + kl.shuffle(a, b, odd)
    return sums


class Sink(NamedTuple):
    """Where a tile is written: out[row * pitch + column], `rest` channels from `column` on."""

    out: Pointer
    pitch: Value
    row: Any
    column: Any
    rest: Value
    finish: Callable[..., Value]
    light: bool
    masked: bool


def write(sums: Registers, rows: int, vectors: int, lanes: int, sink: Sink) -> None:
    """Finish the sums of a tile and write them."""
    if sink.light and sink.masked:
        masks = [kl.first(sink.rest - v * lanes, lanes) for v in range(vectors)]
        for r in range(rows):
            for v in range(vectors):
                _write(sink, sums[r, v], r, v * lanes, lanes, masks[v])
    elif sink.light:
        if sink.rest >= vectors * lanes:
            for r in range(rows):
                for v in range(vectors):
                    _write(sink, sums[r, v], r, v * lanes, lanes, None)
        else:
            _write_later(sums, rows, vectors, lanes, sink, False)
    else:
        _write_later(sums, rows, vectors, lanes, sink, True)


def _write_later(sums: Registers, rows: int, vectors: int, lanes: int, sink: Sink, whole: bool) -> None:
    """Through memory, by a loop over rows: little code. whole: there are tiles with all their channels."""
    width = vectors * lanes
    kept = kl.stack(f32, rows * width)
    for r in range(rows):
        for v in range(vectors):
            kept.store(sums[r, v], r * width + v * lanes)
    if sink.masked:
        masks = [kl.first(sink.rest - v * lanes, lanes) for v in range(vectors)]
        for r in kl.loop(rows):
            for v in range(vectors):
                _write(sink, kept.load(r * width + v * lanes, lanes), r, v * lanes, lanes, masks[v])
    else:
        full = sink.rest >= width if whole else kl.value(0)
        if full:
            for r in kl.loop(rows):
                for v in range(vectors):
                    _write(sink, kept.load(r * width + v * lanes, lanes), r, v * lanes, lanes, None)
        else:
            for r in kl.loop(rows):
                for c in range(sink.rest):
                    _write(sink, kept[r * width + c], r, c, 0, None)


def _write(sink: Sink, sums: Value, r: Any, c: Any, lanes: int, mask: Value | None) -> None:
    found = sink.finish(sums, sink.row + r, sink.column + c, lanes, mask)
    (sink.out + (sink.row + r) * sink.pitch + sink.column).store(found, c, mask)


def panels(
    source: Source,
    packed: Pointer,
    sink: Sink,
    features: Value,
    first: Value,
    last: Value,
    rows: int,
    lanes: int,
    wide: bool,
    halves: int,
) -> None:
    """A tile of rows by panels [first, last). wide, halves: which panels there are, see `Panels`."""
    width = 2 * lanes
    depth = source.segments * source.run
    for i in range(first, last):
        column = i * width
        q = packed + column * (depth + 1)
        there = sink._replace(column=column, rest=features - column)
        if wide and halves:
            if features - column < width:
                _last_panel(source, q, there, rows, lanes, halves, wide)
            else:
                write(contract(rows, 2, lanes, source, q), rows, 2, lanes, there)
        elif wide:
            write(contract(rows, 2, lanes, source, q), rows, 2, lanes, there)
        else:
            _last_panel(source, q, there, rows, lanes, halves, wide)


def _last_panel(source: Source, q: Pointer, sink: Sink, rows: int, lanes: int, halves: int, wide: bool) -> None:
    split = rows // 2 if wide and halves == 3 else 0  # registers hold three vectors of so many rows, not of all
    parts = [(0, rows - split), (rows - split, split)] if split else [(0, rows)]
    for start, count in parts:
        there = sink._replace(row=sink.row + start)
        write(contract_pairs(count, halves, lanes, source, start, q), count, (halves + 1) // 2, lanes, there)


@kl.family
def gemm(
    work,
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
):
    """out[m, f] = epilogue(sum_k x[m, k] filter[f, k]): x at x_pitch, a packed filter, out at out_pitch.

    cut: of rows; tiles that are not tall (if short) have a row less than `rows`. Items: blocks of tiles by panels,
    panels first. wide, halves: see `Panels`. Of several products, each has batch_items items; the next one's
    operands are x_batch and packed_batch floats on, its output batch_rows rows.
    """
    lanes = work.lanes(f32)
    number = (features + (2 * lanes - 1)) // (2 * lanes)
    across = (number + (cut.panel_block - 1)) // cut.panel_block
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    masked, light = work.target.vector_bytes == 64, epilogue.weight <= LIGHT
    finish, by_lane = epilogue.bind(more), multiplies_by_lane(work.target)
    for item in work.items():
        batch, block = item // batch_items, item % batch_items
        start = block // across * cut.tile_block
        first = block % across * cut.panel_block
        last = kl.minimum(first + cut.panel_block, number)
        q = packed + batch * packed_batch
        for t in range(start, kl.minimum(start + cut.tile_block, cut.tiles)):
            row = kl.value(t) * rows
            if short:
                row = row - kl.maximum(t - cut.tall, 0)
            source = Source(x + (batch * x_batch + row * x_pitch), x_pitch, 1, 0, depth, by_lane)
            sink = Sink(target, out_pitch, batch * batch_rows + row, 0, features, finish, light, masked)
            if short:
                if t < cut.tall:
                    panels(source, q, sink, features, first, last, rows, lanes, wide, halves)
                else:
                    panels(source, q, sink, features, first, last, rows - 1, lanes, wide, halves)
            else:
                panels(source, q, sink, features, first, last, rows, lanes, wide, halves)


class Product(NamedTuple):
    """Rows of a product, and of how many: x[row, k] at `pitch`; products, their operands and outputs `..._batch` on."""

    rows: int
    pitch: int
    products: int = 1
    x_batch: int = 0
    packed_batch: int = 0


def gemm_step(
    build: Builder,
    panels: Panels,
    x: Any,
    packed: Any,
    out: Any,
    out_pitch: int,
    product: Product,
    epilogue: Epilogue,
    more: Sequence[Any],
) -> None:
    """Add the step of a product with a packed filter. x, packed, out: addresses."""
    depth = panels.depth
    cut = balanced(product.rows, panels.rows)
    work = 2 * cut.height * depth * panels.width
    panel_bytes = panels.width * depth * 4
    by_default = int(has_all_panels(cut.tiles, panels.number, panel_bytes))
    ways = (0, 1) if is_order_felt(cut.tiles, panels.number, panel_bytes) else (by_default,)
    all_panels = build.choose(BLOCKS_F32, ways, by_default, product.rows, depth, panels.features) > 0
    block = blocks(cut.tiles, panels.number, cut.height * depth * 4, panel_bytes, work, all_panels)
    block = for_two(block, cut.tiles, panels.number)
    words = [
        x,
        packed,
        out,
        depth,
        product.pitch,
        out_pitch,
        panels.features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        block.items,
        product.x_batch,
        product.packed_batch,
        product.rows,
        *more,
    ]
    code = gemm.code(
        more=len(more),
        rows=cut.height,
        short=cut.tall != cut.tiles,
        wide=panels.wide,
        halves=panels.halves,
        epilogue=epilogue,
    )
    items = block.items * product.products
    build.step(code, words, items, chunk=chunk_of(work * cut.tiles * panels.number * product.products, items))
