"""The machine's limits, measured by kernels of the language that the kernels measured against them are written in.

Lives here: bandwidths of memory, one core.  Not here: peaks of arithmetic (opwright/compiler/kernels/peak_rates.py),
who is compared with them (duels.py).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

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


class Traffic(NamedTuple):
    """A call that moves bytes, and their number."""

    call: Callable[[], object]
    nbytes: int

    def bandwidth(self, repeats: int = 15) -> float:
        """Bytes in a second of the fastest of some calls."""
        best = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            self.call()
            best = min(best, time.perf_counter() - start)
        return self.nbytes / best


def copies(n: int = 10 * (1 << 20)) -> list[Traffic]:
    """Copies of 40 MiB to memory in use already, by a plain loop and by NumPy: bytes are read and written."""
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    code = copied.code()
    loop = functools.partial(kl.call, code, [source, target, n], items=1)
    return [Traffic(call, 8 * n) for call in (loop, functools.partial(np.copyto, target, source))]


def reads(n: int = 20 * (1 << 20)) -> list[Traffic]:
    """80 MiB read by several streams: the limit of a product of one row by weights."""
    n -= n % (STREAMS * RUN)
    source, out = np.ones(n, np.float32), np.zeros(STREAMS * lanes_of_f32(), np.float32)
    return [Traffic(functools.partial(kl.call, summed.code(), [source, out, n], items=1), 4 * n)]


@functools.cache
def copy_bandwidth() -> float:
    """Bytes read and written in a second by the faster of the copies."""
    return max(copy.bandwidth() for copy in copies())


@functools.cache
def read_bandwidth() -> float:
    """Bytes read in a second."""
    return max(read.bandwidth() for read in reads())


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
