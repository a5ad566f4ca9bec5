"""The machine's limits, measured by kernels of the language that the kernels measured against them are written in.

Lives here: peaks of arithmetic and bandwidths of memory, one core.  Not here: who is compared with them (duels.py).
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from opwright.compiler import language as kl
from opwright.compiler.kernels.gemm_int16 import widens
from opwright.compiler.language import f32, i8, i64, ptr, u8
from opwright.compiler.target import host

CHAINS = 12
"""Independent sums, so that none waits for the last product."""
UNROLLED = 4  # turns written out, so that the loop's own instructions do not count


@kl.family
def fma_chains(work, out: ptr[f32], factor: f32, turns: i64):
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
def dot_chains(work, out: ptr[kl.i32], left: ptr[u8], right: ptr[i8], turns: i64):
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
def tile_chains(work, out: ptr[kl.i32], left: ptr[i8], right: ptr[i8], turns: i64):
    """Four tiles of sums, two by two. out: one of them; left, right: a tile each."""
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


@kl.family
def copied(work, source: ptr[f32], target: ptr[f32], n: i64):
    """n: a multiple of four vectors."""
    lanes = work.lanes(f32)
    for i in range(0, n, 4 * lanes):
        for j in range(4):
            target.store(source.load(i + j * lanes, lanes), i + j * lanes)


@kl.family
def triad(work, a: ptr[f32], b: ptr[f32], target: ptr[f32], n: i64):
    """target = a + 3 b."""
    lanes = work.lanes(f32)
    for i in range(0, n, lanes):
        target.store(kl.fma(b.load(i, lanes), 3.0, a.load(i, lanes)), i)


STREAMS, RUN = 8, 3072
"""Streams that are read side by side, and floats of each in a turn: a single one reads half as much in a second."""


@kl.family
def summed(work, source: ptr[f32], out: ptr[f32], n: i64):
    """n: a multiple of STREAMS times RUN."""
    lanes = work.lanes(f32)
    sums = kl.registers(f32, lanes, STREAMS)
    for s in range(STREAMS):
        sums[s] = 0.0
    for first in range(0, n, STREAMS * RUN):
        for i in range(first, first + RUN, 2 * lanes):
            for s in range(STREAMS):
                for j in range(2):
                    sums[s] = sums[s] + source.load(i + s * RUN + j * lanes, lanes)
    for s in range(STREAMS):
        out.store(sums[s], s * lanes)


def _quickest(code: Any, words: list[Any], repeats: int = 400) -> float:
    """Seconds of the quickest of some calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        kl.call(code, words, items=1)
        best = min(best, time.perf_counter() - start)
    return best


def _lanes() -> int:
    return host().vector_bytes // 4


@functools.cache
def peak_f32(turns: int = 20_000) -> float:
    """Multiplications and additions of float32 in a second."""
    out = np.zeros(CHAINS * _lanes(), np.float32)
    return 2 * CHAINS * UNROLLED * _lanes() * turns / _quickest(fma_chains.code(), [out, 0.5, turns])


@functools.cache
def peak_int8(turns: int = 20_000) -> float:
    """The same of products of bytes, summed in int32: with tiles where there are some, else with vectors."""
    if host().has("amx-int8"):
        tiles = [np.zeros((16, 16), np.int32), *(np.ones((16, 64), np.int8) for _ in range(2)), turns]
        return 2 * 4 * UNROLLED * 16 * 16 * 64 * turns / _quickest(tile_chains.code(), tiles)
    out, bytes_ = np.zeros(CHAINS * _lanes(), np.int32), 4 * _lanes()
    words = [out, np.ones(bytes_, np.uint8), np.ones(bytes_, np.int8), turns]
    return 8 * CHAINS * UNROLLED * _lanes() * turns / _quickest(dot_chains.code(), words)


@functools.cache
def copy_bandwidth(n: int = 10 * (1 << 20)) -> float:
    """Bytes read and written in a second by a copy of 40 MiB to memory in use already; NumPy's, if that is quicker."""
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    best = _quickest(copied.code(), [source, target, n], 15)
    for _ in range(15):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 8 * n / best


@functools.cache
def read_bandwidth(n: int = 20 * (1 << 20)) -> float:
    """Bytes read in a second from 80 MiB by several streams: the limit of a product of one row by weights."""
    n -= n % (STREAMS * RUN)
    source, out = np.ones(n, np.float32), np.zeros(STREAMS * _lanes(), np.float32)
    return 4 * n / _quickest(summed.code(), [source, out, n], 15)


@functools.cache
def triad_bandwidth(n: int = 10 * (1 << 20)) -> float:
    """Bytes read and written in a second by target = a + 3 b."""
    a, b, target = (np.ones(n, np.float32) for _ in range(3))
    return 12 * n / _quickest(triad.code(), [a, b, target, n], 15)


LIMITS = {
    "peak_f32": peak_f32,
    "peak_int8": peak_int8,
    "copy": copy_bandwidth,
    "read": read_bandwidth,
    "triad": triad_bandwidth,
}


def found() -> dict[str, float]:
    """All of them: operations and bytes in a second."""
    return {name: limit() for name, limit in LIMITS.items()}


if __name__ == "__main__":
    for name, value in found().items():
        print(f"{name:10s} {value / 1e9:8.1f} G/s")
