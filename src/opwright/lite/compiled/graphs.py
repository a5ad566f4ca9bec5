"""Loop graphs of partitions, and compiling what they lack.

Lives here: `Taken`, `graph_of`, `uses_of`, `numbers`; `Cold`, `packed_as` and `compile_all`.
Not here: which nodes (delegate.py), guards of what is assumed (assuming.py), plans (compiler/loops/planning.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...compiler.kernels import Unmade
from ...compiler.loops.forms import Buffer, Form
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.planning import plan_of
from ...compiler.loops.plans import Plan
from ...compiler.lowering.context import Buffers
from ...compiler.native.builtins import make_builtins
from ...compiler.native.store import compiling_beside, pack
from ..delegate import DelegateParams
from ..runtime.node import Node
from ..runtime.resources import RandomSequence
from ..runtime.subgraph import Subgraph
from .assuming import guarded
from .uses import Use
from .variables import carried_out


class Taken(NamedTuple):
    """A node that has forms. together: the nodes, itself included, that these stand for as one; without the others'
    forms they mean nothing."""

    node: Node
    forms: Sequence[Form]
    together: tuple[int, ...]


class Cold(NamedTuple):
    """A graph for which kernels are not compiled yet; apart: as of `fused`."""

    graph: LoopGraph
    apart: Callable[[Form], Sequence[Form] | None]


def graph_of(subgraph: Subgraph, params: DelegateParams, taken: dict[int, Taken], buffers: Buffers) -> LoopGraph:
    """The loop graph of a partition."""

    def of(indices: Sequence[int]) -> tuple[Buffer, ...]:
        return tuple(buffers.of(t).buffer for t in map(subgraph.tensors.__getitem__, indices) if t.constant is None)

    made = guarded(subgraph, params, {number: t.forms for number, t in taken.items()}, buffers)
    forms, variables, after = carried_out(made)
    name = subgraph.name or f"subgraph{subgraph.index}"
    inputs = (*of(params.input_tensors), *variables, *buffers.counts.values())
    outputs = (*of(params.output_tensors), *after)
    return LoopGraph(name, inputs, outputs, tuple(forms))


def uses_of(plan: Plan, buffers: Buffers) -> list[Use]:
    """The variables that a plan reads or writes."""
    inputs = {id(b) for b in plan.graph.inputs}
    return [Use(int(b.name.removeprefix("t")), v.container, v.shared_name, b.dtype.name, shape, b.size,
                v.seeds if isinstance(v, RandomSequence) else None)
            for v, (b, shape) in buffers.state.items() if id(b) in inputs]  # fmt: skip


def numbers(form: Form) -> list[int]:
    """The nodes that a form came from."""
    return [int(name.rpartition(" ")[2]) for name in form.origin]


def packed_as(key: str, graph: LoopGraph) -> str:
    """What the kernels of a partition's graph are kept as, together. key: of the model."""
    return f"{key} {graph.name} {graph.forms[0].origin if graph.forms else ''}"


def compile_all(key: str, cold: Iterable[Cold]) -> None:
    """Compile what these graphs lack. key: of the model."""
    for graph, apart in cold:
        with pack(packed_as(key, graph)), compiling_beside():
            try:
                plan_of(graph, apart=apart)
            except Unmade:
                continue  # what else the graph has is compiled; it is planned again without these
    make_builtins()
