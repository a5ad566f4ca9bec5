"""Putting a node in the place of several.

Lives here: `Replacement`, `splice`.  Not here: finding what to replace (matching.py), rules for single nodes (passes/).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from .ir import Graph, Node, Operand, Value


class Replacement(NamedTuple):
    """A node, which reads values of the old graph, for some of its nodes. results: by old value, output of the node."""

    node: Node
    nodes: Set[Node]
    results: Mapping[Value, int]


def splice(graph: Graph, replacements: Sequence[Replacement], refused: Callable[[int, str], None]) -> Graph:
    """The graph with each replacement made. One that has to run before its operands are there is told to `refused`, by
    its number with the reason, and left out."""
    left = dict(enumerate(replacements))
    while True:
        try:
            return _Splice(graph, left).run()
        except _Untimely as error:
            refused(error.number, str(error))
            del left[error.number]


class _Untimely(Exception):
    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


class _Splice:
    """One walk. An item is a node of the old graph, or the number of a replacement."""

    def __init__(self, graph: Graph, replacements: Mapping[int, Replacement]) -> None:
        self.graph, self.replacements = graph, replacements
        self.number = {node: k for k, r in replacements.items() for node in r.nodes}
        self.became: dict[Value, Value] = {v: v for v in graph.inputs}
        self.made: list[Node] = []
        self.done: set[Node | int] = set()

    def run(self) -> Graph:
        last = {self.number[node]: node for node in self.graph.nodes if node in self.number}
        for node in self.graph.nodes:
            number = self.number.get(node)
            if number is None:
                self.emit(node)
            elif last[number] is node:
                self.emit(number)
        outputs = [self.became[v] for v in self.graph.outputs]
        return Graph(self.graph.name, self.graph.inputs, self.made, outputs)

    def emit(self, item: Node | int) -> None:
        """Put an item here, after what it reads: a replacement may bring forward what stands later, if that is pure."""
        todo: list[Node | int] = [item]
        waiting: set[Node | int] = set()
        while todo:
            item = todo[-1]
            if item in self.done:
                todo.pop()
                continue
            node = self.replacements[item].node if isinstance(item, int) else item
            needed = [self.number.get(v.node, v.node) for v in node.operands if v.node is not None]
            missing = [n for n in dict.fromkeys(needed) if n not in self.done]
            if missing and item in waiting:
                self.refuse(todo, "its operands depend on its results")
            if not missing:
                self.add(item, node)
                todo.pop()
                continue
            waiting.add(item)
            for n in missing:
                if isinstance(n, Node) and n.effect is not None:
                    self.refuse(todo, f"its results are read before {n.op.name} {n.name}, on which it depends")
            todo += missing

    def refuse(self, todo: Sequence[Node | int], why: str) -> None:
        number = next(item for item in reversed(todo) if isinstance(item, int))  # what asked for it out of turn
        raise _Untimely(number, why)

    def add(self, item: Node | int, node: Node) -> None:
        inputs = tuple(map(self.operand, node.inputs))
        fresh = node if inputs == node.inputs else node.replaced(inputs=inputs)
        self.made.append(fresh)
        self.done.add(item)
        if isinstance(item, int):
            for value, index in self.replacements[item].results.items():
                self.became[value] = fresh.outputs[index]
        else:
            self.became.update(zip(item.outputs, fresh.outputs))

    def operand(self, operand: Operand) -> Operand:
        if operand is None:
            return None
        if isinstance(operand, tuple):
            return tuple([self.became[v] for v in operand])
        return self.became[operand]
