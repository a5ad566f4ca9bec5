"""Steps of matrix products of float32 with a packed filter: which kernel, and its blocks.

Lives here: `ProductBatch`, `gemm_step`.
Not here: the kernels (gemm_f32.py, gemm_deep_f32.py), the selectors (contractions_f32.py, matmul.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..tuning.choices import BLOCKS_F32
from .epilogue import Epilogue
from .gemm_deep_f32 import (
    DEPTH_BLOCK,
    cached_panels,
    copies_while_computing,
    deep_block,
    deep_scratch,
    gemm_deep,
    is_deep,
)
from .gemm_f32 import gemm
from .tiling import (
    CACHE,
    ITEMS,
    Tiles,
    blocks,
    chunk_of,
    evened,
    has_all_panels,
    has_two_heights,
    is_order_relevant,
    row_tiles,
)
from .weight_packing_f32 import PanelsF32

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder


class ProductBatch(NamedTuple):
    """Products of `rows` rows each, x[row, k] at `pitch`; operands of the next one are `..._batch` floats further.

    turned: x is stored as x[k, row] instead; b_pitch: that of b[k, column], which is not packed, or 0. `is_deep` is
    true for both.
    """

    rows: int
    pitch: int
    products: int = 1
    x_batch: int = 0
    packed_batch: int = 0
    turned: bool = False
    b_pitch: int = 0


def gemm_step(
    build: Builder,
    panels: PanelsF32,
    x: Any,
    packed: Any,
    out: Any,
    out_pitch: int,
    batch: ProductBatch,
    epilogue: Epilogue,
    more: Sequence[Any],
) -> None:
    """Add the step of products with a packed filter, or one that the step packs. x, packed, out: addresses."""
    depth = panels.depth
    cut = row_tiles(batch.rows, panels.rows)
    work = 2 * cut.height * depth * panels.width
    panel_bytes = panels.width * depth * 4
    constants = {"more": len(more), "rows": cut.height, "short": cut.short, "epilogue": epilogue}
    packs = batch.b_pitch > 0
    if is_deep(batch.rows, panels, batch.pitch, batch.turned, packs, batch.products):
        block = evened(deep_block(cut, panels, batch.products), cut.tiles, panels.number)
        scratch = deep_scratch(cut, panels, block, batch.turned, packs)
        code = gemm_deep.code(
            **constants, turned=batch.turned, packs=packs, interleaves=copies_while_computing(panels, batch.turned)
        )
        more = (batch.b_pitch, *more)
    else:
        default = int(has_all_panels(cut.tiles, panels.number, panel_bytes))
        ways = (0, 1) if is_order_relevant(cut.tiles, panels.number, panel_bytes) else (default,)
        all_panels = build.choose(BLOCKS_F32, ways, default, batch.rows, depth, panels.features) > 0
        if not all_panels and cut.tiles >= ITEMS and depth <= DEPTH_BLOCK and panels.number * panel_bytes > CACHE:
            block = cached_panels(cut, panels)
        else:
            block = blocks(cut.tiles, panels.number, cut.height * depth * 4, panel_bytes, work, all_panels)
        block, scratch = evened(block, cut.tiles, panels.number), 0
        constants["short"] = has_two_heights(cut, panels.rows)
        code = gemm.code(**constants, wide=panels.wide, halves=panels.halves)
    words = [
        x,
        packed,
        out,
        depth,
        batch.pitch,
        out_pitch,
        panels.features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        block.items,
        batch.x_batch,
        batch.packed_batch,
        batch.rows,
        *more,
    ]
    items = block.items * batch.products
    build.step(code, words, items, scratch, chunk_of(work * cut.tiles * panels.number * batch.products, items))
