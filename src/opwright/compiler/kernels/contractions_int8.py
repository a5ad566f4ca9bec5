"""Kernel selection of contractions of integers: the kernel, tile and work items of convolutions and dense layers.

Lives here: the selectors of `Contract` for one scale per channel and for block scales, `IntegerGroup`. Not here: the
kernels (gemm_int8.py, convolution_int8.py), packed filters (weight_packing_int8.py), steps of convolutions with windows
(contraction_steps_int8.py), the rounding of float inputs (quantization.py).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType, float32, int4, int8, int16, int32, uint8
from ..loops.buffers import Buffer
from ..loops.ops import Contract
from ..target import host
from ..tuning.choices import BLOCKS_INT8
from . import NoKernel, selector
from .contraction_steps_int8 import (
    SPEEDUP,
    ImageSizes,
    QuantizedRows,
    add_convolution,
    add_patches,
    copies_windows,
    gemm_int4_step,
    gemm_int8_step,
    round_to_int8,
    summed_blocks,
)
from .epilogue import Epilogue, epilogue_of, share_output, without_bias
from .gemm_int8 import FLIP
from .gemm_int16 import bounded_steps
from .gemm_neon import is_paired
from .grouped_convolution_int8 import add_if_grouped_int8
from .narrow_images import columns_as_channels
from .register_tiles import PanelsInt8, RegisterTile, parts_of, tile_of, vector_tile
from .tiling import abreast, blocks, chunk_of, evened, has_all_panels, is_order_relevant, row_tiles
from .weight_packing_int8 import are_halved, packed_blocks, packed_filter, packed_halves, packed_pairs

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address

BYTES = (int8, uint8)
READING, FINISHING = 8, 3
"""Time to read a weight for a single row, and of an operation of the epilogue, in operations on floats."""
FEW_ROWS = 2
"""Rows of a tile that are not copied for it."""


class IntegerGroup(NamedTuple):
    """One group of a contraction. rows: its input; feature: its first one; features: their number."""

    form: Contract
    rows: QuantizedRows
    feature: int
    features: int
    epilogue: Epilogue
    more: list[Any]
    bias: Buffer | None

    @property
    def parts(self) -> int:
        """Parts of 8 bits whose sum is a weight."""
        return parts_of(self.form.filter.dtype, self.form.filter_zero)

    @property
    def channels(self) -> int:
        """Bytes of the channels of a pixel."""
        return self.form.filter.shape[3] * self.rows.size

    @property
    def wide(self) -> bool:
        """Return whether the input is int16."""
        return self.rows.size == 2

    @property
    def dtype(self) -> DType:
        """Return the dtype of the rows as they are multiplied."""
        return int8 if self.rows.rounded else self.form.input.dtype

    @property
    def input_bytes(self) -> int:
        """Bytes from the first to the last of the input."""
        return (math.prod(self.form.input.shape[:3]) - 1) * self.rows.pitch + self.channels

    @property
    def epilogue_operations(self) -> int:
        """Return the operations of the epilogue of all outputs, in operations on floats."""
        return FINISHING * self.epilogue.weight * math.prod(self.form.output.shape[:-1]) * self.features

    def packed(self, build: Builder, panels: PanelsInt8) -> Address:
        """Return the address of the packed filter."""
        form = self.form
        if self.wide:
            return packed_pairs(build, panels, form.filter, self.feature)
        offset = 128 if self.rows.rounded else panels.tile.offset(self.rows.zero, form.input.dtype)
        return packed_filter(build, panels, form.filter, self.feature, form.filter_zero, offset, self.bias)

    def is_paired(self, panels: PanelsInt8) -> bool:
        """Return whether int16 holds two products, if the tile is one of 64-bit ARM that adds pairs."""
        return panels.tile.grouped == 4 and is_paired(self.form.filter, self.parts)

    def tile(self, rows: int, quads: int, run: int) -> RegisterTile:
        """Return the tile for rows at one pitch, with `quads` contiguous steps; run: contiguous bytes of a channel."""
        if self.wide:
            return vector_tile(host(), self.features)
        products = math.prod(self.form.output.shape[:-1]) * self.features * math.prod(self.form.filter.shape[1:])
        tile = tile_of(host(), rows, self.features, quads, products)
        bounded = 0 if tile or self.parts > 1 else bounded_steps(host(), self.form.filter, run)
        return tile or vector_tile(host(), self.features, bounded)


@selector(Contract)
def select_contract(form: Contract, build: Builder) -> None:
    """Add the steps of a contraction of int8, uint8, int16 or floats to be rounded with a filter of at most 8 bits."""
    add_contraction(form, build)


def add_contraction(form: Contract, build: Builder) -> QuantizedRows:
    """Add these steps; return the rows that they read. Raises NoKernel."""
    rounded = form.input.dtype is float32 and bool(form.rounding)
    wide = form.input.dtype is int16 and form.input_zero == 0
    if wide and (form.filter_zero or form.filter.dtype is uint8 or form.filter.constant is None):
        raise NoKernel("int16 by a filter that is not a constant of int8")
    if not (form.input.dtype in BYTES or rounded or wide) or form.filter.dtype not in (*BYTES, int4):
        raise NoKernel(f"a contraction of {form.input.dtype.name} and {form.filter.dtype.name}")
    if rounded and (form.filter_zero or form.filter.dtype is uint8):
        raise NoKernel("floats rounded for weights with a zero point")
    if form.scales is not None:
        raise NoKernel("scales by block")
    form = columns_as_channels(form) or form
    features = form.filter.shape[0] // form.groups
    bias, expr, operands = without_bias(form.expr, form.operands)
    if bias is not None and (bias.dtype is not int32 or wide):
        bias, expr, operands = None, form.expr, form.operands
    rows = _rounded_input(form, build) if rounded else _integer_input(form, build)
    if not rounded and not wide and add_if_grouped_int8(form, build):
        return rows

    def add_group(g: int) -> Epilogue:
        epilogue, more = epilogue_of(expr, operands, form.output, build, g * features)
        part = rows._replace(x=rows.x.moved(g * form.filter.shape[3] * rows.size))
        _add_group(IntegerGroup(form, part, g * features, features, epilogue, more, bias), build)
        return epilogue

    epilogues = [add_group(g) for g in range(form.groups)]
    share_output(form, build, operands, epilogues[-1])
    return rows


def _integer_input(form: Contract, build: Builder) -> QuantizedRows:
    if form.input.dtype is int16:
        return QuantizedRows(build.pointer(form.input), form.input.pitch * 2, 0, 0, size=2)
    signed = form.input.dtype is int8
    return QuantizedRows(build.pointer(form.input), form.input.pitch, form.input_zero, FLIP if signed else 0)


def _rounded_input(form: Contract, build: Builder) -> QuantizedRows:
    """Round each input[n]: rows of dense layers to multiples of four bytes, images without gaps."""
    n, columns, pitch = form.input.shape[0], math.prod(form.input.shape[1:]), form.input.pitch
    if math.prod(form.input.shape[:3]) == n:
        return round_to_int8(build, form.input, n, columns, pitch, form.rounding)
    if pitch != form.input.shape[3]:
        raise NoKernel("images of a slice to be rounded")
    return round_to_int8(build, form.input, n, columns, columns, form.rounding, 1)._replace(pitch=pitch)


def _add_group(group: IntegerGroup, build: Builder) -> None:
    form, window, source = group.form, group.form.window, group.rows
    channels = group.channels
    rows = math.prod(form.output.shape[:-1])
    sizes = ImageSizes(*form.input.shape[:3], *form.output.shape[1:3])
    if window.size == (1, 1) and window.strides == (1, 1) and window.padding == (0, 0, 0, 0):
        if channels % 4 == 0 or (source.rounded and source.pitch >= -(-channels // 4) * 4):
            tile = group.tile(rows, -(-channels // 4), channels)
            _add_gemm(group, build, PanelsInt8(group.features, 1, channels, tile, group.parts), source)
            return
        if not source.rounded:
            sizes = ImageSizes(1, 1, rows, 1, rows)
    joined = window.dilations[1] == 1 and source.pitch == channels
    segments, run = (1, window.size[1]) if joined else (window.size[1], 1)
    lines, quads = window.size[0] * segments, -(-run * channels // 4)
    tile = group.tile(sizes.out_width, quads, run * channels)
    panels = PanelsInt8(group.features, lines, run * channels, tile, group.parts)
    if copies_windows(group, build, panels, rows, lines * quads * 4):
        panels = panels._replace(tile=group.tile(rows, lines * quads, run * channels), joined=True)
        _add_gemm(group, build, panels, add_patches(group, build, sizes, segments, run))
        return
    if tile.grouped:
        panels = panels._replace(tile=tile._replace(padded=True))
    add_convolution(group, build, panels, sizes, segments, run)


def _add_gemm(group: IntegerGroup, build: Builder, panels: PanelsInt8, lhs: QuantizedRows) -> None:
    """Add a matrix product of rows at one pitch."""
    form, tile = group.form, panels.tile
    rows = math.prod(form.output.shape[:-1])
    cut = row_tiles(rows, tile.rows)
    work, panel_bytes = 8 * cut.height * panels.steps * tile.width, tile.width * panels.steps * 4
    relevant = is_order_relevant(cut.tiles, panels.number, panel_bytes)
    # If an item copies its rows, the copies serve all panels.
    copied = relevant and (tile.flipped or lhs.widened(panels, group.dtype) is not None)
    default = int(copied or has_all_panels(cut.tiles, panels.number, panel_bytes))
    ways = (0, 1) if relevant else (default,)
    all_panels = build.choose(BLOCKS_INT8, ways, default, rows, 4 * panels.steps, group.features) > 0
    tile_bytes = cut.height * panels.lines * panels.quads * 4
    block = blocks(cut.tiles, panels.number, tile_bytes, panel_bytes, work, all_panels)
    block = evened(block, cut.tiles, panels.number)
    if cut.height == 1 and tile.reads_abreast and not group.wide:
        block = abreast(block, cut.tiles, panels.number)
    packed = group.packed(build, panels)
    operations = work * cut.tiles * panels.number // SPEEDUP + group.epilogue_operations
    if cut.height == 1:
        operations = READING * cut.tiles * panels.number * panels.steps * 4 * tile.width
    gemm_int8_step(
        build,
        panels,
        lhs,
        packed,
        build.pointer(form.output, group.feature),
        form.output.pitch,
        cut,
        block,
        group.epilogue,
        group.more,
        group.dtype,
        chunk_of(operations, block.items),
        rows_per_scale=max(1, math.prod(form.output.shape[1:3])),
        flipped=tile.flipped and cut.height > FEW_ROWS and not group.wide,
        paired=group.is_paired(panels),
    )


@selector(Contract)
def select_block_scales(form: Contract, build: Builder) -> None:
    """Add the steps of a dense layer of rounded floats whose weights, int4 or int8, have a scale for each block."""
    filter, scales = form.filter.constant, form.scales.constant if form.scales is not None else None
    features, channels = form.filter.shape[0], form.filter.shape[3]
    rows = math.prod(form.output.shape[:-1])
    if form.scales is None or scales is None or filter is None or form.filter.dtype not in (int4, int8):
        raise NoKernel("no scales by block, or of weights that are computed")
    number = form.scales.shape[1]
    if (
        form.input.dtype is not float32
        or not form.rounding
        or form.window.size != (1, 1)
        or form.groups != 1
        or math.prod(form.input.shape[:3]) != rows
        or channels % (4 * number)
    ):
        raise NoKernel(f"{form.input.dtype.name} by {number} blocks of {channels} channels")
    epilogue, more = epilogue_of(form.expr, form.operands, form.output, build)
    tile = vector_tile(host(), features, bounded_steps(host(), form.filter, channels // number))
    has_products = tile.bounded > 0 or bool(host().vnni_lanes)
    tile = tile._replace(halved=has_products and are_halved(form.filter.dtype, channels // number, scales))
    panels = PanelsInt8(features, number, channels // number, tile)
    height = number * (panels.quads + 2)
    packed = (packed_halves if tile.halved else packed_blocks)(build, panels, filter, scales)
    lhs = round_to_int8(build, form.input, rows, channels, form.input.pitch, form.rounding)
    cut = row_tiles(rows, tile.rows)
    work = 8 * cut.height * height * tile.width
    unpacked = tile.halved and tile.bounded > 0 and cut.tiles > 1
    all_panels = False if unpacked else None  # a panel is unpacked once for the rows of an item
    block = blocks(cut.tiles, panels.number, cut.height * channels, tile.width * height * 4, work, all_panels)
    if cut.height == 1 and tile.halved and tile.reads_abreast:
        block = abreast(block, cut.tiles, panels.number)
    chunk = chunk_of(work * cut.tiles * panels.number, block.items)
    out, pitch = build.pointer(form.output), form.output.pitch
    sums = summed_blocks(build, form.input, lhs, rows, panels, form.rounding) if tile.halved else 0
    add = gemm_int4_step if unpacked else functools.partial(gemm_int8_step, dtype=int8, blocked=True)
    add(build, panels, lhs, packed, out, pitch, cut, block, epilogue, more, chunk=chunk, block_sums=sums)
    share_output(form, build, form.operands, epilogue)
