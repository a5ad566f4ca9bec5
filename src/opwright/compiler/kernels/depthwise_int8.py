"""Depthwise convolution of integers: each channel by itself, sums of bytes in int32, exact.

Lives here: its two families.
Not here: the selector (depthwise.py), going along a row of the image, and any window (depthwise_rows.py), tiles and
packed filters (depthwise_tiles.py), floats (depthwise_f32.py), what becomes of the sums (epilogue.py).

As for floats, the kernel goes along a row of the image and adds each column it loads to all the outputs that see it.
A column is the pixels of four rows, one below the other, their bytes interleaved: a dot product of four bytes then does
a column of the window, of two rows of outputs where both see these four. The filter is packed the same way.

    sum (x - x_zero) w = sum x' w - x'_zero sum w,   x' = x as a byte without sign (int8: x + 128)

The last sum is known beforehand and the sums start with it. What lies outside of the image is x'_zero. Weights less
their zero point may need nine bits: they are the sum of two parts of eight.

Targets without such an instruction take columns of two rows, or of one, widened to int16: then x' is x, and weights are
one part. 64-bit ARM's instruction takes bytes with a sign: x' is x there, or x - 128 where x has none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..target import Target
from .depthwise_rows import Bands, Columns, Integers, Planes, RowSums, Taps, convolve_window, line_of, within
from .depthwise_tiles import FOURS, ONES, PAIRS, Tile
from .output_tiles import tile_epilogue

if TYPE_CHECKING:
    pass


@kl.family
def depthwise_int8(
    work,
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
    tile: Tile,
    signed: bool,
    dilated: bool,
    rounded: bool,
    together: int,
    epilogue: Any,
):
    """An item: the tile's channels of a band of rows. dilated: as for floats. zero: x'_zero. signed: whether x are
    int8. together: columns of outputs that are finished at a time, so that a vector is full, or 0: a row at a time.

    rounded: x are floats that were rounded; zeros, scales: of each image. starts: then the sums of the filter.
    """
    ending = tile_epilogue(epilogue, more, work.target) if together else None
    lanes, strides, of_bytes = tile.lanes, tile.strides, tile.deep == FOURS
    image = x.cast(held_as(work.target)) if of_bytes else x.cast(i8 if signed else u8)
    weights = filter if of_bytes else filter.cast(i16)
    flipped = flip_of(work.target, signed) if of_bytes else 0
    sums = _Sums(planes, tile.size[1], strides[1], tile.rows, lanes, work.target.is_aarch64)
    sums.tile, sums.flipped, sums.together = tile, flipped, together
    sums.table = None if ending is None else ending.table
    sums.ending = epilogue.bind(more) if ending is None else ending.finish
    sums.y, sums.work = y.cast(epilogue.expr.dtype), work
    blocks = (planes.channels + (lanes - 1)) // lanes
    outside = kl.stack(image.dtype, lanes)
    for item in work.items():
        block, rest = item % blocks, item // blocks
        n = rest // bands.count
        c = kl.minimum(block * lanes, planes.channels - lanes)
        sums.taps = weights + block * math.prod(tile.packed)
        start, sums.scale = (starts + c).load(0, lanes), None
        if rounded:
            zero, sums.scale = zeros[n] + flipped, scales[n]
            start = start * -zero
        sums.zero = zero
        outside.store((zero.to(image.dtype) ^ kl.full(image.dtype, 0, flipped)).splat(lanes))
        first = (rest % bands.count) * bands.size
        for row in range(first, kl.minimum(first + bands.size, planes.out_height), tile.rows):
            oy = kl.minimum(row, planes.out_height - tile.rows)
            lines = []  # the rows of the image that these rows of outputs see, and how far apart their pixels are
            for i in range((tile.rows - 1) * strides[0] + tile.size[0]):
                iy = oy * strides[0] - planes.top + i * bands.down
                inside = within(iy, planes.height)
                line = image + (line_of(n * planes.height + iy, bands) * planes.width * planes.pitch + c)
                line = kl.select(inside, line, outside)
                lines.append((line, kl.select(inside, planes.pitch, 0)))
            sums.see(lines)
            sums.along_row(start, (n * planes.out_height + oy) * planes.out_width, c, bands, dilated)


def held_as(target: Target) -> DType:
    """What pixels are as bytes that are multiplied."""
    return dtypes.int8 if target.is_aarch64 else dtypes.uint8


def flip_of(target: Target, signed: bool) -> int:
    """What x' is larger by than x, and the bits that make it of x. signed: whether x are int8."""
    if held_as(target) is dtypes.int8:
        return 0 if signed else -128
    return 128 if signed else 0


