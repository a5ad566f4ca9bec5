"""Control flow of kernels: what `range`, `for`, `and`, `or`, `not` and conditional expressions mean for values.

Lives here: `LoopRange`, `loop`, the numbers of a range, `ControlFlow`: the meaning that both policies share.
Not here: rewriting Python (autograph/), the policies: LLVM's branches and loops, for numbers (branches.py), and masks,
for scalars that stand for several elements (masks.py).

Python's own numbers in control flow decide while the kernel is staged: `for i in range(4)` is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograph.handlers import ControlFlowHandler, StatementOptions, StatementState, Thunk
from ...core import dtypes
from .kinds import number
from .places import Pointer
from .trace import current
from .values import Value, maximum, minimum, select, value

ZERO_STEP = "range() arg 3 must not be zero"


class LoopRange:
    """A range that is run by a loop. start, stop, step: integers, Python's or the kernel's.

    raises TypeError for what is no integer, ValueError for a step of 0
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
        self.start, self.stop, self.step = start, stop, step


def loop(start: Any, stop: Any = None, step: Any = 1) -> Any:
    """Return a range that is always a loop, also where the limits are Python's numbers."""
    return LoopRange(0, start, step) if stop is None else LoopRange(start, stop, step)


def carried(x: Any, like: Any = None) -> Any:
    """Return the value of a variable that control flow changes; Python's numbers become the language's."""
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
    """Control flow of kernels. The policies say what a condition, an `if` and a loop are."""

    range_type: type[LoopRange] = LoopRange

    def condition(self, x: Any) -> Value:
        """Return a condition as a bool, or a mask of them; a number holds where it is not 0."""
        raise TypeError(f"{type(self).__name__} must define condition(x)")

    def of_condition(self, x: Value) -> Any:
        """Return a condition as a value of the kernel's Python."""
        return x

    def count(self, items: LoopRange, go_on: Thunk | None, body: Callable[[Any], Any], state: StatementState) -> None:
        """Stage a loop over a range, as long as go_on() holds, which is asked before each item."""
        raise TypeError(f"{type(self).__name__} must define count(items, go_on, body, state)")

    def logical_and(self, left: Any, right: Thunk, simple: bool) -> Any:
        return self.of_condition(self.condition(left) & self.condition(right()))

    def logical_or(self, left: Any, right: Thunk, simple: bool) -> Any:
        return self.of_condition(self.condition(left) | self.condition(right()))

    def logical_not(self, value: Any) -> Any:
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


class Steps:
    """The numbers of a range: the first, whether a number is one of them, and which follows it.

    The number that follows never wraps: past the integer's end it is that end, which is inside of no range.
    """

    def __init__(self, items: LoopRange) -> None:
        like = next((x for x in (items.stop, items.start, items.step) if isinstance(x, Value)), None)
        self.stop = carried(items.stop, like)
        self.start = carried(items.start, self.stop)
        dtype = self.dtype = self.start.dtype
        self.step = step = items.step
        self.anything = current().counts_anything
        if not isinstance(step, Value):
            self.up: Any = step > 0
            return
        if step.dtype is not dtype:
            raise TypeError(f"{dtype.name} and {step.dtype.name} do not mix in a kernel: x.to(dtype) converts")
        self.up = True
        if self.anything:
            if current().guards is not None:
                current().guards.require(step != 0, ZERO_STEP)
            if not dtype.is_unsigned:
                self.up = step > 0
            self.turns = step != 0

    def inside(self, i: Value) -> Value:
        if not isinstance(self.up, Value):
            found = i < self.stop if self.up else i > self.stop
        else:
            found = (self.up & (i < self.stop)) | (~self.up & (i > self.stop))
        return found & self.turns if isinstance(self.step, Value) and self.anything else found

    def after(self, i: Value) -> Value:
        b, dtype, step = current().builder, self.dtype, self.step
        least, most = int(dtype.min), int(dtype.max)
        flag = "nuw" if dtype.is_unsigned else "nsw"
        if isinstance(step, Value):
            if not self.anything:
                return Value(b.add(i.x, step.x, flags=(flag,)), dtype)
            ahead = select(i > most - step, most, i + step)
            if not isinstance(self.up, Value):
                return ahead
            return select(self.up, ahead, select(i < least - step, least, i + step))
        by = abs(step)
        end = most if self.up else least
        if by > most - least:
            return Value(number(dtype, end, i.count), dtype)
        if by > 1 and self.anything:
            i = minimum(i, end - by) if self.up else maximum(i, end + by)
        if by > most:  # a signed integer's whole range and more: the sum is right as it wraps
            wrapped = Value(number(dtype, by - (1 << 8 * dtype.size)), dtype)
            return i + wrapped if self.up else i - wrapped
        return Value((b.add if self.up else b.sub)(i.x, number(dtype, by, i.count), flags=(flag,)), dtype)
