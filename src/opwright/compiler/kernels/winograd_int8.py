"""Convolutions of int8 by 3x3 windows with Winograd's minimal filtering on integers, exact.

Lives here: the families `transform_filter_int8`, `transform_patches_int8` and `winograd_int8`, the transforms,
`sum_bits`.
Not here: where it is faster, its steps (contractions_winograd.py), floats (winograd.py).

    m x m outputs = A^T [ (G g G^T) * (B^T d B) ] A

With the points 0, 1, -1 (m of 2) and 2, -2 (m of 4) B and A are integers, and G if its row i is multiplied by s_i; row
i of A is then multiplied by L / s_i, so that outputs are L^2 times as large: L is 2 or 24. Transformed bytes have at
most 15 bits: products are those of pairs of int16 (`kl.pair_dot`), 2.25 or 4 times fewer.

Sums wrap modulo 2^32, and L^2 sums of m of 4 need more bits than that. But 576 = 9 * 64, and 9 has an inverse modulo
2^32: multiplied by it, the result is 64 S modulo 2^32, which is S if |S| < 2^25. The weights bound S.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from .. import language as kl
from ..language import i8, i16, i32, i64, ptr
from .convolution_int8 import ByteImages, copy_line
from .epilogue import Epilogue
from .gemm_int16 import AHEAD
from .output_tiles import store_registers
from .tiling import LINE_BYTES, for_height, tile_start
from .winograd import Transform, Vectors, patch_2, patch_origin

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work


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


PATCH: dict[int, Transform] = {2: patch_2, 4: _patch_4}
FILTER: dict[int, Transform] = {2: _filter_2, 4: _filter_4}
OUTPUT: dict[int, Transform] = {2: _output_2, 4: _output_4}
"""Functions for B^T d, G g and A^T s of vectors, by m."""

INVERSE = {2: 1, 4: 954437177}
"""Inverses modulo 2^32 of the odd factor of L^2, by m: of 1 and 9."""
SHIFT = {2: 2, 4: 6}
"""Exponents of two in L^2, by m: of 4 and 576."""


def sum_bits(m: int) -> int:
    """Return the bits of the resulting sums, with their sign."""
    return 32 - SHIFT[m]


N = TypeVar("N", int, "Value")


def padded_stride(n: N, size: int) -> N:
    """Return the distance stride arrays of n numbers of `size` bytes: an odd number of cache lines.

    So elements of equal index in all arrays map to different sets of a cache.
    """
    return ((n * size + (LINE_BYTES - 1)) // LINE_BYTES | 1) * (LINE_BYTES // size)


def _transform(values: Sequence[Sequence[Value]], transform: Transform) -> list[list[Value]]:
    """Return T values T^T: transforms the columns, then the rows."""
    columns = [transform(column) for column in zip(*values)]
    return [transform(row) for row in zip(*columns)]


@kl.family(addressed=True)
def transform_filter_int8(work: Work, source: ptr[i8], out: ptr[i16], channels: i64, *, m: int, vectors: int) -> None:
    """Transform filters [features, 3, 3, channels] to [panel, element, channels / 2, width, 2]. Items: panels."""
    lanes, side = work.lanes(i16), m + 2
    width = vectors * work.lanes(i32)
    spilled = kl.stack(i16, side * side * lanes)
    for panel in work.items():
        target = out.cast(i32, 4) + panel * (side * side * width) * (channels // 2)
        for f in kl.loop(width):
            for c in range(0, channels, lanes):
                g = source + (panel * width + f) * 9 * channels + c
                taps = [[(g + (3 * y + x) * channels).load(0, lanes).to(i16) for x in range(3)] for y in range(3)]
                transformed = _transform(taps, FILTER[m])
                for i in range(side):
                    for j in range(side):
                        spilled.store(transformed[i][j], (i * side + j) * lanes)
                pairs = spilled.cast(i32)
                for element in kl.loop(side * side):
                    column = target + (element * (channels // 2) + c // 2) * width + f
                    for pair in kl.loop(lanes // 2):
                        column[pair * width] = pairs[element * (lanes // 2) + pair]


@kl.family(addressed=True)
def transform_patches_int8(
    work: Work,
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
    stride: i64,
    *,
    m: int,
) -> None:
    """Transform patches from `first` on, down x across in each image, m apart: B^T d B [element, patch, channels].

    Items: patches. stride: numbers from one element to the next. size: bytes that may be read; zero: of the padding.
    Scratch: a patch of bytes and a vector.
    """
    lanes, side = work.lanes(i16), m + 2
    image = ByteImages(x, size, height, width, x_pitch, channels, zero.to(i8).splat(work.target.vector_bytes))
    spare = work.scratch(i8)
    spilled = kl.stack(i16, side * side * lanes)
    for patch in work.items():
        n, oy, ox = patch_origin(first + patch, down, across, m)
        ay, ax = oy - top, ox - left
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
                taps = [(column + i * line).load(0, lanes).to(i16) for i in range(side)]
                for i, v in enumerate(PATCH[m](taps)):
                    spilled.store(v, (i * side + j) * lanes)
            for i in range(side):
                row = [spilled.load((i * side + j) * lanes, lanes) for j in range(side)]
                for j, v in enumerate(PATCH[m](row)):
                    out.store(v, (i * side + j) * stride + patch * channels + c)


@kl.family(addressed=True)
def winograd_int8(
    work: Work,
    v: ptr[i16],
    filters: ptr[i16],
    initial: ptr[i32],
    out: ptr[i8],
    channels: i64,
    stride: i64,
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
) -> None:
    """Compute out[n, oy, ox, f] = epilogue(initial[f] + sum x[n, oy + ky - top, ox + kx - left, c] g[f, ky, kx, c]).

    v, stride, filters: transformed x and g, written by `transform_patches_int8`, from patch `origin` on, and
    `transform_filter_int8`. tiles: of `rows` patches, `tall` of them, the others (if short) of one less. Items: blocks
    of tile_block tiles by panel_block panels, panels first. Scratch: the sums of the patches of a block and one panel,
    [element, patch, width] of int32, elements `padded_stride` apart.
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
        begin, end = tile_start(first, tall, rows, short), tile_start(last, tall, rows, short)
        start, sum_stride = item % across_panels * panel_block, padded_stride((end - begin) * width, 4)
        for panel in range(start, kl.minimum(start + panel_block, panels)):
            q = filters + panel * (side * side * width) * channels
            for element in kl.loop(side * side):
                for t in range(first, last):
                    row, is_tall = tile_start(t, tall, rows, short), t < tall if short else None
                    p = v + (element * stride + row * channels)
                    target_sums = sums + (element * sum_stride + (row - begin) * width)
                    for_height(rows, is_tall, _contract, vectors, lanes, p, channels, q, target_sums)
                q = q + width * channels
            for patch in range(begin, end):
                n, oy, ox = patch_origin(origin + patch, down, across, m)
                results = _transform_back(
                    sums + (patch - begin) * width, sum_stride, initial + panel * width, m, vectors, lanes
                )
                count = kl.minimum(out_width - ox, m)
                for i in range(kl.minimum(out_height - oy, m)):
                    row = (n * out_height + oy + i) * out_width + ox
                    channel = target + panel * width
                    for j in range(0, count // 2 * 2, 2):
                        pair = results.load((i * m + j) * width, 2 * width)
                        y = finish(pair, row + j, panel * width, width, None, 2)
                        for k in range(2):
                            (channel + (row + j + k) * out_pitch).store(kl.part(y, k * width, width))
                    for j in range(count // 2 * 2, count):
                        y = finish(results.load((i * m + j) * width, width), row + j, panel * width, width)
                        (channel + (row + j) * out_pitch).store(y)


def _contract(rows: int, vectors: int, lanes: int, p: Pointer, channels: Value, q: Pointer, out: Pointer) -> None:
    """Sum a tile of patches at one element over the channels. q: of the panel."""
    sums: Registers = kl.registers(i32, lanes, rows, vectors)
    for r in range(rows):
        for v in range(vectors):
            sums[r, v] = 0
    for k in range(channels // 2):
        w = [q.load(2 * v * lanes, 2 * lanes) for v in range(vectors)]
        for offset in range(0, 4 * vectors * lanes, LINE_BYTES):
            q.prefetch((AHEAD + offset) // 2)
        for r in range(rows):
            x = kl.bitcast((p + r * channels).cast(i32)[k].splat(lanes), i16)
            for v in range(vectors):
                sums[r, v] = kl.pair_dot(sums[r, v], x, w[v])
        q = q + 2 * vectors * lanes
    store_registers(sums, out)


def _transform_back(sums: Pointer, stride: Value, initial: Pointer, m: int, vectors: int, lanes: int) -> Pointer:
    """Return A^T s A + initial, int32[m, m, vectors * lanes]; element (i, j) is sums[(i side + j) stride]."""
    side, width = m + 2, vectors * lanes
    half, results = kl.stack(i32, m * side * lanes), kl.stack(i32, m * m * width)
    for c in kl.loop(0, width, lanes):
        start = initial.load(c, lanes)
        for j in range(side):
            for i, v in enumerate(OUTPUT[m]([(sums + (i * side + j) * stride).load(c, lanes) for i in range(side)])):
                half.store(v, (i * side + j) * lanes)
        for i in range(m):
            for j, v in enumerate(OUTPUT[m]([half.load((i * side + j) * lanes, lanes) for j in range(side)])):
                exact = v * INVERSE[m] if INVERSE[m] > 1 else v
                results.store((exact >> SHIFT[m]) + start, (i * m + j) * width + c)
    return results
