"""Reductions by segment: rows with the same id are reduced together.

Lives here: SegmentSum, SegmentMean, SegmentMax, SegmentMin, SegmentProd, whose ids rise, and what all segments share.
Not here: ids in any order (unsorted_segment.py), reductions over axes (reduction.py), gathering rows (ops/array).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index, numeric, real
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import array
from ..definition import Input, Output, operator
from .segment_sums import SEGMENT_SUM, reduce_rows

# ---- sorted ids ---------------------------------------------------------------------------------------------------


def _sorted_spec(op: Any) -> TensorSpec:
    data, ids = op.data.spec, op.segment_ids
    if data.shape.rank == 0:
        raise InvalidArgumentError(what="data is a scalar", found=data.short(), wanted="at least one dimension")
    if data.shape.rank is not None and not TensorShape(data.shape[:1]).is_compatible_with(ids.spec.shape):
        raise InvalidArgumentError(what="segment_ids should be the same size as dimension 0 of input",
                                   found=f"{data.short()}, {ids.spec.short()}")  # fmt: skip
    if data.shape.rank is None:
        return TensorSpec(UNKNOWN, data.dtype)
    known = ids.constant
    n = None if known is None else int(known[-1]) + 1 if known.size else 0
    return TensorSpec([None if n is None or n < 0 else n, *data.shape[1:]], data.dtype)


def _count_segments(data: np.ndarray, ids: np.ndarray) -> int:
    """The last id plus one. Raises InvalidArgumentError where ids do not rise or are negative."""
    if ids.shape != data.shape[:1]:
        raise InvalidArgumentError(what="segment_ids should be the same size as dimension 0 of input",
                                   found=f"{list(data.shape)}, {list(ids.shape)}")  # fmt: skip
    if ids.size == 0:
        return 0
    if np.any(ids[1:] < ids[:-1]):
        raise InvalidArgumentError(
            what="segment ids are not increasing", do="the unsorted_segment functions take any order"
        )
    if ids[0] < 0:
        raise InvalidArgumentError(what=f"Segment id {ids[0]} out of range", wanted="segment ids of at least 0")
    return int(ids[-1]) + 1


def _per_row(op: Any, value: Any) -> Any:
    """For each row of data, `value` of its segment."""
    return array.gather(value, op.segment_ids)


def _extreme_gradient(op: Any, doutput: Any) -> Any:
    """The gradient goes to the extremes of each segment, in equal parts where there are several."""
    chosen = array.cast(op.data == _per_row(op, op.output), op.data.dtype)
    shares = _per_row(op, SegmentSum(chosen, op.segment_ids))
    return chosen / shares * _per_row(op, doutput), None


@operator
class SegmentSum:
    """Sum of the rows of each segment; 0 for a segment without rows.

    .. math:: output_i = \\sum_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(numeric)
    segment_ids = Input(index, rank=1)
    output = Output(like="data")
    no_need_buffer = ("data",)
    lod = "vanishes"
    infer = _sorted_spec

    def compute(op, data, segment_ids) -> Any:
        return SEGMENT_SUM(op, data, segment_ids, _count_segments(data, segment_ids))

    def gradient(op, doutput) -> Any:
        return _per_row(op, doutput), None


