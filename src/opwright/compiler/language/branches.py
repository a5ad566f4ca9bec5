"""Control flow on numbers: a branch is a branch and a loop a loop of LLVM's.

Lives here: the policy `BRANCHES`, for the language's values.
Not here: ranges and conditions (control.py), the other policy (masks.py).

A variable that a loop or a branch changes goes through memory on the stack, which LLVM turns into registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...autograph.handlers import StatementOptions, StatementState, Thunk, Unbound, is_returned_value, register_handler
from ...core import dtypes
from ...core.errors import SignatureError
from ..polling import TURNS, spend
from .bounded import BoundedPointer
from .control import ControlFlow, LoopRange, Steps, carried
from .kinds import I64, POINTER, number
from .places import Pointer, allocate
from .trace import current
from .values import Value, maximum, minimum, select, value
from .vectors import EXPECT


class _Carried:
    """A variable in memory: what a loop or branch changes. None of a value that cannot be carried."""

    def __init__(self, like: Any) -> None:
        self.like = like
        kept = value(like.start) if isinstance(like, BoundedPointer) else like
        self.place = allocate(POINTER if isinstance(kept, Pointer) else kept.x.type)

    def put(self, name: str, now: Any) -> None:
        now = carried(now, self.like)
        if isinstance(self.like, BoundedPointer):
            if not self.like.same_memory(now):
                raise SignatureError(
                    op=current().name,
                    what=f"{name} points into other memory after a turn than before",
                    do="index the memory instead",
                )
            current().builder.store(value(now.start).x, self.place)
            return
        alike = isinstance(now, Pointer) == isinstance(self.like, Pointer) and now.dtype is self.like.dtype
        if not alike or (isinstance(now, Value) and now.count != self.like.count):
            raise SignatureError(
                op=current().name,
                what=f"{name} has another type after a turn than before",
                found=f"{self.like!r}, then {now!r}",
                do="start with a value of that type",
            )
        current().builder.store(now.x, self.place)

    def get(self) -> Any:
        b = current().builder
        if isinstance(self.like, BoundedPointer):
            return self.like.moved(Value(b.load(self.place, typ=I64), dtypes.int64))
        if isinstance(self.like, Pointer):
            return Pointer(b.load(self.place, typ=POINTER), self.like.dtype, self.like.dtype.size)
        return Value(b.load(self.place, typ=self.like.x.type), self.like.dtype)


def _variables(state: StatementState) -> tuple[list[str], Callable[[], list[Any]], Callable[[list[Any]], None]]:
    """Return a state's plain variables: names, how to read and write them. Items and attributes are memory."""
    count = len(state.cells)
    plain = StatementState()
    plain.cells, plain.names = state.cells, state.names[:count]
    return list(plain.names), plain.get, plain.set


LIKELY = 2000
"""How many times as often as not a condition that is `likely` holds; LLVM's own number."""


def _condition(x: Any) -> Value:
    if isinstance(x, Value):
        if x.count:
            raise TypeError("a vector decides no branch: kl.any(mask), kl.all(mask) or kl.select")
        return x if x.dtype.is_bool else x != 0
    return Value(number(dtypes.bool, bool(x)), dtypes.bool)


