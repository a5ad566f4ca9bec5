"""Subgraph matching: occurrences of a template graph in a larger graph.

Lives here: `Template`, `Finder`, `Match`.
Not here: the definition of templates (lite/convert/patterns/), the replacement of matches (passes/rewrite_rules.py).

A template is a graph without effects: its inputs match any value, its constants and attributes match equal ones, or any
if they are captured. Two nodes of the template may match one node of the graph, provided that all conditions on both
hold: a match computes the same function as the template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..core.dtypes import string
from .ir import Graph, Node, Operand, Value, flat, same_attr

COMMUTATIVE = frozenset(
    {
        "Add",
        "Mul",
        "Maximum",
        "Minimum",
        "SquaredDifference",
        "Equal",
        "NotEqual",
        "LogicalAnd",
        "LogicalOr",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
    }
)
"""Operators with two operands that commute."""

AXES_OF_FIRST = frozenset(
    {
        "All",
        "Any",
        "ArgMax",
        "ArgMin",
        "Cumprod",
        "Cumsum",
        "CumulativeLogsumexp",
        "EuclideanNorm",
        "LogSoftmax",
        "Max",
        "Mean",
        "Min",
        "Prod",
        "Reverse",
        "Roll",
        "Softmax",
        "Split",
        "SplitV",
        "Squeeze",
        "Sum",
        "Unpack",
    }
)
"""Operators whose attribute `axis` numbers the dimensions of their first operand: -1 of rank 3 is 2."""

MAX_STEPS = 5_000  # of one search, whose time is exponential in the number of commutative operators


@dataclass(frozen=True, eq=False)
class Template:
    """A graph to match. captured: constants and attributes that match any value, with their capture names.

    constants: by Value; attrs: by node and attribute name. several: capture names that represent a list.
    """

    graph: Graph
    constants: Mapping[Value, str] = field(default_factory=dict)
    attrs: Mapping[tuple[Node, str], str] = field(default_factory=dict)
    several: Set[str] = frozenset()

    @property
    def anchor(self) -> Node:
        """The node of the first result, at which a search begins."""
        node = self.graph.outputs[0].node
        assert node is not None
        return node

    def reached(self) -> set[Node]:
        """Return the nodes reachable from the anchor by operands and readers; a search matches no others."""
        seen, todo = {self.anchor}, [self.anchor]
        readers = readers_of(self.graph)
        while todo:
            node = todo.pop()
            near = [v for v in (*node.operands, *node.outputs) if v.constant is None]
            neighbours = {n for v in near for n in (v.node, *readers.get(v, ())) if n is not None}
            todo += neighbours - seen
            seen |= neighbours
        return seen


class Match(NamedTuple):
    """One occurrence of a template. nodes, values: by the template's; captured: by name."""

    nodes: dict[Node, Node]
    values: dict[Value, Value]
    captured: dict[str, Any]


class Miss(NamedTuple):
    """The reason for a failed match. depth: the number of nodes matched before; node: the node at which it failed."""

    depth: int
    reason: str
    node: Node


class _Declined(Exception):
    """This alternative does not lead to a match."""


