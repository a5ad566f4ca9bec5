"""Depthwise convolution of int8 and uint8: each channel by itself, sums in int32, exact.

Lives here: the maker of Depthwise on integers, its two families, the packing of filters.
Not here: floats (depthwise_f32.py), what becomes of the sums (epilogue.py).

As for floats, the kernel goes along a row of the image and adds each column it loads to all the outputs that see it.
A column is the pixels of four rows, one below the other, their bytes interleaved: a dot product of four bytes then does
a column of the window, of two rows of outputs where both see these four. The filter is packed the same way.

    sum (x - x_zero) w = sum x' w - x'_zero sum w,   x' = x as a byte without sign (int8: x + 128)

The last sum is known beforehand and the sums start with it. What lies outside of the image is x'_zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from .. import language as kl
from ..language import i8, i32, i64, ptr, u8
from ..loops.forms import Buffer, Depthwise
from . import Unmade, maker
from .depthwise_f32 import LARGEST, vector_lanes, within
from .epilogue import epilogue_of, without_bias
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

BYTES = (dtypes.int8, dtypes.uint8)
RUN = 128
"""Pixels of the output that a work item does in each channel, about: what it loads first is not much beside them."""

HIGH = 24
"""Rows of outputs beside which a few done twice do not matter."""


@kl.family
def depthwise_int8(work, x: ptr[u8], filter: ptr[i8], starts: ptr[i32], y: ptr[u8], height: i64, width: i64,
                   in_pitch: i64, out_height: i64, out_width: i64, out_pitch: i64, channels: i64, top: i64, left: i64,
                   down: i64, across: i64, bands: i64, band: i64, zero: i64, *more: i64, size: tuple, strides: tuple,
                   rows: int, team: int, lanes: int, signed: bool, dilated: bool, epilogue: Any):  # fmt: skip
    """An item: `lanes` channels of a band of rows. down, across: dilations, as for floats. zero: x'_zero."""
    finish = epilogue.bind(more)
    blocks = (channels + (lanes - 1)) // lanes
    outside = kl.stack(u8, lanes)
    outside.store((zero.to(dtypes.uint8) ^ (128 if signed else 0)).splat(lanes))
    for item in work.items():
        block, rest = item % blocks, item // blocks
        n = rest // bands
        c = kl.minimum(block * lanes, channels - lanes)
        taps = filter + block * (len(_seen(size, strides, team)) * size[1] * 4 * lanes)
        start = (starts + c).load(0, lanes)
        first = (rest % bands) * band
        for row in range(first, kl.minimum(first + band, out_height), rows):
            oy = kl.minimum(row, out_height - rows)
            lines = []  # the rows of the image that these rows of outputs see, and how far apart their pixels are
            for i in range((rows - 1) * strides[0] + size[0]):
                iy = oy * strides[0] - top + i * down
                inside = within(iy, height)
                line = kl.select(inside, x + ((n * height + iy) * width * in_pitch + c), outside)
                lines.append((line, kl.select(inside, in_pitch, 0)))
            at, out = (n * out_height + oy) * out_width, y.cast(epilogue.expr.dtype)
            if dilated:
                for phase in range(across):
                    count = (out_width - phase + (across - 1)) // across
                    _along(lines, taps, start, zero, finish, out, at + phase, c, count, phase - left, across, width,
                           out_width, out_pitch, size, strides, rows, team, lanes, signed)  # fmt: skip
            else:
                _along(lines, taps, start, zero, finish, out, at, c, out_width, -left, 1, width, out_width, out_pitch,
                       size, strides, rows, team, lanes, signed)  # fmt: skip


