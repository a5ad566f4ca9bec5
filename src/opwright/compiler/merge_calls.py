"""Sparse rows merged by machine code: `merge` of ops/array_functions.py with the same bits, in a quarter of its time.

Lives here: `merged_rows`, `use_machine_code`.
Not here: the kernels (kernels/row_steps.py), steps of optimizers, which merge rows inside of plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.dtypes import as_dtype, float32, float64, int32, int64
from ..core.errors import InternalError
from ..ops import array_functions
from .kernels import row_steps
from .native import executor as native
from .native.workers import raise_pending

LEAST_ROWS, LEAST_WIDTH = 256, 4
"""Rows and their elements below which NumPy is as fast."""


def use_machine_code() -> None:
    """Make `merge` use machine code in this process: training on several workers merges rows in every step."""
    array_functions.set_merge_kernel(merged_rows)


def merged_rows(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the result of `merge`; None for rows that have no machine code.

    indices: [n], not ascending; values: [n, ...]
    """
    n, width = len(indices), math.prod(values.shape[1:])
    if n < LEAST_ROWS or width < LEAST_WIDTH or not (values.flags.c_contiguous and indices.flags.c_contiguous):
        return None
    dtype, index = as_dtype(values.dtype), as_dtype(indices.dtype)
    if dtype not in (float32, float64) or index not in (int32, int64):
        return None
    least, greatest = int(indices.min()), int(indices.max())
    if least < 0 or max(n, greatest) >= 1 << (row_steps.POSITION_BITS - 1):
        return None
    digits = max(1, -(-greatest.bit_length() // row_steps.DIGIT_BITS))
    keys, counters = np.empty(2 * n, np.int64), np.empty(1 << row_steps.DIGIT_BITS, np.int64)
    _call(row_steps.sort_rows.code(dtype=index, digits=digits).address, [indices, keys, n], counters)
    rows, merged, count = np.empty_like(indices), np.empty_like(values), np.empty(1, np.int64)
    words: list[np.ndarray | int] = [keys[n * (digits % 2) :], n, width, values, rows, merged, count]
    _call(row_steps.merge_sorted_rows.code(dtype=dtype, index=index).address, words, counters)
    distinct = int(count[0])
    return rows[:distinct], merged[:distinct]


def _call(address: int, words: Sequence[np.ndarray | int], scratch: np.ndarray) -> None:
    numbers = np.array([w if isinstance(w, int) else w.ctypes.data for w in words], np.int64)
    status = native.call(address, numbers, scratch=scratch)
    if status:
        raise_pending()
        raise InternalError(op="MergeRows", what=f"machine code returned {status}")
