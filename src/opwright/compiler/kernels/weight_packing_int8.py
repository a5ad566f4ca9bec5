"""Filters packed in panels for the micro-kernels of integers.

Lives here: the family `pack_int8`; packing at once and as a step, for int8 and int16 rows and for block scales.
Not here: the layout (register_tiles.py), the micro-kernels (gemm_int8.py).

Four bytes of a row are multiplied by four bytes of each channel in one instruction (`kl.dot4`), one side of which is
unsigned. So the bytes of a row are read as x + 128 (a flipped sign bit), and the initial sums compensate:

    s = sum_k (x_k + 128) w_k + (bias - (128 + input_zero) sum_k w_k)

which is exact in int32. AMX (gemm_int8.py), widened rows (gemm_int16.py) and 64-bit ARM (gemm_neon.py) multiply bytes
of either sign: for them the initial sums compensate input_zero alone.

A filter is [features, lines, run]: `lines` runs of contiguous bytes. A panel of channels consists of int32 initial sums
and, for each line and each four bytes of its run, the four bytes of the channels. Zero weights pad the end of a run, so
that the bytes of a row there do not contribute.

Weights less their zero point may need nine bits. They are split in parts of eight, whose lines follow one another, and
the rows are read once for each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, int4
from .. import language as kl
from ..language import i8, i32, i64, ptr, u8
from ..language.compilation import FamilyCode
from ..loops.buffers import Buffer
from ..native import executor
from .gemm_int4 import halved_bytes
from .gemm_int16 import order_steps
from .gemm_neon import order_groups, padded_quads
from .register_tiles import PanelsInt8

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address


@kl.family(addressed=True)
def pack_int8(
    work: Work,
    source: ptr[u8],
    bias: ptr[i32],
    packed: ptr[i32],
    features: i64,
    lines: i64,
    run: i64,
    pitch: i64,
    step: i64,
    zero: i64,
    offset: i32,
    source_batch: i64,
    packed_batch: i64,
    *,
    dtype: Any,
    vectors: int,
    narrow: int,
    biased: bool,
    parts: int,
    ordered: bool,
    grouped: int,
    joined: bool,
    padded: bool,
) -> None:
    """Pack filters of 8 bits, or of int4 in a byte each, in panels: channels are `pitch` apart, bytes of runs `step`.

    zero: of the weights. offset: the excess of rows' bytes as the micro-kernel reads them. Items: batches, source_batch
    and packed_batch apart, by panels. Without a bias, sums start at 0. ordered: whether steps are reordered for
    gemm_int16.py; grouped: steps that are reordered together for gemm_neon.py; joined: see `PanelsInt8`; padded: see
    `RegisterTile`.
    """
    lanes = work.lanes(i32)
    width = vectors * lanes
    number = (features + (width - 1)) // width
    own = (run + 3) // 4
    quads = padded_quads(grouped, own) if padded else own
    steps = parts * lines * quads
    is_big = work.target.is_big_endian
    pieces, length = (parts, lines * quads) if joined else (parts * lines, quads)
    for item in work.items():
        batch, first = item // number, item % number * width
        filters = source.cast(u8 if dtype is u8 else i8) + (batch * source_batch + first * pitch)
        out = packed + (batch * packed_batch + first * (steps + 1))
        count = kl.minimum(features - first, width)
        wide = kl.value(width)
        if narrow:
            wide = kl.select(count <= narrow * lanes, narrow * lanes, wide)
        target = out + wide
        for part in range(parts):
            for line in range(lines):
                p = filters + line * run * step
                if (step == 1) & (parts == 1):
                    _pack_words(p, target, count, wide, run, pitch, dtype is int4)
                    if run % 4 != 0:
                        tail = run // 4 * 4
                        last = target + tail // 4 * wide
                        _pack_bytes(
                            p + tail, last, count, wide, pitch, step, zero, run % 4, part, dtype is int4, is_big
                        )
                elif (pitch == 1) & (lanes == 16):
                    for k in range(0, run, 4):
                        n, row = kl.minimum(run - k, 4), target + k // 4 * wide
                        _pack_across(p + k * step, row, count, wide, step, zero, n, part, lanes, is_big)
                else:
                    for k in range(0, run, 4):
                        n, row = kl.minimum(run - k, 4), target + k // 4 * wide
                        _pack_bytes(p + k * step, row, count, wide, pitch, step, zero, n, part, dtype is int4, is_big)
                if padded:
                    for k in range(own * wide, quads * wide):
                        target[k] = 0
                target = target + quads * wide
        for v in range(0, wide, lanes):
            total = kl.zeros(i32, lanes)
            for k in range(1, steps + 1):
                total = kl.dot4(total, kl.full(u8, 4 * lanes, 1), kl.bitcast(out.load(k * wide + v, lanes), i8))
            out.store(total * -offset, v)
        if biased:
            for c in range(count):
                out[c] = out[c] + bias[first + c]
        if (ordered or grouped > 1) and narrow:
            if count <= narrow * lanes:
                _order(out + wide, pieces, length, narrow, lanes, grouped)
            else:
                _order(out + wide, pieces, length, vectors, lanes, grouped)
        elif ordered or grouped > 1:
            _order(out + wide, pieces, length, vectors, lanes, grouped)


def _order(q: Pointer, lines: Any, quads: Any, vectors: int, lanes: int, grouped: int) -> None:
    """Reorder the steps of a panel, line by line."""
    for line in range(lines):
        steps = q + line * (quads * vectors * lanes)
        if grouped:
            order_groups(steps, quads, vectors, lanes, grouped)
        else:
            order_steps(steps, quads, vectors, lanes)


def _pack_words(
    rows: Pointer, out: Pointer, count: Value, wide: Value, run: Value, pitch: Value, nibbles: bool
) -> None:
    """Copy groups of four contiguous bytes. nibbles: each byte is an int4 in its lower half."""
    for k in range(run // 4):
        p = rows + k * 4
        for c in range(count):
            x = p.cast(i32)[0]
            if nibbles:  # in each byte x ^ 8 - 8, kept above 0 so that none borrows from the next
                x = (((x & 0x0F0F0F0F) ^ -0x77777778) - 0x08080808) ^ -0x7F7F7F80
            out[k * wide + c] = x
            p = p + pitch
        for c in range(count, wide):
            out[k * wide + c] = 0


def _pack_bytes(
    rows: Pointer,
    out: Pointer,
    count: Value,
    wide: Value,
    pitch: Value,
    step: Value,
    zero: Value,
    n: Any,
    part: int,
    nibbles: bool,
    is_big: bool,
) -> None:
    """Pack the next n bytes of each channel, up to four."""
    for c in range(count):
        packed = kl.value(0, i32)
        for j in range(n):
            x = (rows + (c * pitch + j * step))[0].to(i32)
            if nibbles:
                x = (x << 28) >> 28
            x = x - zero.to(i32)
            for _ in range(part):
                x = x - kl.clamp(x, -128, 127)
            packed = packed | ((kl.clamp(x, -128, 127) & 255) << _bits_below(kl.value(j), is_big))
        out[c] = packed
    for c in range(count, wide):
        out[c] = 0


def _bits_below(place: Value, is_big: bool) -> Value:
    """Return the position in an int32 of the lowest bit of its byte at a place in memory."""
    return ((3 - place if is_big else place) * 8).to(i32)


def _pack_across(
    rows: Pointer,
    out: Pointer,
    count: Value,
    wide: Value,
    step: Value,
    zero: Value,
    n: Any,
    part: int,
    lanes: int,
    is_big: bool,
) -> None:
    """Pack the next n bytes of contiguous channels of int8 or uint8, a vector of channels at a time."""
    for v in range(0, wide, lanes):
        mask = kl.first(count - v, lanes)
        packed = kl.zeros(i32, lanes)
        for j in range(n):
            x = (rows + j * step).load(v, lanes, mask).to(i32) - zero.to(i32)
            for _ in range(part):
                x = x - kl.clamp(x, -128, 127)
            shift = _bits_below(kl.value(j), is_big).splat(lanes)
            packed = packed | ((kl.clamp(x, -128, 127) & 255) << shift)
        out.store(kl.select(mask, packed, 0), v)


def pack_code(panels: PanelsInt8, dtype: DType, biased: bool = False) -> FamilyCode:
    """Return the kernel that packs filters of this dtype."""
    return pack_int8.code(
        dtype=dtype,
        vectors=panels.tile.vectors,
        narrow=panels.narrow,
        biased=biased,
        parts=panels.parts,
        ordered=panels.tile.widened,
        grouped=panels.tile.grouped,
        joined=panels.joined,
        padded=panels.tile.padded,
    )


def packed_filter(
    build: Builder, panels: PanelsInt8, filters: Buffer, first: int, zero: int, offset: int, bias: Buffer | None
) -> Address:
    """Return the address of the packed channels of a filter from `first` on; add a step if it is not a constant.

    filters: [all features, ...]; bias: a constant of as many numbers, the initial sums; zero, offset: see `pack_int8`.
    """
    last = first + panels.features
    depth = panels.lines * panels.run
    sizes = [panels.features, panels.lines, panels.run, depth, 1, zero, offset, 0, 0]
    if filters.constant is not None:
        initial = None if bias is None or bias.constant is None else bias.constant.reshape(-1)[first:last]
        rows = filters.constant[first:last]
        code = pack_code(panels, filters.dtype, initial is not None)

        def fill(out: np.ndarray) -> None:
            start = 0 if initial is None else np.ascontiguousarray(initial, np.int32)
            executor.call(
                code.address, pack_int8.words([np.ascontiguousarray(rows), start, out, *sizes]), 0, panels.number
            )

        key = ("panels of int8", rows, initial, panels, zero, offset)
        return build.packed((panels.size,), np.int32, fill, key, functools.partial(initial_sums, panels))
    packed = build.temporary(panels.size * 4)
    source = build.pointer(filters, first * depth)
    start = 0 if bias is None else build.pointer(bias, first)
    build.step(pack_code(panels, filters.dtype, bias is not None), [source, start, packed, *sizes], panels.number)
    return packed


# ---- constants by NumPy ----------------------------------------------------------------------------------------------


def _panels_in(panels: PanelsInt8, out: np.ndarray, rows: int) -> list[tuple[np.ndarray, slice]]:
    """Return a view of each panel [rows, channels] of a packed filter, and its slice of the filter's channels."""
    views = []
    for i in range(panels.number):
        first = i * panels.tile.width
        width = panels.last if i == panels.number - 1 else panels.tile.width
        channels = slice(first, min(first + panels.tile.width, panels.features))
        views.append((out[first * rows :][: rows * width].reshape(rows, width), channels))
    return views


