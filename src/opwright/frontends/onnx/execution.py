"""Execution of ONNX graphs by rules: nodes in order, subgraphs, model functions, the standard's own definitions.

Lives here: `RULES`, the table; `GraphContext`, which rules receive; `ValueRequired`.
Not here: rules (rules/), files (files.py), the inputs and outputs of a model (model.py).

A node is executed by, in this order: the user's operator (`custom`), a rule, a function of the model, or the function
by which the standard itself defines the operator (`onnx.defs`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.lazy_imports import import_module
from ...ops.tensor import TensorLike
from ..importing import RuleTable, known, scope
from ..missing_operators import ForeignCall, MissingOperators, spec_text
from .files import DTYPES, TensorReader, onnx_module
from .operands import dtype_of

RULES = RuleTable("onnx")
FAMILIES = (
    "arithmetic",
    "arrays",
    "classical",
    "contrib",
    "control_flow",
    "convolution",
    "images",
    "indexing",
    "normalization",
    "pooling",
    "quantization",
    "random",
    "recurrent",
    "reduction",
    "sequences",
    "signal",
    "strings",
    "support_vectors",
    "training",
    "trees",
)
NEWEST = 28
"""The latest opset of ai.onnx that the rules know."""
MAX_DEPTH = 64
"""Greatest nesting of subgraphs and functions; a file may declare a function that calls itself."""
MAX_NODES = 1 << 20
"""Greatest number of nodes with functions written out: each of 40 functions may call the one before it twice."""


def load_rules() -> RuleTable:
    """Return the table, complete."""
    for family in FAMILIES:
        import_module(f".rules.{family}", __package__)
    return RULES


class ValueRequired(InvalidArgumentError):
    """Raised by a rule for a value that must be known at import. inputs: the model's inputs that it depends on."""

    inputs: frozenset[str] = frozenset()


def operator_name(node: Any) -> str:
    """Return the name of a node's operator as in the table: "Conv", "com.microsoft::Gelu"."""
    domain = "" if node.domain in ("", "ai.onnx") else node.domain
    return f"{domain}::{node.op_type}" if domain else str(node.op_type)


