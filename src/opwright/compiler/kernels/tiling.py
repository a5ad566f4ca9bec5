"""Tiling of matrix products: rows and columns divided for registers, caches and threads.

Lives here: `row_tiles`, `WorkBlocks`, `blocks`, `evened`, `abreast`; parameters of kernels (`Tiles`, `LineTiles`,
`WindowWords`, `ImageWords`, `TapWords`); the walk of a kernel over its tiles (`block_at`, `tile_start`, `tile_rows`,
`for_height`); `pixels_inside`; `grain`, the number of work items that a thread claims at a time; `vector_lanes`.
Not here: the micro-kernels (gemm_f32.py, gemm_int8.py), the threads (../native/executor.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..target import host

if TYPE_CHECKING:
    from ..language import Value
    from ..loops.buffers import Buffer, Window

ABREAST = 4
"""Panels of int8 that a product of one row reads side by side: one core of Zen 3 reads a single stream from memory at
12 GB/s, four at 25. (Halved panels of int4 gain nothing: they are bound by arithmetic.)"""
CACHE = 1 << 19
"""Bytes of an operand that are read repeatedly: half of a second-level cache."""


class RowTiles(NamedTuple):
    """Tiles over rows: `tall` tiles of `height` rows, then `tiles - tall` of one row less."""

    height: int
    tiles: int
    tall: int

    @property
    def short(self) -> bool:
        """Return whether some tiles have a row less than `height`."""
        return self.tall != self.tiles


def row_tiles(rows: int, limit: int) -> RowTiles:
    """Return the fewest tiles of at most `limit` rows, as equal as possible: 49 rows by 14 are 13, 12, 12, 12."""
    tiles = max(1, -(-rows // limit))
    height = -(-rows // tiles)
    return RowTiles(height, tiles, rows - tiles * (height - 1))


def has_two_heights(cut: RowTiles, most: int) -> bool:
    """Return whether a product's kernel computes tiles of a row less, too: if some are, or where tiles have the most
    rows, so that networks, which nearly always have both, need one kernel."""
    return cut.short or cut.height == most


class Tiles(NamedTuple):
    """Words of a product: `tiles` tiles of rows, `tall` of them with all their rows, and the blocks of a work item."""

    tiles: Any
    tall: Any
    tile_block: Any
    panel_block: Any


class LineTiles(NamedTuple):
    """Words of a convolution: lines of `line_tiles` tiles each, `tall` of them with all their pixels; tiles: over all
    lines; the blocks of a work item."""

    line_tiles: Any
    tall: Any
    tiles: Any
    tile_block: Any
    panel_block: Any


class TileBlock(NamedTuple):
    """A work item of a kernel: tiles [start, end) by panels [first, last)."""

    start: Any
    end: Any
    first: Any
    last: Any


def panel_blocks(cut: Tiles | LineTiles, panels: Value) -> Any:
    """Return the number of work items across all panels."""
    return (panels + (cut.panel_block - 1)) // cut.panel_block


def block_at(item: Value, cut: Tiles | LineTiles, panels: Value, across: Any) -> TileBlock:
    """Return a block of tiles by panels, numbered panels first. across: from `panel_blocks`."""
    start, first = item // across * cut.tile_block, item % across * cut.panel_block
    end, last = kl.minimum(start + cut.tile_block, cut.tiles), kl.minimum(first + cut.panel_block, panels)
    return TileBlock(start, end, first, last)


def tile_start(t: Any, tall: Any, rows: int, short: bool) -> Any:
    """Return the first row of tile t, or the number of rows of t tiles. short: whether some have a row less."""
    start = kl.value(t) * rows
    return start - kl.maximum(t - tall, 0) if short else start


def tile_rows(t: Any, tall: Any, rows: int, short: bool) -> Value:
    """Return the number of rows of tile t."""
    return kl.select(t < tall, kl.value(rows), rows - 1) if short else kl.value(rows)


def for_height(rows: int, is_tall: Value | None, compute: Callable[..., None], *arguments: Any) -> None:
    """Compute a tile of `rows` rows or, unless it is tall, of one less. is_tall: None if all tiles have `rows`.

    compute: a function of the number of rows and the arguments.
    """
    if is_tall is None:
        compute(rows, *arguments)
    else:
        if is_tall:  # a branch of the kernel
            compute(rows, *arguments)
        else:
            compute(rows - 1, *arguments)


def pixels_inside(y: Value, left: Value, pixels: Any, height: Any, width: Any) -> tuple[Value, Value]:
    """Return the range of `pixels` adjacent pixels of line y, the first at `left`, that lies inside of an image."""
    inside = (y >= 0) & (y < height)
    before = kl.select(inside, kl.clamp(-left, 0, pixels), pixels)
    return before, kl.select(inside, kl.clamp(width - left, before, pixels), pixels)


class WindowWords(NamedTuple):
    """Words of a convolution: strides, dilations and padding of its window, and its output. dilation: in pixels."""

    stride_y: Any
    stride_x: Any
    dilation_y: Any
    dilation_x: Any
    top: Any
    left: Any
    out_height: Any
    out_width: Any
    out_pitch: Any


def window_words(window: Window, out_height: int, out_width: int, out_pitch: int) -> WindowWords:
    """Return the words of a window and its output."""
    top, _, left, _ = window.padding
    return WindowWords(*window.strides, *window.dilations, top, left, out_height, out_width, out_pitch)


class ImageWords(NamedTuple):
    """Words of images that are read and written: [n, height, width, channels], from pixel to pixel of each."""

    height: Any
    width: Any
    pitch: Any
    out_height: Any
    out_width: Any
    out_pitch: Any
    channels: Any


def image_words(x: Buffer, out: Buffer) -> ImageWords:
    """Return the words of images x and of those computed from them, of as many channels."""
    (_, height, width, _), (_, out_height, out_width, channels) = x.shape, out.shape
    return ImageWords(height, width, x.pitch, out_height, out_width, out.pitch, channels)


class TapWords(NamedTuple):
    """Words of a window, vertically and horizontally: its padding, size, stride and dilation."""

    top: Any
    left: Any
    high: Any
    wide: Any
    step_down: Any
    step_across: Any
    down: Any
    across: Any


def tap_words(window: Window) -> TapWords:
    """Return the words of a window."""
    top, _, left, _ = window.padding
    return TapWords(top, left, *window.size, *window.strides, *window.dilations)


class WorkBlocks(NamedTuple):
    """Blocks of tiles and panels, a work item each: `tiles` tiles of rows by `panels` panels of columns; items: their
    number."""

    tiles: int
    panels: int
    items: int


def has_all_panels(tiles: int, panels: int, panel_bytes: int) -> bool:
    """Return whether a work item is all panels for a few tiles by default: if all panels stay in the cache."""
    return panels * panel_bytes <= CACHE and tiles >= MANY_TILES


def is_order_relevant(tiles: int, panels: int, panel_bytes: int) -> bool:
    """Return whether the order of tiles and panels affects the time.

    It does not if a first-level cache holds all panels, nor for few tiles, which would leave threads without an item.
    """
    return tiles >= MANY_TILES and panels > 1 and panels * panel_bytes > L1_BYTES


L1_BYTES, LINE_BYTES = 1 << 15, 64
"""Bytes of a first-level cache, and of a line of each cache."""
MANY_TILES = 8
"""Tiles that are items enough for several threads."""


def blocks(
    tiles: int, panels: int, tile_bytes: int, panel_bytes: int, work: int, all_panels: bool | None = None
) -> WorkBlocks:
    """Return the work items of tiles x panels.

    tile_bytes, panel_bytes: operand bytes of each; work: operations of one tile by one panel. all_panels: whether an
    item is all panels for a few tiles, so that the rows of a tile are read once; otherwise it is one panel for as many
    tiles as stay in the cache, so that a panel is read once. None: as `has_all_panels`. Items are numerous enough for
    threads to finish at about the same time; the cost of scheduling one is negligible.
    """
    if has_all_panels(tiles, panels, panel_bytes) if all_panels is None else all_panels:
        height = max(1, min(tiles // ITEMS, ITEM_OPERATIONS // max(1, panels * work)))
        return WorkBlocks(height, panels, -(-tiles // height))
    height = max(1, min(tiles, CACHE // max(1, tile_bytes)))
    while height > 1 and panels * -(-tiles // height) < ITEMS:
        height = -(-height // 2)
    across = panels * -(-tiles // height)
    width = max(1, min(across // ITEMS, panels, ITEM_OPERATIONS // max(1, height * work)))
    return WorkBlocks(height, width, -(-tiles // height) * -(-panels // width))


ITEMS = 16
"""Work items that a step has if its tiles suffice."""
FEW_ITEMS = 64
"""Items below which an uneven division between two threads is noticeable."""


def evened(block: WorkBlocks, tiles: int, panels: int) -> WorkBlocks:
    """Return blocks in an even number, at most twice as many, so that two threads have equal work.

    Many or even blocks are returned unchanged. If no such number is even, there are about twice as many blocks.
    """
    if block.items % 2 == 0 or not 1 < block.items < FEW_ITEMS:
        return block
    height = _evened_size(block.tiles, tiles)
    if height < block.tiles:
        return WorkBlocks(height, block.panels, -(-tiles // height) * -(-panels // block.panels))
    width = _evened_size(block.panels, panels)
    return WorkBlocks(block.tiles, width, -(-tiles // block.tiles) * -(-panels // width))


def abreast(block: WorkBlocks, tiles: int, panels: int) -> WorkBlocks:
    """Return blocks of a multiple of ABREAST panels, which a product of one row reads side by side."""
    width = min(-(-block.panels // ABREAST) * ABREAST, panels)
    return WorkBlocks(block.tiles, width, -(-tiles // block.tiles) * -(-panels // width))


def _evened_size(size: int, number: int) -> int:
    """Return the size that divides `number` into an even count of parts, at most twice those of `size`, or size / 2."""
    parts = -(-number // size)
    sizes = ((n, -(-number // n)) for n in range(parts + parts % 2, 2 * parts + 1, 2))
    return next((even for n, even in sizes if -(-number // even) == n), -(-size // 2))


ITEM_OPERATIONS = 1 << 21
"""Operations of an item that covers several tiles, at most."""
SERIAL_OPERATIONS = 1 << 19
"""Operations that one thread does in 2 us. Sharing a step costs 0.3 to 0.6 us, so steps of less work are not shared."""


def chunk_of(operations: int, items: int) -> int | None:
    """Return the number of items that a thread claims at a time: all of a step of little work."""
    return items if operations <= SERIAL_OPERATIONS else None


SERIAL_BYTES = 32 * 1024
"""Bytes below which a step of memory traffic stays on one thread."""
CHUNK_BYTES = 32 * 1024
"""Bytes that a thread claims at a time."""


def grain(nbytes: int, items: int) -> int:
    """Return the number of work items that a thread claims at a time.

    nbytes: bytes that an item reads or writes. items: of the step; all are one chunk if they are little work.
    """
    return items if nbytes * items <= SERIAL_BYTES else max(1, CHUNK_BYTES // max(nbytes, 1))


def vector_lanes(channels: int, size: int = 4) -> int:
    """Return the lanes of a vector of this processor, or fewer: a power of two that is no more than the channels."""
    return min(host().lanes(size), 1 << (channels.bit_length() - 1))
