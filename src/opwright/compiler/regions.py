"""Compiled regions: the parts of a graph that are native calls, and the graph in which each of them is one node.

Lives here: `CompiledRegion`, `UncompiledNode`, `CompiledGraph`; `Schedule` and `replace_regions`, the graph of one.
Not here: which nodes are compiled (partitioner.py), how a region is called (calls.py), plans (loops/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..graph import Graph, Node, Value
from ..graph.builder import GraphRewriter, map_subgraphs
from ..graph.ir import Operand

ALIASES = ("Identity", "StopGradient")


class UncompiledNode(NamedTuple):
    """A node that runs as it is: its name and operator, and why."""

    node: str
    op: str
    why: str


class CompiledRegion(NamedTuple):
    """Nodes that run as one native call. constants: their constant operands; work: elements computed, about."""

    name: str
    nodes: tuple[Node, ...]
    constants: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    plan: Any
    work: int

    @property
    def graph(self) -> Graph:
        """The same as a graph, for where a kernel's guard fails."""
        return Graph(self.name, self.inputs, [*self.constants, *self.nodes], self.outputs)


class CompiledGraph(NamedTuple):
    """graph: in which each region is a node of a `NativeOperator`; regions, with those of loops' bodies and branches;
    uncompiled: the nodes that stay; note: by which a later process restores all this, see cached_regions.py."""

    graph: Graph
    regions: list[CompiledRegion]
    uncompiled: list[UncompiledNode]
    note: Any


class NativeProfile(NamedTuple):
    """The part of an operator's `CallProfile` that plans ask for."""

    single: bool
    narrows: bool = False


class NativeOperator:
    """The operator of a region's node: what plans ask of an operator. function: the native call."""

    name = "Native"
    catalogue = True
    effect = None
    compute_rule = None
    cpu_kernels = elementwise = control = False
    inplace: dict[str, str] = {}
    shape_only = ()

    def __init__(self, function: Callable[..., Any], outputs: int) -> None:
        self.function = function
        self.outputs = tuple(range(outputs))
        self.profile = NativeProfile(outputs == 1)

    def bind(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return attrs

    def kernel(self, bound: Any, dtype: Any = None) -> Callable[..., Any]:
        return self.function

    def pack_all(self, flat: Sequence[Any]) -> Sequence[Any]:
        return flat

    def flat_outputs(self, result: Any) -> tuple[Any, ...]:
        return (result,) if self.profile.single else tuple(result)


class Operands:
    """A graph's nodes without aliases, each as it reads what aliases stand for. nodes: in program order, constants
    among them; constants: those."""

    def __init__(self, graph: Graph) -> None:
        self._source: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        for node in graph.nodes:
            if node.op.name in ALIASES:
                self._source[node.outputs[0]] = self.of(next(node.operands))
            else:
                self.nodes.append(self._resolved(node))
        self.constants = [node for node in self.nodes if node.op.name == "Const"]
        self.outputs = [self.of(v) for v in graph.outputs]

    def of(self, value: Value) -> Value:
        """The value that an alias stands for, or the value itself."""
        return self._source.get(value, value)

    def _resolved(self, node: Node) -> Node:
        if not any(v in self._source for v in node.operands):
            return node
        return node.with_operands([self._operand(o) for o in node.inputs])

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, tuple):
            return tuple(map(self.of, operand))
        return None if operand is None else self.of(operand)

    def region(self, name: str, nodes: Sequence[Node], plan: Any, work: int) -> CompiledRegion:
        """The region of some nodes, which a plan runs."""
        inside = set(nodes)
        inner = {v for n in nodes for v in n.outputs}
        read = dict.fromkeys(v for n in nodes for v in n.operands if v not in inner)
        readers = {v for n in self.nodes if n not in inside for v in n.operands} | set(self.outputs)
        constants = tuple(n for n in self.constants if n.outputs[0] in read)
        inputs = tuple(v for v in read if v.constant is None)
        outputs = tuple(v for n in nodes for v in n.outputs if v in readers)
        return CompiledRegion(name, tuple(nodes), constants, inputs, outputs, plan, work)


Schedule = Sequence[CompiledRegion | Node]
"""What runs in order: regions, and nodes that stay; constants are not among them."""


def note_of(nodes: Iterable[Node], schedule: Schedule, uncompiled: Iterable[UncompiledNode], inner: list[Any]) -> Any:
    """Return what a later process restores a graph's regions by, as JSON can write it. nodes: those of the graph but
    aliases and constants; inner: the same of the graphs within."""
    places = {node: place for place, node in enumerate(nodes)}
    rows = [places[e] if isinstance(e, Node) else [e.work, *(places[n] for n in e.nodes)] for e in schedule]
    return {"schedule": rows, "uncompiled": [list(node) for node in uncompiled], "inner": inner}


def replace_regions(
    graph: Graph,
    operands: Operands,
    schedule: Schedule,
    call_of: Callable[[CompiledRegion], Any],
    within: Callable[[Graph], Graph],
) -> Graph:
    """Return the graph with one node for each region.

    call_of: builds the function of a region; within: compiles the graphs of control flow.
    """
    rewriter, count = GraphRewriter(graph), 0
    for node in operands.constants:
        rewriter.copy(node)
    for entry in schedule:
        if isinstance(entry, Node):
            copied = rewriter.insert(rewriter.remap(map_subgraphs(entry, within) if entry.op.control else entry))
            rewriter.replace(entry, copied.outputs)
        elif entry.outputs:
            operator = NativeOperator(call_of(entry), len(entry.outputs))
            inputs, specs = [rewriter.operand(v) for v in entry.inputs], [v.spec for v in entry.outputs]
            call = rewriter.node(operator, inputs, {}, specs, f"native_{count}", entry.nodes[0].at)
            rewriter.mapping.update(zip(entry.outputs, call.outputs))
            count += 1
    outputs = [rewriter.mapping.get(v, v) for v in operands.outputs]
    used = {v for n in rewriter.nodes for v in n.operands} | set(outputs)
    nodes = [n for n in rewriter.nodes if n.op.name != "Const" or n.outputs[0] in used]
    return Graph(graph.name, graph.inputs, nodes, outputs, graph.origin)
