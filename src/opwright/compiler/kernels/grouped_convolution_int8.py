"""Convolutions of int8 in groups of few channels on x86 with VNNI: vectors lie along the outputs of one group or of
several.

Lives here: the family `convolution_grouped_int8`, `GroupTileInt8` (which groups it computes), its step.
Not here: groups of more channels and other targets, a product of matrices each (contractions_int8.py), and of one
channel (depthwise.py).

As for floats (grouped_convolution_f32.py), a work item is a block of outputs of all groups that fill a vector, and the
pixels that it reads are copied first: as unsigned bytes x' = x + 128, the channels of each group padded to multiples
of four, and x'_zero outside of the image. Each step multiplies four bytes of a group by four weights of each output.
The initial sums have the bias less x'_zero times the sum of the weights.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import uint8
from .. import language as kl
from ..language import i8, i32, i64, ptr, u8
from ..target import Target, host
from .epilogue import Epilogue
from .grouped_convolution_f32 import LINES_BYTES, BandWords, TapSteps
from .output_tiles import OutputTile, rows_per_vector, spilled, tile_epilogue, write_registers, write_tile
from .tiling import WindowWords, chunk_of, pixels_inside, window_words

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..loops.buffers import Buffer
    from ..loops.ops import Contract
    from ..loops.plan_builder import Builder

EPILOGUE = 12
"""Time of an epilogue of one vector of results, in products."""
MOST_CHANNELS = 16
"""Inputs of a group, at most: the tiles of a product of matrices of more are full."""


class GroupTileInt8(NamedTuple):
    """A block of outputs: a vector of `lanes`. channels, features: inputs and outputs of a group."""

    channels: int
    features: int
    lanes: int

    @property
    def groups(self) -> int:
        """Groups of a block."""
        return max(1, self.lanes // self.features)

    @property
    def quads(self) -> int:
        """Steps of a pixel: its channels of a group, four at a time."""
        return -(-self.channels // 4)

    @property
    def padding(self) -> list[int] | None:
        """For each byte of a copied pixel its byte of the image, or one of zeros after them; None if all are read."""
        seen = self.groups * self.channels
        places = [(g, c) for g in range(self.groups) for c in range(4 * self.quads)]
        indices = [g * self.channels + c if c < self.channels else seen for g, c in places]
        return indices if seen < len(indices) else None

    @property
    def permutations(self) -> list[list[int]] | None:
        """By step, the four bytes of each lane; None if a block is of one group."""
        if self.groups == 1:
            return None
        return [[i // self.features * self.quads + q for i in range(self.lanes)] for q in range(self.quads)]

    def rows(self, registers: int, taps: int, width: int) -> int:
        """Return the pixels of a tile, for lines of `width`: the last tile computes some again, and results of four
        pixels are a vector."""

        def cost(rows: int) -> int:
            return -(-width // rows) * (rows * taps * self.quads + EPILOGUE * (rows // 4 + rows % 4))

        return min(range(1, min(registers // 2 - 2, width) + 1), key=cost)


def group_tile_int8(target: Target, channels: int, features: int, total: int) -> GroupTileInt8 | None:
    """Return the block for groups of `channels` inputs and `features` outputs, `total` of all groups.

    Returns None without VNNI, if a vector does not divide the outputs, or for more channels.
    """
    lanes = max(target.vnni_lanes, default=0)
    if not lanes or channels > MOST_CHANNELS or total % lanes or (features % lanes and lanes % features):
        return None
    return GroupTileInt8(channels, features, lanes)


@kl.family
def convolution_grouped_int8(
    work: Work,
    x: ptr[u8],
    packed: ptr[i32],
    out: ptr[i8],
    height: i64,
    width: i64,
    x_pitch: i64,
    size_y: i64,
    size_x: i64,
    slide: WindowWords,
    features: i64,
    bands: BandWords,
    zero: i64,
    *more: i64,
    tile: GroupTileInt8,
    stride: int,
    rows: int,
    flip: int,
    epilogue: Epilogue,
) -> None:
    """Compute as `convolution_int8`, of groups of channels. packed: by block, the initial sums and the steps of a sum.

    zero: x'_zero. flip: the bits of a byte by which x and x' differ. stride: the horizontal one. Tiles of a line have
    `rows` pixels; the last one may compute some again. Items: blocks by bands, blocks first. Scratch: the copied lines,
    and a vector.
    """
    blocks, pixel = features // tile.lanes, 4 * tile.groups * tile.quads
    ending = tile_epilogue(epilogue, more, work.target)
    output = ending.output(work, out, slide.out_pitch, features, None)
    lines, steps = work.scratch(u8), size_y * size_x * tile.quads
    line_size = bands.span * pixel
    for item in work.items():
        block, band = item % blocks, item // blocks
        n, first = band // bands.count, band % bands.count * bands.size
        column = block * tile.lanes
        image = x + (n * height * width * x_pitch + column // tile.features * tile.channels)
        last = kl.minimum(first + bands.size, slide.out_height)
        top = first * slide.stride_y - slide.top
        needed = (last - first - 1) * slide.stride_y + (size_y - 1) * slide.dilation_y + 1
        for i in range(needed):
            line = LineWords(top + i, slide.left, bands.span, height, width, x_pitch)
            _copy_pixels(image, lines + i * line_size, line, zero.to(u8), tile, flip)
        panel = packed + column * (steps + 1)
        for oy in range(first, last):
            source = lines + (oy - first) * slide.stride_y * line_size
            for start in range(0, slide.out_width, rows):
                ox = kl.minimum(start, slide.out_width - rows)
                row = (n * slide.out_height + oy) * slide.out_width + ox
                taps = TapSteps(slide.dilation_y * line_size, slide.dilation_x * pixel, size_y, size_x)
                sums = _contract(rows, stride * pixel, tile, source + ox * (stride * pixel), panel, taps)
                _write(output._replace(row=row, column=column, rest=features - column), sums)
                place = output.out + (row * slide.out_pitch + column)
                ending.look_up(place, slide.out_pitch, rows, tile.lanes, work.target.vector_bytes)


class LineWords(NamedTuple):
    """A line of an image: its number, the padding before it, the number of copied pixels; the image's sizes."""

    y: Any
    left: Any
    span: Any
    height: Any
    width: Any
    pitch: Any


