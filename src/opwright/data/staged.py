"""Loops over datasets and iterators in traced functions: one loop in the graph, whatever there is to iterate.

Lives here: what `for` means for them.  Not here: the rewriting (staging/), loops in graphs (tracing/control/).
"""

from __future__ import annotations


def autograph_is_off() -> bool:
    """Whether the function being traced is one that AutoGraph leaves alone."""
    return False
