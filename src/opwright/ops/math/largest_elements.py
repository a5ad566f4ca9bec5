"""The k largest elements: TopK, InTopK, and the functions over them.

Not here: sorting, extremes (sorting.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, floating, index, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import dispatch, lod_propagation
from ..array.indexing import gather_along_axis
from ..array_functions import is_of_floats, sort_order
from ..attributes import Attr, one_of
from ..definition import operator
from ..index_shapes import top_k_dims
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy
from ..tensor import Tensor
from .sorting import argsort, ungather

if TYPE_CHECKING:
    pass


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
        return ungather(dvalues, op.indices, op.input), None


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
    False where the target is not a class or a prediction is not finite.
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
