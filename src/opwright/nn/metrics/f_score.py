"""F scores: precision and recall in one figure, by class.

Lives here: FBetaScore and F1Score.  Not here: precision and recall themselves (confusion.py).
"""

from __future__ import annotations

from typing import Any

from ...ops import array, math
from .. import backend
from ..reduction import as_floating, under
from .base import Metric


class FBetaScore(Metric):
    """The weighted harmonic mean of precision and recall, y_true and y_pred of shape [batch, classes].

    .. math:: (1 + beta^2) precision recall / (beta^2 precision + recall)

    average: None (one figure for each class), "micro" (all counted together), "macro" (the mean over classes),
    "weighted" (by how often each class occurs). threshold: a class is called where y_pred > threshold; None: the
    likeliest one is.
    raises ValueError for arguments out of range
    """

    def __init__(self, average: str | None = None, beta: float = 1.0, threshold: float | None = None,
                 name: str = "fbeta_score", dtype: Any = None) -> None:  # fmt: skip
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError("Invalid `average` argument value. Expected one of: (None, 'micro', 'macro', 'weighted'). "
                             f"Received: average={average}")  # fmt: skip
        if not isinstance(beta, float):
            raise ValueError(f"Invalid `beta` argument value. It should be a Python float. Received: beta={beta} of "
                             f"type "
                             f"'{type(beta)}'")  # fmt: skip
        if beta <= 0.0:
            raise ValueError(f"Invalid `beta` argument value. It should be > 0. Received: beta={beta}")
        if threshold is not None and not (isinstance(threshold, float) and 0.0 < threshold <= 1.0):
            raise ValueError("Invalid `threshold` argument value. It should be a Python float verifying "
                             f"0 < threshold <= 1. Received: threshold={threshold}")  # fmt: skip
        self.average, self.beta, self.threshold = average, beta, threshold
        self.axis = None if average == "micro" else 0
        self._counts: list[Any] = []

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """y_true: 0 and 1, [batch, classes]. sample_weight: [batch]. Raises ValueError for other ranks."""
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
        weight = None if sample_weight is None else under(as_floating(sample_weight, self._dtype), y_true)
        found = (guess * y_true, guess * (1.0 - y_true), (1.0 - guess) * y_true, y_true)
        for variable, value in zip(self._counts, found):
            variable.assign_add(math.reduce_sum(value if weight is None else value * weight, axis=self.axis))

    def result(self) -> Any:
        """The score so far: a scalar, or one for each class."""
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
        """The constructor's arguments."""
        return {**super().get_config(), "average": self.average, "beta": self.beta, "threshold": self.threshold}


class F1Score(FBetaScore):
    """The harmonic mean of precision and recall. See FBetaScore."""

    def __init__(self, average: str | None = None, threshold: float | None = None, name: str = "f1_score",
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {k: v for k, v in super().get_config().items() if k != "beta"}
