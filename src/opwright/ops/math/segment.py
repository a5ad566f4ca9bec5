"""Reductions by segment: rows with the same id are reduced together.

Lives here: SegmentSum, SegmentMean, SegmentMax, SegmentMin, SegmentProd, whose ids rise; `reduce_rows`, which any
reduction can use, and the algorithms of the sums, each with the shapes where it pays.
Not here: ids in any order (unsorted_segment.py), reductions over axes (reduction.py), gathering rows (ops/array).

All algorithms of sums add in the order of rows, whatever the number of threads, but for `product`, whose order is
BLAS's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index, numeric, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, like_device
from ..accumulation import wide, widened
from ..array_functions import combine
from ..definition import operator
from ..index_shapes import count_segments, segment_dims
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy
from .arithmetic import _conj

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor

_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def reduce_rows(ufunc: np.ufunc, data: np.ndarray, ids: np.ndarray, n: int, empty: Any) -> np.ndarray:
    """[n, ...]: `ufunc` over the rows of `data` by their ids, those below 0 left out; `empty` where there are none.

    Rows are sorted by id, stably, so that each segment is one stretch; 16-bit floats go through float32.
    """
    out = like_device.full(data, (n, *data.shape[1:]), empty, wide(data.dtype))
    if ufunc in (np.maximum, np.minimum) and not like_device.on_host(data):
        inside = ids >= 0  # GPUs have no `reduceat` of these; of several rows any may come first
        places, rows = ids[inside], data[inside].astype(out.dtype, copy=False)
        out[places] = rows
        ufunc.at(out, places, rows)
        return out.astype(data.dtype, copy=False)
    order = np.argsort(ids, kind="stable")
    order = order[np.searchsorted(ids[order], 0) :]
    if order.size:
        sorted_ids = ids[order]
        first = like_device.empty(ids, len(sorted_ids), np.bool_)
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
    """Sum rows whose ids increase: nothing is sorted, no row is copied."""
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
    mask = ids >= 0
    return data[mask], ids[mask]


def _counted(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """Numbers, not rows: added up in float64 as they come."""
    data, ids = _inside(data, ids)
    if not ids.size or not n:
        return np.zeros(n, data.dtype)
    return np.bincount(ids, data, n).astype(data.dtype, copy=False)


def _one_by_one(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """Sum the first rows of all segments, then the second ones: for many segments of few rows."""
    data, ids = _inside(data, ids)
    out = np.zeros((n, *data.shape[1:]), data.dtype)
    combine(np.add, out, ids, data)
    return out


def _product(op: Any, data: np.ndarray, ids: np.ndarray, n: int) -> np.ndarray:
    """Multiply the rows by a matrix of zeros and ones; fall back to sorting if NaN or infinity would spread."""
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


_COUNTED = Strategy(
    "count", _counted, _scalars, "numbers in place of rows", "segment_sum_scalars", fits=_scalars, tolerance=4096
)
_PRODUCT = Strategy(
    "product",
    _product,
    lambda op, data, ids, n: (
        _rows(op, data, ids, n) and 0 < n <= 32 and len(ids) <= 16384 and _width(data) >= 8 and 4 * n <= len(ids)
    ),
    "at most 32 segments of at least 4 rows of at least 8 floats",
    "segment_sum_few",
    fits=lambda op, data, ids, n: _rows(op, data, ids, n) and n * len(ids) <= 1 << 22,
    tolerance=4096,
)
_ROUNDS = Strategy(
    "rounds",
    _one_by_one,
    lambda op, data, ids, n: _rows(op, data, ids, n) and 2 * n >= len(ids) >= 1024 and _width(data) >= 32,
    "at most 2 rows a segment, at least 1024 rows of at least 32 floats",
    "segment_sum_many",
    fits=_rows,
    tolerance=4096,
)
_SORTED = Strategy("rising", _of_sorted, lambda op, data, ids, n: True, "its ids rise", "segment_sum_rising")

UNSORTED_SEGMENT_SUM = Strategies(
    "UnsortedSegmentSum",
    _by_sorting,
    _COUNTED,
    _PRODUCT,
    _ROUNDS,
    prepare=lambda op, data, ids, n: (data.reshape(ids.size, *data.shape[ids.ndim :]), ids.reshape(-1), int(n)),
)
SEGMENT_SUM = Strategies("SegmentSum", _by_sorting, _SORTED, prepare=lambda op, data, ids: (data, ids, 1))


# ---- sorted ids ---------------------------------------------------------------------------------------------------


def _sorted_spec(op: Any) -> TensorSpec:
    dims = segment_dims(op.data.spec, op.segment_ids.spec, op.segment_ids.constant)
    return TensorSpec(dims, op.data.spec.dtype)


def _count_segments(data: np.ndarray, ids: np.ndarray) -> int:
    """Return the last id plus one. Raises InvalidArgumentError for ids that decrease or are negative."""
    if ids.shape != data.shape[:1]:
        raise InvalidArgumentError(
            what="segment_ids should be the same size as dimension 0 of input",
            found=f"{list(data.shape)}, {list(ids.shape)}",
        )
    return count_segments(ids)


def _per_row(op: Any, value: Any) -> Tensor:
    """Return, for each row of data, `value` of its segment."""
    return array.gather(value, op.segment_ids)


def _extreme_gradient(op: Any, doutput: Any) -> tuple[Any, None]:
    """Return the gradient of the extremes of each segment, shared equally among equal elements."""
    chosen = array.cast(op.data == _per_row(op, op.output), op.data.dtype)
    shares = _per_row(op, SegmentSum(chosen, op.segment_ids))
    return chosen / shares * _per_row(op, doutput), None


class _SegmentReduction(OperatorDefinition):
    """Base of reductions by segments of adjacent rows."""

    data = Input(numeric)
    segment_ids = Input(index, rank=1)
    output = Output(like="data")
    lod = "vanishes"
    infer = _sorted_spec


@operator
class SegmentSum(_SegmentReduction):
    """Sum of the rows of each segment; 0 for a segment without rows.

    .. math:: output_i = \\sum_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    no_need_buffer = ("data",)

    def compute(op, data: Any, segment_ids: Any) -> np.ndarray:
        result: np.ndarray = SEGMENT_SUM(op, data, segment_ids, _count_segments(data, segment_ids))
        return result

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return _per_row(op, doutput), None


