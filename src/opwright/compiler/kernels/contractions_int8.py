"""Selectors of contractions of 8 bits: which kernel, tile and work items a convolution or fully connected layer gets.

Lives here: the selector of `Contract`.  Not here: the kernels (gemm_int8.py, convolution_int8.py), packed filters
(weight_packing_int8.py), float inputs beside integer filters (dynamic_quantization.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType, float32, int4, int8, int16, int32, uint8
from ..loops.buffers import Buffer
from ..loops.ops import Contract
from ..target import host
from ..tuning.choices import BLOCKS_INT8, COPIES
from . import NoKernel, selector
from .contractions_f32 import chunk_of, share
from .convolution_int8 import convolution_int8, over_rows, patches
from .dynamic_quantization import rounded_rows
from .epilogue import Epilogue, epilogue_of, without_bias
from .gemm_int8 import FLIP, gemm_int8
from .gemm_int16 import packed_pairs
from .gemm_neon import Grouped, is_paired
from .gemm_tiles import tiles_for
from .gemm_widened import room, steps_of
from .tiling import (
    CACHE,
    ITEM,
    Blocks,
    LineTiles,
    Tiles,
    balanced,
    blocks,
    for_two,
    has_all_panels,
    is_order_felt,
    sliding_of,
)
from .weight_packing_int8 import Panels, Tile, grouped_tile, packed_filter, parts_of, tile_of

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

BYTES = (int8, uint8)
QUICKER = 4
"""Times that operations on bytes are quicker than those on floats."""
READING, FINISHING = 8, 3
"""Operations on floats that take as long as to read a weight for one row alone, and as an operation of the epilogue."""
FEW_ROWS = 2
"""Rows of a tile that are not copied for it."""
NEAR = 1 << 14
"""Elements of the lines that a line of the output needs, up to which they are copied together: 32 KB as int16."""
STEP, LINE, COPY = 4, 60, 5
"""Instructions of a step beside those of its rows and weights, to copy a line of a window, and of each vector of it."""


class Geometry(NamedTuple):
    """Sizes of the input and the output as images."""

    batches: int
    height: int
    width: int
    out_height: int
    out_width: int


class Rows(NamedTuple):
    """The input's bytes: where they are, bytes from pixel to pixel, and what zero is.

    flip: what makes them unsigned. rounded: whether they were floats, whose
    images have scales and zero points of their own. size: bytes of an element; two are int16.
    """

    x: Any
    pitch: int
    zero: int
    flip: int
    rounded: bool = False
    scales: Any = 0
    zeros: Any = 0
    size: int = 1


class Group(NamedTuple):
    """One group of a contraction. rows: its input; feature: its first one; features: how many."""

    form: Contract
    rows: Rows
    feature: int
    features: int
    epilogue: Epilogue
    more: list[Any]
    bias: Buffer | None

    @property
    def parts(self) -> int:
        """Parts of 8 bits that weights are the sum of."""
        return parts_of(self.form.filter.dtype, self.form.filter_zero)

    @property
    def channels(self) -> int:
        """Bytes of a pixel's channels."""
        return self.form.filter.shape[3] * self.rows.size

    @property
    def wide(self) -> bool:
        """Whether the input is int16."""
        return self.rows.size == 2

    def packed(self, build: Builder, panels: Panels) -> Any:
        """The address of the filter."""
        form = self.form
        if self.wide:
            return packed_pairs(build, panels, form.filter, self.feature)
        offset = 128 if self.rows.rounded else panels.tile.offset(self.rows.zero, form.input.dtype)
        return packed_filter(build, panels, form.filter, self.feature, form.filter_zero, offset, self.bias)

    @property
    def dtype(self) -> DType:
        """What the rows are when they are multiplied."""
        return int8 if self.rows.rounded else self.form.input.dtype

    def tiled(self, panels: Panels) -> DType | None:
        """The dtype of the rows where tiles compute."""
        return self.dtype if panels.tile.depth else None

    def widened(self, panels: Panels) -> DType | None:
        """The dtype of the rows where they are widened."""
        return self.dtype if panels.tile.widened and not self.wide else None

    def grouped(self, panels: Panels) -> Grouped | None:
        """How rows are multiplied on 64-bit ARM."""
        steps = panels.tile.grouped
        paired = steps == 4 and is_paired(self.form.filter, self.parts)
        return Grouped(steps, self.dtype, paired, panels.tile.padded) if steps else None

    def tile(self, rows: int, quads: int, run: int) -> Tile:
        """The tile for so many rows at one pitch, with so many steps of the micro-kernel in one piece.

        run: neighbouring bytes of a channel's weights.
        """
        products = math.prod(self.form.output.shape[:-1]) * self.features * math.prod(self.form.filter.shape[1:])
        found = (
            None
            if self.wide
            else (tiles_for(host(), rows, self.features, quads, products) or grouped_tile(host(), self.features))
        )
        bounded = 0 if found or self.wide or self.parts > 1 else steps_of(host(), self.form.filter, run)
        return found or tile_of(host(), self.features, bounded)


