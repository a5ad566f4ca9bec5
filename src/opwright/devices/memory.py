"""Stream-ordered memory of the simulated device, poisoned when it is freed.

Lives here: `Allocator`, `Storage`.  Not here: page-locked host memory (pinned.py), arrays (simulated_array.py).

A freed block can be allocated again at once on the same stream: work queued there later runs later, so it never sees
other data. Its bytes are overwritten with a pattern in stream order, so that work which uses it after it was freed
computes NaN. The use of a block on another stream must be declared by `record_use`, or that stream's work may read
other data: the mistake that this device exists to expose.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import defaultdict, deque
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InternalError, ResourceExhaustedError
from .context import ALIGNMENT
from .streams import Event, Stream

POISON = 0xFF
"""The byte value of freed and new memory: NaN in every floating dtype, -1 in signed integers."""

_ROUND = 256  # sizes are multiples of it, so that similar ones share blocks


def host_bytes(nbytes: int) -> np.ndarray:
    """Return new bytes, aligned and poisoned."""
    raw = np.full(nbytes + ALIGNMENT, POISON, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + nbytes]


class Storage:
    """A block in use: freed with its last reference. Arrays that are views of one another share one.

    memory: its bytes. stream: the one it was allocated on. uses: other streams with work that uses it.
    """

    __slots__ = ("__weakref__", "_allocator", "memory", "stream", "uses")

    def __init__(self, allocator: Allocator, memory: np.ndarray, stream: Stream) -> None:
        self._allocator = allocator
        self.memory, self.stream = memory, stream
        self.uses: set[Stream] = set()

    def free(self) -> None:
        """Free the block, regardless of references to this object. Raises InternalError if it was freed before."""
        if self.memory is None:
            raise InternalError(op="free", what="this block was freed before")
        allocator, memory = self._allocator, self.memory
        self.memory = None  # type: ignore[assignment]
        allocator._queue_free(_Freed(memory, self.stream, frozenset(self.uses - {self.stream})))

    def __del__(self) -> None:
        if getattr(self, "memory", None) is not None and not sys.is_finalizing():
            self.free()


class _Freed(NamedTuple):
    memory: np.ndarray
    stream: Stream
    uses: frozenset[Stream]


class Allocator:
    """Free lists of blocks by stream and size.

    name: for errors. limit: the most bytes in use at a time, None for no limit. in_use, peak, reserved: bytes in use,
    their maximum, and the bytes in use or free.
    """

    def __init__(self, name: str, limit: int | None = None) -> None:
        self.name, self.limit = name, limit
        self.in_use = self.peak = self.reserved = 0
        self._free: dict[tuple[int, int], list[np.ndarray]] = defaultdict(list)  # by id of stream and size
        self._pending: list[tuple[_Freed, list[Event]]] = []
        self._dropped: deque[_Freed] = deque()  # see _give_back
        self._lock = threading.Lock()
        _allocators.add(self)

    def allocate(self, nbytes: int, stream: Stream) -> Storage:
        """Return a block of at least `nbytes` bytes for work on `stream`.

        raises ResourceExhaustedError if it would exceed the limit
        """
        size = max(-(-nbytes // _ROUND), 1) * _ROUND
        with self._lock:
            self._process_freed()
            self._process_pending()
            if self.limit is not None and self.in_use + size > self.limit:
                raise ResourceExhaustedError(
                    op=self.name,
                    what=f"{nbytes} bytes are more than this device has free",
                    found=f"{self.in_use} bytes in use, {sum(f.memory.nbytes for f, _ in self._pending)} waiting for "
                    "streams that use them",
                    wanted=f"at most {self.limit} bytes",
                    do="drop arrays, or wait() for streams that hold freed ones",
                )
            blocks = self._free[id(stream), size]
            if blocks:
                memory = blocks.pop()  # LIFO, so that a use after free hits reused memory soon
            else:
                memory = host_bytes(size)
                self.reserved += size
            self.in_use += size
            self.peak = max(self.peak, self.in_use)
        return Storage(self, memory, stream)

    def _queue_free(self, freed: _Freed) -> None:
        """Queue a block to be freed; never blocks, as the garbage collector may call it, even inside `allocate`."""
        self._dropped.append(freed)
        while self._dropped and self._lock.acquire(blocking=False):
            try:
                self._process_freed()
            finally:
                self._lock.release()

    def _process_freed(self) -> None:
        while self._dropped:
            freed = self._dropped.popleft()
            self.in_use -= freed.memory.nbytes
            events = [stream.record() for stream in freed.uses]
            if all(event.done for event in events):
                self._make_available(freed)
            else:
                self._pending.append((freed, events))

    def _process_pending(self) -> None:
        waiting = []
        for freed, events in self._pending:
            if all(event.done for event in events):
                self._make_available(freed)
            else:
                waiting.append((freed, events))
        self._pending = waiting

    def _make_available(self, freed: _Freed) -> None:
        """Make a block available to work queued on its stream from now on."""
        memory = freed.memory
        freed.stream.submit(lambda: memory.fill(POISON), "free")
        self._free[id(freed.stream), memory.nbytes].append(memory)

    def trim(self) -> None:
        """Release the free blocks."""
        with self._lock:
            self._process_freed()
            self._process_pending()
            self.reserved -= sum(block.nbytes for blocks in self._free.values() for block in blocks)
            self._free.clear()

    def reset_peak(self) -> None:
        """Reset `peak` to the bytes in use."""
        with self._lock:
            self._process_freed()
            self.peak = self.in_use


_allocators: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for allocator in list(_allocators):
        allocator._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
