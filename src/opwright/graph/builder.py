"""Builders of graphs, the only way to create, name and edit the parts of one; verification of graphs.

Lives here: `GraphBuilder`, which appends nodes under unique names; `GraphRewriter`, which builds a graph from another;
`GraphTransform` and `map_subgraphs`, which apply to subgraphs of nodes; `verify`, the invariants of all graphs.
Not here: the IR itself (ir.py), tables of rewrite rules and the pass that applies them (passes/rewrite_rules.py), rules
of single operators (their `infer`).

    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        rewriter.begin(node)                              # names, source line, and the state restored by `rollback`
        if node.op.name == "Square":
            x = rewriter.operand(node.inputs[0])
            rewriter.replace(node, rewriter.create(mul, (x, x)).outputs)
        else:
            rewriter.copy(node)
    return rewriter.finish()
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core.errors import InternalError
from ..core.specs import TensorSpec
from .ir import Graph, Node, Operand, OperatorLike, Value, flat, output_names

NO_ATTRS: Mapping[str, Any] = MappingProxyType({})

_set_value_name, _set_value_spec, _set_value_node = (Value.__dict__[slot].__set__ for slot in ("name", "spec", "node"))
_set_node_name, _set_node_at, _set_node_outputs, _set_node_rules = (
    Node.__dict__[slot].__set__ for slot in ("name", "at", "outputs", "rules")
)


def legal_name(name: str) -> str:
    """Return a name that graph text accepts: letters, digits, _ . / - and @, not starting with a digit or sign.

    Other characters become _.
    """
    name = re.sub(r"[^\w./@\-]", "_", name)
    if not re.match(r"[A-Za-z_]", name):
        name = f"_{name}"
    return f"{name}_" if name in ("_", "return") else name  # graph text has its own meaning for these two


def unique_name(name: str, names: set[str]) -> str:
    """Return the name, with the first of the suffixes _1, _2, ... that makes it unique, and add it to `names`."""
    candidate, count = name, 0
    while candidate in names:
        count += 1
        candidate = f"{name}_{count}"
    names.add(candidate)
    return candidate


def constant_node(const: OperatorLike, array: np.ndarray, spec: TensorSpec, name: str, at: str | None = None) -> Node:
    """Return a Const node of an array, which becomes read-only. const: the operator."""
    array.setflags(write=False)
    return Node(const, (), {"value": array}, [spec], name, at)


def refined(spec: TensorSpec, other: TensorSpec) -> TensorSpec:
    """Return a type with the sizes that either of two types of one tensor knows; the first if they contradict."""
    try:
        return spec.with_shape(spec.shape.merge_with(other.shape))
    except ValueError:
        return spec


def use_counts(graph: Graph) -> dict[Value, int]:
    """Return how often each value is read, as an operand or as an output of the graph."""
    counts: dict[Value, int] = {}
    for value in (*(v for node in graph.nodes for v in node.operands), *graph.outputs):
        counts[value] = counts.get(value, 0) + 1
    return counts


class GraphBuilder:
    """Append nodes to a graph under unique names; `build` closes it to a Graph."""

    def __init__(self, name: str) -> None:
        self.name = legal_name(name)
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []

    @functools.cached_property
    def _suffixes(self) -> dict[str, int]:
        """Names in use, each with the largest suffix tried so far."""
        return {}

    def unique(self, name: str) -> str:
        """Return a legal form of a name, with a suffix _1, _2, ... if it is in use, and reserve it."""
        name = legal_name(name)
        suffixes = self._suffixes
        count = suffixes.get(name)
        if count is None:
            suffixes[name] = 0
            return name
        while True:
            count += 1
            candidate = f"{name}_{count}"
            if candidate not in suffixes:
                suffixes[name] = count
                suffixes[candidate] = 0
                return candidate

    def input(self, name: str, spec: TensorSpec) -> Value:
        """Append a graph input."""
        value = Value(self.unique(name), spec)
        self.inputs.append(value)
        return value

    def node(
        self,
        op: OperatorLike,
        inputs: Sequence[Operand],
        attrs: Mapping[str, Any],
        specs: Sequence[TensorSpec],
        name: str | None = None,
        at: str | None = None,
    ) -> Node:
        """Append a new node. specs: types of its outputs."""
        name = self.unique(name or op.name)
        return self.insert(Node(op, inputs, attrs, specs, name, at, output_names(name, len(specs), self.unique)))

    def insert(self, node: Node) -> Node:
        """Append an existing node."""
        self.nodes.append(node)
        return node

    def widen(self, old: Node, inputs: Sequence[Operand], attrs: Mapping[str, Any], more: Sequence[TensorSpec]) -> Node:
        """Replace a node by one of the same operator with additional outputs, after those of the old node.

        Only during construction: the outputs of the old node become outputs of the new one. Graphs built before keep
        the old node, which computes the same values.
        """
        count = len(old.outputs)
        added = [self.unique(f"{old.name}.{i}") for i in range(count, count + len(more))]
        node = Node(
            old.op,
            inputs,
            attrs,
            [*(v.spec for v in old.outputs), *more],
            old.name,
            old.at,
            [*(v.name for v in old.outputs), *added],
            old.rules,
        )
        for value in old.outputs:
            _set_value_node(value, node)
        _set_node_outputs(node, (*old.outputs, *node.outputs[count:]))
        self.nodes[self.nodes.index(old)] = node
        return node

    @staticmethod
    def rename(value: Value, name: str) -> None:
        """Set the name of a value, and of the node whose first output it is. Only during construction."""
        _set_value_name(value, name)
        if value.node is not None and value.index == 0:
            _set_node_name(value.node, name)

    @staticmethod
    def rename_node(node: Node, name: str) -> None:
        """Set the name of a node without outputs. Only during construction."""
        _set_node_name(node, name)

    @staticmethod
    def locate(node: Node, at: str | None) -> None:
        """Set the source line of a node, which is not part of its meaning."""
        _set_node_at(node, at)

    @staticmethod
    def attribute(node: Node, rules: tuple[str, ...]) -> None:
        """Set the rules that made a node, which are not part of its meaning."""
        _set_node_rules(node, rules)

    @staticmethod
    def refine(value: Value, spec: TensorSpec) -> None:
        """Set the type of a value to a subtype of the inferred one. Only during construction."""
        _set_value_spec(value, spec)

    def reserve(self, name: str) -> None:
        """Reserve a name, such as one that `rename` sets."""
        self._suffixes.setdefault(name, 0)

    def reserve_only(self, names: Iterable[str]) -> None:
        """Reserve these names and release all others: every value and node has a new name."""
        self._suffixes = dict.fromkeys(names, 0)

    def build(self, outputs: Sequence[Value]) -> Graph:
        """Return the graph built so far."""
        return Graph(self.name, self.inputs, self.nodes, outputs)


class GraphRewriter(GraphBuilder):
    """Build a graph from a source graph, in one forward walk over its nodes.

    Nodes are appended in program order. `mapping` has the replacement of each value of the source; a value without one
    is unchanged, so that nodes whose operands do not change are shared by both graphs. prefix, at: the prefix of the
    names of created nodes, and their source line.
    """

    def __init__(self, source: Graph) -> None:
        super().__init__("")
        self.source, self.name, self.inputs = source, source.name, list(source.inputs)
        self.mapping: dict[Value, Any] = {}
        self.prefix, self.at = source.name, None
        self._start = 0

    prefix: str
    at: str | None

    @functools.cached_property
    def _suffixes(self) -> dict[str, int]:
        """The names in the source: created nodes stand next to nodes that keep theirs."""
        return dict.fromkeys((*(v.name for v in self.source.values()), *(n.name for n in self.source.nodes)), 0)

    # ---- operands -------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand) -> Operand:
        """Return the replacement of an operand of the source."""
        if operand is None:
            return None
        mapping = self.mapping
        if isinstance(operand, tuple):
            return tuple([mapping.get(v, v) for v in operand])
        replacement: Value = mapping.get(operand, operand)
        return replacement

    def remap(self, node: Node) -> Node:
        """Return a node that reads the replacements of its operands: the node itself if it has none."""
        inputs = tuple(map(self.operand, node.inputs))
        return node if inputs == node.inputs else node.replaced(inputs=inputs)

    # ---- nodes ----------------------------------------------------------------------------------------------------

    def begin(self, node: Node) -> None:
        """Set the insertion context: created nodes take name and source line from a node of the source."""
        self.prefix, self.at, self._start = node.name, node.at, len(self.nodes)

    def created(self) -> list[Node]:
        """Return the nodes appended since `begin`."""
        return self.nodes[self._start :]

    def credit(self, node: Node, rule: str) -> None:
        """Record that a rule made the nodes appended since `begin` of a node of the source.

        A node of the operator of an operand's producer merges the two, and has the rules of both.
        """
        for made in self.created():
            merged: tuple[str, ...] = next(
                (v.node.rules for v in node.operands if v.node is not None and v.node.op is made.op), ()
            )
            self.attribute(made, (*merged, *node.rules, rule))

    def rollback(self) -> None:
        """Erase the nodes appended since `begin`."""
        del self.nodes[self._start :]

    def infer(self, op: Any, inputs: Sequence[Operand], attrs: Mapping[str, Any]) -> tuple[Any, list[TensorSpec]]:
        """Return the bound attributes of a call and the types of its outputs, by the operator's own rules."""
        bound = op.bind(attrs)
        specs = op.infer(bound, inputs, self.prefix)
        return bound.attrs, flat([tuple(s) if isinstance(s, list) else s for s in specs])

    def create(
        self,
        op: Any,
        inputs: Sequence[Operand],
        attrs: Mapping[str, Any] = NO_ATTRS,
        likes: Sequence[TensorSpec | None] = (),
        name: str | None = None,
    ) -> Node:
        """Append a node with inferred output types.

        likes: further information on the output types. name: appended to the prefix; by default the operator's, in
        lower case.
        raises SignatureError or InvalidArgumentError if the operator does not support the operands
        """
        bound, specs = self.infer(op, inputs, attrs)
        for i, like in enumerate(likes):
            if like is not None:
                specs[i] = refined(specs[i], like)
        return self.node(op, inputs, bound, specs, f"{self.prefix}/{name or op.name.lower()}", self.at)

    def copy(self, node: Node) -> Node:
        """Append a node of the source."""
        copied = self.insert(self.remap(node))
        self.replace(node, copied.outputs)
        return copied

    def clone(self, node: Node, inputs: Sequence[Operand], prefix: str) -> Node:
        """Return a node of another graph under a new name, reading these operands. It is not appended."""
        name = self.unique(f"{prefix}/{node.name}")
        names = output_names(name, len(node.outputs), self.unique)
        return Node(node.op, inputs, node.attrs, [v.spec for v in node.outputs], name, node.at, names, node.rules)

    def replace(self, node: Node, values: Sequence[Any]) -> None:
        """Replace the outputs of a node of the source, in all nodes that follow and in the graph's outputs."""
        for old, new in zip(node.outputs, values):
            if new is not old:
                self.mapping[old] = new

    def finish(self) -> Graph:
        """Return the new graph."""
        mapping = self.mapping
        return Graph(self.name, self.inputs, self.nodes, [mapping.get(v, v) for v in self.source.outputs])


