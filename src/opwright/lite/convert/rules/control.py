"""Rules for control flow: If, Case, While.

Lives here: the lite operators, and the graphs that they run.
Not here: constants moved into the graphs (../subgraphs.py), lists in loops (../lists/), legalisation of the
graphs (../passes.py), outputs that the official run time mishandles (../subgraphs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import int32, string
from ....core.specs import TensorSpec
from ....graph import Graph, Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, RuleResult, rule_table


def _if(node: Node, rewriter: LiteRewriter) -> RuleResult:
    condition, operands = node.inputs
    then_branch, else_branch = map(rewriter.graph_of, (node.attrs["then_branch"], node.attrs["else_branch"]))
    return rewriter.emit_many(
        "IF",
        condition,
        operands,
        then_branch=then_branch,
        else_branch=else_branch,
        likes=[v.spec for v in node.outputs],
    )


def _case(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit a tree of IFs over the index, which is clamped to the branches first."""
    index, operands = node.inputs
    assert isinstance(index, Value)
    assert isinstance(operands, tuple)
    branches = [rewriter.graph_of(g) for g in node.attrs["branches"]]
    if len(branches) == 1:
        branches *= 2
    last = len(branches) - 1
    clamped = rewriter.emit(
        "LOGICAL_AND",
        rewriter.emit("GREATER_EQUAL", index, rewriter.constant(0, int32)),
        rewriter.emit("LESS", index, rewriter.constant(last, int32)),
    )
    index = rewriter.emit("SELECT", clamped, index, rewriter.constant(last, int32))
    return _tree(rewriter, index, operands, branches, 0, [v.spec for v in node.outputs])


def _tree(
    rewriter: LiteRewriter,
    index: Value,
    operands: tuple[Value, ...],
    branches: Sequence[Graph],
    first: int,
    likes: Sequence[TensorSpec],
) -> tuple[Value, ...]:
    half = (len(branches) + 1) // 2
    condition = rewriter.emit("LESS", index, rewriter.constant(first + half, int32))
    parts = (branches[:half], branches[half:])
    firsts = (first, first + half)
    graphs = [
        part[0] if len(part) == 1 else _inner(rewriter, index, operands, part, at) for part, at in zip(parts, firsts)
    ]
    with_index = [len(part) > 1 for part in parts]
    if any(with_index):
        graphs = [g if inner else _taking(index, g) for g, inner in zip(graphs, with_index)]
        operands = (index, *operands)
    return rewriter.emit_many("IF", condition, operands, then_branch=graphs[0], else_branch=graphs[1], likes=likes)


def _inner(
    rewriter: LiteRewriter, index: Value, operands: tuple[Value, ...], branches: Sequence[Graph], first: int
) -> Graph:
    """Return a graph that chooses among branches by its first input."""
    inner = LiteRewriter(Graph(f"{branches[0].name}_or_later", [], [], []))
    inner.prefix, inner.at = rewriter.prefix, rewriter.at
    inputs = [Value(inner.unique(v.name), v.spec) for v in (index, *operands)]
    outputs = _tree(inner, inputs[0], tuple(inputs[1:]), branches, first, ())
    return Graph(inner.source.name, inputs, [*inner.constants.values(), *inner.nodes], outputs)


def _taking(extra: Value, graph: Graph) -> Graph:
    """Return a graph with an additional first input, which it does not read."""
    names = {v.name for v in graph.values()}
    name = extra.name
    while name in names:
        name += "_"
    return Graph(graph.name, (Value(name, extra.spec), *graph.inputs), graph.nodes, graph.outputs)


def _while(node: Node, rewriter: LiteRewriter) -> RuleResult:
    variables, captured = node.inputs
    assert isinstance(variables, tuple)
    assert isinstance(captured, tuple)
    cond, body = rewriter.graph_of(node.attrs["cond"]), rewriter.graph_of(node.attrs["body"])
    body = Graph(body.name, body.inputs, body.nodes, (*body.outputs, *body.inputs[len(variables) :]))
    outputs = rewriter.emit_many(
        "WHILE", (*variables, *captured), cond=cond, body=body, likes=[v.spec for v in (*node.outputs, *captured)]
    )
    return outputs[: len(variables)]


def _undefined(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit zeros: only their type counts, no node reads them."""
    shape, dtype = node.attrs["shape"], node.attrs["dtype"]
    zero: Any = np.zeros((), dtype.np)
    if dtype is string:
        zero = np.array(b"", object)
    sizes = [d or 0 for d in shape.dims or ()]
    if np.prod(sizes) <= 256:
        return rewriter.constant(np.full(sizes, zero, dtype.np), dtype)
    return rewriter.emit("FILL", rewriter.int32(sizes), rewriter.constant(zero, dtype), like=node.outputs[0].spec)


CONTROL = rule_table(
    RewriteRule("if", "If", _if),
    RewriteRule("case", "Case", _case, "IFs over the number, by halves"),
    RewriteRule("while", "While", _while, "what the loop reads from outside is a variable that stays"),
    RewriteRule("undefined", "Undefined", _undefined, "never read"),
    RewriteRule(
        "drop_assert", "Assert", lambda node, rewriter: (), "no result depends on it; files have no place for checks"
    ),
)
