"""Register tiles of int8 products and of depthwise convolutions, and the layout of their packed filters.

Lives here: `RegisterTile`, `tile_of` by target, `PanelsInt8`, `parts_of`; `DepthwiseTile`, `depthwise_tiles_of`,
`depthwise_tile_of`, `pack_depthwise`, `fill_initial_sums`, `depthwise_parts_of`, `depthwise_columns_of`.
Not here: packing into panels (weight_packing_int8.py), the micro-kernels (gemm_int8.py, gemm_int16.py, gemm_neon.py,
depthwise_int8.py), selectors (depthwise.py), epilogues (epilogue.py).

Depthwise: one instruction multiplies a group of image rows by as many weights of each channel: four bytes (`kl.dot4`),
or on targets without it two numbers of int16 (`kl.pair_dot`, see gemm_int16.py) or one (64-bit ARM). A vector of bytes
has four times the lanes of a vector of sums, and a table lookup or a pack of part of a vector takes as long as of all
of it. So the epilogue is applied to several rows and columns at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.dtypes import DType, uint8
from ..loops.buffers import Buffer, Window
from ..target import Target
from .epilogue import TABLE, Epilogue
from .gemm_int8 import amx_shape
from .gemm_int16 import widens
from .gemm_neon import LANES, padded_quads, shape_for, steps_for


class RegisterTile(NamedTuple):
    """The tile that a micro-kernel computes: rows, at most, and vectors of a row; lanes: channels in a vector.

    depth: steps at a time of AMX (gemm_int8.py), otherwise 0. widened: whether rows of bytes are widened
    (gemm_int16.py). flipped: whether rows are copied as unsigned bytes (gemm_int8.py). bounded: steps whose sums int16
    holds (gemm_int16.py), or 0. grouped: contiguous steps of a panel on 64-bit ARM (gemm_neon.py), or 0; padded:
    whether runs have `padded_quads` of them. halved: whether a byte of a panel holds two weights of int4
    (gemm_int4.py).
    """

    rows: int
    vectors: int
    lanes: int
    depth: int = 0
    widened: bool = False
    flipped: bool = False
    bounded: int = 0
    grouped: int = 0
    padded: bool = False
    halved: bool = False

    @property
    def width(self) -> int:
        """Channels in a panel."""
        return self.vectors * self.lanes

    @property
    def reads_abreast(self) -> bool:
        """Whether several panels are read side by side for one row: x86 without AMX, but not sums of int16."""
        return not (self.depth or self.grouped or self.bounded)

    def offset(self, zero: int, dtype: DType) -> int:
        """Return the excess of rows' bytes as they are multiplied. zero: their zero point."""
        if self.depth or self.widened:
            return zero
        if self.grouped:
            return zero - (128 if dtype is uint8 else 0)
        return zero + (0 if dtype is uint8 else 128)


def vector_tile(target: Target, features: int, bounded: int = 0) -> RegisterTile:
    """Return the tile of vector instructions of x86 for a number of output channels.

    It takes all registers except for the filter, the bytes of one row and their signs. bounded: see `RegisterTile`. If
    registers are few and channels more than a panel, rows are copied with their signs flipped: that saves the
    instruction and the register for signs. Sums of 16 bits take a register before they are added. If few registers
    remain, LLVM keeps sums in memory; and sums of integers have no latency to hide, so that a row less costs little.
    16 registers hold five widened rows: int8 networks take 2 % less time on Zen 3 than by four.
    """
    lanes = target.vector_bytes // 4
    vectors = 1 if features <= lanes else 2
    widened = widens(target) and not bounded
    flipped = bool(target.vnni_lanes) and target.registers < 32 and features > vectors * lanes
    spare = bounded or (widened and target.registers == 32)
    others = 8 if spare else 4 if flipped or target.registers == 32 else 6
    rows = (target.registers - others) // vectors
    return RegisterTile(rows, vectors, lanes, widened=widened, flipped=flipped, bounded=bounded)


def neon_tile(target: Target, features: int) -> RegisterTile | None:
    """Return the tile of 64-bit ARM for a number of output channels; None on other targets."""
    steps = steps_for(target)
    return RegisterTile(*shape_for(steps, features), LANES, grouped=steps) if steps else None