@selector(Contract)
def select_contract(form: Contract, build: Builder) -> None:
    """Steps of a contraction of int8, uint8, int16 or floats to be rounded with a filter of int8, uint8 or int4."""
    rounded = form.input.dtype is float32 and bool(form.rounding)
    wide = form.input.dtype is int16 and form.input_zero == 0
    if wide and (form.filter_zero or form.filter.dtype is uint8 or form.filter.constant is None):
        raise NoKernel("int16 by a filter that is no constant of int8")
    if not (form.input.dtype in BYTES or rounded or wide) or form.filter.dtype not in (*BYTES, int4):
        raise NoKernel(f"a contraction of {form.input.dtype.name} and {form.filter.dtype.name}")
    if rounded and (form.filter_zero or form.filter.dtype is uint8):
        raise NoKernel("floats rounded for weights with a zero point")
    if form.scales is not None:
        raise NoKernel("scales by block")
    form = over_rows(form) or form
    features = form.filter.shape[0] // form.groups
    bias, expr, operands = without_bias(form.expr, form.operands)
    if bias is not None and (bias.dtype is not int32 or wide):
        bias, expr, operands = None, form.expr, form.operands
    rows = _rounded(form, build) if rounded else _as_it_is(form, build)
    for g in range(form.groups):
        epilogue, more = epilogue_of(expr, operands, form.output, build, g * features)
        part = rows._replace(x=rows.x.moved(g * form.filter.shape[3] * rows.size))
        _make_group(Group(form, part, g * features, features, epilogue, more, bias), build)
    share(form, build, operands, epilogue)


def _as_it_is(form: Contract, build: Builder) -> Rows:
    if form.input.dtype is int16:
        return Rows(build.pointer(form.input), form.input.pitch * 2, 0, 0, size=2)
    signed = form.input.dtype is int8
    return Rows(build.pointer(form.input), form.input.pitch, form.input_zero, FLIP if signed else 0)


def _rounded(form: Contract, build: Builder) -> Rows:
    """Each input[n] as integers: rows of fully connected layers at multiples of four bytes, images without gaps."""
    n, columns, pitch = form.input.shape[0], math.prod(form.input.shape[1:]), form.input.pitch
    if math.prod(form.input.shape[:3]) == n:
        made = rounded_rows(build, form.input, n, columns, pitch, form.rounding == "symmetric")
        return Rows(made.x, made.pitch, 0, FLIP, True, made.scales, made.zeros)
    if pitch != form.input.shape[3]:
        raise NoKernel("images of a slice to be rounded")
    made = rounded_rows(build, form.input, n, columns, columns, form.rounding == "symmetric", 1)
    return Rows(made.x, pitch, 0, FLIP, True, made.scales, made.zeros)


