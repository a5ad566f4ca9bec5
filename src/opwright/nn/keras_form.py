"""Configurations in the form in which Keras 3 reads them.

Lives here: `keras_configuration`, of a model, with what `compile` received; `OPERATIONS`, operators of functional
models as operations of Keras. Not here: the own form (model_config.py), weights (hdf5_weights.py), reading
(frontends/keras).

Classes of `keras` have the arguments of Keras's, so their configurations remain. The modules of classes, names of
registered classes, functions, tuples, and operators that a functional model records are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.errors import UnimplementedError
from .assets import owners
from .hdf5_weights import is_quantized
from .model_config import class_module, compile_config, find, has_build_config, serialize_model
from .operations import operation_classes
from .shared_objects import KEY as SHARED

KERAS_VERSION = "3.15.1"
"""The version whose form this module writes."""

OF_KERAS = frozenset({"keras", "keras.layers", "keras.initializers", "keras.regularizers", "keras.constraints"}) | {
    f"keras.{name}" for name in ("losses", "metrics", "optimizers", "optimizers.schedules", "quantizers")
}
EXPORTED = {"GroupedQueryAttention": "GroupQueryAttention"}
"""Classes that Keras exports under another name."""
OWN_ARGUMENTS = {"lazy_mode": False}
"""Arguments that Keras lacks, left out at these values."""
UNKNOWN = dict.fromkeys(("Discretization", *(f"SpatialDropout{n}D" for n in (1, 2, 3))), "trainable")
"""Arguments that single classes of Keras do not take."""


def _plain(name: str) -> Callable[..., Any]:
    return lambda attributes, operands: (name, {}, operands)


def _reduction(name: str) -> Callable[..., Any]:
    return lambda a, operands: (name, {"axis": _listed(a["axis"]), "keepdims": a["keepdims"]}, operands)


def _shaped(name: str, argument: str) -> Callable[..., Any]:
    """Return the form of an operator whose second operand is an argument of the constructor: a constant."""

    def form(attributes: Any, operands: Sequence[Any]) -> Any:
        value = _constant(operands[1])
        return None if value is None else (name, {argument: value}, operands[:1])

    return form


def _select(attributes: Any, operands: Sequence[Any]) -> Any:
    return "Where", {}, operands


def _matmul(attributes: Any, operands: Sequence[Any]) -> Any:
    swaps = ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b")
    return None if any(attributes[s] for s in swaps) else ("Matmul", {}, operands)


def _index(attributes: Any, operands: Sequence[Any]) -> Any:
    begin, end, step = (_constant(v) for v in operands[1:4])
    if begin is None or end is None or step is None:
        return None
    key: list[Any] = []
    for i in range(len(begin)):
        if attributes["ellipsis_mask"] >> i & 1:
            key.append({"class_name": "__ellipsis__", "config": {}})
        elif attributes["new_axis_mask"] >> i & 1:
            key.append(None)
        elif attributes["shrink_axis_mask"] >> i & 1:
            key.append(begin[i])
        else:
            first = None if attributes["begin_mask"] >> i & 1 else begin[i]
            last = None if attributes["end_mask"] >> i & 1 else end[i]
            bounds = {"start": first, "stop": last, "step": step[i]}
            key.append({"class_name": "__slice__", "config": bounds})
    return "GetItem", {}, [operands[0], key]


UNARY = {
    "Abs": "Absolute",
    "Ceil": "Ceil",
    "Cos": "Cos",
    "Elu": "Elu",
    "Erf": "Erf",
    "Exp": "Exp",
    "Expm1": "Expm1",
    "Floor": "Floor",
    "Log": "Log",
    "Log1p": "Log1p",
    "LogicalNot": "LogicalNot",
    "Neg": "Negative",
    "Relu": "Relu",
    "Relu6": "Relu6",
    "Rsqrt": "Rsqrt",
    "Selu": "Selu",
    "Sigmoid": "Sigmoid",
    "Sign": "Sign",
    "Sin": "Sin",
    "Softplus": "Softplus",
    "Softsign": "Softsign",
    "Sqrt": "Sqrt",
    "Square": "Square",
    "StopGradient": "StopGradient",
    "Tanh": "Tanh",
}
BINARY = {
    "Add": "Add",
    "Equal": "Equal",
    "FloorDiv": "FloorDivide",
    "FloorMod": "Mod",
    "Greater": "Greater",
    "GreaterEqual": "GreaterEqual",
    "Less": "Less",
    "LessEqual": "LessEqual",
    "LogicalAnd": "LogicalAnd",
    "LogicalOr": "LogicalOr",
    "Maximum": "Maximum",
    "Minimum": "Minimum",
    "Mul": "Multiply",
    "NotEqual": "NotEqual",
    "Pow": "Power",
    "RealDiv": "TrueDivide",
    "Sub": "Subtract",
}
OPERATIONS: dict[str, Callable[[Mapping[str, Any], Sequence[Any]], Any]] = {
    **{name: _plain(other) for name, other in (*UNARY.items(), *BINARY.items())},
    "All": _reduction("All"),
    "Any": _reduction("Any"),
    "ArgMax": lambda a, x: ("Argmax", {"axis": a["axis"]}, x),
    "ArgMin": lambda a, x: ("Argmin", {"axis": a["axis"]}, x),
    "Cast": lambda a, x: ("Cast", {"dtype": a["dtype"]}, x),
    "Concat": lambda a, x: ("Concatenate", {"axis": a["axis"]}, x),
    "ExpandDims": lambda a, x: ("ExpandDims", {"axis": a["axis"]}, x),
    "MatMul": _matmul,
    "Max": _reduction("Max"),
    "Mean": _reduction("Mean"),
    "Min": _reduction("Min"),
    "Pack": lambda a, x: ("Stack", {"axis": a["axis"]}, x),
    "Prod": _reduction("Prod"),
    "Reshape": _shaped("Reshape", "newshape"),
    "Select": _select,
    "Softmax": lambda a, x: ("Softmax", {"axis": a["axis"]}, x),
    "Squeeze": lambda a, x: ("Squeeze", {"axis": _listed(a["axis"]) or None}, x),
    "StridedSlice": _index,
    "Sum": _reduction("Sum"),
    "Tile": _shaped("Tile", "repeats"),
    "Transpose": lambda a, x: ("Transpose", {"axes": _listed(a["perm"])}, x),
}
"""By operator: (attributes, operands) -> class of `keras.ops`, arguments of its constructor, operands; or None."""


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        value = value.get("items", value.get("config"))
    return list(value) if isinstance(value, tuple) else value


def _constant(value: Any) -> Any:
    if isinstance(value, dict) and value.get("class_name") == "__tensor__":
        return value["config"]["value"]
    return value if isinstance(value, int | list) else None


def keras_configuration(model: Any) -> dict[str, Any]:
    """Return what Keras 3 reads of a model as config.json: its layers, shapes and the arguments of `compile`.

    raises UnimplementedError that lists all that Keras has no form for
    """
    form = _KerasForm()
    for _, layer in owners(model):
        why = layer.lacks_keras_files() if hasattr(layer, "lacks_keras_files") else None
        if why is not None:
            form.missing(f"{type(layer).__name__} ({layer.name})", why)
    for layer in model._flatten_layers():
        inner = () if getattr(layer, "is_model", False) else layer._flatten_layers(include_self=False)
        if any(map(is_quantized, inner)):
            form.missing(
                f"{type(layer).__name__} ({layer.name})", "Keras does not read that layers in it are quantized"
            )
    config: dict[str, Any] = form.convert(serialize_model(model))
    if not has_build_config(model):
        config["build_config"] = _build_config(model)
    if model.compiled and model.optimizer is not None:
        config["compile_config"] = form.convert(compile_config(model._trainer.arguments))
    form.check(model.name)
    return config


def _build_config(model: Any) -> dict[str, Any] | None:
    inputs = model._symbolic_inputs
    if model._network is not None or inputs is None:
        return None
    shapes = [list(t.shape) for t in inputs] if isinstance(inputs, list | tuple) else list(inputs.shape)
    return {"input_shape": shapes}


class _KerasForm:
    """Converts one configuration, and collects what has no form."""

    def __init__(self) -> None:
        self._missing: dict[str, str] = {}

    def missing(self, key: str, why: str) -> None:
        """Note what has no form."""
        self._missing.setdefault(key, why)

    def check(self, name: str) -> None:
        """Raise UnimplementedError with all that has no form, if there is any."""
        if self._missing:
            raise UnimplementedError(
                op="save",
                what=f"Keras cannot open model {name!r} as a file",
                found="; ".join(f"{key}: {why}" for key, why in self._missing.items()),
                do="omit keras_format=True, for a file that Opwright opens",
            )

    def convert(self, value: Any) -> Any:
        """Return a value of a configuration in the form of Keras."""
        if isinstance(value, list):
            return [self.convert(v) for v in value]
        if not isinstance(value, dict):
            return value
        name = value.get("class_name")
        if not isinstance(name, str):
            return {k: self.convert(v) for k, v in value.items()}
        if name == "__tuple__":
            return [self.convert(v) for v in value["items"]]
        if name == "__shape__":
            return value["config"]
        if name.startswith("__") and name not in ("__operator__", "__operation__"):
            return value
        if name == "function":
            return self._function(value)
        if name in ("__operator__", "__operation__"):
            return self._operation(value)
        return self._object(name, value)

    def _function(self, value: Mapping[str, Any]) -> Any:
        name, module = value["config"], str(value.get("module") or "")
        if module.startswith(f"{__package__}."):
            return name
        registered = value.get("registered_name") or name
        return {"module": "builtins", "class_name": "function", "config": registered, "registered_name": registered}

    def _object(self, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
        module, registered = _keras_module(name, value.get("module")), None
        arguments = value.get("config") or {}
        config = {k: v for k, v in arguments.items() if k not in OWN_ARGUMENTS and k != UNKNOWN.get(name)}
        for key, plain in OWN_ARGUMENTS.items():
            if arguments.get(key, plain) != plain:
                self.missing(f"{name}({key})", "no such argument")
        if "layers" in config and name == "Model":
            name, module = "Functional", "keras.src.models.functional"
        elif value.get("registered_name") is not None:
            registered = value["registered_name"]
        elif module not in OF_KERAS and not module.startswith("keras.src."):
            registered = name
        return {
            "module": module,
            "class_name": EXPORTED.get(name, name),
            "config": self.convert(config),
            "registered_name": registered,
            **{key: value[key] for key in ("name", SHARED) if key in value},
            **({"build_config": self.convert(value["build_config"])} if value.get("build_config") else {}),
            **({"inbound_nodes": self.convert(value["inbound_nodes"])} if "inbound_nodes" in value else {}),
        }

    def _operation(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an operator's call, or one of a function of `keras.ops`, as an operation of `keras.ops`."""
        inner, layer = value["config"], value["name"]
        nodes = list(value["inbound_nodes"])
        if value["class_name"] == "__operation__":
            name, arguments = inner["operation"], self.convert(inner["arguments"])
        else:
            rule = OPERATIONS.get(inner["operator"])
            attributes = inner["attributes"]
            forms = [None if rule is None else rule(attributes, node["args"]) for node in nodes]
            chosen = [form for form in forms if form is not None]
            if len(chosen) < len(nodes) or not chosen:
                why = "no such operation" if rule is None else f"no operation with these operands, {attributes}"
                self.missing(f"{inner['operator']} ({layer})", why)
                return {}
            name, arguments = chosen[0][0], chosen[0][1]
            nodes = [{**node, "args": form[2]} for node, form in zip(nodes, chosen)]
        return {
            "module": operation_classes()[name].module,
            "class_name": name,
            "config": {"name": layer, **arguments},
            "registered_name": name,
            "name": layer,
            "inbound_nodes": self.convert(nodes),
        }


def _keras_module(name: str, module: Any) -> str:
    """Return the module of a class in Keras; for a class of a user its own."""
    if isinstance(module, str) and (module in OF_KERAS or not module.startswith(f"{__package__.partition('.')[0]}.")):
        return module
    try:
        cls = find(name, None)
    except TypeError:
        cls = None
    of_keras = getattr(cls, "keras_module", None)
    return str(of_keras or (class_module(cls) if isinstance(cls, type) else module))


__all__ = ["KERAS_VERSION", "OPERATIONS", "keras_configuration"]
