"""Staged loops: `while`, and `for` over cursors, as `While` nodes that carry the variables that change.

Lives here: which variables are carried and as what, those born in the body, the errors that name one.
Not here: the node (tracing/control/loops.py), what a `for` runs over (cursors.py).

The body is recorded once. A variable that has no value before the loop, but one after a round, becomes a variable of
the loop afterwards, with a first value that nobody reads: the loop must then run at least once, which is checked when
it is not known, unless the variable is the returned value, which a flag guards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...autograph.handlers import StatementState, Thunk, Unbound, is_flag, is_returned_value
from ...core import dtypes, nest
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...ops import array, dispatch, math
from ...ops.control import Undefined as UndefinedOperator
from ...ops.lists import ListReserve
from ...ops.tensor import TensorLike
from ..control.body import emit_while
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .conditionals import truth
from .cursors import Cursor
from .growing_list import GrowingList, begin_growing, common_shape
from .merge import described, is_value, leaves_of, refuse, same_structure

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

state = dispatch.state
Test = Callable[[Sequence[Any]], Any]
Step = Callable[[Sequence[Any]], Sequence[Any]]


def while_stmt(test: Thunk, body: Thunk, variables: StatementState, options: dict[str, Any]) -> None:
    """The `while` statement."""

    def step(_: Sequence[Any]) -> Sequence[Any]:
        body()
        return ()

    _LoopRecorder(variables, options, "while").run(lambda _: test(), step, [], False)


def run_for(
    cursor: Cursor, go_on: Thunk | None, body: Callable[[Any], Any], variables: StatementState, options: dict[str, Any]
) -> None:
    """The `for` statement over a cursor."""

    def test(position: Sequence[Any]) -> Any:
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
    """The loop is to be recorded once more: with wider shapes, or with what a list has learnt of its items."""


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
        self._wider: dict[int, TensorShape] = {}  # by place among the carried leaves
        invariants = options.get("shape_invariants") or ()
        self.invariants: dict[str, Any] = dict(invariants)
        for symbol in self.invariants:
            if symbol not in self.names:
                refuse(
                    ValueError,
                    f"shape_invariants names {symbol!r}, which is no variable of this loop",
                    found=", ".join(self.names) or "no variables",
                )

    def run(self, test: Test, step: Step, hidden: list[Any], never_empty: bool) -> None:
        """Record the loop and give the variables the values it leaves. hidden: its own variables."""
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
                        if isinstance(value, GrowingList) and value.items.begun_wrong:
                            value.items.begun_wrong = False
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
        own, n = (0 if limit is None else 1), len(hidden)
        self.born: list[SymbolicTensor] = []
        self.born_values: list[tuple[int, Any, int]] = []  # variable, its value after a round, number of leaves
        self.ran_for: list[str] = []
        specs = [TensorSpec(h.shape, h.dtype, "position") for h in hidden] + [c.spec for c in self.carried]

        def flat_cond(*placeholders: Any) -> Any:
            self._set(placeholders[n:])
            goes_on = self._guarded(lambda: test(placeholders[own:n]))
            goes_on = truth(goes_on, "the condition of the loop") if isinstance(goes_on, TensorLike) else bool(goes_on)
            return goes_on if limit is None else math.logical_and(placeholders[0] < limit, goes_on)

        def flat_body(*placeholders: Any) -> list[Any]:
            self._set(placeholders[n:])
            following = list(self._guarded(lambda: step(placeholders[own:n])))
            turn = [p + 1 for p in placeholders[:own]]
            return [*turn, *following, *self._results(self.variables.get())]

        def initials() -> list[Any]:
            first = [c.initial if c.initial is not None else self._empty(c) for c in self.carried]
            unset = [
                dispatch.to_tensor(False) if p is self.ran else UndefinedOperator(dtype=p.dtype, shape=p.shape)
                for p in self.born
            ]
            return [*hidden, *first, *unset]

        self.ran: Any = None
        outs = emit_while(trace, specs, flat_cond, flat_body, initials, self.name, self.born)
        self._leave(outs[n:])

    # ---- before ---------------------------------------------------------------------------------------------------

    def _plan(self, before: list[Any]) -> list[_LoopVariable]:
        carried = []
        for symbol, value in zip(self.names, before):
            if isinstance(value, Unbound):
                continue
            if isinstance(value, GrowingList) and not value.flows:
                carried.append(_LoopVariable(symbol, None, TensorSpec((), dtypes.variant, symbol)))
                continue
            announced = self.invariants.get(symbol)
            leaves = leaves_of(value)
            for k, leaf in enumerate(leaves):
                if is_carried(leaf):
                    tensor = self.trace.to_tensor(leaf)
                    shape = self._announced(symbol, announced, value, k, tensor)
                    shape = self._wider.get(len(carried), shape)
                    carried.append(_LoopVariable(symbol, tensor, TensorSpec(shape, tensor.dtype, symbol)))
        return carried

    def _announced(self, symbol: str, announced: Any, value: Any, k: int, tensor: Any) -> TensorShape:
        if announced is None:
            result: TensorShape = tensor.shape
            return result
        if nest.is_nested(value) and not isinstance(announced, TensorShape) and nest.is_nested(announced):
            announced = nest.flatten(announced)[k]
        shape = as_shape(getattr(announced, "shape", announced))
        if not tensor.shape.is_subtype_of(shape):
            refuse(
                ValueError,
                f"{symbol!r} has shape {tensor.shape} before the loop, which does not conform with the shape "
                f"invariant {shape}.",
            )
        return shape

    def _empty(self, carried: _LoopVariable) -> Tensor:
        (value,) = (v for v, s in zip(self.before, self.names) if s == carried.name)
        specs = value.items.specs if value.items.form is not None else [TensorSpec((), dtypes.float32)]
        return ListReserve(0, element_dtype=specs[0].dtype)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _set(self, tensors: Sequence[Any]) -> None:
        """Give the variables the values they have at the beginning of a round."""
        rest = iter(tensors)
        values: list[Any] = []
        for value in self.before:
            if isinstance(value, Unbound):
                values.append(value)
            elif isinstance(value, GrowingList) and not value.flows:
                values.append(GrowingList(value.items, [next(rest)]))
            else:
                flat = [next(rest) if is_carried(leaf) else leaf for leaf in leaves_of(value)]
                values.append(nest.pack_sequence_as(value, flat, expand_composites=True))
        self.variables.set(values)

    def _guarded(self, ask: Thunk) -> Any:
        try:
            return ask()
        except NameError as error:
            found = re.search("'(.+?)'", str(error))
            undefined = {s for s, v in zip(self.names, self.before) if isinstance(v, Unbound)}
            if found and found[1] in undefined:
                raise ValueError(f"{found[1]!r} must be defined before the loop: {error}") from error
            raise

    def _results(self, after: list[Any]) -> list[Any]:
        """The carried leaves after a round, checked; notes the variables born in it."""
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        plan = iter(self.carried)
        results: list[Any] = []
        born: list[Any] = []
        for i, (symbol, old, new) in enumerate(zip(self.names, self.before, after)):
            if isinstance(old, Unbound):
                if not isinstance(new, Unbound):
                    born.extend(self._born(trace, i, symbol, new))
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
                    do=f"give {symbol} a tensor of its later type before the loop",
                )
            if new is None and old is not None:
                refuse(ValueError, f"{described(symbol)} is None at the end of the iteration.")
            same_structure(symbol, old, new, "does not have the same nested structure after one iteration")
            for leaf, now in zip(leaves_of(old), leaves_of(new)):
                if is_carried(leaf):
                    results.append(self._checked(trace, next(plan), leaf, now))
                elif isinstance(leaf, (str, bytes)) and _is_text(now) and not (type(now) is type(leaf) and now == leaf):
                    self._carry_text(i, leaf)
                elif now is not leaf and now != leaf:
                    refuse(
                        TypeError,
                        f"{described(symbol)} is {leaf!r} before the loop and {now!r} after one iteration: a loop in a "
                        "graph can only change tensors",
                        do="use tf.constant before the loop for values that change",
                    )
        if any(t.shape is not None and not t.shape.is_subtype_of(c.spec.shape) for t, c in zip(results, self.carried)):
            for k, (tensor, one) in enumerate(zip(results, self.carried)):
                self._wider[k] = common_shape(one.spec.shape, tensor.shape)
            raise _RecordAgain
        if any(isinstance(v, GrowingList) and v.items.begun_wrong for v in self.before):
            raise _RecordAgain
        return [*results, *born]

    def _checked(self, trace: FuncTrace, carried: _LoopVariable, old: Any, new: Any) -> Any:
        symbol, spec = carried.name, carried.spec
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
        """Record the loop once more, with a text that changes in it as a string tensor."""
        old = self.before[i]
        with self.trace.resumed():
            tensor = self.trace.to_tensor(text)
        flat = [tensor if leaf is text else leaf for leaf in leaves_of(old)]
        self.before[i] = nest.pack_sequence_as(old, flat, expand_composites=True)
        raise _RecordAgain

    def _born(self, trace: FuncTrace, i: int, symbol: str, value: Any) -> list[Any]:
        """A variable that has its first value inside: a further variable of the loop."""
        tensors = []
        for leaf in leaves_of(value):
            if not is_carried(leaf):
                if leaf is not None:
                    refuse(
                        ValueError,
                        f"{symbol!r} must be defined before the loop",
                        found=f"a {type(leaf).__name__} in the loop, which is no tensor",
                    )
                continue
            tensor = trace.to_tensor(leaf)
            self.born.append(trace.free_placeholder(tensor.spec, symbol))
            tensors.append(tensor)
        self.born_values.append((i, value, len(tensors)))
        if not (is_returned_value(symbol) or is_flag(symbol) or self.never_empty):
            if self.ran is None:
                self.ran = trace.free_placeholder(TensorSpec((), dtypes.bool), "ran")
                self.born.append(self.ran)
                tensors.append(trace.to_tensor(True))
                self.born_values.append((-1, None, 1))
            self.ran_for.append(symbol)
        return tensors

    # ---- after ------------------------------------------------------------------------------------------------------

    def _leave(self, outs: Sequence[Any]) -> None:
        rest = iter(outs)
        values: list[Any] = []
        for value in self.before:
            if isinstance(value, Unbound):
                values.append(value)
            elif isinstance(value, GrowingList) and not value.flows:
                values.append(GrowingList(value.items, [next(rest)]))
            else:
                flat = [next(rest) if is_carried(leaf) else leaf for leaf in leaves_of(value)]
                values.append(nest.pack_sequence_as(value, flat, expand_composites=True))
        for i, value, count in self.born_values:
            tensors = iter([next(rest) for _ in range(count)])
            if i < 0:
                (ran,) = tensors
                from ...ops.debugging import Assert

                Assert(ran, [f"loop must iterate at least once to initialize {', '.join(self.ran_for)}"])
            else:
                flat = [next(tensors) if is_carried(leaf) else leaf for leaf in leaves_of(value)]
                values[i] = nest.pack_sequence_as(value, flat, expand_composites=True)
        self.variables.set(values)


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or (isinstance(value, TensorLike) and value.dtype is dtypes.string)


def is_carried(leaf: Any) -> bool:
    """Whether a leaf becomes a tensor of the loop: all numbers do, text if it changes; other objects stay the same."""
    return is_value(leaf) and not isinstance(leaf, (str, bytes))


def rows_of(tensor: Any) -> Any:
    """The first size of a tensor: an int where it is known."""
    size = tensor.shape[0] if tensor.shape.rank else None
    return array.shape(tensor)[0] if size is None else size
