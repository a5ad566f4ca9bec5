"""Claim eligible nodes for the compiled engine and lower them to loop operations.

Lives here: `prepare_and_claim`, before which no node is prepared; `claim`; `ClaimedNode`; `TensorBuffers`; `codes_of`.
Not here: what makes a node eligible (eligibility.py), the rules (compiler/lowering/), partitions of claimed nodes and
their plans (partition_plans.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...compiler.inlined_kernels import user_code
from ...compiler.loops.ops import LoopOp
from ...compiler.lowering.context import Buffers, LoweringContext, NoLowering, RuleOperand
from ...compiler.lowering.registry import lower
from ...compiler.lowering.row_updates import RowUpdate, lower_row_update, row_updates
from ...core import flags
from ...core.errors import OpError
from ...graph import Node as GraphNode
from ...graph import Value
from ..importer import operator_of
from ..runtime.node import Node
from ..runtime.resources import ResourceVariable
from ..runtime.shape_constant_folding import is_folded
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC, Tensor
from .cached_partitions import Codes
from .eligibility import TensorOrder, ineligible
from .nodes import LoadedModel, NodeGraph

Refusals = dict[tuple[int, int], str]
"""Reasons why nodes remain with the interpreter, by subgraph and node."""


class ClaimedNode(NamedTuple):
    """A node with loop operations. together: the nodes, itself included, that these represent together; the others have
    none."""

    number: int
    ops: Sequence[LoopOp]
    together: tuple[int, ...]


class TensorBuffers(Buffers):
    """Operands of nodes of a subgraph, also by tensor number. Arguments as of `Buffers`."""

    def __init__(self, graph: NodeGraph, subgraph: Subgraph, seen: Mapping[int, np.ndarray] | None = None) -> None:
        super().__init__(graph.operand, seen, SubgraphResources(graph, subgraph))
        self.graph = graph

    def at(self, tensor: int) -> RuleOperand:
        """Return the operand of a tensor that one of the nodes reads or writes."""
        return self.of(self.graph.value(tensor))


class SubgraphResources:
    """The resources that nodes of a subgraph read and write; see `ResourceState`."""

    def __init__(self, graph: NodeGraph, subgraph: Subgraph) -> None:
        self._graph, self._subgraph = graph, subgraph

    def variable(self, handle: Value) -> tuple[str, Hashable] | None:
        """Return the name of a handle's memory and the variable, if it is known when tensors are allocated."""
        number = self._graph.number(handle)
        elements = self._subgraph.tensors[number].constant
        variable = None if elements is None or elements.size != 1 else elements.reshape(-1)[0]
        return (f"t{number}", variable) if isinstance(variable, ResourceVariable) else None

    def sequence(self, node: GraphNode, seeds: tuple[int, int]) -> tuple[str, Hashable]:
        """Return a name that is unique among tensors, and the node's random numbers."""
        index = operator_of(node)
        assert index is not None
        return f"t{-1 - index[1]}", self._subgraph.resources.sequence(*index, seeds)


def prepare_and_claim(
    subgraph: Subgraph, model: LoadedModel, refused: Refusals
) -> tuple[dict[int, ClaimedNode], TensorBuffers] | None:
    """Prepare every node by its operator, except nodes that update rows of lists, and claim them.

    Return None if a node is not eligible or its operator rejects it. A result whose shape is determined at run time has
    the file's shape here; the rule checks it.
    """
    numbers = [node.number for node in subgraph.execution_plan if node.delegate is None]
    updates = _row_updates(subgraph, model, numbers)
    replaced = {number for numbers in updates for number in numbers}

    def prepare(node: Node) -> None:
        if (why := ineligible(node)) is not None:
            raise NoLowering(why)
        kinds = [(t, t.kind) for t in node.tensors_out]
        subgraph.prepare(node)
        for t, kind in kinds:
            if t.kind == DYNAMIC:
                t.set_kind(kind)

    try:
        if subgraph.prepare_all([n for n in subgraph.execution_plan if n.number not in replaced], prepare):
            return None
    except (NoLowering, OpError):  # the allocation reports it
        return None
    for before, _, whole in updates:  # files say [1, ...] of lists whose length was not known when they were converted
        x, result = subgraph.nodes[before].tensors_in[0], subgraph.nodes[whole].tensors_out[0]
        if x is not None and result.shape != x.shape:
            result.set_shape(x.shape)
    buffers = TensorBuffers(model.nodes(subgraph, numbers), subgraph)
    return claim(subgraph.execution_plan, buffers, None, refused, updates), buffers