class _Sums(RowSums):
    """table: where results are looked up afterwards, if they are; scale: of a rounded image; groups: of rows of the
    image, each as deep as the tile is."""

    tile: Tile
    taps: Any
    zero: Any
    scale: Any
    flipped: int
    groups: Any
    y: Any
    ending: Any
    table: Any
    together: int
    work: Any
    kept: Any
    indices: Any

    def see(self, lines: list[Any]) -> None:
        """Set the rows of the image, with the elements from pixel to pixel."""
        (kh, _), (sh, _), rows, team, _, _, deep = self.tile
        self.groups = [
            lines[row * sh : (row + team - 1) * sh + kh][deep * g : deep * g + deep]
            for row in range(0, rows, team)
            for g in range(self.tile.groups)
        ]
        bytes_of = kl.dot4_signed if lines[0][0].dtype is dtypes.int8 else kl.dot4
        self.dot = {FOURS: bytes_of, PAIRS: kl.pair_dot, ONES: _dot}[deep]

    def begin(self, columns: Columns) -> None:
        """Reserve memory for the sums that are finished together, and for what is looked up: [columns, rows, lanes]."""
        size = max(self.together, 1) * self.rows * self.lanes
        self.kept = kl.stack(i32 if self.scale is None else f32, size)
        self.indices = None if self.table is None else self.work.scratch(u8)

    def add(self, column: Any, j: int, slots: list[int]) -> None:
        """Add the groups' pixels of a column, x'_zero outside of the image."""
        tile, groups, sums, deep = self.tile, self.groups, self.sums, self.tile.deep
        held = groups[0][0][0].dtype if deep == FOURS else i16
        pixels = kl.registers(held, deep * self.lanes, len(groups))
        for g in range(len(groups)):
            pixels[g] = self.zero.to(held).splat(deep * self.lanes)
        if within(column, self.planes.width):
            for g in range(len(groups)):
                parts = [line.load(column * pitch, self.lanes) for line, pitch in groups[g]]
                pixels[g] = _column(parts, deep, self.flipped).to(held)
        for place in range(len(tile.seen)):
            r, g, _ = tile.seen[place]
            for d in range(self.depth):
                kx, slot = d * self.stride + j, slots[d]
                if kx < self.size:
                    tap = self.taps.load((place * self.size + kx) * deep * self.lanes, deep * self.lanes)
                    for k in range(tile.rows // tile.team):
                        found = self.dot(sums[r + k * tile.team, slot], pixels[g + k * tile.groups], tap)
                        sums[r + k * tile.team, slot] = found

    def finish(self, columns: Columns, done: Any, slot: int) -> None:
        """Write one output of each row, or put it aside until a vector of them is full."""
        together = self.together
        for r in range(self.rows):
            total = self.sums[r, slot] if self.scale is None else self.sums[r, slot].to(f32) * self.scale
            if together == 0:
                row = self.output(columns, done, r)
                (self.y + row * self.planes.out_pitch).store(self.ending(total, row, columns.c, self.lanes), columns.c)
            else:
                self.kept.store(total, (done % together * self.rows + r) * self.lanes)
        if together == 1:
            self.finish_columns(columns, done, 0, 1)
        elif together > 1:
            full = done % together == together - 1
            if full:
                self.finish_columns(columns, done - (together - 1), 0, together)

    def end(self, columns: Columns) -> None:
        """Finish the columns that fill no vector; look results up."""
        together = self.together
        if together > 1:
            for place in range(columns.count % together):
                self.finish_columns(columns, columns.count // together * together + place, place, 1)
        if self.table is not None:
            self.look_up(columns)

    def output(self, columns: Columns, column: Any, row: int) -> Any:
        """Return the number of an output pixel."""
        return columns.at + row * self.planes.out_width + column * columns.across

    def finish_columns(self, columns: Columns, column: Any, place: Any, count: int) -> None:
        """Finish so many columns of outputs from `column` on, whose sums are kept from `place` on."""
        rows, lanes = self.rows, self.lanes
        outputs = [self.output(columns, column + i, r) for i in range(count) for r in range(rows)]
        sums = self.kept.load(place * rows * lanes, count * rows * lanes)
        found = self.ending(sums, outputs, columns.c, lanes, None, len(outputs))
        if self.indices is not None:
            self.indices.store(kl.bitcast(found, u8), column * rows * lanes)
        else:
            for i, output in enumerate(outputs):
                (self.y + output * self.planes.out_pitch).store(kl.part(found, i * lanes, lanes), columns.c)

    def look_up(self, columns: Columns) -> None:
        """Look all columns up, `together` at a time, and write them: see `output_tiles.TileEpilogue`."""
        together, size = self.together, self.rows * self.lanes
        for column in range(0, columns.count, together):
            found = kl.lookup(self.table, self.indices.load(column * size, together * size))
            if column + together <= columns.count:
                for i in range(together):
                    self.write(columns, found, column, i)
            else:
                for i in range(together - 1):
                    if column + i < columns.count:
                        self.write(columns, found, column, i)

    def write(self, columns: Columns, found: Any, column: Any, i: int) -> None:
        """Store column i of the table lookups."""
        for r in range(self.rows):
            part = kl.part(found, (i * self.rows + r) * self.lanes, self.lanes)
            (self.y + self.output(columns, column + i, r) * self.planes.out_pitch).store(part, columns.c)


def _dot(acc: Any, a: Any, c: Any) -> Any:
    return acc + a.to(i32) * c.to(i32)


def _column(parts: list[Any], deep: int, flipped: int) -> Any:
    """The pixels of a group as one vector."""
    if deep == ONES:
        return parts[0]
    return _paired(parts) if deep == PAIRS else _interleaved(parts) ^ flipped


def _paired(parts: list[Any]) -> Any:
    """One or two vectors of bytes as one, lane by lane; one is there twice."""
    n = parts[0].count
    return kl.shuffle(parts[0], parts[-1], [i // 2 + n * (i % 2) for i in range(2 * n)])


def _interleaved(parts: list[Any]) -> Any:
    """Up to four vectors of bytes as one, lane by lane; where there are fewer, the first is there again."""
    n = parts[0].count
    if n == 8:  # vectors of 16 bytes: two by two, and pairs of bytes again
        low, high = (
            kl.bitcast(_zipped(parts[i], parts[i + 1 if i + 1 < len(parts) else 0]), i16)
            for i in (0, 2 if len(parts) > 2 else 0)
        )
        return kl.bitcast(
            kl.concat(
                _zipped(kl.part(low, 0, 4), kl.part(high, 0, 4)), _zipped(kl.part(low, 4, 4), kl.part(high, 4, 4))
            ),
            parts[0].dtype,
        )
    whole = parts[0]
    if len(parts) > 1:
        whole = kl.concat(whole, parts[1])
    if len(parts) > 2:
        rest = (
            kl.concat(parts[2], parts[3])
            if len(parts) > 3
            else kl.shuffle(parts[2], None, [i if i < n else -1 for i in range(2 * n)])
        )
        whole = kl.concat(whole, rest)
    return kl.shuffle(whole, None, [(k % 4 if k % 4 < len(parts) else 0) * n + k // 4 for k in range(4 * n)])


def _zipped(a: Any, c: Any) -> Any:
    """The lanes of both in turn."""
    return kl.shuffle(a, c, [i // 2 + a.count * (i % 2) for i in range(2 * a.count)])


@kl.family
def depthwise_any_int8(
    work,
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
):
    """Any window: see `convolve_window`; rounded, zeros, scales: as for depthwise_int8. Sums of int16 are int64."""
    integers = Integers(x_zero, filter_zero, zeros, scales) if rounded else Integers(x_zero, filter_zero)
    code = lanes, dtypes.int64 if x_dtype is dtypes.int16 else dtypes.int32, source
    out = y.cast(epilogue.expr.dtype)
    image, weights = x.cast(x_dtype), filter.cast(filter_dtype)
    convolve_window(work, image, weights, out, planes, taps, integers, epilogue.bind(more), code)
