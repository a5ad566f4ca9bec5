"""Tiles: how rows and columns of a product are cut into pieces for registers, caches and threads.

Lives here: `balanced`, `Blocks`, `for_two`.  Not here: what computes a tile (gemm_f32.py, gemm_int8.py).
"""

from __future__ import annotations

from typing import NamedTuple

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


class Blocks(NamedTuple):
    """Which tiles are one work item: `tiles` tiles of rows by `panels` panels of columns; items: how many there are."""

    tiles: int
    panels: int
    items: int


def blocks(tiles: int, panels: int, tile_bytes: int, panel_bytes: int, work: int) -> Blocks:
    """Work items of tiles x panels. tile_bytes, panel_bytes: what one reads; work: operations of one tile and panel.

    Where all panels stay in the cache, an item is all panels for a few tiles, so that a tile's rows are read once;
    else one panel for as many tiles as stay there, so that a panel is. There are enough items for several threads to
    end at about the same time; to hand one out costs next to nothing.
    """
    if panels * panel_bytes <= CACHE and tiles >= 8:
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
    """The same work in twice as many items where they are few and odd, so that two threads have the same to do."""
    if block.items % 2 == 0 or not 1 < block.items < FEW:
        return block
    each, wide = block.tiles, block.panels
    if each > 1:
        each = -(-each // 2)
    elif wide > 1:
        wide = -(-wide // 2)
    return Blocks(each, wide, -(-tiles // each) * -(-panels // wide))


ITEM = 1 << 21
"""Operations that an item may have where it stands for several tiles."""
ALONE = 1 << 19
"""Operations of a step that one thread does before a second knows of it: 2 us, where to share costs 0.3 to 0.6."""


def chunk_of(operations: int, items: int) -> int | None:
    """Items a thread takes at a time: all where they are little work."""
    return items if operations <= ALONE else None
