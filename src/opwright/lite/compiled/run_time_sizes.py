"""Nodes whose sizes are known only as the model runs, and the elements that sizes follow from, as a run had them.

Lives here: `open_nodes`, which nodes these are; `has_run`, `seen_by`.
Not here: plans for the sizes of a run and their guards (partition_plans.py), running them (specialised.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..runtime.dynamic_shapes import MOST_READ
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC
from .eligibility import ON_RESOURCES, STATEFUL

Seen = Mapping[int, np.ndarray]
"""By tensor, elements of a run."""


def open_nodes(subgraph: Subgraph) -> list[Node]:
    """The nodes whose sizes, or those of what they read, are known only as the model runs; also those whose shape rules
    ask for elements that are there only then. None that has effects: a plan that stops is to have had none."""
    return [
        node
        for node in subgraph.execution_plan
        if node.delegate is None
        and node.name not in ON_RESOURCES | STATEFUL
        and not _has_effects(node)
        and (node.asks or any(t is not None and t.kind == DYNAMIC for t in (*node.tensors_in, *node.tensors_out)))
    ]


def _has_effects(node: Node) -> bool:
    """Whether an operator does more than give results: to the world, or to what it keeps from run to run."""
    operator = getattr(node.registration, "operator", None)
    return getattr(operator, "effect", None) is not None or hasattr(node.user_data, "restart")


def seen_by(nodes: Iterable[Node]) -> dict[int, np.ndarray]:
    """Of nodes that have just run, the elements of what they read that is small."""
    return {
        t.index: t.array.copy()
        for node in nodes
        for t in node.tensors_in
        if t is not None and t.constant is None and t.array is not None and not t.is_object and t.nbytes <= MOST_READ
    }


def has_run(node: Node) -> bool:
    """Whether there are elements, and so sizes, of all that a node reads and writes."""
    return all(t is None or t.kind != DYNAMIC or t.array is not None for t in (*node.tensors_in, *node.tensors_out))
