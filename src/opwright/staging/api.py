"""AutoGraph's public face: converting functions by hand, seeing their code, leaving some alone.

Lives here: `to_code`, `to_graph`, `do_not_convert`, `set_loop_options`, and `converting`/`converted`, by which a trace
says that user functions called from this package are to be converted.  Not here: how (conversion.py).
"""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import conversion
from .source import Unsupported


class _Here(threading.local):
    enabled: bool | None = None  # None: no trace and no decorator has said anything


here = _Here()


@contextlib.contextmanager
def converting(enabled: bool | None) -> Iterator[None]:
    """While it lasts, `converted` converts in this thread, or does not."""
    saved, here.enabled = here.enabled, enabled
    try:
        yield
    finally:
        here.enabled = saved


def converted(function: Any, by_default: bool = False) -> Any:
    """`function` converted, where the trace around was made with autograph=True; else `function` itself.

    For a user's function that this package calls while tracing. by_default: whether it is converted also where there
    is no trace around, as functions given to datasets are.
    """
    enabled = here.enabled
    return conversion.call(function) if enabled or (by_default and enabled is None) else function


def requested(function: Any) -> Any:
    """`function` converted because the user asked for it, whatever module it is of."""
    if isinstance(function, types.MethodType):
        new = requested(function.__func__)
        return function if new is function.__func__ else types.MethodType(new, function.__self__)
    if isinstance(function, types.FunctionType):
        return conversion.convert(function, forced=True)
    return conversion.call(function)


def _call_of(entity: Any) -> Any:
    """The `__call__` of an object's class."""
    return getattr(type(entity), "__call__", None)  # noqa: B004  the function itself is wanted


def _plain(entity: Any) -> types.FunctionType:
    """The Python function behind what people pass: methods, wrapped ones, objects that can be called."""
    while not isinstance(entity, types.FunctionType):
        if isinstance(entity, types.MethodType):
            entity = entity.__func__
        elif hasattr(entity, "python_function"):
            entity = entity.python_function
        elif isinstance(entity, functools.partial):
            entity = entity.func
        elif not isinstance(entity, type) and isinstance(_call_of(entity), types.FunctionType):
            entity = type(entity).__call__
        else:
            raise ValueError(f"there is no Python function to convert in {entity!r}")
    return entity


def to_code(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source that AutoGraph makes of a function, for reading: `ag__` stands for the run-time operators.

    raises ValueError where the function cannot be converted, saying why
    """
    function = _plain(entity)
    try:
        node = conversion.rewritten(function)
    except Unsupported as error:
        raise ValueError(f"{function!r} cannot be converted: {error}") from None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.name = f"tf__{node.name}"
    return ast.unparse(ast.fix_missing_locations(node))


def to_graph(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> Any:
    """The converted function: in a trace its control flow becomes part of the graph; elsewhere it is Python's.

    raises ValueError where the function cannot be converted, saying why
    """
    if isinstance(entity, types.MethodType):
        return types.MethodType(to_graph(entity.__func__), entity.__self__)
    function = _plain(entity)
    try:
        conversion.rewritten(function)
    except Unsupported as error:
        raise ValueError(f"{function!r} cannot be converted: {error}") from None
    new = conversion.convert(function, forced=True)
    return function if new is function else conversion.dressed(function, new)


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """A decorator: the function runs as plain Python, and so does what it calls."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        with converting(False):
            return func(*args, **kwargs)

    setattr(unconverted, conversion.MARK, True)
    return unconverted


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Options of the `for` or `while` in whose body this is called; elsewhere it does nothing.

    parallel_iterations: how many rounds may be computed at once. swap_memory: TensorFlow's, without effect.
    maximum_iterations: the most rounds that run. shape_invariants: pairs of a variable of the loop and the shape it
    keeps through all rounds, for variables whose shape changes.

    >>> for i in ow.range(n):
    ...     ow.autograph.experimental.set_loop_options(shape_invariants=[(x, ow.TensorShape([None]))])
    ...     x = ow.concat([x, [i]], 0)
    """


class Feature(enum.Enum):
    """TensorFlow's names for parts of AutoGraph; all of them are always on here."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """All of them."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """All but these."""
        excluded = exclude if isinstance(exclude, (list, tuple, set)) else (exclude,)
        return tuple(f for f in cls if f not in excluded)
