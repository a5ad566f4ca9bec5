"""Scatters by tensors of indices, and operators on sparse rows (`IndexedSlices`).

Lives here: ScatterNd and the TensorScatter operators; MergeRows, RowsAt.
Not here: gathers (indexing.py), scatters into variables (ops/state.py), the type of sparse rows
(ops/indexed_slices.py), the array functions (ops/array_functions.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index, numeric, real
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import dispatch, like_device
from ..array_functions import combine, merge, put_last
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import check_updates, shape_from
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .constants import zeros_like
from .indexing import check_vectors, gather, gather_nd, sparse_rows
from .selection import searchsorted
from .shape_operators import dims_tensor, reshape, shape_op
from .type_conversion import cast

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..indexed_slices import IndexedSlices
    from ..tensor import Tensor


@operator
class ScatterNd(OperatorDefinition):
    """Scatter-add updates by index vectors into zeros of shape `shape`.

    Strings are concatenated, starting from empty strings.

    .. math:: output[j, q] = \\sum_{i: indices[i] = j} updates[i, q]

    updates.shape = indices.shape[:-1] + shape[K:], K the size of the last dimension of indices.
    raises InvalidArgumentError naming the first index vector that is not inside shape
    """

    indices = Input(index)
    updates = Input((*numeric, dtypes.bool, dtypes.string))
    shape = Input(index, rank=1, like="indices")
    output = Output(like="updates")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        shape = shape_from(op.shape)
        check_updates(op.indices.spec.shape, op.updates.spec.shape, shape)
        return op.updates.spec.with_shape(shape)

    def compute(op, indices: Any, updates: Any, shape: Any) -> np.ndarray:
        if updates.dtype == object:
            return _accumulate(np.add, np.full(tuple(shape.tolist()), b"", object), indices, updates, "shape")
        output = like_device.zeros(updates, tuple(shape.tolist()), updates.dtype)
        return _accumulate(np.add, output, indices, updates, "shape")

    def gradient(op, doutput: Any) -> tuple[None, Any, None]:
        return None, gather_nd(doutput, op.indices), None


def _accumulate(ufunc: Any, into: np.ndarray, indices: np.ndarray, updates: np.ndarray, what: str) -> np.ndarray:
    """Apply updates in their order to the array `into`, in place, and return it. ufunc: None for assignment."""
    check_vectors(indices, into.shape, what)
    depth = indices.shape[-1]
    target: np.ndarray = into
    key = tuple(indices[..., k] for k in range(depth))
    if depth == 0:  # every update covers the whole array
        target, key = into[None], (like_device.zeros(indices, indices.shape[:-1], np.intp),)
    if ufunc is None:
        put_last(target, key, updates)
    elif len(key) == 1 and target.ndim > 1 and target.dtype != object:
        combine(ufunc, target, key[0].reshape(-1), updates.reshape(key[0].size, *target.shape[1:]))
    else:
        ufunc.at(target, key, updates)
    return into


@documented_by(ScatterNd)
def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Scatter updates into zeros by index vectors. shape: sizes, a TensorShape, or an integer tensor."""
    indices = dispatch.to_tensor(indices)
    if isinstance(shape, (list, tuple, TensorShape)):
        shape = dims_tensor(list(shape))
    return ScatterNd(indices, updates, cast(shape, indices.dtype), name=name)


def _tensor_spec(op: Any) -> TensorSpec:
    check_updates(op.indices.spec.shape, op.updates.spec.shape, op.tensor.spec.shape)
    result: TensorSpec = op.tensor.spec
    return result


class _TensorScatter(OperatorDefinition):
    """Base of updates of a tensor at index vectors."""

    tensor = Input(numeric)
    indices = Input(index)
    updates = Input(numeric, like="tensor")
    output = Output(like="tensor")
    lod = "as tensor"
    infer = _tensor_spec


