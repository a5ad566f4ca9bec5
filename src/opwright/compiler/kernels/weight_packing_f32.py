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
from ..language.families import FamilyCode
from ..loops.buffers import Buffer
from ..native import executor
from .gemm_f32 import Panels

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.plan_builder import Builder


@kl.family
def pack(
    work,
    source: ptr[kl.u8],
    bias: ptr[f32],
    packed: ptr[f32],
    features: i64,
    segments: i64,
    run: i64,
    pitch: i64,
    source_batch: i64,
    packed_batch: i64,
    *,
    dtype: Any,
    halves: int,
    biased: bool,
    along: bool,
):
    """Panels of filters [features, segments, run] of `dtype`: along their depth a filter's numbers are neighbours,
    channels are `pitch` apart; or (not along) channels are neighbours, and steps of the depth are `pitch` apart.

    Items: batches, source_batch and packed_batch apart, by panels. Without a bias sums start with 0.
    """
    lanes = work.lanes(f32)
    width = 2 * lanes
    depth = segments * run
    number = (features + (width - 1)) // width
    for item in work.items():
        batch, first = item // number, item % number * width
        out = packed + (batch * packed_batch + first * (depth + 1))
        count = kl.minimum(features - first, width)
        channel, step = (pitch, 1) if along else (1, pitch)
        filters = source.cast(dtype, dtype.size) + (batch * source_batch + first * channel)
        if halves:
            if count < width:
                _pack_pairs(filters, bias + first, out, count, segments, run, channel, step, halves * lanes, biased)
            else:
                _pack(filters, bias + first, out, count, depth, channel, step, width, lanes, biased)
        else:
            _pack(filters, bias + first, out, count, depth, channel, step, width, lanes, biased)


def _pack(
    filters: Pointer,
    bias: Pointer,
    out: Pointer,
    count: Value,
    depth: Value,
    channel: Any,
    step: Any,
    width: int,
    lanes: int,
    biased: bool,
) -> None:
    """A panel of two vectors."""
    for c in range(0, width, lanes):
        out.store(kl.zeros(f32, lanes), c)
    if biased:
        for c in range(count):
            out[c] = bias[c]
    out = out + width
    if count == width:
        for k in range(depth):
            p = filters + k * step
            if isinstance(channel, int):
                for c in range(0, width, lanes):
                    out.store(p.load(c, lanes).to(f32), k * width + c)
            else:
                for c in range(width):
                    out[k * width + c] = p[0].to(f32)
                    p = p + channel
    else:
        for k in range(depth):
            for c in range(0, width, lanes):
                out.store(kl.zeros(f32, lanes), k * width + c)
            for c in range(count):
                out[k * width + c] = filters[k * step + c * channel].to(f32)


def _pack_pairs(
    filters: Pointer,
    bias: Pointer,
    out: Pointer,
    count: Value,
    segments: Value,
    run: Value,
    channel: Any,
    step: Any,
    width: int,
    biased: bool,
) -> None:
    """A last panel: two steps of a channel are neighbours; beyond an odd run's last one there is a zero."""
    for c in range(width):
        out[c] = 0.0
    if biased:
        for c in range(count):
            out[2 * c] = bias[c]
    out = out + width
    for s in range(segments):
        for k in range(0, run, 2):
            p = filters + (s * run + k) * step
            for c in kl.loop(width):
                out[c] = 0.0
            for c in range(count):
                out[2 * c] = p[c * channel].to(f32)
            if k + 1 < run:
                p = p + step
                for c in range(count):
                    out[2 * c + 1] = p[c * channel].to(f32)
            out = out + width


def pack_code(panels: Panels, dtype: DType, biased: bool = False, along: bool = True) -> FamilyCode:
    """The kernel that packs filters of this dtype."""
    return pack.code(dtype=dtype, halves=panels.halves, biased=biased, along=along)


def filling(panels: Panels, filters: np.ndarray, dtype: DType, bias: np.ndarray | None) -> Callable[[np.ndarray], None]:
    """What writes the panels of constant filters [features, ...] into memory later."""
    code = pack_code(panels, dtype, bias is not None)

    def fill(out: np.ndarray) -> None:
        rows = np.ascontiguousarray(filters)
        starts = None if bias is None else np.ascontiguousarray(bias, np.float32)
        words = pack.words(
            [
                rows,
                0 if starts is None else starts,
                out,
                panels.features,
                panels.segments,
                panels.run,
                panels.depth,
                0,
                0,
            ]
        )
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
        key = ("panels", rows, starts, panels)
        return build.packed((panels.size,), np.float32, filling(panels, rows, filters.dtype, starts), key)
    place = build.temporary(panels.size * 4)
    source = build.pointer(filters, first * panels.depth)
    start = 0 if bias is None else build.pointer(bias, first)
    words = [source, start, place, panels.features, panels.segments, panels.run, panels.depth, 0, 0]
    build.step(pack_code(panels, filters.dtype, bias is not None), words, panels.number)
    return place
