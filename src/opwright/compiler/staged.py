"""Python's control flow on a kernel's scalars: `if`, `while`, `for` over a range, `and`, `or`, `not`, `a if c else b`.

Lives here: `KernelStage`, its registration.  Not here: rewriting Python (staging/), what scalars are (scalars.py).

A scalar stands for several elements at once, so both branches of an `if` are computed, and each element keeps what its
own condition chose; a loop runs as long as one element goes on, and those that do not keep what they have. `return`,
`break` and `continue` come as variables that the rewriting makes. Values are pure: one computed in vain does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import SignatureError
from ..ops import dispatch
from ..staging.stages import (
    Options,
    Stage,
    State,
    Thunk,
    Undefined,
    is_returned_value,
    register_stage,
)
from .lane_functions import select
from .lanes import I1, I64, Lanes, constant
from .polling import spend
from .scalars import KernelScalar, KernelTrace, LaterNumber

_NUMBERS = (int, float, LaterNumber)


class LaneRange:
    """`range` where a limit is a scalar of a kernel, an integer. step is a Python int, and not 0."""

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step


def _trace() -> KernelTrace:
    trace = dispatch.state.trace
    assert isinstance(trace, KernelTrace)
    return trace


def _mask(value: Any) -> Lanes:
    """A condition as a mask; a number is true where it is not 0."""
    scalar = _trace().to_tensor(value)
    return scalar.lanes if scalar.dtype is dtypes.bool else scalar.lanes != 0


class KernelStage(Stage):
    """Control flow of kernels."""

    def claims(self, value: Any) -> bool:
        return isinstance(dispatch.state.trace, KernelTrace)

    def if_stmt(self, test: Any, body: Thunk, orelse: Thunk | None, state: State, options: Options) -> None:
        mask = _mask(test)
        before = state.get()
        body()
        after = state.get()
        state.set(before)
        if orelse is not None:
            orelse()
        other = state.get()
        state.set([_chosen(name, mask, a, b) for name, a, b in zip(state.names, after, other)])

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        return _chosen("the conditional expression", _mask(test), body(), orelse())

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> Any:
        return _scalar(_mask(left) & _mask(right()))

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> Any:
        return _scalar(_mask(left) | _mask(right()))

    def logical_not(self, value: Any) -> Any:
        return _scalar(~_mask(value))

    def while_stmt(self, test: Thunk, body: Thunk, state: State, options: Options) -> None:
        _Loop(test, body, state).run()

    def for_stmt(
        self, items: Any, go_on: Thunk | None, body: Callable[[Any], Any], state: State, options: Options
    ) -> None:
        if not isinstance(items, LaneRange):
            raise TypeError(f"a for statement of a kernel runs over a range; found {type(items).__name__}")
        counter = _Counter(items)

        def test() -> Any:
            inside = _mask(counter.value < items.stop if items.step > 0 else counter.value > items.stop)
            return _scalar(inside if go_on is None else inside & _mask(go_on()))

        def turn() -> None:
            item = counter.value
            counter.value = _following(item, items.step)
            body(item)

        _Loop(test, turn, state, counter).run()

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name == "range":
            start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
            if not isinstance(step, int):
                raise TypeError(f"the step of a kernel's range is a Python int, found {step!r}")
            if step == 0:
                raise ValueError("range() arg 3 must not be zero")
            for limit in (start, stop):
                if isinstance(limit, float) or (isinstance(limit, KernelScalar) and not limit.dtype.is_integer):
                    raise TypeError(f"a range counts integers, found {limit!r}")
            return LaneRange(start, stop, step)
        return NotImplemented


class _Counter:
    """The variable of a `for`, which the loop carries."""

    def __init__(self, items: LaneRange) -> None:
        stop = _trace().to_tensor(items.stop)
        self.value: Any = _trace().to_tensor(items.start, stop.dtype)


def _following(item: Any, step: int) -> Any:
    """The number of a range that follows an item; past the end of the integers it is that end, which ends the range."""
    least, most = int(item.dtype.min), int(item.dtype.max)
    if step > 1:
        last = item.lanes.full(most - step)
        item = KernelScalar(select(item.lanes > last, last, item.lanes), item.dtype)
    elif step < -1:
        last = item.lanes.full(least - step)
        item = KernelScalar(select(item.lanes < last, last, item.lanes), item.dtype)
    return item + step


def _scalar(mask: Lanes) -> KernelScalar:
    return KernelScalar(mask, dtypes.bool)


def _pair(name: str, a: Any, b: Any) -> tuple[KernelScalar, KernelScalar]:
    """Two values as scalars of one dtype. Raises SignatureError naming the variable."""
    trace = _trace()
    if not isinstance(a, KernelScalar):
        b = trace.to_tensor(b)
        a = trace.to_tensor(a, b.dtype if isinstance(a, _NUMBERS) and not isinstance(a, bool) else None)
    else:
        b = trace.to_tensor(b, a.dtype if isinstance(b, _NUMBERS) and not isinstance(b, bool) else None)
    if a.dtype is not b.dtype:
        raise SignatureError(op=trace.name, what=f"{name} has another dtype after one branch or turn than another",
                             found=f"{a.dtype.name} and {b.dtype.name}", do="ow.cast one of them")  # fmt: skip
    return a, b


def _chosen(name: str, mask: Lanes, a: Any, b: Any) -> Any:
    """a where the mask holds, else b. What one of them leaves unset is unset, but for a returned value."""
    if a is b:
        return a
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        if is_returned_value(name):  # where nothing was returned nobody looks at it
            return b if isinstance(a, Undefined) else a
        return Undefined(name)
    if isinstance(a, LaneRange) or not isinstance(a, KernelScalar | int | float | LaterNumber):
        raise SignatureError(op=_trace().name, what=f"{name} depends on a scalar's value and is no scalar",
                             found=type(a).__name__)  # fmt: skip
    one, other = _pair(name, a, b)
    return KernelScalar(select(mask, one.lanes, other.lanes), one.dtype)


class _Loop:
    """One staged loop: its test and body, and the variables that a turn may change.

    counter: of a `for`, carried with them.
    """

    def __init__(self, test: Thunk, body: Thunk, state: State, counter: _Counter | None = None) -> None:
        self.test, self.body, self.state, self.counter = test, body, state, counter
        self.trace = _trace()
        self.names = [*state.names, *(["the range's counter"] if counter is not None else [])]

    def values(self) -> list[Any]:
        return [*self.state.get(), *([self.counter.value] if self.counter is not None else ())]

    def give(self, values: list[Any]) -> None:
        if self.counter is not None:
            *values, self.counter.value = values
        self.state.set(values)

    def dtypes(self, start: list[Any]) -> dict[int, DType]:
        """The variables that a turn changes, by place, and their dtypes: found by turns in blocks nobody reaches.

        A variable that starts as a Python number is a scalar in the turns: what it decides may change others, too.
        """
        found: dict[int, DType] = {}
        while True:
            more = {**found, **self._probe(start, found)}
            numbers = [i for i in more.keys() - found.keys() if not isinstance(start[i], KernelScalar)]
            found = more
            if not numbers:
                return found

    def _probe(self, start: list[Any], known: dict[int, DType]) -> dict[int, DType]:
        """What one turn changes. known: variables that are known to change."""
        b, here = self.trace.builder, self.trace.builder.block
        b.position_at_end(b.append_basic_block("while.probe"))
        probed = [KernelScalar(v.lanes, v.dtype) if isinstance(v, KernelScalar) else v for v in start]
        for i, dtype in known.items():
            if not isinstance(start[i], KernelScalar):
                probed[i] = self.trace.to_tensor(0 if isinstance(start[i], Undefined) else start[i], dtype)
        self.give(probed)  # an object of its own each: two variables may hold one value
        _mask(self.test())
        self.body()
        after = self.values()
        b.unreachable()
        b.position_at_end(here)
        self.give(start)
        found = {}
        for i, (was, now) in enumerate(zip(probed, after)):
            if was is now or (isinstance(now, Undefined) and isinstance(was, Undefined)):
                continue
            found[i] = (_pair(self.names[i], was, now)[0] if isinstance(was, KernelScalar | int | float)
                        else self.trace.to_tensor(now)).dtype  # fmt: skip
        return found

    def run(self) -> None:
        """While the test holds in one element: the body, for those where it has held in all turns so far."""
        trace, b, start = self.trace, self.trace.builder, self.values()
        found = self.dtypes(start)
        first = {i: trace.to_tensor(0 if isinstance(start[i], Undefined) else start[i], dtype)
                 for i, dtype in found.items()}  # fmt: skip
        entry = b.block
        head, turn, done = (b.append_basic_block(f"while.{part}") for part in ("head", "turn", "done"))
        b.branch(head)
        b.position_at_end(head)
        active = b.phi(constant(I1, True, trace.count).type, "active")
        phis = {i: b.phi(v.lanes.x.type, self.names[i].strip("_").replace(" ", ".")) for i, v in first.items()}
        held = {i: KernelScalar(Lanes(b, phi), found[i]) for i, phi in phis.items()}
        now = [held.get(i, v) for i, v in enumerate(start)]
        self.give(now)
        mask = Lanes(b, active) & _mask(self.test())
        b.cbranch(mask.any(), turn, done)
        b.position_at_end(turn)
        self.body()
        after = self.values()
        changed = {i: _chosen(self.names[i], mask, after[i], v) for i, v in held.items()}
        if trace.polls:
            spend(trace, ir.Constant(I64, 1))
        end = b.block
        b.branch(head)
        active.add_incoming(constant(I1, True, trace.count), entry)
        active.add_incoming(mask.x, end)
        for i, phi in phis.items():
            phi.add_incoming(first[i].lanes.x, entry)
            phi.add_incoming(changed[i].lanes.x, end)
        b.position_at_end(done)
        unset = [i for i, v in enumerate(start) if isinstance(v, Undefined) and not is_returned_value(self.names[i])]
        self.give([Undefined(self.names[i]) if i in unset else v for i, v in enumerate(now)])


STAGE = KernelStage()
register_stage(KernelScalar, STAGE)
register_stage(LaneRange, STAGE)
