"""Scatters by tensors of indices.

Lives here: ScatterNd and the TensorScatter operators.  Not here: gathers (indexing.py), scatters into variables
(ops/state.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index, numeric, real
from ...core.shapes import TensorShape
from .. import dispatch, like_device
from ..definition import operator
from ..inference import shape_from
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..structural_shapes import check_updates
from .casting import cast
from .constants import zeros_like
from .indexing import check_vectors, gather_nd
from .scatter_arrays import combine, put_last
from .shape_operators import dims_tensor, shape_op

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
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


@operator
class TensorScatterUpdate(OperatorDefinition):
    """Replace slices of a tensor by index vectors; of equal index vectors the last wins.

    .. math:: output[indices[i], q] = updates[i, q], \\text{ elsewhere } tensor

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input()
    indices = Input(index)
    updates = Input(like="tensor")
    output = Output(like="tensor")
    no_need_buffer = ("updates",)
    lod = "as tensor"
    infer = _tensor_spec

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(None, like_device.copy(tensor), indices, updates, "tensor of shape")

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Any]:
        return TensorScatterUpdate(doutput, op.indices, zeros_like(op.updates)), None, gather_nd(doutput, op.indices)


tensor_scatter_nd_update: signatures.TensorScatterUpdate = TensorScatterUpdate.as_function("tensor_scatter_nd_update")


@operator
class TensorScatterAdd(OperatorDefinition):
    """Add updates to a tensor at index vectors, which may repeat.

    .. math:: output[j, q] = tensor[j, q] + \\sum_{i: indices[i] = j} updates[i, q]

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input(numeric)
    indices = Input(index)
    updates = Input(numeric, like="tensor")
    output = Output(like="tensor")
    lod = "as tensor"
    infer = _tensor_spec

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.add, like_device.copy(tensor), indices, updates, "tensor of shape")

    def gradient(op, doutput: Any) -> tuple[Any, None, Any]:
        return doutput, None, gather_nd(doutput, op.indices)


tensor_scatter_nd_add: signatures.TensorScatterAdd = TensorScatterAdd.as_function("tensor_scatter_nd_add")


@operator
class TensorScatterSub(OperatorDefinition):
    """Subtract updates from a tensor at index vectors, which may repeat.

    .. math:: output[j, q] = tensor[j, q] - \\sum_{i: indices[i] = j} updates[i, q]

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input(numeric)
    indices = Input(index)
    updates = Input(numeric, like="tensor")
    output = Output(like="tensor")
    lod = "as tensor"
    infer = _tensor_spec

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
class TensorScatterMax(OperatorDefinition):
    """Take the maximum of a tensor and updates at index vectors. Ties share the gradient.

    .. math:: output[j, q] = \\max(tensor[j, q], \\max_{i: indices[i] = j} updates[i, q])

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input(real)
    indices = Input(index)
    updates = Input(real, like="tensor")
    output = Output(like="tensor")
    lod = "as tensor"
    infer = _tensor_spec
    gradient = _extremum_gradient

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.maximum, like_device.copy(tensor), indices, updates, "tensor of shape")


tensor_scatter_nd_max: signatures.TensorScatterMax = TensorScatterMax.as_function("tensor_scatter_nd_max")


@operator
class TensorScatterMin(OperatorDefinition):
    """Take the minimum of a tensor and updates at index vectors. Ties share the gradient.

    .. math:: output[j, q] = \\min(tensor[j, q], \\min_{i: indices[i] = j} updates[i, q])

    raises InvalidArgumentError naming the first index vector that is not inside the tensor
    """

    tensor = Input(real)
    indices = Input(index)
    updates = Input(real, like="tensor")
    output = Output(like="tensor")
    lod = "as tensor"
    infer = _tensor_spec
    gradient = _extremum_gradient

    def compute(op, tensor: Any, indices: Any, updates: Any) -> np.ndarray:
        return _accumulate(np.minimum, like_device.copy(tensor), indices, updates, "tensor of shape")


tensor_scatter_nd_min: signatures.TensorScatterMin = TensorScatterMin.as_function("tensor_scatter_nd_min")
