"""Loops that count: which variable numbers the turns, and how many there are at most.

Lives here: `counter_of`, `appends_of` (lists that get one element each turn).  Not here: what is made of it
(lowering.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....core.dtypes import int32, variant
from ....graph import Graph, Node, Value


class Counter(NamedTuple):
    """Variable `place` goes up by 1 each turn, while it is below `limit`.

    limit: a number, or a value outside of the loop. exact: whether nothing else ends the loop.
    """

    place: int
    limit: int | Value
    exact: bool


def _conditions(value: Value) -> Iterator[Node]:
    node = value.node
    if node is None:
        return
    if node.op.name == "LogicalAnd":
        for operand in node.operands:
            yield from _conditions(operand)
    else:
        yield node


def counter_of(loop: Node) -> Counter | None:
    """The counter of a While, where it has one of int32."""
    cond, body = loop.attrs["cond"], loop.attrs["body"]
    variables: Any = loop.inputs[0]
    operands = (*variables, *loop.inputs[1])  # type: ignore[misc]
    answer = cond.outputs[0]
    for node in _conditions(answer):
        if node.op.name not in ("Less", "Greater"):
            continue
        counted, limit = tuple(node.operands) if node.op.name == "Less" else tuple(node.operands)[::-1]
        if counted.dtype is not int32 or counted.shape.rank != 0 or counted not in cond.inputs[: len(variables)]:
            continue
        place = cond.inputs.index(counted)
        known: int | Value | None = None
        if limit.constant is not None:
            known = int(limit.constant)
        elif limit in cond.inputs and cond.inputs.index(limit) >= len(variables):
            known = operands[cond.inputs.index(limit)]
        if known is not None and _goes_up(body, place):
            return Counter(place, known, answer.node is node)
    return None


def _goes_up(body: Graph, place: int) -> bool:
    node = body.outputs[place].node
    if node is None or node.op.name not in ("Add", "AddV2"):
        return False
    operands = tuple(node.operands)
    others = [v for v in operands if v is not body.inputs[place]]
    one = others[0].constant if len(others) == 1 else None
    return one is not None and one.size == 1 and int(one.reshape(-1)[0]) == 1


def appends_of(loop: Node, counter: Counter | None) -> dict[int, Node]:
    """By variable: the ListPush that gives each list which the body does nothing with but append one element.

    A ListSet that may grow the list and writes at the counter is one, too, if the list has as many elements at first as
    the counter has counted.
    """
    body, found = loop.attrs["body"], {}
    uses: dict[Value, int] = {}
    for graph in (loop.attrs["cond"], body):
        for node in graph.nodes:
            for value in node.operands:
                uses[value] = uses.get(value, 0) + 1
    for value in body.outputs:
        uses[value] = uses.get(value, 0) + 1
    n = len(loop.inputs[0])  # type: ignore[arg-type]
    for i, (taken, given) in enumerate(zip(body.inputs[:n], body.outputs)):
        node = given.node
        if taken.dtype is not variant or node is None or not node.inputs or node.inputs[0] is not taken:
            continue
        writes = counter is not None and node.op.name == "ListSet" and node.attrs["grow"]
        if node.op.name != "ListPush" and not (writes and node.inputs[1] is body.inputs[counter.place]):  # type: ignore[union-attr]
            continue
        if uses[taken] == 1 == uses[given] and uses.get(loop.attrs["cond"].inputs[i], 0) == 0:
            found[i] = node
    return found