class OnnxProgram:
    """The shared part of all contexts of a model: its functions, its versions, custom operators.

    versions: the opset of each domain. functions: FunctionProtos by operator name.
    """

    def __init__(self, model: Any, reader: TensorReader, custom: Mapping[str, Any] | None) -> None:
        self.rules = load_rules()
        self.reader, self.custom = reader, dict(custom or {})
        self.constants = reader.initializers(model.graph, main=True)  # once: all traces have the same arrays
        self.versions = versions_of(model.opset_import)
        if not 1 <= self.versions.get("", 1) <= NEWEST:  # what operators of a later version mean is not known
            raise InvalidArgumentError(
                op="from_onnx", what="no such opset", found=self.versions[""], wanted=f"1 to {NEWEST}"
            )
        self.ir_version = model.ir_version
        self.functions = {}
        for function in model.functions:
            domain = "" if function.domain in ("", "ai.onnx") else function.domain
            self.functions[f"{domain}::{function.name}" if domain else function.name] = function
        self._check_size(model.graph)

    def _check_size(self, graph: Any) -> None:
        """Raise InvalidArgumentError for functions that call each other too deep or too often."""
        sizes: dict[str, int] = {}

        def size_of(body: Any, depth: int) -> int:
            if depth > MAX_DEPTH:
                raise InvalidArgumentError(op="from_onnx", what="functions call each other too deep, or subgraphs are")
            total = 0
            for node in body.node:
                name = operator_name(node)
                if name in self.functions and name not in self.custom:
                    if name not in sizes:
                        sizes[name] = size_of(self.functions[name], depth + 1)
                    total += sizes[name]
                for attribute in node.attribute:
                    for subgraph in (*([attribute.g] if attribute.type == 5 else ()), *attribute.graphs):
                        total += size_of(subgraph, depth + 1)
                total += 1
            return total

        if self.functions and (nodes := size_of(graph, 0)) > MAX_NODES:
            raise InvalidArgumentError(
                op="from_onnx", what="the model's functions call each other too often", found=f"{nodes} nodes"
            )

    def standard_function(
        self, node: Any, versions: Mapping[str, int], inputs: Sequence[Any]
    ) -> tuple[Any | None, dict[str, Any]]:
        """Return the FunctionProto by which the standard defines an operator, or None, and default attributes.

        inputs: of the call; some definitions depend on their types
        """
        schema = self._schema(node, versions)
        if schema is None:
            return None, {}
        version = versions.get("" if node.domain == "ai.onnx" else node.domain, 1)
        defaults = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.type}
        if not schema.has_context_dependent_function:
            return (schema.function_body if schema.has_function else None), defaults
        supported = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if not supported:
            return None, {}
        content = schema.get_context_dependent_function_with_opset_version(
            max(supported), node.SerializeToString(), [type_bytes(v) for v in inputs]
        )
        function = onnx_module().FunctionProto()
        function.ParseFromString(content)
        return (function if content else None), defaults

    def _schema(self, node: Any, versions: Mapping[str, int]) -> Any:
        onnx = onnx_module()
        domain = "" if node.domain == "ai.onnx" else node.domain
        try:
            return onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
        except onnx.defs.SchemaError:  # no operator of this name and version
            return None

    def check_operands(self, node: Any, versions: Mapping[str, int], inputs: Sequence[Any]) -> None:
        """Raise InvalidArgumentError for operands of another number or of other types than the standard lets be."""
        schema = self._schema(node, versions)
        if schema is None:
            return
        if not schema.min_input <= len(inputs) <= schema.max_input:
            raise InvalidArgumentError(
                op=operator_name(node),
                node=node.name or None,
                what="wrong number of inputs",
                found=len(inputs),
                wanted=f"{schema.min_input} to {schema.max_input}",
            )
        dtypes: dict[str, tuple[str, Any]] = {}
        variables, same = schema_variables(schema)
        for i, value in enumerate(inputs):
            variable = variables[min(i, len(variables) - 1)] if variables else ""
            if not variable or value is None or isinstance(value, (list, tuple)):
                continue
            if i >= len(variables) and not same:
                break
            first = dtypes.setdefault(variable, (node.input[i], dtype_of(value)))
            if first[1] is not dtype_of(value):
                raise InvalidArgumentError(
                    op=operator_name(node),
                    node=node.name or None,
                    what=f"inputs {first[0]!r} and {node.input[i]!r} have different types",
                    found=f"{first[1].name} and {dtype_of(value).name}",
                )

    def has_standard_function(self, node: Any) -> bool:
        """Return whether the standard defines an operator by others."""
        schema = self._schema(node, self.versions)
        return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)

    def calls(self, graph: Any, names: Mapping[str, str], depth: int = 0) -> Iterator[ForeignCall]:
        """Yield the calls of a graph and its subgraphs that need a rule. names: types of values, for errors."""
        if depth > MAX_DEPTH:
            raise InvalidArgumentError(op="from_onnx", what="subgraphs are nested too deep", found=depth)
        for node in getattr(graph, "node", ()):
            name = operator_name(node)
            for attribute in node.attribute:
                for subgraph in (*([attribute.g] if attribute.type == 5 else ()), *attribute.graphs):
                    yield from self.calls(subgraph, names, depth + 1)
            if name not in self.functions and (name in self.custom or not self.has_standard_function(node)):
                inputs = tuple((n, names.get(n, "...")) for n in node.input)
                yield ForeignCall(name, node.name, inputs, self._plain(node), len(node.output))

    def _plain(self, node: Any) -> dict[str, Any]:
        numbers = {a.name: attribute_value(a, self.reader) for a in node.attribute if a.type in (1, 2, 3, 6, 7, 8)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in numbers.items()}


def versions_of(imports: Any) -> dict[str, int]:
    """Return opset versions by domain; "" is ai.onnx."""
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}


@functools.cache
def _variables_of(name: str, domain: str, version: int) -> tuple[tuple[str, ...], bool]:
    schema = onnx_module().defs.get_schema(name, version, domain)
    constraints = {c.type_param_str for c in schema.type_constraints}
    names = tuple(i.type_str if i.type_str in constraints else "" for i in schema.inputs)
    return names, not schema.inputs or schema.inputs[-1].is_homogeneous


def schema_variables(schema: Any) -> tuple[tuple[str, ...], bool]:
    """Return the type variable of each input of an operator, "" without one, and whether repeated inputs share it."""
    return _variables_of(schema.name, schema.domain, schema.since_version)


