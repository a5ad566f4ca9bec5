"""Captures: which constants and attributes of a pattern are attributes of the fused operator.

Lives here: `template_of`, and the numbers that stand for an attribute while a pattern is traced.
Not here: what a pattern declares (pattern.py), looking for it (graph/matching.py).

The function is traced several times, with different values for its keyword-only parameters. Where the graphs differ
there must be one of these values as it was given: that place is captured. No value is special, and none is treated
otherwise than a person's own would be.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import InvalidArgumentError, OpError
from ....graph import Graph, Node
from ....graph.ir import same_attr
from ....graph.matching import Template

# Numbers that float32 holds as they are and that no rule simplifies, negative axes that every rank has first.
STAND_INS: dict[Any, tuple[Any, ...]] = {
    float: (0.34375, 0.71875, 0.15625, 0.90625, 1.40625, 2.59375, 5.65625, 11.28125, -0.34375, -1.40625),
    int: (-1, -2, 1, 2, 3, 0, 4, 5, 6, 7, 8),
    bool: (False, True),
}


class Capture(NamedTuple):
    """A keyword-only parameter. type: of the attribute; values: that stand for it while the pattern is traced."""

    name: str
    type: Any
    values: Sequence[Any]

    @property
    def several(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.type, list) or isinstance(self.values[0], tuple)


def stand_ins(type_: Any, allowed: Callable[[Any], bool], choices: Sequence[Any] = ()) -> list[Any]:
    """Values of an attribute's type that its check allows, to trace with. choices: of a check `one_of`."""
    if choices:
        return [c for c in choices if allowed(c)]
    if isinstance(type_, list):
        items = STAND_INS.get(type_[0], ())
        return [v for v in (*zip(items), *itertools.pairwise(items)) if allowed(v)]
    return [v for v in STAND_INS.get(type_, ()) if allowed(v)]


def template_of(name: str, trace: Callable[[Mapping[str, Any]], Graph], captures: Sequence[Capture]) -> Template:
    """The template, of a function that traces with values of the captures.

    raises InvalidArgumentError where a capture has no place in the pattern, or is computed with; what tracing raises
    """
    if not captures:
        return Template(trace({}))
    forms: list[list[Trace]] = []  # a value that a rule simplifies, 1 as a factor, gives another form
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
                traces.append(Trace(values, graph))
                break
            unlike = unlike or apart
        else:
            forms.append(traces := [Trace(values, graph)])
        if _told_apart(captures, traces):
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


class Trace(NamedTuple):
    """A graph, with the values that it was traced with."""

    values: dict[str, Any]
    graph: Graph


TRIES = 48


def _choices(captures: Sequence[Capture]) -> Iterator[dict[str, Any]]:
    """Values of all captures: the first ones, then any, of more and more; the same in every run."""
    draw = random.Random(0)
    for turn in range(TRIES):
        yield {c.name: c.values[draw.randrange(min(2 + turn // 6, len(c.values)))] for c in captures}


def _told_apart(captures: Sequence[Capture], traces: Sequence[Trace]) -> bool:
    """Whether each capture had different values, and no two always the same."""
    columns = [[repr(t.values[c.name]) for t in traces] for c in captures]
    return all(len(set(column)) > 1 for column in columns) and len(set(map(tuple, columns))) == len(columns)


def _unlike(a: Graph, b: Graph) -> str | None:
    """How two graphs differ in more than constants and attributes, if they do."""
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

    def __init__(self, name: str, captures: Sequence[Capture], traces: Sequence[Trace]) -> None:
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
        """The capture whose values stand in these places, one for each trace."""
        for c in self.captures:
            if all(_stands(t.values[c.name], place) for t, place in zip(self.traces, places)):
                return c.name
        return None

    def computed(self, node: Node, key: str, places: Sequence[Any]) -> InvalidArgumentError:
        """The error for what follows from a capture and is not it."""
        what = "its value" if node.op.name == "Const" else key
        other = next(i for i, place in enumerate(places) if not same_attr(places[0], place))
        given = [", ".join(f"{k}={v!r}" for k, v in self.traces[i].values.items()) for i in (0, other)]
        return InvalidArgumentError(
            op=self.name,
            at=node.at,
            what=f"{node.op.name} {node.name!r} depends on a value without having it as it is",
            found=f"{what} {_brief(places[0])} for {given[0]}; {_brief(places[other])} for {given[1]}",
            wanted="attributes of the fused operator that stand in the pattern as they are given",
            do="compute with it inside of the fused operator and capture what the pattern holds; or trace with values "
            "in the form that the operators have: pattern(..., samples={NAME: (one value, another)})",
        )


def _stands(value: Any, place: Any) -> bool:
    """Whether a place holds the value: itself, a list of it alone, a constant of it."""
    if isinstance(place, np.ndarray):
        if isinstance(value, tuple):
            return place.ndim == 1 and place.tolist() == list(value)
        return place.size == 1 and bool(place.reshape(-1)[0] == value)
    return same_attr(place, value) or same_attr(place, (value,))


def _brief(value: Any) -> str:
    return f"{value.size} numbers" if isinstance(value, np.ndarray) and value.size > 1 else str(value)