def amx_tile(target: Target, rows: int, features: int, quads: int, products: int) -> RegisterTile | None:
    """Return the tile of AMX for rows at one pitch, channels, steps per run and products in all.

    None without AMX, and if vectors are as fast.
    """
    shape = amx_shape(target, rows, features, quads, products)
    return None if shape is None else RegisterTile(*shape)


def tile_of(target: Target, rows: int, features: int, quads: int, products: int) -> RegisterTile | None:
    """Return the tile of AMX or 64-bit ARM; None if neither applies."""
    return amx_tile(target, rows, features, quads, products) or neon_tile(target, features)


def parts_of(dtype: DType, zero: int) -> int:
    """Return the number of 8-bit parts of weights less their zero point: up to 255 they are two of 127 and one."""
    return 1 if dtype is not uint8 and zero == 0 else 3 if zero == int(dtype.min) else 2


class PanelsInt8(NamedTuple):
    """The layout of a filter [features, lines, run] in panels. parts: of eight bits, whose sum is a weight.

    joined: whether the lines of an input row are contiguous, as those of copied windows are.
    """

    features: int
    lines: int
    run: int
    tile: RegisterTile
    parts: int = 1
    joined: bool = False

    @property
    def quads(self) -> int:
        """Steps of the micro-kernel for a line."""
        quads = -(-self.run // 4)
        return padded_quads(self.tile.grouped, quads) if self.tile.padded else quads

    @property
    def steps(self) -> int:
        """Steps of the micro-kernel in all."""
        return self.parts * self.lines * self.quads

    @property
    def number(self) -> int:
        """Number of panels."""
        return -(-self.features // self.tile.width)

    @property
    def narrow(self) -> int:
        """Vectors of the last panel if it has fewer than others, otherwise 0."""
        vectors = -(-(self.features % self.tile.width) // self.tile.lanes)
        return vectors if vectors < self.tile.vectors else 0

    @property
    def last(self) -> int:
        """Channels of the last panel."""
        return (self.narrow or self.tile.vectors) * self.tile.lanes

    @property
    def columns(self) -> int:
        """Channels of all panels."""
        return (self.number - 1) * self.tile.width + self.last if self.number else 0

    @property
    def size(self) -> int:
        """Words of 4 bytes of the packed filter."""
        return self.columns * (self.steps + 1)


FOURS, PAIRS, ONES = 4, 2, 1
"""Rows of a group: of bytes, of int16, and of single products of int16."""
HIGH = 24
"""Rows of outputs from which a few redundant ones are negligible."""


class DepthwiseTile(NamedTuple):
    """Outputs that are computed together. rows: of outputs, in teams that use the same groups of image rows; parts: of
    8 bits whose sum is a weight; lanes: channels; deep: rows of a group, FOURS, PAIRS, ONES."""

    size: tuple[int, int]
    strides: tuple[int, int]
    rows: int
    team: int
    parts: int
    lanes: int
    deep: int = FOURS

    @property
    def groups(self) -> int:
        """Groups of rows that a team uses; the first begins with the window of the first row."""
        return -(-((self.team - 1) * self.strides[0] + self.size[0]) // self.deep)

    @property
    def seen(self) -> list[tuple[int, int, int]]:
        """Tuples (row of a team, group that it uses, part of the weights), in the order of the packed filter."""
        return [
            (r, g, part)
            for r in range(self.team)
            for g in range(self.groups)
            for part in range(self.parts)
            if self.deep * g < r * self.strides[0] + self.size[0] and self.deep * g + self.deep > r * self.strides[0]
        ]

    @property
    def packed(self) -> tuple[int, ...]:
        """Shape of the packed filter of these channels: [seen, KW, lanes, deep] of int8 or int16."""
        return len(self.seen), self.size[1], self.lanes, self.deep

    def registers(self, lanes: int) -> int:
        """Return the registers of sums and pixels, and two, or five of half the lanes. lanes: of a vector."""
        vectors = self.rows * -(-self.size[1] // self.strides[1]) + self.rows // self.team * self.groups + 2
        wide = -(-self.lanes // lanes)
        return vectors * wide + wide - 1


def deep_on(target: Target) -> int:
    """Return the rows of a group on a target."""
    if target.is_aarch64 and not target.has("dotprod"):
        return ONES
    return PAIRS if widens(target) else FOURS


def lane_bytes(target: Target) -> int:
    """Return the bytes of a vector per channel: 64-bit ARM narrows at least two vectors of sums into one."""
    return 2 if target.is_aarch64 else 4


def depthwise_tiles_of(
    target: Target, window: Window, out_height: int, parts: int, lanes: int
) -> tuple[DepthwiseTile, ...]:
    """Return the tiles for a window and an output height: of one team, and of two if registers suffice."""
    size, strides, deep = window.size, window.strides, deep_on(target)
    dense = window.dilations[0] == 1
    team = _team(size[0], strides[0], deep) if dense and out_height > 1 else 1
    one = DepthwiseTile(size, strides, team, team, parts, lanes, deep)
    two = one._replace(rows=2 * team)
    fits_registers = two.registers(target.vector_bytes // 4) <= target.registers
    fits = dense and strides[0] <= size[0] and fits_registers and out_height >= two.rows
    return (one, two) if fits else (one,)


def depthwise_tile_of(tiles: Sequence[DepthwiseTile], out_height: int) -> DepthwiseTile:
    """Return the default tile."""
    return tiles[-1] if _two_teams(out_height, tiles[0].team) else tiles[0]


def _team(high: int, stride: int, deep: int) -> int:
    """Return the rows of outputs that use the same groups: two if the second needs no further group."""
    return 2 if deep == ONES or high + stride <= deep * -(-high // deep) else 1


def _two_teams(out_height: int, team: int) -> bool:
    """Return whether two teams at a time are faster than one.

    Their common work is done less often, but the last rows of an image may be computed twice.
    """
    both, one = (n * -(-out_height // n) for n in (2 * team, team))
    return out_height >= 2 * team and (both <= one or out_height >= HIGH)


def depthwise_parts_of(filter: Buffer, zero: int, deep: int) -> int:
    """Return the number of parts of -128 to 127 whose sum is a weight less its zero point; int16 needs one."""
    if deep != FOURS:
        return 1
    low, high = (int(v) - zero for v in filter.dtype.limits)
    return 1 if low >= -128 and high <= 127 else 2 if low >= -255 and high <= 254 else 3


def fill_initial_sums(
    out: np.ndarray, filter: np.ndarray, filter_zero: int, bias: np.ndarray | None, zero: int
) -> None:
    """Write the initial sums; for rounded floats, with zero -1 and no bias, the sums of the filter."""
    weights = filter.astype(np.int32) - np.int32(filter_zero)
    np.multiply(weights.sum((0, 1), dtype=np.int32), np.int32(-zero), out=out)
    if bias is not None:
        out += bias


def pack_depthwise(out: np.ndarray, filter: np.ndarray, zero: int, tile: DepthwiseTile) -> None:
    """Pack a filter [KH, KW, C] less its zero point into out: [blocks, *tile.packed], initially zeros."""
    kh, _, channels = filter.shape
    weights = filter.astype(np.int16) - np.int16(zero)
    low = weights.clip(-128, 127) if tile.parts > 1 else weights
    parts = (low, weights - low)
    for block, packed in enumerate(out):
        c = min(block * tile.lanes, channels - tile.lanes)
        for index, (r, g, part) in enumerate(tile.seen):
            for i in range(tile.deep):
                ky = tile.deep * g + i - r * tile.strides[0]
                if 0 <= ky < kh:
                    packed[index, :, :, i] = parts[part][ky, :, c : c + tile.lanes]


def depthwise_columns_of(target: Target, tile: DepthwiseTile, out: Buffer, out_width: int, epilogue: Epilogue) -> int:
    """Return the columns of outputs whose elements fill a vector, or 0 to apply the epilogue to each row separately.

    It is 0 for several columns without a lookup, and on 64-bit ARM, whose vectors are short.
    """
    columns = target.vector_bytes // (tile.rows * tile.lanes * out.dtype.size)
    looks = any(kind == TABLE for kind, _ in epilogue.kinds)
    return columns if target.is_x86 and (columns == 1 or (looks and 1 < columns <= out_width)) else 0
