"""Rules for control flow: If, Case, While.

Lives here: which lite operator runs which graphs.  Not here: constants put into the graphs (../sinking.py), lists in
loops (../lists/), lowering of the graphs themselves (../legalize.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int32, string
from ....core.errors import InvalidArgumentError
from ....graph import Graph, Node, Value
from ..lowering import Lowered, Lowering, Rule, table


def _if(node: Node, low: Lowering) -> Lowered:
    condition, operands = node.inputs
    assert isinstance(operands, tuple)
    branches, operands = _texts_from_outside(
        low, [low.graph_of(node.attrs[name]) for name in ("then_branch", "else_branch")], operands
    )
    return low.emit_many("IF", condition, operands, then_branch=branches[0], else_branch=branches[1],
                         likes=[v.spec for v in node.outputs])  # fmt: skip


def _texts_from_outside(low: Lowering, graphs: list[Graph], operands: tuple[Value, ...]
                        ) -> tuple[list[Graph], tuple[Value, ...]]:  # fmt: skip
    """Constant strings that a graph gives are handed in: the official run time reads wild memory where a subgraph
    gives a constant string itself."""
    for place, graph in enumerate(graphs):
        for value in dict.fromkeys(graph.outputs):
            if value.constant is None or value.dtype is not string:
                continue
            operands = (*operands, low.constant(value.constant, string))
            for i, other in enumerate(graphs):
                name = value.name
                while any(name == v.name for v in other.values()):
                    name += "_"
                fresh = Value(name, value.spec)
                outputs = [fresh if v is value else v for v in other.outputs]
                graphs[i] = Graph(other.name, (*other.inputs, fresh), other.nodes, outputs)
            graph = graphs[place]
    return graphs, operands


def _case(node: Node, low: Lowering) -> Lowered:
    """A tree of IFs over the number, which is first brought into the range of the branches."""
    index, operands = node.inputs
    assert isinstance(index, Value)
    assert isinstance(operands, tuple)
    branches = [low.graph_of(g) for g in node.attrs["branches"]]
    branches, operands = _texts_from_outside(low, branches, operands)
    if len(branches) == 1:
        branches *= 2
    last = len(branches) - 1
    known = low.emit("LOGICAL_AND", low.emit("GREATER_EQUAL", index, low.constant(0, int32)),
                     low.emit("LESS", index, low.constant(last, int32)))  # fmt: skip
    index = low.emit("SELECT", known, index, low.constant(last, int32))
    return _tree(low, index, operands, branches, 0, [v.spec for v in node.outputs])


def _tree(low: Any, index: Value, operands: Any, branches: Any, first: int, likes: Any) -> Any:
    half = (len(branches) + 1) // 2
    condition = low.emit("LESS", index, low.constant(first + half, int32))
    parts = (branches[:half], branches[half:])
    firsts = (first, first + half)
    graphs = [part[0] if len(part) == 1 else _inner(low, index, operands, part, at) for part, at in zip(parts, firsts)]
    with_index = [len(part) > 1 for part in parts]
    if any(with_index):
        graphs = [g if inner else _taking(index, g) for g, inner in zip(graphs, with_index)]
        operands = (index, *operands)
    return low.emit_many("IF", condition, operands, then_branch=graphs[0], else_branch=graphs[1], likes=likes)


def _inner(low: Lowering, index: Value, operands: Any, branches: Any, first: int) -> Graph:
    """The graph that chooses among these branches: its first input is the number."""
    inner = Lowering(Graph(f"{branches[0].name}_or_later", [], [], []))
    inner.name, inner.at = low.name, low.at
    inputs = [Value(inner.unique(v.name), v.spec) for v in (index, *operands)]
    outputs = _tree(inner, inputs[0], tuple(inputs[1:]), branches, first, ())
    return Graph(inner.graph.name, inputs, [*inner.constants.values(), *inner.nodes], outputs)


def _taking(extra: Value, graph: Graph) -> Graph:
    """The graph with an input before its own, that it does not read."""
    names = {v.name for v in graph.values()}
    name = extra.name
    while name in names:
        name += "_"
    return Graph(graph.name, (Value(name, extra.spec), *graph.inputs), graph.nodes, graph.outputs)


def _while(node: Node, low: Lowering) -> Lowered:
    variables, captured = node.inputs
    assert isinstance(variables, tuple)
    assert isinstance(captured, tuple)
    cond, body = low.graph_of(node.attrs["cond"]), low.graph_of(node.attrs["body"])
    body = Graph(body.name, body.inputs, body.nodes, (*body.outputs, *body.inputs[len(variables) :]))
    body = _copying(body, low)
    made = low.emit_many("WHILE", (*variables, *captured), cond=cond, body=body,
                         likes=[v.spec for v in (*node.outputs, *captured)])  # fmt: skip
    return made[: len(variables)]


def _copying(body: Graph, low: Lowering) -> Graph:
    """The body, with copies of inputs that it gives as other variables: the official run time lets one variable after
    the other be what the body gave, so that a later one would read what an earlier one has become."""
    outputs = list(body.outputs)
    inner = Lowering(Graph(body.name, (), (), ()))
    inner.names |= {v.name for v in body.values()}
    inner.name, inner.at = low.name, low.at
    for i, value in enumerate(body.outputs):
        if value not in body.inputs:
            continue
        j = body.inputs.index(value)
        if j != i and body.outputs[j] is not value:
            outputs[i] = _copy(inner, value)
    if not inner.nodes:
        return body
    return Graph(body.name, body.inputs, [*inner.constants.values(), *body.nodes, *inner.nodes], outputs)


def _copy(low: Lowering, value: Value) -> Value:
    """The same elements in another place, by an operator that no run time leaves out."""
    rank = value.shape.rank
    if value.dtype is not string:
        try:
            return low.emit("SELECT_V2", low.constant(np.True_), value, value, like=value.spec)
        except InvalidArgumentError:  # not of this type
            pass
    if rank == 0:
        return low.emit("RESHAPE", value, low.constant(np.zeros(0, np.int32)), like=value.spec)
    begin, size = low.constant([0] * (rank or 1), int32), low.constant([-1] * (rank or 1), int32)
    return low.emit("SLICE", value, begin, size, like=value.spec)


def _undefined(node: Node, low: Lowering) -> Lowered:
    """Zeros: they are there for their type alone, and nobody reads them."""
    shape, dtype = node.attrs["shape"], node.attrs["dtype"]
    zero: Any = np.zeros((), dtype.np)
    if dtype is string:
        zero = np.array(b"", object)
    sizes = [d or 0 for d in shape.dims or ()]
    if np.prod(sizes) <= 256:
        return low.constant(np.full(sizes, zero, dtype.np), dtype)
    return low.emit("FILL", low.int32(sizes), low.constant(zero, dtype), like=node.outputs[0].spec)


CONTROL = table(
    Rule("if", "If", _if),
    Rule("case", "Case", _case, "IFs over the number, by halves"),
    Rule("while", "While", _while, "what the loop reads from outside is a variable that stays"),
    Rule("undefined", "Undefined", _undefined, "never read"),
)
