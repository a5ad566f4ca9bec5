"""Scatter and segment sums of rows, on arrays.

Lives here: `combine` (a fast ufunc.at), `put_last`, `merge`, for all operators that scatter or merge rows.
Not here: the operators (sparse_rows.py, scatter.py, indexing.py, ops/state.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import like_device

# Minimum number of rows with pending updates for which one vectorized round per update is faster; fewer rows have many
# updates each and are updated one row at a time. 4096 updates of 64 floats: 0.06 to 0.4 ms; `ufunc.at` takes 2.3.
_MIN_ROUND_ROWS = 32


# Temporaries of this size stay in the cache of a core and are reused by the allocator; temporaries of megabytes are new
# pages each time, and 4096 rows of 64 floats take 1.9 ms instead of 0.4.
_BLOCK_BYTES = 1 << 16


def rows_in_block(array: np.ndarray) -> int:
    """Return the number of rows of an array to process at a time."""
    return max(1, _BLOCK_BYTES // max(1, array.strides[0] if array.flags.c_contiguous else array[:1].nbytes))


class UpdateGroups:
    """Updates grouped by row: `order` sorts them stably; group g is at `starts[g]` to `starts[g] + counts[g]`."""

    __slots__ = ("counts", "order", "rows", "starts")

    def __init__(self, indices: np.ndarray) -> None:
        n = len(indices)
        if n < 2 or bool((indices[1:] > indices[:-1]).all()):  # ascending, as merged rows and most index lists are
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

    def updates_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the indices of the updates at positions of the sorted order."""
        return positions if self.order is None else self.order[positions]


def combine(ufunc: np.ufunc, array: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    """Compute `ufunc.at(array, indices, updates)`, bit for bit, in a tenth of the time.

    Applies the updates of each row in their order: the first updates of all rows at once, then the second ones, etc.
    indices: [n], all in range; updates: [n, *array.shape[1:]].
    """
    if array.ndim == 1 or not like_device.on_host(array):
        ufunc.at(array, indices, updates)  # fast enough if rows are numbers, and on devices
        return
    groups = UpdateGroups(indices)
    size = rows_in_block(array)
    for i in range(0, len(groups.rows), size):
        rows = groups.rows[i : i + size]
        array[rows] = ufunc(array[rows], updates[groups.updates_at(groups.starts[i : i + size])])
    if groups.counts is None:
        return
    pending, k = np.flatnonzero(groups.counts > 1), 1
    while len(pending) >= _MIN_ROUND_ROWS:
        rows = groups.rows[pending]
        array[rows] = ufunc(array[rows], updates[groups.updates_at(groups.starts[pending] + k)])
        k += 1
        pending = pending[groups.counts[pending] > k]
    for i in pending.tolist():
        start, stop = groups.starts[i], groups.starts[i] + groups.counts[i]
        row = array[groups.rows[i]]
        for update in updates[groups.updates_at(np.arange(start + k, stop))]:
            ufunc(row, update, out=row)


def put_last(array: Any, key: tuple[Any, ...], values: Any) -> None:
    """Assign `array[key] = values`; of repeated indices the last value wins, also on GPUs, which write in any order.

    key: index arrays of one shape; values: [*that shape, *array.shape[len(key):]].
    """
    if type(array) is np.ndarray or like_device.on_host(array):
        array[key] = values
        return
    index_shape = key[0].shape
    last = like_device.zeros(array, array.shape[: len(key)], np.int64)
    np.maximum.at(last, key, like_device.arange(array, key[0].size).reshape(index_shape))
    array[key] = values.reshape(key[0].size, *array.shape[len(key) :])[last[key]]


def merge(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct indices, ascending, and for each the sum of its values, added in their order."""
    if not like_device.on_host(values):
        rows, inverse = np.unique(indices, return_inverse=True)
        merged = like_device.zeros(values, (len(rows), *values.shape[1:]), values.dtype)
        np.add.at(merged, inverse, values)
        return rows, merged
    groups = UpdateGroups(indices)
    if groups.order is None:
        return indices, values
    merged = values.take(groups.order[groups.starts], 0)
    if groups.counts is None:
        return groups.rows, merged
    pending, k = np.flatnonzero(groups.counts > 1), 1
    while len(pending) >= _MIN_ROUND_ROWS:
        merged[pending] += values.take(groups.order[groups.starts[pending] + k], 0)
        k += 1
        pending = pending[groups.counts[pending] > k]
    for i in pending.tolist():
        start, stop = groups.starts[i], groups.starts[i] + groups.counts[i]
        np.add.reduce(values.take(groups.order[start:stop], 0), axis=0, out=merged[i : i + 1].reshape(merged.shape[1:]))
    return groups.rows, merged
