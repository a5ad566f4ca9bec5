"""Tiles of integer depthwise convolutions: outputs computed together, and packed filters.

Lives here: `DepthwiseTile`, `tiles_of`, `tile_of`, `pack`, `fill_initial_sums`, `parts_of`, `columns_of`.
Not here: the kernel (depthwise_int8.py) and its selector (depthwise.py), epilogues (epilogue.py).

One instruction multiplies a group of image rows by as many weights of each channel: four bytes (`kl.dot4`), or on
targets without it two numbers of int16 (`kl.pair_dot`, see gemm_int16.py) or one (64-bit ARM).

A vector of bytes has four times the lanes of a vector of sums, and a table lookup or a pack of part of a vector takes
as long as of all of it. So the epilogue is applied to several rows and columns at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..loops.buffers import Buffer, Window
from ..target import Target
from .epilogue import TABLE, Epilogue
from .gemm_int16 import widens

FOURS, PAIRS, ONES = 4, 2, 1
"""Rows of a group: of bytes, of int16, and of single products of int16."""
HIGH = 24
"""Rows of outputs from which a few redundant ones are negligible."""


class DepthwiseTile(NamedTuple):
    """Outputs that are computed together. rows: of outputs, in teams that use the same groups of image rows; parts: of
    8
    bits whose sum is a weight; lanes: channels; deep: rows of a group, FOURS, PAIRS, ONES."""

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


def tiles_of(target: Target, window: Window, out_height: int, parts: int, lanes: int) -> tuple[DepthwiseTile, ...]:
    """Return the tiles for a window and an output height: of one team, and of two if registers suffice."""
    size, strides, deep = window.size, window.strides, deep_on(target)
    dense = window.dilations[0] == 1
    team = _team(size[0], strides[0], deep) if dense and out_height > 1 else 1
    one = DepthwiseTile(size, strides, team, team, parts, lanes, deep)
    two = one._replace(rows=2 * team)
    fits_registers = two.registers(target.vector_bytes // 4) <= target.registers
    fits = dense and strides[0] <= size[0] and fits_registers and out_height >= two.rows
    return (one, two) if fits else (one,)


def tile_of(tiles: Sequence[DepthwiseTile], out_height: int) -> DepthwiseTile:
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


def parts_of(filter: Buffer, zero: int, deep: int) -> int:
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


def pack(out: np.ndarray, filter: np.ndarray, zero: int, tile: DepthwiseTile) -> None:
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


def columns_of(target: Target, tile: DepthwiseTile, out: Buffer, out_width: int, epilogue: Epilogue) -> int:
    """Return the columns of outputs whose elements fill a vector, or 0 to apply the epilogue to each row separately.

    It is 0 for several columns without a lookup, and on 64-bit ARM, whose vectors are short.
    """
    columns = target.vector_bytes // (tile.rows * tile.lanes * out.dtype.size)
    looks = any(kind == TABLE for kind, _ in epilogue.kinds)
    return columns if target.is_x86 and (columns == 1 or (looks and 1 < columns <= out_width)) else 0
