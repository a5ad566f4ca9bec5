"""Loss functions: differences of numbers, angles, overlaps, hinges, and cross-entropies of probabilities.

Lives here: functions [batch, ..., d] -> [batch, ...].  Not here: classes (base.py).

Probabilities are clipped to [epsilon, 1 - epsilon]. If, while tracing, they are the output of a softmax or sigmoid, its
input is used instead, without loss of precision near 0 and 1.
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import as_dtype, float32, int32, int64
from ...ops import array, dispatch, linalg, math
from ...ops import nn as nn_ops
from ...tracing.symbolic import SymbolicTensor
from .. import backend
from ..layer_calls import set_mask
from ..reduction import as_floating, same_rank

if TYPE_CHECKING:
    from ...core.dtypes import DType
    from ...ops.tensor import Tensor


def convert_pair(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Convert labels and predictions to tensors of the prediction's dtype and of equal rank."""
    y_pred = dispatch.to_tensor(y_pred)
    if not y_pred.dtype.is_floating:
        y_pred = array.cast(y_pred, as_dtype(backend.floatx()))
    y_true = as_floating(y_true, y_pred.dtype)
    return same_rank(y_true, y_pred)


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean((y_true - y_pred)^2) over the last axis."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    return math.reduce_mean(math.square(y_true - y_pred), axis=-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(|y_true - y_pred|) over the last axis."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    return math.reduce_mean(math.abs(y_true - y_pred), axis=-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return 100 mean(|y_true - y_pred| / max(|y_true|, epsilon)) over the last axis."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    part = math.abs((y_true - y_pred) / math.maximum(math.abs(y_true), backend.epsilon()))
    return 100.0 * math.reduce_mean(part, axis=-1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean((log(1 + y_true) - log(1 + y_pred))^2) over the last axis, values clipped to at least epsilon."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    small = backend.epsilon()
    difference = math.log(math.maximum(y_true, small) + 1.0) - math.log(math.maximum(y_pred, small) + 1.0)
    return math.reduce_mean(math.square(difference), axis=-1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Return mean(e^2/2 where |e| <= delta, else delta |e| - delta^2/2), e = y_pred - y_true, over the last axis."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    error = math.abs(y_pred - y_true)
    near, far = 0.5 * math.square(error), delta * error - 0.5 * delta * delta
    return math.reduce_mean(array.where(error <= delta, near, far), axis=-1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(log(cosh(y_pred - y_true))) over the last axis."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    error = y_pred - y_true
    return math.reduce_mean(error + math.softplus(-2.0 * error) - python_math.log(2.0), axis=-1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(y_pred - y_true log(y_pred + epsilon)) over the last axis."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    return math.reduce_mean(y_pred - y_true * math.log(y_pred + backend.epsilon()), axis=-1)


def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """Return sum(y_true log(y_true / y_pred)) over the last axis, probabilities clipped to [epsilon, 1]."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    y_true = math.clip_by_value(y_true, backend.epsilon(), 1.0)
    y_pred = math.clip_by_value(y_pred, backend.epsilon(), 1.0)
    return math.reduce_sum(y_true * math.log(y_true / y_pred), axis=-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return -sum(t p) of the unit vectors along `axis`: -1 for equal directions, 0 for orthogonal or zero vectors."""
    return -_cosine(y_true, y_pred, axis)


def _cosine(y_true: Any, y_pred: Any, axis: int) -> Tensor:
    y_true, y_pred = convert_pair(y_true, y_pred)
    return math.reduce_sum(unit(y_true, axis) * unit(y_pred, axis), axis=axis)


def unit(x: Any, axis: int) -> Tensor:
    """Scale vectors to length 1; zero vectors stay zero."""
    return math.l2_normalize(x, axis=axis, epsilon=backend.epsilon() ** 2)


def _signs(y_true: Any) -> Tensor:
    """Convert labels 0 and 1 to -1 and 1, unless other labels occur."""
    binary = math.reduce_all(math.logical_or(math.equal(y_true, 0.0), math.equal(y_true, 1.0)))
    return array.where(binary, 2.0 * y_true - 1.0, y_true)


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(max(1 - y_true y_pred, 0)) over the last axis; labels are -1 and 1, or 0 and 1."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    return math.reduce_mean(math.maximum(1.0 - _signs(y_true) * y_pred, 0.0), axis=-1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return mean(max(1 - y_true y_pred, 0)^2) over the last axis; labels are -1 and 1, or 0 and 1."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    return math.reduce_mean(math.square(math.maximum(1.0 - _signs(y_true) * y_pred, 0.0)), axis=-1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return max(0, 1 + max((1 - y_true) y_pred) - sum(y_true y_pred)) over the last axis; labels are one-hot."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    right = math.reduce_sum(y_true * y_pred, axis=-1)
    wrong = math.reduce_max((1.0 - y_true) * y_pred, axis=-1)
    return math.maximum(wrong - right + 1.0, 0.0)


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """Return 1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred) + epsilon) over `axis` (None: all)."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    both = math.reduce_sum(y_true * y_pred, axis=axis)
    either = math.reduce_sum(y_true, axis=axis) + math.reduce_sum(y_pred, axis=axis)
    return 1.0 - math.divide(2.0 * both, either + backend.epsilon())


def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Tensor:
    """Return 1 - tp / (tp + alpha fn + beta fp + epsilon) over `axis` (None: all).

    alpha weights false negatives, beta false positives, as in Keras.
    """
    y_true, y_pred = convert_pair(y_true, y_pred)
    both = math.reduce_sum(y_true * y_pred, axis=axis)
    missed = math.reduce_sum(y_true * (1.0 - y_pred), axis=axis)
    called = math.reduce_sum((1.0 - y_true) * y_pred, axis=axis)
    return 1.0 - both / (both + alpha * missed + beta * called + backend.epsilon())


def _logits_before(probabilities: Any, operator: str) -> SymbolicTensor | None:
    """Return the input of the softmax or sigmoid that computed `probabilities` in the active trace, else None."""
    if type(probabilities) is not SymbolicTensor or probabilities.trace is not dispatch.state.trace:
        return None
    node = probabilities.value_in_graph.node
    if node is None or node.op.name != operator or node.attrs.get("axis", -1) != -1:
        return None
    for record in reversed(probabilities.trace.recorder.records):
        if any(y is probabilities for y in getattr(record, "outputs", ())):
            logits: SymbolicTensor = record.inputs[0]
            return logits
    return None


def _clip_probabilities(p: Tensor) -> Tensor:
    clipped: Tensor = math.clip_by_value(p, backend.epsilon(), 1.0 - backend.epsilon())
    return clipped


def _check_smoothing(label_smoothing: Any) -> None:
    if isinstance(label_smoothing, (int, float)) and not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be in the range [0, 1]. Received: {label_smoothing}")


def _check_shapes(y_true: Any, y_pred: Any) -> None:
    """Raise ValueError if labels and predictions differ in shape; broadcasting would hide the mistake."""
    if not y_true.shape.is_compatible_with(y_pred.shape):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={tuple(y_true.shape)}, output.shape={tuple(y_pred.shape)}"
        )


def _smooth_labels(y_true: Tensor, label_smoothing: float, classes: Any) -> Tensor:
    return y_true * (1.0 - label_smoothing) + label_smoothing / classes if label_smoothing else y_true


def _binary(y_true: Tensor, y_pred: Tensor, from_logits: bool) -> Tensor:
    """Return -t log(p) - (1 - t) log(1 - p) for each element."""
    if not from_logits:
        logits = _logits_before(y_pred, "Sigmoid")
        if logits is None:
            p = _clip_probabilities(y_pred)
            return -(y_true * math.log(p) + (1.0 - y_true) * math.log(1.0 - p))
        y_pred = logits
    return nn_ops.sigmoid_cross_entropy_with_logits(labels=y_true, logits=y_pred)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """Return mean(-t log(p) - (1 - t) log(1 - p)) over `axis`.

    t = y_true (1 - label_smoothing) + label_smoothing / 2
    """
    y_true, y_pred = convert_pair(y_true, y_pred)
    _check_shapes(y_true, y_pred)
    return math.reduce_mean(_binary(_smooth_labels(y_true, label_smoothing, 2.0), y_pred, from_logits), axis=axis)


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return binary cross-entropy times (1 - p_t)^gamma, averaged over `axis`.

    p_t: the predicted probability of the true class. apply_class_balancing: whether to weight class 1 by alpha and
    class 0 by 1 - alpha.
    """
    y_true, y_pred = convert_pair(y_true, y_pred)
    _check_shapes(y_true, y_pred)
    y_true = _smooth_labels(y_true, label_smoothing, 2.0)
    p = math.sigmoid(y_pred) if from_logits else y_pred
    entropy = _binary(y_true, p, False)
    right = y_true * p + (1.0 - y_true) * (1.0 - p)
    focal = math.pow(1.0 - right, gamma) * entropy
    if apply_class_balancing:
        focal = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * focal
    return math.reduce_mean(focal, axis=axis)


def _normalized(p: Tensor, axis: int) -> Tensor:
    return p / math.reduce_sum(p, axis=axis, keepdims=True)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Tensor:
    """Return -sum(t log(p)) over `axis`, p normalized to sum 1.

    t = y_true (1 - label_smoothing) + label_smoothing / classes

    raises ValueError if the numbers of classes differ
    """
    if isinstance(axis, bool):
        raise ValueError(f"`axis` must be of type `int`. Received: axis={axis} of type {type(axis)}")
    _check_smoothing(label_smoothing)
    y_true, y_pred = convert_pair(y_true, y_pred)
    _check_shapes(y_true, y_pred)
    y_true = _smooth_labels(y_true, label_smoothing, y_pred.shape[-1]) if label_smoothing else y_true
    logits = y_pred if from_logits else _logits_before(y_pred, "Softmax") if axis == -1 else None
    if logits is not None:
        return nn_ops.softmax_cross_entropy_with_logits(labels=y_true, logits=logits, axis=axis)
    return -math.reduce_sum(y_true * math.log(_clip_probabilities(_normalized(y_pred, axis))), axis=axis)


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: Any = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return sum(-alpha (1 - p)^gamma t log(p)) over `axis`. alpha: a number, or one per class."""
    y_true, y_pred = convert_pair(y_true, y_pred)
    _check_shapes(y_true, y_pred)
    y_true = _smooth_labels(y_true, label_smoothing, y_pred.shape[-1]) if label_smoothing else y_true
    p = _clip_probabilities(_normalized(nn_ops.softmax(y_pred, axis=axis) if from_logits else y_pred, axis))
    entropy = -y_true * math.log(p)
    return math.reduce_sum(as_floating(alpha, p.dtype) * math.pow(1.0 - p, gamma) * entropy, axis=axis)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Tensor:
    """Return -log(p[y_true]), p normalized to sum 1 over `axis`.

    y_true: class indices, [batch, ...] or [batch, ..., 1]. ignore_class: samples of this class have loss 0 and do not
    count in means.
    """
    y_pred = as_floating(y_pred, _floating_dtype_of(y_pred))
    y_true = array.cast(dispatch.to_tensor(y_true), int64)
    rank = y_pred.shape.rank
    if y_true.shape.rank is not None and y_true.shape.rank == rank and y_true.shape[-1] == 1:
        y_true = array.squeeze(y_true, [-1])
    valid = None
    if ignore_class is not None:
        valid = math.not_equal(y_true, array.cast(dispatch.to_tensor(ignore_class), int64))
        y_true = array.where(valid, y_true, array.zeros_like(y_true))
    logits = y_pred if from_logits else _logits_before(y_pred, "Softmax") if axis in (-1, (rank or 0) - 1) else None
    if logits is None:
        logits = math.log(_clip_probabilities(y_pred))
    if rank is not None and axis not in (-1, rank - 1):
        order = [i for i in range(rank) if i != axis % rank]
        logits = array.transpose(logits, [*order, axis % rank])
    losses = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=y_true, logits=logits)
    if valid is not None:
        losses = array.where(valid, losses, array.zeros_like(losses))
        set_mask(losses, valid)
    return losses


def _floating_dtype_of(y_pred: Any) -> DType:
    dtype = dispatch.to_tensor(y_pred).dtype
    return dtype if dtype.is_floating else as_dtype(backend.floatx())


def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float) -> Tensor:
    """Return (1 - p^q) / q, p the probability of the label (Zhang and Sabuncu, 2018).

    y_true: integer labels [batch]. q: in (0, 1): toward 0 the cross-entropy, toward 1 the absolute error.
    """
    y_pred = dispatch.to_tensor(y_pred)
    labels = array.cast(dispatch.to_tensor(y_true), int64)
    if labels.shape.rank == y_pred.shape.rank:
        labels = array.squeeze(labels, [-1])
    p = math.reduce_sum(y_pred * array.one_hot(labels, y_pred.shape[-1], dtype=y_pred.dtype), axis=-1)
    return (1.0 - math.pow(p, q)) / q


def ctc(y_true: Any, y_pred: Any) -> Tensor:
    """Return the loss of label sequences without alignment, [batch] (Graves et al., 2006).

    y_true: integers [batch, length], 0 for no label, at the ends of rows. y_pred: logits [batch, time, classes], the
    first of no label. raises ValueError for other ranks
    """
    y_pred = dispatch.to_tensor(y_pred)
    labels = array.cast(dispatch.to_tensor(y_true), int32)
    if labels.shape.rank != 2 or y_pred.shape.rank != 3:
        raise ValueError(
            "Targets `y_true` are expected to be of shape `(batch_size, max_length)`, logits `y_pred` of shape "
            f"`(batch_size, max_length, num_classes)`. Received: {labels.shape}, {y_pred.shape}"
        )
    label_lengths = math.reduce_sum(array.cast(math.not_equal(labels, 0), int32), axis=-1)
    sizes = array.shape(y_pred)
    logits = array.cast(y_pred, float32) if y_pred.dtype.size < 4 else y_pred
    loss = nn_ops.ctc_loss(labels, logits, label_lengths, array.fill([sizes[0]], sizes[1]), False, blank_index=0)
    result: Tensor = array.cast(loss, y_pred.dtype)
    return result


def circle(
    y_true: Any,
    y_pred: Any,
    ref_labels: Any = None,
    ref_embeddings: Any = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Tensor:
    """Return log(1 + sum exp(gamma a_n (s_n - m)) sum exp(-gamma a_p (s_p - 1 + m))) (Sun et al., 2020).

    s: cosines of the angles between embeddings y_pred, of length 1, and ref_embeddings (y_pred); p: pairs with one
    label of y_true and ref_labels (y_true), without pairs of a row and itself if remove_diagonal; n: the other pairs;
    a_p = 1 + m - s_p and a_n = s_n + m, at least 0, with the margin m. Rows without such pairs have loss 0, and do not
    count.
    """
    y_pred = dispatch.to_tensor(y_pred)
    labels = array.reshape(array.cast(dispatch.to_tensor(y_true), int32), [-1, 1])
    others = labels if ref_labels is None else array.reshape(array.cast(dispatch.to_tensor(ref_labels), int32), [-1, 1])
    embeddings = y_pred if ref_embeddings is None else dispatch.to_tensor(ref_embeddings)
    distance = math.maximum(1.0 - linalg.matmul(y_pred, embeddings, transpose_b=True), 0.0)
    same = math.equal(labels, array.transpose(others))
    different = math.logical_not(same)
    if remove_diagonal:
        itself = math.equal(
            array.expand_dims(array.range(array.size(labels)), 1), array.expand_dims(array.range(array.size(others)), 0)
        )
        same = math.logical_and(same, math.logical_not(itself))
    near = -gamma * math.maximum(margin + distance, 0.0) * (margin - distance)
    far = gamma * math.maximum(1.0 + margin - distance, 0.0) * (1.0 - margin - distance)
    lowest = dispatch.to_tensor(float("-inf"), y_pred.dtype)
    total = math.reduce_logsumexp(array.where(same, near, lowest), axis=1) + math.reduce_logsumexp(
        array.where(different, far, lowest), axis=1
    )
    loss = nn_ops.softplus(total)
    set_mask(loss, math.greater(loss, 0.0))
    return loss
