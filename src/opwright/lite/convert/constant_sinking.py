"""Constant sinking: move constant operands of If, Case and While into their graphs.

Lives here: `sink`.  Not here: folding the nodes that read them there (graph/passes/constant_folding.py).

Inside, a constant folds and merges with its readers: the weights of a cell in a loop. Equal contents share a buffer in
the file, however many subgraphs hold them. A loop variable that the body returns unchanged is the value it starts with,
so it sinks too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.specs import TensorSpec
from ...graph import Graph, GraphRewriter, Node, Value
from ...graph.builder import constant_node, has_subgraphs, map_subgraphs
from ...graph.passes.rewrite_rules import PatternRewriter
from ...ops import registry


def sink(graph: Graph) -> tuple[Graph, list[str]]:
    """Move constant operands of If, Case and While into their graphs."""
    if not any(map(has_subgraphs, graph.nodes)):
        return graph, []
    rewriter = PatternRewriter(graph)
    for old in graph.nodes:
        node = rewriter.remap(old)
        stands = list(range(len(old.outputs)))
        if node.op.name in _SINKS:
            node, stands, fixed = _SINKS[node.op.name](node)
            rewriter.mapping.update({old.outputs[i]: value for i, value in fixed.items()})
        node = map_subgraphs(node, lambda held: sink(held)[0])
        if node is not old:
            rewriter.changes.append(f"  {'sink':22} {node.at or '':16} {node!r}")
        rewriter.insert(node)
        rewriter.mapping.update(zip((old.outputs[i] for i in stands), node.outputs))
    return (rewriter.finish(), rewriter.changes) if rewriter.changes else (graph, [])


def with_constants(graph: Graph, operands: Sequence[Value]) -> Graph:
    """Return a graph with constants in place of the inputs whose operands are constant."""
    const = registry.get("Const")
    rewriter = GraphRewriter(graph)
    rewriter.inputs = [v for v, operand in zip(graph.inputs, operands) if operand.constant is None]
    for value, operand in zip(graph.inputs, operands):
        array = operand.constant
        if array is not None:
            at = operand.node.at if operand.node else None
            node = constant_node(const, array, TensorSpec(array.shape, value.dtype), value.name, at)
            rewriter.mapping[value] = rewriter.insert(node).outputs[0]
    for node in graph.nodes:
        rewriter.copy(node)
    return rewriter.finish()


Sunk = tuple[Node, list[int], dict[int, Value]]  # the node, which outputs its are, what stands for the others


def _branches(node: Node) -> Sunk:
    chooser, operands = node.inputs
    assert isinstance(operands, tuple)
    stands = list(range(len(node.outputs)))
    if all(v.constant is None for v in operands):
        return node, stands, {}
    node = map_subgraphs(node, lambda held: with_constants(held, operands))
    return node.replaced(inputs=(chooser, tuple(v for v in operands if v.constant is None))), stands, {}


def _while(node: Node) -> Sunk:
    variables, captured = node.inputs
    assert isinstance(variables, tuple)
    assert isinstance(captured, tuple)
    cond, body = node.attrs["cond"], node.attrs["body"]
    stays = [i for i in range(len(variables)) if body.outputs[i] is body.inputs[i]]
    stays = [i for i in stays if variables[i].shape.is_subtype_of(node.outputs[i].shape)]
    goes = [i for i in range(len(variables)) if i not in stays]
    if not stays and all(v.constant is None for v in captured):
        return node, goes, {}
    order = [*goes, *stays, *range(len(variables), len(variables) + len(captured))]
    cond = Graph(cond.name, [cond.inputs[i] for i in order], cond.nodes, cond.outputs)
    body = Graph(body.name, [body.inputs[i] for i in order], body.nodes, [body.outputs[i] for i in goes])
    outside = (*(variables[i] for i in stays), *captured)
    kept = tuple(v for v in outside if v.constant is None)
    first = [variables[i] for i in goes]
    graphs = {name: _sunk_after(g, len(goes), outside) for name, g in (("cond", cond), ("body", body))}
    fresh = Node(
        node.op,
        (tuple(first), kept),
        {**node.attrs, **graphs},
        [node.outputs[i].spec for i in goes],
        node.name,
        node.at,
        [node.name, *(node.outputs[i].name for i in goes[1:])][: len(goes)],
    )
    return fresh, goes, {i: variables[i] for i in stays}


def _sunk_after(graph: Graph, first: int, operands: Sequence[Value]) -> Graph:
    """Apply `with_constants` to the inputs from `first` on."""
    return with_constants(graph, (*graph.inputs[:first], *operands))


_SINKS = {"If": _branches, "Case": _branches, "While": _while}
