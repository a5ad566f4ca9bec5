"""Losses: functions of labels and predictions, and classes that reduce them to a scalar.

Lives here: the public names, `get`, `serialize`, `deserialize`.  Not here: their definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..configuration import ObjectRegistry
from .base import (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    FunctionLoss,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    Loss,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
)
from .functions import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    categorical_hinge,
    circle,
    cosine_similarity,
    ctc,
    dice,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
    tversky,
)

__all__ = [
    "CTC",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "CategoricalHinge",
    "Circle",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "Tversky",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
    "categorical_hinge",
    "circle",
    "cosine_similarity",
    "ctc",
    "deserialize",
    "dice",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "serialize",
    "sparse_categorical_crossentropy",
    "squared_hinge",
    "tversky",
]

REGISTRY = ObjectRegistry("loss", "keras.losses")
_classes = [v for v in list(globals().values()) if isinstance(v, type) and issubclass(v, Loss)]
REGISTRY.add([c for c in _classes if c not in (Loss, FunctionLoss)])
_SERIALIZATION = ("deserialize", "get", "serialize")
FUNCTIONS = {name: globals()[name] for name in __all__ if name.islower() and name not in _SERIALIZATION}
MSE = mse = mean_squared_error
MAE = mae = mean_absolute_error
MAPE = mape = mean_absolute_percentage_error
MSLE = msle = mean_squared_logarithmic_error
KLD = kld = kullback_leibler_divergence = kl_divergence
logcosh = log_cosh
_ALIASES = (
    *("MSE", "mse", "MAE", "mae", "MAPE", "mape", "MSLE", "msle"),
    *("KLD", "kld", "kullback_leibler_divergence", "logcosh"),
)
SHORT = {name: globals()[name] for name in _ALIASES} | {
    "bce": binary_crossentropy,
    "BCE": binary_crossentropy,
    "huber_loss": huber,
}


class Reduction:
    """Names of reductions, as `tf.keras.losses.Reduction`."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    MEAN = "mean"
    MEAN_WITH_SAMPLE_WEIGHT = "mean_with_sample_weight"


REGISTRY.members.update({**FUNCTIONS, **SHORT})


def serialize(loss: Any) -> str | dict[str, Any] | None:
    """Return a loss as plain values: a dictionary of its class and arguments, or a function's name."""
    return REGISTRY.serialize(loss)


def deserialize(name: Any, custom_objects: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Return the object of a serialized configuration. custom_objects: user classes and functions by name."""
    return REGISTRY.deserialize(name, custom_objects)


def get(identifier: Any) -> Loss | Callable[..., Any] | None:
    """Return the loss or loss function for a name, a dictionary, a class or an instance; None for None."""
    loss: Loss | Callable[..., Any] | None = REGISTRY.get(identifier)
    return loss


__all__ += ["FunctionLoss", "Reduction", *_ALIASES]
