"""Records of traced functions: a trace as a record in a manifest plus graphs in text, and back.

Lives here: `describe` and `rebuild`.  Not here: which traces are saved (saver.py), encoded arguments (json_files.py),
the text (graph/parser.py).

A record has

    name, graph             the function's name; the number of its graph, whose inputs are the arguments' tensors, then
                            the captures
    arguments, keywords     the positional arguments and those by name: encoded, with the types of tensors
    names                   the parameters' names of the positional arguments
    outputs                 the results' structure, with a tensor for each output of the graph
    captures                for each: {"variable": number of the object} or {"tensor": name}
    gradients               for each custom gradient: its inputs, outputs and captures, and the graph of its backward
                            function (inputs: gradients of the trainable outputs, then captures)
    silent                  nodes that block gradients, as they belong to a custom gradient
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ..core import nest
from ..core.errors import InvalidArgumentError, OpError
from ..core.type_spec import CompositeTensor, TypeSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph import Graph, Value
from ..graph.passes import dead_code
from ..ops import array, dispatch
from ..ops.autodiff import CustomRecord, OpRecord, is_trainable
from ..ops.indexed_slices import IndexedSlices
from ..tracing.concrete import ConcreteFunction
from ..tracing.control.body import rerecord
from ..tracing.program import Program, gradients_by_kind
from ..tracing.signature import SignatureContext, kind_of
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import FuncTrace
from ..tracing.trace_type import TracingContext
from . import json_files
from .json_files import JsonReader

state = dispatch.state
_log = logging.getLogger("opwright")


# ---- to records -----------------------------------------------------------------------------------------------------


class RecordWriter:
    """The parts of a saved model that `describe` writes to.

    variable: returns the number of a variable among the saved objects; tensor: stores an eager tensor and returns its
    name; both raise for values that cannot be saved. graphs: those of all records.
    """

    def __init__(self, variable: Callable[[Variable, str], int], tensor: Callable[[EagerTensor, str], str]) -> None:
        self.variable, self.tensor = variable, tensor
        self.graphs: list[Graph] = []

    def add(self, graph: Graph) -> int:
        """Store a graph; return its number."""
        self.graphs.append(graph)
        return len(self.graphs) - 1

    def capture(self, outer: Any, user: str) -> dict[str, Any]:
        """Return the entry of a captured value."""
        if isinstance(outer, Variable):
            return {"variable": self.variable(outer, user)}
        if isinstance(outer, EagerTensor) and not outer.dtype.is_handle:
            return {"tensor": self.tensor(outer, user)}
        if isinstance(outer, EagerTensor):
            what, do = f"a {type(outer._array).__name__}", "create it inside the function, or pass it as an argument"
        else:
            what = f"{outer} of the function {outer.trace.name!r}"
            do = "save the outer function, or pass it as an argument"
        raise InvalidArgumentError(what=f"function {user!r} captured {what}, which cannot be saved", do=do)


def describe(concrete: ConcreteFunction, writer: RecordWriter) -> dict[str, Any]:
    """Return the record of a trace; add its graphs to the writer.

    raises json_files.NotEncodable for arguments that cannot be encoded, InvalidArgumentError for captures that cannot
    be saved
    """
    trace = concrete.program.trace
    args, kwargs = concrete.structured_input_signature

    def variable(v: Variable) -> int:
        return writer.variable(v, concrete.name)

    record: dict[str, Any] = {
        "name": concrete.name,
        "arguments": [json_files.encode(a, variable) for a in args],
        "keywords": {k: json_files.encode(v, variable) for k, v in kwargs.items()},
        "names": list(concrete._names),
        "outputs": json_files.encode(nest.map_structure(_type_of_result, concrete.structured_outputs)),
        "captures": [writer.capture(outer, concrete.name) for outer in concrete.captured_inputs],
    }
    gradients, needed = _describe_gradients(trace, writer)
    inputs = [t.value_in_graph for t in concrete.inputs]
    outputs = [t.value_in_graph for t in concrete.outputs]
    live, _ = dead_code(Graph(trace.builder.name, inputs, trace.builder.nodes, [*outputs, *needed]))
    record["graph"] = writer.add(Graph(trace.builder.name, inputs, live.nodes, outputs))
    if gradients:
        record["gradients"] = gradients
        recorded = {y.value_in_graph for r in trace.recorder.records if isinstance(r, OpRecord) for y in r.outputs}
        record["silent"] = [
            n.name for n in live.nodes if n.op.name != "Const" and n.outputs and not recorded.intersection(n.outputs)
        ]
    return record


def _type_of_result(value: Any) -> object:
    return value._type_spec if isinstance(value, CompositeTensor) else value


def _describe_gradients(trace: FuncTrace, writer: RecordWriter) -> tuple[list[dict[str, Any]], list[Value]]:
    """Return the records of custom gradients, and the values that their backward graphs read."""
    entries: list[dict[str, Any]] = []
    needed: list[Value] = []
    for record in trace.recorder.records:
        if isinstance(record, OpRecord):
            continue
        try:
            entry, reads = _describe_gradient(trace, record, writer)
        except Exception as error:  # the user's function may raise any error
            _log.warning("function %s: a custom gradient cannot be saved and is left out: %s", trace.name, error)
            continue
        entries.append(entry)
        needed += reads
    return entries, needed


def _describe_gradient(
    trace: FuncTrace, record: CustomRecord, writer: RecordWriter
) -> tuple[dict[str, Any], list[Value]]:
    back = FuncTrace(f"{trace.name}_gradient", parent=trace)
    outs: list[SymbolicTensor] = []
    kinds: list[str | None] = []
    with back.recording():
        dys = [back.placeholder(y.spec, "dy") if is_trainable(y.dtype) else None for y in record.outputs]
        for grad in record.backward(dys):
            kinds.append(None if grad is None else "sparse" if isinstance(grad, IndexedSlices) else "dense")
            if isinstance(grad, IndexedSlices):
                outs += [back.to_tensor(x) for x in (grad.values, grad.indices, grad.dense_shape)]
            elif grad is not None:
                outs.append(back.to_tensor(grad))
    values = [t.value_in_graph for t in outs]
    live, _ = dead_code(Graph(back.builder.name, (), back.builder.nodes, values))
    read = {v for node in live.nodes for v in node.operands} | set(values)
    captured = [(outer, p.value_in_graph) for outer, p in back.captures.values() if p.value_in_graph in read]
    reads: list[Value] = []

    def refer(x: Any) -> str | dict[str, Any]:
        if isinstance(x, SymbolicTensor):
            if x.trace is not trace:
                raise InvalidArgumentError(what=f"it uses {x}, which is not a tensor of this function")
            reads.append(x.value_in_graph)
            return x.value_in_graph.name
        return writer.capture(x, trace.name)

    inputs = [refer(x) for x in record.inputs]
    outputs = [refer(y) for y in record.outputs]
    captures = [refer(outer) for outer, _ in captured]
    arguments = [dy.value_in_graph for dy in dys if dy is not None]
    graph = Graph(back.builder.name, [*arguments, *(v for _, v in captured)], live.nodes, values)
    entry = {"inputs": inputs, "outputs": outputs, "captures": captures, "results": kinds, "graph": writer.add(graph)}
    return entry, reads


# ---- from records ---------------------------------------------------------------------------------------------------


class RecordReader:
    """The parts of a saved model that `rebuild` reads: variables of its objects, tensors, and graphs."""

    def __init__(
        self,
        reader: JsonReader,
        variable: Callable[[Any], Variable],
        tensor: Callable[[Any], EagerTensor],
        graphs: Sequence[Graph],
    ) -> None:
        self.reader, self.variable, self.tensor, self.graphs = reader, variable, tensor, graphs
        self.decoder = json_files.Decoder(reader, variable)

    def capture(self, entry: Any) -> Variable | EagerTensor:
        """Return the captured value of a record's entry."""
        if type(entry) is dict and len(entry) == 1:
            if "variable" in entry:
                return self.variable(entry["variable"])
            if "tensor" in entry:
                return self.tensor(entry["tensor"])
        raise self.reader.fail("a capture is neither a variable nor a tensor", entry)

    def graph(self, number: Any) -> Graph:
        """Return a graph by its number."""
        return self.graphs[self.reader.index(number, self.graphs, "graphs")]


