"""Filters packed in panels for the micro-kernel of float32.

Lives here: `PanelsF32`, the layout of a packed filter; the family `pack`; packing at once and as a step.
Not here: the micro-kernel (gemm_f32.py).

Each step of a sum loads two vectors of the filter once and one number of each row. A filter is packed in panels of two
vectors of channels,

    panel[0] = initial sums (the bias), panel[1 + k] = filter[channels, k],

zero beyond the last channel. If the last panel has at most three quarters of its channels, it consists of `halves`
vectors of half as many channels each, two steps next to each other: the numbers of a row are read in pairs, and even
and odd steps are added in the end. So 24 channels take 24 / 32 of the time of 32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i64, ptr
from ..language.compilation import FamilyCode
from ..loops.buffers import Buffer
from ..native import executor
from ..target import Target
from .moves import transposed

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address


class PanelsF32(NamedTuple):
    """The layout of a filter [features, segments, run] on a target with `registers` registers of `lanes` lanes.

    by_lane: whether numbers of rows are loaded a vector at a time, for instructions that multiply by a lane.
    """

    features: int
    segments: int
    run: int
    registers: int
    lanes: int
    by_lane: bool = False

    @property
    def depth(self) -> int:
        """Steps of a sum."""
        return self.segments * self.run

    @property
    def width(self) -> int:
        """Channels of a panel."""
        return 2 * self.lanes

    @property
    def number(self) -> int:
        """Number of panels."""
        return -(-self.features // self.width)

    @property
    def halves(self) -> int:
        """Vectors of the last panel if each holds half as many channels, two steps next to each other; otherwise 0."""
        if self.lanes < 2:
            return 0
        count = -(-(self.features % self.width) // (self.lanes // 2))
        return count if count < 4 else 0

    @property
    def wide(self) -> bool:
        """Return whether some panels have two vectors."""
        return self.number > 1 or self.halves == 0

    @property
    def rows(self) -> int:
        """Rows of a tile, at most: its sums leave registers for the filter and a number or vector of each row, and of
        32 registers one more for an epilogue's constants: LLVM keeps sums in memory otherwise."""
        if self.wide and self.by_lane:
            return (self.registers - 4) // 3
        return (
            (self.registers - (6 if self.registers == 32 else 4)) // 2
            if self.wide
            else {1: self.registers - 4, 2: (self.registers - 4) // 2, 3: self.registers // 4}[self.halves]
        )

    @property
    def size(self) -> int:
        """Floats of the packed filter."""
        last = self.halves * self.lanes * (self.segments * -(-self.run // 2) + 1)
        return (self.number - (self.halves > 0)) * self.width * (self.depth + 1) + last


def panels_of(target: Target, features: int, run: int, segments: int = 1) -> PanelsF32:
    """Return the layout of a filter [features, segments, run] for a target."""
    return PanelsF32(features, segments, run, target.registers, target.vector_bytes // 4, multiplies_by_lane(target))


def multiplies_by_lane(target: Target) -> bool:
    """Return whether instructions multiply a vector by a lane of another: those of 64-bit ARM."""
    return target.is_aarch64


@kl.family(addressed=True)
def pack(
    work: Work,
    source: ptr[kl.u8],
    bias: ptr[f32],
    packed: ptr[f32],
    features: i64,
    segments: i64,
    run: i64,
    pitch: i64,
    source_batch: i64,
    packed_batch: i64,
    halves: i64,
    *,
    dtype: Any,
    biased: bool,
    along: bool,
) -> None:
    """Pack filters [features, segments, run] of `dtype` in panels.

    along: whether the numbers of a channel are contiguous and channels `pitch` apart; otherwise channels are contiguous
    and steps `pitch` apart. Items: batches, source_batch and packed_batch apart, by panels. Without a bias, sums start
    at 0. halves: see `PanelsF32`.
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
        if (halves > 0) & (count < width):
            _pack_pairs(filters, bias + first, out, count, segments, run, channel, step, halves * lanes, biased)
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
    """Pack a panel of two vectors."""
    for c in range(0, width, lanes):
        out.store(kl.zeros(f32, lanes), c)
    if biased:
        for c in range(count):
            out[c] = bias[c]
    out = out + width
    if count == width:
        done = kl.value(0)
        if not isinstance(channel, int) and filters.dtype is f32:
            done = depth // lanes * lanes
            _pack_tiles(filters, out, done, channel, width, lanes)
        for k in range(done, depth):
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


def _pack_tiles(filters: Pointer, out: Pointer, depth: Value, channel: Value, width: int, lanes: int) -> None:
    """Pack the first steps of channels that are contiguous, transposed in registers. depth: a multiple of lanes."""
    for c in kl.loop(0, width, lanes):
        rows = [filters + (c + i) * channel for i in range(lanes)]
        for k in range(0, depth, lanes):
            vectors = transposed([row.load(k, lanes) for row in rows])
            for i in range(lanes):
                out.store(vectors[i], (k + i) * width + c)


def _pack_pairs(
    filters: Pointer,
    bias: Pointer,
    out: Pointer,
    count: Value,
    segments: Value,
    run: Value,
    channel: Any,
    step: Any,
    width: Value,
    biased: bool,
) -> None:
    """Pack a last panel of pairs of steps; a zero follows the last step of an odd run."""
    for c in range(width):
        out[c] = 0.0
    if biased:
        for c in range(count):
            out[2 * c] = bias[c]
    out = out + width
    for s in range(segments):
        for k in range(0, run, 2):
            p = filters + (s * run + k) * step
            for c in range(width):
                out[c] = 0.0
            for c in range(count):
                out[2 * c] = p[c * channel].to(f32)
            if k + 1 < run:
                p = p + step
                for c in range(count):
                    out[2 * c + 1] = p[c * channel].to(f32)
            out = out + width


def pack_code(dtype: DType, biased: bool = False, along: bool = True) -> FamilyCode:
    """Return the kernel that packs filters of this dtype."""
    return pack.code(dtype=dtype, biased=biased, along=along)


def packer(
    panels: PanelsF32, filters: np.ndarray, dtype: DType, bias: np.ndarray | None
) -> Callable[[np.ndarray], None]:
    """Return a function that packs constant filters [features, ...] into an array."""
    code = pack_code(dtype, bias is not None)

    def fill(out: np.ndarray) -> None:
        rows = np.ascontiguousarray(filters)
        initial = 0 if bias is None else np.ascontiguousarray(bias, np.float32)
        sizes = [panels.features, panels.segments, panels.run, panels.depth, 0, 0, panels.halves]
        executor.call(code.address, pack.words([rows, initial, out, *sizes]), 0, panels.number)

    return fill


def packed_filter(build: Builder, panels: PanelsF32, filters: Buffer, first: int, bias: Buffer | None) -> Address:
    """Return the address of the packed channels of a filter from `first` on; add a step if it is not a constant.

    filters: [all features, ...]; bias: a constant of as many numbers, the initial sums.
    """
    last = first + panels.features
    if filters.constant is not None:
        initial = None if bias is None or bias.constant is None else bias.constant.reshape(-1)[first:last]
        rows = filters.constant[first:last]
        key = ("panels", rows, initial, panels)
        return build.packed((panels.size,), np.float32, packer(panels, rows, filters.dtype, initial), key)
    start = None if bias is None else build.pointer(bias, first)
    source = build.pointer(filters, first * panels.depth)
    return pack_computed(build, panels, source, filters.dtype, panels.depth, start)


def pack_computed(
    build: Builder, panels: PanelsF32, source: Address, dtype: DType, pitch: int, bias: Address | None = None
) -> Address:
    """Add a step that packs channels, whose numbers are contiguous, `pitch` apart; return their address."""
    packed = build.temporary(panels.size * 4)
    sizes = [panels.features, panels.segments, panels.run, pitch, 0, 0, panels.halves]
    words = [source, 0 if bias is None else bias, packed, *sizes]
    build.step(pack_code(dtype, bias is not None), words, panels.number)
    return packed
