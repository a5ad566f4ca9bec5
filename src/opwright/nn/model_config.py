"""Serialization of models and layers to plain values, for JSON and files.

Lives here: objects by class name, arguments of `compile`.
Not here: graphs of layers (network_config.py), weights (weights_io.py).

An object is {"module", "class_name", "config", "registered_name"}.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import optimizers
from ..core.dtypes import DType, as_dtype
from ..core.shapes import TensorShape
from ..ops import dispatch
from ..ops.tensor import TensorLike
from . import function_code, shared_objects
from .configuration import CUSTOM, CustomObjectScope, function_config, registered_name
from .keras_tensor import KerasTensor
from .layer import Layer
from .network import InputLayer

if TYPE_CHECKING:
    from .configuration import JsonValue
    from .model import Model

M = TypeVar("M", bound="Model")

REGISTRY_MODULES = (
    *("layers", "initializers", "activations", "regularizers", "constraints", "losses", "metrics"),
    *("quantizers", "distillation"),
)


def serialize(thing: Any) -> dict[str, Any]:
    """Return an object with `get_config` as plain values, including nested objects."""
    config = {
        "module": class_module(type(thing)),
        "class_name": type(thing).__name__,
        "config": plain_value(thing.get_config()),
        "registered_name": registered_name(type(thing)),
    }
    if has_build_config(thing):
        config["build_config"] = plain_value(thing.get_build_config())
    number = shared_objects.number_of(thing)
    return config if number is None else {**config, shared_objects.KEY: number}


def has_build_config(thing: Any) -> bool:
    """Return whether a layer's class overrides `get_build_config`."""
    return isinstance(thing, Layer) and type(thing).get_build_config is not Layer.get_build_config


def serialize_model(model: Any) -> dict[str, Any]:
    """Return a model as plain values in which layers that occur several times have numbers."""
    with shared_objects.ObjectSharingScope():
        config: dict[str, Any] = shared_objects.only_shared(serialize(model))
    return config


def class_module(cls: type) -> str:
    if cls.__module__ in (f"{__package__}.models", f"{__package__}.model"):
        return "keras"
    for family in REGISTRY_MODULES:
        if f".nn.{family}" in cls.__module__:
            return f"keras.{family}"
    if ".optimizers." in cls.__module__ and cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return "keras.optimizers.schedules" if cls.__module__.endswith(".schedules") else "keras.optimizers"
    return "keras.layers" if cls is InputLayer else cls.__module__


