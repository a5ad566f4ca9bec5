"""Reductions by segment with ids in any order, and a given number of segments.

Lives here: UnsortedSegmentSum, UnsortedSegmentMax, UnsortedSegmentMin, UnsortedSegmentProd, mean and sqrt_n over them.
Not here: ids that rise, and what all segments share (segment.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index, numeric, of_numpy, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, math, registry
from ..array import indexing
from ..definition import operator
from ..index_shapes import misfit_segments, unsorted_segment_dims
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from .segment import UNSORTED_SEGMENT_SUM, as_column, product_gradient, reduce_rows

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


def _spec(op: Any) -> TensorSpec:
    count = None if op.num_segments.constant is None else int(op.num_segments.constant)
    return TensorSpec(unsorted_segment_dims(op.data.spec, op.segment_ids.spec, count), op.data.spec.dtype)


def _compute(op: Any, ufunc: np.ufunc, data: np.ndarray, ids: np.ndarray, num_segments: Any, empty: Any) -> np.ndarray:
    n, depth = int(num_segments), np.ndim(ids)
    if data.shape[:depth] != ids.shape:
        raise misfit_segments({"data": list(data.shape), "segment_ids": list(ids.shape)})
    flat = ids.reshape(-1)
    if np.any(flat >= n):
        index = int(np.argmax(flat >= n))
        raise InvalidArgumentError(what=f"segment_ids[{index}] = {flat[index]} is out of range [0, {n})")
    rows = data.reshape(flat.size, *data.shape[depth:])
    return UNSORTED_SEGMENT_SUM(op, rows, flat, n) if ufunc is np.add else reduce_rows(ufunc, rows, flat, n, empty)


def _per_row(op: Any, value: Any) -> Tensor:
    """Return, for each row of data, `value` of its segment; 0 for rows that are in none."""
    ids = op.segment_ids
    mask = ids >= array.zeros_like(ids)
    values = array.gather(value, array.where(mask, ids, array.zeros_like(ids)))
    return array.where(as_column(mask, values), values, array.zeros_like(values))


def _sums(op: Any, rows: Any) -> Tensor:
    return UnsortedSegmentSum(rows, op.segment_ids, op.num_segments)


def _extreme_gradient(op: Any, doutput: Any) -> tuple[Any, None, None]:
    """Return the gradient of the extremes of each segment, shared equally among equal elements."""
    chosen = array.cast(op.data == _per_row(op, op.output), op.data.dtype)
    shares = _per_row(op, _sums(op, chosen))
    shares = array.where(shares > 0, shares, array.ones_like(shares))
    return chosen / shares * _per_row(op, doutput), None, None


class _UnsortedSegmentReduction(OperatorDefinition):
    """Base of reductions by segments whose rows are anywhere."""

    data = Input(numeric)
    segment_ids = Input(index)
    num_segments = Input(index, rank=0)
    output = Output(like="data")
    lod = "vanishes"
    infer = _spec


@operator
class UnsortedSegmentSum(_UnsortedSegmentReduction):
    """Sum of the rows of each segment; 0 for a segment without rows.

    .. math:: output_i = \\sum_{j: ids_j = i} data_j

    data: [n..., ...]; segment_ids: [n...], those below 0 leave their rows out; num_segments: a scalar.
    Output: [num_segments, ...].
    raises InvalidArgumentError for an id that is not below num_segments
    """

    no_need_buffer = ("data",)

    def compute(op, data: Any, segment_ids: Any, num_segments: Any) -> np.ndarray:
        return _compute(op, np.add, data, segment_ids, num_segments, 0)

    def gradient(op, doutput: Any) -> tuple[Any, None, None]:
        return _per_row(op, doutput), None, None


@operator
class UnsortedSegmentMax(_UnsortedSegmentReduction):
    """Largest of the rows of each segment; the smallest number of the dtype for a segment without rows.

    .. math:: output_i = \\max_{j: ids_j = i} data_j

    data: [n..., ...]; segment_ids: [n...], those below 0 leave their rows out; num_segments: a scalar.
    Output: [num_segments, ...].
    raises InvalidArgumentError for an id that is not below num_segments
    """

    data = Input(real)

    def compute(op, data: Any, segment_ids: Any, num_segments: Any) -> np.ndarray:
        return _compute(op, np.maximum, data, segment_ids, num_segments, of_numpy(data.dtype).min)

    gradient = _extreme_gradient


@operator
class UnsortedSegmentMin(_UnsortedSegmentReduction):
    """Smallest of the rows of each segment; the largest number of the dtype for a segment without rows.

    .. math:: output_i = \\min_{j: ids_j = i} data_j

    data: [n..., ...]; segment_ids: [n...], those below 0 leave their rows out; num_segments: a scalar.
    Output: [num_segments, ...].
    raises InvalidArgumentError for an id that is not below num_segments
    """

    data = Input(real)

    def compute(op, data: Any, segment_ids: Any, num_segments: Any) -> np.ndarray:
        return _compute(op, np.minimum, data, segment_ids, num_segments, of_numpy(data.dtype).max)

    gradient = _extreme_gradient


@operator
class UnsortedSegmentProd(_UnsortedSegmentReduction):
    """Product of the rows of each segment; 1 for a segment without rows.

    .. math:: output_i = \\prod_{j: ids_j = i} data_j

    data: [n..., ...]; segment_ids: [n...], those below 0 leave their rows out; num_segments: a scalar.
    Output: [num_segments, ...].
    raises InvalidArgumentError for an id that is not below num_segments
    """

    def compute(op, data: Any, segment_ids: Any, num_segments: Any) -> np.ndarray:
        return _compute(op, np.multiply, data, segment_ids, num_segments, 1)

    def gradient(op, doutput: Any) -> tuple[Any, None, None]:
        return (
            product_gradient(
                op,
                doutput,
                lambda x: UnsortedSegmentProd(x, op.segment_ids, op.num_segments),
                lambda x: _sums(op, x),
                lambda x: _per_row(op, x),
            ),
            None,
            None,
        )


@documented_by(UnsortedSegmentSum)
def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Sum the rows of each segment."""
    return UnsortedSegmentSum(data, indexing.wide_index(segment_ids), num_segments, name=name)


