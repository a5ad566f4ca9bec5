"""Losses of numbers: squared, absolute, relative and logarithmic differences, angles, overlaps, hinges.

Lives here: functions [batch, ..., d] -> [batch, ...].  Not here: classes (base.py), probabilities (crossentropy.py).
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, math
from .. import backend
from ..reduction import as_floating, same_rank

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def convert_pair(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Convert labels and predictions to tensors of the prediction's dtype and of equal rank."""
    y_pred = dispatch.to_tensor(y_pred)
    if not y_pred.dtype.is_floating:
        from ...core.dtypes import as_dtype

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
