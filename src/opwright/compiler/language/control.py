"""Control flow of kernels: the semantics of `range`, `for`, `and`, `or`, `not` and conditional expressions on values.

Lives here: `LoopRange`, `loop`, `InductionVariable`, `ControlFlow`, the common part of both policies; `spend`, the
polls of loops.
Not here: rewriting Python (autograph/); the policies: branches and loops for scalars (branches.py), masks for scalars
that represent several elements (elements.py); the poll itself (../native/workers.py).

Python numbers decide control flow during staging: `for i in range(4)` is unrolled.

A poll is a call. A loop that called in each iteration would be slower, so a kernel has a budget, from which loops
subtract their iterations; when it is used up, the kernel polls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, overload

from llvmlite import ir

from ...autograph.handlers import ControlFlowHandler, StatementOptions, StatementState, Thunk
from ...core import dtypes
from ..native.image import POLL
from .llvm_types import I64, number
from .pointers import Pointer
from .trace import current
from .values import Value, maximum, minimum, select, value

ZERO_STEP = "range() arg 3 must not be zero"


class LoopRange:
    """A range that is executed by a loop. start, stop, step: Python integers or integer values of the kernel.

    raises TypeError for other types, ValueError for a step of 0
    """

    def __init__(self, start: Any, stop: Any, step: Any = 1) -> None:
        for limit in (start, stop, step):
            integer = isinstance(limit, int) or (
                isinstance(limit, Value) and not (limit.dtype.is_floating or limit.dtype.is_bool or limit.count)
            )
            if not integer:
                raise TypeError(f"a range counts integers, found {limit!r}")
        if isinstance(step, int) and step == 0:
            raise ValueError(ZERO_STEP)
        self.start: Value | int = start
        self.stop: Value | int = stop
        self.step: Value | int = step

    if TYPE_CHECKING:  # AutoGraph converts the for statement

        def __iter__(self) -> Iterator[Any]: ...


def loop(start: Any, stop: Any = None, step: Any = 1) -> LoopRange:
    """Return a range that is executed by a loop even if its limits are Python numbers."""
    return LoopRange(0, start, step) if stop is None else LoopRange(start, stop, step)


@overload
def carried(x: Value | float, like: Value | None = None) -> Value: ...
@overload
def carried(x: Any, like: Any = None) -> Value | Pointer | None: ...
def carried(x: Any, like: Any = None) -> Value | Pointer | None:
    """Return x as the value of a variable that control flow changes; None if it cannot be one.

    like: a value whose dtype and lanes Python numbers take.
    """
    if isinstance(x, Value | Pointer):
        if isinstance(x, Value) and isinstance(like, Value) and not x.count and like.count and x.dtype is like.dtype:
            return x.splat(like.count)
        return x
    if isinstance(x, bool):
        return Value(number(dtypes.bool, x), dtypes.bool)
    if isinstance(x, int | float):
        if isinstance(like, Value):
            return Value(number(like.dtype, x, like.count), like.dtype)
        return value(x, dtypes.int64 if isinstance(x, int) else dtypes.float32)
    return None


class ControlFlow(ControlFlowHandler):
    """Control flow of kernels. The policies define conditions, `if` and loops."""

    range_type: type[LoopRange] = LoopRange

    def condition(self, x: Any) -> Value:
        """Return a condition as a bool or a mask; a number is true if it is not 0."""
        raise TypeError(f"{type(self).__name__} must define condition(x)")

    def of_condition(self, x: Value) -> Value:
        """Return a bool or mask as a value of the kernel's Python."""
        return x

    def count(self, items: LoopRange, go_on: Thunk | None, body: Callable[[Any], Any], state: StatementState) -> None:
        """Stage a loop over a range that ends early if go_on(), evaluated before each item, is false."""
        raise TypeError(f"{type(self).__name__} must define count(items, go_on, body, state)")

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> Value:
        return self.of_condition(self.condition(left) & self.condition(right()))

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> Value:
        return self.of_condition(self.condition(left) | self.condition(right()))

    def logical_not(self, value: Any) -> Value:
        return self.of_condition(~self.condition(value))

    def for_stmt(
        self,
        items: Any,
        go_on: Thunk | None,
        body: Callable[[Any], Any],
        state: StatementState,
        options: StatementOptions,
    ) -> None:
        if not isinstance(items, LoopRange):
            raise TypeError(f"a for statement of a kernel runs over a range; found {type(items).__name__}")
        self.count(items, go_on, body, state)

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name == "range":
            return self.range_type(*((0, *args) if len(args) == 1 else args))
        return NotImplemented


