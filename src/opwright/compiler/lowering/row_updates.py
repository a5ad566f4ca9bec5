"""Updates of one row of a tensor, as converters write them for lists in loops: two slices with a row between them.

Lives here: `row_updates`, which matches these three nodes, and `lower_row_update`.
Not here: the selection of nodes (lite/compiled/partition_plans.py), the rules of single operators.

    CONCATENATION(SLICE(x, 0, [i, -1, ...]), row, SLICE(x, [i + 1, 0, ...], -1), axis=0)

The sizes of both slices are known at run time only; the result's are x's. A loop body with such an update can thus be
one plan.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ...graph import Graph, Node, Value
from ...graph.ir import flat
from ..loops.indexing_ops import UpdateSlice
from .context import LoweringContext, NoLowering
from .operand_expressions import same_numbers


class RowUpdate(NamedTuple):
    """The three nodes of an update. join: computes the result; the others have no other reader."""

    before: Node
    after: Node
    join: Node

    @property
    def reads(self) -> tuple[Value, Value, Value]:
        """The external values that the nodes read: x, the row, int[rank] with the row's index first."""
        x, _, start = self.before.operands
        _, row, _ = self.join.operands
        return x, row, start


def lower_row_update(ctx: LoweringContext, update: RowUpdate) -> None:
    """Add the operation of an update to the context of its last node. Raises NoLowering for inconsistent shapes."""
    x, row, start = map(ctx.buffers.of, update.reads)
    y = ctx.output(x.shape)
    same_numbers(x, y)
    same_numbers(row, y)
    if row.shape != (1, *x.shape[1:]) or start.shape != (len(x.shape),):
        raise NoLowering(f"{row} as a row of {x} at {start}")
    ctx.add(UpdateSlice, y.buffer, x.buffer, row.buffer, start.buffer, True)


def row_updates(graph: Graph, outputs: set[Value]) -> list[RowUpdate]:
    """Return the updates of rows whose slices have no other readers; shapes of rows and lists are not compared.

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
    x, start, size = before.inputs
    _, follows, remaining = after.inputs
    if x is None or size is None or not _all(start, 0) or not _all(remaining, -1):
        return None
    i, j = _first_of(size, (-1,)), _first_of(follows, (0,))
    if i is None or j is None or not _is_next(j, i):
        return None
    return RowUpdate(before, after, join)


def _activates(node: Node) -> bool:
    return bool(node.attrs.get("fused_activation_function", "NONE") != "NONE")


def _slice(v: Value) -> Node | None:
    node = v.node
    return node if node is not None and node.op.name == "SLICE" and len(node.inputs) == 3 else None


def _all(v: Any, value: int) -> bool:
    return v is not None and v.constant is not None and bool((v.constant == value).all())


def _first_of(v: Any, others: tuple[int, ...]) -> Value | None:
    """Return the number that a vector begins with, if its remaining elements are constants of `others`."""
    node = None if v is None else v.node
    if node is None or node.op.name not in ("CONCATENATION", "PACK"):
        return _number(v) if v is not None and v.shape.dims == (1,) else None
    first, *remaining = _operands(node)
    if first is None or any(
        r is None or r.constant is None or not np.isin(r.constant, others).all() for r in remaining
    ):
        return None
    return _number(first)


def _number(v: Any) -> Value | None:
    """Return the value of one number of which this value is a reshape."""
    while v.node is not None and v.node.op.name in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE"):
        v = _operands(v.node)[0]
        if v is None:
            return None
    return v if v.shape.num_elements() == 1 else None


def _is_next(j: Value, i: Value) -> bool:
    """Return whether j is i + 1."""
    node = j.node
    if node is None or node.op.name != "ADD" or _activates(node):
        return False
    a, b = _operands(node)
    return any(
        one is not None and other is not None and _all(one, 1) and _number(other) is i
        for one, other in ((a, b), (b, a))
    )
