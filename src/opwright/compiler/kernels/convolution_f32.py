"""Convolutions of float32 with windows: the micro-kernel over an image, without an im2col copy of it.

Lives here: the family `convolution`, the window's geometry.
Not here: the micro-kernel and how filters are packed (gemm_f32.py), Winograd's way (winograd.py), the selector.

A tile's rows are pixels of the output next to each other. Where their windows lie inside the image and they are of one
line, the micro-kernel reads the image itself: a segment a line of the window. Otherwise the windows are copied into
scratch first, zeros for what is outside, once a tile for all channels of the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i64, ptr
from .epilogue import Epilogue
from .gemm_f32 import LIGHT, Sink, Source, multiplies_by_lane, panels
from .tiling import LineTiles, Sliding

if TYPE_CHECKING:
    from ..language import Pointer, Value


class Image(NamedTuple):
    """The images of a convolution: see `convolution`."""

    x: Pointer
    height: Any
    width: Any
    pitch: Any
    channels: Any


def copy(target: Pointer, source: Pointer, n: Any, lanes: int, masked: bool) -> None:
    """n floats; what follows them in the target may be overwritten too."""
    at = kl.value(0)
    for i in range(0, n - (lanes - 1), lanes):
        target.store(source.load(i, lanes), i)
        at = kl.value(i) + lanes
    if masked:
        if at < n:
            target.store(source.load(at, lanes, mask=kl.first(n - at, lanes)), at)
    else:
        for i in range(at, n):
            target[i] = source[i]


def zero(target: Pointer, n: Any, lanes: int) -> None:
    """n zeros, and some more where n is no multiple of lanes."""
    for i in range(0, n, lanes):
        target.store(kl.zeros(f32, lanes), i)


def copy_line(
    image: Image, target: Pointer, n: Value, y: Value, left: Value, pixels: Value, lanes: int, masked: bool
) -> None:
    """Neighbouring pixels of a line of the image, from `left` on, with all their channels; zeros outside of it."""
    inside = (y >= 0) & (y < image.height)
    before = kl.select(inside, kl.clamp(-left, 0, pixels), pixels)
    after = kl.select(inside, kl.clamp(image.width - left, before, pixels), pixels)
    source = image.x + ((n * image.height + y) * image.width + left) * image.pitch
    zero(target, before * image.channels, lanes)
    start = before * image.channels
    copy(target + start, source + start, (after - before) * image.channels, lanes, masked)
    zero(target + after * image.channels, (pixels - after) * image.channels, lanes)


def copy_window(
    image: Image, slide: Sliding, size: Any, target: Pointer, n: Value, oy: Value, ox: Value, lanes: int, masked: bool
) -> None:
    """The window of one pixel of the output: [*size, channels]; zeros outside of the image."""
    for ky in range(size[0]):
        y = oy * slide.stride_y + ky * slide.dilation_y - slide.top
        for kx in range(size[1]):
            x = ox * slide.stride_x + kx * slide.dilation_x - slide.left
            if (y >= 0) & (y < image.height) & (x >= 0) & (x < image.width):
                source = image.x + ((n * image.height + y) * image.width + x) * image.pitch
                copy(target, source, image.channels, lanes, masked)
            else:
                zero(target, image.channels, lanes)
            target = target + image.channels


@kl.family
def convolution(
    work,
    x: ptr[f32],
    packed: ptr[f32],
    out: ptr[f32],
    height: i64,
    width: i64,
    x_pitch: i64,
    channels: i64,
    kernel_height: i64,
    kernel_width: i64,
    slide: Sliding,
    features: i64,
    line: i64,
    cut: LineTiles,
    *more: i64,
    rows: int,
    short: bool,
    wide: bool,
    halves: int,
    lined: bool,
    epilogue: Epilogue,
):
    """out[n, oy, ox, f] = epilogue(sum x[n, oy stride + ky dilation - top, ..., c] filter[f, ky, kx, c]).

    cut: of lines of `line` pixels of the output; tiles that are not tall (if short) have a pixel less than `rows`.
    lined: these lines are those of the output, dilation_x is 1 and x_pitch, floats from pixel to pixel, is channels;
    the image is read in place where a tile's windows are inside.
    Items: as `gemm`. Scratch: see `scratch_of`.
    """
    lanes = work.lanes(f32)
    number = (features + (2 * lanes - 1)) // (2 * lanes)
    across = (number + (cut.panel_block - 1)) // cut.panel_block
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    masked, light = work.target.vector_bytes == 64, epilogue.weight <= LIGHT
    finish, by_lane = epilogue.bind(more), multiplies_by_lane(work.target)
    image = Image(x, height, width, x_pitch, channels)
    patch = work.scratch(f32)
    depth = kernel_height * kernel_width * channels
    for item in work.items():
        start = item // across * cut.tile_block
        first = item % across * cut.panel_block
        last = kl.minimum(first + cut.panel_block, number)
        for t in range(start, kl.minimum(start + cut.tile_block, cut.tiles)):
            at, j = t // cut.line_tiles, t % cut.line_tiles
            ox = j * rows
            count = kl.value(rows)
            if short:
                ox = ox - kl.maximum(j - cut.tall, 0)
                count = kl.select(j < cut.tall, count, rows - 1)
            row = at * line + ox
            if lined:
                n, oy = at // slide.out_height, at % slide.out_height
                y0, x0 = oy * slide.stride_y - slide.top, ox * slide.stride_x - slide.left
                span = (count - 1) * slide.stride_x + kernel_width
                inside = (y0 >= 0) & (y0 + (kernel_height - 1) * slide.dilation_y < height)
                p, stride = x + ((n * height + y0) * width + x0) * channels, slide.dilation_y * width * channels
                if inside & (x0 >= 0) & (x0 + span <= width):
                    pass
                else:
                    p, stride = patch, span * channels
                    for ky in range(kernel_height):
                        copy_line(image, p + ky * stride, n, y0 + ky * slide.dilation_y, x0, span, lanes, masked)
                source = Source(p, slide.stride_x * channels, kernel_height, stride, kernel_width * channels, by_lane)
            else:
                for r in range(count):
                    line_of_all, ox = (row + r) // slide.out_width, (row + r) % slide.out_width
                    size, place = (kernel_height, kernel_width), patch + r * depth
                    n, oy = line_of_all // slide.out_height, line_of_all % slide.out_height
                    copy_window(image, slide, size, place, n, oy, ox, lanes, masked)
                source = Source(patch, depth, 1, 0, depth, by_lane)
            sink = Sink(target, slide.out_pitch, row, 0, features, finish, light, masked)
            if short:
                if j < cut.tall:
                    panels(source, packed, sink, features, first, last, rows, lanes, wide, halves)
                else:
                    panels(source, packed, sink, features, first, last, rows - 1, lanes, wide, halves)
            else:
                panels(source, packed, sink, features, first, last, rows, lanes, wide, halves)
