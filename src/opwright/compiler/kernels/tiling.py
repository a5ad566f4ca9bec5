"""Tiles of matrix products: how rows and columns are divided for registers, caches and threads.

Lives here: `balanced`, `Blocks`, `blocks`, `for_two`; `Tiles`, `LineTiles`, `Sliding`, parameters of kernels; `grain`,
the number of work items a thread claims at a time; `vector_lanes`.
Not here: the micro-kernels (gemm_f32.py, gemm_int8.py), the threads (../native/executor.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..target import host

if TYPE_CHECKING:
    from ..loops.buffers import Window

CACHE = 1 << 19
"""Bytes of one operand that may be read again and again: half of a second-level cache."""


class Rows(NamedTuple):
    """Tiles over rows: `tall` tiles of `height` rows, then `tiles - tall` of one row less."""

    height: int
    tiles: int
    tall: int


def balanced(rows: int, most: int) -> Rows:
    """The fewest tiles of at most so many rows, as equal as can be: 49 by 14 is 13, 12, 12, 12."""
    tiles = max(1, -(-rows // most))
    height = -(-rows // tiles)
    return Rows(height, tiles, rows - tiles * (height - 1))


class Tiles(NamedTuple):
    """Words of a product: `tiles` tiles of rows, `tall` of them with all their rows, and the blocks of a work item."""

    tiles: Any
    tall: Any
    tile_block: Any
    panel_block: Any


class LineTiles(NamedTuple):
    """Words of a convolution: lines in `line_tiles` tiles each, `tall` of them with all their pixels; tiles: of all
    lines; the blocks of a work item."""

    line_tiles: Any
    tall: Any
    tiles: Any
    tile_block: Any
    panel_block: Any


class Sliding(NamedTuple):
    """Words of a convolution: how the window goes over the image, and its output. dilation: in pixels."""

    stride_y: Any
    stride_x: Any
    dilation_y: Any
    dilation_x: Any
    top: Any
    left: Any
    out_height: Any
    out_width: Any
    out_pitch: Any


def sliding_of(window: Window, out_height: int, out_width: int, out_pitch: int) -> Sliding:
    """Return the words of a window and its output."""
    top, _, left, _ = window.padding
    return Sliding(*window.strides, *window.dilations, top, left, out_height, out_width, out_pitch)


class Blocks(NamedTuple):
    """Which tiles are one work item: `tiles` tiles of rows by `panels` panels of columns; items: how many there are."""

    tiles: int
    panels: int
    items: int


def has_all_panels(tiles: int, panels: int, panel_bytes: int) -> bool:
    """Whether a work item is all panels for a few tiles by default: where all panels stay in the cache."""
    return panels * panel_bytes <= CACHE and tiles >= MANY


def is_order_felt(tiles: int, panels: int, panel_bytes: int) -> bool:
    """Whether there is a choice of what an item is, and it makes a difference: not where a first-level cache holds all
    panels, and not of few tiles, which would leave threads without an item."""
    return tiles >= MANY and panels > 1 and panels * panel_bytes > FIRST


FIRST = 1 << 15
"""Bytes of a first-level cache."""
MANY = 8
"""Tiles that are items enough for several threads."""


def blocks(
    tiles: int, panels: int, tile_bytes: int, panel_bytes: int, work: int, all_panels: bool | None = None
) -> Blocks:
    """Work items of tiles x panels. tile_bytes, panel_bytes: what one reads; work: operations of one tile and panel.

    all_panels: an item is all panels for a few tiles, so that a tile's rows are read once; else it is one panel for as
    many tiles as stay in the cache, so that a panel is. By default see `has_all_panels`. There are enough items for
    several threads to end at about the same time; to hand one out costs next to nothing.
    """
    if has_all_panels(tiles, panels, panel_bytes) if all_panels is None else all_panels:
        each = max(1, min(tiles // ITEMS, ITEM // max(1, panels * work)))
        return Blocks(each, panels, -(-tiles // each))
    each = max(1, min(tiles, CACHE // max(1, tile_bytes)))
    while each > 1 and panels * -(-tiles // each) < ITEMS:
        each = -(-each // 2)
    across = panels * -(-tiles // each)
    wide = max(1, min(across // ITEMS, panels, ITEM // max(1, each * work)))
    return Blocks(each, wide, -(-tiles // each) * -(-panels // wide))


ITEMS = 16
"""Work items that a step has, where it can."""


FEW = 64
"""Work items of which one more than half is felt."""


def for_two(block: Blocks, tiles: int, panels: int) -> Blocks:
    """The same work in an even number of items, twice as many at most, where they are few and odd, so that two threads
    have the same to do. Where no such number is even, in about twice as many."""
    if block.items % 2 == 0 or not 1 < block.items < FEW:
        return block
    each = _even(block.tiles, tiles)
    if each < block.tiles:
        return Blocks(each, block.panels, -(-tiles // each) * -(-panels // block.panels))
    wide = _even(block.panels, panels)
    return Blocks(block.tiles, wide, -(-tiles // block.tiles) * -(-panels // wide))


def _even(each: int, number: int) -> int:
    """Return how many of `number` a part has where parts are even in number and at most twice as many as parts of
    `each`; half of `each` where there are no such parts."""
    parts = -(-number // each)
    sizes = ((n, -(-number // n)) for n in range(parts + parts % 2, 2 * parts + 1, 2))
    return next((size for n, size in sizes if -(-number // size) == n), -(-each // 2))


ITEM = 1 << 21
"""Operations that an item may have where it stands for several tiles."""
SERIAL_OPERATIONS = 1 << 19
"""Operations that one thread does in 2 us. Sharing a step costs 0.3 to 0.6 us, so steps of less work are not shared."""


def chunk_of(operations: int, items: int) -> int | None:
    """Items a thread takes at a time: all where they are little work."""
    return items if operations <= SERIAL_OPERATIONS else None


SERIAL_BYTES = 32 * 1024
"""Bytes below which a step of memory traffic stays on one thread."""
CHUNK_BYTES = 32 * 1024
"""Bytes that a thread claims at a time."""


def grain(nbytes: int, items: int) -> int:
    """Return the number of work items that a thread claims at a time.

    nbytes: that an item reads or writes. items: of the step; all are one chunk where they are little work.
    """
    return items if nbytes * items <= SERIAL_BYTES else max(1, CHUNK_BYTES // max(nbytes, 1))


def vector_lanes(channels: int, size: int = 4) -> int:
    """Return the lanes of a vector of this processor, or fewer: a power of two that is no more than the channels."""
    return min(host().vector_bytes // size, 1 << (channels.bit_length() - 1))
