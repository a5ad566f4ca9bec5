"""Sums of rows by segment: the ways to compute them, and where each pays.

Lives here: `reduce_rows`, which any reduction can use, and the algorithms of SegmentSum and UnsortedSegmentSum.
Not here: the operators (segment.py, unsorted_segment.py).

All add in the order of rows, whatever the number of threads, but for `product`, whose order is BLAS's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from .. import beside
from ..array.row_arrays import combine
from ..strategies import Strategies, Strategy

_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def reduce_rows(ufunc: np.ufunc, data: np.ndarray, ids: np.ndarray, n: int, empty: Any) -> np.ndarray:
    """[n, ...]: `ufunc` over the rows of `data` by their ids, those below 0 left out; `empty` where there are none.

    Rows are sorted by id, stably, so that each segment is one stretch; 16-bit floats go through float32.
    """
    half = data.dtype in (dtypes.float16.np, dtypes.bfloat16.np)
    out = beside.full(data, (n, *data.shape[1:]), empty, np.float32 if half else data.dtype)
    if ufunc in (np.maximum, np.minimum) and not beside.on_host(data):
        inside = ids >= 0  # GPUs have no `reduceat` of these; of several rows any may come first
        places, rows = ids[inside], data[inside].astype(out.dtype, copy=False)
        out[places] = rows
        ufunc.at(out, places, rows)
        return out.astype(data.dtype, copy=False)
    order = np.argsort(ids, kind="stable")
    order = order[np.searchsorted(ids[order], 0) :]
    if order.size:
        sorted_ids = ids[order]
        first = beside.empty(ids, len(sorted_ids), np.bool_)
        first[0] = True
        np.not_equal(sorted_ids[1:], sorted_ids[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        out[sorted_ids[starts]] = ufunc.reduceat(
            data[order].astype(out.dtype, copy=False), starts, axis=0, dtype=out.dtype
        )
    return out.astype(data.dtype, copy=False)


# ---- algorithms: fn(op, data, ids, n), ids flat and below n ---------------------------------------------------------


def _by_sorting(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    return reduce_rows(np.add, data, ids, n, 0)


def _of_sorted(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """As by sorting, of ids that rise already: nothing is sorted, no row is copied."""
    half = data.dtype.itemsize == 2 and data.dtype.kind not in "iu"
    out = np.zeros((n, *data.shape[1:]), np.float32 if half else data.dtype)
    if ids.size:
        first = np.empty(len(ids), bool)
        first[0] = True
        np.not_equal(ids[1:], ids[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        out[ids[starts]] = np.add.reduceat(data.astype(out.dtype, copy=False), starts, axis=0, dtype=out.dtype)
    return out.astype(data.dtype, copy=False)


def _inside(data: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not ids.size or int(ids.min()) >= 0:
        return data, ids
    kept = ids >= 0
    return data[kept], ids[kept]


def _counted(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """Numbers, not rows: added up in float64 as they come."""
    data, ids = _inside(data, ids)
    if not ids.size or not n:
        return np.zeros(n, data.dtype)
    return np.bincount(ids, data, n).astype(data.dtype, copy=False)


def _one_by_one(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """All first rows of segments together, then all second ones: for many segments of few rows."""
    data, ids = _inside(data, ids)
    out = np.zeros((n, *data.shape[1:]), data.dtype)
    combine(np.add, out, ids, data)
    return out


def _product(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """A matrix of zeros and ones times the rows. A NaN or an infinity would get into every segment: then by sorting."""
    rows, places = _inside(data, ids)
    chosen = np.zeros((n, len(places)), data.dtype)
    chosen[places, np.arange(len(places))] = 1
    out = (chosen @ rows.reshape(len(places), -1)).reshape(n, *data.shape[1:])
    return out if np.isfinite(out).all() else _by_sorting(op, data, ids, n)


def _scalars(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> bool:
    return data.ndim == 1 and data.dtype in _FLOATS


def _rows(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> bool:
    return data.ndim > 1 and data.dtype in _FLOATS and data.size > 0


def _width(data: np.ndarray) -> int:
    return data.size // max(len(data), 1)


_COUNTED = Strategy("count", _counted, _scalars, "numbers in place of rows", "segment_sum_scalars", fits=_scalars,
                    tolerance=4096)  # fmt: skip
_PRODUCT = Strategy(
    "product", _product,
    lambda op, data, ids, n: _rows(op, data, ids, n) and 0 < n <= 32 and len(ids) <= 16384 and _width(data) >= 8
    and 4 * n <= len(ids),
    "at most 32 segments of at least 4 rows of at least 8 floats", "segment_sum_few",
    fits=lambda op, data, ids, n: _rows(op, data, ids, n) and n * len(ids) <= 1 << 22, tolerance=4096,
)  # fmt: skip
_ROUNDS = Strategy(
    "rounds", _one_by_one,
    lambda op, data, ids, n: _rows(op, data, ids, n) and 2 * n >= len(ids) >= 1024 and _width(data) >= 32,
    "at most 2 rows a segment, at least 1024 rows of at least 32 floats", "segment_sum_many",
    fits=_rows, tolerance=4096,
)  # fmt: skip
_SORTED = Strategy("rising", _of_sorted, lambda op, data, ids, n: True, "its ids rise", "segment_sum_rising")

UNSORTED_SEGMENT_SUM = Strategies(
    "UnsortedSegmentSum", _by_sorting, _COUNTED, _PRODUCT, _ROUNDS,
    prepare=lambda op, data, ids, n: (data.reshape(ids.size, *data.shape[ids.ndim :]), ids.reshape(-1), int(n)),
)  # fmt: skip
SEGMENT_SUM = Strategies("SegmentSum", _by_sorting, _SORTED, prepare=lambda op, data, ids: (data, ids, 1))
