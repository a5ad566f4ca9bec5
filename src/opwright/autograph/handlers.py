"""Handlers of control flow: the protocol by which types of values define what `if`, `while` and `for` mean for them.

Lives here: `ControlFlowHandler`, the protocol; `register_handler` and `handler_of`, the table of types; `State`, the
variables that a statement changes; `Undefined`.  Not here: any handler (tensors' is in tracing/staged/), the operators
that dispatch to them (operators.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Thunk = Callable[[], Any]


class ControlFlowError(ValueError):
    """Control flow that cannot be staged; the text names the variable."""


class Undefined:
    """Stands in a `State` for a variable without a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<undefined {self.name}>"

    def refuse(self) -> None:
        """Raises what Python raises where the variable is read."""
        raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value")


class NotReturned:
    """What the returned value is until a `return` runs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<nothing returned yet>"


NOT_RETURNED = NotReturned()
_NO_VALUE = (AttributeError, LookupError, NameError, TypeError)  # what reading an item of what has none raises


class State:
    """The variables that a statement may change and that are read later: plain ones by cells, others by functions.

    variables: a function that mentions the plain ones; its cells are theirs. composites: (text, getter, setter,
    deleter) of attributes and items. names: all of them, in order. Values are read and written as a list in that order.
    """

    __slots__ = ("_composites", "_globals", "names", "places")

    def __init__(self, variables: Any = None, composites: tuple[Any, ...] = ()) -> None:
        cells: dict[str, Any] = {}
        self._globals: dict[str, Any] = {}
        if variables is not None:
            code = variables.__code__
            cells = dict(zip(code.co_freevars, variables.__closure__ or ()))
            cells.update((name, None) for name in code.co_names)  # those declared global
            self._globals = variables.__globals__
        self._composites = composites
        self.places = list(cells.items())
        self.names = (*cells, *(c[0] for c in composites))

    def get(self) -> list[Any]:
        """The values now; `Undefined` where there is none."""
        values: list[Any] = []
        for name, cell in self.places:
            if cell is None:
                values.append(self._globals.get(name, Undefined(name)))
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                value = Undefined(name)
            values.append(Undefined(name) if value is NOT_RETURNED else value)
        for name, getter, _, _ in self._composites:
            try:
                values.append(getter())
            except _NO_VALUE:
                values.append(Undefined(name))
        return values

    def set(self, values: list[Any]) -> None:
        """Give the variables these values; `Undefined` unsets one."""
        for (name, cell), value in zip(self.places, values):
            if isinstance(value, Undefined):
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
        for (name, getter, setter, deleter), value in zip(self._composites, values[len(self.places) :]):
            try:
                current = getter()
            except _NO_VALUE:
                current = value if isinstance(value, Undefined) else NOT_RETURNED
            if current is value:  # read-only attributes may stand in the state as long as nothing changes them
                continue
            if not isinstance(value, Undefined):
                setter(value)
                continue
            try:
                deleter()
            except (AttributeError, TypeError) as error:
                raise ControlFlowError(f"{name!r} is set in one branch only and cannot be deleted: {error}") from error


def is_returned_value(name: str) -> bool:
    """Whether this is the rewriting's variable for the value that `return` gives."""
    return name.startswith("retval") and name.endswith("__")


def is_return_flag(name: str) -> bool:
    """Whether this is the rewriting's variable for whether `return` has run."""
    return name.startswith("do_return") and name.endswith("__")


def is_flag(name: str) -> bool:
    """Whether this is one of the rewriting's variables for return, break or continue."""
    return name.endswith("__") and name.startswith(("do_return", "break_", "continue_"))


class Options(dict[str, Any]):
    """What is known of a statement. Of an `if`: grows; kept (variables that are not read afterwards, but by a branch
    other than the one that changes them); guards (flags of jumps that the rewriting tests: where one is set, the
    statement is passed over). Of a loop: parallel_iterations, maximum_iterations, shape_invariants (pairs
    of a variable's text and its shape), grows (the variables appended to), target (the text of a `for`'s target).
    """


class ControlFlowHandler:
    """What control flow means for values of some types. `claims` may decline one value of a registered type.

    Bodies take no arguments (that of `for_stmt`: the item), and speak through the variables in `state`.
    """

    def claims(self, value: Any) -> bool:
        """Whether this value is staged now; where not, Python's own control flow runs."""
        return True

    def if_stmt(self, test: Any, body: Thunk, orelse: Thunk | None, state: State, options: Options) -> None:
        """`if test: body() else: orelse()`."""
        raise TypeError(f"an if statement cannot depend on a {type(test).__name__}")

    def while_stmt(self, test: Thunk, body: Thunk, state: State, options: Options) -> None:
        """`while test(): body()`."""
        raise TypeError("a while statement cannot depend on this value")

    def for_stmt(
        self, items: Any, go_on: Thunk | None, body: Callable[[Any], Any], state: State, options: Options
    ) -> None:
        """`for item in items: body(item)`, as long as go_on() holds, which is asked before each item."""
        raise TypeError(f"a for statement cannot run over a {type(items).__name__}")

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        """`body() if test else orelse()`."""
        raise TypeError(f"a conditional expression cannot depend on a {type(test).__name__}")

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> Any:
        """`left and right()`. simple: right() may be computed even where left is false."""
        raise TypeError(f"`and` is not defined for a {type(left).__name__}")

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> Any:
        """`left or right()`."""
        raise TypeError(f"`or` is not defined for a {type(left).__name__}")

    def logical_not(self, value: Any) -> Any:
        """`not value`."""
        raise TypeError(f"`not` is not defined for a {type(value).__name__}")

    def contains(self, container: Any, item: Any) -> Any:
        """`item in container`; one of them is of this stage."""
        return item in container

    def assert_stmt(self, test: Any, message: Thunk | None) -> None:
        """`assert test, message()`."""
        raise TypeError(f"an assertion cannot depend on a {type(test).__name__}")

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of Python's builtin `name`; NotImplemented where Python's own is right."""
        return NotImplemented

    def list_comp(self, items: Any, element: Callable[[Any], Any], condition: Callable[[Any], Any] | None) -> Any:
        """`[element(x) for x in items if condition(x)]`."""
        return [element(x) for x in items if condition is None or condition(x)]


_registered: dict[type, ControlFlowHandler] = {}


class _Table(dict[type, Any]):
    """Type -> ControlFlowHandler or None, filled through the MRO at first sight; bounded, as types may come and go."""

    def __missing__(self, kind: type) -> ControlFlowHandler | None:
        found = next((_registered[c] for c in kind.__mro__ if c in _registered), None)
        if len(self) > 4096:
            self.clear()
        self[kind] = found
        return found


TABLE = _Table()


def register_handler(kind: type, stage: ControlFlowHandler | None) -> None:
    """Values of this type and its subclasses belong to `stage`; None for to plain Python, whatever its bases say."""
    _registered[kind] = stage  # type: ignore[assignment]
    TABLE.clear()


def handler_of(value: Any) -> ControlFlowHandler | None:
    """The stage that control flow on this value belongs to, or None for plain Python."""
    stage = TABLE[type(value)]
    return stage if stage is not None and stage.claims(value) else None


def first_handler(values: Any) -> ControlFlowHandler | None:
    """The stage of the first value that has one."""
    for value in values:
        stage = TABLE[type(value)]
        if stage is not None and stage.claims(value):
            return stage
    return None


# A loop's test is asked once to see what kind of value it gives; where work is recorded, that one must leave no trace.
probe: list[Callable[[Thunk], Any]] = []
