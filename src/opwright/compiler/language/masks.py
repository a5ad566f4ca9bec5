"""Control flow on scalars that represent several elements, by if-conversion: both branches run, and masks select.

Lives here: the policy `MASKS`, for `KernelScalar`.
Not here: ranges and conditions (control.py), the other policy (branches.py), scalars (operators.py).

Each element has the results of its own branch. A loop runs while it continues for any element; the variables of the
other elements are unchanged. AutoGraph replaces `return`, `break` and `continue` by variables. Values have no side
effects, so computing unused ones is harmless.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...autograph.handlers import StatementOptions, StatementState, Thunk, Unbound, is_returned_value, register_handler
from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import SignatureError
from .control import ZERO_STEP, ControlFlow, InductionVariable, LoopRange, spend
from .functions import any as some
from .llvm_types import I64, number
from .operators import ElementTrace, KernelScalar, LaterNumber
from .trace import current
from .values import Value, select

_NUMBERS = (int, float, LaterNumber)


class ElementRange(LoopRange):
    """A `range` with limits that are integer scalars of a kernel. step: a Python int other than 0."""

    def __init__(self, start: Any, stop: Any, step: Any = 1) -> None:
        if not isinstance(step, int):
            raise TypeError(f"the step of a kernel's range is a Python int, found {step!r}")
        if step == 0:
            raise ValueError(ZERO_STEP)
        for limit in (start, stop):
            if isinstance(limit, float) or (isinstance(limit, KernelScalar) and not limit.dtype.is_integer):
                raise TypeError(f"a range counts integers, found {limit!r}")
        self.start, self.stop, self.step = start, stop, step


def _trace() -> ElementTrace:
    trace = current()
    assert isinstance(trace, ElementTrace)
    return trace


class Masks(ControlFlow):
    """The policy of scalars: conditions are masks."""

    range_type = ElementRange

    def condition(self, x: Any) -> Value:
        value = _trace().to_tensor(x).value
        return value if value.dtype.is_bool else value != 0

    def of_condition(self, x: Value) -> KernelScalar:
        return KernelScalar.of(x)

    def if_stmt(
        self, test: Any, body: Thunk, orelse: Thunk | None, state: StatementState, options: StatementOptions
    ) -> None:
        mask = self.condition(test)
        before = state.get()
        body()
        after = state.get()
        state.set(before)
        if orelse is not None:
            orelse()
        other = state.get()
        state.set([_select(name, mask, a, b) for name, a, b in zip(state.names, after, other)])

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        return _select("the conditional expression", self.condition(test), body(), orelse())

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        _MaskedLoop(lambda: self.condition(test()), body, state).run()

    def count(self, items: LoopRange, go_on: Thunk | None, body: Callable[[Any], Any], state: StatementState) -> None:
        start, stop = _scalars(items.start, items.stop)
        if start.dtype is not stop.dtype:
            kinds = f"{start.dtype.name} and {stop.dtype.name}"
            raise SignatureError(
                op=_trace().name, what="the limits of a range differ in dtype", found=kinds, do="ow.cast one of them"
            )
        steps = InductionVariable(ElementRange(start.value, stop.value, items.step))
        counter = _Counter(start)

        def test() -> Value:
            _trace().mark_line()
            inside = steps.inside(counter.value.value)
            return inside if go_on is None else inside & self.condition(go_on())

        def iteration() -> None:
            item = counter.value
            _trace().mark_line()
            counter.value = KernelScalar.of(steps.after(item.value))
            body(item)

        _MaskedLoop(test, iteration, state, counter).run()


class _Counter:
    """The induction variable of a `for`, which the loop carries."""

    def __init__(self, value: KernelScalar) -> None:
        self.value = value


def _scalars(a: Any, b: Any) -> tuple[KernelScalar, KernelScalar]:
    """Return two values as scalars; a Python number takes the dtype of the other one."""
    trace = _trace()
    if not isinstance(a, KernelScalar):
        b = trace.to_tensor(b)
        return trace.to_tensor(a, b.dtype if isinstance(a, _NUMBERS) and not isinstance(a, bool) else None), b
    return a, trace.to_tensor(b, a.dtype if isinstance(b, _NUMBERS) and not isinstance(b, bool) else None)


def _pair(name: str, a: Any, b: Any) -> tuple[KernelScalar, KernelScalar]:
    """Return two values as scalars of one dtype. Raises SignatureError naming the variable."""
    a, b = _scalars(a, b)
    if a.dtype is not b.dtype:
        what = f"{name} has another dtype after one branch or iteration than another"
        kinds = f"{a.dtype.name} and {b.dtype.name}"
        raise SignatureError(op=_trace().name, what=what, found=kinds, do="ow.cast one of them")
    return a, b


def _select(name: str, mask: Value, a: Any, b: Any) -> Any:
    """Select the value of a variable by a mask. It is unset if a branch leaves it unset, except a returned value."""
    if a is b:
        return a
    if isinstance(a, Unbound) or isinstance(b, Unbound):
        if is_returned_value(name):  # it is not read in elements that have not returned
            return b if isinstance(a, Unbound) else a
        return Unbound(name)
    if isinstance(a, LoopRange) or not isinstance(a, KernelScalar | int | float | LaterNumber):
        what = f"{name} depends on a scalar's value and is not a scalar"
        raise SignatureError(op=_trace().name, what=what, found=type(a).__name__)
    one, other = _pair(name, a, b)
    return KernelScalar.of(select(mask, one.value, other.value))


class _MaskedLoop:
    """A loop being staged: its test, its body and the variables that an iteration may change.

    counter: the induction variable of a `for`, carried with them.
    """

    def __init__(
        self, test: Callable[[], Value], body: Thunk, state: StatementState, counter: _Counter | None = None
    ) -> None:
        self.test, self.body, self.state, self.counter = test, body, state, counter
        self.trace = _trace()
        self.names = [*state.names, *(["the range's counter"] if counter is not None else [])]

    def get(self) -> list[Any]:
        """Return the values of the variables."""
        return [*self.state.get(), *([self.counter.value] if self.counter is not None else ())]

    def set(self, values: list[Any]) -> None:
        """Set the variables."""
        if self.counter is not None:
            *values, self.counter.value = values
        self.state.set(values)

    def changed(self, start: list[Any]) -> dict[int, DType]:
        """Return the dtypes of the variables that an iteration changes, by index, from iterations in dead blocks.

        A variable that starts as a Python number is a scalar in later iterations, in which it may affect others: the
        iterations are repeated until no more variables change.
        """
        dtypes_of: dict[int, DType] = {}
        while True:
            extended = {**dtypes_of, **self._probe(start, dtypes_of)}
            numbers = [i for i in extended.keys() - dtypes_of.keys() if not isinstance(start[i], KernelScalar)]
            dtypes_of = extended
            if not numbers:
                return dtypes_of

    def _first(self, x: Any, dtype: DType) -> KernelScalar:
        """Return the value of a variable before the first iteration; 0 if it is unset."""
        return self.trace.to_tensor(0 if isinstance(x, Unbound) else x, dtype)

    def _probe(self, start: list[Any], changing: dict[int, DType]) -> dict[int, DType]:
        """Return the dtypes of the variables that one iteration changes. changing: the result so far."""
        b, block = self.trace.builder, self.trace.builder.block
        b.position_at_end(b.append_basic_block("while.probe"))
        probed = [KernelScalar.of(v) if isinstance(v, KernelScalar) else v for v in start]
        for i, dtype in changing.items():
            if not isinstance(start[i], KernelScalar):
                probed[i] = self._first(start[i], dtype)
        self.set(probed)  # distinct objects, also for variables with one value
        self.test()
        self.body()
        after = self.get()
        b.unreachable()
        b.position_at_end(block)
        self.set(start)
        changed = {}
        for i, (was, now) in enumerate(zip(probed, after)):
            if was is now or (isinstance(now, Unbound) and isinstance(was, Unbound)):
                continue
            alike = isinstance(was, KernelScalar | int | float)
            changed[i] = (_pair(self.names[i], was, now)[0] if alike else self.trace.to_tensor(now)).dtype
        return changed

    def run(self) -> None:
        """Stage the loop: it runs while the test is true for any element, and changes only active elements."""
        trace, b, start = self.trace, self.trace.builder, self.get()
        kinds = self.changed(start)
        first = {i: self._first(start[i], dtype).splat(trace.count) for i, dtype in kinds.items()}
        entry, everywhere = b.block, number(dtypes.bool, True, trace.count)
        head, iteration, done = (b.append_basic_block(f"while.{part}") for part in ("head", "turn", "done"))
        b.branch(head)
        b.position_at_end(head)
        active = b.phi(everywhere.type, "active")
        phis = {i: b.phi(v.x.type, self.names[i].strip("_").replace(" ", ".")) for i, v in first.items()}
        scalars = {i: KernelScalar(phi, kinds[i]) for i, phi in phis.items()}
        now = [scalars.get(i, v) for i, v in enumerate(start)]
        self.set(now)
        mask = Value(active, dtypes.bool) & self.test()
        b.cbranch(some(mask).x, iteration, done)
        b.position_at_end(iteration)
        self.body()
        after = self.get()
        changed = {i: _select(self.names[i], mask, after[i], v) for i, v in scalars.items()}
        if trace.polls:
            spend(trace, ir.Constant(I64, 1))
        end = b.block
        b.branch(head)
        active.add_incoming(everywhere, entry)
        active.add_incoming(mask.x, end)
        for i, phi in phis.items():
            phi.add_incoming(first[i].x, entry)
            phi.add_incoming(changed[i].x, end)
        b.position_at_end(done)
        unset = [i for i, v in enumerate(start) if isinstance(v, Unbound) and not is_returned_value(self.names[i])]
        self.set([Unbound(self.names[i]) if i in unset else v for i, v in enumerate(now)])


MASKS = Masks()
for _kind in (KernelScalar, ElementRange, LaterNumber):
    register_handler(_kind, MASKS)
