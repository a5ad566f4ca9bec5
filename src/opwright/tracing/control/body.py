"""Bodies: branches and loop bodies recorded as closed programs, the While node, and the structure of their gradients.

Lives here: `Body`, its recording and graph; the captures shared by the bodies of one node; `emit_while`; the inputs of
a body that gradients can reach; whether a gradient is sparse rows, and its parts as tensors.
Not here: branch nodes and their gradients (branches.py), loops and their gradients (loops.py), differentiation
(ops/autodiff.py).

Branches must agree on the structure of a gradient, and a loop on the structure of its sum, before either exists. The
uses of the operand in the body determine it: if the body only looks up rows, the gradient is sparse, and a large table
is never filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes, nest
from ...core.lazy_imports import load
from ...core.specs import TensorSpec
from ...core.type_spec import CompositeTensor
from ...eager.variable import Variable
from ...graph import Graph, Value
from ...graph.ir import map_operands
from ...graph.passes import dead_code
from ...ops import array, dispatch
from ...ops.array.shape_operators import dims_tensor
from ...ops.autodiff import OpRecord, is_trainable
from ...ops.control import While
from ...ops.indexed_slices import IndexedSlices
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace

state = dispatch.state


CONTROL_RECORDS: dict[str, type[OpRecord]] = {}
"""The gradient record of each control flow operator, registered by the module in `_RECORDED_IN`."""
_RECORDED_IN = {"If": "branches", "Case": "branches", "While": "loops"}


def control_record(name: str) -> type[OpRecord] | None:
    """Return the gradient record of calls of a control flow operator, None for other operators."""
    module = _RECORDED_IN.get(name)
    if module is None:
        return None
    load(f"{__package__}.{module}")  # an interrupt may have ended its first import
    return CONTROL_RECORDS[name]


class Body:
    """A recording, its inputs among the placeholders in order, and its outputs.

    Several bodies may share one recording: each graph contains the nodes that its own outputs depend on.
    """

    __slots__ = ("inputs", "outputs", "trace")

    def __init__(self, trace: FuncTrace, inputs: Sequence[SymbolicTensor], outputs: Sequence[SymbolicTensor]) -> None:
        self.trace, self.inputs, self.outputs = trace, tuple(inputs), tuple(outputs)

    def graph(self) -> Graph:
        """Return the closed graph in its present state; this body is its origin."""
        inputs = [t.value_in_graph for t in self.inputs]
        outputs = [t.value_in_graph for t in self.outputs]
        graph, _ = dead_code(Graph(self.trace.builder.name, inputs, self.trace.builder.nodes, outputs))
        return Graph(graph.name, inputs, graph.nodes, outputs, origin=self)


def of_graph(graph: Graph, operands: Sequence[Any] = ()) -> Body:
    """Return the body of a graph. A graph parsed from text has none, and is recorded again from its nodes.

    operands: the operands of the control flow node, as far as known; a variable among them is read as itself.
    """
    if not isinstance(graph.origin, Body):
        trace = FuncTrace(graph.name)
        tensors: dict[Value, Any] = {}
        inputs = []
        with trace.recording():
            for i, value in enumerate(graph.inputs):
                variable = operands[i] if i < len(operands) and isinstance(operands[i], Variable) else None
                inputs.append(
                    trace.free_placeholder(value.spec, value.name) if variable is None else trace.capture(variable)
                )
                tensors[value] = inputs[-1] if variable is None else variable
            rerecord(trace, graph, tensors)
        outputs = [trace.capture(t) if isinstance(t, Variable) else t for t in (tensors[v] for v in graph.outputs)]
        graph.keep_origin(Body(trace, inputs, outputs))
    result: Body = graph.origin
    return result


def rerecord(trace: FuncTrace, graph: Graph, tensors: dict[Value, Any]) -> None:
    """Record the nodes of a graph in the active trace, as if their operators were called; extends `tensors`, by
    value.
    """
    for node in graph.nodes:
        structure = map_operands(tensors.__getitem__, node.inputs)
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
        tensors.update(zip(node.outputs, outs))


def record_body(
    name: str, function: Callable[..., Any], specs: Sequence[TensorSpec], parent: FuncTrace
) -> tuple[FuncTrace, list[SymbolicTensor], Any]:
    """Call a Python function with placeholders and record it; return the trace, the placeholders, and its result."""
    trace = FuncTrace(name, parent)
    trace.created_variables = parent.created_variables
    trace.may_create_variables = parent.may_create_variables
    with trace.recording():
        placeholders = [trace.free_placeholder(spec, spec.name or f"{name}_arg") for spec in specs]
        result = function(*placeholders)
    return trace, placeholders, result


def flat_tensors(trace: FuncTrace, result: Any) -> list[Any]:
    """Return the leaves of a branch's result as tensors of its trace; None is preserved."""
    with trace.resumed():
        return [
            None if leaf is None else trace.to_tensor(leaf) for leaf in nest.flatten(result, expand_composites=True)
        ]


