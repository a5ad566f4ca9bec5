"""Depthwise convolution of integers: each channel by itself, sums of bytes in int32, exact.

Lives here: the maker of Depthwise on integers, its two families, the packing of filters.
Not here: floats (depthwise_f32.py), what becomes of the sums (epilogue.py).

As for floats, the kernel goes along a row of the image and adds each column it loads to all the outputs that see it.
A column is the pixels of four rows, one below the other, their bytes interleaved: a dot product of four bytes then does
a column of the window, of two rows of outputs where both see these four. The filter is packed the same way.

    sum (x - x_zero) w = sum x' w - x'_zero sum w,   x' = x as a byte without sign (int8: x + 128)

The last sum is known beforehand and the sums start with it. What lies outside of the image is x'_zero. Weights less
their zero point may need nine bits: they are the sum of two parts of eight.

Floats beside a filter of integers are rounded first (hybrid.py), each image with a zero point and a scale of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i8, i32, i64, ptr, u8
from ..loops.forms import Buffer, Depthwise, Ring
from . import Unmade, maker
from .depthwise_f32 import LARGEST, line_of, ring_of, vector_lanes, within
from .epilogue import epilogue_of, without_bias
from .grains import grain
from .hybrid import rounded_rows

if TYPE_CHECKING:
    from ..loops.planning import Builder

BYTES = (dtypes.int8, dtypes.uint8)
RUN = 128
"""Pixels of the output that a work item does in each channel, about: what it loads first is not much beside them."""

HIGH = 24
"""Rows of outputs beside which a few done twice do not matter."""


class Tile(NamedTuple):
    """What is done at a time, known to the code. rows: of outputs, in teams that see the same groups of four rows of
    the image; parts: of 8 bits that a weight is the sum of; lanes: channels."""

    size: tuple[int, int]
    strides: tuple[int, int]
    rows: int
    team: int
    parts: int
    lanes: int

    @property
    def groups(self) -> int:
        """Groups of four rows that a team sees; the first starts where the first row's window does."""
        return -(-((self.team - 1) * self.strides[0] + self.size[0]) // 4)

    @property
    def seen(self) -> list[tuple[int, int, int]]:
        """(row of a team, group that it sees, part of the weights), in the order of the packed filter."""
        return [(r, g, part) for r in range(self.team) for g in range(self.groups) for part in range(self.parts)
                if 4 * g < r * self.strides[0] + self.size[0] and 4 * g + 4 > r * self.strides[0]]  # fmt: skip

    @property
    def packed(self) -> tuple[int, ...]:
        """The packed filter of these channels: int8[seen, KW, lanes, 4]."""
        return len(self.seen), self.size[1], self.lanes, 4


@kl.family
def depthwise_int8(work, x: ptr[u8], filter: ptr[i8], starts: ptr[i32], y: ptr[u8], height: i64, width: i64,
                   in_pitch: i64, out_height: i64, out_width: i64, out_pitch: i64, channels: i64, top: i64, left: i64,
                   down: i64, across: i64, bands: i64, band: i64, ring: i64, shift: i64, zero: i32, zeros: ptr[i32],
                   scales: ptr[f32], *more: i64, tile: Tile, signed: bool, dilated: bool, rounded: bool,
                   epilogue: Any):  # fmt: skip
    """An item: the tile's channels of a band of rows. down, across, ring, shift: as for floats. zero: x'_zero.

    rounded: x are floats that were rounded; zeros, scales: of each image. starts: then the sums of the filter.
    """
    finish = epilogue.bind(more)
    lanes, strides = tile.lanes, tile.strides
    blocks = (channels + (lanes - 1)) // lanes
    outside = kl.stack(u8, lanes)
    for item in work.items():
        block, rest = item % blocks, item // blocks
        n = rest // bands
        c = kl.minimum(block * lanes, channels - lanes)
        taps = filter + block * math.prod(tile.packed)
        start, scale = (starts + c).load(0, lanes), None
        if rounded:
            zero, scale = zeros[n] + 128, scales[n]
            start = start * -zero
        outside.store((zero.to(dtypes.uint8) ^ (128 if signed else 0)).splat(lanes))
        first = (rest % bands) * band
        for row in range(first, kl.minimum(first + band, out_height), tile.rows):
            oy = kl.minimum(row, out_height - tile.rows)
            lines = []  # the rows of the image that these rows of outputs see, and how far apart their pixels are
            for i in range((tile.rows - 1) * strides[0] + tile.size[0]):
                iy = oy * strides[0] - top + i * down
                inside = within(iy, height)
                line = x + (line_of(n * height + iy, ring, shift) * width * in_pitch + c)
                line = kl.select(inside, line, outside)
                lines.append((line, kl.select(inside, in_pitch, 0)))
            at, out = (n * out_height + oy) * out_width, y.cast(epilogue.expr.dtype)
            if dilated:
                for phase in range(across):
                    count = (out_width - phase + (across - 1)) // across
                    _along(tile, lines, taps, start, scale, zero, finish, out, at + phase, c, count, phase - left,
                           across, width, out_width, out_pitch, signed)  # fmt: skip
            else:
                _along(tile, lines, taps, start, scale, zero, finish, out, at, c, out_width, -left, 1, width,
                       out_width, out_pitch, signed)  # fmt: skip


def _along(tile: Tile, lines: Any, taps: Any, start: Any, scale: Any, zero: Any, finish: Any, y: Any, at: Any, c: Any,
           count: Any, base: Any, across: Any, width: Any, out_width: Any, out_pitch: Any,
           signed: bool) -> None:  # fmt: skip
    """`count` columns of outputs, `across` apart, as for floats."""
    (kh, kw), (sh, sw), rows, team, _, lanes = tile
    groups = [lines[row * sh : (row + team - 1) * sh + kh][4 * g : 4 * g + 4]
              for row in range(0, rows, team) for g in range(tile.groups)]  # fmt: skip
    depth = -(-kw // sw)
    sums = kl.registers(i32, lanes, rows, depth)
    for r in range(rows):
        for d in range(depth):
            sums[r, d] = start
    for t in range(count + (depth - 1)):
        for j in range(min(sw, kw)):
            column = (t * sw + j) * across + base
            pixels = kl.registers(u8, 4 * lanes, len(groups))
            for g in range(len(groups)):
                pixels[g] = zero.to(dtypes.uint8).splat(4 * lanes)
            if within(column, width):
                for g in range(len(groups)):
                    parts = [line.load(column * pitch, lanes) for line, pitch in groups[g]]
                    pixels[g] = _interleaved(parts) ^ 128 if signed else _interleaved(parts)
            for place in range(len(tile.seen)):
                r, g, _ = tile.seen[place]
                for d in range(depth):
                    kx = d * sw + j
                    if kx < kw:
                        tap = taps.load((place * kw + kx) * 4 * lanes, 4 * lanes)
                        for k in range(rows // team):
                            sums[r + k * team, d] = kl.dot4(sums[r + k * team, d], pixels[g + k * tile.groups], tap)
        if t >= depth - 1:
            for r in range(rows):
                row = at + r * out_width + (t - (depth - 1)) * across
                total = sums[r, depth - 1] if scale is None else sums[r, depth - 1].to(f32) * scale
                (y + row * out_pitch).store(finish(total, row, c, lanes), c)
        for r in range(rows):
            for d in range(depth - 1, 0, -1):
                sums[r, d] = sums[r, d - 1]
            sums[r, 0] = start


def _interleaved(parts: list[Any]) -> Any:
    """Up to four vectors of bytes as one, lane by lane; where there are fewer, the first is there again."""
    n = parts[0].count
    whole = parts[0]
    if len(parts) > 1:
        whole = kl.concat(whole, parts[1])
    if len(parts) > 2:
        rest = kl.concat(parts[2], parts[3]) if len(parts) > 3 else kl.shuffle(
            parts[2], None, [i if i < n else -1 for i in range(2 * n)])  # fmt: skip
        whole = kl.concat(whole, rest)
    return kl.shuffle(whole, None, [(k % 4 if k % 4 < len(parts) else 0) * n + k // 4 for k in range(4 * n)])


def pack(out: np.ndarray, filter: np.ndarray, zero: int, tile: Tile) -> None:
    """Write a filter [KH, KW, C] less its zero point as out: int8[blocks, *tile.packed], which is zeros."""
    kh, _, channels = filter.shape
    weights = filter.astype(np.int16) - np.int16(zero)
    low = weights.clip(-128, 127)
    parts = (low, weights - low)
    for block, into in enumerate(out):
        c = min(block * tile.lanes, channels - tile.lanes)
        for place, (r, g, part) in enumerate(tile.seen):
            for i in range(4):
                ky = 4 * g + i - r * tile.strides[0]
                if 0 <= ky < kh:
                    into[place, :, :, i] = parts[part][ky, :, c : c + tile.lanes]


@kl.family
def depthwise_any_int8(work, x: ptr[u8], filter: ptr[u8], y: ptr[u8], height: i64, width: i64, in_pitch: i64,
                       out_height: i64, out_width: i64, out_pitch: i64, channels: i64, top: i64, left: i64, high: i64,
                       wide: i64, step_down: i64, step_across: i64, down: i64, across: i64, multiplier: i64,
                       x_zero: i32, filter_zero: i32, zeros: ptr[i32], scales: ptr[f32], *more: i64, lanes: int,
                       source: str, x_dtype: Any, filter_dtype: Any, rounded: bool, epilogue: Any):  # fmt: skip
    """Any window, as depthwise_any_f32; rounded, zeros, scales: as for depthwise_int8. Sums of int16 are int64."""
    finish = epilogue.bind(more)
    blocks = (channels + (lanes - 1)) // lanes
    image, taps = x.cast(x_dtype), filter.cast(filter_dtype)
    out, held = y.cast(epilogue.expr.dtype), i64 if x_dtype is dtypes.int16 else i32
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        n = row // out_height
        y0 = (row % out_height) * step_down - top
        if rounded:
            x_zero = zeros[n]
        for ox in range(out_width):
            x0 = ox * step_across - left
            total = kl.zeros(held, lanes)
            for i in range(high):
                iy = y0 + i * down
                if within(iy, height):
                    for j in range(wide):
                        ix = x0 + j * across
                        if within(ix, width):
                            p = image + ((n * height + iy) * width + ix) * in_pitch
                            if source == "same":
                                pixel = p.load(c, lanes).to(held)
                            elif source == "only":
                                pixel = p[0].to(held).splat(lanes)
                            else:
                                pixel = _spread(p, c, multiplier, lanes, held)
                            tap = taps.load((i * wide + j) * channels + c, lanes).to(held)
                            total = (pixel - x_zero.to(held)) * (tap - filter_zero.to(held)) + total
            at = row * out_width + ox
            found = total.to(f32) * scales[n] if rounded else total
            (out + at * out_pitch).store(finish(found, at, c, lanes), c)


def _spread(p: Any, c: Any, multiplier: Any, lanes: int, dtype: DType) -> Any:
    """p[(c + i) // multiplier] as this dtype for every lane i; bytes have no gather."""
    found = kl.zeros(dtype, lanes)
    for i in range(lanes):
        found = kl.insert(found, i, p[(c + i) // multiplier].to(dtype))
    return found


def _starts(out: np.ndarray, filter: np.ndarray, filter_zero: int, bias: np.ndarray | None, zero: int) -> None:
    """Write what the sums start with; of rounded floats, with zero -1 and no bias, the sums of the filter."""
    weights = filter.astype(np.int32) - np.int32(filter_zero)
    np.multiply(weights.sum((0, 1), dtype=np.int32), np.int32(-zero), out=out)
    if bias is not None:
        out += bias


@maker(Depthwise)
def make_depthwise_int8(form: Depthwise, build: Builder) -> None:
    """Of int8, uint8 and int16, and of floats to be rounded."""
    x, filter, out = form.input, form.filter, form.output
    if not (x.dtype in (*BYTES, dtypes.int16) or form.rounding) or filter.dtype not in (*BYTES, dtypes.int4):
        raise Unmade(f"depthwise convolution of {x.dtype.name} with {filter.dtype.name}")
    if filter.parent is not None:
        raise Unmade("a filter that is a slice")
    quick = _is_quick(form)
    if not quick and filter.dtype is dtypes.int4:
        raise Unmade(f"such a window with {filter.dtype.name}")
    if isinstance(x, Ring) and not quick:
        raise Unmade("any window over a ring")
    (_quick if quick else _any)(form, vector_lanes(out.shape[-1], 8 if x.dtype is dtypes.int16 else 4), build)


def _is_quick(form: Depthwise) -> bool:
    window, filter = form.window, form.filter
    return (form.input.dtype is not dtypes.int16 and filter.constant is not None
            and _parts(filter, form.filter_zero) <= 2 and form.multiplier == 1
            and window.size[0] * window.size[1] <= LARGEST
            and (window.dilations[1] == 1 or window.strides[1] == 1))  # fmt: skip


def _parts(filter: Buffer, zero: int) -> int:
    """How many parts of -128 to 127 weights less their zero point are the sum of."""
    low, high = (int(v) - zero for v in filter.dtype.limits)
    return 1 if low >= -128 and high <= 127 else 2 if low >= -255 and high <= 254 else 3


def _quick(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out, window = form.input, form.output, form.window
    size, strides, (down, across), (top, _, left, _) = (
        window.size, window.strides, window.dilations, window.padding)  # fmt: skip
    bias, expr, operands = (None, form.expr, form.operands) if form.rounding else without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    n, out_height, out_width, channels = out.shape
    image, pitch, zeros, scales = _rounded(form, build) if form.rounding else (build.pointer(x), x.pitch, 0, 0)
    team = _team(size[0], strides[0]) if down == 1 and out_height > 1 else 1
    rows = 2 * team if down == 1 and strides[0] <= size[0] and _two_teams(out_height, team) else team
    tile = Tile(size, strides, rows, team, _parts(form.filter, form.filter_zero), lanes)
    signed = x.dtype is not dtypes.uint8
    zero = -1 if form.rounding else form.input_zero + (128 if signed else 0)
    taps = form.filter.constant
    assert taps is not None
    blocks = -(-channels // lanes)
    packed = build.packed((blocks, *tile.packed), np.int8, lambda o: pack(o, taps, form.filter_zero, tile),
                          key=(form.filter, "depthwise", strides, team, lanes, form.filter_zero))  # fmt: skip
    known = None if bias is None else bias.constant
    starts = build.packed((channels,), np.int32, lambda o: _starts(o, taps, form.filter_zero, known, zero),
                          key=(form.filter, _key(bias), "depthwise starts", zero, form.filter_zero))  # fmt: skip
    code = depthwise_int8.code(tile=tile, signed=signed, dilated=across > 1, rounded=bool(form.rounding),
                               more=len(more), epilogue=epilogue)  # fmt: skip
    band = rows * max(1, RUN // (out_width * rows))
    bands = -(-out_height // band)
    words = [image, packed, starts, build.pointer(out), x.shape[1], x.shape[2], pitch, out_height, out_width, out.pitch,
             channels, top, left, down, across, bands, band, *ring_of(form), zero, zeros, scales]  # fmt: skip
    items = n * blocks * bands
    build.step(code, [*words, *more], items, chunk=grain(12 * out_width * band * lanes, items))


def _rounded(form: Depthwise, build: Builder) -> tuple[Any, int, Any, Any]:
    """Images as integers: their address and pitch, the zero points and the scales."""
    x = form.input
    n, columns = x.shape[0], math.prod(x.shape[1:])
    if x.pitch != x.shape[3] or (columns % 4 and n > 1):
        raise Unmade("images of a slice to be rounded")
    made = rounded_rows(build, x, n, columns, columns, form.rounding == "symmetric")
    return made.x, x.pitch, made.zeros, made.scales


def _team(high: int, stride: int) -> int:
    """How many rows of outputs see the same groups: two, where the second needs no more of them."""
    return 2 if high + stride <= 4 * -(-high // 4) else 1


def _two_teams(out_height: int, team: int) -> bool:
    """Whether two teams at a time are better than one: what all rows share is done less often, but the last rows of
    an image may be done twice."""
    both, one = (n * -(-out_height // n) for n in (2 * team, team))
    return out_height >= 2 * team and (both <= one or out_height >= HIGH)


def _key(bias: Buffer | None) -> Any:
    return "no bias" if bias is None else bias


def _any(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out, window = form.input, form.output, form.window
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    source = "same" if form.multiplier == 1 else "only" if x.shape[-1] == 1 else "multiplier"
    image, pitch, zeros, scales = _rounded(form, build) if form.rounding else (build.pointer(x), x.pitch, 0, 0)
    code = depthwise_any_int8.code(lanes=lanes, source=source, x_dtype=dtypes.int8 if form.rounding else x.dtype,
                                   filter_dtype=form.filter.dtype, rounded=bool(form.rounding), more=len(more),
                                   epilogue=epilogue)  # fmt: skip
    n, out_height, out_width, channels = out.shape
    top, _, left, _ = window.padding
    words = [image, build.pointer(form.filter), build.pointer(out), x.shape[1], x.shape[2], pitch, out_height,
             out_width, out.pitch, channels, top, left, *window.size, *window.strides, *window.dilations,
             form.multiplier, form.input_zero, form.filter_zero, zeros, scales]  # fmt: skip
    items = n * out_height * -(-channels // lanes)
    work = 4 * out_width * lanes * window.size[0] * window.size[1]
    build.step(code, [*words, *more], items, chunk=grain(work, items))
