"""Layers one after another as one layer, as for preprocessing in a dataset.

Lives here: Pipeline.  Not here: models of layers (../models.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..layer import Layer
from ..saving import deserialize_keras_object, serialize_keras_object


class Pipeline(Layer):
    """Layers, each called with the results of the one before; calls of `map` in a dataset train by default."""

    def __init__(self, layers: Sequence[Layer], name: str | None = None) -> None:
        super().__init__(name=name)
        self._steps = list(layers)

    @property
    def layers(self) -> list[Layer]:
        """The layers in order."""
        return self._steps

    def call(self, inputs: Any, training: bool | None = True, mask: Any = None) -> Any:
        """Return what the last layer returns. training, mask: passed to the layers that take them."""
        for layer in self._steps:
            masked = {"mask": mask} if mask is not None and layer._call_spec().mask else {}
            inputs = layer(inputs, training=training, **masked)
        return inputs

    def get_config(self) -> dict[str, Any]:
        """Return the configurations of the layers, and the name."""
        return {"layers": [serialize_keras_object(layer) for layer in self._steps], "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Pipeline:
        """Return a pipeline of new layers. Raises ValueError for a configuration without a list of layers."""
        layers = config.get("layers")
        if not isinstance(layers, (list, tuple)):
            raise ValueError(
                "`Pipeline` config must contain a `layers` key mapping to a list of serialized layers. Received config "
                f"with layers={layers}."
            )
        return cls([deserialize_keras_object(layer) for layer in layers], name=config.get("name"))
