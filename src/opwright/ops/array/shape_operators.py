"""Shape queries, reshaping and broadcasting.

Lives here: Identity, StopGradient, Shape, Size, Rank, Reshape, ExpandDims, Squeeze, BroadcastTo, SumToLike.
Not here: transposition (permutation.py), slicing, concatenation (their own modules).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape, broadcast
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor
from .. import array, dispatch, lod_propagation
from ..array_shapes import reshaped_dims, squeezed_dims, with_inferred_size
from ..attributes import Attr
from ..definition import operator
from ..index_shapes import check_broadcast_to, expanded_dims
from ..indexed_slices import IndexedSlices
from ..registry import documented_by
from ..shape_inference import elements_of, is_static, shape_from, static_axes, static_int
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class Identity(OperatorDefinition):
    """Return a tensor of the same value.

    .. math:: output = input
    """

    input = Input(dtypes.anything, kinds=("dense", "lod", "rows", "list", "object"))
    output = Output(like="input", kind="as input")
    inplace = {"output": "input"}

    def on_rows(op, input: Any) -> IndexedSlices:
        parts = (input.values, input.indices, input.dense_shape)
        return IndexedSlices(*(None if p is None else identity(p) for p in parts))

    def compute(op, input: np.ndarray) -> np.ndarray:
        return input

    def gradient(op, doutput: Tensor) -> Tensor:
        return doutput


identity: signatures.Identity = Identity.as_function("identity")


def identity_without_record(value: Any) -> Tensor:
    """Return a tensor of the same value, without recording the operation on any tape."""
    state = dispatch.state
    saved, state.tapes = state.tapes, ()
    try:
        return Identity(dispatch.to_tensor(value))
    finally:
        state.tapes = saved


@operator
class StopGradient(OperatorDefinition):
    """Return a tensor of the same value, through which no gradient flows.

    .. math:: output = input
    """

    input = Input(dtypes.anything)
    output = Output(like="input")
    inplace = {"output": "input"}
    gradient = None

    def compute(op, input: np.ndarray) -> np.ndarray:
        return input


stop_gradient: signatures.StopGradient = StopGradient.as_function("stop_gradient")


@operator
class Shape(OperatorDefinition):
    """Return the sizes of the dimensions.

    .. math:: output_i = \\text{size of dimension } i

    Output: out_type [rank].
    """

    input = Input()
    output = Output()
    out_type = Attr(DType, default=dtypes.int32)
    shape_only = ("input",)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec([op.input.spec.shape.rank], op.out_type)

    def compute(op, input: Any) -> np.ndarray:
        return np.array(np.shape(input), op.out_type.np)


def shape_op(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Return the shape of a tensor as a tensor [rank]; a constant if it is fully known. Exported as `ow.shape`."""
    if isinstance(input, CompositeTensor) and (shape := input.shape_tensor(out_type)) is not None:
        sparse_shape: Tensor = shape
        return sparse_shape
    dtype, tensor = as_dtype(out_type), dispatch.to_tensor(input)
    if dispatch.state.trace is not None and tensor.shape.is_fully_defined():
        return dispatch.to_tensor(np.array(tuple(tensor.shape), dtype.np), dtype, name)
    return Shape(tensor, out_type=dtype, name=name)


@operator
class Size(OperatorDefinition):
    """Return the number of elements.

    .. math:: output = \\prod_i \\text{size of dimension } i
    """

    input = Input()
    output = Output()
    out_type = Attr(DType, default=dtypes.int32)
    shape_only = ("input",)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec([], op.out_type)

    def compute(op, input: Any) -> np.ndarray:
        return np.array(np.size(input), op.out_type.np)


size: signatures.Size = Size.as_function("size")


@operator
class Rank(OperatorDefinition):
    """Return the number of dimensions, int32.

    .. math:: output = rank(input)
    """

    input = Input()
    output = Output(dtype=dtypes.int32)
    shape_only = ("input",)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec([], dtypes.int32)

    def compute(op, input: Any) -> np.ndarray:
        return np.array(np.ndim(input), np.int32)