def rebuild(
    record: Any, parts: RecordReader, signature: Any, make: type[ConcreteFunction] = ConcreteFunction
) -> ConcreteFunction:
    """Return the trace of a record. signature: the Python parameters of its function.

    raises DataLossError if the record does not match its graph
    """
    read = parts.reader
    name = read.get(record, "name", str)
    graph = parts.graph(read.get(record, "graph", int))
    args = read.each(record, "arguments", parts.decoder.decode)
    kwargs = {k: parts.decoder.decode(v) for k, v in read.get(record, "keywords", dict).items()}
    names = read.each(record, "names", lambda n: read.of(n, str, "a parameter's name"))
    captured = read.each(record, "captures", parts.capture)
    try:
        kind, named = kind_of(args, kwargs, TracingContext()), kind_of(args, kwargs, SignatureContext())
        specs = kind.flatten()
    except (TypeError, ValueError) as error:
        raise read.fail(f"function {name!r} has arguments of no type: {str(error)[:200]}") from None
    if len(names) != len(args) or len(graph.inputs) != len(specs) + len(captured):
        raise read.fail(
            f"function {name!r} has {len(specs)} tensors as arguments and {len(captured)} captures, "
            f"its graph {len(graph.inputs)} inputs"
        )
    for value, spec in zip(graph.inputs, specs):
        if value.dtype is not spec.dtype or not spec.shape.is_subtype_of(value.shape):
            raise read.fail(f"function {name!r}: its graph takes {value!r} for an argument {spec.short()}")
    trace = FuncTrace(graph.name)
    tensors: dict[Value, Any] = {}
    with trace.recording():
        for value in graph.inputs[: len(specs)]:
            tensors[value] = trace.placeholder(value.spec, value.name)
        _add_captures(trace, graph.inputs[len(specs) :], captured, tensors, parts)
        _replay_nodes(trace, graph, record, tensors, parts)
        results = [trace.to_tensor(tensors[v]) for v in graph.outputs]
    form = parts.decoder.decode(record.get("outputs"))
    return make(Program(trace, results), name, kind, named, _pack_results(form, results, parts, name), names, signature)


