"""Dead-code elimination: nodes that nobody reads and that change nothing go.

Lives here: the pass.  Not here: unused outputs and inputs of control flow (unused.py).
"""

from __future__ import annotations

from ..ir import Graph, Node


def dead_code(graph: Graph) -> tuple[Graph, list[str]]:
    """Drop nodes that nobody reads and that change nothing; a read of state that nobody uses may go as well."""
    live = set(graph.outputs)
    kept: list[Node] = []
    dropped: list[str] = []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs) or node.effect == "write":
            kept.append(node)
            live.update(node.operands)
        else:
            dropped.append(f"  {'dead_code':22} {node.at or '':16} {node!r}")
    if not dropped:
        return graph, []
    return Graph(graph.name, graph.inputs, kept[::-1], graph.outputs), dropped[::-1]
