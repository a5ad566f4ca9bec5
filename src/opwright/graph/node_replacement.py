"""Replacement of groups of nodes by single nodes.

Lives here: `NodeReplacement`, `splice`.  Not here: subgraph matching (matcher.py), rules for single nodes (passes/).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from .builder import GraphRewriter
from .ir import Graph, Node, Value


class NodeReplacement(NamedTuple):
    """A node that replaces several nodes of a graph. It reads values of that graph.

    results: by value of the old graph, the index of the output that replaces it.
    """

    node: Node
    nodes: Set[Node]
    results: Mapping[Value, int]


def splice(graph: Graph, replacements: Sequence[NodeReplacement], refused: Callable[[int, str], None]) -> Graph:
    """Apply replacements to a graph.

    A replacement that would have to run before its operands exist is left out; `refused` receives its index and the
    reason.
    """
    remaining = dict(enumerate(replacements))
    while True:
        try:
            return _Splicer(graph, remaining).run()
        except _CyclicReplacement as error:
            refused(error.index, str(error))
            del remaining[error.index]


class _CyclicReplacement(Exception):
    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


class _Splicer(GraphRewriter):
    """One walk. An item is a node of the source, or the index of a replacement."""

    def __init__(self, graph: Graph, replacements: Mapping[int, NodeReplacement]) -> None:
        super().__init__(graph)
        self.replacements = replacements
        self.index = {node: k for k, r in replacements.items() for node in r.nodes}
        self.done: set[Node | int] = set()

    def run(self) -> Graph:
        last = {self.index[node]: node for node in self.source.nodes if node in self.index}
        for node in self.source.nodes:
            index = self.index.get(node)
            if index is None:
                self.place(node)
            elif last[index] is node:
                self.place(index)
        return self.finish()

    def place(self, item: Node | int) -> None:
        """Append an item after the items that it depends on; a replacement may pull pure nodes forward."""
        stack: list[Node | int] = [item]
        expanded: set[Node | int] = set()
        while stack:
            item = stack[-1]
            if item in self.done:
                stack.pop()
                continue
            node = self.replacements[item].node if isinstance(item, int) else item
            needed = [self.index.get(v.node, v.node) for v in node.operands if v.node is not None]
            missing = [n for n in dict.fromkeys(needed) if n not in self.done]
            if missing and item in expanded:
                self.refuse(stack, "its operands depend on its results")
            if not missing:
                self.add(item, node)
                stack.pop()
                continue
            expanded.add(item)
            for n in missing:
                if isinstance(n, Node) and n.effect is not None:
                    self.refuse(stack, f"its results are read before {n.op.name} {n.name}, on which it depends")
            stack += missing

    @staticmethod
    def refuse(stack: Sequence[Node | int], reason: str) -> None:
        raise _CyclicReplacement(next(item for item in reversed(stack) if isinstance(item, int)), reason)

    def add(self, item: Node | int, node: Node) -> None:
        self.done.add(item)
        if isinstance(item, int):
            fresh = self.insert(self.remap(node))
            self.mapping.update({value: fresh.outputs[k] for value, k in self.replacements[item].results.items()})
        else:
            self.copy(node)
