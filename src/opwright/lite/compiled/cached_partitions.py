"""Partitions in the plan cache, so that a later process takes the same nodes without rules.

Lives here: `PartitionCache`: the key of a subgraph's plans, notes of plans to be saved, replacement of nodes by a note.
Not here: the cache's files (compiler/plan_cache.py, compiler/plan_serialization.py), when they are written (engine.py).

A subgraph has a plan for each of its partitions; nodes that no plan covers stay in its execution plan. A folded node
stays only for their sake: plans hold what it computed. Notes have the shapes that folded nodes read, as a later
process does not prepare the nodes that work them out; and the types of results, which an operator may set. A subgraph
without any plan, as one whose only node is a loop, has a note that says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...compiler import plan_cache
from ...compiler.loops.plans import LoopPlan
from ...compiler.plan_cache import CachedPlans
from ...core.dtypes import as_dtype
from ...core.errors import OpError
from ..delegate import Delegate, DelegateParams
from ..runtime.dynamic_shapes import is_folded
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import ARENA, CONSTANT, FOLDED
from .eligibility import ineligible, is_user_operator, served_elsewhere
from .fast_path import Use
from .plan_registration import CachedPlanRegistration, owner_of

if TYPE_CHECKING:
    from ..runtime.delegate_context import DelegateContext


MOST_COPIED = 1 << 20
"""Bytes of a constant that is saved with plans because it is no part of the file as it stands."""


class Codes(NamedTuple):
    """The users' code that plans of a subgraph depend on, in addition to the file and this package, as text. unseen:
    nodes that the rule declined when the key was built; a plan with such a node depends on more."""

    text: str
    unseen: frozenset[int]


class UnsavedPlans(NamedTuple):
    """The plans of a subgraph to be saved, as arguments of `plan_serialization.save`. covers_model: whether one plan
    runs all nodes."""

    key: str
    plans: list[LoopPlan]
    note: dict[str, Any]
    tensors: dict[int, np.ndarray]
    covers_model: bool

    @property
    def is_packed(self) -> bool:
        """Whether the plans' constants have their elements: they are packed when the subgraph is allocated."""
        return all(constant.array is not None for plan in self.plans for constant in plan.constants)


class PartitionCache:
    """The plans of one model. identity: text that identifies its bytes, None if its plans are not cached; codes:
    returns the users' code of nodes.

    unsaved: plans to be saved for later processes; model_key: the key of cached plans that run all nodes of the main
    subgraph
    """

    def __init__(self, identity: str | None, codes: Callable[[Subgraph, Sequence[int]], Codes]) -> None:
        self._identity, self._codes_of = identity, codes
        self._codes: dict[int, Codes] = {}  # by subgraph, what its plans depend on besides the file
        self.unsaved: list[UnsavedPlans] = []
        self.model_key: str | None = None

    def _key(self, subgraph: Subgraph) -> str | None:
        """Return the key of a subgraph's plans; None if they are not cached."""
        codes = self._codes.get(subgraph.index)
        if self._identity is None or codes is None:
            return None
        shapes = [subgraph.tensors[i].shape for i in subgraph.inputs]
        others = [node.number for node in subgraph.execution_plan if node.delegate is None and served_elsewhere(node)]
        handles = sorted((i, repr(resource)) for i, resource in subgraph.handles.items())
        return f"{self._identity} {subgraph.index} {shapes} {sorted(subgraph.changing)} {others} {handles} {codes.text}"

    def note(
        self,
        subgraph: Subgraph,
        delegate: Delegate,
        params: list[DelegateParams],
        plans: list[LoopPlan],
        uses: list[list[Use]],
        covers_model: bool,
        measured: bool,
    ) -> None:
        """Schedule saving of a subgraph's plans, unless there are nodes of other delegates, or users' code in a plan
        that was unknown when the key was built. uses: the variables of each partition."""
        key, claimed = self._key(subgraph), {i for p in params for i in p.nodes_to_replace}
        if (
            key is None
            or self._codes[subgraph.index].unseen & claimed
            or any(node.delegate not in (None, delegate) for node in subgraph.execution_plan)
        ):
            return
        covers_model = covers_model and len(plans) == 1 and subgraph.index == 0
        key = plan_cache.key_with_modes(key, measured)
        constants = {
            t.index: t.array
            for t in subgraph.tensors
            if t.kind == CONSTANT and t.array is not None and _is_read_in_place(t.array)
        }
        self.unsaved.append(UnsavedPlans(key, plans, _note_of(subgraph, params, uses), constants, covers_model))

    def replace(self, context: DelegateContext, delegate: Delegate) -> bool:
        """Replace nodes by the plans of an earlier process, which may have found none; return whether it was there."""
        subgraph = context.subgraph
        self._codes.pop(subgraph.index, None)
        numbers = [node.number for node in subgraph.execution_plan if is_user_operator(node)]
        with contextlib.suppress(OpError):  # from a node's init, which allocation reports; nothing is cached
            for number in numbers:
                subgraph.init(subgraph.nodes[number])
            self._codes[subgraph.index] = self._codes_of(subgraph, numbers) if numbers else Codes("", frozenset())
        base = self._key(subgraph)
        candidates = ((key, plan_cache.find(key)) for key in (() if base is None else plan_cache.keys_of(base)))
        key, cached = next((pair for pair in candidates if pair[1] is not None), ("", None))
        if cached is None or [n.number for n in subgraph.execution_plan] != cached.note["nodes"]:
            return False
        if not cached.plans:
            return True
        nodes = [subgraph.nodes[i] for part in cached.note["parts"] for i in part["nodes"]]
        if any(ineligible(node) is not None for node in nodes):
            return False  # other kernels serve it in this process
        _replace(context, delegate, cached, key)
        if subgraph.index == 0 and cached.note["order"] == [[0]]:
            self.model_key = key
        return True


