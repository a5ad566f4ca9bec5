"""Slices: rectangular parts of a tensor, by numbers or by Python's brackets.

Lives here: Slice, StridedSlice, StridedSliceGrad, `getitem` (tensor[key]).
Not here: picking by tensors of indices (indexing.py), by masks (selecting.py).
"""

from __future__ import annotations

import functools
import numbers
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, index
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_rules
from ..attributes import Attr
from ..definition import operator
from ..inference import elements_of, shape_from
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..structural_shapes import Sizes, SliceMasks, dims_of_plan, key_of_plan, known_bounds, slice_dims
from ..tensor import Tensor
from .casting import cast
from .constants import ones_like, zeros_like
from .joining import stack
from .shaping import shape_op, sum_to_shape_of


@operator
class Slice(OperatorDefinition):
    """`size` elements from `begin` on, in each dimension; a size of -1 means all that are left.

    .. math:: output[i_0, ..., i_n] = input[begin_0 + i_0, ..., begin_n + i_n]

    begin, size: int32 or int64 [rank].
    raises InvalidArgumentError naming the first dimension in which the part is not inside the tensor
    """

    input = Input()
    begin = Input(index, rank=1)
    size = Input(index, rank=1, like="begin")
    output = Output(like="input")
    no_need_buffer = ("input",)
    views = {"output": "input"}
    lod = lod_rules.slice_

    def infer(op) -> TensorSpec:
        spec = op.input.spec
        known: list[Any] = [spec.shape.dims, elements_of(op.begin), elements_of(op.size)]
        rank = next((len(x) for x in known if x is not None), None)
        if rank is None:
            return spec.with_shape(UNKNOWN)
        dims, begin, size = ([None] * rank if x is None else x for x in known)
        if not len(dims) == len(begin) == len(size):
            raise InvalidArgumentError(
                what="begin and size name other dimensions than the input has",
                found={"input": spec.short(), "begin": begin, "size": size},
                wanted=f"{len(dims)} numbers each",
            )
        whole = op.size.constant is not None  # only then -1 is told from unknown
        return spec.with_shape(slice_dims(dims, begin, size, whole))

    def compute(op, input: Any, begin: Any, size: Any) -> Any:
        starts, sizes = known_bounds(begin), known_bounds(size)
        slice_dims(input.shape, starts, sizes)
        return input[(*(slice(b, None if n == -1 else b + n) for b, n in zip(starts, sizes)), ...)]

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None]:
        end = op.begin + shape_op(doutput, op.begin.dtype)
        return (
            StridedSliceGrad(shape_op(op.input, op.begin.dtype), op.begin, end, ones_like(op.begin), doutput),
            None,
            None,
        )


