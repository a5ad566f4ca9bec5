"""Fusion of users' patterns in the graphs of a conversion.

Lives here: `fuse_patterns`, and its account: `PatternCount`.
Not here: patterns (pattern.py), matching (graph/matcher.py).

Patterns are tried in the order of the list, forms of one pattern in the order of their addition, positions from the
first node of a graph to the last; a node belongs to the first match. Equal models therefore yield equal files.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ....core import flags
from ....core.errors import InvalidArgumentError
from ....core.introspection import levels_to_user
from ....graph import Graph, Node, Value
from ....graph.builder import GraphTransform, map_subgraphs, refined
from ....graph.ir import output_names
from ....graph.matcher import Finder, Match, Miss, Template
from ....graph.passes import dead_code
from ....graph.passes.rewrite_rules import NodeReplacement, splice
from ...format.flexbuffers import encode_options
from ...ops.module import ExternalOp, external_attrs
from .pattern import STAGES, Pattern, Stage


@dataclass(frozen=True)
class PatternCount:
    """Outcome of one pattern in a conversion. count: the number of fused matches; at: the lines of the model where they
    end; nearest: why the closest candidate was declined, "" if there was none."""

    pattern: str
    count: int
    at: tuple[str, ...]
    nearest: str = ""

    def __str__(self) -> str:
        where = f" ({', '.join(self.at)})" if self.at else ""
        return f"{self.pattern}: {self.count} fused{where}" + (
            f"; the nearest other: {self.nearest}" if self.nearest else ""
        )


class FusionAccount:
    """Matches and near misses of each pattern during a conversion."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        for item in patterns if isinstance(patterns, list | tuple) else [patterns]:
            if not isinstance(item, Pattern):
                raise InvalidArgumentError(
                    what="converter.patterns holds what is not a pattern",
                    found=repr(item),
                    do="a list of functions decorated with @lite.pattern(...)",
                )
        self.patterns = list(dict.fromkeys(patterns))
        self.places: dict[Pattern, list[str]] = {p: [] for p in self.patterns}
        self.misses: dict[Pattern, dict[str, Miss]] = {p: {} for p in self.patterns}  # by node

    @property
    def operators(self) -> frozenset[Any]:
        """Return the definitions whose nodes may be in the file."""
        return frozenset(p.operator for p in self.patterns if p.operator is not None)

    def missed(self, pattern: Pattern, miss: Miss) -> None:
        """Record a near miss, of which the deepest is kept for each node."""
        before = self.misses[pattern].get(miss.node.name)
        if miss.depth > (0 if before is None else before.depth):
            self.misses[pattern][miss.node.name] = miss

    def fused(self, pattern: Pattern, replacement: NodeReplacement) -> None:
        """Record a match, and drop the near misses of other forms within it."""
        self.places[pattern].append(replacement.node.at or replacement.node.name)
        for node in replacement.nodes:
            self.misses[pattern].pop(node.name, None)

    def counts(self) -> list[PatternCount]:
        """Return a count for each pattern. Warns of patterns without a match."""
        account = []
        for p in self.patterns:
            enough = 2 if self.places[p] else 1  # with matches, a near miss must share more than the last operator
            misses = [m for m in self.misses[p].values() if m.depth >= enough]
            miss = max(misses, key=lambda m: m.depth, default=None)
            nearest = "" if miss is None else f"{miss.reason}" + (f" ({miss.node.at})" if miss.node.at else "")
            account.append(PatternCount(p.name, len(self.places[p]), tuple(self.places[p]), nearest))
            if not self.places[p]:
                text = f"pattern {p.name} was not found in the model; the nearest: {nearest or 'nothing like it'}"
                warnings.warn(text, RuntimeWarning, stacklevel=levels_to_user())
        if "passes" in flags.show:
            print(*(f"pattern {line}" for line in account), sep="\n", file=sys.stderr)
        return account


def fuse_patterns(graph: Graph, account: FusionAccount) -> Graph:
    """Run the stages at which patterns are matched (pattern.py, `STAGES`), and fuse the matches, in subgraphs too.

    The last stage is `prepare`.
    """
    for stage in STAGES if account.patterns else STAGES[-1:]:
        graph = stage(graph)
        if account.patterns:
            graph = GraphTransform(lambda held, inside, stage=stage: _fused(held, inside, stage, account))(graph)  # type: ignore[misc]
    return graph


def _fused(graph: Graph, inside: Any, stage: Stage, account: FusionAccount) -> Graph:
    graph = _with_graphs(graph, inside)
    dtypes = {v.dtype for v in (*graph.inputs, *(v for node in graph.nodes for v in node.outputs))}
    for pattern in account.patterns:
        for template, declared in pattern.templates(stage, dtypes):
            graph = _one(graph, pattern, template, account, declared)
    return graph


