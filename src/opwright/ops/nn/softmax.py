"""Softmax and cross entropies over it; losses on independent logits; L2 loss.

Lives here: Softmax, LogSoftmax, SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, ClassLabels;
L2Loss; sigmoid and weighted cross entropies, Poisson loss as functions over operators.
Not here: Keras's losses (nn/losses).

Softmax operators subtract the maximum logit before exponentiation to avoid overflow; 16-bit floats are computed in
float32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import replicas
from ...core.dtypes import floating, index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape, broadcast
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_propagation
from ..accumulation import wide
from ..array import cast, expand_dims, one_hot, where, zero_of
from ..array.shape_operators import shape_op, sum_to_shape_of
from ..attributes import Attr
from ..definition import operator
from ..math import divide_no_nan, exp, log, log1p, negative, reduce_sum
from ..registry import documented_by
from ..shape_inference import axis_in, static_int
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor


def _check_axis(op: Any) -> None:
    rank = op.logits.spec.shape.rank
    if rank == 0:
        raise InvalidArgumentError(
            what="logits is a scalar", found=op.logits.spec.short(), wanted="at least one dimension"
        )
    if rank is not None:
        axis_in(op.axis, rank)


def _log_sum_exp(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x minus its maximum along the axis, and the logarithm of the sum of its exponentials."""
    shifted = x - x.max(axis, keepdims=True, initial=-np.inf)
    return shifted, np.log(np.exp(shifted).sum(axis, keepdims=True))


@operator
class Softmax(OperatorDefinition):
    """Apply softmax along `axis`.

    .. math:: softmax_i = \\frac{e^{logits_i}}{\\sum_j e^{logits_j}}

    raises InvalidArgumentError for a scalar or an axis out of range
    """

    logits = Input(floating)
    softmax = Output(like="logits")
    axis = Attr(int, default=-1)
    lod = lod_propagation.along("axis", "logits")

    def infer(op) -> TensorSpec:
        _check_axis(op)
        return op.logits.spec

    def compute(op, logits: np.ndarray) -> np.ndarray:
        x = logits.astype(wide(logits.dtype), copy=False)
        add: Any = np.add
        maximum: Any = np.maximum
        e = np.exp(x - maximum.reduce(x, axis=op.axis, keepdims=True, initial=-np.inf))
        e /= add.reduce(e, axis=op.axis, keepdims=True)
        softmax: np.ndarray = e.astype(logits.dtype, copy=False)
        return softmax

    def gradient(op, dy: Tensor) -> Tensor:
        y = op.softmax
        return (dy - reduce_sum(dy * y, axis=op.axis, keepdims=True)) * y


@operator
class LogSoftmax(OperatorDefinition):
    """Compute the logarithm of Softmax, without underflow.

    .. math:: logsoftmax_i = logits_i - \\log \\sum_j e^{logits_j}

    raises InvalidArgumentError for a scalar or an axis out of range
    """

    logits = Input(floating)
    logsoftmax = Output(like="logits")
    axis = Attr(int, default=-1)
    lod = lod_propagation.along("axis", "logits")

    def infer(op) -> TensorSpec:
        _check_axis(op)
        return op.logits.spec

    def compute(op, logits: np.ndarray) -> np.ndarray:
        shifted, total = _log_sum_exp(logits.astype(wide(logits.dtype), copy=False), op.axis)
        logsoftmax: np.ndarray = (shifted - total).astype(logits.dtype, copy=False)
        return logsoftmax

    def gradient(op, dy: Tensor) -> Tensor:
        return dy - exp(op.logsoftmax) * reduce_sum(dy, axis=op.axis, keepdims=True)


@documented_by(Softmax)
def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Compute softmax along an axis, by default the last."""
    return Softmax(logits, axis=-1 if axis is None else static_int(axis, "axis"), name=name)


@documented_by(LogSoftmax)
def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Compute the logarithm of softmax along an axis, by default the last."""
    return LogSoftmax(logits, axis=-1 if axis is None else static_int(axis, "axis"), name=name)


