"""The processor's peak rates of arithmetic, one core, measured by kernels of the kernel language.

Lives here: `peak_f32`, `peak_int8`, and the `Chains` that they measure.
Not here: bandwidths of memory and the comparison with other libraries (benchmarks/), operations of a model's nodes
(views/measurements.py).
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import language as kl
from ..language import f32, i8, i64, ptr, u8
from ..target import host
from .gemm_int16 import widens

if TYPE_CHECKING:
    from ..language import Work

CHAINS = 12
"""Independent sums, so that none waits for the last product."""
UNROLLED = 4  # turns written out, so that the loop's own instructions do not count


@kl.family
def fma_chains(work: Work, out: ptr[f32], factor: f32, turns: i64) -> None:
    """out: a vector for each chain."""
    lanes = work.lanes(f32)
    sums, x = kl.registers(f32, lanes, CHAINS), kl.full(f32, lanes, factor)
    for n in range(CHAINS):
        sums[n] = float(n)
    for _ in range(turns):
        for _ in range(UNROLLED):
            for n in range(CHAINS):
                sums[n] = kl.fma(sums[n], x, x)
    for n in range(CHAINS):
        out.store(sums[n], n * lanes)


@kl.family
def dot_chains(work: Work, out: ptr[kl.i32], left: ptr[u8], right: ptr[i8], turns: i64) -> None:
    """out: a vector for each chain; left, right: a vector of bytes each.

    LLVM is told that one side changes: it would multiply once. Without VNNI bytes are widened to int16, as kernels have
    them: two vectors' products are those of one vector of bytes.
    """
    lanes = work.lanes(kl.i32)
    wide = widens(work.target)
    kind, dot = (kl.i16, kl.pair_dot) if wide else (u8, kl.dot4)
    count = lanes * (2 if wide else 4)
    y = right.load(0, count).to(kind) if wide else right.load(0, count)
    x = kl.registers(kind, count, 1)
    x[0] = left.load(0, count).to(kind)
    sums = kl.registers(kl.i32, lanes, CHAINS)
    for n in range(CHAINS):
        sums[n] = 0
    for _ in range(turns):
        for _ in range(UNROLLED):
            for n in range(CHAINS):
                for _ in range(2 if wide else 1):
                    sums[n] = dot(sums[n], x[0], y)
                    x[0] = kl.opaque(x[0])
    for n in range(CHAINS):
        out.store(sums[n], n * lanes)


@kl.family
def tile_chains(work: Work, out: ptr[kl.i32], left: ptr[i8], right: ptr[i8], turns: i64) -> None:
    """Sum products in four tiles, two by two. out: one of them; left, right: a tile each."""
    kl.tile_config([(16, 64)] * 8)
    for t in range(2):
        kl.tile_load(4 + t, left, 64)
        kl.tile_load(6 + t, right, 64)
    for _ in range(turns):
        for _ in range(UNROLLED):
            for t in range(4):
                kl.tile_dot(t, 4 + t // 2, 6 + t % 2, i8, i8)
    kl.tile_store(0, out, 64)
    kl.tile_release()


def quickest(code: Any, words: list[Any], repeats: int = 400) -> float:
    """Return the seconds of the fastest of some calls of a kernel."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        kl.call(code, words, items=1)
        best = min(best, time.perf_counter() - start)
    return best


def lanes_of_f32() -> int:
    """Return the float32 numbers of a vector register."""
    return host().vector_bytes // 4


class Chains(NamedTuple):
    """A kernel of independent sums. words: its parameters but for the number of turns; operations: of a turn."""

    code: Any
    words: list[Any]
    operations: int

    def call(self, turns: int) -> None:
        """Run some turns."""
        kl.call(self.code, [*self.words, turns], items=1)

    def rate(self, turns: int) -> float:
        """Return the operations in a second of the fastest of some runs, without the time of a call: a tenth of it."""
        seconds = quickest(self.code, [*self.words, turns]) - quickest(self.code, [*self.words, 0])
        return self.operations * turns / seconds


def chains_f32() -> Chains:
    """Return multiplications and additions of float32."""
    lanes = lanes_of_f32()
    return Chains(fma_chains.code(), [np.zeros(CHAINS * lanes, np.float32), 0.5], 2 * CHAINS * UNROLLED * lanes)


def chains_int8() -> Chains:
    """Return those of products of int8, summed in int32: with tiles if the processor has them, else with vectors."""
    if host().has("amx-int8"):
        tiles = [np.zeros((16, 16), np.int32), *(np.ones((16, 64), np.int8) for _ in range(2))]
        return Chains(tile_chains.code(), tiles, 2 * 4 * UNROLLED * 16 * 16 * 64)
    lanes = lanes_of_f32()
    words = [np.zeros(CHAINS * lanes, np.int32), np.ones(4 * lanes, np.uint8), np.ones(4 * lanes, np.int8)]
    return Chains(dot_chains.code(), words, 8 * CHAINS * UNROLLED * lanes)


@functools.cache
def peak_f32(turns: int = 20_000) -> float:
    """Return the multiplications and additions of float32 in a second."""
    return chains_f32().rate(turns)


@functools.cache
def peak_int8(turns: int = 20_000) -> float:
    """Return those of products of int8, summed in int32."""
    return chains_int8().rate(turns)
