"""SVDF time filters: shift the state by one step and sum it with weights.

Lives here: the selector of Svdf, its family.  Not here: the feature filters, a matrix product (contractions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType, float32, int16, int32
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.recurrent_ops import Svdf
from ..target import host
from . import NoKernel, selector
from .epilogue import epilogue_of
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

SUMS = {float32: float32, int16: int32}
"""Accumulator dtype by the dtype of states."""


@kl.family
def filters_over_time(
    work,
    features: ptr[u8],
    state: ptr[u8],
    time: ptr[u8],
    y: ptr[u8],
    units: i64,
    memory: i64,
    pitch: i64,
    rank: i64,
    *more: i64,
    source: DType,
    total: DType,
    lanes: int,
    epilogue: Any,
):
    """Apply the time filters. A work item is a unit of a row: `rank` filters with states of `memory` elements."""
    features, state, time = (p.cast(source, source.size) for p in (features, state, time))
    out, finish = y.cast(epilogue.expr.dtype), epilogue.bind(more)
    for item in work.items():
        row, unit = item // units, item % units
        total_sum = kl.zeros(total)
        for f in range(rank):
            past, weights = state + (item * rank + f) * memory, time + (unit * rank + f) * memory
            newest = features[item * rank + f]
            sums = kl.zeros(total, lanes)
            last = memory - 1
            for i in range(0, last, lanes):  # loads are ahead of the stores
                mask = kl.tail_mask(last - i, lanes)
                v = (past + 1).load(i, lanes, mask)
                past.store(v, i, mask)
                sums = sums + v.to(total) * weights.load(i, lanes, mask).to(total)
            past[last] = newest
            total_sum = total_sum + kl.reduce_add(sums) + newest.to(total) * weights[last].to(total)
        out[row * pitch + unit] = finish(total_sum, row, unit, 0)


@selector(Svdf)
def select_svdf(form: Svdf, build: Builder) -> None:
    """Select for float32 and int16. Vectors are no longer than a filter's state."""
    features, state, time, y = form.features, form.state, form.time, form.output
    dtype = features.dtype
    if dtype not in SUMS or state.dtype is not dtype or time.dtype is not dtype or len(y.shape) != 2 or not y.size:
        raise NoKernel(f"filters of {features!r} over {state!r} by {time!r}")
    if any(b.parent is not None for b in (features, state, time)) or len(time.shape) != 2 or not time.size:
        raise NoKernel(f"filters by {time!r}")
    (batch, units), (filters, memory) = y.shape, time.shape
    if filters % units or features.size != batch * filters or state.size != features.size * memory:
        raise NoKernel(f"filters of {features!r} over {state!r} by {time!r} to {y!r}")
    epilogue, more = epilogue_of(form.expr, form.operands, y, build)
    words = [
        build.pointer(features),
        build.pointer(state),
        build.pointer(time),
        build.pointer(y),
        units,
        memory,
        y.pitch,
        filters // units,
        *more,
    ]
    lanes = min(host().vector_bytes // SUMS[dtype].size, 1 << max(1, (memory - 2).bit_length()))
    code = filters_over_time.code(more=len(more), source=dtype, total=SUMS[dtype], lanes=lanes, epilogue=epilogue)
    items = batch * units
    build.step(code, words, items, chunk=grain(filters // units * memory * 3 * dtype.size, items))
