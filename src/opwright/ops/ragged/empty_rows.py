"""Empty rows of ragged values, filled with a default value.

Lives here: `ragged_fill_empty_rows` and its gradient.
Not here: empty rows of sparse tensors (../sparse/functions.py), other functions (functions.py).
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.named_tuples import NamedTuple
from .. import array, debugging, dispatch, math
from .row_partitions import row_ids, splits_of

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
