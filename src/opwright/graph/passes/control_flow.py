"""Simplification of control flow: static branches and loops, and loop-invariant code motion.

Lives here: BRANCHES, rules for If, Case and While with a static direction; `hoist`, which computes values that no
iteration changes before the loop, and `hoist_reads`, of variables; `counter_of`, `most_iterations`,
`exact_iterations` of loops.
Not here: unused variables and outputs (rewrite_rules.py).

A pure node is hoisted if its operands are invariant: captures, constants, variables that the body returns unchanged,
and hoisted values. If the loop may have no iterations, only nodes are hoisted that cannot fail; if it has at least one,
and no effect precedes the failure, any pure node is. A condition is evaluated at least once, so its invariant nodes are
hoisted if it has no effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.dtypes import int32
from ..builder import GraphRewriter, has_subgraphs, map_subgraphs
from ..ir import Graph, Node, Value, loop_inputs, map_operands
from .rewrite_rules import Answer, PatternRewriter, RewriteRule, fold_constants

_LONGEST_CONDITION = 40  # nodes; longer conditions are not worked out ahead


def control_operands(node: Node) -> tuple[Value, ...]:
    """Return the operands that a node of control flow passes to its graphs: all but the one that chooses."""
    return tuple(
        v
        for part in (node.inputs if node.op.name == "While" else node.inputs[1:])
        for v in (part if isinstance(part, tuple) else ())
    )


def taken_branch(node: Node, rewriter: PatternRewriter) -> Answer:
    """Inline the branch of an If or Case with a constant predicate."""
    chooser = node.inputs[0]
    assert isinstance(chooser, Value)
    if chooser.constant is None:
        return None
    if node.op.name == "If":
        branch = node.attrs["then_branch" if bool(chooser.constant) else "else_branch"]
    else:
        branches, i = node.attrs["branches"], int(chooser.constant)
        branch = branches[i] if 0 <= i < len(branches) else branches[-1]
    if not _as_known(branch.outputs, node):
        return None  # before any of its nodes is created
    return rewriter.inline(branch, control_operands(node), node.name)


def _as_known(values: Sequence[Value], node: Node) -> bool:
    return all(v.shape.is_subtype_of(out.shape) for v, out in zip(values, node.outputs))


def first_condition(node: Node) -> bool | None:
    """Evaluate a While's condition before the first iteration, if it follows from constants; None otherwise."""
    cond: Graph = node.attrs["cond"]
    if len(cond.nodes) > _LONGEST_CONDITION or cond.effect is not None:
        return None
    rewriter = PatternRewriter(cond)
    rewriter.mapping = dict(zip(cond.inputs, control_operands(node)))
    for old in cond.nodes:
        fresh = rewriter.remap(old)
        values = fold_constants(fresh, rewriter)
        rewriter.replace(old, fresh.outputs if values is None else values)
    result = rewriter.finish().outputs[0].constant
    return None if result is None else bool(result)


def no_iteration(node: Node, rewriter: PatternRewriter) -> Answer:
    """Replace a loop without iterations by its operands."""
    if first_condition(node) is not False:
        return None
    variables = node.inputs[0]
    assert isinstance(variables, tuple)
    return variables


def same_either_way(node: Node, rewriter: PatternRewriter) -> Answer:
    """Replace a branch node without effects by operands that all its branches return."""
    if not node.outputs or node.effect is not None:
        return None
    operands, replacements = control_operands(node), []
    for outputs in zip(*(g.outputs for g in node.subgraphs)):
        indices = {g.inputs.index(v) if v in g.inputs else None for g, v in zip(node.subgraphs, outputs)}
        index = indices.pop()
        if indices or index is None:
            return None
        replacements.append(operands[index])
    return replacements


BRANCHES: Sequence[RewriteRule] = (
    RewriteRule("taken_branch", "If Case", taken_branch, "the other branches never run"),
    RewriteRule("same_either_way", "If Case", same_either_way, "whichever runs, the result is the operand"),
    RewriteRule("no_iteration", "While", no_iteration, "the condition does not hold at first"),
)


