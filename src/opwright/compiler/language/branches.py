"""Control flow on scalar conditions, by branches and loops of LLVM.

Lives here: the policy `BRANCHES`, for the language's values; `conditional`, `while_loop`, `fail_if`, control flow as
functions of lists of values, for kernels whose program is data instead of Python.
Not here: ranges and conditions (control.py), the other policy (elements.py).

Variables that a loop or a branch changes are stored on the stack, which LLVM promotes to registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

from llvmlite import ir

from ...autograph.handlers import StatementOptions, StatementState, Thunk, Unbound, is_returned_value, register_handler
from ...core import dtypes
from ...core.errors import SignatureError
from .bounds_checks import BoundedPointer
from .control import TURNS, ControlFlow, InductionVariable, LoopRange, carried, spend
from .llvm_types import I64, POINTER, number
from .pointers import Pointer, allocate
from .trace import current
from .values import Value, maximum, minimum, select, value
from .vectors import EXPECT


class _StackVariable:
    """Stack memory of a variable that a loop or branch changes. like: a value of its type."""

    def __init__(self, like: Any) -> None:
        self.like = like
        stored = value(like.start) if isinstance(like, BoundedPointer) else like
        self.slot = allocate(POINTER if isinstance(stored, Pointer) else stored.x.type)

    def put(self, name: str, x: Any) -> None:
        """Store a value. Raises SignatureError naming the variable for a value of another type."""
        x = carried(x, self.like)
        if isinstance(self.like, BoundedPointer):
            if not self.like.same_memory(x):
                raise SignatureError(
                    op=current().name,
                    what=f"{name} points into other memory after an iteration than before",
                    do="index the memory instead",
                )
            current().builder.put(self.slot, value(x.start).x)
            return
        alike = isinstance(x, Pointer) == isinstance(self.like, Pointer) and x.dtype is self.like.dtype
        if not alike or (isinstance(x, Value) and x.count != self.like.count):
            raise SignatureError(
                op=current().name,
                what=f"{name} has another type after an iteration than before",
                found=f"{self.like!r}, then {x!r}",
                do="start with a value of that type",
            )
        current().builder.put(self.slot, x.x)

    def get(self) -> Value | Pointer:
        """Load the value."""
        b = current().builder
        if isinstance(self.like, BoundedPointer):
            return self.like.moved(Value(b.get(self.slot, I64), dtypes.int64))
        if isinstance(self.like, Pointer):
            return Pointer(b.get(self.slot, POINTER), self.like.dtype, self.like.dtype.size)
        return Value(b.get(self.slot, self.like.x.type), self.like.dtype)


def _variables(state: StatementState) -> tuple[list[str], Callable[[], list[Any]], Callable[[list[Any]], None]]:
    """Return a state's plain variables: names, getter, setter. Items and attributes are memory."""
    count = len(state.cells)
    plain = StatementState()
    plain.cells, plain.names = state.cells, state.names[:count]
    return list(plain.names), plain.get, plain.set


LIKELY = 2000
"""Branch weight of a condition that is `likely`, the one that LLVM uses."""


def _condition(x: Any) -> Value:
    if isinstance(x, Value):
        if x.count:
            raise TypeError("a vector decides no branch: kl.any(mask), kl.all(mask) or kl.select")
        return x if x.dtype.is_bool else x != 0
    return Value(number(dtypes.bool, bool(x)), dtypes.bool)


