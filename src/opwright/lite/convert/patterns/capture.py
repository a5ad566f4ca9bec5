"""Captures: the constants and attributes of a pattern's trace that are attributes of the fused operator.

Lives here: `template_of`; `check_template`, which rejects patterns that could never match or never be right.
Not here: declarations of patterns (pattern.py), matching (graph/matcher.py).

The function is traced several times, with different values of its keyword-only parameters. Where the graphs differ,
one of these values must occur unchanged: that position is captured. No value is special.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.errors import InvalidArgumentError, OpError
from ....graph import Graph, Node
from ....graph.builder import has_subgraphs
from ....graph.ir import same_attr
from ....graph.matcher import Template
from ...format.flexbuffers import encode_options

if TYPE_CHECKING:
    from .pattern import Pattern

# Numbers that float32 represents exactly and no rule simplifies; first the negative axes that every rank has.
STAND_INS: dict[Any, tuple[Any, ...]] = {
    float: (0.34375, 0.71875, 0.15625, 0.90625, 1.40625, 2.59375, 5.65625, 11.28125, -0.34375, -1.40625),
    int: (-1, -2, 1, 2, 3, 0, 4, 5, 6, 7, 8),
    bool: (False, True),
}


class Capture(NamedTuple):
    """A keyword-only parameter. type: the attribute's type. values: its values while the pattern is traced."""

    name: str
    type: Any
    values: Sequence[Any]

    @property
    def several(self) -> bool:
        """Return whether the attribute is a list."""
        return isinstance(self.type, list) or isinstance(self.values[0], tuple)


def stand_ins(type_: Any, allowed: Callable[[Any], bool], choices: Sequence[Any] = ()) -> list[Any]:
    """Return values of an attribute's type that its check allows, to trace with. choices: of a check `one_of`."""
    if choices:
        return [c for c in choices if allowed(c)]
    if isinstance(type_, list):
        items = STAND_INS.get(type_[0], ())
        return [v for v in (*zip(items), *itertools.pairwise(items)) if allowed(v)]
    return [v for v in STAND_INS.get(type_, ()) if allowed(v)]


def template_of(name: str, trace: Callable[[Mapping[str, Any]], Graph], captures: Sequence[Capture]) -> Template:
    """Return the template of a pattern. trace: traces the function with values of the captures.

    raises InvalidArgumentError for a capture that does not occur in the graph unchanged; errors of tracing
    """
    if not captures:
        return Template(trace({}))
    forms: list[list[PatternTrace]] = []  # a value that a rule simplifies, such as the factor 1, yields another form
    failed: Exception | None = None
    unlike: str | None = None
    for values in _choices(captures):
        try:
            graph = trace(values)
        except (OpError, ValueError, TypeError) as error:  # these values are not for this function
            failed = failed or error
            continue
        for traces in forms:
            apart = _unlike(traces[0].graph, graph)
            if apart is None:
                traces.append(PatternTrace(values, graph))
                break
            unlike = unlike or apart
        else:
            forms.append(traces := [PatternTrace(values, graph)])
        if _are_distinct(captures, traces):
            return _Comparison(name, captures, traces).template()
    if not forms and failed is not None:
        raise failed
    names = ", ".join(c.name for c in captures)
    raise InvalidArgumentError(
        op=name,
        what=f"no two values of {names} give the pattern one form: {unlike or failed or 'too few were tried'}",
        found={c.name: ", ".join(map(repr, c.values)) for c in captures},
        do="pattern(..., samples={NAME: (one value, another)}), or a pattern for each form",
    ) from failed


class PatternTrace(NamedTuple):
    """A graph, with the values that it was traced with."""

    values: dict[str, Any]
    graph: Graph


TRIES = 48


