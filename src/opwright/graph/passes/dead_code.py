"""Dead-code elimination: unused nodes, and unused inputs and outputs of control flow.

Lives here: `dead_code`; `prune`, for If, Case and While in subgraphs of any depth.
Not here: redundant nodes that are read (rewrite_rules.py, identities.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..builder import GraphRewriter, has_subgraphs, map_subgraphs
from ..ir import Graph, Node, Value


def dead_code(graph: Graph) -> tuple[Graph, list[str]]:
    """Drop unused nodes without side effects, unused reads of state included."""
    live = set(graph.outputs)
    used: list[Node] = []
    dropped: list[str] = []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs) or node.effect == "write":
            used.append(node)
            live.update(node.operands)
        else:
            dropped.append(f"  {'dead_code':22} {node.at or '':16} {node!r}")
    if not dropped:
        return graph, []
    return Graph(graph.name, graph.inputs, used[::-1], graph.outputs), dropped[::-1]


def prune(graph: Graph) -> tuple[Graph, list[str]]:
    """Narrow If, Case and While to their used outputs, from the last to the first; then their subgraphs."""
    if not any(map(has_subgraphs, graph.nodes)):
        return graph, []
    live = set(graph.outputs)
    narrowed: dict[Node, tuple[Node, Sequence[int]]] = {}
    changes: list[str] = []
    for node in reversed(graph.nodes):
        read = [i for i, v in enumerate(node.outputs) if v in live]
        if not read and node.effect != "write":
            continue  # dead, for `dead_code`
        narrow = _NARROW.get(node.op.name)
        if narrow is not None:
            smaller = map_subgraphs(node, lambda g: prune(dead_code(g)[0])[0])
            smaller, outputs = narrow(smaller, read)
            if smaller is not node:
                narrowed[node] = smaller, outputs
                changes.append(f"  {'prune':22} {node.at or '':16} {node!r}  ->  {smaller!r}")
                node = smaller
        live.update(node.operands)
    if not narrowed:
        return graph, []
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        smaller, indices = narrowed.get(node, (node, range(len(node.outputs))))
        copy = rewriter.insert(rewriter.remap(smaller))
        rewriter.mapping.update(zip((node.outputs[i] for i in indices), copy.outputs))
    rewriter.nodes = _readable(rewriter.nodes, graph.inputs)
    return dead_code(rewriter.finish())[0], changes[::-1]


def _readable(nodes: Sequence[Node], inputs: Iterable[Value]) -> list[Node]:
    """Return the nodes whose operands exist: dead nodes may read outputs that were removed."""
    available = set(inputs)
    readable = []
    for node in nodes:
        if all(v in available for v in node.operands):
            readable.append(node)
            available.update(node.outputs)
    return readable


def _narrower(node: Node, inputs: Sequence[object], attrs: Mapping[str, object], indices: Sequence[int]) -> Node:
    """Return the node with some of its outputs, under their names; the first has the node's, as text requires."""
    outputs = [node.outputs[i] for i in indices]
    names = [node.name, *(v.name for v in outputs[1:])][: len(outputs)]
    return Node(node.op, inputs, {**node.attrs, **attrs}, [v.spec for v in outputs], node.name, node.at, names)  # type: ignore[arg-type]


def _reads(graph: Graph) -> set[Value]:
    return {*graph.outputs, *(v for node in graph.nodes for v in node.operands)}


def _branches(node: Node, read: list[int]) -> tuple[Node, list[int]]:
    """Narrow an If or Case to the outputs that are read, and to the inputs that a branch needs for them."""
    graphs = [dead_code(Graph(g.name, g.inputs, g.nodes, [g.outputs[i] for i in read]))[0] for g in node.subgraphs]
    operands = node.inputs[1]
    assert isinstance(operands, tuple)
    needed = sorted({g.inputs.index(v) for g in graphs for v in _reads(g) if v in g.inputs})
    if len(read) == len(node.outputs) and len(needed) == len(operands):
        return node, read
    graphs = [Graph(g.name, [g.inputs[i] for i in needed], g.nodes, g.outputs) for g in graphs]
    names = [k for k, v in node.attrs.items() if isinstance(v, Graph)]
    attrs: dict[str, object] = dict(zip(names, graphs)) if names else {"branches": tuple(graphs)}
    return _narrower(node, (node.inputs[0], tuple(operands[i] for i in needed)), attrs, read), read


def _while(node: Node, read: list[int]) -> tuple[Node, list[int]]:
    """Narrow a While to the variables that are read outside, by the condition, or by the body for these."""
    cond, body = node.attrs["cond"], node.attrs["body"]
    variables, captured = node.inputs
    assert isinstance(variables, tuple)
    assert isinstance(captured, tuple)
    index = {v: i for graph in (cond, body) for i, v in enumerate(graph.inputs)}
    needed = set(read) | {index[v] for v in _reads(cond) if v in index}
    while True:
        variables_used = sorted(i for i in needed if i < len(variables))
        smaller = dead_code(Graph(body.name, body.inputs, body.nodes, [body.outputs[i] for i in variables_used]))[0]
        more = needed | {index[v] for v in _reads(smaller) if v in index}
        if more == needed:
            break
        needed = more
    if len(needed) == len(variables) + len(captured):
        return node, list(range(len(variables)))
    order = sorted(needed)
    outside = [i - len(variables) for i in order if i >= len(variables)]
    attrs = {
        "cond": Graph(cond.name, [cond.inputs[i] for i in order], cond.nodes, cond.outputs),
        "body": Graph(smaller.name, [body.inputs[i] for i in order], smaller.nodes, smaller.outputs),
    }
    inputs = (tuple(variables[i] for i in variables_used), tuple(captured[i] for i in outside))
    return _narrower(node, inputs, attrs, variables_used), variables_used


_NARROW = {"If": _branches, "Case": _branches, "While": _while}
