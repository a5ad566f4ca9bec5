"""Plan the partitions of a file: claimed nodes to a loop graph, fused, planned where its kernels are compiled.

Lives here: `PartitionPlanner`; `PendingCompilation` and `compile_pending`; `uses_of`, the variables of a plan.
Not here: which nodes (claims.py), guards of assumed sizes (run_time_sizes.py), fusion and plans (compiler/loops/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...compiler import tuning
from ...compiler.kernels import Unmade
from ...compiler.loops.forms import Buffer, Form
from ...compiler.loops.fusion import fused
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.planning import plan_of
from ...compiler.loops.plans import Plan
from ...compiler.lowering.context import Buffers
from ...compiler.native.builtins import make_builtins
from ...compiler.native.store import NotCached, compiling_beside, only_cached, pack
from ...compiler.tuning.loading import tune
from ...core import flags
from ..delegate import DelegateParams
from ..runtime.resources import RandomSequence
from ..runtime.subgraph import Subgraph
from .claims import ClaimedNode, Refusals
from .run_time_sizes import guarded
from .uses import Use
from .variables import carried_out


class PendingCompilation(NamedTuple):
    """A graph for which kernels are not compiled yet; apart: as of `fused`."""

    graph: LoopGraph
    apart: Callable[[Form], Sequence[Form] | None]


class PartitionPlanner:
    """Plans the partitions of one model. key: text that stands for it; background: whether a thread compiles.

    refused: why nodes stay with the interpreter; pending: what is to be compiled first; measured: by subgraph, whether
    all choices of its plans were measured
    """

    def __init__(self, key: str, background: bool) -> None:
        self.key, self._background = key, background
        self.refused: Refusals = {}
        self.pending: list[PendingCompilation] = []
        self.measured: dict[int, bool] = {}

    def plan(
        self, subgraph: Subgraph, params: DelegateParams, claimed: dict[int, ClaimedNode], buffers: Buffers
    ) -> Plan | None:
        """Return the plan of a partition. None where nodes of it turn out to have no kernel: they are claimed no more;
        or where kernels are to be compiled: the graph is among `pending`."""
        graph = _graph_of(subgraph, params, claimed, buffers)
        if tuning.is_on() and buffers.seen is None and not tune(graph):  # between runs nobody waits
            self.measured[subgraph.index] = False
        after, apart = fused(graph)
        try:
            with pack(_pack_name(self.key, after)):
                plan = self._planned(after, apart)
        except NotCached:
            self.pending.append(PendingCompilation(after, apart))
            return None
        except Unmade as why:
            for form, reason in why.forms.items():
                for number in _nodes_of(form):
                    if claimed.pop(number, None) is not None:
                        self.refused[subgraph.index, number] = f"no kernel: {reason}"
            return None
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        return plan

    def _planned(self, graph: LoopGraph, apart: Callable[[Form], Sequence[Form] | None]) -> Plan:
        """Raises NotCached where kernels are missing and are to be compiled in the background."""
        try:
            with only_cached():
                return plan_of(graph, apart=apart)
        except NotCached:
            if self._background:
                raise
        with compiling_beside():
            plan_of(graph, apart=apart)
        return plan_of(graph, apart=apart)


def _graph_of(
    subgraph: Subgraph, params: DelegateParams, claimed: dict[int, ClaimedNode], buffers: Buffers
) -> LoopGraph:
    """Return the loop graph of a partition."""

    def of(indices: Sequence[int]) -> tuple[Buffer, ...]:
        return tuple(buffers.of(t).buffer for t in map(subgraph.tensors.__getitem__, indices) if t.constant is None)

    made = guarded(subgraph, params, {number: c.forms for number, c in claimed.items()}, buffers)
    forms, variables, after = carried_out(made)
    name = subgraph.name or f"subgraph{subgraph.index}"
    inputs = (*of(params.input_tensors), *variables, *buffers.counts.values())
    outputs = (*of(params.output_tensors), *after)
    return LoopGraph(name, inputs, outputs, tuple(forms))


def uses_of(plan: Plan, buffers: Buffers) -> list[Use]:
    """The variables that a plan reads or writes."""
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


def _nodes_of(form: Form) -> list[int]:
    """The nodes that a form came from."""
    return [int(name.rpartition(" ")[2]) for name in form.origin]


def _pack_name(key: str, graph: LoopGraph) -> str:
    """What the kernels of a partition's graph are kept as, together. key: of the model."""
    return f"{key} {graph.name} {graph.forms[0].origin if graph.forms else ''}"


def compile_pending(key: str, pending: Iterable[PendingCompilation]) -> None:
    """Compile what these graphs lack. key: of the model."""
    for graph, apart in pending:
        with pack(_pack_name(key, graph)), compiling_beside():
            try:
                plan_of(graph, apart=apart)
            except Unmade:
                continue  # what else the graph has is compiled; it is planned again without these
    make_builtins()
