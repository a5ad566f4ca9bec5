"""Weights of Keras models into models of the same configuration.

Lives here: `assign_from_model`. Not here: weights in files (nn/hdf5_weights.py).
"""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidArgumentError
from .traced import TracedLayer


def assign_from_model(model: Any, source: Any) -> None:
    """Assign the weights of a Keras model to one of the same configuration. Raises InvalidArgumentError if they differ
    in layers or shapes."""
    others = {layer.name: layer for layer in source.layers}
    for layer in model.layers:
        if isinstance(layer, TracedLayer) or not layer.weights:
            continue
        other = others.get(layer.name)
        if other is None:
            raise InvalidArgumentError(
                op="from_keras", what="the Keras model has no layer of this name", found=layer.name
            )
        if layer.is_model:
            assign_from_model(layer, other)
            continue
        try:
            layer.set_weights(other.get_weights())
        except ValueError as error:
            raise InvalidArgumentError(op="from_keras", node=layer.name, what=str(error)) from error
