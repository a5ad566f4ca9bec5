"""Accumulation: the dtype of sums, and the order in which many elements are added.

Lives here: `wide`, `wide_dtype` and `widened`, by which 16-bit floats are accumulated in float32; `sum_over` and
`mean_over` axes, in blocks where NumPy would add one row after the other.
Not here: the operators (math/reduction.py), sums over segments and windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtypes import DType, bfloat16, float16, float32
from .shape_inference import axes_in

Axes = tuple[int, ...] | None

BLOCK = 64
"""How many rows each partial sum of a long sum has."""
LONG = 256
"""The number of rows up to which one is added after the other."""


def wide(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype to accumulate in: float32 for the 16-bit floats, else the dtype itself."""
    result: np.dtype[Any] = np.dtype(dtype)
    if result.itemsize != 2:  # bfloat16.np imports ml_dtypes
        return result
    return np.dtype(np.float32) if result in (float16.np, bfloat16.np) else result


def wide_dtype(dtype: DType) -> DType:
    """Return the DType to accumulate in; see `wide`."""
    return float32 if dtype in (float16, bfloat16) else dtype


def widened(x: np.ndarray) -> np.ndarray:
    """Convert 16-bit floats to float32, in which sums are accumulated; return others unchanged."""
    return x.astype(wide(x.dtype), copy=False)


def sum_over(x: np.ndarray, axis: Axes, dtype: np.dtype, keepdims: bool = False) -> np.ndarray:
    """Sum over axes in a dtype; None: over all."""
    if x.size > LONG and axis and len(axis) < x.ndim and dtype.kind in "fc" and type(x) is np.ndarray:
        kept = x.shape[len(axis) :]
        count = x.size // int(np.prod(kept, dtype=np.int64))
        if LONG < count < x.size and x.flags.c_contiguous and sorted(axes_in(axis, x.ndim)) == list(range(len(axis))):
            total = _sum_of_rows(x.reshape(count, *kept), dtype)
            return total.reshape((1,) * len(axis) + kept) if keepdims else total
    add: Any = np.add  # `np.sum` takes a microsecond longer to choose the same reduction
    result: np.ndarray = add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)
    return result


def mean_over(x: np.ndarray, axis: Axes, dtype: np.dtype, keepdims: bool = False) -> np.ndarray:
    """Divide the sum over axes by the number of its elements: NaN of none."""
    mean: np.ndarray = np.divide(sum_over(x, axis, dtype, keepdims), dtype.type(count_over(x, axis)))
    return mean


def count_over(x: np.ndarray, axis: Axes) -> int:
    """Return how many elements a sum over axes adds."""
    return x.size if axis is None else int(np.prod([x.shape[a] for a in axis], dtype=np.int64))


def _sum_of_rows(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Sum over the first axis: partial sums of BLOCK rows each, then their sums.

    NumPy adds one row after the other, with an error that rises with the number of rows, where along the last axis it
    adds in pairs. Blocks have an error of about BLOCK log_BLOCK(n) roundings, and take less time if rows are short.
    """
    add: Any = np.add
    while len(x) > LONG:
        parts = len(x) // BLOCK
        whole, rest = x[: parts * BLOCK], x[parts * BLOCK :]
        x = add.reduce(whole.reshape(BLOCK, parts, *x.shape[1:]), axis=0, dtype=dtype)
        if len(rest):
            x = np.concatenate([x, rest], dtype=dtype)
    result: np.ndarray = add.reduce(x, axis=0, dtype=dtype)
    return result
