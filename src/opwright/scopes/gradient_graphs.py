"""Graphs of a backward pass: a graph replayed into a trace, and the result, with the map from values to gradients.

Lives here: `GraphReplay`: the nodes of a graph, under their own names, in a trace that accepts more nodes; `Backward`,
the new graph with the gradients of its values, `RowsGradient`.
Not here: differentiation, which adds the gradients (backward.py); recording calls of Python functions (tracing/).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.forks import cached_property
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph import Graph, Node, Value
from ..graph.builder import has_subgraphs, subgraphs_mapped
from ..ops.autodiff import CustomRecord
from ..ops.indexed_slices import IndexedSlices
from ..ops.var_types import of_graph
from ..tracing.control.body import rerecord
from ..tracing.inliner import inline
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import FuncTrace
from .graphs import run_graph
from .scope import Scope, scope_or_global
from .variable import EMPTY, ScopeVariable


class RowsGradient(NamedTuple):
    """A gradient that is rows of a table: three values of the graph. kind: "rows".

    name: `<variable>@GRAD`; values: [n, ...]; indices: [n]; dense_shape: the table's shape as a vector, or None.
    spec: of the table.
    """

    name: str
    values: Value
    indices: Value
    dense_shape: Value | None
    spec: TensorSpec
    kind: str = "rows"

    @property
    def parts(self) -> tuple[Value, ...]:
        """Return the values that it consists of, in the order of the graph's outputs."""
        return tuple(v for v in (self.values, self.indices, self.dense_shape) if v is not None)


Gradient = Value | RowsGradient


class _Links(Mapping[Any, Any]):
    """Gradients by value or by its name; names are looked up as a whole, never parsed."""

    def __init__(self, links: Mapping[str, Gradient], graphs: Sequence[Graph]) -> None:
        self._links, self._values_of_graphs = links, {v for g in graphs for v in g.values()}

    def __getitem__(self, key: Any) -> Value | RowsGradient:
        if isinstance(key, str):
            return self._links[key]
        if key not in self._values_of_graphs:
            raise KeyError(f"{key!r} is a value of another graph")
        return self._links[key.name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{k}: {g.name}' for k, g in self._links.items())}}}"


class Backward:
    """A graph with gradients.

    graph: the forward nodes, then those of the gradients. forward: the original graph; its values have the same names
    in `graph`. targets: the loss or the targets, by name. gradient_of: the gradient of each value that has one, by the
    value, of either graph, or its name: a Value, or a RowsGradient. value_of: the inverse, by names. no_grad: names of
    the values at which differentiation stops: those of the no_grad_set, results of operators such as StopGradient, and
    results of participating nodes that no path to the targets reads.
    """

    def __init__(
        self,
        forward: Graph,
        graph: Graph,
        targets: Sequence[str],
        sources: Sequence[str],
        links: Mapping[str, Gradient],
        slots: Mapping[str, Mapping[str, Any]],
        no_grad: frozenset[str],
    ) -> None:
        self.forward, self.graph, self.targets, self.no_grad = forward, graph, tuple(targets), no_grad
        self.gradient_of: Mapping[Any, Any] = _Links(links, (forward, graph))
        self.value_of: dict[str, str] = {g.name: name for name, g in links.items()}
        self._sources, self._slots = tuple(sources), slots
        self._values = {v.name: v for v in graph.values()}

    @property
    def pairs(self) -> tuple[tuple[Value, Gradient], ...]:
        """Return (parameter, its gradient) for each parameter that has one, in the requested order."""
        return tuple(
            (self._values[n], self.gradient_of[n]) for n in dict.fromkeys(self._sources) if n in self.gradient_of
        )

    @property
    def gradients(self) -> tuple[Gradient | None, ...]:
        """Return the gradient of each requested parameter or input, None if it has none."""
        return tuple(self.gradient_of.get(n) for n in self._sources)

    def run(self, scope: Scope | None = None, place: Any = None) -> list[ScopeVariable]:
        """Run the graph on the variables of a scope, as `run_graph`; gradients that are rows become variables too.

        Returns the variables of the gradients, in the order of `pairs`.
        """
        scope = scope_or_global(scope)
        run_graph(self.graph, scope, place)
        variables = []
        for _, grad in self.pairs:
            if isinstance(grad, RowsGradient):
                parts = [scope.find_var(v.name).value for v in grad.parts]  # type: ignore[union-attr]
                (scope.find_var(grad.name) or scope.var(grad.name)).set(IndexedSlices(*parts))
            variable = scope.find_var(grad.name)
            assert variable is not None
            variables.append(variable)
        return variables

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Return the kind of every value by name (ops/var_types.py); gradients that are rows replace their parts."""
        result = of_graph(self.graph)
        for grad in map(self.gradient_of.__getitem__, self.gradient_of):
            if isinstance(grad, RowsGradient):
                for part in grad.parts:
                    result.pop(part.name, None)
                result[grad.name] = grad.kind
        return result

    def input_gradients(self, node: Node | str) -> dict[str, Any]:
        """Return the contribution of a forward node to the gradient of each of its inputs: a name, or @EMPTY@.

        A repeated input has a list with an entry for each member. Raises KeyError for a node that is not in the graph.
        """
        forward = self.forward.find(node if isinstance(node, str) else node.name)
        slots = self._slots.get(forward.name)
        if slots is not None:
            return dict(slots)
        return {
            declared.name: [EMPTY] * len(operand) if isinstance(operand, tuple) else EMPTY
            for declared, operand in zip(forward.op.inputs, forward.inputs)
        }

    def __repr__(self) -> str:
        pairs = ", ".join(f"{p.name}: {g.name}" for p, g in self.pairs)
        return f"<Backward of {', '.join(self.targets)} in {self.graph.name}: {pairs}>"


def flat_gradient(grad: Any) -> list[Any]:
    """Return the tensors of a gradient during recording; for rows: values, indices and dense shape."""
    if isinstance(grad, IndexedSlices):
        return [t for t in (grad.values, grad.indices, grad.dense_shape) if t is not None]
    return [grad]


def graph_gradient(grad: Any) -> Gradient:
    """Return a recorded gradient as values of the graph."""
    if not isinstance(grad, IndexedSlices):
        value: Value = grad.value_in_graph
        return value
    values, indices = grad.values.value_in_graph, grad.indices.value_in_graph
    shape = None if grad.dense_shape is None else grad.dense_shape.value_in_graph
    name = values.name.removesuffix(".values")
    return RowsGradient(name, values, indices, shape, TensorSpec(grad.shape, grad.dtype))


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
