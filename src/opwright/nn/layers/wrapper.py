"""Layers around a layer; and layers by name and from dictionaries.

Lives here: Wrapper, `serialize`, `deserialize`.
Not here: Bidirectional and TimeDistributed (recurrent_wrappers.py), models' configurations.
"""

from __future__ import annotations

from typing import Any

from ..layer import Layer
from .base import Described


def serialize(layer: Any) -> Any:
    """A layer as a dictionary of its class's name and its configuration."""
    from .. import model_config  # above this module: it knows models too

    return model_config.serialize(layer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """The layer that `serialize` described, with new weights. custom_objects: classes of yours by name."""
    from .. import model_config

    return model_config.deserialize(config, custom_objects)


class Wrapper(Described):
    """A layer that holds another one, `layer`, and builds it. Raises ValueError for what is no layer."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(f"Layer {layer} supplied to Wrapper isn't a supported layer type. Please ensure wrapped "
                             f"layer "
                             "is a valid Keras layer.")  # fmt: skip
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        """Build the layer inside."""
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as plain values."""
        return {**super().get_config(), "layer": serialize(self.layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A new one, with a new layer inside."""
        config = dict(config)
        return cls(deserialize(config.pop("layer"), custom_objects), **config)