def _is_read_in_place(array: np.ndarray) -> bool:
    """Return whether later processes read a constant where the interpreter has it: in the file or, if it is large, in a
    copy. Small copies, as of 64-bit biases that the file does not align, are saved with the plan, which then depends on
    the file's bytes alone (engine.py: `write_note`)."""
    return owner_of(array) is not None or array.nbytes > MOST_COPIED


def _note_of(subgraph: Subgraph, params: Sequence[DelegateParams], uses: Sequence[Sequence[Use]]) -> dict[str, Any]:
    """Return the order of partitions in the execution plan, and their nodes and tensors, as a JSON value.

    uses: the variables of each partition
    """
    part_of = {p.nodes_to_replace: k for k, p in enumerate(params)}
    left = [node for node in subgraph.execution_plan if node.delegate is None and not is_folded(node)]
    asked = _folded_for(subgraph, left)
    staying = {node.number for node in (*left, *asked)}
    order = [
        node.number if node.delegate is None else [part_of[node.params.nodes_to_replace]]  # type: ignore[attr-defined]
        for node in subgraph.execution_plan
        if node.delegate is not None or node.number in staying
    ]
    parts = []
    for p, used in zip(params, uses, strict=True):
        folded = _folded_for(subgraph, [subgraph.nodes[i] for i in p.nodes_to_replace])
        asked += folded
        outside = [i for i in (*p.input_tensors, *p.output_tensors) if subgraph.tensors[i].constant is None]
        parts.append(
            {
                "nodes": sorted({*p.nodes_to_replace, *(node.number for node in folded)}),
                "inputs": [i for i in p.input_tensors if subgraph.tensors[i].kind != FOLDED],
                "outputs": list(p.output_tensors),
                "types": {i: subgraph.tensors[i].dtype.name for i in p.output_tensors},
                "variables": [list(use) for use in used],
                "shapes": {i: list(subgraph.tensors[i].shape) for i in outside},
            }
        )
    read = {t.index: list(t.shape) for node in asked for t in node.tensors_in if t is not None and t.constant is None}
    return {
        "nodes": [node.number for node in subgraph.nodes if node.delegate is None],
        "order": order,
        "parts": parts,
        "shapes": read,
    }


def _folded_for(subgraph: Subgraph, nodes: Iterable[Node]) -> list[Node]:
    """Return the folded nodes whose outputs these nodes, or other folded ones, read."""
    makers = {
        t.index: node for node in subgraph.nodes if node.delegate is None and is_folded(node) for t in node.tensors_out
    }
    folded: dict[int, Node] = {}
    pending = list(nodes)
    while pending:
        for t in pending.pop().tensors_in:
            node = None if t is None else makers.get(t.index)
            if node is not None and node.number not in folded:
                folded[node.number] = node
                pending.append(node)
    return list(folded.values())


def _replace(context: DelegateContext, delegate: Delegate, cached: CachedPlans, key: str) -> None:
    """Replace the nodes of each partition of a note by its cached plans. key: of the plans."""
    note = cached.note
    tensors = context.subgraph.tensors
    for i, shape in note["shapes"].items():
        t = tensors[int(i)]
        if t.kind == ARENA and t.shape != tuple(shape):
            t.set_shape(tuple(shape))
    params, kernels = [], []
    for part, plan in zip(note["parts"], cached.plans, strict=True):
        for i, name in part["types"].items():
            t = tensors[int(i)]
            if t.dtype.name != name:  # its operator sets another type than the file's
                t.set_dtype(as_dtype(name))
        shapes = {int(i): tuple(shape) for i, shape in part["shapes"].items()}
        uses = [Use.of_note(row) for row in part["variables"]]
        params.append(DelegateParams(delegate, tuple(part["nodes"]), tuple(part["inputs"]), tuple(part["outputs"])))
        kernels.append(CachedPlanRegistration(plan, shapes, uses, cached, key))
    kernels.reverse()
    context.replace_in_order(kernels.pop, params, note["order"])
