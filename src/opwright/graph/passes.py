"""Passes that keep a graph's meaning: rule tables and the short drivers that apply them.

Lives here: dead code, constant folding, common sub-expressions, and `run_passes`.
Not here: choosing kernels or layouts (compiler/), changes of dialect (lite/).

A rewrite rule looks at one node whose operands are already rewritten and gives the values that stand for its
outputs, or None to decline. Rules are tried in the table's order; the first that answers wins.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import flags
from ..core.errors import OpError
from ..core.specs import TensorSpec
from .ir import Graph, Node, Operand, Value
from .verify import verify

FOLD_LIMIT_BYTES = 1 << 20  # a constant larger than this, and than its operands, would bloat the graph


class Rewrite:
    """A forward walk in progress: the nodes emitted so far and what each old value became."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.became: dict[Value, Value] = {v: v for v in graph.inputs}
        self.memo: dict[Any, Node] = {}  # for rules that look for an earlier node
        self.changes: list[str] = []
        self.names = {v.name for v in graph.values()}

    def operand(self, operand: Operand) -> Operand:
        """An operand of the old graph in the new one."""
        if operand is None:
            return None
        if isinstance(operand, tuple):
            return tuple(self.became[v] for v in operand)
        return self.became[operand]

    def emit(self, node: Node) -> Node:
        """Append a node to the new graph."""
        self.nodes.append(node)
        return node


@dataclass(frozen=True)
class Rule:
    """One named rewrite. why: the reason that it keeps the meaning."""

    name: str
    rewrite: Callable[[Node, Rewrite], Sequence[Value] | None]
    why: str


def fold_constants(node: Node, state: Rewrite) -> Sequence[Value] | None:
    """Run a pure node whose operands are all constants."""
    if node.op.name == "Const" or not node.outputs or any(node.subgraphs) or node.op.effect is not None:
        return None
    if any(v.dtype.is_handle for v in node.outputs):
        return None  # a handle has no text
    operands = list(node.operands)
    constants = [v.constant for v in operands]
    if any(c is None for c in constants) or (not operands and node.op.name not in ("Fill", "Range")):
        return None
    sizes = [v.spec.shape.num_elements() for v in node.outputs]
    limit = max(FOLD_LIMIT_BYTES, *(c.nbytes for c in constants if c is not None), 0)
    if any(s is None or s * (v.dtype.size or 8) > limit for s, v in zip(sizes, node.outputs)):
        return None
    try:
        arrays = node.op.evaluate(node.inputs, node.attrs)
    except OpError:
        return None  # the error belongs to the run, where it names the node
    const = node.op.const_operator()
    values = []
    for value, array in zip(node.outputs, arrays):
        array = np.asarray(array, value.dtype.np)
        array.setflags(write=False)
        spec = TensorSpec(array.shape, value.dtype)
        values.append(state.emit(Node(const, (), {"value": array}, [spec], value.name, node.at)).outputs[0])
    return values


def _attr_key(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype == object or value.nbytes > 256:
            return id(value)
        return (value.dtype, value.shape, value.tobytes())
    if isinstance(value, tuple):
        return tuple(map(_attr_key, value))
    # by repr, because 0.0 equals -0.0 and NaN does not equal itself
    return (type(value), repr(value)) if isinstance(value, (float, complex)) else (type(value), value)


def common_subexpression(node: Node, state: Rewrite) -> Sequence[Value] | None:
    """Use the earlier node that computes the same."""
    if node.op.effect is not None or any(node.subgraphs):
        return None
    try:
        key = (node.op.name, node.inputs, tuple((k, _attr_key(v)) for k, v in node.attrs.items()))
        earlier = state.memo.setdefault(key, node)
    except TypeError:  # an attribute that cannot be hashed
        return None
    return None if earlier is node else earlier.outputs


FOLD = (Rule("fold_constants", fold_constants, "a pure operator of constants has one answer"),)
COMMON = (Rule("common_subexpression", common_subexpression, "equal pure calls have equal answers"),)


def rewrite(graph: Graph, rules: Sequence[Rule]) -> tuple[Graph, list[str]]:
    """Apply rules to every node, first to last; gives the new graph and a line for each change."""
    state = Rewrite(graph)
    for old in graph.nodes:
        inputs = tuple(map(state.operand, old.inputs))
        node = old
        if inputs != old.inputs:
            node = Node(old.op, inputs, old.attrs, [v.spec for v in old.outputs], old.name, old.at)
            for fresh, previous in zip(node.outputs, old.outputs):
                fresh.name = previous.name
        for rule in rules:
            values = rule.rewrite(node, state)
            if values is not None:
                state.changes.append(f"  {rule.name:22} {old.at or '':16} {old!r}  ->  {', '.join(map(repr, values))}")
                break
        else:
            values = state.emit(node).outputs
        state.became.update(zip(old.outputs, values))
    outputs = [state.became[v] for v in graph.outputs]
    return Graph(graph.name, graph.inputs, state.nodes, outputs), state.changes


def dead_code(graph: Graph) -> tuple[Graph, list[str]]:
    """Drop nodes that nobody reads and that change nothing; a read of state that nobody uses may go as well."""
    live = set(graph.outputs)
    kept: list[Node] = []
    dropped: list[str] = []
    for node in reversed(graph.nodes):
        if any(v in live for v in node.outputs) or node.effect == "write":
            kept.append(node)
            live.update(node.operands)
        else:
            dropped.append(f"  {'dead_code':22} {node.at or '':16} {node!r}")
    return Graph(graph.name, graph.inputs, kept[::-1], graph.outputs), dropped[::-1]


Pass = Callable[[Graph], tuple[Graph, list[str]]]
SIMPLIFY: tuple[tuple[str, Pass], ...] = (
    # in this order: folding makes equal constants, merging makes nodes dead
    ("fold_constants", lambda g: rewrite(g, FOLD)),
    ("common_subexpressions", lambda g: rewrite(g, COMMON)),
    ("dead_code", dead_code),
)

UNUSED: tuple[tuple[str, Pass], ...] = (("dead_code", dead_code),)


def run_passes(graph: Graph, passes: Sequence[tuple[str, Pass]] = SIMPLIFY) -> Graph:
    """Run passes in order. With the flag `verify` each result is checked; with `show=passes` each change is printed."""
    for name, apply in passes:
        start = time.perf_counter()
        before = len(graph.nodes)
        graph, changes = apply(graph)
        if "passes" in flags.show:
            elapsed = (time.perf_counter() - start) * 1e3
            print(f"pass {name}  {before} -> {len(graph.nodes)} nodes  {elapsed:.1f} ms", *changes, sep="\n",
                  file=sys.stderr)  # fmt: skip
        if flags.verify:
            verify(graph, after=name)
    return graph
