"""Passes that preserve a graph's meaning: tables of rules and the drivers that apply them.

Lives here: the order of the passes, `run_passes`, the names of the package. Not here: selection of kernels and layouts
(compiler/), conversion to another dialect (lite/), inlining of functions, which the caller's trace does
(tracing/inliner.py).

    rewrite_rules.py  rules, and the walk that applies them; constant folding, common subexpressions, dead code; groups
    identities.py     identities of numbers, shape and order
    control_flow.py   static control flow, loop-invariant code motion
    layout.py         transposes that cancel; equations: layout_rules.py, the walk: layout_rewriter.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from ...core import flags
from ..builder import verify
from ..ir import Graph
from .control_flow import BRANCHES, hoist
from .identities import ARITHMETIC, SHAPES
from .rewrite_rules import (
    COMMON,
    FOLD,
    FOLD_LIMIT_BYTES,
    Answer,
    Pass,
    PatternRewriter,
    RewriteRule,
    dead_code,
    prune,
    rewrite,
)

__all__ = [
    "BRANCHES",
    "COMMON",
    "FOLD",
    "FOLD_LIMIT_BYTES",
    "RULES",
    "SIMPLIFY",
    "UNUSED",
    "Answer",
    "Pass",
    "PatternRewriter",
    "RewriteRule",
    "dead_code",
    "hoist",
    "prune",
    "rewrite",
    "run_passes",
]

# Folding first, so that rules see constants; merging last, so that it sees the results of the rules.
RULES: tuple[RewriteRule, ...] = (*FOLD, *BRANCHES, *SHAPES, *ARITHMETIC, *COMMON)


SIMPLIFY: tuple[tuple[str, Pass], ...] = (
    # in this order: rules leave dead nodes and unused operands of control flow; narrower loops have more invariants
    ("simplify", lambda g: rewrite(g, RULES)),
    ("prune", prune),
    ("hoist", hoist),
    ("dead_code", dead_code),
)
UNUSED: tuple[tuple[str, Pass], ...] = (("dead_code", dead_code),)


def run_passes(graph: Graph, passes: Sequence[tuple[str, Pass]] = SIMPLIFY) -> Graph:
    """Run passes in order. With the flag `verify` each result is checked; with `show=passes` each change is printed."""
    for name, apply in passes:
        start = time.perf_counter()
        before = len(graph.nodes)
        graph, changes = apply(graph)
        if "passes" in flags.show:
            elapsed = (time.perf_counter() - start) * 1e3
            print(
                f"pass {name}  {before} -> {len(graph.nodes)} nodes  {elapsed:.1f} ms",
                *changes,
                sep="\n",
                file=sys.stderr,
            )
        if flags.verify:
            verify(graph, after=name)
    return graph
