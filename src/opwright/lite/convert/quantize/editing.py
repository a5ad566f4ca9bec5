"""Graphs of the lite dialect while passes of quantisation build them.

Lives here: `Editor`, which names values as files do; `Edit`, a copy with changes; `regrouped`.  Not here: the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ....core.specs import TensorSpec
from ....graph import Graph, Node, Value
from ....graph.ir import GraphBuilder, Operand, flat
from ....graph.passes.rewriting import map_graphs
from ....ops import registry
from ...ops import get
from ...ops.specs import name_of, with_changes


class Editor:
    """A graph being built. Names are those of tensors in the file; values get the nearest ones that graphs have."""

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)
        self.builder.name = name  # as it is, that of a file too

    def input(self, spec: TensorSpec, name: str) -> Value:
        """Add an input."""
        (found,), (typed,) = self._named([spec], [name])
        self.builder.inputs.append(Value(found, typed))
        return self.builder.inputs[-1]

    def _named(self, specs: Sequence[TensorSpec], names: Sequence[str]) -> tuple[list[str], list[TensorSpec]]:
        found = [self.builder.unique(name or "tensor") for name in names]
        return found, [with_changes(s, name=None if n == f else n) for s, n, f in zip(specs, names, found)]

    def node(
        self,
        op: Any,
        inputs: Sequence[Operand],
        attrs: Mapping[str, Any],
        specs: Sequence[TensorSpec],
        names: Sequence[str],
        source: Node | None = None,
    ) -> Node:
        """Add a node. names: of its outputs. source: the node it stands for."""
        found, typed = self._named(specs, names)
        name = found[0] if found else self.builder.unique(op.name if source is None else source.name)
        node = Node(op, inputs, attrs, typed, name, None if source is None else source.at, found)
        self.builder.nodes.append(node)
        return node

    def step(self, op_name: str, source: Value, spec: TensorSpec, name: str) -> Value:
        """Add an operator of one operand without attributes, such as QUANTIZE."""
        op = get(op_name)
        return self.node(op, (source,), op.bind({}).attrs, [spec], [name]).outputs[0]

    def constant(self, array: np.ndarray, spec: TensorSpec, name: str) -> Value:
        """Add a constant."""
        array.setflags(write=False)
        return self.node(registry.get("Const"), (), {"value": array}, [spec], [name]).outputs[0]

    def build(self, outputs: Sequence[Value]) -> Graph:
        """Return the graph."""
        return self.builder.build(outputs)


def regrouped(inputs: Sequence[Operand], values: Sequence[Value | None]) -> list[Operand]:
    """Return values in the order of flat operands in the form of a node's inputs."""
    left = iter(values)
    return [tuple(v for _, v in zip(o, left) if v is not None) if isinstance(o, tuple) else next(left) for o in inputs]


class Edit(Editor):
    """A copy of a graph with changes. now: its values in the copy. instead: what nodes read in place of some of them.

    inside: returns the copy of a graph that nodes hold.
    """

    def __init__(self, graph: Graph, inside: Callable[[Graph], Graph]) -> None:
        super().__init__(graph.name)
        self.graph, self.inside = graph, inside
        self.now = {v: self.input(v.spec, name_of(v)) for v in graph.inputs}
        self.instead: dict[Value, Value] = {}
        self.read = {v for node in graph.nodes for v in node.operands}

    def copy(
        self,
        node: Node,
        places: Mapping[int, Value] = MappingProxyType({}),
        outputs: Mapping[Value, tuple[TensorSpec, str]] = MappingProxyType({}),
        attrs: Mapping[str, Any] = MappingProxyType({}),
    ) -> Node:
        """Add a node of the old graph.

        places: values to read at some places. outputs: types and names in place of its own. attrs: likewise.
        """
        values = [
            places.get(i) or (v and (self.instead.get(v) or self.now[v])) for i, v in enumerate(flat(node.inputs))
        ]
        attributes = {**map_graphs(node, self.inside).attrs, **attrs}
        results = [outputs.get(v) or (v.spec, name_of(v)) for v in node.outputs]
        specs, names = [spec for spec, _ in results], [name for _, name in results]
        made = self.node(node.op, regrouped(node.inputs, values), attributes, specs, names, node)
        self.now.update(zip(node.outputs, made.outputs))
        return made

    def source(self, node: Node, replaced: Container[Value]) -> None:
        """Add a constant or state of the old graph, unless no node reads it any more. replaced: of which that is so."""
        (value,) = node.outputs
        if value in self.graph.outputs or (value in self.read and value not in replaced):
            self.copy(node)

    def finished(self) -> Graph:
        """Return the graph."""
        return self.build([self.now[v] for v in self.graph.outputs])
