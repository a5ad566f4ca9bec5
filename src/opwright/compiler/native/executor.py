"""The executor: runs a plan, which is data, through machine code.

Lives here: `Step`, `Executor`, `StepError`.  Not here: what the steps are (loops/planning), their code (store.py).

A step calls one kernel, `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)`, for its items [0, items): at once
or in chunks, on whichever thread is free. Items are independent, so that every split gives the same bits.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import ResourceExhaustedError

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_LINE = 64  # bytes: scratch memory and words start on a line of the cache


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel over its items.

    address: of its code; words: int64[n], its parameters; chunk: how many items a thread is handed at a time, 0 for
    the executor's choice; from `items` on the calling thread does them alone; scratch: bytes a thread
    """

    address: int
    words: Sequence[int] | np.ndarray
    items: int
    chunk: int = 0
    scratch: int = 0


class StepError(Exception):
    """A kernel stopped the plan. step: which; status: what it gave."""

    def __init__(self, step: int, status: int) -> None:
        super().__init__(f"step {step} gave {status}")
        self.step, self.status = step, status


class Executor:
    """Runs steps in order. words: for each step, its parameters inside the plan: int64 views that may be changed."""

    def __init__(self, steps: Sequence[Step], threads: int = 1, keep: Sequence[Any] = ()) -> None:
        self.threads, self._keep = threads, tuple(keep)
        self.words: list[np.ndarray] = []
        scratch = _aligned(max((s.scratch for s in steps), default=0))
        self._calls = []
        for step in steps:
            words = _aligned(8 * len(step.words)).view(np.int64)[: len(step.words)]
            words[:] = step.words
            self.words.append(words)
            self._calls.append((_KERNEL(step.address), words.ctypes.data, 0, step.items, scratch.ctypes.data))
        self._scratch = scratch

    def run(self) -> None:
        """Run all steps once. Raises StepError where a kernel gives something else than 0."""
        for at, (kernel, *arguments) in enumerate(self._calls):
            status = kernel(*arguments)
            if status:
                raise StepError(at, status)

    def run_profiled(self) -> np.ndarray:
        """Run all steps once. Gives int64[steps]: the nanoseconds that each took."""
        times = np.zeros(len(self._calls), np.int64)
        for at, (kernel, *arguments) in enumerate(self._calls):
            start = time.perf_counter_ns()
            status = kernel(*arguments)
            times[at] = time.perf_counter_ns() - start
            if status:
                raise StepError(at, status)
        return times


def _aligned(size: int) -> np.ndarray:
    """Bytes that start on a line of the cache; a whole number of lines. Raises ResourceExhaustedError."""
    size = -(-size // _LINE) * _LINE
    try:
        memory = np.zeros(size + _LINE, np.uint8)
    except MemoryError:
        raise ResourceExhaustedError(what="no memory for a plan", found=f"{size} bytes") from None
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size]
