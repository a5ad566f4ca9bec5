"""The places of updates of variables among the other operations of a plan.

Lives here: `update_order`; `GuardBehindUpdate`; `numbers_first`, the order of what updates need but gradients.
Not here: which updates a plan contains (../update_regions.py), the memory that their gradients leave to others
(planner.py).

A variable is written in place, and the caller of a plan that stopped repeats the run by other means: so an update runs
after the last step that may stop the plan. It also runs after all operations that read the old value, and as soon as
its operands are complete, so that the memory of a gradient is free for the next ones. Operations that read what an
update has written follow it in the same way, if they cannot stop the plan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..inlined_kernels import functions_of
from .expressions import Expr
from .graph import LoopGraph
from .ops import LoopOp, Update
from .plans import KernelStep


class GuardBehindUpdate(Exception):
    """An operation behind an update may stop the plan."""


def stops(step: KernelStep) -> bool:
    """Return whether a step may stop the plan: by a guard of its kernel, or in a user's function."""
    return step.code.guarded or (step.op is not None and any(map(functions_of, _expressions(step.op))))


def _expressions(op: LoopOp) -> Iterator[Expr]:
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Expr):
                yield part
            elif isinstance(part, LoopOp):
                yield from _expressions(part)


def unguarded_from(steps: Iterable[KernelStep]) -> int:
    """Return the position from which on no operation can stop the plan."""
    return max((step.position for step in steps if stops(step)), default=-1) + 1


def numbers_first(graph: LoopGraph) -> list[LoopOp]:
    """Return the operations with those first that compute a number from the graph's inputs: rates are, in the order of
    programs, among the last ones, and all updates need them."""
    available = {id(b) for b in graph.inputs}
    numbers: list[LoopOp] = []
    others: list[LoopOp] = []
    for op in graph.ops:
        reads = all(b.constant is not None or id(b) in available for b in op.inputs)
        if reads and op.output.size == 1 and op.output.parent is None:
            available.add(id(op.output))
            numbers.append(op)
        else:
            others.append(op)
    return [*numbers, *others]


def update_order(
    ops: Sequence[LoopOp], first: int, earliest: int, last_access: Mapping[int, int], root: Callable[..., int]
) -> list[int]:
    """Return the order in which operations run, as a list of their positions.

    ops: updates, and operations behind them, from position `first` on, no update before; earliest: position of the
    first operation that one of these may precede; last_access: by memory, the position of the last operation before
    `first` that accesses it; root: returns the memory of a buffer
    """
    keys: list[tuple[int, int]] = [(position, 1) for position in range(first)]
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    for op in ops[first:]:
        written_by = op.targets if isinstance(op, Update) else (op.output,)
        operands = {root(b) for b in op.inputs if b not in written_by}
        targets = {root(b) for b in written_by}
        if not isinstance(op, Update):
            targets -= operands  # of a view, which writes nothing
        place = max(
            earliest,
            *(last_access.get(b, -1) + 1 for b in targets | operands),
            *(written.get(b, 0) for b in targets | operands),
            *(read.get(b, 0) for b in targets),
        )
        written.update(dict.fromkeys(targets, place))
        read.update({b: max(place, read.get(b, 0)) for b in operands})
        keys.append((place, 0))
    return sorted(range(len(ops)), key=keys.__getitem__)
