"""Metrics of numbers and probabilities: means of loss functions, root mean square, R squared, correlations.

Lives here: the classes.  Not here: the functions (losses/).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...ops import array, math
from .. import backend
from ..losses import functions
from ..losses import functions as losses
from ..reduction import as_floating, expand_weights, same_rank
from .base import Mean, MeanMetricWrapper, Metric

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _plain_metric(function: Callable[..., Any], class_name: str, default: str | None = None) -> type[MeanMetricWrapper]:
    metric_name = default or function.__name__

    class PlainMetric(MeanMetricWrapper):
        def __init__(self, name: str = metric_name, dtype: Any = None) -> None:
            super().__init__(function, name, dtype)

    PlainMetric.__name__ = PlainMetric.__qualname__ = class_name
    PlainMetric.__module__, PlainMetric.__doc__ = (
        __name__,
        (f"Mean over the samples of: {(function.__doc__ or '').removeprefix('Return ')}"),
    )
    return PlainMetric


MeanSquaredError = _plain_metric(losses.mean_squared_error, "MeanSquaredError")
MeanAbsoluteError = _plain_metric(losses.mean_absolute_error, "MeanAbsoluteError")
MeanAbsolutePercentageError = _plain_metric(losses.mean_absolute_percentage_error, "MeanAbsolutePercentageError")
MeanSquaredLogarithmicError = _plain_metric(losses.mean_squared_logarithmic_error, "MeanSquaredLogarithmicError")
LogCoshError = _plain_metric(losses.log_cosh, "LogCoshError", "logcosh")
KLDivergence = _plain_metric(losses.kl_divergence, "KLDivergence")
Poisson = _plain_metric(losses.poisson, "Poisson")
Hinge = _plain_metric(losses.hinge, "Hinge")
SquaredHinge = _plain_metric(losses.squared_hinge, "SquaredHinge")
CategoricalHinge = _plain_metric(losses.categorical_hinge, "CategoricalHinge")


class CosineSimilarity(MeanMetricWrapper):
    """Mean cosine of the angle between y_true and y_pred: 1 for equal directions."""

    def __init__(self, name: str = "cosine_similarity", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(cosine, name, dtype, axis=axis)


def cosine(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return sum(t p) of the unit vectors along `axis`."""
    return -losses.cosine_similarity(y_true, y_pred, axis)