@operator
class SegmentMean(_SegmentReduction):
    """Mean of the rows of each segment; 0 for a segment without rows. Means of integers are cut toward zero.

    .. math:: output_i = \\frac{1}{n_i} \\sum_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    no_need_buffer = ("data",)

    def compute(op, data: Any, segment_ids: Any) -> np.ndarray:
        n = _count_segments(data, segment_ids)
        total = reduce_rows(np.add, widened(data), segment_ids, n, 0)
        counts = np.maximum(np.bincount(segment_ids, minlength=n), 1).reshape(-1, *[1] * (data.ndim - 1))
        if data.dtype.kind in "iu":
            result: np.ndarray = (np.sign(total) * (np.abs(total) // counts)).astype(data.dtype)
            return result
        output: np.ndarray = (total / counts.astype(total.dtype)).astype(data.dtype)
        return output

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        rows = SegmentSum(array.cast(array.ones_like(op.segment_ids), doutput.dtype), op.segment_ids)
        return _per_row(op, doutput) / as_column(_per_row(op, rows), op.data), None


def as_column(x: Any, data: Any) -> Tensor:
    """x [n...] as [n..., 1...], with the rank of data."""
    if data.shape.rank is not None and x.shape.rank is not None:
        for _ in range(data.shape.rank - x.shape.rank):
            x = array.expand_dims(x, -1)
        result: Tensor = x
        return result
    ones = array.ones_like(array.shape_op(data))
    return array.reshape(x, array.concat([array.shape_op(x), ones[array.rank(x) :]], 0))


@operator
class SegmentMax(_SegmentReduction):
    """Largest of the rows of each segment, element by element; 0 for a segment without rows.

    .. math:: output_i = \\max_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(real)

    def compute(op, data: Any, segment_ids: Any) -> np.ndarray:
        return reduce_rows(np.maximum, data, segment_ids, _count_segments(data, segment_ids), 0)

    gradient = _extreme_gradient


@operator
class SegmentMin(_SegmentReduction):
    """Smallest of the rows of each segment, element by element; 0 for a segment without rows.

    .. math:: output_i = \\min_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(real)

    def compute(op, data: Any, segment_ids: Any) -> np.ndarray:
        return reduce_rows(np.minimum, data, segment_ids, _count_segments(data, segment_ids), 0)

    gradient = _extreme_gradient


def product_gradient(op: Any, doutput: Any, products: Any, sums: Any, spread: Any) -> Tensor:
    """Return the gradient of a product: per row the product of the others in its segment, without dividing by zero.

    products, sums: reduce rows by segment; spread: gives each row its segment's value.
    """
    data = op.data
    zero = data == array.zero_of(data)
    nonzero = array.where(zero, array.ones_like(data), data)
    ones = array.cast(zero, data.dtype)
    other_zeros = spread(sums(ones)) - ones
    others = spread(products(nonzero)) / nonzero
    result: Tensor = _conj(array.where(other_zeros == array.zero_of(data), others, array.zero_of(data))) * spread(
        doutput
    )
    return result


@operator
class SegmentProd(_SegmentReduction):
    """Product of the rows of each segment; 1 for a segment without rows.

    .. math:: output_i = \\prod_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    def compute(op, data: Any, segment_ids: Any) -> np.ndarray:
        return reduce_rows(np.multiply, data, segment_ids, _count_segments(data, segment_ids), 1)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        ids = op.segment_ids
        return product_gradient(
            op, doutput, lambda x: SegmentProd(x, ids), lambda x: SegmentSum(x, ids), lambda x: _per_row(op, x)
        ), None


segment_sum: signatures.SegmentSum = SegmentSum.as_function("segment_sum")
segment_mean: signatures.SegmentMean = SegmentMean.as_function("segment_mean")
segment_max: signatures.SegmentMax = SegmentMax.as_function("segment_max")
segment_min: signatures.SegmentMin = SegmentMin.as_function("segment_min")
segment_prod: signatures.SegmentProd = SegmentProd.as_function("segment_prod")
