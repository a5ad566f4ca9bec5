"""Sizes that a run decides: elements of inputs that shapes follow from, and rows that operators count.

Lives here: `with_elements`, `counted_tensors`, `prepare_counted`.
Not here: their bounds (size_bounds.py), lowering (lite/compiled/whole_graphs.py), the choice of a plan (modules.py,
c_source.py).

A plan is for certain elements, which are constants in it, and for certain numbers of rows. The elements are read from
the inputs before a run. A number of rows is known when its operator has run: the plan stops there if it is another
one, and that for the counted number runs from the start. Rows that no node reads have memory for the most there can
be, and their number is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..lite.runtime.node import Node
from ..lite.runtime.subgraph import Subgraph
from ..lite.runtime.tensor import ARENA, CONSTANT, DYNAMIC, Tensor

COUNTED = ("WHERE", "UNIQUE")
"""Builtins whose first output has as many rows as they count, at most one for each element of their input."""


def with_elements(tensors: Sequence[Tensor], elements: Mapping[int, Sequence[int]]) -> None:
    """Make inputs constants for the next allocation. elements: by position of the input."""
    for position, values in elements.items():
        t = tensors[position]
        t.set_kind(CONSTANT)
        t.bind(np.array(values, t.dtype.np).reshape(t.shape))


def counted_tensors(subgraph: Subgraph) -> list[int]:
    """Return the tensors of a prepared subgraph whose rows operators count, of unknown number so far."""
    return [t.index for node in subgraph.execution_plan if (t := _counted(node)) is not None]


def _counted(node: Node) -> Tensor | None:
    if node.name not in COUNTED or not node.tensors_out or node.tensors_out[0].kind != DYNAMIC:
        return None
    return node.tensors_out[0]


def prepare_counted(subgraph: Subgraph, rows: Mapping[int, int | None]) -> dict[int, int]:
    """Prepare the nodes again, with shapes of counted tensors; return the most rows of each. rows: by tensor, how many
    are assumed, None for the most there can be."""
    most: dict[int, int] = {}

    def prepare(node: Node) -> None:
        subgraph.prepare(node)
        t = _counted(node)
        if t is None or t.index not in rows:
            return
        x = node.tensors_in[0]
        assert x is not None
        most[t.index] = math.prod(x.shape)
        count = rows[t.index]
        count = most[t.index] if count is None else count
        t.set_kind(ARENA)
        t.set_shape((count, len(x.shape)) if node.name == "WHERE" else (count,))

    subgraph.prepare_all(subgraph.execution_plan, prepare)
    return most