def initial_sums(panels: PanelsInt8, out: np.ndarray) -> list[np.ndarray]:
    """Return views of the initial sums of filters packed by `pack_int8`, one after the other: the rest is bytes."""
    filters = out.reshape(-1, panels.size)
    return [view[0] for one in filters for view, _ in _panels_in(panels, one, panels.steps + 1)]


def _no_numbers(out: np.ndarray) -> Sequence[np.ndarray]:
    """Return views of the numbers of an array that consists of bytes."""
    return ()


def packed_pairs(build: Builder, panels: PanelsInt8, filters: Buffer, first: int) -> Address:
    """Return the address of the channels of a constant filter from `first` on, packed as pairs of int8 for int16."""
    assert filters.constant is not None
    weights = filters.constant[first : first + panels.features]

    def fill(out: np.ndarray) -> None:
        pairs = np.zeros((panels.features, panels.lines, panels.quads * 2), np.int8)
        pairs[..., : panels.run // 2] = weights.reshape(panels.features, panels.lines, -1).astype(np.int8)
        rows = pairs.reshape(panels.features, -1).view(np.int16)
        for panel, channels in _panels_in(panels, out, panels.steps):
            panel[:, : channels.stop - channels.start] = rows[channels].T

    return build.packed((panels.size,), np.int16, fill, ("panels of pairs", weights, panels), _no_numbers)


def packed_blocks(build: Builder, panels: PanelsInt8, filters: np.ndarray, scales: np.ndarray) -> Address:
    """Return the address of constant filters [features, channels] with scales [features, blocks], packed.

    A panel has, for each block, the initial sums, the scales, and the bytes of the channels, four k at a time, ordered
    if rows are widened (gemm_int16.py).
    """
    number = panels.lines
    height = panels.quads + 2

    def fill(out: np.ndarray) -> None:
        rows = np.ascontiguousarray(filters.reshape(panels.features, -1).astype(np.int8))
        initial = -128 * rows.reshape(panels.features, number, -1).sum(-1, dtype=np.int32)
        fours = rows.view(np.int32).reshape(panels.features, number, -1)
        factors = np.ascontiguousarray(scales, np.float32).view(np.int32)
        for view, channels in _panels_in(panels, out, number * height):
            width, count = view.shape[1], channels.stop - channels.start
            panel = view.reshape(number, height, width)
            panel[:, 0, :count], panel[:, 1, :count] = initial[channels].T, factors[channels].T
            panel[:, 2:, :count] = fours[channels].transpose(1, 2, 0)
            if panels.tile.widened:  # as `order_steps` does
                pairs = panel[:, 2:].reshape(-1, width).view(np.int16).reshape(-1, width, 2)
                panel[:, 2:] = pairs.transpose(0, 2, 1).copy().view(np.int32).reshape(number, panels.quads, width)

    def numbers(out: np.ndarray) -> list[np.ndarray]:
        views = _panels_in(panels, out, number * height)
        return [view.reshape(number, height, -1)[:, :2] for view, _ in views]

    key = ("blocks", filters, scales, panels)
    return build.packed((number * height * panels.columns,), np.int32, fill, key, numbers)


def are_halved(dtype: DType, block: int, scales: np.ndarray) -> bool:
    """Return whether panels of weights with scales by block are halved: of int4, with scales that float16 holds."""
    return dtype is int4 and block % 8 == 0 and bool((scales.astype(np.float16).astype(np.float32) == scales).all())


def packed_halves(build: Builder, panels: PanelsInt8, filters: np.ndarray, scales: np.ndarray) -> Address:
    """Return the address of constant int4 filters [features, channels] with scales [features, blocks] in halved panels
    (gemm_int4.py)."""
    number, block, size = panels.lines, panels.run, halved_bytes(panels.lines, panels.quads)

    def views(out: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sums, scales and bytes of the panel that begins with a channel."""
        width = panels.tile.width
        if first + width >= panels.features:
            width = panels.last
        panel = out[first * size :][: width * size]
        blocks = panel[4 * width :].reshape(number, -1)
        pairs = blocks[:, 2 * width :].reshape(number, -1, width, 4)
        return panel[: 4 * width].view(np.float32), blocks[:, : 2 * width].view(np.float16), pairs

    starts = range(0, panels.features, panels.tile.width)

    def fill(out: np.ndarray) -> None:
        for first in starts:
            rows = filters.reshape(panels.features, -1)[first : first + panels.tile.width].astype(np.int8)
            count = len(rows)
            w = rows.reshape(count, number, block)
            factors = scales[first : first + count]
            sums, scales_of_blocks, pairs = views(out, first)
            sums[:count] = (w.sum(-1, dtype=np.int32) * factors.astype(np.float64)).sum(-1)
            scales_of_blocks[:, :count] = factors.T
            steps = (w + 8).view(np.uint32).reshape(count, number, -1, 2)  # four weights at a time
            words = steps[..., 0] | steps[..., 1] << 4
            pairs.view(np.uint32)[:, :, :count, 0] = words.transpose(1, 2, 0)

    def numbers(out: np.ndarray) -> list[np.ndarray]:
        return [view for first in starts for view in views(out, first)[:2]]

    key = ("halved blocks", filters, scales, panels)
    return build.packed((panels.columns * size,), np.uint8, fill, key, numbers)
