"""Export: graphs of the lite dialect become a `format.Model`.

Lives here: subgraphs, tensors, buffers, operators, operator codes, signatures and metadata of the file.
Not here: which operators stand for what (rules/), the bytes (format/writer.py), version rules (format/versions.py).

Order in the file is that of the graph, and nothing in it depends on addresses or clocks: equal graphs give equal bytes.
The graphs of signatures come first, then those that nodes hold, nearest first (`all_graphs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...graph import Graph, Node, Value
from ...graph.ir import Operand, flat, unused
from ..format import Model, objects, pack_strings, schema, versions
from ..format.flex import encode_options
from ..ops import types
from ..ops.definition import LiteOperator
from .custom import CustomNode, custom_options, in_least_version
from .errors import ConverterError, Offender, report
from .foreign import Foreign

FLEXBUFFERS = 0  # CustomOptionsFormat


class Signature(NamedTuple):
    """How a caller knows one subgraph: its key, and a name for each input and output, in order."""

    key: str
    inputs: Sequence[str]
    outputs: Sequence[str]


def export(
    graphs: Sequence[Graph],
    signatures: Sequence[Signature],
    *,
    description: str,
    custom_version_in: str = "code",
) -> Model:
    """The file's contents: a subgraph and a signature for each graph, versions stamped.

    raises ConverterError for what the format has no place for: types of tensors, attributes of custom operators
    """
    exporter = _Exporter(custom_version_in, everything := all_graphs(graphs))
    subgraphs = [exporter.subgraph(graph) for graph in everything]
    if exporter.offenders:
        raise report(exporter.offenders)
    definitions = [
        objects.SignatureDef(
            signature_key=signature.key, subgraph_index=i,
            inputs=_tensor_maps(signature.inputs, subgraph.inputs),
            outputs=_tensor_maps(signature.outputs, subgraph.outputs),
        )
        for i, (signature, subgraph) in enumerate(zip(signatures, subgraphs))
    ]  # fmt: skip
    model = Model(operator_codes=exporter.codes, subgraphs=subgraphs, buffers=exporter.buffers,
                  description=description, signature_defs=definitions)  # fmt: skip
    versions.stamp_model(model)
    runtime = versions.metadata_of(versions.min_runtime_of_model(model))
    model.metadata.append(objects.Metadata(name=versions.METADATA_NAME, buffer=exporter.buffer(runtime)))
    return model


def all_graphs(graphs: Sequence[Graph]) -> list[Graph]:
    """The graphs and those that their nodes hold, each once, in the order of the file's subgraphs."""
    found = dict.fromkeys(graphs)
    level = list(found)
    while level:
        level = [inner for graph in level for node in graph.nodes for inner in node.subgraphs]
        level = [graph for graph in dict.fromkeys(level) if graph not in found]
        found.update(dict.fromkeys(level))
    return list(found)


def _tensor_maps(names: Sequence[str], indices: Sequence[int]) -> list[Any]:
    return [objects.TensorMap(name=name, tensor_index=int(i)) for name, i in zip(names, indices)]


