"""Run-time operators of rewritten code: control flow and builtins as functions that dispatch on their operands.

Lives here: if, while, for, assert, conditional expressions, and/or/not, `in`, chained comparisons, list comprehensions;
OVERRIDES, the builtins that dispatch to the handler of an argument.
Not here: the handlers (`ControlFlowHandler`), the callee of each call and the namespace `ag__` (conversion.py).

Values without a handler take Python's own path, which stands first and costs one call.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

from ..core.errors import compose
from ..core.introspection import users_line
from .handlers import (
    HANDLERS,
    NOT_RETURNED,
    ControlFlowError,
    ControlFlowHandler,
    StatementOptions,
    StatementState,
    Thunk,
    first_handler,
    handler_of,
    probe,
)


def items_of(text: str, container: Thunk) -> tuple[str, Thunk, Callable[[Any], None], Thunk]:
    """Return the row of a `StatementState` whose value is a copy of a dict or list; setting it changes the items in
    place.

    Any other object counts as unbound.
    """

    def get() -> dict[Any, Any] | list[Any]:
        value = container()
        if isinstance(value, (dict, list)):
            return dict(value) if isinstance(value, dict) else list(value)
        raise LookupError(text)

    def put(items: Any) -> None:
        value = container()
        if not isinstance(value, (dict, list)):  # now a list that grows in a graph, a variable of its own
            return
        value.clear()
        value.update(items) if isinstance(value, dict) else value.extend(items)

    return text, get, put, lambda: None


def if_stmt(
    test: Any,
    body: Thunk,
    orelse: Thunk | None,
    variables: Any,
    composites: tuple[Any, ...] = (),
    options: Callable[[], dict[str, Any]] | None = None,
) -> None:
    """Run an `if` statement."""
    handler: ControlFlowHandler | None = HANDLERS[type(test)]
    if handler is not None and handler.claims(test):
        handler.if_stmt(test, body, orelse, StatementState(variables, composites), _options(options))
    elif test:
        body()
    elif orelse is not None:
        orelse()


def _options(options: Callable[[], dict[str, Any]] | None) -> StatementOptions:
    return StatementOptions() if options is None else StatementOptions(options())


def while_stmt(
    test: Thunk,
    body: Thunk,
    variables: Any,
    composites: tuple[Any, ...] = (),
    options: Callable[[], dict[str, Any]] | None = None,
) -> None:
    """Run a `while` statement. Once the test has a handler, the handler runs the remaining iterations."""
    evaluate = probe[-1] if probe else None
    while True:
        value = test() if evaluate is None else evaluate(test)
        handler: ControlFlowHandler | None = HANDLERS[type(value)]
        if handler is not None and handler.claims(value):
            handler.while_stmt(test, body, StatementState(variables, composites), _options(options))
            return
        if not value:
            return
        body()


def for_stmt(
    items: Any,
    go_on: Thunk | None,
    body: Callable[[Any], Any],
    variables: Any,
    composites: tuple[Any, ...] = (),
    options: Callable[[], dict[str, Any]] | None = None,
) -> None:
    """Run a `for` statement. go_on: the condition of each iteration, if the body breaks or returns."""
    handler: ControlFlowHandler | None = HANDLERS[type(items)]
    if handler is not None and handler.claims(items):
        handler.for_stmt(items, go_on, body, StatementState(variables, composites), _options(options))
        return
    if go_on is None:
        for item in items:
            body(item)
        return
    guard_handler: ControlFlowHandler | None = None
    state: StatementState | None = None
    condition: Any = go_on()
    if handler_of(condition) is None and not condition:
        return
    for item in items:
        guard_handler = handler_of(condition)
        if guard_handler is None:
            body(item)
        else:  # decided at run time: unroll the loop, each iteration under its condition
            state = state or StatementState(variables, composites)
            guard_handler.if_stmt(condition, lambda item=item: body(item), None, state, _options(options))  # type: ignore[misc]
        condition = go_on()
        if handler_of(condition) is None and not condition:
            return


def if_exp(test: Any, body: Thunk, orelse: Thunk) -> object:
    """`body() if test else orelse()`."""
    handler: ControlFlowHandler | None = HANDLERS[type(test)]
    if handler is not None and handler.claims(test):
        return handler.if_exp(test, body, orelse)
    return body() if test else orelse()


def and_(value: Any, *others: Thunk, simple: bool = False) -> object:
    """`value and ...`."""
    for i, right in enumerate(others):
        handler: ControlFlowHandler | None = HANDLERS[type(value)]
        if handler is not None and handler.claims(value):
            remaining = others[i:]
            if len(remaining) == 1:
                return handler.logical_and(value, right, simple)
            return handler.logical_and(value, functools.partial(_fold, and_, remaining, simple), simple)
        if not value:
            return value
        value = right()
    return value


def or_(value: Any, *others: Thunk, simple: bool = False) -> object:
    """`value or ...`."""
    for i, right in enumerate(others):
        handler: ControlFlowHandler | None = HANDLERS[type(value)]
        if handler is not None and handler.claims(value):
            remaining = others[i:]
            if len(remaining) == 1:
                return handler.logical_or(value, right, simple)
            return handler.logical_or(value, functools.partial(_fold, or_, remaining, simple), simple)
        if value:
            return value
        value = right()
    return value


def _fold(operation: Callable[..., Any], operands: tuple[Thunk, ...], simple: bool) -> object:
    """Return `and_` or `or_` of these operands."""
    return operation(operands[0](), *operands[1:], simple=simple)


def not_(value: Any) -> object:
    """`not value`."""
    handler: ControlFlowHandler | None = HANDLERS[type(value)]
    if handler is not None and handler.claims(value):
        return handler.logical_not(value)
    return not value


def in_(item: Any, container: Any) -> object:
    """`item in container`."""
    handler = handler_of(container) or handler_of(item)
    return item in container if handler is None else handler.contains(container, item)


def not_in(item: Any, container: Any) -> object:
    """`item not in container`."""
    return not_(in_(item, container))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": in_,
    "not in": not_in,
}


def chain(left: Any, sign: str, middle: Thunk, *remaining: Any) -> object:
    """`left sign middle ...`: evaluate each operand once, and none after the first comparison that fails."""
    right = middle()
    first = COMPARISONS[sign](left, right)
    if not remaining:
        return first
    return and_(first, lambda: chain(right, *remaining), simple=True)


def assert_stmt(test: Any, message: Thunk | None) -> None:
    """Run an `assert` statement; no effect with python -O."""
    if not __debug__:
        return
    handler = handler_of(test)
    if handler is not None:
        handler.assert_stmt(test, message)
    elif not test:
        raise AssertionError(*(() if message is None else (message(),)))


def list_comp(items: Any, element: Any, condition: Any, unpacked: bool) -> object:
    """Evaluate a list comprehension with one `for`. unpacked: its target is a tuple of names."""
    handler = handler_of(items)
    if handler is None:
        if unpacked:
            if condition is None:
                return [element(*item) for item in items]
            return [element(*item) for item in items if _plain_bool(condition(*item))]
        if condition is None:
            return [element(item) for item in items]
        return [element(item) for item in items if _plain_bool(condition(item))]
    if unpacked:
        unpack_element, unpack_condition = element, condition
        element = lambda item: unpack_element(*item)  # noqa: E731
        condition = None if unpack_condition is None else lambda item: unpack_condition(*item)
    return handler.list_comp(items, element, condition)


def _plain_bool(value: Any) -> bool:
    if handler_of(value) is not None:
        raise ControlFlowError(
            "the condition of this list comprehension is only computed at run time, and so is the list's length; "
            "use a for statement that appends to a list"
        )
    return bool(value)


def returned(value: Any, flag: Any) -> object:
    """Return the value of a function that may end without `return`."""
    if handler_of(flag) is not None:
        raise ControlFlowError(
            compose(
                "A value must also be returned from the else branch. If a value is returned from one branch of a "
                "conditional a value must be returned from all branches: the else branch must also have a return "
                "statement.",
                at=users_line(),
                do="a return statement at the end of the function",
            )
        )
    return None if value is NOT_RETURNED else value


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


def _joined(name: str, values: Any, end: bool, join: Callable[..., Any]) -> object:
    """Return any(values) or all(values): stop at the first plain value whose truth is `end`; join handled values."""
    handler = handler_of(values)
    if handler is not None:
        result = handler.builtin(name, (values,), {})
        return getattr(builtins, name)(values) if result is NotImplemented else result
    joined: Any = not end
    for value in values:
        if handler_of(value) is not None:
            joined = value if joined is (not end) else join(joined, lambda value=value: value, simple=True)
        elif bool(value) is end:
            return end
    return joined


def _any(values: Any) -> object:
    """Return any(values), joining handled values by `or`."""
    return _joined("any", values, True, or_)


def _all(values: Any) -> object:
    """Return all(values), joining handled values by `and`."""
    return _joined("all", values, False, and_)


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
