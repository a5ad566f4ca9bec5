"""Loops on values of a graph: `while`, and `for` over cursors, as `While` nodes that carry the modified variables.

Lives here: the selection of loop variables, variables first assigned in the body, errors that name a variable.
Not here: the node (tracing/control/loops.py), iteration (cursors.py).

The body is recorded once. A variable that is first assigned in the body becomes a loop variable afterwards, with an
initial value that is never read: the loop must then run at least once, which is checked at run time if it is not known,
unless the variable is the returned value, which a flag guards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...autograph.handlers import StatementState, Thunk, Unbound, is_flag, is_returned_value
from ...core import dtypes, nest
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...ops import array, dispatch, math
from ...ops.control import Undefined as UndefinedOperator
from ...ops.debugging import Assert
from ...ops.list_ops import ListReserve
from ...ops.tensor import TensorLike
from ..control.body import emit_while
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .conditionals import described, is_value, leaves_of, same_structure, truth
from .cursors import Cursor
from .growing_list import GrowingList, begin_growing, common_shape, refuse

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

state = dispatch.state
R = TypeVar("R")
Test = Callable[[Sequence[Any]], Any]
Step = Callable[[Sequence[Any]], Sequence[Any]]


def while_stmt(test: Thunk, body: Thunk, variables: StatementState, options: dict[str, Any]) -> None:
    """Execute a `while` statement."""

    def step(_: Sequence[Any]) -> Sequence[Any]:
        body()
        return ()

    _LoopRecorder(variables, options, "while").run(lambda _: test(), step, [], False)


def run_for(
    cursor: Cursor, go_on: Thunk | None, body: Callable[[Any], Any], variables: StatementState, options: dict[str, Any]
) -> None:
    """Execute a `for` statement over a cursor."""

    def test(position: Sequence[Any]) -> Tensor:
        more = cursor.more(position)
        return more if go_on is None else math.logical_and(more, go_on())

    def step(position: Sequence[Any]) -> Sequence[Any]:
        item, following = cursor.take(position)
        body(item)
        return following

    loop = _LoopRecorder(variables, options, "for")
    loop.widens = cursor.widens
    loop.run(test, step, cursor.start(), cursor.never_empty)


class _RecordAgain(Exception):
    """Raised to record the loop again: with wider shapes, or with new information on the items of a list."""


class _LoopVariable:
    """One leaf of a variable that the loop carries. initial: None for the elements of an empty list."""

    __slots__ = ("initial", "name", "spec")

    def __init__(self, name: str, initial: Any, spec: TensorSpec) -> None:
        self.name, self.initial, self.spec = name, initial, spec


class _LoopRecorder:
    def __init__(self, variables: StatementState, options: dict[str, Any], name: str) -> None:
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        self.trace, self.variables, self.options, self.name = trace, variables, options, name
        self.names = variables.names
        self.widens = False
        self._wider: dict[int, TensorShape] = {}  # by index among the carried leaves
        invariants = options.get("shape_invariants") or ()
        self.invariants: dict[str, Any] = dict(invariants)
        for symbol in self.invariants:
            if symbol not in self.names:
                refuse(
                    ValueError,
                    f"shape_invariants contains {symbol!r}, which is not a variable of this loop",
                    found=", ".join(self.names) or "no variables",
                )

    def run(self, test: Test, step: Step, hidden: list[Any], never_empty: bool) -> None:
        """Record the loop and assign the final values to the variables. hidden: additional variables of the loop."""
        before = self.variables.get()
        for i, symbol in enumerate(self.names):
            if symbol in self.options.get("grows", ()) and type(before[i]) in (list, GrowingList):
                before[i] = begin_growing(before[i], symbol)
                before[i].begin()
        try:
            while True:
                try:
                    self._record(before, test, step, hidden, never_empty)
                    return
                except _RecordAgain:
                    for value in before:
                        if isinstance(value, GrowingList) and value.items.begin_mismatch:
                            value.items.begin_mismatch = False
                            value.begin()
        except BaseException:
            self.variables.set(before)
            raise

    def _record(self, before: list[Any], test: Test, step: Step, hidden: list[Any], never_empty: bool) -> None:
        trace = self.trace
        self.before, self.carried, self.never_empty = before, self._plan(before), never_empty
        limit = self.options.get("maximum_iterations")
        hidden = [trace.to_tensor(h) for h in hidden]
        if limit is not None:
            hidden = [dispatch.to_tensor(0, dtypes.int32), *hidden]
        num_counters, n = (0 if limit is None else 1), len(hidden)
        self.late_variables: list[SymbolicTensor] = []
        self.late_values: list[tuple[int, Any, int]] = []  # variable, its value after an iteration, number of leaves
        self.assigned_names: list[str] = []
        specs = [TensorSpec(h.shape, h.dtype, "position") for h in hidden] + [c.spec for c in self.carried]

        def flat_cond(*placeholders: Any) -> object:
            self._set(placeholders[n:])
            proceed = self._with_definition_errors(lambda: test(placeholders[num_counters:n]))
            proceed = truth(proceed, "the condition of the loop") if isinstance(proceed, TensorLike) else bool(proceed)
            return proceed if limit is None else math.logical_and(placeholders[0] < limit, proceed)

        def flat_body(*placeholders: Any) -> list[Any]:
            self._set(placeholders[n:])
            following = list(self._with_definition_errors(lambda: step(placeholders[num_counters:n])))
            counters = [p + 1 for p in placeholders[:num_counters]]
            return [*counters, *following, *self._results(self.variables.get())]

        def initials() -> list[Any]:
            first = [c.initial if c.initial is not None else self._empty(c) for c in self.carried]
            unset = [
                dispatch.to_tensor(False) if p is self.ran else UndefinedOperator(dtype=p.dtype, shape=p.shape)
                for p in self.late_variables
            ]
            return [*hidden, *first, *unset]

        self.ran: Any = None
        outs = emit_while(trace, specs, flat_cond, flat_body, initials, self.name, self.late_variables)
        self._assign_results(outs[n:])

    # ---- before ---------------------------------------------------------------------------------------------------

    def _plan(self, before: list[Any]) -> list[_LoopVariable]:
        carried = []
        for symbol, value in zip(self.names, before):
            if isinstance(value, Unbound):
                continue
            if isinstance(value, GrowingList) and not value.flows:
                carried.append(_LoopVariable(symbol, None, TensorSpec((), dtypes.variant, symbol)))
                continue
            declared = self.invariants.get(symbol)
            leaves = leaves_of(value)
            for k, leaf in enumerate(leaves):
                if is_carried(leaf):
                    tensor = self.trace.to_tensor(leaf)
                    shape = self._declared_shape(symbol, declared, value, k, tensor)
                    shape = self._wider.get(len(carried), shape)
                    carried.append(_LoopVariable(symbol, tensor, TensorSpec(shape, tensor.dtype, symbol)))
        return carried

    def _declared_shape(self, symbol: str, declared: Any, value: Any, k: int, tensor: Any) -> TensorShape:
        if declared is None:
            result: TensorShape = tensor.shape
            return result
        if nest.is_nested(value) and not isinstance(declared, TensorShape) and nest.is_nested(declared):
            declared = nest.flatten(declared)[k]
        shape = as_shape(getattr(declared, "shape", declared))
        if not tensor.shape.is_subtype_of(shape):
            refuse(
                ValueError,
                f"{symbol!r} has shape {tensor.shape} before the loop, which does not conform with the shape "
                f"invariant {shape}.",
            )
        return shape

    def _empty(self, carried: _LoopVariable) -> Tensor:
        (value,) = (v for v, s in zip(self.before, self.names) if s == carried.name)
        specs = value.items.specs if value.items.element is not None else [TensorSpec((), dtypes.float32)]
        return ListReserve(0, element_dtype=specs[0].dtype)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _set(self, tensors: Sequence[Any]) -> None:
        """Assign to the variables their values at the start of an iteration."""
        self.variables.set(self._with_tensors(iter(tensors)))

    def _with_tensors(self, remaining: Iterator[Any]) -> list[Any]:
        """Return the variables, with the next of these tensors for each leaf that the loop carries."""
        values: list[Any] = []
        for value in self.before:
            if isinstance(value, Unbound):
                values.append(value)
            elif isinstance(value, GrowingList) and not value.flows:
                values.append(GrowingList(value.items, [next(remaining)]))
            else:
                flat = [next(remaining) if is_carried(leaf) else leaf for leaf in leaves_of(value)]
                values.append(nest.pack_sequence_as(value, flat, expand_composites=True))
        return values

    def _with_definition_errors(self, evaluate: Callable[[], R]) -> R:
        try:
            return evaluate()
        except NameError as error:
            match = re.search("'(.+?)'", str(error))
            undefined = {s for s, v in zip(self.names, self.before) if isinstance(v, Unbound)}
            if match and match[1] in undefined:
                raise ValueError(f"{match[1]!r} must be defined before the loop: {error}") from error
            raise

    def _results(self, after: list[Any]) -> list[Any]:
        """Return the carried leaves after an iteration, checked; record the variables first assigned in it."""
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        plan = iter(self.carried)
        results: list[Any] = []
        late: list[Any] = []
        for i, (symbol, old, new) in enumerate(zip(self.names, self.before, after)):
            if isinstance(old, Unbound):
                if not isinstance(new, Unbound):
                    late.extend(self._add_late_variable(trace, i, symbol, new))
                continue
            if isinstance(new, Unbound):
                refuse(ValueError, f"{symbol!r} has no value at the end of the iteration: it was deleted")
            if isinstance(old, GrowingList) and isinstance(new, GrowingList):
                new.begin()
                for flow in new.flows[: max(1, len(old.flows))]:
                    next(plan)
                    results.append(flow)
                continue
            if old is None and new is not None:
                refuse(
                    ValueError,
                    f"{described(symbol)} is not allowed to be None before the loop",
                    do=f"assign a tensor of its later type to {symbol} before the loop",
                )
            if new is None and old is not None:
                refuse(ValueError, f"{described(symbol)} is None at the end of the iteration.")
            same_structure(symbol, old, new, "does not have the same nested structure after one iteration")
            for leaf, value in zip(leaves_of(old), leaves_of(new)):
                if is_carried(leaf):
                    results.append(self._checked(trace, next(plan), leaf, value))
                elif (
                    isinstance(leaf, (str, bytes))
                    and _is_text(value)
                    and not (type(value) is type(leaf) and value == leaf)
                ):
                    self._carry_text(i, leaf)
                elif value is not leaf and value != leaf:
                    refuse(
                        TypeError,
                        f"{described(symbol)} is {leaf!r} before the loop and {value!r} after one iteration: a loop in "
                        "a graph can only change tensors",
                        do="use tf.constant before the loop for values that change",
                    )
        if any(t.shape is not None and not t.shape.is_subtype_of(c.spec.shape) for t, c in zip(results, self.carried)):
            for k, (tensor, variable) in enumerate(zip(results, self.carried)):
                self._wider[k] = common_shape(variable.spec.shape, tensor.shape)
            raise _RecordAgain
        if any(isinstance(v, GrowingList) and v.items.begin_mismatch for v in self.before):
            raise _RecordAgain
        return [*results, *late]

    def _checked(self, trace: FuncTrace, carried: _LoopVariable, old: Any, new: Any) -> SymbolicTensor:
        symbol, spec = carried.name, carried.spec
        tensor: SymbolicTensor
        if new is None:
            refuse(ValueError, f"{described(symbol)} is None at the end of the iteration.")
        if not is_value(new):
            refuse(TypeError, f"{described(symbol)} is a {type(new).__name__} after one iteration, no tensor")
        if isinstance(new, TensorLike):
            tensor = trace.to_tensor(new)
        else:
            try:
                tensor = trace.to_tensor(new, spec.dtype)
            except (TypeError, ValueError, OverflowError):
                tensor = trace.to_tensor(new)
        if tensor.dtype is not spec.dtype:
            refuse(
                TypeError,
                f"{described(symbol)} has dtype {spec.dtype.name} before the loop, but dtype {tensor.dtype.name} after "
                "one iteration",
                do=f"give {symbol} that dtype before the loop, or use tf.cast",
            )
        if not tensor.shape.is_subtype_of(spec.shape) and not self.widens:
            if symbol in self.invariants:
                refuse(
                    ValueError,
                    f"{symbol!r} has shape {tensor.shape} after one iteration, which does not conform with the shape "
                    f"invariant {spec.shape}.",
                )
            refuse(
                ValueError,
                f"{described(symbol)} has shape {spec.shape} before the loop, but shape {tensor.shape} after one "
                "iteration. Use tf.autograph.experimental.set_loop_options to set shape invariants.",
            )
        return tensor

    def _carry_text(self, i: int, text: str | bytes) -> None:
        """Record the loop again, with a string that changes in it as a string tensor."""
        old = self.before[i]
        with self.trace.resumed():
            tensor = self.trace.to_tensor(text)
        flat = [tensor if leaf is text else leaf for leaf in leaves_of(old)]
        self.before[i] = nest.pack_sequence_as(old, flat, expand_composites=True)
        raise _RecordAgain

    def _add_late_variable(self, trace: FuncTrace, i: int, symbol: str, value: Any) -> list[Any]:
        """Add a loop variable for a variable that is first assigned in the body."""
        tensors = []
        for leaf in leaves_of(value):
            if not is_carried(leaf):
                if leaf is not None:
                    refuse(
                        ValueError,
                        f"{symbol!r} must be defined before the loop",
                        found=f"a {type(leaf).__name__} in the loop, which is not a tensor",
                    )
                continue
            tensor = trace.to_tensor(leaf)
            self.late_variables.append(trace.free_placeholder(tensor.spec, symbol))
            tensors.append(tensor)
        self.late_values.append((i, value, len(tensors)))
        if not (is_returned_value(symbol) or is_flag(symbol) or self.never_empty):
            if self.ran is None:
                self.ran = trace.free_placeholder(TensorSpec((), dtypes.bool), "ran")
                self.late_variables.append(self.ran)
                tensors.append(trace.to_tensor(True))
                self.late_values.append((-1, None, 1))
            self.assigned_names.append(symbol)
        return tensors

    # ---- after ------------------------------------------------------------------------------------------------------

    def _assign_results(self, outs: Sequence[Any]) -> None:
        remaining = iter(outs)
        values = self._with_tensors(remaining)
        for i, value, count in self.late_values:
            tensors = iter([next(remaining) for _ in range(count)])
            if i < 0:
                (ran,) = tensors
                Assert(ran, [f"loop must iterate at least once to initialize {', '.join(self.assigned_names)}"])
            else:
                flat = [next(tensors) if is_carried(leaf) else leaf for leaf in leaves_of(value)]
                values[i] = nest.pack_sequence_as(value, flat, expand_composites=True)
        self.variables.set(values)


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or (isinstance(value, TensorLike) and value.dtype is dtypes.string)


def is_carried(leaf: Any) -> bool:
    """Return whether a leaf becomes a tensor of the loop: all numbers do, strings if they change, other objects do
    not.
    """
    return is_value(leaf) and not isinstance(leaf, (str, bytes))


def rows_of(tensor: TensorLike) -> Tensor | int:
    """Return the first size of a tensor: an int if it is known."""
    size = tensor.shape[0] if tensor.shape.rank else None
    return array.shape(tensor)[0] if size is None else size
