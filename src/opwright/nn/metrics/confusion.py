"""Metrics of binary decisions: true and false positives and negatives, precision, recall, F scores.

Lives here: the confusion counts at any number of thresholds, and the metrics at single thresholds.
Not here: areas and trade-offs over many thresholds (curves.py), overlaps (classification.py).

Each prediction is assigned once to an interval between thresholds; reverse cumulative sums of the weights per interval
are the counts at all thresholds. Therefore 200 thresholds cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...ops import array, dispatch, math
from .. import backend
from ..reduction import as_floating, expand_weights, same_rank
from .base import Metric

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ...ops.tensor import Tensor

BELOW_ALL = -1e10  # below every prediction: for all but the k largest


def as_thresholds(thresholds: Any, default: float = 0.5) -> list[float]:
    """Return thresholds as a list. Raises ValueError for values outside [0, 1]."""
    if thresholds is None:
        return [default]
    values = [float(t) for t in (thresholds if isinstance(thresholds, (list, tuple, np.ndarray)) else [thresholds])]
    wrong = [t for t in values if not 0 <= t <= 1]
    if wrong:
        raise ValueError(f"Threshold values must be in [0, 1]. Received: {wrong}")
    return values


def count(
    y_true: Any,
    y_pred: Any,
    thresholds: Sequence[float],
    dtype: Any,
    sample_weight: Any = None,
    class_id: int | None = None,
    top_k: int | None = None,
    by_label: bool = False,
    label_weights: Any = None,
) -> tuple[Any, Any, Any, Any]:
    """Return weighted counts of true and false positives, true and false negatives per threshold: [T] or [T, labels].

    A prediction is positive if it is above the threshold. Raises ValueError if shapes do not match.
    """
    y_true, y_pred = as_floating(y_true, dtype), as_floating(y_pred, dtype)
    y_true, y_pred = same_rank(y_true, y_pred)
    if not y_true.shape.is_compatible_with(y_pred.shape):
        raise ValueError(f"Shapes {tuple(y_true.shape)} and {tuple(y_pred.shape)} are incompatible")
    if top_k is not None:
        indices = math.top_k(y_pred, k=top_k)[1]  # the first of equal ones
        chosen = math.reduce_sum(array.one_hot(indices, array.shape(y_pred)[-1]), axis=-2) > 0
        y_pred = array.where(chosen, y_pred, array.ones_like(y_pred) * BELOW_ALL)
    weight = None
    if sample_weight is not None:
        weight = as_floating(sample_weight, dtype)
        weight = expand_weights(weight, y_pred) + array.zeros_like(y_pred)
    if label_weights is not None:
        each = as_floating(label_weights, dtype) + array.zeros_like(y_pred)
        weight = each if weight is None else weight * each
    if class_id is not None:
        if y_pred.shape.rank not in (None, 2):
            raise ValueError(
                "When class_id is provided, y_pred must be a 2D array with shape (num_samples, "
                f"num_classes), found shape: {tuple(y_pred.shape)}"
            )
        y_true, y_pred = y_true[..., class_id], y_pred[..., class_id]
        weight = None if weight is None else weight[..., class_id]
    labels = y_pred.shape[-1] if by_label else 1
    label = array.cast(array.cast(array.reshape(y_true, [-1]), bool_), dtype)
    flat = array.reshape(y_pred, [-1])
    each = array.ones_like(flat) if weight is None else array.reshape(weight, [-1])
    order = np.argsort(np.asarray(thresholds, dtype.np), kind="stable")
    above = _thresholds_below(np.asarray(thresholds, dtype.np)[order], flat)
    if by_label:
        above = above * labels + math.floormod(array.range(array.size(flat)), labels)
    steps = len(order) + 1
    positive, every = (
        array.reshape(math.unsorted_segment_sum(w, above, steps * labels), [steps, labels])
        for w in (label * each, each)
    )
    negative = every - positive
    inverse_order = np.argsort(order, kind="stable")
    tp, fp = (_counts_above(x, inverse_order) for x in (positive, negative))
    fn, tn = math.reduce_sum(positive, axis=0) - tp, math.reduce_sum(negative, axis=0) - fp
    if by_label:
        return tp, fp, tn, fn
    return array.squeeze(tp, [1]), array.squeeze(fp, [1]), array.squeeze(tn, [1]), array.squeeze(fn, [1])


def _thresholds_below(thresholds: np.ndarray, values: Any) -> Tensor:
    """Return the number of thresholds below each value."""
    return array.searchsorted(dispatch.to_tensor(thresholds), values, side="left")


def _counts_above(x: Any, inverse_order: np.ndarray) -> Tensor:
    """Accumulate counts between thresholds [T + 1, labels] to counts above each threshold [T, labels]."""
    sums = math.cumsum(x, axis=0, reverse=True)[1:]
    return array.gather(sums, dispatch.to_tensor(inverse_order.astype(np.int32)))


class _ThresholdCount(Metric):
    """Metric with one accumulator per threshold."""

    which = 0

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(dtype, name)
        self.init_thresholds = thresholds
        self.thresholds = as_thresholds(thresholds)
        self.accumulator = self.add_variable((len(self.thresholds),), "zeros", name="accumulator")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch. y_true: 0 or 1. y_pred: of the same shape, in [0, 1]."""
        counts = count(y_true, y_pred, self.thresholds, self._dtype, sample_weight)
        self.accumulator.assign_add(counts[self.which])

    def result(self) -> Tensor:
        """Return the count: a scalar, or one per threshold."""
        value = self.accumulator.value()
        return value[0] if len(self.thresholds) == 1 else value

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "thresholds": self.init_thresholds}