def _add_captures(
    trace: FuncTrace, inputs: Sequence[Value], captured: Sequence[Any], tensors: dict[Value, Any], parts: RecordReader
) -> None:
    for value, outer in zip(inputs, captured):
        if (value.dtype.name == "resource") is not isinstance(outer, Variable):
            raise parts.reader.fail(f"graph {trace.name!r} takes {value!r} for a capture of another kind")
        if isinstance(outer, EagerTensor) and not outer.spec.is_subtype_of(value.spec):
            raise parts.reader.fail(f"graph {trace.name!r} takes {value!r} for a tensor {outer.spec.short()}")
        placeholder = trace.capture(outer)
        tensors[value] = outer if isinstance(outer, Variable) else placeholder


def _replay_nodes(trace: FuncTrace, graph: Graph, record: Any, tensors: dict[Value, Any], parts: RecordReader) -> None:
    """Record the graph's nodes, and the custom gradients between them."""
    read = parts.reader
    entries = read.get(record, "gradients", list, [])
    if not entries:
        rerecord(trace, graph, tensors)
        return
    silent = set(read.each(record, "silent", lambda n: read.of(n, str, "a node's name")))
    named = {v.name: v for v in graph.values()}
    waiting: dict[Value, list[tuple[Any, list[Value]]]] = {}
    for entry in entries:
        names = read.get(entry, "outputs", list)
        outputs = [named[n] for n in names if type(n) is str and n in named]
        if not outputs or len(outputs) < len(names):
            raise read.fail("a custom gradient names outputs that are not in its graph", entry.get("outputs"))
        last = max((i for i, n in enumerate(graph.nodes) for v in outputs if v in n.outputs), default=None)
        if last is None:
            raise read.fail("a custom gradient is one of arguments", entry.get("outputs"))
        waiting.setdefault(graph.nodes[last].outputs[0], []).append((entry, outputs))
    for node in graph.nodes:
        single = Graph(graph.name, (), (node,), ())
        if node.name in silent:
            saved, state.tapes = state.tapes, ()
            try:
                rerecord(trace, single, tensors)
            finally:
                state.tapes = saved
        else:
            rerecord(trace, single, tensors)
        for entry, outputs in waiting.get(node.outputs[0], ()) if node.outputs else ():
            trace.recorder.record(_gradient(trace, entry, outputs, named, tensors, parts))


