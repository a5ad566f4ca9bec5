"""Branches and loops as ONNX nodes, whose subgraphs see the values of the graph around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import bool as boolean
from ....core.dtypes import int64
from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ..files import onnx_module
from .writer import CODES, GraphWriter, rule


def info_of(name: str, value: Value, dims: list[Any] | None) -> Any:
    """Return the ValueInfoProto of a value. dims: sizes and names of symbolic ones; None for an unknown rank."""
    return onnx_module().helper.make_tensor_value_info(name, CODES[value.dtype], dims)


def _dims(value: Value) -> list[Any] | None:
    dims = value.shape.dims
    return None if dims is None else list(dims)


def _subgraph(w: GraphWriter, graph: Graph, names: list[str], label: str) -> Any:
    """Return a GraphProto without inputs: the values of its inputs have names outside."""
    inner = GraphWriter(w.shared, {**w.values, **dict(zip(graph.inputs, names))})
    outputs = [inner.op("Identity", name) for name in inner.write(graph)]
    infos = [info_of(name, v, _dims(v)) for name, v in zip(outputs, graph.outputs)]
    return onnx_module().helper.make_graph(inner.nodes, w.shared.unique(label), [], infos)


@rule("If")
def _if(w: GraphWriter, node: Node) -> list[str]:
    pred, *operands = flat(node.inputs)
    names = [w[v] for v in operands]
    branches = {
        name: _subgraph(w, getattr(node.attrs[name], "graph", node.attrs[name]), names, f"{node.name}_{name}")
        for name in ("then_branch", "else_branch")
    }
    condition = w[pred] if pred.dtype is boolean else w.cast(w[pred], boolean)
    return w.several("If", condition, outputs=len(node.outputs), **branches)


@rule("Case")
def _case(w: GraphWriter, node: Node) -> list[str]:
    """Emit branches within branches; an index out of range is that of the last one."""
    index, *operands = flat(node.inputs)
    names = [w[v] for v in operands]
    graphs = [getattr(g, "graph", g) for g in node.attrs["branches"]]

    def branch(writer: GraphWriter, number: int) -> Any:
        if number == len(graphs) - 1:
            return _subgraph(writer, graphs[number], names, f"{node.name}_{number}")
        inner = GraphWriter(writer.shared, writer.values)
        inner.prefix = node.name
        outputs = choose(inner, number)
        outputs = [inner.op("Identity", name) for name in outputs]
        infos = [info_of(n, v, _dims(v)) for n, v in zip(outputs, graphs[number].outputs)]
        return onnx_module().helper.make_graph(inner.nodes, w.shared.unique(f"{node.name}_rest"), [], infos)

    def choose(writer: GraphWriter, number: int) -> list[str]:
        chosen = writer.op("Equal", w[index], w.number(number, index))
        return writer.several(
            "If",
            chosen,
            outputs=len(node.outputs),
            then_branch=_subgraph(writer, graphs[number], names, f"{node.name}_{number}"),
            else_branch=branch(writer, number + 1),
        )

    if len(graphs) == 1:
        return _inlined(w, graphs[0], names)
    return choose(w, 0)


def _inlined(w: GraphWriter, graph: Graph, names: list[str]) -> list[str]:
    """Append the nodes of a graph; return the names of its outputs."""
    saved = dict(w.values)
    w.values.update(zip(graph.inputs, names))
    prefix = w.prefix
    outputs = w.write(graph)
    w.prefix = prefix
    for value in (*graph.inputs, *(v for n in graph.nodes for v in n.outputs)):
        w.values.pop(value, None)
    w.values.update(saved)
    return outputs


@rule("While")
def _while(w: GraphWriter, node: Node) -> list[str]:
    """Emit a Loop: its condition is computed before it, and at the end of each pass."""
    variables, captured = (flat([part]) for part in node.inputs)
    condition, body = (getattr(node.attrs[n], "graph", node.attrs[n]) for n in ("cond", "body"))
    start, fixed = [w[v] for v in variables], [w[v] for v in captured]
    (first,) = _inlined(w, condition, [*start, *fixed])
    inner = GraphWriter(w.shared, w.values)
    inner.prefix = w.prefix
    unique = w.shared.unique
    step, before = unique(f"{w.prefix}/step"), unique(f"{w.prefix}/more")
    names = [unique(f"{w.prefix}/{v.name}") for v in body.inputs[: len(variables)]]
    results = [inner.op("Identity", n) for n in _inlined(inner, body, [*names, *fixed])[: len(variables)]]
    (more,) = _inlined(inner, condition, [*results, *fixed])
    helper = onnx_module().helper
    inputs = [
        helper.make_tensor_value_info(step, CODES[int64], []),
        helper.make_tensor_value_info(before, CODES[boolean], []),
        *(info_of(n, v, _dims(v)) for n, v in zip(names, body.inputs)),
    ]
    again = inner.op("Identity", more)
    outputs = [
        helper.make_tensor_value_info(again, CODES[boolean], []),
        *(info_of(n, v, _dims(v)) for n, v in zip(results, body.outputs)),
    ]
    graph = helper.make_graph(inner.nodes, unique(f"{node.name}_body"), inputs, outputs)
    limit = w.constant(np.int64(np.iinfo(np.int64).max))
    return w.several("Loop", limit, first, *start, outputs=len(node.outputs), body=graph)
