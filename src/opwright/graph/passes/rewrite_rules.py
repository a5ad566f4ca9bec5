"""Pattern rewriting: rules on single nodes, and the forward walk that applies a table of them; what needs no knowledge
of operators: constant folding, common subexpressions, dead code.

Lives here: `RewriteRule`, `PatternRewriter`, `rewrite`; constant folding (FOLD) and common-subexpression elimination
(COMMON); `dead_code`; `prune`, of unused inputs and outputs of If, Case and While in subgraphs of any depth;
`NodeReplacement` and `splice`, which replace groups of nodes.
Not here: rules that know operators (identities.py, control_flow.py); subgraph matching (../matcher.py); the walks of
the converter, which applies rules of the same form (lite/convert).

A rule sees one node whose operands are already rewritten. It returns the values that replace the node's outputs, or a
replacement node (to which the rules are applied in turn), or None to decline. Rules are tried in the order of the
table; the first match applies. A replacement has the dtype of the original, and a subtype of its shape. Subgraphs are
rewritten by the same table first, and their dead nodes are removed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.specs import TensorSpec
from ..builder import GraphRewriter, constant_node, has_subgraphs, map_subgraphs
from ..ir import Graph, Node, Operand, Value, loop_inputs

Answer = Sequence[Value] | Node | None
Pass = Callable[[Graph], tuple[Graph, list[str]]]


@dataclass(frozen=True)
class RewriteRule:
    """One named rewrite. ops: names of the operators that it matches, separated by spaces; any if empty.

    why: the reason that the rewrite keeps the meaning, or how exact it is.
    """

    name: str
    ops: str
    rewrite: Callable[[Node, Any], Any]
    why: str = "the same operator"

    @functools.cached_property
    def title(self) -> str:
        """Name and reason, as nodes record them that the rule made."""
        return f"{self.name}: {self.why}"


Rules = tuple[RewriteRule, ...]


@functools.lru_cache(maxsize=64)
def _by_operator(rules: Rules) -> tuple[dict[str, Rules], Rules]:
    """Return the rules to try for each operator that a rule names, in order; and the rules for all other operators."""
    names = {rule: rule.ops.split() for rule in rules}
    return (
        {name: tuple(r for r in rules if not r.ops or name in names[r]) for ops in names.values() for name in ops},
        tuple(r for r in rules if not r.ops),
    )


class PatternRewriter(GraphRewriter):
    """A rewriter that applies rules to each node. changes: a line for each rule that matched."""

    def __init__(self, source: Graph, rules: Sequence[RewriteRule] = ()) -> None:
        super().__init__(source)
        self._by_name, self._general = _by_operator(tuple(rules))
        self.memo: dict[Any, Node] = {}  # for rules that look for an earlier node
        self.changes: list[str] = []

    def inline(self, graph: Graph, operands: Sequence[Value], prefix: str) -> list[Value]:
        """Append the nodes of a graph under new names, applying the rules to them; return its outputs."""
        inner = dict(zip(graph.inputs, operands))

        def current(operand: Operand) -> Operand:
            return tuple([inner[v] for v in operand]) if isinstance(operand, tuple) else operand and inner[operand]

        for old in graph.nodes:
            node = self.clone(old, [current(o) for o in old.inputs], prefix)
            inner.update(zip(old.outputs, self.visit(node)))
        return [inner[v] for v in graph.outputs]

    def visit(self, node: Node) -> Sequence[Value]:
        """Apply the rules to a node whose operands are new; append the remaining node and return its outputs."""
        while True:
            start = len(self.nodes)
            for rule in self._by_name.get(node.op.name, self._general):
                answer = rule.rewrite(node, self)
                if answer is not None and (values := self._replacement(node, answer)) is not None:
                    made = self.nodes[start:] if not isinstance(answer, Node) else (answer, *self.nodes[start:])
                    for fresh in made:
                        self.attribute(fresh, (*(fresh.rules or node.rules), rule.title))
                    self.changes.append(change_line(rule.name, node, ", ".join(map(repr, values))))
                    break
            else:
                return self.insert(node).outputs
            if not isinstance(answer, Node):
                return values
            node = answer

    @staticmethod
    def _replacement(node: Node, answer: Sequence[Value] | Node) -> Sequence[Value] | None:
        """Return the values of an answer if their types are subtypes of the types of the node's outputs."""
        values = answer.outputs if isinstance(answer, Node) else answer
        for old, new in zip(node.outputs, values):
            if new.spec is not old.spec and not (new.dtype is old.dtype and new.shape.is_subtype_of(old.shape)):
                return None
        return values


def change_line(rule: str, node: Node, replacement: str) -> str:
    """Return the line that `show=passes` prints of one change."""
    return f"  {rule:22} {node.at or '':16} {node!r}  ->  {replacement}"


def rewrite(graph: Graph, rules: Sequence[RewriteRule]) -> tuple[Graph, list[str]]:
    """Apply rules to every node, first to last; return the new graph and a line for each change."""
    rewriter = PatternRewriter(graph, rules)

    def inner(part: Graph) -> Graph:
        simpler, changes = rewrite(part, rules)
        if not changes:
            return part
        rewriter.changes.extend(changes)
        return dead_code(simpler)[0]

    for old in graph.nodes:
        node = rewriter.remap(old)
        if has_subgraphs(node):
            node = map_subgraphs(node, inner)
        rewriter.replace(old, rewriter.visit(node))
    return (rewriter.finish(), rewriter.changes) if rewriter.changes else (graph, [])


FOLD_LIMIT_BYTES = 1 << 20  # a constant larger than this, and than its operands, would bloat the graph


