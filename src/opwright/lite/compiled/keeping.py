"""What is kept of a subgraph's plans besides the plans themselves, so that a later process takes the same nodes without
rules.

Lives here: `Made`, `note_of`, `constants_of`; `replace_as_kept`, which takes nodes as a note says.
Not here: the files (compiler/plan_serialization.py), when (engine.py), under which key (delegate.py).

A subgraph has a plan for each of its partitions; nodes that nobody compiles stay in its execution plan. A settled node
stays only for their sake: plans hold what it computed. Notes have the shapes that settled nodes read, as a later
process does not prepare the nodes that work them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...compiler.loops.plans import Plan
from ...compiler.plan_cache import CachedPlans
from ..delegate import Delegate, DelegateParams
from ..runtime.node import Node
from ..runtime.settling import is_settled
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import ARENA, CONSTANT, SETTLED
from .kernel import CachedPlanRegistration
from .uses import Use

if TYPE_CHECKING:
    from ..runtime.delegate_context import DelegateContext


class Made(NamedTuple):
    """The plans of a subgraph, to be kept: what `plan_serialization.save` takes. whole: whether one runs all nodes."""

    key: str
    plans: list[Plan]
    note: dict[str, Any]
    tensors: dict[int, np.ndarray]
    whole: bool


def note_of(subgraph: Subgraph, params: Sequence[DelegateParams], uses: Sequence[Sequence[Use]]) -> dict[str, Any]:
    """How the partitions stand in the execution plan, which nodes and tensors each stands for: as JSON can write it.

    uses: the variables of each partition
    """
    part_of = {p.nodes_to_replace: k for k, p in enumerate(params)}
    left = [node for node in subgraph.execution_plan if node.delegate is None and not is_settled(node)]
    asked = _settled_for(subgraph, left)
    staying = {node.number for node in (*left, *asked)}
    order = [node.number if node.delegate is None else [part_of[node.params.nodes_to_replace]]  # type: ignore[attr-defined]
             for node in subgraph.execution_plan if node.delegate is not None or node.number in staying]  # fmt: skip
    parts = []
    for p, used in zip(params, uses, strict=True):
        known = _settled_for(subgraph, [subgraph.nodes[i] for i in p.nodes_to_replace])
        asked += known
        outside = [i for i in (*p.input_tensors, *p.output_tensors) if subgraph.tensors[i].constant is None]
        parts.append({"nodes": sorted({*p.nodes_to_replace, *(node.number for node in known)}),
                      "inputs": [i for i in p.input_tensors if subgraph.tensors[i].kind != SETTLED],
                      "outputs": list(p.output_tensors), "variables": [list(use) for use in used],
                      "shapes": {i: list(subgraph.tensors[i].shape) for i in outside}})  # fmt: skip
    read = {t.index: list(t.shape) for node in asked for t in node.tensors_in if t is not None and t.constant is None}
    return {"nodes": [node.number for node in subgraph.nodes if node.delegate is None], "order": order, "parts": parts,
            "shapes": read}  # fmt: skip


def _settled_for(subgraph: Subgraph, nodes: Iterable[Node]) -> list[Node]:
    """The settled nodes whose outputs these read, or other settled ones among them."""
    makers = {t.index: node for node in subgraph.nodes if node.delegate is None and is_settled(node)
              for t in node.tensors_out}  # fmt: skip
    found: dict[int, Node] = {}
    todo = list(nodes)
    while todo:
        for t in todo.pop().tensors_in:
            node = None if t is None else makers.get(t.index)
            if node is not None and node.number not in found:
                found[node.number] = node
                todo.append(node)
    return list(found.values())


def constants_of(subgraph: Subgraph) -> dict[int, np.ndarray]:
    """The elements of the file's constants, by tensor."""
    return {t.index: t.array for t in subgraph.tensors if t.kind == CONSTANT and t.array is not None}


def replace_as_kept(context: DelegateContext, delegate: Delegate, kept: CachedPlans, key: str) -> None:
    """Take the nodes of each partition of a note by the plans that were kept with it under the key."""
    note = kept.note
    tensors = context.subgraph.tensors
    for i, shape in note["shapes"].items():
        t = tensors[int(i)]
        if t.kind == ARENA and t.shape != tuple(shape):
            t.set_shape(tuple(shape))
    params, kernels = [], []
    for part, plan in zip(note["parts"], kept.plans, strict=True):
        shapes = {int(i): tuple(shape) for i, shape in part["shapes"].items()}
        uses = [Use.of_note(row) for row in part["variables"]]
        params.append(DelegateParams(delegate, tuple(part["nodes"]), tuple(part["inputs"]), tuple(part["outputs"])))
        kernels.append(CachedPlanRegistration(plan, shapes, uses, kept, key))
    kernels.reverse()
    context.replace_in_order(kernels.pop, params, note["order"])
