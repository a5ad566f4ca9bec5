"""Filters packed in panels for the micro-kernel of float32.

Lives here: the family `pack`, packing at once and as a step.  Not here: what a panel is (gemm_f32.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i64, ptr
from ..language.family import FamilyCode
from ..loops.forms import Buffer
from ..native import executor
from .gemm_f32 import Panels

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.planning import Builder


@kl.family
def pack(work, source: ptr[kl.u8], bias: ptr[f32], packed: ptr[f32], features: i64, depth: i64, pitch: i64,
         source_batch: i64, packed_batch: i64,
         *, dtype: Any, vectors: int, narrow: bool, biased: bool, along: bool):  # fmt: skip
    """Panels of filters [features, depth] of `dtype`: along their depth a filter's numbers are neighbours, channels
    are `pitch` apart; or (not along) channels are neighbours, and steps of the depth are `pitch` apart.

    Items: batches, source_batch and packed_batch apart, by panels. Without a bias sums start with 0.
    """
    lanes = work.lanes(f32)
    width = vectors * lanes
    number = (features + (width - 1)) // width
    for item in work.items():
        batch, first = item // number, item % number * width
        filters = source.cast(dtype, dtype.size) + batch * source_batch
        out = packed + (batch * packed_batch + first * (depth + 1))
        count = kl.minimum(features - first, width)
        wide = kl.value(width)
        if narrow:
            wide = kl.select(count <= lanes, lanes, wide)
        for c in range(wide):
            out[c] = 0.0
        if biased:
            for c in range(count):
                out[c] = bias[first + c]
        out = out + wide
        if along:
            _pack_along(filters + first * pitch, out, count, wide, depth, pitch, width)
        else:
            _pack_across(filters + first, out, count, wide, depth, pitch, width, lanes)


def _pack_along(rows: Pointer, out: Pointer, count: Value, wide: Value, depth: Value, pitch: Value, width: int) -> None:
    if count == width:
        for k in range(depth):
            p = rows + k
            for c in range(width):
                out[k * width + c] = p[0].to(f32)
                p = p + pitch
    else:
        for k in range(depth):
            for c in range(count):
                out[k * wide + c] = rows[c * pitch + k].to(f32)
            for c in range(count, wide):
                out[k * wide + c] = 0.0


def _pack_across(rows: Pointer, out: Pointer, count: Value, wide: Value, depth: Value, pitch: Value, width: int,
                 lanes: int) -> None:  # fmt: skip
    if count == width:
        for k in range(depth):
            for v in range(0, width, lanes):
                out.store((rows + k * pitch).load(v, lanes).to(f32), k * width + v)
    else:
        for k in range(depth):
            for c in range(count):
                out[k * wide + c] = rows[k * pitch + c].to(f32)
            for c in range(count, wide):
                out[k * wide + c] = 0.0


def pack_code(panels: Panels, dtype: DType, biased: bool = False, along: bool = True) -> FamilyCode:
    """The kernel that packs filters of this dtype."""
    return pack.code(dtype=dtype, vectors=panels.tile.vectors, narrow=panels.narrow, biased=biased, along=along)


def filling(panels: Panels, filters: np.ndarray, dtype: DType, bias: np.ndarray | None) -> Callable[[np.ndarray], None]:
    """What writes the panels of constant filters [features, ...] into memory later."""
    code = pack_code(panels, dtype, bias is not None)

    def fill(out: np.ndarray) -> None:
        rows = np.ascontiguousarray(filters)
        starts = None if bias is None else np.ascontiguousarray(bias, np.float32)
        words = pack.words([rows, 0 if starts is None else starts, out, panels.features, panels.depth, panels.depth,
                            0, 0])  # fmt: skip
        executor.call(code.address, words, 0, panels.number)

    return fill


def packed_filter(build: Builder, panels: Panels, filters: Buffer, first: int, bias: Buffer | None) -> Any:
    """The address of a filter's channels from `first` on, packed; a step does it where the filter is no constant.

    filters: [features in all, ...]; bias: a constant of as many numbers, which sums start with.
    """
    last = first + panels.features
    if filters.constant is not None:
        starts = None if bias is None or bias.constant is None else bias.constant.reshape(-1)[first:last]
        rows = filters.constant[first:last]
        key = ("panels", rows, starts, panels.tile)
        return build.packed((panels.size,), np.float32, filling(panels, rows, filters.dtype, starts), key)
    place = build.temporary(panels.size * 4)
    source = build.pointer(filters, first * panels.depth)
    start = 0 if bias is None else build.pointer(bias, first)
    build.step(pack_code(panels, filters.dtype, bias is not None),
               [source, start, place, panels.features, panels.depth, panels.depth, 0, 0], panels.number)  # fmt: skip
    return place