def _seen(size: tuple[int, int], strides: tuple[int, int], team: int) -> list[tuple[int, int]]:
    """For a team of rows of outputs, which groups of four rows of the image each sees: (row, group), in the order of
    the packed filter. The first group starts where the first row's window does."""
    groups = -(-((team - 1) * strides[0] + size[0]) // 4)
    return [(r, g) for r in range(team) for g in range(groups)
            if 4 * g < r * strides[0] + size[0] and 4 * g + 4 > r * strides[0]]  # fmt: skip


def _along(lines: Any, taps: Any, start: Any, zero: Any, finish: Any, y: Any, at: Any, c: Any, count: Any, base: Any,
           across: Any, width: Any, out_width: Any, out_pitch: Any, size: tuple[int, int], strides: tuple[int, int],
           rows: int, team: int, lanes: int, signed: bool) -> None:  # fmt: skip
    """`count` columns of outputs, `across` apart, as for floats."""
    seen, step = _seen(size, strides, team), team * strides[0]
    groups = [lines[start : start + (team - 1) * strides[0] + size[0]][4 * g : 4 * g + 4]
              for start in range(0, rows * strides[0], step) for g in range(seen[-1][1] + 1)]  # fmt: skip
    depth = -(-size[1] // strides[1])
    sums = kl.registers(i32, lanes, rows, depth)
    for r in range(rows):
        for d in range(depth):
            sums[r, d] = start
    for t in range(count + (depth - 1)):
        for j in range(strides[1]):
            column = (t * strides[1] + j) * across + base
            pixels = kl.registers(u8, 4 * lanes, len(groups))
            for g in range(len(groups)):
                pixels[g] = zero.to(dtypes.uint8).splat(4 * lanes)
            if within(column, width):
                for g in range(len(groups)):
                    parts = [line.load(column * pitch, lanes) for line, pitch in groups[g]]
                    pixels[g] = _interleaved(parts) ^ 128 if signed else _interleaved(parts)
            for place in range(len(seen)):
                for d in range(depth):
                    kx = d * strides[1] + j
                    if kx < size[1]:
                        tap = taps.load((place * size[1] + kx) * 4 * lanes, 4 * lanes)
                        for k in range(rows // team):
                            r, g = seen[place][0] + k * team, seen[place][1] + k * (len(groups) * team // rows)
                            sums[r, d] = kl.dot4(sums[r, d], pixels[g], tap)
        if t >= depth - 1:
            for r in range(rows):
                row = at + r * out_width + (t - (depth - 1)) * across
                (y + row * out_pitch).store(finish(sums[r, depth - 1], row, c, lanes), c)
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


def pack(out: np.ndarray, filter: np.ndarray, strides: tuple[int, int], team: int) -> None:
    """Write a filter int8[KH, KW, C] as out: int8[blocks, pairs of row and group, KW, lanes, 4], which is zeros."""
    kh, kw, channels = filter.shape
    blocks, _, _, lanes, _ = out.shape
    for block in range(blocks):
        c = min(block * lanes, channels - lanes)
        for place, (r, g) in enumerate(_seen((kh, kw), strides, team)):
            for i in range(4):
                ky = 4 * g + i - r * strides[0]
                if 0 <= ky < kh:
                    out[block, place, :, :, i] = filter[ky, :, c : c + lanes]


@kl.family
def depthwise_any_int8(work, x: ptr[u8], filter: ptr[u8], y: ptr[u8], height: i64, width: i64, in_pitch: i64,
                       out_height: i64, out_width: i64, out_pitch: i64, channels: i64, top: i64, left: i64, high: i64,
                       wide: i64, step_down: i64, step_across: i64, down: i64, across: i64, multiplier: i64,
                       x_zero: i64, filter_zero: i64, *more: i64, lanes: int, source: str, x_dtype: str,
                       filter_dtype: str, epilogue: Any):  # fmt: skip
    """Any window, as depthwise_any_f32."""
    finish = epilogue.bind(more)
    blocks = (channels + (lanes - 1)) // lanes
    image, taps = x.cast(_BY_NAME[x_dtype]), filter.cast(_BY_NAME[filter_dtype])
    out = y.cast(epilogue.expr.dtype)
    for item in work.items():
        c = kl.minimum((item % blocks) * lanes, channels - lanes)
        row = item // blocks
        n = row // out_height
        y0 = (row % out_height) * step_down - top
        for ox in range(out_width):
            x0 = ox * step_across - left
            total = kl.zeros(i32, lanes)
            for i in range(high):
                iy = y0 + i * down
                if within(iy, height):
                    for j in range(wide):
                        ix = x0 + j * across
                        if within(ix, width):
                            p = image + ((n * height + iy) * width + ix) * in_pitch
                            if source == "same":
                                pixel = p.load(c, lanes).to(i32)
                            elif source == "only":
                                pixel = p[0].to(i32).splat(lanes)
                            else:
                                pixel = _spread(p, c, multiplier, lanes)
                            tap = taps.load((i * wide + j) * channels + c, lanes).to(i32)
                            total = (pixel - x_zero.to(i32)) * (tap - filter_zero.to(i32)) + total
            at = row * out_width + ox
            (out + at * out_pitch).store(finish(total, at, c, lanes), c)


_BY_NAME = {dtype.name: dtype for dtype in BYTES}


def _spread(p: Any, c: Any, multiplier: Any, lanes: int) -> Any:
    """p[(c + i) // multiplier] for every lane i; bytes have no gather."""
    found = kl.zeros(i32, lanes)
    for i in range(lanes):
        found = kl.insert(found, i, p[(c + i) // multiplier].to(i32))
    return found


def _starts(out: np.ndarray, filter: np.ndarray, bias: np.ndarray | None, zero: int) -> None:
    """Write what the sums start with."""
    np.multiply(filter.sum((0, 1), dtype=np.int32), np.int32(-zero), out=out)
    if bias is not None:
        out += bias


@maker(Depthwise)
def make_depthwise_int8(form: Depthwise, build: Builder) -> None:
    """Of int8 and uint8."""
    x, filter, out = form.input, form.filter, form.output
    if x.dtype not in BYTES or filter.dtype not in BYTES:
        raise Unmade(f"depthwise convolution of {x.dtype.name} with {filter.dtype.name}")
    if filter.parent is not None:
        raise Unmade("a filter that is a slice")
    if not out.size:
        return
    (_quick if _is_quick(form) else _any)(form, vector_lanes(out.shape[-1]), build)


def _is_quick(form: Depthwise) -> bool:
    window, filter = form.window, form.filter
    return (filter.constant is not None and filter.dtype is dtypes.int8 and form.filter_zero == 0
            and form.multiplier == 1 and window.size[0] * window.size[1] <= LARGEST
            and (window.dilations[1] == 1 or window.strides[1] == 1))  # fmt: skip


def _quick(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out, window = form.input, form.output, form.window
    size, strides, (down, across), (top, _, left, _) = (
        window.size, window.strides, window.dilations, window.padding)  # fmt: skip
    bias, expr, operands = without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    n, out_height, out_width, channels = out.shape
    team = _team(size[0], strides[0]) if down == 1 and out_height > 1 else 1
    rows = 2 * team if down == 1 and _two_teams(out_height, team) else team
    signed = x.dtype is dtypes.int8
    zero = form.input_zero + (128 if signed else 0)
    blocks = -(-channels // lanes)
    pairs = len(_seen(size, strides, team))
    taps = form.filter.constant
    assert taps is not None
    packed = build.packed((blocks, pairs, size[1], lanes, 4), np.int8, lambda o: pack(o, taps, strides, team),
                          key=(form.filter, "depthwise", lanes, strides, team))  # fmt: skip
    known = None if bias is None else bias.constant
    starts = build.packed((channels,), np.int32, lambda o: _starts(o, taps, known, zero),
                          key=(form.filter, _key(bias), "depthwise starts", zero))  # fmt: skip
    code = depthwise_int8.code(size=size, strides=strides, rows=rows, team=team, lanes=lanes, signed=signed,
                              dilated=across > 1, more=len(more), epilogue=epilogue)  # fmt: skip
    band = rows * max(1, RUN // (out_width * rows))
    bands = -(-out_height // band)
    words = [build.pointer(x), packed, starts, build.pointer(out), x.shape[1], x.shape[2], x.pitch, out_height,
             out_width, out.pitch, channels, top, left, down, across, bands, band, zero]  # fmt: skip
    items = n * blocks * bands
    build.step(code, [*words, *more], items, chunk=grain(12 * out_width * band * lanes, items))


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
    code = depthwise_any_int8.code(lanes=lanes, source=source, x_dtype=x.dtype.name,
                                   filter_dtype=form.filter.dtype.name, more=len(more), epilogue=epilogue)  # fmt: skip
    n, out_height, out_width, channels = out.shape
    top, _, left, _ = window.padding
    words = [build.pointer(x), build.pointer(form.filter), build.pointer(out), x.shape[1], x.shape[2], x.pitch,
             out_height, out_width, out.pitch, channels, top, left, *window.size, *window.strides, *window.dilations,
             form.multiplier, form.input_zero, form.filter_zero]  # fmt: skip
    items = n * out_height * -(-channels // lanes)
    work = 4 * out_width * lanes * window.size[0] * window.size[1]
    build.step(code, [*words, *more], items, chunk=grain(work, items))
