"""Heaps in kernels: an entry of which none comes before it is at the top, and sinks in log2 n turns.

Lives here: `sink`, `heaped`.  Not here: what entries are and which goes first (ordering.py, suppression.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import language as kl

Before = Callable[[Any, Any], Any]


def sink(heap: Any, hole: Any, size: Any, taken: Any, before: Before) -> None:
    """Put `taken` into the hole of the heap [0, size), or below it. before(a, b): whether a is nearer to the top."""
    hole = kl.value(hole)
    child = 2 * hole + 1
    while child < size:
        right = kl.minimum(child + 1, size - 1)
        a, b = heap[child], heap[right]
        other = before(b, a)
        child, best = kl.select(other, right, child), kl.select(other, b, a)
        sinks = before(best, taken)
        if sinks:
            heap[hole] = best
            hole = child
        child = kl.select(sinks, 2 * child + 1, size)
    heap[hole] = taken


def heaped(heap: Any, size: Any, before: Before) -> None:
    """Bring the entries [0, size) into the order of a heap."""
    half = size // 2
    for k in range(half):
        at = half - 1 - k
        sink(heap, at, size, heap[at], before)
