"""Replay a graph into a trace, so that it can be differentiated.

Lives here: `GraphReplay`: the nodes of a graph, under their own names, in a trace that accepts more nodes. Not here:
adding gradients (backward.py), recording calls of Python functions (tracing/).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph import Graph, Node, Value
from ..graph.builder import has_subgraphs, subgraphs_mapped
from ..ops.autodiff import CustomRecord
from ..tracing.control.body import rerecord
from ..tracing.inliner import inline
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import FuncTrace


class StandIn(Variable):
    """A stand-in for the variable behind a handle among a graph's inputs: a dtype and a shape without a value."""

    __slots__ = ()

    def __init__(self, name: str, spec: TensorSpec) -> None:
        self.name, self.dtype, self.shape = name, spec.dtype, spec.shape
        self.trainable, self.constraint = True, None
        self._value = self._initial = None


class _Trace(FuncTrace):
    """A trace without captures: outer tensors that a rule uses become constants of the graph."""

    def capture(self, outer: Any, copied: bool = True) -> SymbolicTensor:
        if type(outer) is EagerTensor:
            return self.constant(outer._array, outer.dtype)
        return super().capture(outer, copied)


class GraphOrigin(NamedTuple):
    """The source trace of a graph whose custom gradients cannot be reconstructed from its nodes."""

    trace: FuncTrace


class GraphReplay:
    """The nodes of a graph in a new trace. tensors: the trace's tensor for each value, by name.

    An input that is the handle of a variable is represented by the variable: its gradient is that of the variable's
    value. has_custom_gradients: some of its nodes have gradients defined by the user.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.trace = _Trace(graph.name)
        tensors: dict[Value, Any] = {}
        with self.trace.recording():
            source = getattr(graph.origin, "trace", None)
            captured = {} if source is None else {p.value_in_graph: outer for outer, p in source.captures.values()}
            for value in graph.inputs:
                variable = captured.get(value)
                if not isinstance(variable, Variable):
                    variable = _stand_in_for(graph, value)
                if variable is None:
                    tensors[value] = self.trace.placeholder(value.spec, value.name)
                else:
                    self.trace.capture(variable)
                    tensors[value] = variable
            self.has_custom_gradients = source is not None and _has_custom_gradients(source)
            if source is not None and self.has_custom_gradients:  # the nodes do not contain custom gradients
                self._inline_source(source, tensors)
            else:
                rerecord(self.trace, _detached(graph), tensors)
        self.records = tuple(self.trace.recorder.records)
        self.tensors: dict[str, Any] = {old.name: new for old, new in tensors.items()}
        self._restore_names(tensors)
        self._forward = {id(v) for v in self._values(tensors)}

    def _inline_source(self, source: FuncTrace, tensors: dict[Value, Any]) -> None:
        inputs = [p.value_in_graph for p in (*source.inputs, *(p for _, p in source.captures.values()))]
        arguments = [tensors[v] if v in tensors else source.capture(v) for v in inputs]
        arguments = [self.trace.capture(g) if isinstance(g, Variable) else g for g in arguments]
        inner = [v for node in self.graph.nodes for v in node.outputs]
        tensors.update(zip(inner, inline(self.trace, source, arguments, [SymbolicTensor(v, source) for v in inner])))

    def _restore_names(self, tensors: dict[Value, Any]) -> None:
        """Restore the names of values and nodes: the graph's text may name them differently than a recording."""
        builder = self.trace.builder
        for old, new in tensors.items():
            value = self.trace.value_of(new)
            builder.rename(value, old.name)
            if value.node is not None and value.index == 0 and old.node is not None:
                builder.locate(value.node, old.node.at)
        without_outputs = [n for n in builder.nodes if not n.outputs]
        for old_node, node in zip((n for n in self.graph.nodes if not n.outputs), without_outputs):
            builder.rename_node(node, old_node.name)
            builder.locate(node, old_node.at)
        builder.reserve_only((*(v.name for v in self.graph.values()), *(n.name for n in without_outputs)))

    def _values(self, tensors: dict[Value, Any]) -> Iterator[Value]:
        yield from (self.trace.value_of(t) for t in tensors.values())

    def is_forward(self, value: Value) -> bool:
        """Return whether this is a value of the replayed graph, not one added since."""
        return id(value) in self._forward

    def node_of(self, record: Any) -> Node | None:
        """Return the node of a record; None for a custom gradient, which covers several nodes."""
        if isinstance(record, CustomRecord):
            return None
        node: Node = record.outputs[0].value_in_graph.node
        return node


def _stand_in_for(graph: Graph, handle: Value) -> StandIn | None:
    """Return a stand-in for the variable behind a handle, typed by the nodes that read it; None if there are none."""
    stack = [(graph, handle)]
    while stack:
        inner, value = stack.pop()
        for node in inner.nodes:
            operands = list(node.operands)
            if not any(v is value for v in operands):
                continue
            if node.op.name == "ReadVariable":
                return StandIn(handle.name, TensorSpec(node.attrs["shape"], node.attrs["dtype"]))
            for branch in node.subgraphs:
                arguments = operands[len(operands) - len(branch.inputs) :]
                stack += [(branch, p) for p, argument in zip(branch.inputs, arguments) if argument is value]
    return None


def _has_custom_gradients(trace: FuncTrace) -> bool:
    """Return whether a recording contains custom gradients (custom_gradient)."""
    return any(isinstance(r, CustomRecord) for r in trace.recorder.records)


def _detached(graph: Graph) -> Graph:
    """Return the graph with branches and bodies detached from their recordings, which are recorded again.

    Differentiation extends the recordings of loops and branches. With its own recordings a graph yields the same
    derivative each time, including names. Recordings with custom gradients are shared.
    """
    if graph.origin is not None and _has_custom_gradients(graph.origin.trace):
        return graph
    nodes = [
        node.with_operands(node.inputs, subgraphs_mapped(node.attrs, _detached)) if has_subgraphs(node) else node
        for node in graph.nodes
    ]
    return Graph(graph.name, graph.inputs, nodes, graph.outputs)
