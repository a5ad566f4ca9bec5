"""Depthwise convolution of integers: each channel by itself, sums of bytes in int32, exact.

Lives here: the maker of Depthwise on integers, the family of windows whose code is unrolled.
Not here: any window (depthwise_any_int8.py), tiles and packed filters (depthwise_tiles.py), floats
(depthwise_f32.py), what becomes of the sums (epilogue.py).

As for floats, the kernel goes along a row of the image and adds each column it loads to all the outputs that see it.
A column is the pixels of four rows, one below the other, their bytes interleaved: a dot product of four bytes then does
a column of the window, of two rows of outputs where both see these four. The filter is packed the same way.

    sum (x - x_zero) w = sum x' w - x'_zero sum w,   x' = x as a byte without sign (int8: x + 128)

The last sum is known beforehand and the sums start with it. What lies outside of the image is x'_zero. Weights less
their zero point may need nine bits: they are the sum of two parts of eight.

Targets without such an instruction take columns of two rows, or of one, widened to int16: then x' is x, and weights are
one part. 64-bit ARM's instruction takes bytes with a sign: x' is x there, or x - 128 where x has none.

Floats beside a filter of integers are rounded first (dynamic_quantization.py), each image with a zero point and a scale
of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..loops.forms import Buffer, Depthwise, Ring
from ..target import Target, host
from ..tuning.choices import DEPTHWISE_TEAMS
from . import Unmade, maker
from .depthwise_any_int8 import depthwise_any_int8
from .depthwise_f32 import LARGEST, line_of, ring_of, slot_of, vector_lanes, within
from .depthwise_tiles import (
    FOURS,
    ONES,
    PAIRS,
    Ends,
    Tile,
    columns_of,
    deep_on,
    finish_columns,
    lane_bytes,
    look_up_columns,
    pack,
    parts_of,
    slide_of,
    starts_of,
    tile_of,
    tiles_of,
)
from .dynamic_quantization import rounded_rows
from .epilogue import epilogue_of, without_bias
from .tile_writing import ending_of
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

BYTES = (dtypes.int8, dtypes.uint8)
RUN = 128
"""Pixels of the output that a work item does in each channel, about: what it loads first is not much beside them."""


@kl.family
def depthwise_int8(
    work,
    x: ptr[u8],
    filter: ptr[i8],
    starts: ptr[i32],
    y: ptr[u8],
    height: i64,
    width: i64,
    in_pitch: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    channels: i64,
    top: i64,
    left: i64,
    down: i64,
    across: i64,
    bands: i64,
    band: i64,
    ring: i64,
    shift: i64,
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
    """An item: the tile's channels of a band of rows. down, across, ring, shift: as for floats. zero: x'_zero.
    signed: whether x are int8. together: columns of outputs that are finished at a time, so that a vector is full, or
    0: a row at a time.

    rounded: x are floats that were rounded; zeros, scales: of each image. starts: then the sums of the filter.
    """
    ending = ending_of(epilogue, more, work.target) if together else None
    table = None if ending is None else ending.table
    finish = epilogue.bind(more) if ending is None else ending.finish
    lanes, strides, of_bytes = tile.lanes, tile.strides, tile.deep == FOURS
    image = x.cast(held_as(work.target)) if of_bytes else x.cast(i8 if signed else u8)
    weights = filter if of_bytes else filter.cast(i16)
    flipped = flip_of(work.target, signed) if of_bytes else 0
    unrolled = work.target.is_aarch64
    blocks = (channels + (lanes - 1)) // lanes
    outside = kl.stack(image.dtype, lanes)
    for item in work.items():
        block, rest = item % blocks, item // blocks
        n = rest // bands
        c = kl.minimum(block * lanes, channels - lanes)
        taps = weights + block * math.prod(tile.packed)
        start, scale = (starts + c).load(0, lanes), None
        if rounded:
            zero, scale = zeros[n] + flipped, scales[n]
            start = start * -zero
        outside.store((zero.to(image.dtype) ^ kl.full(image.dtype, 0, flipped)).splat(lanes))
        first = (rest % bands) * band
        for row in range(first, kl.minimum(first + band, out_height), tile.rows):
            oy = kl.minimum(row, out_height - tile.rows)
            lines = []  # the rows of the image that these rows of outputs see, and how far apart their pixels are
            for i in range((tile.rows - 1) * strides[0] + tile.size[0]):
                iy = oy * strides[0] - top + i * down
                inside = within(iy, height)
                line = image + (line_of(n * height + iy, ring, shift) * width * in_pitch + c)
                line = kl.select(inside, line, outside)
                lines.append((line, kl.select(inside, in_pitch, 0)))
            at, out = (n * out_height + oy) * out_width, y.cast(epilogue.expr.dtype)
            if dilated:
                for phase in range(across):
                    count = (out_width - phase + (across - 1)) // across
                    _along(
                        tile,
                        lines,
                        taps,
                        start,
                        scale,
                        zero,
                        finish,
                        out,
                        at + phase,
                        c,
                        count,
                        phase - left,
                        across,
                        width,
                        out_width,
                        out_pitch,
                        flipped,
                        unrolled,
                        together,
                        work,
                        table,
                    )
            else:
                _along(
                    tile,
                    lines,
                    taps,
                    start,
                    scale,
                    zero,
                    finish,
                    out,
                    at,
                    c,
                    out_width,
                    -left,
                    1,
                    width,
                    out_width,
                    out_pitch,
                    flipped,
                    unrolled,
                    together,
                    work,
                    table,
                )


def held_as(target: Target) -> DType:
    """What pixels are as bytes that are multiplied."""
    return dtypes.int8 if target.is_aarch64 else dtypes.uint8


def flip_of(target: Target, signed: bool) -> int:
    """What x' is larger by than x, and the bits that make it of x. signed: whether x are int8."""
    if held_as(target) is dtypes.int8:
        return 0 if signed else -128
    return 128 if signed else 0