def readers_of(graph: Graph) -> dict[Value, list[Node]]:
    """Return the nodes that read each value, in program order."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.operands):
            readers.setdefault(value, []).append(node)
    return readers


class Finder:
    """The search for a template in a graph."""

    def __init__(self, template: Template, graph: Graph) -> None:
        self.template = template
        self.readers = readers_of(graph)
        self.results = set(template.graph.outputs)
        self.inputs = set(template.graph.inputs)
        self.graph_results = set(graph.outputs)
        self.candidates = _candidates(template, graph)
        self.excluded: Set[Node] = frozenset()

    def find(self, node: Node, excluded: Set[Node]) -> Match | Miss:
        """Match the template with its anchor at a node. excluded: nodes that belong to other matches.

        Depth-first search with backtracking: an alternative is a partial match and the pairs that remain to be matched.
        """
        self.excluded = excluded
        pair = (self.template.anchor, node)
        alternatives: list[tuple[Match, list[tuple[Any, Any]]]] = [(Match({}, {}, {}), [pair])]
        best = Miss(-1, "", node)
        for _ in range(MAX_STEPS):
            if not alternatives:
                return best
            match, pairs = alternatives.pop()
            try:
                if pairs:
                    alternatives += reversed(list(self.step(match, pairs)))
                    continue
                more = list(self.onward(match))
                if more:
                    alternatives += reversed(more)
                    continue
                self.check(match)
                return match
            except _Declined as declined:
                if len(match.nodes) > best.depth:
                    best = Miss(len(match.nodes), str(declined), node)
        return Miss(best.depth, f"there are too many alternatives; the nearest: {best.reason}", node)

    def step(self, match: Match, pairs: list[tuple[Any, Any]]) -> Iterator[tuple[Match, list[tuple[Any, Any]]]]:
        """Return the continuations of the last remaining pair."""
        pattern, subject = pairs[-1]
        remaining = pairs[:-1]
        if isinstance(pattern, Node):
            yield from self.nodes(match, remaining, pattern, subject)
            return
        if pattern.constant is not None:  # compared by value at each occurrence
            captured = self.constant(match, pattern, subject)
            yield Match(match.nodes, {**match.values, pattern: subject}, captured), remaining
            return
        before = match.values.get(pattern)
        if before is not None:
            if before is not subject and not _equal_constants(before, subject):
                raise _Declined(f"{subject.name} is not {before.name}, which matches the same input or result")
            yield match, remaining
            return
        if pattern in self.inputs:
            if subject.dtype is not pattern.dtype or not subject.shape.is_subtype_of(pattern.shape):
                raise _Declined(
                    f"{subject.name} is {subject.spec.short()}, the pattern's {pattern.name} {pattern.spec.short()}"
                )
            yield Match(match.nodes, {**match.values, pattern: subject}, match.captured), remaining
        elif subject.node is None or subject.constant is not None:
            what = "a constant" if subject.node is not None else "an input of the graph"
            raise _Declined(f"{subject.name} is {what}, the pattern has {pattern.node.op.name} there")
        elif pattern.index != subject.index:
            raise _Declined(f"{subject.name} is another output of {subject.node.op.name}")
        else:
            yield match, [*remaining, (pattern.node, subject.node)]

    def nodes(
        self, match: Match, remaining: list[Any], pattern: Node, subject: Node
    ) -> Iterator[tuple[Match, list[Any]]]:
        """Return the continuations of two nodes: one for each order of operands."""
        if pattern in match.nodes:
            if match.nodes[pattern] is not subject:
                raise _Declined(f"{subject.name} is not {match.nodes[pattern].name}, which matches the same node")
            yield match, remaining
            return
        if subject.op is not pattern.op:
            raise _Declined(f"{subject.name} is {subject.op.name}, the pattern has {pattern.op.name} there")
        if subject in self.excluded:
            raise _Declined(f"{subject.name} is part of another match")
        captured = match.captured
        for name, value in pattern.attrs.items():
            captured = self.attribute(captured, pattern, subject, name, value)
        extended = Match(
            {**match.nodes, pattern: subject}, {**match.values, **dict(zip(pattern.outputs, subject.outputs))}, captured
        )
        orders = _orders(subject)
        for inputs in [o for o in orders if _may_match(self.candidates, pattern.inputs, o)] or orders[:1]:
            pairs = [p for slots in zip(pattern.inputs, inputs) for p in _operand_pairs(subject, *slots)]
            yield extended, [*remaining, *reversed(pairs)]

    def attribute(
        self, captured: dict[str, Any], pattern: Node, subject: Node, name: str, value: Any
    ) -> dict[str, Any]:
        """Return the captures, with an attribute of the node."""
        actual = subject.attrs[name]
        key = self.template.attrs.get((pattern, name))
        if key is None:
            if not (same_attr(value, actual) or _same_axes(subject, name, value, actual)):
                raise _Declined(f"{subject.name} has {name} {actual!r}, the pattern {value!r}")
            return captured
        if key not in self.template.several and isinstance(actual, tuple):
            if len(actual) != 1:
                raise _Declined(f"{subject.name} has {name} {actual!r}, the pattern one number")
            (actual,) = actual
        return _with_captured(captured, key, actual, subject)

    def constant(self, match: Match, pattern: Value, subject: Value) -> dict[str, Any]:
        """Return the captures, with a constant of the graph."""
        value, actual = pattern.constant, subject.constant
        assert value is not None
        if actual is None:
            raise _Declined(f"{subject.name} is computed, the pattern has a constant there")
        if subject.dtype is not pattern.dtype:
            raise _Declined(f"{subject.name} is {subject.spec.short()}, the pattern has {pattern.spec.short()} there")
        key = self.template.constants.get(pattern)
        if key is None:
            if not same_attr(value, actual) and not (
                value.size == actual.size == 1 and value.item() == actual.item() and actual.ndim <= value.ndim
            ):
                raise _Declined(
                    f"{subject.name} is another constant than the pattern's: {_brief(actual)}, not {_brief(value)}"
                )
            return match.captured
        if key in self.template.several:
            if actual.ndim != 1:
                raise _Declined(f"{subject.name} is {subject.spec.short()}, the pattern has a list there")
            return _with_captured(match.captured, key, tuple(actual.tolist()), subject)
        if actual.size != 1 or actual.ndim > value.ndim:
            raise _Declined(f"{subject.name} is {subject.spec.short()}, the pattern has one number there")
        return _with_captured(match.captured, key, _number(actual), subject)

    def onward(self, match: Match) -> Iterator[tuple[Match, list[tuple[Any, Any]]]]:
        """Return the continuations at a reader of matched nodes, for a result that is not reachable by operands."""
        for pattern in self.template.graph.nodes:
            if pattern in match.nodes or pattern.op.name == "Const":
                continue
            for value in pattern.operands:
                matched = match.values.get(value)
                if matched is not None and value.constant is None:
                    readers = [n for n in self.readers.get(matched, ()) if n.op is pattern.op]
                    if not readers:
                        raise _Declined(f"{matched.name} is not read by a {pattern.op.name}")
                    yield from ((match, [(pattern, node)]) for node in readers)
                    return

    def check(self, match: Match) -> None:
        """Check the conditions on a complete match. Raises _Declined."""
        matched = set(match.nodes.values())
        results = {match.values[v] for v in self.results}
        for node in match.nodes.values():
            for value in node.outputs:
                if value in results:
                    continue
                outside = [n.name for n in self.readers.get(value, ()) if n not in matched]
                if outside or value in self.graph_results:
                    reader = f"read by {outside[0]}" if outside else "a result of the graph"
                    raise _Declined(f"{value.name}, which is inside of the pattern, is also {reader}")
        for pattern in self.template.graph.inputs:
            if match.values[pattern].node in matched:
                raise _Declined(f"{match.values[pattern].name} would be an input of the operator that computes it")


def _orders(node: Node) -> list[tuple[Operand, ...]]:
    """Return the permutations of a node's operands to try. Strings are concatenated by Add, in one order."""
    if node.op.name in COMMUTATIVE and len(node.inputs) == 2 and not any(v.dtype is string for v in node.operands):
        return [node.inputs, node.inputs[::-1]]
    return [node.inputs]


