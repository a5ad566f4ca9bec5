"""Offline memory planning: offsets in one arena for buffers whose lifetimes are known.

Lives here: `plan_arena`.  Not here: which buffers there are (a plan's or an interpreter's business).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Allocation:
    """A buffer's need: `size` bytes from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def plan_arena(buffers: Sequence[Allocation], alignment: int = 64) -> tuple[list[int], int]:
    """An offset for each buffer, so that buffers alive together never overlap; and the arena's size in bytes.

    Greedy by size: the largest first, each at the lowest offset free over its whole life (Pisarchyk and Lee,
    "Efficient Memory Management for Deep Neural Net Inference", 2020). Offsets are multiples of `alignment`.
    """
    order = sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, buffers[i].first, i))
    offsets = [0] * len(buffers)
    placed: list[tuple[int, int, Allocation]] = []  # (offset, end, buffer), by offset
    total = 0
    for i in order:
        b = buffers[i]
        if b.size == 0:
            continue
        size = -(-b.size // alignment) * alignment
        at = 0
        for offset, end, other in placed:
            if other.last < b.first or b.last < other.first:
                continue
            if offset - at >= size:
                break
            at = max(at, end)
        offsets[i] = at
        placed.append((at, at + size, b))
        placed.sort(key=lambda p: p[0])
        total = max(total, at + size)
    return offsets, total
