"""Metrics: values accumulated over batches.

Lives here: the public names, `get`, `serialize`, `deserialize`.  Not here: their definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import losses as _losses
from ..configuration import ObjectRegistry
from .base import Mean, MeanMetricWrapper, Metric, Sum
from .classification import (
    Accuracy,
    BinaryAccuracy,
    BinaryIoU,
    CategoricalAccuracy,
    IoU,
    MeanIoU,
    OneHotIoU,
    OneHotMeanIoU,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from .confusion import (
    F1Score,
    FalseNegatives,
    FalsePositives,
    FBetaScore,
    Precision,
    Recall,
    TrueNegatives,
    TruePositives,
)
from .curves import AUC, PrecisionAtRecall, RecallAtPrecision, SensitivityAtSpecificity, SpecificityAtSensitivity
from .regression import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    ConcordanceCorrelation,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    PearsonCorrelation,
    Poisson,
    R2Score,
    RootMeanSquaredError,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    concordance_correlation,
    pearson_correlation,
)

__all__ = [
    "AUC",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "BinaryIoU",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "ConcordanceCorrelation",
    "CosineSimilarity",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "IoU",
    "KLDivergence",
    "LogCoshError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Metric",
    "OneHotIoU",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "Poisson",
    "Precision",
    "PrecisionAtRecall",
    "R2Score",
    "Recall",
    "RecallAtPrecision",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "categorical_accuracy",
    "deserialize",
    "get",
    "serialize",
    "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
    "top_k_categorical_accuracy",
]

REGISTRY = ObjectRegistry("metric", "keras.metrics")
REGISTRY.add([v for v in list(globals().values()) if isinstance(v, type) and issubclass(v, Metric) and v is not Metric])
REGISTRY.members.update(
    bce=BinaryCrossentropy,
    BCE=BinaryCrossentropy,
    mse=MeanSquaredError,
    MSE=MeanSquaredError,
    mae=MeanAbsoluteError,
    MAE=MeanAbsoluteError,
    mape=MeanAbsolutePercentageError,
    MAPE=MeanAbsolutePercentageError,
    msle=MeanSquaredLogarithmicError,
    MSLE=MeanSquaredLogarithmicError,
    rmse=RootMeanSquaredError,
    RMSE=RootMeanSquaredError,
    kld=KLDivergence,
    KLD=KLDivergence,
    cosine_similarity=CosineSimilarity,
    sparse_top_k_categorical_accuracy=SparseTopKCategoricalAccuracy,
    auc=AUC,
    f1_score=F1Score,
    logcosh=LogCoshError,
    top_k_categorical_accuracy=TopKCategoricalAccuracy,
)
# The functions of losses, under the names of metrics.
_FUNCTIONS = (
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "cosine_similarity",
    "hinge",
    "huber",
    "kl_divergence",
    "KLD",
    "kld",
    "kullback_leibler_divergence",
    "log_cosh",
    "logcosh",
    "MAE",
    "mae",
    "MAPE",
    "mape",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "MSE",
    "mse",
    "MSLE",
    "msle",
    "poisson",
    "sparse_categorical_crossentropy",
    "squared_hinge",
)
globals().update({name: getattr(_losses, name) for name in _FUNCTIONS})
__all__ += [*_FUNCTIONS, "concordance_correlation", "pearson_correlation"]


def serialize(metric: Any) -> str | dict[str, Any] | None:
    """Return a metric as plain values: a dictionary of its class and arguments."""
    return REGISTRY.serialize(metric)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Return the object of a serialized configuration. custom_objects: user classes and functions by name."""
    return REGISTRY.deserialize(config, custom_objects)


def get(identifier: Any) -> Metric | Callable[..., Any] | None:
    """Return the metric, or the function to average, for a name, dictionary, class or instance; None for None."""
    metric: Metric | Callable[..., Any] | None = REGISTRY.get(identifier)
    return metric
