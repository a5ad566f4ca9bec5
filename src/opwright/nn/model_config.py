"""Serialization of models and layers to plain values, for JSON and files.

Lives here: objects by class name, graphs of layers, arguments of `compile`.  Not here: weights (weights_io.py).

An object is {"module", "class_name", "config", "registered_name"}; a KerasTensor in a node's arguments is
{"class_name": "__keras_tensor__", "config": {"shape", "dtype", "keras_history": [layer, node, output]}}; a call of an
operator is a layer of class "__operator__" with the operator's name and attributes, one of a function of `keras.ops`
a layer of class "__operation__" with its class in Keras and that class's arguments.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import optimizers
from ..core import nest
from ..core.dtypes import DType, as_dtype
from ..core.shapes import TensorShape
from ..ops import dispatch, registry
from ..ops.tensor import TensorLike
from . import function_code, shared_objects
from .configuration import CUSTOM, CustomObjectScope, function_config, registered_name
from .keras_tensor import KerasTensor, OperationNode, OperatorCall
from .layer import Layer
from .network import InputLayer
from .operations import OperationCall, operation_classes

if TYPE_CHECKING:
    from .configuration import JsonValue
    from .keras_tensor import KerasTensors
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
    shared = shared_objects.made(config)
    if shared is not None:
        return shared
    with CustomObjectScope(custom_objects) if custom_objects else contextlib.nullcontext():
        thing = _made_of(config, name, dict(inner or {}), custom_objects)
        own = config.get("build_config")
        is_built = not isinstance(thing, Layer) or thing.built
        if not is_built and isinstance(own, dict) and ("input_shape" in own or has_build_config(thing)):
            thing.build_from_config({k: deserialize(v, custom_objects) for k, v in own.items()})
    shared_objects.note_made(thing, config)
    return thing


def _made_of(config: dict[str, Any], name: str, inner: dict[str, Any], custom_objects: dict[str, Any] | None) -> Any:
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


def network_config(model: Any) -> dict[str, Any]:
    """Return the configuration of a functional model."""
    network = model._network
    network_nodes = {id(n) for n in network.nodes}
    index: dict[int, tuple[str, int]] = {}
    by_operation: dict[int, list[OperationNode]] = {}
    for operation in network.operations:
        nodes = [n for n in operation.nodes if id(n) in network_nodes or _is_input(n, network)]
        by_operation[id(operation)] = nodes
        for i, node in enumerate(nodes):
            index[id(node)] = operation.name, i

    def leaf(x: Any) -> JsonValue:
        if not isinstance(x, KerasTensor):
            return plain_value(x)
        name, i = index[id(x.node)]
        return {
            "class_name": "__keras_tensor__",
            "config": {
                "shape": None if x.shape.dims is None else list(x.shape.dims),
                "dtype": x.dtype.name,
                "keras_history": [name, i, x.history[2] if x.history else 0],
            },
        }

    def tree(x: Any) -> JsonValue:
        if isinstance(x, dict):
            return {k: tree(v) for k, v in x.items()}
        return [tree(v) for v in x] if isinstance(x, (list, tuple)) else leaf(x)

    layers = []
    for operation in network.operations:
        described = _described(operation)
        described["name"] = operation.name
        described["inbound_nodes"] = [
            {"args": [tree(a) for a in n.args], "kwargs": {k: tree(v) for k, v in n.kwargs.items()}}
            for n in by_operation[id(operation)]
            if not _is_input(n, network)
        ]
        layers.append(described)
    history_of = lambda t: [*index[id(t.node)], t.history[2]]  # noqa: E731
    return {
        "name": model.name,
        "trainable": model.trainable,
        "layers": layers,
        "input_layers": nest.map_structure(history_of, network.inputs),
        "output_layers": nest.map_structure(history_of, network.outputs),
    }


def _is_input(node: OperationNode, network: Any) -> bool:
    return bool(node.flat_outputs) and all(id(t) in network._inputs_by_id for t in node.flat_outputs)


def _described(operation: Any) -> dict[str, Any]:
    """Return a layer, operator or operation as plain values, without its calls."""
    if isinstance(operation, OperatorCall):
        attrs = {k: plain_value(getattr(operation.bound, k)) for k in operation.op.attr_defs}
        config = {"name": operation.name, "operator": operation.op.name, "attributes": attrs}
        return {"module": None, "class_name": "__operator__", "registered_name": None, "config": config}
    if isinstance(operation, OperationCall):
        return operation_config(operation.name, operation.operation.name, plain_value(operation.arguments))
    return serialize(operation)


def operation_config(name: str, operation: str, arguments: JsonValue) -> dict[str, Any]:
    """Return the configuration of an operation of `keras.ops`. operation: its class in Keras."""
    config = {"name": name, "operation": operation, "arguments": arguments}
    return {"module": None, "class_name": "__operation__", "registered_name": None, "config": config}


def _operation(config: Any) -> OperationCall:
    operation = operation_classes().get(config["operation"])
    if operation is None:
        raise ValueError(f"Unknown operation: {config['operation']!r} is no class of keras.ops")
    return OperationCall(operation, _revived(config["arguments"]), config["name"])


def _revived(value: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return plain values with the objects that they configure."""
    if isinstance(value, dict):
        if "class_name" in value:
            return deserialize(value, custom_objects)
        return {k: _revived(v, custom_objects) for k, v in value.items()}
    return [_revived(v, custom_objects) for v in value] if isinstance(value, list) else value