def _row_updates(subgraph: Subgraph, model: LoadedModel, numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the updates of rows of lists by the numbers of their nodes, where there can be any."""
    if not any(node.name == "SLICE" for node in subgraph.execution_plan):
        return []
    graph = model.nodes(subgraph, numbers)
    outputs = {graph.value(i) for i in subgraph.outputs if graph.has(i)}
    return [(_number(u.before), _number(u.after), _number(u.join)) for u in row_updates(graph.graph, outputs)]


def _number(node: GraphNode) -> int:
    index = operator_of(node)
    assert index is not None
    return index[1]


def claim(
    nodes: Sequence[Node],
    buffers: TensorBuffers,
    has_shape: Callable[[Tensor], bool] | None,
    refused: Refusals,
    updates: Iterable[tuple[int, int, int]] = (),
) -> dict[int, ClaimedNode]:
    """Return the nodes, all of one subgraph, that a rule lowers, by number; add the reasons of others to `refused`.

    has_shape: whether a tensor's shape is final; by default that of inputs, constants and outputs of claimed nodes.
    updates: numbers of nodes that replace rows of lists, which are claimed together
    """
    claimed: dict[int, ClaimedNode] = {}
    if not nodes:
        return claimed
    subgraph, graph = nodes[0].subgraph, buffers.graph
    tensors = subgraph.tensors
    for node in nodes:
        refused.pop((subgraph.index, node.number), None)
    safe = {id(tensors[i]) for i in subgraph.inputs} | {id(t) for t in tensors if t.is_variable}
    order = TensorOrder(subgraph)
    by_whole = {group[2]: group for group in updates}
    parts = {number for group in by_whole.values() for number in group[:2]}
    for node in nodes:
        if is_folded(node) or node.number in parts:
            continue
        group = by_whole.get(node.number, (node.number,))
        try:
            for one in (subgraph.nodes[number] for number in group):
                if (why := ineligible(one) or order.ineligible(one)) is not None:
                    raise NoLowering(why)
            update = RowUpdate(*map(graph.graph_node, group)) if len(group) > 1 else None
            reads = node.tensors_in if update is None else [tensors[graph.number(v)] for v in update.reads]
            for t in reads:
                if t is not None and t.constant is None and not (has_shape(t) if has_shape else id(t) in safe):
                    raise NoLowering(f"the shape of {t!r} is unknown before a run")
            if has_shape is not None and not all(map(has_shape, node.tensors_out)):
                raise NoLowering("its results' shapes are unknown before a run")
            context = LoweringContext(graph.node(node.number), buffers)
            if update is None:
                lower(context)
            else:
                lower_row_update(context, update)
        except NoLowering as refusal:
            refused |= {(subgraph.index, number): str(refusal) for number in group}
            continue
        except Exception as error:  # outside of the rule's preconditions: the interpreter's kernel reports the error
            if flags.verify:
                raise
            refused |= {(subgraph.index, number): f"{type(error).__name__}: {error}" for number in group}
            continue
        claimed |= {number: ClaimedNode(number, (), group) for number in group}
        claimed[node.number] = claimed[node.number]._replace(ops=context.ops)
        safe.update(map(id, node.tensors_out))
    return claimed


def codes_of(buffers: TensorBuffers, numbers: Iterable[int]) -> Codes:
    """Return the users' code that plans of these nodes depend on."""
    codes = {number: _code_of(buffers, number) for number in numbers}
    text = "; ".join(code or f"{number} in Python" for number, code in codes.items())
    return Codes(text, frozenset(number for number, code in codes.items() if code is None))


def _code_of(buffers: TensorBuffers, number: int) -> str | None:
    """Return the code of a node's kernel, or None if the rule declines the node."""
    try:
        ctx = LoweringContext(buffers.graph.node(number), buffers)
        lower(ctx)
    except NoLowering:
        return None
    return f"{number} {user_code(ctx.ops[0])}"
