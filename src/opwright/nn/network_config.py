"""Configurations of functional models: their layers, and the calls of these.

Lives here: `network_config`, `network_from_config`. Not here: objects by class name (model_config.py).

A KerasTensor in a node's arguments is {"class_name": "__keras_tensor__", "config": {"shape", "dtype", "keras_history":
[layer, node, output]}}; a call of an operator is a layer of class "__operator__" with the operator's name and
attributes, one of a function of `keras.ops` a layer of class "__operation__" with its class in Keras and that class's
arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..core import nest
from ..core.dtypes import DType, as_dtype
from ..ops import registry
from .keras_tensor import KerasTensor, OperationNode, OperatorCall
from .model_config import deserialize, plain_value, revived, serialize
from .network import InputLayer
from .operations import OperationCall, operation_classes

if TYPE_CHECKING:
    from .configuration import JsonValue
    from .keras_tensor import KerasTensors
    from .model import Model

M = TypeVar("M", bound="Model")


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
        raise ValueError(f"Unknown operation: {config['operation']!r} is not a class of keras.ops")
    return OperationCall(operation, revived(config["arguments"]), config["name"])


class _NetworkReader:
    """The operations and tensors of a functional model, as they are revived from its configuration."""

    def __init__(self, config: dict[str, Any], custom_objects: dict[str, Any] | None) -> None:
        self.name, self.custom_objects = config.get("name"), custom_objects
        self.operations: dict[str, Any] = {}
        self.tensors: dict[tuple[str, int], list[KerasTensor]] = {}
        waiting: list[tuple[str, int, dict[str, Any]]] = []
        for described in config["layers"]:
            name = described["name"]
            self.operations[name] = layer = self._operation(described)
            if isinstance(layer, InputLayer):
                self.tensors[name, 0] = [layer.output]
            waiting += [(name, i, node_arguments(n)) for i, n in enumerate(described.get("inbound_nodes", ()))]
        while waiting:
            later = [call for call in waiting if not self._record(*call)]
            if len(later) == len(waiting):
                raise ValueError(
                    f"Invalid Functional model configuration of model {self.name!r}: its graph has loops or "
                    f"disconnected nodes. Nodes of these layers remain: {sorted({name for name, _, _ in later})}"
                )
            waiting = later

    def _operation(self, described: dict[str, Any]) -> Any:
        """Return the layer, or the call of an operator or function, of a configuration."""
        if described["class_name"] == "__operation__":
            return _operation(described["config"])
        if described["class_name"] != "__operator__":
            return deserialize(described, self.custom_objects)
        inner = described["config"]
        op = registry.get(inner["operator"])
        attrs = {k: _attribute_from_json(op.attr_defs[k], v) for k, v in inner["attributes"].items()}
        operation = OperatorCall(op, op.bind(attrs), inner["name"])
        operation.name = inner["name"]  # as in the other model, though it may not be new
        return operation

    def _record(self, name: str, i: int, node: dict[str, Any]) -> bool:
        """Record call i of an operation once its inputs and earlier calls are there; return whether they are."""
        first_free = sum(1 for key in self.tensors if key[0] == name)
        if first_free != i or not self._is_ready([node["args"], node["kwargs"]]):
            return False
        layer = self.operations[name]
        args = [self._revive(a) for a in node["args"]]
        if isinstance(layer, OperatorCall):
            outputs = _record_call(layer, [tuple(a) if isinstance(a, list) else a for a in args])
        else:
            outputs = layer(*args, **{k: self._revive(v) for k, v in node["kwargs"].items()})
        self.tensors[name, i] = [t for t in nest.flatten(outputs) if isinstance(t, KerasTensor)]
        return True

    def _is_ready(self, x: Any) -> bool:
        """Return whether all tensors of an argument's configuration have been recorded."""
        if isinstance(x, dict) and x.get("class_name") == "__keras_tensor__":
            if x["config"]["keras_history"][0] not in self.operations:
                raise ValueError(
                    f"Invalid Functional model configuration of model {self.name!r}. Missing node: "
                    f"{x['config']['keras_history'][0]}"
                )
            return tuple(x["config"]["keras_history"][:2]) in self.tensors
        if isinstance(x, dict):
            return all(map(self._is_ready, x.values()))
        return all(map(self._is_ready, x)) if isinstance(x, list) else True

    def _revive(self, x: object) -> object:
        """Return an argument of a call from its configuration."""
        if isinstance(x, dict):
            if x.get("class_name") == "__keras_tensor__":
                name, node, output = x["config"]["keras_history"]
                return self.tensors[name, node][output]
            if "class_name" in x:
                return deserialize(x, self.custom_objects)
            return {k: self._revive(v) for k, v in x.items()}
        return [self._revive(v) for v in x] if isinstance(x, list) else x

    def resolve(self, reference: Any) -> KerasTensor | dict[Any, Any] | list[Any] | tuple[Any, ...]:
        """Return the tensors of the model's inputs or outputs from their configuration."""
        if isinstance(reference, (list, tuple)) and len(reference) == 3 and isinstance(reference[0], str):
            return self.tensors[reference[0], reference[1]][reference[2]]
        if isinstance(reference, dict) and reference.get("class_name") == "__tuple__":
            return tuple(self.resolve(part) for part in reference["items"])
        if isinstance(reference, dict):
            return {k: self.resolve(v) for k, v in reference.items()}
        parts = [self.resolve(part) for part in reference]
        return tuple(parts) if isinstance(reference, tuple) else parts


def network_from_config(cls: type[M], config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> M:
    """Return the functional model of a configuration."""
    network = _NetworkReader(config, custom_objects)
    inputs, outputs = network.resolve(config["input_layers"]), network.resolve(config["output_layers"])
    model = cls(inputs, outputs, name=config.get("name"))
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
