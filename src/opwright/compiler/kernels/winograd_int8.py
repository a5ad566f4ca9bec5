"""Convolutions of int8 by 3x3 windows with fewer multiplications, exact: Winograd's minimal filtering on integers.

Lives here: the families `transform_filter_int8`, `transform_patches_int8` and `winograd_int8`, the transforms,
`bits_of`.
Not here: where it is the quickest way, its steps (contractions_winograd.py), floats (winograd.py).

    m x m outputs = A^T [ (G g G^T) * (B^T d B) ] A

With the points 0, 1, -1 (m of 2) and 2, -2 (m of 4) B and A are of integers, and G is where row i is multiplied by
s_i; A's row i is then multiplied by L / s_i, so that outputs come out L^2 times as large: L is 2 or 24. Of bytes both
transforms have at most 15 bits: products are those of pairs of int16 (`kl.pair_dot`), 2.25 or 4 times fewer.

Sums wrap modulo 2^32, and L^2 sums of m of 4 need more bits than that. But 576 = 9 * 64, and 9 has an inverse modulo
2^32: times that, what is left is 64 S modulo 2^32, which is S where |S| < 2^25. Weights say how large S can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import i8, i16, i32, i64, ptr
from .convolution_int8 import Image, copy_line
from .epilogue import Epilogue
from .gemm_widened import AHEAD, LINE

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value

Vectors = Sequence[Any]  # of Values


def _patch_2(d: Vectors) -> list[Value]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _patch_4(d: Vectors) -> list[Value]:
    even, odd = d[4] - (d[2] << 2), d[3] - (d[1] << 2)
    far_even, far_odd = d[4] - d[2], (d[3] - d[1]) << 1
    return [
        ((d[0] - d[2]) << 2) - d[2] + d[4],
        even + odd,
        even - odd,
        far_even + far_odd,
        far_even - far_odd,
        ((d[1] - d[3]) << 2) - d[3] + d[5],
    ]


def _filter_2(g: Vectors) -> list[Value]:
    outer = g[0] + g[2]
    return [g[0], outer + g[1], outer - g[1], g[2]]


def _filter_4(g: Vectors) -> list[Value]:
    outer, far = -(g[0] + g[2]), g[0] + (g[2] << 2)
    return [g[0], outer - g[1], outer + g[1], far + (g[1] << 1), far - (g[1] << 1), g[2]]


def _output_2(s: Vectors) -> list[Value]:
    return [(s[0] << 1) + s[1] + s[2], s[1] - s[2] - (s[3] << 1)]


def _output_4(s: Vectors) -> list[Value]:
    even, odd, far_even, far_odd = s[1] + s[2], s[1] - s[2], s[3] + s[4], s[3] - s[4]
    return [
        ((s[0] + (s[0] << 1) + (even << 1)) << 1) + far_even,
        ((odd << 1) + far_odd) << 1,
        (even + far_even) << 2,
        (odd + (far_odd << 1) + (s[5] << 1) + (s[5] << 2)) << 2,
    ]


Transform = Callable[[Any], list[Any]]  # of vectors
PATCH: dict[int, Transform] = {2: _patch_2, 4: _patch_4}
FILTER: dict[int, Transform] = {2: _filter_2, 4: _filter_4}
OUTPUT: dict[int, Transform] = {2: _output_2, 4: _output_4}
"""B^T d, G g and A^T s of vectors, by m."""

INVERSE = {2: 1, 4: 954437177}
"""By m, the inverse modulo 2^32 of the odd factor of L^2: of 9."""
SHIFT = {2: 2, 4: 6}
"""By m, the power of two in L^2: of 4 and 576."""


def bits_of(m: int) -> int:
    """Bits of the sums that come out, their sign one of them."""
    return 32 - SHIFT[m]


def apart(n: Any, size: int) -> Any:
    """How far apart, in numbers of `size` bytes, pieces of n numbers lie: an odd number of cache lines, so that the
    same number of all pieces has room in a cache's sets."""
    return ((n * size + (LINE - 1)) // LINE | 1) * (LINE // size)


def _transform(values: Sequence[Sequence[Value]], transform: Transform) -> list[list[Value]]:
    """T values T^T: of the columns first, then of the rows."""
    columns = [transform(column) for column in zip(*values)]
    return [transform(row) for row in zip(*columns)]


@kl.family
def transform_filter_int8(work, source: ptr[i8], out: ptr[i16], channels: i64, *, m: int, vectors: int):
    """Filters [features, 3, 3, channels], transformed: [panel, place, channels / 2, width, 2]. Items: panels."""
    lanes, side = work.lanes(i16), m + 2
    width = vectors * work.lanes(i32)
    kept = kl.stack(i16, side * side * lanes)
    for panel in work.items():
        target = out.cast(i32, 4) + panel * (side * side * width) * (channels // 2)
        for f in kl.loop(width):
            for c in range(0, channels, lanes):
                g = source + (panel * width + f) * 9 * channels + c
                taps = [[(g + (3 * y + x) * channels).load(0, lanes).to(i16) for x in range(3)] for y in range(3)]
                found = _transform(taps, FILTER[m])
                for i in range(side):
                    for j in range(side):
                        kept.store(found[i][j], (i * side + j) * lanes)
                pairs = kept.cast(i32)
                for place in kl.loop(side * side):
                    column = target + (place * (channels // 2) + c // 2) * width + f
                    for pair in kl.loop(lanes // 2):
                        column[pair * width] = pairs[place * (lanes // 2) + pair]


@kl.family
def transform_patches_int8(
    work,
    x: ptr[i8],
    out: ptr[i16],
    size: i64,
    height: i64,
    width: i64,
    x_pitch: i64,
    channels: i64,
    zero: i64,
    top: i64,
    left: i64,
    down: i64,
    across: i64,
    first: i64,
    between: i64,
    *,
    m: int,
):
    """B^T d B of patches from `first` on, down x across in each image, m pixels apart: [place, patch, channels].

    Items: patches. between: numbers from one place to the next. size: bytes that may be read; zero: what is outside.
    Scratch: a patch of bytes and a vector.
    """
    lanes, side = work.lanes(i16), m + 2
    image = Image(x, size, height, width, x_pitch, channels, zero.to(i8).splat(work.target.vector_bytes))
    spare = work.scratch(i8)
    kept = kl.stack(i16, side * side * lanes)
    for patch in work.items():
        at = first + patch
        n, ay, ax = at // (down * across), at // across % down * m - top, at % across * m - left
        p, line, pixel = x + ((n * height + ay) * width + ax) * x_pitch, width * x_pitch, x_pitch
        if (ay >= 0) & (ay + side <= height) & (ax >= 0) & (ax + side <= width):
            pass
        else:
            p, line, pixel = spare, side * channels, kl.value(channels)
            for i in kl.loop(side):
                copy_line(image, spare + i * line, n, ay + i, ax, kl.value(side))
        for c in range(0, channels, lanes):
            for j in range(side):
                column = p + j * pixel + c
                there = [(column + i * line).load(0, lanes).to(i16) for i in range(side)]
                for i, v in enumerate(PATCH[m](there)):
                    kept.store(v, (i * side + j) * lanes)
            for i in range(side):
                row = [kept.load((i * side + j) * lanes, lanes) for j in range(side)]
                for j, v in enumerate(PATCH[m](row)):
                    out.store(v, (i * side + j) * between + patch * channels + c)


@kl.family
def winograd_int8(
    work,
    v: ptr[i16],
    filters: ptr[i16],
    starts: ptr[i32],
    out: ptr[i8],
    channels: i64,
    between: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    down: i64,
    across: i64,
    tiles: i64,
    tall: i64,
    tile_block: i64,
    panels: i64,
    panel_block: i64,
    origin: i64,
    *more: i64,
    rows: int,
    vectors: int,
    short: bool,
    m: int,
    epilogue: Epilogue,
):
    """out[n, oy, ox, f] = epilogue(starts[f] + sum x[n, oy + ky - top, ox + kx - left, c] filter[f, ky, kx, c]).

    v, between, filters: as `transform_patches_int8`, from patch `origin` on, and `transform_filter_int8` write them.
    tiles: of `rows` patches, `tall` of them, and the others (if short) of one less. Items: blocks of tile_block tiles
    by panel_block panels, panels first. Scratch: the sums of a block's patches and one panel, [place, patch, width] of
    int32, places as far apart as `apart` says.
    """
    lanes, side = work.lanes(i32), m + 2
    width = vectors * lanes
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish = epilogue.bind(more)
    sums = work.scratch(i32)
    across_panels = (panels + (panel_block - 1)) // panel_block
    for item in work.items():
        first = item // across_panels * tile_block
        last = kl.minimum(first + tile_block, tiles)
        begin, end = _row_of(first, tall, rows, short), _row_of(last, tall, rows, short)
        start, stride = item % across_panels * panel_block, apart((end - begin) * width, 4)
        for panel in range(start, kl.minimum(start + panel_block, panels)):
            q = filters + panel * (side * side * width) * channels
            for place in kl.loop(side * side):
                for t in range(first, last):
                    row = _row_of(t, tall, rows, short)
                    p = v + (place * between + row * channels)
                    into = sums + (place * stride + (row - begin) * width)
                    if short:
                        if t < tall:
                            _contract(rows, vectors, lanes, p, channels, q, into)
                        else:
                            _contract(rows - 1, vectors, lanes, p, channels, q, into)
                    else:
                        _contract(rows, vectors, lanes, p, channels, q, into)
                q = q + width * channels
            for patch in range(begin, end):
                at = origin + patch
                n, oy, ox = at // (down * across), at // across % down * m, at % across * m
                results = _transform_back(
                    sums + (patch - begin) * width, stride, starts + panel * width, m, vectors, lanes
                )
                count = kl.minimum(out_width - ox, m)
                for i in range(kl.minimum(out_height - oy, m)):
                    row = (n * out_height + oy + i) * out_width + ox
                    there = target + panel * width
                    for j in range(0, count // 2 * 2, 2):
                        both = results.load((i * m + j) * width, 2 * width)
                        found = finish(both, row + j, panel * width, width, None, 2)
                        for k in range(2):
                            (there + (row + j + k) * out_pitch).store(kl.part(found, k * width, width))
                    for j in range(count // 2 * 2, count):
                        found = finish(results.load((i * m + j) * width, width), row + j, panel * width, width)
                        (there + (row + j) * out_pitch).store(found)


def _row_of(t: Any, tall: Any, rows: int, short: bool) -> Any:
    """The first patch of a tile."""
    return t * rows - kl.maximum(t - tall, 0) if short else t * rows


def _contract(rows: int, vectors: int, lanes: int, p: Pointer, channels: Value, q: Pointer, into: Pointer) -> None:
    """The sums over the channels of a tile of patches at one place. q: the panel's."""
    sums: Registers = kl.registers(i32, lanes, rows, vectors)
    for r in range(rows):
        for v in range(vectors):
            sums[r, v] = 0
    for k in range(channels // 2):
        w = [q.load(2 * v * lanes, 2 * lanes) for v in range(vectors)]
        for at in range(0, 4 * vectors * lanes, LINE):
            q.prefetch((AHEAD + at) // 2)
        for r in range(rows):
            x = kl.bitcast((p + r * channels).cast(i32)[k].splat(lanes), i16)
            for v in range(vectors):
                sums[r, v] = kl.pair_dot(sums[r, v], x, w[v])
        q = q + 2 * vectors * lanes
    for r in range(rows):
        for v in range(vectors):
            into.store(sums[r, v], (r * vectors + v) * lanes)


def _transform_back(sums: Pointer, between: Value, starts: Pointer, m: int, vectors: int, lanes: int) -> Pointer:
    """A^T s A and what it starts with, int32[m, m, vectors * lanes]; place (i, j) is at sums[(i side + j) between]."""
    side, width = m + 2, vectors * lanes
    half, results = kl.stack(i32, m * side * lanes), kl.stack(i32, m * m * width)
    for c in kl.loop(0, width, lanes):
        start = starts.load(c, lanes)
        for j in range(side):
            for i, v in enumerate(OUTPUT[m]([(sums + (i * side + j) * between).load(c, lanes) for i in range(side)])):
                half.store(v, (i * side + j) * lanes)
        for i in range(m):
            for j, v in enumerate(OUTPUT[m]([half.load((i * side + j) * lanes, lanes) for j in range(side)])):
                exact = v * INVERSE[m] if INVERSE[m] > 1 else v
                results.store((exact >> SHIFT[m]) + start, (i * m + j) * width + c)
    return results
