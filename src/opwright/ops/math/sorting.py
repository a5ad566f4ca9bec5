"""Order: where the extremes are, sorting, the k largest.

Lives here: ArgMax, ArgMin, Sort, TopK, InTopK, InvertPermutation and the functions over them.
Not here: the extremes themselves (reduction.py), counting (statistics.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, floating, index, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation
from ..array import run_time_axes
from ..array.indexing import gather_along_axis
from ..array_functions import is_of_floats, sort_order
from ..attributes import Attr, one_of
from ..definition import operator
from ..index_shapes import top_k_dims
from ..registry import documented_by
from ..shape_inference import is_static, static_int
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy
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


def _ungather(dvalues: Any, indices: Any, like: Any) -> Tensor:
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
        return _ungather(doutput, op.indices, op.values)


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


class TopKV2(NamedTuple):
    """Result of `top_k`."""

    values: Any
    indices: Any


@operator
class TopK(OperatorDefinition[tuple[Tensor, Tensor]]):
    """The k largest along the last dimension, largest first, the first of equal ones first; NaN comes before all.

    .. math:: values_i = input_{indices_i}, \\quad values_i \\ge values_{i+1}

    input: real [..., n]; k: a scalar, at most n. values, indices: [..., k].
    raises InvalidArgumentError if k is negative or above n
    """

    input = Input(real)
    k = Input((dtypes.int16, dtypes.int32, dtypes.int64), rank=0)
    values = Output(like="input")
    indices = Output()
    sorted = Attr(bool, default=True, doc="whether the greatest comes first")
    index_type = Attr(DType, default=dtypes.int32, check=one_of(dtypes.int16, dtypes.int32, dtypes.int64))
    no_need_buffer = ("input",)
    lod = lod_propagation.batched("input", 1)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        values = op.input.spec.with_shape(
            top_k_dims(op.input.spec, None if op.k.constant is None else int(op.k.constant))
        )
        return values, values.with_dtype(op.index_type)

    def compute(op, input: Any, k: Any) -> tuple[np.ndarray, Any]:
        if not 0 <= k <= input.shape[-1]:
            raise InvalidArgumentError(
                what=f"input must have at least k columns. Had {input.shape[-1]}, needed {int(k)}"
            )
        order = TOP_K(op, input, int(k))
        return np.take_along_axis(input, order, -1), order.astype(op.index_type.np)

    def gradient(op, dvalues: Any, dindices: Any) -> tuple[Any, None]:
        return _ungather(dvalues, op.indices, op.input), None


def _keys(x: np.ndarray) -> np.ndarray:
    """Return sort keys: NaN counts as infinity."""
    return np.where(np.isnan(x), x.dtype.type(np.inf), x) if is_of_floats(x) else x


def _top_of_all(op: Any, x: np.ndarray, k: int) -> np.ndarray:
    return sort_order(_keys(x), descending=True)[..., :k]


def _top_one(op: Any, x: np.ndarray, k: int) -> np.ndarray:
    result: np.ndarray = np.argmax(_keys(x), -1)[..., None]
    return result


def _top_part(op: Any, x: np.ndarray, k: int) -> np.ndarray:
    """Select the k largest: find the k-th by partition, take those above it and its first equals, and sort them."""
    keys = _keys(x)
    n = keys.shape[-1]
    threshold = np.partition(keys, n - k, -1)[..., n - k, None]
    above, level = keys > threshold, keys == threshold
    room = k - above.sum(-1, keepdims=True)
    if not np.array_equal(level.sum(-1, keepdims=True), room):  # more of them than there is room for: the first ones
        level &= np.cumsum(level, -1) <= room
    positions = np.nonzero(above | level)[-1].reshape(*keys.shape[:-1], k)
    return np.take_along_axis(positions, sort_order(np.take_along_axis(keys, positions, -1), descending=True), -1)


def _selects(op: Any, x: np.ndarray, k: int) -> bool:
    result: bool = 0 < k < x.shape[-1] and x.dtype != dtypes.bfloat16.np
    return result


TOP_K = Strategies(
    "TopK",
    _top_of_all,
    Strategy(
        "argmax",
        _top_one,
        lambda op, x, k: int(k) == 1,
        "k is 1",
        "top_k_one",
        fits=lambda op, x, k: int(k) == 1 and x.shape[-1] > 0 and x.dtype != dtypes.bfloat16.np,
    ),
    Strategy(
        "select",
        _top_part,
        lambda op, x, k: 0 < 8 * int(k) <= x.shape[-1] and x.size >= 8192,
        "k is at most an eighth of the row, in at least 8192 elements",
        "top_k_part",
        fits=lambda op, x, k: _selects(op, x, int(k)),
    ),
    prepare=lambda op, x, k: (x, int(k)),
)


@documented_by(TopK)
def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32, name: str | None = None
) -> TopKV2:
    """Return the k largest elements along the last dimension, as (values, indices)."""
    return TopKV2(*TopK(input, k, sorted=sorted, index_type=as_dtype(index_type), name=name))


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest elements along a dimension and their indices, descending: exactly, so that recall is 1.

    recall_target, reduction_input_size_override, aggregate_to_topk: of approximate methods, without effect
    """
    return _first_in_order("approx_max_k", operand, k, reduction_dimension, "DESCENDING")


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k smallest elements along a dimension and their indices, ascending. Arguments as of approx_max_k."""
    return _first_in_order("approx_min_k", operand, k, reduction_dimension, "ASCENDING")


def approx_top_k(
    input: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest elements along a dimension and their indices, exactly: see `approx_max_k`."""
    return (approx_max_k if is_max_k else approx_min_k)(input, k, reduction_dimension)


