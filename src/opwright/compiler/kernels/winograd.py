"""Convolutions of float32 by 3x3 windows with Winograd's minimal filtering.

Lives here: the families `winograd` and `transform_filter`, the transforms.
Not here: the micro-kernel (gemm_f32.py), where it is faster than a direct convolution, its steps
(contractions_winograd.py), other windows (convolution_f32.py).

A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, 2016: for a patch d of the image and a filter g

    m x m outputs = A^T [ (G g G^T) * (B^T d B) ] A

so that each of the (m + 2)^2 elements of the transformed patch is a matrix product over the channels. These are
(m + 2)^2 / (9 m^2) of the multiplications: 4/9 if m is 2 (points 0, 1, -1), 1/4 if m is 4 (and 2, -2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i64, ptr
from .convolution_f32 import FloatImages, copy_line
from .epilogue import Epilogue
from .gemm_f32 import LhsF32, contract
from .moves import transposed
from .output_tiles import store_registers
from .tiling import for_height, tile_rows, tile_start
from .weight_packing_f32 import multiplies_by_lane

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work

Vectors = Sequence[Any]
"""Vectors of the kernel language."""


def patch_2(d: Vectors) -> list[Value]:
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


Transform = Callable[[Vectors], list[Any]]
PATCH: dict[int, Transform] = {2: patch_2, 4: _patch_4}
FILTER: dict[int, Transform] = {2: _filter_2, 4: _filter_4}
OUTPUT: dict[int, Transform] = {2: _output_2, 4: _output_4}
"""Functions for B^T d, G g and A^T s of vectors, by m."""


def filter_size(channels: int, features: int, m: int) -> int:
    """Return the floats of a transformed filter."""
    return features * (m + 2) ** 2 * (channels + 1)


def scratch_size(channels: int, width: int, rows: int, m: int) -> int:
    """Return the bytes of scratch memory of `winograd`: transformed patches, sums of a panel, one patch."""
    elements = (m + 2) ** 2
    return 4 * (elements * rows * (channels + width) + elements * channels + 16)


@kl.family(addressed=True)
def transform_filter(work: Work, source: ptr[kl.u8], out: ptr[f32], channels: i64, *, dtype: DType, m: int) -> None:
    """Transform filters [features, 3, 3, channels] of `dtype` to [panel, element, 1 + channels, width].

    [:, :, 0] is 0, the initial sums. Items: panels of two vectors.
    """
    lanes = work.lanes(f32)
    width, side = 2 * lanes, m + 2
    filters = source.cast(dtype, dtype.size)
    taps = kl.stack(f32, 9 * lanes * lanes)
    for panel in work.items():
        target = out + panel * (side * side * width) * (channels + 1) + width
        for element in kl.loop(side * side):
            for f in range(0, width, lanes):
                (target + (element * (channels + 1) - 1) * width).store(kl.zeros(f32, lanes), f)
        for f in kl.loop(0, width, lanes):
            for c in range(0, channels, lanes):
                g = filters + (panel * width + f) * 9 * channels + c
                for tap in range(9):  # a vector of channels of each feature becomes one of features of each channel
                    rows = [(g + (i * 9 + tap) * channels).load(0, lanes).to(f32) for i in range(lanes)]
                    for i, v in enumerate(transposed(rows)):
                        taps.store(v, (i * 9 + tap) * lanes)
                for i in kl.loop(lanes):
                    column = target + (c + i) * width + f
                    loaded = [taps.load((i * 9 + tap) * lanes, lanes) for tap in range(9)]
                    lines = [FILTER[m]([loaded[3 * y + x] for y in range(3)]) for x in range(3)]
                    for row in range(side):
                        for j, v in enumerate(FILTER[m]([line[row] for line in lines])):
                            (column + (row * side + j) * (channels + 1) * width).store(v, 0)


@kl.family(addressed=True)
def winograd(
    work: Work,
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
    dtype: DType,
    epilogue: Epilogue,
) -> None:
    """Compute out[n, oy, ox, f] = epilogue(sum x[n, oy + ky - top, ox + kx - left, c] filter[f, ky, kx, c]).

    Windows are 3x3. filters: written by `transform_filter`; taps: untransformed, of `dtype`. Outputs that are
    infinities or NaN are computed again, by the sum above: all others are exact up to rounding. The output is divided
    into patches of m x m, down x across an image. Items: `rows` adjacent patches, `tall` times, then (if short) one
    less. channels are whole vectors, features whole panels. Scratch: `scratch_size`.
    """
    lanes = work.lanes(f32)
    wide, side = 2 * lanes, m + 2
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish, by_lane = epilogue.bind(more), multiplies_by_lane(work.target)
    image = FloatImages(x, height, width, x_pitch, channels)
    patches = work.scratch(f32)
    for item in work.items():
        first, count = tile_start(item, tall, rows, short), tile_rows(item, tall, rows, short)
        stride = count * channels  # floats from one element to the next
        sums = patches + stride * (side * side)
        for t in range(count):
            n, oy, ox = patch_origin(first + t, down, across, m)
            _transform_patch(
                image,
                n,
                oy - top,
                ox - left,
                patches + t * channels,
                stride,
                sums + count * (side * side * wide),
                m,
                lanes,
            )
        for panel in range(features // wide):
            q = filters + panel * (side * side * wide) * (channels + 1)
            for element in kl.loop(side * side):
                lhs = LhsF32(patches + element * stride, channels, 1, 0, channels, by_lane)
                target_sums, is_tall = sums + element * count * wide, item < tall if short else None
                for_height(rows, is_tall, _contract, lanes, lhs, q, target_sums)
                q = q + wide * (channels + 1)
            for t in range(count):
                n, oy, ox = patch_origin(first + t, down, across, m)
                for c in range(0, wide, lanes):
                    results = _transform_back(sums + t * wide + c, count * wide, m, lanes)
                    column = panel * wide + c
                    if _has_nonfinite(results, m, lanes):
                        weights = taps.cast(dtype, dtype.size) + column * (9 * channels)
                        _convolve_directly(image, n, oy - top, ox - left, weights, results, m, lanes)
                    for i in range(kl.minimum(out_height - oy, m)):
                        row = (n * out_height + oy + i) * out_width + ox
                        for j in range(kl.minimum(out_width - ox, m)):
                            y = finish(results.load((i * m + j) * lanes, lanes), row + j, column, lanes)
                            (target + (row + j) * out_pitch).store(y, column)


def _contract(rows: int, lanes: int, lhs: LhsF32, q: Pointer, sums: Pointer) -> None:
    """Sum a tile of patches at one element over the channels. q: of the panel."""
    store_registers(contract(rows, 2, lanes, lhs, q), sums)


def patch_origin(patch: Any, down: Any, across: Any, m: int) -> tuple[Any, Any, Any]:
    """Return the image of a patch and the row and column of its first output."""
    return patch // (down * across), patch // across % down * m, patch % across * m


def _has_nonfinite(results: Pointer, m: int, lanes: int) -> Value:
    """Return whether an output is an infinity or NaN: 0 times it is not 0."""
    total = kl.zeros(f32, lanes)
    for element in range(m * m):
        total = kl.fma(results.load(element * lanes, lanes), kl.zeros(f32, lanes), total)
    return kl.any(total != 0.0)


def _convolve_directly(
    image: FloatImages, n: Value, y0: Value, x0: Value, taps: Pointer, results: Pointer, m: int, lanes: int
) -> None:
    """Compute the outputs of a patch by their definition.

    Transforms add and subtract elements of the patch that are outside of the window of an output: with an infinity, or
    a sum above the largest float, the result is NaN.
    """
    for pixel in kl.loop(m * m):
        for lane in kl.loop(lanes):
            total = kl.full(f32, 0, 0.0)
            for tap in kl.loop(9):
                y, x = y0 + pixel // m + tap // 3, x0 + pixel % m + tap % 3
                if (y >= 0) & (y < image.height) & (x >= 0) & (x < image.width):
                    elements = image.x + ((n * image.height + y) * image.width + x) * image.pitch
                    weights = taps + (lane * 9 + tap) * image.channels
                    for c in range(image.channels):
                        total = kl.fma(elements[c], weights[c].to(f32), total)
            results[pixel * lanes + lane] = total


def _transform_patch(
    image: FloatImages, n: Value, y: Value, x: Value, out: Pointer, stride: Value, spare: Pointer, m: int, lanes: int
) -> None:
    """Write B^T d B of the patch at (y, x) of an image: element (i, j) to out[(i side + j) stride + channel]."""
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
    spilled = kl.stack(f32, side * side * lanes)
    for c in range(0, image.channels, lanes):
        for j in range(side):
            column = p + j * pixel + c
            for i, v in enumerate(PATCH[m]([(column + i * line).load(0, lanes) for i in range(side)])):
                spilled.store(v, (i * side + j) * lanes)
        for i in range(side):
            for j, v in enumerate(PATCH[m]([spilled.load((i * side + j) * lanes, lanes) for j in range(side)])):
                (out + (i * side + j) * stride).store(v, c)


def _transform_back(sums: Pointer, stride: Value, m: int, lanes: int) -> Pointer:
    """Return A^T s A for a vector of channels: m x m vectors in memory; element (i, j) is sums[(i side + j) stride]."""
    side = m + 2
    half, results = kl.stack(f32, m * side * lanes), kl.stack(f32, m * m * lanes)
    for j in range(side):
        for i, v in enumerate(OUTPUT[m]([(sums + (i * side + j) * stride).load(0, lanes) for i in range(side)])):
            half.store(v, (i * side + j) * lanes)
    for i in range(m):
        for j, v in enumerate(OUTPUT[m]([half.load((i * side + j) * lanes, lanes) for j in range(side)])):
            results.store(v, (i * m + j) * lanes)
    return results
