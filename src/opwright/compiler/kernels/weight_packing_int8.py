"""Filters of int8 packed in panels for the micro-kernel of integers.

Lives here: `Panels` (what a packed filter is), `Tile`, the family `pack_int8`, packing at once and as a step.
Not here: who reads panels (gemm_int8.py).

Four bytes of a row meet four bytes of each channel in one instruction (`kl.dot4`), which takes one side unsigned. So a
row's bytes are read as x + 128 (a flipped sign bit), and the sums start with what makes up for it:

    s = sum_k (x_k + 128) w_k + (bias - (128 + input_zero) sum_k w_k)

which is exact in int32. Tiles (gemm_tiles.py), rows that are widened (gemm_widened.py) and 64-bit ARM (gemm_neon.py)
take either sign: for them starts make up for input_zero alone.

A filter is [features, lines, run]: `lines` runs of neighbouring bytes. A panel has so many channels: int32 starts
first, then for each line and each four of its run the channels' four bytes. Zero weights stand beyond the end of a run,
so whatever bytes a row has there count nothing.

Weights less their zero point may need nine bits. They are split in parts of eight, whose lines follow one another, and
the rows are read once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, int4, uint8
from .. import language as kl
from ..language import i8, i32, i64, ptr, u8
from ..language.families import FamilyCode
from ..loops.buffers import Buffer
from ..native import executor
from ..target import Target
from .gemm_neon import LANES, order_groups, shape_for, steps_for, whole_steps
from .gemm_widened import order_steps, widens

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.plan_builder import Builder


class Tile(NamedTuple):
    """The most rows of a tile, and its vectors in a row; lanes: channels in a vector.

    depth: steps at a time, where the processor's tiles compute (gemm_tiles.py), else 0. widened: whether rows of bytes
    are widened (gemm_widened.py). flipped: whether rows are copied as unsigned bytes (gemm_int8.py).
    bounded: steps whose sums int16 holds (gemm_widened.py), or 0. grouped: steps of a panel that stand together on
    64-bit ARM (gemm_neon.py), or 0; padded: whether runs have `whole_steps` of them.
    """

    rows: int
    vectors: int
    lanes: int
    depth: int = 0
    widened: bool = False
    flipped: bool = False
    bounded: int = 0
    grouped: int = 0
    padded: bool = False

    @property
    def width(self) -> int:
        """Channels in a panel."""
        return self.vectors * self.lanes

    def offset(self, zero: int, dtype: DType) -> int:
        """What rows' bytes are too large by as they are multiplied. zero: their zero point."""
        if self.depth or self.widened:
            return zero
        if self.grouped:
            return zero - (128 if dtype is uint8 else 0)
        return zero + (0 if dtype is uint8 else 128)


def tile_of(target: Target, features: int, bounded: int = 0) -> Tile:
    """The tile for so many output channels: all registers but what the filter, one row's bytes and their signs take.

    bounded: see `Tile`. Where registers are few and channels more than a panel, rows are copied with their signs
    flipped: that spares the product the instruction and the register for signs. Of rows that are widened, products take
    one before they are added. Where few registers are left besides, LLVM keeps sums in memory; and sums of integers
    have no latency to hide, so that a row less costs little.
    """
    lanes = target.vector_bytes // 4
    vectors = 1 if features <= lanes else 2
    widened = widens(target) and not bounded
    flipped = bool(target.vnni_lanes) and target.registers < 32 and features > vectors * lanes
    others = 8 if widened or bounded else 4 if flipped or target.registers == 32 else 6
    rows = (target.registers - others) // vectors
    return Tile(rows, vectors, lanes, widened=widened, flipped=flipped, bounded=bounded)


def grouped_tile(target: Target, features: int) -> Tile | None:
    """The tile of 64-bit ARM for so many output channels; None on other targets."""
    steps = steps_for(target)
    return Tile(*shape_for(steps, features), LANES, grouped=steps) if steps else None


def parts_of(dtype: DType, zero: int) -> int:
    """How many parts of 8 bits weights less their zero point are: up to 255 they are two of 127 and one."""
    return 1 if dtype is not uint8 and zero == 0 else 3 if zero == int(dtype.min) else 2