class _Exporter:
    """What all subgraphs share: buffers and operator codes."""

    def __init__(self, custom_version_in: str, graphs: Sequence[Graph]) -> None:
        self.custom_version_in = custom_version_in
        self.place = {graph: i for i, graph in enumerate(graphs)}
        self.names: set[str] = set()
        self.buffers: list[Any] = [objects.Buffer()]  # by convention the first is empty
        self.codes: list[Any] = []
        self.offenders: list[Offender] = []
        self._buffer_of: dict[bytes, int] = {}
        self._code_of: dict[tuple[str, int], int] = {}

    def buffer(self, contents: bytes) -> int:
        """The index of the buffer with these bytes."""
        index = self._buffer_of.get(contents)
        if index is None:
            index = self._buffer_of[contents] = len(self.buffers)
            self.buffers.append(objects.Buffer(data=np.frombuffer(contents, np.uint8)))
        return index

    def code(self, node: Node, version: int = 1) -> int:
        """The index of the operator code; builtins share one each, customs one for each version."""
        lite = isinstance(node.op, LiteOperator)
        key = (node.op.name if lite else f"custom {node.op.name}", version)
        index = self._code_of.get(key)
        if index is None:
            index = self._code_of[key] = len(self.codes)
            name = node.op.name
            self.codes.append(versions.operator_code(name) if lite else versions.operator_code("CUSTOM", version, name))
        return index

    def subgraph(self, graph: Graph) -> Any:
        index: dict[Value, int] = {}
        tensors: list[Any] = []
        operators: list[Any] = []

        def add(value: Value) -> None:
            index[value] = len(tensors)
            tensors.append(self.tensor(value))

        for value in graph.inputs:
            add(value)
        read = _values_read(graph)
        for node in graph.nodes:
            custom = None if _is_const(node) or isinstance(node.op, LiteOperator) else in_least_version(node, read)
            for value in node.outputs if custom is None else custom.outputs:
                add(value)
            if custom is not None:
                operators.append(self.custom(node, custom, index))
            elif not _is_const(node):
                operators.append(self.builtin(node, index))
        return objects.SubGraph(
            tensors=tensors, operators=operators, name=unused(graph.name, self.names),
            inputs=np.array([index[v] for v in graph.inputs], np.int32),
            outputs=np.array([index[v] for v in graph.outputs], np.int32),
        )  # fmt: skip

    def tensor(self, value: Value) -> Any:
        dims = value.spec.shape.dims
        if value.node is not None and value.node.op.name in UNRANKED and None in (dims or ()):
            dims = None
        tensor = objects.Tensor(name=value.name, type=_tensor_type(value), has_rank=dims is not None)
        if dims is not None:
            tensor.shape = np.array([1 if d is None else d for d in dims], np.int32)
            if None in dims:
                tensor.shape_signature = np.array([-1 if d is None else d for d in dims], np.int32)
        constant = value.constant
        if constant is not None:
            tensor.buffer = self.buffer(contents_of(constant, value.spec))
        return tensor

    def builtin(self, node: Node, index: Mapping[Value, int]) -> Any:
        inputs = _indices(node.inputs, index)
        while inputs and inputs[-1] == -1 and node.op.name not in KEEP_ABSENT:
            inputs.pop()  # optional operands that are left out at the end are not written at all
        operator = objects.Operator(
            opcode_index=self.code(node),
            inputs=np.array(inputs, np.int32),
            outputs=np.array([index[v] for v in node.outputs], np.int32),
        )
        _set_builtin_options(operator, node, self.place.__getitem__)
        return operator

    def custom(self, node: Node, custom: CustomNode, index: Mapping[Value, int]) -> Any:
        inside = self.custom_version_in == "options"
        operator = objects.Operator(
            opcode_index=self.code(node, 1 if inside else custom.version),
            inputs=np.array(_indices(custom.inputs, index), np.int32),
            outputs=np.array([index[v] for v in custom.outputs], np.int32),
            custom_options_format=FLEXBUFFERS,
        )
        if isinstance(node.op, Foreign):
            operator.custom_options = np.frombuffer(node.op.options, np.uint8)
            return operator
        try:
            options = custom_options(node, custom.version, version_inside=inside)
            operator.custom_options = np.frombuffer(encode_options(options), np.uint8)
        except InvalidArgumentError as error:
            self.offenders.append(Offender(node, (error.message.splitlines()[0],), custom=False))
        return operator


def _is_const(node: Node) -> bool:
    return node.op.name == "Const"


def _values_read(graph: Graph) -> Callable[[Value], bool]:
    """Whether a node of the graph reads a value, or it is an output of the graph."""
    return {*(v for node in graph.nodes for v in node.operands), *graph.outputs}.__contains__


def _indices(operands: Sequence[Operand], index: Mapping[Value, int]) -> list[int]:
    return [-1 if v is None else index[v] for v in flat(operands)]


UNRANKED = ("READ_VARIABLE",)  # the official kernel gives another shape than the file's only where the file has none
KEEP_ABSENT = ("FULLY_CONNECTED",)  # with two inputs it is version 6, with an absent third version 1


def _tensor_type(value: Value) -> Any:
    try:
        return schema.enum("TensorType")[types.name_of(value.dtype)]
    except InvalidArgumentError as error:
        node = value.node
        raise ConverterError(op=node.op.name if node else None, node=value.name, at=node.at if node else None,
                             what=error.message, found=value.spec.short()) from None  # fmt: skip


def contents_of(array: np.ndarray, spec: TensorSpec) -> bytes:
    """A constant's bytes as the file has them: little-endian, int4 two to a byte, strings packed."""
    name = spec.dtype.name
    if name == "string":
        return pack_strings(list(array.reshape(-1)))
    if name == "int4":
        low = np.asarray(array, np.int8).reshape(-1).view(np.uint8) & 0xF
        low = np.concatenate([low, np.zeros(len(low) % 2, np.uint8)])
        return bytes(low[0::2] | low[1::2] << 4)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.tobytes()


def _set_builtin_options(operator: Any, node: Node, subgraph_index: Callable[[Graph], int]) -> None:
    """The options table; left out where the official converter leaves it out."""
    if versions.facts(node.op.name).get("converter_writes_options") is False:
        return
    options = node.op.to_options(node.attrs, subgraph_index)
    if options is None:
        return
    if options.table_name in schema.union_tags("BuiltinOptions"):
        operator.builtin_options = options
    else:
        operator.builtin_options_2 = options
