"""Memory for the results of native calls.

Lives here: `large`, which gives memory that an earlier result has left.  Not here: who is called (calls.py, kernel.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import forks

LARGE, KEPT = 1 << 20, 1 << 27
"""Bytes of a result whose memory is kept for the next one when it dies, and of all that is kept at most: what the
system gives anew is zeroed page by page, which takes longer than most kernels."""

_kept: dict[int, list[_Memory]] = {}
_kept_bytes = 0
_lock = forks.lock()  # reentrant: the collector may run `__del__` anywhere


class _Memory(np.ndarray):
    """Bytes that own themselves. A class of its own: views of plain arrays forget what lies between."""


class _Block(np.ndarray):
    """A view of such bytes that every array over them holds: when it dies, they may be used again."""

    def __del__(self) -> None:
        global _kept_bytes
        memory = self.base
        if type(memory) is _Memory:
            with _lock:
                if _kept_bytes + memory.nbytes <= KEPT:
                    _kept_bytes += memory.nbytes
                    _kept.setdefault(memory.nbytes, []).append(memory)


def large(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """As np.empty, for what is at least LARGE: in memory that an earlier one of the same size has left."""
    global _kept_bytes
    nbytes = math.prod(shape) * dtype.itemsize
    memory = None
    with _lock:
        if blocks := _kept.get(nbytes):
            memory = blocks.pop()
            _kept_bytes -= nbytes
    if memory is None:
        memory = _Memory(nbytes, np.uint8)
    return np.ndarray(shape, dtype, memory.view(_Block))
