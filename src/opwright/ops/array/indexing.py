"""Gathering by tensors of indices, embedding lookup.

Lives here: Gather, GatherGrad, GatherNd, UnravelIndex; EmbeddingRows, embedding_lookup.
Not here: scatters (scatter.py), slices (slices.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation, registry
from .. import math as math_ops
from ..array_functions import batch_key, combine, gathered
from ..array_shapes import axes_last, batch_dims_of, gathered_dims, vectors_gathered_dims
from ..attributes import Attr, at_least
from ..definition import operator
from ..indexed_slices import IndexedSlices
from ..registry import documented_by
from ..shape_inference import is_static, shape_from, static_int
from ..slots import Input, OperatorDefinition, Output
from .concatenation import concat
from .constants import range as range_
from .shape_operators import broadcast_to, expand_dims, reshape, shape_op, size
from .slices import getitem

if TYPE_CHECKING:
    from .. import signatures
    from ..indexed_slices import IndexedSlices
    from ..tensor import Tensor, TensorValue


def check_indices(indices: np.ndarray, limit: int) -> None:
    """Raise InvalidArgumentError naming the first index that is not in [0, limit)."""
    if indices.size and (indices.min() < 0 or indices.max() >= limit):
        first = np.argwhere((indices < 0) | (indices >= limit))[0]
        raise InvalidArgumentError(
            what=f"indices{first.tolist() or ''} = {indices[tuple(first)]} is not in [0, {limit})"
        )


@operator
class Gather(OperatorDefinition):
    """Gather slices of `params` along `axis` by index; the first batch_dims dimensions are batches.

    .. math:: output[b, p, i, q] = params[b, p, indices[b, i], q]

    Shape params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis+1:].
    raises InvalidArgumentError naming the first index that is not in [0, params.shape[axis])
    The gradient at axis 0 without batch_dims is IndexedSlices.
    """

    params = Input()
    indices = Input(index)
    output = Output(like="params")
    axis = Attr(int, default=0)
    batch_dims = Attr(int, default=0)
    no_need_buffer = ("params",)
    lod = lod_propagation.gather

    def infer(op) -> TensorSpec:
        params = op.params.spec
        return TensorSpec(gathered_dims(params, op.indices.spec.shape, op.axis, op.batch_dims), params.dtype)

    def compute(op, params: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if indices.ndim == 0 and not op.batch_dims:
            i, axis = int(indices), op.axis % params.ndim
            if 0 <= i < params.shape[axis]:  # single rows, as loops read them: ten times faster
                return params[i] if axis == 0 else params[(slice(None),) * axis + (i,)].copy()
        check_indices(indices, params.shape[op.axis])
        output: np.ndarray = gathered(
            params, indices, op.axis % params.ndim, batch_dims_of(op.batch_dims, indices.ndim)
        )
        return output

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None] | tuple[Tensor, None]:
        if op.batch_dims == 0 and (op.axis == 0 or (op.axis == -1 and op.params.shape.rank == 1)):
            return sparse_rows(shape_op(op.params), op.params.shape, op.indices, doutput), None
        return GatherGrad(doutput, op.indices, shape_op(op.params), op.axis, op.batch_dims), None


def sparse_rows(shape: Any, static_shape: TensorShape, indices: Any, dy: Any) -> IndexedSlices:
    """Return the gradient of gathered rows, dy [*indices.shape, ...], as IndexedSlices of the gathered tensor.

    shape: the tensor's shape as a tensor; static_shape: its static shape. Repeated indices remain repeated.
    """
    flat = indices if indices.shape.rank == 1 else reshape(indices, [-1])
    if indices.shape.rank != 1:
        count = indices.shape.num_elements()
        if count is not None and static_shape[1:].is_fully_defined():
            dy = reshape(dy, [count, *static_shape[1:]])
        else:
            dy = reshape(dy, concat([reshape(size(indices), [1]), getitem(shape, slice(1, None))], 0))
    return IndexedSlices(dy, flat, shape)


def wide_index(indices: TensorValue) -> TensorValue:
    """Cast int16 indices to int32; return others unchanged."""
    dtype = getattr(indices, "dtype", None)
    narrow = dtype is dtypes.int16 or (isinstance(dtype, np.dtype) and dtype == np.int16)
    return array.cast(indices, dtypes.int32) if narrow else indices


@documented_by(Gather)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> Tensor:
    """Gather slices along an axis.

    axis: by default batch_dims. validate_indices: ignored; indices are always checked.
    """
    batch_dims = static_int(batch_dims, "batch_dims")
    if axis is None:
        axis = batch_dims
        if batch_dims < 0:
            axis = batch_dims + len(dispatch.to_tensor(indices).shape)
    indices = wide_index(indices)
    if not is_static(axis):
        return array.run_time_axes.gather(
            lambda x, i, b: Gather(x, i, axis=b, batch_dims=b), params, indices, axis, batch_dims, name
        )
    return Gather(params, indices, axis=static_int(axis, "axis"), batch_dims=batch_dims, name=name)


def gather_along_axis(x: Any, indices: Any, axis: int) -> Tensor:
    """Return elements by their index along an axis of known rank; the sizes of all other axes are equal.

    .. math:: output[a, i, b] = x[a, indices[a, i, b], b]
    """
    rank = dispatch.to_tensor(x).shape.rank or 0
    last, back = axes_last([axis], rank)
    if last[:-1] == list(range(rank - 1)):
        return gather(x, indices, axis=-1, batch_dims=rank - 1)
    rows = gather(array.transpose(x, last), array.transpose(indices, last), axis=-1, batch_dims=rank - 1)
    return array.transpose(rows, back)


@operator
class GatherGrad(OperatorDefinition):
    """Compute the dense gradient of Gather: scatter-add dy into zeros of shape `shape`.

    .. math:: output[b, p, j, q] = \\sum_{i: indices[b, i] = j} dy[b, p, i, q]
    """

    dy = Input()
    indices = Input(index)
    shape = Input(index, rank=1)
    output = Output(like="dy")
    axis = Attr(int, default=0)
    batch_dims = Attr(int, default=0)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return op.dy.spec.with_shape(shape_from(op.shape))

    def compute(op, dy: Any, indices: Any, shape: Any) -> np.ndarray:
        dx = like_device.zeros(dy, tuple(shape.tolist()), dy.dtype)
        batch, axis = batch_dims_of(op.batch_dims, indices.ndim), op.axis % dx.ndim
        check_indices(indices, dx.shape[axis])
        if axis == 0:
            combine(np.add, dx, indices.reshape(-1), dy.reshape(indices.size, *dx.shape[1:]))
            return dx
        key = (*batch_key(indices, batch), indices)
        middle = range(indices.ndim, indices.ndim + axis - batch)
        np.add.at(np.moveaxis(dx, axis, batch), key, np.moveaxis(dy, tuple(range(batch, axis)), tuple(middle)))
        return dx

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None]:
        return Gather(doutput, op.indices, op.axis, op.batch_dims), None, None


@operator
class GatherNd(OperatorDefinition):
    """Gather elements or slices of `params` by the index vectors in the last dimension of `indices`.

    .. math:: output[b, i, q] = params[b, indices[b, i, 0], ..., indices[b, i, K-1], q]

    Shape indices.shape[:-1] + params.shape[batch_dims+K:].
    raises InvalidArgumentError naming the first index vector that is not inside params
    """

    params = Input()
    indices = Input(index)
    output = Output(like="params")
    batch_dims = Attr(int, default=0, check=at_least(0))
    no_need_buffer = ("params",)
    views = {"output": "params"}
    lod = "as indices"

    def infer(op) -> TensorSpec:
        return TensorSpec(vectors_gathered_dims(op.params.spec, op.indices.spec, op.batch_dims), op.params.spec.dtype)

    def compute(op, params: np.ndarray, indices: np.ndarray) -> np.ndarray:
        batch, depth = op.batch_dims, indices.shape[-1]
        check_vectors(indices, params.shape[batch:], "params of shape")
        if depth == 0:
            spread = params.reshape(params.shape[:batch] + (1,) * (indices.ndim - 1 - batch) + params.shape[batch:])
            return np.broadcast_to(spread, indices.shape[:-1] + params.shape[batch:])
        grid = batch_key(indices[..., 0], batch)
        output: np.ndarray = params[(*grid, *(indices[..., k] for k in range(depth)))]
        return output

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None] | tuple[Any, None]:
        if not op.batch_dims and op.indices.shape.rank == 2 and op.indices.shape[-1] == 1:
            return sparse_rows(shape_op(op.params), op.params.shape, reshape(op.indices, [-1]), doutput), None
        if not op.batch_dims:
            return array.scatter_nd(op.indices, doutput, shape_op(op.params, op.indices.dtype)), None
        return _scatter_batches(op.params, op.indices, doutput, op.batch_dims), None


@documented_by(GatherNd)
def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """Gather slices by index vectors."""
    return GatherNd(params, wide_index(indices), batch_dims=batch_dims, name=name)


registry.name_function("gather_nd", registry.get("GatherNd"))


def check_vectors(indices: np.ndarray, sizes: tuple[int, ...], what: str) -> None:
    """Raise InvalidArgumentError naming the first index vector outside `sizes`. what: describes `sizes`."""
    if not indices.size:
        return
    limits = like_device.array(indices, np.array(sizes[: indices.shape[-1]]))
    bad = ((indices < 0) | (indices >= limits)).any(-1)
    if bad.any():
        first = np.argwhere(bad)[0]
        raise InvalidArgumentError(
            what=f"indices{first.tolist() or ''} = {indices[tuple(first)].tolist()} "
            f"does not index into {what} {list(sizes)}"
        )


def _scatter_batches(params: Any, indices: Any, dy: Any, batch_dims: int) -> Tensor:
    """Compute the gradient of GatherNd with batches: flatten them, prepend the batch index to each index vector."""
    dtype = indices.dtype
    shape, index_shape = shape_op(params, dtype), shape_op(indices, dtype)
    lead, tail = getitem(shape, slice(0, batch_dims)), getitem(shape, slice(batch_dims, None))
    count = lead[0]
    for i in range(1, batch_dims):
        count = count * lead[i]
    batches = reshape(count, [1])
    depth = getitem(index_shape, slice(-1, None))
    flat = reshape(indices, concat([batches, _product(getitem(index_shape, slice(batch_dims, -1))), depth], 0))
    batch_index = expand_dims(expand_dims(range_(count), 1), 2)
    flat_shape = shape_op(flat, dtype)
    batch_index = broadcast_to(batch_index, concat([getitem(flat_shape, slice(0, 2)), np.ones(1, dtype.np)], 0))
    slice_shape = getitem(shape, slice(batch_dims + (indices.shape[-1] or 0), None))
    if indices.shape[-1] is None:
        slice_shape = getitem(shape, slice(batch_dims + getitem(depth, 0), None))
    updates = reshape(dy, concat([getitem(flat_shape, slice(0, 2)), slice_shape], 0))
    return reshape(array.scatter_nd(concat([batch_index, flat], 2), updates, concat([batches, tail], 0)), shape)


def _product(sizes: Any) -> Tensor:
    return reshape(math_ops.reduce_prod(sizes), [1])


@operator
class UnravelIndex(OperatorDefinition):
    """Convert flat row-major indices into coordinates of an array of shape `dims`.

    .. math:: indices_j = \\sum_i output_{ij} \\prod_{k>i} dims_k

    indices: int32 or int64, a scalar or [n]; dims: [rank], of the same dtype; output: [rank] or [rank, n].
    raises InvalidArgumentError for an index outside the array, and for sizes below 1
    """

    indices = Input(index, rank=(0, 1))
    dims = Input(index, rank=1, like="indices")
    output = Output(like="indices")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        indices, dims = op.indices.spec, op.dims.spec.shape
        rank = dims[0] if dims.rank == 1 else None
        return indices.with_shape(UNKNOWN if indices.shape.rank is None else [rank, *indices.shape])

    def compute(op, indices: np.ndarray, dims: np.ndarray) -> np.ndarray:
        if (dims < 1).any():
            raise InvalidArgumentError(what="dims has a size below 1", found=dims.tolist(), wanted="sizes >= 1")
        check_indices(indices, math.prod(dims.tolist()))
        coordinates = np.unravel_index(indices, tuple(dims.tolist())) if dims.size else ()
        if not like_device.on_host(indices) and coordinates:
            return np.stack(coordinates).astype(indices.dtype)
        output: np.ndarray = np.array(coordinates, indices.dtype).reshape(dims.size, *indices.shape)
        return output if like_device.on_host(indices) else like_device.array(indices, output)


unravel_index: signatures.UnravelIndex = UnravelIndex.as_function("unravel_index")


@operator
class EmbeddingRows(OperatorDefinition):
    """Look up rows of a table by index. The row of one padding index is zeros and is not trained.

    .. math:: output_i = table_{ids_i} \\text{ where } ids_i \\ne padding\\_idx, \\text{ else } 0

    table: [rows, ...]; ids: any shape; output: [*ids.shape, ...]. padding_idx: may be outside [0, rows).
    The gradient is IndexedSlices of the looked-up rows, in their order and with repetitions, without padding, so no
    optimizer updates the padding row.
    raises InvalidArgumentError naming the first index, other than padding_idx, that is not in [0, rows)
    """

    table = Input()
    ids = Input(index)
    output = Output(like="table")
    padding_idx = Attr(int)
    no_need_buffer = ("table",)
    lod = "as ids"

    def infer(op) -> TensorSpec:
        table, ids = op.table.spec, op.ids.spec.shape
        if table.shape.rank == 0:
            raise InvalidArgumentError(what="the table must be at least 1 dimensional", found=table.short())
        if table.shape.rank is None or ids.rank is None:
            return table.with_shape(UNKNOWN)
        return table.with_shape([*ids, *table.shape[1:]])

    def compute(op, table: Any, ids: Any) -> np.ndarray:
        padding = ids == op.padding_idx
        check_indices(np.where(padding, 0, ids) if len(table) else ids, len(table))
        rows = np.take(table, np.where(padding, 0, ids), 0)
        rows[padding] = 0
        return rows

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None]:
        table_shape = shape_op(op.table)
        flat = sparse_rows(table_shape, op.table.shape, op.ids, doutput)
        is_trained = math_ops.not_equal(flat.indices, op.padding_idx)
        ids, rows = (
            array.boolean_mask(reshape(flat.indices, [-1]), is_trained),
            array.boolean_mask(flat.values, is_trained),
        )
        return sparse_rows(table_shape, op.table.shape, ids, rows), None


def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None, *, padding_idx: int | None = None
) -> Tensor:
    """Look up rows of a table by index. The gradient with respect to `params` is IndexedSlices.

    .. math:: output_i = params_{ids_i}

    params: a table [rows, ...], or a list of tables, which are concatenated. max_norm: rows of a larger norm are
    scaled to it. padding_idx: an index whose rows are zeros and receive no gradient. Shape: [*ids.shape, ...].
    raises ValueError for an empty list
    """
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("params must be specified: embedding_lookup got an empty list")
        params = params[0] if len(params) == 1 else concat([dispatch.to_tensor(p) for p in params], 0)
    ids = dispatch.to_tensor(ids)
    if padding_idx is None:
        rows = gather(params, ids, name=name)
    else:
        lookup: Any = EmbeddingRows
        rows = lookup(params, ids, padding_idx=padding_idx, name=name)
    if max_norm is None:
        return rows
    axes = None if rows.shape.rank is None or ids.shape.rank is None else tuple(range(ids.shape.rank, rows.shape.rank))
    if axes is None:
        raise ValueError(f"embedding_lookup: max_norm needs the ranks of params and ids; found {params}, {ids}")
    squares = math_ops.reduce_sum(math_ops.square(rows), axis=axes, keepdims=True) if axes else math_ops.square(rows)
    limit = float(max_norm)
    return rows * (limit * math_ops.rsqrt(math_ops.maximum(squares, limit * limit)))
