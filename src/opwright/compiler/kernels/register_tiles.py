"""Register tiles of int8 products, and the layout of their packed filters.

Lives here: `RegisterTile`, `tile_of` by target, `PanelsInt8`, `parts_of`.
Not here: packing (weight_packing_int8.py), the micro-kernels (gemm_int8.py, gemm_int16.py, gemm_int8.py, gemm_neon.py).
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.dtypes import DType, uint8
from ..target import Target
from .gemm_int8 import amx_shape
from .gemm_int16 import widens
from .gemm_neon import LANES, padded_quads, shape_for, steps_for


class RegisterTile(NamedTuple):
    """The tile that a micro-kernel computes: rows, at most, and vectors of a row; lanes: channels in a vector.

    depth: steps at a time of AMX (gemm_int8.py), otherwise 0. widened: whether rows of bytes are widened
    (gemm_int16.py). flipped: whether rows are copied as unsigned bytes (gemm_int8.py). bounded: steps whose sums int16
    holds (gemm_int16.py), or 0. grouped: contiguous steps of a panel on 64-bit ARM (gemm_neon.py), or 0; padded:
    whether runs have `padded_quads` of them. halved: whether a byte of a panel holds two weights of int4
    (gemm_int16.py).
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
    instruction and the register for signs. Products of widened rows take a register before they are added. If few
    registers remain, LLVM keeps sums in memory; and sums of integers have no latency to hide, so that a row less costs
    little.
    """
    lanes = target.vector_bytes // 4
    vectors = 1 if features <= lanes else 2
    widened = widens(target) and not bounded
    flipped = bool(target.vnni_lanes) and target.registers < 32 and features > vectors * lanes
    others = 8 if widened or bounded else 4 if flipped or target.registers == 32 else 6
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
