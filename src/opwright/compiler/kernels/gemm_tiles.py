"""The micro-kernel of int8 on tiles, where a processor has them: 2 by 2 tiles of sums, 32 rows by 32 channels.

Lives here: `contract_tiles`, `prepare`, `short_first`; `tiles_for`, which says when.
Not here: what reads the sums (gemm_int8.py), tiles as such (../language/tiles.py).

Four bytes of a row meet four bytes of each channel as with vectors (gemm_int8.py), so the panels are the same: a tile
of a panel is `depth` of its steps, by 16 channels. A tile of the input is 16 rows where they lie, by as many bytes.
Bytes of either sign are taken as they are, so that a panel's starts make up for zero points alone.

    tiles 0 1    sums of the upper rows          4    upper rows     6 7    the filter's
          2 3    and of the lower                5    lower rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import i8, i32
from .weight_packing_int8 import Tile

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..target import Target
    from .gemm_int8 import Source

ROWS, HALF, ROW_BYTES = 32, 16, 64
"""Rows of a tile of the output, rows of one of the processor's, and bytes of its rows."""
DEPTH = 16
"""The most steps of a panel that one of the processor's tiles has."""
FEW_ROWS, FEW_STEPS, SHALLOW, LITTLE = 4, 8, 6, 1 << 17
"""Rows, steps, steps at a time, and products in all below which vectors are as quick: to size the tiles and to give
them back takes 0.2 us, and a product of tiles 16 cycles, however little is in them."""


def tiles_for(target: Target, rows: int, features: int, quads: int, products: int) -> Tile | None:
    """The tile for a product of so many rows at one pitch, channels, and steps in one piece; products: in all.

    None where the target has no tiles, or vectors are as quick.
    """
    depth = depth_of(quads)
    few = rows < FEW_ROWS or quads < FEW_STEPS or depth < SHALLOW or products < LITTLE
    if few or not target.has("amx-int8") or target.vector_bytes < ROW_BYTES:  # a vector is a row of sums
        return None
    return Tile(ROWS, 1 if features <= HALF else 2, HALF, depth)


def depth_of(quads: int) -> int:
    """Steps of a tile: the most that quads are a multiple of."""
    return max((d for d in range(1, DEPTH + 1) if quads and quads % d == 0), default=0)


def _upper(rows: int) -> int:
    return -(-rows // 2) if rows > HALF else rows


def prepare(rows: int, depth: Any) -> None:
    """Size the tiles for so many rows."""
    upper = _upper(rows)
    lower = max(rows - upper, 1)
    sums = [(upper, ROW_BYTES)] * 2 + [(lower, ROW_BYTES)] * 2
    kl.tile_config([*sums, (upper, depth * 4), (lower, depth * 4), (depth, ROW_BYTES), (depth, ROW_BYTES)])


def short_first(t: Any, short: Any, rows: int) -> tuple[Value, Value]:
    """The first row of a tile, and its rows: `short` tiles have one less than the others, and come first.

    So all are computed alike: the row after a short one is the next one's.
    """
    return t * (rows - 1) + kl.maximum(t - short, 0), kl.select(t < short, rows - 1, kl.value(rows))


def contract_tiles(rows: int, vectors: int, lanes: int, source: Source, q: Pointer, started: bool) -> Pointer:
    """The sums of rows x vectors lanes, in memory. q: the panel; started: whether sums start with its first row."""
    width, upper = vectors * lanes, _upper(rows)
    halves = (0, 1) if rows > upper else (0,)
    kept = kl.stack(i32, rows * width)
    for h in halves:
        for v in range(vectors):
            if started:
                kl.tile_load(2 * h + v, q + v * lanes, 0)
            else:
                kl.tile_zero(2 * h + v)
    q = q + width
    depth = source.depth
    for line in range(source.lines):
        for segment in range(source.segments):
            p = source.p + (line * source.line + segment * source.segment)
            for _ in range(source.quads // depth):
                for h in halves:
                    kl.tile_load(4 + h, p + h * upper * source.pitch, source.pitch)
                    for v in range(vectors):
                        if h == 0:
                            kl.tile_load(6 + v, q + v * lanes, 4 * width)
                        kl.tile_dot(2 * h + v, 4 + h, 6 + v, source.tiled, i8)
                p = p + depth * 4
                q = q + depth * width
    for h in halves:
        for v in range(vectors):
            kl.tile_store(2 * h + v, kept + (h * upper * width + v * lanes), 4 * width)
    return kept
