"""The first k of a list by falling value, equal values in the order in which the official kernels leave them.

Lives here: `falling`.  Not here: what is sorted (detection.py).

Official kernels take the first k with C++'s `partial_sort`, which is not stable: where values are equal, as the scores
of quantised models often are, the order follows from the heap it works with. Here the same steps are taken: a heap of
the first k whose top is the least, each greater one of the rest in the place of the top, then the heap taken apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def falling(values: np.ndarray, k: int) -> list[int]:
    """Indices of the k greatest, the greatest first. values: float32 [n]; 1 <= k <= n."""
    if k == 1:
        return [int(np.argmax(values))]
    if len(np.unique(values)) == len(values):
        return [int(i) for i in np.argsort(-values, kind="stable")[:k]]
    listed = values.tolist()
    return _partial_sort(listed, list(range(len(listed))), k)


def _partial_sort(values: list[float], indices: list[int], k: int) -> list[int]:
    for parent in range(k // 2 - 1, -1, -1):
        _sift(values, indices, parent, k, indices[parent])
    for i in range(k, len(indices)):
        if values[indices[i]] > values[indices[0]]:
            taken, indices[i] = indices[i], indices[0]
            _sift(values, indices, 0, k, taken)
    for last in range(k - 1, 0, -1):
        taken, indices[last] = indices[last], indices[0]
        _sift(values, indices, 0, last, taken)
    return indices[:k]


def _sift(values: list[float], heap: list[Any], hole: int, size: int, taken: int) -> None:
    """Put `taken` where the heap [0, size) has a hole: the hole goes down to a leaf, then `taken` rises from there."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * child + 2
        if values[heap[child]] > values[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and values[heap[(hole - 1) // 2]] > values[taken]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = taken
