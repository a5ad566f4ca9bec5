"""Compiled regions: the parts of a graph that are native calls, and the graph with a node for each.

Lives here: `CompiledRegion`, `UncompiledNode`, `CompiledGraph`; `Schedule`, `replace_regions`.
Not here: the selection of nodes (partitioner.py), calls of regions (calls.py), plans (loops/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..graph import Graph, Node, Value
from ..graph.builder import GraphRewriter, map_subgraphs
from ..graph.ir import Operand

ALIASES = ("Identity", "StopGradient")


class UncompiledNode(NamedTuple):
    """A node that runs uncompiled: its name and operator, and the reason."""

    node: str
    op: str
    why: str


class CompiledRegion(NamedTuple):
    """Nodes that run as one native call. constants: their constant operands; work: approximate number of computed
    elements."""

    name: str
    nodes: tuple[Node, ...]
    constants: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    plan: Any
    work: int

    @property
    def graph(self) -> Graph:
        """The same as a graph, to execute if a guard fails."""
        return Graph(self.name, self.inputs, [*self.constants, *self.nodes], self.outputs)


class CompiledGraph(NamedTuple):
    """A graph with compiled regions. graph: has a node of a `NativeOperator` for each region; regions, including those
    of control flow; uncompiled: the remaining nodes; note: restores this in a later process, see cached_regions.py."""

    graph: Graph
    regions: list[CompiledRegion]
    uncompiled: list[UncompiledNode]
    note: Any


class NativeProfile(NamedTuple):
    """The part of an operator's `CallProfile` that plans read."""

    single: bool
    narrows: bool = False


class NativeOperator:
    """The operator of a region's node, with the attributes that plans read. function: the native call."""

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
    """A graph's nodes without aliases, with operands resolved. nodes: in program order; constants: the constant ones
    among them."""

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
        """Return the value that an alias refers to, or the value itself."""
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
        """Return the region of these nodes, executed by a plan."""
        inside = set(nodes)
        inner = {v for n in nodes for v in n.outputs}
        read = dict.fromkeys(v for n in nodes for v in n.operands if v not in inner)
        readers = {v for n in self.nodes if n not in inside for v in n.operands} | set(self.outputs)
        constants = tuple(n for n in self.constants if n.outputs[0] in read)
        inputs = tuple(v for v in read if v.constant is None)
        outputs = tuple(v for n in nodes for v in n.outputs if v in readers)
        return CompiledRegion(name, tuple(nodes), constants, inputs, outputs, plan, work)


Schedule = Sequence[CompiledRegion | Node]
"""Regions and uncompiled nodes in execution order, without constants."""


def note_of(
    nodes: Iterable[Node], schedule: Schedule, uncompiled: Iterable[UncompiledNode], inner: list[Any]
) -> dict[str, Any]:
    """Return a JSON value from which a later process restores a graph's regions.

    nodes: of the graph, without aliases and constants; inner: notes of graphs in control flow.
    """
    indices = {node: index for index, node in enumerate(nodes)}
    rows = [indices[e] if isinstance(e, Node) else [e.work, *(indices[n] for n in e.nodes)] for e in schedule]
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