def type_bytes(value: Any) -> bytes:
    """Return the type of a value as a serialised TypeProto; an empty one for an absent value."""
    onnx = onnx_module()
    result = onnx.TypeProto()
    if isinstance(value, (list, tuple)):
        result.sequence_type.elem_type.ParseFromString(type_bytes(value[0]) if value else b"")
    elif value is not None:
        codes = {d: c for c, d in DTYPES.items()}
        tensor = value if isinstance(value, TensorLike) else np.asarray(value)
        result.tensor_type.elem_type = codes[dtype_of(value)]
        shape = list(tensor.shape) if getattr(tensor.shape, "rank", 0) is not None else None
        if shape is not None:
            for size in shape:
                dim = result.tensor_type.shape.dim.add()
                if size is not None:
                    dim.dim_value = int(size)
    content: bytes = result.SerializeToString()
    return content


def attribute_value(attribute: Any, reader: TensorReader) -> Any:
    """Return an AttributeProto as a Python value: numbers, texts, arrays, GraphProtos, tuples of such."""
    match attribute.type:
        case 1:
            return float(attribute.f)
        case 2:
            return int(attribute.i)
        case 3:
            return attribute.s.decode("utf-8", "surrogateescape")
        case 4:
            return reader.array(attribute.t)
        case 5:
            return attribute.g
        case 6:
            return tuple(attribute.floats)
        case 7:
            return tuple(attribute.ints)
        case 8:
            return tuple(s.decode("utf-8", "surrogateescape") for s in attribute.strings)
        case 9:
            return tuple(reader.array(t) for t in attribute.tensors)
        case 10:
            return tuple(attribute.graphs)
        case 11:
            return reader.sparse(attribute.sparse_tensor)
        case 13:
            return attribute.tp
    raise InvalidArgumentError(
        op="from_onnx", node=attribute.name, what="an attribute has an unknown type", found=attribute.type
    )


class UnrolledNodes:
    """The number of nodes that loops of one execution of a model were written out to."""

    nodes: int = 0