@operator
class SegmentMean:
    """Mean of the rows of each segment; 0 for a segment without rows. Means of integers are cut toward zero.

    .. math:: output_i = \\frac{1}{n_i} \\sum_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(numeric)
    segment_ids = Input(index, rank=1)
    output = Output(like="data")
    no_need_buffer = ("data",)
    lod = "vanishes"
    infer = _sorted_spec

    def compute(op, data, segment_ids) -> Any:
        n = _count_segments(data, segment_ids)
        half = data.dtype in (dtypes.float16.np, dtypes.bfloat16.np)
        total = reduce_rows(np.add, data.astype(np.float32) if half else data, segment_ids, n, 0)
        counts = np.maximum(np.bincount(segment_ids, minlength=n), 1).reshape(-1, *[1] * (data.ndim - 1))
        if data.dtype.kind in "iu":
            return (np.sign(total) * (np.abs(total) // counts)).astype(data.dtype)
        return (total / counts.astype(total.dtype)).astype(data.dtype)

    def gradient(op, doutput) -> Any:
        rows = SegmentSum(array.cast(array.ones_like(op.segment_ids), doutput.dtype), op.segment_ids)
        return _per_row(op, doutput) / as_column(_per_row(op, rows), op.data), None


def as_column(x: Any, data: Any) -> Any:
    """x [n...] as [n..., 1...], with the rank of data."""
    if data.shape.rank is not None and x.shape.rank is not None:
        for _ in range(data.shape.rank - x.shape.rank):
            x = array.expand_dims(x, -1)
        return x
    ones = array.ones_like(array.shape_op(data))
    return array.reshape(x, array.concat([array.shape_op(x), ones[array.rank(x) :]], 0))


@operator
class SegmentMax:
    """Largest of the rows of each segment, element by element; 0 for a segment without rows.

    .. math:: output_i = \\max_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(real)
    segment_ids = Input(index, rank=1)
    output = Output(like="data")
    lod = "vanishes"
    infer = _sorted_spec

    def compute(op, data, segment_ids) -> Any:
        return reduce_rows(np.maximum, data, segment_ids, _count_segments(data, segment_ids), 0)

    gradient = _extreme_gradient


@operator
class SegmentMin:
    """Smallest of the rows of each segment, element by element; 0 for a segment without rows.

    .. math:: output_i = \\min_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(real)
    segment_ids = Input(index, rank=1)
    output = Output(like="data")
    lod = "vanishes"
    infer = _sorted_spec

    def compute(op, data, segment_ids) -> Any:
        return reduce_rows(np.minimum, data, segment_ids, _count_segments(data, segment_ids), 0)

    gradient = _extreme_gradient


def product_gradient(op: Any, doutput: Any, products: Any, sums: Any, spread: Any) -> Any:
    """The product of each row's others: 0 where another is zero, else the product of the non-zero ones without itself.

    products, sums: reduce rows by segment; spread: gives each row its segment's value.
    """
    data = op.data
    zero = data == array.zeros_like(data)
    nonzero = array.where(zero, array.ones_like(data), data)
    ones = array.cast(zero, data.dtype)
    other_zeros = spread(sums(ones)) - ones
    others = spread(products(nonzero)) / nonzero
    return _conj(array.where(other_zeros == array.zeros_like(data), others, array.zeros_like(data))) * spread(doutput)


def _conj(x: Any) -> Any:
    from .arithmetic import _conj as conj_of_complex

    return conj_of_complex(x)


@operator
class SegmentProd:
    """Product of the rows of each segment; 1 for a segment without rows.

    .. math:: output_i = \\prod_{j: ids_j = i} data_j

    data: [n, ...]; segment_ids: [n], rising from 0 up, gaps allowed. Output: [last id + 1, ...].
    raises InvalidArgumentError for ids that do not rise, are negative, or are not n
    """

    data = Input(numeric)
    segment_ids = Input(index, rank=1)
    output = Output(like="data")
    lod = "vanishes"
    infer = _sorted_spec

    def compute(op, data, segment_ids) -> Any:
        return reduce_rows(np.multiply, data, segment_ids, _count_segments(data, segment_ids), 1)

    def gradient(op, doutput) -> Any:
        ids = op.segment_ids
        return product_gradient(op, doutput, lambda x: SegmentProd(x, ids), lambda x: SegmentSum(x, ids),
                                 lambda x: _per_row(op, x)), None  # fmt: skip


segment_sum = SegmentSum.as_function("segment_sum")
segment_mean = SegmentMean.as_function("segment_mean")
segment_max = SegmentMax.as_function("segment_max")
segment_min = SegmentMin.as_function("segment_min")
segment_prod = SegmentProd.as_function("segment_prod")
