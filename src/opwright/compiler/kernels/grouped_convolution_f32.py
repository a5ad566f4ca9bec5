"""Convolutions of float32 in groups of few channels: vectors lie along the outputs of one group or of several.

Lives here: the family `convolution_grouped`, `GroupTile` (which groups it computes, and its registers), its step.
Not here: groups of more channels, a product of matrices each (contractions_f32.py), and of one channel
(depthwise.py).

A product of matrices for each group would leave most lanes of a vector empty, and take a step a group. Here a work item
is a block of outputs of all groups that fill its vectors. The pixels that it reads, with the channels of these groups
alone, are copied first: lines of a band, with zeros outside of the image. Each step of the sum multiplies a vector of
the filter by a number of the pixel if the block is of one group; otherwise by the numbers of a channel of each group,
which are a permutation of the pixel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import language as kl
from ..language import f32, i64, ptr
from ..target import Target, host
from .epilogue import Epilogue
from .output_tiles import accumulators, float_output, write_float_tile
from .tiling import L1_BYTES, WindowWords, chunk_of, pixels_inside, row_tiles, tile_start, window_words

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..loops.buffers import Buffer
    from ..loops.ops import Contract
    from ..loops.plan_builder import Builder

LINES_BYTES = L1_BYTES // 2
"""Bytes of the copied lines of a band, at most, if a line of outputs needs no more."""


class GroupTile(NamedTuple):
    """A block of outputs: `vectors` vectors of `lanes`. channels, features: inputs and outputs of a group."""

    channels: int
    features: int
    lanes: int
    vectors: int

    @property
    def width(self) -> int:
        """Outputs of a block."""
        return self.lanes * self.vectors

    @property
    def seen(self) -> int:
        """Inputs of a block, those of its groups."""
        return self.channels * max(1, self.width // self.features)

    @property
    def permutations(self) -> list[list[int]] | None:
        """By channel of a group, the input of each lane; None if a block is of one group."""
        if self.width <= self.features:
            return None
        return [[i // self.features * self.channels + c for i in range(self.lanes)] for c in range(self.channels)]

    def rows(self, registers: int) -> int:
        """Return the pixels of a tile of outputs, at most: sums leave registers for the filter and a pixel."""
        return min((registers - 4) // self.vectors, MOST_ROWS)


MOST_ROWS = 14
"""Pixels of a tile: more hide no latency, and are more code."""
MOST_CHANNELS = 32
"""Inputs of a group, at most: products of more fill their tiles. Zen 4: 0.9 of their time at 32, 1.04 at 64."""
MOST_SEEN = 4
"""Vectors of the pixels of a block, at most, if their numbers are permuted."""


def group_tile(target: Target, channels: int, features: int, total: int) -> GroupTile | None:
    """Return the block for groups of `channels` inputs and `features` outputs, `total` of all groups.

    Returns None if vectors do not divide the outputs, or for more channels.
    """
    lanes = target.vector_bytes // 4
    if channels > MOST_CHANNELS:
        return None
    if features % (2 * lanes) == 0:
        return GroupTile(channels, features, lanes, 2)
    while lanes > 4 and (total % lanes or (features % lanes and lanes % features)):
        lanes //= 2
    tile = GroupTile(channels, features, lanes, 1)
    divided = total % lanes == 0 and (features % lanes == 0 or lanes % features == 0)
    return tile if divided and tile.seen <= MOST_SEEN * lanes else None


class BandWords(NamedTuple):
    """Bands of lines of outputs, `count` of an image, `size` lines each; lines: that are copied, of `span` pixels."""

    count: Any
    size: Any
    lines: Any
    span: Any


@kl.family
def convolution_grouped(
    work: Work,
    x: ptr[f32],
    packed: ptr[f32],
    out: ptr[f32],
    height: i64,
    width: i64,
    x_pitch: i64,
    size_y: i64,
    size_x: i64,
    slide: WindowWords,
    features: i64,
    bands: BandWords,
    line_tiles: i64,
    tall: i64,
    *more: i64,
    tile: GroupTile,
    stride: int,
    rows: int,
    short: bool,
    epilogue: Epilogue,
) -> None:
    """Compute as `convolution`, of groups of channels. packed: by block, the initial sums and the steps of a sum.

    line_tiles: tiles of a line of outputs, `tall` of `rows` pixels, the others of one less if short. stride: the
    horizontal one. Items: blocks by bands, blocks first. Scratch: the copied lines, and a vector.
    """
    blocks, seen = features // tile.width, tile.seen
    output = float_output(work, out, slide.out_pitch, features, epilogue, more)
    lines, depth = work.scratch(f32), size_y * size_x * tile.channels
    line_size = bands.span * seen
    for item in work.items():
        block, band = item % blocks, item // blocks
        n, first = band // bands.count, band % bands.count * bands.size
        column = block * tile.width
        image = x + (n * height * width * x_pitch + column // tile.features * tile.channels)
        last = kl.minimum(first + bands.size, slide.out_height)
        top = first * slide.stride_y - slide.top
        needed = (last - first - 1) * slide.stride_y + (size_y - 1) * slide.dilation_y + 1
        for i in range(needed):
            _copy_pixels(image, lines + i * line_size, top + i, slide.left, bands.span, height, width, x_pitch, tile)
        panel = packed + column * (depth + 1)
        for oy in range(first, last):
            source = lines + (oy - first) * slide.stride_y * line_size
            for t in range(line_tiles):
                ox = tile_start(t, tall, rows, short)
                part = output._replace(row=(n * slide.out_height + oy) * slide.out_width + ox, column=column)
                part = part._replace(rest=features - column)
                p = source + ox * (stride * seen)
                steps = TapSteps(slide.dilation_y * line_size, slide.dilation_x * seen, size_y, size_x)
                if short:
                    if t < tall:
                        write_float_tile(_contract(rows, stride, tile, p, panel, steps), part)
                    else:
                        write_float_tile(_contract(rows - 1, stride, tile, p, panel, steps), part)
                else:
                    write_float_tile(_contract(rows, stride, tile, p, panel, steps), part)


class TapSteps(NamedTuple):
    """Floats from line to line and from pixel to pixel of a window, and its size."""

    down: Any
    across: Any
    size_y: Any
    size_x: Any


def _copy_pixels(
    image: Pointer,
    target: Pointer,
    y: Value,
    left: Value,
    span: Value,
    height: Value,
    width: Value,
    pitch: Value,
    tile: GroupTile,
) -> None:
    """Copy the channels of a block of a line of an image, from pixel -left on; zeros outside of the image."""
    lanes, seen = tile.lanes, tile.seen
    before, after = pixels_inside(y, -left, span, height, width)
    source = image + (y * width - left) * pitch
    for i in range(0, before * seen, lanes):  # may write a vector more, which is written again below
        target.store(kl.zeros(f32, lanes), i)
    for i in range(before, after):
        for c in range(0, seen, lanes):
            count = min(lanes, seen - c)
            (target + i * seen).store((source + i * pitch).load(c, count), c)
    for i in range(after * seen, span * seen, lanes):
        target.store(kl.zeros(f32, lanes), i)


def _contract(rows: int, stride: int, tile: GroupTile, p: Pointer, q: Pointer, steps: TapSteps) -> Registers:
    """Compute the sums of `rows` pixels of a block. p: the first number of the first window; q: the panel."""
    sums = accumulators(f32, rows, tile.vectors, tile.lanes, q)
    q = q + tile.width
    permutations = tile.permutations
    for ky in range(steps.size_y):
        for kx in range(steps.size_x):
            pixels = p + (ky * steps.down + kx * steps.across)
            if permutations is None:
                for c in range(kl.value(tile.channels)):
                    _add_numbers(sums, pixels + c, stride * tile.seen, q)
                    q = q + tile.width
            else:
                _add_permuted(sums, pixels, stride * tile.seen, q, permutations, tile.seen)
                q = q + tile.width * tile.channels
    return sums


def _add_numbers(sums: Registers, p: Pointer, pitch: int, q: Pointer) -> None:
    """Add the products of one number of each pixel."""
    (rows, vectors), lanes = sums.shape, sums.count
    w = [q.load(v * lanes, lanes) for v in range(vectors)]
    for r in range(rows):
        number = p[r * pitch].splat(lanes)
        for v in range(vectors):
            sums[r, v] = kl.fma(number, w[v], sums[r, v])


def _add_permuted(
    sums: Registers, p: Pointer, pitch: int, q: Pointer, permutations: list[list[int]], seen: int
) -> None:
    """Add the products of the channels of each pixel, each by the lanes of its group."""
    rows, lanes = sums.shape[0], sums.count
    w = [q.load(c * lanes, lanes) for c in range(len(permutations))]
    for r in range(rows):
        pixel = p.load(r * pitch, seen)
        for c in range(len(permutations)):
            sums[r, 0] = kl.fma(kl.shuffle(pixel, None, permutations[c]), w[c], sums[r, 0])


def add_grouped_step(
    form: Contract, tile: GroupTile, bias: Buffer | None, epilogue: Epilogue, more: list[Any], build: Builder
) -> None:
    """Add the step of a convolution in groups with a constant filter."""
    n, height, width, _ = form.input.shape
    _, out_height, out_width, features = form.output.shape
    window, filter = form.window, form.filter.constant
    assert filter is not None
    (size_y, size_x), (down, across), (far_y, far_x) = window.size, window.strides, window.dilations
    depth, blocks = size_y * size_x * tile.channels, features // tile.width
    initial = None if bias is None else bias.constant

    def fill(packed: np.ndarray) -> None:
        packed[:, 0] = 0 if initial is None else initial.reshape(blocks, tile.width)
        packed[:, 1:] = filter.astype(np.float32).reshape(blocks, tile.width, depth).transpose(0, 2, 1)

    key = ("grouped", form.filter, "no bias" if bias is None else bias, tile)
    packed = build.packed((blocks, depth + 1, tile.width), np.float32, fill, key)
    cut = row_tiles(out_width, tile.rows(host().registers))
    span, reach = (out_width - 1) * across + (size_x - 1) * far_x + 1, (size_y - 1) * far_y + 1
    line_bytes = span * tile.seen * 4
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
        cut.tiles,
        cut.tall,
        *more,
    ]
    code = convolution_grouped.code(
        more=len(more), tile=tile, stride=across, rows=cut.height, short=cut.short, epilogue=epilogue
    )
    items = n * count * blocks
    work = 2 * depth * math.prod(form.output.shape)
    build.step(code, words, items, lines * line_bytes + 4 * tile.lanes, chunk_of(work, items))
