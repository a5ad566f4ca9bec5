"""Metrics over many thresholds: the area under a curve, and the best value of one rate subject to a bound on another.

Lives here: AUC and the four constrained maxima.  Not here: the counts (confusion.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array, math
from .. import backend
from ..reduction import as_floating
from .base import Metric
from .confusion import count

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ...ops.tensor import Tensor

_COUNTS = ("true_positives", "false_positives", "true_negatives", "false_negatives")


def _even_thresholds(num: int) -> list[float]:
    return [(i + 1) / (num - 1) for i in range(num - 2)]


class _ThresholdCurve(Metric):
    """Metric of confusion counts at many thresholds."""

    def __init__(self, thresholds: list[float], name: str | None, dtype: Any) -> None:
        super().__init__(dtype, name)
        self.thresholds = thresholds
        self._counts: list[Variable] = []
        self.class_id: int | None = None

    def _create_counts(self, shape: tuple[int, ...]) -> None:
        self._counts = [self.add_variable(shape, "zeros", name=n) for n in _COUNTS]

    def __getattr__(self, name: str) -> Variable:
        """Return a count variable: true_positives, false_positives, true_negatives or false_negatives."""
        counts: list[Variable] | None = self.__dict__.get("_counts")
        if name in _COUNTS and counts:
            return counts[_COUNTS.index(name)]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _values(self) -> list[Any]:
        return [v.value() for v in self._counts]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch. y_true: 0 or 1. y_pred: of the same shape, in [0, 1]."""
        counts = count(y_true, y_pred, self.thresholds, self._dtype, sample_weight, self.class_id)
        for variable, value in zip(self._counts, counts):
            variable.assign_add(value)


class AUC(_ThresholdCurve):
    """Area under a curve, approximated at `num_thresholds` thresholds.

    curve: "ROC" (true positive rate over false positive rate), "PR" (precision over recall) or "PRGAIN" (the gains of
    both, Flach and Kull 2015; a recall below the share of positives counts as none). summation_method:
    "interpolation" (linear between thresholds; for PR, of the counts), "minoring" or "majoring". thresholds: custom
    ones, between 0 and 1. multi_label: one curve per label of [batch, labels], and their mean weighted by
    label_weights; otherwise one curve of all labels. from_logits: whether y_pred contains logits.
    raises ValueError for arguments out of range
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
        thresholds: Any = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: Any = None,
        from_logits: bool = False,
    ) -> None:
        if curve.upper() not in ("ROC", "PR", "PRGAIN"):
            raise ValueError(f'Invalid `curve` argument value "{curve}". Expected one of: ROC, PR, PRGAIN')
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f'Invalid `summation_method` argument value "{summation_method}". Expected one of: '
                "interpolation, minoring, majoring"
            )
        if thresholds is None:
            if num_thresholds <= 1:
                raise ValueError(
                    f"Argument `num_thresholds` must be an integer > 1. Received: num_thresholds={num_thresholds}"
                )
            inner = _even_thresholds(num_thresholds)
        else:
            inner = sorted(float(t) for t in thresholds)
            if any(not 0 <= t <= 1 for t in inner):
                raise ValueError(
                    f"Threshold values must be in [0, 1]. Received: {[t for t in inner if not 0 <= t <= 1]}"
                )
        small = backend.epsilon()
        super().__init__([-small, *inner, 1.0 + small], name, dtype)
        self.num_thresholds, self._own_thresholds = len(self.thresholds), thresholds
        self.curve, self.summation_method = curve.upper(), summation_method
        self.multi_label, self.num_labels, self.label_weights = multi_label, num_labels, label_weights
        self.from_logits = from_logits
        if num_labels is not None and not multi_label:
            raise ValueError("`num_labels` is needed only when `multi_label` is True.")
        if not multi_label:
            self._create_counts((self.num_thresholds,))
        elif num_labels:
            self._create_counts((self.num_thresholds, num_labels))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch. y_true: 0 or 1. y_pred: of the same shape, in [0, 1] or logits."""
        y_pred = as_floating(y_pred, self._dtype)
        if not self._counts:
            if y_pred.shape.rank != 2 or y_pred.shape[-1] is None:
                raise ValueError(
                    "`y_pred` must have rank 2 when `multi_label=True`. "
                    f"Found rank {y_pred.shape.rank}. Full shape received for `y_pred`: "
                    f"{tuple(y_pred.shape)}"
                )
            self._create_counts((self.num_thresholds, y_pred.shape[-1]))
        if self.from_logits:
            y_pred = math.sigmoid(y_pred)
        weights = None if self.multi_label else self.label_weights
        counts = count(
            y_true,
            y_pred,
            self.thresholds,
            self._dtype,
            sample_weight,
            by_label=self.multi_label,
            label_weights=weights,
        )
        for variable, value in zip(self._counts, counts):
            variable.assign_add(value)

    def result(self) -> Tensor:
        """Return the area."""
        if not self._counts:
            return array.zeros((), self._dtype)
        tp, fp, tn, fn = self._values()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._mean(math.reduce_sum(self._interpolated_areas(tp, fp, fn), axis=0))
        recall = math.divide_no_nan(tp, tp + fn)
        if self.curve == "ROC":
            x, y = math.divide_no_nan(fp, fp + tn), recall
        elif self.curve == "PRGAIN":
            odds = math.divide_no_nan(tp + fn, tn + fp)
            gain = math.maximum(1.0 - odds * math.divide_no_nan(fn, tp), 0.0)
            x, y = array.where(tp > 0.0, gain, array.zeros_like(gain)), 1.0 - odds * math.divide_no_nan(fp, tp)
        else:
            x, y = recall, math.divide_no_nan(tp, tp + fp)
        left, right = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            height = (left + right) / 2.0
        else:
            height = (math.minimum if self.summation_method == "minoring" else math.maximum)(left, right)
        return self._mean(math.reduce_sum((x[:-1] - x[1:]) * height, axis=0))

    def _interpolated_areas(self, tp: Any, fp: Any, fn: Any) -> Tensor:
        """Return the areas between thresholds, true positives interpolated linearly in the number of positives.

        .. math:: slope (dtp + intercept log(p_a / p_b)) / (tp_b + fn_b)
        """
        dtp = tp[:-1] - tp[1:]
        p = tp + fp
        slope = math.divide_no_nan(dtp, math.maximum(p[:-1] - p[1:], 0.0))
        intercept = tp[1:] - slope * p[1:]
        both = math.logical_and(p[:-1] > 0.0, p[1:] > 0.0)
        ratio = array.where(both, math.divide_no_nan(p[:-1], math.maximum(p[1:], 0.0)), array.ones_like(p[1:]))
        area = slope * (dtp + intercept * math.log(ratio))
        return math.divide_no_nan(area, math.maximum(tp[1:] + fn[1:], 0.0))

    def _mean(self, areas: Tensor) -> Tensor:
        if not self.multi_label:
            return areas
        if self.label_weights is None:
            return math.reduce_mean(areas)
        weights = as_floating(self.label_weights, self._dtype)
        return math.divide_no_nan(math.reduce_sum(areas * weights), math.reduce_sum(weights))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = {
            **super().get_config(),
            "num_thresholds": self.num_thresholds,
            "curve": self.curve,
            "summation_method": self.summation_method,
            "multi_label": self.multi_label,
            "num_labels": self.num_labels,
            "label_weights": self.label_weights,
            "from_logits": self.from_logits,
        }
        if self._own_thresholds is not None:
            config["thresholds"] = self.thresholds[1:-1]
        return config