def has_subgraphs(node: Node) -> bool:
    """Return whether an attribute of a node is a graph or a tuple of graphs."""
    if not node.attrs:
        return False
    for value in node.attrs.values():
        if type(value) is Graph or (type(value) is tuple and value and type(value[0]) is Graph):
            return True
    return False


def map_subgraphs(node: Node, change: Callable[[Graph], Graph]) -> Node:
    """Return a node with a function applied to each of its subgraphs: the node itself if none changes."""
    attrs = subgraphs_mapped(node.attrs, change)
    return node if attrs is node.attrs else node.replaced(attrs=attrs)


def subgraphs_mapped(attrs: Mapping[str, Any], change: Callable[[Graph], Graph]) -> Mapping[str, Any]:
    """Return attributes with a function applied to each graph among them: the same mapping if none changes."""
    changed: dict[str, Any] = {}
    for name, value in attrs.items():
        if type(value) is Graph:
            new: Any = change(value)
            if new is not value:
                changed[name] = new
        elif type(value) is tuple and value and type(value[0]) is Graph:
            new = tuple(map(change, value))
            if any(a is not b for a, b in zip(new, value)):
                changed[name] = new
    return {**attrs, **changed} if changed else attrs


class GraphTransform:
    """A function on graphs, applied once to each, so that a graph shared by several nodes remains shared.

    transform(graph, inside): returns the new graph; calls `inside` for the subgraphs of its nodes.
    """

    __slots__ = ("_results", "_transform")

    def __init__(self, transform: Callable[[Graph, Callable[[Graph], Graph]], Graph]) -> None:
        self._transform, self._results = transform, dict[Graph, Graph]()

    def __call__(self, graph: Graph) -> Graph:
        if graph not in self._results:
            result = self._transform(graph, self)
            self._results[graph] = self._results[result] = result
        return self._results[graph]