class TruePositives(_ThresholdCount):
    """Number of true positives. thresholds: 0.5, or several with one count each."""

    which = 0


class FalsePositives(_ThresholdCount):
    """Number of false positives. See TruePositives."""

    which = 1


class TrueNegatives(_ThresholdCount):
    """Number of true negatives. See TruePositives."""

    which = 2


class FalseNegatives(_ThresholdCount):
    """Number of false negatives. See TruePositives."""

    which = 3


class _TruePositiveRatio(Metric):
    """Ratio of true positives to true positives plus another count."""

    other, other_name = 1, "false_positives"

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        self.init_thresholds, self.top_k, self.class_id = thresholds, top_k, class_id
        self.thresholds = as_thresholds(thresholds, 0.5 if top_k is None else BELOW_ALL)
        self.true_positives = self.add_variable((len(self.thresholds),), "zeros", name="true_positives")
        self._others = self.add_variable((len(self.thresholds),), "zeros", name=self.other_name)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch. y_true: 0 or 1. y_pred: of the same shape, in [0, 1]."""
        counts = count(y_true, y_pred, self.thresholds, self._dtype, sample_weight, self.class_id, self.top_k)
        self.true_positives.assign_add(counts[0])
        self._others.assign_add(counts[self.other])

    def result(self) -> Tensor:
        """Return the ratio, 0 for an empty denominator: a scalar, or one per threshold."""
        tp = self.true_positives.value()
        ratio = math.divide_no_nan(tp, tp + self._others.value())
        return ratio[0] if len(self.thresholds) == 1 else ratio

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "thresholds": self.init_thresholds,
            "top_k": self.top_k,
            "class_id": self.class_id,
        }


class Precision(_TruePositiveRatio):
    """Fraction of predicted positives that are positive. .. math:: tp / (tp + fp)

    thresholds: 0.5, or several with one value each. top_k: only the k largest of a sample are positive.
    class_id: the only class that counts, an index of the last axis.
    """

    @property
    def false_positives(self) -> Variable:
        """Variable of the count."""
        return self._others


class Recall(_TruePositiveRatio):
    """Fraction of positives that are predicted. .. math:: tp / (tp + fn)       See Precision."""

    other, other_name = 3, "false_negatives"

    @property
    def false_negatives(self) -> Variable:
        """Variable of the count."""
        return self._others


class FBetaScore(Metric):
    """Weighted harmonic mean of precision and recall, for y_true and y_pred of shape [batch, classes].

    .. math:: (1 + beta^2) precision recall / (beta^2 precision + recall)

    average: None (one score per class), "micro" (over all counts), "macro" (the mean over classes), "weighted" (by
    class frequency). threshold: classes with y_pred > threshold are predicted; None: the most probable one.
    raises ValueError for arguments out of range
    """

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str = "fbeta_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(
                "Invalid `average` argument value. Expected one of: (None, 'micro', 'macro', 'weighted'). "
                f"Received: average={average}"
            )
        if not isinstance(beta, float):
            raise ValueError(
                f"Invalid `beta` argument value. It should be a Python float. Received: beta={beta} of "
                f"type "
                f"'{type(beta)}'"
            )
        if beta <= 0.0:
            raise ValueError(f"Invalid `beta` argument value. It should be > 0. Received: beta={beta}")
        if threshold is not None and not (isinstance(threshold, float) and 0.0 < threshold <= 1.0):
            raise ValueError(
                "Invalid `threshold` argument value. It should be a Python float verifying "
                f"0 < threshold <= 1. Received: threshold={threshold}"
            )
        self.average, self.beta, self.threshold = average, beta, threshold
        self.axis = None if average == "micro" else 0
        self._counts: list[Any] = []

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate y_true (0 or 1) of shape [batch, classes].

        sample_weight: [batch]. Raises ValueError for other ranks.
        """
        y_true, y_pred = as_floating(y_true, self._dtype), as_floating(y_pred, self._dtype)
        if y_pred.shape.rank != 2 or y_true.shape.rank != 2:
            raise ValueError(
                "FBetaScore expects 2D inputs with shape (batch_size, output_dim). Received input shapes: "
                f"y_pred.shape={tuple(y_pred.shape)} and y_true.shape={tuple(y_true.shape)}."
            )
        if not self._counts:
            shape = () if self.axis is None else (y_true.shape[1],)
            names = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")
            self._counts = [self.add_variable(shape, "zeros", name=n) for n in names]
        if self.threshold is None:
            largest = math.reduce_max(y_pred, axis=-1, keepdims=True)
            called = math.logical_and(y_pred >= largest, math.abs(y_pred) > 1e-9)
        else:
            called = y_pred > self.threshold
        guess = array.cast(called, self._dtype)
        weight = None if sample_weight is None else expand_weights(as_floating(sample_weight, self._dtype), y_true)
        products = (guess * y_true, guess * (1.0 - y_true), (1.0 - guess) * y_true, y_true)
        for variable, value in zip(self._counts, products):
            variable.assign_add(math.reduce_sum(value if weight is None else value * weight, axis=self.axis))

    def result(self) -> Tensor:
        """Return the score: a scalar, or one per class."""
        if not self._counts:
            return array.zeros((), self._dtype)
        tp, fp, fn, seen = [v.value() for v in self._counts]
        small, square = backend.epsilon(), self.beta**2
        precision, recall = math.divide_no_nan(tp, tp + fp), math.divide_no_nan(tp, tp + fn)
        score = (1.0 + square) * precision * recall / (square * precision + recall + small)
        if self.average == "weighted":
            return math.reduce_sum(score * (seen / (math.reduce_sum(seen) + small)))
        return math.reduce_mean(score) if self.average is not None else score

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), "average": self.average, "beta": self.beta, "threshold": self.threshold}


class F1Score(FBetaScore):
    """Harmonic mean of precision and recall. See FBetaScore."""

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str = "f1_score", dtype: Any = None
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {k: v for k, v in super().get_config().items() if k != "beta"}
