"""Functions of sparse tensors row by row and of two at a time.

Lives here: maximum, minimum, softmax, split, bincount, segments of gathered rows, rows of IndexedSlices.
Not here: the other functions (functions.py), the type (sparse_tensor.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import array, debugging, dispatch, math
from ..indexed_slices import IndexedSlices
from ..ragged.ragged_tensor import RaggedTensor
from ..tensor import Tensor
from .functions import _numbers, _positions, _sparse, slice
from .sparse_tensor import SparseTensor

int64 = dtypes.int64


def _merged(sp_a: Any, sp_b: Any, function: Callable[..., Any], op: str) -> SparseTensor:
    """Return function(a, b) wherever one of two sparse tensors has an element."""
    a, b = _sparse(sp_a, op), _sparse(sp_b, op)
    debugging.assert_equal(a.dense_shape, b.dense_shape, f"{op}: the shapes of the operands differ")
    numbers = array.concat([_numbers(x.indices, x.dense_shape) for x in (a, b)], 0)
    order = math.argsort(numbers, stable=True)
    places, segments = array.unique(array.gather(numbers, order))
    columns = [
        array.concat([a.values, array.zeros_like(b.values)], 0),
        array.concat([array.zeros_like(a.values), b.values], 0),
    ]
    one, other = (math.unsorted_segment_sum(array.gather(c, order), segments, array.size(places)) for c in columns)
    return SparseTensor.of(_positions(places, a.dense_shape), function(one, other), a.dense_shape, a.shape)


def maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """Return the greater of two elements wherever one of them is not 0, as which the other counts."""
    return _merged(sp_a, sp_b, math.maximum, "sparse.maximum")


def minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """Return the smaller of two elements wherever one of them is not 0, as which the other counts."""
    return _merged(sp_a, sp_b, math.minimum, "sparse.minimum")


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Return the softmax of the elements of each row along the last axis; what is not stored has no share."""
    x = _sparse(sp_input, "sparse.softmax")
    rows = _numbers(x.indices[:, :-1], x.dense_shape[:-1])
    count = math.reduce_prod(x.dense_shape[:-1])
    greatest = array.stop_gradient(math.unsorted_segment_max(x.values, rows, count))
    powers = math.exp(x.values - array.gather(greatest, rows))
    totals = math.unsorted_segment_sum(powers, rows, count)
    return x.with_values(powers / array.gather(totals, rows))


def split(sp_input: SparseTensor, num_split: int, axis: int, name: str | None = None) -> list[SparseTensor]:
    """Return num_split parts along an axis; the first ones are longer by one if the size is not a multiple."""
    x = _sparse(sp_input, "sparse.split")
    rank = x.shape.rank
    if rank is None:
        raise ValueError("sparse.split: the rank must be known")
    if not isinstance(axis, int):
        raise InvalidArgumentError(op="sparse.split", what="axis should be a scalar", found=axis)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(op="sparse.split", what=f"axis should be in range [-{rank}, {rank})", found=axis)
    unit = array.one_hot(axis % rank, rank, dtype=int64)
    size = x.dense_shape[axis % rank]
    least, rest = math.floordiv(size, array.cast(num_split, int64)), size % array.cast(num_split, int64)
    parts, start = [], array.cast(0, int64)
    for i in range(num_split):
        length = least + array.cast(array.cast(i, int64) < rest, int64)
        parts.append(slice(x, start * unit, x.dense_shape * (array.cast(1, int64) - unit) + length * unit))
        start = start + length
    return parts


def mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Return the rows of IndexedSlices whose index is not one of mask_indices."""
    indices = dispatch.to_tensor(a.indices)
    hidden = array.reshape(dispatch.to_tensor(mask_indices, indices.dtype), [1, -1])
    kept = math.reduce_all(math.not_equal(array.expand_dims(indices, 1), hidden), axis=1)
    return IndexedSlices(array.boolean_mask(a.values, kept), array.boolean_mask(indices, kept), a.dense_shape)


def _segments(function: Callable[..., Any], data: Any, indices: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    ids = dispatch.to_tensor(segment_ids)
    if num_segments is None:
        num_segments = math.reduce_max(array.concat([ids, -array.ones([1], ids.dtype)], 0)) + 1
    result: Tensor = function(array.gather(data, indices), ids, num_segments)
    return result


def segment_sum(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Return sums of the rows data[indices] by segment. num_segments: by default up to the last id."""
    return _segments(math.unsorted_segment_sum, data, indices, segment_ids, num_segments)


def segment_mean(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Return means of the rows data[indices] by segment, 0 of none."""
    return _segments(math.unsorted_segment_mean, data, indices, segment_ids, num_segments)


def segment_sqrt_n(
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Return sums of the rows data[indices] by segment, divided by the square root of their number."""
    return _segments(math.unsorted_segment_sqrt_n, data, indices, segment_ids, num_segments)


def bincount(
    values: Any,
    weights: Any = None,
    axis: int | None = 0,
    minlength: int | None = None,
    maxlength: int | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Return how often each integer occurs: a SparseTensor [bins], or with axis=-1 [rows, bins].

    values: a tensor, or a sparse or ragged one of rank 2. weights: added instead of 1, like values. minlength,
    maxlength: of bins; greater values are left out. binary_output: 1 for each that occurs. Counts have the dtype of
    values.
    raises ValueError for another axis, InvalidArgumentError for negative values
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    if binary_output and weights is not None:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    flat, rows, count = _elements(values)
    amounts = array.ones_like(flat) if weights is None else _elements(weights)[0]
    flat = array.cast(flat, int64)
    debugging.assert_non_negative(flat, "sparse.bincount: values must not be negative")
    if maxlength is not None:
        kept = flat < array.cast(maxlength, int64)
        flat, rows, amounts = (array.boolean_mask(t, kept) for t in (flat, rows, amounts))
    bins = math.reduce_max(array.concat([flat, array.cast([(minlength or 0) - 1], int64)], 0)) + 1
    if axis != -1:
        rows, count = array.zeros_like(rows), array.cast(1, int64)
    numbers = rows * bins + flat
    order = math.argsort(numbers, stable=True)
    places, segments = array.unique(array.gather(numbers, order))
    totals = math.unsorted_segment_sum(array.gather(amounts, order), segments, array.size(places))
    if binary_output:
        totals = array.ones_like(totals)
    shape = array.stack([count, bins]) if axis == -1 else array.stack([bins])
    return SparseTensor.of(_positions(places, shape), totals, shape)


def _elements(values: Any) -> tuple[Any, Any, Any]:
    """Return the elements of a tensor of rank 1 or 2, the row of each, and the number of rows."""
    if isinstance(values, SparseTensor):
        return values.values, values.indices[:, 0], values.dense_shape[0]
    if isinstance(values, RaggedTensor):
        return values.flat_values, values.value_rowids(), values.nrows()
    tensor = dispatch.to_tensor(values)
    flat, count = array.reshape(tensor, [-1]), array.shape(tensor, int64)[0]
    width = math.floordiv(array.size(flat, int64), math.maximum(count, array.cast(1, int64)))
    return (
        flat,
        math.floordiv(array.range(array.size(flat, int64), dtype=int64), math.maximum(width, array.cast(1, int64))),
        count,
    )
