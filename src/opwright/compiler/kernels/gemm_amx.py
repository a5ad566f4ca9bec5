"""The micro-kernel of int8 on AMX: 2 by 2 tiles of sums, 32 rows by 32 channels.

Lives here: `contract_tiles`, `configure_tiles`, `short_tile`; `amx_shape`, the condition of its use.
Not here: the families that use it (gemm_int8.py), the instructions (../language/tiles.py).

Four bytes of a row are multiplied by four bytes of each channel as with vectors (gemm_int8.py), so the panels are the
same: a tile of a panel is `depth` of its steps, by 16 channels. A tile of the input is 16 rows in place, by as many
bytes. The instructions multiply bytes of either sign, so that the initial sums of a panel compensate zero points alone.

    tiles 0 1    sums of the upper rows          4    upper rows     6 7    the filter
          2 3    and of the lower                5    lower rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import i8, i32

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..target import Target
    from .gemm_int8 import LhsInt8

ROWS, HALF, ROW_BYTES = 32, 16, 64
"""Rows of an output tile, rows of a tile of the processor, and bytes of its rows."""
DEPTH = 16
"""Steps of a panel in a tile of the processor, at most."""
FEW_ROWS, FEW_STEPS, SHALLOW, FEW_PRODUCTS = 4, 8, 6, 1 << 17
"""Rows, steps, steps at a time, and products in all below which vectors are as fast: to configure and release the tiles
takes 0.2 us, and a product of tiles 16 cycles, whatever their size."""


def amx_shape(target: Target, rows: int, features: int, quads: int, products: int) -> tuple[int, int, int, int] | None:
    """Return rows, vectors, lanes and depth of the tile for rows at one pitch, channels, steps per run and products.

    None without AMX, and if vectors are as fast.
    """
    depth = depth_of(quads)
    few = rows < FEW_ROWS or quads < FEW_STEPS or depth < SHALLOW or products < FEW_PRODUCTS
    if few or not target.has("amx-int8") or target.vector_bytes < ROW_BYTES:  # a vector is a row of sums
        return None
    return ROWS, 1 if features <= HALF else 2, HALF, depth


def depth_of(quads: int) -> int:
    """Return the steps of a tile: the largest divisor of quads."""
    return max((d for d in range(1, DEPTH + 1) if quads and quads % d == 0), default=0)


def _upper(rows: int) -> int:
    return -(-rows // 2) if rows > HALF else rows


def configure_tiles(rows: int, depth: Any) -> None:
    """Configure the tiles for a number of rows."""
    upper = _upper(rows)
    lower = max(rows - upper, 1)
    sums = [(upper, ROW_BYTES)] * 2 + [(lower, ROW_BYTES)] * 2
    kl.tile_config([*sums, (upper, depth * 4), (lower, depth * 4), (depth, ROW_BYTES), (depth, ROW_BYTES)])


def short_tile(t: Any, short: Any, rows: int) -> tuple[Value, Value]:
    """Return the first row of a tile, and its number of rows: `short` tiles have one less, and come first.

    So all compute the same number: the row after a short tile belongs to the next one.
    """
    return t * (rows - 1) + kl.maximum(t - short, 0), kl.select(t < short, rows - 1, kl.value(rows))


def contract_tiles(rows: int, vectors: int, lanes: int, lhs: LhsInt8, q: Pointer, biased: bool) -> Pointer:
    """Compute the sums of rows x vectors lanes in memory. q: the panel; biased: its first row is initial sums."""
    width, upper = vectors * lanes, _upper(rows)
    halves = (0, 1) if rows > upper else (0,)
    sums = kl.stack(i32, rows * width)
    for h in halves:
        for v in range(vectors):
            if biased:
                kl.tile_load(2 * h + v, q + v * lanes, 0)
            else:
                kl.tile_zero(2 * h + v)
    q = q + width
    depth = lhs.depth
    for line in range(lhs.lines):
        for segment in range(lhs.segments):
            p = lhs.p + (line * lhs.line + segment * lhs.segment)
            for _ in range(lhs.quads // depth):
                for h in halves:
                    kl.tile_load(4 + h, p + h * upper * lhs.pitch, lhs.pitch)
                    for v in range(vectors):
                        if h == 0:
                            kl.tile_load(6 + v, q + v * lanes, 4 * width)
                        kl.tile_dot(2 * h + v, 4 + h, 6 + v, lhs.tiled, i8)
                p = p + depth * 4
                q = q + depth * width
    for h in halves:
        for v in range(vectors):
            kl.tile_store(2 * h + v, sums + (h * upper * width + v * lanes), 4 * width)
    return sums
