"""Shapes of tensors: asking for them and changing them without moving an element.

Lives here: Identity, StopGradient, Shape, Size, Rank, Reshape, ExpandDims, Squeeze, BroadcastTo, SumToLike.
Not here: transposing, slicing, joining (their own modules).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape, broadcast
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_rules
from ..attributes import Attr
from ..definition import operator
from ..inference import axis_in, elements_of, is_static, shape_from, static_axes, static_int
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..indexed_slices import IndexedSlices
    from ..tensor import Tensor


@operator
class Identity(OperatorDefinition):
    """The tensor itself, as a new tensor.

    .. math:: output = input
    """

    input = Input(dtypes.anything, kinds=("dense", "lod", "rows", "list", "object"))
    output = Output(like="input", kind="as input")
    inplace = {"output": "input"}

    def on_rows(op, input: Any) -> IndexedSlices:
        from ..indexed_slices import IndexedSlices

        parts = (input.values, input.indices, input.dense_shape)
        return IndexedSlices(*(None if p is None else identity(p) for p in parts))

    def compute(op, input: Any) -> Any:
        return input

    def gradient(op, doutput: Any) -> Any:
        return doutput


identity: signatures.Identity = Identity.as_function("identity")


def identity_without_record(value: Any) -> Tensor:
    """A new tensor of the same value that no tape knows the origin of."""
    state = dispatch.state
    saved, state.tapes = state.tapes, ()
    try:
        return Identity(dispatch.to_tensor(value))
    finally:
        state.tapes = saved


@operator
class StopGradient(OperatorDefinition):
    """The tensor itself, through which no gradient flows.

    .. math:: output = input
    """

    input = Input(dtypes.anything)
    output = Output(like="input")
    inplace = {"output": "input"}
    gradient = None

    def compute(op, input: Any) -> Any:
        return input


stop_gradient: signatures.StopGradient = StopGradient.as_function("stop_gradient")


@operator
class Shape(OperatorDefinition):
    """The sizes of the dimensions.

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
    """The shape of `input` as a tensor [rank]; a constant where it is fully known. Exported as `ow.shape`."""
    wanted, tensor = as_dtype(out_type), dispatch.to_tensor(input)
    if dispatch.state.trace is not None and tensor.shape.is_fully_defined():
        return dispatch.to_tensor(np.array(tuple(tensor.shape), wanted.np), wanted, name)
    return Shape(tensor, out_type=wanted, name=name)


@operator
class Size(OperatorDefinition):
    """The number of elements.

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
    """The number of dimensions, int32.

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
    """The same elements, in row-major order, under another shape; one size may be -1 and is then worked out.

    .. math:: output[flat\\ i] = tensor[flat\\ i]

    tensor: any; shape: int32 or int64 [new rank].
    raises InvalidArgumentError if the numbers of elements differ or more than one size is -1
    """

    tensor = Input()
    shape = Input(index, rank=1)
    output = Output(like="tensor")
    inplace = {"output": "tensor"}
    no_need_buffer = ("tensor",)
    lod = lod_rules.reshape

    def infer(op) -> TensorSpec:
        spec, wanted = op.tensor.spec, shape_from(op.shape)
        constant = op.shape.constant
        elements = elements_of(op.shape) if constant is None else None
        if elements is not None and None not in elements:  # computed from shapes that are known
            constant = np.array(elements, np.int64)
        n = spec.shape.num_elements()
        if constant is not None:
            holes = int((constant == -1).sum())
            if holes > 1:
                raise InvalidArgumentError(what="Only one input size may be -1", found=constant.tolist())
            known = 1
            for d in wanted:
                known *= 1 if d is None else d
            if n is not None:
                fits = n == known if holes == 0 else known > 0 and n % known == 0
                if holes and known == 0:
                    fits = n == 0
                if not fits:
                    raise InvalidArgumentError(
                        what=f"Input to reshape is a tensor with {n} values, but the requested shape has {known}"
                        + (" times an unknown size" if holes else ""),
                        found=spec.short(),
                        wanted=f"shape {constant.tolist()}",
                    )
                if holes:
                    wanted = TensorShape(_hole_filled(spec.shape.dims, constant.tolist()))
        return TensorSpec(wanted, spec.dtype)

    def compute(op, tensor: Any, shape: Any) -> np.ndarray:
        sizes = tuple(shape.tolist())
        return np.reshape(tensor, sizes if tensor.size else _hole_filled(tensor.shape, sizes))

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return reshape(doutput, shape_op(op.tensor)), None


