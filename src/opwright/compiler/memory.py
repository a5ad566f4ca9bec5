"""Memory of plans: lifetimes of buffers, in-place results, offsets in one arena; reuse of large results.

Lives here: `Lifetimes`, `plan_arena`; `large`, the memory of results of native calls.
Not here: which buffers there are, and which results may overwrite operands (the planners).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..core import forks
from ..core.errors import ResourceExhaustedError
from ..core.lazy_imports import finalizer
from ..core.named_tuples import NamedTuple

Key = TypeVar("Key", bound=Hashable)

ALIASES = ("Identity", "StopGradient")
"""Operators of the catalogue whose result is their operand: without a tape, they only rename."""


class Allocation(NamedTuple):
    """A request of `size` bytes from step `first` to step `last`, inclusive."""

    size: int
    first: int
    last: int


class Lifetimes(Generic[Key]):
    """The first and the last step that access each buffer. Keys are values, names or identities.

    A result may reuse the memory of an operand at a step that is the last to access the operand and the first to access
    the result (`may_share`); afterwards (`share`), both are one buffer under the operand's key.
    """

    __slots__ = ("_roots", "_spans")

    def __init__(self) -> None:
        self._spans: dict[Key, tuple[int, int]] = {}
        self._roots: dict[Key, Key] = {}

    def touch(self, key: Key, step: int, last: int | None = None) -> None:
        """Extend the lifetime of a buffer to a step, or from one step to another."""
        root, last = self.root(key), step if last is None else last
        span = self._spans.get(root)
        self._spans[root] = (step, last) if span is None else (min(step, span[0]), max(last, span[1]))

    def root(self, key: Key) -> Key:
        """Return the key of the buffer whose memory a result shares; its own if it shares none."""
        return self._roots.get(key, key)

    def __contains__(self, key: Key) -> bool:
        return self.root(key) in self._spans

    def span(self, key: Key) -> tuple[int, int]:
        """Return the first and the last step. Raises KeyError for a buffer without accesses."""
        return self._spans[self.root(key)]

    def is_dead_after(self, key: Key, step: int) -> bool:
        """Return whether no later step accesses a buffer."""
        span = self._spans.get(self.root(key))
        return span is None or span[1] <= step

    def may_share(self, operand: Key, result: Key, step: int) -> bool:
        """Return whether the step is the last to access the operand and the first to access the result."""
        return self.root(operand) != self.root(result) and self.span(operand)[1] == step == self.span(result)[0]

    def share(self, operand: Key, result: Key) -> None:
        """Place a result in the memory of the operand, which lives until both are dead."""
        root, last = self.root(operand), self._spans.pop(result)[1]
        self._roots[result] = root
        self.touch(root, last)

    def items(self) -> Iterator[tuple[Key, tuple[int, int]]]:
        """Yield each buffer with its own memory, and its span."""
        yield from self._spans.items()


def plan_arena(buffers: Sequence[Allocation], alignment: int = 64) -> tuple[list[int], int]:
    """Return an offset for each buffer such that buffers alive at the same time do not overlap, and the arena's size in
    bytes.

    Greedy by size: the largest first, each at the lowest offset free over its whole lifetime (Pisarchyk and Lee,
    "Efficient Memory Management for Deep Neural Net Inference", 2020). If that exceeds the maximum of live bytes, other
    orders (`ORDERS`, `_by_distance`) are tried, and the smallest arena is used. Offsets are multiples of `alignment`.
    """
    sizes = [-(-b.size // alignment) * alignment for b in buffers]
    (lower_bound, peak), best = _most_alive(buffers, sizes), None
    for order in (*ORDERS, _by_distance(peak)):
        packing = _packed(buffers, sizes, sorted(range(len(buffers)), key=lambda i: (*order(buffers[i]), i)))
        if best is None or packing[1] < best[1]:
            best = packing
        if best[1] == lower_bound:
            break
    assert best is not None
    return best


ORDERS: tuple[Callable[[Allocation], tuple[int, int]], ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (b.first, -b.size),
)
"""Orders of placement, tried one after the other while memory is wasted: by size, by lifetime, by first access; the
last one is `_by_distance`."""


def _by_distance(peak: int) -> Callable[[Allocation], tuple[int, int]]:
    """Return the order by distance from a step, then by lifetime: buffers alive at the peak are placed without gaps,
    the longest-lived lowest, and others where these leave memory. A training step of U-Net needs it."""
    return lambda b: (max(b.first - peak, peak - b.last, 0), b.first - b.last)


def _most_alive(buffers: Sequence[Allocation], sizes: Sequence[int]) -> tuple[int, int]:
    """Return the maximum of live bytes over all steps, a lower bound of the arena, and the first step that has it."""
    changes: dict[int, int] = {}
    for b, size in zip(buffers, sizes):
        changes[b.first] = changes.get(b.first, 0) + size
        changes[b.last + 1] = changes.get(b.last + 1, 0) - size
    steps = sorted(changes)
    alive = itertools.accumulate(changes[step] for step in steps)
    most, step = max(zip(alive, (-step for step in steps)), default=(0, 0))
    return most, -step


def _packed(buffers: Sequence[Allocation], sizes: Sequence[int], order: Sequence[int]) -> tuple[list[int], int]:
    """Return offsets of the buffers, placed in this order, and the end of the last."""
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int, Allocation]] = []  # (offset, end, buffer), by offset
    total = 0
    for i in order:
        b, size = buffers[i], sizes[i]
        if size == 0:
            continue
        position = 0
        for offset, end, other in placed:
            if other.last < b.first or b.last < other.first:
                continue
            if offset - position >= size:
                break
            position = max(position, end)
        offsets[i] = position
        bisect.insort(placed, (position, position + size, b), key=lambda p: p[0])
        total = max(total, position + size)
    return offsets, total


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

    @finalizer
    def __del__(self) -> None:
        global _kept_bytes
        memory = self.base
        if type(memory) is _OwnedBytes:
            with _lock:
                if _kept_bytes + memory.nbytes <= KEPT:
                    _kept_bytes += memory.nbytes
                    _kept.setdefault(memory.nbytes, []).append(memory)


def large(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return np.empty for sizes of at least LARGE, in memory that an earlier array of the same size released.

    raises ResourceExhaustedError
    """
    global _kept_bytes
    nbytes = math.prod(shape) * dtype.itemsize
    memory = None
    with _lock:
        if blocks := _kept.get(nbytes):
            memory = blocks.pop()
            _kept_bytes -= nbytes
    if memory is None:
        try:
            memory = _OwnedBytes(nbytes, np.uint8)
        except (MemoryError, ValueError) as error:  # ValueError: more than there are addresses
            raise ResourceExhaustedError(what=f"no memory for a result of {nbytes} bytes", found=str(error)) from None
    return np.ndarray(shape, dtype, memory.view(_Block))
