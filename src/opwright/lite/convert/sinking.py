"""Sinking: constants that control flow is handed from outside move into its graphs.

Lives here: `sink`.  Not here: folding what becomes constant there (graph/passes/folding.py).

In a graph of its own a constant can be folded, and merged with what reads it: the weights of a cell in a loop. Equal
contents are one buffer in the file, however many subgraphs hold them. A variable of a loop that every turn hands on as
it came is no variable: it is what it was at the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.specs import TensorSpec
from ...graph import Graph, Node, Value
from ...graph.passes.rewriting import Rewrite, holds_graphs, map_graphs
from ...ops import registry


def sink(graph: Graph) -> tuple[Graph, list[str]]:
    """The graph whose If, Case and While read constants inside."""
    if not any(map(holds_graphs, graph.nodes)):
        return graph, []
    state = Rewrite(graph)
    for old in graph.nodes:
        inputs = tuple(map(state.operand, old.inputs))
        node = old if inputs == old.inputs else old.replaced(inputs=inputs)
        stands = list(range(len(old.outputs)))
        if node.op.name in _SINKS:
            node, stands, fixed = _SINKS[node.op.name](node)
            state.became.update({old.outputs[i]: value for i, value in fixed.items()})
        node = map_graphs(node, lambda held: sink(held)[0])
        if node is not old:
            state.changes.append(f"  {'sink':22} {node.at or '':16} {node!r}")
        state.emit(node)
        state.became.update(zip((old.outputs[i] for i in stands), node.outputs))
    if not state.changes:
        return graph, []
    return Graph(graph.name, graph.inputs, state.nodes, [state.became[v] for v in graph.outputs]), state.changes


def with_constants(graph: Graph, operands: Sequence[Value]) -> Graph:
    """The graph without the inputs whose operand is a constant; it has the constants itself."""
    const = registry.get("Const")
    state = Rewrite(graph)
    inputs = []
    for value, operand in zip(graph.inputs, operands):
        array = operand.constant
        if array is None:
            inputs.append(value)
            continue
        node = Node(
            const,
            (),
            {"value": array},
            [TensorSpec(array.shape, value.dtype)],
            value.name,
            operand.node.at if operand.node else None,
        )
        state.became[value] = state.emit(node).outputs[0]
    for old in graph.nodes:
        operands_ = tuple(map(state.operand, old.inputs))
        node = state.emit(old if operands_ == old.inputs else old.replaced(inputs=operands_))
        state.became.update(zip(old.outputs, node.outputs))
    return Graph(graph.name, inputs, state.nodes, [state.became[v] for v in graph.outputs])


Sunk = tuple[Node, list[int], dict[int, Value]]  # the node, which outputs its are, what stands for the others


def _branches(node: Node) -> Sunk:
    chooser, operands = node.inputs
    assert isinstance(operands, tuple)
    stands = list(range(len(node.outputs)))
    if all(v.constant is None for v in operands):
        return node, stands, {}
    node = map_graphs(node, lambda held: with_constants(held, operands))
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
    """As with_constants, of the inputs from `first` on."""
    return with_constants(graph, (*graph.inputs[:first], *operands))


_SINKS = {"If": _branches, "Case": _branches, "While": _while}
