"""Passes of the converter: simplify a frozen graph, legalise it into the lite dialect, merge within the dialect.

Lives here: `prepare`, `channels_last`, `legalize`, `optimize`, and the greedy driver of the dialect's rules,
`rewrite_greedily`.
Not here: legalisation rules (rules/), rules of the dialect (canonicalization.py, linear_operators.py, activations.py,
operator_fusion.py), rules for older run times (downlevel/), passes of any graph (graph/passes/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import resource, variant
from ...core.errors import InvalidArgumentError
from ...graph import Graph, Node
from ...graph.builder import GraphTransform, has_subgraphs, map_subgraphs
from ...graph.passes import BRANCHES, COMMON, FOLD, Pass, RewriteRule, dead_code, prune, rewrite, run_passes
from ...graph.passes.layout import assign_layouts
from ...ops import registry
from ..flex import to_flex
from ..ops.definition import LiteOperator
from ..ops.module import ExternalOp, external_attrs
from .activations import ACTIVATIONS, find_gelu
from .canonicalization import IDENTITIES, LAYOUT
from .channel_order import absorb_shuffles
from .delegated_forms import DELEGATED
from .errors import UnsupportedNode
from .linear_operators import PRODUCTS, SCALING
from .operator_fusion import FUSION
from .parts import grown_parts, split_parts
from .rewriter import LiteRewriter, join
from .rules import RULES
from .subgraphs import sink
from .transposed_parts import shared_transposes, transposed_once
from .wider_types import WiderTypes

DROP_IDENTITY = RewriteRule(
    "drop_identity",
    "Identity StopGradient IdentityN PreventGradient CheckNumerics EnsureShape",
    lambda node, rewriter: tuple(node.operands),
    "the result is the operand",
)
DROP_CHECK = RewriteRule(
    "drop_check", "ClassLabels", lambda node, rewriter: tuple(node.operands)[:1], "the result is the first operand"
)

PREPARE: tuple[tuple[str, Pass], ...] = (
    # Identities first, so that their readers fold; constants sink before the nodes that they fold in there; folding
    # precedes merging, and merging dropping.
    ("drop_identities", lambda g: rewrite(g, (DROP_IDENTITY, DROP_CHECK))),
    ("fold_constants", lambda g: rewrite(g, FOLD)),
    ("sink_constants", sink),
    ("fold_inside", lambda g: rewrite(g, (*FOLD, *BRANCHES)) if any(map(has_subgraphs, g.nodes)) else (g, [])),
    ("prune", prune),
    ("find_gelu", find_gelu),
    ("common_subexpressions", lambda g: rewrite(g, COMMON)),
    ("dead_code", dead_code),
)

MERGE: tuple[tuple[str, Pass], ...] = tuple(
    (name, step) for name, step in PREPARE if name in ("drop_identities", "common_subexpressions", "dead_code")
)


def merge(graph: Graph) -> Graph:
    """Return a graph without identities and common subexpressions. Constants are not folded."""
    return run_passes(graph, MERGE)


def prepare(graph: Graph) -> Graph:
    """Return a graph without identities, constant subexpressions and common subexpressions."""
    return run_passes(graph, PREPARE)


def channels_last(graph: Graph) -> Graph:
    """Return a graph in which transposes cancel as far as they can; those of constants are folded."""
    moved, _remaining = assign_layouts(graph, registry.get)
    return graph if moved is graph else prepare(moved)


class AllowedOperators(NamedTuple):
    """The kinds of operators that a file may contain. operators: definitions always allowed as custom operators."""

    builtin: bool = True
    custom: bool = False
    flex: bool = False
    operators: Set[Any] = frozenset()


def legalize(graph: Graph, allowed: AllowedOperators, unsupported: list[UnsupportedNode]) -> Graph:
    """Replace every catalogue operator of a graph by lite operators, by the first rule that takes it.

    A node that no rule accepts becomes a Flex operator or remains, to be written as a custom operator; if neither is
    allowed, it is added to `unsupported` with each rule's reason to decline. Rules for nodes that hold graphs
    legalise these by `LiteRewriter.graph_of`.
    """
    return GraphTransform(lambda held, inside: _legalized(held, inside, allowed, unsupported))(graph)


def _legalized(
    graph: Graph, inside: Callable[[Graph], Graph], allowed: AllowedOperators, unsupported: list[UnsupportedNode]
) -> Graph:
    rewriter = LiteRewriter(graph, inside)
    wider = WiderTypes(rewriter)
    for node, old in rewriter.walk():
        if isinstance(node.op, (LiteOperator, ExternalOp)):  # created by an earlier stage
            rewriter.keep(node, old)
            continue
        rewriter.begin(node)
        reasons = []
        rules = RULES.get(node.op.name, ()) if _has_rules(node, allowed) else ()
        for rule in rules:
            declined = rewriter.apply(rule, node, old, errors_decline=True)
            if declined is None:
                break
            reasons.append(f"{rule.name}: {declined.reason}")
        else:
            if any(rewriter.apply(r, node, old, errors_decline=True) is None for r in wider.rules(node, rules)):
                continue
            handles = {v.dtype for v in (*node.operands, *node.outputs)} & {resource, variant}
            custom = not any(node.subgraphs) and not handles
            flex = _flex(node, rewriter, reasons) if allowed.flex and custom else None
            rewriter.keep(flex or node, old)
            if variant in handles or flex is not None:
                continue  # lists/ has reported lists that stay
            if not ((allowed.custom and custom) or node.op in allowed.operators):
                unsupported.append(UnsupportedNode(node, tuple(reasons), custom=custom))
    return rewriter.finish()


def _has_rules(node: Node, allowed: AllowedOperators) -> bool:
    """Return whether rules apply: control flow and variables have builtin forms alone, whatever is allowed."""
    if not getattr(node.op, "catalogue", True):
        return False
    return allowed.builtin or any(node.subgraphs) or any(v.dtype is resource for v in (*node.operands, *node.outputs))


def _flex(node: Node, rewriter: LiteRewriter, reasons: list[str]) -> Node | None:
    """Return a node as a Flex operator; None if it has no such form, with the reason appended."""
    if not getattr(node.op, "catalogue", True):
        return None
    try:
        flex_node = to_flex(node)
    except InvalidArgumentError as error:
        reasons.append(f"flex: {' '.join(error.message.split())}")
        return None
    inputs = [rewriter.constant(x) if isinstance(x, np.ndarray) else x for x in flex_node.inputs]
    attrs = external_attrs(flex_node.options, node.effect)
    rules = (*node.rules, "flex: an operator of TensorFlow, which no builtin stands for")
    return Node(
        ExternalOp(flex_node.code), inputs, attrs, [v.spec for v in node.outputs], node.name, node.at, rules=rules
    )


# Identities first, then nodes between two that merge; whole compositions before their parts.
PATTERNS = join(IDENTITIES, LAYOUT, PRODUCTS, ACTIVATIONS, SCALING, FUSION, DELEGATED)
RulesOf = Callable[[Node], Sequence[RewriteRule]]
MAX_WALKS = 32  # a walk sinks a transpose past a whole chain; the bound is for mistakes in the table


def optimize(graph: Graph) -> Graph:
    """Merge nodes of the lite dialect where one operator does the work of several, in subgraphs too."""
    for step in (absorb_shuffles, split_parts, transposed_once, shared_transposes, grown_parts):
        graph = step(_merged(graph))
    return _merged(graph)


def _merged(graph: Graph) -> Graph:
    return rewrite_greedily(graph, lambda node: PATTERNS.get(node.op.name, ()))


def rewrite_greedily(graph: Graph, rules: RulesOf, errors_decline: bool = False) -> Graph:
    """Apply rules to a graph of the lite dialect, and to its subgraphs, until none matches.

    rules: returns the rules to try on a node, in order. errors_decline: as of `LiteRewriter.apply`.
    """
    return GraphTransform(lambda held, inside: _to_fixpoint(held, rules, inside, errors_decline))(graph)


def _to_fixpoint(graph: Graph, rules: RulesOf, inside: Callable[[Graph], Graph], errors_decline: bool) -> Graph:
    graph, _dropped = dead_code(graph)
    for _ in range(MAX_WALKS):
        before = graph
        graph = _rewritten_once(graph, rules, inside, errors_decline)
        if graph is before:
            break
        graph, _dropped = dead_code(graph)
    return graph


def _rewritten_once(graph: Graph, rules: RulesOf, inside: Callable[[Graph], Graph], errors_decline: bool) -> Graph:
    rewriter = LiteRewriter(graph, inside)
    changed = False
    for node, old in rewriter.walk():
        rewriter.begin(node)
        if has_subgraphs(node) and (inner := map_subgraphs(node, inside)) is not node:
            node, changed = inner, True
        for rule in rules(node) if isinstance(node.op, LiteOperator) else ():
            if rewriter.apply(rule, node, old, errors_decline) is None:
                changed = True
                break
        else:
            rewriter.keep(node, old)
    return rewriter.finish() if changed else graph
