"""Regularizers: penalties on weights or outputs, added to the loss.

Lives here: L1, L2, L1L2, OrthogonalRegularizer; `get`, `serialize`, `deserialize`.
Not here: collecting the penalties (module.py).

A regularizer maps a tensor to a scalar.
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from ..ops import array, dispatch, linalg, math
from .configuration import AttributeConfig, ObjectRegistry

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class Regularizer(AttributeConfig):
    """Base class of regularizers: override `__call__(x)` and list the constructor's arguments."""

    def __call__(self, x: Any) -> Tensor | float:
        """Return the penalty, a scalar; 0 by default."""
        return 0.0


def _factor(name: str, value: Any) -> float:
    bad = isinstance(value, bool) or not isinstance(value, (int, float)) or not python_math.isfinite(value) or value < 0
    if bad:
        raise ValueError(f"Invalid value for argument {name}: expected a non-negative float. Received: {name}={value}")
    result: float = value
    return result


class L1L2(Regularizer):
    """Penalty l1 sum |x| + l2 sum x^2. Raises ValueError for negative factors."""

    arguments = ("l1", "l2")

    def __init__(self, l1: float | None = 0.0, l2: float | None = 0.0) -> None:
        self.l1 = _factor("l1", 0.0 if l1 is None else l1)
        self.l2 = _factor("l2", 0.0 if l2 is None else l2)

    def __call__(self, x: object) -> Tensor:
        """Return the penalty."""
        x = dispatch.to_tensor(x)
        penalty = array.zeros((), x.dtype)
        if self.l1:
            penalty = penalty + self.l1 * math.reduce_sum(math.abs(x))
        if self.l2:
            penalty = penalty + self.l2 * math.reduce_sum(math.square(x))
        return penalty


class L1(Regularizer):
    """Penalty l1 sum |x|."""

    arguments = ("l1",)

    def __init__(self, l1: float | None = 0.01) -> None:
        self.l1 = _factor("l1", 0.01 if l1 is None else l1)

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty."""
        return self.l1 * math.reduce_sum(math.abs(dispatch.to_tensor(x)))


class L2(Regularizer):
    """Penalty l2 sum x^2."""

    arguments = ("l2",)

    def __init__(self, l2: float | None = 0.01) -> None:
        self.l2 = _factor("l2", 0.01 if l2 is None else l2)

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty."""
        return self.l2 * math.reduce_sum(math.square(dispatch.to_tensor(x)))


class OrthogonalRegularizer(Regularizer):
    """Mean absolute cosine of the angles between rows, or columns, of a matrix, times `factor`.

    mode: "rows" or "columns".
    raises ValueError for another mode, or a tensor that is not a matrix
    """

    arguments = ("factor", "mode")

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        self.factor = _factor("factor", factor)
        if mode not in ("rows", "columns"):
            raise ValueError(
                f'Invalid value for argument `mode`. Expected one of {{"rows", "columns"}}. Received: mode={mode}'
            )
        self.mode = mode

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty."""
        matrix = dispatch.to_tensor(x)
        if matrix.shape.rank != 2:
            raise ValueError(f"Inputs to OrthogonalRegularizer must have rank 2. Received: inputs.shape={matrix.shape}")
        rows = self.mode == "rows"
        axis = 1 if rows else 0
        squares = math.reduce_sum(math.square(matrix), axis=axis, keepdims=True)
        normal = matrix * math.rsqrt(math.maximum(squares, 1e-12))
        product = linalg.matmul(normal, normal, transpose_a=not rows, transpose_b=rows)
        count = matrix.shape[0 if rows else 1]
        if count is None:
            raise ValueError(f"Inputs to OrthogonalRegularizer must have a known shape. Received: {matrix.shape}")
        others = product * (1.0 - array.eye(count, dtype=matrix.dtype))
        pairs: float = count * (count - 1.0) / 2.0
        return self.factor * 0.5 * math.reduce_sum(math.abs(others)) / pairs


REGISTRY = ObjectRegistry("regularizer", "keras.regularizers")
REGISTRY.add((L1, L2, L1L2, OrthogonalRegularizer), l1l2=L1L2)
get, serialize, deserialize = REGISTRY.get, REGISTRY.serialize, REGISTRY.deserialize
l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "OrthogonalRegularizer",
    "Regularizer",
    "deserialize",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "orthogonal_regularizer",
    "serialize",
]
