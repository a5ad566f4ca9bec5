"""Statistics: variance, standard deviation, logsumexp, norms; counts of values, histograms, confusion matrices.

Lives here: reduce_logsumexp, reduce_variance, reduce_std, l2_normalize, composed of reductions; DenseBincount,
HistogramFixedWidth, ConfusionMatrix, and bincount, histogram_fixed_width, its bins, count_nonzero, zero_fraction,
confusion_matrix.
Not here: reductions (reduction.py), sums by segment (segment.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import as_dtype, index, numeric
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, math
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import is_static, static_int
from ..slots import Input, OperatorDefinition, Output
from .arithmetic import _conj as conj_of_complex
from .reduction import Max, Mean, Sum, reduced

if TYPE_CHECKING:
    from ..tensor import Tensor


def _other_weights(weights: Any, shape: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        what="`weights` must be the same shape as `arr` or a length-0 `Tensor`", found=f"{weights}, {shape}"
    )


@operator
class DenseBincount(OperatorDefinition):
    """How often each of 0 ... size - 1 occurs, or the sum of the weights where it does; larger numbers are left out.

    .. math:: output_i = \\sum_{j: input_j = i} weights_j

    input: int32 or int64, [n] or [rows, n], counted by row; size: a scalar; weights: shaped like input, or empty for
    weights of 1. binary_output: 1 for what occurs at all. Output: [size] or [rows, size], of the weights' dtype.
    raises InvalidArgumentError for negative numbers
    """

    input = Input(index, rank=(1, 2))
    size = Input(index, rank=0)
    weights = Input((dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64))
    output = Output(like="weights")
    binary_output = Attr(bool, default=False)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        shape, n = op.input.spec.shape, op.size.constant
        if n is not None and n < 0:
            raise InvalidArgumentError(what=f"size ({int(n)}) must be non-negative")
        dtype, weights = op.weights.spec.dtype, op.weights.spec.shape
        if weights.num_elements() != 0 and weights.is_fully_defined() and not weights.is_compatible_with(shape):
            raise _other_weights(weights, shape)
        return TensorSpec(None if shape.rank is None else [*shape[:-1], None if n is None else int(n)], dtype)

    def compute(op, input: Any, size: Any, weights: Any) -> np.ndarray:
        if np.any(input < 0):
            raise InvalidArgumentError(what="Input arr must be non-negative!", wanted="values of at least 0")
        if weights.size and weights.shape != input.shape:
            raise _other_weights(list(weights.shape), list(input.shape))
        n = int(size)
        rows = np.atleast_2d(input)
        row = np.broadcast_to(like_device.arange(input, len(rows))[:, None], rows.shape)
        inside = rows < n
        if not weights.size:
            counts = np.bincount(row[inside] * n + rows[inside], minlength=len(rows) * n)
            return (counts > 0 if op.binary_output else counts).astype(weights.dtype).reshape(*input.shape[:-1], n)
        out = like_device.zeros(input, (len(rows), n), weights.dtype)
        if op.binary_output:
            out[row[inside], rows[inside]] = 1
        else:
            np.add.at(out, (row[inside], rows[inside]), weights.reshape(rows.shape)[inside])
        return out.reshape(*input.shape[:-1], n)


@documented_by(DenseBincount)
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    axis: Any = None,
    binary_output: bool = False,
) -> Tensor:
    """Count the occurrences of each integer.

    arr: numbers of any shape, cast to int32 unless int64, counted together; with axis=-1 of a matrix, by row. The
    result is as long as the largest number asks for, at least minlength, at most maxlength. dtype: of the counts, where
    there are no weights.
    raises ValueError for weights with binary_output
    """
    if weights is not None and binary_output:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    arr = dispatch.to_tensor(arr)
    if arr.dtype not in index:
        arr = array.cast(arr, dtypes.int32)
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    weights = array.zeros([0], as_dtype(dtype)) if weights is None else dispatch.to_tensor(weights)
    if axis != -1 and arr.shape.rank != 1:
        weights = array.reshape(weights, [-1])
        arr = array.reshape(arr, [-1])
    return DenseBincount(arr, _length(arr, minlength, maxlength), weights, binary_output=binary_output, name=name)


def _length(arr: Any, minlength: Any, maxlength: Any) -> Any:
    """Return the length of the counts of `bincount`; known while tracing if the bounds leave one alone."""
    if None not in (minlength, maxlength) and is_static(minlength) and is_static(maxlength):
        least, most = static_int(minlength, "minlength"), static_int(maxlength, "maxlength")
        if least >= most >= 0:
            return np.array(most, arr.dtype.np)
    zero = array.zeros([1], arr.dtype)
    size = math.reduce_max(array.concat([array.reshape(arr, [-1]) + 1, zero], 0))
    if minlength is not None:
        size = math.maximum(size, array.cast(minlength, arr.dtype))
    if maxlength is not None:
        size = math.minimum(size, array.cast(maxlength, arr.dtype))
    return size


@operator
class HistogramFixedWidth(OperatorDefinition):
    """How many values are in each of `nbins` intervals, equally wide, of a range; the outer ones take what is outside.

    .. math:: output_i = |\\{j: \\lfloor nbins \\frac{values_j - low}{high - low} \\rfloor = i\\}|

    values: of any shape; value_range: [low, high], of values' dtype; nbins: a scalar; output: [nbins], of `dtype`.
    raises InvalidArgumentError for NaN, for low >= high and for nbins below 1
    """

    values = Input((dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64))
    value_range = Input((dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64), rank=1, like="values")
    nbins = Input(dtypes.int32, rank=0)
    output = Output()
    dtype = Attr(dtypes.DType, default=dtypes.int32)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        if op.dtype not in index:
            raise InvalidArgumentError(what="dtype is int32 or int64", found=op.dtype.name)
        if not op.value_range.spec.shape.is_compatible_with([2]):
            raise InvalidArgumentError(
                what="value_range has the wrong shape", found=op.value_range.spec.short(), wanted="shape [2]"
            )
        n = op.nbins.constant
        return TensorSpec([None if n is None else _bins(n)], op.dtype)

    def compute(op, values: Any, value_range: Any, nbins: Any) -> np.ndarray:
        n, (low, high) = _bins(nbins), value_range
        if not low < high or not np.isfinite(high - low):
            raise InvalidArgumentError(
                what="value_range should satisfy value_range[0] < value_range[1], both finite",
                found=value_range.tolist(),
            )
        if np.isnan(values).any():
            raise InvalidArgumentError(what="Histogram values must not contain NaN", wanted="numbers")
        if values.dtype.kind == "i":  # differences of integers may be too large for their dtype
            values, low, high = values.astype(np.float64), np.float64(low), np.float64(high)
        bins = (np.clip(values.reshape(-1), low, high) - low).astype(np.float64) / (np.float64(high - low) / n)
        return np.bincount(np.minimum(bins.astype(np.int64), n - 1), minlength=n).astype(op.dtype.np)


def _bins(nbins: Any) -> int:
    """Return a number of bins. Raises InvalidArgumentError below 1."""
    if nbins < 1:
        raise InvalidArgumentError(what=f"nbins should be a positive number, but got {int(nbins)}")
    return int(nbins)


@documented_by(HistogramFixedWidth)
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Count the values in each of `nbins` intervals of equal width."""
    return HistogramFixedWidth(values, value_range, nbins, dtype=as_dtype(dtype), name=name)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Return the number of each value's interval, of `nbins` of equal width in value_range; outer values are in the
    first and the last. raises InvalidArgumentError for less than one interval"""
    x: Any = dispatch.to_tensor(values)
    low, high = array.unstack(dispatch.to_tensor(value_range), 2)
    count = array.cast(_bins(nbins), dtypes.float64)
    share: Any = (array.cast(x, dtypes.float64) - array.cast(low, dtypes.float64)) / array.cast(
        high - low, dtypes.float64
    )
    bins = math.maximum(math.minimum(math.floor(share * count), count - 1.0), 0.0)
    return array.cast(bins, as_dtype(dtype), name=name)


@documented_by(Sum)
def count_nonzero(
    input: Any, axis: Any = None, keepdims: Any = None, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Count the nonzero elements (nonempty strings, True) over axes. NaN counts."""
    x = dispatch.to_tensor(input)
    counted = array.cast(x if x.dtype.is_bool else x != array.zero_of(x), dtypes.int64)
    return array.cast(reduced(Sum, counted, axis, bool(keepdims)), as_dtype(dtype), name)