def network_from_config(cls: type[M], config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> M:
    """Return the functional model of a configuration."""
    operations: dict[str, Any] = {}
    tensors: dict[tuple[str, int], list[KerasTensor]] = {}
    waiting: list[tuple[dict[str, Any], int]] = []
    for described in config["layers"]:
        if described["class_name"] == "__operator__":
            inner = described["config"]
            op = registry.get(inner["operator"])
            attrs = {k: _attribute_from_json(op.attr_defs[k], v) for k, v in inner["attributes"].items()}
            operation = OperatorCall(op, op.bind(attrs), inner["name"])
            operation.name = inner["name"]  # as in the other model, though it may not be new
            operations[described["name"]] = operation
        elif described["class_name"] == "__operation__":
            operations[described["name"]] = _operation(described["config"])
        else:
            operations[described["name"]] = deserialize(described, custom_objects)
        layer = operations[described["name"]]
        if isinstance(layer, InputLayer):
            tensors[described["name"], 0] = [layer.output]
        described = {**described, "inbound_nodes": [node_arguments(n) for n in described.get("inbound_nodes", ())]}
        waiting += [(described, i) for i in range(len(described.get("inbound_nodes", ())))]

    def ready(x: Any) -> bool:
        if isinstance(x, dict) and x.get("class_name") == "__keras_tensor__":
            if x["config"]["keras_history"][0] not in operations:
                raise ValueError(
                    f"Invalid Functional model configuration of model {config.get('name')!r}. Missing node: "
                    f"{x['config']['keras_history'][0]}"
                )
            return tuple(x["config"]["keras_history"][:2]) in tensors
        if isinstance(x, dict):
            return all(map(ready, x.values()))
        return all(map(ready, x)) if isinstance(x, list) else True

    def revive(x: object) -> object:
        if isinstance(x, dict):
            if x.get("class_name") == "__keras_tensor__":
                name, node, output = x["config"]["keras_history"]
                return tensors[name, node][output]
            return deserialize(x, custom_objects) if "class_name" in x else {k: revive(v) for k, v in x.items()}
        return [revive(v) for v in x] if isinstance(x, list) else x

    while waiting:
        later = []
        for described, i in waiting:
            node = described["inbound_nodes"][i]
            first_free = sum(1 for key in tensors if key[0] == described["name"])
            if first_free != i or not ready([node["args"], node["kwargs"]]):
                later.append((described, i))
                continue
            layer = operations[described["name"]]
            args = [revive(a) for a in node["args"]]
            if isinstance(layer, OperatorCall):
                args = [tuple(a) if isinstance(a, list) else a for a in args]
                outputs = _record_call(layer, args)
            else:
                outputs = layer(*args, **{k: revive(v) for k, v in node["kwargs"].items()})
            tensors[described["name"], i] = [t for t in nest.flatten(outputs) if isinstance(t, KerasTensor)]
        if len(later) == len(waiting):
            raise ValueError(
                f"Invalid Functional model configuration of model {config.get('name')!r}: its graph has loops or "
                f"disconnected nodes. Nodes of these layers remain: {sorted({d['name'] for d, _ in later})}"
            )
        waiting = later

    def resolve(reference: Any) -> KerasTensor | dict[Any, Any] | list[Any] | tuple[Any, ...]:
        if isinstance(reference, (list, tuple)) and len(reference) == 3 and isinstance(reference[0], str):
            return tensors[reference[0], reference[1]][reference[2]]
        if isinstance(reference, dict) and reference.get("class_name") == "__tuple__":
            return tuple(resolve(part) for part in reference["items"])
        if isinstance(reference, dict):
            return {k: resolve(v) for k, v in reference.items()}
        parts = [resolve(part) for part in reference]
        return tuple(parts) if isinstance(reference, tuple) else parts

    model = cls(resolve(config["input_layers"]), resolve(config["output_layers"]), name=config.get("name"))
    if not config.get("trainable", True):
        model.trainable = False
    return model


def node_arguments(node: Any) -> dict[str, Any]:
    """Return a node's arguments; files of Keras 2 list its input tensors, the last with the keyword arguments."""
    if isinstance(node, dict):
        return node
    tensors: list[Any] = [{"class_name": "__keras_tensor__", "config": {"keras_history": each[:3]}} for each in node]
    kwargs: dict[str, Any] = next((each[3] for each in node if len(each) > 3), {})
    return {"args": tensors if len(tensors) == 1 else [tensors], "kwargs": kwargs}


def _record_call(operation: OperatorCall, inputs: list[Any]) -> KerasTensors:
    """Record a call of an operation that keeps its name."""
    fresh = operation.op.infer(operation.bound, inputs, operation.name)
    flat = [s for spec in fresh for s in (spec if isinstance(spec, list) else (spec,))]
    outputs = [KerasTensor(s.shape, s.dtype, name=operation.name) for s in flat]
    packed: KerasTensors = operation.op.pack_outputs(outputs)
    OperationNode(operation, tuple(inputs), {}, packed)
    return packed


def _attribute_from_json(declared: Any, value: Any) -> Any:
    """Convert an attribute from JSON, where dtypes are names and tuples are lists."""
    if isinstance(value, dict) and "class_name" in value:
        return deserialize(value)
    if declared.type is DType and value is not None:
        return as_dtype(value)
    return tuple(value) if isinstance(value, list) else value


# ---- compile ---------------------------------------------------------------------------------------------------------


def compile_config(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `compile` as plain values."""
    config = {k: plain_value(v) for k, v in arguments.items() if k not in ("optimizer",)}
    if arguments.get("optimizer") is not None:
        config["optimizer"] = plain_value(optimizers.serialize(arguments["optimizer"]))
    return config


def compile_arguments(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the arguments of `compile` from plain values."""
    arguments = {k: _revived(v, custom_objects) for k, v in config.items() if k != "optimizer"}
    if config.get("optimizer") is not None:
        arguments["optimizer"] = optimizers.deserialize(config["optimizer"], custom_objects)
    return arguments


__all__ = [
    "Layer",
    "compile_arguments",
    "compile_config",
    "deserialize",
    "find",
    "network_config",
    "network_from_config",
    "node_arguments",
    "plain_value",
    "serialize",
]