def _copy_pixels(image: Pointer, target: Pointer, line: LineWords, zero: Value, tile: GroupTileInt8, flip: int) -> None:
    """Copy the channels of a block of a line of an image, as x'; x'_zero outside of the image."""
    size, seen = 4 * tile.groups * tile.quads, tile.groups * tile.channels
    before, after = pixels_inside(line.y, -line.left, line.span, line.height, line.width)
    source = image + (line.y * line.width - line.left) * line.pitch
    outside = zero.splat(size)
    for i in range(before):
        target.store(outside, i * size)
    for i in range(before, after):
        bytes_of_pixel = (source + i * line.pitch).load(0, seen) ^ flip
        if tile.padding is not None:
            bytes_of_pixel = kl.shuffle(bytes_of_pixel, kl.zeros(u8, seen), tile.padding)
        target.store(bytes_of_pixel, i * size)
    for i in range(after, line.span):
        target.store(outside, i * size)


def _contract(rows: int, pitch: int, tile: GroupTileInt8, p: Pointer, q: Pointer, taps: TapSteps) -> Registers:
    """Compute the sums of `rows` pixels of a block. p: the first byte of the first window; q: the panel."""
    lanes, permutations = tile.lanes, tile.permutations
    sums = kl.registers(i32, lanes, rows, 1)
    for r in range(rows):
        sums[r, 0] = q.load(0, lanes)
    q = q + lanes
    for ky in range(taps.size_y):
        for kx in range(taps.size_x):
            pixels = (p + (ky * taps.down + kx * taps.across)).cast(i32, 4)
            weights = [kl.bitcast(q.load(step * lanes, lanes), i8) for step in range(tile.quads)]
            for r in range(rows):
                start = r * pitch // 4
                if permutations is None:
                    for step in range(tile.quads):
                        four = pixels[start + step].splat(lanes)
                        sums[r, 0] = kl.dot4(sums[r, 0], kl.bitcast(four, u8), weights[step])
                else:
                    pixel = pixels.load(start, tile.groups * tile.quads)
                    for step in range(tile.quads):
                        four = kl.shuffle(pixel, None, permutations[step])
                        sums[r, 0] = kl.dot4(sums[r, 0], kl.bitcast(four, u8), weights[step])
            q = q + tile.quads * lanes
    return sums