class GraphContext:
    """One graph, or function body, while it is executed; what rules receive.

    program: the shared part. versions: the opsets of this graph. outer: the context of the enclosing graph.
    node, outputs: the current node, and which of its outputs are used.
    """

    def __init__(
        self,
        program: OnnxProgram,
        versions: Mapping[str, int],
        outer: GraphContext | None = None,
        attributes: Mapping[str, Any] | None = None,
        prefix: str = "",
    ) -> None:
        self.program, self.versions, self.outer, self.prefix = program, versions, outer, prefix
        self.attributes = dict(attributes or {})  # AttributeProtos of the call, in a function's body
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.values: dict[str, Any] = {}
        self.sources: dict[int, frozenset[str]] = {} if outer is None else outer.sources
        self.unrolled: UnrolledNodes = UnrolledNodes() if outer is None else outer.unrolled
        self.node: Any = None
        if self.depth > MAX_DEPTH:
            raise InvalidArgumentError(op="from_onnx", what="subgraphs and functions are nested too deep")

    # ---- what rules ask ------------------------------------------------------------------------------------------

    @property
    def opset(self) -> int:
        """The version of the current node's domain."""
        domain = "" if self.node is None or self.node.domain == "ai.onnx" else self.node.domain
        return self.versions.get(domain, 1)

    def wants(self, position: int) -> bool:
        """Return whether the current node has a name for this output."""
        return position < len(self.node.output) and bool(self.node.output[position])

    def required(self, value: Any, what: str) -> np.ndarray:
        """Return a value that must be known at import. Raises ValueRequired."""
        array = known(value)
        if array is None:
            error = ValueRequired(
                op=operator_name(self.node),
                node=self.node.name or None,
                what=f"{what} must be known at import: it becomes a part of the graph",
                found="a value that depends on the model's inputs",
                do="values={...} of from_onnx for inputs that are always the same",
            )
            error.inputs = self.sources.get(id(value), frozenset())
            raise error
        return array

    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """Execute a subgraph of the current node, which sees the values of this graph; return its outputs."""
        inner = GraphContext(self.program, self.versions, self, self.attributes, self.prefix)
        names = [i.name for i in graph.input]
        if len(names) != len(inputs):
            raise InvalidArgumentError(
                op="from_onnx",
                node=graph.name,
                what="a subgraph takes another number of inputs",
                found=len(inputs),
                wanted=len(names),
            )
        inner.values.update(zip(names, inputs))
        inner.execute(graph)
        return [inner.value(o.name) for o in graph.output]

    # ---- execution -----------------------------------------------------------------------------------------------

    def value(self, name: str) -> Any:
        """Return the value of a name of this graph or an enclosing one. Raises InvalidArgumentError without one."""
        if not name:
            return None
        context: GraphContext | None = self
        while context is not None:
            if name in context.values:
                return context.values[name]
            context = context.outer
        raise InvalidArgumentError(
            op="from_onnx",
            node=self.node.name if self.node is not None else None,
            what="a value is used before a node computes it: nodes must be in order, without cycles",
            found=name,
        )

    def execute(self, graph: Any) -> None:
        """Execute the nodes of a GraphProto; initializers first."""
        program = self.program
        constants = program.constants if self.outer is None else program.reader.initializers(graph, main=False)
        self.values = constants | self.values
        self.execute_nodes(graph.node)

    def execute_nodes(self, nodes: Any) -> None:
        """Execute nodes in order, and name their results."""
        for node in nodes:
            self.node = node
            inputs = [self.value(n) for n in node.input]
            outputs = self._execute(node, inputs)
            sources = frozenset().union(*(self.sources.get(id(v), frozenset()) for v in inputs))
            for name, output in zip(node.output, outputs):
                if name:
                    if name in self.values:
                        raise InvalidArgumentError(
                            op=operator_name(node), node=node.name or None, what="two values of one name", found=name
                        )
                    self.values[name] = output
                    if sources:
                        self.sources.setdefault(id(output), sources)
            missing = [n for n in list(node.output)[len(outputs) :] if n]
            if missing:
                raise InvalidArgumentError(
                    op=operator_name(node), node=node.name or None, what="the operator has fewer outputs", found=missing
                )

    def _resolved(self, node: Any) -> Any:
        """Return a node of a function's body with the attributes of the call in place of references to them."""
        if not any(a.ref_attr_name for a in node.attribute):
            return node
        result = type(node)()
        result.CopyFrom(node)
        del result.attribute[:]
        for attribute in node.attribute:
            source = self.attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if source is not None:
                copy = result.attribute.add()
                copy.CopyFrom(source)
                copy.name = attribute.name
        return result

    def _execute(self, node: Any, inputs: list[Any]) -> list[Any]:
        name, program = operator_name(node), self.program
        label = "/".join(p for p in (self.prefix, node.name) if p)
        node = self.node = self._resolved(node)
        if name not in program.custom and name not in program.functions:
            program.check_operands(node, self.versions, inputs)
        attributes = {a.name: attribute_value(a, program.reader) for a in node.attribute}
        function = None if name in program.custom else program.functions.get(name)
        if function is None and program.rules.find(name, program.custom) is not None:
            return program.rules.apply(name, self, inputs, attributes, node=label, custom=program.custom)
        defaults = {a.name: a for a in function.attribute_proto} if function is not None else {}
        if function is None:
            function, defaults = program.standard_function(node, self.versions, inputs)
        if function is None:
            kinds = tuple((n, _type_text(v)) for n, v in zip(node.input, inputs))
            raise MissingOperators("onnx", {name: [ForeignCall(name, label, kinds, {}, len(node.output))]})
        return self._call(function, inputs, {**defaults, **{a.name: a for a in node.attribute}}, label, node.output)

    def _call(
        self, function: Any, inputs: Sequence[Any], attributes: Mapping[str, Any], label: str, wanted: Sequence[str]
    ) -> list[Any]:
        versions = {**self.versions, **versions_of(function.opset_import)}
        inner = GraphContext(self.program, versions, None, attributes, label)
        inner.depth, inner.sources, inner.unrolled = self.depth + 1, self.sources, self.unrolled
        if inner.depth > MAX_DEPTH:
            raise InvalidArgumentError(op=function.name, node=label or None, what="functions call each other too deep")
        padded = [*inputs, *[None] * (len(function.input) - len(inputs))]
        inner.values.update(zip(function.input, padded))
        with scope(label):
            inner.execute_nodes(function.node)
        asked = zip(function.output, [*wanted, *[""] * len(function.output)])  # a definition may leave others out
        return [inner.value(n) if name else None for n, name in asked]


def _type_text(value: Any) -> str:
    if value is None or isinstance(value, (list, tuple)):
        return "..."
    shape = value.shape
    return spec_text(value.dtype, None if getattr(shape, "rank", 0) is None else tuple(shape))