def joined(structures: Sequence[Any], roles: Sequence[str]) -> object:
    """Return the first structure, with each composite replaced by the common supertype of the types in all structures.

    raises TypeError if there is no common supertype
    """
    columns = zip(*(nest.flatten(s) for s in structures))
    leaves = []
    for first, *others in columns:
        spec = getattr(first, "_type_spec", None) if isinstance(first, CompositeTensor) else None
        if spec is not None:
            specs = [other._type_spec for other in others]
            supertype = spec.most_specific_common_supertype(specs)
            if supertype is None:
                types = ", ".join(f"{s!r} in {role}" for s, role in zip([spec, *specs], roles))
                raise TypeError(f"a value has types without a common supertype: {types}")
            spec = supertype
        leaves.append(first if spec is None else spec)
    return nest.pack_sequence_as(structures[0], leaves)


def captured_by(traces: Sequence[FuncTrace]) -> list[Any]:
    """Return the outer values that any of the traces captures, without duplicates, in order."""
    return list({id(outer): outer for trace in traces for outer, _ in trace.captures.values()}.values())


def capture_placeholders(trace: FuncTrace, outers: Sequence[Any]) -> list[SymbolicTensor]:
    """Return the placeholders of outer values in a trace, capturing the unused ones."""
    return [trace.capture(outer) for outer in outers]


def emit_while(
    trace: FuncTrace,
    specs: Sequence[TensorSpec],
    cond: Callable[..., Any],
    body: Callable[..., Any],
    initials: Callable[[], Sequence[Any]],
    name: str,
    late_variables: Sequence[SymbolicTensor] = (),
) -> list[SymbolicTensor]:
    """Add a `While` node over flat variables.

    cond, body: functions of flat placeholders, recorded once, which return a scalar bool and the flat new variables.
    initials: returns the variables' initial values. It is called after recording, as a gradient loop determines while
    recording which values its forward loop must store. late_variables: a list to which the body may append placeholders
    of its trace; these become variables after those of `specs`, with new values from the body and initial values from
    `initials`.
    raises TypeError if a dtype changes, ValueError if a shape does
    """
    cond_trace, cond_inputs, result = record_body(f"{trace.name}_{name}_cond", cond, specs, trace)
    (test,) = flat_tensors(cond_trace, result) if not isinstance(result, (list, tuple)) else (None,)
    if test is None or test.dtype is not dtypes.bool or test.shape.rank not in (0, None):
        raise TypeError(f"'cond' must return a boolean value, a scalar bool tensor; found {result!r}")
    body_trace, body_inputs, results = record_body(f"{trace.name}_{name}_body", body, specs, trace)
    for placeholder in late_variables:
        specs = [*specs, placeholder.value_in_graph.spec]
        body_inputs.append(placeholder)
        cond_inputs.append(cond_trace.free_placeholder(placeholder.spec, "late"))
    with body_trace.resumed():
        outputs = [
            body_trace.to_tensor(r, None if isinstance(r, (SymbolicTensor, Variable)) else s.dtype)
            for r, s in zip(results, specs)
        ]
    for spec, output in zip(specs, outputs):
        _check_variable(spec, output)
    outers = captured_by([cond_trace, body_trace])
    condition = Body(cond_trace, [*cond_inputs, *capture_placeholders(cond_trace, outers)], [test])
    iteration = Body(body_trace, [*body_inputs, *capture_placeholders(body_trace, outers)], outputs)
    variables = tuple(trace.to_tensor(v) for v in initials())
    captured = tuple(outer if isinstance(outer, Variable) else trace.to_tensor(outer) for outer in outers)
    attrs = {"cond": condition.graph(), "body": iteration.graph()}
    plain = [TensorSpec(s.shape, s.dtype) for s in specs]
    loop: Any = While
    record: Any = control_record(loop.name)
    return trace.record_control(record, loop, [variables, captured], attrs, plain, name)