def fold_constants(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | None:
    """Run a pure node whose operands are all constants."""
    name = node.op.name
    if name == "Const" or not node.outputs:
        return None
    constants = []
    for value in node.operands:
        constants.append(value.constant)
        if constants[-1] is None:
            return None
    if node.op.effect is not None or (not constants and name not in ("Fill", "Range")) or has_subgraphs(node):
        return None
    if any(v.dtype.is_handle for v in node.outputs):
        return None  # a handle has no text
    sizes = [v.spec.shape.num_elements() for v in node.outputs]
    limit = max(FOLD_LIMIT_BYTES, *(c.nbytes for c in constants if c is not None), 0)
    if any(s is None or s * (v.dtype.size or 8) > limit for s, v in zip(sizes, node.outputs)):
        return None
    try:
        arrays = node.op.evaluate(node.inputs, node.attrs)
    except Exception:  # a kernel's ValueError, too
        return None  # reported at run time, with the node's name, unless an earlier node fails
    return [replacement_constant(rewriter, node, v, array) for v, array in zip(node.outputs, arrays)]


def replacement_constant(rewriter: PatternRewriter, node: Node, value: Value, array: Any) -> Value:
    """Append a Const node that replaces one output of a node; return its output."""
    array = np.asarray(array, value.dtype.np)
    spec = TensorSpec(array.shape, value.dtype)
    return rewriter.insert(constant_node(node.op.const_operator(), array, spec, value.name, node.at)).outputs[0]


def _attr_key(value: Any) -> object:
    """Return a key that is equal for equal attributes. Raises TypeError for a graph: graphs are not compared."""
    if type(value) is Graph:
        raise TypeError("graphs are not hashed")
    if isinstance(value, np.ndarray):
        if value.dtype == object or value.nbytes > 256:
            return id(value)
        return (value.dtype, value.shape, value.tobytes())
    if isinstance(value, tuple):
        return tuple(map(_attr_key, value))
    # by repr, because 0.0 equals -0.0 and NaN does not equal itself
    return (type(value), repr(value)) if isinstance(value, (float, complex)) else (type(value), value)


def common_subexpression(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | None:
    """Reuse an earlier node that computes the same."""
    if node.op.effect is not None:
        return None
    try:
        # by the operator itself: two user operators of one name may differ in options
        key = (node.op, node.inputs, tuple([(k, _attr_key(v)) for k, v in node.attrs.items()]))
        earlier = rewriter.memo.setdefault(key, node)
    except TypeError:  # an attribute that cannot be hashed
        return None
    return None if earlier is node else earlier.outputs


FOLD = (RewriteRule("fold_constants", "", fold_constants, "a pure operator of constants has one answer"),)
COMMON = (RewriteRule("common_subexpression", "", common_subexpression, "equal pure calls have equal answers"),)


class NodeReplacement(NamedTuple):
    """A node that replaces several nodes of a graph. It reads values of that graph.

    results: by value of the old graph, the index of the output that replaces it.
    """

    node: Node
    nodes: Set[Node]
    results: Mapping[Value, int]


def splice(graph: Graph, replacements: Sequence[NodeReplacement], refused: Callable[[int, str], None]) -> Graph:
    """Apply replacements to a graph.

    A replacement that would have to run before its operands exist is left out; `refused` receives its index and the
    reason.
    """
    remaining = dict(enumerate(replacements))
    while True:
        try:
            return _Splicer(graph, remaining).run()
        except _CyclicReplacement as error:
            refused(error.index, str(error))
            del remaining[error.index]


class _CyclicReplacement(Exception):
    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


class _Splicer(GraphRewriter):
    """One walk. An item is a node of the source, or the index of a replacement."""

    def __init__(self, graph: Graph, replacements: Mapping[int, NodeReplacement]) -> None:
        super().__init__(graph)
        self.replacements = replacements
        self.index = {node: k for k, r in replacements.items() for node in r.nodes}
        self.done: set[Node | int] = set()

    def run(self) -> Graph:
        last = {self.index[node]: node for node in self.source.nodes if node in self.index}
        for node in self.source.nodes:
            index = self.index.get(node)
            if index is None:
                self.place(node)
            elif last[index] is node:
                self.place(index)
        return self.finish()

    def place(self, item: Node | int) -> None:
        """Append an item after the items that it depends on; a replacement may pull pure nodes forward."""
        stack: list[Node | int] = [item]
        expanded: set[Node | int] = set()
        while stack:
            item = stack[-1]
            if item in self.done:
                stack.pop()
                continue
            node = self.replacements[item].node if isinstance(item, int) else item
            needed = [self.index.get(v.node, v.node) for v in node.operands if v.node is not None]
            missing = [n for n in dict.fromkeys(needed) if n not in self.done]
            if missing and item in expanded:
                self.refuse(stack, "its operands depend on its results")
            if not missing:
                self.add(item, node)
                stack.pop()
                continue
            expanded.add(item)
            for n in missing:
                if isinstance(n, Node) and n.effect is not None:
                    self.refuse(stack, f"its results are read before {n.op.name} {n.name}, on which it depends")
            stack += missing

    @staticmethod
    def refuse(stack: Sequence[Node | int], reason: str) -> None:
        raise _CyclicReplacement(next(item for item in reversed(stack) if isinstance(item, int)), reason)

    def add(self, item: Node | int, node: Node) -> None:
        self.done.add(item)
        if isinstance(item, int):
            fresh = self.insert(self.remap(node))
            self.mapping.update({value: fresh.outputs[k] for value, k in self.replacements[item].results.items()})
        else:
            self.copy(node)


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
    specs = [v.spec for v in outputs]
    return Node(node.op, inputs, {**node.attrs, **attrs}, specs, node.name, node.at, names, node.rules)  # type: ignore[arg-type]


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
    variables, captured = loop_inputs(node)
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
