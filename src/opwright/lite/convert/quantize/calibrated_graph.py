"""A float graph with the ranges of its values.

Lives here: `CalibratedGraph`, queries on operands and nodes; `narrowed`, ranges of scores masked before SOFTMAX.
Not here: measuring ranges (calibration.py), choosing parameters (plan.py).

Attention masks add -1e9 to scores that do not count. A range with that number would leave one integer for all other
scores. Integers saturate below their range, so one that reaches `NEGLIGIBLE` below the scores serves as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeGuard

import numpy as np

from ....core.dtypes import float32
from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ...ops.definition import LiteOperator
from ...ops.module import is_source
from ..rewriter import fused_activation
from .rules import RULES, QuantizationRule

Range = tuple[float, float]


class CalibratedGraph:
    """A graph of the lite dialect with the ranges of its values, and what is asked about it often.

    customs: rules of custom operators, by their names. narrowed: ranges that are used in place of those seen.
    """

    def __init__(
        self,
        graph: Graph,
        ranges: Mapping[Value, Range],
        customs: Mapping[str, QuantizationRule] = MappingProxyType({}),
    ) -> None:
        self.graph, self.ranges, self.customs = graph, dict(ranges), customs
        self.narrowed: dict[Value, Range] = {}
        self.operators = [node for node in graph.nodes if not is_source(node)]
        self.readers = Counter(graph.outputs)
        for node in self.operators:
            self.readers.update(node.operands)

    def rule(self, node: Node) -> QuantizationRule | None:
        """Return what an operator asks of quantised operands; None where it has no integer kernel."""
        return RULES.get(node.op.name) if isinstance(node.op, LiteOperator) else self.customs.get(node.op.name)

    def range_of(self, value: Value) -> Range | None:
        """Return the least and greatest element that was seen, of a constant those it has; None where none was."""
        if value in self.narrowed:
            return self.narrowed[value]
        array = constant(value)
        if array is None:
            return self.ranges.get(value)
        return (float(array.min()), float(array.max())) if array.size and np.isfinite(array).all() else None


def is_float(value: Value | None) -> TypeGuard[Value]:
    """Return whether an operand is present and of float32."""
    return value is not None and value.dtype is float32


def constant(value: Value | None) -> np.ndarray | None:
    """Return the elements of a constant of float32 that is stored densely."""
    return value.constant if is_float(value) and getattr(value.spec, "sparsity", None) is None else None


def producer(value: Value) -> Node | None:
    """Return the operator that writes a value; None for an input, a constant or state."""
    return None if value.node is None or is_source(value.node) else value.node


def operand(node: Node, place: int) -> Value | None:
    """Return one operand, None where it is absent."""
    operands = flat(node.inputs)
    return operands[place] if place < len(operands) else None


NEGLIGIBLE = 12.0  # exp(-12) is a fifth of the step of a probability in int16
MOVERS = ("RESHAPE", "TRANSPOSE", "EXPAND_DIMS", "SQUEEZE")
CHOICES = ("SELECT", "SELECT_V2")


def narrowed(graph: CalibratedGraph) -> dict[Value, Range]:
    """Return the ranges of values that only SOFTMAX reads, and of constants added to them."""
    ranges_by_value: dict[Value, Range] = {}
    added: dict[Value, list[Range]] = {}
    for node in graph.operators:
        if node.op.name != "SOFTMAX":
            continue
        moved, value = [], operand(node, 0)
        while is_float(value) and graph.readers[value] == 1 and (source := producer(value)) is not None:
            moved.append(value)
            if source.op.name not in MOVERS:
                beta = float(node.attrs["beta"] or 1.0)
                kept = _masked(graph, source, NEGLIGIBLE / max(beta, 1e-3), added)
                ranges_by_value |= {} if kept is None else dict.fromkeys(moved, kept)
                break
            value = operand(source, 0)
    for mask, ranges in added.items():
        if graph.readers[mask] == len(ranges):  # without another reader
            ranges_by_value[mask] = min(low for low, _ in ranges), max(high for _, high in ranges)
    return ranges_by_value


def _masked(graph: CalibratedGraph, node: Node, enough: float, added: dict[Value, list[Range]]) -> Range | None:
    """Return the range that the result of a node needs; None where it masks nothing."""
    chooses = node.op.name in CHOICES
    if not (chooses or node.op.name == "ADD") or fused_activation(node) != "NONE":
        return None
    pair = [operand(node, place) for place in ((1, 2) if chooses else (0, 1))]
    for x, mask in (pair, pair[::-1]):
        if x is None or mask is None:
            continue
        array, seen = constant(mask), graph.range_of(x)
        if array is None or seen is None or not array.size or constant(x) is not None:
            continue
        low, high = seen
        if chooses:
            return (low - enough, high) if array.max() < low - enough else None
        kept = array[array >= low - high - enough]
        if not kept.size or kept.size == array.size:
            return None
        bound = float(kept.min()) + low - high - enough
        added.setdefault(mask, []).append((bound, float(kept.max())))
        return low + bound, high + float(kept.max())
    return None
