"""Numbers that a run decides: elements of inputs that shapes follow from, rows that operators count, the way through
branches and the iterations where results have other shapes for others.

Lives here: `with_elements`, `deciding_nodes`, `prepare_decided`.
Not here: their bounds (size_bounds.py), lowering (lite/compiled/whole_graphs.py), the choice of a plan (modules.py,
c_source.py).

A plan is for certain elements, which are constants in it, and for certain numbers. The elements are read from the
inputs before a run. A number is known when its operator has run: the plan stops there if it is another one, and that
for this number runs from the start. Rows that no node reads have memory for the most there can be, and their number is
reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..lite.compiled.decided_control_flow import BRANCHES, num_ways, set_shapes
from ..lite.runtime.node import Node
from ..lite.runtime.subgraph import Subgraph
from ..lite.runtime.tensor import ARENA, CONSTANT, DYNAMIC, Tensor
from ..lite.runtime.while_loop import LoopState

COUNTED = ("WHERE", "UNIQUE", "RANGE")
"""Builtins whose first output has as many rows as they count; all but RANGE at most one for each element of their
input."""
LOOPS = ("WHILE", "STABLEHLO_WHILE")


def with_elements(tensors: Sequence[Tensor], elements: Mapping[int, Sequence[int]]) -> None:
    """Make inputs constants for the next allocation. elements: by position of the input."""
    for position, values in elements.items():
        t = tensors[position]
        t.set_kind(CONSTANT)
        t.bind(np.array(values, t.dtype.np).reshape(t.shape))


def deciding_nodes(subgraph: Subgraph) -> dict[int, Node]:
    """Return the nodes of a prepared subgraph that decide the shapes of results, whose inputs have known shapes, by the
    first such result."""
    found = {t.index: node for node in subgraph.execution_plan if (t := _decided(node)) is not None}
    return {t: n for t, n in found.items() if not any(x is not None and x.kind == DYNAMIC for x in n.tensors_in)}


def _decided(node: Node) -> Tensor | None:
    results = node.tensors_out
    if node.name in COUNTED:
        results = results[:1]
    elif node.name not in BRANCHES + LOOPS:
        return None
    return next((t for t in results if t.kind == DYNAMIC), None)


def is_unbounded(node: Node) -> bool:
    """Return whether there is no most number but the user's bound."""
    return node.name == "RANGE" or isinstance(node.user_data, LoopState)


def prepare_decided(subgraph: Subgraph, numbers: Mapping[int, int | None], bounds: Mapping[int, int]) -> dict[int, int]:
    """Prepare the nodes again, with the shapes of results that nodes decide; return the most of each number.

    numbers: by tensor, which is assumed, None for the most rows; bounds: the user's most, by tensor
    """
    most: dict[int, int] = {}

    def prepare(node: Node) -> None:
        subgraph.prepare(node)
        t = _decided(node)
        if t is None or t.index not in numbers:
            return
        most[t.index] = _most(node, bounds.get(t.index))
        number = numbers[t.index]
        if node.name not in COUNTED:
            set_shapes(node, min(number or 0, most[t.index]))
            return
        rows = most[t.index] if number is None else number
        x = node.tensors_in[0]
        assert x is not None
        t.set_kind(ARENA)
        t.set_shape((rows, len(x.shape)) if node.name == "WHERE" else (rows,))

    subgraph.prepare_all(subgraph.execution_plan, prepare)
    return most


def _most(node: Node, bound: int | None) -> int:
    if is_unbounded(node):
        return bound or 0
    if node.name in BRANCHES:
        return num_ways(node) - 1
    x = node.tensors_in[0]
    assert x is not None
    return math.prod(x.shape)
