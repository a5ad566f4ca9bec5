"""GraphHandler: the control flow handler of tensors and other values of a graph, and Python's builtins on them.

Lives here: the handler and its registration; the table BUILTINS, from name to implementation.
Not here: the statements (conditionals.py, loops.py), the dispatch of calls (autograph/operators.py).
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
from ...ops.debugging import Assert
from ...ops.tensor import TensorLike
from ..control.higher_order import map_fn
from ..tensor_array import TensorArray
from ..trace import FuncTrace
from . import conditionals, loops
from .conditionals import truth
from .cursors import Cursor, Indexed, RangeCursor, Sized, of_python, of_tensor, zipped
from .growing_list import GrowingList, begin_growing, refuse
from .loops import rows_of

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def indexed(value: Any) -> Indexed | None:
    """Return the cursor of a value with indexed items; None for other values."""
    if isinstance(value, Indexed):
        return value
    if isinstance(value, GrowingList):
        return Indexed(value.length(), value.item)
    if isinstance(value, TensorArray):
        return Indexed(value.size(), value.read)
    if isinstance(value, TensorLike):
        return of_tensor(dispatch.to_tensor(value))
    return None


def _len(value: Any) -> object:
    length = indexed_length(value)
    return NotImplemented if length is None else length


def indexed_length(value: Any) -> object:
    """Return len() of a value, an int if it is known; None for values without a length."""
    if isinstance(value, TensorLike):
        if value.shape.rank == 0:
            raise ValueError("len requires a non-scalar tensor, found one of shape ()")
        return rows_of(dispatch.to_tensor(value))
    cursor = indexed(value)
    return None if cursor is None else cursor.length


def _range(*args: Any) -> RangeCursor:
    start, limit, step = (0, args[0], 1) if len(args) == 1 else args if len(args) == 3 else (*args, 1)
    return RangeCursor(start, limit, step)


def _number(dtype: Any) -> Callable[..., Any]:
    def convert(value: Any, *options: Any) -> object:
        if not isinstance(value, TensorLike) or options:
            return NotImplemented
        tensor = dispatch.to_tensor(value)
        if tensor.dtype is dtypes.string:
            from ...ops import strings

            return strings.to_number(tensor, dtype)
        return array.cast(tensor, dtype)

    return convert


def _bool(value: Any) -> object:
    return truth(value, "the argument of bool()") if isinstance(value, TensorLike) else NotImplemented


def _abs(value: Any) -> object:
    return math.abs(value) if isinstance(value, TensorLike) else NotImplemented


def _extreme(combine: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*values: Any, **kwargs: Any) -> object:
        if kwargs:
            return NotImplemented
        if len(values) == 1:
            tensor = dispatch.to_tensor(values[0])
            if tensor.shape.rank not in (None, 1):
                raise ValueError(f"min/max of a single tensor only support rank 1 tensors, found shape {tensor.shape}")
            return reduce(tensor)
        result, *others = values
        for other in others:
            result = combine(result, other)
        return result

    return extreme


def _sum(values: Any, start: Any = 0) -> object:
    if not isinstance(values, (TensorLike, GrowingList, RangeCursor)):
        return NotImplemented
    total = math.reduce_sum(dispatch.to_tensor(values), axis=0)
    return total if isinstance(start, int) and start == 0 else start + total


def _reduction(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def over(values: Any) -> object:
        if not isinstance(values, (TensorLike, GrowingList)):
            return NotImplemented
        tensor = dispatch.to_tensor(values)
        if tensor.dtype is not dtypes.bool:
            tensor = math.not_equal(tensor, array.zeros((), tensor.dtype))
        return reduce(tensor)

    return over


def _enumerate(values: Any, start: Any = 0) -> object:
    cursor = indexed(values)
    if cursor is None:
        return NotImplemented
    plain = isinstance(start, int) and start == 0
    return Sized(cursor.length, lambda i: (i if plain else i + start, cursor.item(i)))


def _zip(*values: Any, strict: bool = False) -> object:
    parts = [indexed(v) or of_python(v) for v in values]
    return NotImplemented if any(p is None for p in parts) else zipped(parts)  # type: ignore[arg-type]


def _map(function: Any, *values: Any) -> object:
    parts = [indexed(v) or of_python(v) for v in values]
    if any(p is None for p in parts):
        return NotImplemented
    items = zipped(parts)  # type: ignore[arg-type]
    return Sized(items.length, lambda i: function(*items.item(i)))


def _filter(function: Any, values: Any) -> object:
    handler = handler_of(values)
    if handler is None or indexed(values) is None:
        return NotImplemented
    return handler.list_comp(values, lambda x: x, function if function is not None else lambda x: x)


def _sorted(values: Any, key: Any = None, reverse: bool = False) -> object:
    if not isinstance(values, (TensorLike, GrowingList)):
        return NotImplemented
    tensor = dispatch.to_tensor(values)
    direction = "DESCENDING" if reverse else "ASCENDING"
    if key is None:
        if tensor.shape.rank not in (None, 1):
            raise ValueError(f"sorted only supports 1D tensors, found shape {tensor.shape}")
        return math.sort(tensor, direction=direction)
    order = math.argsort(map_fn(key, tensor), direction=direction, stable=True)
    return array.gather(tensor, order)


def _reversed(values: Any) -> object:
    cursor = indexed(values)
    return NotImplemented if cursor is None else Sized(cursor.length, lambda i: cursor.item(cursor.length - 1 - i))


BUILTINS: dict[str, Callable[..., Any]] = {
    "len": _len,
    "range": _range,
    "int": _number(dtypes.int32),
    "float": _number(dtypes.float32),
    "bool": _bool,
    "abs": _abs,
    "min": _extreme(math.minimum, math.reduce_min),
    "max": _extreme(math.maximum, math.reduce_max),
    "sum": _sum,
    "any": _reduction(math.reduce_any),
    "all": _reduction(math.reduce_all),
    "enumerate": _enumerate,
    "zip": _zip,
    "map": _map,
    "filter": _filter,
    "sorted": _sorted,
    "reversed": _reversed,
}


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
        """Record an If node; a test that is not a tensor, such as a TensorArray, has its Python truth value."""
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

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> object:
        """Record an If node for `a if test else b`."""
        test = _test(test)
        if isinstance(test, TensorLike):
            return conditionals.if_exp(test, body, orelse)
        return body() if test else orelse()

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> object:
        """Record `and` as an operator, or as an If node if the right side must not be computed unconditionally."""
        test = _test(left)
        return conditionals.logical(test, right, simple, True) if isinstance(test, TensorLike) else left and right()

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> object:
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

    def contains(self, container: Any, item: Any) -> object:
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

    def list_comp(self, items: Any, element: Callable[[Any], Any], condition: Callable[[Any], Any] | None) -> object:
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
