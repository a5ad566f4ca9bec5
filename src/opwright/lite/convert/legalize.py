"""Legalising: every catalogue operator of a graph is replaced by lite operators, by the first rule that takes it.

Lives here: the walk, and what becomes of nodes no rule takes.  Not here: the rules (rules/), merging afterwards
(optimize.py).
"""

from __future__ import annotations

import sys

from ...core import flags
from ...core.dtypes import resource, variant
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...graph import Graph, Node
from ..ops.definition import LiteOperator
from .errors import Offender
from .foreign import Foreign
from .lowering import Lowered, Lowering, NoMatch, Rule
from .rules import RULES


def legalize(
    graph: Graph, allow_custom_ops: bool, offenders: list[Offender], done: dict[Graph, Graph] | None = None
) -> Graph:
    """The graph in the lite dialect. What no rule takes stays itself, to be written as a custom operator; where that
    is not allowed it is added to `offenders` with every rule's reason to decline.

    Rules for nodes that hold graphs have these legalised by `Lowering.graph_of`. done: what became of graphs so far,
    so that one that several nodes hold is one in the file, too.
    """
    done = {} if done is None else done

    def inside(held: Graph) -> Graph:
        if held not in done:
            done[held] = legalize(held, allow_custom_ops, offenders, done)
        return done[held]

    low = Lowering(graph, inside)
    show = "passes" in flags.show
    for old in graph.nodes:
        node = low.with_operands(old)
        if node.op.name == "Const":
            low.keep_constant(node, old)
            continue
        if isinstance(node.op, (LiteOperator, Foreign)):  # made so by an earlier stage
            low.keep(node, old)
            continue
        low.begin(node)
        reasons = []
        for rule in RULES.get(node.op.name, ()) if getattr(node.op, "catalogue", True) else ():
            lowered = _try(rule, node, low)
            if not isinstance(lowered, NoMatch):
                low.replace(old, lowered)
                if show:
                    print(f"  {rule.name:22} {node.at or '':16} {node!r}  ->  {', '.join(map(repr, low.emitted()))}",
                          file=sys.stderr)  # fmt: skip
                break
            reasons.append(f"{rule.name}: {lowered.reason}")
            low.abandon()
        else:
            low.keep(node, old)
            if isinstance(node.op, LiteOperator) or any(v.dtype is variant for v in (*node.operands, *node.outputs)):
                continue  # of the dialect already; or of a list, of which lists/ has said why it stays
            custom = not any(node.subgraphs) and not any(v.dtype is resource for v in node.operands)
            if not (allow_custom_ops and custom):
                offenders.append(Offender(node, tuple(reasons), custom=custom))
    return low.finish()


def _try(rule: Rule, node: Node, low: Lowering) -> Lowered:
    try:
        return rule.lower(node, low)
    except (InvalidArgumentError, UnimplementedError) as error:  # the lite operator does not take these operands
        return NoMatch(" ".join(error.message.split()))
