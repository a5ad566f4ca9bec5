"""Training for quantisation: ranges that were learned stand in FAKE_QUANT operators, and need no data.

Lives here: `trained`, which takes these operators out and keeps their ranges; `carried`, ranges of what only moves.
Not here: ranges seen in data (calibrate.py), what ranges are for (plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....scalar.quantization import nudged
from ...format import Model
from .plan import Graph, Range, activations
from .rules import RULES, SAME

BITS = 8
STEPS = 2**BITS - 1


class Learned(NamedTuple):
    """Ranges by tensor, and the numbers that the operators of a subgraph had before the FAKE_QUANTs were taken out."""

    ranges: dict[int, Range]
    numbers: list[int]


def trained(model: Model) -> list[Learned]:
    """Take the FAKE_QUANTs of 8 bits out of a model, and give the ranges of what they read, for each subgraph.

    One between an input and an output of a subgraph stays.
    """
    return [_subgraph(Graph(model, subgraph, {})) for subgraph in model.subgraphs]


def _subgraph(graph: Graph) -> Learned:
    found: dict[int, Range] = {}
    outer = np.asarray(graph.subgraph.outputs).tolist()
    instead: dict[int, int] = {}  # tensors that go, and those that are read or written in their place
    gone = set()
    for i, name in enumerate(graph.names):
        options = graph.operators[i].builtin_options
        if name != "FAKE_QUANT" or options is None or options.num_bits != BITS:
            continue
        (x,), (y,) = graph.inputs[i], graph.outputs[i]
        x = instead.get(x, x)
        if y in outer:
            if x in outer or x not in graph.producer or x in found:
                continue
            instead = {t: y if by == x else by for t, by in instead.items()} | {x: y}
        else:
            instead[y] = x
        gone.add(i)
        found[y if y in outer else x] = _with_zero(float(options.min), float(options.max))
    for i, operator in enumerate(graph.operators):
        operator.inputs = np.array([instead.get(t, t) for t in graph.inputs[i]], np.int32)
        operator.outputs = np.array([instead.get(t, t) for t in graph.outputs[i]], np.int32)
    numbers = [i for i in range(len(graph.operators)) if i not in gone]
    graph.subgraph.operators = [graph.operators[i] for i in numbers]
    return Learned(found, numbers)


def _with_zero(low: float, high: float) -> Range:
    """The range moved so that 0 is one of its numbers; in float64, as the official converter does."""
    if not (high - low) / STEPS > 0:
        return low, high
    _, least, most = nudged(low, high, 0.0, float(STEPS))
    return float(least), float(most)


def carried(graph: Graph) -> None:
    """Add the ranges of tensors that hold what others hold, forwards and backwards, and those of fixed outputs."""
    forwards = list(enumerate(graph.names))
    for i, name in (*forwards, *reversed(forwards)):
        rule = RULES.get(name)
        if rule is None:
            continue
        outs: Sequence[int] = graph.outputs[i]
        if rule.results is SAME:
            same = [*activations(graph, i, rule)[:1], *(t for t in outs if graph.is_float(t))]
            ranges: list[Any] = [graph.range_of(t) for t in same]
            known = next((r for r in ranges if r is not None), None)
            if known is not None:
                graph.ranges |= {t: known for t, r in zip(same, ranges) if r is None}
        elif not isinstance(rule.results, str) and "int8" in rule.results:
            scale, zero = rule.results["int8"]
            graph.ranges.setdefault(outs[0], (scale * (-128 - zero), scale * (127 - zero)))
