"""`ow.autodiff`: derivatives forward along given directions.

Lives here: `ForwardAccumulator`.  Not here: the tape (tape.py), on whose reverse pass it is built.
"""

from __future__ import annotations

from typing import Any

from ..core import nest
from ..ops import array, dispatch
from .tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]


class ForwardAccumulator:
    """Compute products of Jacobians of what runs in its context and vectors: `jvp`.

    .. math:: jvp(y) = \\sum_i \\frac{\\partial y}{\\partial primals_i} tangents_i

    primals: tensors or variables, or structures of them; tangents: the vectors, alike. A product is the derivative of
    the reverse pass by its incoming gradient, in which it is linear: it takes two reverse passes.
    raises ValueError for structures, shapes or dtypes that differ

    >>> x = ow.constant([2.0, 3.0])
    >>> with ow.autodiff.ForwardAccumulator(x, ow.constant([1.0, 0.0])) as accumulator:
    ...     y = x * x
    >>> accumulator.jvp(y).numpy()
    array([4., 0.], dtype=float32)
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        nest.assert_same_structure(primals, tangents)
        self._primals = nest.flatten(primals)
        self._tangents = [
            dispatch.to_tensor(t, None if hasattr(t, "dtype") else p.dtype)
            for p, t in zip(self._primals, nest.flatten(tangents))
        ]
        for primal, tangent in zip(self._primals, self._tangents):
            if primal.dtype is not tangent.dtype or not primal.shape.is_compatible_with(tangent.shape):
                raise ValueError(
                    "Dtypes and shapes of primals and tangents must match. "
                    f"Received: {primal.dtype.name} {primal.shape} and {tangent.dtype.name} {tangent.shape}"
                )
        self._tape: Any = None

    def __enter__(self) -> ForwardAccumulator:
        if self._tape is not None:
            raise ValueError("Accumulator is already recording, or was: make another one.")
        self._tape = GradientTape(persistent=True)
        self._tape.__enter__()
        self._tape.watch(self._primals)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._tape.__exit__(kind, error, trace)

    def jvp(self, primals: Any, unconnected_gradients: Any = "none") -> Any:
        """Return the products for results, in their structure; None, or zeros, for one without a path from primals.

        unconnected_gradients: "none" or "zero"
        """
        if self._tape is None:
            raise ValueError("Called jvp() without first entering the accumulator's context.")
        zero = str(getattr(unconnected_gradients, "value", unconnected_gradients)) == "zero"
        return nest.map_structure(lambda y: self._product(dispatch.to_tensor(y), zero), primals)

    def _product(self, y: Any, zero: bool) -> Any:
        with GradientTape() as tape:
            cotangent = array.ones_like(y)
            tape.watch(cotangent)
            gradients = self._tape.gradient(y, self._primals, output_gradients=cotangent)
        connected = [(dispatch.to_tensor(g), t) for g, t in zip(gradients, self._tangents) if g is not None]
        if not connected:
            return array.zeros_like(y) if zero else None
        return tape.gradient([g for g, _ in connected], cotangent, output_gradients=[t for _, t in connected])