# Operators that cannot fail if the sizes of all operands and results are known; element-wise ones are recognised apart.
_SAFE = frozenset(
    {
        "AddN",
        "All",
        "Any",
        "ArgMax",
        "ArgMin",
        "AvgPool",
        "BiasAdd",
        "BroadcastTo",
        "Cast",
        "Concat",
        "Conv2D",
        "Conv3D",
        "Cumprod",
        "Cumsum",
        "DepthwiseConv2dNative",
        "Einsum",
        "ExpandDims",
        "L2Loss",
        "LayerNorm",
        "LogSoftmax",
        "MatMul",
        "MatrixBandPart",
        "MatrixDiag",
        "MatrixDiagPart",
        "Max",
        "MaxPool",
        "Mean",
        "Min",
        "Pack",
        "Pad",
        "Prod",
        "Reshape",
        "Reverse",
        "Softmax",
        "Sort",
        "Squeeze",
        "Sum",
        "SumToLike",
        "Tile",
        "Transpose",
        "Unpack",
    }
)
_MAY_FAIL = frozenset({"FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Pow"})  # of integers
_ANY_SIZE = frozenset({"Shape", "Size", "Rank", "Identity", "StopGradient", "Cast"})


def cannot_fail(node: Node) -> bool:
    """Return whether a node has a result for every value of its operands."""
    name = node.op.name
    if name in _MAY_FAIL and not node.outputs[0].dtype.is_floating:
        return False
    values = (*node.operands, *node.outputs)
    if name in _ANY_SIZE:
        return True
    if getattr(node.op, "elementwise", False):
        return len(node.inputs) == 1 or all(v.shape.is_fully_defined() for v in values)
    return name in _SAFE and all(v.shape.is_fully_defined() for v in values)


def hoist(graph: Graph) -> tuple[Graph, list[str]]:
    """Hoist invariant nodes out of each While, from the innermost loop outwards."""
    if not any(map(has_subgraphs, graph.nodes)):
        return graph, []
    rewriter = PatternRewriter(graph)

    def inner(part: Graph) -> Graph:
        changed, changes = hoist(part)
        rewriter.changes.extend(changes)
        return changed

    for old in graph.nodes:
        node = rewriter.remap(old)
        if has_subgraphs(node):
            node = map_subgraphs(node, inner)
        rewriter.replace(old, _move_out(node, rewriter) if node.op.name == "While" else rewriter.insert(node).outputs)
    return (rewriter.finish(), rewriter.changes) if rewriter.changes else (graph, [])


class _InvariantHoister:
    """Hoists nodes out of one graph of a loop. outer: the value outside of the loop for each invariant value inside."""

    def __init__(self, graph: Graph, outer: dict[Value, Value], rewriter: PatternRewriter, loop: Node) -> None:
        self.graph, self.outer, self.rewriter, self.loop = graph, dict(outer), rewriter, loop
        self.moved: set[Node] = set()

    def move_reads(self) -> None:
        """Emit reads of variables from outside of the loop; no node of it may write variables."""
        for node in self.graph.nodes:
            if node.op.name == "ReadVariable" and all(v in self.outer for v in node.operands):
                self._emit(node)

    def move(self, freely: bool) -> None:
        """Emit hoistable nodes outside of the loop. freely: including nodes that may fail."""
        for node in self.graph.nodes:
            if node.op.name == "Const":
                continue  # costs nothing inside; it is hoisted together with its readers
            if node.effect is not None or not node.outputs:
                continue
            if not freely and (has_subgraphs(node) or not cannot_fail(node)):
                continue
            if all(v in self.outer or v.constant is not None for v in node.operands):
                self._emit(node)

    def _emit(self, node: Node) -> None:
        for value in node.operands:
            if value not in self.outer:
                assert value.node is not None
                self._copy(value.node)
        self._copy(node)
        self.moved.add(node)
        self.rewriter.changes.append(f"  {'hoist':22} {node.at or '':16} {node!r}  out of {self.loop.name}")

    def _copy(self, node: Node) -> None:
        inputs = tuple(map_operands(self.outer.__getitem__, node.inputs))
        copy = self.rewriter.insert(self.rewriter.clone(node, inputs, self.loop.name))
        self.outer.update(zip(node.outputs, copy.outputs))

    def read_inside(self) -> list[Value]:
        """Return the outputs of hoisted nodes that remaining nodes read."""
        hoisted = {v for node in self.moved for v in node.outputs}
        stays = [v for node in self.graph.nodes if node not in self.moved for v in node.operands]
        return [v for v in dict.fromkeys((*stays, *self.graph.outputs)) if v in hoisted]