rank: signatures.Rank = Rank.as_function("rank")


@operator
class Reshape(OperatorDefinition):
    """Change the shape of a tensor, keeping its elements in row-major order. A size of -1 is inferred.

    .. math:: output[flat\\ i] = tensor[flat\\ i]

    tensor: any; shape: int32 or int64 [new rank].
    raises InvalidArgumentError if the numbers of elements differ or more than one size is -1
    """

    tensor = Input()
    shape = Input(index, rank=1)
    output = Output(like="tensor")
    inplace = {"output": "tensor"}
    no_need_buffer = ("tensor",)
    lod = lod_propagation.reshape

    def infer(op) -> TensorSpec:
        spec, new_shape = op.tensor.spec, shape_from(op.shape)
        constant = op.shape.constant
        elements = elements_of(op.shape) if constant is None else None
        if elements is not None and None not in elements:  # computed from static shapes
            constant = np.array(elements, np.int64)
        if constant is not None:
            return TensorSpec(reshaped_dims(spec, constant.tolist()), spec.dtype)
        return TensorSpec(new_shape, spec.dtype)

    def compute(op, tensor: Any, shape: Any) -> np.ndarray:
        sizes = tuple(shape.tolist())
        if min(sizes, default=0) < -1:  # NumPy takes any negative size for -1
            reshaped_dims(TensorSpec(tensor.shape, as_dtype(tensor.dtype)), sizes)
        try:
            return np.reshape(tensor, sizes if tensor.size else with_inferred_size(tensor.shape, sizes))
        except ValueError:
            reshaped_dims(TensorSpec(tensor.shape, as_dtype(tensor.dtype)), sizes)  # raises the error of static sizes
            raise

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return reshape(doutput, shape_op(op.tensor)), None


@documented_by(Reshape)
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the elements of a tensor in another shape. shape: sizes, a TensorShape or an integer tensor."""
    kind = type(shape)
    if (kind is list or kind is tuple) and dispatch.state.trace is None and {*map(type, shape)} == _NUMBERS:
        return Reshape(tensor, [*shape], name=name)  # the eager interpreter takes a list of numbers as it is
    if isinstance(shape, TensorShape):
        shape = [-1 if d is None else d for d in shape]
    if isinstance(shape, (int, np.integer)):
        shape = [shape]
    if isinstance(shape, (list, tuple)):
        shape = dims_tensor(shape)
    return Reshape(tensor, shape, name=name)


_NUMBERS = {int}


def dims_tensor(dims: Any) -> Tensor:
    """Convert sizes, which may be scalar tensors, to one 1-D integer tensor."""
    if any(hasattr(d, "spec") for d in dims):
        constants = [getattr(d, "constant", d) for d in dims]
        if any(c is None for c in constants):
            wide = any(getattr(d, "dtype", None) is dtypes.int64 for d in dims)
            return array.stack([array.cast(d, dtypes.int64 if wide else dtypes.int32) for d in dims])
        dims = [int(c) for c in constants]
    if not dims:
        return dispatch.to_tensor(np.zeros(0, np.int32), dtypes.int32)
    return dispatch.to_tensor(list(dims))


@operator
class ExpandDims(OperatorDefinition):
    """Insert a dimension of size 1 at `axis`.

    .. math:: output[..., 0, ...] = input[...]
    """

    input = Input()
    output = Output(like="input")
    axis = Attr(int)
    inplace = {"output": "input"}
    no_need_buffer = ("input",)
    lod = lod_propagation.added_axis("axis", "input")

    def infer(op) -> TensorSpec:
        return TensorSpec(expanded_dims(op.input.spec, op.axis), op.input.spec.dtype)

    def compute(op, input: Any) -> np.ndarray:
        shape, axis = np.shape(input), op.axis  # as np.expand_dims, in a third of its time
        at = axis if axis >= 0 else axis + len(shape) + 1
        return np.reshape(input, (*shape[:at], 1, *shape[at:]))

    def gradient(op, doutput: Any) -> Tensor:
        return reshape(doutput, shape_op(op.input))


@documented_by(ExpandDims)
def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """Insert a dimension of size 1."""
    if not is_static(axis):
        return array.run_time_axes.insert_axis(input, axis, name)
    return ExpandDims(input, axis=static_int(axis, "axis"), name=name)


@operator
class Squeeze(OperatorDefinition):
    """Remove dimensions of size 1: the given ones, or all of them.

    .. math:: output[...] = input[..., 0, ...]

    raises InvalidArgumentError if a named dimension has another size
    """

    input = Input()
    output = Output(like="input")
    axis = Attr([int], default=())
    inplace = {"output": "input"}
    no_need_buffer = ("input",)
    lod = lod_propagation.squeeze

    def infer(op) -> TensorSpec:
        return TensorSpec(squeezed_dims(op.input.spec, op.axis), op.input.spec.dtype)

    def compute(op, input: np.ndarray) -> np.ndarray:
        return np.squeeze(input, op.axis or None)

    def gradient(op, doutput: Any) -> Tensor:
        return reshape(doutput, shape_op(op.input))


@documented_by(Squeeze)
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Remove dimensions of size 1. axis: None for all of them."""
    return Squeeze(input, axis=static_axes(axis) or (), name=name)


