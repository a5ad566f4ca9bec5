"""Convert functions by hand, print their converted code, exclude functions from conversion; filter tracebacks.

Lives here: `to_code`, `to_graph`, `do_not_convert`, `set_loop_options`; `conversion_enabled` and `convert_if_enabled`,
by which a trace has the user functions that this package calls converted; `user_frames`, a traceback without
AutoGraph's own frames.
Not here: the conversion (conversion.py), the user's line in an error message (core/introspection.py).
"""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import os
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from ..core.introspection import OURS
from . import conversion
from .source import Unsupported

F = TypeVar("F", bound=Callable[..., Any])

_AUTOGRAPH = os.path.dirname(os.path.abspath(__file__)) + os.sep
_INTERNAL = (
    _AUTOGRAPH,
    os.path.join(OURS, "tracing", "statements") + os.sep,
    os.path.join(OURS, "tracing", "control") + os.sep,
)
_CONTEXTS = (os.path.join(OURS, "tracing", "trace.py"), os.path.join(OURS, "tracing", "tracer.py"))


def user_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return the traceback without AutoGraph's frames that have frames of the user's program below them."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    last = max((i for i, t in enumerate(frames) if not t.tb_frame.f_code.co_filename.startswith(OURS)), default=-1)
    if last >= 0 and _is_internal(frames[-1]):  # raised by AutoGraph itself: end at the user's line
        del frames[last + 1 :]
    remaining = [t for i, t in enumerate(frames) if i > last or not _is_internal(t)]
    for frame, following in zip(remaining, [*remaining[1:], None]):
        frame.tb_next = following
    return remaining[0] if remaining else None


def _is_internal(traceback: types.TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith((*_INTERNAL, *_CONTEXTS))


class _ConversionState(threading.local):
    enabled: bool | None = None  # None: neither a trace nor a decorator has set it


thread_state = _ConversionState()


@contextlib.contextmanager
def conversion_enabled(enabled: bool | None) -> Iterator[None]:
    """Set whether `convert_if_enabled` converts functions in this thread, within a `with` statement."""
    saved, thread_state.enabled = thread_state.enabled, enabled
    try:
        yield
    finally:
        thread_state.enabled = saved


def convert_if_enabled(function: Callable[..., Any], by_default: bool = False) -> Callable[..., Any]:
    """Return `function` converted if the enclosing trace has autograph=True, else `function` itself.

    For a user's function that this package calls while tracing. by_default: convert it outside of any trace too, as
    functions passed to datasets are.
    """
    enabled = thread_state.enabled
    return conversion.call(function) if enabled or (by_default and enabled is None) else function


def convert_requested(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` converted at the user's request, regardless of its module."""
    if isinstance(function, types.MethodType):
        new = convert_requested(function.__func__)
        return function if new is function.__func__ else types.MethodType(new, function.__self__)
    if isinstance(function, types.FunctionType):
        return conversion.convert(function, forced=True)
    return conversion.call(function)


def _class_call(entity: Any) -> object:
    """Return the `__call__` of an object's class."""
    return getattr(type(entity), "__call__", None)  # noqa: B004  the function itself is wanted


def _python_function(entity: Any) -> types.FunctionType:
    """Return the Python function behind a method, a wrapper, a partial or a callable object."""
    while not isinstance(entity, types.FunctionType):
        if isinstance(entity, types.MethodType):
            entity = entity.__func__
        elif hasattr(entity, "python_function"):
            entity = entity.python_function
        elif isinstance(entity, functools.partial):
            entity = entity.func
        elif not isinstance(entity, type) and isinstance(_class_call(entity), types.FunctionType):
            entity = type(entity).__call__
        else:
            raise ValueError(f"there is no Python function to convert in {entity!r}")
    return entity


def to_code(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """Return the source that AutoGraph generates for a function; `ag__` is the namespace of run-time operators.

    raises ValueError with the reason if the function cannot be converted
    """
    function = _python_function(entity)
    try:
        node = conversion.rewritten(function)
    except Unsupported as error:
        raise ValueError(f"{function!r} cannot be converted: {error}") from None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.name = f"tf__{node.name}"
    return ast.unparse(ast.fix_missing_locations(node))


def to_graph(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> Callable[..., Any]:
    """Return the converted function: in a trace its control flow becomes part of the graph; elsewhere it is Python's.

    raises ValueError with the reason if the function cannot be converted
    """
    if isinstance(entity, types.MethodType):
        return types.MethodType(to_graph(entity.__func__), entity.__self__)
    function = _python_function(entity)
    try:
        conversion.rewritten(function)
    except Unsupported as error:
        raise ValueError(f"{function!r} cannot be converted: {error}") from None
    converted = conversion.convert(function, forced=True)
    return function if converted is function else conversion.copy_metadata(function, converted)


@overload
def do_not_convert(func: F) -> F: ...
@overload
def do_not_convert(func: None = None) -> Callable[[F], F]: ...
def do_not_convert(func: Callable[..., Any] | None = None) -> object:
    """Exclude a function, and the functions that it calls, from conversion; a decorator."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> object:
        with conversion_enabled(False):
            return func(*args, **kwargs)

    setattr(unconverted, conversion.MARK, True)
    return unconverted


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Set options of the `for` or `while` loop whose body contains the call; no effect elsewhere.

    parallel_iterations: the number of iterations that may run at once. swap_memory: accepted for TensorFlow, no effect.
    maximum_iterations: the most iterations that run. shape_invariants: pairs of a loop variable and the shape that it
    keeps in all iterations, for variables whose shape changes.

    >>> for i in ow.range(n):
    ...     ow.autograph.experimental.set_loop_options(shape_invariants=[(x, ow.TensorShape([None]))])
    ...     x = ow.concat([x, [i]], 0)
    """


class Feature(enum.Enum):
    """TensorFlow's names for parts of AutoGraph; all of them are always enabled."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """Return all features."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """Return all features except the excluded ones."""
        excluded = exclude if isinstance(exclude, (list, tuple, set)) else (exclude,)
        return tuple(f for f in cls if f not in excluded)