def _move_out(loop: Node, rewriter: PatternRewriter) -> Sequence[Value]:
    variables, captured = loop_inputs(loop)
    cond, body = loop.attrs["cond"], loop.attrs["body"]
    operands = (*variables, *captured)
    same = [i for i in range(len(operands)) if i >= len(variables) or body.outputs[i] is body.inputs[i]]
    quiet = cond.effect != "write" and body.effect != "write"
    movers = []
    for graph, freely in ((cond, cond.effect != "write"), (body, quiet and first_condition(loop) is True)):
        mover = _InvariantHoister(graph, {graph.inputs[i]: operands[i] for i in same}, rewriter, loop)
        mover.move(freely)
        movers.append(mover)
    if not any(m.moved for m in movers):
        return rewriter.insert(loop).outputs
    graphs, added = _with_inputs(movers)
    inputs = (variables, (*captured, *added))
    fresh = loop.replaced(inputs=inputs, attrs={**loop.attrs, "cond": graphs[0], "body": graphs[1]})
    return rewriter.insert(fresh).outputs


def hoist_reads(graph: Graph) -> Graph:
    """Return the graph with reads of variables before control flow that writes none, instead of inside of it.

    Not among the passes, since files would pass weights to subgraphs.
    """
    if not any(node.effect == "read" and has_subgraphs(node) for node in graph.nodes):
        return graph
    rewriter = PatternRewriter(graph)
    for old in graph.nodes:
        node = rewriter.remap(old)
        if node.effect == "read" and has_subgraphs(node):
            node = _reading_ahead(map_subgraphs(node, hoist_reads), rewriter)
        rewriter.replace(old, rewriter.insert(node).outputs)
    return rewriter.finish()


def _reading_ahead(node: Node, rewriter: PatternRewriter) -> Node:
    """Return control flow with its reads of captured variables emitted before it."""
    *first, captured = node.inputs
    assert isinstance(captured, tuple)
    movers = []
    for graph in node.subgraphs:
        passed = zip(graph.inputs[len(graph.inputs) - len(captured) :], captured)
        movers.append(_InvariantHoister(graph, dict(passed), rewriter, node))
        movers[-1].move_reads()
    graphs, added = _with_inputs(movers)
    replaced = iter(graphs)
    return map_subgraphs(node.replaced(inputs=(*first, (*captured, *added))), lambda graph: next(replaced))


def _with_inputs(movers: Sequence[_InvariantHoister]) -> tuple[list[Graph], list[Value]]:
    """Add an input to the graphs of a node for each hoisted value that they read; return the graphs and the values."""
    hoisted = [(m, v) for m in movers for v in m.read_inside()]
    graphs = []
    for mover in movers:
        names = {v.name for v in mover.graph.values()}
        inputs, mapping = list(mover.graph.inputs), {}
        for owner, value in hoisted:
            name = value.name
            while name in names and not (owner is mover and name == value.name):
                name += "_"
            names.add(name)
            inputs.append(Value(name, value.spec))
            if owner is mover:
                mapping[value] = inputs[-1]
        graphs.append(_without(mover, inputs, mapping))
    return graphs, [owner.outer[value] for owner, value in hoisted]


def _without(mover: _InvariantHoister, inputs: list[Value], mapping: dict[Value, Value]) -> Graph:
    """Return the graph without hoisted nodes, reading inputs instead."""
    rewriter = GraphRewriter(mover.graph)
    rewriter.inputs = inputs
    rewriter.mapping.update(mapping)
    for node in mover.graph.nodes:
        if node not in mover.moved:
            rewriter.copy(node)
    return rewriter.finish()