def _check_variable(spec: TensorSpec, output: SymbolicTensor) -> None:
    if output.dtype is not spec.dtype:
        raise TypeError(
            f"Loop variable {spec.name!r} enters the loop with dtype {spec.dtype.name}, but has dtype "
            f"{output.dtype.name} after one iteration. It must keep its dtype: use ow.cast."
        )
    if not output.shape.is_subtype_of(spec.shape):
        raise ValueError(
            f"Input tensor {spec.name!r} enters the loop with shape {spec.shape}, but has shape {output.shape} after "
            "one iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )


def reachable_inputs(body: Body, operands: Sequence[Any], targets: Sequence[Any]) -> list[int]:
    """Return the indices of the inputs that gradients of the targets may reach.

    operands: the node's operand for each input; the gradient of a variable is accumulated for the variable.
    """
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule:
            continue  # differentiation ends here, by declaration
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    indices = []
    for i, (operand, placeholder) in enumerate(zip(operands, body.inputs)):
        source = operand if isinstance(operand, Variable) else placeholder
        handle = operand.dtype.name == "resource" and not isinstance(operand, Variable)
        if id(source) in live and is_trainable(source.dtype) and not handle:
            indices.append(i)
    return indices


_IDENTITIES = frozenset({"Identity", "ReadVariable"})


def is_sparse(body: Body, source: Any, targets: Sequence[Any]) -> bool:
    """Return whether gradients of the targets reach a source (input or variable) as sparse rows, if at all."""
    shape = source.shape
    if not shape.rank or not shape[1:].is_fully_defined():
        return False  # an empty gradient requires a known row size
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    tables = {id(source)}
    for record in body.trace.recorder.records:
        if not any(id(x) in tables for x in record.inputs) or not any(id(y) in live for y in record.outputs):
            continue
        if type(record) is OpRecord and record.op.name in _IDENTITIES:
            tables.update(id(y) for y in record.outputs)
        elif type(record) is not OpRecord or not _is_lookup(record, tables):
            return False
    return not any(id(t) in tables for t in targets)


def _is_lookup(record: OpRecord, tables: set[int]) -> bool:
    """Return whether a call uses a table only to look up rows."""
    if any(id(x) in tables for x in record.inputs[1:]):
        return False
    if record.op.name == "EmbeddingRows":
        return True
    call: Any = record.bound
    result: bool = record.op.name == "Gather" and call.axis == 0 and call.batch_dims == 0
    return result


def parts(grad: Any, operand: Any) -> list[Any]:
    """Return a gradient as values and int64 indices; empty ones for a missing gradient."""
    if grad is None:
        return [array.zeros([0, *operand.shape[1:]], operand.dtype), array.zeros([0], "int64")]
    if not isinstance(grad, IndexedSlices):  # all rows
        return [grad, array.range(array.shape(grad, "int64")[0])]
    return [grad.values, array.cast(grad.indices, "int64")]


def part_specs(operand: Any) -> list[TensorSpec]:
    """Return the specs of these parts."""
    return [TensorSpec([None, *operand.shape[1:]], operand.dtype), TensorSpec([None], "int64")]


def sparse_rows(values: Any, indices: Any, operand: Any) -> IndexedSlices:
    """Return the gradient with these parts."""
    shape = operand.shape
    return IndexedSlices(values, indices, dims_tensor(shape) if shape.is_fully_defined() else array.shape(operand))
