"""Python's builtins in converted code: they ask whose their arguments are, and are Python's where nobody's.

Lives here: the table OVERRIDES.  Not here: what a stage makes of a call (its method `builtin`).
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from .handlers import TABLE, first_handler, handler_of
from .operators import and_, or_

_MISSING = object()


def _asking(name: str) -> Callable[..., Any]:
    """The builtin that gives its stage the call where an argument has one."""
    plain = getattr(builtins, name)

    @functools.wraps(plain)
    def asked(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            stage = TABLE[type(value)]
            if stage is not None and stage.claims(value):
                result = stage.builtin(name, args, kwargs)
                if result is not NotImplemented:
                    return result
        return plain(*args, **kwargs)

    return asked


def _extreme(name: str) -> Callable[..., Any]:
    """min or max: over staged values among the arguments, or in the one list, tuple or generator given."""
    plain = getattr(builtins, name)

    @functools.wraps(plain)
    def extreme(*args: Any, key: Any = None, default: Any = _MISSING) -> Any:
        given: dict[str, Any] = {} if default is _MISSING else {"default": default}
        if key is not None:
            given["key"] = key
        values: Any = args
        if len(args) == 1:
            stage = handler_of(args[0])
            if stage is not None:
                result = stage.builtin(name, args, given)
                return plain(*args, **given) if result is NotImplemented else result
            values = args[0] if isinstance(args[0], (list, tuple)) else list(args[0])
        stage = first_handler(values)
        if stage is None or key is not None:
            return plain(values, **given) if len(args) == 1 else plain(*args, **given)
        result = stage.builtin(name, tuple(values), given)
        return plain(*args, **given) if result is NotImplemented else result

    return extreme


def _any(values: Any) -> Any:
    """any: stops at the first true plain value; staged ones are joined by `or`."""
    stage = handler_of(values)
    if stage is not None:
        result = stage.builtin("any", (values,), {})
        return builtins.any(values) if result is NotImplemented else result
    joined: Any = False
    for value in values:
        if handler_of(value) is not None:
            joined = value if joined is False else or_(joined, lambda value=value: value, simple=True)  # type: ignore[misc]
        elif value:
            return True
    return joined


def _all(values: Any) -> Any:
    """all: stops at the first false plain value; staged ones are joined by `and`."""
    stage = handler_of(values)
    if stage is not None:
        result = stage.builtin("all", (values,), {})
        return builtins.all(values) if result is NotImplemented else result
    joined: Any = True
    for value in values:
        if handler_of(value) is not None:
            joined = value if joined is True else and_(joined, lambda value=value: value, simple=True)  # type: ignore[misc]
        elif not value:
            return False
    return joined


def _filter(function: Any, values: Any) -> Any:
    stage = handler_of(values)
    if stage is not None:
        result = stage.builtin("filter", (_called(function), values), {})
        if result is not NotImplemented:
            return result
    return builtins.filter(_called(function), values)


def _map(function: Any, *values: Any) -> Any:
    for value in values:
        stage = handler_of(value)
        if stage is not None:
            result = stage.builtin("map", (_called(function), *values), {})
            if result is not NotImplemented:
                return result
    return builtins.map(_called(function), *values)


def _sorted(values: Any, /, *, key: Any = None, reverse: bool = False) -> Any:
    stage = handler_of(values)
    if stage is not None:
        result = stage.builtin("sorted", (values,), {"key": key, "reverse": reverse})
        if result is not NotImplemented:
            return result
    return builtins.sorted(values, key=_called(key), reverse=reverse)


_call_converted: Callable[[Any], Any]


def install_call(call: Callable[[Any], Any]) -> None:
    """Called once: what turns a callable into converted code (conversion.py, above this module)."""
    global _call_converted
    _call_converted = call


def _called(function: Any) -> Any:
    """A function given to a builtin is called by converted code, as far as the user can see."""
    if function is None:
        return None
    return _call_converted(function)


OVERRIDES: dict[Any, Callable[..., Any]] = {
    getattr(builtins, name): _asking(name)
    for name in (
        "len",
        "range",
        "int",
        "float",
        "bool",
        "abs",
        "sum",
        "enumerate",
        "zip",
        "next",
        "iter",
        "reversed",
        "round",
        "pow",
        "list",
        "tuple",
    )
}
OVERRIDES.update(
    {min: _extreme("min"), max: _extreme("max"), any: _any, all: _all, filter: _filter, map: _map, sorted: _sorted}
)
