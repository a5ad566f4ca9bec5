"""Functions of sparse tensors: `ow.sparse`, and lookups of embeddings by sparse ids.

Lives here: conversions, sums, products, slices; `embedding_lookup_sparse`.
Not here: the type (sparse_tensor.py).

Positions are compared by their numbers in row-major order, int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import array, debugging, dispatch, linalg, math
from ..tensor import Tensor
from .sparse_tensor import SparseTensor

int64 = dtypes.int64


def _numbers(indices: Any, shape: Any) -> Any:
    """Return the row-major number of each position."""
    strides = math.cumprod(shape, exclusive=True, reverse=True)
    return math.reduce_sum(indices * strides, axis=1)


def _positions(numbers: Any, shape: Any) -> Any:
    """Return the position of each row-major number."""
    strides = math.cumprod(shape, exclusive=True, reverse=True)
    return math.floordiv(array.expand_dims(numbers, 1), strides) % shape


def _sparse(x: Any, op: str) -> SparseTensor:
    if not isinstance(x, SparseTensor):
        raise TypeError(f"{op}: Input must be a SparseTensor. Received: {x!r}")
    return x


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Return the tensor with the values at their positions, and default_value (0, or empty strings) elsewhere.

    validate_indices: whether positions must be in row-major order without repetition.
    raises InvalidArgumentError for others, and for positions outside of the shape
    """
    x = _sparse(sp_input, "sparse.to_dense")
    if default_value is None:
        default_value = b"" if x.dtype is dtypes.string else array.zeros([], x.dtype)
    default = dispatch.to_tensor(default_value, x.dtype)
    if validate_indices:
        numbers = _numbers(x.indices, x.dense_shape)
        message = "sparse.to_dense: indices are out of order or repeated; use sparse.reorder"
        debugging.assert_less(numbers[:-1], numbers[1:], message)
    filled = array.broadcast_to(default, x.dense_shape)
    dense = array.tensor_scatter_nd_update(filled, x.indices, x.values)
    return array.ensure_shape(dense, x.shape) if x.shape.rank is not None else dense


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Return the elements of a tensor that are not 0 (false, or empty)."""
    dense: Tensor = dispatch.to_tensor(tensor)
    if dense.dtype is dtypes.bool:
        other: Any = dense
    else:
        other = math.not_equal(dense, b"" if dense.dtype is dtypes.string else array.zeros([], dense.dtype))
    indices = array.where(other)
    return SparseTensor.of(indices, array.gather_nd(dense, indices), array.shape(dense, int64), dense.shape)


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Return the same elements in row-major order."""
    x = _sparse(sp_input, "sparse.reorder")
    order = math.argsort(_numbers(x.indices, x.dense_shape), stable=True)
    return SparseTensor.of(array.gather(x.indices, order), array.gather(x.values, order), x.dense_shape, x.shape)


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Return the product of a sparse matrix [m, k] and a matrix [k, n]; either may be the sparse one.

    adjoint_a, adjoint_b: whether a factor is transposed, and conjugated.
    """
    if isinstance(b, SparseTensor):
        return array.transpose(sparse_dense_matmul(b, array.transpose(sp_a), not adjoint_b, adjoint_a))
    a = _sparse(sp_a, "sparse.sparse_dense_matmul")
    dense = linalg.adjoint(b) if adjoint_b else dispatch.to_tensor(b)
    row, column = (1, 0) if adjoint_a else (0, 1)
    values = math.conj(a.values) if adjoint_a and a.dtype.is_complex else a.values
    parts = array.expand_dims(values, 1) * array.gather(dense, a.indices[:, column])
    result = math.unsorted_segment_sum(parts, a.indices[:, row], a.dense_shape[row])
    static_sizes = a.shape[row] if a.shape.rank else None
    return array.ensure_shape(result, [static_sizes, dense.shape[1]])


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """Return a sum: of two sparse tensors sparse, without elements below the threshold; with a tensor a tensor."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError("sparse.add: at least one input should be a SparseTensor")
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
        return array.tensor_scatter_nd_add(dispatch.to_tensor(dense, sparse.dtype), sparse.indices, sparse.values)
    debugging.assert_equal(a.dense_shape, b.dense_shape, "sparse.add: the shapes of the operands differ")
    numbers = array.concat([_numbers(a.indices, a.dense_shape), _numbers(b.indices, b.dense_shape)], 0)
    values = array.concat([a.values, b.values], 0)
    order = math.argsort(numbers, stable=True)
    places, segments = array.unique(array.gather(numbers, order))
    sums = math.unsorted_segment_sum(array.gather(values, order), segments, array.size(places))
    result = SparseTensor.of(_positions(places, a.dense_shape), sums, a.dense_shape, a.shape)
    if isinstance(threshold, (int, float)) and threshold == 0:
        return result
    return retain(result, math.abs(sums) >= array.cast(threshold, sums.dtype))


