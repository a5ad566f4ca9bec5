"""Offline memory planning: offsets in one arena for buffers whose lifetimes are known.

Lives here: `plan_arena`.  Not here: which buffers there are (a plan's or an interpreter's business).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Allocation:
    """A buffer's need: `size` bytes from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def plan_arena(buffers: Sequence[Allocation], alignment: int = 64) -> tuple[list[int], int]:
    """An offset for each buffer, so that buffers alive together never overlap; and the arena's size in bytes.

    Greedy, each at the lowest offset free over its whole life: the largest first (Pisarchyk and Lee, "Efficient Memory
    Management for Deep Neural Net Inference", 2020). Where that takes more than what is alive together at some step,
    other orders (`ORDERS`) are tried, and the smallest arena is taken. Offsets are multiples of `alignment`.
    """
    sizes = [-(-b.size // alignment) * alignment for b in buffers]
    least, best = _alive(buffers, sizes), None
    for order in ORDERS:
        found = _packed(buffers, sizes, sorted(range(len(buffers)), key=lambda i: (*order(buffers[i]), i)))
        if best is None or found[1] < best[1]:
            best = found
        if best[1] == least:
            break
    assert best is not None
    return best


ORDERS: tuple[Callable[[Allocation], tuple[int, int]], ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (b.first, -b.size),
)
"""What comes first, each order tried where those before it waste memory: the largest; what lives longest; what is made
first."""


def _alive(buffers: Sequence[Allocation], sizes: Sequence[int]) -> int:
    """The most bytes that are alive at a step, than which no arena is smaller."""
    changes: dict[int, int] = {}
    for b, size in zip(buffers, sizes):
        changes[b.first] = changes.get(b.first, 0) + size
        changes[b.last + 1] = changes.get(b.last + 1, 0) - size
    return max(itertools.accumulate(changes[step] for step in sorted(changes)), default=0)


def _packed(buffers: Sequence[Allocation], sizes: Sequence[int], order: Sequence[int]) -> tuple[list[int], int]:
    """Offsets of the buffers, placed in this order, and the end of the last."""
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int, Allocation]] = []  # (offset, end, buffer), by offset
    total = 0
    for i in order:
        b, size = buffers[i], sizes[i]
        if size == 0:
            continue
        at = 0
        for offset, end, other in placed:
            if other.last < b.first or b.last < other.first:
                continue
            if offset - at >= size:
                break
            at = max(at, end)
        offsets[i] = at
        bisect.insort(placed, (at, at + size, b), key=lambda p: p[0])
        total = max(total, at + size)
    return offsets, total
