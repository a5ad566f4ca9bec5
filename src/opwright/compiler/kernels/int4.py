"""Fully connected layers whose weights, int4 or int8, have a scale for each block of a channel.

Lives here: packed filters with their scales, the selector.
Not here: the micro-kernel (gemm_blocks.py), how floats are rounded (dynamic_quantization.py), one scale a channel
(contractions_int8.py).

A panel has for each block what its sums start with, its scales, and the channels' bytes, four k at a time, ordered
where rows are widened (gemm_widened.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import float32, int4, int8
from ..loops.ops import Contract
from ..target import host
from . import NoKernel, selector
from .contractions_f32 import chunk_of, share
from .dynamic_quantization import rounded_rows
from .epilogue import epilogue_of
from .gemm_int8 import FLIP, gemm_int8
from .gemm_widened import room, steps_of
from .tiling import Tiles, balanced, blocks
from .weight_packing_int8 import Panels, tile_of

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder


def filling(panels: Panels, filters: np.ndarray, scales: np.ndarray) -> Callable[[np.ndarray], None]:
    """What writes the panels of constant filters [features, channels], scales [features, blocks], later, as int32."""
    tile, number = panels.tile, panels.lines

    def fill(out: np.ndarray) -> None:
        rows = np.ascontiguousarray(filters.reshape(panels.features, -1).astype(np.int8))
        starts = -128 * rows.reshape(panels.features, number, -1).sum(-1, dtype=np.int32)
        fours = rows.view(np.int32).reshape(panels.features, number, -1)
        factors = np.ascontiguousarray(scales, np.float32).view(np.int32)
        for i in range(panels.number):
            first = i * tile.width
            count = min(tile.width, panels.features - first)
            wide = panels.last if i == panels.number - 1 else tile.width
            height = number * (panels.quads + 2)
            panel = out[first * height :][: height * wide].reshape(number, panels.quads + 2, wide)
            part = slice(first, first + count)
            panel[:, 0, :count], panel[:, 1, :count] = starts[part].T, factors[part].T
            panel[:, 2:, :count] = fours[part].transpose(1, 2, 0)
            if tile.widened:  # as `order_steps` does
                pairs = panel[:, 2:].reshape(-1, wide).view(np.int16).reshape(-1, wide, 2)
                panel[:, 2:] = pairs.transpose(0, 2, 1).copy().view(np.int32).reshape(number, panels.quads, wide)

    return fill


@selector(Contract)
def select_blocks(form: Contract, build: Builder) -> None:
    """Steps of a fully connected layer of rounded floats whose weights have scales by block."""
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
    bounded = steps_of(host(), form.filter, channels // number)
    panels = Panels(features, number, channels // number, tile_of(host(), features, bounded))
    height = number * (panels.quads + 2)
    size = height * ((panels.number - 1) * panels.tile.width + panels.last)
    packed = build.packed((size,), np.int32, filling(panels, filter, scales), ("blocks", filter, scales, panels))
    made = rounded_rows(build, form.input, rows, channels, form.input.pitch, form.rounding == "symmetric")
    cut = balanced(rows, panels.tile.rows)
    work = 8 * cut.height * height * panels.tile.width
    block = blocks(cut.tiles, panels.number, cut.height * channels, panels.tile.width * height * 4, work)
    words = [
        made.x,
        packed,
        build.pointer(form.output),
        panels.quads,
        made.pitch,
        form.output.pitch,
        features,
        *Tiles(cut.tiles, cut.tall, block.tiles, block.panels),
        FLIP,
        0,
        0,
        made.scales,
        made.zeros,
        1,
        number,
        0,
        *more,
    ]
    widened = panels.tile.widened
    code = gemm_int8.code(
        more=len(more),
        rows=cut.height,
        vectors=panels.tile.vectors,
        short=cut.tall != cut.tiles,
        narrow=panels.narrow,
        parts=1,
        rounded=True,
        wide=False,
        blocked=True,
        tiled=None,
        widened=int8 if widened else None,
        flipped=False,
        bounded=panels.tile.bounded,
        grouped=None,
        epilogue=epilogue,
    )
    scratch = room(host(), channels * cut.height) if widened else 0
    build.step(code, words, block.items, scratch, chunk_of(work * cut.tiles * panels.number, block.items))
    share(form, build, form.operands, epilogue)