def _along(
    tile: Tile,
    lines: Any,
    taps: Any,
    start: Any,
    scale: Any,
    zero: Any,
    finish: Any,
    y: Any,
    at: Any,
    c: Any,
    count: Any,
    base: Any,
    across: Any,
    width: Any,
    out_width: Any,
    out_pitch: Any,
    flipped: int,
    unrolled: bool,
    together: int,
    work: Any,
    table: Any,
) -> None:
    """`count` columns of outputs, `across` apart, as for floats. table: where results are looked up afterwards, if they
    are."""
    (kh, kw), (sh, sw), rows, team, _, lanes, deep = tile
    dot = {FOURS: kl.dot4_signed if lines[0][0].dtype is dtypes.int8 else kl.dot4, PAIRS: kl.pair_dot, ONES: _dot}[deep]
    held = lines[0][0].dtype if deep == FOURS else i16
    groups = [
        lines[row * sh : (row + team - 1) * sh + kh][deep * g : deep * g + deep]
        for row in range(0, rows, team)
        for g in range(tile.groups)
    ]
    depth = -(-kw // sw)
    kept = kl.stack(i32 if scale is None else f32, max(together, 1) * rows * lanes)
    indices = None if table is None else work.scratch(u8)
    ends = Ends(y, kept, finish, at, c, rows, lanes, across, out_width, out_pitch, indices, table)
    sums = kl.registers(i32, lanes, rows, depth)
    for r in range(rows):
        for d in range(depth):
            sums[r, d] = start
    turns, end = depth if unrolled else 1, count + (depth - 1)
    for first in range(0, end, turns):
        for turn in range(turns):
            t = kl.value(first) + turn
            if t < end if turn else True:
                for j in range(min(sw, kw)):
                    column = (t * sw + j) * across + base
                    pixels = kl.registers(held, deep * lanes, len(groups))
                    for g in range(len(groups)):
                        pixels[g] = zero.to(held).splat(deep * lanes)
                    if within(column, width):
                        for g in range(len(groups)):
                            parts = [line.load(column * pitch, lanes) for line, pitch in groups[g]]
                            pixels[g] = _column(parts, deep, flipped).to(held)
                    for place in range(len(tile.seen)):
                        r, g, _ = tile.seen[place]
                        for d in range(depth):
                            kx, slot = d * sw + j, slot_of(d, turn, depth, turns)
                            if kx < kw:
                                tap = taps.load((place * kw + kx) * deep * lanes, deep * lanes)
                                for k in range(rows // team):
                                    found = dot(sums[r + k * team, slot], pixels[g + k * tile.groups], tap)
                                    sums[r + k * team, slot] = found
                last = slot_of(depth - 1, turn, depth, turns)
                if t >= depth - 1:
                    done = t - (depth - 1)
                    for r in range(rows):
                        total = sums[r, last] if scale is None else sums[r, last].to(f32) * scale
                        if together == 0:
                            row = at + r * out_width + done * across
                            (y + row * out_pitch).store(finish(total, row, c, lanes), c)
                        else:
                            kept.store(total, (done % together * rows + r) * lanes)
                    if together == 1:
                        finish_columns(ends, done, 0, 1)
                    elif together > 1:
                        full = done % together == together - 1
                        if full:
                            finish_columns(ends, done - (together - 1), 0, together)
                for r in range(rows):
                    if turns == 1:
                        for d in range(depth - 1, 0, -1):
                            sums[r, d] = sums[r, d - 1]
                    sums[r, last if turns > 1 else 0] = start
    if together > 1:
        for place in range(count % together):
            finish_columns(ends, count // together * together + place, place, 1)
    if table is not None:
        look_up_columns(ends, count, together)


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
    size = lane_bytes(host()) if quick else 8 if x.dtype is dtypes.int16 else 4
    (_quick if quick else _any)(form, vector_lanes(out.shape[-1], size), build)


def _is_quick(form: Depthwise) -> bool:
    window, filter = form.window, form.filter
    return (
        form.input.dtype is not dtypes.int16
        and filter.constant is not None
        and parts_of(filter, form.filter_zero, deep_on(host())) <= 2
        and form.multiplier == 1
        and window.size[0] * window.size[1] <= LARGEST
        and (window.dilations[1] == 1 or window.strides[1] == 1)
    )


def _quick(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out = form.input, form.output
    height, width, out_height, out_width, window = slide_of(form)
    (down, across), (top, _, left, _) = window.dilations, window.padding
    bias, expr, operands = (None, form.expr, form.operands) if form.rounding else without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, out, build)
    n, channels = out.shape[0], out.shape[3]
    image, pitch, zeros, scales = _rounded(form, build) if form.rounding else (build.pointer(x), x.pitch, 0, 0)
    deep = deep_on(host())
    tiles = tiles_of(host(), window, out_height, parts_of(form.filter, form.filter_zero, deep), lanes)
    teams = build.choose(
        DEPTHWISE_TEAMS,
        range(1, len(tiles) + 1),
        1 + tiles.index(tile_of(tiles, out_height)),
        n,
        out_height,
        out_width,
        channels,
        *window.size,
        window.strides[0],
    )
    tile = tiles[teams - 1]
    rows = tile.rows
    signed = x.dtype is not dtypes.uint8
    zero = -1 if form.rounding else form.input_zero + (flip_of(host(), signed) if deep == FOURS else 0)
    assert form.filter.constant is not None
    taps = form.filter.constant.reshape(*window.size, channels)
    blocks = -(-channels // lanes)
    packed = build.packed(
        (blocks, *tile.packed),
        np.int8 if deep == FOURS else np.int16,
        lambda o: pack(o, taps, form.filter_zero, tile),
        key=(form.filter, "depthwise", tile.size, tile.strides, tile.team, lanes, deep, form.filter_zero),
    )
    known = None if bias is None else bias.constant
    starts = build.packed(
        (channels,),
        np.int32,
        lambda o: starts_of(o, taps, form.filter_zero, known, zero),
        key=(form.filter, _key(bias), "depthwise starts", zero, form.filter_zero),
    )
    together = columns_of(host(), tile, out, out_width, epilogue)
    code = depthwise_int8.code(
        tile=tile,
        signed=signed,
        dilated=across > 1,
        rounded=bool(form.rounding),
        together=together,
        more=len(more),
        epilogue=epilogue,
    )
    band = rows * max(1, RUN // (out_width * rows))
    bands = -(-out_height // band)
    words = [
        image,
        packed,
        starts,
        build.pointer(out),
        height,
        width,
        pitch,
        out_height,
        out_width,
        out.pitch,
        channels,
        top,
        left,
        down,
        across,
        bands,
        band,
        *ring_of(form),
        zero,
        zeros,
        scales,
    ]
    items = n * blocks * bands
    scratch = (out_width + together) * rows * lanes  # for what is looked up after a row of columns
    build.step(code, [*words, *more], items, scratch, grain(12 * out_width * band * lanes, items))


def _rounded(form: Depthwise, build: Builder) -> tuple[Any, int, Any, Any]:
    """Images as integers: their address and pitch, the zero points and the scales."""
    x = form.input
    n, columns = x.shape[0], math.prod(x.shape[1:])
    if x.pitch != x.shape[3] or (columns % 4 and n > 1):
        raise Unmade("images of a slice to be rounded")
    made = rounded_rows(build, x, n, columns, columns, form.rounding == "symmetric")
    return made.x, x.pitch, made.zeros, made.scales


def _key(bias: Buffer | None) -> Any:
    return "no bias" if bias is None else bias


def _any(form: Depthwise, lanes: int, build: Builder) -> None:
    x, out, window = form.input, form.output, form.window
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    source = "same" if form.multiplier == 1 else "only" if x.shape[-1] == 1 else "multiplier"
    image, pitch, zeros, scales = _rounded(form, build) if form.rounding else (build.pointer(x), x.pitch, 0, 0)
    code = depthwise_any_int8.code(
        lanes=lanes,
        source=source,
        x_dtype=dtypes.int8 if form.rounding else x.dtype,
        filter_dtype=form.filter.dtype,
        rounded=bool(form.rounding),
        more=len(more),
        epilogue=epilogue,
    )
    n, out_height, out_width, channels = out.shape
    top, _, left, _ = window.padding
    words = [
        image,
        build.pointer(form.filter),
        build.pointer(out),
        x.shape[1],
        x.shape[2],
        pitch,
        out_height,
        out_width,
        out.pitch,
        channels,
        top,
        left,
        *window.size,
        *window.strides,
        *window.dilations,
        form.multiplier,
        form.input_zero,
        form.filter_zero,
        zeros,
        scales,
    ]
    items = n * out_height * -(-channels // lanes)
    work = 4 * out_width * lanes * window.size[0] * window.size[1]
    build.step(code, [*words, *more], items, chunk=grain(work, items))
