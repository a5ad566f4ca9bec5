"""Models in .h5 files of Keras 2, which Keras 3 writes, too.

Lives here: the configuration of such a file in the form of Keras 3. Not here: its weights (nn/legacy_hdf5.py).
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...core.errors import DataLossError
from ...nn.hdf5_weights import WeightGroup, open_weights
from ...nn.legacy_hdf5 import TRAINING, weights_of

DROPPED = ("batch_input_shape", "implementation", "time_major", "reset_after_version")
"""Arguments of layers in files of Keras 2 that say nothing of the computation, or stand elsewhere."""
OF_OPTIMIZERS = ("decay", "is_legacy_optimizer", "jit_compile")
"""Arguments of optimizers in files of Keras 2 that those of Keras 3 lack."""


class LegacyFile:
    """An open .h5 file. configuration: its model as Keras 3 serializes it; weights: their group; root: of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            self.root: WeightGroup = open_weights(file.read(), self.path)
        text = self.root.text("model_config")
        if text is None:
            raise DataLossError(
                what=f"{self.path} has no model, but weights alone", do="make the model and call its `load_weights`"
            )
        weights = weights_of(self.root)
        if weights is None:
            raise DataLossError(what=f"{self.path} has no weights")
        self.weights = weights
        self.configuration: Any = _modern(self._json("model_config", text))
        if str(self.root.text("keras_version") or weights.text("keras_version") or "2").startswith("2"):
            _renumber_calls(self.configuration)
        training = self.root.text("training_config")
        if training is not None and isinstance(self.configuration, dict):
            self.configuration["compile_config"] = _compilation(self._json("training_config", training))

    def _json(self, what: str, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataLossError(what=f"the {what} of {self.path} is damaged: {error}") from error


def _modern(value: Any) -> Any:
    """Return a configuration of Keras 2 in the form of Keras 3."""
    if isinstance(value, list):
        return [_modern(part) for part in value]
    if not isinstance(value, dict):
        return value
    value = {key: _modern(part) for key, part in value.items()}
    inner = value.get("config")
    if "class_name" not in value or not isinstance(inner, dict):
        return value
    name, first = value["class_name"], inner.get("batch_input_shape")
    if name == "InputLayer" and first is not None:
        inner["batch_shape"] = first
    if name == "BatchNormalization" and isinstance(inner.get("axis"), list) and len(inner["axis"]) == 1:
        inner["axis"] = inner["axis"][0]
    if name == "Sequential" and isinstance(inner.get("layers"), list) and inner["layers"]:
        inner["layers"] = _with_input(inner["layers"])
    value["config"] = {key: part for key, part in inner.items() if key not in DROPPED}
    if name != "InputLayer" and first is not None:
        value["first_shape"] = first
    return value


def _renumber_calls(value: Any) -> None:
    """Renumber the calls of models in models, which begin at 1 in files of Keras 2: 0 is the model's own graph.

    Inputs and outputs that are lists of one become that one.
    """
    inner = value.get("config") if isinstance(value, dict) else None
    layers = inner.get("layers") if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or not isinstance(layers, list):
        return
    for layer in layers:
        _renumber_calls(layer)
    models = {
        layer.get("name")
        for layer in layers
        if isinstance(layer, dict) and layer.get("class_name") in ("Functional", "Model", "Sequential")
    }

    def renumber(part: Any) -> None:
        if not isinstance(part, list):
            return
        if len(part) > 2 and isinstance(part[0], str) and isinstance(part[1], int):
            part[1] -= part[0] in models
        else:
            for each in part:
                renumber(each)

    for layer in layers:
        renumber(layer.get("inbound_nodes") if isinstance(layer, dict) else None)
    renumber(inner.get("output_layers"))
    for key in ("input_layers", "output_layers"):  # a list of one is that one
        ends = inner.get(key)
        if isinstance(ends, list) and len(ends) == 1 and isinstance(ends[0], list):
            inner[key] = ends[0]


def _with_input(layers: list[Any]) -> list[Any]:
    """Return the layers of a Sequential, with an InputLayer for the shape that the first one has."""
    first = layers[0]
    shape = first.pop("first_shape", None) if isinstance(first, dict) else None
    if shape is None:
        return layers
    config = {"batch_shape": shape, "dtype": first["config"].get("dtype") or "float32"}
    if not isinstance(config["dtype"], str):
        config["dtype"] = "float32"
    return [{"class_name": "InputLayer", "config": config}, *layers]


def _compilation(training: Any) -> dict[str, Any]:
    """Return what a file says of `compile` in the form of Keras 3."""
    if not isinstance(training, dict):
        return {}
    config = {key: _names(training[key]) for key in TRAINING if training.get(key) is not None}
    optimizer = training.get("optimizer_config")
    if isinstance(optimizer, dict) and isinstance(optimizer.get("config"), dict):
        inner = {key: value for key, value in optimizer["config"].items() if key not in OF_OPTIMIZERS}
        name = str(optimizer.get("class_name")).removeprefix("Custom>")
        config["optimizer"] = {"class_name": name, "config": inner}
    return config


def _names(value: Any) -> Any:
    """Return metrics and losses with the names of functions in the place of wrappers of Keras 2."""
    if isinstance(value, list):
        parts = [_names(part) for part in value]
        return parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    if isinstance(value, dict):
        if value.get("class_name") in ("MeanMetricWrapper", "LossFunctionWrapper"):
            return value.get("config", {}).get("fn")
        return value if "class_name" in value else {key: _names(part) for key, part in value.items()}
    return value
