"""Legalising: every catalogue operator of a graph is replaced by lite operators, by the first rule that takes it.

Lives here: the walk, and what becomes of nodes no rule takes.  Not here: the rules (rules/), merging afterwards
(optimize.py).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import resource, variant
from ...core.errors import InvalidArgumentError
from ...graph import Graph, Node
from ...graph.builder import GraphTransform
from ..flex import to_flex
from ..ops.definition import LiteOperator
from ..ops.external import ExternalOp, external_attrs
from .errors import Offender
from .rewriter import LiteRewriter
from .rules import RULES


class Allowed(NamedTuple):
    """What a file may hold: builtin operators, custom ones, Flex operators; and custom ones of these definitions."""

    builtin: bool = True
    custom: bool = False
    flex: bool = False
    operators: Set[Any] = frozenset()


def legalize(graph: Graph, allowed: Allowed, offenders: list[Offender]) -> Graph:
    """The graph in the lite dialect. What no rule takes becomes a Flex operator or stays itself, to be written as a
    custom operator; where neither is allowed it is added to `offenders` with every rule's reason to decline.

    Rules for nodes that hold graphs have these legalised by `LiteRewriter.graph_of`.
    """
    return GraphTransform(lambda held, inside: _walk(held, inside, allowed, offenders))(graph)


def _walk(graph: Graph, inside: Callable[[Graph], Graph], allowed: Allowed, offenders: list[Offender]) -> Graph:
    low = LiteRewriter(graph, inside)
    for old in graph.nodes:
        node = low.remap(old)
        if node.op.name == "Const":
            low.keep_constant(old)
            continue
        if isinstance(node.op, (LiteOperator, ExternalOp)):  # made so by an earlier stage
            low.keep(node, old)
            continue
        low.begin(node)
        reasons = []
        for rule in RULES.get(node.op.name, ()) if _has_rules(node, allowed) else ():
            declined = low.apply(rule, node, old)
            if declined is None:
                break
            reasons.append(f"{rule.name}: {declined.reason}")
        else:
            handles = {v.dtype for v in (*node.operands, *node.outputs)} & {resource, variant}
            custom = not any(node.subgraphs) and not handles
            flex = _flex(node, low, reasons) if allowed.flex and custom else None
            low.keep(flex or node, old)
            if variant in handles or flex is not None:
                continue  # of a list lists/ has said why it stays
            if not ((allowed.custom and custom) or node.op in allowed.operators):
                offenders.append(Offender(node, tuple(reasons), custom=custom))
    return low.finish()


def _has_rules(node: Node, allowed: Allowed) -> bool:
    """Control flow and variables have builtin forms only, whatever is allowed."""
    if not getattr(node.op, "catalogue", True):
        return False
    return allowed.builtin or any(node.subgraphs) or any(v.dtype is resource for v in (*node.operands, *node.outputs))


def _flex(node: Node, low: LiteRewriter, reasons: list[str]) -> Node | None:
    """The node as a Flex operator; None, with the reason added, where it has no such form."""
    if not getattr(node.op, "catalogue", True):
        return None
    try:
        flex_node = to_flex(node)
    except InvalidArgumentError as error:
        reasons.append(f"flex: {' '.join(error.message.split())}")
        return None
    inputs = [low.constant(x) if isinstance(x, np.ndarray) else x for x in flex_node.inputs]
    attrs = external_attrs(flex_node.options, node.effect)
    return Node(ExternalOp(flex_node.code), inputs, attrs, [v.spec for v in node.outputs], node.name, node.at)