@documented_by(Sum)
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Return the fraction of zeros, float32; NaN for an empty tensor."""
    x = dispatch.to_tensor(value)
    n = array.cast(array.size(x), dtypes.float32)
    return array.identity((n - count_nonzero(x, dtype=dtypes.float32)) / n, name=name)


@operator
class ConfusionMatrix(OperatorDefinition):
    """How often each class was predicted for each label, or the sum of the weights.

    .. math:: output_{ij} = \\sum_{l: labels_l = i, predictions_l = j} weights_l

    labels, predictions: int64 [n]; num_classes: a scalar; weights: [n]. Output: [num_classes, num_classes].
    raises InvalidArgumentError for classes that are negative or not below num_classes
    """

    labels = Input(index, rank=1)
    predictions = Input(index, rank=1, like="labels")
    num_classes = Input(index, rank=0)
    weights = Input(numeric, rank=1)
    output = Output(like="weights")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        shapes = [op.labels.spec.shape, op.predictions.spec.shape, op.weights.spec.shape]
        if not all(a.is_compatible_with(b) for a in shapes for b in shapes):
            raise InvalidArgumentError(
                what="labels, predictions and weights differ in shape", found=" ".join(map(str, shapes))
            )
        n = op.num_classes.constant
        return TensorSpec([None if n is None else int(n)] * 2, op.weights.spec.dtype)

    def compute(op, labels: Any, predictions: Any, num_classes: Any, weights: Any) -> np.ndarray:
        n = int(num_classes)
        for name, classes in (("labels", labels), ("predictions", predictions)):
            if np.any(classes < 0):
                raise InvalidArgumentError(what=f"`{name}` contains negative values", found=int(classes.min()))
            if np.any(classes >= n):
                raise InvalidArgumentError(what=f"`{name}` out of bound", found=int(classes.max()), wanted=f"below {n}")
        out = like_device.zeros(weights, (n, n), weights.dtype)
        np.add.at(out, (labels, predictions), weights)
        return out


@documented_by(ConfusionMatrix)
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Count the predictions of each class by label.

    labels, predictions: [n], a last dimension of 1 more is dropped. num_classes: by default the largest plus one.
    """
    dtype = as_dtype(dtype)
    labels, predictions = (array.cast(dispatch.to_tensor(v), dtypes.int64) for v in (labels, predictions))
    labels, predictions = (array.squeeze(v, [-1]) if v.shape.rank == 2 else v for v in (labels, predictions))
    if num_classes is None:
        both = array.concat([labels, predictions], 0)
        num_classes = math.reduce_max(both) + 1
    if weights is None:
        weights = array.cast(array.ones_like(labels), dtype)
    else:
        weights = array.cast(dispatch.to_tensor(weights), dtype)
    return ConfusionMatrix(labels, predictions, array.cast(num_classes, dtypes.int64), weights, name=name)


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow: the maximum is taken out first. Without elements, minus infinity.

    input_tensor: floating.
    """
    x = dispatch.to_tensor(input_tensor)
    peak = array.stop_gradient(reduced(Max, x, axis, keepdims=True))
    peak = array.where(math.is_finite(peak), peak, array.zero_of(peak))
    total = math.log(reduced(Sum, math.exp(x - peak), axis, keepdims))
    if not keepdims:
        peak = array.reshape(peak, array.shape_op(total))
    return array.identity(total + peak, name=name)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the variance over axes: the mean squared distance from the mean, real for complex numbers.

    raises TypeError for integers
    """
    x = dispatch.to_tensor(input_tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
    distance = x - reduced(Mean, x, axis, keepdims=True)
    squared = math.real(distance * conj_of_complex(distance)) if x.dtype.is_complex else distance * distance
    return reduced(Mean, squared, axis, keepdims, name)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the standard deviation over axes: the square root of `reduce_variance`, which has the errors, too.

    axis: None for all, an int or a list of them. keepdims: reduced axes remain, with size 1
    """
    return math.sqrt(reduce_variance(input_tensor, axis, keepdims), name=name)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """Scale to unit L2 norm along axes: x / sqrt(max(sum(|x|^2), epsilon))."""
    x = dispatch.to_tensor(x)
    squared = math.real(x * conj_of_complex(x)) if x.dtype.is_complex else x * x
    inverse = math.rsqrt(math.maximum(reduced(Sum, squared, axis, keepdims=True), epsilon))
    return array.identity(x * array.cast(inverse, x.dtype), name=name)
