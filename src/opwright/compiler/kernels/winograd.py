"""Convolutions of 3x3 windows with fewer multiplications: Winograd's minimal filtering.

Lives here: the families `winograd` and `transform_filter`, the transforms, `wins`: where it is the quickest way.
Not here: the micro-kernel (gemm_f32.py), other windows (convolution_f32.py), the selector (contractions_f32.py).

A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, 2016: of a patch d of the image and a filter g,

    m x m outputs = A^T [ (G g G^T) * (B^T d B) ] A

so that each of the (m + 2)^2 places of the transformed patch is a matrix product of its own over the channels. That
takes (m + 2)^2 / (9 m^2) of the multiplications: 4/9 where m is 2 (points 0, 1, -1), 1/4 where m is 4 (and 2, -2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f32, i64, ptr
from .convolution_f32 import Image, copy_line
from .epilogue import Epilogue
from .gemm_f32 import Source, contract, multiplies_by_lane

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value

Vectors = Sequence[Any]  # of Values


def _patch_2(d: Vectors) -> list[Value]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _patch_4(d: Vectors) -> list[Value]:
    even, odd = kl.fma(d[2], -4.0, d[4]), kl.fma(d[1], -4.0, d[3])
    far_even, far_odd = d[4] - d[2], d[3] - d[1]
    return [
        kl.fma(d[0], 4.0, kl.fma(d[2], -5.0, d[4])),
        even + odd,
        even - odd,
        kl.fma(far_odd, 2.0, far_even),
        kl.fma(far_odd, -2.0, far_even),
        kl.fma(d[1], 4.0, kl.fma(d[3], -5.0, d[5])),
    ]


def _filter_2(g: Vectors) -> list[Value]:
    outer = (g[0] + g[2]) * 0.5
    return [g[0], kl.fma(g[1], 0.5, outer), kl.fma(g[1], -0.5, outer), g[2]]


def _filter_4(g: Vectors) -> list[Value]:
    outer = (g[0] + g[2]) * (-1.0 / 6.0)
    far = kl.fma(g[2], 1.0 / 6.0, g[0] * (1.0 / 24.0))
    return [
        g[0] * 0.25,
        kl.fma(g[1], -1.0 / 6.0, outer),
        kl.fma(g[1], 1.0 / 6.0, outer),
        kl.fma(g[1], 1.0 / 12.0, far),
        kl.fma(g[1], -1.0 / 12.0, far),
        g[2],
    ]


def _output_2(s: Vectors) -> list[Value]:
    return [s[0] + s[1] + s[2], s[1] - s[2] - s[3]]


def _output_4(s: Vectors) -> list[Value]:
    even, odd = s[1] + s[2], s[1] - s[2]
    far_even, far_odd = s[3] + s[4], s[3] - s[4]
    return [
        s[0] + even + far_even,
        kl.fma(far_odd, 2.0, odd),
        kl.fma(far_even, 4.0, even),
        kl.fma(far_odd, 8.0, odd) + s[5],
    ]


Transform = Callable[[Any], list[Any]]  # of vectors
PATCH: dict[int, Transform] = {2: _patch_2, 4: _patch_4}
FILTER: dict[int, Transform] = {2: _filter_2, 4: _filter_4}
OUTPUT: dict[int, Transform] = {2: _output_2, 4: _output_4}
"""B^T d, G g and A^T s of vectors, by m."""


def wins(channels: int, features: int, pixels: tuple[int, int], lanes: int) -> int:
    """The m for which it is quicker than a direct convolution, or 0. pixels: the output's height and width.

    Measured: it wants enough channels for the products to outweigh the transforms, and a transformed filter that the
    caches hold: m of 4 has four times the plain filter's numbers, m of 2 not quite twice as many.
    """
    if channels % lanes or features % (2 * lanes) or min(channels, features) < 2 * lanes or min(pixels) < 6:
        return 0
    if 36 * 4 * channels * features <= LARGEST:
        return 4
    return 2 if 16 * 4 * channels * features <= LARGEST else 0


def sizes_of_patches(channels: int, features: int, pixels: tuple[int, int], lanes: int) -> tuple[int, ...]:
    """Every m that the kernel can do, and 0."""
    whole = channels % lanes == 0 and features % (2 * lanes) == 0
    return (0, *(m for m in PATCH if whole and min(pixels) >= m))


LARGEST = 5 << 20
"""Bytes of a transformed filter that pay."""


def size_of(channels: int, features: int, m: int) -> int:
    """Floats of a transformed filter."""
    return features * (m + 2) ** 2 * (channels + 1)


def scratch_of(channels: int, width: int, rows: int, m: int) -> int:
    """Bytes of scratch that `winograd` needs: transformed patches, sums of a panel, one patch."""
    places = (m + 2) ** 2
    return 4 * (places * rows * (channels + width) + places * channels + 16)


@kl.family
def transform_filter(work, source: ptr[kl.u8], out: ptr[f32], channels: i64, *, dtype: Any, m: int):
    """Filters [features, 3, 3, channels] of `dtype`, transformed: [panel, place, 1 + channels, width], of which
    [:, :, 0] is left as it is. Items: panels of two vectors."""
    lanes = work.lanes(f32)
    width, side = 2 * lanes, m + 2
    filters = source.cast(dtype, dtype.size)
    kept = kl.stack(f32, side * side * lanes)
    for panel in work.items():
        target = out + panel * (side * side * width) * (channels + 1) + width
        for f in kl.loop(width):
            for c in range(0, channels, lanes):
                g = filters + (panel * width + f) * 9 * channels + c
                lines = [
                    FILTER[m]([(g + (3 * y + x) * channels).load(0, lanes).to(f32) for y in range(3)]) for x in range(3)
                ]
                for i in range(side):
                    for j, v in enumerate(FILTER[m]([line[i] for line in lines])):
                        kept.store(v, (i * side + j) * lanes)
                for place in kl.loop(side * side):
                    column = target + (place * (channels + 1) + c) * width + f
                    for lane in kl.loop(lanes):
                        column[lane * width] = kept[place * lanes + lane]


@kl.family
def winograd(
    work,
    x: ptr[f32],
    filters: ptr[f32],
    taps: ptr[kl.u8],
    out: ptr[f32],
    height: i64,
    width: i64,
    x_pitch: i64,
    channels: i64,
    top: i64,
    left: i64,
    out_height: i64,
    out_width: i64,
    out_pitch: i64,
    features: i64,
    down: i64,
    across: i64,
    tall: i64,
    *more: i64,
    rows: int,
    short: bool,
    m: int,
    dtype: Any,
    epilogue: Epilogue,
):
    """out[n, oy, ox, f] = epilogue(sum x[n, oy + ky - top, ox + kx - left, c] filter[f, ky, kx, c]) of 3x3 windows.

    filters: as `transform_filter` writes them; taps: as they are, of `dtype`. Outputs that come out as infinities or
    NaN are computed again, by the sum above: all others are right.
    The output is cut into patches of m x m, down x across an image.
    Items: `rows` patches next to each other, `tall` of them, then (if short) one less. channels are whole vectors,
    features whole panels. Scratch: `scratch_of`.
    """
    lanes = work.lanes(f32)
    wide, side = 2 * lanes, m + 2
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish, by_lane = epilogue.bind(more), multiplies_by_lane(work.target)
    image = Image(x, height, width, x_pitch, channels)
    patches = work.scratch(f32)
    for item in work.items():
        first = item * rows
        count = kl.value(rows)
        if short:
            first = first - kl.maximum(item - tall, 0)
            count = kl.select(item < tall, count, rows - 1)
        between = count * channels  # floats from one place to the next
        sums = patches + between * (side * side)
        for t in range(count):
            at = first + t
            n, oy, ox = at // (down * across), at // across % down * m, at % across * m
            _transform_patch(
                image,
                n,
                oy - top,
                ox - left,
                patches + t * channels,
                between,
                sums + count * (side * side * wide),
                m,
                lanes,
            )
        for panel in range(features // wide):
            q = filters + panel * (side * side * wide) * (channels + 1)
            for place in kl.loop(side * side):
                source = Source(patches + place * between, channels, 1, 0, channels, by_lane)
                into = sums + place * count * wide
                if short:
                    if item < tall:
                        _keep(contract(rows, 2, lanes, source, q), rows, lanes, into)
                    else:
                        _keep(contract(rows - 1, 2, lanes, source, q), rows - 1, lanes, into)
                else:
                    _keep(contract(rows, 2, lanes, source, q), rows, lanes, into)
                q = q + wide * (channels + 1)
            for t in range(count):
                at = first + t
                n, oy, ox = at // (down * across), at // across % down * m, at % across * m
                for c in range(0, wide, lanes):
                    results = _transform_back(sums + t * wide + c, count * wide, m, lanes)
                    column = panel * wide + c
                    if _has_other_than_finite(results, m, lanes):
                        weights = taps.cast(dtype, dtype.size) + column * (9 * channels)
                        _sum_directly(image, n, oy - top, ox - left, weights, results, m, lanes)
                    for i in range(kl.minimum(out_height - oy, m)):
                        row = (n * out_height + oy + i) * out_width + ox
                        for j in range(kl.minimum(out_width - ox, m)):
                            found = finish(results.load((i * m + j) * lanes, lanes), row + j, column, lanes)
                            (target + (row + j) * out_pitch).store(found, column)


def _has_other_than_finite(results: Pointer, m: int, lanes: int) -> Value:
    """Whether an output is an infinity or NaN: 0 times it is not 0."""
    found = kl.zeros(f32, lanes)
    for place in range(m * m):
        found = kl.fma(results.load(place * lanes, lanes), kl.zeros(f32, lanes), found)
    return kl.any(found != 0.0)


def _sum_directly(
    image: Image, n: Value, y0: Value, x0: Value, taps: Pointer, results: Pointer, m: int, lanes: int
) -> None:
    """The outputs of a patch by their definition. Transforms add elements of a patch that an output does not see, and
    take them away again: with an infinity, or a sum above the greatest float, that is NaN."""
    for place in kl.loop(m * m):
        for lane in kl.loop(lanes):
            total = kl.full(f32, 0, 0.0)
            for tap in kl.loop(9):
                y, x = y0 + place // m + tap // 3, x0 + place % m + tap % 3
                if (y >= 0) & (y < image.height) & (x >= 0) & (x < image.width):
                    pixel = image.x + ((n * image.height + y) * image.width + x) * image.pitch
                    weights = taps + (lane * 9 + tap) * image.channels
                    for c in range(image.channels):
                        total = kl.fma(pixel[c], weights[c].to(f32), total)
            results[place * lanes + lane] = total


def _keep(sums: Registers, rows: int, lanes: int, into: Pointer) -> None:
    for r in range(rows):
        for v in range(2):
            into.store(sums[r, v], (r * 2 + v) * lanes)


def _transform_patch(
    image: Image, n: Value, y: Value, x: Value, out: Pointer, between: Value, spare: Pointer, m: int, lanes: int
) -> None:
    """B^T d B of the patch at (y, x) of an image: place (i, j) goes to out[(i side + j) between + channel]."""
    side = m + 2
    p = image.x + ((n * image.height + y) * image.width + x) * image.pitch
    line, pixel = image.width * image.pitch, image.pitch
    inside = (y >= 0) & (y + side <= image.height) & (x >= 0) & (x + side <= image.width)
    if inside:
        pass
    else:
        p, line, pixel = spare, side * image.channels, kl.value(image.channels)
        for i in kl.loop(side):
            copy_line(image, p + i * line, n, y + i, x, kl.value(side), lanes, False)
    kept = kl.stack(f32, side * side * lanes)
    for c in range(0, image.channels, lanes):
        for j in range(side):
            column = p + j * pixel + c
            for i, v in enumerate(PATCH[m]([(column + i * line).load(0, lanes) for i in range(side)])):
                kept.store(v, (i * side + j) * lanes)
        for i in range(side):
            for j, v in enumerate(PATCH[m]([kept.load((i * side + j) * lanes, lanes) for j in range(side)])):
                (out + (i * side + j) * between).store(v, c)


def _transform_back(sums: Pointer, between: Value, m: int, lanes: int) -> Pointer:
    """A^T s A of one vector of channels, m x m vectors in memory; place (i, j) is at sums[(i side + j) between]."""
    side = m + 2
    half, results = kl.stack(f32, m * side * lanes), kl.stack(f32, m * m * lanes)
    for j in range(side):
        for i, v in enumerate(OUTPUT[m]([(sums + (i * side + j) * between).load(0, lanes) for i in range(side)])):
            half.store(v, (i * side + j) * lanes)
    for i in range(m):
        for j, v in enumerate(OUTPUT[m]([half.load((i * side + j) * lanes, lanes) for j in range(side)])):
            results.store(v, (i * m + j) * lanes)
    return results
