"""Ranges of values that integers may leave at their lower end: scores masked before SOFTMAX, padding below maxima.

Lives here: `narrowed`, ranges that replace observed ones. Not here: observing them (calibration.py), graphs.py.

Attention masks add -1e9 or -inf to scores that do not count, or select it in their place. A range with that number
would leave one integer for all other scores. Integers saturate below their range, so a range that reaches `NEGLIGIBLE`
below the scores serves as well. For the same reason padding with -inf needs no range where maxima pass over it: the
least integer is below all elements. A mask that the model computes from its inputs is narrowed back to the operator
that computes it, which remains float; where that is not possible, a value with -inf has no range, and the operators
that read it remain float.
"""

from __future__ import annotations

from collections import defaultdict

from ....graph import Node, Value
from ....graph.ir import flat
from ..rewriter import fused_activation
from .graphs import CalibratedGraph, Range, constant, is_float, operand, producer

NEGLIGIBLE = 12.0  # exp(-12) is a fifth of the step of a probability in int16
EXTREME = -1000.0  # what masks add, at least; position biases are of the size of scores
MOVERS = ("RESHAPE", "TRANSPOSE", "EXPAND_DIMS", "SQUEEZE", "BROADCAST_TO", "TILE", "SLICE", "STRIDED_SLICE")
CHOICES = ("SELECT", "SELECT_V2")
MAXIMA = ("MAX_POOL_2D", "REDUCE_MAX")
COMPUTED = "its result is a mask, whose least numbers no scale holds"

Demands = defaultdict[Value, list[Range]]  # the ranges in which readers need a mask


def narrowed(graph: CalibratedGraph) -> dict[Value, Range]:
    """Return the ranges of values that only SOFTMAX or maxima read, and of masks added to them.

    Also adds to `graph.kept` the nodes that compute masks.
    """
    ranges_by_value = _padded(graph)
    demands: Demands = defaultdict(list)
    for node in graph.operators:
        if node.op.name != "SOFTMAX":
            continue
        beta = float(node.attrs["beta"] or 1.0)
        _scores(graph, operand(node, 0), NEGLIGIBLE / max(beta, 1e-3), demands, ranges_by_value)
    return ranges_by_value | _masks(graph, demands)


def _masks(graph: CalibratedGraph, demands: Demands) -> dict[Value, Range]:
    """Return the ranges of masks all of whose readers demand one, from readers back to what computes them."""
    ranges_by_value: dict[Value, Range] = {}

    def agreed(value: Value) -> Range | None:
        ranges = demands.get(value, [])
        if not ranges or len(ranges) != graph.readers[value]:
            return None
        ranges_by_value[value] = result = min(low for low, _ in ranges), max(high for _, high in ranges)
        return result

    for node in reversed(graph.operators):
        demand = agreed(node.outputs[0]) if node.outputs else None
        if demand is None:
            continue
        if node.op.name in (*MOVERS, *CHOICES):
            places = (1, 2) if node.op.name in CHOICES else (0,)
            for value in (operand(node, place) for place in places):
                if value is not None:
                    demands[value].append(demand)
        else:
            graph.kept[node] = COMPUTED
    for value in {v for node in graph.operators for v in flat(node.inputs) if v in demands and producer(v) is None}:
        agreed(value)
    return ranges_by_value


def _padded(graph: CalibratedGraph) -> dict[Value, Range]:
    """Return the ranges of tensors padded with less than all their elements, such as -inf, that only maxima read."""
    ranges_by_value: dict[Value, Range] = {}
    readers: defaultdict[Value, list[Node]] = defaultdict(list)
    for node in graph.operators:
        for value in node.operands:
            readers[value].append(node)
    for node in graph.operators:
        x, padding = (operand(node, 0), operand(node, 2)) if node.op.name == "PADV2" else (None, None)
        array = constant(padding)
        if x is None or padding is None or not node.outputs or array is None:
            continue
        seen, moved = graph.range_of(x), _below_maxima(graph, node.outputs[0], readers)
        if seen is not None and moved is not None and array.max() < seen[0]:
            ranges_by_value |= dict.fromkeys((padding, *moved), seen)
    return ranges_by_value


def _below_maxima(graph: CalibratedGraph, value: Value, readers: defaultdict[Value, list[Node]]) -> list[Value] | None:
    """Return a value and what is moved out of it up to maxima; None where anything else reads it."""
    moved, stack = [], [value]
    while stack:
        value = stack.pop()
        moved.append(value)
        if len(readers[value]) != graph.readers[value]:  # a result of the graph
            return None
        for node in readers[value]:
            y = node.outputs[0]
            if node.op.name in MAXIMA and y not in graph.masked:
                continue
            if node.op.name not in (*MOVERS, *MAXIMA, "GATHER") or operand(node, 0) is not value:
                return None
            stack.append(y)
    return moved


def _scores(
    graph: CalibratedGraph, value: Value | None, enough: float, demands: Demands, narrow: dict[Value, Range]
) -> Range | None:
    """Return the range of a value's elements that count, and narrow the value if others are masked."""
    moved, last = [], value
    while is_float(last) and graph.readers[last] == 1 and (source := producer(last)) is not None:
        moved.append(last)
        if source.op.name not in MOVERS:
            masked = _masked(graph, source, enough, demands, narrow)
            if masked is None:
                break
            narrow |= dict.fromkeys(moved, (masked[0] - enough, masked[1]))
            return masked
        last = operand(source, 0)
    return None if value is None or constant(value) is not None else graph.range_of(value)


def _masked(
    graph: CalibratedGraph, node: Node, enough: float, demands: Demands, narrow: dict[Value, Range]
) -> Range | None:
    """Return the range of the elements of a node's result that count; None where it masks nothing."""
    chooses = node.op.name in CHOICES
    if not (chooses or node.op.name == "ADD") or fused_activation(node) != "NONE":
        return None
    pair = [operand(node, place) for place in ((1, 2) if chooses else (0, 1))]
    for x, mask in (pair, pair[::-1]):
        array = constant(mask)
        if mask is None or (chooses and (array is None or not array.size)):
            continue
        seen = _scores(graph, x, enough, demands, narrow)
        if seen is None:
            continue
        low, high = seen
        if chooses:
            if array is None or not array.max() < low - enough:
                return None
            demands[mask].append((low - enough, low - enough))
            return seen
        kept = _kept(graph, mask, low - high - enough)
        if kept is not None:
            bound = kept[0] + low - high - enough
            demands[mask].append((bound, kept[1]))
            return low + kept[0], high + kept[1]
    return None


def _kept(graph: CalibratedGraph, mask: Value, bound: float) -> Range | None:
    """Return the range of what a mask adds to scores that count; None for one that masks none."""
    array = constant(mask)
    if array is not None:
        kept = array[array >= bound]
        return (float(kept.min()), float(kept.max())) if 0 < kept.size < array.size else None
    seen = graph.masked.get(mask) or graph.range_of(mask)
    if seen is not None and seen[0] < min(EXTREME, bound):
        return seen[1], seen[1]
    return graph.masked.get(mask)