@documented_by(Slice)
def slice_op(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Extract a slice by begin and size."""
    return Slice(input_, begin, size, name=name)


def _key(op: Any, begin: Any, end: Any, strides: Any, dims: Sizes) -> tuple[Any, ...]:
    """The key of a strided slice for an array of sizes `dims`."""
    return key_of_plan(SliceMasks(op).plan(known_bounds(begin), known_bounds(end), known_bounds(strides), dims))


def _slice_attrs() -> list[Attr[int]]:
    return [Attr(int, default=0) for _ in range(5)]


@operator
class StridedSlice(OperatorDefinition):
    """Python's slicing: begin, end and stride for each dimension, a negative begin or end counted from the back.

    .. math:: output[i_0, ..., i_n] = input[begin_0 + i_0 strides_0, ..., begin_n + i_n strides_n]

    begin, end, strides: int32 or int64 [n]. Bit i of a mask speaks of entry i: begin_mask and end_mask leave the
    bound out, ellipsis_mask makes it `...`, new_axis_mask a new dimension of size 1, shrink_axis_mask the single
    index begin_i.
    raises InvalidArgumentError for a stride of 0, more entries than dimensions, or an index out of range
    """

    input_ = Input()
    begin = Input(index, rank=1)
    end = Input(index, rank=1, like="begin")
    strides = Input(index, rank=1, like="begin")
    output = Output(like="input_")
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = _slice_attrs()
    no_need_buffer = ("input_",)
    views = {"output": "input_"}
    lod = lod_rules.strided_slice

    def infer(op) -> TensorSpec:
        return op.input_.spec.with_shape(_read_shape(op, op.input_.spec.shape))

    def compute(op, input_: Any, begin: Any, end: Any, strides: Any) -> Any:
        if op.shrink_axis_mask == 1 and op.ellipsis_mask == 0 == op.new_axis_mask and input_.ndim:
            (i, *more), n = begin.tolist(), len(input_)
            if not more and type(i) is int and -n <= i < n and strides.tolist() == [1] and len(end) == 1:
                return input_[i]  # the loops' v[i]: five times faster so
        return input_[_key(op, begin, end, strides, input_.shape)]

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None, None]:
        dx = StridedSliceGrad(shape_op(op.input_, op.begin.dtype), op.begin, op.end, op.strides, doutput, **op.attrs)
        return dx, None, None, None


def _read_shape(op: Any, shape: TensorShape) -> TensorShape:
    """The shape of what is read of a tensor of that shape."""
    begin, end, strides = (elements_of(x) for x in (op.begin, op.end, op.strides))
    n = next((len(x) for x in (strides, begin, end) if x is not None), None)
    if shape.dims is None or n is None:
        return UNKNOWN
    hidden = [None] * n
    items = SliceMasks(op).plan(begin or hidden, end or hidden, strides or hidden, shape.dims)
    return TensorShape(dims_of_plan(items))


def _check_fills(op: Any, value: TensorShape, shape: TensorShape) -> None:
    """Raises InvalidArgumentError where a value cannot be broadcast to what is read of a tensor of that shape."""
    read = _read_shape(op, shape)
    if value.dims is None or read.dims is None:
        return
    wide = (None,) * (len(value.dims) - len(read.dims)) + tuple(read.dims)
    pairs = zip(value.dims[::-1], wide[::-1])
    if any(v not in (None, 1, r) and (r is not None or i >= len(read.dims)) for i, (v, r) in enumerate(pairs)):
        raise InvalidArgumentError(what="the value does not fill the slice", found={"value": value, "slice": read})


@operator
class StridedSliceGrad(OperatorDefinition):
    """Zeros of shape `shape`, with dy where StridedSlice would read: the gradient of StridedSlice.

    .. math:: output[begin + i \\cdot strides] = dy[i]
    """

    shape = Input(index, rank=1)
    begin = Input(index, rank=1, like="shape")
    end = Input(index, rank=1, like="shape")
    strides = Input(index, rank=1, like="shape")
    dy = Input()
    output = Output(like="dy")
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = _slice_attrs()
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        shape = shape_from(op.shape)
        _check_fills(op, op.dy.spec.shape, shape)
        return op.dy.spec.with_shape(shape)

    def compute(op, shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> np.ndarray:
        dx = like_device.zeros(dy, tuple(shape.tolist()), dy.dtype)
        dx[_key(op, begin, end, strides, dx.shape)] = dy
        return dx

    def gradient(op, doutput: Any) -> tuple[None, None, None, None, Tensor]:
        return None, None, None, None, StridedSlice(doutput, op.begin, op.end, op.strides, **op.attrs)


@operator
class TensorStridedSliceUpdate(OperatorDefinition):
    """The tensor with other values where StridedSlice would read.

    .. math:: output[begin + i \\cdot strides] = value[i], \\quad output_j = input_j \\text{ elsewhere}

    value: broadcasts to what StridedSlice would give.
    raises InvalidArgumentError as StridedSlice does, and for a value of another shape
    """

    input = Input()
    begin = Input(index, rank=1)
    end = Input(index, rank=1, like="begin")
    strides = Input(index, rank=1, like="begin")
    value = Input(like="input")
    output = Output(like="input")
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = _slice_attrs()
    no_need_buffer = ("value",)
    lod = "as input"

    def infer(op) -> TensorSpec:
        _check_fills(op, op.value.spec.shape, op.input.spec.shape)
        return op.input.spec

    def compute(op, input: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        output = input.copy()
        place = _key(op, begin, end, strides, input.shape)
        try:
            output[place] = value
        except ValueError:
            found = {"value": value.shape, "slice": np.shape(output[place])}
            raise InvalidArgumentError(what="the value does not fill the slice", found=found) from None
        return output

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None, None, Any]:
        bounds = (op.begin, op.end, op.strides)
        dvalue = StridedSlice(doutput, *bounds, **op.attrs)
        dinput = TensorStridedSliceUpdate(doutput, *bounds, zeros_like(dvalue), **op.attrs)
        return dinput, None, None, None, sum_to_shape_of(dvalue, op.value)


@documented_by(StridedSlice)
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Extract a strided slice. strides: by default ones. var: must be None."""
    if var is not None:
        raise UnimplementedError(
            op="StridedSlice",
            what="assigning through `var` is not supported",
            do="ow.tensor_scatter_nd_update, or variable.assign",
        )
    begin = dispatch.to_tensor(begin)
    return StridedSlice(
        input_,
        begin,
        end,
        ones_like(begin) if strides is None else strides,
        begin_mask,
        end_mask,
        ellipsis_mask,
        new_axis_mask,
        shrink_axis_mask,
        name=name,
    )


# ---- Python's brackets ----------------------------------------------------------------------------------------------


def getitem(tensor: Any, key: Any) -> Any:
    """`tensor[key]`: integers, slices with steps, None, Ellipsis, scalar integer tensors in their places; or one mask.

    raises TypeError for any other key, InvalidArgumentError for an index out of range
    """
    tensor = dispatch.to_tensor(tensor)
    if isinstance(key, bool) or getattr(key, "dtype", None) in (dtypes.bool, np.bool_):
        return array.boolean_mask(tensor, key)
    begin, end, strides, masks = _bounds(key)
    return StridedSlice(tensor, begin, end, strides, **masks)


def set_item(tensor: Any, key: Any, value: Any) -> Tensor:
    """The tensor with `tensor[key]` replaced by `value`, which broadcasts; key: as `getitem` has it, but no mask."""
    tensor = dispatch.to_tensor(tensor)
    begin, end, strides, masks = _bounds(key)
    value = dispatch.to_tensor(value, tensor.dtype)
    return TensorStridedSliceUpdate(tensor, begin, end, strides, value, **masks)


def _bounds(key: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Begin, end, strides and masks of a key in brackets."""
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, item in enumerate(key if isinstance(key, (list, tuple)) else (key,)):
        bit = 1 << i
        bounds: tuple[Any, ...] = (0, 0, 1)
        if isinstance(item, slice):
            given = (item.start, item.stop, item.step)
            bounds = tuple(default if bound is None else _bound(bound) for bound, default in zip(given, bounds))
            masks["begin_mask"] |= bit * (item.start is None)
            masks["end_mask"] |= bit * (item.stop is None)
        elif item is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif item is None:
            masks["new_axis_mask"] |= bit
        else:
            found = _bound(item)
            bounds = (found, found + 1, 1)
            masks["shrink_axis_mask"] |= bit
        for where, bound in zip((begin, end, strides), bounds):
            where.append(bound)
    if not begin:
        nothing = np.zeros(0, np.int32)
        return nothing, nothing, nothing, masks
    wide = any(_is_wide(b) for b in (*begin, *end, *strides))
    return _vector(begin, wide), _vector(end, wide), _vector(strides, wide), masks


def _bound(value: Any) -> Any:
    """A bound as an int where its value is known, else the scalar tensor."""
    found = getattr(value, "dtype", None)
    if isinstance(value, numbers.Integral):
        return int(value)
    if found is not None:
        value = dispatch.to_tensor(value)
        if value.dtype.is_integer and value.shape.rank in (0, None):
            known = value.constant
            return value if known is None else int(known)
    elif hasattr(value, "__index__"):
        return value.__index__()
    shown = f"a tensor of {value.spec.short()}" if hasattr(value, "spec") else repr(value)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
        f"valid indices, got {shown}"
    )


def _is_wide(bound: Any) -> bool:
    if isinstance(bound, int):
        return not -(2**31) <= bound < 2**31
    return bound.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64)


def _vector(bounds: list[Any], wide: bool) -> Any:
    dtype = dtypes.int64 if wide else dtypes.int32
    if all(isinstance(b, int) for b in bounds):
        if dispatch.state.trace is None:
            return _constant_vector(tuple(bounds), dtype)
        return dispatch.to_tensor(np.array(bounds, dtype.np), dtype)
    return stack([cast(b, dtype) if hasattr(b, "spec") else np.asarray(b, dtype.np) for b in bounds])


@functools.lru_cache(512)  # eager tensors, which never change; programs use few different keys
def _constant_vector(bounds: tuple[int, ...], dtype: DType) -> Any:
    return dispatch.to_tensor(np.array(bounds, dtype.np), dtype)
