"""Compiled regions: the partition of a graph into sets of nodes, and the graph with one node for each set.

Lives here: dependencies, levels, grouping, merging and the resulting schedule, on plain numbers; `CompiledRegion`,
`CompiledLoop`, `UncompiledNode`, `CompiledGraph`; `Schedule`, `replace_regions`.
Not here: the selection of nodes (partitioner.py; files: lite/compiled/partition_plans.py), calls of regions (calls.py)
and of loops (scalar_loops.py), plans (loops/).

Nodes are places 0, 1, 2, ... in a valid order. A partition is a set of claimed nodes that is

    acyclic     no path leaves it and comes back: its inputs are all there before any of its outputs is needed
    connected   along tensors that one of them makes and another reads, and along effects, which keep their order;
                public delegates alone ask for this
    maximal     no two connected partitions joined by a tensor could be one without breaking the rules above

Levels are the official partitioner's epochs, computed in one pass as nodes are sorted already. Without connectedness a
level's claimed nodes are one partition, and no partition of the same nodes has fewer: nodes of two levels are apart by
a path through nodes that are not claimed. Connected partitions are the joined nodes of a level; as a level can end for
the sake of another branch, a further step merges neighbours. Its searches are bounded: past the budget, nodes stay in
separate partitions, which is valid, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.dtypes import resource
from ..core.specs import TensorSpec
from ..graph import Graph, Node, Value
from ..graph.builder import GraphRewriter, map_subgraphs
from ..graph.ir import Operand
from .memory import ALIASES
from .scalar_loops import LoopInput, ScalarLoopCall

BUDGET = 2_000_000  # steps of search for merging, about half a second; networks of 1000 nodes take a few thousand


class NodeAccess(NamedTuple):
    """The accesses of one node. reads, writes: tensors or state, by any name; ordered: whether it has another effect
    (on a variable, a table, the world) that orders it among all such nodes."""

    reads: Sequence[Hashable]
    writes: Sequence[Hashable]
    ordered: bool = False


class Dependencies(NamedTuple):
    """The earlier nodes that each node depends on: `data` for a tensor or an effect, `all` for any reason."""

    data: list[set[int]]
    all: list[set[int]]


def dependencies_of(nodes: Iterable[NodeAccess]) -> Dependencies:
    """Return the dependencies of nodes in a valid order. Rewriting a tensor orders its writers and readers."""
    data: list[set[int]] = []
    all_: list[set[int]] = []
    writer: dict[Hashable, int] = {}
    readers: dict[Hashable, list[int]] = {}
    last_ordered = None
    for index, node in enumerate(nodes):
        sources = {writer[t] for t in node.reads if t in writer}
        other = {r for t in node.writes for r in readers.get(t, ())} | {writer[t] for t in node.writes if t in writer}
        if node.ordered:
            sources |= set() if last_ordered is None else {last_ordered}
            last_ordered = index
        for t in node.reads:
            readers.setdefault(t, []).append(index)
        for t in node.writes:
            writer[t] = index
            readers.pop(t, None)
        data.append(sources)
        all_.append((sources | other) - {index})
    return Dependencies(data, all_)


def partition(dependencies: Dependencies, claimed: set[int], connected: bool = True) -> list[list[int]]:
    """Return the partitions of the claimed nodes, each sorted, in the order of their first nodes.

    connected: as above; else the claimed nodes of a level are one partition, whether tensors join them or not
    """
    level = levels(dependencies, claimed, dependencies.data if connected else dependencies.all)
    if connected:
        group = _Groups(len(level))
        neighbours = [(e, node) for node in sorted(claimed) for e in sorted(dependencies.data[node]) if e in claimed]
        for earlier, node in neighbours:
            if level[earlier] == level[node]:
                group.join(earlier, node)
        _merge(dependencies, sorted(neighbours), group)
        level = [group.of(node) for node in range(len(level))]
    members: dict[int, list[int]] = {}
    for node in sorted(claimed):
        members.setdefault(level[node], []).append(node)
    return list(members.values())


def levels(dependencies: Dependencies, claimed: set[int], joining: Sequence[set[int]]) -> list[int]:
    """Return the least level of each node; claimed nodes run at odd levels, the others at even ones.

    joining: by node, the dependencies on claimed nodes that may share its level; all other dependencies are on lower
    levels, so that nodes of a level are connected by such dependencies only.
    """
    level: list[int] = []
    for node, earlier in enumerate(dependencies.all):
        odd = node in claimed
        lower_bound = max(
            (level[e] + 2 * (odd and e in claimed and e not in joining[node]) for e in earlier), default=0
        )
        level.append(lower_bound + ((lower_bound & 1) != odd))
    return level


class _Groups:
    """Disjoint sets: union by the smaller number, with path halving."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def of(self, node: int) -> int:
        parent = self.parent
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    def join(self, a: int, b: int) -> None:
        a, b = sorted((self.of(a), self.of(b)))
        self.parent[b] = a


