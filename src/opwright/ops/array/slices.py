"""Slicing: by offsets and sizes, by strides, by Python's subscripts.

Lives here: Slice, StridedSlice, StridedSliceGrad, `getitem` (tensor[key]).
Not here: gathering by tensors of indices (indexing.py), by masks (selection.py).
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
from .. import array, dispatch, like_device, lod_propagation
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import (
    Sizes,
    SliceMasks,
    dims_of_plan,
    elements_of,
    key_of_plan,
    known_bounds,
    shape_from,
    slice_dims,
)
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .concatenation import stack
from .constants import ones_like, zeros_like
from .shape_operators import shape_op, sum_to_shape_of
from .type_conversion import cast


@operator
class Slice(OperatorDefinition):
    """Extract `size` elements starting at `begin` in each dimension; a size of -1 means all remaining.

    .. math:: output[i_0, ..., i_n] = input[begin_0 + i_0, ..., begin_n + i_n]

    begin, size: int32 or int64 [rank].
    raises InvalidArgumentError naming the first dimension in which the slice is not inside the tensor
    """

    input = Input()
    begin = Input(index, rank=1)
    size = Input(index, rank=1, like="begin")
    output = Output(like="input")
    no_need_buffer = ("input",)
    views = {"output": "input"}
    lod = lod_propagation.slice_

    def infer(op) -> TensorSpec:
        spec = op.input.spec
        vectors: list[Any] = [spec.shape.dims, elements_of(op.begin), elements_of(op.size)]
        rank = next((len(x) for x in vectors if x is not None), None)
        if rank is None:
            return spec.with_shape(UNKNOWN)
        dims, begin, size = ([None] * rank if x is None else x for x in vectors)
        if not len(dims) == len(begin) == len(size):
            raise InvalidArgumentError(
                what="begin and size name other dimensions than the input has",
                found={"input": spec.short(), "begin": begin, "size": size},
                wanted=f"{len(dims)} numbers each",
            )
        is_exact = op.size.constant is not None  # otherwise -1 may also mean unknown
        return spec.with_shape(slice_dims(dims, begin, size, is_exact))

    def compute(op, input: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
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
    """Return the NumPy index of a strided slice of an array of shape `dims`."""
    return key_of_plan(SliceMasks(op).plan(known_bounds(begin), known_bounds(end), known_bounds(strides), dims))


def _slice_attrs() -> list[Attr[int]]:
    return [Attr(int, default=0) for _ in range(5)]


@operator
class StridedSlice(OperatorDefinition):
    """Extract a strided slice, with the semantics of Python's: negative begin and end count from the last element.

    .. math:: output[i_0, ..., i_n] = input[begin_0 + i_0 strides_0, ..., begin_n + i_n strides_n]

    begin, end, strides: int32 or int64 [n]. Bit i of a mask applies to entry i: begin_mask and end_mask omit the
    bound, ellipsis_mask makes the entry `...`, new_axis_mask a new dimension of size 1, shrink_axis_mask the single
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
    lod = lod_propagation.strided_slice

    def infer(op) -> TensorSpec:
        return op.input_.spec.with_shape(_slice_shape(op, op.input_.spec.shape))

    def compute(op, input_: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> np.ndarray:
        if op.shrink_axis_mask == 1 and op.ellipsis_mask == 0 == op.new_axis_mask and input_.ndim:
            (i, *more), n = begin.tolist(), len(input_)
            if not more and type(i) is int and -n <= i < n and strides.tolist() == [1] and len(end) == 1:
                element: np.ndarray = input_[i]  # v[i] in loops: five times faster
                return element
        output: np.ndarray = input_[_key(op, begin, end, strides, input_.shape)]
        return output

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None, None]:
        dx = StridedSliceGrad(shape_op(op.input_, op.begin.dtype), op.begin, op.end, op.strides, doutput, **op.attrs)
        return dx, None, None, None


def _slice_shape(op: Any, shape: TensorShape) -> TensorShape:
    """Infer the shape of a strided slice of a tensor of `shape`."""
    begin, end, strides = (elements_of(x) for x in (op.begin, op.end, op.strides))
    n = next((len(x) for x in (strides, begin, end) if x is not None), None)
    if shape.dims is None or n is None:
        return UNKNOWN
    hidden = [None] * n
    items = SliceMasks(op).plan(begin or hidden, end or hidden, strides or hidden, shape.dims)
    return TensorShape(dims_of_plan(items))


def _check_fills(op: Any, value: TensorShape, shape: TensorShape) -> None:
    """Raise InvalidArgumentError if a value does not broadcast to the slice of a tensor of `shape`."""
    read = _slice_shape(op, shape)
    if value.dims is None or read.dims is None:
        return
    wide = (None,) * (len(value.dims) - len(read.dims)) + tuple(read.dims)
    pairs = zip(value.dims[::-1], wide[::-1])
    if any(v not in (None, 1, r) and (r is not None or i >= len(read.dims)) for i, (v, r) in enumerate(pairs)):
        raise InvalidArgumentError(what="the value does not fill the slice", found={"value": value, "slice": read})


def _check_is_slice(op: Any, gradient: TensorShape, read: TensorShape, shape: TensorShape) -> None:
    """Raise InvalidArgumentError if a gradient does not have the shape of the slice of a tensor of `shape`."""
    if not gradient.is_compatible_with(read):
        raise InvalidArgumentError(
            what="the gradient does not have the shape of the slice within the tensor",
            found={"gradient": gradient, "slice": read},
            wanted=f"bounds within {shape}",
        )


