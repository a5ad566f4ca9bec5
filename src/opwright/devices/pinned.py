"""Page-locked host memory: NumPy arrays that a device reads and writes asynchronously.

Lives here: `Lease` and `lease_of`, which identify such arrays; `PinnedPool`, the simulated kind. Not here: CuPy's kind
(cuda.py), which copies wait (copies.py).

An asynchronous copy reads or writes such memory when it runs. The host frees it immediately, not in stream order: it is
reused and overwritten at once, so `record_use` is needed wherever a copy may still be running.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict, deque
from typing import Any

import numpy as np

from .context import numpy_dtype, sizes
from .memory import POISON, host_bytes
from .streams import Event, Stream


class Lease:
    """The base object of arrays in page-locked memory: the memory is in use while such an array exists.

    memory: its bytes as a NumPy array. owner: an object to keep alive with it, or the `PinnedPool` that gets it back.
    """

    __slots__ = ("__array_interface__", "__weakref__", "memory", "owner", "uses")

    def __init__(self, memory: np.ndarray, owner: Any) -> None:
        self.memory, self.owner = memory, owner
        self.uses: set[Any] = set()
        self.__array_interface__ = memory.__array_interface__

    def array(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return an array at the beginning of the memory, which references this lease."""
        shape, dtype = sizes(shape), numpy_dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        array: np.ndarray = np.asarray(self)[:nbytes].view(dtype).reshape(shape)
        return array

    def raw(self, array: np.ndarray) -> np.ndarray:
        """Return the elements of one of this lease's arrays without a reference to the lease, as a device sees them."""
        offset = array.__array_interface__["data"][0] - self.memory.__array_interface__["data"][0]
        return np.ndarray(array.shape, array.dtype, self.memory, offset, array.strides)

    def __del__(self) -> None:
        if isinstance(getattr(self, "owner", None), PinnedPool) and not sys.is_finalizing():
            self.owner._queue_free(self.memory, frozenset(self.uses))


def lease_of(array: Any) -> Lease | None:
    """Return the lease of an array of page-locked memory or a view of one; None for any other."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, Lease) else None


def is_pinned(array: Any) -> bool:
    """Return whether this is an array of page-locked memory."""
    return lease_of(array) is not None


class PinnedPool:
    """Simulated page-locked memory: free lists by size; blocks are poisoned and reusable as soon as they are freed."""

    def __init__(self) -> None:
        self._free: dict[int, list[np.ndarray]] = defaultdict(list)
        self._pending: list[tuple[np.ndarray, list[Event]]] = []
        self._dropped: deque[tuple[np.ndarray, frozenset[Stream]]] = deque()
        self._lock = threading.Lock()

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return a page-locked array, contents undefined."""
        shape, dtype = sizes(shape), numpy_dtype(dtype)
        size = max(-(-int(np.prod(shape, dtype=np.int64)) * dtype.itemsize // 256), 1) * 256
        with self._lock:
            self._process_freed()
            blocks = self._free[size]
            memory = blocks.pop() if blocks else host_bytes(size)
        return Lease(memory, self).array(shape, dtype)

    def _queue_free(self, memory: np.ndarray, uses: frozenset[Stream]) -> None:
        self._dropped.append((memory, uses))
        while self._dropped and self._lock.acquire(blocking=False):  # never blocks, as in memory.py
            try:
                self._process_freed()
            finally:
                self._lock.release()

    def _process_freed(self) -> None:
        while self._dropped:
            memory, uses = self._dropped.popleft()
            self._pending.append((memory, [stream.record() for stream in uses]))
        waiting = []
        for memory, events in self._pending:
            if all(event.done for event in events):
                memory.fill(POISON)
                self._free[memory.nbytes].append(memory)
            else:
                waiting.append((memory, events))
        self._pending = waiting