def _merge(dependencies: Dependencies, neighbours: Sequence[tuple[int, int]], group: _Groups) -> None:
    """Join neighboring groups unless a path connects them through a third."""
    later: dict[int, set[int]] = {}
    earlier: dict[int, set[int]] = {}
    for node, earlier_nodes in enumerate(dependencies.all):
        for e in earlier_nodes:
            a, b = group.of(e), group.of(node)
            if a != b:
                later.setdefault(a, set()).add(b)
                earlier.setdefault(b, set()).add(a)
    steps = BUDGET
    changed = True
    while changed:
        changed = False
        left = []
        for e, node in neighbours:
            a, b = group.of(e), group.of(node)
            if a == b:
                continue
            detour, steps = _detour(later, a, b, steps)
            if not detour and b not in later.get(a, ()):  # else a path back would be a cycle
                detour, steps = _detour(later, b, a, steps)
            if steps <= 0:
                return
            if detour:
                left.append((e, node))
                continue
            group.join(a, b)
            remaining, gone = sorted((a, b))
            for edges, back in ((later, earlier), (earlier, later)):
                both = (edges.pop(a, set()) | edges.pop(b, set())) - {a, b}
                edges[remaining] = both
                for other in both:
                    back[other] -= {gone}
                    back[other].add(remaining)
            changed = True
        neighbours = left


def _detour(later: dict[int, set[int]], a: int, b: int, steps: int) -> tuple[bool, int]:
    """Return whether a path leads from a to b through a third group, and the remaining search steps."""
    todo = [g for g in later.get(a, ()) if g != b]
    seen = set(todo)
    while todo and steps > 0:
        reached = later.get(todo.pop(), ())
        steps -= 1 + len(reached)
        if b in reached:
            return True, steps
        new = [g for g in reached if g not in seen]
        seen.update(new)
        todo += new
    return False, steps


def schedule(dependencies: Dependencies, groups: Sequence[Sequence[int]]) -> list[tuple[int | None, int]]:
    """Return the order in which each group is contiguous: (group, its first node) and (None, node), as early as before.

    raises ValueError if the groups are not partitions, as a cycle runs through one of them
    """
    of: dict[int, int] = {node: index for index, group in enumerate(groups) for node in group}
    first = [min(group) for group in groups]
    count = len(dependencies.all)

    def key(node: int) -> int:
        return first[of[node]] if node in of else node

    later: dict[int, set[int]] = {}
    open_: dict[int, int] = dict.fromkeys(map(key, range(count)), 0)
    for node, earlier_nodes in enumerate(dependencies.all):
        for e in earlier_nodes:
            a, b = key(e), key(node)
            if a != b and b not in later.setdefault(a, set()):
                later[a].add(b)
                open_[b] += 1
    ready = [k for k, n in open_.items() if n == 0]
    heapq.heapify(ready)
    plan: list[tuple[int | None, int]] = []
    while ready:
        k = heapq.heappop(ready)
        plan.append((of.get(k), k))
        for b in later.get(k, ()):
            open_[b] -= 1
            if open_[b] == 0:
                heapq.heappush(ready, b)
    if len(plan) != len(open_):
        raise ValueError("a cycle runs through a group of nodes")
    return plan


