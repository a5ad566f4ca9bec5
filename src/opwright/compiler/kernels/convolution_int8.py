"""Convolutions of int8 with windows: the micro-kernel over an image, without an im2col copy of it.

Lives here: the families `convolution_int8` and `patches`, copies of lines and runs of an image.
Not here: the micro-kernel (gemm_int8.py), packed filters (weight_packing_int8.py), steps (contraction_steps_int8.py),
the selector (contractions_int8.py).

The rows of a tile are adjacent pixels of a line of the output. If their windows lie inside the image, the micro-kernel
reads the image itself; otherwise the lines of the image are copied into scratch memory, with the zero point as padding,
once a tile for all output channels. Small images with short lines are copied window by window (`patches`) for a matrix
product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr
from .epilogue import Epilogue
from .gemm_int8 import LhsInt8, PanelRangeInt8, configure_tiles, multiply_panels, short_tile
from .gemm_neon import Grouped, padded_quads
from .output_tiles import RowScales, tile_epilogue
from .tiling import LineTiles, WindowWords, block_at, panel_blocks, pixels_inside, tile_rows, tile_start

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work


class ByteImages(NamedTuple):
    """The images of a convolution, numbers of a kernel. size: bytes that may be read; fill: the zero point, of the
    dtype of copies. flips: bits to change in each vector that is copied, if any."""

    x: Pointer
    size: Any
    height: Any
    width: Any
    pitch: Any
    channels: Any
    fill: Value
    flips: Value | None = None


def copy_elements(target: Pointer, source: Pointer, n: Any, room: Any, lanes: int, flips: Value | None = None) -> None:
    """Copy n elements, as the dtype of the target; elements of the target after them may be overwritten, too.

    room: elements that may be read from the source. flips: see `ByteImages`.
    """
    if n + (lanes - 1) <= room:
        for i in range(0, n, lanes):
            target.store(_flipped(source.load(i, lanes).to(target.dtype), flips), i)
    else:
        for i in range(n):
            target[i] = _flipped(source[i].to(target.dtype), flips if flips is None else flips[0])


def _flipped(x: Value, flips: Value | None) -> Value:
    return x if flips is None else x ^ flips


def fill(target: Pointer, n: Any, x: Value) -> None:
    """Write n elements x, and more if n is not a multiple of its lanes."""
    for i in range(0, n, x.count):
        target.store(x, i)


def copy_line(image: ByteImages, target: Pointer, n: Value, y: Value, left: Value, pixels: Any) -> None:
    """Copy adjacent pixels of a line of the image from `left` on, with all their channels; fill outside of it."""
    lanes, c = image.fill.count, image.channels
    before, after = pixels_inside(y, left, pixels, image.height, image.width)
    offset = ((n * image.height + y) * image.width + left) * image.pitch
    fill(target, before * c, image.fill)
    if image.pitch == c:
        start = offset + before * c
        copy_elements(
            target + before * c, image.x + start, (after - before) * c, image.size - start, lanes, image.flips
        )
    else:
        for i in range(before, after):
            start = offset + i * image.pitch
            copy_elements(target + i * c, image.x + start, c, image.size - start, lanes, image.flips)
    fill(target + after * c, (pixels - after) * c, image.fill)


@kl.family(addressed=True)
def patches(
    work: Work,
    x: ptr[i8],
    out: ptr[i8],
    size: i64,
    height: i64,
    width: i64,
    x_pitch: i64,
    channels: i64,
    zero: i64,
    lines: i64,
    segments: i64,
    run_pixels: i64,
    slide: WindowWords,
    zeros: ptr[i32],
    *,
    rounded: bool,
) -> None:
    """Copy the windows of an image as rows: out[output pixel][line][segment][run], runs of a multiple of 4 bytes.

    Items: pixels of the output. slide.out_pitch leaves room for a vector between rows, which may be overwritten.
    rounded: images have zero points of their own.

    A window reads the image in runs. Runs at equal positions of adjacent windows are copied one after another, from the
    first position to the last: stored vectors overlap the runs that follow.
    """
    lanes = work.target.vector_bytes
    image = ByteImages(x, size, height, width, x_pitch, channels, zero.to(i8).splat(lanes))
    step = (run_pixels * channels + 3) // 4 * 4
    item = work.begin
    while item < work.end:
        ox, line = item % slide.out_width, item // slide.out_width
        oy, n = line % slide.out_height, line // slide.out_height
        count = kl.minimum(slide.out_width - ox, work.end - item)
        target = out + item * slide.out_pitch
        images = image._replace(fill=zeros[n].to(i8).splat(lanes)) if rounded else image
        for ky in range(lines):
            y = oy * slide.stride_y + ky * slide.dilation_y - slide.top
            for s in range(segments):
                x0 = ox * slide.stride_x + s * slide.dilation_x - slide.left
                copy_runs(images, target, slide.out_pitch, n, y, x0, slide.stride_x, run_pixels, count)
                target = target + step
        item = item + count


def copy_runs(
    image: ByteImages,
    target: Pointer,
    pitch: Any,
    n: Value,
    y: Value,
    left: Value,
    stride: Any,
    pixels: Any,
    count: Value,
) -> None:
    """Copy `count` runs of pixels of a line of the image, the first from `left` on, `stride` pixels apart."""
    c, lanes = image.channels, image.fill.count
    inside = (y >= 0) & (y < image.height) & ((image.pitch == c) | (pixels == 1))
    nbytes = pixels * c
    vectors = (nbytes + (lanes - 1)) // lanes * lanes
    # Runs inside the image from `first` on; up to `last`, their last vector is also inside.
    first = kl.select(inside, kl.clamp((stride - 1 - left) // stride, 0, count), count)
    begin = ((n * image.height + y) * image.width + left) * image.pitch
    right, room = image.width - pixels - left, image.size - vectors - begin
    fit = kl.minimum(right // stride, room // (stride * image.pitch)) + 1
    last = kl.select((right >= 0) & (room >= 0), kl.clamp(fit, first, count), first)
    for i in range(first):
        copy_line(image, target + i * pitch, n, y, left + i * stride, pixels)
    source = image.x + begin
    if nbytes <= lanes:
        for i in range(first, last):
            target.store(source.load(i * stride * image.pitch, lanes), i * pitch)
    else:
        for i in range(first, last):
            for k in range(0, nbytes, lanes):
                target.store(source.load(i * stride * image.pitch + k, lanes), i * pitch + k)
    for i in range(last, count):
        copy_line(image, target + i * pitch, n, y, left + i * stride, pixels)


@kl.family(addressed=True)
def convolution_int8(
    work: Work,
    x: ptr[i8],
    packed: ptr[i32],
    out: ptr[i8],
    size: i64,
    height: i64,
    width: i64,
    x_pitch: i64,
    channels: i64,
    zero: i64,
    flip: i32,
    lines: i64,
    segments: i64,
    run_pixels: i64,
    slide: WindowWords,
    features: i64,
    cut: LineTiles,
    scales: ptr[f32],
    zeros: ptr[i32],
    depth: i64,
    *more: i64,
    rows: int,
    vectors: int,
    short: bool,
    narrow: int,
    rounded: bool,
    wide: bool,
    tiled: Any,
    widened: Any,
    flipped: bool,
    by_line: bool,
    bounded: int,
    grouped: Grouped | None,
    epilogue: Epilogue,
) -> None:
    """Compute out[n, oy, ox, f] = epilogue(sum x[n, oy stride + ky dilation - top, ..., c] filter[f, ky, kx, c]).

    cut: tiles of lines of the output; if short, the tiles that are not tall have a pixel less than `rows`. A line of a
    window is `segments` segments, dilation_x pixels apart, of run_pixels pixels each.
    Items: blocks of tiles by panels, panels first. Scratch: `lines` lines of the pixels that are copied at a time, and
    a vector. rounded: images have scales and zero points of their own. wide, tiled, depth, bounded, grouped: see
    `LhsInt8`; channels and pitches are in bytes. widened: the dtype of pixels that are copied as int16, also inside;
    flipped: whether they are copied as unsigned bytes, likewise; by_line: whether the first tile of a line of the
    output copies all pixels that the line needs.
    """
    lanes, lookup_lanes = work.lanes(i32), work.target.vector_bytes
    panel_width = vectors * lanes
    number = (features + (panel_width - 1)) // panel_width
    across, ending = panel_blocks(cut, number), tile_epilogue(epilogue, more, work.target)
    row_scales = RowScales(scales, zeros, slide.out_height * slide.out_width) if rounded else None
    output = ending.output(work, out, slide.out_pitch, features, row_scales)
    copied_dtype = i8 if widened is None else i16
    filled = work.lanes(copied_dtype)
    pixels = x if widened is None else x.cast(widened)
    flips = kl.bitcast(flip.splat(lanes), i8) if flipped else None
    padding = _flipped(zero.to(copied_dtype).splat(filled), flips)
    image = ByteImages(pixels, size, height, width, x_pitch, channels, padding, flips)
    patch = work.scratch(copied_dtype)
    breadth = (slide.out_width - 1) * slide.stride_x + (segments - 1) * slide.dilation_x + run_pixels
    quads = (run_pixels * channels + 3) // 4
    if grouped is not None and grouped.padded:
        quads = padded_quads(grouped.steps, quads)
    steps = lines * segments * quads
    shortened = short and tiled is None  # AMX computes all pixels, of which short tiles store one less
    if tiled is not None:
        configure_tiles(rows, depth)
    for item in work.items():
        block = block_at(item, cut, number, across)
        panels = PanelRangeInt8(packed, features, block.first, block.last, steps, vectors, narrow)
        for t in range(block.start, block.end):
            out_line, j = t // cut.line_tiles, t % cut.line_tiles
            ox, count = tile_start(j, cut.tall, rows, shortened), tile_rows(j, cut.tall, rows, shortened)
            stored = None
            if short and tiled is not None:
                ox, stored = short_tile(j, cut.line_tiles - cut.tall, rows)
            n, oy = out_line // slide.out_height, out_line % slide.out_height
            y0, x0 = oy * slide.stride_y - slide.top, ox * slide.stride_x - slide.left
            span = (count - 1) * slide.stride_x + (segments - 1) * slide.dilation_x + run_pixels
            inside = (y0 >= 0) & (y0 + (lines - 1) * slide.dilation_y < height) & (x0 >= 0) & (x0 + span <= width)
            begin = ((n * height + y0) * width + x0) * x_pitch
            end = begin + ((lines - 1) * slide.dilation_y * width + span - run_pixels) * x_pitch + quads * 4
            p, pixel, line = x + begin, x_pitch, slide.dilation_y * width * x_pitch
            copied = kl.value(1) == 1 if widened is not None or flipped else ~(inside & (end <= size))
            if by_line:
                p, pixel, line = (
                    patch.cast(i8) + ox * slide.stride_x * channels * copied_dtype.size,
                    channels * copied_dtype.size,
                    breadth * channels * copied_dtype.size,
                )
                if (t == block.start) | (j == 0):
                    images = _padded_with(image, zeros[n], flips) if rounded else image
                    for ky in range(lines):
                        y = y0 + ky * slide.dilation_y
                        copy_line(images, patch + ky * breadth * channels, n, y, -slide.left, breadth)
            elif copied:
                p, pixel, line = patch.cast(i8), channels * copied_dtype.size, span * channels * copied_dtype.size
                images = _padded_with(image, zeros[n], flips) if rounded else image
                for ky in range(lines):
                    copy_line(images, patch + ky * span * channels, n, y0 + ky * slide.dilation_y, x0, span)
            lhs = LhsInt8(
                p,
                slide.stride_x * pixel,
                quads,
                flip,
                lines,
                line,
                segments,
                slide.dilation_x * pixel,
                wide,
                tiled=tiled,
                depth=depth,
                widened=widened is not None,
                flipped=flipped,
                bounded=bounded,
                grouped=grouped,
            )
            tile = output._replace(row=out_line * slide.out_width + ox, count=stored)
            multiply_panels(lhs, panels, tile, rows, lanes, j < cut.tall if shortened else None)
            ending.look_up_block(tile, block, panel_width, count if stored is None else stored, lookup_lanes)
    if tiled is not None:
        kl.tile_release()


def _padded_with(image: ByteImages, zero: Value, flips: Value | None) -> ByteImages:
    """Return images whose padding is another zero point."""
    dtype, lanes = image.fill.dtype, image.fill.count
    return image._replace(fill=_flipped(zero.to(dtype).splat(lanes), flips))
