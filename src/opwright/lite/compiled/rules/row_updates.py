"""One row of a tensor replaced, as converters write it for lists that loops fill: two slices, the row between them.

Lives here: `row_updates`, which finds these three nodes, and what they become.
Not here: who asks (../delegate.py), the rules of single operators.

    CONCATENATION(SLICE(x, 0, [i, -1, ...]), row, SLICE(x, [i + 1, 0, ...], -1), axis=0)

The sizes of both slices are known only while the model runs; the result's are those of x. So a loop's body of which
this is a part can be one plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....compiler.loops.forms import Form, UpdateSlice
from ....compiler.lowering.context import LoweringContext, NoLowering
from ....compiler.lowering.quantized import same_numbers
from ...runtime.node import Node
from ...runtime.subgraph import Subgraph
from ...runtime.tensor import Tensor


class RowUpdate(NamedTuple):
    """The three nodes, and what they read. place: int[rank] with the row's index first."""

    before: Node
    after: Node
    whole: Node
    x: Tensor
    row: Tensor
    place: Tensor

    @property
    def parts(self) -> tuple[Node, Node]:
        """The nodes besides the one that makes the result."""
        return self.before, self.after

    @property
    def reads(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the three nodes read of others."""
        return self.x, self.row, self.place

    def forms(self, ctx: LoweringContext) -> list[Form]:
        """What they become; at: the node that makes the result. Raises NoLowering."""
        x, row, place = map(ctx.buffers.of, self.reads)
        made = self.whole.tensors_out[0]
        if made.shape != x.shape:  # files say [1, ...] of lists whose length was not known when they were converted
            made.set_shape(x.shape)
        y = ctx.output(x.shape)
        same_numbers(x, y)
        same_numbers(row, y)
        if row.shape != (1, *x.shape[1:]) or place.shape != (len(x.shape),):
            raise NoLowering(f"{row} as a row of {x} at {place}")
        ctx.form(UpdateSlice, y.buffer, x.buffer, row.buffer, place.buffer, True)
        return ctx.forms


def row_updates(subgraph: Subgraph) -> list[RowUpdate]:
    """Those of a subgraph whose slices nobody else reads. Rows' and lists' shapes are not looked at."""
    joins = [node for node in subgraph.execution_plan if node.name == "CONCATENATION" and len(node.tensors_in) == 3]
    if not joins:
        return []
    makers: dict[int, Node] = {t.index: node for node in subgraph.execution_plan for t in node.tensors_out}
    readers: dict[int, int] = {}
    for i in (t.index for node in subgraph.execution_plan for t in node.tensors_in if t is not None):
        readers[i] = readers.get(i, 0) + 1
    found = (_found(node, makers) for node in joins)
    inside = {i for i, count in readers.items() if count == 1} - set(subgraph.outputs)
    return [
        u for u in found if u is not None and all(t.index in inside for n in (u.before, u.after) for t in n.tensors_out)
    ]


def _found(join: Node, makers: dict[int, Node]) -> RowUpdate | None:
    first, row, last = join.tensors_in
    options = join.options
    if first is None or row is None or last is None or getattr(options, "axis", 1) != 0:
        return None
    if int(getattr(options, "fused_activation_function", 0)) != 0:
        return None
    before, after = _slice(makers.get(first.index)), _slice(makers.get(last.index))
    if before is None or after is None or before.tensors_in[0] is not after.tensors_in[0]:
        return None
    x, start, place = before.tensors_in
    _, follows, rest = after.tensors_in
    if x is None or place is None or not _all(start, 0) or not _all(rest, -1):
        return None
    i, j = _first_of(place, makers, (-1,)), _first_of(follows, makers, (0,))
    if i is None or j is None or not _is_next(j, i, makers):
        return None
    return RowUpdate(before, after, join, x, row, place)


def _slice(node: Node | None) -> Node | None:
    return node if node is not None and node.name == "SLICE" and len(node.tensors_in) == 3 else None


def _all(t: Tensor | None, value: int) -> bool:
    return t is not None and t.constant is not None and bool((t.constant == value).all())


def _first_of(t: Tensor | None, makers: dict[int, Node], others: tuple[int, ...]) -> Tensor | None:
    """The number that a vector begins with, if constants of `others` are the rest of it."""
    node = None if t is None else makers.get(t.index)
    if node is None or node.name not in ("CONCATENATION", "PACK"):
        return _number(t, makers) if t is not None and t.shape == (1,) else None
    first, *rest = node.tensors_in
    if first is None or any(r is None or r.constant is None or not np.isin(r.constant, others).all() for r in rest):
        return None
    return _number(first, makers)


def _number(t: Tensor, makers: dict[int, Node]) -> Tensor | None:
    """The tensor of one number that this one is another shape of."""
    while (node := makers.get(t.index)) is not None and node.name in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE"):
        inner = node.tensors_in[0]
        if inner is None:
            return None
        t = inner
    return t if int(np.prod(t.shape)) == 1 else None


def _is_next(j: Tensor, i: Tensor, makers: dict[int, Node]) -> bool:
    """Whether j is i + 1."""
    node = makers.get(j.index)
    if node is None or node.name != "ADD" or int(getattr(node.options, "fused_activation_function", 0)) != 0:
        return False
    a, b = node.tensors_in
    return any(
        one is not None and other is not None and _all(one, 1) and _number(other, makers) is i
        for one, other in ((a, b), (b, a))
    )