@operator
class SoftmaxCrossEntropyWithLogits(OperatorDefinition):
    """Compute the cross entropy of probabilities and the softmax of logits, along `axis`.

    .. math:: loss = -\\sum_i labels_i \\left( logits_i - \\log \\sum_j e^{logits_j} \\right)

    labels: broadcast with logits; need not sum to 1. loss: the broadcast shape without `axis`.
    raises InvalidArgumentError for shapes that do not broadcast
    """

    labels = Input(floating)
    logits = Input(floating, like="labels")
    loss = Output(like="labels")
    axis = Attr(int, default=-1)

    def infer(op) -> TensorSpec:
        labels, logits = op.labels.spec.shape, op.logits.spec.shape
        _check_axis(op)
        if labels.rank is not None and logits.rank is not None and labels.rank != logits.rank:
            raise InvalidArgumentError(
                what="labels and logits differ in rank", found=f"{op.labels.spec.short()}, {op.logits.spec.short()}"
            )
        if labels.dims is None or logits.dims is None:
            rank = logits.rank if labels.rank is None else labels.rank
            if rank is None:
                return op.logits.spec.with_shape(UNKNOWN)
            return op.logits.spec.with_shape([None] * (rank - 1))
        try:
            shape = broadcast(labels, logits)
        except InvalidArgumentError:
            raise InvalidArgumentError(
                what=f"logits and labels must be broadcastable: logits_size={list(logits.dims)} "
                f"labels_size={list(labels.dims)}"
            ) from None
        axis = axis_in(op.axis, logits.rank or 0)
        return op.logits.spec.with_shape([d for i, d in enumerate(shape) if i != axis])

    def compute(op, labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
        x, p = (a.astype(wide(a.dtype), copy=False) for a in (logits, labels))
        # broadcast first: a broadcast logit counts repeatedly in the normalizer
        x, p = np.broadcast_arrays(x, p)
        shifted, total = _log_sum_exp(x, op.axis)
        # a label of 0 contributes 0 even if its logit is -inf
        terms = np.where(p == 0, p.dtype.type(0), p * (total - shifted))
        loss: np.ndarray = terms.sum(op.axis).astype(labels.dtype)
        return loss

    def gradient(op, dloss: Any) -> tuple[Any, Any]:
        dloss = expand_dims(dloss, op.axis)
        log_p = LogSoftmax(_broadcast_like(op.logits, op.labels), axis=op.axis)
        weight = reduce_sum(_broadcast_like(op.labels, op.logits), axis=op.axis, keepdims=True)
        dlogits = dloss * (exp(log_p) * weight - op.labels)
        return sum_to_shape_of(-dloss * log_p, op.labels), sum_to_shape_of(dlogits, op.logits)


def _broadcast_like(x: Tensor, other: Any) -> Tensor:
    """Broadcast `x` against `other`; return `x` if the shapes are known to be equal."""
    if x.shape.is_fully_defined() and x.shape == other.shape:
        return x
    return array.broadcast_to(x, array.broadcast_dynamic_shape(shape_op(x), shape_op(other)))


@operator
class SparseSoftmaxCrossEntropyWithLogits(OperatorDefinition):
    """Compute the cross entropy of class indices and the softmax of logits along the last axis.

    .. math:: loss = \\log \\sum_j e^{logits_j} - logits_{labels}

    labels: int32 or int64, logits' shape without the last dimension; loss: of that shape, in logits' dtype.
    raises InvalidArgumentError for incompatible shapes, or a label that is not a class
    """

    labels = Input(index)
    logits = Input(floating)
    loss = Output(like="logits")

    def infer(op) -> TensorSpec:
        labels, logits = op.labels.spec.shape, op.logits.spec.shape
        if logits.rank == 0:
            raise InvalidArgumentError(
                what="logits is a scalar", found=op.logits.spec.short(), wanted="at least one dimension"
            )
        rows = UNKNOWN if logits.dims is None else TensorShape(logits.dims[:-1])
        if not labels.is_compatible_with(rows):
            what = (
                "`labels.shape.rank` must equal `logits.shape.rank - 1`"
                if labels.rank != rows.rank
                else "labels and logits do not fit: one label a row of logits"
            )
            raise InvalidArgumentError(
                what=what, found=f"labels {op.labels.spec.short()}, logits {op.logits.spec.short()}"
            )
        return op.logits.spec.with_shape(labels.merge_with(rows))

    def compute(op, labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
        _check_labels(labels, logits.shape[-1])
        shifted, total = _log_sum_exp(logits.astype(wide(logits.dtype), copy=False), -1)
        chosen = np.take_along_axis(shifted, labels[..., None], -1)
        loss: np.ndarray = (total - chosen)[..., 0].astype(logits.dtype)
        return loss

    def gradient(op, dloss: Any) -> tuple[None, Any]:
        p, classes = Softmax(op.logits), shape_op(op.logits)[-1]
        # a graph that returns only gradients drops the loss, and its check of the labels
        one_hot_labels = one_hot(ClassLabels(op.labels, classes), classes, dtype=op.logits.dtype)
        return None, expand_dims(dloss, -1) * (p - one_hot_labels)


@operator
class ClassLabels(OperatorDefinition):
    """Return the labels of a sparse cross entropy, for its gradient, if all are classes.

    .. math:: output = labels

    num_classes: labels are below it.
    raises InvalidArgumentError for a label that is not a class
    """

    labels = Input(index)
    num_classes = Input(index, rank=0)
    output = Output(like="labels")
    inplace = {"output": "labels"}

    def infer(op) -> TensorSpec:
        return op.labels.spec

    def compute(op, labels: np.ndarray, num_classes: Any) -> np.ndarray:
        _check_labels(labels, int(num_classes))
        return labels

    gradient = None


def _check_labels(labels: np.ndarray, classes: int) -> None:
    """Raise InvalidArgumentError for a label that is not a class."""
    outside = (labels < 0) | (labels >= classes)
    if outside.any():
        first = labels[outside].reshape(-1)[0]
        raise InvalidArgumentError(
            what=f"Received a label value of {first} which is outside the valid range of [0, {classes})",
            found=f"{int(outside.sum())} such labels",
        )


@documented_by(SoftmaxCrossEntropyWithLogits)
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """Compute the cross entropy of class probabilities and logits. labels: cast to the dtype of logits."""
    logits = dispatch.to_tensor(logits)
    return SoftmaxCrossEntropyWithLogits(cast(labels, logits.dtype), logits, axis=static_int(axis, "axis"), name=name)


@documented_by(SparseSoftmaxCrossEntropyWithLogits)
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """Compute the cross entropy of class indices and logits."""
    return SparseSoftmaxCrossEntropyWithLogits(labels, logits, name=name)


@operator
class L2Loss(OperatorDefinition):
    """Compute half the sum of squares.

    .. math:: output = \\frac{1}{2} \\sum_i t_i^2
    """

    t = Input(floating)
    output = Output(like="t")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return TensorSpec([], op.t.spec.dtype)

    def compute(op, t: np.ndarray) -> np.ndarray:
        flat = np.ravel(t).astype(wide(t.dtype), copy=False)
        output: np.ndarray = (np.dot(flat, flat) / 2).astype(t.dtype)
        return output

    def gradient(op, dy: Tensor) -> Tensor:
        return dy * op.t


l2_loss: signatures.L2Loss = L2Loss.as_function("l2_loss")


def _as_tensors(labels: Any, logits: Any, what: str, name: str | None) -> tuple[Tensor, Tensor]:
    """Convert labels and logits to tensors of one dtype. Raises InvalidArgumentError if the shapes differ."""
    logits = dispatch.to_tensor(logits)
    labels = dispatch.to_tensor(labels, None if hasattr(labels, "spec") else logits.dtype)
    if not logits.shape.is_compatible_with(labels.shape):
        raise InvalidArgumentError(
            op=what,
            node=name,
            what="`logits` and `labels` must have the same shape",
            found=f"logits {logits.spec.short()}, labels {labels.spec.short()}",
        )
    return labels, logits


def _relu_and_log1p_exp(x: Any) -> tuple[Tensor, Tensor]:
    """Return max(x, 0) and log(1 + exp(-|x|)), with derivatives at 0 whose sum is exact."""
    positive = x >= 0
    return where(positive, x, zero_of(x)), log1p(exp(where(positive, negative(x), x)))


def sigmoid_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """Compute the element-wise cross entropy of independent probabilities and the sigmoid of logits.

    .. math:: loss = \\max(x, 0) - x z + \\log(1 + e^{-|x|}), \\quad x = logits, \\; z = labels
    """
    labels, logits = _as_tensors(labels, logits, "sigmoid_cross_entropy_with_logits", name)
    relu, softplus = _relu_and_log1p_exp(logits)
    result: Tensor = relu - logits * labels + softplus
    return result


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Tensor:
    """Compute the element-wise sigmoid cross entropy with positive labels weighted by `pos_weight`.

    .. math:: loss = (1 - z) x + (1 + (q - 1) z) (\\log(1 + e^{-|x|}) + \\max(-x, 0)), \\quad q = pos\\_weight
    """
    labels, logits = _as_tensors(labels, logits, "weighted_cross_entropy_with_logits", name)
    if not hasattr(pos_weight, "spec"):
        pos_weight = dispatch.to_tensor(pos_weight, logits.dtype)
    weight = 1.0 + (pos_weight - 1.0) * labels
    relu, softplus = _relu_and_log1p_exp(logits)
    result: Tensor = (1.0 - labels) * logits + weight * (softplus + (relu - logits))
    return result


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """Compute the negative log-likelihood of Poisson counts, given the logarithm of their rate, without log(z!).

    .. math:: loss = e^c - z c \\; [ + z \\log z - z + \\tfrac12 \\log(2 \\pi z) ]

    compute_full_loss: whether to add Stirling's approximation of log(z!), for z > 1.
    """
    targets, log_input = _as_tensors(targets, log_input, "log_poisson_loss", name)
    result: Tensor = exp(log_input) - log_input * targets
    if compute_full_loss:
        large = targets > 1
        z = where(large, targets, zero_of(targets) + 1.0)
        stirling = z * log(z) - z + 0.5 * log(2.0 * math.pi * z)
        result = result + where(large, stirling, zero_of(targets))
    return result


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Divide a loss that every replica adds by the number of replicas, whose gradients are summed."""
    replica: Any = replicas.current()
    count = 1 if replica is None else replica.num_replicas_in_sync
    loss: Any = dispatch.to_tensor(regularization_loss)
    result: Tensor = reduce_sum(loss) / cast(count, loss.dtype)
    return result


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """Divide the weighted sum of per-example losses by the batch size, by default their first size; 0 for no examples.

    per_example_loss: of rank 1 or more. sample_weight: broadcast against it, also without its last dimension.
    raises ValueError for a scalar loss
    """
    losses = dispatch.to_tensor(per_example_loss)
    if losses.shape.rank == 0:
        raise ValueError(f"compute_average_loss takes one loss for each example, found a scalar: {losses}")
    if sample_weight is not None:
        weights = cast(sample_weight, losses.dtype)
        if losses.shape.rank is not None and weights.shape.rank == losses.shape.rank - 1:
            weights = expand_dims(weights, -1)
        losses = losses * weights
    count = array.shape(losses)[0] if global_batch_size is None else global_batch_size
    return divide_no_nan(reduce_sum(losses), cast(count, losses.dtype))
