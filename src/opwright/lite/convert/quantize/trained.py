"""Training for quantisation: ranges that were learned stand in FAKE_QUANT operators, and need no data.

Lives here: `trained`, which takes these operators out and keeps their ranges; `carried`, ranges of what only moves.
Not here: ranges seen in data (calibrate.py), what ranges are for (plan.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ....graph import Graph, GraphRewriter, Node, Value
from ....graph.builder import map_subgraphs
from ....scalar.quantization import nudged
from ...ops.definition import LiteOperator
from .calibrated_graph import CalibratedGraph, Range, is_float, producer
from .plan import activations
from .rules import RULES, SAME

BITS = 8
STEPS = 2**BITS - 1


def trained(graph: Graph, inside: Callable[[Graph], Graph], ranges: dict[Value, Range]) -> Graph:
    """Return a graph without its FAKE_QUANTs of 8 bits; add the ranges of the values that they read.

    One between an input and an output of the graph stays. inside: of graphs that nodes hold.
    """
    found: dict[Value, Range] = {}
    outer = set(graph.outputs)
    instead: dict[Value, Value] = {}  # removed values and their replacements
    gone = set()
    for node in graph.nodes:
        if node.op.name != "FAKE_QUANT" or node.attrs["num_bits"] != BITS:
            continue
        (x,), (y,) = node.operands, node.outputs
        x = instead.get(x, x)
        if y in outer:
            if x in outer or producer(x) is None or x in found:
                continue
            instead = {v: y if by is x else by for v, by in instead.items()} | {x: y}
        else:
            instead[y] = x
        gone.add(node)
        found[y if y in outer else x] = _with_zero(float(node.attrs["min"]), float(node.attrs["max"]))
    removed: dict[Value, list[Value]] = {}
    for value, replacement in instead.items():
        removed.setdefault(replacement, []).append(value)
    rewriter = GraphRewriter(graph)
    rewriter.mapping.update({v: value for value in graph.inputs for v in removed.get(value, ())})
    for old in graph.nodes:
        if old in gone:
            continue
        kept = [instead.get(v, v) for v in old.outputs]
        node = map_subgraphs(rewriter.remap(old), inside)
        if kept != list(old.outputs):
            names = [v.name for v in kept]
            node = Node(old.op, node.inputs, node.attrs, [v.spec for v in kept], names[0], old.at, names)
        for value, new in zip(kept, rewriter.insert(node).outputs):
            rewriter.mapping.update(dict.fromkeys((value, *removed.get(value, ())), new))
    ranges |= {rewriter.mapping.get(v, v): r for v, r in found.items()}
    return rewriter.finish()


def _with_zero(low: float, high: float) -> Range:
    """Return the range moved so that 0 is one of its numbers; in float64, as the official converter does."""
    if not (high - low) / STEPS > 0:
        return low, high
    _, least, most = nudged(low, high, 0.0, float(STEPS))
    return float(least), float(most)


def carried(graph: CalibratedGraph) -> None:
    """Add the ranges of values that hold what others hold, forwards and backwards, and those of fixed outputs."""
    for node in (*graph.operators, *reversed(graph.operators)):
        rule = RULES.get(node.op.name) if isinstance(node.op, LiteOperator) else None
        if rule is None:
            continue
        if rule.results is SAME:
            same = [*activations(node, rule)[:1], *filter(is_float, node.outputs)]
            ranges = [graph.range_of(v) for v in same]
            known = next((r for r in ranges if r is not None), None)
            if known is not None:
                graph.ranges |= {v: known for v, r in zip(same, ranges) if r is None}
        elif not isinstance(rule.results, str) and "int8" in rule.results:
            scale, zero = rule.results["int8"]
            graph.ranges.setdefault(node.outputs[0], (scale * (-128 - zero), scale * (127 - zero)))