def _reduced(
    sp_input: Any, axis: Any, keepdims: bool, segments: Callable[..., Any], op: str
) -> tuple[Any, Any, Any, list[int | None]]:
    x = _sparse(sp_input, op)
    rank = x.shape.rank
    if rank is None:
        raise ValueError(f"{op}: the rank must be known")
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    gone = {a % rank for a in axes}
    kept = [i for i in range(rank) if i not in gone]
    shape = array.gather(x.dense_shape, array.cast(kept, int64)) if kept else array.zeros([0], int64)
    if kept:
        numbers = _numbers(array.gather(x.indices, array.cast(kept, int64), axis=1), shape)
    else:
        numbers = array.zeros_like(x.indices[:, 0])
    result = segments(x.values, numbers, math.reduce_prod(shape))
    sizes = [1 if i in gone else x.dense_shape[i] for i in range(rank) if keepdims or i not in gone]
    static_sizes = [1 if i in gone else x.shape[i] for i in range(rank) if keepdims or i not in gone]
    return result, numbers, [array.cast(s, int64) for s in sizes], static_sizes


def _shaped(flat: Any, sizes: Any, static_sizes: list[int | None]) -> Any:
    dense = array.reshape(flat, array.stack(sizes) if sizes else [])
    return array.ensure_shape(dense, static_sizes)


def reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: bool = False, output_is_sparse: bool = False, name: str | None = None
) -> Any:
    """Return sums along axes, all by default, as a tensor, or with output_is_sparse as a sparse one."""
    flat, _, sizes, static_sizes = _reduced(sp_input, axis, keepdims, math.unsorted_segment_sum, "sparse.reduce_sum")
    dense = _shaped(flat, sizes, static_sizes)
    return from_dense(dense) if output_is_sparse else dense


def reduce_max(
    sp_input: Any, axis: Any = None, keepdims: bool = False, output_is_sparse: bool = False, name: str | None = None
) -> Any:
    """Return the greatest of the elements that are there, along axes; 0 where there are none."""
    flat, numbers, sizes, static_sizes = _reduced(
        sp_input, axis, keepdims, math.unsorted_segment_max, "sparse.reduce_max"
    )
    count = math.unsorted_segment_sum(array.ones_like(numbers), numbers, array.size(flat, int64))
    dense = _shaped(array.where(count > 0, flat, array.zeros_like(flat)), sizes, static_sizes)
    return from_dense(dense) if output_is_sparse else dense


def retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """Return the elements where a mask, bool [n], is true."""
    x = _sparse(sp_input, "sparse.retain")
    kept = array.reshape(array.where(dispatch.to_tensor(to_retain, dtypes.bool)), [-1])
    return SparseTensor.of(array.gather(x.indices, kept), array.gather(x.values, kept), x.dense_shape, x.shape)