@operator
class TensorScatterUpdate(_TensorScatter):
    """Replace slices of a tensor by index vectors; of equal index vectors the last wins.

    .. math:: output[indices[i], q] = updates[i, q], \\text{ elsewhere } tensor

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input()
    updates = Input(like="tensor")
    no_need_buffer = ("updates",)

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(None, like_device.copy(tensor), indices, updates, "tensor of shape")

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Any]:
        return TensorScatterUpdate(doutput, op.indices, zeros_like(op.updates)), None, gather_nd(doutput, op.indices)


tensor_scatter_nd_update: signatures.TensorScatterUpdate = TensorScatterUpdate.as_function("tensor_scatter_nd_update")


@operator
class TensorScatterAdd(_TensorScatter):
    """Add updates to a tensor at index vectors, which may repeat.

    .. math:: output[j, q] = tensor[j, q] + \\sum_{i: indices[i] = j} updates[i, q]

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.add, like_device.copy(tensor), indices, updates, "tensor of shape")

    def gradient(op, doutput: Any) -> tuple[Any, None, Any]:
        return doutput, None, gather_nd(doutput, op.indices)


tensor_scatter_nd_add: signatures.TensorScatterAdd = TensorScatterAdd.as_function("tensor_scatter_nd_add")


@operator
class TensorScatterSub(_TensorScatter):
    """Subtract updates from a tensor at index vectors, which may repeat.

    .. math:: output[j, q] = tensor[j, q] - \\sum_{i: indices[i] = j} updates[i, q]

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.subtract, like_device.copy(tensor), indices, updates, "tensor of shape")

    def gradient(op, doutput: Any) -> tuple[Any, None, Any]:
        return doutput, None, -gather_nd(doutput, op.indices)


tensor_scatter_nd_sub: signatures.TensorScatterSub = TensorScatterSub.as_function("tensor_scatter_nd_sub")


def _extremum_gradient(op: Any, doutput: Any) -> tuple[Any, None, Any]:
    """Compute the gradient of an extremum: the tensor and the updates equal to the result share it equally."""
    dtype, chosen = doutput.dtype, gather_nd(op.output, op.indices)
    from_tensor = cast(op.tensor == op.output, dtype)
    from_updates = cast(op.updates == chosen, dtype)
    share = doutput / (from_tensor + scatter_nd(op.indices, from_updates, shape_op(op.tensor)))
    return share * from_tensor, None, gather_nd(share, op.indices) * from_updates


@operator
class TensorScatterMax(_TensorScatter):
    """Take the maximum of a tensor and updates at index vectors. Ties share the gradient.

    .. math:: output[j, q] = \\max(tensor[j, q], \\max_{i: indices[i] = j} updates[i, q])

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input(real)
    updates = Input(real, like="tensor")
    gradient = _extremum_gradient

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.maximum, like_device.copy(tensor), indices, updates, "tensor of shape")


tensor_scatter_nd_max: signatures.TensorScatterMax = TensorScatterMax.as_function("tensor_scatter_nd_max")


