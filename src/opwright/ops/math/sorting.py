"""Order: where the extremes are, sorting.

Lives here: ArgMax, ArgMin, Sort, InvertPermutation and the functions over them.
Not here: the k largest (largest_elements.py), the extremes themselves (reduction.py), counting (statistics.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation
from ..array import run_time_axes
from ..array_functions import is_of_floats, sort_order
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import is_static, static_int
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .reduction import reduce_all
from .ufunc import greater, greater_equal
from .unsorted_segment import UnsortedSegmentSum

if TYPE_CHECKING:
    from .. import signatures

_INDICES = one_of(dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.int64)


def _without_axis(op: Any) -> TensorSpec:
    spec = op.input.spec
    dims, rank = spec.shape.dims, spec.shape.rank
    if dims is None:
        return TensorSpec(None, op.output_type)
    if not -rank <= op.axis < rank:
        raise InvalidArgumentError(
            what=f"Expected dimension in the range [{-rank}, {rank}), but got {op.axis}", found=spec.short()
        )
    axis = op.axis % rank
    if dims[axis] == 0 and 0 not in dims[:axis] + dims[axis + 1 :] and None not in dims:
        raise InvalidArgumentError(what=f"Reduction axis {op.axis} is empty", found=spec.short())
    return TensorSpec([d for i, d in enumerate(dims) if i != axis], op.output_type)


def _may_have_nan(x: Any) -> bool:
    """Return whether there is a NaN, or infinities of both signs; True for arrays of devices."""
    return type(x) is not np.ndarray or (total := np.add.reduce(x, axis=None)) != total


def _first_best(op: Any, x: np.ndarray, best: str, replaced: Any) -> np.ndarray:
    """Return where along op.axis the first best element is, by a method of arrays; NaN never is, unless nothing else is
    there."""
    if x.shape[op.axis] == 0:
        return np.zeros(np.delete(x.shape, op.axis), op.output_type.np)
    if is_of_floats(x) and _may_have_nan(x):
        x = np.where(np.isnan(x), x.dtype.type(replaced), x)
    result: np.ndarray = getattr(x, best)(op.axis).astype(op.output_type.np, copy=False)
    return result


class _ArgExtreme(OperatorDefinition):
    """Base of the searches for the first extreme along an axis."""

    input = Input((*real, dtypes.bool))
    output = Output()
    axis = Attr(int, default=0)
    output_type = Attr(DType, default=dtypes.int64, check=_INDICES)
    lod = lod_propagation.along("axis", "input")
    infer = _without_axis
    gradient = None


@operator
class ArgMax(_ArgExtreme):
    """Index of the largest element along an axis, the first of equal ones.

    .. math:: output = \\arg\\max_i input_i

    input: real or bool; output_type: int16, uint16, int32 or int64.
    raises InvalidArgumentError for an axis that is out of range or empty
    """

    def compute(op, input: Any) -> np.ndarray:
        return _first_best(op, input, "argmax", -np.inf)


@operator
class ArgMin(_ArgExtreme):
    """Index of the smallest element along an axis, the first of equal ones.

    .. math:: output = \\arg\\min_i input_i

    input: real or bool; output_type: int32 or int64.
    raises InvalidArgumentError for an axis that is out of range or empty
    """

    def compute(op, input: Any) -> np.ndarray:
        return _first_best(op, input, "argmin", np.inf)


@documented_by(ArgMax)
def argmax(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Return the index of the maximum along an axis. axis: by default 0."""
    if not is_static(axis):
        indices = run_time_axes.reduce_along(
            lambda x: ArgMax(x, axis=0, output_type=as_dtype(output_type)), input, axis
        )
        return array.identity(indices, name=name)
    axis = 0 if axis is None else static_int(axis, "axis")
    return ArgMax(input, axis=axis, output_type=as_dtype(output_type), name=name)


