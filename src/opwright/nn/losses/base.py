"""Losses as classes: functions of labels and predictions, reduced to a scalar.

Lives here: the base class, losses defined by functions, one class for each loss.
Not here: the formulas (functions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ...core import nest
from ...ops import math
from ...tracing.name_scopes import name_scope
from .. import configuration, dtype_policies
from ..layer_calls import mask_of
from ..reduction import apply_weights, as_floating, check_reduction, mask_weights, reduce_losses, same_rank
from . import functions

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class Loss:
    """Base class of losses: override `call(y_true, y_pred)`, which returns the loss of each sample.

    reduction: "sum_over_batch_size" (the default: the mean over all losses), "mean" (the same), "sum",
    "mean_with_sample_weight" (the sum divided by the sum of weights), "none" or None (no reduction).
    dtype: the dtype of the computation, or a policy whose compute dtype it is.
    raises ValueError for an unknown reduction
    """

    def __init__(self, name: str | None = None, reduction: Any = "sum_over_batch_size", dtype: Any = None) -> None:
        self.name = name or configuration.fresh(type(self).__name__)
        self.reduction = check_reduction(reduction)
        self._dtype = dtype_policies.compute_dtype_of(dtype)

    @property
    def dtype(self) -> str:
        """Name of the dtype of the computation."""
        return self._dtype.name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Compute the reduced loss.

        y_true, y_pred: [batch, ...]. sample_weight: [batch] or [batch, ...], a factor for each sample. Masked positions
        of y_pred do not count.
        """
        mask = mask_of(y_pred)
        with name_scope(self.name):
            y_pred = nest.map_structure(lambda x: as_floating(x, self._dtype), y_pred)
            y_true = nest.map_structure(lambda x: as_floating(x, self._dtype), y_true)
            losses = self.call(y_true, y_pred)
            inner = mask_of(losses)
            if mask is not None and inner is not None:
                mask = math.logical_and(mask, inner)
            weight = mask_weights(sample_weight, inner if mask is None else mask, losses.dtype, self.reduction)
            return reduce_losses(apply_weights(losses, weight), self.reduction, weight)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Compute the loss of each sample. Every loss overrides it."""
        raise NotImplementedError(f"{type(self).__name__} has no call(y_true, y_pred)")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a loss with these arguments."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name} reduction={self.reduction}>"


class FunctionLoss(Loss):
    """Loss defined by a function of y_true, y_pred and further arguments."""

    def __init__(
        self,
        fn: Callable[..., Tensor],
        reduction: Any = "sum_over_batch_size",
        name: str | None = None,
        dtype: Any = None,
        **arguments: Any,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn, self.arguments = fn, arguments
        for key, value in arguments.items():
            setattr(self, key, value)

    def _init(self, fn: Callable[..., Tensor], constructor_locals: dict[str, Any]) -> None:
        """Set the arguments of a subclass's constructor: those of `Loss`, and the others, which the function takes."""
        arguments = {k: v for k, v in constructor_locals.items() if k not in ("self", "__class__")}
        FunctionLoss.__init__(self, fn, *(arguments.pop(k) for k in ("reduction", "name", "dtype")), **arguments)

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return the result of the loss function."""
        if hasattr(y_true, "shape") and hasattr(y_pred, "shape"):
            y_true, y_pred = same_rank(y_true, y_pred)
        return self.fn(y_true, y_pred, **self.arguments)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; the function of a plain FunctionLoss by name."""
        config = {**super().get_config(), **self.arguments}
        if type(self) is FunctionLoss:
            config["fn"] = getattr(self.fn, "__name__", str(self.fn))
        return config


_MEAN = "sum_over_batch_size"


def _plain_loss(function: Callable[..., Any], class_name: str, loss_name: str | None = None) -> type[FunctionLoss]:
    """Define the class of a loss function without further arguments."""
    default = loss_name or function.__name__

    class PlainLoss(FunctionLoss):
        def __init__(self, reduction: Any = _MEAN, name: str = default, dtype: Any = None) -> None:
            super().__init__(function, reduction, name, dtype)

    PlainLoss.__name__ = PlainLoss.__qualname__ = class_name
    PlainLoss.__module__, PlainLoss.__doc__ = (
        __name__,
        (f"{(function.__doc__ or '').removeprefix('Return ')}\n\nSee `{function.__name__}`, and `Loss`."),
    )
    return PlainLoss


