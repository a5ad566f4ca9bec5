"""Calls of the catalogue's operators with ragged operands: element by element, reductions, rows chosen and joined.

Lives here: `call`, which operators it supports, broadcasting.
Not here: the type (ragged_tensor.py), public functions (functions.py), rows (rows.py), shapes (shapes.py), slices
(slices.py), conversions (conversions.py).

A call maps the flat values where the operator works element by element; what else is supported has a row in `CALLS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import int64
from ...core.errors import InvalidArgumentError, UnimplementedError
from .. import array, debugging, dispatch, math
from .conversions import to_sparse
from .ragged_tensor import RaggedTensor
from .rows import gather_rows, range_in_rows
from .shapes import concat, expand_dims, squeeze, stack, tile
from .slices import row

# ---- element by element ----------------------------------------------------------------------------------------------

UNARY = frozenset(
    {
        *("Cast", "AsString", "StringToNumber", "StringLower", "StringUpper", "StringStrip", "StringLength", "Substr"),
        *("RegexReplace", "RegexFullMatch", "UnicodeTranscode", "UnicodeScript", "ClipByValue"),
        *("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringJoin", "Select"),
        *("ZerosLike", "OnesLike", "StopGradient"),
    }
)
"""Operators that work on single elements, besides others that declare it (`Operator.elementwise`)."""


def _elementwise(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    ragged = [x for group in inputs for x in _group(group) if isinstance(x, RaggedTensor)]
    first = max(ragged, key=lambda x: x.ragged_rank)

    def flat(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return tuple(map(flat, x))
        if isinstance(x, RaggedTensor):
            return matching(x, first, op.name)
        return x if x is None or _is_flat(x, first) else _broadcast(x, first, op.name)

    return first.with_flat_values(dispatch.call(op, [flat(x) for x in inputs], bound, name))


def _group(x: Any) -> Sequence[Any]:
    return x if isinstance(x, (tuple, list)) else (x,)


def _is_flat(x: Any, like: RaggedTensor) -> bool:
    """Return whether a tensor broadcasts against the flat values as it is."""
    rank, inner = x.shape.rank, like.flat_values.shape.rank
    return bool((rank is not None and inner is not None and rank < inner) or rank == 0)


def matching(x: RaggedTensor, like: RaggedTensor, name: str) -> Any:
    """Return the flat values of a tensor with the same partitions. Raises InvalidArgumentError for others."""
    if x is like:
        return x.flat_values
    if x.ragged_rank != like.ragged_rank:
        inner = RaggedTensor.of(like.flat_values, like.nested_row_splits[-x.ragged_rank :])
        return matching(x, inner, name)
    for mine, other in zip(x.nested_row_splits, like.nested_row_splits):
        if mine is not other:
            if mine.shape.is_fully_defined() and other.shape.is_fully_defined() and mine.shape != other.shape:
                raise InvalidArgumentError(
                    op=name,
                    what="the rows of ragged operands do not match",
                    found=f"{mine.shape[0] - 1} and {other.shape[0] - 1} rows",
                )
            debugging.assert_equal(mine, other, f"{name}: the rows of ragged operands differ in length")
    return x.flat_values


def _broadcast(x: Any, like: RaggedTensor, name: str) -> Any:
    """Return the elements of a tensor for the flat values of `like`, aligned at the last dimension.

    A size of 1 repeats; another has to be the length of every row. raises InvalidArgumentError for other lengths
    """
    rank, whole = x.shape.rank, like.shape.rank
    if rank is None or whole is None or rank > whole:
        raise UnimplementedError(
            op=name,
            what="a tensor does not broadcast to a ragged one",
            found=f"{x.spec.short()} to shape {like.shape}",
            wanted="no more dimensions than the ragged tensor",
            do="RaggedTensor.from_tensor, to_tensor()",
        )
    first = whole - rank  # the ragged tensor's dimension that is x's first
    sizes = array.shape(x, int64)
    counts = [like.nrows(), *like.nested_row_lengths()]
    positions = []
    for i, place in enumerate(_coordinates(like)[first:]):
        if x.shape[i] == 1:
            positions.append(array.zeros_like(place))
            continue
        repeated = math.equal(sizes[i], 1)
        lengths = array.where(repeated, array.ones_like(counts[first + i]), counts[first + i])
        debugging.assert_equal(lengths, array.fill(array.shape(lengths), sizes[i]), f"{name}: rows differ in length")
        positions.append(array.where(repeated, array.zeros_like(place), place))
    return array.gather_nd(x, array.stack(positions, 1))


def _coordinates(x: RaggedTensor) -> list[Any]:
    """Return the position of each flat value along the first dimension and each ragged one."""
    places: list[Any] = []
    rows = array.range(array.shape(x.flat_values, int64)[0], dtype=int64)
    for splits, ids in zip(reversed(x.nested_row_splits), reversed(x.nested_value_rowids())):
        parents = array.gather(ids, rows)
        places.insert(0, rows - array.gather(splits, parents))
        rows = parents
    return [rows, *places]


# ---- reductions ------------------------------------------------------------------------------------------------------

SEGMENTS: dict[str, Callable[..., Any]] = {
    "Sum": lambda *a: math.unsorted_segment_sum(*a),
    "Prod": lambda *a: math.unsorted_segment_prod(*a),
    "Max": lambda *a: math.unsorted_segment_max(*a),
    "Min": lambda *a: math.unsorted_segment_min(*a),
    "All": lambda x, *a: array.cast(math.unsorted_segment_min(array.cast(x, dtypes.int32), *a), dtypes.bool),
    "Any": lambda x, *a: math.unsorted_segment_max(array.cast(x, dtypes.int32), *a) > 0,
}
"""For each reduction the one of segments."""


def _reduction(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    x, axis, keepdims = inputs[0], bound.axis, bound.keepdims
    if axis is None:
        result = op(x.flat_values, axis=None, name=name)
        if keepdims:
            result = array.reshape(result, [1] * (x.shape.rank or 0))
        return result
    rank = x.shape.rank
    axes = sorted({a % rank if rank is not None else a for a in axis}, reverse=True)
    if op.name == "Mean":
        ones = x.with_flat_values(array.ones_like(x.flat_values))
        total, count = x, ones
        for a in axes:
            total, count = _reduced("Sum", total, a, keepdims), _reduced("Sum", count, a, keepdims)
        return total / count
    result = x
    for a in axes:
        result = _reduced(op.name, result, a, keepdims)
    return result


def _reduced(kind: str, x: Any, axis: int, keepdims: bool) -> Any:
    """Return x reduced along one axis."""
    if not isinstance(x, RaggedTensor):
        plain: dict[str, Any] = {
            "Sum": math.reduce_sum,
            "Prod": math.reduce_prod,
            "Max": math.reduce_max,
            "Min": math.reduce_min,
            "All": math.reduce_all,
            "Any": math.reduce_any,
        }
        return plain[kind](x, axis=axis, keepdims=keepdims)
    if axis > 1:
        return x.with_values(_reduced(kind, x.values, axis - 1, keepdims))
    if axis == 1 and not isinstance(x.values, RaggedTensor):
        result = SEGMENTS[kind](x.values, x.value_rowids(), x.nrows())
        return array.expand_dims(result, 1) if keepdims else result
    columns = range_in_rows(x.row_lengths()) if axis == 0 else None
    if axis == 0 and not isinstance(x.values, RaggedTensor):
        width = math.reduce_max(array.concat([x.row_lengths(), array.cast([0], int64)], 0))
        result = SEGMENTS[kind](x.values, columns, width)
        return array.expand_dims(result, 0) if keepdims else result
    raise UnimplementedError(
        op=kind,
        what=f"axis {axis} of a ragged tensor with {x.ragged_rank} partitions has rows inside",
        wanted="the innermost ragged axis, or one inside of it",
        do="to_tensor()",
    )


# ---- calls -----------------------------------------------------------------------------------------------------------


def _gather(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    params, indices = inputs
    if bound.batch_dims or bound.axis % (params.shape.rank or 1):
        raise UnimplementedError(
            op="Gather", what="ragged operands are gathered by rows", wanted="axis=0, batch_dims=0"
        )
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(_gather_rows_of(params, indices.flat_values))
    return _gather_rows_of(params, indices)


def _gather_rows_of(params: Any, indices: Any) -> Any:
    if not isinstance(params, RaggedTensor):
        return array.gather(params, indices)
    rank = indices.shape.rank
    if rank == 0:
        return row(params, indices)
    if rank == 1:
        return gather_rows(params, array.cast(indices, int64))
    shape = array.shape(indices)
    flat = _gather_rows_of(params, array.reshape(indices, array.concat([[-1], shape[2:]], 0)))
    return RaggedTensor.from_uniform_row_length(flat, shape[1], shape[0], validate=False)


def _of_first(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Map the first operand; the others are not elements."""
    x = inputs[0]
    return x.with_flat_values(dispatch.call(op, [x.flat_values, *inputs[1:]], bound, name))


