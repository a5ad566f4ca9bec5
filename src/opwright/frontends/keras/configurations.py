"""Configurations of Keras models as those of `nn`, which have the same form.

Lives here: `ConfigurationConverter`. Not here: objects of configurations (nn/model_config.py).

Arguments that classes of `nn` lack are left out if they are None or False, which ask for nothing; others are reported
with all else that is missing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ...core.errors import InvalidArgumentError, UnimplementedError
from ...nn.applications.own_layers import LAYERS
from ...nn.configuration import CUSTOM
from ...nn.function_code import CLASS, in_safe_mode
from ...nn.model_config import find
from ...nn.network_config import node_arguments, operation_config
from ...nn.operations import operation_classes

WITHOUT_EFFECT = ("renorm_momentum", "seed", "shared_object_id")  # momentum of `renorm`, which is False
"""Arguments that may be left out whatever their value."""
DEFAULTS = {"data_format": "channels_last"}
"""Arguments that may be left out at this value, which is what classes without them do."""


class ConfigurationConverter:
    """Converts the configuration of one model. custom: classes by their name in Keras. layers: of a model object, by
    name; one without an equivalent is recorded (traced.py). class_names: of Keras, by the names of layers, which files
    of weights use."""

    def __init__(self, custom: Mapping[str, Any], layers: Mapping[str, Any] | None = None) -> None:
        self._custom = custom
        self._layers = layers or {}
        self._missing: dict[str, str] = {}
        self.class_names: dict[str, str] = {}

    def check(self, source: str) -> None:
        """Raise UnimplementedError with all that has no equivalent, if there is any."""
        if not self._missing:
            return
        names = [name for name in self._missing if not name.startswith("keras.ops") and "(" not in name]
        table = ", ".join(f'"{name}": {name.rpartition(">")[2]}' for name in names)
        raise UnimplementedError(
            op="from_keras",
            what=f"{len(self._missing)} parts of {source} have no equivalent",
            found="; ".join(f"{name}: {why}" for name, why in self._missing.items()),
            do=f"pass custom={{{table}}} with classes of Opwright layers" if table else None,
        )

    def convert(self, value: Any) -> Any:
        """Return a value of a configuration, converted."""
        if isinstance(value, list | tuple):  # objects have tuples where files have lists
            return [self.convert(v) for v in value]
        if not isinstance(value, dict):
            return value
        if "class_name" not in value:
            return {k: self.convert(v) for k, v in value.items()}
        name, inner = value["class_name"], value.get("config")
        if not isinstance(name, str):
            raise InvalidArgumentError(op="from_keras", what="the name of a class is not text", found=name)
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, inner)
        if name.startswith("__") or name == "function":
            return value
        module = value.get("module") or ""
        if not isinstance(inner, dict):
            raise InvalidArgumentError(op="from_keras", what=f"a {name} without a configuration", found=inner)
        in_h5 = (
            not module and name in operation_classes() and "inbound_nodes" in value
        )  # where files of Keras 3 have no modules
        is_operation = in_h5 and not inner.keys() & {"trainable", "batch_shape"}
        if is_operation or "keras.src.ops" in module or module.startswith("keras.ops"):
            return self._operation(value, name, inner)
        if "name" in value and isinstance(inner.get("name"), str):
            self.class_names[value["name"]] = name
        if isinstance(inner.get("name"), str):
            self.class_names[inner["name"]] = name
        if "layers" in inner:
            return {**value, "config": self._network(inner), "inbound_nodes": self._calls(value)}
        cls = self._class(value, name, inner)
        arguments = {k: self.convert(v) for k, v in inner.items()}
        converted = {**value, "config": arguments if cls is None else self._accepted(cls, name, arguments)}
        converted["registered_name"] = value.get("registered_name") if cls is None else None
        if "inbound_nodes" in value:
            converted["inbound_nodes"] = self._calls(value)
        return converted

    def _class(self, value: Mapping[str, Any], name: str, inner: Mapping[str, Any]) -> Any:
        """Return the class of an object; None, and a note, if there is none."""
        registered = value.get("registered_name")
        for key in (registered, name):
            if key in self._custom or key in CUSTOM:
                return None  # it takes its configuration as it is
        if name in LAYERS:
            return LAYERS[name]
        try:
            module = value.get("module") or "keras"
            if str(module).partition(".")[0] != "keras":  # of a user, even if it has the name of one of Keras's
                raise TypeError(module)
            return find(name, module)
        except TypeError:
            key = registered if isinstance(registered, str) and registered else name
            plain = {k: v for k, v in inner.items() if k not in ("name", "trainable", "dtype")}
            text = repr(plain)
            self._missing.setdefault(key, f"no such class, of {text if len(text) < 200 else text[:197] + '...'}")
            return None

    def _accepted(self, cls: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that a class takes."""
        parameters = _parameters(cls)
        result = {}
        for key, value in arguments.items():
            if key in parameters:
                result[key] = value
            elif value is not None and value is not False and key not in WITHOUT_EFFECT and DEFAULTS.get(key) != value:
                self._missing.setdefault(f"{name}({key})", f"no such argument, {value!r} here")
        return result

    def _network(self, inner: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(inner["layers"], list | tuple):
            raise InvalidArgumentError(
                op="from_keras", what="layers are not a list", found=type(inner["layers"]).__name__
            )
        kept = ("name", "trainable", "build_input_shape", "input_layers", "output_layers")
        result = {k: inner[k] for k in kept if k in inner}
        return result | {"layers": [self._layer(layer) for layer in inner["layers"]]}

    def _layer(self, value: Any) -> Any:
        """Return the configuration of a layer: converted, or of its program if parts have no equivalent."""
        before = dict(self._missing)
        converted = self.convert(value)
        name = value.get("config", {}).get("name") if isinstance(value, dict) else None
        source = self._layers.get(name) if isinstance(name, str) else None
        if len(self._missing) == len(before) or source is None or "layers" in value["config"]:
            return converted
        self._missing = before
        return {
            "module": None,
            "class_name": "TracedLayer",
            "registered_name": None,
            "config": {"name": name, "source": source},
            "name": name,
            "inbound_nodes": self._calls(value),
        }

    def _calls(self, value: Mapping[str, Any]) -> list[Any]:
        calls = value.get("inbound_nodes")
        calls = [node_arguments(call) for call in calls] if isinstance(calls, list | tuple) else ()
        return [
            {
                "args": self.convert(call["args"]),
                "kwargs": {k: self.convert(v) for k, v in call["kwargs"].items() if _is_given(k, v)},
            }
            for call in calls
        ]

    def _operation(self, value: Mapping[str, Any], name: str, inner: Mapping[str, Any]) -> dict[str, Any]:
        if name not in operation_classes():
            self._missing.setdefault(f"keras.ops.{name}", "no such operation")
        arguments = {k: self.convert(v) for k, v in inner.items() if k != "name"}
        layer = value.get("name", inner.get("name"))
        calls = self._calls(value)
        for call in calls if name == "GetItem" else ():  # files have lists for tuples, which index otherwise
            call["args"] = [{"class_name": "__tuple__", "items": a} if isinstance(a, list) else a for a in call["args"]]
        return operation_config(layer, name, arguments) | {"name": layer, "inbound_nodes": calls}


def _is_given(key: str, value: Any) -> bool:
    """Return whether an argument of a layer's call is one: Keras writes `training` as it was when the model was made,
    which a call of the model overrides."""
    return value is not None and not (key == "training" and value is False)


def _parameters(cls: Any) -> set[str]:
    """Return the names of a constructor's arguments, including the ones that it passes on to its bases."""
    names: set[str] = set()
    for base in cls.__mro__ if isinstance(cls, type) else (cls,):
        init = vars(base).get("__init__") if isinstance(base, type) else base
        if not inspect.isfunction(init):
            continue
        declared = inspect.signature(init).parameters
        names |= {n for n, p in declared.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return names - {"self"}


def _policy(converter: ConfigurationConverter, inner: Any) -> Any:
    return inner.get("name") if isinstance(inner, dict) else inner


def _lambda(converter: ConfigurationConverter, inner: Any) -> Any:
    if in_safe_mode():
        converter._missing.setdefault("Lambda(function)", "Python code, which is executed with safe_mode=False only")
        return None
    return {"class_name": CLASS, "config": inner}


def _quantized_policy(converter: ConfigurationConverter, inner: Any) -> Any:
    if not isinstance(inner, dict):
        return inner
    if "amax_history_length" in inner:
        return {"class_name": "QuantizedFloat8DTypePolicy", "config": inner}
    return f"{inner.get('mode')}_from_{inner.get('source_name')}"


_SPECIAL = {
    "DTypePolicy": _policy,
    **dict.fromkeys(
        (
            *("QuantizedDTypePolicy", "QuantizedFloat8DTypePolicy", "Int4DTypePolicy"),
            *("GPTQDTypePolicy", "AWQDTypePolicy"),
        ),
        _quantized_policy,
    ),
    CLASS: _lambda,
}
