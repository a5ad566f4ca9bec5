"""Preparing: a frozen graph made as small as it gets before its operators are replaced.

Lives here: the order of the passes, and names that only rename.  Not here: the passes themselves (graph/passes/).
"""

from __future__ import annotations

from ...graph import Graph
from ...graph.passes import BRANCHES, COMMON, FOLD, Pass, RewriteRule, dead_code, prune, rewrite, run_passes
from .activations import find_gelu
from .sinking import sink


def _has_graphs(graph: Graph) -> bool:
    return any(True for node in graph.nodes for _ in node.subgraphs)


DROP_IDENTITY = RewriteRule(
    "drop_identity",
    "Identity StopGradient IdentityN PreventGradient CheckNumerics EnsureShape",
    lambda node, rewriter: tuple(node.operands),
    "the result is the operand",
)

PREPARE: tuple[tuple[str, Pass], ...] = (
    # renaming first, so that what reads through an Identity folds; constants sink before what they fold in there;
    # folding before merging, merging before dropping
    ("drop_identities", lambda g: rewrite(g, (DROP_IDENTITY,))),
    ("fold_constants", lambda g: rewrite(g, FOLD)),
    ("sink_constants", sink),
    ("fold_inside", lambda g: rewrite(g, (*FOLD, *BRANCHES)) if _has_graphs(g) else (g, [])),
    ("prune", prune),
    ("find_gelu", find_gelu),
    ("common_subexpressions", lambda g: rewrite(g, COMMON)),
    ("dead_code", dead_code),
)

MERGE: tuple[tuple[str, Pass], ...] = tuple(
    (name, step) for name, step in PREPARE if name in ("drop_identities", "common_subexpressions", "dead_code")
)


def merge(graph: Graph) -> Graph:
    """The graph without identities and repetitions; what is constant is still computed in it."""
    return run_passes(graph, MERGE)


def prepare(graph: Graph) -> Graph:
    """The graph without identities, constant parts and repetitions."""
    return run_passes(graph, PREPARE)