def plain_value(value: object) -> JsonValue:
    """Convert nested configurations, tensors and dtypes to plain values. Raises TypeError for other objects."""
    if isinstance(value, dict):
        return {k: plain_value(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return {"class_name": "__tuple__", "items": [plain_value(v) for v in value]}
    if isinstance(value, slice):
        return {"class_name": "__slice__", "config": {k: plain_value(getattr(value, k)) for k in _OF_SLICES}}
    if isinstance(value, bytes):
        return {"class_name": "__bytes__", "config": {"value": value.decode("latin-1")}}
    if value is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(value, list):
        return [plain_value(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, np.generic):
        number: JsonValue = value.item()
        return number
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return {"class_name": "__shape__", "config": None if value.dims is None else list(value.dims)}
    if isinstance(value, KerasTensor):
        raise TypeError(f"{value} is not a tensor of the model")
    if isinstance(value, (np.ndarray, TensorLike)):
        array = np.asarray(value.numpy() if isinstance(value, TensorLike) else value)
        return {"class_name": "__tensor__", "config": {"value": array.tolist(), "dtype": as_dtype(array.dtype).name}}
    if hasattr(value, "get_config"):
        return serialize(value)
    if not callable(value):
        raise function_code.unserializable(value)
    if getattr(value, "__name__", "<lambda>") == "<lambda>":
        code: JsonValue = plain_value(function_code.encode(value))
        return code
    function: JsonValue = function_config(value)
    return function


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the object of a serialized configuration. custom_objects: user classes by name.

    raises TypeError for an unknown class
    """
    if not isinstance(config, dict) or "class_name" not in config:
        return config
    name, inner = config["class_name"], config.get("config", {})
    if name == "__tuple__":
        return tuple(deserialize(v, custom_objects) for v in config["items"])
    if name == "__slice__":
        return slice(*(deserialize(inner[k], custom_objects) for k in _OF_SLICES))
    if name == "__ellipsis__":
        return Ellipsis
    if name == "__bytes__":
        return str(inner["value"]).encode("latin-1")
    if name in ("__tensor__", "__numpy__"):
        return dispatch.to_tensor(np.asarray(inner["value"], as_dtype(inner["dtype"]).np))
    if name == "__shape__":
        return TensorShape(inner)
    registered = config.get("registered_name")
    if name == function_code.CLASS:
        return function_code.decode(deserialize(inner, custom_objects))
    if name == "function":
        if not isinstance(inner, str):
            raise TypeError(f"Expected 'config' to be a non-null str for a function. Received: {inner!r}")
        return find(inner, config.get("module"), custom_objects, registered)
    if not isinstance(inner, dict | None):
        raise TypeError(f"Expected 'config' to be a dict for {name}. Received: {inner!r}")
    shared = shared_objects.revived(config)
    if shared is not None:
        return shared
    with CustomObjectScope(custom_objects) if custom_objects else contextlib.nullcontext():
        thing = _new_object(config, name, dict(inner or {}), custom_objects)
        own = config.get("build_config")
        is_built = not isinstance(thing, Layer) or thing.built
        if not is_built and isinstance(own, dict) and ("input_shape" in own or has_build_config(thing)):
            thing.build_from_config({k: deserialize(v, custom_objects) for k, v in own.items()})
    shared_objects.record(thing, config)
    return thing


def _new_object(config: dict[str, Any], name: str, inner: dict[str, Any], custom_objects: dict[str, Any] | None) -> Any:
    """Return a new object of a configuration with a class."""
    cls = find(name, config.get("module"), custom_objects, config.get("registered_name"))
    if isinstance(cls, type) and issubclass(cls, Layer) and cls.is_model:
        if len(inspect.signature(cls.from_config).parameters) > 1:
            model: Any = cls
            return model.from_config(inner, custom_objects)
        with CustomObjectScope(custom_objects or {}):  # a user's class method without custom_objects
            return cls.from_config(inner)
    from_config = getattr(cls, "from_config", None)
    if from_config is None:
        return cls(**inner)
    return from_config({k: _deserialize_nested(v, custom_objects) for k, v in inner.items()})


_OF_SLICES = ("start", "stop", "step")
_OF_LAYERS = ("__tensor__", "__shape__", "__tuple__", "function", function_code.CLASS)


def _deserialize_nested(value: object, custom_objects: dict[str, Any] | None) -> object:
    """Deserialize values of a layer's configuration; other families deserialize their own."""
    if isinstance(value, dict) and value.get("class_name") in _OF_LAYERS:
        return deserialize(value, custom_objects)
    return value


def find(
    name: str, module: str | None, custom_objects: dict[str, Any] | None = None, registered: str | None = None
) -> Callable[..., Any]:
    """Return a class or function by name. Raises TypeError that tells how to register one."""
    objects: dict[str, Callable[..., Any]]
    for objects in (custom_objects or {}, CUSTOM):
        for key in (registered, name):
            if key in objects:
                return objects[key]
    if registered and registered not in (name, "function", "InputLayer"):
        builtin = find(name, None)
        raise ValueError(
            f"`registered_name={registered!r}` was provided in the config, but {name!r} resolved to a Keras built-in "
            f"{builtin!r} and does not use registered names: register the class of that name, or remove it"
        )
    if name == "InputLayer":
        return InputLayer
    name = "Model" if name == "Functional" else name
    own = (module or "").rpartition(".")[2]  # both layers and initializers have an Identity
    for family in sorted((*REGISTRY_MODULES, "models"), key=lambda family: family != own):
        member: Callable[..., Any] | None = getattr(importlib.import_module(f".{family}", __package__), name, None)
        if member is not None:
            return member
    if name == "FeatureSpace":
        return importlib.import_module(".feature_space", __package__).FeatureSpace  # type: ignore[no-any-return]
    for known_module in (optimizers, optimizers.schedules):
        member = getattr(known_module, name, None)
        if isinstance(member, type) and hasattr(member, "from_config"):
            return member
    raise TypeError(
        f"Could not locate class or function '{name}'"
        + (f" of {module}" if module else "")
        + f". Pass it in `custom_objects={{'{name}': ...}}`, or decorate it with "
        "@ow.keras.utils.register_keras_serializable()"
    )


def is_known(name: str) -> bool:
    """Return whether `find` knows a name."""
    try:
        return find(name, None) is not None
    except TypeError:
        return False


# ---- graphs of layers ------------------------------------------------------------------------------------------------


def revived(value: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return plain values with the objects that they configure."""
    if isinstance(value, dict):
        if "class_name" in value:
            return deserialize(value, custom_objects)
        return {k: revived(v, custom_objects) for k, v in value.items()}
    return [revived(v, custom_objects) for v in value] if isinstance(value, list) else value


# ---- compile ---------------------------------------------------------------------------------------------------------


def compile_config(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `compile` as plain values."""
    config = {k: plain_value(v) for k, v in arguments.items() if k not in ("optimizer",)}
    if arguments.get("optimizer") is not None:
        config["optimizer"] = plain_value(optimizers.serialize(arguments["optimizer"]))
    return config


def compile_arguments(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the arguments of `compile` from plain values."""
    arguments = {k: revived(v, custom_objects) for k, v in config.items() if k != "optimizer"}
    if config.get("optimizer") is not None:
        arguments["optimizer"] = optimizers.deserialize(config["optimizer"], custom_objects)
    return arguments


__all__ = ["Layer", "compile_arguments", "compile_config", "deserialize", "find", "plain_value", "revived", "serialize"]
