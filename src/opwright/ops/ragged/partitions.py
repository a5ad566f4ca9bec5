"""Rows of ragged values: empty ones filled, rows by partition.

Lives here: `ragged_fill_empty_rows` and its gradient, `stack_dynamic_partitions`.
Not here: empty rows of sparse tensors (../sparse/functions.py), other functions (functions.py).
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ...core.named_tuples import NamedTuple
from .. import array, debugging, dispatch, math
from . import rows
from .ragged_tensor import RaggedTensor, row_ids, splits_of

int64 = dtypes.int64


class FilledRows(NamedTuple):
    """Values in rows none of which is empty, which rows were, and where each value is now."""

    output_value_rowids: Any
    output_values: Any
    empty_row_indicator: Any
    reverse_index_map: Any


class FilledRowsGradient(NamedTuple):
    """Gradients of the values and of the default value of `ragged_fill_empty_rows`."""

    d_values: Any
    d_default_value: Any


def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, name: str | None = None
) -> FilledRows:
    """Return rows of values with one default value in each row without any.

    value_rowids: the row of each value; nrows: how many rows there are. Raises InvalidArgumentError for a row beyond.
    """
    ids, count = array.cast(value_rowids, int64), array.cast(nrows, int64)
    x: Any = dispatch.to_tensor(values)
    debugging.assert_less(ids, count, "ragged_fill_empty_rows: a value's row is not below nrows")
    lengths = math.unsorted_segment_sum(array.ones_like(ids), ids, count)
    empty = math.equal(lengths, array.cast(0, int64))
    before, after = splits_of(lengths), splits_of(math.maximum(lengths, array.cast(1, int64)))
    order = math.argsort(ids, stable=True)
    sorted_ids = array.gather(ids, order)
    places = array.range(array.size(ids, int64)) + array.gather(after - before, sorted_ids)
    reverse = array.scatter_nd(array.expand_dims(order, 1), places, array.shape(ids, order.dtype))
    total = after[-1]
    filled = array.fill([total], dispatch.to_tensor(default_value, x.dtype))
    result = array.tensor_scatter_nd_update(filled, array.expand_dims(reverse, 1), x)
    return FilledRows(row_ids(after, total), result, empty, reverse)


def ragged_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, name: str | None = None
) -> FilledRowsGradient:
    """Return the gradients of `ragged_fill_empty_rows` for those of its values."""
    places, grads = dispatch.to_tensor(reverse_index_map), dispatch.to_tensor(grad_values)
    kept = array.gather(grads, places)
    rest = array.tensor_scatter_nd_update(grads, array.expand_dims(places, 1), array.zeros_like(kept))
    return FilledRowsGradient(kept, math.reduce_sum(rest))


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> Any:
    """Return a ragged tensor whose row i has the values of data in partition i, in their order.

    partitions: integers of the shape of data, or of its first dimensions; both may be ragged.
    raises InvalidArgumentError for a partition that is not in [0, num_partitions), and for other shapes

    >>> ow.ragged.stack_dynamic_partitions(["a", "b", "c"], [1, 0, 1], 2)
    <tf.RaggedTensor [[b'b'], [b'a', b'c']]>
    """
    x: Any = data if isinstance(data, RaggedTensor) else dispatch.to_tensor(data)
    parts: Any = partitions if isinstance(partitions, RaggedTensor) else dispatch.to_tensor(partitions)
    count = array.cast(num_partitions, int64)
    rank = parts.shape.rank
    if rank is None:
        raise ValueError("ragged.stack_dynamic_partitions: the rank of the partitions must be known")
    if rank == 0:
        return RaggedTensor.from_value_rowids(
            array.expand_dims(x, 0), array.reshape(array.cast(parts, int64), [1]), count, validate=True
        )
    if rank > 1:
        if not isinstance(x, RaggedTensor):
            x = RaggedTensor.from_tensor(x)
        if not isinstance(parts, RaggedTensor):
            parts = RaggedTensor.from_tensor(parts)
        debugging.assert_equal(
            x.row_splits, parts.row_splits, "ragged.stack_dynamic_partitions: the rows of data and partitions differ"
        )
        return stack_dynamic_partitions(x.values, parts.values, count)
    parts = array.cast(parts, int64)
    if x.shape.rank is not None and not x.shape[:1].is_compatible_with(parts.shape[:1]):
        raise InvalidArgumentError(
            op="ragged.stack_dynamic_partitions",
            what="data and partitions differ in number",
            found={"data": x.shape, "partitions": parts.shape},
        )
    debugging.assert_non_negative(parts, "ragged.stack_dynamic_partitions: partitions must be non-negative")
    debugging.assert_less(parts, count, "ragged.stack_dynamic_partitions: partitions must be less than num_partitions")
    order = math.argsort(parts, stable=True)
    values = rows.gather_rows(x, array.cast(order, int64))
    return RaggedTensor.from_value_rowids(values, array.gather(parts, order), count, validate=False)
