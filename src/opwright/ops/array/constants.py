"""Making tensors of nothing but numbers: constants, fills, ranges.

Lives here: Const, Fill, Range, LinSpace, OneHot, Eye and the functions over them.
Not here: `ow.constant`, which makes tensors of Python values (eager/tensor.py), random numbers (ops/random/).
"""

from __future__ import annotations

from operator import index as as_integer
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index, of_numpy, real
from ...core.errors import InvalidArgumentError, SignatureError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import array, debugging, dispatch, like_device, lod_rules, registry, structural_arrays
from .. import math as math_ops
from ..arguments import natural_dtype
from ..attributes import Attr
from ..definition import operator
from ..inference import axis_in, is_static, number_of_steps, shape_from, static_int
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy
from .shaping import dims_tensor

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class Const(OperatorDefinition):
    """A constant.

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
    """A tensor of shape `dims` filled with one value.

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


def _static(shape: Any) -> tuple[int, ...] | None:
    """A shape as sizes where all are known, else None.

    raises SignatureError for a size that is no integer
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
        known = getattr(size, "constant", size)
        if known is None:
            return None
        try:
            sizes.append(as_integer(known))
        except TypeError:
            raise SignatureError(op="Fill", what="a size is no integer", found=repr(known), wanted="integers") from None
    return tuple(sizes)


def _filled(shape: Any, value: Any, dtype: DType, name: str | None) -> Tensor:
    sizes = _static(shape)
    if sizes is None:
        return Fill(shape, dispatch.to_tensor(np.asarray(value, dtype.np), dtype), name=name)
    if any(s < 0 for s in sizes):
        raise InvalidArgumentError(op="Fill", node=name, what="a negative size", found=list(sizes), wanted="sizes >= 0")
    array = np.full(sizes, value, dtype.np)
    return dispatch.to_tensor(array, dtype, name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (empty strings, False). shape: sizes, a TensorShape or an integer tensor."""
    dtype = as_dtype(dtype)
    return _filled(shape, b"" if dtype is dtypes.string else 0, dtype, name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (True). shape: sizes, a TensorShape or an integer tensor."""
    return _filled(shape, 1, as_dtype(dtype), name)


def _like(value: Any, number: Any, dtype: Any, name: str | None) -> Tensor:
    tensor = value if hasattr(value, "spec") or hasattr(value, "read_array") else dispatch.to_tensor(value)
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
    """Zeros in the shape, and unless `dtype` is given the dtype, of `input`."""
    return _like(input, 0, dtype, name)


def ones_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones in the shape, and unless `dtype` is given the dtype, of `input`."""
    return _like(input, 1, dtype, name)


@operator
class Range(OperatorDefinition):
    """Numbers from start, up to but without limit, in steps of delta.

    .. math:: output_i = start + i \\cdot delta, \\quad 0 \\le i < \\lceil (limit - start) / delta \\rceil

    start, limit, delta: scalars of one dtype, in which the quotient is computed too. Output: [n] of that dtype.
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
        known = [b[()] for b in bounds if b is not None]
        if len(known) < len(bounds):
            return TensorSpec([None], op.start.spec.dtype)
        return TensorSpec([_range_length(*known)], op.start.spec.dtype)

    def compute(op, start: Any, limit: Any, delta: Any) -> Any:
        n = _range_length(*(np.array(x.item(), x.dtype)[()] for x in (start, limit, delta)))
        return (start + like_device.arange(start, n).astype(start.dtype) * delta).astype(start.dtype)


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
    if dtype is not None:
        wanted = as_dtype(dtype)
        arguments = [_cast_to(v, wanted) for v in (start, limit, delta)]
    else:
        found = [natural_dtype(v) for v in (start, limit, delta)]
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        wanted = max((d for d in found if d in order), key=order.index, default=found[0])
        arguments = [_cast_to(v, wanted) for v in (start, limit, delta)]
    return Range(*arguments, name=name)


def _cast_to(value: Any, dtype: DType) -> Any:
    if hasattr(value, "spec") or isinstance(value, (np.ndarray, np.generic)):
        return array.cast(value, dtype)
    return dispatch.to_tensor(value, dtype)


@operator
class LinSpace(OperatorDefinition):
    """num evenly spaced numbers from start to stop, both included.

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

    def compute(op, start: Any, stop: Any) -> Any:
        weight = like_device.arange(start, op.num, np.float64) / max(op.num - 1, 1)
        low, high = start.astype(np.float64), stop.astype(np.float64)  # stop - start may overflow, these do not
        return (low * (1.0 - weight) + high * weight).astype(start.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        weight = np.linspace(0.0, 1.0, op.num).astype(op.start.dtype.np)
        return math_ops.reduce_sum(doutput * (1.0 - weight)), math_ops.reduce_sum(doutput * weight)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Any:
    """LinSpace; between tensors of one shape element by element, the numbers along the new dimension `axis`.

    Integers are made floating first, as by `divide`.
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
        at = axis_in(axis, _known_rank(start))
        part = array.reshape(part, [num if i == at else 1 for i, _ in enumerate(start.shape)])
    return start * (1.0 - part) + stop * part


def _known_rank(x: Any) -> int:
    if x.shape.rank is None:
        raise TypeError("linspace: the rank must be known while tracing, or axis be -1")
    return int(x.shape.rank)


def _spaced(start: Any, stop: Any, num: Any, axis: int, name: str | None) -> Tensor:
    """`linspace` of as many numbers as a tensor says."""
    num = array.reshape(array.cast(num, dtypes.int32), [])
    debugging.Assert(num > 0, ["linspace: Requires num > 0, got", num])
    last = num - 1
    numbers = range(num)
    if start.shape.rank != 0 or stop.shape.rank != 0:
        start, stop = array.expand_dims(start, axis), array.expand_dims(stop, axis)
        if axis != -1:
            at = axis_in(axis, _known_rank(start))
            numbers = array.reshape(numbers, [-1 if i == at else 1 for i, _ in enumerate(start.shape)])
    step = (stop - start) / array.cast(math_ops.maximum(last, 1), start.dtype)
    spread = start + array.cast(numbers, start.dtype) * step
    return array.identity(array.where((numbers == last) & (last > 0), stop, spread), name=name)


@operator
class OneHot(OperatorDefinition):
    """on_value at the index, off_value elsewhere; a new dimension of size depth at `axis`.

    .. math:: output[..., j, ...] = on\\_value \\text{ if } indices[...] = j \\text{ else } off\\_value

    indices: integers of any shape, those outside [0, depth) give all off_value. Output: on_value's dtype.
    """

    indices = Input((dtypes.uint8, dtypes.int8, dtypes.int32, dtypes.int64))
    depth = Input(index, rank=0)
    on_value = Input(dtypes.ALL, rank=0)
    off_value = Input(dtypes.ALL, rank=0, like="on_value")
    output = Output(like="on_value")
    axis = Attr(int, default=-1)
    lod = lod_rules.added_axis("axis", "indices")

    def infer(op) -> TensorSpec:
        shape, dtype = op.indices.spec.shape, op.on_value.spec.dtype
        if shape.rank is None:
            return TensorSpec(UNKNOWN, dtype)
        depth = op.depth.constant
        if depth is not None and depth < 0:
            raise InvalidArgumentError(what="depth must be non-negative", found=int(depth))
        at = axis_in(op.axis, shape.rank + 1)
        return TensorSpec([*shape[:at], None if depth is None else int(depth), *shape[at:]], dtype)

    def compute(op, indices: Any, depth: Any, on_value: Any, off_value: Any) -> Any:
        return ONE_HOT(op, np.asarray(indices) if like_device.on_host(indices) else indices, depth, on_value, off_value)

    gradient = None


def _compared(op: Any, indices: np.ndarray, depth: Any, on_value: Any, off_value: Any) -> Any:
    return structural_arrays.one_hot(indices, int(depth), on_value, off_value, op.axis).astype(on_value.dtype)


def _set_ones(op: Any, indices: np.ndarray, depth: Any, on_value: Any, off_value: Any) -> np.ndarray:
    """off_value everywhere, then on_value where the indices say: one write a row where comparing costs one each."""
    at, n = indices.reshape(-1), int(depth)
    out = np.full((at.size, n), off_value, on_value.dtype)
    rows: Any = np.arange(at.size)
    if at.size and (int(at.min()) < 0 or int(at.max()) >= n):
        inside = (at >= 0) & (at < n)
        rows, at = rows[inside], at[inside]
    out[rows, at] = on_value
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
    wanted = None if dtype is None else as_dtype(dtype)
    given = {n: _hinted(v, wanted) for n, v in (("on_value", on_value), ("off_value", off_value)) if v is not None}
    if wanted is None:
        wanted = next((v.dtype for v in given.values()), dtypes.float32)
    for argument, value in given.items():
        if value.dtype is not wanted:
            raise TypeError(f"one_hot: {argument} has dtype {value.dtype.name}, and the result {wanted.name}")
    on = given["on_value"] if "on_value" in given else dispatch.to_tensor(1, wanted)
    off = given["off_value"] if "off_value" in given else dispatch.to_tensor(0, wanted)
    return OneHot(indices, depth, on, off, axis=-1 if axis is None else axis, name=name)


def _hinted(value: Any, dtype: DType | None) -> Tensor:
    """A value as a tensor: of `dtype` where it can be had without losing its kind, else of its own."""
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
) -> Any:
    """The identity matrix, repeated over `batch_shape`: output[..., i, j] = 1 if i = j else 0."""
    dtype = as_dtype(dtype)
    batch = () if batch_shape is None else _static(batch_shape)
    if batch is None or not is_static(num_rows) or not is_static(num_columns):
        return _identity_matrix(num_rows, num_rows if num_columns is None else num_columns, batch_shape, dtype, name)
    rows = static_int(num_rows, "num_rows")
    matrix = np.eye(rows, None if num_columns is None else static_int(num_columns, "num_columns"), dtype=dtype.np)
    return dispatch.to_tensor(np.broadcast_to(matrix, (*batch, *matrix.shape)).copy(), dtype, name)


def _identity_matrix(rows: Any, columns: Any, batch_shape: Any, dtype: DType, name: str | None) -> Tensor:
    """`eye` of sizes that are tensors."""
    rows, columns = (array.cast(n, dtypes.int32) for n in (rows, columns))
    matrix = array.cast(array.expand_dims(range(rows), 1) == range(columns), dtype, name=name)
    if batch_shape is None:
        return matrix
    if isinstance(batch_shape, (list, tuple)):
        batch_shape = dims_tensor(list(batch_shape))
    shape = array.concat([array.cast(batch_shape, dtypes.int32), array.shape_op(matrix)], 0)
    return array.broadcast_to(matrix, shape, name=name)