def _where(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Return the positions of true values."""
    x = inputs[0]
    return array.boolean_mask(to_sparse(x).indices, array.reshape(x.flat_values, [-1]))


def select_rows(condition: Any, x: Any, y: Any) -> Any:
    """Return rows of x where a vector is true and rows of y elsewhere, of tensors and ragged tensors."""
    parts = [p if isinstance(p, RaggedTensor) else dispatch.to_tensor(p) for p in (x, y)]
    numbers = array.range(array.shape(condition, int64)[0], dtype=int64)
    rows = array.where(condition, numbers, numbers + array.shape(condition, int64)[0])
    return gather_rows(concat(parts, 0), rows)


def _reverse(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    x: Any = inputs[0]
    rank = x.shape.rank
    if rank is None:
        raise UnimplementedError(op="Reverse", what="a ragged tensor of unknown rank", wanted="a known rank")
    for axis in sorted({a % rank for a in bound.axis}):
        x = _reversed(x, axis)
    return x


def _reversed(x: Any, axis: int) -> Any:
    """Return x with one axis in the opposite order."""
    if not isinstance(x, RaggedTensor):
        return array.reverse(x, [axis])
    if axis == 0:
        return gather_rows(x, array.range(x.nrows() - 1, -1, -1, dtype=int64))
    if axis > 1:
        return x.with_values(_reversed(x.values, axis - 1))
    ids = x.value_rowids()
    ends = array.gather(x.row_starts() + x.row_limits(), ids) - 1
    return x.with_values(gather_rows(x.values, ends - array.range(array.shape(ids, int64)[0], dtype=int64)))


def _softmax(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Return the softmax along the last axis."""
    x = inputs[0]
    rank = x.shape.rank
    if bound.axis not in (-1, None if rank is None else rank - 1):
        raise UnimplementedError(op=op.name, what="of ragged tensors along the last axis", found=f"axis={bound.axis}")
    if x.flat_values.shape.rank != 1:
        return x.with_flat_values(op(x.flat_values, axis=-1, name=name))
    rows = RaggedTensor.of(x.flat_values, x.nested_row_splits[-1:])
    ids, count = rows.value_rowids(), rows.nrows()
    greatest = array.stop_gradient(math.unsorted_segment_max(x.flat_values, ids, count))
    powers = math.exp(x.flat_values - array.gather(greatest, ids))
    return x.with_flat_values(powers / array.gather(math.unsorted_segment_sum(powers, ids, count), ids))


def _matmul(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Return the products of matrices with a ragged number of rows and one matrix, or one for each of them."""
    a, b = inputs
    plain = not (bound.transpose_a or bound.transpose_b or bound.adjoint_a or bound.adjoint_b)
    if not (
        plain and isinstance(a, RaggedTensor) and a.flat_values.shape.rank == 2 and not isinstance(b, RaggedTensor)
    ):
        raise UnimplementedError(
            op=op.name, what="ragged tensors are multiplied by matrices", wanted="[rows, (n), k] and [k, m]"
        )
    if b.shape.rank == 2:
        return a.with_flat_values(dispatch.call(op, [a.flat_values, b], bound, name))
    if a.ragged_rank != 1 or b.shape.rank != 3:
        raise UnimplementedError(op=op.name, what="one matrix for each row", found=f"{b.spec.short()}")
    _check_rows(a, b, op.name)
    rows = array.expand_dims(a.flat_values, 1)
    products = dispatch.call(op, [rows, array.gather(b, a.value_rowids())], bound, name)
    return a.with_flat_values(array.squeeze(products, [1]))


def _check_rows(x: RaggedTensor, other: Any, name: str) -> None:
    message = f"{name}: the number of rows differs"
    debugging.assert_equal(x.nrows(), array.shape(other, int64)[0], message)


CALLS: dict[str, Callable[[Any, Sequence[Any], Any, str | None], Any]] = {
    **dict.fromkeys((*SEGMENTS, "Mean"), _reduction),
    "Concat": lambda op, inputs, bound, name: concat(list(inputs[0]), bound.axis),
    "Pack": lambda op, inputs, bound, name: stack(list(inputs[0]), bound.axis),
    "ExpandDims": lambda op, inputs, bound, name: expand_dims(inputs[0], bound.axis),
    "Rank": lambda op, inputs, bound, name: dispatch.to_tensor(np.int32(inputs[0].shape.rank)),
    "Size": lambda op, inputs, bound, name: array.cast(array.size(inputs[0].flat_values), bound.out_type),
    "Squeeze": lambda op, inputs, bound, name: squeeze(inputs[0], bound.axis),
    "Gather": _gather,
    "OneHot": _of_first,
    "Reverse": _reverse,
    "Softmax": _softmax,
    "MatMul": _matmul,
    "Tile": lambda op, inputs, bound, name: tile(inputs[0], inputs[1]),
    "Where": _where,
    "LookupTableFind": _of_first,
    "Identity": lambda op, inputs, bound, name: inputs[0],
}
"""By operator, its call with ragged operands."""


def call(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
    """Return the result of an operator on ragged operands. Raises UnimplementedError if it takes none."""
    rule = CALLS.get(op.name)
    if rule is None and (op.elementwise or op.name in UNARY):
        rule = _elementwise
    if rule is None:
        raise UnimplementedError(
            op=op.name, what="the operator takes no ragged tensors", do="to_tensor(), or ow.ragged.map_flat_values"
        )
    return rule(op, inputs, bound, name)
