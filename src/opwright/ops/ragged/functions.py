"""Functions on ragged tensors: `ow.ragged`.

Lives here: construction from lists and ranges, maps, stacks, masks, segments.
Not here: the type (ragged_tensor.py), operators of the catalogue on ragged operands (operations.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes, nest
from ...core.dtypes import as_dtype
from ...core.errors import InvalidArgumentError
from .. import array, debugging, dispatch, math
from . import operations, shapes
from .ragged_tensor import RaggedTensor
from .row_partitions import row_ids, splits_of
from .rows import gather_rows, range_in_rows

int64 = dtypes.int64


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = int64,
    name: str | None = None,
) -> Any:
    """Return the ragged tensor of nested lists; a tensor if they are not nested.

    ragged_rank: how many levels of lists are rows of different lengths; by default all but the innermost lists' own
    elements. inner_shape: the shape of the elements of the innermost rows.
    raises ValueError for elements at different depths

    >>> ow.ragged.constant([[1, 2], [], [3]])
    <tf.RaggedTensor [[1, 2], [], [3]]>
    """
    target = None if dtype is None else as_dtype(dtype)
    if not isinstance(pylist, (list, tuple, np.ndarray)):
        return dispatch.to_tensor(pylist, target)
    depth = _depth(pylist)
    inner = None if inner_shape is None else tuple(inner_shape)
    if ragged_rank is None:
        ragged_rank = max(0, depth - 1 - (0 if inner is None else len(inner)))
    if ragged_rank >= max(depth, 1) and depth > 0 and _has_scalars(pylist):
        raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
    level: Any = pylist
    lengths = []
    for _ in range_(ragged_rank):
        if any(not isinstance(row, (list, tuple, np.ndarray)) for row in level):
            raise ValueError(f"Invalid pylist={pylist!r}: all scalar values must have the same nesting depth")
        lengths.append([len(row) for row in level])
        level = [value for row in level for value in row]
    if len(level) == 0:
        base = target or dtypes.float32
        flat = dispatch.to_tensor(np.zeros((0, *(inner or ())), base.np), base)
    else:
        if inner is None and not _is_regular(level):
            raise ValueError(f"Invalid pylist={pylist!r}: all scalar values must have the same nesting depth")
        flat = dispatch.to_tensor(level, target)
        if inner is not None:
            flat = array.reshape(flat, [-1, *inner])
    if not lengths:
        return flat
    return RaggedTensor.from_nested_row_lengths(flat, [np.array(n, np.int64) for n in lengths], validate=False)


range_ = range


def _depth(value: Any) -> int:
    """Return how deeply lists are nested, at least."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.ndim
    if not isinstance(value, (list, tuple, np.ndarray)):
        return 0
    return 1 + max((_depth(v) for v in value), default=0)


def _has_scalars(value: Any) -> bool:
    if not isinstance(value, (list, tuple, np.ndarray)):
        return True
    return any(map(_has_scalars, value))


def _is_regular(level: Any) -> bool:
    depths = {_depth(v) for v in level}
    return len(depths) == 1


