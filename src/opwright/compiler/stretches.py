"""Stretches: the parts of a graph that become native calls, and the graph in which each of them is one node.

Lives here: `compiled`, which gives the graph with its stretches and says why the other nodes are left.
Not here: forms of nodes (rules/), loop graphs and plans (loops/), how a stretch is called (calls.py).

A node is native if a rule has forms for it and a kernel makes them. Of the nodes between which nothing else stands, all
become one stretch: nodes get levels, native ones that of the latest they read, others one more; at each level first the
stretch runs and then, in program order, the others. Nodes with effects keep their order where they may touch the same
state.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core import flags
from ..graph import Graph, Node, Value
from .inlined_kernels import own_kernel
from .kernels import Unmade
from .loops.forms import Buffer, Form
from .loops.fusion import fused
from .loops.graph import LoopGraph, parents
from .loops.planning import plan_of
from .loops.plans import Plan
from .rules import At, Buffers, Refused, forms_of

ALIASES = ("Identity", "StopGradient")
LEAST_NODES, LEAST_ELEMENTS = 2, 4096
"""A stretch of one node pays from so many elements on: a native call costs as much as one of NumPy's."""


class Left(NamedTuple):
    """A node that runs as it is: its name and operator, and why."""

    node: str
    op: str
    why: str


class Stretch(NamedTuple):
    """Nodes that run as one native call. graph: the same as a graph, for where a kernel's guard fails."""

    nodes: tuple[Node, ...]
    plan: Plan
    graph: Graph
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


class Compiled(NamedTuple):
    """graph: in which each stretch is a node of a `NativeOperator`; stretches, those of loops' bodies and of branches
    among them; left: the nodes that stay."""

    graph: Graph
    stretches: list[Stretch]
    left: list[Left]