def _with_graphs(graph: Graph, inside: Any) -> Graph:
    """Fuse matches in subgraphs."""
    changed = {node: map_subgraphs(node, inside) for node in graph.nodes if any(True for _ in node.subgraphs)}
    swaps = [
        NodeReplacement(new, {old}, {v: i for i, v in enumerate(old.outputs)})
        for old, new in changed.items()
        if new is not old
    ]
    return splice(graph, swaps, lambda number, why: None) if swaps else graph


def _one(graph: Graph, pattern: Pattern, template: Template, account: FusionAccount, declared: bool) -> Graph:
    """Fuse the matches of one template. declared: whether nodes of other dtypes than the template's are near misses."""
    finder = Finder(template, graph)
    taken: set[Node] = set()
    replacements: list[NodeReplacement] = []
    for node in graph.nodes:
        if node.op is not template.anchor.op or node in taken:
            continue
        if not declared and node.outputs[0].dtype is not template.anchor.outputs[0].dtype:
            continue
        match = finder.find(node, taken)
        answer = match if isinstance(match, Miss) else _replacement(pattern, template, match, node)
        if isinstance(answer, Miss):
            account.missed(pattern, answer)
            continue
        taken |= answer.nodes
        replacements.append(answer)
    if not replacements:
        return graph
    refused: set[int] = set()

    def refuse(number: int, why: str) -> None:
        refused.add(number)
        account.missed(pattern, Miss(len(template.graph.nodes), why, replacements[number].node))

    graph = splice(graph, replacements, refuse)
    for number, replacement in enumerate(replacements):
        if number not in refused:
            account.fused(pattern, replacement)
    return dead_code(graph)[0]


def _replacement(pattern: Pattern, template: Template, match: Match, anchor: Node) -> NodeReplacement | Miss:
    """Return the fused operator for a match, or the reason why it does not take it."""
    depth = len(template.graph.nodes)
    values = {name: match.values[v] for name, v in zip(pattern.parameters, template.graph.inputs)}
    captured = _as_declared(pattern, match.captured)
    if pattern.where is not None:
        answer = pattern.where(SimpleNamespace(**values, **captured))
        if isinstance(answer, str) or not answer:
            return Miss(depth, str(answer or "") or "the pattern's `where` declined it", anchor)
    attrs = {**pattern.attrs, **captured}
    old = [match.values[v] for v in template.graph.outputs]
    nodes = {n for n in match.nodes.values() if n.op.name != "Const"}
    if pattern.operator is None:
        op: Any = ExternalOp(pattern.name)
        inputs: Sequence[Any] = tuple(values.values())
        specs: list[Any] = [v.spec for v in old]
        attributes: Mapping[str, Any] = external_attrs(encode_options(attrs))
        places = list(range(len(old)))
    else:
        operator = pattern.operator
        try:
            specs_of_operator = pattern.specs_of(attrs, values)
        except InvalidArgumentError as error:
            return Miss(depth, " ".join(error.message.split()), anchor)
        _check_results(pattern, specs_of_operator, old, anchor)
        bound = operator.bind(attrs)
        op, attributes = operator, bound.attrs
        inputs = [values.get(i.name) for i in operator.inputs]
        specs = operator.infer(bound, inputs, anchor.name)
        places = [i for i, o in enumerate(operator.outputs) if not o.intermediate]
        for i, v in zip(places, old):
            specs[i] = refined(v.spec, specs[i])
    names = output_names(anchor.name, len(specs))
    for i, v in zip(places, old):
        names[i] = v.name
    rules = (*anchor.rules, f"{pattern.name}: a pattern of the converter matched")
    node = Node(op, inputs, attributes, specs, anchor.name, anchor.at, names, rules)
    return NodeReplacement(node, nodes, dict(zip(old, places)))


def _as_declared(pattern: Pattern, captured: dict[str, Any]) -> dict[str, Any]:
    """Convert numbers to the types of their attributes: a captured 3.0 to 3. Other values remain unchanged."""
    converted = dict(captured)
    for c in pattern.captures:
        value = converted[c.name]
        if (c.type, type(value)) in ((int, float), (float, int)) and c.type(value) == value:
            converted[c.name] = c.type(value)
    return converted


def _check_results(pattern: Pattern, specs: Sequence[Any], old: Sequence[Value], anchor: Node) -> None:
    for spec, value in zip(specs, old):
        if spec.dtype is not value.dtype or not spec.shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                op=pattern.name,
                node=value.name,
                at=anchor.at,
                what="the fused operator gives something else than what it stands for",
                found=spec.short(),
                wanted=value.spec.short(),
                do="mend the operator's `infer`",
            )
