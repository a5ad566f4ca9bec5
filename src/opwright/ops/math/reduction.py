"""Reductions over axes.

Lives here: Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm and the functions over them.
Not here: variance and other compositions (statistics.py), positions of extremes (sorting.py), cumulative sums
(cumulative.py), sums by segment (segment.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...core import dtypes
from ...core.dtypes import numeric, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_propagation, math, registry
from ..accumulation import count_over, mean_over, sum_over, wide
from ..attributes import Attr
from ..definition import operator
from ..shape_inference import axes_in, is_static, reduced_dims, static_axes
from ..slots import Input, OperatorDefinition, Output
from .arithmetic import _conj
from .cumulative import cumprod

if TYPE_CHECKING:
    from ..tensor import Tensor, TensorValue


def _reduced(op: Any) -> TensorSpec:
    """Return the spec of a reduction of `op.input_tensor` over op.axis."""
    spec = op.input_tensor.spec
    dims = spec.shape.dims
    if dims is None:
        return TensorSpec(() if op.axis is None and not op.keepdims else None, spec.dtype)
    try:
        axes = set(axes_in(op.axis, len(dims)))
    except InvalidArgumentError as error:
        raise InvalidArgumentError(what=f"Invalid reduction dimension: {error.message}", found=spec.short()) from None
    return TensorSpec(reduced_dims(dims, axes, op.keepdims), spec.dtype)


def _expanded(op: Any, y: Any) -> Tensor:
    """Return the result of a reduction with its reduced dimensions restored with size 1."""
    if op.keepdims or op.axis == ():
        result: Tensor = y
        return result
    rank = op.input_tensor.shape.rank
    if rank is None:
        if op.axis is None:
            output: Tensor = y  # a scalar fits wherever it is broadcast
            return output
        shape = array.shape_op(op.input_tensor)
        n = array.size(shape)
        places = array.expand_dims((dispatch.to_tensor(list(op.axis), dtypes.int32) + n) % n, 1)
        ones = array.ones_like(places[:, 0])
        return array.reshape(y, array.tensor_scatter_nd_update(shape, places, ones))
    for axis in sorted(axes_in(op.axis, rank)):
        y = array.expand_dims(y, axis)
    values: Tensor = y
    return values


def _spread(op: Any, dy: Any) -> Tensor:
    """Broadcast `dy` over the elements that were reduced."""
    return array.broadcast_to(_expanded(op, dy), array.shape_op(op.input_tensor))


class _AxisReduction(OperatorDefinition):
    """Base of reductions over axes."""

    input_tensor = Input(numeric)
    output = Output(like="input_tensor")
    axis = Attr([int], default=None)
    keepdims = Attr(bool, default=False)
    lod = lod_propagation.along("axis", "input_tensor")
    infer = _reduced


@operator
class Sum(_AxisReduction):
    """Sum over axes; float16 and bfloat16 are summed in float32, integers keep their dtype and wrap.

    .. math:: output = \\sum_{i \\in axis} input_i

    input_tensor: numbers; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    raises InvalidArgumentError for an axis that is out of range or given twice
    """

    no_need_buffer = ("input_tensor",)

    def compute(op, input_tensor: Any) -> np.ndarray:
        total = sum_over(input_tensor, op.axis, wide(input_tensor.dtype), op.keepdims)
        return total if total.dtype == input_tensor.dtype else total.astype(input_tensor.dtype)

    def gradient(op, doutput: Any) -> Tensor:
        return _spread(op, doutput)


@operator
class Mean(_AxisReduction):
    """Mean over axes: of no elements NaN, or 0 for integers; means of integers are truncated.

    .. math:: output = \\frac{1}{n} \\sum_{i \\in axis} input_i

    input_tensor: numbers; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    raises InvalidArgumentError for an axis that is out of range or given twice
    """

    no_need_buffer = ("input_tensor",)

    def compute(op, input_tensor: Any) -> np.ndarray:
        x = input_tensor
        if x.dtype.kind in "iu":
            count = count_over(x, op.axis)
            total = np.sum(x, axis=op.axis, keepdims=op.keepdims, dtype=np.int64 if x.dtype.kind == "i" else np.uint64)
            return (np.sign(total) * (np.abs(total) // total.dtype.type(max(1, count)))).astype(x.dtype)
        mean = mean_over(x, op.axis, wide(x.dtype), op.keepdims)
        return mean if mean.dtype == x.dtype else mean.astype(x.dtype)

    def gradient(op, doutput: Any) -> Tensor:
        x = op.input_tensor
        dims = x.shape.dims
        counted = None if dims is None else [dims[a] for a in axes_in(op.axis, len(dims))]
        sizes = [] if counted is None else [d for d in counted if d is not None]
        if counted is not None and len(sizes) == len(counted):
            return _spread(op, doutput) / float(max(1, int(np.prod(sizes))))
        many, few = array.size(x), array.size(doutput)
        count = array.cast(many // array.where(few > 0, few, array.ones_like(few)), x.dtype)
        return _spread(op, doutput / count)


@operator
class Prod(_AxisReduction):
    """Product over axes; of no elements 1.

    .. math:: output = \\prod_{i \\in axis} input_i

    input_tensor: numbers; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    raises InvalidArgumentError for an axis that is out of range or given twice
    """

    def compute(op, input_tensor: Any) -> np.ndarray:
        x = input_tensor
        result: np.ndarray = np.prod(x, axis=op.axis, keepdims=op.keepdims, dtype=wide(x.dtype)).astype(x.dtype)
        return result

    def gradient(op, doutput: Any) -> Tensor:
        # The product of all others, without dividing, so that zeros are not exceptional: along one axis the products of
        # those before and those after; axis by axis, the others of one's line times the products of the other lines.
        x = op.input_tensor
        over_all = op.axis is None
        axes = (0,) if op.axis is None else op.axis
        part = array.reshape(x, [-1]) if over_all else x
        others = None
        for axis in axes:
            before, after = cumprod(part, axis, exclusive=True), cumprod(part, axis, exclusive=True, reverse=True)
            others = before * after if others is None else others * (before * after)
            if len(axes) > 1:
                part = Prod(part, axis=(axis,), keepdims=True)
        if others is None:
            result: Tensor = doutput
            return result
        if over_all:
            others = array.reshape(others, array.shape_op(x))
        return _spread(op, doutput) * _conj(others)


def _lowest(dtype: np.dtype) -> object:
    """Return the maximum of no elements: minus infinity, or the smallest integer."""
    limits = dtypes.of_numpy(dtype)
    return dtype.type(-np.inf) if limits.is_floating else limits.min


def _highest(dtype: np.dtype) -> object:
    """Return the minimum of no elements: infinity, or the largest integer."""
    limits = dtypes.of_numpy(dtype)
    return dtype.type(np.inf) if limits.is_floating else limits.max


def _extreme_gradient(op: Any, doutput: Any) -> Tensor:
    """Return the gradient of an extreme, shared equally among equal elements."""
    x = op.input_tensor
    extremes = op.operator(x, axis=op.axis, keepdims=True) if op.axis != () else x
    chosen = array.cast(x == extremes, x.dtype)
    result: Tensor = chosen / Sum(chosen, axis=op.axis, keepdims=True) * _expanded(op, doutput)
    return result


@operator
class Max(_AxisReduction):
    """Maximum over axes: NaN if any is, of no elements minus infinity or the smallest integer.

    .. math:: output = \\max_{i \\in axis} input_i

    input_tensor: real numbers; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    Equally large elements share the gradient equally.
    raises InvalidArgumentError for an axis that is out of range or given twice
    """

    input_tensor = Input(real)

    def compute(op, input_tensor: Any) -> np.ndarray:
        x = input_tensor
        maximum: Any = np.maximum
        result: np.ndarray = maximum.reduce(x, axis=op.axis, keepdims=op.keepdims, initial=_lowest(x.dtype))
        return result

    gradient = _extreme_gradient


@operator
class Min(_AxisReduction):
    """Minimum over axes: NaN if any is, of no elements infinity or the largest integer.

    .. math:: output = \\min_{i \\in axis} input_i

    input_tensor: real numbers; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    Equally small elements share the gradient equally.
    raises InvalidArgumentError for an axis that is out of range or given twice
    """

    input_tensor = Input(real)

    def compute(op, input_tensor: Any) -> np.ndarray:
        x = input_tensor
        minimum: Any = np.minimum
        result: np.ndarray = minimum.reduce(x, axis=op.axis, keepdims=op.keepdims, initial=_highest(x.dtype))
        return result

    gradient = _extreme_gradient


@operator
class All(_AxisReduction):
    """Whether all are true, over axes; of no elements True.

    .. math:: output = \\bigwedge_{i \\in axis} input_i

    input_tensor: bool; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    """

    input_tensor = Input(dtypes.bool)
    gradient = None

    def compute(op, input_tensor: Any) -> np.ndarray:
        result: np.ndarray = np.all(input_tensor, axis=op.axis, keepdims=op.keepdims)
        return result


@operator(name="Any")
class AnyTrue(_AxisReduction):
    """Whether any is true, over axes; of no elements False.

    .. math:: output = \\bigvee_{i \\in axis} input_i

    input_tensor: bool; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    """

    input_tensor = Input(dtypes.bool)
    gradient = None

    def compute(op, input_tensor: Any) -> np.ndarray:
        result: np.ndarray = np.any(input_tensor, axis=op.axis, keepdims=op.keepdims)
        return result


@operator
class EuclideanNorm(_AxisReduction):
    """Square root of the sum of squares over axes; truncated for integers.

    .. math:: output = \\sqrt{\\sum_{i \\in axis} |input_i|^2}

    input_tensor: numbers; axis: the reduced axes, None for all; keepdims: whether they stay with size 1.
    """

    def compute(op, input_tensor: Any) -> np.ndarray:
        x = np.abs(input_tensor) if input_tensor.dtype.kind == "c" else input_tensor
        x = x.astype(np.float64 if x.dtype.kind in "iu" else wide(x.dtype))
        result: np.ndarray = np.sqrt(np.sum(x * x, axis=op.axis, keepdims=op.keepdims)).astype(input_tensor.dtype)
        return result

    def gradient(op, doutput: Any) -> Tensor:
        if op.input_tensor.dtype.is_complex:
            doutput = array.cast(math.real(doutput), doutput.dtype)
        return op.input_tensor * _expanded(op, doutput / op.output)


# ---- the public functions -----------------------------------------------------------------------------------------


def reduced(op: Any, input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Call a reduction over axes that may be a tensor whose value is known only when the graph runs."""
    if (axis is None or type(axis) is int) and type(keepdims) is bool:  # types by which equal keys are one call
        kept = _calls.get((op, axis, keepdims))
        if kept is None:
            kept = op.bind({"axis": static_axes(axis), "keepdims": keepdims})
            if len(_calls) < 256:
                _calls[op, axis, keepdims] = kept
        reduction: Tensor = dispatch.call(op, (input_tensor,), kept, name)
        return reduction
    if not is_static(axis):
        return array.run_time_axes.reduce(op, input_tensor, axis, bool(keepdims), name)
    result: Tensor = op(input_tensor, axis=static_axes(axis), keepdims=bool(keepdims), name=name)
    return result


_calls: dict[tuple[Any, int | None, bool], Any] = {}  # by operator, axis and keepdims: `bind` takes 1 us


class _Reduction(Protocol):
    """The public function of a reduction over axes."""

    def __call__(
        self, input_tensor: TensorValue, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor: ...


def _function(op: Any, name: str) -> _Reduction:
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        return reduced(op, input_tensor, axis, keepdims, name)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{(op.__doc__ or '').rstrip()}\n\n    axis: None for all, an int, a list of them, or a tensor."
    reduce.operator = op  # type: ignore[attr-defined]  # the registry's mark of public functions
    registry.name_function(name, op)
    return reduce


reduce_sum = _function(Sum, "reduce_sum")
reduce_mean = _function(Mean, "reduce_mean")
reduce_prod = _function(Prod, "reduce_prod")
reduce_max = _function(Max, "reduce_max")
reduce_min = _function(Min, "reduce_min")
reduce_all = _function(All, "reduce_all")
reduce_any = _function(AnyTrue, "reduce_any")
reduce_euclidean_norm = _function(EuclideanNorm, "reduce_euclidean_norm")
