"""Signatures: functions by key that take tensors by name and return dictionaries of tensors.

Lives here: building them from the functions passed to `save`, the default signature; layers and models as functions
(`functions_of`), for inputs of the shapes they were built for. Not here: saving them (saver.py), calling loaded ones
(object_graph.py), their conversion (lite/).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import nest
from ..core.specs import TensorSpec
from ..nn.layer import Layer
from ..nn.model import Model
from ..ops.tensor import Tensor
from ..tracing.concrete import DEFAULT_KEY, ConcreteFunction
from ..tracing.function import Function
from .object_graph import LoadedFunction

CALL = "__call__"
SERVE = "serve"  # the name in models exported by Keras


def functions_of(value: Any) -> dict[str, Any]:
    """Return the function `__call__` of a layer or model with known input shapes, a model's also as `serve`.

    It runs inference (training=False) on batches of any size. Empty for other objects.
    """
    if not isinstance(value, Layer) or isinstance(getattr(type(value), CALL, None), Function):
        return {}
    specs = input_specs(value)
    if specs is None:
        return {}
    training = {"training": False} if value._call_spec().training else {}

    def __call__(inputs: Any) -> Any:
        return value(inputs, **training)

    __call__.__name__ = __call__.__qualname__ = f"call_{value.name}"
    function = Function(__call__, input_signature=(specs,))
    names = (CALL, SERVE) if isinstance(value, Model) and not hasattr(value, SERVE) else (CALL,)
    return dict.fromkeys(names, function)


def input_specs(value: Layer) -> Any:
    """Return the types of a layer's inputs, in their structure, with an open batch size; None if unknown."""
    if isinstance(value, Model):
        try:
            return value.input_specs()
        except ValueError:
            return None
    shapes = getattr(value, "_build_shapes", None)
    if shapes is None or isinstance(shapes, dict):
        return None
    return _specs(shapes, value.compute_dtype, "inputs")


def _specs(shapes: Any, dtype: Any, name: str) -> dict[Any, Any] | TensorSpec | list[Any]:
    if isinstance(shapes, dict):
        return {k: _specs(v, dtype, str(k)) for k, v in shapes.items()}
    if all(size is None or isinstance(size, int) for size in shapes):
        return TensorSpec([None, *shapes[1:]] if len(shapes) else [], dtype, name)
    return [_specs(s, dtype, f"{name}_{i}") for i, s in enumerate(shapes)]


def trace_for(function: Any) -> ConcreteFunction | None:
    """Return the trace that represents a function: itself, or that of its input_signature; else None."""
    if isinstance(function, ConcreteFunction):
        return function
    if isinstance(function, Function) and has_one_trace(function):
        return function.get_concrete_function()
    return None


def has_one_trace(function: Function[..., Any]) -> bool:
    """Return whether one trace serves all calls: there is an input_signature, or there are no parameters."""
    return function.input_signature is not None or not function.signature.parameters


def default_signature(functions: Mapping[str, Any]) -> dict[str, ConcreteFunction]:
    """Return the default signature: the only function of an object with one trace and flat tensor results."""
    traces = [trace_for(f) for f in functions.values() if has_or_makes_trace(f)]
    candidates = [t for t in traces if t is not None and _has_signature_results(t)]
    return {DEFAULT_KEY: candidates[0]} if len(candidates) == 1 else {}


def has_or_makes_trace(function: Any) -> bool:
    """Return whether the function has a trace or a program to trace."""
    return not isinstance(function, LoadedFunction) or len(function._table) > 0


def _has_signature_results(trace: ConcreteFunction) -> bool:
    try:
        outputs = named_outputs(trace.structured_outputs, trace.name, DEFAULT_KEY)
        input_names(trace)
    except ValueError:
        return False
    return bool(outputs)


def requested_signatures(signatures: Any) -> dict[str, ConcreteFunction]:
    """Return the traces by key for the `signatures` argument of `save`.

    raises ValueError for an object that is not a function, or has no input_signature; TypeError for other containers
    """
    if not isinstance(signatures, Mapping):
        signatures = {DEFAULT_KEY: signatures}
    traces = {}
    for key, function in signatures.items():
        if not isinstance(key, str):
            raise ValueError(f"a signature's key is a str, found {key!r}")
        trace = trace_for(function)
        if trace is None:
            raise ValueError(
                f"Expected a TensorFlow function for which to generate a signature, but got {function!r}. Only "
                "`tf.functions` with an input signature or concrete functions can be used as a signature."
            )
        traces[key] = trace
    return traces


def input_names(trace: ConcreteFunction) -> list[str]:
    """Return the name of each tensor that a trace takes. Raises ValueError if two are equal."""
    specs = [
        s for s in nest.flatten(trace.structured_input_signature, expand_composites=True) if isinstance(s, TensorSpec)
    ]
    names = [s.name or f"input_{i}" for i, s in enumerate(specs)]
    if len(names) != len(trace.tensor_specs):
        names = [t.value_in_graph.name for t in trace.inputs[: len(trace.tensor_specs)]]
    if len(set(names)) != len(names):
        raise ValueError(
            f"Got non-unique argument names for SavedModel signature {trace.name!r}: {names}. Name the TensorSpecs"
        )
    return names


def named_outputs(results: Any, name: str, key: str) -> dict[str, Any]:
    """Return a function's results as a signature does: a dictionary unchanged, others as output_0, output_1 ...

    raises ValueError for results that are not flat tensors
    """
    if results is None:
        results = {}
    elif isinstance(results, Mapping):
        for k in results:
            if not isinstance(k, str):
                raise ValueError(
                    f"Got a dictionary with a non-string key {k!r} in the output of the function {name} "
                    f"used to generate a SavedModel signature {key!r}."
                )
    elif isinstance(results, (list, tuple)):
        results = {f"output_{i}": v for i, v in enumerate(results)}
    else:
        results = {"output_0": results}
    for k, value in results.items():
        if not isinstance(value, (Tensor, TensorSpec)):
            raise ValueError(
                f"Got a non-Tensor value {value!r} for key {k!r} in the output of the function {name} used to generate "
                f"the SavedModel signature {key!r}. Outputs for functions used as signatures must be a single Tensor, "
                "a sequence of Tensors, or a dictionary from string to Tensor."
            )
    return dict(results)


def signature_of(trace: ConcreteFunction, key: str) -> ConcreteFunction:
    """Return the trace as a signature: tensors by name in, a dictionary out.

    raises ValueError for results that are not flat tensors, or arguments whose names are not unique
    """
    names = input_names(trace)
    named_outputs(trace.structured_outputs, trace.name, key)

    def signature_wrapper(**kwargs: Any) -> dict[str, Any]:
        return named_outputs(trace.call_flat([kwargs[n] for n in names]), trace.name, key)

    signature_wrapper.__name__ = f"signature_wrapper_{trace.name.removeprefix('signature_wrapper_')}"
    specs = {n: TensorSpec(s.shape, s.dtype, n) for n, s in zip(names, trace.tensor_specs)}
    return Function(signature_wrapper, autograph=False).get_concrete_function(**specs)