def _first_in_order(op: str, operand: Any, k: int, axis: int, direction: str) -> tuple[Tensor, Tensor]:
    """Return the first k elements along an axis in sorted order, and their indices."""
    x: Any = dispatch.to_tensor(operand)
    rank = x.shape.rank
    if rank is None or not -rank <= axis < rank:
        raise InvalidArgumentError(
            op=f"nn.{op}", what="there is no such dimension", found=f"{axis} of {x.shape}", do="a known rank"
        )
    order: Any = argsort(x, axis, direction, stable=True)
    places = order[(..., slice(k), *[slice(None)] * (rank - 1 - axis % rank))]
    return gather_along_axis(x, places, axis), places


@operator
class InTopK(OperatorDefinition):
    """Whether the target class is among the k classes predicted highest.

    .. math:: output_i = \\#\\{j: predictions_{ij} > predictions_{i,targets_i}\\} < k

    targets: [n]; predictions: float32 [n, classes]; k: a scalar. Classes level with the target count as below it.
    False where the target is no class or a prediction is not finite.
    """

    targets = Input(index, rank=1)
    predictions = Input(floating, rank=2)
    k = Input(index, rank=0)
    output = Output(dtype=dtypes.bool)
    gradient = None

    def infer(op) -> TensorSpec:
        (n,), (rows, _) = op.targets.spec.shape.with_rank(1), op.predictions.spec.shape.with_rank(2)
        if None not in (n, rows) and n != rows:
            raise InvalidArgumentError(what=f"First dimension of predictions {rows} must match length of targets {n}")
        return TensorSpec([rows if n is None else n], dtypes.bool)

    def compute(op, targets: Any, predictions: Any, k: Any) -> np.ndarray:
        classes = predictions.shape[1]
        in_range = (targets >= 0) & (targets < classes)
        if classes == 0:
            result: np.ndarray = in_range
            return result
        of_target = np.take_along_axis(predictions, np.where(in_range, targets, 0)[:, None], 1)
        higher = (predictions > of_target).sum(1)
        output: np.ndarray = in_range & np.isfinite(predictions).all(1) & (higher < k)
        return output


@documented_by(InTopK)
def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Return whether the target class is among the k largest predictions."""
    return InTopK(targets, predictions, k, name=name)


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
    raises InvalidArgumentError if it is no permutation
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
