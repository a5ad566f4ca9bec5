"""Memory for the results of native calls.

Lives here: `large`, which gives memory that an earlier result has left.  Not here: who is called (calls.py, kernel.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import forks

LARGE, KEPT = 1 << 20, 1 << 27
"""Minimum bytes of a result whose memory is reused, and maximum bytes kept for reuse: the system zeroes new memory page
by page, which takes longer than most kernels."""

_kept: dict[int, list[_OwnedBytes]] = {}
_kept_bytes = 0
_lock = forks.lock()  # reentrant: the collector may run `__del__` anywhere


class _OwnedBytes(np.ndarray):
    """Bytes that own themselves. A class, as views of plain arrays drop intermediate bases."""


class _Block(np.ndarray):
    """A view of such bytes that every array over them references: when it dies, they may be reused."""

    def __del__(self) -> None:
        global _kept_bytes
        memory = self.base
        if type(memory) is _OwnedBytes:
            with _lock:
                if _kept_bytes + memory.nbytes <= KEPT:
                    _kept_bytes += memory.nbytes
                    _kept.setdefault(memory.nbytes, []).append(memory)


def large(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return np.empty for sizes of at least LARGE, in memory that an earlier array of the same size released."""
    global _kept_bytes
    nbytes = math.prod(shape) * dtype.itemsize
    memory = None
    with _lock:
        if blocks := _kept.get(nbytes):
            memory = blocks.pop()
            _kept_bytes -= nbytes
    if memory is None:
        memory = _OwnedBytes(nbytes, np.uint8)
    return np.ndarray(shape, dtype, memory.view(_Block))
