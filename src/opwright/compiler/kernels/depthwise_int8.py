"""Depthwise convolution of integers: sums of bytes in int32, exact.

Lives here: its two families.
Not here: the selector (depthwise.py), the loop along a row of the image, and any window (depthwise_rows.py), tiles and
packed filters (register_tiles.py), floats (depthwise.py), epilogues (epilogue.py).

As for floats, the kernel moves along a row of the image and adds each column that it loads to all outputs whose windows
contain it. A column is the pixels of four rows, their bytes interleaved: a dot product of four bytes then adds a column
of the window, for two rows of outputs if both contain these four. The filter is packed the same way.

    sum (x - x_zero) w = sum x' w - x'_zero sum w,   x' = x as an unsigned byte (int8: x + 128)

The last sum is known beforehand and part of the initial sums. Pixels outside of the image are x'_zero. Weights less
their zero point may need nine bits: they are the sum of two parts of eight.

Targets without such an instruction load columns of two rows, or of one, widened to int16: then x' is x, and weights are
one part. The instruction of 64-bit ARM multiplies signed bytes: x' is x there, or x - 128 for unsigned x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..target import Target
from .depthwise_rows import Bands, Columns, Integers, Planes, RowSums, Taps, convolve_window, is_inside, line_of
from .output_tiles import tile_epilogue
from .register_tiles import FOURS, ONES, PAIRS, DepthwiseTile

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work


@kl.family(hoisted=True)  # of sums and scales: 3 % of MobileNetV3
def depthwise_int8(
    work: Work,
    x: ptr[u8],
    filter: ptr[i8],
    starts: ptr[i32],
    y: ptr[u8],
    planes: Planes,
    bands: Bands,
    zero: i32,
    zeros: ptr[i32],
    scales: ptr[f32],
    *more: i64,
    tile: DepthwiseTile,
    signed: bool,
    dilated: bool,
    rounded: bool,
    together: int,
    epilogue: Any,
) -> None:
    """Convolve. Items: the channels of the tile of a segment of a band of rows. dilated: as for floats.

    zero: x'_zero. signed: whether x are int8. together: columns of outputs whose elements fill a vector, or 0 to apply
    the epilogue row by row. rounded: x are floats that were rounded; zeros, scales: of each image. starts: initial
    sums; for rounded floats, the sums of the filter.
    """
    ending = tile_epilogue(epilogue, more, work.target) if together else None
    lanes, strides, of_bytes = tile.lanes, tile.strides, tile.deep == FOURS
    image = x.cast(byte_dtype(work.target)) if of_bytes else x.cast(i8 if signed else u8)
    weights = filter if of_bytes else filter.cast(i16)
    flipped = flip_of(work.target, signed) if of_bytes else 0
    sums = _IntegerSums(planes, tile.size[1], strides[1], tile.rows, lanes, work.target.is_aarch64)
    sums.tile, sums.flipped, sums.together = tile, flipped, together
    sums.joins_rows = work.target.is_x86 and tile.rows & (tile.rows - 1) == 0
    sums.table = None if ending is None else ending.table
    sums.ending = epilogue.bind(more) if ending is None else ending.finish
    sums.y, sums.work = y.cast(epilogue.expr.dtype), work
    blocks = (planes.channels + (lanes - 1)) // lanes
    outside = kl.stack(image.dtype, lanes)
    for item in work.items():
        block, segment = item % blocks, item // blocks % bands.segments
        band = item // (blocks * bands.segments)
        n = band // bands.count
        c = kl.minimum(block * lanes, planes.channels - lanes)
        sums.taps = weights + block * math.prod(tile.packed)
        start, sums.scale = (starts + c).load(0, lanes), None
        if rounded:
            zero, sums.scale = zeros[n] + flipped, scales[n]
            start = start * -zero
        sums.zero = zero
        outside.store((zero.to(image.dtype) ^ kl.full(image.dtype, 0, flipped)).splat(lanes))
        first = (band % bands.count) * bands.size
        for row in range(first, kl.minimum(first + bands.size, planes.out_height), tile.rows):
            oy = kl.minimum(row, planes.out_height - tile.rows)
            lines = []  # rows of the image under these rows of outputs, and distances of their pixels
            for i in range((tile.rows - 1) * strides[0] + tile.size[0]):
                iy = oy * strides[0] - planes.top + i * bands.down
                inside = is_inside(iy, planes.height)
                line = image + (line_of(n * planes.height + iy, bands) * planes.width * planes.pitch + c)
                line = kl.select(inside, line, outside)
                lines.append((line, kl.select(inside, planes.pitch, 0)))
            sums.set_lines(lines)
            sums.along_row(start, (n * planes.out_height + oy) * planes.out_width, c, bands, segment, dilated)


def byte_dtype(target: Target) -> DType:
    """Return the dtype of pixels that are multiplied as bytes."""
    return dtypes.int8 if target.is_aarch64 else dtypes.uint8


def flip_of(target: Target, signed: bool) -> int:
    """Return x' - x, which is also the bits that differ. signed: whether x are int8."""
    if byte_dtype(target) is dtypes.int8:
        return 0 if signed else -128
    return 128 if signed else 0


