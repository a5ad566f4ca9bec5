"""Losses: functions of labels and predictions, and classes that reduce them to a scalar.

Lives here: the public names, `get`, `serialize`, `deserialize`.  Not here: their definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..configuration import ObjectRegistry
from .base import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalHinge,
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
    categorical_hinge,
    cosine_similarity,
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
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalHinge",
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
    "categorical_hinge",
    "cosine_similarity",
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
SHORT = {
    "mse": mean_squared_error,
    "MSE": mean_squared_error,
    "mae": mean_absolute_error,
    "MAE": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "MAPE": mean_absolute_percentage_error,
    "msle": mean_squared_logarithmic_error,
    "MSLE": mean_squared_logarithmic_error,
    "bce": binary_crossentropy,
    "BCE": binary_crossentropy,
    "kld": kl_divergence,
    "KLD": kl_divergence,
    "logcosh": log_cosh,
    "kullback_leibler_divergence": kl_divergence,
    "huber_loss": huber,
}
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


__all__ += ["FunctionLoss"]
