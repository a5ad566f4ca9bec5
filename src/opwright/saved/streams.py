"""Streams of random numbers in graphs from files: each loaded graph draws from its own.

Lives here: `with_fresh_streams`.  Not here: what a stream is (ops/random/state.py).

A random operator's attribute `stream` numbers sequences within a process; a number out of a file would be somebody
else's here.
"""

from __future__ import annotations

from typing import Any

from ..graph import Graph, Node, Value
from ..ops.random.state import new_stream


def with_fresh_streams(graph: Graph, fresh: dict[int, int] | None = None) -> Graph:
    """The graph, its streams renumbered: equal ones stay equal. The same graph where it has none."""
    fresh = {} if fresh is None else fresh
    nodes: list[Node] = []
    became: dict[Value, Value] = {}
    changed = False

    def renumbered(key: str, value: Any) -> Any:
        if isinstance(value, Graph):
            return with_fresh_streams(value, fresh)
        if isinstance(value, tuple) and any(isinstance(v, Graph) for v in value):
            return tuple(renumbered(key, v) for v in value)
        if key == "stream" and type(value) is int and value != 0:
            if value not in fresh:
                fresh[value] = new_stream()
            return fresh[value]
        return value

    for node in graph.nodes:
        attrs = {k: renumbered(k, v) for k, v in node.attrs.items()}
        inputs = tuple(
            tuple([became.get(v, v) for v in o]) if isinstance(o, tuple) else None if o is None else became.get(o, o)
            for o in node.inputs
        )
        if inputs != node.inputs or any(attrs[k] is not v for k, v in node.attrs.items()):
            new = node.replaced(inputs=inputs, attrs=attrs)
            became.update(zip(node.outputs, new.outputs))
            node, changed = new, True
        nodes.append(node)
    if not changed:
        return graph
    return Graph(graph.name, graph.inputs, nodes, [became.get(v, v) for v in graph.outputs])