class Branches(ControlFlow):
    """The policy of values: a vector decides nothing."""

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
        if getattr(getattr(condition, "callee", None), "name", "") == EXPECT:  # no pass that is run makes weights of it
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
                known = other if isinstance(one, Unbound) else one
                merged.append(known if is_returned_value(name) else Unbound(name))
            else:
                like = next((x for x in (one, other) if isinstance(x, Value | Pointer)), None)
                if like is None:
                    like = carried(one)
                if isinstance(like, Value) and isinstance(other, Value) and other.count > like.count:
                    like = other
                if like is None:
                    raise SignatureError(
                        op=current().name,
                        what=f"{name} depends on a branch and is no value of the kernel",
                        found=f"{one!r}, {other!r}"[:200],
                    )
                place = _Carried(like)
                for (block, _), x in zip(ends, (one, other)):
                    b.position_at_end(block)
                    place.put(name, x)
                merged.append(place)
        for block, _ in ends:
            b.position_at_end(block)
            b.branch(joined)
        b.position_at_end(joined)
        put([x.get() if isinstance(x, _Carried) else x for x in merged])

    def if_exp(self, test: Any, body: Thunk, orelse: Thunk) -> Any:
        if isinstance(test, Value):
            return select(test, body(), orelse())
        return body() if test else orelse()

    def while_stmt(self, test: Thunk, body: Thunk, state: StatementState, options: StatementOptions) -> None:
        _run(test, _polling(body) if current().polls else body, state)

    def count(self, items: LoopRange, go_on: Thunk | None, body: Callable[[Any], Any], state: StatementState) -> None:
        steps = Steps(items)
        counter = _Carried(steps.start)
        counter.put("the range's counter", steps.start)

        def going(inside: Any) -> Any:
            return inside if go_on is None else inside & self.condition(go_on())

        def test() -> Any:
            return going(steps.inside(counter.get()))

        def turn() -> None:
            i = counter.get()
            body(i)
            counter.put("the range's counter", steps.after(i))

        def part() -> None:
            """Run turns without a poll between them, then one poll."""
            first = counter.get()
            end = _part_end(first, steps.stop, items.step)
            _run(lambda: going(counter.get() < end if items.step > 0 else counter.get() > end), turn, state)
            spend(current(), _distance(first, counter.get()))

        if not current().polls:
            _run(test, turn, state)
        elif isinstance(items.step, Value):
            _run(test, _polling(turn), state)
        else:
            _run(test, part, state)

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in ("min", "max") and len(args) > 1:
            join, found = (minimum if name == "min" else maximum), args[0]
            for x in args[1:]:
                found = join(found, x)
            return found
        return super().builtin(name, args, kwargs)


def _polling(body: Thunk) -> Thunk:
    """Return the body of a loop that counts its turns."""

    def turn() -> None:
        body()
        spend(current(), ir.Constant(I64, 1))

    return turn


def _part_end(i: Value, stop: Value, step: int) -> Value:
    """Return the end of the part of a range that begins with i and is run without a poll."""
    least, most, by = int(i.dtype.min), int(i.dtype.max), TURNS * abs(step)
    if by > most:
        return stop  # a range of few numbers
    if step > 0:
        return select(i > most - by, stop, minimum(stop, i + by))
    return select(i < least + by, stop, maximum(stop, i - by))


def _distance(first: Value, last: Value) -> ir.Value:
    """Return the distance between two numbers of a range, as an int64 that is small for a part of one."""
    b = current().builder
    wide = b.sub(last.to(dtypes.int64).x, first.to(dtypes.int64).x)
    return b.select(b.icmp_signed("<", wide, ir.Constant(I64, 0)), b.neg(wide), wide)


def _same_number(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, int | float | str | None.__class__) and one == other


def _run(test: Thunk, body: Thunk, state: StatementState) -> None:
    """Stage `while test(): body()`."""
    b = current().builder
    names, get, put = _variables(state)
    before = get()
    places: list[_Carried | None] = []
    for name, x in zip(names, before):
        unset = isinstance(x, Unbound)  # nobody reads a returned value before it is: it may start as any number
        like = carried(0) if unset and is_returned_value(name) else None if unset else carried(x)
        place = None if like is None else _Carried(like)
        if place is not None:
            place.put(name, like)
        places.append(place)

    def refresh() -> None:
        put([x if place is None else place.get() for place, x in zip(places, before)])

    head, turn, done = (b.append_basic_block(f"loop.{part}") for part in ("head", "turn", "end"))
    b.branch(head)
    b.position_at_end(head)
    refresh()
    b.cbranch(_condition(test()).x, turn, done)
    b.position_at_end(turn)
    body()
    for name, place, x in zip(names, places, get()):
        if place is not None and not isinstance(x, Unbound):
            place.put(name, x)
    b.branch(head)
    b.position_at_end(done)
    refresh()


BRANCHES = Branches()
register_handler(Value, BRANCHES)
register_handler(LoopRange, BRANCHES)
