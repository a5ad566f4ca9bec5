"""Tiles of integer depthwise convolutions: outputs computed together, and packed filters.

Lives here: `Tile`, `tiles_of`, `tile_of`, `pack`, `starts_of`, `parts_of`, `columns_of`.
Not here: the kernel and its selector (depthwise_int8.py), epilogues (epilogue.py).

One instruction multiplies a group of the image's rows by as many weights of each channel: four bytes (`kl.dot4`), or on
targets without such an instruction two numbers of int16 (`kl.pair_dot`, see gemm_int16.py) or one (64-bit ARM).

A vector of bytes has four times the lanes of a vector of sums, and a table lookup or a pack of part of a vector takes
as long as of all of it. So the sums of several rows and columns are finished together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..loops.buffers import Buffer, Window
from ..target import Target
from .epilogue import TABLE, Epilogue
from .gemm_int16 import widens

if TYPE_CHECKING:
    from ..loops.buffers import Buffer

FOURS, PAIRS, ONES = 4, 2, 1
"""Rows of a group: of bytes, of int16, and where products of int16 are added one by one."""
HIGH = 24
"""Rows of outputs beside which a few done twice do not matter."""


class Tile(NamedTuple):
    """What is done at a time, known to the code. rows: of outputs, in teams that see the same groups of rows of the
    image; parts: of 8 bits that a weight is the sum of; lanes: channels; deep: rows of a group, FOURS, PAIRS,
    ONES."""

    size: tuple[int, int]
    strides: tuple[int, int]
    rows: int
    team: int
    parts: int
    lanes: int
    deep: int = FOURS

    @property
    def groups(self) -> int:
        """Groups of rows that a team sees; the first starts where the first row's window does."""
        return -(-((self.team - 1) * self.strides[0] + self.size[0]) // self.deep)

    @property
    def seen(self) -> list[tuple[int, int, int]]:
        """(row of a team, group that it sees, part of the weights), in the order of the packed filter."""
        return [
            (r, g, part)
            for r in range(self.team)
            for g in range(self.groups)
            for part in range(self.parts)
            if self.deep * g < r * self.strides[0] + self.size[0] and self.deep * g + self.deep > r * self.strides[0]
        ]

    @property
    def packed(self) -> tuple[int, ...]:
        """The packed filter of these channels: [seen, KW, lanes, deep] of int8, or int16."""
        return len(self.seen), self.size[1], self.lanes, self.deep

    def registers(self, lanes: int) -> int:
        """Vectors that are held at a time: sums, pixels, and two, or five of half the lanes. lanes: of a vector."""
        held = self.rows * -(-self.size[1] // self.strides[1]) + self.rows // self.team * self.groups + 2
        wide = -(-self.lanes // lanes)
        return held * wide + wide - 1


def deep_on(target: Target) -> int:
    """Rows of a group on a target."""
    if target.is_aarch64 and not target.has("dotprod"):
        return ONES
    return PAIRS if widens(target) else FOURS


def lane_bytes(target: Target) -> int:
    """Bytes of a vector for each channel: instructions of 64-bit ARM narrow two vectors of sums into one at least."""
    return 2 if target.is_aarch64 else 4


def tiles_of(target: Target, window: Window, out_height: int, parts: int, lanes: int) -> tuple[Tile, ...]:
    """The tiles for a window and an output of so many rows: of one team, and of two where registers hold them."""
    size, strides, deep = window.size, window.strides, deep_on(target)
    together = window.dilations[0] == 1
    team = _team(size[0], strides[0], deep) if together and out_height > 1 else 1
    one = Tile(size, strides, team, team, parts, lanes, deep)
    two = one._replace(rows=2 * team)
    held = two.registers(target.vector_bytes // 4) <= target.registers
    fits = together and strides[0] <= size[0] and held and out_height >= two.rows
    return (one, two) if fits else (one,)


def tile_of(tiles: Sequence[Tile], out_height: int) -> Tile:
    """The tile that is taken by default."""
    return tiles[-1] if _two_teams(out_height, tiles[0].team) else tiles[0]


def _team(high: int, stride: int, deep: int) -> int:
    """How many rows of outputs see the same groups: two, where the second needs no more of them or a row is one."""
    return 2 if deep == ONES or high + stride <= deep * -(-high // deep) else 1


def _two_teams(out_height: int, team: int) -> bool:
    """Whether two teams at a time are better than one: what all rows share is done less often, but the last rows of
    an image may be done twice."""
    both, one = (n * -(-out_height // n) for n in (2 * team, team))
    return out_height >= 2 * team and (both <= one or out_height >= HIGH)


def parts_of(filter: Buffer, zero: int, deep: int) -> int:
    """How many parts of -128 to 127 weights less their zero point are the sum of; int16 needs one."""
    if deep != FOURS:
        return 1
    low, high = (int(v) - zero for v in filter.dtype.limits)
    return 1 if low >= -128 and high <= 127 else 2 if low >= -255 and high <= 254 else 3


def starts_of(out: np.ndarray, filter: np.ndarray, filter_zero: int, bias: np.ndarray | None, zero: int) -> None:
    """Write what the sums start with; of rounded floats, with zero -1 and no bias, the sums of the filter."""
    weights = filter.astype(np.int32) - np.int32(filter_zero)
    np.multiply(weights.sum((0, 1), dtype=np.int32), np.int32(-zero), out=out)
    if bias is not None:
        out += bias


def pack(out: np.ndarray, filter: np.ndarray, zero: int, tile: Tile) -> None:
    """Write a filter [KH, KW, C] less its zero point as out: [blocks, *tile.packed], which is zeros."""
    kh, _, channels = filter.shape
    weights = filter.astype(np.int16) - np.int16(zero)
    low = weights.clip(-128, 127) if tile.parts > 1 else weights
    parts = (low, weights - low)
    for block, into in enumerate(out):
        c = min(block * tile.lanes, channels - tile.lanes)
        for place, (r, g, part) in enumerate(tile.seen):
            for i in range(tile.deep):
                ky = tile.deep * g + i - r * tile.strides[0]
                if 0 <= ky < kh:
                    into[place, :, :, i] = parts[part][ky, :, c : c + tile.lanes]


def columns_of(target: Target, tile: Tile, out: Buffer, out_width: int, epilogue: Epilogue) -> int:
    """Columns of outputs whose elements are a vector; 0 where each row is better finished alone: where that takes
    several columns and nothing is looked up, and on 64-bit ARM, whose vectors are short."""
    columns = target.vector_bytes // (tile.rows * tile.lanes * out.dtype.size)
    looks = any(kind == TABLE for kind, _ in epilogue.kinds)
    return columns if target.is_x86 and (columns == 1 or (looks and 1 < columns <= out_width)) else 0
