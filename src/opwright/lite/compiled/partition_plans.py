"""Plan the partitions of a file: claimed nodes to a loop graph, fused, planned where its kernels are compiled.

Lives here: `PartitionPlanner`; `PendingCompilation` and `compile_pending`; `uses_of`, the variables of a plan; guards
of the sizes that a plan assumes.
Not here: which nodes (claims.py), fusion and plans (compiler/loops/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...compiler import tuning
from ...compiler.kernels import NoKernel
from ...compiler.loops.buffers import Buffer
from ...compiler.loops.fusion import fused
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.indexing_ops import Expected, ExpectedCount
from ...compiler.loops.ops import LoopOp
from ...compiler.loops.planner import plan_of
from ...compiler.loops.plans import LoopPlan
from ...compiler.lowering.variables import with_stores
from ...compiler.native.builtins import make_builtins
from ...compiler.native.store import NotCached, compiling_beside, only_cached, pack
from ...compiler.tuning.autotuner import tune
from ...core import flags
from ...core.dtypes import uint8
from ..delegate import DelegateParams
from ..runtime.node import Node
from ..runtime.resources import RandomSequence
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import Tensor
from .cached_partitions import Codes
from .claims import ClaimedNode, Refusals, TensorBuffers, claim, codes_of, prepare_and_claim
from .eligibility import Seen
from .nodes import LoadedModel
from .variables import Use


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

    def _loaded(self, subgraph: Subgraph) -> LoadedModel:
        if self._model is None:
            self._model = LoadedModel(subgraph.family)
        return self._model

    def prepare_and_claim(self, subgraph: Subgraph) -> tuple[dict[int, ClaimedNode], TensorBuffers] | None:
        """Prepare and claim every node; see `claims.prepare_and_claim`."""
        return prepare_and_claim(subgraph, self._loaded(subgraph), self.refused)

    def claim(
        self, subgraph: Subgraph, nodes: Sequence[Node], has_shape: Callable[[Tensor], bool], seen: Seen | None = None
    ) -> tuple[dict[int, ClaimedNode], TensorBuffers]:
        """Claim prepared nodes. has_shape: whether a tensor's shape is final; seen: elements of a run, to assume."""
        numbers = [node.number for node in nodes if node.delegate is None]
        buffers = TensorBuffers(self._loaded(subgraph).nodes(subgraph, numbers), subgraph, seen)
        return claim(nodes, buffers, has_shape, self.refused), buffers

    def codes(self, subgraph: Subgraph, numbers: Sequence[int]) -> Codes:
        """Return the users' code of these nodes; see `claims.codes_of`."""
        return codes_of(TensorBuffers(self._loaded(subgraph).nodes(subgraph, numbers), subgraph), numbers)

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
                for number in _nodes_of(op):
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
        with compiling_beside():
            plan_of(graph, parts_of=apart)
        return plan_of(graph, parts_of=apart)


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


def _nodes_of(op: LoopOp) -> list[int]:
    """Return the nodes of an operation."""
    return [int(name.rpartition(" ")[2]) for name in op.origin]


def _pack_name(key: str, graph: LoopGraph) -> str:
    """Return the name of the pack of a partition's kernels. key: of the model."""
    return f"{key} {graph.name} {graph.ops[0].origin if graph.ops else ''}"


def compile_pending(key: str, pending: Iterable[PendingCompilation]) -> None:
    """Compile the missing kernels of these graphs. key: of the model."""
    for graph, apart in pending:
        with pack(_pack_name(key, graph)), compiling_beside():
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
        if subgraph.tensors[i].constant is None and operand.is_constant:
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
            if buffers.seen is not None and t.index in buffers.assumed:
                guarded.append(guard(t.index, buffers.seen[t.index]))
    origin = tuple(f"{node.name} {node.number}" for node in nodes)
    guarded += [
        ExpectedCount(Buffer(f"{count.name}.guard", uint8, (1,)), count, origin=origin)
        for count in buffers.counts.values()
    ]
    return guarded
