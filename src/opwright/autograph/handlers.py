"""Handlers of control flow: types of values define what `if`, `while` and `for` on them mean.

Lives here: `ControlFlowHandler`, the protocol; `register_handler` and `handler_of`, the table of types;
`StatementState`, the variables that a statement changes; `Unbound`.  Not here: any handler (tensors' is in
tracing/statements/), the operators that dispatch to them (operators.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Thunk = Callable[[], Any]


class ControlFlowError(ValueError):
    """Raised for control flow that cannot be recorded; the message names the variable."""


class Unbound:
    """A placeholder in a `StatementState` for a variable without a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<undefined {self.name}>"

    def refuse(self) -> None:
        """Raise UnboundLocalError, as Python does where such a variable is read."""
        raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value")


class NotReturned:
    """The initial value of the returned-value variable, until a `return` runs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<nothing returned yet>"


NOT_RETURNED = NotReturned()
_NO_VALUE = (AttributeError, LookupError, NameError, TypeError)  # raised by reading an attribute or item that is unset


class StatementState:
    """The variables that a statement may change and that are read later: plain ones by cells, others by accessors.

    variables: a function that mentions the plain variables; its cells are theirs. composites: (text, getter, setter,
    deleter) of attributes and items. names: all of them, in order. Values are read and written as a list in that order.
    """

    __slots__ = ("_composites", "_globals", "cells", "names")

    def __init__(self, variables: Any = None, composites: tuple[Any, ...] = ()) -> None:
        by_name: dict[str, Any] = {}
        self._globals: dict[str, Any] = {}
        if variables is not None:
            code = variables.__code__
            by_name = dict(zip(code.co_freevars, variables.__closure__ or ()))
            by_name.update((name, None) for name in code.co_names)  # declared global
            self._globals = variables.__globals__
        self._composites = composites
        self.cells = list(by_name.items())
        self.names = (*by_name, *(c[0] for c in composites))

    def get(self) -> list[Any]:
        """Return the current values; `Unbound` for variables without one."""
        values: list[Any] = []
        for name, cell in self.cells:
            if cell is None:
                values.append(self._globals.get(name, Unbound(name)))
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                value = Unbound(name)
            values.append(Unbound(name) if value is NOT_RETURNED else value)
        for name, getter, _, _ in self._composites:
            try:
                values.append(getter())
            except _NO_VALUE:
                values.append(Unbound(name))
        return values

    def set(self, values: list[Any]) -> None:
        """Assign these values to the variables; `Unbound` deletes one."""
        for (name, cell), value in zip(self.cells, values):
            if isinstance(value, Unbound):
                if is_returned_value(name):
                    cell.cell_contents = NOT_RETURNED
                elif cell is None:
                    self._globals.pop(name, None)
                else:
                    del cell.cell_contents
            elif cell is None:
                self._globals[name] = value
            else:
                cell.cell_contents = value
        for (name, getter, setter, deleter), value in zip(self._composites, values[len(self.cells) :]):
            try:
                current = getter()
            except _NO_VALUE:
                current = value if isinstance(value, Unbound) else NOT_RETURNED
            if current is value:  # a read-only attribute that nothing changes
                continue
            if not isinstance(value, Unbound):
                setter(value)
                continue
            try:
                deleter()
            except (AttributeError, TypeError) as error:
                raise ControlFlowError(f"{name!r} is set in one branch only and cannot be deleted: {error}") from error


def is_returned_value(name: str) -> bool:
    """Return whether this is the generated variable that holds the value of `return`."""
    return name.startswith("retval") and name.endswith("__")


def is_return_flag(name: str) -> bool:
    """Return whether this is the generated variable that records whether `return` has run."""
    return name.startswith("do_return") and name.endswith("__")


def is_flag(name: str) -> bool:
    """Return whether this is a generated flag for return, break or continue."""
    return name.endswith("__") and name.startswith(("do_return", "break_", "continue_"))


class StatementOptions(dict[str, Any]):
    """Static facts about a statement.

    For an `if`: grows; kept (variables that are not read afterwards, except by a branch other than the one that changes
    them); guards (flags of jumps that the rewritten test reads: the statement is skipped if one is set). For a loop:
    parallel_iterations, maximum_iterations, shape_invariants (pairs of a variable's text and its shape), grows (the
    variables appended to), target (the text of a `for`'s target).
    """


class ControlFlowHandler:
    """The meaning of control flow for values of some types. `claims` may decline single values of a registered type.

    Bodies take no arguments (the body of `for_stmt` takes the item) and communicate through the variables in `state`.
    """

    def claims(self, value: Any) -> bool:
        """Return whether this handler applies to the value now; if not, Python's own control flow runs."""
        return True

    def if_stmt(
        self, test: Any, body: Thunk, orelse: Thunk | None, state: StatementState, options: StatementOptions
    ) -> None:
        """`if test: body() else: orelse()`."""
        raise TypeError(f"an if statement cannot depend on a {type(test).__name__}")

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        """`while test(): body()`."""
        raise TypeError("a while statement cannot depend on this value")

    def for_stmt(
        self,
        items: Any,
        go_on: Thunk | None,
        body: Callable[[Any], Any],
        state: StatementState,
        options: StatementOptions,
    ) -> None:
        """`for item in items: body(item)`, while go_on(), evaluated before each item, is true."""
        raise TypeError(f"a for statement cannot run over a {type(items).__name__}")

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> object:
        """`body() if test else orelse()`."""
        raise TypeError(f"a conditional expression cannot depend on a {type(test).__name__}")

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> object:
        """`left and right()`. simple: right() is cheap and has no effects, so it may be evaluated even if left is
        false.
        """
        raise TypeError(f"`and` is not defined for a {type(left).__name__}")

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> object:
        """`left or right()`."""
        raise TypeError(f"`or` is not defined for a {type(left).__name__}")

    def logical_not(self, value: Any) -> object:
        """`not value`."""
        raise TypeError(f"`not` is not defined for a {type(value).__name__}")

    def contains(self, container: Any, item: Any) -> object:
        """`item in container`; at least one of them has this handler."""
        return item in container

    def assert_stmt(self, test: Any, message: Thunk | None) -> None:
        """`assert test, message()`."""
        raise TypeError(f"an assertion cannot depend on a {type(test).__name__}")

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Call Python's builtin `name`; return NotImplemented to fall back to Python's own."""
        return NotImplemented

    def list_comp(self, items: Any, element: Callable[[Any], Any], condition: Callable[[Any], Any] | None) -> object:
        """`[element(x) for x in items if condition(x)]`."""
        return [element(x) for x in items if condition is None or condition(x)]


_registered: dict[type, ControlFlowHandler] = {}


class _HandlerTable(dict[type, Any]):
    """Map a type to its handler or None, resolved through the MRO on first use; bounded, as types come and go."""

    def __missing__(self, kind: type) -> ControlFlowHandler | None:
        handler = next((_registered[c] for c in kind.__mro__ if c in _registered), None)
        if len(self) > 4096:
            self.clear()
        self[kind] = handler
        return handler


HANDLERS = _HandlerTable()


def register_handler(kind: type, handler: ControlFlowHandler | None) -> None:
    """Set the handler of a type and its subclasses; None selects plain Python, whatever the bases have."""
    _registered[kind] = handler  # type: ignore[assignment]
    HANDLERS.clear()


def handler_of(value: Any) -> ControlFlowHandler | None:
    """Return the handler of control flow on this value, or None for plain Python."""
    handler = HANDLERS[type(value)]
    return handler if handler is not None and handler.claims(value) else None


def first_handler(values: Any) -> ControlFlowHandler | None:
    """Return the handler of the first value that has one."""
    for value in values:
        handler: ControlFlowHandler | None = HANDLERS[type(value)]
        if handler is not None and handler.claims(value):
            return handler
    return None


# Evaluates a loop's test once to determine its type; a recorder installs one that discards what it records.
probe: list[Callable[[Thunk], Any]] = []
