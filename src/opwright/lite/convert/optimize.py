"""Optimising: nodes of the lite dialect merge where one operator does the work of several.

Lives here: the walk within the dialect, repeated until nothing changes, for any rules.
Not here: the patterns (identities.py, layout.py, products.py, activations.py, scaling.py, fusing.py), the rules for
older run times (older/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph import Graph, Node
from ...graph.builder import GraphTransform, has_subgraphs, map_subgraphs
from ...graph.passes import dead_code
from ...graph.passes.rewriting import RewriteRule
from ..ops.definition import LiteOperator
from .activations import ACTIVATIONS
from .fusing import FUSING
from .identities import IDENTITIES
from .layout import LAYOUT
from .products import PRODUCTS
from .rewriter import LiteRewriter, join
from .scaling import SCALING

# What does nothing goes first, and what stands between two nodes before they merge; whole compositions before parts.
PATTERNS = join(IDENTITIES, LAYOUT, PRODUCTS, ACTIVATIONS, SCALING, FUSING)
RulesOf = Callable[[Node], Sequence[RewriteRule]]
MAX_WALKS = 32  # each walk lets a transpose sink past a whole chain; this bounds what a mistake in the table could do


def optimize(graph: Graph) -> Graph:
    """The graph with fewer nodes, which computes the same; so are the graphs that its nodes hold."""
    return rewrite(graph, lambda node: PATTERNS.get(node.op.name, ()))


def rewrite(graph: Graph, rules: RulesOf) -> Graph:
    """The graph, and those that its nodes hold, with rules applied until none does.

    rules: those that may replace a node, in order.
    """
    return GraphTransform(lambda held, inside: _until_nothing_changes(held, rules, inside))(graph)


def _until_nothing_changes(graph: Graph, rules: RulesOf, inside: Callable[[Graph], Graph]) -> Graph:
    graph, _dropped = dead_code(graph)
    for _ in range(MAX_WALKS):
        before = graph
        graph = _walk(graph, rules, inside)
        if graph is before:
            break
        graph, _dropped = dead_code(graph)
    return graph


def _walk(graph: Graph, rules: RulesOf, inside: Callable[[Graph], Graph]) -> Graph:
    low = LiteRewriter(graph, inside)
    changed = False
    for old in graph.nodes:
        node = low.remap(old)
        if node.op.name == "Const":
            low.keep_constant(old)
            continue
        low.begin(node)
        if has_subgraphs(node) and (inner := map_subgraphs(node, inside)) is not node:
            node, changed = inner, True
        for rule in rules(node) if isinstance(node.op, LiteOperator) else ():
            if low.apply(rule, node, old) is None:
                changed = True
                break
        else:
            low.keep(node, old)
    return low.finish() if changed else graph
