"""One row of a tensor replaced, as converters write it for lists that loops fill: two slices, the row between them.

Lives here: `row_updates`, which matches these three nodes, and `lower_row_update`.
Not here: which nodes are claimed (lite/compiled/claims.py), the rules of single operators.

    CONCATENATION(SLICE(x, 0, [i, -1, ...]), row, SLICE(x, [i + 1, 0, ...], -1), axis=0)

The sizes of both slices are known only while the model runs; the result's are those of x. So a loop's body of which
this is a part can be one plan.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ...graph import Graph, Node, Value
from ...graph.ir import flat
from ..loops.indexing_ops import UpdateSlice
from .context import LoweringContext, NoLowering
from .requantization import same_numbers


class RowUpdate(NamedTuple):
    """The three nodes. whole: computes the result; the others, its parts, have no other reader."""

    before: Node
    after: Node
    whole: Node

    @property
    def reads(self) -> tuple[Value, Value, Value]:
        """The values that the nodes read of others: x, the row, int[rank] with the row's index first."""
        x, _, place = self.before.operands
        _, row, _ = self.whole.operands
        return x, row, place


def lower_row_update(ctx: LoweringContext, update: RowUpdate) -> None:
    """Add the form of an update to the context of its last node. Raises NoLowering for shapes that do not fit."""
    x, row, place = map(ctx.buffers.of, update.reads)
    y = ctx.output(x.shape)
    same_numbers(x, y)
    same_numbers(row, y)
    if row.shape != (1, *x.shape[1:]) or place.shape != (len(x.shape),):
        raise NoLowering(f"{row} as a row of {x} at {place}")
    ctx.add(UpdateSlice, y.buffer, x.buffer, row.buffer, place.buffer, True)


def row_updates(graph: Graph, outputs: set[Value]) -> list[RowUpdate]:
    """Return the updates of rows whose slices nothing else reads; shapes of rows and lists are not compared.

    outputs: values that are read outside of the graph
    """
    readers = Counter(v for node in graph.nodes for v in node.operands)
    updates = (_match(node) for node in graph.nodes if node.op.name == "CONCATENATION" and len(_operands(node)) == 3)
    return [
        u
        for u in updates
        if u is not None and all(readers[v] == 1 and v not in outputs for n in (u.before, u.after) for v in n.outputs)
    ]


def _operands(node: Node) -> list[Any]:
    return flat(node.inputs)


def _match(join: Node) -> RowUpdate | None:
    first, row, last = _operands(join)
    if first is None or row is None or last is None or join.attrs.get("axis") != 0 or _activates(join):
        return None
    before, after = _slice(first), _slice(last)
    if before is None or after is None or before.inputs[0] is not after.inputs[0]:
        return None
    x, start, place = before.inputs
    _, follows, rest = after.inputs
    if x is None or place is None or not _all(start, 0) or not _all(rest, -1):
        return None
    i, j = _first_of(place, (-1,)), _first_of(follows, (0,))
    if i is None or j is None or not _is_next(j, i):
        return None
    return RowUpdate(before, after, join)


def _activates(node: Node) -> bool:
    return node.attrs.get("fused_activation_function", "NONE") != "NONE"


def _slice(v: Value) -> Node | None:
    node = v.node
    return node if node is not None and node.op.name == "SLICE" and len(node.inputs) == 3 else None


def _all(v: Any, value: int) -> bool:
    return v is not None and v.constant is not None and bool((v.constant == value).all())


def _first_of(v: Any, others: tuple[int, ...]) -> Value | None:
    """Return the number that a vector begins with, if constants of `others` are the rest of it."""
    node = None if v is None else v.node
    if node is None or node.op.name not in ("CONCATENATION", "PACK"):
        return _number(v) if v is not None and v.shape.dims == (1,) else None
    first, *rest = _operands(node)
    if first is None or any(r is None or r.constant is None or not np.isin(r.constant, others).all() for r in rest):
        return None
    return _number(first)


def _number(v: Any) -> Value | None:
    """Return the value of one number that this one is another shape of."""
    while v.node is not None and v.node.op.name in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE"):
        v = _operands(v.node)[0]
        if v is None:
            return None
    return v if v.shape.num_elements() == 1 else None


def _is_next(j: Value, i: Value) -> bool:
    """Whether j is i + 1."""
    node = j.node
    if node is None or node.op.name != "ADD" or _activates(node):
        return False
    a, b = _operands(node)
    return any(
        one is not None and other is not None and _all(one, 1) and _number(other) is i
        for one, other in ((a, b), (b, a))
    )
