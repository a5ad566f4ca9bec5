"""Steps of the family gemm_int8, and the rows that they read.

Lives here: `QuantizedRows`, `gemm_int8_step`.
Not here: the kernel (gemm_int8.py), the selectors (contractions_int8.py, matmul_integer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType
from ..target import host
from .dynamic_quantization import rounded_rows
from .epilogue import Epilogue
from .gemm_int8 import FLIP, gemm_int8
from .gemm_int16 import widened_bytes
from .gemm_neon import Grouped
from .register_tiles import PanelsInt8
from .tiling import RowTiles, Tiles, WorkBlocks

if TYPE_CHECKING:
    from ..loops.buffers import Buffer
    from ..loops.plan_builder import Builder


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
) -> None:
    """Add the step of products of rows at one pitch with a packed filter.

    packed, out: addresses; dtype: of the rows as they are multiplied. rows_per_scale: output rows of each scale of
    rounded rows. blocked: whether the lines of panels are blocks with scales. products: their number, whose operands
    are x_batch bytes and packed_batch words apart.
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
        grouped=grouped_rows(panels, dtype, paired),
        epilogue=epilogue,
    )
    scratch = widened_bytes(host(), elements * cut.height) if widened or flipped else 0
    build.step(code, words, block.items * products, scratch, chunk)