registry.name_function("unsorted_segment_sum", registry.get("UnsortedSegmentSum"))


unsorted_segment_max: signatures.UnsortedSegmentMax = UnsortedSegmentMax.as_function("unsorted_segment_max")
unsorted_segment_min: signatures.UnsortedSegmentMin = UnsortedSegmentMin.as_function("unsorted_segment_min")
unsorted_segment_prod: signatures.UnsortedSegmentProd = UnsortedSegmentProd.as_function("unsorted_segment_prod")


def _sums_and_counts(data: Any, segment_ids: Any, num_segments: Any) -> tuple[Any, Any]:
    """Return the sums of rows by segment, and the number of rows of each, at least 1."""
    data, ids = dispatch.to_tensor(data), dispatch.to_tensor(segment_ids)
    if not (data.dtype.is_floating or data.dtype.is_complex):
        data = array.cast(data, dtypes.float32 if data.dtype.size <= 2 else dtypes.float64)
    total = UnsortedSegmentSum(data, ids, num_segments)
    wide = dtypes.float32 if data.dtype.size < 4 else data.dtype.real_dtype
    rows = UnsortedSegmentSum(array.cast(array.ones_like(ids), wide), ids, num_segments)
    return total, as_column(array.where(rows > 0, rows, array.ones_like(rows)), total)


@documented_by(UnsortedSegmentSum)
def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Average the rows of each segment; 0 for an empty one. Integers are converted to floating point."""
    total, counts = _sums_and_counts(data, segment_ids, num_segments)
    return array.identity(total / array.cast(counts, total.dtype), name=name)


@documented_by(UnsortedSegmentSum)
def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Sum the rows of each segment, divided by the square root of their number."""
    total, counts = _sums_and_counts(data, segment_ids, num_segments)
    return array.identity(total / array.cast(math.sqrt(counts), total.dtype), name=name)
