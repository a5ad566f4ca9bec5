"""Pattern rewriting: rules on single nodes, and the forward walk that applies a table of them.

Lives here: `RewriteRule`, `PatternRewriter`, `rewrite`.  Not here: the rules; the walks of the converter, which applies
rules of the same form (lite/convert).

A rule sees one node whose operands are already rewritten. It returns the values that replace the node's outputs, or a
replacement node (to which the rules are applied in turn), or None to decline. Rules are tried in the order of the
table; the first match applies. A replacement has the dtype of the original, and a subtype of its shape. Subgraphs are
rewritten by the same table first, and their dead nodes are removed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..builder import GraphRewriter, has_subgraphs, map_subgraphs
from ..ir import Graph, Node, Operand, Value
from .dead_code import dead_code

Answer = Sequence[Value] | Node | None
Pass = Callable[[Graph], tuple[Graph, list[str]]]


@dataclass(frozen=True)
class RewriteRule:
    """One named rewrite. ops: names of the operators that it matches, separated by spaces; any if empty.

    why: the reason that the rewrite keeps the meaning, or how exact it is.
    """

    name: str
    ops: str
    rewrite: Callable[[Node, Any], Any]
    why: str = "the same operator"


Rules = tuple[RewriteRule, ...]


@functools.lru_cache(maxsize=64)
def _by_operator(rules: Rules) -> tuple[dict[str, Rules], Rules]:
    """Return the rules to try for each operator that a rule names, in order; and the rules for all other operators."""
    names = {rule: rule.ops.split() for rule in rules}
    return (
        {name: tuple(r for r in rules if not r.ops or name in names[r]) for ops in names.values() for name in ops},
        tuple(r for r in rules if not r.ops),
    )


class PatternRewriter(GraphRewriter):
    """A rewriter that applies rules to each node. changes: a line for each rule that matched."""

    def __init__(self, source: Graph, rules: Sequence[RewriteRule] = ()) -> None:
        super().__init__(source)
        self._by_name, self._general = _by_operator(tuple(rules))
        self.memo: dict[Any, Node] = {}  # for rules that look for an earlier node
        self.changes: list[str] = []

    def inline(self, graph: Graph, operands: Sequence[Value], prefix: str) -> list[Value]:
        """Append the nodes of a graph under new names, applying the rules to them; return its outputs."""
        inner = dict(zip(graph.inputs, operands))

        def current(operand: Operand) -> Operand:
            return tuple([inner[v] for v in operand]) if isinstance(operand, tuple) else operand and inner[operand]

        for old in graph.nodes:
            node = self.clone(old, [current(o) for o in old.inputs], prefix)
            inner.update(zip(old.outputs, self.visit(node)))
        return [inner[v] for v in graph.outputs]

    def visit(self, node: Node) -> Sequence[Value]:
        """Apply the rules to a node whose operands are new; append the remaining node and return its outputs."""
        while True:
            for rule in self._by_name.get(node.op.name, self._general):
                answer = rule.rewrite(node, self)
                if answer is not None and (values := self._replacement(node, answer)) is not None:
                    self.changes.append(change_line(rule.name, node, ", ".join(map(repr, values))))
                    break
            else:
                return self.insert(node).outputs
            if not isinstance(answer, Node):
                return values
            node = answer

    @staticmethod
    def _replacement(node: Node, answer: Sequence[Value] | Node) -> Sequence[Value] | None:
        """Return the values of an answer if their types are subtypes of the types of the node's outputs."""
        values = answer.outputs if isinstance(answer, Node) else answer
        for old, new in zip(node.outputs, values):
            if new.spec is not old.spec and not (new.dtype is old.dtype and new.shape.is_subtype_of(old.shape)):
                return None
        return values


def change_line(rule: str, node: Node, replacement: str) -> str:
    """Return the line that `show=passes` prints of one change."""
    return f"  {rule:22} {node.at or '':16} {node!r}  ->  {replacement}"


def rewrite(graph: Graph, rules: Sequence[RewriteRule]) -> tuple[Graph, list[str]]:
    """Apply rules to every node, first to last; return the new graph and a line for each change."""
    rewriter = PatternRewriter(graph, rules)

    def inner(part: Graph) -> Graph:
        simpler, changes = rewrite(part, rules)
        if not changes:
            return part
        rewriter.changes.extend(changes)
        return dead_code(simpler)[0]

    for old in graph.nodes:
        node = rewriter.remap(old)
        if has_subgraphs(node):
            node = map_subgraphs(node, inner)
        rewriter.replace(old, rewriter.visit(node))
    return (rewriter.finish(), rewriter.changes) if rewriter.changes else (graph, [])
