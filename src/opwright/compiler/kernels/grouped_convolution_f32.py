"""Convolutions of float32 in groups of few channels, or of few channels in all, which are one group: vectors lie along
the outputs of one group or of several.

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
from .epilogue import Epilogue, epilogue_of, share_output, without_bias
from .output_tiles import accumulators, float_output, write_float_tile
from .tiling import L1_BYTES, WindowWords, chunk_of, pixels_inside, row_tiles, tile_start, window_words

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value, Work
    from ..loops.ops import Contract
    from ..loops.plan_builder import Builder

LINES_BYTES = L1_BYTES
"""Bytes of the copied lines of a band, at most, if a line of outputs needs no more."""


class GroupTile(NamedTuple):
    """A block of `width` outputs in `vectors` vectors of `lanes`, whose last lanes may be unused. channels, features:
    inputs and outputs of a group; dense: whether these are all inputs, so that a line is contiguous."""

    channels: int
    features: int
    lanes: int
    vectors: int
    width: int
    dense: bool = False

    @property
    def panel(self) -> int:
        """Numbers of the filter for each step of the sum, with those of unused lanes."""
        return self.lanes * self.vectors

    @property
    def seen(self) -> int:
        """Inputs of a block, those of its groups."""
        return self.channels * max(1, self.width // self.features)

    @property
    def pixel(self) -> int:
        """Numbers of a copied pixel: a power of two if they are less than a vector, which is loaded at once."""
        is_part = self.width > self.features and self.seen < self.lanes
        return 1 << (self.seen - 1).bit_length() if is_part else self.seen

    @property
    def permutations(self) -> list[list[int]] | None:
        """By channel of a group, the input of each lane; None if a block is of one group."""
        if self.width <= self.features:
            return None
        groups = [min(i, self.width - 1) // self.features for i in range(self.lanes)]
        return [[g * self.channels + c for g in groups] for c in range(self.channels)]

    def rows(self, registers: int) -> int:
        """Return the pixels of a tile of outputs, at most: sums leave registers for the filter and a pixel."""
        return min((registers - 4) // self.vectors, MOST_ROWS)


MOST_ROWS = 14
"""Pixels of a tile: more hide no latency, and are more code."""
MOST_CHANNELS = 32
"""Inputs of a group, at most: products of more fill their tiles. Zen 4: 0.9 of their time at 32, 1.04 at 64."""
LEAST_LANES = 4
"""Lanes of the narrowest vectors."""
LEAST_OUTPUTS = 3
"""Outputs of a block for each of its vectors, at least, unless it has all of a group, as a panel would."""
INPUTS_OF_OUTPUT = 3
"""Inputs of a group for each output of a vector of fewer outputs, at most. Zen 3, 4 and 8 lanes: 0.1 to 0.7 of the time
of a product a group with 3 x 3 pixels and up to 1 with one; with 8, 1.04 and 1.5 at worst."""
NARROW_CHANNELS = 8
"""Channels of a convolution that is one group, at most. Zen 4, AVX-512: 0.2 to 0.4 of the time of a convolution by
panels for 8 outputs of 3 channels, 1 for 32 and more."""
LEAST_SUMS = 8
"""Vectors of sums of a line, at least: as many products are under way at a time."""
UNROLLED = 4
"""Channels of a pixel that are written out, at most."""
MOST_SEEN = 4
"""Vectors of the pixels of a block, at most, if their numbers are permuted."""


def group_tile(target: Target, channels: int, features: int, groups: int) -> GroupTile | None:
    """Return the block for `groups` groups of `channels` inputs and `features` outputs each.

    Returns None if few lanes of a vector would be used, or for more channels.
    """
    block = None if channels > MOST_CHANNELS else block_of_groups(target, features, groups, 2)
    if block is None:
        return None
    tile = GroupTile(channels, features, *block)
    outputs = tile.width / tile.vectors
    is_filled = outputs >= min(LEAST_OUTPUTS, features * groups) or channels <= INPUTS_OF_OUTPUT * outputs
    return tile if is_filled and tile.seen <= MOST_SEEN * tile.lanes else None


def block_of_groups(target: Target, features: int, groups: int, vectors: int) -> tuple[int, int, int] | None:
    """Return the lanes, the vectors (`vectors` at most) and the outputs of a block: of several groups in one vector, of
    one, or of a part of one. Blocks have no rest. None if parts of a group have fewer outputs a vector than
    LEAST_OUTPUTS.
    """
    most = target.vector_bytes // 4
    widths = [features // n for n in range(1, features + 1) if features % n == 0]
    widths += [features * n for n in range(2, min(groups, most) + 1) if groups % n == 0]
    blocks = []
    for width in widths:
        lanes = most
        while lanes > LEAST_LANES and lanes // 2 >= width:
            lanes //= 2
        count = -(-width // lanes)
        if count <= (vectors if width <= features else 1):
            blocks.append((width / count, count, -lanes, width))
    used, count, lanes, width = max(blocks)
    return (-lanes, count, width) if used >= LEAST_OUTPUTS or width >= features else None


class BandWords(NamedTuple):
    """Bands of lines of outputs, `count` of an image, `size` lines each; lines: that are copied, of `span` pixels."""

    count: Any
    size: Any
    lines: Any
    span: Any


@kl.family(addressed=True)
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
    blocks, pixel = features // tile.width, tile.pixel
    output = float_output(work, out, slide.out_pitch, features, epilogue, more)
    lines, depth = work.scratch(f32), size_y * size_x * tile.channels
    line_size = bands.span * pixel
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
        panel = packed + block * (tile.panel * (depth + 1))
        for oy in range(first, last):
            source = lines + (oy - first) * slide.stride_y * line_size
            for t in range(line_tiles):
                ox = tile_start(t, tall, rows, short)
                part = output._replace(row=(n * slide.out_height + oy) * slide.out_width + ox, column=column)
                part = part._replace(rest=tile.width)
                p = source + ox * (stride * pixel)
                steps = TapSteps(slide.dilation_y * line_size, slide.dilation_x * pixel, size_y, size_x)
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
    lanes, seen, pixel = tile.lanes, tile.seen, tile.pixel
    before, after = pixels_inside(y, -left, span, height, width)
    source = image + (y * width - left) * pitch
    for i in range(0, before * pixel, lanes):  # may write a vector more, which is written again below
        target.store(kl.zeros(f32, lanes), i)
    if tile.dense:
        run_end = after * pixel
        vectors_end = before * pixel + (run_end - before * pixel) // lanes * lanes
        for i in range(before * pixel, vectors_end, lanes):
            target.store(source.load(i, lanes), i)
        for i in range(vectors_end, run_end):
            target[i] = source[i]
    else:
        for i in range(before, after):
            for c in range(0, seen, lanes):
                count = min(lanes, seen - c)
                (target + i * pixel).store((source + i * pitch).load(c, count), c)
    for i in range(after * pixel, span * pixel, lanes):
        target.store(kl.zeros(f32, lanes), i)


def _contract(rows: int, stride: int, tile: GroupTile, p: Pointer, q: Pointer, steps: TapSteps) -> Registers:
    """Compute the sums of `rows` pixels of a block. p: the first number of the first window; q: the panel."""
    sums = accumulators(f32, rows, tile.vectors, tile.lanes, q)
    q = q + tile.panel
    permutations = tile.permutations
    for ky in range(steps.size_y):
        for kx in range(steps.size_x):
            pixels = p + (ky * steps.down + kx * steps.across)
            if permutations is None:
                for c in range(tile.channels if tile.channels <= UNROLLED else kl.value(tile.channels)):
                    _add_numbers(sums, pixels + c, stride * tile.pixel, q)
                    q = q + tile.panel
            else:
                _add_permuted(sums, pixels, stride * tile.pixel, q, permutations, tile.pixel)
                q = q + tile.panel * tile.channels
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
    sums: Registers, p: Pointer, pitch: int, q: Pointer, permutations: list[list[int]], size: int
) -> None:
    """Add the products of the channels of each pixel, each by the lanes of its group."""
    rows, lanes = sums.shape[0], sums.count
    w = [q.load(c * lanes, lanes) for c in range(len(permutations))]
    for r in range(rows):
        pixel = p.load(r * pitch, size)
        for c in range(len(permutations)):
            sums[r, 0] = kl.fma(kl.shuffle(pixel, None, permutations[c]), w[c], sums[r, 0])


def is_narrow(form: Contract, target: Target) -> bool:
    """Return whether a convolution that is not in groups reads few channels by windows of several lines, on x86.

    Pixels of one line of outputs that are contiguous are a tile, so there have to be some. Not on 64-bit ARM, whose
    products by panels multiply by one lane of a register: there each number would be loaded by itself, and
    MobileNetV3-Small takes 26.7 million instructions on a Neoverse N1 instead of 25.8.
    """
    _, _, out_width, features = form.output.shape
    vectors = 1 if features <= target.vector_bytes // 4 else 2
    return (
        target.is_x86
        and form.input.shape[3] == form.input.pitch <= NARROW_CHANNELS
        and form.window.size[0] > 1
        and out_width * vectors >= LEAST_SUMS
    )


def add_if_grouped(form: Contract, build: Builder) -> bool:
    """Add the step of a convolution with a constant filter in groups of few channels, or of few in all; return whether
    it is one."""
    filter, features = form.filter.constant, form.output.shape[3]
    if filter is None or not form.output.size or (form.groups == 1 and not is_narrow(form, host())):
        return False
    tile = group_tile(host(), form.filter.shape[3], features // form.groups, form.groups)
    if tile is None:
        return False
    tile = tile._replace(dense=form.groups == 1)
    bias, expr, operands = without_bias(form.expr, form.operands)
    epilogue, more = epilogue_of(expr, operands, form.output, build)
    _, _, out_width, _ = form.output.shape
    depth, blocks = math.prod(form.window.size) * tile.channels, features // tile.width
    initial = None if bias is None else bias.constant

    def fill(packed: np.ndarray) -> None:
        panels = packed.reshape(blocks, depth + 1, tile.panel)[..., : tile.width]
        packed[...] = 0
        panels[:, 0] = 0 if initial is None else initial.reshape(blocks, tile.width)
        panels[:, 1:] = filter.astype(np.float32).reshape(blocks, tile.width, depth).transpose(0, 2, 1)

    key = ("grouped", form.filter, "no bias" if bias is None else bias, tile)
    packed = build.packed((blocks, depth + 1, tile.panel), np.float32, fill, key)
    cut, bands = row_tiles(out_width, tile.rows(host().registers)), copied_bands(form, 4 * tile.pixel)
    words = [*grouped_words(form, packed, bands, build), cut.tiles, cut.tall, *more]
    code = convolution_grouped.code(
        more=len(more), tile=tile, stride=form.window.strides[1], rows=cut.height, short=cut.short, epilogue=epilogue
    )
    items = form.input.shape[0] * bands.count * blocks
    scratch = 4 * (bands.lines * bands.span * tile.pixel + tile.lanes)
    build.step(code, words, items, scratch, chunk_of(2 * depth * math.prod(form.output.shape), items))
    share_output(form, build, operands, epilogue)
    return True


def grouped_words(form: Contract, packed: Any, bands: BandWords, build: Builder) -> list[Any]:
    """Return the words that kernels of convolutions in groups have first: operands, sizes, window and bands."""
    _, height, width, _ = form.input.shape
    _, out_height, out_width, features = form.output.shape
    window = window_words(form.window, out_height, out_width, form.output.pitch)
    operands = build.pointer(form.input), packed, build.pointer(form.output)
    return [*operands, height, width, form.input.pitch, *form.window.size, *window, features, *bands]


def copied_bands(form: Contract, pixel_bytes: int) -> BandWords:
    """Return the bands of a convolution whose pixels are copied, `pixel_bytes` each."""
    _, height, width, _ = form.output.shape
    reach, right = ((size - 1) * dilation + 1 for size, dilation in zip(form.window.size, form.window.dilations))
    (down, across), span = form.window.strides, right
    span += (width - 1) * across
    size = max(1, min(height, (LINES_BYTES // (span * pixel_bytes) - reach) // down + 1))
    count = -(-height // size)
    size = -(-height // count)
    return BandWords(count, size, (size - 1) * down + reach, span)
