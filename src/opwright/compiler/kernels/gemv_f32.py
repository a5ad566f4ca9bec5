"""Products of few rows with a filter that stays as it is in the file: at the speed of memory.

Lives here: the family `gemv`, `gathered`.  Not here: many rows, for which the filter is packed (gemm_f32.py).

As many channels as a vector has lanes are summed side by side, each along its row of the filter; then their vectors are
added crosswise into one vector of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f32, i64, ptr
from .epilogue import Epilogue

if TYPE_CHECKING:
    from ..language import Pointer, Value


def gathered(vectors: Sequence[Value]) -> Value:
    """The sum of each vector's lanes: as many vectors as lanes, lane i of vector i."""
    lanes = vectors[0].count
    level, block = list(vectors), lanes  # lanes that hold one sum's parts
    while len(level) > 1:
        half = block // 2
        starts = range(0, lanes, block)
        low = [s + i for s in starts for i in range(half)]
        high = [s + half + i for s in starts for i in range(half)]
        level = [kl.shuffle(a, b, low + [lanes + i for i in low]) + kl.shuffle(a, b, high + [lanes + i for i in high])
                 for a, b in zip(level[::2], level[1::2])]  # fmt: skip
        block = half
    return level[0]


@kl.family
def gemv(work, x: ptr[f32], weights: ptr[kl.u8], out: ptr[f32], depth: i64, features: i64, x_pitch: i64, out_pitch: i64,
         *more: i64, dtype: Any, epilogue: Epilogue):  # fmt: skip
    """out[m, f] = epilogue(sum_k x[m, k] weights[f, k]). weights: of `dtype`, float32 or narrower, [features, depth].

    Items: rows by groups of as many channels as a vector of float32 has lanes, groups first.
    """
    lanes = work.lanes(f32)
    masked = work.target.vector_bytes == 64
    target = out.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    filters = weights.cast(dtype, dtype.size)
    finish = epilogue.bind(more)
    groups = (features + (lanes - 1)) // lanes
    for item in work.items():
        row = item // groups
        column = item % groups * lanes
        p = x + row * x_pitch
        rows = _rows(filters, column, features, depth, lanes)
        sums = kl.registers(f32, lanes, lanes)
        for i in range(lanes):
            sums[i] = 0.0
        at = kl.value(0)
        for k in range(0, depth - (lanes - 1), lanes):
            v = p.load(k, lanes)
            for i in range(lanes):
                sums[i] = kl.fma(v, rows[i].load(k, lanes).to(f32), sums[i])
            at = k + lanes
        if masked:
            if at < depth:
                rest = kl.first(depth - at, lanes)
                v = p.load(at, lanes, mask=rest)
                for i in range(lanes):
                    sums[i] = kl.fma(v, rows[i].load(at, lanes, mask=rest).to(f32), sums[i])
        else:
            for k in range(at, depth):
                for i in range(lanes):
                    one = kl.insert(kl.zeros(f32, lanes), 0, rows[i][k].to(f32))
                    sums[i] = kl.fma(one, p[k], sums[i])
        _write(target + row * out_pitch, gathered([sums[i] for i in range(lanes)]), finish, row, column,
               features - column, lanes, masked)  # fmt: skip


def _rows(filters: Pointer, column: Value, features: Value, depth: Value, lanes: int) -> list[Pointer]:
    """The filter's rows from `column` on; the last again where there are no more."""
    found = [filters + column * depth]
    for i in range(1, lanes):
        found.append(found[-1] + kl.select(column + i < features, depth, 0))
    return found


def _write(out: Pointer, sums: Value, finish: Any, row: Value, column: Value, rest: Value, lanes: int,
           masked: bool) -> None:  # fmt: skip
    if masked:
        mask = kl.first(rest, lanes)
        out.store(finish(sums, row, column, lanes, mask), column, mask)
    elif rest >= lanes:
        out.store(finish(sums, row, column, lanes), column)
    else:
        kept = kl.stack(f32, lanes)
        kept.store(sums)
        for c in range(rest):
            out[column + c] = finish(kept[c], row, column + c, 0)
