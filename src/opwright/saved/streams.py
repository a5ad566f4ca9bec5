"""Streams of random numbers in graphs from files: each loaded graph draws from its own.

Lives here: `with_fresh_streams`.  Not here: what a stream is (ops/random/state.py).

A random operator's attribute `stream` numbers sequences within a process; a number out of a file would be somebody
else's here.
"""

from __future__ import annotations

import operator
from typing import Any

from ..graph import Graph, GraphRewriter
from ..graph.builder import map_subgraphs
from ..ops.random.state import new_stream


def with_fresh_streams(graph: Graph, fresh: dict[int, int] | None = None) -> Graph:
    """The graph, its streams renumbered: equal ones stay equal. The same graph where it has none."""
    fresh = {} if fresh is None else fresh
    rewriter = GraphRewriter(graph)

    def renumbered(key: str, value: Any) -> Any:
        if key == "stream" and type(value) is int and value != 0:
            if value not in fresh:
                fresh[value] = new_stream()
            return fresh[value]
        return value

    for node in graph.nodes:
        new = rewriter.remap(map_subgraphs(node, lambda held: with_fresh_streams(held, fresh)))
        attrs = {key: renumbered(key, value) for key, value in new.attrs.items()}
        if any(attrs[key] is not value for key, value in new.attrs.items()):
            new = new.replaced(attrs=attrs)
        rewriter.replace(node, rewriter.insert(new).outputs)
    return rewriter.finish() if any(map(operator.is_not, rewriter.nodes, graph.nodes)) else graph