def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    row_splits_dtype: Any = int64,
    name: str | None = None,
) -> Any:
    """Return rows start, start + delta, ... below limit, for vectors of starts, limits and deltas, or scalars.

    raises InvalidArgumentError for vectors of different sizes, higher ranks and deltas of 0

    >>> ow.ragged.range([0, 5], [3, 7])
    <tf.RaggedTensor [[0, 1, 2], [5, 6]]>
    """
    if limits is None:
        starts, limits = 0, starts
    parts = [dispatch.to_tensor(v) for v in (starts, limits, deltas)]
    sizes = {p.shape[0] for p in parts if p.shape.rank == 1} - {None}
    if len(sizes) > 1 or any(p.shape.rank not in (0, 1, None) for p in parts):
        raise InvalidArgumentError(
            op="ragged.range",
            what="starts, limits and deltas are scalars, or vectors of one size",
            found=[p.shape for p in parts],
        )
    wide = (
        as_dtype(dtype) if dtype is not None else max((p.dtype for p in parts), key=lambda d: (d.is_floating, d.size))
    )
    start, limit, delta = (array.cast(p, wide) for p in parts)
    zero = array.zeros_like(start + limit + delta)
    start, limit, delta = (array.reshape(v + zero, [-1]) for v in (start, limit, delta))
    debugging.assert_none_equal(delta, array.cast(0, wide), message="ragged.range: deltas must not be 0")
    counts = math.ceil(math.divide(array.cast(limit - start, dtypes.float64), array.cast(delta, dtypes.float64)))
    lengths = math.maximum(array.cast(counts, int64), array.cast(0, int64))
    splits = splits_of(lengths)
    rows = row_ids(splits, splits[-1])
    steps = array.cast(range_in_rows(lengths), wide)
    values = array.gather(start, rows) + steps * array.gather(delta, rows)
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Return tensors and ragged tensors, which may differ in the lengths of rows, along a new axis."""
    parts = [v if isinstance(v, RaggedTensor) else dispatch.to_tensor(v) for v in values]
    return shapes.stack(parts, axis)


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return op(*args, **kwargs) with ragged arguments replaced by their flat values, in the same rows.

    raises ValueError unless the result has as many values
    """
    ragged = [x for x in nest.flatten([args, kwargs]) if isinstance(x, RaggedTensor)]
    if not ragged:
        return op(*args, **kwargs)
    first = ragged[0]
    flat_args, flat_kwargs = nest.map_structure(
        lambda x: operations.matching(x, first, "map_flat_values") if isinstance(x, RaggedTensor) else x,
        (list(args), kwargs),
    )
    result = op(*flat_args, **flat_kwargs)
    count, expected = getattr(result, "shape", [None])[:1], first.flat_values.shape[:1]
    if hasattr(count, "is_compatible_with") and not count.is_compatible_with(expected):
        raise ValueError(
            f"tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as "
            f"flat_values of any ragged inputs. (output: {count}; expected: {expected})"
        )
    return first.with_flat_values(result)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """Return the values where the mask is true, row by row: rows of the mask become rows of the result.

    mask: of the shape of data, or of its first dimensions; a tensor or ragged tensor.
    """
    mask = mask if isinstance(mask, RaggedTensor) else dispatch.to_tensor(mask, dtypes.bool)
    data = data if isinstance(data, RaggedTensor) else dispatch.to_tensor(data)
    if isinstance(mask, RaggedTensor):
        values = data.values if isinstance(data, RaggedTensor) else RaggedTensor.from_tensor(data).values
        kept = boolean_mask(values, mask.values)
        if isinstance(mask.values, RaggedTensor):
            return mask.with_values(kept)
        counts = math.unsorted_segment_sum(array.cast(mask.values, int64), mask.value_rowids(), mask.nrows())
        return RaggedTensor.from_row_lengths(kept, counts, validate=False)
    rank = mask.shape.rank
    if rank == 1:
        return gather_rows(data, array.reshape(array.where(mask), [-1]))
    ragged_mask = RaggedTensor.from_tensor(mask, ragged_rank=rank - 1)
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, ragged_rank=rank - 1)
    return boolean_mask(data, ragged_mask)


def row_splits_to_segment_ids(splits: Any, out_type: Any = None, name: str | None = None) -> Any:
    """Return the row of each value, as row splits say: [0, 2, 2, 3] to [0, 0, 2].

    splits: integers [rows + 1], from 0, not falling. Returns [splits[-1]], of out_type, by default int64
    """
    splits = array.cast(splits, int64)
    ids = row_ids(splits, splits[-1])
    return ids if out_type is None else array.cast(ids, out_type)


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Any:
    """Return the row splits of sorted segment ids: where the values of each row begin, and where the last ends.

    segment_ids: integers [n], not falling; num_segments: the number of rows, by default the last id + 1; out_type: of
    the result [rows + 1]. raises InvalidArgumentError for ids that fall or are out of range

    >>> segment_ids_to_row_splits([0, 0, 2])
    [0, 2, 2, 3]
    """
    splits = RaggedTensor.from_value_rowids(segment_ids, segment_ids, num_segments).row_splits
    return splits if out_type is None else array.cast(splits, out_type)


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
    values = gather_rows(x, array.cast(order, int64))
    return RaggedTensor.from_value_rowids(values, array.gather(parts, order), count, validate=False)
