"""The micro-kernel of int8 on 64-bit ARM, by the instructions of the processor.

Lives here: `Grouped`, `steps_for`, `padded_quads`, `shape_for`, `is_paired`, `contract_grouped`, and `order_groups` for
panels.
Not here: the families that use it (gemm_int8.py), packed filters (weight_packing_int8.py), the instructions
(../language/neon.py).

The instructions multiply signed bytes, so that the initial sums of a panel compensate zero points alone; unsigned ones
are read as x - 128. Rows are loaded sixteen bytes at a time, four steps of a panel:

    i8mm      smmla: two rows by two channels, eight bytes of each. The eight bytes of a channel are contiguous.
    dotprod   sdot: a row by four channels, four bytes of each; the four bytes of the row are a lane of the instruction.
    neither   smull, smlal2, sadalp: a row by a channel, sixteen bytes, added in pairs as int16, then as int32. The
              sixteen bytes of a channel are contiguous; its sums are four lanes, which are added in the end.

Two products of bytes are less than 2^15 unless all four factors are -128: filters without such a weight are `paired`.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i8, i32, u8
from .output_tiles import accumulators

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value
    from ..loops.buffers import Buffer
    from ..target import Target
    from .gemm_int8 import LhsInt8

LANES = 4
"""Channels in a vector."""
FLIPPED = -128
"""Bits to change in unsigned bytes, which makes them x - 128."""
TILES = {1: (20, 4), 2: (16, 4), 4: (16, 2)}
"""Registers of sums, and vectors of channels at most, by the steps of a group."""


class Grouped(NamedTuple):
    """The multiplication of the rows of a tile. steps: contiguous steps of a panel, those of a channel adjacent; dtype:
    of the rows; paired: whether int16 holds two products; padded: whether runs have `padded_quads`."""

    steps: int
    dtype: DType
    paired: bool
    padded: bool = False


def steps_for(target: Target) -> int:
    """Return the contiguous steps of a panel on a target, 0 if it is not 64-bit ARM."""
    if not target.is_aarch64:
        return 0
    return 2 if target.has("i8mm") else 1 if target.has("dotprod") else 4


def shape_for(steps: int, features: int) -> tuple[int, int]:
    """Return the rows and vectors of a tile for a number of channels. steps: see `steps_for`."""
    registers, limit = TILES[steps]
    vectors = min(limit, -(-features // LANES))
    per_row = vectors * LANES if steps == 4 else vectors  # registers of the sums of a row
    return (registers // per_row // 2 * 2 if steps == 2 else registers // per_row), vectors


Q = TypeVar("Q", int, "Value")


def padded_quads(steps: int, quads: Q) -> Q:
    """Return the number of steps for a run of `quads` if the elements behind it may be read.

    Steps over padding multiply zeros. They save instructions: smmla runs an even number, smull four instead of three.
    """
    return quads + (quads & 1) if steps == 2 else quads + (quads & 3) // 3 if steps == 4 else quads


def is_paired(filters: Buffer, parts: int) -> bool:
    """Return whether a filter has no weight of -128, two of which might overflow int16."""
    return parts == 1 and filters.constant is not None and bool((filters.constant != np.int8(-128)).all())


def order_groups(q: Pointer, quads: Any, vectors: int, lanes: int, steps: int) -> None:
    """Reorder the steps of a line, `steps` at a time, so that the bytes of a channel are contiguous.

    The last steps of a line are reordered in pairs; a single one is left as it is.
    """
    _order(q, quads // steps, vectors, lanes, steps)
    if steps == 4 and quads & 2:
        _order(q + quads // 4 * (4 * vectors * lanes), 1, vectors, lanes, 2)


def _order(q: Pointer, groups: Any, vectors: int, lanes: int, steps: int) -> None:
    for g in range(groups):
        p = q + g * (steps * vectors * lanes)
        loaded = [[p.load((j * vectors + v) * lanes, lanes) for j in range(steps)] for v in range(vectors)]
        for v in range(vectors):
            order = [j * lanes + c for c in range(lanes) for j in range(steps)]
            p.store(kl.shuffle(kl.joined(loaded[v]), None, order), v * steps * lanes)


def contract_grouped(
    rows: int, vectors: int, lanes: int, lhs: LhsInt8, grouped: Grouped, q: Pointer, biased: bool
) -> list[Value]:
    """Return the sums of each row of a tile, vectors * lanes of int32. q: the panel; biased: it has initial sums."""
    kernels: dict[int, type[_TileSums]] = {1: _DotSums, 2: _MatrixSums, 4: _PairwiseSums}
    tile = kernels[grouped.steps](rows, vectors, lanes, grouped, q if biased else None)
    q = q + vectors * lanes
    for line in range(lhs.lines):
        for segment in range(lhs.segments):
            p = lhs.p + (line * lhs.line + segment * lhs.segment)
            bases = [kl.opaque_pointer(p + r * lhs.pitch) for r in range(rows)]
            end = lhs.quads // 4 * 16
            for offset in range(0, end, 16):
                tile.add(bases, q, offset, 4)
                q = q + 4 * vectors * lanes
            if lhs.quads & 2:
                tile.add(bases, q, end, 2)
                q = q + 2 * vectors * lanes
            if lhs.quads & 1:
                tile.add(bases, q, lhs.quads * 4 - 4, 1)
                q = q + vectors * lanes
    return [kl.joined([tile.sum(r, v) for v in range(vectors)]) for r in range(rows)]


class _TileSums(abc.ABC):
    """Accumulators of a tile."""

    def __init__(self, rows: int, vectors: int, lanes: int, grouped: Grouped, initial: Pointer | None) -> None:
        self.rows, self.vectors, self.lanes, self.grouped, self.initial = rows, vectors, lanes, grouped, initial
        self.sums: Registers = self.begin()

    def start(self, v: int) -> Value:
        """Return the initial sums of a vector of channels."""
        return kl.zeros(i32, self.lanes) if self.initial is None else self.initial.load(v * self.lanes, self.lanes)

    def row(self, p: Pointer, offset: Any, steps: int) -> Value:
        """Load the bytes of some steps of a row, as int8."""
        loaded = p.load(offset, 4 * steps)
        return loaded ^ FLIPPED if self.grouped.dtype is u8 else loaded

    @abc.abstractmethod
    def begin(self) -> Registers:
        """Return the accumulators before the first step."""

    @abc.abstractmethod
    def add(self, bases: list[Pointer], q: Pointer, offset: Any, steps: int) -> None:
        """Add the products of 4, 2 or 1 steps, from byte `offset` of each row on."""

    @abc.abstractmethod
    def sum(self, r: int, v: int) -> Value:
        """Return the sums of a row and a vector of channels."""


class _DotSums(_TileSums):
    """A register for a row and four channels."""

    def begin(self) -> Registers:
        return accumulators(i32, self.rows, self.vectors, self.lanes, self.initial)

    def add(self, bases: list[Pointer], q: Pointer, offset: Any, steps: int) -> None:
        x = [kl.bitcast(self.row(p, offset, steps), i32) for p in bases]
        for j in range(steps):
            w = [kl.bitcast(q.load((j * self.vectors + v) * self.lanes, self.lanes), i8) for v in range(self.vectors)]
            for r in range(self.rows):
                four = kl.bitcast(kl.shuffle(x[r], None, [j] * 4), i8)
                for v in range(self.vectors):
                    self.sums[r, v] = kl.dot4_signed(self.sums[r, v], w[v], four)

    def sum(self, r: int, v: int) -> Value:
        return self.sums[r, v]


class _MatrixSums(_TileSums):
    """A register for two rows and two channels; the last of an odd number of rows is computed twice."""

    def begin(self) -> Registers:
        sums = kl.registers(i32, self.lanes, (self.rows + 1) // 2, 2 * self.vectors)
        for v in range(2 * self.vectors):
            start = kl.shuffle(self.start(v // 2), None, [v % 2 * 2, v % 2 * 2 + 1] * 2)
            for r in range((self.rows + 1) // 2):
                sums[r, v] = start
        return sums

    def add(self, bases: list[Pointer], q: Pointer, offset: Any, steps: int) -> None:
        bases = bases + bases[-1:] * (self.rows % 2)
        pairs = [self.pairs(bases[r], bases[r + 1], offset, steps) for r in range(0, len(bases), 2)]
        for j in range(0, steps, 2):
            both = [pair[j // 2] for pair in pairs]
            for v in range(2 * self.vectors):
                if steps == 1:  # four bytes of a channel, and zeros
                    four = q.load(v // 2 * self.lanes, self.lanes)
                    w = kl.bitcast(_spread(four, v % 2), i8)
                else:
                    w = kl.bitcast(q.load((j * self.vectors + v) * self.lanes, self.lanes), i8)
                for r in range(len(both)):
                    self.sums[r, v] = kl.matrix_dot(self.sums[r, v], both[r], w)

    def pairs(self, p: Pointer, q: Pointer, offset: Any, steps: int) -> list[Value]:
        """Return the bytes of two rows, two steps at a time; those of a single step are repeated."""
        if steps == 4:
            halves = kl.load_halves(p + offset, q + offset)
            return [half ^ FLIPPED if self.grouped.dtype is u8 else half for half in halves]
        a, c = (kl.bitcast(self.row(one, offset, steps), i32) for one in (p, q))
        return [kl.bitcast(kl.shuffle(a, c, [0, 1, 2, 3] if steps == 2 else [0, 0, 1, 1]), i8)]

    def sum(self, r: int, v: int) -> Value:
        half = [r % 2 * 2 + i + h * 4 for h in (0, 1) for i in (0, 1)]
        return kl.shuffle(self.sums[r // 2, 2 * v], self.sums[r // 2, 2 * v + 1], half)


class _PairwiseSums(_TileSums):
    """A register for a row and a channel, whose first lane has the initial sum of the channel."""

    def begin(self) -> Registers:
        sums = kl.registers(i32, self.lanes, self.rows, self.vectors * self.lanes)
        for c in range(self.vectors * self.lanes):
            start = kl.zeros(i32, self.lanes)
            if self.initial is not None:
                start = kl.insert(start, 0, self.initial[c])
            for r in range(self.rows):
                sums[r, c] = start
        return sums

    def add(self, bases: list[Pointer], q: Pointer, offset: Any, steps: int) -> None:
        x = [self.row(p, offset, steps) for p in bases]
        if steps < 4:
            x = [kl.shuffle(one, None, list(range(4 * steps)) * (4 // steps)) for one in x]
        for c in range(self.vectors * self.lanes):
            if steps == 4:
                w = kl.bitcast(q.load(c * self.lanes, self.lanes), i8)
                for r in range(self.rows):
                    self._add(r, c, kl.byte_products(w, x[r], 0), kl.byte_products(w, x[r], 1))
                if c % 2:  # otherwise all are multiplied before any is added, and registers overflow
                    q = kl.after(q, self.sums[self.rows - 1, c])
            else:
                if steps == 2:
                    w = kl.bitcast(q.load(c // 2 * self.lanes, self.lanes), i8)
                else:
                    w = kl.bitcast(_spread(q.load(c // 4 * self.lanes, self.lanes), c // 2 % 2), i8)
                for r in range(self.rows):
                    self.sums[r, c] = kl.add_pairs(self.sums[r, c], kl.byte_products(w, x[r], c % 2))

    def _add(self, r: int, c: int, low: Value, high: Value) -> None:
        if self.grouped.paired:
            self.sums[r, c] = kl.add_pairs(self.sums[r, c], low + high)
        else:
            self.sums[r, c] = kl.add_pairs(kl.add_pairs(self.sums[r, c], low), high)

    def sum(self, r: int, v: int) -> Value:
        a, b, c, d = (self.sums[r, v * 4 + i] for i in range(4))
        return kl.pair_sums(kl.pair_sums(a, b), kl.pair_sums(c, d))


def _spread(four: Value, half: int) -> Value:
    """Interleave two of four numbers with zeros."""
    none = kl.zeros(i32, four.count)
    return kl.shuffle(four, none, [2 * half, 4, 2 * half + 1, 4])
