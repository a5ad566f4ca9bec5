"""Products of bytes summed in int16, where a filter's weights are so small that they cannot saturate.

Lives here: `add_bounded`, `steps_of`, which says how many steps 16 bits hold.
Not here: the micro-kernels that it is a part of (gemm_int8.py, gemm_blocks.py), larger weights (gemm_widened.py).

`vpmaddubsw` multiplies bytes, one side unsigned, and adds neighbours as int16, which saturates. A step adds at most
255 (|w0| + |w1|): int4 weights leave room for eight steps, whose sums one `vpmaddwd` by ones adds as int32. That is
half the instructions of widened rows. Weights of int8 with a scale for each channel reach 127 in every channel, so only
filters of fewer bits have such bounds. Rows and panels are those of `kl.dot4`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int4
from .. import language as kl
from ..language import i8, i16, i32, u8
from ..language.dots import saturating_dot2
from .gemm_widened import widens

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value
    from ..loops.forms import Buffer
    from ..target import Target

LARGEST_BYTE, LARGEST_SUM = 255, (1 << 15) - 1
MOST = 64
"""Steps beyond which more are not felt."""


def steps_of(target: Target, filters: Buffer, run: int) -> int:
    """Steps of a filter, four bytes each, whose sums int16 holds; 0: none, or the target multiplies otherwise.

    run: neighbouring bytes of a channel that steps are made of, from the first of them on.
    """
    if not (widens(target) and target.has("avx2") and target.vector_bytes < 64) or filters.constant is None:
        return 0
    rows = filters.constant.reshape(-1, run)
    if filters.dtype is int4:
        largest = 2 * max(abs(int(end)) for end in int4.limits)
    elif _largest_pair(rows[:1]) * LARGEST_BYTE > LARGEST_SUM:  # as of most filters
        return 0
    else:
        largest = _largest_pair(rows)
    return min(LARGEST_SUM // max(LARGEST_BYTE * largest, 1), MOST)


def _largest_pair(rows: np.ndarray) -> int:
    """The largest |w0| + |w1| of neighbours; an odd last one stands alone."""
    sizes = np.abs(rows.astype(np.int16))
    pairs = sizes[:, 0::2].copy()
    pairs[:, : sizes.shape[1] // 2] += sizes[:, 1::2]
    return int(pairs.max(initial=0))


def add_bounded(sums: Registers, p: Pointer, pitch: Any, quads: Any, q: Pointer, flip: Value, steps: int) -> Pointer:
    """Add the products of `quads` steps to the sums of a tile. p: rows of bytes, `pitch` apart; q: the steps, int32.

    flip: what makes bytes of rows unsigned. steps: those that int16 holds. Gives what follows the steps.
    """
    (rows, vectors), lanes = sums.shape, sums.count
    for start in range(0, quads, steps):
        short = kl.registers(i16, 2 * lanes, rows, vectors)
        for r in range(rows):
            for v in range(vectors):
                short[r, v] = 0
        for k in range(start, kl.minimum(start + steps, quads)):
            w = [kl.bitcast(q.load(v * lanes, lanes), i8) for v in range(vectors)]
            for r in range(rows):
                x = kl.bitcast((p + r * pitch).cast(i32)[k].splat(lanes) ^ flip, u8)
                for v in range(vectors):
                    short[r, v] = short[r, v] + saturating_dot2(x, w[v])
            q = q + vectors * lanes
        for r in range(rows):
            for v in range(vectors):
                sums[r, v] = kl.pair_dot(sums[r, v], short[r, v], kl.full(i16, 2 * lanes, 1))
    return q
