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


def _itself(value: Any) -> object:
    return value


class GraphHandler(ControlFlowHandler):
    """Records control flow as nodes of the active trace; outside of a trace, values behave as in Python."""

    def claims(self, value: Any) -> bool:
        """Return whether a function is being traced."""
        return isinstance(state.trace, FuncTrace)

    def cursor(self, items: Any) -> Cursor | None:
        """Return the cursor of a `for` over this value; None if it is not iterable."""
        return indexed(items)

    def if_stmt(
        self, test: Any, body: Thunk, orelse: Thunk | None, state: StatementState, options: StatementOptions
    ) -> None:
        """Record an If node; a test that is no tensor, such as a TensorArray, has its Python truth value."""
        test = _test(test)
        if isinstance(test, TensorLike):
            conditionals.if_stmt(test, body, orelse, state, options)
        elif test:
            body()
        elif orelse is not None:
            orelse()

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        """Record a While node."""
        loops.while_stmt(test, body, state, options)

    def for_stmt(
        self,
        items: Any,
        go_on: Thunk | None,
        body: Callable[[Any], Any],
        state: StatementState,
        options: StatementOptions,
    ) -> None:
        """Record a While node over a cursor."""
        cursor = self.cursor(items)
        if cursor is None:
            refuse(TypeError, f"a for statement cannot iterate over a {type(items).__name__} in a graph")
        loops.run_for(cursor, go_on, body, state, options)

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        """Record an If node for `a if test else b`."""
        test = _test(test)
        if isinstance(test, TensorLike):
            return conditionals.if_exp(test, body, orelse)
        return body() if test else orelse()

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> Any:
        """Record `and` as an operator, or as an If node if the right side must not be computed unconditionally."""
        test = _test(left)
        return conditionals.logical(test, right, simple, True) if isinstance(test, TensorLike) else left and right()

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> Any:
        """Record `or`, as `logical_and`."""
        test = _test(left)
        return conditionals.logical(test, right, simple, False) if isinstance(test, TensorLike) else left or right()

    def logical_not(self, value: Any) -> bool | Tensor:
        """Record `not`."""
        test = _test(value)
        if not isinstance(test, TensorLike):
            return not test
        if test.dtype is dtypes.bool and test.shape.rank != 0:
            return math.logical_not(test)  # element-wise, as in TensorFlow
        return math.logical_not(conditionals.truth(test, "the operand of `not`"))

    def contains(self, container: Any, item: Any) -> Any:
        """Record `in`: whether any element is equal."""
        if isinstance(container, (list, tuple, set, frozenset, range)):
            result: Any = False
            for other in container:
                same = other == item
                result = (
                    same if result is False else operators.or_(result, functools.partial(_itself, same), simple=True)
                )
            return result
        if isinstance(container, (TensorLike, GrowingList, Indexed)):
            return math.reduce_any(math.equal(dispatch.to_tensor(container), item))
        return item in container

    def assert_stmt(self, test: Any, message: Thunk | None) -> None:
        """Record an Assert node."""
        from ...ops.debugging import Assert

        if not isinstance(_test(test), TensorLike):
            if not test:
                raise AssertionError(*(() if message is None else (message(),)))
            return
        data = "" if message is None else message()
        condition = conditionals.truth(_test(test), "the condition of assert")
        Assert(condition, list(data) if isinstance(data, (list, tuple)) else [data])

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Call the implementation in the table BUILTINS, if any."""
        rule = BUILTINS.get(name)
        return NotImplemented if rule is None else rule(*args, **kwargs)

    def list_comp(self, items: Any, element: Callable[[Any], Any], condition: Callable[[Any], Any] | None) -> Any:
        """Return a list if length and conditions are known, else a GrowingList."""
        cursor = self.cursor(items)
        if cursor is None:
            return super().list_comp(items, element, condition)
        if isinstance(cursor, Indexed) and isinstance(cursor.length, int):
            items_so_far = []
            for i in range(cursor.length):
                item = cursor.item(i)
                keep = True if condition is None else condition(item)
                if handler_of(keep) is not None:
                    break
                if keep:
                    items_so_far.append(element(item))
            else:
                return items_so_far
        out: Any = begin_growing([], "the list comprehension")

        def body(item: Any) -> None:
            keep = True if condition is None else condition(item)
            operators.if_stmt(keep, lambda: out.append(element(item)), None, lambda: (out,), (), _grows)

        loops.run_for(cursor, None, body, StatementState(lambda: (out,)), StatementOptions(_grows()))
        return out


def _grows() -> dict[str, Any]:
    return {"grows": ("out",)}


def _test(value: Any) -> object:
    """Return a condition as a tensor: a GrowingList is true if it has items."""
    if isinstance(value, GrowingList):
        return value.length() > 0
    if isinstance(value, Variable):
        return value.value()
    if isinstance(value, Indexed):
        return array.cast(value.length, "int32") > 0
    return value


def _probe_test(test: Thunk) -> object:
    """Evaluate a loop's test; if the loop will be recorded, remove its nodes from the trace again."""
    trace = state.trace
    if not isinstance(trace, FuncTrace):
        return test()
    builder, recorder = trace.builder, trace.recorder
    sizes = len(builder.nodes), len(builder.inputs), len(recorder.records)
    names, captures, distant = dict(builder._suffixes), dict(trace.captures), dict(trace._distant_captures)
    value = test()
    if handler_of(value) is not None:
        del builder.nodes[sizes[0] :], builder.inputs[sizes[1] :], recorder.records[sizes[2] :]
        builder._suffixes, trace.captures, trace._distant_captures = names, captures, distant
    return value


GRAPH_HANDLER = GraphHandler()
for _kind in (TensorLike, TensorArray, GrowingList, Indexed):
    register_handler(_kind, GRAPH_HANDLER)
probe.append(_probe_test)
