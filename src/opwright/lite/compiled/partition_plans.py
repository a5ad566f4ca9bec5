"""Plan the partitions of a file: eligible nodes are claimed, lowered to a loop graph, fused, and planned.

Lives here: `PartitionPlanner`; `claim`; `ClaimedNode`; `TensorBuffers`; `PendingCompilation` and `compile_pending`;
`uses_of`, the variables of a plan; guards of the sizes that a plan assumes.
Not here: which nodes are eligible (eligibility.py), the rules (compiler/lowering/), fusion and plans (compiler/loops/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...compiler import tuning
from ...compiler.inlined_kernels import user_code
from ...compiler.kernels import NoKernel
from ...compiler.loops.buffers import Buffer
from ...compiler.loops.fusion import fused
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.indexing_ops import Expected, ExpectedCount
from ...compiler.loops.ops import LoopOp
from ...compiler.loops.planner import plan_of, plan_while_compiling
from ...compiler.loops.plans import LoopPlan
from ...compiler.lowering.context import Buffers, LoweringContext, NoLowering, RuleOperand
from ...compiler.lowering.registry import lower
from ...compiler.lowering.row_updates import RowUpdate, lower_row_update, row_updates
from ...compiler.lowering.stateful import with_stores
from ...compiler.native.builtins import make_builtins
from ...compiler.native.store import NotCached, compiling_in_background, only_cached, pack
from ...compiler.tuning.autotuner import tune
from ...core import flags
from ...core.dtypes import uint8
from ...core.errors import OpError
from ...graph import Node as GraphNode
from ...graph import Value
from ..delegate import DelegateParams
from ..importer import operator_of
from ..runtime.delegate_context import CALLERS
from ..runtime.dynamic_shapes import is_folded
from ..runtime.node import Node
from ..runtime.resources import RandomSequence, ResourceVariable
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC, Tensor
from .cached_partitions import Codes
from .eligibility import Seen, TensorOrder, ineligible
from .fast_path import Use
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
        self.untouched: dict[int, Buffer] = {}  # by tensor that none of the nodes reads or writes

    def at(self, tensor: int) -> RuleOperand:
        """Return the operand of a tensor that one of the nodes reads or writes."""
        return self.of(self.graph.value(tensor))

    def place(self, tensor: int, buffer: Buffer) -> None:
        """Let an input of the nodes be in a buffer of another graph."""
        if self.graph.has(tensor):
            self.rename(self.graph.value(tensor), self.at(tensor).with_buffer(buffer))
        else:
            self.untouched[tensor] = buffer


MAX_NODES = 1 << 24
"""More than a subgraph has: distance of the names of a node's several resources."""


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

    def cache(self, node: GraphNode, layer: int) -> list[tuple[str, Hashable]]:
        """Return the names and variables of a layer's cache: its keys, its values, the position of entry 0."""
        index = operator_of(node)
        assert index is not None
        cache = self._subgraph.resources.layer(layer)
        variables = (cache.stored_keys, cache.stored_values, cache.first(*index))
        return [(f"t{-1 - index[1] - k * MAX_NODES}", variable) for k, variable in enumerate(variables, 1)]

    def sequence(self, node: GraphNode, seeds: tuple[int, int]) -> tuple[str, Hashable]:
        """Return a name that is unique among tensors, and the node's random numbers."""
        index = operator_of(node)
        assert index is not None
        return f"t{-1 - index[1]}", self._subgraph.resources.sequence(*index, seeds)


