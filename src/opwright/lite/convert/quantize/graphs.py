"""Graphs of quantisation: a float graph with the ranges of its values, and the rewriter of its integer form.

Lives here: `CalibratedGraph`, queries on operands and nodes; `QuantizationRewriter`, which names values as tensors of
the file, `ConstantRewriter`, `regrouped`.
Not here: measuring ranges (calibration.py), ranges of masked values (masks.py), choosing parameters (plan.py), the
passes (driver.py, weights.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np

from ....core.dtypes import float32
from ....core.specs import TensorSpec
from ....graph import Graph, GraphRewriter, Node, Value
from ....graph.builder import NO_ATTRS, constant_node, subgraphs_mapped
from ....graph.ir import Operand, flat
from ....ops import registry
from ...ops import get
from ...ops.definition import LiteOperator
from ...ops.module import is_source
from ...ops.specs import name_of, with_changes
from .rules import RULES, QuantizationRule

Range = tuple[float, float]


class CalibratedGraph:
    """A graph of the lite dialect with the ranges of its values.

    customs: rules of custom operators, by name. masked: the finite part of values that held -inf, which have no range.
    narrowed: ranges that replace observed ones. kept: nodes that remain float, and why.
    """

    def __init__(
        self,
        graph: Graph,
        ranges: Mapping[Value, Range],
        customs: Mapping[str, QuantizationRule] = MappingProxyType({}),
        masked: Mapping[Value, Range] = MappingProxyType({}),
    ) -> None:
        self.graph, self.ranges, self.customs, self.masked = graph, dict(ranges), customs, masked
        self.narrowed: dict[Value, Range] = {}
        self.kept: dict[Node, str] = {}
        self.operators = [node for node in graph.nodes if not is_source(node)]
        self.readers = Counter(graph.outputs)
        for node in self.operators:
            self.readers.update(node.operands)

    def rule(self, node: Node) -> QuantizationRule | None:
        """Return the requirements of an operator on quantised operands; None without an integer kernel."""
        return RULES.get(node.op.name) if isinstance(node.op, LiteOperator) else self.customs.get(node.op.name)

    def range_of(self, value: Value) -> Range | None:
        """Return the least and greatest observed element, or a constant's; None if there is none."""
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


QUANTIZED = "quantize: integers with the scales of calibration or of their weights"


class QuantizationRewriter(GraphRewriter):
    """A rewriter that names values as tensors of the file, as closely as graph text allows.

    inside: returns the rewritten form of a subgraph.
    """

    def __init__(self, source: Graph, inside: Callable[[Graph], Graph]) -> None:
        super().__init__(source)
        self.inside = inside
        self.inputs = []
        self.reserve_only(())  # every value of the source is created again, under the name of its tensor

    def tensors(self, specs: Sequence[TensorSpec], names: Sequence[str]) -> tuple[list[str], list[TensorSpec]]:
        """Return unique value names for tensors of these names, and types that record names that differ."""
        unique = [self.unique(name or "tensor") for name in names]
        return unique, [with_changes(s, name=None if n == u else n) for s, n, u in zip(specs, names, unique)]

    def add_input(self, spec: TensorSpec, name: str) -> Value:
        """Append a graph input."""
        (unique,), (typed,) = self.tensors([spec], [name])
        self.inputs.append(Value(unique, typed))
        return self.inputs[-1]

    def add(
        self,
        op: Any,
        inputs: Sequence[Operand],
        attrs: Mapping[str, Any],
        specs: Sequence[TensorSpec],
        names: Sequence[str],
        old: Node | None = None,
    ) -> Node:
        """Append a node. names: of its output tensors. old: the node of the source that it replaces."""
        unique, typed = self.tensors(specs, names)
        name = unique[0] if unique else self.unique(op.name if old is None else old.name)
        same = old is not None and op is old.op and [s.dtype for s in specs] == [v.dtype for v in old.outputs]
        made = (*(() if old is None else old.rules), *(() if same else (QUANTIZED,)))
        return self.insert(Node(op, inputs, attrs, typed, name, None if old is None else old.at, unique, made))

    def unary(self, op_name: str, operand: Value, spec: TensorSpec, name: str) -> Value:
        """Append an operator of one operand without attributes, such as QUANTIZE."""
        op = get(op_name)
        return self.add(op, (operand,), op.bind({}).attrs, [spec], [name]).outputs[0]

    def add_constant(self, array: np.ndarray, spec: TensorSpec, name: str) -> Value:
        """Append a constant."""
        (unique,), (typed,) = self.tensors([spec], [name])
        return self.insert(constant_node(registry.get("Const"), array, typed, unique)).outputs[0]


class ConstantRewriter(QuantizationRewriter):
    """A copy of a graph with other constants. substitutes: replacements of the source's values as operands."""

    def __init__(self, source: Graph, inside: Callable[[Graph], Graph]) -> None:
        super().__init__(source, inside)
        self.mapping = {v: self.add_input(v.spec, name_of(v)) for v in source.inputs}
        self.substitutes: dict[Value, Value] = {}
        self.read = {v for node in source.nodes for v in node.operands}

    def copy_with(
        self,
        node: Node,
        operands: Mapping[int, Value] = NO_ATTRS,  # type: ignore[assignment]
        outputs: Mapping[Value, tuple[TensorSpec, str]] = NO_ATTRS,  # type: ignore[assignment]
        attrs: Mapping[str, Any] = NO_ATTRS,
    ) -> Node:
        """Append a node of the source with other operands, by index, output types and names, or attributes."""
        values = [
            operands.get(i) or (v and (self.substitutes.get(v) or self.mapping[v]))
            for i, v in enumerate(flat(node.inputs))
        ]
        attributes = {**subgraphs_mapped(node.attrs, self.inside), **attrs}
        results = [outputs.get(v) or (v.spec, name_of(v)) for v in node.outputs]
        specs, names = [spec for spec, _ in results], [name for _, name in results]
        copied = self.add(node.op, regrouped(node.inputs, values), attributes, specs, names, node)
        self.replace(node, copied.outputs)
        return copied

    def copy_source(self, node: Node, replaced: Container[Value]) -> None:
        """Append a constant or state of the source if a node still reads it. replaced: values that none reads."""
        (value,) = node.outputs
        if value in self.source.outputs or (value in self.read and value not in replaced):
            self.copy_with(node)


def regrouped(inputs: Sequence[Operand], values: Sequence[Value | None]) -> list[Operand]:
    """Return values in the order of flat operands, grouped as a node's inputs."""
    left = iter(values)
    return [tuple(v for _, v in zip(o, left) if v is not None) if isinstance(o, tuple) else next(left) for o in inputs]
