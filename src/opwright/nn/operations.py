"""Operations of functional models: a call of a function of `keras.ops` on KerasTensors is one node, as in Keras.

Lives here: `OperationCall`; `OperationClass`, Keras's class of each function, from keras_ops/operation_classes.txt;
`recorded`, which lets a function record its calls; Python's operators on KerasTensors, which are such calls.
Not here: the functions (keras_ops), calls of other operators (keras_tensor.py), configurations (model_config.py).
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import nest
from ..core.lazy_imports import later
from ..ops.tensor import TensorLike
from . import configuration
from .keras_tensor import KerasTensor, OperationNode, find

if TYPE_CHECKING:
    from . import keras_ops
else:
    keras_ops = later(".keras_ops", __package__)


class _Inference(threading.local):
    active = False
    """Whether a function is executed for the shapes and dtypes of its results: what it calls is not a node."""


_inference = _Inference()


class OperationClass(NamedTuple):
    """Class of operations in Keras: its name and module, its function in `keras.ops`, the arguments of its constructor;
    the function's other arguments are those of its call."""

    name: str
    module: str
    function: str
    arguments: tuple[str, ...]


@functools.cache
def operation_classes() -> dict[str, OperationClass]:
    """Return Keras's classes of operations by name."""
    lines = Path(__file__).with_name("keras_ops").joinpath("operation_classes.txt").read_text("utf-8").splitlines()
    rows = [line.split() for line in lines]
    classes = [OperationClass(*path.rpartition(".")[::-2], function, tuple(rest)) for path, function, *rest in rows]
    return {c.name: c._replace(module=f"keras.src.ops.{c.module}") for c in classes}


@functools.cache
def classes_of_functions() -> dict[str, OperationClass]:
    """Return Keras's classes of operations by the name of their function."""
    return {c.function: c for c in operation_classes().values()}


class OperationCall:
    """Function of `keras.ops` with the arguments of its class's constructor, as an operation of a model."""

    is_model = False

    def __init__(self, operation: OperationClass, arguments: Mapping[str, Any], name: str | None = None) -> None:
        self.operation, self.arguments = operation, dict(arguments)
        self.name = configuration.fresh(operation.name) if name is None else name
        self.nodes: list[OperationNode] = []
        self._function = function_of(operation)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        symbols = _any_symbol(args) or _any_symbol(kwargs.values())
        return self._record(args, kwargs) if symbols else self._compute(args, kwargs)

    def _compute(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        signature = _signature(self._function)
        bound = inspect.BoundArguments(signature, {})
        rest = list(args)
        for name, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                bound.arguments[name], rest = tuple(rest), []
            elif parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[name] = {k: v for k, v in self.arguments.items() if k not in signature.parameters}
            elif name in self.operation.arguments:
                if name in self.arguments:
                    bound.arguments[name] = self.arguments[name]
            elif rest:
                bound.arguments[name] = rest.pop(0)
            elif name in kwargs:
                bound.arguments[name] = kwargs[name]
        return self._function(*bound.args, **bound.kwargs)

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a node. A result without tensors, such as a known size, needs none."""
        outer, _inference.active = _inference.active, True
        try:
            with configuration.names_restored():
                inferred = self._compute(args, kwargs)
        finally:
            _inference.active = outer

        def output(x: Any) -> Any:
            if isinstance(x, KerasTensor):
                return x.renamed(self.name)
            return KerasTensor(x.shape, x.dtype, name=self.name) if isinstance(x, TensorLike) else x

        outputs = nest.map_structure(output, inferred)
        if find(outputs):
            OperationNode(self, args, kwargs, outputs)
        return outputs

    def __repr__(self) -> str:
        return f"<OperationCall {self.operation.name} name={self.name}>"


def function_of(operation: OperationClass) -> Callable[..., Any]:
    """Return the function of a class, which does not record its calls."""
    home = keras_ops.image if operation.module.endswith(".image") else keras_ops
    function: Callable[..., Any] = getattr(home, operation.function)
    return getattr(function, "unrecorded", function)


def recorded(function: Callable[..., Any], operation: OperationClass) -> Callable[..., Any]:
    """Return a function that records a node for a call on KerasTensors."""

    if hasattr(function, "unrecorded"):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _inference.active or not (_any_symbol(args) or (kwargs and _any_symbol(kwargs.values()))):
            return function(*args, **kwargs)
        split = _split(function, operation, args, kwargs)
        if split is None:
            return function(*args, **kwargs)
        arguments, args, kwargs = split
        return OperationCall(operation, arguments)(*args, **kwargs)

    call.unrecorded = function  # type: ignore[attr-defined]
    return call


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _split(
    function: Callable[..., Any], operation: OperationClass, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of a class's constructor and those of its call; None if it has no form for them: tensors
    among the former, such as a shape that is computed."""
    signature = _signature(function)
    arguments: dict[str, Any] = {}
    positional: list[Any] = []
    by_name: dict[str, Any] = {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= value
        elif name in operation.arguments:
            arguments[name] = value
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            positional += value
        else:
            by_name[name] = value
    if _any_symbol(arguments.values()) or not arguments.keys() <= {*operation.arguments}:
        return None
    for name, parameter in signature.parameters.items():
        if name in (*operation.arguments, "name") or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if name not in by_name and parameter.default is not None:  # None is passed: classes of Keras demand it
            break
        positional.append(by_name.pop(name, None))
    return arguments, tuple(positional), by_name


def _any_symbol(values: Collection[Any]) -> bool:
    """Return whether there is a KerasTensor among values, or in lists and dicts of them.

    The types of a list are found at once, as a million numbers may be in it.
    """
    kinds = set(map(type, values))
    if KerasTensor in kinds:
        return True
    if not any(issubclass(kind, NESTED) for kind in kinds):
        return False
    return any(_any_symbol(v.values() if isinstance(v, dict) else v) for v in values if isinstance(v, NESTED))


NESTED = (list, tuple, dict)


# ---- Python's operators ----------------------------------------------------------------------------------------------

OPERATORS = {
    "abs": "absolute",
    "add": "add",
    "and": "logical_and",
    "floordiv": "floor_divide",
    "ge": "greater_equal",
    "getitem": "get_item",
    "gt": "greater",
    "invert": "logical_not",
    "le": "less_equal",
    "lt": "less",
    "matmul": "matmul",
    "mod": "mod",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "or": "logical_or",
    "pow": "power",
    "round": "round",
    "sub": "subtract",
    "truediv": "true_divide",
    "xor": "logical_xor",
}
"""Functions of `keras.ops` that Keras calls for Python's operators: these promote operands of two dtypes."""
REFLECTED = ("add", "and", "floordiv", "matmul", "mod", "mul", "or", "pow", "sub", "truediv", "xor")


def _operator(method: str, function: str, reflected: bool) -> Callable[..., Any]:
    def operator(x: KerasTensor, *others: Any) -> Any:
        if _inference.active:
            return getattr(super(KerasTensor, x), method)(*others)
        call = getattr(keras_ops, function)
        return call(*others, x) if reflected else call(x, *others)

    return operator


for _name, _function in OPERATORS.items():
    setattr(KerasTensor, f"__{_name}__", _operator(f"__{_name}__", _function, False))
    if _name in REFLECTED:
        setattr(KerasTensor, f"__r{_name}__", _operator(f"__r{_name}__", _function, True))