class _ConstrainedMaximum(_ThresholdCurve):
    """Maximum of one rate over the thresholds where another is at least a bound."""

    bound = "value"

    def __init__(
        self,
        value: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"Argument `{self.bound}` must be in the range [0, 1]. Received: {self.bound}={value}")
        if num_thresholds <= 0:
            raise ValueError(
                f"Argument `num_thresholds` must be an integer > 0. Received: num_thresholds={num_thresholds}"
            )
        super().__init__([0.5] if num_thresholds == 1 else [0.0, *_even_thresholds(num_thresholds), 1.0], name, dtype)
        self.value, self.num_thresholds, self.class_id = value, num_thresholds, class_id
        setattr(self, self.bound, value)
        self._create_counts((len(self.thresholds),))

    def _rates(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        """Return the constrained quantity and the quantity to maximize."""
        raise NotImplementedError(f"{type(self).__name__} has no _figures(tp, fp, tn, fn)")

    def result(self) -> Tensor:
        """Return the maximum, 0 if no threshold satisfies the constraint."""
        bounded, objective = self._rates(*self._values())
        return math.reduce_max(array.where(bounded >= self.value, objective, array.zeros_like(objective)))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            self.bound: self.value,
            "num_thresholds": self.num_thresholds,
            "class_id": self.class_id,
        }


def _fraction(x: Any, y: Any) -> Tensor:
    return math.divide_no_nan(x, x + y)


class SensitivityAtSpecificity(_ConstrainedMaximum):
    """Maximum of tp / (tp + fn) where tn / (tn + fp) is at least `specificity`."""

    bound = "specificity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)

    def _rates(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return _fraction(tn, fp), _fraction(tp, fn)


class SpecificityAtSensitivity(_ConstrainedMaximum):
    """Maximum of tn / (tn + fp) where tp / (tp + fn) is at least `sensitivity`."""

    bound = "sensitivity"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)

    def _rates(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return _fraction(tp, fn), _fraction(tn, fp)


class PrecisionAtRecall(_ConstrainedMaximum):
    """Maximum of tp / (tp + fp) where tp / (tp + fn) is at least `recall`."""

    bound = "recall"

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)

    def _rates(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return _fraction(tp, fn), _fraction(tp, fp)


class RecallAtPrecision(_ConstrainedMaximum):
    """Maximum of tp / (tp + fn) where tp / (tp + fp) is at least `precision`."""

    bound = "precision"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)

    def _rates(self, tp: Any, fp: Any, tn: Any, fn: Any) -> tuple[Any, Any]:
        return _fraction(tp, fp), _fraction(tp, fn)
