"""Constants, fills and sequences of numbers.

Lives here: Const, Fill, Range, LinSpace, OneHot, and `zeros`, `ones`, `eye` and their like.
Not here: `ow.constant`, which converts Python values (eager/tensor.py); random numbers (ops/random/).
"""

from __future__ import annotations

from operator import index as as_integer
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index, of_numpy, real
from ...core.errors import InvalidArgumentError, SignatureError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import array, array_functions, debugging, dispatch, like_device, lod_propagation, registry
from .. import math as math_ops
from ..arguments import natural_dtype
from ..attributes import Attr
from ..definition import operator
from ..index_shapes import checked_depth, one_hot_dims
from ..registry import documented_by
from ..shape_inference import axis_in, is_static, number_of_steps, shape_from, static_int
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy
from .shape_operators import dims_tensor

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class Const(OperatorDefinition):
    """Return a constant.

    .. math:: output = value
    """

    output = Output()
    value = Attr(np.ndarray)

    def infer(op) -> TensorSpec:
        return TensorSpec(op.value.shape, of_numpy(op.value.dtype))

    def compute(op) -> np.ndarray:
        return op.value


@operator
class Fill(OperatorDefinition):
    """Return a tensor of shape `dims` filled with one value.

    .. math:: output_i = value

    dims: int32 or int64 [rank]; value: a scalar; output: `value`'s dtype.
    raises InvalidArgumentError if value is not a scalar or a size is negative
    """

    dims = Input(index, rank=1)
    value = Input(dtypes.ALL, rank=0)
    output = Output(like="value")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        constant = op.dims.constant
        if constant is not None and (constant < 0).any():
            raise InvalidArgumentError(what="dims has a negative size", found=constant.tolist(), wanted="sizes >= 0")
        return TensorSpec(shape_from(op.dims), op.value.spec.dtype)

    def compute(op, dims: Any, value: Any) -> np.ndarray:
        return like_device.full(value, tuple(dims.tolist()), value, value.dtype)

    def gradient(op, doutput: Any) -> tuple[None, Any]:
        return None, math_ops.reduce_sum(doutput)


fill: signatures.Fill = Fill.as_function("fill")


def _static_sizes(shape: Any) -> tuple[int, ...] | None:
    """Return the sizes of a shape if all are known, else None.

    raises SignatureError for a size that is not an integer
    """
    if isinstance(shape, TensorShape):
        return shape.dims if shape.is_fully_defined() else None  # type: ignore[return-value]
    constant = getattr(shape, "constant", shape)
    if constant is None:
        return None
    if isinstance(constant, np.ndarray):
        constant = constant.reshape(-1).tolist()
    sizes = []
    for size in constant if hasattr(constant, "__iter__") else (constant,):
        value: Any = getattr(size, "constant", size)
        if value is None:
            return None
        try:
            sizes.append(as_integer(value))
        except TypeError:
            raise SignatureError(
                op="Fill", what="a size is not an integer", found=repr(value), wanted="integers"
            ) from None
    return tuple(sizes)


