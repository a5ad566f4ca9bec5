"""The losses as classes: a function, its arguments, and a reduction.

Lives here: one class for each.  Not here: the formulas (regression.py, crossentropy.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import crossentropy, regression
from .base import FunctionLoss

_MEAN = "sum_over_batch_size"


def _plain(function: Callable[..., Any], class_name: str, loss_name: str | None = None) -> type[FunctionLoss]:
    """The class of a loss without arguments of its own."""
    default = loss_name or function.__name__

    class Made(FunctionLoss):
        def __init__(self, reduction: Any = _MEAN, name: str = default, dtype: Any = None) -> None:
            super().__init__(function, reduction, name, dtype)

    Made.__name__ = Made.__qualname__ = class_name
    Made.__module__, Made.__doc__ = __name__, f"{function.__doc__}\n\nSee `{function.__name__}`, and `Loss`."
    return Made


MeanSquaredError = _plain(regression.mean_squared_error, "MeanSquaredError")
MeanAbsoluteError = _plain(regression.mean_absolute_error, "MeanAbsoluteError")
MeanAbsolutePercentageError = _plain(regression.mean_absolute_percentage_error, "MeanAbsolutePercentageError")
MeanSquaredLogarithmicError = _plain(regression.mean_squared_logarithmic_error, "MeanSquaredLogarithmicError")
LogCosh = _plain(regression.log_cosh, "LogCosh")
Poisson = _plain(regression.poisson, "Poisson")
KLDivergence = _plain(regression.kl_divergence, "KLDivergence")
Hinge = _plain(regression.hinge, "Hinge")
SquaredHinge = _plain(regression.squared_hinge, "SquaredHinge")
CategoricalHinge = _plain(regression.categorical_hinge, "CategoricalHinge")


class Huber(FunctionLoss):
    """Squared near zero, linear beyond delta. See `huber`, and `Loss`."""

    def __init__(self, delta: float = 1.0, reduction: Any = _MEAN, name: str = "huber_loss", dtype: Any = None) -> None:
        super().__init__(regression.huber, reduction, name, dtype, delta=delta)


class CosineSimilarity(FunctionLoss):
    """-1 where the directions agree. See `cosine_similarity`, and `Loss`."""

    def __init__(self, axis: int = -1, reduction: Any = _MEAN, name: str = "cosine_similarity", dtype: Any = None
                 ) -> None:  # fmt: skip
        super().__init__(regression.cosine_similarity, reduction, name, dtype, axis=axis)


class Dice(FunctionLoss):
    """One minus the overlap of two sets. See `dice`, and `Loss`."""

    def __init__(self, reduction: Any = _MEAN, name: str = "dice", axis: Any = None, dtype: Any = None) -> None:
        super().__init__(regression.dice, reduction, name, dtype, axis=axis)


class Tversky(FunctionLoss):
    """One minus an overlap that weighs both kinds of error. See `tversky`, and `Loss`."""

    def __init__(self, alpha: float = 0.5, beta: float = 0.5, reduction: Any = _MEAN, name: str = "tversky",
                 axis: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__(regression.tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)


class BinaryCrossentropy(FunctionLoss):
    """Cross-entropy of two classes. See `binary_crossentropy`, and `Loss`."""

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1, reduction: Any = _MEAN,
                 name: str = "binary_crossentropy", dtype: Any = None) -> None:  # fmt: skip
        super().__init__(crossentropy.binary_crossentropy, reduction, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)  # fmt: skip


class BinaryFocalCrossentropy(FunctionLoss):
    """Cross-entropy of two classes that looks at what is hard. See `binary_focal_crossentropy`, and `Loss`."""

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Any = _MEAN,
        name: str = "binary_focal_crossentropy",
        dtype: Any = None,
    ) -> None:
        super().__init__(crossentropy.binary_focal_crossentropy, reduction, name, dtype, gamma=gamma, alpha=alpha,
                         apply_class_balancing=apply_class_balancing, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)  # fmt: skip


class CategoricalCrossentropy(FunctionLoss):
    """Cross-entropy of classes, labels one-hot. See `categorical_crossentropy`, and `Loss`."""

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1, reduction: Any = _MEAN,
                 name: str = "categorical_crossentropy", dtype: Any = None) -> None:  # fmt: skip
        super().__init__(crossentropy.categorical_crossentropy, reduction, name, dtype, from_logits=from_logits,
                         label_smoothing=label_smoothing, axis=axis)  # fmt: skip


class CategoricalFocalCrossentropy(FunctionLoss):
    """Cross-entropy of classes that looks at what is hard. See `categorical_focal_crossentropy`, and `Loss`."""

    def __init__(self, alpha: Any = 0.25, gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0,
                 axis: int = -1, reduction: Any = _MEAN, name: str = "categorical_focal_crossentropy",
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(crossentropy.categorical_focal_crossentropy, reduction, name, dtype, alpha=alpha, gamma=gamma,
                         from_logits=from_logits, label_smoothing=label_smoothing, axis=axis)  # fmt: skip


class SparseCategoricalCrossentropy(FunctionLoss):
    """Cross-entropy of classes, labels by number. See `sparse_categorical_crossentropy`, and `Loss`."""

    def __init__(self, from_logits: bool = False, ignore_class: int | None = None, reduction: Any = _MEAN,
                 axis: int = -1, name: str = "sparse_categorical_crossentropy", dtype: Any = None) -> None:  # fmt: skip
        super().__init__(crossentropy.sparse_categorical_crossentropy, reduction, name, dtype, axis=axis,
                         from_logits=from_logits, ignore_class=ignore_class)  # fmt: skip

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The function's; the labels keep their own rank."""
        return self.fn(y_true, y_pred, **self.arguments)
