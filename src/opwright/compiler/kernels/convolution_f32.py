"""Convolutions of float32 with windows: the micro-kernel over an image, without an im2col copy of it.

Lives here: the family `convolution`, copies of lines and windows of an image.
Not here: the micro-kernel (gemm_f32.py), packed filters (weight_packing_f32.py), Winograd's minimal filtering
(winograd.py), the selector (contractions_f32.py).

The rows of a tile are adjacent pixels of the output. If their windows lie inside the image and they are of one line,
the micro-kernel reads the image itself: one segment for each line of the window. Otherwise the windows are first copied
into scratch memory, with zeros outside of the image, once a tile for all channels of the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i64, ptr
from .epilogue import Epilogue
from .gemm_f32 import LhsF32, PanelRangeF32, multiply_panels
from .output_tiles import float_output
from .tiling import LineTiles, WindowWords, block_at, panel_blocks, pixels_inside, tile_rows, tile_start
from .weight_packing_f32 import multiplies_by_lane

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work


class FloatImages(NamedTuple):
    """The images of a convolution: [n, height, width, channels], pixels at `pitch`."""

    x: Pointer
    height: Any
    width: Any
    pitch: Any
    channels: Any


def copy_floats(target: Pointer, source: Pointer, n: Any, lanes: int, masked: bool) -> None:
    """Copy n floats; elements of the target after them may be overwritten, too."""
    done = kl.value(0)
    for i in range(0, n - (lanes - 1), lanes):
        target.store(source.load(i, lanes), i)
        done = kl.value(i) + lanes
    if masked:
        if done < n:
            target.store(source.load(done, lanes, mask=kl.first(n - done, lanes)), done)
    else:
        for i in range(done, n):
            target[i] = source[i]


def clear(target: Pointer, n: Any, lanes: int) -> None:
    """Write n zeros, and more if n is not a multiple of lanes."""
    for i in range(0, n, lanes):
        target.store(kl.zeros(f32, lanes), i)


def copy_line(
    image: FloatImages, target: Pointer, n: Value, y: Value, left: Value, pixels: Value, lanes: int, masked: bool
) -> None:
    """Copy adjacent pixels of a line of the image from `left` on, with all their channels; zeros outside of it."""
    before, after = pixels_inside(y, left, pixels, image.height, image.width)
    source = image.x + ((n * image.height + y) * image.width + left) * image.pitch
    clear(target, before * image.channels, lanes)
    start = before * image.channels
    copy_floats(target + start, source + start, (after - before) * image.channels, lanes, masked)
    clear(target + after * image.channels, (pixels - after) * image.channels, lanes)


def copy_window(
    image: FloatImages,
    slide: WindowWords,
    size: Any,
    target: Pointer,
    n: Value,
    oy: Value,
    ox: Value,
    lanes: int,
    masked: bool,
) -> None:
    """Copy the window of one pixel of the output, [*size, channels]; zeros outside of the image."""
    for ky in range(size[0]):
        y = oy * slide.stride_y + ky * slide.dilation_y - slide.top
        for kx in range(size[1]):
            x = ox * slide.stride_x + kx * slide.dilation_x - slide.left
            if (y >= 0) & (y < image.height) & (x >= 0) & (x < image.width):
                source = image.x + ((n * image.height + y) * image.width + x) * image.pitch
                copy_floats(target, source, image.channels, lanes, masked)
            else:
                clear(target, image.channels, lanes)
            target = target + image.channels


@kl.family(addressed=True)
def convolution(
    work: Work,
    x: ptr[f32],
    packed: ptr[f32],
    out: ptr[f32],
    height: i64,
    width: i64,
    x_pitch: i64,
    channels: i64,
    kernel_height: i64,
    kernel_width: i64,
    slide: WindowWords,
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
) -> None:
    """Compute out[n, oy, ox, f] = epilogue(sum x[n, oy stride + ky dilation - top, ..., c] filter[f, ky, kx, c]).

    cut: tiles of lines of `line` pixels of the output; if short, tiles that are not tall have a pixel less than `rows`.
    lined: lines are those of the output, dilation_x is 1 and x_pitch, floats from pixel to pixel, is channels; the
    image is read in place if the windows of a tile are inside. Items: as `gemm`. Scratch: the copied windows, and a
    vector.
    """
    lanes, by_lane = work.lanes(f32), multiplies_by_lane(work.target)
    number = (features + (2 * lanes - 1)) // (2 * lanes)
    across, output = panel_blocks(cut, number), float_output(work, out, slide.out_pitch, features, epilogue, more)
    masked = output.masked
    image = FloatImages(x, height, width, x_pitch, channels)
    patch = work.scratch(f32)
    depth = kernel_height * kernel_width * channels
    for item in work.items():
        block = block_at(item, cut, number, across)
        panels = PanelRangeF32(packed, features, block.first, block.last, wide, halves)
        for t in range(block.start, block.end):
            out_line, j = t // cut.line_tiles, t % cut.line_tiles
            ox, count = tile_start(j, cut.tall, rows, short), tile_rows(j, cut.tall, rows, short)
            row = out_line * line + ox
            if lined:
                n, oy = out_line // slide.out_height, out_line % slide.out_height
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
                lhs = LhsF32(p, slide.stride_x * channels, kernel_height, stride, kernel_width * channels, by_lane)
            else:
                for r in range(count):
                    pixel_line, ox = (row + r) // slide.out_width, (row + r) % slide.out_width
                    size, window = (kernel_height, kernel_width), patch + r * depth
                    n, oy = pixel_line // slide.out_height, pixel_line % slide.out_height
                    copy_window(image, slide, size, window, n, oy, ox, lanes, masked)
                lhs = LhsF32(patch, depth, 1, 0, depth, by_lane)
            multiply_panels(lhs, panels, output._replace(row=row), rows, lanes, j < cut.tall if short else None)
