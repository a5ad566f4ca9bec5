"""Convolutions of int8 with windows: the micro-kernel over an image, without an im2col copy of it.

Lives here: the families `convolution_int8` and `patches`, the window's geometry; `over_rows`, for images of few
columns.
Not here: the micro-kernel (gemm_int8.py), packed filters (weight_packing_int8.py), the selector (contractions_int8.py).

A tile's rows are pixels next to each other in a line of the output. Where their windows lie inside the image the
micro-kernel reads the image itself; otherwise the image's lines are copied into scratch memory, with the zero point for
padding, once a tile for all output channels. Small images with short lines are copied window by window (`patches`) for
a matrix product.

An image of few columns becomes one line whose pixels are whole rows of it:

    x [N, H, W, C], filter [F, KH, KW, C]  ->  x [N, 1, H, W C], filter [OW F, 1, KH, W C]

The memory is the same. A tile then holds many pixels of the line, where one of the image would hold at most W, and
padding on the left and right costs no copies because its weights are absent. Weights of columns outside a window are
their zero point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr
from ..loops.buffers import Buffer, SameMemory, Window
from ..loops.ops import Contract
from .epilogue import Epilogue
from .expression import tables
from .gemm_int8 import Source, panels
from .gemm_neon import Grouped, whole_steps
from .gemm_tiles import prepare, short_first
from .tile_writing import Rounded, Sink, ending_of
from .tiling import LineTiles, Sliding

if TYPE_CHECKING:
    from ..language import Pointer, Value


class Image(NamedTuple):
    """The geometry of a convolution, numbers of a kernel. size: bytes that may be read; fill: the zero point, of the
    dtype that copies have. flips: bits to change in each vector that is copied, if any."""

    x: Pointer
    size: Any
    height: Any
    width: Any
    pitch: Any
    channels: Any
    fill: Value
    flips: Value | None = None


def copy(target: Pointer, source: Pointer, n: Any, room: Any, lanes: int, flips: Value | None = None) -> None:
    """n elements, as the target's dtype; what follows them in the target may be overwritten too. room: elements that
    may be read from the source. flips: see `Image`."""
    if n + (lanes - 1) <= room:
        for i in range(0, n, lanes):
            target.store(_flipped(source.load(i, lanes).to(target.dtype), flips), i)
    else:
        for i in range(n):
            target[i] = _flipped(source[i].to(target.dtype), flips if flips is None else flips[0])


def _flipped(x: Value, flips: Value | None) -> Value:
    return x if flips is None else x ^ flips


def fill(target: Pointer, n: Any, x: Value) -> None:
    """n elements x, and some more."""
    for i in range(0, n, x.count):
        target.store(x, i)


def copy_line(image: Image, target: Pointer, n: Value, y: Value, left: Value, pixels: Any) -> None:
    """Neighbouring pixels of a line of the image, from `left` on, with all their channels; fill outside of it."""
    lanes, c = image.fill.count, image.channels
    inside = (y >= 0) & (y < image.height)
    before = kl.select(inside, kl.clamp(-left, 0, pixels), pixels)
    after = kl.select(inside, kl.clamp(image.width - left, before, pixels), pixels)
    at = ((n * image.height + y) * image.width + left) * image.pitch
    fill(target, before * c, image.fill)
    if image.pitch == c:
        start = at + before * c
        copy(target + before * c, image.x + start, (after - before) * c, image.size - start, lanes, image.flips)
    else:
        for i in range(before, after):
            start = at + i * image.pitch
            copy(target + i * c, image.x + start, c, image.size - start, lanes, image.flips)
    fill(target + after * c, (pixels - after) * c, image.fill)


@kl.family
def patches(
    work,
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
    slide: Sliding,
    zeros: ptr[i32],
    *,
    rounded: bool,
):
    """The windows of an image as rows: out[pixel of the output][line][segment][run], runs of a multiple of 4 bytes.

    Items: pixels of the output. slide.out_pitch leaves room for a vector between rows, which may be overwritten.
    rounded: images have zero points of their own.

    A window reads the image in runs. Those at one place of neighbouring windows are copied one after another, from the
    first place to the last: the vectors that are stored reach into the runs that follow.
    """
    lanes = work.target.vector_bytes
    image = Image(x, size, height, width, x_pitch, channels, zero.to(i8).splat(lanes))
    step = (run_pixels * channels + 3) // 4 * 4
    item = work.begin
    while item < work.end:
        ox, line = item % slide.out_width, item // slide.out_width
        oy, n = line % slide.out_height, line // slide.out_height
        count = kl.minimum(slide.out_width - ox, work.end - item)
        target = out + item * slide.out_pitch
        here = image._replace(fill=zeros[n].to(i8).splat(lanes)) if rounded else image
        for ky in range(lines):
            y = oy * slide.stride_y + ky * slide.dilation_y - slide.top
            for s in range(segments):
                x0 = ox * slide.stride_x + s * slide.dilation_x - slide.left
                copy_runs(here, target, slide.out_pitch, n, y, x0, slide.stride_x, run_pixels, count)
                target = target + step
        item = item + count


def copy_runs(
    image: Image, target: Pointer, pitch: Any, n: Value, y: Value, left: Value, stride: Any, pixels: Any, count: Value
) -> None:
    """`count` runs of pixels of a line of the image, the first from `left` on, each `stride` pixels after another."""
    c, lanes = image.channels, image.fill.count
    inside = (y >= 0) & (y < image.height) & ((image.pitch == c) | (pixels == 1))
    nbytes = pixels * c
    whole = (nbytes + (lanes - 1)) // lanes * lanes
    # Runs that lie in the image, and of those the ones whose last vector does, too.
    first = kl.select(inside, kl.clamp((stride - 1 - left) // stride, 0, count), count)
    begin = ((n * image.height + y) * image.width + left) * image.pitch
    right, room = image.width - pixels - left, image.size - whole - begin
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


@kl.family
def convolution_int8(
    work,
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
    slide: Sliding,
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
):
    """out[n, oy, ox, f] = epilogue(sum x[n, oy stride + ky dilation - top, ..., c] filter[f, ky, kx, c]).

    cut: of lines of the output; tiles that are not tall (if short) have a pixel less than `rows`. A line of a window is
    `segments` segments, dilation_x pixels apart, of run_pixels pixels each.
    Items: blocks of tiles by panels, panels first. Scratch: `lines` lines of the pixels that are copied at a time, and
    a vector. rounded: images have scales and zero points of their own. wide, tiled, depth, bounded, grouped: see
    `Source`; channels and pitches are of bytes. widened: the dtype of pixels that are copied as int16, inside too;
    flipped: whether they are copied as unsigned bytes, likewise; by_line: at the first tile of a line of the output,
    all that the line needs.
    """
    lanes = work.lanes(i32)
    number = (features + (vectors * lanes - 1)) // (vectors * lanes)
    across = (number + (cut.panel_block - 1)) // cut.panel_block
    ending = ending_of(epilogue, more, work.target)
    target = out.cast(ending.dtype, ending.dtype.size)
    masked = work.target.vector_bytes == 64
    held = i8 if widened is None else i16
    filled = work.lanes(held)
    pixels = x if widened is None else x.cast(widened)
    flips = kl.bitcast(flip.splat(lanes), i8) if flipped else None
    image = Image(pixels, size, height, width, x_pitch, channels, _flipped(zero.to(held).splat(filled), flips), flips)
    there = Rounded(scales, zeros, slide.out_height * slide.out_width) if rounded else None
    patch = work.scratch(held)
    breadth = (slide.out_width - 1) * slide.stride_x + (segments - 1) * slide.dilation_x + run_pixels
    quads = (run_pixels * channels + 3) // 4
    if grouped is not None and grouped.padded:
        quads = whole_steps(grouped.steps, quads)
    steps = lines * segments * quads
    if tiled is not None:
        prepare(rows, depth)
    for item in work.items():
        start = item // across * cut.tile_block
        first = item % across * cut.panel_block
        last = kl.minimum(first + cut.panel_block, number)
        for t in range(start, kl.minimum(start + cut.tile_block, cut.tiles)):
            at, j = t // cut.line_tiles, t % cut.line_tiles
            ox = j * rows
            count = kl.value(rows)
            written = None
            if short and tiled is None:
                ox = ox - kl.maximum(j - cut.tall, 0)
                count = kl.select(j < cut.tall, count, rows - 1)
            elif short:
                ox, written = short_first(j, cut.line_tiles - cut.tall, rows)
            n, oy = at // slide.out_height, at % slide.out_height
            y0, x0 = oy * slide.stride_y - slide.top, ox * slide.stride_x - slide.left
            span = (count - 1) * slide.stride_x + (segments - 1) * slide.dilation_x + run_pixels
            inside = (y0 >= 0) & (y0 + (lines - 1) * slide.dilation_y < height) & (x0 >= 0) & (x0 + span <= width)
            begin = ((n * height + y0) * width + x0) * x_pitch
            end = begin + ((lines - 1) * slide.dilation_y * width + span - run_pixels) * x_pitch + quads * 4
            p, pixel, line = x + begin, x_pitch, slide.dilation_y * width * x_pitch
            copied = kl.value(1) == 1 if widened is not None or flipped else ~(inside & (end <= size))
            if by_line:
                p, pixel, line = (
                    patch.cast(i8) + ox * slide.stride_x * channels * held.size,
                    channels * held.size,
                    breadth * channels * held.size,
                )
                if (t == start) | (j == 0):
                    here = image._replace(fill=_flipped(zeros[n].to(held).splat(filled), flips)) if rounded else image
                    for ky in range(lines):
                        y = y0 + ky * slide.dilation_y
                        copy_line(here, patch + ky * breadth * channels, n, y, -slide.left, breadth)
            elif copied:
                p, pixel, line = patch.cast(i8), channels * held.size, span * channels * held.size
                here = image._replace(fill=_flipped(zeros[n].to(held).splat(filled), flips)) if rounded else image
                for ky in range(lines):
                    copy_line(here, patch + ky * span * channels, n, y0 + ky * slide.dilation_y, x0, span)
            source = Source(
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
            row = at * slide.out_width + ox
            pitch = slide.out_pitch
            sink = Sink(target, pitch, row, 0, features, ending.finish, masked, there, None, written, ending.light)
            if short and tiled is None:
                if j < cut.tall:
                    panels(source, packed, steps, sink, features, first, last, rows, vectors, lanes, narrow)
                else:
                    panels(source, packed, steps, sink, features, first, last, rows - 1, vectors, lanes, narrow)
            else:
                panels(source, packed, steps, sink, features, first, last, rows, vectors, lanes, narrow)
            if ending.table is not None:
                here, end = first * (vectors * lanes), kl.minimum(features, last * (vectors * lanes))
                lines_written = count if written is None else written
                place = target + (row * pitch + here)
                ending.look_up(place, pitch, lines_written, end - here, work.target.vector_bytes)
    if tiled is not None:
        kl.tile_release()


NARROW, FEW = 4, 64
"""Columns of the image, and channels of a row of the output, up to which rows are taken as pixels."""


def over_rows(form: Contract) -> Contract | None:
    """The same convolution over rows as pixels; None where images are wide or not dense, or something is not known."""
    (n, height, width, channels), (_, out_height, out_width, features) = form.input.shape, form.output.shape
    filters, window = form.filter.constant, form.window
    if (
        filters is None
        or form.groups > 1
        or form.rounding
        or form.input.pitch != channels
        or form.output.pitch != features
    ):
        return None
    if not (width <= NARROW and out_width * features <= FEW and window.size[0] > 1 and width < out_height):
        return None
    operands = _repeated(form, out_width)
    if operands is None:
        return None
    (down, across), (step, apart), (top, bottom, left, _) = window.strides, window.dilations, window.padding
    rows = np.full((out_width, features, 1, window.size[0], width, channels), form.filter_zero, filters.dtype)
    for x in range(out_width):
        for kx in range(window.size[1]):
            column = x * across + kx * apart - left
            if 0 <= column < width:
                rows[x, :, 0, :, column] = filters[:, :, kx]
    shape = (out_width * features, 1, window.size[0], width * channels)
    turned = Window((1, window.size[0]), (1, down), (1, step), (0, 0, top, bottom))
    return replace(
        form,
        window=turned,
        operands=operands,
        input=SameMemory(form.input.name, form.input.dtype, (n, 1, height, width * channels), of=form.input),
        output=SameMemory(form.output.name, form.output.dtype, (n, 1, out_height, shape[0]), of=form.output),
        filter=Buffer(form.filter.name, form.filter.dtype, shape, rows.reshape(shape)),
    )


def _repeated(form: Contract, times: int) -> tuple[Buffer, ...] | None:
    """The operands for each column of the output; None where one is neither a table nor a constant for each channel."""
    found, lookups = [], tables(form.expr)
    for i, operand in enumerate(form.operands, 1):
        known = operand.constant
        if i in lookups or operand.size == 1:
            found.append(operand)
        elif known is not None and operand.size == form.output.shape[-1]:
            repeated = np.tile(known.reshape(-1), times)
            found.append(Buffer(operand.name, operand.dtype, repeated.shape, repeated))
        else:
            return None
    return tuple(found)
