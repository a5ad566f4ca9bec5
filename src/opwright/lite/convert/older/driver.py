"""The driver that replaces operators newer than a run time, again and again until nothing changes.

Lives here: `say_older`, the table of rules joined, `OLDER`.
Not here: the rules (a module for each kind), the version that a node needs (../required_version.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....graph import Graph, Node
from ....graph.passes.rewriting import RewriteRule
from ..optimize import rewrite
from ..required_version import too_new
from ..rewriter import join
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

    def rules(node: Node) -> Sequence[RewriteRule]:
        found = OLDER.get(node.op.name)
        return found if found and too_new(node, runtime) else ()

    return rewrite(graph, rules)