@operator
class StridedSliceGrad(OperatorDefinition):
    """Compute the gradient of StridedSlice: write dy to the slice of zeros of shape `shape`.

    .. math:: output[begin + i \\cdot strides] = dy[i]

    raises InvalidArgumentError as StridedSlice does, and where the bounds leave a slice of another shape than dy's
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
        _check_is_slice(op, op.dy.spec.shape, _slice_shape(op, shape), shape)
        return op.dy.spec.with_shape(shape)

    def compute(op, shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> np.ndarray:
        dx = like_device.zeros(dy, tuple(shape.tolist()), dy.dtype)
        key = _key(op, begin, end, strides, dx.shape)
        if dx[key].shape != dy.shape:  # of a slice of which only the gradient is used
            _check_is_slice(op, TensorShape(dy.shape), TensorShape(dx[key].shape), TensorShape(dx.shape))
        dx[key] = dy
        return dx

    def gradient(op, doutput: Any) -> tuple[None, None, None, None, Tensor]:
        return None, None, None, None, StridedSlice(doutput, op.begin, op.end, op.strides, **op.attrs)


@operator
class TensorStridedSliceUpdate(OperatorDefinition):
    """Replace a strided slice of a tensor.

    .. math:: output[begin + i \\cdot strides] = value[i], \\quad output_j = input_j \\text{ elsewhere}

    value: broadcasts to the slice.
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

    def compute(
        op, input: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, value: np.ndarray
    ) -> np.ndarray:
        output = input.copy()
        key = _key(op, begin, end, strides, input.shape)
        try:
            output[key] = value
        except ValueError:
            raise InvalidArgumentError(
                what="the value does not fill the slice", found={"value": value.shape, "slice": np.shape(output[key])}
            ) from None
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


def getitem(tensor: Any, key: Any) -> Tensor:
    """Evaluate `tensor[key]`. key: integers, slices, None, Ellipsis, scalar integer tensors; or one boolean mask.

    raises TypeError for any other key, InvalidArgumentError for an index out of range
    """
    tensor = dispatch.to_tensor(tensor)
    if isinstance(key, bool) or getattr(key, "dtype", None) in (dtypes.bool, np.bool_):
        return array.boolean_mask(tensor, key)
    begin, end, strides, masks = _bounds(key)
    return StridedSlice(tensor, begin, end, strides, **masks)


def set_item(tensor: Any, key: Any, value: Any) -> Tensor:
    """Return a tensor with `tensor[key]` replaced by `value`, which broadcasts. key: as in `getitem`, except masks."""
    tensor = dispatch.to_tensor(tensor)
    begin, end, strides, masks = _bounds(key)
    value = dispatch.to_tensor(value, tensor.dtype)
    return TensorStridedSliceUpdate(tensor, begin, end, strides, value, **masks)


def _bounds(key: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return begin, end, strides and masks of a subscript."""
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
            fields = (item.start, item.stop, item.step)
            bounds = tuple(default if bound is None else _bound(bound) for bound, default in zip(fields, bounds))
            masks["begin_mask"] |= bit * (item.start is None)
            masks["end_mask"] |= bit * (item.stop is None)
        elif item is Ellipsis:
            masks["ellipsis_mask"] |= bit
        elif item is None:
            masks["new_axis_mask"] |= bit
        else:
            index = _bound(item)
            bounds = (index, index + 1, 1)
            masks["shrink_axis_mask"] |= bit
        for vector, bound in zip((begin, end, strides), bounds):
            vector.append(bound)
    if not begin:
        empty = np.zeros(0, np.int32)
        return empty, empty, empty, masks
    wide = any(_is_wide(b) for b in (*begin, *end, *strides))
    return _vector(begin, wide), _vector(end, wide), _vector(strides, wide), masks


def _bound(value: Any) -> int | Tensor:
    """Return a bound as an int if its value is known, else as a scalar tensor."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if getattr(value, "dtype", None) is not None:
        value = dispatch.to_tensor(value)
        if value.dtype.is_integer and value.shape.rank in (0, None):
            constant = value.constant
            return value if constant is None else int(constant)
    elif hasattr(value, "__index__"):
        index: int = value.__index__()
        return index
    description = f"a tensor of {value.spec.short()}" if hasattr(value, "spec") else repr(value)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
        f"valid indices, got {description}"
    )


def _is_wide(bound: Any) -> bool:
    if isinstance(bound, int):
        return not -(2**31) <= bound < 2**31
    return bound.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64)


def _vector(bounds: list[Any], wide: bool) -> Tensor:
    dtype = dtypes.int64 if wide else dtypes.int32
    if all(isinstance(b, int) for b in bounds):
        if dispatch.state.trace is None:
            return _constant_vector(tuple(bounds), dtype)
        return dispatch.to_tensor(np.array(bounds, dtype.np), dtype)
    return stack([cast(b, dtype) if hasattr(b, "spec") else np.asarray(b, dtype.np) for b in bounds])


@functools.lru_cache(512)  # eager tensors, which are immutable; programs use few different keys
def _constant_vector(bounds: tuple[int, ...], dtype: DType) -> Tensor:
    return dispatch.to_tensor(np.array(bounds, dtype.np), dtype)