class _IntegerSums(RowSums):
    """Sums of integers. table: of a lookup after a row, if any; scale: of a rounded image; groups: of rows of the
    image, each as deep as the tile is."""

    tile: DepthwiseTile
    taps: Pointer
    zero: Value
    scale: Value | None
    flipped: int
    groups: list[list[tuple[Any, Value]]]
    y: Pointer
    ending: Callable[..., Value]
    table: Pointer | None
    together: int
    joins_rows: bool
    work: Work
    buffer: Pointer
    indices: Pointer | None

    def set_lines(self, lines: list[tuple[Any, Value]]) -> None:
        """Set the rows of the image, with the elements from pixel to pixel."""
        (kh, _), (sh, _), rows, team, _, _, deep = self.tile
        self.groups = [
            lines[row * sh : (row + team - 1) * sh + kh][deep * g : deep * g + deep]
            for row in range(0, rows, team)
            for g in range(self.tile.groups)
        ]
        byte_dot = kl.dot4_signed if lines[0][0].dtype is dtypes.int8 else kl.dot4
        self.dot = {FOURS: byte_dot, PAIRS: kl.pair_dot, ONES: _dot}[deep]

    def begin(self, columns: Columns) -> None:
        """Reserve memory for buffered sums and for the indices of lookups: [columns, rows, lanes]."""
        size = max(self.together, 1) * self.rows * self.lanes
        self.buffer = kl.stack(i32, size)
        self.indices = None if self.table is None else self.work.scratch(u8)

    def add(self, column: Any, j: int, slots: list[int]) -> None:
        """Add the pixels of a column, x'_zero outside of the image."""
        tile, groups, sums, deep = self.tile, self.groups, self.sums, self.tile.deep
        dtype = groups[0][0][0].dtype if deep == FOURS else i16
        pixels = kl.registers(dtype, deep * self.lanes, len(groups))
        for g in range(len(groups)):
            pixels[g] = self.zero.to(dtype).splat(deep * self.lanes)
        if is_inside(column, self.planes.width):
            for g in range(len(groups)):
                parts = [line.load(column * pitch, self.lanes) for line, pitch in groups[g]]
                pixels[g] = _column(parts, deep, self.flipped).to(dtype)
        for index in range(len(tile.seen)):
            r, g, _ = tile.seen[index]
            for d in range(self.depth):
                kx, slot = d * self.stride + j, slots[d]
                if kx < self.size:
                    tap = self.taps.load((index * self.size + kx) * deep * self.lanes, deep * self.lanes)
                    for k in range(tile.rows // tile.team):
                        row = r + k * tile.team
                        sums[row, slot] = self.dot(sums[row, slot], pixels[g + k * tile.groups], tap)

    def finish(self, columns: Columns, done: Any, slot: int) -> None:
        """Store one output of each row, or buffer it until a vector is full."""
        together = self.together
        if together == 0:
            each = self.rows if self.joins_rows else 1
            for first in range(0, self.rows, each):
                self.store_rows(columns, done, slot, range(first, first + each))
        for r in range(self.rows if together else 0):
            self.buffer.store(self.sums[r, slot], (done % together * self.rows + r) * self.lanes)
        if together == 1:
            self.finish_columns(columns, done, 0, 1)
        elif together > 1:
            full = done % together == together - 1
            if full:
                self.finish_columns(columns, done - (together - 1), 0, together)

    def store_rows(self, columns: Columns, done: Any, slot: int, rows: range) -> None:
        """Apply the epilogue to one output of each of `rows`, a power of two, and store them."""
        outputs = [self.output(columns, done, r) for r in rows]
        sums = kl.joined([self.sums[r, slot] for r in rows])
        results = self.ending(sums, outputs, columns.c, self.lanes, None, len(outputs), self.scale)
        for i, output in enumerate(outputs):
            (self.y + output * self.planes.out_pitch).store(kl.part(results, i * self.lanes, self.lanes), columns.c)

    def end(self, columns: Columns) -> None:
        """Store the columns that fill no vector; look results up."""
        together = self.together
        if together > 1:
            for column in range(columns.count % together):
                self.finish_columns(columns, columns.count // together * together + column, column, 1)
        if self.table is not None:
            self.look_up(columns)

    def output(self, columns: Columns, column: Value | int, row: int) -> Value:
        """Return the index of an output pixel."""
        index: Value = columns.output + row * self.planes.out_width + column * columns.across
        return index

    def finish_columns(self, columns: Columns, column: Any, first: Any, count: int) -> None:
        """Store `count` columns of outputs from `column` on, whose sums are buffered from `first` on."""
        rows, lanes = self.rows, self.lanes
        outputs = [self.output(columns, column + i, r) for i in range(count) for r in range(rows)]
        sums = self.buffer.load(first * rows * lanes, count * rows * lanes)
        results = self.ending(sums, outputs, columns.c, lanes, None, len(outputs), self.scale)
        if self.indices is not None:
            self.indices.store(kl.bitcast(results, u8), column * rows * lanes)
        else:
            for i, output in enumerate(outputs):
                (self.y + output * self.planes.out_pitch).store(kl.part(results, i * lanes, lanes), columns.c)

    def look_up(self, columns: Columns) -> None:
        """Look up all columns, `together` at a time, and store them: see `output_tiles.TileEpilogue`."""
        assert self.table is not None
        assert self.indices is not None
        together, size = self.together, self.rows * self.lanes
        for column in range(0, columns.count, together):
            results = kl.lookup(self.table, self.indices.load(column * size, together * size))
            if column + together <= columns.count:
                for i in range(together):
                    self.store_column(columns, results, column, i)
            else:
                for i in range(together - 1):
                    if column + i < columns.count:
                        self.store_column(columns, results, column, i)

    def store_column(self, columns: Columns, results: Value, column: Any, i: int) -> None:
        """Store column i of the lookups."""
        for r in range(self.rows):
            part = kl.part(results, (i * self.rows + r) * self.lanes, self.lanes)
            (self.y + self.output(columns, column + i, r) * self.planes.out_pitch).store(part, columns.c)


def _dot(acc: Value, a: Value, c: Value) -> Value:
    return acc + a.to(i32) * c.to(i32)


def _column(parts: list[Value], deep: int, flipped: int) -> Value:
    """Return the pixels of a group as one vector."""
    if deep == ONES:
        return parts[0]
    return _paired(parts) if deep == PAIRS else _interleaved(parts) ^ flipped


def _paired(parts: list[Value]) -> Value:
    """Interleave two vectors of bytes; a single one with itself."""
    n = parts[0].count
    return kl.shuffle(parts[0], parts[-1], [i // 2 + n * (i % 2) for i in range(2 * n)])


def _interleaved(parts: list[Value]) -> Value:
    """Interleave up to four vectors of bytes; the first replaces missing ones."""
    n = parts[0].count
    if n == 8:  # vectors of 16 bytes: interleave bytes, then pairs
        low, high = (
            kl.bitcast(_zipped(parts[i], parts[i + 1 if i + 1 < len(parts) else 0]), i16)
            for i in (0, 2 if len(parts) > 2 else 0)
        )
        pairs = kl.concat(
            _zipped(kl.part(low, 0, 4), kl.part(high, 0, 4)), _zipped(kl.part(low, 4, 4), kl.part(high, 4, 4))
        )
        return kl.bitcast(pairs, parts[0].dtype)
    joined = parts[0]
    if len(parts) > 1:
        joined = kl.concat(joined, parts[1])
    if len(parts) > 2:
        fourth = parts[3] if len(parts) > 3 else None
        second = (
            kl.shuffle(parts[2], None, [i if i < n else -1 for i in range(2 * n)])
            if fourth is None
            else kl.concat(parts[2], fourth)
        )
        joined = kl.concat(joined, second)
    return kl.shuffle(joined, None, [(k % 4 if k % 4 < len(parts) else 0) * n + k // 4 for k in range(4 * n)])


def _zipped(a: Value, c: Value) -> Value:
    """Interleave the lanes of two vectors."""
    return kl.shuffle(a, c, [i // 2 + a.count * (i % 2) for i in range(2 * a.count)])


@kl.family(hoisted=True)
def depthwise_any_int8(
    work: Work,
    x: ptr[u8],
    filter: ptr[u8],
    y: ptr[u8],
    planes: Planes,
    taps: Taps,
    x_zero: i32,
    filter_zero: i32,
    zeros: ptr[i32],
    scales: ptr[f32],
    *more: i64,
    lanes: int,
    source: str,
    x_dtype: Any,
    filter_dtype: Any,
    rounded: bool,
    epilogue: Any,
) -> None:
    """Convolve with any window: see `convolve_window`. rounded, zeros, scales: as for depthwise_int8.

    Sums of int16 are int64.
    """
    integers = Integers(x_zero, filter_zero, zeros, scales) if rounded else Integers(x_zero, filter_zero)
    code = lanes, dtypes.int64 if x_dtype is dtypes.int16 else dtypes.int32, source
    out = y.cast(epilogue.expr.dtype)
    image, weights = x.cast(x_dtype), filter.cast(filter_dtype)
    convolve_window(work, image, weights, out, planes, taps, integers, epilogue.bind(more), code)