class Branches(ControlFlow):
    """The policy of values: conditions are scalars."""

    def condition(self, x: Any) -> Value:
        return _condition(x)

    def if_stmt(
        self, test: Any, body: Thunk, orelse: Thunk | None, state: StatementState, options: StatementOptions
    ) -> None:
        b = current().builder
        names, get, put = _variables(state)
        before = get()
        ends: list[tuple[ir.Block, list[Any]]] = []
        blocks = [b.append_basic_block("if.then"), b.append_basic_block("if.else")]
        joined = b.append_basic_block("if.end")
        condition = _condition(test).x
        branching = b.cbranch(condition, *blocks)
        if getattr(getattr(condition, "callee", None), "name", "") == EXPECT:  # the pass that lowers it does not run
            branching.set_weights([LIKELY, 1])
        for block, branch in zip(blocks, (body, orelse)):
            b.position_at_end(block)
            put(before)
            if branch is not None:
                branch()
            ends.append((b.block, get()))
        merged: list[Any] = []
        for name, one, other in zip(names, ends[0][1], ends[1][1]):
            if one is other or _same_number(one, other):
                merged.append(one)
            elif isinstance(one, Unbound) or isinstance(other, Unbound):
                bound = other if isinstance(one, Unbound) else one
                merged.append(bound if is_returned_value(name) else Unbound(name))
            else:
                like = next((x for x in (one, other) if isinstance(x, Value | Pointer)), None)
                if like is None:
                    like = carried(one)
                if isinstance(like, Value) and isinstance(other, Value) and other.count > like.count:
                    like = other
                if like is None:
                    raise SignatureError(
                        op=current().name,
                        what=f"{name} depends on a branch and is not a value of the kernel",
                        found=f"{one!r}, {other!r}"[:200],
                    )
                variable = _StackVariable(like)
                for (block, _), x in zip(ends, (one, other)):
                    b.position_at_end(block)
                    variable.put(name, x)
                merged.append(variable)
        for block, _ in ends:
            b.position_at_end(block)
            b.branch(joined)
        b.position_at_end(joined)
        put([x.get() if isinstance(x, _StackVariable) else x for x in merged])

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        if isinstance(test, Value):
            return select(test, body(), orelse())
        return body() if test else orelse()

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        _stage_loop(test, _polling(body) if current().polls else body, state)

    def count(self, items: LoopRange, go_on: Thunk | None, body: Callable[[Any], Any], state: StatementState) -> None:
        steps = InductionVariable(items)
        narrow = steps.dtype is dtypes.int64 and not steps.anything and not isinstance(items.step, Value)
        narrow = narrow and current().target.counts_by_32_bits
        if narrow:  # 64-bit sums and comparisons take several instructions each
            start, stop = steps.start.to(dtypes.int32), steps.stop.to(dtypes.int32)
            steps = InductionVariable(LoopRange(start, stop, items.step))
        counter = _StackVariable(steps.start)
        counter.put("the range's counter", steps.start)

        def index() -> Value:
            i = counter.get()
            assert isinstance(i, Value)
            return i

        def both(inside: Value) -> Value:
            return inside if go_on is None else inside & self.condition(go_on())

        def test() -> Value:
            return both(steps.inside(index()))

        def iteration() -> None:
            i = index()
            body(i.to(dtypes.int64) if narrow else i)
            counter.put("the range's counter", steps.after(i))

        def strip(step: int) -> None:
            """Run a strip of iterations without polling, then poll once."""
            first = index()
            end = _strip_end(first, steps.stop, step)
            _stage_loop(lambda: both(index() < end if step > 0 else index() > end), iteration, state)
            spend(current(), _distance(first, index()))

        step = items.step
        if not current().polls:
            _stage_loop(test, iteration, state)
        elif isinstance(step, Value):
            _stage_loop(test, _polling(iteration), state)
        else:
            _stage_loop(test, lambda: strip(step), state)

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in ("min", "max") and len(args) > 1:
            extreme, result = (minimum if name == "min" else maximum), args[0]
            for x in args[1:]:
                result = extreme(result, x)
            return result
        return super().builtin(name, args, kwargs)


def _polling(body: Thunk) -> Thunk:
    """Return the body of a loop with a poll after it."""

    def iteration() -> None:
        body()
        spend(current(), ir.Constant(I64, 1))

    return iteration


