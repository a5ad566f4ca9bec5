"""Array functions of the operators of both dialects: padding, blocks, gathers, scatters, sorting, scans.

Lives here: functions of arrays only, of NumPy's or of a device's; `combine` (a fast ufunc.at), `put_last` and `merge`,
for all operators that scatter or merge rows.
Not here: operators (ops/array, ops/math, ops/image, lite/ops), their shape rules (shape_inference.py), windows
(windows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from . import like_device
from .accumulation import widened

Pairs = Sequence[tuple[int, int]]


def is_of_floats(x: np.ndarray) -> bool:
    """Return whether x is of floating numbers, bfloat16 among them."""
    return dtypes.of_numpy(x.dtype).is_floating


# ---- borders and blocks ---------------------------------------------------------------------------------------------


def padded(x: Any, pairs: Pairs, value: Any = 0) -> np.ndarray:
    """Return x with (before, after) elements of one value around each dimension (np.pad costs 60 us, this 4)."""
    result = like_device.full(x, [a + n + b for n, (a, b) in zip(x.shape, pairs)], value, x.dtype)
    inside: Any = (*(slice(a, a + n) for n, (a, _) in zip(x.shape, pairs)), ...)
    result[inside] = x
    return result


def mirror_indices(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """Return the index that each element of a mirror-padded dimension of n copies; mode: REFLECT, SYMMETRIC."""
    skip = mode == "REFLECT"
    return np.concatenate([np.arange(before)[::-1] + skip, np.arange(n), n - 1 - skip - np.arange(after)])


def mirrored(x: np.ndarray, pairs: Pairs, mode: str) -> np.ndarray:
    """Return x with a border that mirrors it: REFLECT without the edge itself, SYMMETRIC with it."""
    rows = [mirror_indices(n, before, after, mode) for n, (before, after) in zip(x.shape, pairs)]
    return x[np.ix_(*rows)] if rows else x


def space_to_depth(x: np.ndarray, size: int) -> np.ndarray:
    """Return images [n, h, w, c] with each block of size by size pixels as one pixel."""
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // size, size, w // size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, h // size, w // size, size * size * c)


def depth_to_space(x: np.ndarray, size: int) -> np.ndarray:
    """Return images [n, h, w, c] with each pixel as a block of size by size pixels."""
    n, h, w, c = x.shape
    depth = c // (size * size)
    blocks = x.reshape(n, h, w, size, size, depth).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, h * size, w * size, depth)


def space_to_batch(x: Any, block: Sequence[int], paddings: Pairs, value: Any = 0) -> np.ndarray:
    """Return x [n, *space, *inner], padded with a value, with each position within the blocks of space as a batch
    entry.
    """
    m, (n, *_), inner = len(block), x.shape, x.shape[len(block) + 1 :]
    image = padded(x, [(0, 0), *paddings, *[(0, 0)] * len(inner)], value)
    sizes = [d // b for d, b in zip(image.shape[1:], block)]
    cut = image.reshape([n, *(v for pair in zip(sizes, block) for v in pair), *inner])
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, cut.ndim)]
    return cut.transpose(order).reshape([n * math.prod(block), *sizes, *inner])


def batch_to_space(x: np.ndarray, block: Sequence[int], crops: Pairs) -> np.ndarray:
    """Return x [n prod(block), *space, *inner] with batch entries as positions within blocks of space, cropped."""
    m, n = len(block), x.shape[0] // math.prod(block)
    space, inner = x.shape[1 : m + 1], x.shape[m + 1 :]
    cut = x.reshape([*block, n, *space, *inner])
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, cut.ndim)]
    image = cut.transpose(order).reshape([n, *(d * b for d, b in zip(space, block)), *inner])
    return image[(slice(None), *(slice(a, d * k - b) for d, k, (a, b) in zip(space, block, crops)))]


def bitcast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the bits of x as elements of another dtype; a wider one takes the last dimension, a narrower adds one."""
    x = np.asarray(x, order="C") if like_device.on_host(x) else x.copy()
    if x.dtype.itemsize == dtype.itemsize:
        return x.view(dtype)
    if x.dtype.itemsize > dtype.itemsize:
        return x.reshape(*x.shape, 1).view(dtype)
    return x.view(dtype).reshape(x.shape[:-1])


# ---- elements by index ----------------------------------------------------------------------------------------------


def batch_key(indices: np.ndarray, batch_dims: int) -> tuple[Any, ...]:
    """Return index arrays of the batch dimensions that broadcast with `indices`."""
    return tuple(
        like_device.arange(indices, n).reshape(-1, *[1] * (indices.ndim - 1 - i))
        for i, n in enumerate(indices.shape[:batch_dims])
    )


def gathered(x: np.ndarray, indices: np.ndarray, axis: int, batch_dims: int) -> np.ndarray:
    """Return the slices of x along an axis that `indices` name; the first batch_dims dimensions go side by side."""
    if not batch_dims:
        return np.take(x, indices, axis)
    picked = np.moveaxis(x, axis, batch_dims)[(*batch_key(indices, batch_dims), indices)]
    middle = range(indices.ndim, indices.ndim + axis - batch_dims)  # dimensions between the batch and the axis
    return np.moveaxis(picked, tuple(middle), tuple(range(batch_dims, axis)))


def one_hot(indices: np.ndarray, depth: int, on: Any, off: Any, axis: int) -> np.ndarray:
    """Return `on` where a new axis of size depth has the index, else `off`."""
    axis %= indices.ndim + 1
    classes = like_device.arange(indices, depth).reshape((-1,) + (1,) * (indices.ndim - axis))
    result: np.ndarray = np.where(np.expand_dims(indices, axis) == classes, on, off)
    return result


