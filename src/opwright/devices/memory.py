"""Memory of asynchronous devices, and copies between host and device memory.

Lives here: `Allocator` and `Storage`, the stream-ordered memory of the simulated device; `Lease` and `lease_of`, which
identify page-locked arrays; `PinnedPool`, the simulated kind; which copies wait, the size below which host memory is
staged; the place of an array.
Not here: arrays of the simulated device (simulated_array.py), a device's copies (cuda.py, simulated.py), copies between
places (pool.py).

A freed block can be allocated again at once on the same stream: work queued there later runs later, so it never sees
other data. Its bytes are overwritten with a pattern in stream order, so that work which uses it after it was freed
computes NaN. The use of a block on another stream must be declared by `record_use`, or that stream's work may read
other data: the mistake that this device exists to expose.

An asynchronous copy reads or writes page-locked memory when it runs. The host frees it immediately, not in stream
order: it is reused and overwritten at once, so `record_use` is needed wherever a copy may still be running.

The rules of copies are CUDA's. "Async" is the caller's request (cudaMemcpyAsync); whether a call returns before the
copy is done depends on the kinds of memory:

    from       to         plain call      Async call
    device     device     returns         returns
    pinned     device     waits *         returns, and the copy reads the source when it runs
    pageable   device     waits *         waits *
    device     pinned     waits           returns, and the target has its values after a wait
    device     pageable   waits           waits
    host       host       waits           waits

    * up to 64 KB the call stages the bytes and returns at once; the source may then be overwritten

Setting memory and launching a kernel never wait.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import defaultdict, deque
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from ..core.lazy_imports import finalizer
from ..core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from .context import ALIGNMENT, numpy_dtype, sizes
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

    @finalizer
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

    @finalizer
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


STAGED_BYTES = 64 * 1024
"""The largest copy from the host, in bytes, that the call stages."""

_WAITS = {  # (from, to): (a plain call waits, an Async call waits)
    ("device", "device"): (False, False),
    ("pinned", "device"): (True, False),
    ("pageable", "device"): (True, True),
    ("device", "pinned"): (True, False),
    ("device", "pageable"): (True, True),
    ("pinned", "pinned"): (True, True),
    ("pinned", "pageable"): (True, True),
    ("pageable", "pinned"): (True, True),
    ("pageable", "pageable"): (True, True),
}


def is_staged(source: str, target: str, nbytes: int, asynchronous: bool) -> bool:
    """Return whether the call copies the bytes to a staging buffer, so that neither side waits."""
    return target == "device" and source != "device" and nbytes <= STAGED_BYTES and _WAITS[source, target][asynchronous]


def waits(source: str, target: str, nbytes: int, asynchronous: bool = False) -> bool:
    """Return whether a copy is done when the call returns. source, target: "device", "pinned" or "pageable".

    >>> waits("device", "pageable", 4, asynchronous=True)
    True
    """
    return _WAITS[source, target][asynchronous] and not is_staged(source, target, nbytes, asynchronous)


def memory_kind(array: Any) -> str:
    """Return the kind of an array's memory: "pageable", "pinned" or "device"."""
    if isinstance(array, np.ndarray | np.generic):
        return "pinned" if is_pinned(array) else "pageable"
    return "device"


def check_same(target: Any, source: Any, op: str) -> None:
    """Raise InvalidArgumentError unless both arrays have the same shape and dtype: a copy changes neither."""
    if target.shape != source.shape or target.dtype != source.dtype:
        raise InvalidArgumentError(
            op=op,
            what="a copy is between arrays of one shape and dtype",
            found={"source": f"{source.dtype}{list(source.shape)}", "target": f"{target.dtype}{list(target.shape)}"},
        )


def place_of_array(array: Any) -> Place:
    """Return the place of an array: CPUPlace for NumPy's, CUDAPinnedPlace for page-locked ones, else the array's own.

    raises InvalidArgumentError for an object that is not an array of a known device
    """
    if isinstance(array, np.ndarray | np.generic):
        return CUDAPinnedPlace() if is_pinned(array) else CPUPlace()
    place = getattr(array, "place", None)
    if isinstance(place, Place):
        return place
    if hasattr(array, "__cuda_array_interface__"):
        return CUDAPlace(int(getattr(getattr(array, "device", 0), "id", 0)))
    raise InvalidArgumentError(
        op="place_of_array", what="this is not an array of a known device", found=f"a {type(array).__name__}"
    )
