"""Optimising: nodes of the lite dialect merge where one operator does the work of several.

Lives here: the walk within the dialect, repeated until nothing changes, for any rules.
Not here: the patterns (identities.py, layout.py, products.py, activations.py, scaling.py, fusing.py), the rules for
older run times (older/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core import flags
from ...graph import Graph, Node, Value
from ...graph.passes import dead_code
from ...graph.passes.rewriting import holds_graphs, map_graphs
from ..ops.definition import LiteOperator
from .activations import ACTIVATIONS
from .fusing import FUSING
from .identities import IDENTITIES
from .layout import LAYOUT
from .lowering import EachOnce, NoMatch, Rewriting, Rule, join
from .products import PRODUCTS
from .scaling import SCALING

# What does nothing goes first, and what stands between two nodes before they merge; whole compositions before parts.
PATTERNS = join(IDENTITIES, LAYOUT, PRODUCTS, ACTIVATIONS, SCALING, FUSING)
RulesOf = Callable[[Node], Sequence[Rule]]
MAX_WALKS = 32  # each walk lets a transpose sink past a whole chain; this bounds what a mistake in the table could do


def optimize(graph: Graph) -> Graph:
    """The graph with fewer nodes, which computes the same; so are the graphs that its nodes hold."""
    return rewrite(graph, lambda node: PATTERNS.get(node.op.name, ()))


def rewrite(graph: Graph, rules: RulesOf) -> Graph:
    """The graph, and those that its nodes hold, with rules applied until none does.

    rules: those that may replace a node, in order.
    """
    return EachOnce(lambda held, inside: _until_nothing_changes(held, rules, inside))(graph)


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
    low = Rewriting(graph, _uses(graph), inside)
    show = "passes" in flags.show
    changed = False
    for old in graph.nodes:
        node = low.with_operands(old)
        if node.op.name == "Const":
            low.keep_constant(node, old)
            continue
        low.begin(node)
        if holds_graphs(node) and (inner := map_graphs(node, inside)) is not node:
            node, changed = inner, True
        for rule in rules(node) if isinstance(node.op, LiteOperator) else ():
            lowered = rule.lower(node, low)
            if not isinstance(lowered, NoMatch):
                low.replace(old, lowered)
                changed = True
                if show:
                    low.show(rule, node)
                break
            low.abandon()
        else:
            low.keep(node, old)
    return low.finish() if changed else graph


def _uses(graph: Graph) -> dict[Value, int]:
    """How often each value is read; being an output of the graph counts."""
    uses: dict[Value, int] = {}
    for node in graph.nodes:
        for value in node.operands:
            uses[value] = uses.get(value, 0) + 1
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 1
    return uses