def _choices(captures: Sequence[Capture]) -> Iterator[dict[str, Any]]:
    """Yield values of all captures: the first ones, then others, in growing number; the same in every process."""
    draw = random.Random(0)
    for turn in range(TRIES):
        yield {c.name: c.values[draw.randrange(min(2 + turn // 6, len(c.values)))] for c in captures}


def _are_distinct(captures: Sequence[Capture], traces: Sequence[PatternTrace]) -> bool:
    """Return whether each capture had different values, and no two captures always the same."""
    columns = [[repr(t.values[c.name]) for t in traces] for c in captures]
    return all(len(set(column)) > 1 for column in columns) and len(set(map(tuple, columns))) == len(columns)


def _unlike(a: Graph, b: Graph) -> str | None:
    """Return how two graphs differ in more than constants and attributes, if they do."""
    if len(a.nodes) != len(b.nodes):
        return f"{len(a.nodes)} operators with one, {len(b.nodes)} with another"
    pair = dict(zip(a.inputs, b.inputs))
    for m, n in zip(a.nodes, b.nodes):
        if m.op is not n.op or [pair.get(v) for v in m.operands] != list(n.operands):
            return f"{m.op.name} {m.name} with one, {n.op.name} {n.name} with another"
        pair.update(zip(m.outputs, n.outputs))
    return None if [pair.get(v) for v in a.outputs] == list(b.outputs) else "other results"


class _Comparison:
    """Traces of one form, with different values."""

    def __init__(self, name: str, captures: Sequence[Capture], traces: Sequence[PatternTrace]) -> None:
        self.name, self.captures, self.traces = name, captures, traces

    def template(self) -> Template:
        constants, attrs = {}, {}
        for nodes in zip(*(t.graph.nodes for t in self.traces)):
            for key in nodes[0].attrs:
                places = [node.attrs[key] for node in nodes]
                if all(same_attr(places[0], p) for p in places):
                    continue
                captured = self.captured(places)
                if captured is None:
                    raise self.computed(nodes[0], key, places)
                if nodes[0].op.name == "Const":
                    constants[nodes[0].outputs[0]] = captured
                else:
                    attrs[nodes[0], key] = captured
        missing = [c.name for c in self.captures if c.name not in {*constants.values(), *attrs.values()}]
        if missing:
            raise InvalidArgumentError(
                op=self.name,
                what=f"{missing[0]} has no place in the pattern, so that nothing can tell its value",
                do=f"leave it out, or use it: (x, ..., *, {missing[0]})",
            )
        return Template(self.traces[0].graph, constants, attrs, frozenset(c.name for c in self.captures if c.several))

    def captured(self, places: Sequence[Any]) -> str | None:
        """Return the capture whose values occur at these positions, one for each trace."""
        for c in self.captures:
            if all(_contains(t.values[c.name], place) for t, place in zip(self.traces, places)):
                return c.name
        return None

    def computed(self, node: Node, key: str, places: Sequence[Any]) -> InvalidArgumentError:
        """Return the error for a number that is computed from a capture."""
        what = "its value" if node.op.name == "Const" else key
        other = next(i for i, place in enumerate(places) if not same_attr(places[0], place))
        samples = [", ".join(f"{k}={v!r}" for k, v in self.traces[i].values.items()) for i in (0, other)]
        return InvalidArgumentError(
            op=self.name,
            at=node.at,
            what=f"{node.op.name} {node.name!r} depends on a value without having it as it is",
            found=f"{what} {_brief(places[0])} for {samples[0]}; {_brief(places[other])} for {samples[1]}",
            wanted="attributes of the fused operator that stand in the pattern as they are given",
            do="compute with it inside of the fused operator and capture what the pattern holds; or trace with values "
            "in the form that the operators have: pattern(..., samples={NAME: (one value, another)})",
        )


def _contains(value: Any, place: Any) -> bool:
    """Return whether a position contains the value, as such, as a list of one element, or as a constant."""
    if isinstance(place, np.ndarray):
        if isinstance(value, tuple):
            return place.ndim == 1 and place.tolist() == list(value)
        return place.size == 1 and bool(place.reshape(-1)[0] == value)
    return same_attr(place, value) or same_attr(place, (value,))


def _brief(value: Any) -> str:
    return f"{value.size} numbers" if isinstance(value, np.ndarray) and value.size > 1 else str(value)


class InferFailed(InvalidArgumentError):
    """An error for an `infer` that raised an unexpected exception, possibly because a pattern's shapes are unknown."""


def check_template(pattern: Pattern, template: Template) -> None:
    """Raise InvalidArgumentError for a template that no model can contain, or that the operator does not implement."""
    graph = template.graph
    _check_nodes(pattern, graph)
    read = {v for node in graph.nodes for v in node.operands}
    for v in graph.inputs:
        if v not in read:
            raise pattern.wrong(
                f"nothing reads {v.name}, so that no model tells which tensor it is", do="leave the parameter out"
            )
    for v in graph.outputs:
        if v.node is None or v.constant is not None:
            raise pattern.wrong(
                f"the result {v.name} is {'a parameter' if v.node is None else 'a constant'}",
                wanted="results of operators",
            )
    if len(set(graph.outputs)) < len(graph.outputs):
        raise pattern.wrong("two results are the same tensor", wanted="different ones")
    apart = [n for n in graph.nodes if n.op.name != "Const" and n not in template.reached()]
    if apart:
        raise pattern.wrong(
            f"{apart[0].op.name} ({apart[0].at}) has no tensor in common with the first result: "
            "nothing tells where it is",
            do="a pattern for each part",
        )
    attrs = {**pattern.attrs, **{c.name: c.values[0] for c in pattern.captures}}
    if pattern.operator is None:
        encode_options(attrs)
    else:
        _check_results(pattern, graph, attrs)


def _check_nodes(pattern: Pattern, graph: Graph) -> None:
    nodes = [n for n in graph.nodes if n.op.name != "Const"]
    if not nodes:
        raise pattern.wrong("there is no operator in it, once constants are computed", wanted="operators to look for")
    for n in nodes:
        if has_subgraphs(n) or n.effect is not None:
            what = "is control flow" if has_subgraphs(n) else "has an effect or draws numbers"
            raise pattern.wrong(
                f"{n.op.name} ({n.at}) {what}",
                wanted="operators whose results depend on operands alone",
                do="ow.function(experimental_implements=...), for what is called as a function",
            )


def _check_results(pattern: Pattern, graph: Graph, attrs: dict[str, Any]) -> None:
    expected = [v.spec for v in graph.outputs]
    try:
        specs = pattern.specs_of(attrs, dict(zip(pattern.parameters, graph.inputs)))
    except InferFailed:
        if all(v.shape.is_fully_defined() for v in graph.inputs):
            raise
        return  # `infer` needs shapes that only a model has; it runs again for each match
    if len(specs) != len(expected) or not all(
        f.dtype is w.dtype and f.shape.is_compatible_with(w.shape) for f, w in zip(specs, expected)
    ):
        raise pattern.wrong(
            "the operator does not give what the function gives",
            found=", ".join(s.short() for s in specs),
            wanted=", ".join(s.short() for s in expected),
        )
