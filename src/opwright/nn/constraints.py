"""Constraints: projections of weights, applied after each update.

Lives here: MaxNorm, NonNeg, UnitNorm, MinMaxNorm; `get`, `serialize`, `deserialize`.
Not here: their application (optimizers/base.py).

A constraint maps a weight to its constrained value. Norms are Euclidean, along `axis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ops import array, dispatch, math
from .configuration import AttributeConfig, ObjectRegistry

if TYPE_CHECKING:
    from ..ops.tensor import Tensor, TensorValue

_EPSILON = 1e-7


class Constraint(AttributeConfig):
    """Base class of constraints: override `__call__(w)` and list the constructor's arguments."""

    def __call__(self, w: Tensor) -> Tensor:
        """Return the constrained value; by default the weight itself."""
        return w


def _norms(w: Any, axis: Any) -> Tensor:
    return math.sqrt(math.reduce_sum(math.square(w), axis=axis, keepdims=True))


class MaxNorm(Constraint):
    """Constraint that scales down vectors longer than max_value."""

    arguments = ("max_value", "axis")

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: TensorValue) -> Tensor:
        """Return the constrained value."""
        w = dispatch.to_tensor(w)
        norms = _norms(w, self.axis)
        limited: Tensor = math.clip_by_value(norms, 0.0, float(self.max_value))
        return w * (limited / (norms + _EPSILON))


class NonNeg(Constraint):
    """Constraint that replaces negative values by 0."""

    def __call__(self, w: object) -> Tensor:
        """Return the constrained value."""
        w = dispatch.to_tensor(w)
        return w * array.cast(w >= 0.0, w.dtype)


class UnitNorm(Constraint):
    """Constraint that scales vectors to length 1."""

    arguments = ("axis",)

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: object) -> Tensor:
        """Return the constrained value."""
        w = dispatch.to_tensor(w)
        return w / (_norms(w, self.axis) + _EPSILON)


class MinMaxNorm(Constraint):
    """Constraint that scales vectors to lengths in [min_value, max_value]; rate: fraction of the correction."""

    arguments = ("min_value", "max_value", "rate", "axis")

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: TensorValue) -> Tensor:
        """Return the constrained value."""
        w = dispatch.to_tensor(w)
        norms = _norms(w, self.axis)
        limited: Tensor = math.clip_by_value(norms, float(self.min_value), float(self.max_value))
        target = self.rate * limited + (1.0 - self.rate) * norms
        return w * (target / (norms + _EPSILON))


REGISTRY = ObjectRegistry("constraint", "keras.constraints")
REGISTRY.add((MaxNorm, NonNeg, UnitNorm, MinMaxNorm))
get, serialize, deserialize = REGISTRY.get, REGISTRY.serialize, REGISTRY.deserialize
max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm

__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "deserialize",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "serialize",
    "unit_norm",
]
