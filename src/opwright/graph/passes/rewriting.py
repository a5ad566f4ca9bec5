"""Rewriting node by node: a rule, a table of them, and the walk that applies it.

Lives here: Rule, Rewrite and `rewrite`.  Not here: the rules.

A rule looks at one node whose operands are already rewritten. It gives the values that stand for the node's outputs,
or a node to put in its place (which the rules then look at in turn), or None to decline. Rules are tried in the
table's order; the first that answers wins. What stands for a value has its dtype, and a shape known as well as its.
Graphs inside a node are rewritten by the same table first, and what nobody reads in them is dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir import Graph, Node, Operand, Value, output_names, unused
from .dead_code import dead_code

Answer = Sequence[Value] | Node | None
Pass = Callable[[Graph], tuple[Graph, list[str]]]


@dataclass(frozen=True)
class Rule:
    """One named rewrite. why: the reason that it keeps the meaning. ops: operators it is about; of any if empty."""

    name: str
    rewrite: Callable[[Node, Rewrite], Answer]
    why: str
    ops: tuple[str, ...] = ()


Rules = tuple[Rule, ...]


@functools.lru_cache(maxsize=64)
def _by_operator(rules: Rules) -> tuple[dict[str, Rules], Rules]:
    """For each operator that rules name the rules to try, in order; and those for all others."""
    named = {name for rule in rules for name in rule.ops}
    return (
        {name: tuple(r for r in rules if not r.ops or name in r.ops) for name in named},
        tuple(r for r in rules if not r.ops),
    )


class Rewrite:
    """A forward walk in progress: the nodes emitted so far and what each old value became."""

    def __init__(self, graph: Graph, rules: Sequence[Rule] = ()) -> None:
        self.graph = graph
        self._by_name, self._general = _by_operator(tuple(rules))
        self.nodes: list[Node] = []
        self.became: dict[Value, Value] = {v: v for v in graph.inputs}
        self.memo: dict[Any, Node] = {}  # for rules that look for an earlier node
        self.changes: list[str] = []
        self._names: set[str] | None = None

    def operand(self, operand: Operand) -> Operand:
        """An operand of the old graph in the new one."""
        if operand is None:
            return None
        if isinstance(operand, tuple):
            return tuple([self.became[v] for v in operand])
        return self.became[operand]

    def operand_or_itself(self, operand: Operand) -> Operand:
        """The same, where values that nothing is known to have become stand for themselves."""
        if operand is None:
            return None
        if isinstance(operand, tuple):
            return tuple([self.became.get(v, v) for v in operand])
        return self.became.get(operand, operand)

    def emit(self, node: Node) -> Node:
        """Append a node to the new graph."""
        self.nodes.append(node)
        return node

    def unique(self, name: str) -> str:
        """A name that nothing in the old graph and nothing new has."""
        if self._names is None:
            self._names = {v.name for v in self.graph.values()} | {n.name for n in self.graph.nodes}
        return unused(name, self._names)

    def inline(self, graph: Graph, operands: Sequence[Value], prefix: str) -> list[Value]:
        """Put a graph's nodes here, under new names, and the rules to them; gives its outputs."""
        inner = dict(zip(graph.inputs, operands))
        for old in graph.nodes:
            inputs = tuple(
                tuple([inner[v] for v in o]) if isinstance(o, tuple) else None if o is None else inner[o]
                for o in old.inputs
            )
            name = self.unique(f"{prefix}/{old.name}")
            node = Node(
                old.op,
                inputs,
                old.attrs,
                [v.spec for v in old.outputs],
                name,
                old.at,
                output_names(name, len(old.outputs), self.unique),
            )
            inner.update(zip(old.outputs, self.visit(node)))
        return [inner[v] for v in graph.outputs]

    def visit(self, node: Node) -> Sequence[Value]:
        """Apply the rules to a node whose operands are new; emits what is left of it and gives its outputs."""
        while True:
            for rule in self._by_name.get(node.op.name, self._general):
                answer = rule.rewrite(node, self)
                if answer is not None and (values := self._stands_for(node, answer)) is not None:
                    shown = ", ".join(map(repr, values))
                    self.changes.append(f"  {rule.name:22} {node.at or '':16} {node!r}  ->  {shown}")
                    break
            else:
                return self.emit(node).outputs
            if not isinstance(answer, Node):
                return values
            node = answer

    @staticmethod
    def _stands_for(node: Node, answer: Sequence[Value] | Node) -> Sequence[Value] | None:
        """The values of an answer, if no less is known of them than of the node's own."""
        values = answer.outputs if isinstance(answer, Node) else answer
        for old, new in zip(node.outputs, values):
            if new.spec is not old.spec and not (new.dtype is old.dtype and new.shape.is_subtype_of(old.shape)):
                return None
        return values


def holds_graphs(node: Node) -> bool:
    """Whether an attribute is a graph or a tuple of them."""
    if not node.attrs:
        return False
    for value in node.attrs.values():
        if type(value) is Graph or (type(value) is tuple and value and type(value[0]) is Graph):
            return True
    return False


def map_graphs(node: Node, change: Callable[[Graph], Graph]) -> Node:
    """The node with each of its graphs changed; itself if none is."""
    attrs: dict[str, Any] = {}
    for name, value in node.attrs.items():
        if type(value) is Graph:
            attrs[name] = change(value)
        elif type(value) is tuple and value and type(value[0]) is Graph:
            attrs[name] = tuple(map(change, value))
        else:
            attrs[name] = value
    same = all(
        new is old or (type(new) is tuple and all(map(lambda a, b: a is b, new, old)))
        for new, old in zip(attrs.values(), node.attrs.values())
    )
    return node if same else node.replaced(attrs=attrs)


def rewrite(graph: Graph, rules: Sequence[Rule]) -> tuple[Graph, list[str]]:
    """Apply rules to every node, first to last; gives the new graph and a line for each change."""
    state = Rewrite(graph, rules)

    def inner(part: Graph) -> Graph:
        simpler, changes = rewrite(part, rules)
        if not changes:
            return part
        state.changes.extend(changes)
        return dead_code(simpler)[0]

    for old in graph.nodes:
        inputs = tuple(map(state.operand, old.inputs))
        node = old if inputs == old.inputs else old.replaced(inputs=inputs)
        if holds_graphs(node):
            node = map_graphs(node, inner)
        state.became.update(zip(old.outputs, state.visit(node)))
    outputs = [state.became[v] for v in graph.outputs]
    if not state.changes:
        return graph, []
    return Graph(graph.name, graph.inputs, state.nodes, outputs), state.changes
