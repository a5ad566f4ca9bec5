"""GraphHandler: the control flow handler of tensors and other values of a graph.

Lives here: the handler and its registration.
Not here: the statements (conditionals.py, loops.py), builtins (builtins.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...autograph import operators
from ...autograph.handlers import (
    ControlFlowHandler,
    StatementOptions,
    StatementState,
    Thunk,
    handler_of,
    probe,
    register_handler,
)
from ...core import dtypes
from ...eager.variable import Variable
from ...ops import array, dispatch, math
from ...ops.tensor import TensorLike
from ..tensor_array import TensorArray
from ..trace import FuncTrace
from . import conditionals, loops
from .builtins import BUILTINS, indexed
from .cursors import Cursor, Indexed
from .growing_list import GrowingList, begin_growing
from .merge import refuse

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

state = dispatch.state


def _itself(value: Any) -> Any:
    return value


class GraphHandler(ControlFlowHandler):
    """Control flow as nodes of the graph that is being recorded; outside a trace values are Python's."""

    def claims(self, value: Any) -> bool:
        """While a function is traced."""
        return isinstance(state.trace, FuncTrace)

    def cursor(self, items: Any) -> Cursor | None:
        """What a `for` over this value runs over; None where it cannot."""
        return indexed(items)

    def if_stmt(
        self, test: Any, body: Thunk, orelse: Thunk | None, state: StatementState, options: StatementOptions
    ) -> None:
        """`if`: an If node; what is no tensor, such as a TensorArray, is true or not as in Python."""
        test = _test(test)
        if isinstance(test, TensorLike):
            conditionals.if_stmt(test, body, orelse, state, options)
        elif test:
            body()
        elif orelse is not None:
            orelse()

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        """`while`: a While node."""
        loops.while_stmt(test, body, state, options)

    def for_stmt(
        self,
        items: Any,
        go_on: Thunk | None,
        body: Callable[[Any], Any],
        state: StatementState,
        options: StatementOptions,
    ) -> None:
        """`for`: a While node over a cursor."""
        cursor = self.cursor(items)
        if cursor is None:
            refuse(TypeError, f"a for statement cannot run over a {type(items).__name__} in a graph")
        loops.run_for(cursor, go_on, body, state, options)

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        """`a if test else b`: an If node."""
        test = _test(test)
        if isinstance(test, TensorLike):
            return conditionals.if_exp(test, body, orelse)
        return body() if test else orelse()

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> Any:
        """`and`: an operator, or an If node where the right side must not be computed in vain."""
        test = _test(left)
        return conditionals.logical(test, right, simple, True) if isinstance(test, TensorLike) else left and right()

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> Any:
        """`or`."""
        test = _test(left)
        return conditionals.logical(test, right, simple, False) if isinstance(test, TensorLike) else left or right()

    def logical_not(self, value: Any) -> bool | Tensor:
        """`not`."""
        test = _test(value)
        if not isinstance(test, TensorLike):
            return not test
        if test.dtype is dtypes.bool and test.shape.rank != 0:
            return math.logical_not(test)  # element by element, as TensorFlow does
        return math.logical_not(conditionals.truth(test, "the operand of `not`"))

    def contains(self, container: Any, item: Any) -> Any:
        """`in`: whether any element equals."""
        if isinstance(container, (list, tuple, set, frozenset, range)):
            found: Any = False
            for other in container:
                same = other == item
                found = same if found is False else operators.or_(found, functools.partial(_itself, same), simple=True)
            return found
        if isinstance(container, (TensorLike, GrowingList, Indexed)):
            return math.reduce_any(math.equal(dispatch.to_tensor(container), item))
        return item in container

    def assert_stmt(self, test: Any, message: Thunk | None) -> None:
        """`assert`: an Assert node."""
        from ...ops.debugging import Assert

        if not isinstance(_test(test), TensorLike):
            if not test:
                raise AssertionError(*(() if message is None else (message(),)))
            return
        said = "" if message is None else message()
        holds = conditionals.truth(_test(test), "the condition of assert")
        Assert(holds, list(said) if isinstance(said, (list, tuple)) else [said])

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Those of the table BUILTINS."""
        rule = BUILTINS.get(name)
        return NotImplemented if rule is None else rule(*args, **kwargs)

    def list_comp(self, items: Any, element: Callable[[Any], Any], condition: Callable[[Any], Any] | None) -> Any:
        """A list where length and conditions are known, else one that grows in the graph."""
        cursor = self.cursor(items)
        if cursor is None:
            return super().list_comp(items, element, condition)
        if isinstance(cursor, Indexed) and isinstance(cursor.length, int):
            made = []
            for i in range(cursor.length):
                item = cursor.item(i)
                keep = True if condition is None else condition(item)
                if handler_of(keep) is not None:
                    break
                if keep:
                    made.append(element(item))
            else:
                return made
        out: Any = begin_growing([], "the list comprehension")

        def body(item: Any) -> None:
            keep = True if condition is None else condition(item)
            operators.if_stmt(keep, lambda: out.append(element(item)), None, lambda: (out,), (), _grows)

        loops.run_for(cursor, None, body, StatementState(lambda: (out,)), StatementOptions(_grows()))
        return out


def _grows() -> dict[str, Any]:
    return {"grows": ("out",)}


def _test(value: Any) -> Any:
    """A condition as a tensor: a list that grows is true where it has items."""
    if isinstance(value, GrowingList):
        return value.length() > 0
    if isinstance(value, Variable):
        return value.value()
    if isinstance(value, Indexed):
        return array.cast(value.length, "int32") > 0
    return value


def _ask(test: Thunk) -> Any:
    """The value of a loop's test, of which nothing stays in the trace where the loop will be staged."""
    trace = state.trace
    if not isinstance(trace, FuncTrace):
        return test()
    builder, recorder = trace.builder, trace.recorder
    sizes = len(builder.nodes), len(builder.inputs), len(recorder.records)
    taken, captures, afar = dict(builder._taken), dict(trace.captures), dict(trace._from_afar)
    value = test()
    if handler_of(value) is not None:
        del builder.nodes[sizes[0] :], builder.inputs[sizes[1] :], recorder.records[sizes[2] :]
        builder._taken, trace.captures, trace._from_afar = taken, captures, afar
    return value


GRAPH_HANDLER = GraphHandler()
for _kind in (TensorLike, TensorArray, GrowingList, Indexed):
    register_handler(_kind, GRAPH_HANDLER)
probe.append(_ask)
