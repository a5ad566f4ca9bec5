"""Matrix products of int16 by int8: sums of pairs in int32, carried over to int64 before they could be too large.

Lives here: `contract_wide`, packed filters of pairs.  Not here: kernels and selectors, which are those of int8
(gemm_int8.py, convolution_int8.py, contractions_int8.py): to them an element is two bytes.

|x w| <= 2^22, so 2^9 products stay below 2^31. A panel has for each two k the channels' two bytes; it has no starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import language as kl
from ..language import i8, i16, i32, i64
from ..loops.buffers import Buffer

if TYPE_CHECKING:
    from ..language import Pointer
    from ..loops.plan_builder import Builder
    from .gemm_int8 import Source
    from .weight_packing_int8 import Panels

PAIRS = 255
"""Steps of two products before int32 might be too small."""


def contract_wide(rows: int, vectors: int, lanes: int, source: Source, q: Pointer) -> Pointer:
    """The micro-kernel: the sums of a tile in memory, int64[rows, vectors * lanes]. q: the panel, int16."""
    width = vectors * lanes
    kept = kl.stack(i64, rows * width)
    for i in kl.loop(0, rows * width, lanes):
        kept.store(kl.zeros(i64, lanes), i)
    for line in range(source.lines):
        for segment in range(source.segments):
            p = source.p + (line * source.line + segment * source.segment)
            for start in range(0, source.quads, PAIRS):
                sums = kl.registers(i32, lanes, rows, vectors)
                for v in range(vectors):
                    for r in range(rows):
                        sums[r, v] = kl.zeros(i32, lanes)
                for k in range(start, kl.minimum(start + PAIRS, source.quads)):
                    w = [kl.bitcast(q.load(v * lanes, lanes), i8).to(i16) for v in range(vectors)]
                    for r in range(rows):
                        x = kl.bitcast((p + r * source.pitch).cast(i32)[k].splat(lanes), i16)
                        for v in range(vectors):
                            sums[r, v] = kl.pair_dot(sums[r, v], x, w[v])
                    q = q + width
                for r in range(rows):
                    for v in range(vectors):
                        at = r * width + v * lanes
                        kept.store(kept.load(at, lanes) + sums[r, v].to(i64), at)
    return kept


def filling(panels: Panels, filters: np.ndarray) -> Callable[[np.ndarray], None]:
    """What writes the panels of constant filters [features, ...] of int8 or int4 into memory later, as int16."""
    tile, lines = panels.tile, panels.lines

    def fill(out: np.ndarray) -> None:
        pairs = np.zeros((panels.features, lines, panels.quads * 2), np.int8)
        pairs[..., : panels.run // 2] = filters.reshape(panels.features, lines, -1).astype(np.int8)
        rows = pairs.reshape(panels.features, -1).view(np.int16)
        for i in range(panels.number):
            first = i * tile.width
            count = min(tile.width, panels.features - first)
            wide = panels.last if i == panels.number - 1 else tile.width
            panel = out[first * panels.steps :][: panels.steps * wide].reshape(panels.steps, wide)
            panel[:, :count] = rows[first : first + count].T

    return fill


def packed_pairs(build: Builder, panels: Panels, filters: Buffer, first: int) -> Any:
    """The address of a constant filter's channels from `first` on, packed."""
    assert filters.constant is not None
    rows = filters.constant[first : first + panels.features]
    return build.packed((panels.size,), np.int16, filling(panels, rows), ("panels of pairs", rows, panels))
