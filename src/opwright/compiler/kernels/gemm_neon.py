"""The micro-kernel of int8 on 64-bit ARM, by the instructions that a processor has.

Lives here: `Grouped`, `steps_for`, `whole_steps`, `shape_for`, `is_paired`, `contract_grouped`,
`order_groups` for panels.
Not here: what reads the sums (gemm_int8.py), packed filters (weight_packing_int8.py), the instructions
(../language/neon.py).

Bytes of either sign are multiplied as they are, so that a panel's starts make up for zero points alone; those without a
sign are read as x - 128. Rows are loaded sixteen bytes at a time, four steps of a panel:

    i8mm      smmla: two rows by two channels, eight bytes of each. A panel has the eight bytes of a channel together.
    dotprod   sdot: a row by four channels, four bytes of each; the row's four bytes are a lane of the instruction.
    neither   smull, smlal2, sadalp: a row by a channel, sixteen bytes, added in pairs as int16, then as int32. A panel
              has the sixteen bytes of a channel together; sums of a channel are four lanes, which are added in the end.

Two products of bytes are less than 2^15 unless all four factors are -128: filters without such a weight are `paired`.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..language import i8, i32, u8

if TYPE_CHECKING:
    from ..language import Pointer, Registers, Value
    from ..loops.buffers import Buffer
    from ..target import Target
    from .gemm_int8 import Source

LANES = 4
"""Channels in a vector."""
FLIPPED = -128
"""What makes bytes without a sign x - 128, and changes the same of others."""
TILES = {1: (20, 4), 2: (16, 4), 4: (16, 2)}
"""By the steps of a group: registers of sums, and vectors of channels where there are enough."""


class Grouped(NamedTuple):
    """How a tile's rows are multiplied. steps: of a panel that stand together, a channel's bytes next to each other;
    dtype: of the rows; paired: whether int16 holds two products; padded: whether runs have `whole_steps`."""

    steps: int
    dtype: DType
    paired: bool
    padded: bool = False


def steps_for(target: Target) -> int:
    """Steps of a panel that stand together on a target, 0 where it is no 64-bit ARM with vectors of 16 bytes."""
    if not target.is_aarch64:
        return 0
    return 2 if target.has("i8mm") else 1 if target.has("dotprod") else 4


def shape_for(steps: int, features: int) -> tuple[int, int]:
    """Rows and vectors of a tile for so many channels. steps: see `steps_for`."""
    sums, most = TILES[steps]
    vectors = min(most, -(-features // LANES))
    each = vectors * LANES if steps == 4 else vectors  # registers that a row's sums take
    return (sums // each // 2 * 2 if steps == 2 else sums // each), vectors


def whole_steps(steps: int, quads: Any) -> Any:
    """Return the number of steps for a run of `quads` where the elements behind it may be read.

    Steps over padding multiply zeros. They save instructions: smmla runs an even number, smull four instead of three.
    """
    return quads + (quads & 1) if steps == 2 else quads + (quads & 3) // 3 if steps == 4 else quads


def is_paired(filters: Buffer, parts: int) -> bool:
    """Whether a filter has no weight of -128, of which two might be too much for int16."""
    return parts == 1 and filters.constant is not None and bool((filters.constant != np.int8(-128)).all())


def order_groups(q: Pointer, quads: Any, vectors: int, lanes: int, steps: int) -> None:
    """Order the steps of a line so that bytes of a channel stand together: `steps` steps at a time, of the last ones
    of a line two, and one as it is."""
    _order(q, quads // steps, vectors, lanes, steps)
    if steps == 4 and quads & 2:
        _order(q + quads // 4 * (4 * vectors * lanes), 1, vectors, lanes, 2)


def _order(q: Pointer, groups: Any, vectors: int, lanes: int, steps: int) -> None:
    for g in range(groups):
        p = q + g * (steps * vectors * lanes)
        found = [[p.load((j * vectors + v) * lanes, lanes) for j in range(steps)] for v in range(vectors)]
        for v in range(vectors):
            whole = found[v]
            while len(whole) > 1:
                whole = [kl.concat(whole[i], whole[i + 1]) for i in range(0, len(whole), 2)]
            order = [j * lanes + c for c in range(lanes) for j in range(steps)]
            p.store(kl.shuffle(whole[0], None, order), v * steps * lanes)


def contract_grouped(
    rows: int, vectors: int, lanes: int, source: Source, how: Grouped, q: Pointer, started: bool
) -> list[Value]:
    """The micro-kernel: the sums of each row of a tile, vectors * lanes of int32. q: the panel.

    started: whether sums start with the panel's first row.
    """
    kernels: dict[int, type[_Kernel]] = {1: _Dots, 2: _Matrices, 4: _Products}
    one = kernels[how.steps](rows, vectors, lanes, how, q if started else None)
    q = q + vectors * lanes
    for line in range(source.lines):
        for segment in range(source.segments):
            p = source.p + (line * source.line + segment * source.segment)
            near = [kl.opaque_pointer(p + r * source.pitch) for r in range(rows)]
            end = source.quads // 4 * 16
            for at in range(0, end, 16):
                one.add(near, q, at, 4)
                q = q + 4 * vectors * lanes
            if source.quads & 2:
                one.add(near, q, end, 2)
                q = q + 2 * vectors * lanes
            if source.quads & 1:
                one.add(near, q, source.quads * 4 - 4, 1)
                q = q + vectors * lanes
    return [kl.joined([one.sum(r, v) for v in range(vectors)]) for r in range(rows)]


class _Kernel(abc.ABC):
    """A tile's sums while they are added up."""

    def __init__(self, rows: int, vectors: int, lanes: int, how: Grouped, starts: Pointer | None) -> None:
        self.rows, self.vectors, self.lanes, self.how, self.starts = rows, vectors, lanes, how, starts
        self.held: Registers = self.begin()

    def start(self, v: int) -> Value:
        """What the sums of a vector of channels start with."""
        return kl.zeros(i32, self.lanes) if self.starts is None else self.starts.load(v * self.lanes, self.lanes)

    def row(self, p: Pointer, at: Any, steps: int) -> Value:
        """The bytes of so many steps of a row, as int8."""
        found = p.load(at, 4 * steps)
        return found ^ FLIPPED if self.how.dtype is u8 else found

    @abc.abstractmethod
    def begin(self) -> Registers:
        """Return the tile's accumulators, as they are before the first step."""

    @abc.abstractmethod
    def add(self, near: list[Pointer], q: Pointer, at: Any, steps: int) -> None:
        """Add the products of 4, 2 or 1 steps, which begin at byte `at` of each row."""

    @abc.abstractmethod
    def sum(self, r: int, v: int) -> Value:
        """Return the sums of a row and a vector of channels."""