def check_lengths(lengths: Any, n: int) -> None:
    """Check the lengths of sequences of up to n elements. Raises InvalidArgumentError naming the first out of range."""
    bad = np.flatnonzero((lengths < 0) | (lengths > n))
    if bad.size:
        raise InvalidArgumentError(
            what=f"seq_lengths[{bad[0]}] = {lengths[bad[0]]} is out of range",
            found=lengths[bad[0]],
            wanted=f"in [0, {n}]",
        )


def reversed_sequences(x: np.ndarray, lengths: np.ndarray, sequence_axis: int, batch_axis: int) -> np.ndarray:
    """Return x with the first lengths[b] elements of each batch entry in reverse order."""
    front = np.moveaxis(x, (batch_axis, sequence_axis), (0, 1))
    steps, ends = like_device.arange(front, front.shape[1]), lengths[:, None]
    rows = like_device.arange(front, len(front))[:, None]
    picked = front[rows, np.where(steps < ends, ends - 1 - steps, steps)]
    return np.moveaxis(picked, (0, 1), (batch_axis, sequence_axis))


# ---- order ----------------------------------------------------------------------------------------------------------


def sort_order(x: np.ndarray, descending: bool) -> np.ndarray:
    """Return the indices that sort the last dimension, stably; NaN comes last either way."""
    if x.dtype == dtypes.bfloat16.np:  # in its own order NumPy does not know NaN
        x = x.astype(np.float32)
    if descending:
        x = -x if is_of_floats(x) else ~x  # ~x reverses the order of any integers and never overflows
    return np.argsort(x, axis=-1, kind="stable")


def first_occurrences(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct elements in the order of their first, the place of each element among them, and counts."""
    if x.dtype.kind not in "biufc":  # strings, and number types NumPy does not sort
        places: dict[Any, int] = {}
        idx = np.array([places.setdefault(v, len(places)) for v in x.tolist()], np.int64)
        first = np.array([np.flatnonzero(idx == k)[0] for k in range(len(places))], np.int64)
        idx, first = like_device.array(x, idx), like_device.array(x, first)
        return x[first], idx, np.bincount(idx, minlength=len(places))
    y, first, idx, count = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = like_device.arange(order, order.size)
    return y[order], rank[idx.reshape(-1)], count[order]


# ---- scans ----------------------------------------------------------------------------------------------------------


def scanned(ufunc: np.ufunc, x: np.ndarray, axis: int, first: Any, exclusive: bool, reverse: bool) -> np.ndarray:
    """Return the scan of x by a ufunc along an axis; 16-bit floats go through float32.

    first: the first result where exclusive leaves out the element itself. reverse: from the end.
    """
    wide = widened(x)
    if not (exclusive or reverse):
        return ufunc.accumulate(wide, axis=axis, dtype=wide.dtype).astype(x.dtype, copy=False)
    lines = np.moveaxis(wide, axis, -1)
    if reverse:
        lines = lines[..., ::-1]
    if exclusive and lines.shape[-1]:
        y = like_device.empty(lines, lines.shape, wide.dtype)
        y[..., 0] = first
        ufunc.accumulate(lines[..., :-1], axis=-1, out=y[..., 1:])
    else:
        y = ufunc.accumulate(lines, axis=-1, dtype=wide.dtype)
    return np.moveaxis(y[..., ::-1] if reverse else y, -1, axis).astype(x.dtype, copy=False)


# Minimum number of rows with pending updates for which one vectorized round per update is faster; fewer rows have many
# updates each and are updated one row at a time. 4096 updates of 64 floats: 0.06 to 0.4 ms; `ufunc.at` takes 2.3.
_MIN_ROUND_ROWS = 32


# Temporaries of this size stay in the cache of a core and are reused by the allocator; temporaries of megabytes are new
# pages each time, and 4096 rows of 64 floats take 1.9 ms instead of 0.4.
_BLOCK_BYTES = 1 << 16


def rows_in_block(array: np.ndarray) -> int:
    """Return the number of rows of an array to process at a time."""
    return max(1, _BLOCK_BYTES // max(1, array.strides[0] if array.flags.c_contiguous else array[:1].nbytes))


def _ascends(indices: np.ndarray) -> bool:
    """Return whether indices are distinct and ascending, as merged rows and most lists of indices are."""
    return len(indices) < 2 or bool((indices[1:] > indices[:-1]).all())


class UpdateGroups:
    """Updates grouped by row: `order` sorts them stably; group g is at `starts[g]` to `starts[g] + counts[g]`."""

    __slots__ = ("counts", "order", "rows", "starts")

    def __init__(self, indices: np.ndarray) -> None:
        n = len(indices)
        if _ascends(indices):
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


MergeKernel = Callable[[np.ndarray, np.ndarray], "tuple[np.ndarray, np.ndarray] | None"]
_merge_kernel: MergeKernel | None = None


def set_merge_kernel(kernel: MergeKernel | None) -> None:
    """Let `merge` call a kernel first, which returns None for rows that it does not merge; the bits are the same."""
    global _merge_kernel
    _merge_kernel = kernel


def merge(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct indices, ascending, and for each the sum of its values, added in their order."""
    if not like_device.on_host(values):
        rows, inverse = np.unique(indices, return_inverse=True)
        merged = like_device.zeros(values, (len(rows), *values.shape[1:]), values.dtype)
        np.add.at(merged, inverse, values)
        return rows, merged
    if _merge_kernel is not None and not _ascends(indices):
        result = _merge_kernel(indices, values)
        if result is not None:
            return result
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
