"""Body: the recording of a branch or loop body as a closed program.

Lives here: recording one, its graph, what several of one node use from outside.
Not here: the nodes made of them and their gradients (branches.py, loops.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import nest
from ...core.importing import load
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor
from ...eager.variable import Variable
from ...graph import Graph, Value
from ...graph.passes import dead_code
from ...ops import dispatch
from ...ops.autodiff import OpRecord
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace

state = dispatch.state


CONTROL_RECORDS: dict[str, type[OpRecord]] = {}
"""By operator that holds graphs, the record of a call of it, entered by the module that `_RECORDED_IN` names."""
_RECORDED_IN = {"If": "branches", "Case": "branches", "While": "loop_gradient"}


def control_record(name: str) -> type[OpRecord] | None:
    """Return the record of calls of an operator that holds graphs, None for other operators."""
    home = _RECORDED_IN.get(name)
    if home is None:
        return None
    load(f"{__package__}.{home}")  # an interrupt may have ended its first import
    return CONTROL_RECORDS[name]


class Body:
    """A recording, which of its placeholders are the inputs, in order, and its outputs.

    Several bodies may share one recording: each graph holds what its own outputs need.
    """

    __slots__ = ("inputs", "outputs", "trace")

    def __init__(self, trace: FuncTrace, inputs: Sequence[SymbolicTensor], outputs: Sequence[SymbolicTensor]) -> None:
        self.trace, self.inputs, self.outputs = trace, tuple(inputs), tuple(outputs)

    def graph(self) -> Graph:
        """The closed graph of it as it stands now; it knows this body as its origin."""
        inputs = [t.value_in_graph for t in self.inputs]
        outputs = [t.value_in_graph for t in self.outputs]
        graph, _ = dead_code(Graph(self.trace.builder.name, inputs, self.trace.builder.nodes, outputs))
        return Graph(graph.name, inputs, graph.nodes, outputs, origin=self)


def of_graph(graph: Graph, operands: Sequence[Any] = ()) -> Body:
    """The body of a graph, recorded again from its nodes where it has none: it was read from text.

    operands: what the node hands in, as far as known; a variable among them is then read as itself.
    """
    if not isinstance(graph.origin, Body):
        trace = FuncTrace(graph.name)
        at: dict[Value, Any] = {}
        inputs = []
        with trace.recording():
            for i, value in enumerate(graph.inputs):
                variable = operands[i] if i < len(operands) and isinstance(operands[i], Variable) else None
                inputs.append(
                    trace.free_placeholder(value.spec, value.name) if variable is None else trace.capture(variable)
                )
                at[value] = inputs[-1] if variable is None else variable
            rerecord(trace, graph, at)
        outputs = [trace.capture(t) if isinstance(t, Variable) else t for t in (at[v] for v in graph.outputs)]
        graph.keep_origin(Body(trace, inputs, outputs))
    result: Body = graph.origin
    return result


def rerecord(trace: FuncTrace, graph: Graph, at: dict[Value, Any]) -> None:
    """Record the nodes of a graph in the recording trace, as if their operators were called. at: grows with them."""
    for node in graph.nodes:
        structure = [
            None if o is None else tuple([at[v] for v in o]) if isinstance(o, tuple) else at[o] for o in node.inputs
        ]
        kind = control_record(node.op.name)
        specs = [v.spec for v in node.outputs]
        if kind is not None:
            flat = [x for part in structure for x in (part if type(part) is tuple else (part,))]
            for inner in node.subgraphs:
                of_graph(inner, flat[len(flat) - len(inner.inputs) :])
            outs = trace.record_control(kind, node.op, structure, dict(node.attrs), specs, node.name)
        elif node.op.name == "Const":
            outs = [trace.constant(node.attrs["value"], specs[0].dtype, node.name)]
        else:
            outs = trace.record_specs(node.op, structure, node.op.bind(dict(node.attrs)), specs, node.name, node.at)
        at.update(zip(node.outputs, outs))


def record_body(
    name: str, function: Callable[..., Any], specs: Sequence[TensorSpec], parent: FuncTrace
) -> tuple[FuncTrace, list[SymbolicTensor], Any]:
    """Call a Python function with placeholders and record what it does: the trace, the placeholders, what it gave."""
    trace = FuncTrace(name, parent)
    trace.created_variables = parent.created_variables
    trace.may_create_variables = parent.may_create_variables
    with trace.recording():
        placeholders = [trace.free_placeholder(spec, spec.name or f"{name}_arg") for spec in specs]
        result = function(*placeholders)
    return trace, placeholders, result


def flat_tensors(trace: FuncTrace, result: Any) -> list[Any]:
    """The leaves of what a branch gave, as tensors of its trace; None stays."""
    with trace.resumed():
        return [
            None if leaf is None else trace.to_tensor(leaf) for leaf in nest.flatten(result, expand_composites=True)
        ]


def joined(structures: Sequence[Any], roles: Sequence[str]) -> Any:
    """The first structure, in which each composite value is its type: the nearest above that of all structures.

    raises TypeError where there is none
    """
    columns = zip(*(nest.flatten(s) for s in structures))
    leaves = []
    for first, *others in columns:
        spec = getattr(first, "_type_spec", None) if isinstance(first, CompositeTensor) else None
        if spec is not None:
            specs = [other._type_spec for other in others]
            above = spec.most_specific_common_supertype(specs)
            if above is None:
                found = ", ".join(f"{s!r} in {role}" for s, role in zip([spec, *specs], roles))
                raise TypeError(f"a value has types that nothing stands above: {found}")
            spec = above
        leaves.append(first if spec is None else spec)
    return nest.pack_sequence_as(structures[0], leaves)


def captured_by(traces: Sequence[FuncTrace]) -> list[Any]:
    """What any of the traces uses from outside, each thing once, in order."""
    return list({id(outer): outer for trace in traces for outer, _ in trace.captures.values()}.values())


def handed_in(trace: FuncTrace, outers: Sequence[Any]) -> list[SymbolicTensor]:
    """The placeholders of these things in a trace, new ones where it did not use them."""
    return [trace.capture(outer) for outer in outers]
