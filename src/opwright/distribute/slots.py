"""Arrays of tasks through memory that the processes of a host share, instead of pickles through pipes.

Lives here: `Slots`, the driver's pieces of memory; `SlotMemory`, one of them as either side has it; `opened`.
Not here: which elements a task has (inference.py), how many tasks are in flight (dispatcher.py).

A slot is an anonymous file of Linux (memfd_create), which has no name: a worker opens it as `/proc/PID/fd/N`, and the
system frees it with the last process that maps it, however that ends. The driver writes a task's arrays to the front,
the worker its outputs behind them; tasks and results carry `Placed` in place of arrays. A slot whose task was lost is
never used again, since the worker of a broken executor may go on writing to it.
"""

from __future__ import annotations

import collections
import contextlib
import math
import mmap
import os
import secrets
from typing import Any, NamedTuple

import numpy as np

from ..core import forks
from .elements import ElementColumns

ALIGNMENT = 64
"""Bytes to which arrays are aligned: the width of the widest vectors."""
LEAST_PLACED = 1 << 10
"""Smaller arrays stay in the task: their places would be as large."""
LEAST_SLOT, MOST_SLOTS = 1 << 16, 128
"""Bytes of the smallest slot; slots of a job, each an open file. Beyond, tasks have their arrays in them."""
MOST_OPENED = 256
"""Slots that a worker keeps mapped."""