def _filled(shape: Any, value: Any, dtype: DType, name: str | None) -> Tensor:
    sizes = _static_sizes(shape)
    if sizes is None:
        return Fill(shape, dispatch.to_tensor(np.asarray(value, dtype.np), dtype), name=name)
    if any(s < 0 for s in sizes):
        raise InvalidArgumentError(op="Fill", node=name, what="a negative size", found=list(sizes), wanted="sizes >= 0")
    try:  # memory of zeros is occupied when it is written
        array = np.zeros(sizes, dtype.np) if value == 0 else np.full(sizes, value, dtype.np)
    except (MemoryError, ValueError):  # too large: the operator reports it
        return Fill(np.array(sizes, np.int64), dispatch.to_tensor(np.asarray(value, dtype.np), dtype), name=name)
    array.flags.writeable = False  # a constant shares it
    return dispatch.to_tensor(array, dtype, name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Return a tensor of zeros (empty strings, False). shape: sizes, a TensorShape or an integer tensor."""
    dtype = as_dtype(dtype)
    return _filled(shape, b"" if dtype is dtypes.string else 0, dtype, name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Return a tensor of ones (True). shape: sizes, a TensorShape or an integer tensor."""
    return _filled(shape, 1, as_dtype(dtype), name)


def _like(value: Any, number: Any, dtype: Any, name: str | None) -> Tensor:
    tensor = value if hasattr(value, "spec") or hasattr(value, "read_array") else dispatch.to_tensor(value)
    ragged: Any = tensor
    if hasattr(ragged, "with_flat_values"):
        like: Tensor = ragged.with_flat_values(_like(ragged.flat_values, number, dtype, name))
        return like
    dtype = tensor.dtype if dtype is None else as_dtype(dtype)
    if dtype is dtypes.variant and number == 0:
        zeros: Tensor = registry.get("ListZerosLike")(tensor, name=name)
        return zeros
    if dtype is dtypes.string:
        number = b""
    if tensor.shape.is_fully_defined():
        return _filled(tensor.shape, number, dtype, name)
    return _filled(array.shape_op(tensor), number, dtype, name)


def zeros_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return zeros in the shape of a tensor. dtype: by default the tensor's."""
    return _like(input, 0, dtype, name)


def zero_of(tensor: Tensor) -> Tensor:
    """Return the scalar 0 of a tensor's dtype, for what broadcasts; of lists, zeros in their shape.

    A function's trace stores `zeros_like` of a known shape as a constant of that size, which it keeps.
    """
    return zeros_like(tensor) if tensor.dtype is dtypes.variant else zeros((), tensor.dtype)


def ones_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return ones in the shape of a tensor. dtype: by default the tensor's."""
    return _like(input, 1, dtype, name)


@operator
class Range(OperatorDefinition):
    """Return evenly spaced numbers in the half-open interval [start, limit).

    .. math:: output_i = start + i \\cdot delta, \\quad 0 \\le i < \\lceil (limit - start) / delta \\rceil

    start, limit, delta: scalars of one dtype, in which the quotient is also computed. Output: [n] of that dtype.
    raises InvalidArgumentError if delta is 0 or leads away from limit, or the quotient is not finite
    """

    start = Input(real, rank=0)
    limit = Input(real, rank=0, like="start")
    delta = Input(real, rank=0, like="start")
    output = Output(like="start")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        bounds = [op.start.constant, op.limit.constant, op.delta.constant]
        constants = [b[()] for b in bounds if b is not None]
        if len(constants) < len(bounds):
            return TensorSpec([None], op.start.spec.dtype)
        return TensorSpec([_range_length(*constants)], op.start.spec.dtype)

    def compute(op, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
        n = _range_length(*(np.array(x.item(), x.dtype)[()] for x in (start, limit, delta)))
        output: np.ndarray = (start + like_device.arange(start, n).astype(start.dtype) * delta).astype(start.dtype)
        return output


def _range_length(start: Any, limit: Any, delta: Any) -> int:
    if delta == 0:
        raise InvalidArgumentError(what="Requires delta != 0", found="delta 0")
    if (start < limit and delta < 0) or (start > limit and delta > 0):
        relation = "start <= limit when delta > 0" if delta > 0 else "start >= limit when delta < 0"
        raise InvalidArgumentError(what=f"Requires {relation}", found=f"{start}/{limit}")
    count = number_of_steps(start, limit, delta)
    if count is None:
        raise InvalidArgumentError(
            what="the range has no end", found=f"{start} to {limit} in steps of {delta}", wanted="finite numbers"
        )
    return count


@documented_by(Range)
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range") -> Tensor:
    """Return evenly spaced numbers: `range(limit)` or `range(start, limit, delta)`.

    dtype: by default the widest dtype of the arguments.
    """
    if limit is None:
        start, limit = 0, start
    is_eager = dtype is None and type(start) is type(limit) is type(delta) is int and dispatch.state.trace is None
    if is_eager and 0 <= start <= limit < 1 << 31 and 0 < delta < 1 << 31:  # as the operator, in a fifth of its time
        return dispatch.to_tensor(np.arange(start, limit, delta, dtype=np.int32), dtypes.int32, name)
    if dtype is not None:
        dtype = as_dtype(dtype)
    else:
        argument_dtypes = [natural_dtype(v) for v in (start, limit, delta)]
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        dtype = max((d for d in argument_dtypes if d in order), key=order.index, default=argument_dtypes[0])
    return Range(*(_cast_to(v, dtype) for v in (start, limit, delta)), name=name)


def _cast_to(value: Any, dtype: DType) -> Tensor:
    if hasattr(value, "spec") or isinstance(value, (np.ndarray, np.generic)):
        result: Tensor = array.cast(value, dtype)
        return result
    return dispatch.to_tensor(value, dtype)


@operator
class LinSpace(OperatorDefinition):
    """Return `num` evenly spaced numbers in the closed interval [start, stop].

    .. math:: output_i = start + i \\frac{stop - start}{num - 1}

    start, stop: floating scalars. Output: [num].
    """

    start = Input(dtypes.floating, rank=0)
    stop = Input(dtypes.floating, rank=0, like="start")
    output = Output(like="start")
    num = Attr(int)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        if op.num < 1:
            raise InvalidArgumentError(what="Requires num > 0", found=op.num)
        return TensorSpec([op.num], op.start.spec.dtype)

    def compute(op, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        weight = like_device.arange(start, op.num, np.float64) / max(op.num - 1, 1)
        low, high = start.astype(np.float64), stop.astype(np.float64)  # stop - start may overflow, these do not
        return (low * (1.0 - weight) + high * weight).astype(start.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        weight = np.linspace(0.0, 1.0, op.num).astype(op.start.dtype.np)
        return math_ops.reduce_sum(doutput * (1.0 - weight)), math_ops.reduce_sum(doutput * weight)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Return evenly spaced numbers; between tensors of one shape element by element, along a new dimension `axis`.

    .. math:: output_i = start + i \\frac{stop - start}{num - 1}

    Integers are first converted to floating point, as by `divide`.
    """
    from ..math.arithmetic import floating_pair

    start, stop = floating_pair(start, stop)
    if not is_static(num):
        return _spaced(start, stop, num, axis, name)
    num = static_int(num, "num")
    if start.shape.rank == stop.shape.rank == 0:
        return LinSpace(start, stop, num=num, name=name)
    start, stop = array.expand_dims(start, axis), array.expand_dims(stop, axis)
    part: Any = np.linspace(0.0, 1.0, num).astype(start.dtype.np)
    if axis != -1:
        axis = axis_in(axis, _known_rank(start))
        part = array.reshape(part, [num if i == axis else 1 for i, _ in enumerate(start.shape)])
    result: Tensor = start * (1.0 - part) + stop * part
    return result


def _known_rank(x: Any) -> int:
    if x.shape.rank is None:
        raise TypeError("linspace: the rank must be known while tracing, or axis be -1")
    return int(x.shape.rank)


def _spaced(start: Any, stop: Any, num: Any, axis: int, name: str | None) -> Tensor:
    """Compute `linspace` for a number of elements known only at run time."""
    num = array.reshape(array.cast(num, dtypes.int32), [])
    debugging.Assert(num > 0, ["linspace: Requires num > 0, got", num])
    last = num - 1
    numbers = range(num)
    if start.shape.rank != 0 or stop.shape.rank != 0:
        start, stop = array.expand_dims(start, axis), array.expand_dims(stop, axis)
        if axis != -1:
            axis = axis_in(axis, _known_rank(start))
            numbers = array.reshape(numbers, [-1 if i == axis else 1 for i, _ in enumerate(start.shape)])
    step = (stop - start) / array.cast(math_ops.maximum(last, 1), start.dtype)
    spread = start + array.cast(numbers, start.dtype) * step
    return array.identity(array.where((numbers == last) & (last > 0), stop, spread), name=name)


@operator
class OneHot(OperatorDefinition):
    """Encode indices as one-hot vectors along a new dimension of size `depth`.

    .. math:: output[..., j, ...] = on\\_value \\text{ if } indices[...] = j \\text{ else } off\\_value

    indices: integers of any shape; for an index outside [0, depth) all elements are off_value. Output: on_value's
    dtype.
    """

    indices = Input((dtypes.uint8, dtypes.int8, dtypes.int32, dtypes.int64))
    depth = Input(index, rank=0)
    on_value = Input(dtypes.ALL, rank=0)
    off_value = Input(dtypes.ALL, rank=0, like="on_value")
    output = Output(like="on_value")
    axis = Attr(int, default=-1)
    lod = lod_propagation.added_axis("axis", "indices")

    def infer(op) -> TensorSpec:
        depth = None if op.depth.constant is None else int(op.depth.constant)
        return TensorSpec(one_hot_dims(op.indices.spec, depth, op.axis), op.on_value.spec.dtype)

    def compute(op, indices: Any, depth: Any, on_value: Any, off_value: Any) -> np.ndarray:
        indices = np.asarray(indices) if like_device.on_host(indices) else indices
        output: np.ndarray = ONE_HOT(op, indices, checked_depth(int(depth)), on_value, off_value)
        return output

    gradient = None


def _compared(op: Any, indices: np.ndarray, depth: int, on_value: Any, off_value: Any) -> np.ndarray:
    rows: np.ndarray = array_functions.one_hot(indices, depth, on_value, off_value, op.axis)
    return rows.astype(on_value.dtype)


def _set_ones(op: Any, indices: np.ndarray, depth: int, on_value: Any, off_value: Any) -> np.ndarray:
    """Fill with off_value, then write on_value once per row; comparison would cost one operation per element."""
    columns, n = indices.reshape(-1), depth
    out = np.full((columns.size, n), off_value, on_value.dtype)
    rows: Any = np.arange(columns.size)
    if columns.size and (int(columns.min()) < 0 or int(columns.max()) >= n):
        in_range = (columns >= 0) & (columns < n)
        rows, columns = rows[in_range], columns[in_range]
    out[rows, columns] = on_value
    return out.reshape(*indices.shape, n)


ONE_HOT = Strategies(
    "OneHot",
    _compared,
    Strategy(
        "set",
        _set_ones,
        lambda op, indices, depth, *_: op.axis == -1 and indices.size * int(depth) >= 4096,
        "along the last axis, at least 4096 elements",
        "one_hot",
        fits=lambda op, indices, *_: op.axis in (-1, indices.ndim),
    ),
)


@documented_by(OneHot)
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return one-hot rows.

    on_value and off_value default to 1 and 0, dtype to their dtype, otherwise float32.

    raises TypeError where dtype, on_value and off_value differ in dtype
    """
    hint = None if dtype is None else as_dtype(dtype)
    values = {n: _hinted(v, hint) for n, v in (("on_value", on_value), ("off_value", off_value)) if v is not None}
    out_dtype = hint if hint is not None else next((v.dtype for v in values.values()), dtypes.float32)
    for argument, value in values.items():
        if value.dtype is not out_dtype:
            raise TypeError(f"one_hot: {argument} has dtype {value.dtype.name}, and the result {out_dtype.name}")
    on = values["on_value"] if "on_value" in values else dispatch.to_tensor(1, out_dtype)
    off = values["off_value"] if "off_value" in values else dispatch.to_tensor(0, out_dtype)
    return OneHot(indices, depth, on, off, axis=-1 if axis is None else axis, name=name)


def _hinted(value: Any, dtype: DType | None) -> Tensor:
    """Convert a value to a tensor of `dtype` if that preserves its kind, else of its own dtype."""
    if dtype is not None and not hasattr(value, "dtype"):
        try:
            return dispatch.to_tensor(bool(value) if dtype.is_bool else value, dtype)
        except (TypeError, ValueError):
            pass
    return dispatch.to_tensor(value)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Return identity matrices of shape [*batch_shape, num_rows, num_columns].

    .. math:: output[..., i, j] = 1 \\text{ if } i = j \\text{ else } 0
    """
    dtype = as_dtype(dtype)
    batch = () if batch_shape is None else _static_sizes(batch_shape)
    if batch is None or not is_static(num_rows) or not is_static(num_columns):
        return _identity_matrix(num_rows, num_rows if num_columns is None else num_columns, batch_shape, dtype, name)
    rows = static_int(num_rows, "num_rows")
    matrix = np.eye(rows, None if num_columns is None else static_int(num_columns, "num_columns"), dtype=dtype.np)
    return dispatch.to_tensor(np.broadcast_to(matrix, (*batch, *matrix.shape)).copy(), dtype, name)


def _identity_matrix(rows: Any, columns: Any, batch_shape: Any, dtype: DType, name: str | None) -> Tensor:
    """Compute `eye` for sizes known only at run time."""
    rows, columns = (array.cast(n, dtypes.int32) for n in (rows, columns))
    matrix = array.cast(array.expand_dims(range(rows), 1) == range(columns), dtype, name=name)
    if batch_shape is None:
        return matrix
    if isinstance(batch_shape, (list, tuple)):
        batch_shape = dims_tensor(list(batch_shape))
    shape = array.concat([array.cast(batch_shape, dtypes.int32), array.shape_op(matrix)], 0)
    return array.broadcast_to(matrix, shape, name=name)