@operator
class BroadcastTo(OperatorDefinition):
    """Broadcast a tensor to `shape`: repeat along dimensions of size 1 and new leading ones.

    .. math:: output[i_1, ..., i_n] = input[i_k \\text{ or } 0]

    raises InvalidArgumentError if the shape cannot be reached
    """

    input = Input()
    shape = Input(index, rank=1)
    output = Output(like="input")
    no_need_buffer = ("input",)
    views = {"output": "input"}
    lod = lod_propagation.broadcast_to

    def infer(op) -> TensorSpec:
        target, spec = shape_from(op.shape), op.input.spec
        check_broadcast_to(spec, target)
        return TensorSpec(target, spec.dtype)

    def compute(op, input: Any, shape: Any) -> np.ndarray:
        return np.broadcast_to(input, tuple(shape.tolist()))

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return sum_to_shape_of(doutput, op.input), None


@documented_by(BroadcastTo)
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Broadcast a tensor to a shape."""
    if isinstance(shape, (list, tuple, TensorShape)):
        shape = dims_tensor(list(shape))
    return BroadcastTo(input, shape, name=name)


@operator
class SumToLike(OperatorDefinition):
    """Sum over the dimensions along which `like` is broadcast to the shape of `x`: the gradient of broadcasting.

    .. math:: output[j] = \\sum_{i \\text{ broadcast from } j} x[i]
    """

    x = Input()
    like = Input()
    output = Output(like="x")
    shape_only = ("like",)
    no_need_buffer = ("x", "like")
    views = {"output": "x"}
    lod = "as like"

    def infer(op) -> TensorSpec:
        x, like = op.x.spec.shape, op.like.spec.shape
        if not broadcast(x, like).is_compatible_with(x):
            raise InvalidArgumentError(what="like's shape does not broadcast to x's", found={"x": x, "like": like})
        return op.x.spec.with_shape(like)

    def compute(op, x: np.ndarray, like: np.ndarray) -> np.ndarray:
        shape = np.shape(like)
        new = x.ndim - len(shape)
        axes = tuple(range(new)) + tuple(i + new for i, d in enumerate(shape) if d == 1 and x.shape[i + new] != 1)
        return x.sum(axes, dtype=x.dtype).reshape(shape) if axes else x

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return broadcast_to(doutput, shape_op(op.x)), None


def sum_to_shape_of(x: Tensor, like: Any) -> Tensor:
    """Sum `x` over broadcast dimensions to the shape of `like`; return `x` if the shapes are known to be equal."""
    eager = type(x) is type(like) and getattr(x, "_array", None) is not None
    if eager and x._array.shape == like._array.shape:  # type: ignore[attr-defined]  # 0.1 us; objects of shapes take 1
        return x
    shape = like.shape
    if shape.dims is not None and None not in shape.dims and x.shape.dims == shape.dims:
        return x
    return SumToLike(x, like)