class LoopCounter(NamedTuple):
    """The loop variable at `place`, which increases by 1 in each iteration while it is below `limit`.

    limit: a number, or a value outside of the loop. exact: whether this is the loop's only condition.
    """

    place: int
    limit: int | Value
    exact: bool


def _conditions(value: Value) -> Iterator[Node]:
    """Yield the nodes that are all true where a value is. `a and b` of Python is an If, false where a is."""
    node = value.node
    if node is None:
        return
    if node.op.name == "LogicalAnd":
        for operand in node.operands:
            yield from _conditions(operand)
    elif node.op.name == "If":
        otherwise = node.attrs["else_branch"].outputs[value.index].constant
        if otherwise is not None and not otherwise.any():
            yield from _conditions(next(node.operands))
    else:
        yield node


def counter_of(loop: Node) -> LoopCounter | None:
    """Return the counter of a While, if it has one of int32."""
    cond, body = loop.attrs["cond"], loop.attrs["body"]
    variables: Any = loop.inputs[0]
    operands = (*variables, *loop.inputs[1])  # type: ignore[misc]
    answer = cond.outputs[0]
    for node in _conditions(answer):
        if node.op.name not in ("Less", "Greater"):
            continue
        counted, limit = tuple(node.operands) if node.op.name == "Less" else tuple(node.operands)[::-1]
        if counted.dtype is not int32 or counted.shape.rank != 0 or counted not in cond.inputs[: len(variables)]:
            continue
        place = cond.inputs.index(counted)
        bound: int | Value | None = None
        if limit.constant is not None:
            bound = int(limit.constant)
        elif limit in cond.inputs and cond.inputs.index(limit) >= len(variables):
            bound = operands[cond.inputs.index(limit)]
        if bound is not None and _goes_up(body, place):
            return LoopCounter(place, bound, answer.node is node)
    return None


def _goes_up(body: Graph, place: int) -> bool:
    node = body.outputs[place].node
    if node is None or node.op.name not in ("Add", "AddV2"):
        return False
    operands = tuple(node.operands)
    others = [v.constant for v in operands if v is not body.inputs[place]]
    return len(others) == 1 and others[0] is not None and others[0].size == 1 and int(others[0].reshape(-1)[0]) == 1


def most_iterations(loop: Node) -> int | None:
    """Return a limit of a While's iterations that follows from constants, None if there is none."""
    counted = _counted(loop)
    return None if counted is None else counted[0]


def exact_iterations(loop: Node) -> int | None:
    """Return the number of a While's iterations if its only condition is a counter between constants."""
    counted = _counted(loop)
    return counted[0] if counted is not None and counted[1] else None


def _counted(loop: Node) -> tuple[int, bool] | None:
    """Return a limit of a While's iterations, and whether it is their number."""
    variables: Any = loop.inputs[0]
    counter = counter_of(loop)
    if counter is None:
        return _counted_down(loop, variables)
    start = variables[counter.place].constant
    limit = counter.limit if isinstance(counter.limit, int) else counter.limit.constant
    return None if start is None or limit is None else (max(0, int(limit) - int(start)), counter.exact)


def _counted_down(loop: Node, variables: tuple[Value, ...]) -> tuple[int, bool] | None:
    """Implement `_counted` for a variable that decreases by 1 while it is above a constant, as in gradients of
    loops."""
    cond, body = loop.attrs["cond"], loop.attrs["body"]
    for node in _conditions(cond.outputs[0]):
        if node.op.name != "Greater":
            continue
        counted, limit = tuple(node.operands)
        if counted.dtype is not int32 or counted.shape.rank != 0 or counted not in cond.inputs[: len(variables)]:
            continue
        place = cond.inputs.index(counted)
        start, step = variables[place].constant, body.outputs[place].node
        if start is None or limit.constant is None or step is None or step.op.name != "Sub":
            continue
        before, one = tuple(step.operands)
        if before is body.inputs[place] and one.constant is not None and one.constant.reshape(-1).tolist() == [1]:
            return max(0, int(start) - int(limit.constant)), cond.outputs[0].node is node
    return None
