"""What rewritten code calls: Python's control flow as functions that first ask whose the value is.

Lives here: if, while, for, assert, conditional expressions, and/or/not, `in`, chained comparisons, list
comprehensions, and the namespace `ag__` that rewritten functions see.
Not here: the builtins' own versions (builtins.py), what is called instead of a function (conversion.py).

Values without a stage take the plain way, which is written first and costs what the call costs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..core.errors import compose
from ..core.introspection import users_line
from .handlers import (
    NOT_RETURNED,
    TABLE,
    ControlFlowError,
    ControlFlowHandler,
    Options,
    State,
    Thunk,
    handler_of,
    probe,
)


def items_of(text: str, container: Thunk) -> tuple[str, Thunk, Callable[[Any], None], Thunk]:
    """Return the row of a `State` whose value is a copy of a dict or list; setting it changes the items in place.

    What is neither has no value there.
    """

    def get() -> Any:
        whole = container()
        if isinstance(whole, (dict, list)):
            return dict(whole) if isinstance(whole, dict) else list(whole)
        raise LookupError(text)

    def put(items: Any) -> None:
        whole = container()
        if not isinstance(whole, (dict, list)):  # a list that grows in a graph by now, which is a variable itself
            return
        whole.clear()
        whole.update(items) if isinstance(whole, dict) else whole.extend(items)

    return text, get, put, lambda: None


def if_stmt(
    test: Any,
    body: Thunk,
    orelse: Thunk | None,
    variables: Any,
    composites: tuple[Any, ...] = (),
    options: Callable[[], dict[str, Any]] | None = None,
) -> None:
    """The `if` statement."""
    stage: ControlFlowHandler | None = TABLE[type(test)]
    if stage is not None and stage.claims(test):
        stage.if_stmt(test, body, orelse, State(variables, composites), _options(options))
    elif test:
        body()
    elif orelse is not None:
        orelse()


def _options(options: Callable[[], dict[str, Any]] | None) -> Options:
    return Options() if options is None else Options(options())


def while_stmt(
    test: Thunk,
    body: Thunk,
    variables: Any,
    composites: tuple[Any, ...] = (),
    options: Callable[[], dict[str, Any]] | None = None,
) -> None:
    """The `while` statement. Where the test becomes staged after some rounds, the rest of them are."""
    ask = probe[-1] if probe else None
    while True:
        value = test() if ask is None else ask(test)
        stage: ControlFlowHandler | None = TABLE[type(value)]
        if stage is not None and stage.claims(value):
            stage.while_stmt(test, body, State(variables, composites), _options(options))
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
    """The `for` statement. go_on: what must hold before each round, where the body breaks or returns."""
    stage: ControlFlowHandler | None = TABLE[type(items)]
    if stage is not None and stage.claims(items):
        stage.for_stmt(items, go_on, body, State(variables, composites), _options(options))
        return
    if go_on is None:
        for item in items:
            body(item)
        return
    guard: ControlFlowHandler | None = None
    state: State | None = None
    going: Any = go_on()
    if handler_of(going) is None and not going:
        return
    for item in items:
        guard = handler_of(going)
        if guard is None:
            body(item)
        else:  # whether it still runs is known later: the rounds stand one after the other, each under the test
            state = state or State(variables, composites)
            guard.if_stmt(going, lambda item=item: body(item), None, state, _options(options))  # type: ignore[misc]
        going = go_on()
        if handler_of(going) is None and not going:
            return


def if_exp(test: Any, body: Thunk, orelse: Thunk) -> Any:
    """`body() if test else orelse()`."""
    stage: ControlFlowHandler | None = TABLE[type(test)]
    if stage is not None and stage.claims(test):
        return stage.if_exp(test, body, orelse)
    return body() if test else orelse()


def and_(value: Any, *others: Thunk, simple: bool = False) -> Any:
    """`value and ...`."""
    for i, right in enumerate(others):
        stage: ControlFlowHandler | None = TABLE[type(value)]
        if stage is not None and stage.claims(value):
            rest = others[i:]
            if len(rest) == 1:
                return stage.logical_and(value, right, simple)
            return stage.logical_and(value, lambda rest=rest: and_(rest[0](), *rest[1:], simple=simple), simple)  # type: ignore[misc]
        if not value:
            return value
        value = right()
    return value


def or_(value: Any, *others: Thunk, simple: bool = False) -> Any:
    """`value or ...`."""
    for i, right in enumerate(others):
        stage: ControlFlowHandler | None = TABLE[type(value)]
        if stage is not None and stage.claims(value):
            rest = others[i:]
            if len(rest) == 1:
                return stage.logical_or(value, right, simple)
            return stage.logical_or(value, lambda rest=rest: or_(rest[0](), *rest[1:], simple=simple), simple)  # type: ignore[misc]
        if value:
            return value
        value = right()
    return value


def not_(value: Any) -> Any:
    """`not value`."""
    stage: ControlFlowHandler | None = TABLE[type(value)]
    if stage is not None and stage.claims(value):
        return stage.logical_not(value)
    return not value


def in_(item: Any, container: Any) -> Any:
    """`item in container`."""
    stage = handler_of(container) or handler_of(item)
    return item in container if stage is None else stage.contains(container, item)


def not_in(item: Any, container: Any) -> Any:
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


def chain(left: Any, sign: str, middle: Thunk, *rest: Any) -> Any:
    """`left sign middle ...`: each operand is computed once, and none after the first comparison that fails."""
    right = middle()
    first = COMPARISONS[sign](left, right)
    if not rest:
        return first
    return and_(first, lambda: chain(right, *rest), simple=True)


def assert_stmt(test: Any, message: Thunk | None) -> None:
    """The `assert` statement; with python -O it does nothing, as there."""
    if not __debug__:
        return
    stage = handler_of(test)
    if stage is not None:
        stage.assert_stmt(test, message)
    elif not test:
        raise AssertionError(*(() if message is None else (message(),)))


def list_comp(items: Any, element: Any, condition: Any, unpacked: bool) -> Any:
    """A list comprehension with one `for`. unpacked: whether its target is a tuple of names."""
    stage = handler_of(items)
    if stage is None:
        if unpacked:
            if condition is None:
                return [element(*item) for item in items]
            return [element(*item) for item in items if _plainly(condition(*item))]
        if condition is None:
            return [element(item) for item in items]
        return [element(item) for item in items if _plainly(condition(item))]
    if unpacked:
        one, test = element, condition
        element = lambda item: one(*item)  # noqa: E731
        condition = None if test is None else lambda item: test(*item)
    return stage.list_comp(items, element, condition)


def _plainly(value: Any) -> bool:
    if handler_of(value) is not None:
        raise ControlFlowError(
            "the condition of this list comprehension depends on a value that is not known yet, so the list's length "
            "would not be known either; use a for statement that appends to a list"
        )
    return bool(value)


def returned(value: Any, flag: Any) -> Any:
    """The value of a function that may end without `return`."""
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