def _hole_filled(dims: Any, sizes: Any) -> list[int]:
    """The sizes with -1 worked out. Sizes of 0 on both sides cancel: [0, 2] under [0, -1] is [0, 2] again."""
    if 0 in sizes:
        dims = [d for d in dims if d]
    known = math.prod(s for s in sizes if s > 0)
    return [math.prod(dims) // known if s == -1 else s for s in sizes]


@documented_by(Reshape)
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the elements of a tensor in another shape. shape: sizes, a TensorShape or an integer tensor."""
    if isinstance(shape, TensorShape):
        shape = [-1 if d is None else d for d in shape]
    if isinstance(shape, (int, np.integer)):
        shape = [shape]
    if isinstance(shape, (list, tuple)):
        shape = dims_tensor(shape)
    return Reshape(tensor, shape, name=name)


def dims_tensor(dims: Any) -> Tensor:
    """Sizes, some of which may be scalar tensors, as one 1-D integer tensor."""
    if any(hasattr(d, "spec") for d in dims):
        known = [getattr(d, "constant", d) for d in dims]
        if any(k is None for k in known):
            wide = any(getattr(d, "dtype", None) is dtypes.int64 for d in dims)
            return array.stack([array.cast(d, dtypes.int64 if wide else dtypes.int32) for d in dims])
        dims = [int(k) for k in known]
    if not dims:
        return dispatch.to_tensor(np.zeros(0, np.int32), dtypes.int32)
    return dispatch.to_tensor(list(dims))


@operator
class ExpandDims(OperatorDefinition):
    """A new dimension of size 1 at `axis`.

    .. math:: output[..., 0, ...] = input[...]
    """

    input = Input()
    output = Output(like="input")
    axis = Attr(int)
    inplace = {"output": "input"}
    no_need_buffer = ("input",)
    lod = lod_rules.added_axis("axis", "input")

    def infer(op) -> TensorSpec:
        spec = op.input.spec
        if spec.shape.rank is None:
            return spec
        at = axis_in(op.axis, spec.shape.rank + 1)
        return TensorSpec([*spec.shape[:at], 1, *spec.shape[at:]], spec.dtype)

    def compute(op, input: Any) -> np.ndarray:
        return np.expand_dims(input, op.axis)

    def gradient(op, doutput: Any) -> Tensor:
        return reshape(doutput, shape_op(op.input))


@documented_by(ExpandDims)
def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """Insert a dimension of size 1."""
    if not is_static(axis):
        return array.run_time_axes.expanded(input, axis, name)
    return ExpandDims(input, axis=static_int(axis, "axis"), name=name)


@operator
class Squeeze(OperatorDefinition):
    """Without the dimensions of size 1, or without those named.

    .. math:: output[...] = input[..., 0, ...]

    raises InvalidArgumentError if a named dimension has another size
    """

    input = Input()
    output = Output(like="input")
    axis = Attr([int], default=())
    inplace = {"output": "input"}
    no_need_buffer = ("input",)
    lod = lod_rules.squeeze

    def infer(op) -> TensorSpec:
        spec = op.input.spec
        dims = spec.shape.dims
        if dims is None or (not op.axis and None in dims):
            return spec.with_shape(UNKNOWN)
        axes = {axis_in(a, len(dims)) for a in op.axis} or {i for i, d in enumerate(dims) if d == 1}
        for i in axes:
            if dims[i] not in (1, None):
                raise InvalidArgumentError(
                    what=f"Can not squeeze dim[{i}], expected a dimension of 1, got {dims[i]}", found=spec.short()
                )
        return spec.with_shape([d for i, d in enumerate(dims) if i not in axes])

    def compute(op, input: Any) -> Any:
        return np.squeeze(input, op.axis or None)

    def gradient(op, doutput: Any) -> Tensor:
        return reshape(doutput, shape_op(op.input))


@documented_by(Squeeze)
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Remove dimensions of size 1. axis: None for all of them."""
    return Squeeze(input, axis=static_axes(axis) or (), name=name)


@operator
class BroadcastTo(OperatorDefinition):
    """Repeat along dimensions of size 1 and new leading ones until the shape is `shape`.

    .. math:: output[i_1, ..., i_n] = input[i_k \\text{ or } 0]

    raises InvalidArgumentError if the shape cannot be reached
    """

    input = Input()
    shape = Input(index, rank=1)
    output = Output(like="input")
    no_need_buffer = ("input",)
    views = {"output": "input"}
    lod = lod_rules.broadcast_to

    def infer(op) -> TensorSpec:
        wanted, spec = shape_from(op.shape), op.input.spec
        if not broadcast(spec.shape, wanted).is_compatible_with(wanted):
            raise InvalidArgumentError(what="Incompatible shapes", found=spec.short(), wanted=f"to reach {wanted}")
        return TensorSpec(wanted, spec.dtype)

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
    """What broadcasting `like`'s shape to `x`'s did, undone by adding up: the gradient of broadcasting.

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

    def compute(op, x: Any, like: Any) -> Any:
        wanted = np.shape(like)
        new = x.ndim - len(wanted)
        axes = tuple(range(new)) + tuple(i + new for i, d in enumerate(wanted) if d == 1 and x.shape[i + new] != 1)
        return x.sum(axes, dtype=x.dtype).reshape(wanted) if axes else x

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return broadcast_to(doutput, shape_op(op.x)), None


def sum_to_shape_of(x: Any, like: Any) -> Any:
    """`x` summed down to the shape of `like`; itself where the shapes are known to be equal."""
    wanted = like.shape
    if wanted.dims is not None and None not in wanted.dims and x.shape.dims == wanted.dims:
        return x
    return SumToLike(x, like)