def _write(tile: OutputTile, sums: Registers) -> None:
    """Apply the epilogue and store the results, as many rows at a time as fill a vector."""
    rows, lanes = sums.shape[0], sums.count
    if tile.light:
        write_registers(tile, [sums[r, 0] for r in range(rows)], lanes, rows_per_vector(tile, lanes, lanes))
    else:
        write_tile(tile, spilled(sums), rows, lanes, lanes)


def add_grouped_step_int8(
    form: Contract, tile: GroupTileInt8, bias: Buffer | None, epilogue: Epilogue, more: list[Any], build: Builder
) -> None:
    """Add the step of a convolution of bytes in groups with a constant filter of int8 without a zero point."""
    n, height, width, _ = form.input.shape
    _, out_height, out_width, features = form.output.shape
    window, filter = form.window, form.filter.constant
    assert filter is not None
    flip = 0 if form.input.dtype is uint8 else 128
    zero = form.input_zero + flip
    (size_y, size_x), (down, across), (far_y, far_x) = window.size, window.strides, window.dilations
    steps, blocks = size_y * size_x * tile.quads, features // tile.lanes
    initial = None if bias is None else bias.constant

    def fill(packed: np.ndarray) -> None:
        start = filter.reshape(features, -1).sum(1, dtype=np.int32) * np.int32(-zero)
        packed[:, 0] = (start if initial is None else start + initial.reshape(-1)).reshape(blocks, tile.lanes)
        padded = np.zeros((blocks, tile.lanes, size_y * size_x, 4 * tile.quads), np.int8)
        padded[..., : tile.channels] = filter.reshape(blocks, tile.lanes, size_y * size_x, tile.channels)
        fours = padded.reshape(blocks, tile.lanes, steps, 4)
        packed[:, 1:] = np.ascontiguousarray(fours.transpose(0, 2, 1, 3)).view(np.int32)[..., 0]

    key = ("grouped", form.filter, "no bias" if bias is None else bias, tile, zero)
    packed = build.packed((blocks, steps + 1, tile.lanes), np.int32, fill, key)
    span, reach = (out_width - 1) * across + (size_x - 1) * far_x + 1, (size_y - 1) * far_y + 1
    rows = tile.rows(host().registers, size_y * size_x, out_width)
    line_bytes = span * 4 * tile.groups * tile.quads
    size = max(1, min(out_height, (LINES_BYTES // line_bytes - reach) // down + 1))
    count = -(-out_height // size)
    size = -(-out_height // count)
    lines = (size - 1) * down + reach
    words = [
        build.pointer(form.input),
        packed,
        build.pointer(form.output),
        height,
        width,
        form.input.pitch,
        size_y,
        size_x,
        *window_words(window, out_height, out_width, form.output.pitch),
        features,
        *BandWords(count, size, lines, span),
        zero,
        *more,
    ]
    code = convolution_grouped_int8.code(
        more=len(more), tile=tile, stride=across, rows=rows, flip=flip, epilogue=epilogue
    )
    items = n * count * blocks
    work = steps * math.prod(form.output.shape)
    build.step(code, words, items, lines * line_bytes + host().vector_bytes, chunk_of(work, items))