@documented_by(ArgMin)
def argmin(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Return the index of the minimum along an axis. axis: by default 0."""
    if not is_static(axis):
        indices = run_time_axes.reduce_along(
            lambda x: ArgMin(x, axis=0, output_type=as_dtype(output_type)), input, axis
        )
        return array.identity(indices, name=name)
    axis = 0 if axis is None else static_int(axis, "axis")
    return ArgMin(input, axis=axis, output_type=as_dtype(output_type), name=name)


def ungather(dvalues: Any, indices: Any, like: Any) -> Tensor:
    """Return the gradient of gathering `indices` from the last dimension of `like`: scatter-add the parts."""
    shape = array.shape_op(like)
    n = shape[-1]
    rows = array.size(like) // array.where(n > 0, n, array.ones_like(n))
    picked = array.reshape(indices, array.stack([rows, array.shape_op(indices)[-1]]))
    places = array.cast(picked, dtypes.int32) + array.expand_dims(array.range(rows) * n, -1)
    flat = UnsortedSegmentSum(array.reshape(dvalues, [-1]), array.reshape(places, [-1]), array.size(like))
    return array.reshape(flat, shape)


@operator
class Sort(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Sort along the last dimension, keeping the order of equal elements; NaN comes last.

    .. math:: output_i = values_{indices_i}, \\quad output_i \\le output_{i+1}

    values: real, at least one dimension; direction: "ASCENDING" or "DESCENDING". indices: int32.
    """

    values = Input(real)
    output = Output(like="values")
    indices = Output(dtype=dtypes.int32)
    direction = Attr(str, default="ASCENDING", check=one_of("ASCENDING", "DESCENDING"))
    no_need_buffer = ("values",)
    lod = lod_propagation.batched("values", 1)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        spec = op.values.spec
        if spec.shape.rank == 0:
            raise InvalidArgumentError(
                what="a scalar cannot be sorted", found=spec.short(), wanted="at least one dimension"
            )
        return spec, spec.with_dtype(dtypes.int32)

    def compute(op, values: Any) -> tuple[np.ndarray, np.ndarray]:
        order = sort_order(values, op.direction == "DESCENDING")
        return np.take_along_axis(values, order, -1), order.astype(np.int32)

    def gradient(op, doutput: Any, dindices: Any) -> Tensor:
        return ungather(doutput, op.indices, op.values)


def _sorted(values: Any, axis: Any, direction: str, which: int) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            f"Argument `direction` should be one of ASCENDING, DESCENDING. Received: direction={direction}"
        )
    values, axis = dispatch.to_tensor(values), static_int(axis, "axis")
    rank = values.shape.rank
    if axis == -1 or (rank is not None and axis == rank - 1):
        return Sort(values, direction=direction)[which]
    if rank is None:
        raise TypeError(f"sort: the rank must be known while tracing for axis {axis}")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(op="Sort", what=f"axis {axis} is out of range", wanted=f"in [{-rank}, {rank})")
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    return array.transpose(Sort(array.transpose(values, perm), direction=direction)[which], perm)


@documented_by(Sort)
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Sort along an axis. direction: "ASCENDING" or "DESCENDING"."""
    return array.identity(_sorted(values, axis, direction, 0), name=name)


@documented_by(Sort)
def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Return the int32 indices that sort an axis; always stable."""
    return array.identity(_sorted(values, axis, direction, 1), name=name)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Return whether no element is smaller than the one before it, in the order of memory; a scalar of bool."""
    return _each_step(greater_equal, x, name)


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Return whether each element is larger than the one before it, in the order of memory; a scalar of bool."""
    return _each_step(greater, x, name)


def _each_step(compare: Any, x: Any, name: str | None) -> Tensor:
    flat = array.reshape(x, [-1])
    return reduce_all(compare(flat[1:], flat[:-1]), name=name)


@operator
class InvertPermutation(OperatorDefinition):
    """The permutation that undoes `x`.

    .. math:: y_{x_i} = i

    x: int32 or int64 [n], each of 0 ... n - 1 once.
    raises InvalidArgumentError if it is not a permutation
    """

    x = Input(index, rank=1)
    y = Output(like="x")
    lod = "vanishes"
    gradient = None

    def compute(op, x: Any) -> np.ndarray:
        n = x.size
        for i in x[(x < 0) | (x >= n)][:1]:
            raise InvalidArgumentError(what=f"{i} is not between 0 and {n}")
        y = like_device.full(x, n, -1, x.dtype)
        y[x] = like_device.arange(x, n, x.dtype)
        if (y < 0).any():
            raise InvalidArgumentError(what=f"{np.argmax(np.bincount(x))} is duplicated in the input.")
        return y


invert_permutation: signatures.InvertPermutation = InvertPermutation.as_function("invert_permutation")