class Placed(NamedTuple):
    """An array in a slot. offset: in bytes."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The array's bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class SlotReference(NamedTuple):
    """A slot as a worker finds it. name: of the file, drawn, since numbers of processes and files are used again."""

    process: int
    handle: int
    name: str
    size: int
    outputs: int


class SlotMemory:
    """A slot as this process maps it. at: the offset of the next array that is put."""

    __slots__ = ("at", "bytes", "mapped")

    def __init__(self, handle: int, size: int) -> None:
        # At once, pages that the driver has touched take a quarter of the worker's time that they take one by one.
        self.mapped = mmap.mmap(handle, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
        self.bytes = np.frombuffer(self.mapped, np.uint8)
        self.at = 0

    def array(self, placed: Placed) -> np.ndarray:
        """Return an array of the slot, a view."""
        return self.bytes[placed.offset : placed.offset + placed.size].view(placed.dtype).reshape(placed.shape)

    def put(self, array: Any) -> Any:
        """Copy an array to the slot and return its place; return it as it is if it is small, or the rest of the slot.

        array: also a list of arrays of one shape and dtype, which are stacked
        """
        rows = not isinstance(array, np.ndarray)
        first = array[0] if rows else array
        size = first.nbytes * len(array) if rows else first.nbytes
        if size < LEAST_PLACED or self.at + size > len(self.bytes) or not _has_bytes(first.dtype):
            return np.stack(array) if rows else array
        placed = Placed(self.at, first.dtype, (len(array), *first.shape) if rows else first.shape)
        view = self.array(placed)
        if rows:
            np.stack(array, out=view)
        else:
            view[...] = array
        self.at += aligned(size)
        return placed


def _has_bytes(dtype: np.dtype[Any]) -> bool:
    return not dtype.hasobject


def aligned(size: int) -> int:
    """Round a number of bytes up to the alignment of arrays."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def rounded(size: int) -> int:
    """Round the bytes of a slot up by at most an eighth, so that tasks of almost the same size fit."""
    step = 1 << max(0, (size - 1).bit_length() - 3)
    return -(-size // step) * step


def placed_size(value: Any) -> int:
    """Return the bytes that a value's arrays take of a slot."""
    if isinstance(value, ElementColumns):
        return sum(map(aligned, value.sizes))
    if isinstance(value, Placed):
        return aligned(value.size)
    if type(value) is np.ndarray:
        return aligned(value.nbytes) if value.nbytes >= LEAST_PLACED and _has_bytes(value.dtype) else 0
    if isinstance(value, dict):
        return sum(map(placed_size, value.values()))
    return sum(map(placed_size, value)) if type(value) in (list, tuple) else 0


def put_all(memory: SlotMemory, value: Any) -> Any:
    """Return a value with places instead of its arrays: columns, lists, tuples and dicts of arrays."""
    if isinstance(value, ElementColumns):
        return value.stacked(memory.put)
    if type(value) is np.ndarray:
        return memory.put(value)
    if isinstance(value, dict):
        return {key: put_all(memory, item) for key, item in value.items()}
    return type(value)(put_all(memory, item) for item in value) if type(value) in (list, tuple) else value


def get_all(memory: SlotMemory, value: Any, copy: bool = False) -> Any:
    """Return a value with arrays instead of their places: views of the slot, or copies."""
    if isinstance(value, Placed):
        return memory.array(value).copy() if copy else memory.array(value)
    if isinstance(value, ElementColumns):
        return value.stacked(lambda column: get_all(memory, column, copy))
    if isinstance(value, dict):
        return {key: get_all(memory, item, copy) for key, item in value.items()}
    return type(value)(get_all(memory, item, copy) for item in value) if type(value) in (list, tuple) else value


# ---- the driver ------------------------------------------------------------------------------------------------------


class Slot(SlotMemory):
    """A slot of this process. Closed, its memory is freed as soon as no worker maps it."""

    __slots__ = ("handle", "name")

    def __init__(self, size: int) -> None:
        self.name = f"opwright-{secrets.token_hex(8)}"
        self.handle = os.memfd_create(self.name)
        try:
            os.ftruncate(self.handle, size)
            super().__init__(self.handle, size)
        except BaseException:
            os.close(self.handle)
            raise

    def reference(self) -> SlotReference:
        """Return what a task carries; outputs are put behind the arrays that have been put."""
        return SlotReference(os.getpid(), self.handle, self.name, len(self.bytes), self.at)

    def close(self) -> None:
        """Leave the memory to the processes that map it."""
        os.close(self.handle)

    def free(self) -> None:
        """Free the memory, which no worker reads or writes any more; workers may have it mapped."""
        with contextlib.suppress(OSError):
            self.mapped.madvise(mmap.MADV_REMOVE)
        self.close()


class Slots:
    """The slots of a job, created as they are needed and used again and again. usable: whether workers see them."""

    def __init__(self, usable: bool) -> None:
        self._free: list[Slot] = []
        self._count = 0
        self.usable = usable and hasattr(os, "memfd_create")

    def acquire(self, size: int) -> Slot | None:
        """Return an empty slot of at least `size` bytes; None if there can be none."""
        if not self.usable:
            return None
        for _ in range(len(self._free)):
            slot = self._free.pop()  # the last one, which is in caches
            if len(slot.bytes) >= size:
                slot.at = 0
                return slot
            slot.free()
            self._count -= 1
        if self._count >= MOST_SLOTS:
            return None
        try:
            slot = Slot(max(LEAST_SLOT, rounded(size)))
        except OSError:  # no file or memory is left, or a sandbox forbids it
            self.usable = False
            return None
        self._count += 1
        return slot

    def release(self, slot: Slot) -> None:
        """Take back a slot that its worker does not use any more."""
        self._free.append(slot)

    def retire(self, slot: Slot) -> None:
        """Give up a slot that its worker may still use."""
        slot.close()
        self._count -= 1

    def close(self) -> None:
        """Free the slots that have been taken back."""
        while self._free:
            self._free.pop().free()


# ---- workers ---------------------------------------------------------------------------------------------------------

_opened: collections.OrderedDict[SlotReference, SlotMemory] = collections.OrderedDict()
_lock = forks.lock()


def opened(reference: SlotReference) -> SlotMemory | None:
    """Return a slot of another process, mapped for outputs; None if this process does not see it."""
    key = reference._replace(outputs=0)
    with _lock:
        memory = _opened.get(key)
        if memory is None:
            for other in [other for other in _opened if not _exists(other)]:
                del _opened[other]
            try:
                handle = os.open(_path(key), os.O_RDWR | os.O_CLOEXEC) if _exists(key) else None
                if handle is None:
                    return None
                try:
                    memory = _opened[key] = SlotMemory(handle, key.size)
                finally:
                    os.close(handle)
            except (OSError, ValueError):
                return None
            while len(_opened) > MOST_OPENED:
                _opened.popitem(last=False)
        _opened.move_to_end(key)
    memory.at = reference.outputs
    return memory


def _path(reference: SlotReference) -> str:
    return f"/proc/{reference.process}/fd/{reference.handle}"


def _exists(reference: SlotReference) -> bool:
    """Return whether the driver has a slot, and this process sees it."""
    try:
        return os.readlink(_path(reference)) == f"/memfd:{reference.name} (deleted)"
    except OSError:
        return False
