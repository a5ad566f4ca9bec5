"""What plans assume of a run: elements that sizes follow from, as they were at a run before.

Lives here: `open_nodes`, which nodes such plans are for; `seen_by`, `looked_at`; `guarded`, the guards of a graph.
Not here: running such plans (specialised.py), which elements rules ask for (compiler/lowering/context.py), guards'
kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...compiler.loops.forms import Buffer, Form
from ...compiler.loops.indexing_forms import Counted, Expected
from ...compiler.lowering.context import Buffers
from ...core.dtypes import uint8
from ..delegate import DelegateParams
from ..runtime.dynamic_shapes import MOST_READ
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC
from .rules import ON_RESOURCES, STATEFUL

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


def assumed_outside(subgraph: Subgraph, params: DelegateParams, buffers: Buffers) -> dict[int, np.ndarray]:
    """What a partition's plan assumes of tensors that it is given: those whose elements rules asked for, or that follow
    from such in another partition."""
    found: dict[int, np.ndarray] = {}
    if buffers.seen is None:
        return found
    for i in params.input_tensors:
        t = subgraph.tensors[i]
        operand = buffers.of(t)
        if t.constant is None and operand.is_constant:
            found[i] = np.asarray(operand.constant)
    return found


def guarded(
    subgraph: Subgraph, params: DelegateParams, forms: Mapping[int, Sequence[Form]], buffers: Buffers
) -> list[Form]:
    """The forms of a partition's nodes, by number, in order, with guards: after whoever writes a tensor that something
    is assumed of, and of what has been counted at the end."""
    nodes = [subgraph.nodes[number] for number in params.nodes_to_replace]

    def guard(index: int, elements: np.ndarray) -> Expected:
        x = buffers.of(subgraph.tensors[index]).buffer
        known = Buffer(f"{x.name}.expected", x.dtype, x.shape, np.ascontiguousarray(elements))
        origin = [f"{node.name} {node.number}" for node in nodes if subgraph.tensors[index] in node.tensors_in]
        return Expected(Buffer(f"{x.name}.guard", uint8, (1,)), x, known, origin=tuple(origin))

    found: list[Form] = [guard(i, known) for i, known in assumed_outside(subgraph, params, buffers).items()]
    for node in nodes:
        found += forms[node.number]
        for t in node.tensors_out:
            if buffers.seen is not None and t.index in buffers.assumed:
                found.append(guard(t.index, buffers.seen[t.index]))
    origin = tuple(f"{node.name} {node.number}" for node in nodes)
    found += [
        Counted(Buffer(f"{count.name}.guard", uint8, (1,)), count, origin=origin) for count in buffers.counts.values()
    ]
    return found
