"""The driver that replaces operators newer than a run time, again and again until nothing changes.

Lives here: `say_older`, the table of rules joined, `OLDER`.
Not here: the rules (a module for each kind), the version that a node needs (../required_version.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.errors import InvalidArgumentError, UnimplementedError
from ....core.forks import once
from ....graph import Graph, Node
from ..lowering import Lowered, NoMatch, Rewriting, Rule, join
from ..optimize import rewrite
from ..required_version import too_new
from .arithmetic import ARITHMETIC
from .carrying import CARRYING
from .images import IMAGES
from .indexing import INDEXING
from .products import PRODUCTS
from .ranks import RANKS

OLDER = join(ARITHMETIC, PRODUCTS, INDEXING, IMAGES, RANKS, CARRYING)  # by type last: many operators have those rules


def say_older(graph: Graph, runtime: str) -> Graph:
    """Replace the operators that `runtime` lacks by older forms, in the graph and its subgraphs.

    Operators without a rule stay, to be reported.
    """

    def rules(node: Node) -> Sequence[Rule]:
        found = OLDER.get(node.op.name)
        return [_declining(rule) for rule in found] if found and too_new(node, runtime) else ()

    return rewrite(graph, rules)


@once
def _declining(rule: Rule) -> Rule:
    """The rule, which declines where operators do not take what it would give them."""

    def lower(node: Node, low: Rewriting) -> Lowered:
        try:
            return rule.lower(node, low)
        except (InvalidArgumentError, UnimplementedError) as error:
            return NoMatch(" ".join(error.message.split()))

    return Rule(rule.name, rule.op, lower, rule.why)