class Panels(NamedTuple):
    """How a filter [features, lines, run] is packed. parts: of eight bits; one weight is their sum.

    joined: whether the lines of a row of the input follow one another, as those of copied windows do.
    """

    features: int
    lines: int
    run: int
    tile: Tile
    parts: int = 1
    joined: bool = False

    @property
    def quads(self) -> int:
        """Steps of the micro-kernel for a line."""
        quads = -(-self.run // 4)
        return whole_steps(self.tile.grouped, quads) if self.tile.padded else quads

    @property
    def steps(self) -> int:
        """Steps of the micro-kernel in all."""
        return self.parts * self.lines * self.quads

    @property
    def number(self) -> int:
        """How many panels."""
        return -(-self.features // self.tile.width)

    @property
    def narrow(self) -> int:
        """Vectors of the last panel where it has fewer than others, else 0."""
        vectors = -(-(self.features % self.tile.width) // self.tile.lanes)
        return vectors if vectors < self.tile.vectors else 0

    @property
    def last(self) -> int:
        """Channels that the last panel has room for."""
        return (self.narrow or self.tile.vectors) * self.tile.lanes

    @property
    def size(self) -> int:
        """Numbers of 4 bytes that they take."""
        return ((self.number - 1) * self.tile.width + self.last) * (self.steps + 1) if self.number else 0


@kl.family
def pack_int8(
    work,
    source: ptr[u8],
    bias: ptr[i32],
    packed: ptr[i32],
    features: i64,
    lines: i64,
    run: i64,
    pitch: i64,
    step: i64,
    zero: i64,
    offset: i32,
    source_batch: i64,
    packed_batch: i64,
    *,
    dtype: Any,
    vectors: int,
    narrow: int,
    biased: bool,
    parts: int,
    ordered: bool,
    grouped: int,
    joined: bool,
    padded: bool,
):
    """Panels of filters of 8 bits, or of int4 in a byte each: channels are `pitch` apart, bytes of their runs `step`.

    zero: of the weights. offset: what a row's bytes are too large by when the micro-kernel reads them. Items: batches,
    source_batch and packed_batch apart, by panels. Without a bias sums start with 0. ordered: steps are, as
    gemm_widened.py takes them; grouped: as gemm_neon.py does, by so many steps;
    joined: see `Panels`; padded: see `Tile`.
    """
    lanes = work.lanes(i32)
    width = vectors * lanes
    number = (features + (width - 1)) // width
    own = (run + 3) // 4
    quads = whole_steps(grouped, own) if padded else own
    steps = parts * lines * quads
    pieces, length = (parts, lines * quads) if joined else (parts * lines, quads)
    for item in work.items():
        batch, first = item // number, item % number * width
        filters = source.cast(u8 if dtype is u8 else i8) + (batch * source_batch + first * pitch)
        out = packed + (batch * packed_batch + first * (steps + 1))
        count = kl.minimum(features - first, width)
        wide = kl.value(width)
        if narrow:
            wide = kl.select(count <= narrow * lanes, narrow * lanes, wide)
        into = out + wide
        for part in range(parts):
            for line in range(lines):
                p = filters + line * run * step
                if (step == 1) & (parts == 1):
                    _pack_words(p, into, count, wide, run, pitch, dtype is int4)
                    if run % 4 != 0:
                        tail = run // 4 * 4
                        _pack_bytes(
                            p + tail,
                            into + tail // 4 * wide,
                            count,
                            wide,
                            pitch,
                            step,
                            zero,
                            run % 4,
                            part,
                            dtype is int4,
                        )
                elif (pitch == 1) & (lanes == 16):
                    for k in range(0, run, 4):
                        _pack_across(
                            p + k * step,
                            into + k // 4 * wide,
                            count,
                            wide,
                            step,
                            zero,
                            kl.minimum(run - k, 4),
                            part,
                            lanes,
                        )
                else:
                    for k in range(0, run, 4):
                        _pack_bytes(
                            p + k * step,
                            into + k // 4 * wide,
                            count,
                            wide,
                            pitch,
                            step,
                            zero,
                            kl.minimum(run - k, 4),
                            part,
                            dtype is int4,
                        )
                if padded:
                    for k in range(own * wide, quads * wide):
                        into[k] = 0
                into = into + quads * wide
        for v in range(0, wide, lanes):
            total = kl.zeros(i32, lanes)
            for k in range(1, steps + 1):
                total = kl.dot4(total, kl.full(u8, 4 * lanes, 1), kl.bitcast(out.load(k * wide + v, lanes), i8))
            out.store(total * -offset, v)
        if biased:
            for c in range(count):
                out[c] = out[c] + bias[first + c]
        if (ordered or grouped > 1) and narrow:
            if count <= narrow * lanes:
                _order(out + wide, pieces, length, narrow, lanes, grouped)
            else:
                _order(out + wide, pieces, length, vectors, lanes, grouped)
        elif ordered or grouped > 1:
            _order(out + wide, pieces, length, vectors, lanes, grouped)


def _order(q: Pointer, lines: Any, quads: Any, vectors: int, lanes: int, grouped: int) -> None:
    """Order the steps of a panel, line by line."""
    for line in range(lines):
        into = q + line * (quads * vectors * lanes)
        if grouped:
            order_groups(into, quads, vectors, lanes, grouped)
        else:
            order_steps(into, quads, vectors, lanes)


def _pack_words(
    rows: Pointer, out: Pointer, count: Value, wide: Value, run: Value, pitch: Value, nibbles: bool
) -> None:
    """Whole fours of neighbouring bytes as they are. nibbles: only their lower halves count, as int4."""
    for k in range(run // 4):
        p = rows + k * 4
        for c in range(count):
            x = p.cast(i32)[0]
            if nibbles:  # in each byte x ^ 8 - 8, held above 0 so that none borrows from the next
                x = (((x & 0x0F0F0F0F) ^ -0x77777778) - 0x08080808) ^ -0x7F7F7F80
            out[k * wide + c] = x
            p = p + pitch
        for c in range(count, wide):
            out[k * wide + c] = 0


def _pack_bytes(
    rows: Pointer,
    out: Pointer,
    count: Value,
    wide: Value,
    pitch: Value,
    step: Value,
    zero: Value,
    n: Any,
    part: int,
    nibbles: bool,
) -> None:
    """The next n bytes of each channel, up to four."""
    for c in range(count):
        found = kl.value(0, i32)
        for j in range(n):
            x = (rows + (c * pitch + j * step))[0].to(i32)
            if nibbles:
                x = (x << 28) >> 28
            x = x - zero.to(i32)
            for _ in range(part):
                x = x - kl.clamp(x, -128, 127)
            found = found | ((kl.clamp(x, -128, 127) & 255) << (kl.value(j) * 8).to(i32))
        out[c] = found
    for c in range(count, wide):
        out[c] = 0


def _pack_across(
    rows: Pointer, out: Pointer, count: Value, wide: Value, step: Value, zero: Value, n: Any, part: int, lanes: int
) -> None:
    """The next n bytes of channels that are neighbours, a vector of channels at a time. Bytes of int8 or uint8."""
    for v in range(0, wide, lanes):
        there = kl.first(count - v, lanes)
        found = kl.zeros(i32, lanes)
        for j in range(n):
            x = (rows + j * step).load(v, lanes, there).to(i32) - zero.to(i32)
            for _ in range(part):
                x = x - kl.clamp(x, -128, 127)
            shift = (kl.value(j) * 8).to(i32).splat(lanes)
            found = found | ((kl.clamp(x, -128, 127) & 255) << shift)
        out.store(kl.select(there, found, 0), v)


def pack_code(panels: Panels, dtype: DType, biased: bool = False) -> FamilyCode:
    """The kernel that packs filters of this dtype."""
    return pack_int8.code(
        dtype=dtype,
        vectors=panels.tile.vectors,
        narrow=panels.narrow,
        biased=biased,
        parts=panels.parts,
        ordered=panels.tile.widened,
        grouped=panels.tile.grouped,
        joined=panels.joined,
        padded=panels.tile.padded,
    )


def filling(
    panels: Panels, filters: np.ndarray, dtype: DType, zero: int, offset: int, bias: np.ndarray | None
) -> Callable[[np.ndarray], None]:
    """What writes the panels of constant filters [features, ...] into memory later."""
    code = pack_code(panels, dtype, bias is not None)

    def fill(out: np.ndarray) -> None:
        rows = np.ascontiguousarray(filters)
        starts = None if bias is None else np.ascontiguousarray(bias, np.int32)
        depth = panels.lines * panels.run
        words = pack_int8.words(
            [
                rows,
                0 if starts is None else starts,
                out,
                panels.features,
                panels.lines,
                panels.run,
                depth,
                1,
                zero,
                offset,
                0,
                0,
            ]
        )
        executor.call(code.address, words, 0, panels.number)

    return fill


def packed_filter(
    build: Builder, panels: Panels, filters: Buffer, first: int, zero: int, offset: int, bias: Buffer | None
) -> Any:
    """The address of a filter's channels from `first` on, packed; a step does it where the filter is no constant.

    filters: [features in all, ...]; bias: a constant of as many numbers, which sums start with; zero, offset: see
    `pack_int8`.
    """
    last = first + panels.features
    if filters.constant is not None:
        starts = None if bias is None or bias.constant is None else bias.constant.reshape(-1)[first:last]
        rows = filters.constant[first:last]
        key = ("panels of int8", rows, starts, panels, zero, offset)
        return build.packed((panels.size,), np.int32, filling(panels, rows, filters.dtype, zero, offset, starts), key)
    place = build.temporary(panels.size * 4)
    depth = panels.lines * panels.run
    source = build.pointer(filters, first * depth)
    start = 0 if bias is None else build.pointer(bias, first)
    build.step(
        pack_code(panels, filters.dtype, bias is not None),
        [source, start, place, panels.features, panels.lines, panels.run, depth, 1, zero, offset, 0, 0],
        panels.number,
    )
    return place
