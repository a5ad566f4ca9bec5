"""Making one trace: placeholders for the arguments, the Python function called with them, its results as outputs.

Lives here: `record_trace`, `autograph`.
Not here: whether to trace and what for (function.py), what calls become while it lasts (trace.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..autograph.api import conversion_enabled, convert_requested
from ..autograph.tracebacks import user_frames
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
    function: Function[..., Any], kind: ContainerType, named: ContainerType, may_create: bool, given: Any = None
) -> tuple[ConcreteFunction, list[Any]]:
    """The trace of a Function for arguments of this type, and the variables that were created meanwhile.

    given: the arguments it is traced for, where they are known: initial values of variables may depend on them.
    raises ValueError where the Python function changes a list or dictionary that it is given
    """
    parent = state.trace if isinstance(state.trace, FuncTrace) else None
    trace = FuncTrace(function.name, parent)
    trace.may_create_variables = may_create
    if function.jit_compile is not None:
        trace.native = bool(function.jit_compile)
    if given is not None and may_create:
        trace.given = lambda: kind.to_tensors(given)
    positional, by_name = halves(named)
    names = function.signature.names(positional.parts)
    with trace.recording():
        context = PlaceholderContext(trace.placeholder)
        context.place_variable = lambda part, name: trace.variable_argument(function, name, part)

        def place(name: str, part: Any) -> Any:
            context.naming_scope = name
            return part.placeholder_value(context)

        args = [place(n, p) for n, p in zip(names, positional.parts)]
        kwargs = {n: place(n, p) for n, p in zip(by_name.layout.names, by_name.parts)}
        kinds = {**dict(zip(names, positional.parts)), **dict(zip(by_name.layout.names, by_name.parts))}
        arguments = {**dict(zip(names, args)), **kwargs}
        before = {n: _leaves(kinds[n], a) for n, a in arguments.items()}
        with autograph(function.autograph):
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
    """Return what the containers of a type hold in a value; None where the value is no longer of that structure."""
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
    """Whether two lists of leaves hold the very same objects."""
    return before is not None and after is not None and all(a is b for a, b in zip(before, after, strict=True))


@contextlib.contextmanager
def autograph(enabled: bool | None) -> Iterator[None]:
    """While it lasts, what is recorded is converted by AutoGraph, or is not; None leaves it as it is around."""
    if enabled:
        from . import statements  # noqa: F401  what if, while and for mean for tensors; late, as it costs import time
    with conversion_enabled(enabled):
        yield


def _output(function: Function[..., Any], value: Any, flat: list[Any]) -> Any:
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