class NativeOperator:
    """The operator of a stretch's node: what plans ask of an operator. function: the native call."""

    name = "Native"
    catalogue = True
    effect = None
    compute_rule = None
    cpu_kernels = narrows = elementwise = control = False
    inplace: dict[str, str] = {}
    shape_only = ()

    def __init__(self, function: Callable[..., Any], outputs: int) -> None:
        self.function = function
        self.outputs = tuple(range(outputs))
        self.single = outputs == 1

    def bind(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return attrs

    def kernel(self, bound: Any, dtype: Any = None) -> Callable[..., Any]:
        return self.function

    def pack_all(self, flat: Sequence[Any]) -> Sequence[Any]:
        return flat

    def flat_outputs(self, result: Any) -> tuple[Any, ...]:
        return (result,) if self.single else tuple(result)


def compiled(graph: Graph, call_of: Callable[[Stretch], Callable[..., Any]]) -> Compiled:
    """The graph with its stretches. call_of: makes the function of a stretch."""
    state = _Cutting(graph)
    while True:
        try:
            stretches = state.stretches()
            break
        except Unmade as why:
            state.without(why)
    state.small(stretches)
    found = Compiled(state.rewritten(stretches, call_of), [s for s in stretches if s is not None], state.left_nodes())
    for inner in state.inner:
        found.stretches.extend(inner.stretches)
        found.left.extend(inner.left)
    return found


class _Cutting:
    """A graph while it is cut. forms: of the nodes that may be native; why: of the others; inner: of control flow."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.source: dict[Value, Value] = {}  # of an alias, what it stands for
        self.nodes: list[Node] = []
        for node in graph.nodes:
            if node.op.name in ALIASES:
                self.source[node.outputs[0]] = self.of(next(node.operands))
            else:
                self.nodes.append(node)
        self.buffers = Buffers()
        self.forms: dict[Node, list[Form]] = {}
        self.why: dict[Node, str] = {}
        self.inner: list[Compiled] = []
        read = {v for n in self.nodes for v in self._read(n)} | set(map(self.of, graph.outputs))
        for node in self.nodes:
            if node.op.name == "Const":
                continue
            try:
                forms = self._forms(node)
                made = {id(b) for f in forms for b in (f.output, *parents(f.output))}
                if any(v in read and id(self.buffers.of(v)) not in made for v in node.outputs):
                    raise Refused("a result that others read is not made")
                self.forms[node] = forms
            except Refused as why:
                self.why[node] = str(why)

    def of(self, value: Value) -> Value:
        """The value that an alias stands for, or itself."""
        return self.source.get(value, value)

    def _read(self, node: Node) -> list[Value]:
        return [self.of(v) for v in node.operands]

    def _forms(self, node: Node) -> list[Form]:
        if node.effect is not None:
            raise Refused(f"it has effects ({node.effect})")
        if any(True for _ in node.subgraphs):
            raise Refused("control flow")
        if getattr(node.op, "cpu_kernels", False) and own_kernel(node.op) is None:
            raise Refused("it has a kernel of its own")
        return forms_of(At(self._aliased(node), self.buffers))

    def _aliased(self, node: Node) -> Node:
        """The node as it reads what its operands stand for."""
        if not any(v in self.source for v in node.operands):
            return node
        inputs = [tuple(map(self.of, o)) if isinstance(o, tuple) else o if o is None else self.of(o)
                  for o in node.inputs]  # fmt: skip
        return node.with_operands(inputs)

    def without(self, why: Unmade) -> None:
        """Take the nodes of forms that nobody makes for others from now on."""
        names = {name: reason for form, reason in why.forms.items() for name in form.origin}
        found = [n for n in self.forms if n.name in names]
        if not found:
            raise why
        for node in found:
            del self.forms[node]
            self.why[node] = f"no kernel: {names[node.name]}"

    def small(self, stretches: Sequence[Stretch | None]) -> None:
        """Note the nodes of stretches that do not pay."""
        for node in self.forms:
            if stretches[self.level[node]] is None:
                self.why[node] = "alone it costs less as it is"

    def left_nodes(self) -> list[Left]:
        """The nodes that stay as they are, in program order."""
        return [Left(n.name, n.op.name, self.why[n]) for n in self.nodes if n in self.why]

    # ---- levels -----------------------------------------------------------------------------------------------------

    def _levels(self) -> dict[Node, int]:
        """A level for each node but constants."""
        level: dict[Node, int] = {}
        made: dict[Value, int] = {}  # by value, the level of the earliest stretch that may read it
        order = _Order(self.graph)
        for node in self.nodes:
            if node.op.name == "Const":
                continue
            needed = max((made.get(v, 0) for v in self._read(node)), default=0)
            if node in self.forms:
                level[node] = needed
                after = needed
            else:
                # What a stretch makes is there for the others of its level; what they make, for the next stretch.
                earliest = max((level[m] for v in self._read(node) if (m := v.node) is not None and m in level),
                               default=0)  # fmt: skip
                level[node] = order.place(node, earliest)
                after = level[node] + 1
            for v in node.outputs:
                made[v] = after
        return level

    def stretches(self) -> list[Stretch | None]:
        """By level the stretch, if it has one that pays. Raises Unmade where forms have no kernel."""
        self.level = self._levels()
        count = 1 + max(self.level.values(), default=-1)
        groups: list[list[Node]] = [[] for _ in range(count)]
        for node in self.nodes:
            if node in self.forms:
                groups[self.level[node]].append(node)
        readers = self._readers()
        return [self._stretch(nodes, readers) if self._pays(nodes) else None for nodes in groups]

    def _pays(self, nodes: Sequence[Node]) -> bool:
        if len(nodes) >= LEAST_NODES:
            return any(v.shape.rank for n in nodes for v in (*n.outputs, *n.operands))
        return any((v.shape.num_elements() or 0) >= LEAST_ELEMENTS for n in nodes for v in (*n.outputs, *n.operands))

    def _readers(self) -> dict[Value, list[Node | None]]:
        """By value who reads it; None for the graph's outputs."""
        found: dict[Value, list[Node | None]] = {}
        for node in self.nodes:
            for v in self._read(node):
                found.setdefault(v, []).append(node)
        for v in self.graph.outputs:
            found.setdefault(self.of(v), []).append(None)
        return found

    def _stretch(self, nodes: Sequence[Node], readers: dict[Value, list[Node | None]]) -> Stretch:
        inside = set(nodes)
        made = {v for n in nodes for v in n.outputs}
        inputs = tuple(dict.fromkeys(v for n in nodes for v in self._read(n) if v not in made and v.constant is None))
        outputs = tuple(v for n in nodes for v in n.outputs if any(r not in inside for r in readers.get(v, ())))
        forms = [form for n in nodes for form in self.forms[n]]
        wanted = _needed(forms, [self.buffers.of(v) for v in outputs])
        loops = LoopGraph(self.graph.name, tuple(map(self.buffers.of, inputs)), tuple(map(self.buffers.of, outputs)),
                          tuple(wanted))  # fmt: skip
        after, apart = fused(loops)
        plan = plan_of(after, apart=apart)
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        read = {v for n in nodes for v in self._read(n)}
        constants = [n for n in self.nodes if n.op.name == "Const" and n.outputs[0] in read]
        graph = Graph(self.graph.name, inputs, [*constants, *map(self._aliased, nodes)], outputs)
        return Stretch(tuple(nodes), plan, graph, inputs, outputs)

    # ---- the graph --------------------------------------------------------------------------------------------------

    def rewritten(self, stretches: Sequence[Stretch | None], call_of: Callable[[Stretch], Callable[..., Any]]) -> Graph:
        """The graph with a node for each stretch, in an order that keeps effects."""
        at: dict[Value, Value] = {}
        nodes: list[Node] = []

        def here(value: Value) -> Value:
            value = self.of(value)
            return at.get(value, value)

        def add(node: Node) -> None:
            inputs = [None if o is None else tuple(map(here, o)) if isinstance(o, tuple) else here(o)
                      for o in node.inputs]  # fmt: skip
            attrs = {k: self._within(v, call_of) for k, v in node.attrs.items()} if node.op.control else node.attrs
            copy = node.replaced(inputs=inputs, attrs=attrs)
            at.update(zip(node.outputs, copy.outputs))
            nodes.append(copy)

        def add_stretch(stretch: Stretch, number: int) -> None:
            operator = NativeOperator(call_of(stretch), len(stretch.outputs))
            made = Node(operator, [here(v) for v in stretch.inputs], {}, [v.spec for v in stretch.outputs],
                        f"native_{number}", stretch.nodes[0].at)  # fmt: skip
            at.update(zip(stretch.outputs, made.outputs))
            nodes.append(made)

        for node in self.nodes:
            if node.op.name == "Const":
                add(node)
        for number, stretch in enumerate(stretches):
            if stretch is not None and stretch.outputs:
                add_stretch(stretch, number)
            for node in self.nodes:
                if self.level.get(node) == number and (node not in self.forms or stretch is None):
                    add(node)
        used = {v for n in nodes for v in n.operands} | {here(v) for v in self.graph.outputs}
        nodes = [n for n in nodes if n.op.name != "Const" or n.outputs[0] in used]
        return Graph(self.graph.name, self.graph.inputs, nodes, [here(v) for v in self.graph.outputs],
                     self.graph.origin)  # fmt: skip

    def _within(self, attr: Any, call_of: Callable[[Stretch], Callable[..., Any]]) -> Any:
        """A branch or the body of a loop with stretches of its own."""
        if isinstance(attr, Graph):
            made = compiled(attr, call_of)
            self.inner.append(made)
            return made.graph
        return tuple(self._within(a, call_of) for a in attr) if isinstance(attr, tuple) else attr


def _needed(forms: Sequence[Form], outputs: Iterable[Buffer]) -> list[Form]:
    """The forms that the outputs need, in order."""
    needed = {id(b) for b in outputs}
    kept = []
    for form in reversed(forms):
        if id(form.output) in needed:
            kept.append(form)
            needed.update(id(b) for b in form.inputs)
    return kept[::-1]


class _Order:
    """Levels for nodes with effects, in program order.

    Reads and writes of a variable that comes in as an argument keep their order among themselves; all other effects
    keep theirs with everything.
    """

    def __init__(self, graph: Graph) -> None:
        self._handles = {v for v in graph.inputs if v.dtype.is_handle}
        self._last: dict[Value | None, int] = {}

    def place(self, node: Node, earliest: int) -> int:
        """The level of a node that stays, not before `earliest`."""
        if node.effect is None:
            return earliest
        handles = [v for v in node.operands if v.dtype.is_handle]
        if node.effect in ("read", "write") and handles and all(h in self._handles for h in handles) \
                and not any(True for _ in node.subgraphs):  # fmt: skip
            level = max([earliest, self._last.get(None, 0), *(self._last.get(h, 0) for h in handles)])
            self._last.update(dict.fromkeys(handles, level))
            return level
        level = max([earliest, *self._last.values()])
        self._last[None] = level
        return level


def work(stretch: Stretch) -> int:
    """About how many elements a stretch computes."""
    return sum(math.prod(form.output.shape) for form in stretch.plan.forms)