class BinaryCrossentropy(MeanMetricWrapper):
    """Mean cross-entropy of two classes."""

    def __init__(
        self,
        name: str = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        super().__init__(
            functions.binary_crossentropy, name, dtype, from_logits=from_logits, label_smoothing=label_smoothing
        )


class CategoricalCrossentropy(MeanMetricWrapper):
    """Mean cross-entropy with one-hot labels."""

    def __init__(
        self,
        name: str = "categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: int = -1,
    ) -> None:
        super().__init__(
            functions.categorical_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """Mean cross-entropy with class indices as labels."""

    def __init__(
        self,
        name: str = "sparse_categorical_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(
            functions.sparse_categorical_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            ignore_class=ignore_class,
            axis=axis,
        )


class RootMeanSquaredError(Mean):
    """Root of the mean of (y_true - y_pred)^2 over all elements."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        """Accumulate a batch [batch, ...]."""
        y_true, y_pred = same_rank(as_floating(y_true, self._dtype), as_floating(y_pred, self._dtype))
        super().update_state(math.square(y_pred - y_true), sample_weight)

    def result(self) -> Tensor:
        """Return the root of the mean."""
        return math.sqrt(super().result())


class R2Score(Metric):
    """Coefficient of determination. .. math:: 1 - sum((y - p)^2) / sum((y - mean(y))^2)

    y_true, y_pred: [batch, outputs]. class_aggregation: "uniform_average" over the outputs,
    "variance_weighted_average", or None: one score per output. num_regressors: number of model inputs for the adjusted
    score.
    raises ValueError for other values
    """

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str = "r2_score",
        dtype: Any = None,
    ) -> None:
        super().__init__(dtype, name)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ValueError(
                "Invalid value for argument `class_aggregation`. Expected one of (None, uniform_average, "
                "variance_weighted_average). Received: "
                f"class_aggregation={class_aggregation}"
            )
        if num_regressors < 0:
            raise ValueError(
                "Invalid value for argument `num_regressors`. Expected a value >= 0. Received: "
                f"num_regressors={num_regressors}"
            )
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self.num_samples = self.add_variable((), "zeros", "int32", name="num_samples")
        self._sums: list[Any] = []

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch [batch, outputs]. sample_weight: [batch]. Raises ValueError for other ranks."""
        y_true, y_pred = as_floating(y_true, self._dtype), as_floating(y_pred, self._dtype)
        y_true, y_pred = same_rank(y_true, y_pred)
        if y_true.shape.rank != 2 or y_pred.shape.rank != 2:
            raise ValueError(
                f"R2Score expects 2D inputs with shape (batch_size, output_dim). Received input shapes: "
                f"y_pred.shape={tuple(y_pred.shape)} and y_true.shape={tuple(y_true.shape)}."
            )
        if not self._sums:
            width = (y_true.shape[-1],)
            names = ("squared_sum", "sum", "total_mse", "count")
            self._sums = [self.add_variable(width, "zeros", name=n) for n in names]
        weight = (
            array.ones_like(y_true)
            if sample_weight is None
            else array.ones_like(y_true) * expand_weights(as_floating(sample_weight, self._dtype), y_true)
        )
        squared, plain, error, count = self._sums
        plain.assign_add(math.reduce_sum(y_true * weight, axis=0))
        squared.assign_add(math.reduce_sum(y_true * y_true * weight, axis=0))
        error.assign_add(math.reduce_sum(math.square(y_true - y_pred) * weight, axis=0))
        count.assign_add(math.reduce_sum(weight, axis=0))
        self.num_samples.assign_add(array.size(y_true))

    def result(self) -> Tensor:
        """Return the score."""
        if not self._sums:
            return array.zeros((), self._dtype)
        squared, plain, error, count = [v.value() for v in self._sums]
        variation = squared - plain * (plain / count)
        scores = 1.0 - error / variation
        scores = array.where(math.is_inf(scores), array.zeros_like(scores), scores)
        if self.class_aggregation == "uniform_average":
            scores = math.reduce_mean(scores)
        elif self.class_aggregation == "variance_weighted_average":
            scores = math.reduce_sum(variation * scores) / math.reduce_sum(variation)
        if self.num_regressors:
            n = array.cast(self.num_samples.value(), self._dtype)
            p = float(self.num_regressors)
            scores = 1.0 - (1.0 - scores) * (n - 1.0) / (n - p - 1.0)
        return scores

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "class_aggregation": self.class_aggregation,
            "num_regressors": self.num_regressors,
        }


def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return sum(t p) of the centered vectors scaled to length 1."""
    y_true, y_pred = losses.convert_pair(y_true, y_pred)
    t = y_true - math.reduce_mean(y_true, axis=axis, keepdims=True)
    p = y_pred - math.reduce_mean(y_pred, axis=axis, keepdims=True)
    return math.reduce_sum(losses.unit(t, axis) * losses.unit(p, axis), axis=axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return 2 cov(t, p) / (var(t) + var(p) + (mean(t) - mean(p))^2 + epsilon)."""
    y_true, y_pred = losses.convert_pair(y_true, y_pred)
    true_mean = math.reduce_mean(y_true, axis=axis, keepdims=True)
    pred_mean = math.reduce_mean(y_pred, axis=axis, keepdims=True)
    covariance = math.reduce_mean((y_true - true_mean) * (y_pred - pred_mean), axis=axis)
    spread = math.reduce_mean(math.square(y_true - true_mean) + math.square(y_pred - pred_mean), axis=axis)
    mean_difference = math.square(math.reduce_mean(y_true, axis=axis) - math.reduce_mean(y_pred, axis=axis))
    return 2.0 * covariance / (spread + mean_difference + backend.epsilon())


class PearsonCorrelation(MeanMetricWrapper):
    """Mean over the samples of Pearson's correlation along `axis`."""

    def __init__(self, name: str = "pearson_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(pearson_correlation, name, dtype, axis=axis)


class ConcordanceCorrelation(MeanMetricWrapper):
    """Mean over the samples of Lin's concordance correlation along `axis`."""

    def __init__(self, name: str = "concordance_correlation", dtype: Any = None, axis: int = -1) -> None:
        super().__init__(concordance_correlation, name, dtype, axis=axis)