def slice(sp_input: SparseTensor, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Return the part of `size` elements along each axis that begins at `start`."""
    x = _sparse(sp_input, "sparse.slice")
    start, size = array.cast(start, int64), array.cast(size, int64)
    inside = math.reduce_all(math.logical_and(x.indices >= start, x.indices < start + size), axis=1)
    part = retain(x, inside)
    shape = math.maximum(math.minimum(size, x.dense_shape - start), array.cast(0, int64))
    return SparseTensor.of(part.indices - start, part.values, shape)


def concat(
    axis: int, sp_inputs: Sequence[SparseTensor], expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """Return sparse tensors joined along an axis. expand_nonconcat_dims: whether other sizes may differ."""
    parts = [_sparse(x, "sparse.concat") for x in sp_inputs]
    rank = parts[0].shape.rank
    if rank is None:
        raise ValueError("sparse.concat: the rank must be known")
    axis %= rank
    unit = array.one_hot(axis, rank, dtype=int64)
    offset, indices = array.zeros([], int64), []
    shape = parts[0].dense_shape
    for x in parts:
        indices.append(x.indices + offset * unit)
        offset = offset + x.dense_shape[axis]
        if expand_nonconcat_dims:
            shape = math.maximum(shape, x.dense_shape)
        else:
            other = array.cast(1, int64) - unit
            debugging.assert_equal(x.dense_shape * other, shape * other, "sparse.concat: other sizes differ")
    total = shape * (array.cast(1, int64) - unit) + offset * unit
    values = array.concat([x.values for x in parts], 0)
    return reorder(SparseTensor.of(array.concat(indices, 0), values, total))


def fill_empty_rows(sp_input: SparseTensor, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """Return the elements, with default_value in column 0 of rows without one, and which rows these are."""
    x = _sparse(sp_input, "sparse.fill_empty_rows")
    count = math.unsorted_segment_sum(array.ones_like(x.indices[:, 0]), x.indices[:, 0], x.dense_shape[0])
    empty = math.equal(count, array.cast(0, int64))
    rows = array.where(empty)
    rank = array.shape(x.indices, int64)[1]
    others = array.zeros(array.stack([array.shape(rows, int64)[0], rank - 1]), int64)
    added = array.concat([rows, others], 1)
    values = array.fill([array.shape(rows)[0]], dispatch.to_tensor(default_value, x.dtype))
    joined = SparseTensor.of(
        array.concat([x.indices, added], 0), array.concat([x.values, values], 0), x.dense_shape, x.shape
    )
    order = math.argsort(joined.indices[:, 0], stable=True)
    indices = array.gather(joined.indices, order)
    return SparseTensor.of(indices, array.gather(joined.values, order), x.dense_shape, x.shape), empty


def reset_shape(sp_input: SparseTensor, new_shape: Any = None) -> SparseTensor:
    """Return the elements in another shape that has room for them, by default the smallest."""
    x = _sparse(sp_input, "sparse.reset_shape")
    smallest = math.reduce_max(x.indices, axis=0) + 1
    if new_shape is None:
        return SparseTensor.of(x.indices, x.values, smallest)
    shape = array.cast(new_shape, int64)
    debugging.assert_less_equal(smallest, shape, "sparse.reset_shape: the new shape has no room for an element")
    return SparseTensor.of(x.indices, x.values, shape)


def reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """Return the elements in another shape of as many; one size may be -1."""
    x = _sparse(sp_input, "sparse.reshape")
    new = array.cast(shape, int64)
    rest = math.reduce_prod(array.where(new < 0, array.cast(1, int64), new))
    count = math.reduce_prod(x.dense_shape)
    new = array.where(new < 0, math.floordiv(count, math.maximum(rest, array.cast(1, int64))), new)
    debugging.assert_equal(math.reduce_prod(new), count, "sparse.reshape: the numbers of elements differ")
    return SparseTensor.of(_positions(_numbers(x.indices, x.dense_shape), new), x.values, new)


def transpose(sp_input: SparseTensor, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Return the axes in another order, reversed by default; elements in row-major order."""
    x = _sparse(sp_input, "sparse.transpose")
    rank = x.shape.rank
    if perm is None:
        if rank is None:
            raise ValueError("sparse.transpose: the rank must be known")
        perm = list(range(rank))[::-1]
    order = array.cast(perm, int64)
    return reorder(
        SparseTensor.of(array.gather(x.indices, order, axis=1), x.values, array.gather(x.dense_shape, order))
    )


def expand_dims(sp_input: SparseTensor, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """Return x with a new axis of size 1, by default the last."""
    x = _sparse(sp_input, "sparse.expand_dims")
    rank = x.shape.rank
    if rank is None:
        raise ValueError("sparse.expand_dims: the rank must be known")
    axis = rank if axis is None else axis + rank + 1 if axis < 0 else axis
    column = array.zeros_like(x.indices[:, :1])
    indices = array.concat([x.indices[:, :axis], column, x.indices[:, axis:]], 1)
    shape = array.concat([x.dense_shape[:axis], array.cast([1], int64), x.dense_shape[axis:]], 0)
    return SparseTensor.of(indices, x.values, shape)


def to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Tensor:
    """Return whether each row has a value: bool [..., vocab_size] of values, integers below vocab_size."""
    x = _sparse(sp_input, "sparse.to_indicator")
    indices = array.concat([x.indices[:, :-1], array.expand_dims(array.cast(x.values, int64), 1)], 1)
    shape = array.concat([x.dense_shape[:-1], array.cast([vocab_size], int64)], 0)
    ones = array.ones([array.shape(indices)[0]], dtypes.int32)
    dense = array.scatter_nd(indices, ones, shape) > 0
    return array.ensure_shape(dense, [*x.shape[:-1], vocab_size])


def eye(num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None) -> SparseTensor:
    """Return the identity matrix."""
    rows = array.cast(num_rows, int64)
    columns = rows if num_columns is None else array.cast(num_columns, int64)
    diagonal = array.range(math.minimum(rows, columns))
    ones = array.ones([array.shape(diagonal)[0]], dtype)
    return SparseTensor.of(array.stack([diagonal, diagonal], 1), ones, array.stack([rows, columns]))


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """Return op(*args, **kwargs) with sparse arguments, all of the same positions, replaced by their values."""
    every = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    if not every:
        raise ValueError("No SparseTensor in argument list of map_values")
    for x in every[1:]:
        debugging.assert_equal(x.indices, every[0].indices, "map_values: the positions of the arguments differ")
    values = [x.values if isinstance(x, SparseTensor) else x for x in args]
    named = {k: x.values if isinstance(x, SparseTensor) else x for k, x in kwargs.items()}
    return every[0].with_values(op(*values, **named))


def sampled_addmm(
    indices: Any,
    values: Any,
    dense_shape: Any,
    mat1: Any,
    mat2: Any,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    output_type: Any = dtypes.float32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return beta times sparse elements plus alpha times the elements of a product of matrices at their positions.

    .. math:: y_k = beta \\, values_k + alpha \\, (mat1 \\, mat2)_{indices_k}

    indices, values, dense_shape: of the sparse matrix, or a batch of them; returned as (indices, y, dense_shape).
    mat1: [..., m, k]; mat2: [..., k, n]. output_type: of y. Only the products at the positions are computed.
    """
    places: Any = dispatch.to_tensor(indices)
    first, second = dispatch.to_tensor(mat1), dispatch.to_tensor(mat2)
    rows = array.gather_nd(first, places[:, :-1])
    columns = array.gather_nd(linalg.matrix_transpose(second), array.concat([places[:, :-2], places[:, -1:]], 1))
    products = math.reduce_sum(rows * columns, axis=-1)
    old = dispatch.to_tensor(values)
    result = array.cast(beta, old.dtype) * old + array.cast(alpha, products.dtype) * products
    return places, array.cast(result, output_type), dispatch.to_tensor(dense_shape)


# ---- embeddings ------------------------------------------------------------------------------------------------------


def embedding_lookup_sparse(
    params: Any,
    sp_ids: SparseTensor,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Return for each row of ids the combination of their embeddings, [rows, ...].

    sp_ids: integers [rows, n], every row with one; sp_weights: at the same positions, or None for 1. combiner: "sum",
    "mean" (by default), over the sum of weights, or "sqrtn", over the root of the sum of their squares. max_norm: the
    greatest norm of an embedding, beyond which it is scaled.
    raises ValueError for another combiner, TypeError for ids that are not sparse
    """
    combiner = combiner or "mean"
    if combiner not in ("sum", "mean", "sqrtn"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    ids = _sparse(sp_ids, "nn.embedding_lookup_sparse")
    tables = params if isinstance(params, (list, tuple)) else [params]
    if len(tables) > 1:
        raise ValueError("nn.embedding_lookup_sparse: params is one table here, not a list of parts")
    rows: Any = array.gather(tables[0], ids.values)
    if max_norm is not None:
        rows = math.clip_by_norm(rows, max_norm, axes=list(range(1, rows.shape.rank)))
    segments, count = ids.indices[:, 0], ids.dense_shape[0]
    if sp_weights is None:
        weights = array.ones_like(array.cast(ids.values, rows.dtype))
    else:
        weights = array.cast(_sparse(sp_weights, "nn.embedding_lookup_sparse").values, rows.dtype)
    inner = [1] * (rows.shape.rank - 1)
    total = math.unsorted_segment_sum(rows * array.reshape(weights, [-1, *inner]), segments, count)
    if combiner == "sum":
        return total
    squares = weights if combiner == "mean" else math.square(weights)
    scale = math.unsorted_segment_sum(squares, segments, count)
    scale = array.reshape(scale if combiner == "mean" else math.sqrt(scale), [-1, *inner])
    return math.divide_no_nan(total, scale) if sp_weights is not None else total / math.maximum(scale, 1e-30)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: SparseTensor,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: Any = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Return `embedding_lookup_sparse` without ids below 0 and weights that are not positive.

    embedding_weights: a table [ids, ...]; sparse_ids: integers of rank 2; sparse_weights, combiner, max_norm: see
    `embedding_lookup_sparse`. Rows without an id are zeros, or the embedding of default_id.
    raises InvalidArgumentError for ids of another rank
    """
    ids = _sparse(sparse_ids, "nn.safe_embedding_lookup_sparse")
    if ids.shape.rank != 2:
        raise InvalidArgumentError(
            op="nn.safe_embedding_lookup_sparse", what="ids must have rank 2", found=f"shape {ids.shape}"
        )
    kept = ids.values >= array.zeros_like(ids.values)
    if sparse_weights is not None and combiner != "sum":
        kept = math.logical_and(kept, sparse_weights.values > 0)
    weights = None if sparse_weights is None else retain(sparse_weights, kept)
    ids, empty = fill_empty_rows(retain(ids, kept), 0 if default_id is None else default_id)
    if weights is not None:
        weights, _ = fill_empty_rows(weights, 1.0)
    result: Any = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    if default_id is not None:
        whole: Tensor = result
        return whole
    shape = [-1, *[1] * (result.shape.rank - 1)]
    return array.where(array.reshape(empty, shape), array.zeros_like(result), result)