def _names(graph: Graph) -> Iterator[str]:
    seen: set[str] = set()
    for name in (*(v.name for v in graph.values()), *(n.name for n in graph.nodes if not n.outputs)):
        if name in seen:
            yield f"two values or nodes are named {name!r}"
        seen.add(name)
    for node in graph.nodes:
        if node.outputs and node.outputs[0].name != node.name:  # in text a node has no other name
            yield f"node {node.name!r} has the first output {node.outputs[0].name!r}"


def _order(graph: Graph) -> Iterator[str]:
    available = set(graph.inputs)
    for node in graph.nodes:
        for value in node.operands:
            if value not in available:
                yield f"node {node.name!r} ({node.op.name}) reads {value.name!r} before it is computed"
        available.update(node.outputs)
    for value in graph.outputs:
        if value not in available:
            yield f"output {value.name!r} is not computed in the graph"


def _arity(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        expected = len(getattr(node.op, "inputs", node.inputs))
        if len(node.inputs) != expected:
            yield f"node {node.name!r} ({node.op.name}) has {len(node.inputs)} inputs, wanted {expected}"


VALID: tuple[tuple[str, Callable[[Graph], Iterator[str]]], ...] = (
    # name               rule: yields a sentence for each violation
    ("unique names", _names),
    ("defined before use", _order),
    ("one operand per input", _arity),
)


def verify(graph: Graph, after: str = "") -> None:
    """Raise InternalError with the rule, the violation and the preceding pass; subgraphs are checked too."""
    for name, rule in VALID:
        for violation in rule(graph):
            raise InternalError(
                what=f"graph {graph.name!r} is not valid{f' after {after}' if after else ''}: {name}: {violation}",
                found=str(graph)[:2000],
            )
    for node in graph.nodes:
        for inner in node.subgraphs:
            verify(inner, after)
