"""Keras's side of keras_saved_cases.py: the user's classes, written for Keras.

Lives here: `opened`. Needs keras 3.
"""

from __future__ import annotations

from typing import Any

import keras

layers = keras.layers


@keras.saving.register_keras_serializable("Rows")
class Scale(layers.Layer):
    def __init__(self, factor: float = 2.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(input_shape[-1],), initializer="ones")

    def call(self, x: Any) -> Any:
        return x * self.w * self.factor

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "factor": self.factor}


@keras.saving.register_keras_serializable("Rows")
class Net(keras.Model):
    def __init__(self, units: int = 3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.zed = layers.Dense(units)
        self.blocks = [layers.Dense(4, activation="relu"), layers.Dense(4)]
        self.alpha, self.scale = layers.Dense(2), Scale(3.0)

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.alpha(self.scale(self.zed(x)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


def opened(path: Any) -> Any:
    """Return the model of a file, opened by Keras."""
    return keras.saving.load_model(path)