def _gradient(
    trace: FuncTrace,
    entry: Any,
    outputs: Sequence[Value],
    named: dict[str, Value],
    tensors: dict[Value, Any],
    parts: RecordReader,
) -> CustomRecord:
    """Return the record of a custom gradient."""
    read = parts.reader

    def refer(form: Any) -> object:
        if type(form) is not str:
            return parts.capture(form)
        value = named.get(form)
        if value is None or value not in tensors:
            raise read.fail("a custom gradient names a value that is not in its graph, or not yet defined", form)
        return tensors[value]

    inputs, captured = read.each(entry, "inputs", refer), read.each(entry, "captures", refer)
    kinds = read.get(entry, "results", list)
    graph = parts.graph(read.get(entry, "graph", int))
    ys = [tensors[v] for v in outputs]
    trainable = [y for y in ys if is_trainable(y.dtype)]
    count = sum({"dense": 1, "sparse": 3}.get(k, 0) for k in kinds)
    if len(graph.inputs) != len(trainable) + len(captured) or len(graph.outputs) != count or len(kinds) != len(inputs):
        raise read.fail("a custom gradient does not fit its graph")
    back = FuncTrace(graph.name, parent=trace)
    inner: dict[Value, Any] = {}
    with back.recording():
        for value in graph.inputs[: len(trainable)]:
            inner[value] = back.placeholder(value.spec, value.name)
        for value, outer in zip(graph.inputs[len(trainable) :], captured):
            placeholder = back.capture(outer)
            inner[value] = outer if isinstance(outer, Variable) else placeholder
        rerecord(back, graph, inner)
        outs = [back.to_tensor(inner[v]) for v in graph.outputs]
    program = Program(back, outs)

    def backward(dys: Sequence[Any]) -> list[Any]:
        gradients = []
        for dy, y in zip(dys, ys):
            if is_trainable(y.dtype):
                dy = dy.to_dense() if isinstance(dy, IndexedSlices) else dy
                gradients.append(array.zeros_like(y) if dy is None else dy)
        flat = iter(program.call(gradients))
        return gradients_by_kind(kinds, flat)

    return CustomRecord(inputs, ys, backward)


def _pack_results(form: Any, outs: Sequence[SymbolicTensor], parts: RecordReader, name: str) -> object:
    """Return the results' structure filled with the graph's outputs."""
    remaining = iter(outs)
    leaves = nest.flatten(form)
    try:
        filled = [
            leaf.from_tensors(remaining) if isinstance(leaf, TypeSpec) else _require_none(leaf) for leaf in leaves
        ]
        if next(remaining, None) is not None:
            raise ValueError("more outputs than its results have tensors")
        return nest.pack_sequence_as(form, filled)
    except StopIteration:
        raise parts.reader.fail(f"the graph of function {name!r} has too few outputs") from None
    except (TypeError, ValueError, OpError) as error:
        raise parts.reader.fail(f"function {name!r}: its results do not fit its graph: {error}") from None


def _require_none(leaf: Any) -> object:
    """Return the leaf, which must be None, as for results without a tensor. Raises ValueError otherwise."""
    if leaf is not None:
        raise ValueError(f"a result is {type(leaf).__name__}")
    return leaf
