"""Python's builtins in converted code: dispatch to the handler of an argument, else call Python's own.

Lives here: the table OVERRIDES.  Not here: the handlers' versions (`ControlFlowHandler.builtin`).
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from .handlers import HANDLERS, first_handler, handler_of
from .operators import and_, or_

_MISSING = object()


def _dispatching(name: str) -> Callable[..., Any]:
    """Return a version of a builtin that calls the handler of its first argument that has one."""
    plain = getattr(builtins, name)

    @functools.wraps(plain)
    def dispatch(*args: Any, **kwargs: Any) -> object:
        for value in args:
            handler = HANDLERS[type(value)]
            if handler is not None and handler.claims(value):
                result = handler.builtin(name, args, kwargs)
                if result is not NotImplemented:
                    return result
        return plain(*args, **kwargs)

    return dispatch


def _extreme(name: str) -> Callable[..., Any]:
    """Return a version of min or max that dispatches on its arguments, or on the items of its only argument."""
    plain = getattr(builtins, name)

    @functools.wraps(plain)
    def extreme(*args: Any, key: Any = None, default: Any = _MISSING) -> object:
        options: dict[str, Any] = {} if default is _MISSING else {"default": default}
        if key is not None:
            options["key"] = key
        values: Any = args
        if len(args) == 1:
            handler = handler_of(args[0])
            if handler is not None:
                result = handler.builtin(name, args, options)
                return plain(*args, **options) if result is NotImplemented else result
            values = args[0] if isinstance(args[0], (list, tuple)) else list(args[0])
        handler = first_handler(values)
        if handler is None or key is not None:
            return plain(values, **options) if len(args) == 1 else plain(*args, **options)
        result = handler.builtin(name, tuple(values), options)
        return plain(*args, **options) if result is NotImplemented else result

    return extreme


def _any(values: Any) -> object:
    """Return any(values): stop at the first true plain value; join handled values by `or`."""
    handler = handler_of(values)
    if handler is not None:
        result = handler.builtin("any", (values,), {})
        return builtins.any(values) if result is NotImplemented else result
    joined: Any = False
    for value in values:
        if handler_of(value) is not None:
            joined = value if joined is False else or_(joined, lambda value=value: value, simple=True)  # type: ignore[misc]
        elif value:
            return True
    return joined


def _all(values: Any) -> object:
    """Return all(values): stop at the first false plain value; join handled values by `and`."""
    handler = handler_of(values)
    if handler is not None:
        result = handler.builtin("all", (values,), {})
        return builtins.all(values) if result is NotImplemented else result
    joined: Any = True
    for value in values:
        if handler_of(value) is not None:
            joined = value if joined is True else and_(joined, lambda value=value: value, simple=True)  # type: ignore[misc]
        elif not value:
            return False
    return joined


def _filter(function: Any, values: Any) -> object:
    handler = handler_of(values)
    if handler is not None:
        result = handler.builtin("filter", (_converted_callee(function), values), {})
        if result is not NotImplemented:
            return result
    return builtins.filter(_converted_callee(function), values)


def _map(function: Any, *values: Any) -> object:
    for value in values:
        handler = handler_of(value)
        if handler is not None:
            result = handler.builtin("map", (_converted_callee(function), *values), {})
            if result is not NotImplemented:
                return result
    return builtins.map(_converted_callee(function), *values)


def _sorted(values: Any, /, *, key: Any = None, reverse: bool = False) -> object:
    handler = handler_of(values)
    if handler is not None:
        result = handler.builtin("sorted", (values,), {"key": key, "reverse": reverse})
        if result is not NotImplemented:
            return result
    return builtins.sorted(values, key=_converted_callee(key), reverse=reverse)


_call_converted: Callable[[Any], Any]


def install_call(call: Callable[[Any], Any]) -> None:
    """Install the function that selects a callee (conversion.py, above this module); called once."""
    global _call_converted
    _call_converted = call


def _converted_callee(function: Any) -> Any:
    """Return the converted form of a function passed to a builtin, as if converted code called it."""
    if function is None:
        return None
    return _call_converted(function)


OVERRIDES: dict[Any, Callable[..., Any]] = {
    getattr(builtins, name): _dispatching(name)
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
