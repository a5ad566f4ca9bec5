"""A graph as a recording again: what its differentiation goes by.

Lives here: `Recording`: the nodes of a graph, under their own names, in a trace that more can be added to.
Not here: what is added (backward.py), recording calls of Python functions (tracing/).
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
from ..tracing.inlining import inline
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import FuncTrace


class StandIn(Variable):
    """What a handle among the inputs of a graph is a handle of, as far as the graph tells: no value, only its type."""

    __slots__ = ()

    def __init__(self, name: str, spec: TensorSpec) -> None:
        self.name, self.dtype, self.shape = name, spec.dtype, spec.shape
        self.trainable, self.constraint = True, None
        self._value = self._initial = None


class _Trace(FuncTrace):
    """A trace that takes nothing from outside: what a rule brings along is a constant of the graph."""

    def capture(self, outer: Any, copied: bool = True) -> SymbolicTensor:
        if type(outer) is EagerTensor:
            return self.constant(outer._array, outer.dtype)
        return super().capture(outer, copied)


class Origin(NamedTuple):
    """What a graph was made from, for graphs with stretches whose gradients their nodes do not tell."""

    trace: FuncTrace


class Recording:
    """The nodes of a graph recorded again. tensors: by name, what stands for each of its values.

    An input that is the handle of a variable has a variable for its tensor: its gradient is that of what it holds.
    arranged: whether it has stretches with gradients of the user's own.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.trace = _Trace(graph.name)
        at: dict[Value, Any] = {}
        with self.trace.recording():
            source = getattr(graph.origin, "trace", None)
            known = {} if source is None else {p.value_in_graph: outer for outer, p in source.captures.values()}
            for value in graph.inputs:
                held = known.get(value)
                if not isinstance(held, Variable):
                    held = _held_by(graph, value)
                if held is None:
                    at[value] = self.trace.placeholder(value.spec, value.name)
                else:
                    self.trace.capture(held)
                    at[value] = held
            self.arranged = source is not None and _arranged(source)
            if source is not None and self.arranged:  # the nodes alone do not tell of gradients of the user's own
                self._inlined(source, at)
            else:
                rerecord(self.trace, _apart(graph), at)
        self.records = tuple(self.trace.recorder.records)
        self.tensors: dict[str, Any] = {old.name: new for old, new in at.items()}
        self._named_alike(at)
        self._own = {id(v) for v in self._values(at)}

    def _inlined(self, source: FuncTrace, at: dict[Value, Any]) -> None:
        places = [p.value_in_graph for p in (*source.inputs, *(p for _, p in source.captures.values()))]
        given = [at[v] if v in at else source.capture(v) for v in places]
        given = [self.trace.capture(g) if isinstance(g, Variable) else g for g in given]
        inner = [v for node in self.graph.nodes for v in node.outputs]
        at.update(zip(inner, inline(self.trace, source, given, [SymbolicTensor(v, source) for v in inner])))

    def _named_alike(self, at: dict[Value, Any]) -> None:
        """Names as they were: a text may name its values otherwise than a recording would."""
        builder = self.trace.builder
        for old, new in at.items():
            value = self.trace.value_of(new)
            builder.rename(value, old.name)
            if value.node is not None and value.index == 0 and old.node is not None:
                builder.locate(value.node, old.node.at)
        silent = [n for n in builder.nodes if not n.outputs]
        for old_node, node in zip((n for n in self.graph.nodes if not n.outputs), silent):
            builder.rename_node(node, old_node.name)
            builder.locate(node, old_node.at)
        builder.reserve_only((*(v.name for v in self.graph.values()), *(n.name for n in silent)))

    def _values(self, at: dict[Value, Any]) -> Iterator[Value]:
        yield from (self.trace.value_of(t) for t in at.values())

    def is_forward(self, value: Value) -> bool:
        """Whether it is a value of the graph that was recorded, not one added since."""
        return id(value) in self._own

    def node_of(self, record: Any) -> Node | None:
        """The node that a record is of; None for a stretch with a gradient of its own, which has several."""
        if isinstance(record, CustomRecord):
            return None
        node: Node = record.outputs[0].value_in_graph.node
        return node


def _held_by(graph: Graph, handle: Value) -> StandIn | None:
    """A stand-in for the variable behind a handle, by what the graph says where it reads it; None where it does not."""
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
                taken = operands[len(operands) - len(branch.inputs) :]
                stack += [(branch, p) for p, given in zip(branch.inputs, taken) if given is value]
    return None


def _arranged(trace: FuncTrace) -> bool:
    """Whether a recording has stretches with gradients of their own (custom_gradient)."""
    return any(isinstance(r, CustomRecord) for r in trace.recorder.records)


def _apart(graph: Graph) -> Graph:
    """The graph with branches and bodies that forget their recordings, to be recorded anew.

    Differentiating adds to the recordings of loops and branches what the gradient needs of them. With recordings of its
    own a graph gives the same derivative each time, to the names. Those with gradients of the user's own are kept.
    """
    if graph.origin is not None and _arranged(graph.origin.trace):
        return graph
    nodes = [
        node.with_operands(node.inputs, subgraphs_mapped(node.attrs, _apart)) if has_subgraphs(node) else node
        for node in graph.nodes
    ]
    return Graph(graph.name, graph.inputs, nodes, graph.outputs)