def _make_group(group: Group, build: Builder) -> None:
    form, window, source = group.form, group.form.window, group.rows
    channels = group.channels
    rows = math.prod(form.output.shape[:-1])
    shape = Geometry(*form.input.shape[:3], *form.output.shape[1:3])
    if window.size == (1, 1) and window.strides == (1, 1) and window.padding == (0, 0, 0, 0):
        if channels % 4 == 0 or (source.rounded and source.pitch >= -(-channels // 4) * 4):
            panels = Panels(group.features, 1, channels, group.tile(rows, -(-channels // 4), channels), group.parts)
            _make_gemm(group, build, panels, source.x, source.pitch)
            return
        if not source.rounded:
            shape = Geometry(1, 1, rows, 1, rows)
    joined = window.dilations[1] == 1 and source.pitch == channels
    segments, run = (1, window.size[1]) if joined else (window.size[1], 1)
    lines, quads = window.size[0] * segments, -(-run * channels // 4)
    tile = group.tile(shape.out_width, quads, run * channels)
    panels = Panels(group.features, lines, run * channels, tile, group.parts)
    row = lines * quads * 4
    if _copies(group, build, panels, rows, row):
        panels = panels._replace(tile=group.tile(rows, lines * quads, run * channels), joined=True)
        pitch = row + host().vector_bytes
        place = build.temporary(rows * pitch)
        words = [
            source.x,
            place,
            _room(group),
            shape.height,
            shape.width,
            source.pitch,
            channels,
            source.zero,
            window.size[0],
            segments,
            run,
            *sliding_of(window, shape.out_height, shape.out_width, pitch),
            source.zeros,
        ]
        build.step(patches.code(rounded=source.rounded), words, rows, chunk=chunk_of(16 * rows * pitch, rows))
        _make_gemm(group, build, panels, place, pitch)
        return
    if tile.grouped:
        panels = panels._replace(tile=tile._replace(padded=True))
    _make_convolution(group, build, panels, shape, segments, run)


def _copies(group: Group, build: Builder, panels: Panels, rows: int, row: int) -> bool:
    """Whether windows of `row` bytes are copied, for a product of so many rows."""
    form, width = group.form, group.form.output.shape[2]
    small = rows * row <= 2 * CACHE
    default = group.parts > 1 or (small and _are_copies_worth(panels, width, row))
    ways = (0, 1) if group.parts == 1 and rows * row <= MOST_COPIED else (int(default),)
    number, height = form.output.shape[:2]
    return (
        build.choose(
            COPIES,
            ways,
            int(default),
            number,
            height,
            width,
            form.filter.shape[3],
            group.features,
            *form.window.size,
            form.window.strides[0],
        )
        > 0
    )


MOST_COPIED = 16 * CACHE
"""Bytes of copied windows above which they are not asked about."""


def _are_copies_worth(panels: Panels, width: int, row: int) -> bool:
    """Whether windows of `row` bytes are better copied, for tiles over several lines, than read line by line.

    What a step takes beside its products is done for fewer tiles then. The processor's tiles compute all their rows.
    """
    tile, height = panels.tile, balanced(width, panels.tile.rows).height
    if tile.depth:
        return height * 6 < tile.rows * 5
    saved = panels.steps * panels.number * (tile.vectors + STEP) * (1 / max(height, 1) - 1 / tile.rows)
    return saved > panels.lines * LINE + COPY * row // host().vector_bytes


def _room(group: Group) -> int:
    """Bytes from the input's first to its last."""
    return (math.prod(group.form.input.shape[:3]) - 1) * group.rows.pitch + group.channels


def _make_gemm(group: Group, build: Builder, panels: Panels, x: Any, pitch: int) -> None:
    """A matrix product of rows at one pitch."""
    form, tile, source = group.form, panels.tile, group.rows
    rows = math.prod(form.output.shape[:-1])
    cut = balanced(rows, tile.rows)
    quads = panels.lines * panels.quads
    work, panel_bytes = 8 * cut.height * panels.steps * tile.width, tile.width * panels.steps * 4
    felt = is_order_felt(cut.tiles, panels.number, panel_bytes)
    near = felt and (panels.tile.flipped or group.widened(panels) is not None)  # an item copies its rows for all panels
    by_default = int(near or has_all_panels(cut.tiles, panels.number, panel_bytes))
    ways = (0, 1) if felt else (by_default,)
    all_panels = build.choose(BLOCKS_INT8, ways, by_default, rows, 4 * panels.steps, group.features) > 0
    block = blocks(cut.tiles, panels.number, cut.height * quads * 4, panel_bytes, work, all_panels)
    block = for_two(block, cut.tiles, panels.number)
    packed = group.packed(build, panels)
    flipped = tile.flipped and cut.height > FEW_ROWS and not group.wide
    words = [
        x,
        packed,
        build.pointer(form.output, group.feature),
        quads,
        pitch,
        form.output.pitch,
        group.features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        source.flip,
        0,
        0,
        source.scales,
        source.zeros,
        max(1, math.prod(form.output.shape[1:3])),
        0,
        tile.depth,
        *group.more,
    ]
    code = gemm_int8.code(
        more=len(group.more),
        rows=cut.height,
        vectors=tile.vectors,
        short=cut.tall != cut.tiles,
        narrow=panels.narrow,
        parts=panels.parts,
        rounded=source.rounded,
        wide=group.wide,
        blocked=False,
        tiled=group.tiled(panels),
        widened=group.widened(panels),
        flipped=flipped,
        bounded=tile.bounded,
        grouped=group.grouped(panels),
        epilogue=group.epilogue,
    )
    scratch = room(host(), 4 * quads * cut.height) if group.widened(panels) or flipped else 0
    operations = work * cut.tiles * panels.number // QUICKER + _finishing(group)
    if cut.height == 1:
        operations = READING * cut.tiles * panels.number * panels.steps * 4 * tile.width
    build.step(code, words, block.items, scratch, chunk_of(operations, block.items))


def _make_convolution(group: Group, build: Builder, panels: Panels, shape: Geometry, segments: int, run: int) -> None:
    """A convolution that reads the image in place."""
    form, window, tile, source = group.form, group.form.window, panels.tile, group.rows
    channels = group.channels
    cut = balanced(shape.out_width, tile.rows)
    tiles = cut.tiles * shape.batches * shape.out_height
    work = 8 * cut.height * panels.steps * tile.width
    block = for_two(_blocks(tiles, panels.number, work), tiles, panels.number)
    line, tall = (
        (pixels - 1) * window.strides[1] + (segments - 1) * window.dilations[1] + run
        for pixels in (shape.out_width, cut.height)
    )
    flipped = tile.flipped and not group.wide
    near = flipped or group.widened(panels) is not None
    by_line = near and window.size[0] * line * channels <= NEAR and block.tiles >= cut.tiles
    packed = group.packed(build, panels)
    words = [
        source.x,
        packed,
        build.pointer(form.output, group.feature),
        _room(group),
        shape.height,
        shape.width,
        source.pitch,
        channels,
        source.zero,
        source.flip,
        window.size[0],
        segments,
        run,
        *sliding_of(window, shape.out_height, shape.out_width, form.output.pitch),
        group.features,
        *LineTiles(cut.tiles, cut.tall, tiles, block.tiles, block.panels),
        source.scales,
        source.zeros,
        tile.depth,
        *group.more,
    ]
    code = convolution_int8.code(
        more=len(group.more),
        rows=cut.height,
        vectors=tile.vectors,
        short=cut.tall != cut.tiles,
        narrow=panels.narrow,
        rounded=source.rounded,
        wide=group.wide,
        tiled=group.tiled(panels),
        widened=group.widened(panels),
        flipped=flipped,
        by_line=by_line,
        bounded=tile.bounded,
        grouped=group.grouped(panels),
        epilogue=group.epilogue,
    )
    elements = window.size[0] * (line if by_line else tall) * channels + 4  # and what the last step reads behind them
    scratch = room(host(), elements) if group.widened(panels) else elements + host().vector_bytes
    operations = work * tiles * panels.number // QUICKER + _finishing(group)
    build.step(code, words, block.items, scratch, chunk_of(operations, block.items))


def _finishing(group: Group) -> int:
    """Operations of the epilogue of all outputs, as those of floats."""
    return FINISHING * group.epilogue.weight * math.prod(group.form.output.shape[:-1]) * group.features


def _blocks(tiles: int, panels: int, work: int) -> Blocks:
    """All panels for a few tiles: what a tile has copied serves them all. Of few tiles, parts of the panels."""
    if tiles >= 4:
        each = max(1, min(-(-tiles // 8), ITEM // max(1, panels * work)))
        return Blocks(each, panels, -(-tiles // each))
    wide = max(1, -(-panels * tiles // 8)) if tiles else 1
    return Blocks(1, wide, tiles * -(-panels // wide))
