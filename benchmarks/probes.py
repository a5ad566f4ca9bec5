"""The machine's limits, measured by kernels of the language that the kernels measured against them are written in.

Lives here: bandwidths of memory, one core.  Not here: peaks of arithmetic (opwright/compiler/kernels/peak_rates.py),
who is compared with them (duels.py).
"""

from __future__ import annotations

import functools
import time

import numpy as np

from opwright.compiler import language as kl
from opwright.compiler.kernels.peak_rates import lanes_of_f32, peak_f32, peak_int8, quickest
from opwright.compiler.language import f32, i64, ptr


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


@functools.cache
def copy_bandwidth(n: int = 10 * (1 << 20)) -> float:
    """Bytes read and written in a second by a copy of 40 MiB to memory in use already; NumPy's, if that is quicker."""
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    best = quickest(copied.code(), [source, target, n], 15)
    for _ in range(15):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 8 * n / best


@functools.cache
def read_bandwidth(n: int = 20 * (1 << 20)) -> float:
    """Bytes read in a second from 80 MiB by several streams: the limit of a product of one row by weights."""
    n -= n % (STREAMS * RUN)
    source, out = np.ones(n, np.float32), np.zeros(STREAMS * lanes_of_f32(), np.float32)
    return 4 * n / quickest(summed.code(), [source, out, n], 15)


@functools.cache
def triad_bandwidth(n: int = 10 * (1 << 20)) -> float:
    """Bytes read and written in a second by target = a + 3 b."""
    a, b, target = (np.ones(n, np.float32) for _ in range(3))
    return 12 * n / quickest(triad.code(), [a, b, target, n], 15)


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