@operator
class TensorScatterMin(_TensorScatter):
    """Take the minimum of a tensor and updates at index vectors. Ties share the gradient.

    .. math:: output[j, q] = \\min(tensor[j, q], \\min_{i: indices[i] = j} updates[i, q])

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input(real)
    updates = Input(real, like="tensor")
    gradient = _extremum_gradient

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.minimum, like_device.copy(tensor), indices, updates, "tensor of shape")


tensor_scatter_nd_min: signatures.TensorScatterMin = TensorScatterMin.as_function("tensor_scatter_nd_min")


def check_pair(indices: TensorShape, values: TensorShape) -> None:
    """Raise InvalidArgumentError unless there is one index for each row of values."""
    if values.rank == 0:
        raise InvalidArgumentError(what="values are a scalar", wanted="one row for each index")
    if indices.rank is None or values.rank is None:
        return
    if not indices.is_compatible_with(values[:1]):
        raise InvalidArgumentError(
            what="indices and values differ in number",
            found={"indices": indices, "values": values},
            wanted="indices [n] and values [n, ...]",
        )


@operator
class MergeRows(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Merge sparse rows: sort their indices and add up rows of equal index, in their order.

    .. math:: where = \\mathrm{sort}\\{indices\\}, \\quad rows_k = \\sum_{i: indices_i = where_k} values_i

    values: [n, ...]; indices: [n]; dense_shape: shape of the dense tensor, if known. rows: [m, ...], where: [m], m the
    number of distinct indices.
    raises InvalidArgumentError if indices and values differ in number, and with dense_shape for an index out of its
    range, or values whose shape is not that of its rows
    """

    values = Input(numeric)
    indices = Input(index, rank=1)
    dense_shape = Input(index, rank=1, optional=True)
    rows = Output(like="values")
    where = Output(like="indices")
    views = {"rows": "values", "where": "indices"}
    no_need_buffer = ("values",)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        values, indices = op.values.spec, op.indices.spec
        check_pair(indices.shape, values.shape)
        rows = UNKNOWN if values.shape.rank is None else TensorShape([None, *values.shape[1:]])
        return TensorSpec(rows, values.dtype), TensorSpec([None], indices.dtype)

    def compute(op, values: Any, indices: Any, dense_shape: Any) -> tuple[np.ndarray, np.ndarray]:
        if values.shape[:1] != indices.shape:
            check_pair(TensorShape(indices.shape), TensorShape(values.shape))
        if dense_shape is not None:
            shape = tuple(dense_shape.tolist())
            if shape[1:] != values.shape[1:]:
                raise InvalidArgumentError(
                    what="values are not as wide as the rows they are for",
                    found={"values": values.shape, "dense_shape": shape},
                    wanted=f"values of shape {(len(indices), *shape[1:])}",
                )
            _check_range(indices, shape[0])
        where, rows = merge(indices, values)
        return rows, where

    def gradient(op, drows: Any, dwhere: Any) -> tuple[Any, None, None]:
        return gather(drows, searchsorted(op.where, op.indices, out_type=op.indices.dtype)), None, None


def _check_range(indices: np.ndarray, height: int) -> None:
    """Raise InvalidArgumentError naming the first index that is not in [0, height)."""
    if indices.size and (indices.min() < 0 or indices.max() >= height):
        first = np.flatnonzero((indices < 0) | (indices >= height))[0]
        raise InvalidArgumentError(
            what=f"merging rows: index {indices.flat[first]} is out of range",
            wanted=f"0 <= index < {height}, the number of rows",
        )


@operator
class RowsAt(OperatorDefinition):
    """Look up merged sparse rows by their indices.

    .. math:: output_i = rows_k \\text{ with } where_k = ids_i

    rows: [m, ...]; where: [m], ascending; ids: any shape. output: [*ids.shape, ...].
    raises InvalidArgumentError for an id that is not in `where`
    """

    rows = Input()
    where = Input(index, rank=1)
    ids = Input(index, like="where")
    output = Output(like="rows")
    no_need_buffer = ("rows",)
    lod = "as ids"

    def infer(op) -> TensorSpec:
        rows, ids = op.rows.spec, op.ids.spec.shape
        check_pair(op.where.spec.shape, rows.shape)
        if rows.shape.rank is None or ids.rank is None:
            return rows.with_shape(UNKNOWN)
        return rows.with_shape([*ids, *rows.shape[1:]])

    def compute(op, rows: np.ndarray, where: np.ndarray, ids: np.ndarray) -> np.ndarray:
        positions: np.ndarray = np.searchsorted(where, ids)
        absent = positions >= len(where)
        absent |= np.take(where, positions, mode="clip") != ids if len(where) else True
        if absent.any():
            raise InvalidArgumentError(
                what=f"there is no row {ids[absent].flat[0]} among the {len(where)} rows given",
                wanted="an id that is there",
                do="to_dense(), which has zeros there",
            )
        return rows.take(positions, 0)

    def gradient(op, doutput: Any) -> tuple[IndexedSlices, None, None]:
        positions = searchsorted(op.where, reshape(op.ids, [-1]), out_type=op.ids.dtype)
        return sparse_rows(shape_op(op.rows), op.rows.shape, reshape(positions, shape_op(op.ids)), doutput), None, None