def _strip_end(i: Value, stop: Value, step: int) -> Value:
    """Return the end of the strip of a range that begins with i and runs without a poll."""
    low, high, length = int(i.dtype.min), int(i.dtype.max), TURNS * abs(step)
    if length > high:
        return stop  # the dtype has no longer range
    if step > 0:
        return select(i > high - length, stop, minimum(stop, i + length))
    return select(i < low + length, stop, maximum(stop, i - length))


def _distance(first: Value, last: Value) -> ir.Value:
    """Return the distance between two numbers of a range as an int64; it does not overflow for a strip."""
    b = current().builder
    wide = b.sub(last.to(dtypes.int64).x, first.to(dtypes.int64).x)
    return b.select(b.icmp_signed("<", wide, ir.Constant(I64, 0)), b.neg(wide), wide)


def _same_number(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, int | float | str | None.__class__) and one == other


def _stage_loop(test: Thunk, body: Thunk, state: StatementState) -> None:
    """Stage `while test(): body()`."""
    b = current().builder
    names, get, put = _variables(state)
    before = get()
    variables: list[_StackVariable | None] = []
    for name, x in zip(names, before):
        unset = isinstance(x, Unbound)  # a returned value is not read before it is set: any initial value will do
        like = carried(0) if unset and is_returned_value(name) else None if unset else carried(x)
        variable = None if like is None else _StackVariable(like)
        if variable is not None:
            variable.put(name, like)
        variables.append(variable)

    def refresh() -> None:
        put([x if variable is None else variable.get() for variable, x in zip(variables, before)])

    head, iteration, done = (b.append_basic_block(f"loop.{part}") for part in ("head", "turn", "end"))
    b.branch(head)
    b.position_at_end(head)
    refresh()
    b.cbranch(_condition(test()).x, iteration, done)
    b.position_at_end(iteration)
    body()
    for name, variable, x in zip(names, variables, get()):
        if variable is not None and not isinstance(x, Unbound):
            variable.put(name, x)
    b.branch(head)
    b.position_at_end(done)
    refresh()


BRANCHES = Branches()
register_handler(Value, BRANCHES)
register_handler(LoopRange, BRANCHES)

Values = list[Value]


def _state_of(count: int, values: Sequence[Value] = ()) -> StatementState:
    """Return the state of a statement on `count` variables, which are unset without values."""
    state = StatementState()
    cells = [CellType(v) for v in values] or [CellType() for _ in range(count)]
    state.cells = [(f"variable {i}", cell) for i, cell in enumerate(cells)]
    state.names = tuple(name for name, _ in state.cells)
    return state


def conditional(test: Value, then: Callable[[], Values], otherwise: Callable[[], Values], count: int) -> Values:
    """Stage both functions as branches; return the `count` values that the chosen one returns. test: a bool."""
    state = _state_of(count)
    BRANCHES.if_stmt(test, lambda: state.set(then()), lambda: state.set(otherwise()), state, StatementOptions())
    return state.get()


def while_loop(test: Callable[[Values], Value], body: Callable[[Values], Values], values: Sequence[Value]) -> Values:
    """Stage a loop that replaces the values by body(values) while test(values); return the last ones.

    The loop polls for signals if code of this process does.
    """
    state, polls = _state_of(len(values), values), current().functions_poll

    def iteration() -> None:
        state.set(body(state.get()))
        if polls:
            spend(current(), ir.Constant(I64, 1))

    BRANCHES.while_stmt(lambda: test(state.get()), iteration, state, StatementOptions())
    return state.get()


def fail_if(failed: Value, status: int) -> None:
    """End the kernel with a status if a bool is true."""
    b = current().builder
    ending, on = b.append_basic_block("failed"), b.append_basic_block("passed")
    b.cbranch(failed.x, ending, on)
    b.position_at_end(ending)
    b.ret(ir.Constant(I64, status))
    b.position_at_end(on)