MeanSquaredError = _plain_loss(functions.mean_squared_error, "MeanSquaredError")
MeanAbsoluteError = _plain_loss(functions.mean_absolute_error, "MeanAbsoluteError")
MeanAbsolutePercentageError = _plain_loss(functions.mean_absolute_percentage_error, "MeanAbsolutePercentageError")
MeanSquaredLogarithmicError = _plain_loss(functions.mean_squared_logarithmic_error, "MeanSquaredLogarithmicError")
LogCosh = _plain_loss(functions.log_cosh, "LogCosh")
Poisson = _plain_loss(functions.poisson, "Poisson")
KLDivergence = _plain_loss(functions.kl_divergence, "KLDivergence")
Hinge = _plain_loss(functions.hinge, "Hinge")
SquaredHinge = _plain_loss(functions.squared_hinge, "SquaredHinge")
CategoricalHinge = _plain_loss(functions.categorical_hinge, "CategoricalHinge")


class Huber(FunctionLoss):
    """Huber loss: squared error up to delta, linear beyond. See `huber`, and `Loss`."""

    def __init__(self, delta: float = 1.0, reduction: Any = _MEAN, name: str = "huber_loss", dtype: Any = None) -> None:
        super().__init__(functions.huber, reduction, name, dtype, delta=delta)


class CosineSimilarity(FunctionLoss):
    """Negative cosine similarity. See `cosine_similarity`, and `Loss`."""

    def __init__(
        self, axis: int = -1, reduction: Any = _MEAN, name: str = "cosine_similarity", dtype: Any = None
    ) -> None:
        super().__init__(functions.cosine_similarity, reduction, name, dtype, axis=axis)


class Dice(FunctionLoss):
    """Dice loss: one minus the overlap of two sets. See `dice`, and `Loss`."""

    def __init__(self, reduction: Any = _MEAN, name: str = "dice", axis: Any = None, dtype: Any = None) -> None:
        super().__init__(functions.dice, reduction, name, dtype, axis=axis)


class Tversky(FunctionLoss):
    """Tversky loss: Dice loss with weights for false negatives and positives. See `tversky`, and `Loss`."""

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: Any = _MEAN,
        name: str = "tversky",
        axis: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(functions.tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)


class BinaryCrossentropy(FunctionLoss):
    """Cross-entropy of two classes. See `binary_crossentropy`, and `Loss`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Any = _MEAN,
        name: str = "binary_crossentropy",
        dtype: Any = None,
    ) -> None:
        self._init(functions.binary_crossentropy, locals())


class BinaryFocalCrossentropy(FunctionLoss):
    """Focal cross-entropy of two classes. See `binary_focal_crossentropy`, and `Loss`."""

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
        self._init(functions.binary_focal_crossentropy, locals())


class CategoricalCrossentropy(FunctionLoss):
    """Cross-entropy with one-hot labels. See `categorical_crossentropy`, and `Loss`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Any = _MEAN,
        name: str = "categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        self._init(functions.categorical_crossentropy, locals())


class CategoricalFocalCrossentropy(FunctionLoss):
    """Focal cross-entropy with one-hot labels. See `categorical_focal_crossentropy`, and `Loss`."""

    def __init__(
        self,
        alpha: Any = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: Any = _MEAN,
        name: str = "categorical_focal_crossentropy",
        dtype: Any = None,
    ) -> None:
        self._init(functions.categorical_focal_crossentropy, locals())


class SparseCategoricalCrossentropy(FunctionLoss):
    """Cross-entropy with class indices as labels. See `sparse_categorical_crossentropy`, and `Loss`."""

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: Any = _MEAN,
        axis: int = -1,
        name: str = "sparse_categorical_crossentropy",
        dtype: Any = None,
    ) -> None:
        self._init(functions.sparse_categorical_crossentropy, locals())

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return the result of the loss function; labels keep their rank."""
        return self.fn(y_true, y_pred, **self.arguments)


class CategoricalGeneralizedCrossEntropy(FunctionLoss):
    """A cross-entropy that wrong labels disturb less. See `categorical_generalized_cross_entropy`, and `Loss`.

    raises ValueError for q outside of (0, 1)
    """

    def __init__(
        self,
        q: float = 0.5,
        reduction: Any = _MEAN,
        name: str = "categorical_generalized_cross_entropy",
        dtype: Any = None,
    ) -> None:
        if not 0 < q < 1:
            raise ValueError("q must be in the interval (0, 1)")
        super().__init__(functions.categorical_generalized_cross_entropy, reduction, name, dtype, q=q)


class Circle(FunctionLoss):
    """Loss of embeddings: near those of the same label, far from others. See `circle`, and `Loss`."""

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: Any = _MEAN,
        name: str = "circle",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            functions.circle, reduction, name, dtype, gamma=gamma, margin=margin, remove_diagonal=remove_diagonal
        )


class CTC(FunctionLoss):
    """Loss of label sequences without alignment. See `ctc`, and `Loss`."""

    def __init__(self, reduction: Any = _MEAN, name: str = "ctc", dtype: Any = None) -> None:
        super().__init__(functions.ctc, reduction, name, dtype)

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return the loss of each sequence."""
        return functions.ctc(y_true, y_pred)