def shape_of(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape of a value of a region, all of whose sizes are known."""
    dims: Any = spec.shape.dims
    return tuple(map(int, dims))


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
        """Return the nodes as a graph, which is executed if a guard fails."""
        return Graph(self.name, self.inputs, [*self.constants, *self.nodes], self.outputs)

    @property
    def variables(self) -> dict[Value, TensorSpec]:
        """The types of the variables that the nodes access, by handle."""
        specs: dict[Value, TensorSpec] = {}
        for node in self.nodes:
            handles = [v for v in node.operands if v.dtype is resource]
            if node.op.name == ROWS:  # the table is read in the same region
                specs.update(dict.fromkeys(handles, specs[handles[0]]))
            elif handles:  # a write has the values next, those of the variable
                spec = next(v.spec for v in (*node.outputs, *node.operands) if not v.dtype.is_handle)
                specs.update(dict.fromkeys(handles, spec))
        return specs


class CompiledLoop(NamedTuple):
    """A `While` node that is one kernel. code: its address; inputs: how the node's inputs are passed; steps: number of
    operations."""

    node: Node
    code: int
    inputs: tuple[LoopInput, ...]
    steps: int


class CompiledGraph(NamedTuple):
    """A graph with compiled regions and loops. graph: has a node of a `NativeOperator` for each of them; regions,
    loops: including those of control flow; uncompiled: the remaining nodes; note: restores this in a later process,
    see calls.py."""

    graph: Graph
    regions: list[CompiledRegion]
    loops: list[CompiledLoop]
    uncompiled: list[UncompiledNode]
    note: Any


class NativeProfile(NamedTuple):
    """The part of an operator's `CallProfile` that plans read."""

    single: bool
    narrows: bool = False


class NativeOperator:
    """The operator of a region's node, with the attributes that plans read. function: the native call."""

    catalogue = is_native = True
    compute_rule = None
    cpu_kernels = elementwise = control = False
    inplace: dict[str, str] = {}
    shape_only = ()

    def __init__(
        self, function: Callable[..., Any], outputs: int, effect: str | None = None, name: str = "Native"
    ) -> None:
        self.function, self.effect, self.name = function, effect, name
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


ROWS = "UpdateRows"
"""The operator whose nodes have machine code of their own, for any number of rows."""
KEY = "RandomKey"
"""The operator of nodes that draw the key of random numbers, in a call of Python; regions compute the numbers."""
CallOf = Callable[[CompiledRegion | Node], Any]
"""Builds the function of a region, or of a node of ROWS; None for one without machine code."""

Schedule = Sequence[CompiledRegion | CompiledLoop | Node]
"""Regions, loops and uncompiled nodes in execution order, without constants."""


def note_of(
    nodes: Iterable[Node],
    schedule: Schedule,
    uncompiled: Iterable[UncompiledNode],
    inner: list[Any],
    functional: Iterable[int],
) -> dict[str, Any]:
    """Return a JSON value from which a later process restores a graph's regions.

    nodes: of the graph, without aliases and constants; inner: notes of graphs in control flow; functional: control flow
    that is functionalized first, by index in the graph before.
    """
    indices = {node: index for index, node in enumerate(nodes)}
    rows: list[Any] = []
    for e in schedule:
        if isinstance(e, Node):
            rows.append(indices[e])
        elif isinstance(e, CompiledLoop):
            rows.append({"loop": indices[e.node], "inputs": e.inputs, "steps": e.steps})
        else:
            rows.append([e.work, *(indices[n] for n in e.nodes)])
    return {
        "schedule": rows,
        "uncompiled": [list(node) for node in uncompiled],
        "inner": inner,
        "functional": list(functional),
    }


def replace_regions(
    graph: Graph, operands: Operands, schedule: Schedule, call_of: CallOf, within: Callable[[Graph], Graph]
) -> Graph:
    """Return the graph with one node for each region.

    call_of: builds the function of a region; within: compiles the graphs of control flow.
    """
    rewriter, count = GraphRewriter(graph), 0
    for node in operands.constants:
        rewriter.copy(node)
    for entry in schedule:
        if isinstance(entry, Node):
            call_of_rows = call_of(entry) if entry.op.name == ROWS else None
            if call_of_rows is not None:
                operator = NativeOperator(call_of_rows, 0, entry.effect, ROWS)
                rewriter.node(operator, [rewriter.operand(v) for v in entry.operands], {}, [], entry.name, entry.at)
                continue
            copied = rewriter.insert(rewriter.remap(map_subgraphs(entry, within) if entry.op.control else entry))
            rewriter.replace(entry, copied.outputs)
            continue
        function: Callable[..., Any]
        if isinstance(entry, CompiledLoop):
            first, read, results, effect = entry.node, tuple(entry.node.operands), entry.node.outputs, None
            function = ScalarLoopCall(*entry[:3])
        else:
            first, read, results = entry.nodes[0], entry.inputs, entry.outputs
            effect = "write" if entry.variables else None
            if not (results or effect):
                continue
            function = call_of(entry)
        operator = NativeOperator(function, len(results), effect)
        inputs, specs = [rewriter.operand(v) for v in read], [v.spec for v in results]
        call = rewriter.node(operator, inputs, {}, specs, f"native_{count}", first.at)
        rewriter.mapping.update(zip(results, call.outputs))
        count += 1
    outputs = [rewriter.mapping.get(v, v) for v in operands.outputs]
    used = {v for n in rewriter.nodes for v in n.operands} | set(outputs)
    nodes = [n for n in rewriter.nodes if n.op.name != "Const" or n.outputs[0] in used]
    return Graph(graph.name, graph.inputs, nodes, outputs, graph.origin)
