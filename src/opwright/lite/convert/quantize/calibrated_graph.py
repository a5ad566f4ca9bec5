"""A float graph with the ranges of its values, as the stages of quantisation see it.

Lives here: `CalibratedGraph`, and what is asked of operands and nodes.
Not here: where ranges come from (calibrate.py, trained.py), what follows from them (plan.py).
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
from ...ops.external import is_source
from .rules import RULES, Rule

Range = tuple[float, float]


class CalibratedGraph:
    """A graph of the lite dialect with the ranges of its values, and what is asked about it often.

    customs: rules of custom operators, by their names. narrowed: ranges that are used in place of those seen.
    """

    def __init__(
        self, graph: Graph, ranges: Mapping[Value, Range], customs: Mapping[str, Rule] = MappingProxyType({})
    ) -> None:
        self.graph, self.ranges, self.customs = graph, dict(ranges), customs
        self.narrowed: dict[Value, Range] = {}
        self.operators = [node for node in graph.nodes if not is_source(node)]
        self.readers = Counter(graph.outputs)
        for node in self.operators:
            self.readers.update(node.operands)

    def rule(self, node: Node) -> Rule | None:
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


def fused(node: Node) -> str:
    """Return the activation that is fused into a node."""
    return str(node.attrs.get("fused_activation_function", "NONE"))


def is_float(value: Value | None) -> TypeGuard[Value]:
    """Whether an operand is there and float32."""
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
