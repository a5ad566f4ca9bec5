"""Control flow and the graphs that it holds: legalisation, constant sinking, and copies of outputs.

Lives here: `CONTROL`, the rules of If, Case and While; `sink`; `copy_outputs`, the last change to graphs with control
flow before export.
Not here: lists in loops (lists/), legalisation of other operators (rules/), folding the nodes that read sunk constants
(graph/passes/rewrite_rules.py), simplification, which must not undo the copies (passes.py).

Constant sinking moves constant operands of If, Case and While into their graphs. Inside, a constant folds and merges
with its readers: the weights of a cell in a loop. Equal contents share a buffer in the file, however many subgraphs
hold them. A loop variable that the body returns unchanged equals its initial value, so it sinks too.

The official interpreter, as of LiteRT 2.3, returns wrong results or reads invalid memory if
* a body returns one variable's input as another variable (`a, b = b, a`): it copies one variable after the other, so a
  later one receives the new value of an earlier one, in TensorFlow's own files too. Such inputs are copied.
* a branch returns one computed tensor as two outputs. The second is copied.
* a branch returns a constant of strings. It becomes an operand of the branch, which returns its input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import int32, string
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...graph import Graph, GraphRewriter, Node, Value
from ...graph.builder import GraphTransform, constant_node, has_subgraphs, map_subgraphs, unique_name
from ...graph.ir import branch_inputs, loop_inputs
from ...graph.passes.rewrite_rules import PatternRewriter, RewriteRule
from ...ops import registry
from .rewriter import LiteRewriter, RuleResult, rule_table, within


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


Sunk = tuple[Node, list[int], dict[int, Value]]
"""The node, the indices of its outputs, replacements of the other outputs."""


def _branches(node: Node) -> Sunk:
    chooser, operands = branch_inputs(node)
    stands = list(range(len(node.outputs)))
    if all(v.constant is None for v in operands):
        return node, stands, {}
    node = map_subgraphs(node, lambda held: with_constants(held, operands))
    return node.replaced(inputs=(chooser, tuple(v for v in operands if v.constant is None))), stands, {}


def _while(node: Node) -> Sunk:
    variables, captured = loop_inputs(node)
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


def copy_outputs(graph: Graph) -> Graph:
    """Insert copies in branches and bodies of a graph whose outputs the official run time mishandles."""
    return GraphTransform(_walk)(graph)


def _walk(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    if not any(map(has_subgraphs, graph.nodes)):
        return graph
    rewriter = LiteRewriter(graph, inside)
    for node, old in rewriter.walk():
        rewriter.begin(node)
        change = _CHANGES.get(node.op.name)
        if change is None:
            rewriter.keep(node, old)
            continue
        inputs, attrs = change(node, rewriter)
        rewriter.replace(old, rewriter.emit_many(node.op.name, *inputs, likes=[v.spec for v in old.outputs], **attrs))
        rewriter.credit(node, "copy_outputs: the official run time needs copies of outputs that share memory")
    return rewriter.finish()


Changed = tuple[Sequence[Any], dict[str, Any]]  # inputs and attributes of the node


def _branch_outputs(node: Node, rewriter: LiteRewriter) -> Changed:
    """Change IF and STABLEHLO_CASE, whose first input chooses the branch."""
    chooser, operands = branch_inputs(node)
    graphs = [_with_copies(rewriter.graph_of(g), rewriter, _again) for g in node.subgraphs]
    graphs, operands = _texts_from_outside(rewriter, graphs, operands)
    if "branches" in node.attrs:
        return (chooser, operands), {"branches": tuple(graphs)}
    return (chooser, operands), dict(zip(("then_branch", "else_branch"), graphs))


def _call(node: Node, rewriter: LiteRewriter) -> Changed:
    return node.inputs, {"body": rewriter.graph_of(node.attrs["body"])}


def _loop_outputs(node: Node, rewriter: LiteRewriter) -> Changed:
    cond, body = map(rewriter.graph_of, (node.attrs["cond"], node.attrs["body"]))
    return node.inputs, {"cond": cond, "body": _with_copies(body, rewriter, _from_another)}


_CHANGES: dict[str, Callable[[Node, LiteRewriter], Changed]] = {
    "IF": _branch_outputs,
    "STABLEHLO_CASE": _branch_outputs,
    "CALL": _call,
    "STABLEHLO_COMPOSITE": _call,
    "WHILE": _loop_outputs,
}


def _again(graph: Graph, place: int) -> bool:
    """Return whether an output is a computed value that an earlier output is, too."""
    value = graph.outputs[place]
    return value.node is not None and value.constant is None and value in graph.outputs[:place]


def _from_another(graph: Graph, place: int) -> bool:
    """Return whether an output is the input of another variable, which the iteration changes."""
    value = graph.outputs[place]
    if value not in graph.inputs:
        return False
    other = graph.inputs.index(value)
    return other != place and graph.outputs[other] is not value


def _with_copies(graph: Graph, rewriter: LiteRewriter, needs_copy: Callable[[Graph, int], bool]) -> Graph:
    """Return a graph with a copy for each output that needs one."""
    places = [i for i in range(len(graph.outputs)) if needs_copy(graph, i)]
    if not places:
        return graph
    inner = LiteRewriter(graph)
    inner.prefix, inner.at = rewriter.prefix, rewriter.at
    outputs = list(graph.outputs)
    for i in places:
        outputs[i] = _copy(inner, outputs[i])
    return Graph(graph.name, graph.inputs, [*inner.constants.values(), *graph.nodes, *inner.nodes], outputs)


def _copy(rewriter: LiteRewriter, value: Value) -> Value:
    """Emit the same elements in another buffer, by an operator that no run time elides."""
    rank = value.shape.rank
    if value.dtype is not string:
        try:
            return rewriter.emit("SELECT_V2", rewriter.constant(np.True_), value, value, like=value.spec)
        except InvalidArgumentError:  # not of this type
            pass
    if rank == 0:
        return rewriter.emit("RESHAPE", value, rewriter.constant(np.zeros(0, np.int32)), like=value.spec)
    begin, size = rewriter.constant([0] * (rank or 1), int32), rewriter.constant([-1] * (rank or 1), int32)
    return rewriter.emit("SLICE", value, begin, size, like=value.spec)


def _texts_from_outside(
    rewriter: LiteRewriter, graphs: list[Graph], operands: tuple[Value, ...]
) -> tuple[list[Graph], tuple[Value, ...]]:
    """Pass constant strings that a graph returns as inputs of all the graphs."""
    for place, graph in enumerate(graphs):
        for value in dict.fromkeys(graph.outputs):
            if value.constant is None or value.dtype is not string:
                continue
            operands = (*operands, rewriter.constant(value.constant, string))
            for i, other in enumerate(graphs):
                fresh = Value(unique_name(value.name, {v.name for v in other.values()}), value.spec)
                outputs = [fresh if v is value and i == place else v for v in other.outputs]
                graphs[i] = Graph(other.name, (*other.inputs, fresh), other.nodes, outputs)
    return graphs, operands


def _lower_if(node: Node, rewriter: LiteRewriter) -> RuleResult:
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


def _lower_case(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit a tree of IFs over the index, which is clamped to the branches first."""
    index, operands = branch_inputs(node)
    branches = [rewriter.graph_of(g) for g in node.attrs["branches"]]
    if len(branches) == 1:
        branches *= 2
    last = len(branches) - 1
    index = rewriter.emit("SELECT", within(rewriter, index, last), index, rewriter.constant(last, int32))
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


def _lower_while(node: Node, rewriter: LiteRewriter) -> RuleResult:
    variables, captured = loop_inputs(node)
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
    RewriteRule("if", "If", _lower_if),
    RewriteRule("case", "Case", _lower_case, "IFs over the number, by halves"),
    RewriteRule("while", "While", _lower_while, "what the loop reads from outside is a variable that stays"),
    RewriteRule("undefined", "Undefined", _undefined, "never read"),
    RewriteRule(
        "drop_assert", "Assert", lambda node, rewriter: (), "no result depends on it; files have no place for checks"
    ),
)
