"""`keras.models`: models, and reading them.

Lives here: the names, copies of models.  Not here: what they are (model.py, sequential.py).
"""

from __future__ import annotations

import json
from typing import Any

from .model import Model
from .model_config import deserialize
from .sequential import Sequential
from .weights_io import load_model, save_model

__all__ = ["Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]


def model_from_json(json_string: str, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the model of a configuration written by `to_json`, with new weights."""
    return deserialize(json.loads(json_string), custom_objects)


def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None, **kwargs: Any) -> Any:
    """Return a model of the same configuration with new weights, compiled in the same way."""
    if input_tensors is not None or clone_function is not None or kwargs:
        raise ValueError("clone_model takes the model alone here")
    clone = type(model).from_config(model.get_config())
    if model.compiled:
        from .model_config import compile_arguments, compile_config

        clone.compile(**compile_arguments(compile_config(model._trainer.arguments)))
    return clone
