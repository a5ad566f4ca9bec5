"""Layers that networks of `keras.applications` define for themselves.

Lives here: `LAYERS`, by class name.
"""

from __future__ import annotations

from typing import Any

from ...ops import array, math
from .. import random
from ..layer import Layer


class LayerScale(Layer):
    """Multiply channels, the last axis, by weights: ConvNeXt. init_values: of the weights; projection_dim: channels."""

    keras_module = "keras.src.applications.convnext"

    def __init__(self, init_values: float, projection_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.init_values = init_values
        self.projection_dim = projection_dim

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        self.gamma = self.add_weight(
            shape=(self.projection_dim,), initializer=lambda shape, dtype=None: array.fill(shape, self.init_values)
        )

    def call(self, x: Any) -> Any:
        """Compute x * gamma."""
        return x * array.cast(self.gamma, x.dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "init_values": self.init_values, "projection_dim": self.projection_dim}


class StochasticDepth(Layer):
    """Drop whole examples in training, and scale the others: ConvNeXt. drop_path_rate: probability of a drop."""

    keras_module = "keras.src.applications.convnext"

    def __init__(self, drop_path_rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.drop_path_rate = drop_path_rate

    def call(self, x: Any, training: Any = None) -> Any:
        """Compute x / keep for kept examples and 0 for others in training; otherwise x."""
        if not training:
            return x
        keep = 1.0 - self.drop_path_rate
        shape = array.concat([array.shape(x)[:1], [1] * (x.shape.rank - 1)], 0)
        kept = math.floor(keep + random.uniform(shape, 0.0, 1.0, x.dtype))
        return (x / keep) * kept

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "drop_path_rate": self.drop_path_rate}


class CustomScaleLayer(Layer):
    """Add a second input times a number: InceptionResNetV2. scale: the number."""

    keras_module = "keras.src.applications.inception_resnet_v2"

    def __init__(self, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs: Any) -> Any:
        """Compute inputs[0] + scale * inputs[1]."""
        return inputs[0] + inputs[1] * self.scale

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {**super().get_config(), "scale": self.scale}


LAYERS: dict[str, type[Layer]] = {
    "CustomScaleLayer": CustomScaleLayer,
    "LayerScale": LayerScale,
    "StochasticDepth": StochasticDepth,
}
