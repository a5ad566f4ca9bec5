"""The rewriter of quantisation: graphs of the lite dialect under the tensor names of their files.

Lives here: `QuantizationRewriter`, `regrouped`.  Not here: the passes (graph_quantizer.py, weights.py, sparsity.py).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from ....core.specs import TensorSpec
from ....graph import Graph, GraphRewriter, Node, Value
from ....graph.builder import NO_ATTRS, constant_node, subgraphs_mapped
from ....graph.ir import Operand, flat
from ....ops import registry
from ...ops import get
from ...ops.specs import name_of, with_changes


class QuantizationRewriter(GraphRewriter):
    """A rewriter that names values as tensors of the file, as closely as graph text allows.

    inside: returns the rewritten form of a graph that nodes hold.
    """

    def __init__(self, source: Graph, inside: Callable[[Graph], Graph]) -> None:
        super().__init__(source)
        self.inside = inside
        self.inputs = []
        self.reserve_only(())  # every value of the source is created again, under the name of its tensor

    def tensors(self, specs: Sequence[TensorSpec], names: Sequence[str]) -> tuple[list[str], list[TensorSpec]]:
        """Return names of values for tensors of these names, and types that hold the tensors' own where they differ."""
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
        return self.insert(Node(op, inputs, attrs, typed, name, None if old is None else old.at, unique))

    def unary(self, op_name: str, operand: Value, spec: TensorSpec, name: str) -> Value:
        """Append an operator of one operand without attributes, such as QUANTIZE."""
        op = get(op_name)
        return self.add(op, (operand,), op.bind({}).attrs, [spec], [name]).outputs[0]

    def add_constant(self, array: np.ndarray, spec: TensorSpec, name: str) -> Value:
        """Append a constant."""
        (unique,), (typed,) = self.tensors([spec], [name])
        return self.insert(constant_node(registry.get("Const"), array, typed, unique)).outputs[0]


class ConstantRewriter(QuantizationRewriter):
    """A copy of a graph with other constants. substitutes: what nodes read in place of values of the source."""

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
