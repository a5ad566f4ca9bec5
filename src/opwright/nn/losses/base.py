"""Loss: how far predictions are from the truth, as one number for training to make small.

Lives here: the base class; the class that a function makes.  Not here: formulas (regression.py, crossentropy.py ...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ...core import nest
from ...core.dtypes import as_dtype
from ...ops import math
from ...tracing.naming import name_scope
from .. import backend, naming
from ..call_context import mask_of
from ..reduction import as_floating, checked, reduced, same_rank, weigh, with_mask


class Loss:
    """Base of losses: define `call(y_true, y_pred)`, which gives a loss for each sample.

    reduction: "sum_over_batch_size" (the default: the mean over all losses), "mean" (the same), "sum",
    "mean_with_sample_weight" (by the sum of the weights), "none" or None (the losses as they are).
    dtype: what it computes in.
    raises ValueError for an unknown reduction
    """

    def __init__(self, name: str | None = None, reduction: Any = "sum_over_batch_size", dtype: Any = None) -> None:
        self.name = name or naming.fresh(type(self).__name__)
        self.reduction = checked(reduction)
        self._dtype = as_dtype(backend.floatx() if dtype is None else dtype)

    @property
    def dtype(self) -> str:
        """The name of the dtype it computes in."""
        return self._dtype.name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The loss. y_true, y_pred: [batch, ...]. sample_weight: [batch] or [batch, ...], a factor for each sample.

        What a mask of y_pred leaves out does not count.
        """
        mask = mask_of(y_pred)
        with name_scope(self.name):
            y_pred = nest.map_structure(lambda x: as_floating(x, self._dtype), y_pred)
            y_true = nest.map_structure(lambda x: as_floating(x, self._dtype), y_true)
            losses = self.call(y_true, y_pred)
            inner = mask_of(losses)
            if mask is not None and inner is not None:
                mask = math.logical_and(mask, inner)
            weight = with_mask(sample_weight, inner if mask is None else mask, losses.dtype, self.reduction)
            return reduced(weigh(losses, weight), self.reduction, weight)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """A loss for each sample. Every loss defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no call(y_true, y_pred)")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A loss of such arguments."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name} reduction={self.reduction}>"


class FunctionLoss(Loss):
    """A loss made of a function of y_true, y_pred and further arguments."""

    def __init__(self, fn: Callable[..., Any], reduction: Any = "sum_over_batch_size", name: str | None = None,
                 dtype: Any = None, **arguments: Any) -> None:  # fmt: skip
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn, self.arguments = fn, arguments
        for key, value in arguments.items():
            setattr(self, key, value)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """What the function gives."""
        if hasattr(y_true, "shape") and hasattr(y_pred, "shape"):
            y_true, y_pred = same_rank(y_true, y_pred)
        return self.fn(y_true, y_pred, **self.arguments)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; a function of the user's is named."""
        config = {**super().get_config(), **self.arguments}
        if type(self) is FunctionLoss:
            config["fn"] = getattr(self.fn, "__name__", str(self.fn))
        return config
