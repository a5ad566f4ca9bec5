"""Tracing of one function call: placeholders for the arguments, the call of the Python function, its results as
outputs.

Lives here: `record_trace`, `autograph_enabled`.
Not here: the decision to trace (function.py), the recording of calls (trace.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..autograph.api import conversion_enabled, convert_requested, user_frames
from ..core import nest
from ..core.type_spec import CompositeTensor
from ..ops import array, dispatch
from .concrete import ConcreteFunction
from .container_type import ContainerType, halves
from .program import Program
from .symbolic import SymbolicTensor
from .trace import FuncTrace
from .trace_type import PlaceholderContext

if TYPE_CHECKING:
    from .function import Function

state = dispatch.state


def record_trace(
    function: Function[..., Any], kind: ContainerType, named: ContainerType, may_create: bool, call: Any = None
) -> tuple[ConcreteFunction, list[Any]]:
    """Trace a Function for arguments of this type; return the trace and the variables created by it.

    call: the arguments, if they are known; initial values of variables may depend on them.
    raises ValueError if the Python function modifies a list or dictionary among its arguments
    """
    parent = state.trace if isinstance(state.trace, FuncTrace) else None
    trace = FuncTrace(function.name, parent)
    trace.may_create_variables = may_create
    if function.jit_compile is not None:
        trace.native = bool(function.jit_compile)
    if call is not None and may_create:
        trace.call_tensors = lambda: kind.to_tensors(call)
    positional, by_name = halves(named)
    names = function.signature.names(positional.parts)
    with trace.recording():
        context = PlaceholderContext(trace.placeholder)
        context.place_variable = lambda part, name: trace.variable_argument(function, name, part)

        def placeholder(name: str, part: Any) -> object:
            context.naming_scope = name
            return part.placeholder_value(context)

        args = [placeholder(n, p) for n, p in zip(names, positional.parts)]
        kwargs = {n: placeholder(n, p) for n, p in zip(by_name.layout.names, by_name.parts)}
        kinds = {**dict(zip(names, positional.parts)), **dict(zip(by_name.layout.names, by_name.parts))}
        arguments = {**dict(zip(names, args)), **kwargs}
        before = {n: _leaves(kinds[n], a) for n, a in arguments.items()}
        with autograph_enabled(function.autograph):
            python = convert_requested(function.python_function) if function.autograph else function.python_function
            try:
                result = python(*args, **kwargs)
            except Exception as error:
                raise error.with_traceback(user_frames(error.__traceback__))  # noqa: B904  the same error
        modified = [n for n, a in arguments.items() if not _same(before[n], _leaves(kinds[n], a))]
        if modified:
            called = getattr(function.python_function, "__qualname__", function.name)
            raise ValueError(
                f"{called}{function.signature.python} should not modify its Python input arguments. Modifying a copy "
                f"is allowed. The following parameter(s) were modified: {', '.join(modified)}"
            )
        flat: list[SymbolicTensor] = []
        structured = nest.map_structure(lambda v: _output(function, v, flat), result)
    program = Program(trace, flat, function.experimental_implements)
    concrete = ConcreteFunction(program, function.name, kind, named, structured, names, function.signature.python)
    return concrete, trace.created_variables


def _leaves(kind: Any, value: Any) -> list[Any] | None:
    """Return the leaves of a value's containers; None if the value no longer has the structure of the type."""
    if type(kind) is not ContainerType:
        return [value]
    try:
        children = kind.layout.parts_of(value, len(kind.parts))
    except (AttributeError, LookupError):
        return None
    if children is None:
        return None
    leaves: list[Any] = []
    for part, child in zip(kind.parts, children):
        inner = _leaves(part, child)
        if inner is None:
            return None
        leaves += inner
    return leaves


def _same(before: list[Any] | None, after: list[Any] | None) -> bool:
    """Return whether two lists of leaves contain the same objects."""
    return before is not None and after is not None and all(a is b for a, b in zip(before, after, strict=True))


@contextlib.contextmanager
def autograph_enabled(enabled: bool | None) -> Iterator[None]:
    """Enable or disable the conversion of traced code by AutoGraph within the context; None keeps the setting."""
    if enabled:
        from . import statements  # noqa: F401  registers the handler of graph values; late, as it costs import time
    with conversion_enabled(enabled):
        yield


def _output(function: Function[..., Any], value: Any, flat: list[Any]) -> object:
    if value is None:
        return value
    if isinstance(value, CompositeTensor):
        spec = value._type_spec
        parts = nest.map_structure(lambda v: _output(function, v, flat), spec._to_components(value))
        return spec._from_components(parts)
    try:
        tensor = array.identity(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"To be compatible with tf.function, Python functions must return zero or more Tensors or "
            f"ExtensionTypes or None values; in compilation of {function.name}, found return value of type "
            f"{type(value).__name__}, which is not a Tensor or ExtensionType."
        ) from error
    flat.append(tensor)
    return tensor