def _row_updates(subgraph: Subgraph, model: LoadedModel, numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the updates of rows of lists by the numbers of their nodes, where there can be any."""
    if not any(node.name == "SLICE" for node in subgraph.execution_plan):
        return []
    graph = model.nodes(subgraph, numbers)
    outputs = {graph.value(i) for i in subgraph.outputs if graph.has(i)}
    return [(_number(u.before), _number(u.after), _number(u.join)) for u in row_updates(graph.graph, outputs)]


Calls = Callable[[Node, LoweringContext], None]
"""Lowers a node that runs subgraphs. Raises NoLowering."""


def is_caller(node: Node) -> bool:
    """Return whether a node runs subgraphs of the file each time: branch, loop, call, composite with effects."""
    if node.name == "STABLEHLO_COMPOSITE":
        return ineligible(node) is not None
    return node.name in CALLERS and node.name != "CALL_ONCE"


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
    calls: Calls | None = None,
) -> dict[int, ClaimedNode]:
    """Return the nodes, all of one subgraph, that a rule lowers, by number; add the reasons of others to `refused`.

    has_shape: whether a tensor's shape is final; by default that of inputs, constants and outputs of claimed nodes.
    updates: numbers of nodes that replace rows of lists, which are claimed together. calls: lowers nodes that run
    subgraphs; None leaves them to the interpreter
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
        caller = calls is not None and is_caller(node)
        try:
            for one in (subgraph.nodes[number] for number in group):
                if (why := (None if caller else ineligible(one)) or order.ineligible(one)) is not None:
                    raise NoLowering(why)
            update = RowUpdate(*map(graph.graph_node, group)) if len(group) > 1 else None
            reads = node.tensors_in if update is None else [tensors[graph.number(v)] for v in update.reads]
            for t in reads:
                if t is not None and t.constant is None and not (has_shape(t) if has_shape else id(t) in safe):
                    raise NoLowering(f"the shape of {t!r} is unknown before a run")
            if has_shape is not None and not all(map(has_shape, node.tensors_out)):
                raise NoLowering("its results' shapes are unknown before a run")
            context = LoweringContext(graph.node(node.number), buffers)
            if caller and calls is not None:
                calls(node, context)
            elif update is None:
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


def _code_of(buffers: TensorBuffers, number: int) -> str | None:
    """Return the code of a node's kernel, or None if the rule declines the node."""
    try:
        ctx = LoweringContext(buffers.graph.node(number), buffers)
        lower(ctx)
    except NoLowering:
        return None
    return f"{number} {user_code(ctx.ops[0])}"


class PendingCompilation(NamedTuple):
    """A graph whose kernels are not compiled yet; apart: as of `fused`."""

    graph: LoopGraph
    apart: Callable[[LoopOp], Sequence[LoopOp] | None]


class PartitionPlanner:
    """The planner of a model's partitions, created with its first plan.

    key: text that identifies the model; background: whether a thread compiles. refused: reasons why nodes remain with
    the interpreter; pending: graphs to compile first; measured: by subgraph, whether all choices of its plans were
    measured.
    """

    def __init__(self, key: str, background: bool) -> None:
        self.key, self._background = key, background
        self.refused: Refusals = {}
        self.pending: list[PendingCompilation] = []
        self.measured: dict[int, bool] = {}
        self._model: LoadedModel | None = None

    def loaded(self, subgraph: Subgraph) -> LoadedModel:
        """Return the graphs of the subgraph's model."""
        if self._model is None:
            self._model = LoadedModel(subgraph.family)
        return self._model

    def prepare_and_claim(self, subgraph: Subgraph) -> tuple[dict[int, ClaimedNode], TensorBuffers] | None:
        """Prepare every node by its operator, except nodes that update rows of lists, and claim them.

        Return None if a node is not eligible or its operator rejects it. A result whose shape is determined at run time
        has the file's shape here; the rule checks it.
        """
        model = self.loaded(subgraph)
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
        for (
            before,
            _,
            whole,
        ) in updates:  # files say [1, ...] of lists whose length was not known when they were converted
            x, result = subgraph.nodes[before].tensors_in[0], subgraph.nodes[whole].tensors_out[0]
            if x is not None and result.shape != x.shape:
                result.set_shape(x.shape)
        buffers = TensorBuffers(model.nodes(subgraph, numbers), subgraph)
        return claim(subgraph.execution_plan, buffers, None, self.refused, updates), buffers

    def claim(
        self, subgraph: Subgraph, nodes: Sequence[Node], has_shape: Callable[[Tensor], bool], seen: Seen | None = None
    ) -> tuple[dict[int, ClaimedNode], TensorBuffers]:
        """Claim prepared nodes. has_shape: whether a tensor's shape is final; seen: elements of a run, to assume."""
        numbers = [node.number for node in nodes if node.delegate is None]
        buffers = TensorBuffers(self.loaded(subgraph).nodes(subgraph, numbers), subgraph, seen)
        return claim(nodes, buffers, has_shape, self.refused), buffers

    def codes(self, subgraph: Subgraph, numbers: Sequence[int]) -> Codes:
        """Return the users' code that plans of these nodes depend on."""
        buffers = TensorBuffers(self.loaded(subgraph).nodes(subgraph, numbers), subgraph)
        codes = {number: _code_of(buffers, number) for number in numbers}
        text = "; ".join(code or f"{number} in Python" for number, code in codes.items())
        return Codes(text, frozenset(number for number, code in codes.items() if code is None))

    def plan(
        self, subgraph: Subgraph, params: DelegateParams, claimed: dict[int, ClaimedNode], buffers: TensorBuffers
    ) -> LoopPlan | None:
        """Return the plan of a partition. None if some of its nodes have no kernel: their claims are revoked; or if
        kernels must be compiled: the graph is added to `pending`."""
        graph = _graph_of(subgraph, params, claimed, buffers)
        if tuning.is_on() and buffers.seen is None and not tune(graph):  # between runs, no caller waits
            self.measured[subgraph.index] = False
        after, apart = fused(graph)
        try:
            with pack(_pack_name(self.key, after)):
                plan = self._planned(after, apart)
        except NotCached:
            self.pending.append(PendingCompilation(after, apart))
            return None
        except NoKernel as why:
            for op, reason in why.ops.items():
                for number in (int(name.rpartition(" ")[2]) for name in op.origin):
                    if claimed.pop(number, None) is not None:
                        self.refused[subgraph.index, number] = f"no kernel: {reason}"
            return None
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        return plan

    def _planned(self, graph: LoopGraph, apart: Callable[[LoopOp], Sequence[LoopOp] | None]) -> LoopPlan:
        """Return the plan. Raises NotCached if kernels are missing and must be compiled in the background."""
        try:
            with only_cached():
                return plan_of(graph, parts_of=apart)
        except NotCached:
            if self._background:
                raise
        return plan_while_compiling(graph, parts_of=apart)


def _graph_of(
    subgraph: Subgraph, params: DelegateParams, claimed: dict[int, ClaimedNode], buffers: TensorBuffers
) -> LoopGraph:
    """Return the loop graph of a partition."""

    def of(indices: Sequence[int]) -> tuple[Buffer, ...]:
        return tuple(buffers.at(i).buffer for i in indices if subgraph.tensors[i].constant is None)

    guarded = _guarded(subgraph, params, {number: c.ops for number, c in claimed.items()}, buffers)
    ops, variables, after = with_stores(guarded)
    name = subgraph.name or f"subgraph{subgraph.index}"
    inputs = (*of(params.input_tensors), *variables, *buffers.counts.values())
    outputs = (*of(params.output_tensors), *after)
    return LoopGraph(name, inputs, outputs, tuple(ops))


def uses_of(plan: LoopPlan, buffers: TensorBuffers) -> list[Use]:
    """Return the variables that a plan reads or writes."""
    inputs = {id(b) for b in plan.graph.inputs}
    return [
        Use(
            int(b.name.removeprefix("t")),
            v.container,
            v.shared_name,
            b.dtype.name,
            shape,
            b.size,
            v.seeds if isinstance(v, RandomSequence) else None,
        )
        for v, (b, shape) in buffers.state.items()
        if id(b) in inputs
    ]


def _pack_name(key: str, graph: LoopGraph) -> str:
    """Return the name of the pack of a partition's kernels. key: of the model."""
    return f"{key} {graph.name} {graph.ops[0].origin if graph.ops else ''}"


def compile_pending(key: str, pending: Iterable[PendingCompilation]) -> None:
    """Compile the missing kernels of these graphs. key: of the model."""
    for graph, apart in pending:
        with pack(_pack_name(key, graph)), compiling_in_background():
            try:
                plan_of(graph, parts_of=apart)
            except NoKernel:
                continue  # its other kernels are compiled; it is planned again without these operations
    make_builtins()


def assumed_outside(subgraph: Subgraph, params: DelegateParams, buffers: TensorBuffers) -> dict[int, np.ndarray]:
    """Return the elements of inputs that a partition's plan assumes: elements that rules requested, or that follow from
    such elements in another partition."""
    assumed: dict[int, np.ndarray] = {}
    if buffers.seen is None:
        return assumed
    for i in params.input_tensors:
        operand = buffers.at(i)
        if subgraph.tensors[i].constant is None and operand.is_constant and operand.size:
            assumed[i] = np.asarray(operand.constant)
    return assumed


def _guarded(
    subgraph: Subgraph, params: DelegateParams, ops: Mapping[int, Sequence[LoopOp]], buffers: TensorBuffers
) -> list[LoopOp]:
    """Return the operations of a partition's nodes, in order, with guards: after the writers of tensors whose elements
    are assumed, and of counts at the end."""
    nodes = [subgraph.nodes[number] for number in params.nodes_to_replace]

    def guard(index: int, elements: np.ndarray) -> Expected:
        x = buffers.at(index).buffer
        expected = Buffer(f"{x.name}.expected", x.dtype, x.shape, np.ascontiguousarray(elements))
        origin = [f"{node.name} {node.number}" for node in nodes if subgraph.tensors[index] in node.tensors_in]
        return Expected(Buffer(f"{x.name}.guard", uint8, (1,)), x, expected, origin=tuple(origin))

    guarded: list[LoopOp] = [guard(i, elements) for i, elements in assumed_outside(subgraph, params, buffers).items()]
    for node in nodes:
        guarded += ops[node.number]
        for t in node.tensors_out:
            if buffers.seen is not None and t.index in buffers.assumed and buffers.seen[t.index].size:
                guarded.append(guard(t.index, buffers.seen[t.index]))
    origin = tuple(f"{node.name} {node.number}" for node in nodes)
    guarded += [
        ExpectedCount(Buffer(f"{count.name}.guard", uint8, (1,)), count, origin=origin)
        for count in buffers.counts.values()
    ]
    return guarded
