"""Convolutions of int8 in groups of few channels on x86 and 64-bit ARM: vectors lie along the outputs of one group or
of several.

Lives here: the family `convolution_grouped_int8`, `GroupTileInt8` (which groups it computes), its step.
Not here: groups of more channels and other targets, a product of matrices each (contractions_int8.py), and one output
for each channel (depthwise.py).

As for floats (grouped_convolution_f32.py), a work item is a block of outputs of all groups that fill a vector, and the
pixels that it reads are copied first. With VNNI they are unsigned bytes x' = x + 128, on ARM signed ones, and each step
multiplies four channels of a group by four weights of each output; otherwise x' = x is int16, and steps are of two
channels. Channels are padded to whole steps; pixels outside of the image are x'_zero. The initial sums are the bias
less x'_zero times the sum of the weights.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import int8, int16, int32, uint8
from .. import language as kl
from ..language import i8, i16, i32, i64, ptr, u8
from ..target import Target, host
from .epilogue import Epilogue, epilogue_of, without_bias
from .gemm_int16 import widens
from .grouped_convolution_f32 import BandWords, TapSteps, block_of_groups, copied_bands, grouped_words
from .output_tiles import OutputTile, rows_per_vector, spilled, tile_epilogue, write_registers, write_tile
from .register_tiles import FOURS, PAIRS
from .tiling import WindowWords, chunk_of, pixels_inside

if TYPE_CHECKING:
    from ...core.dtypes import DType
    from ..language import Pointer, Registers, Value, Work
    from ..loops.ops import Contract
    from ..loops.plan_builder import Builder

EPILOGUE = 12
"""Time of an epilogue of one vector of results, in products."""
MOST_CHANNELS = 16
"""Inputs of a group, at most: the tiles of a product of matrices of more are full."""
MOST_CHANNELS_ARM = 8
"""The same on 64-bit ARM, whose vectors have four lanes: each block of four outputs copies the pixels of its group."""


class GroupTileInt8(NamedTuple):
    """A block of `width` outputs in a vector of `lanes`, whose last lanes may be unused. channels, features: inputs and
    outputs of a group; dtype: of x'."""

    channels: int
    features: int
    lanes: int
    width: int
    dtype: DType

    @property
    def deep(self) -> int:
        """Channels of a step."""
        return FOURS if self.dtype.size == 1 else PAIRS

    def shift(self, dtype: DType) -> int:
        """Return x' - x of an image's dtype."""
        return 0 if self.dtype in (dtype, int16) else 128 if self.dtype is uint8 else -128

    @property
    def groups(self) -> int:
        """Groups of a block."""
        return max(1, self.width // self.features)

    @property
    def steps(self) -> int:
        """Steps of a pixel: its channels of a group, a few at a time."""
        return -(-self.channels // self.deep)

    @property
    def words(self) -> int:
        """Steps of all groups of a copied pixel: a power of two if they are less than a vector, which is loaded at
        once."""
        words = self.groups * self.steps
        return 1 << (words - 1).bit_length() if self.groups > 1 and words < self.lanes else words

    @property
    def size(self) -> int:
        """Numbers of a copied pixel."""
        return self.words * self.deep

    @property
    def padding(self) -> list[int] | None:
        """For each number of a copied pixel its byte of the image, or a zero after them; None if all are read."""
        seen = self.groups * self.channels
        places = [(g, c) for g in range(self.groups) for c in range(self.steps * self.deep)]
        indices = [g * self.channels + c if c < self.channels else seen for g, c in places]
        indices += [seen] * (self.size - len(indices))
        return indices if seen < len(indices) else None

    @property
    def permutations(self) -> list[list[int]] | None:
        """By step, the channels of each lane; None if a block is of one group."""
        if self.groups == 1:
            return None
        groups = [min(i, self.width - 1) // self.features for i in range(self.lanes)]
        return [[g * self.steps + s for g in groups] for s in range(self.steps)]

    def rows(self, registers: int, taps: int, width: int) -> int:
        """Return the pixels of a tile, for lines of `width`: the last tile computes some again, and results of four
        pixels are a vector."""

        def cost(rows: int) -> int:
            return -(-width // rows) * (rows * taps * self.steps + EPILOGUE * (rows // 4 + rows % 4))

        return min(range(1, min(registers // 2 - 2, width) + 1), key=cost)


def group_tile_int8(target: Target, channels: int, features: int, groups: int) -> GroupTileInt8 | None:
    """Return the block for `groups` groups of `channels` inputs and `features` outputs each.

    Returns None on other targets, if few lanes of a vector would be used, or for more channels.
    """
    block = block_of_groups(target, features, groups, 1)
    most = MOST_CHANNELS if target.is_x86 else MOST_CHANNELS_ARM if target.is_aarch64 else 0
    if channels > most or block is None:
        return None
    lanes, _, width = block
    return GroupTileInt8(channels, features, lanes, width, int16 if widens(target) else dot_dtype(target))


def dot_dtype(target: Target) -> DType:
    """Return the dtype of bytes that the target multiplies by int8, four at a time."""
    return int8 if target.is_aarch64 else uint8


@kl.family(addressed=True)
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
    signed: bool,
    epilogue: Epilogue,
) -> None:
    """Compute as `convolution_int8`, of groups of channels. packed: by block, the initial sums and the steps of a sum.

    zero: x'_zero. signed: whether x are int8. stride: the horizontal one. Tiles of a line have
    `rows` pixels; the last one may compute some again. Items: blocks by bands, blocks first. Scratch: the copied lines,
    and a vector.
    """
    blocks, pixel = features // tile.width, tile.size
    ending = tile_epilogue(epilogue, more, work.target)
    output = ending.output(work, out, slide.out_pitch, features, None)
    lines, steps = work.scratch(tile.dtype), size_y * size_x * tile.steps
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
            line = LineWords(top + i, slide.left, bands.span, height, width, x_pitch)
            _copy_pixels(image, lines + i * line_size, line, zero, tile, signed)
        panel = packed + block * (tile.lanes * (steps + 1))
        for oy in range(first, last):
            source = lines + (oy - first) * slide.stride_y * line_size
            for start in range(0, slide.out_width, rows):
                ox = kl.minimum(start, slide.out_width - rows)
                row = (n * slide.out_height + oy) * slide.out_width + ox
                taps = TapSteps(slide.dilation_y * line_size, slide.dilation_x * pixel, size_y, size_x)
                sums = _contract(rows, stride * pixel, tile, source + ox * (stride * pixel), panel, taps)
                _write(output._replace(row=row, column=column, rest=tile.width), sums)
                place = output.out + (row * slide.out_pitch + column)
                ending.look_up(place, slide.out_pitch, rows, tile.width, work.target.vector_bytes)


class LineWords(NamedTuple):
    """A line of an image: its number, the padding before it, the number of copied pixels; the image's sizes."""

    y: Any
    left: Any
    span: Any
    height: Any
    width: Any
    pitch: Any


def _copy_pixels(
    image: Pointer, target: Pointer, line: LineWords, zero: Value, tile: GroupTileInt8, signed: bool
) -> None:
    """Copy the channels of a block of a line of an image, as x'; x'_zero outside of the image."""
    size, seen = tile.size, tile.groups * tile.channels
    before, after = pixels_inside(line.y, -line.left, line.span, line.height, line.width)
    source = image + (line.y * line.width - line.left) * line.pitch
    outside = zero.to(target.dtype).splat(size)
    for i in range(before):
        target.store(outside, i * size)
    for i in range(before, after):
        numbers = (source + i * line.pitch).load(0, seen)
        if tile.deep == FOURS:
            numbers = kl.bitcast(numbers ^ (tile.shift(i8 if signed else u8) & 128), tile.dtype)
        else:
            numbers = (kl.bitcast(numbers, i8) if signed else numbers).to(i16)
        if tile.padding is not None:
            numbers = kl.shuffle(numbers, kl.zeros(numbers.dtype, seen), tile.padding)
        target.store(numbers, i * size)
    for i in range(after, line.span):
        target.store(outside, i * size)


def _contract(rows: int, pitch: int, tile: GroupTileInt8, p: Pointer, q: Pointer, taps: TapSteps) -> Registers:
    """Compute the sums of `rows` pixels of a block. p: the first number of the first window; q: the panel."""
    lanes, permutations = tile.lanes, tile.permutations
    weights_as = i8 if tile.deep == FOURS else i16
    dot = kl.pair_dot if tile.dtype is int16 else kl.dot4 if tile.dtype is uint8 else kl.dot4_signed
    sums = kl.registers(i32, lanes, rows, 1)
    for r in range(rows):
        sums[r, 0] = q.load(0, lanes)
    q = q + lanes
    for ky in range(taps.size_y):
        for kx in range(taps.size_x):
            pixels = (p + (ky * taps.down + kx * taps.across)).cast(i32, 4)
            weights = [kl.bitcast(q.load(step * lanes, lanes), weights_as) for step in range(tile.steps)]
            for r in range(rows):
                start = r * pitch // tile.deep
                pixel = None if permutations is None else pixels.load(start, tile.words)
                for step in range(tile.steps):
                    if pixel is None or permutations is None:
                        channels = pixels[start + step].splat(lanes)
                    else:
                        channels = kl.shuffle(pixel, None, permutations[step])
                    sums[r, 0] = dot(sums[r, 0], kl.bitcast(channels, tile.dtype), weights[step])
            q = q + tile.steps * lanes
    return sums


def _write(tile: OutputTile, sums: Registers) -> None:
    """Apply the epilogue and store the results, as many rows at a time as fill a vector."""
    rows, lanes = sums.shape[0], sums.count
    if tile.light:
        write_registers(tile, [sums[r, 0] for r in range(rows)], lanes, rows_per_vector(tile, lanes, lanes))
    else:
        write_tile(tile, spilled(sums), rows, lanes, lanes)


def add_if_grouped_int8(form: Contract, build: Builder) -> bool:
    """Add the step of a convolution of bytes in groups of few channels, with a constant filter of int8 without a zero
    point; return whether it is one."""
    filter, features = form.filter.constant, form.filter.shape[0]
    if form.groups == 1 or filter is None or form.filter.dtype is not int8 or form.filter_zero or not form.output.size:
        return False
    tile = group_tile_int8(host(), form.filter.shape[3], features // form.groups, form.groups)
    if tile is None or form.input.dtype not in (int8, uint8):
        return False
    bias, expr, operands = without_bias(form.expr, form.operands)
    if bias is not None and bias.dtype is not int32:
        bias, expr, operands = None, form.expr, form.operands
    epilogue, more = epilogue_of(expr, operands, form.output, build)
    signed, taps = form.input.dtype is int8, math.prod(form.window.size)
    zero = form.input_zero + tile.shift(form.input.dtype)
    steps, blocks = taps * tile.steps, features // tile.width
    initial = None if bias is None else bias.constant

    def fill(packed: np.ndarray) -> None:
        packed[...] = 0
        panels = packed[..., : tile.width]
        start = filter.reshape(features, -1).sum(1, dtype=np.int32) * np.int32(-zero)
        panels[:, 0] = (start if initial is None else start + initial.reshape(-1)).reshape(blocks, tile.width)
        padded = np.zeros((features, taps, tile.steps * tile.deep), np.int8 if tile.deep == FOURS else np.int16)
        padded[..., : tile.channels] = filter.reshape(features, taps, tile.channels)
        words = padded.reshape(blocks, tile.width, steps, tile.deep).transpose(0, 2, 1, 3)
        panels[:, 1:] = np.ascontiguousarray(words).view(np.int32)[..., 0]

    key = ("grouped", form.filter, "no bias" if bias is None else bias, tile, zero)
    packed = build.packed((blocks, steps + 1, tile.lanes), np.int32, fill, key)
    bands = copied_bands(form, 4 * tile.words)
    rows = tile.rows(host().registers, taps, form.output.shape[2])
    words = [*grouped_words(form, packed, bands, build), zero, *more]
    code = convolution_grouped_int8.code(
        more=len(more), tile=tile, stride=form.window.strides[1], rows=rows, signed=signed, epilogue=epilogue
    )
    items = form.input.shape[0] * bands.count * blocks
    scratch = bands.lines * bands.span * 4 * tile.words + host().vector_bytes
    build.step(code, words, items, scratch, chunk_of(steps * math.prod(form.output.shape), items))
    return True