def _candidates(template: Template, graph: Graph) -> dict[Node, Set[Node]]:
    """Return, for each template node, the nodes whose operator and operands' operators match recursively.

    This prunes the orders of commutative operands.
    """
    by_operator: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        by_operator.setdefault(node.op, []).append(node)
    candidates: dict[Node, Set[Node]] = {}
    for pattern in template.graph.nodes:
        candidates[pattern] = {
            n
            for n in by_operator.get(pattern.op, ())
            if any(_may_match(candidates, pattern.inputs, order) for order in _orders(n))
        }
    return candidates


def _may_match(candidates: Mapping[Node, Set[Node]], pattern: Sequence[Operand], actual: Sequence[Operand]) -> bool:
    a, b = flat(pattern), flat(actual)
    return len(a) == len(b) and all(
        y is x if x is None or y is None else x.node is None or x.constant is not None or y.node in candidates[x.node]
        for x, y in zip(a, b)
    )


def _operand_pairs(subject: Node, pattern: Operand, actual: Operand) -> list[tuple[Value, Value]]:
    if pattern is None and actual is None:
        return []
    if isinstance(pattern, tuple) and isinstance(actual, tuple) and len(pattern) == len(actual):
        return list(zip(pattern, actual))
    if isinstance(pattern, Value) and isinstance(actual, Value):
        return [(pattern, actual)]
    raise _Declined(f"{subject.name} has another number of operands")


def _with_captured(captured: dict[str, Any], key: str, value: Any, subject: Any) -> dict[str, Any]:
    if key in captured and not same_attr(captured[key], value):
        raise _Declined(f"{key} is {captured[key]!r} in one place and {value!r} at {subject.name}")
    return {**captured, key: value}


def _same_axes(node: Node, name: str, pattern: Any, actual: Any) -> bool:
    """Return whether two attributes `axis` are equal, counted from the front."""
    if name != "axis" or node.op.name not in AXES_OF_FIRST:
        return False
    rank = next(node.operands).shape.rank
    lists = [v if isinstance(v, tuple) else (v,) for v in (pattern, actual)]
    if not rank or len(lists[0]) != len(lists[1]) or not all(type(i) is int for axes in lists for i in axes):
        return False
    return [i % rank for i in lists[0]] == [i % rank for i in lists[1]]


def _equal_constants(a: Value, b: Value) -> bool:
    return (
        a.constant is not None and b.constant is not None and a.dtype is b.dtype and same_attr(a.constant, b.constant)
    )


def _number(array: np.ndarray) -> int | float | bool | str | bytes:
    """Return the Python number of an array of one element; for a float32, the shortest decimal that denotes it."""
    value = array.reshape(-1)[0]
    return float(str(value)) if isinstance(value, np.floating) else value.item() if hasattr(value, "item") else value


def _brief(array: np.ndarray) -> str:
    return repr(array.item()) if array.size == 1 else f"{array.size} numbers"