class InductionVariable:
    """The induction variable of a loop: its start, its loop condition and its increment.

    The increment saturates instead of wrapping: the extreme of an integer dtype is inside of no range.
    """

    def __init__(self, items: LoopRange) -> None:
        like = next((x for x in (items.stop, items.start, items.step) if isinstance(x, Value)), None)
        self.stop = carried(items.stop, like)
        self.start = carried(items.start, self.stop)
        dtype = self.dtype = self.start.dtype
        self.step = step = items.step
        self.anything = current().counts_anything
        if not isinstance(step, Value):
            self.up: Any = step > 0  # the direction: a bool, or a value if the sign is unknown
            return
        if step.dtype is not dtype:
            raise TypeError(f"{dtype.name} and {step.dtype.name} do not mix in a kernel: x.to(dtype) converts")
        self.up = True
        if self.anything:
            guards = current().guards
            if guards is not None:
                guards.require(step != 0, ZERO_STEP)
            if not dtype.is_unsigned:
                self.up = step > 0
            self.is_nonzero = step != 0

    def inside(self, i: Value) -> Value:
        """Return the loop condition: whether i is before the end of the range."""
        inside: Value
        if not isinstance(self.up, Value):
            inside = i < self.stop if self.up else i > self.stop
        else:
            inside = (self.up & (i < self.stop)) | (~self.up & (i > self.stop))
        return inside & self.is_nonzero if isinstance(self.step, Value) and self.anything else inside

    def after(self, i: Value) -> Value:
        """Return the value of the next iteration."""
        b, dtype, step = current().builder, self.dtype, self.step
        low, high = int(dtype.min), int(dtype.max)
        flag = "nuw" if dtype.is_unsigned else "nsw"
        if isinstance(step, Value):
            if not self.anything:
                return Value(b.add(i.x, step.x, flags=(flag,)), dtype)
            following = select(i > high - step, high, i + step)
            if not isinstance(self.up, Value):
                return following
            return select(self.up, following, select(i < low - step, low, i + step))
        distance = abs(step)
        end = high if self.up else low
        if distance > high - low:
            return Value(number(dtype, end, i.count), dtype)
        if distance > 1 and self.anything:
            i = minimum(i, end - distance) if self.up else maximum(i, end + distance)
        if distance > high:  # beyond the maximum of a signed dtype: the wrapped sum is correct
            wrapped = Value(number(dtype, distance - (1 << 8 * dtype.size)), dtype)
            return i + wrapped if self.up else i - wrapped
        return Value((b.add if self.up else b.sub)(i.x, number(dtype, distance, i.count), flags=(flag,)), dtype)


TURNS = 1 << 16
"""Iterations between two polls: a fraction of a millisecond of the shortest iterations."""


def spend(trace: Any, turns: ir.Value) -> None:
    """Subtract iterations, an int64, from the budget of the kernel that is being staged, and poll when it is used up.

    Code that must end returns the poll's result, or nothing if its function returns nothing.
    """
    b = trace.builder
    if trace.budget is None:
        with b.goto_entry_block():
            trace.budget = b.alloca(I64)
            b.store(ir.Constant(I64, TURNS), trace.budget)
    left = b.sub(b.load(trace.budget, typ=I64), turns)
    b.store(left, trace.budget)
    ask, ended, on = (b.append_basic_block(f"poll{part}") for part in ("", ".ended", ".over"))
    b.cbranch(b.icmp_signed("<", left, ir.Constant(I64, 0)), ask, on)
    b.position_at_end(ask)
    b.store(ir.Constant(I64, TURNS), trace.budget)
    poll = b.module.globals.get(POLL) or ir.Function(b.module, ir.FunctionType(I64, []), POLL)
    answer = b.call(poll, [])
    b.cbranch(b.icmp_signed("==", answer, ir.Constant(I64, 0)), on, ended)
    b.position_at_end(ended)
    if isinstance(b.function.function_type.return_type, ir.VoidType):
        b.ret_void()
    else:
        b.ret(answer)
    b.position_at_end(on)
