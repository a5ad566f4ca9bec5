"""Steps of integer contractions: matrix products of rows, and convolutions with windows in place or over copies.

Lives here: `QuantizedRows`, `gemm_int8_step`, `gemm_int4_step`; `add_convolution`, `add_patches`, `copies_windows`.
Not here: the kernels (gemm_int8.py, convolution_int8.py), the selectors (contractions_int8.py, matmul.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType
from ..loops.buffers import Buffer
from ..target import host
from ..tuning.choices import COPIES
from .contractions_f32 import window_blocks
from .convolution_int8 import convolution_int8, patches
from .epilogue import Epilogue
from .gemm_int4 import halved_group, sum_blocks
from .gemm_int4_rows import gemm_int4_rows, unpacked_bytes
from .gemm_int8 import FLIP, gemm_int8
from .gemm_int16 import widened_bytes, widens
from .gemm_neon import Grouped
from .quantization import rounded_rows
from .register_tiles import PanelsInt8
from .tiling import CACHE, LineTiles, RowTiles, Tiles, WorkBlocks, chunk_of, evened, grain, row_tiles, window_words

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address
    from .contractions_int8 import IntegerGroup


class QuantizedRows(NamedTuple):
    """The bytes of an operand: their address, bytes from row (or pixel) to row, and the zero point.

    flip: bits that make them unsigned. rounded: whether they were floats, with scales and zero points for each row or
    image. size: bytes of an element; two are int16.
    """

    x: Any
    pitch: int
    zero: int
    flip: int
    rounded: bool = False
    scales: Any = 0
    zeros: Any = 0
    size: int = 1

    def widened(self, panels: PanelsInt8, dtype: DType) -> DType | None:
        """Return the dtype of rows that a kernel widens to int16, or None."""
        return dtype if panels.tile.widened and self.size == 1 else None


def round_to_int8(
    build: Builder, x: Buffer, rows: int, columns: int, pitch: int, rounding: str, align: int = 4
) -> QuantizedRows:
    """Add a step that rounds rows of floats, each with a scale of its own; see `rounded_rows`."""
    rounded = rounded_rows(build, x, rows, columns, pitch, rounding == "symmetric", align)
    return QuantizedRows(rounded.x, rounded.pitch, 0, FLIP, True, rounded.scales, rounded.zeros)


def summed_blocks(
    build: Builder, x: Buffer, lhs: QuantizedRows, rows: int, panels: PanelsInt8, rounding: str
) -> Address:
    """Return the address of the sums of the blocks of rounded rows of x, [rows, blocks]; add a step unless shared."""

    def add() -> Address:
        sums = build.temporary(4 * rows * panels.lines)
        words = [lhs.x, sums, lhs.pitch, panels.lines, panels.run]
        build.step(sum_blocks.code(has_pairs=widens(host())), words, rows, chunk=grain(panels.lines * panels.run, rows))
        return sums

    result: Address = build.derived(("sums of blocks", rows, panels.lines, panels.run, rounding), x, add)
    return result


def grouped_rows(panels: PanelsInt8, dtype: DType, paired: bool = False) -> Grouped | None:
    """Return the multiplication of rows on 64-bit ARM, None on other targets. paired: see `Grouped`."""
    tile = panels.tile
    return Grouped(tile.grouped, dtype, paired, tile.padded) if tile.grouped else None


def gemm_int8_step(
    build: Builder,
    panels: PanelsInt8,
    lhs: QuantizedRows,
    packed: Any,
    out: Any,
    out_pitch: int,
    cut: RowTiles,
    block: WorkBlocks,
    epilogue: Epilogue,
    more: Sequence[Any],
    dtype: DType,
    chunk: int | None,
    *,
    rows_per_scale: int = 1,
    blocked: bool = False,
    flipped: bool = False,
    paired: bool = False,
    products: int = 1,
    x_batch: int = 0,
    packed_batch: int = 0,
    block_sums: Any = 0,
) -> None:
    """Add the step of products of rows at one pitch with a packed filter.

    packed, out: addresses; dtype: of the rows as they are multiplied. rows_per_scale: output rows of each scale of
    rounded rows. blocked: whether the lines of panels are blocks with scales. products: their number, whose operands
    are x_batch bytes and packed_batch words apart. block_sums: the address of `summed_blocks`.
    """
    tile, elements = panels.tile, 4 * panels.lines * panels.quads
    widened = lhs.widened(panels, dtype)
    words = [
        lhs.x,
        packed,
        out,
        panels.quads if blocked else panels.lines * panels.quads,
        lhs.pitch,
        out_pitch,
        panels.features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        lhs.flip,
        x_batch,
        packed_batch,
        lhs.scales,
        lhs.zeros,
        rows_per_scale,
        panels.lines if blocked else 0,
        block_sums,
        tile.depth,
        *more,
    ]
    code = gemm_int8.code(
        more=len(more),
        rows=cut.height,
        vectors=tile.vectors,
        short=cut.short,
        narrow=panels.narrow,
        parts=panels.parts,
        rounded=lhs.rounded,
        wide=lhs.size == 2,
        blocked=blocked,
        tiled=dtype if tile.depth else None,
        widened=widened,
        flipped=flipped,
        bounded=tile.bounded,
        halved=tile.halved,
        grouped=grouped_rows(panels, dtype, paired),
        epilogue=epilogue,
    )
    scratch = widened_bytes(host(), elements * cut.height) if widened or flipped else 0
    build.step(code, words, block.items * products, scratch, chunk)


def gemm_int4_step(
    build: Builder,
    panels: PanelsInt8,
    lhs: QuantizedRows,
    packed: Any,
    out: Any,
    out_pitch: int,
    cut: RowTiles,
    block: WorkBlocks,
    epilogue: Epilogue,
    more: Sequence[Any],
    chunk: int | None,
    block_sums: Any,
) -> None:
    """Add the step of products of several rows by halved panels, by sums of int16."""
    tile = panels.tile
    words = [
        lhs.x,
        packed,
        out,
        panels.quads,
        lhs.pitch,
        out_pitch,
        panels.features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        lhs.scales,
        lhs.zeros,
        panels.lines,
        block_sums,
        *more,
    ]
    group = halved_group(panels.quads)
    code = gemm_int4_rows.code(
        more=len(more),
        rows=cut.height,
        vectors=tile.vectors,
        short=cut.short,
        narrow=panels.narrow,
        group=group,
        single=group == panels.quads,
        epilogue=epilogue,
    )
    build.step(code, words, block.items, unpacked_bytes(tile.width, panels.lines, panels.quads), chunk)


SPEEDUP = 4
"""Throughput of operations on bytes relative to those on floats."""
LINE_ELEMENTS = 1 << 14
"""Elements of the lines that a line of the output needs, up to which they are copied together: 32 KB as int16."""
COPY_LIMIT = 16 * CACHE
"""Bytes of copied windows above which tuning does not consider them."""
STEP, LINE, COPY = 4, 60, 5
"""Instructions: of a step besides its rows and weights, to copy a line of a window, and of each vector of it."""


class ImageSizes(NamedTuple):
    """Sizes of the input and the output as images."""

    batches: int
    height: int
    width: int
    out_height: int
    out_width: int


def copies_windows(group: IntegerGroup, build: Builder, panels: PanelsInt8, rows: int, row: int) -> bool:
    """Return whether windows of `row` bytes are copied, for a product of `rows` rows."""
    form, (number, height, width, _) = group.form, group.form.output.shape
    small = rows * row <= 2 * CACHE
    default = group.parts > 1 or (small and _is_copying_faster(panels, width, row))
    ways = (0, 1) if group.parts == 1 and rows * row <= COPY_LIMIT else (int(default),)
    sizes = number, height, width, form.filter.shape[3], group.features, *form.window.size, form.window.strides[0]
    return build.choose(COPIES, ways, int(default), *sizes) > 0


def _is_copying_faster(panels: PanelsInt8, width: int, row: int) -> bool:
    """Return whether copying windows of `row` bytes, for tiles over several lines, is faster than reading line by line.

    The instructions of a step besides its products are then executed for fewer tiles. AMX computes all rows of a tile.
    """
    tile, height = panels.tile, row_tiles(width, panels.tile.rows).height
    if tile.depth:
        return height * 6 < tile.rows * 5
    saved = panels.steps * panels.number * (tile.vectors + STEP) * (1 / max(height, 1) - 1 / tile.rows)
    return saved > panels.lines * LINE + COPY * row // host().vector_bytes


def add_patches(group: IntegerGroup, build: Builder, sizes: ImageSizes, segments: int, run: int) -> QuantizedRows:
    """Add the step that copies the windows of all output pixels as rows, and return these."""
    source, window, channels = group.rows, group.form.window, group.channels
    rows = math.prod(group.form.output.shape[:-1])
    pitch = window.size[0] * segments * -(-run * channels // 4) * 4 + host().vector_bytes
    windows = build.temporary(rows * pitch)
    words = [
        source.x,
        windows,
        group.input_bytes,
        sizes.height,
        sizes.width,
        source.pitch,
        channels,
        source.zero,
        window.size[0],
        segments,
        run,
        *window_words(window, sizes.out_height, sizes.out_width, pitch),
        source.zeros,
    ]
    build.step(patches.code(rounded=source.rounded), words, rows, chunk=chunk_of(16 * rows * pitch, rows))
    return source._replace(x=windows, pitch=pitch)


def add_convolution(
    group: IntegerGroup, build: Builder, panels: PanelsInt8, sizes: ImageSizes, segments: int, run: int
) -> None:
    """Add the step of a convolution that reads the image in place."""
    form, window, tile, source = group.form, group.form.window, panels.tile, group.rows
    channels = group.channels
    cut = row_tiles(sizes.out_width, tile.rows)
    tiles = cut.tiles * sizes.batches * sizes.out_height
    work = 8 * cut.height * panels.steps * tile.width
    block = evened(window_blocks(tiles, panels.number, work, -(-tiles // 8)), tiles, panels.number)
    line, tall = (
        (pixels - 1) * window.strides[1] + (segments - 1) * window.dilations[1] + run
        for pixels in (sizes.out_width, cut.height)
    )
    flipped = tile.flipped and not group.wide
    widened = source.widened(panels, group.dtype)
    copied = flipped or widened is not None
    by_line = copied and window.size[0] * line * channels <= LINE_ELEMENTS and block.tiles >= cut.tiles
    packed = group.packed(build, panels)
    words = [
        source.x,
        packed,
        build.pointer(form.output, group.feature),
        group.input_bytes,
        sizes.height,
        sizes.width,
        source.pitch,
        channels,
        source.zero,
        source.flip,
        window.size[0],
        segments,
        run,
        *window_words(window, sizes.out_height, sizes.out_width, form.output.pitch),
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
        short=cut.short,
        narrow=panels.narrow,
        rounded=source.rounded,
        wide=group.wide,
        tiled=group.dtype if tile.depth else None,
        widened=widened,
        flipped=flipped,
        by_line=by_line,
        bounded=tile.bounded,
        grouped=grouped_rows(panels, group.dtype, group.is_paired(panels)),
        epilogue=group.epilogue,
    )
    elements = window.size[0] * (line if by_line else tall) * channels + 4  # with the last step's excess
    scratch = widened_bytes(host(), elements) if widened is not None else elements + host().vector_bytes
    operations = work * tiles * panels.number // SPEEDUP + group.epilogue_operations
    build.step(code, words, block.items, scratch, chunk_of(operations, block.items))
