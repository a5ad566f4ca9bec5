"""Rows of arrays by index: equal ones added up, updates worked in one after the other.

Lives here: NumPy, for all operators that gather gradients by rows, merge them or scatter them.
Not here: the operators (rows.py, scattering.py, indexing.py, ops/state.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .. import like_device

# From so many rows on that wait for a further update they are worked in together, a round for each; fewer are rows with
# very many updates each, and go one row at a time. 4096 updates of 64 floats: 0.06 to 0.4 ms, `ufunc.at` takes 2.3.
_TOGETHER = 32


# Temporaries of so many bytes stay in a core's cache, and the allocator has them at hand: of megabytes every one is new
# pages, and 4096 rows of 64 floats take 1.9 ms in place of 0.4.
_BLOCK = 1 << 16


def rows_in_block(array: np.ndarray) -> int:
    """How many rows of an array are worked on at a time."""
    return max(1, _BLOCK // max(1, array.strides[0] if array.flags.c_contiguous else array[:1].nbytes))


class Stretches:
    """Updates by row: `order` sorts them, stably; equal rows lie at `starts` to `starts + counts`."""

    __slots__ = ("counts", "order", "rows", "starts")

    def __init__(self, indices: np.ndarray) -> None:
        n = len(indices)
        if n < 2 or bool((indices[1:] > indices[:-1]).all()):  # as a merged value is, and most lists of one's own
            self.order: np.ndarray | None = None
            self.rows, self.starts, self.counts = indices, np.arange(n), None
            return
        self.order = np.argsort(indices, kind="stable")
        ordered = indices[self.order]
        first = np.empty(n, bool)
        first[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        self.starts = np.flatnonzero(first)
        self.rows = ordered[self.starts]
        self.counts = None if len(self.rows) == n else np.diff(self.starts, append=n)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Which updates stand at these places of the sorted order."""
        return places if self.order is None else self.order[places]


def combine(ufunc: np.ufunc, array: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    """`ufunc.at(array, indices, updates)`, to the last bit, at a tenth of the time.

    Every row meets its updates in their order: first all first ones together, then all second ones, and so on.
    indices: [n], all inside; updates: [n, ...], rows as array has them.
    """
    if array.ndim == 1 or not like_device.on_host(array):
        ufunc.at(array, indices, updates)  # fast by itself where a row is a number, and on devices
        return
    found = Stretches(indices)
    size = rows_in_block(array)
    for i in range(0, len(found.rows), size):
        rows = found.rows[i : i + size]
        array[rows] = ufunc(array[rows], updates[found.at(found.starts[i : i + size])])
    if found.counts is None:
        return
    waiting, k = np.flatnonzero(found.counts > 1), 1
    while len(waiting) >= _TOGETHER:
        rows = found.rows[waiting]
        array[rows] = ufunc(array[rows], updates[found.at(found.starts[waiting] + k)])
        k += 1
        waiting = waiting[found.counts[waiting] > k]
    for i in waiting.tolist():
        start, stop = found.starts[i], found.starts[i] + found.counts[i]
        row = array[found.rows[i]]
        for update in updates[found.at(np.arange(start + k, stop))]:
            ufunc(row, update, out=row)


def put_last(array: Any, key: tuple[Any, ...], values: Any) -> None:
    """`array[key] = values`, of equal places the last: GPUs write them in any order, NumPy in theirs.

    key: index arrays of one shape; values: [*that shape, *what an index leaves].
    """
    if type(array) is np.ndarray or like_device.on_host(array):
        array[key] = values
        return
    form = key[0].shape
    last = like_device.zeros(array, array.shape[: len(key)], np.int64)
    np.maximum.at(last, key, like_device.arange(array, key[0].size).reshape(form))
    array[key] = values.reshape(key[0].size, *array.shape[len(key) :])[last[key]]


def merge(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that occur, ascending, and for each the sum of its values in the order they came."""
    if not like_device.on_host(values):
        rows, place = np.unique(indices, return_inverse=True)
        merged = like_device.zeros(values, (len(rows), *values.shape[1:]), values.dtype)
        np.add.at(merged, place, values)
        return rows, merged
    found = Stretches(indices)
    if found.order is None:
        return indices, values
    merged = values.take(found.order[found.starts], 0)
    if found.counts is None:
        return found.rows, merged
    waiting, k = np.flatnonzero(found.counts > 1), 1
    while len(waiting) >= _TOGETHER:
        merged[waiting] += values.take(found.order[found.starts[waiting] + k], 0)
        k += 1
        waiting = waiting[found.counts[waiting] > k]
    for i in waiting.tolist():
        start, stop = found.starts[i], found.starts[i] + found.counts[i]
        np.add.reduce(values.take(found.order[start:stop], 0), axis=0, out=merged[i : i + 1].reshape(merged.shape[1:]))
    return found.rows, merged


def check_inside(indices: np.ndarray, height: int, what: str) -> None:
    """Raises InvalidArgumentError naming the first index that is not in [0, height)."""
    if indices.size and (indices.min() < 0 or indices.max() >= height):
        at = np.flatnonzero((indices < 0) | (indices >= height))[0]
        raise InvalidArgumentError(
            what=f"{what}: index {indices.flat[at]} is out of range",
            wanted=f"0 <= index < {height}, the number of rows",
        )