class _Dots(_Kernel):
    """A register for a row and four channels."""

    def begin(self) -> Registers:
        held = kl.registers(i32, self.lanes, self.rows, self.vectors)
        for v in range(self.vectors):
            start = self.start(v)
            for r in range(self.rows):
                held[r, v] = start
        return held

    def add(self, near: list[Pointer], q: Pointer, at: Any, steps: int) -> None:
        x = [kl.bitcast(self.row(p, at, steps), i32) for p in near]
        for j in range(steps):
            w = [kl.bitcast(q.load((j * self.vectors + v) * self.lanes, self.lanes), i8) for v in range(self.vectors)]
            for r in range(self.rows):
                four = kl.bitcast(kl.shuffle(x[r], None, [j] * 4), i8)
                for v in range(self.vectors):
                    self.held[r, v] = kl.dot4_signed(self.held[r, v], w[v], four)

    def sum(self, r: int, v: int) -> Value:
        return self.held[r, v]


class _Matrices(_Kernel):
    """A register for two rows and two channels; of an odd number of rows the last is there twice."""

    def begin(self) -> Registers:
        held = kl.registers(i32, self.lanes, (self.rows + 1) // 2, 2 * self.vectors)
        for v in range(2 * self.vectors):
            start = kl.shuffle(self.start(v // 2), None, [v % 2 * 2, v % 2 * 2 + 1] * 2)
            for r in range((self.rows + 1) // 2):
                held[r, v] = start
        return held

    def add(self, near: list[Pointer], q: Pointer, at: Any, steps: int) -> None:
        near = near + near[-1:] * (self.rows % 2)
        pairs = [self.pairs(near[r], near[r + 1], at, steps) for r in range(0, len(near), 2)]
        for j in range(0, steps, 2):
            both = [found[j // 2] for found in pairs]
            for v in range(2 * self.vectors):
                if steps == 1:  # four bytes of a channel, and none
                    four = q.load(v // 2 * self.lanes, self.lanes)
                    w = kl.bitcast(_spread(four, v % 2), i8)
                else:
                    w = kl.bitcast(q.load((j * self.vectors + v) * self.lanes, self.lanes), i8)
                for r in range(len(both)):
                    self.held[r, v] = kl.matrix_dot(self.held[r, v], both[r], w)

    def pairs(self, p: Pointer, q: Pointer, at: Any, steps: int) -> list[Value]:
        """The bytes of two rows, two steps at a time; of one step they are there twice."""
        if steps == 4:
            halves = kl.load_halves(p + at, q + at)
            return [half ^ FLIPPED if self.how.dtype is u8 else half for half in halves]
        a, c = (kl.bitcast(self.row(one, at, steps), i32) for one in (p, q))
        return [kl.bitcast(kl.shuffle(a, c, [0, 1, 2, 3] if steps == 2 else [0, 0, 1, 1]), i8)]

    def sum(self, r: int, v: int) -> Value:
        half = [r % 2 * 2 + i + h * 4 for h in (0, 1) for i in (0, 1)]
        return kl.shuffle(self.held[r // 2, 2 * v], self.held[r // 2, 2 * v + 1], half)


class _Products(_Kernel):
    """A register for a row and a channel, whose first lane starts with what the channel's sums do."""

    def begin(self) -> Registers:
        held = kl.registers(i32, self.lanes, self.rows, self.vectors * self.lanes)
        for c in range(self.vectors * self.lanes):
            start = kl.zeros(i32, self.lanes)
            if self.starts is not None:
                start = kl.insert(start, 0, self.starts[c])
            for r in range(self.rows):
                held[r, c] = start
        return held

    def add(self, near: list[Pointer], q: Pointer, at: Any, steps: int) -> None:
        x = [self.row(p, at, steps) for p in near]
        if steps < 4:
            x = [kl.shuffle(one, None, list(range(4 * steps)) * (4 // steps)) for one in x]
        for c in range(self.vectors * self.lanes):
            if steps == 4:
                w = kl.bitcast(q.load(c * self.lanes, self.lanes), i8)
                for r in range(self.rows):
                    self._add(r, c, kl.byte_products(w, x[r], 0), kl.byte_products(w, x[r], 1))
                if c % 2:  # else all are multiplied before any is added, and registers do not hold them
                    q = kl.after(q, self.held[self.rows - 1, c])
            else:
                if steps == 2:
                    w = kl.bitcast(q.load(c // 2 * self.lanes, self.lanes), i8)
                else:
                    w = kl.bitcast(_spread(q.load(c // 4 * self.lanes, self.lanes), c // 2 % 2), i8)
                for r in range(self.rows):
                    self.held[r, c] = kl.add_pairs(self.held[r, c], kl.byte_products(w, x[r], c % 2))

    def _add(self, r: int, c: int, low: Value, high: Value) -> None:
        if self.how.paired:
            self.held[r, c] = kl.add_pairs(self.held[r, c], low + high)
        else:
            self.held[r, c] = kl.add_pairs(kl.add_pairs(self.held[r, c], low), high)

    def sum(self, r: int, v: int) -> Value:
        a, b, c, d = (self.held[r, v * 4 + i] for i in range(4))
        return kl.pair_sums(kl.pair_sums(a, b), kl.pair_sums(c, d))


def _spread(four: Value, half: int) -> Value:
    """Two of four numbers, each with a zero behind it."""
    none = kl.zeros(i32, four.count)
    return kl.shuffle(four, none, [2 * half, 4, 2 * half + 1, 4])
