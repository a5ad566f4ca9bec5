"""Export: a module of the lite dialect becomes a `format.Model`, the inverse of `lite.importer`.

Lives here: subgraphs, tensors, buffers, operators, operator codes, signatures and metadata of the file.
Not here: choosing lite operators (rules/), the bytes (format/writer.py), version rules (format/versions.py).

The file has the order of the graph, and nothing in it depends on addresses or clocks: equal graphs yield equal bytes.
The module's graphs come first, then the subgraphs of their nodes, breadth first (`LiteModule.all_graphs`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.deferred import DeferredArray
from ...core.dtypes import of_stored, string
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...graph import Graph, Node, Value
from ...graph.builder import unique_name
from ...graph.ir import Operand, flat
from ..format import Model, objects, schema, versions
from ..format.flexbuffers import encode_options
from ..format.objects import ComputedBytes
from ..ops.definition import LiteOperator
from ..ops.module import ExternalOp, GraphSignature, LiteModule, is_source
from ..ops.specs import BlockwiseScales, LiteTensorSpec, blocks_table, contents_of, name_of, tensor_of, with_changes
from ..runtime.constants import stored_elements
from .custom_operators import CustomNode, custom_options, in_least_version
from .errors import ConverterError, UnsupportedNode, report

FLEXBUFFERS = 0  # CustomOptionsFormat
SHORT = 32  # bytes that are compared themselves; longer contents by digests


def export(module: LiteModule, *, custom_version_in: str = "code") -> Model:
    """Return the file's contents: a subgraph for each graph, signatures and metadata, versions stamped.

    raises ConverterError for types of tensors and attributes of custom operators that the format cannot store
    """
    return ModuleExporter(module, custom_version_in).model


class ModuleExporter:
    """A module as tables. model: the file's contents. tensors: by value, the subgraph and the number of its tensor."""

    def __init__(self, module: LiteModule, custom_version_in: str = "code") -> None:
        graphs = module.all_graphs
        self.custom_version_in = custom_version_in
        self.place = {graph: i for i, graph in enumerate(graphs)}
        self.tensors: dict[Value, tuple[int, int]] = {}
        self.names: set[str] = set()
        self.buffers: list[Any] = [objects.Buffer()]  # by convention the first is empty
        self.codes: list[Any] = []
        self.unsupported: list[UnsupportedNode] = []
        self._buffer_of: dict[bytes, int] = {}
        self._code_of: dict[tuple[str, int], int] = {}
        subgraphs = [self.subgraph(graph) for graph in graphs]
        if self.unsupported:
            raise report(self.unsupported)
        self.model = Model(
            operator_codes=self.codes,
            subgraphs=subgraphs,
            buffers=self.buffers,
            description=module.description,
            signature_defs=[_signature(s, subgraphs) for s in module.signatures],
        )
        self.model.attachment = module.attachment
        versions.stamp_model(self.model)
        for name, contents in module.metadata:
            if name == versions.METADATA_NAME:
                contents = versions.metadata_of(versions.min_runtime_of_model(self.model))
            buffer = self.buffer(np.frombuffer(contents, np.uint8))
            self.model.metadata.append(objects.Metadata(name=name, buffer=buffer))

    def buffer(self, contents: np.ndarray | ComputedBytes) -> int:
        """Return the index of the buffer with these bytes, as `contents_of` returns them, which are not copied."""
        ordered = objects.in_order(contents.compute() if isinstance(contents, ComputedBytes) else contents)
        key = ordered.tobytes() if ordered.size <= SHORT else hashlib.blake2b(ordered.data).digest()
        index = self._buffer_of.get(key)
        if index is None:
            index = self._buffer_of[key] = len(self.buffers)
            self.buffers.append(objects.Buffer(data=contents))
        return index

    def code(self, node: Node, version: int = 1) -> int:
        """Return the index of the operator code: one for each builtin, one for each version of a custom operator."""
        lite = isinstance(node.op, LiteOperator)
        key = (node.op.name if lite else f"custom {node.op.name}", version)
        index = self._code_of.get(key)
        if index is None:
            index = self._code_of[key] = len(self.codes)
            name = node.op.name
            self.codes.append(versions.operator_code(name) if lite else versions.operator_code("CUSTOM", version, name))
        return index

    def subgraph(self, graph: Graph) -> objects.TableObject:
        index: dict[Value, int] = {}
        tensors: list[Any] = []
        operators: list[Any] = []

        def add(value: Value) -> None:
            index[value] = len(tensors)
            self.tensors[value] = self.place[graph], len(tensors)
            self.add_tensor(value, tensors)

        for value in graph.inputs:
            add(value)
        read = _values_read(graph)
        for node in graph.nodes:
            custom = None if is_source(node) or isinstance(node.op, LiteOperator) else in_least_version(node, read)
            for value in node.outputs if custom is None else custom.outputs:
                add(value)
            if custom is not None:
                operators.append(self.custom(node, custom, index))
            elif not is_source(node):
                operators.append(self.builtin(node, index, tensors))
        return objects.SubGraph(
            tensors=tensors,
            operators=operators,
            name=unique_name(graph.name, self.names) if graph.name else None,
            inputs=np.array([index[v] for v in graph.inputs], np.int32),
            outputs=np.array([index[v] for v in graph.outputs], np.int32),
        )

    def add_tensor(self, value: Value, tensors: list[Any]) -> None:
        """Append the tensor of a value, and those of its scales where these are by block."""
        spec = value.spec
        if value.node is not None and value.node.op.name in UNRANKED and None in (spec.shape.dims or ()):
            spec = with_changes(spec, shape=None)
        try:
            tensor = tensor_of(spec)
        except InvalidArgumentError as error:
            node = value.node
            raise ConverterError(
                op=node.op.name if node else None,
                node=value.name,
                at=node.at if node else None,
                what=error.message,
                found=spec.short(),
            ) from None
        tensor.name = name_of(value) or None
        tensors.append(tensor)
        stored = None if value.node is None or value.node.op.name != "Const" else value.node.attrs["value"]
        if isinstance(stored, DeferredArray):
            tensor.buffer = self.buffer(ComputedBytes(stored.nbytes, lambda: contents_of(stored.compute(), spec)))
        elif (array := value.constant) is not None:
            if tensor.sparsity is not None and spec.dtype is not string:
                array = stored_elements(tensor.sparsity, array)
            tensor.buffer = self.buffer(contents_of(array, spec))
        if spec.quantization is not None and spec.quantization.blocks is not None:
            tensor.quantization.details = self._blocks(spec.quantization.blocks, tensors)

    def _blocks(self, blocks: BlockwiseScales, tensors: list[Any]) -> object:
        """Append the tensors of scales by block; return the table that names them."""
        places = []
        for array, name in zip((blocks.scales, blocks.zero_points), blocks.names):
            places.append(-1 if array is None else len(tensors))
            if array is not None:
                spec = TensorSpec(array.shape, of_stored(array.dtype))
                tensors.append(tensor_of(spec))
                tensors[-1].name, tensors[-1].buffer = name or None, self.buffer(contents_of(array, spec))
        return blocks_table(blocks, *places)

    def builtin(self, node: Node, index: Mapping[Value, int], tensors: list[Any]) -> objects.TableObject:
        inputs = _indices(node.inputs, index)
        while inputs and inputs[-1] == -1 and node.op.name not in KEEP_ABSENT:
            inputs.pop()  # optional operands that are left out at the end are not written at all
        operator = objects.Operator(
            opcode_index=self.code(node),
            inputs=np.array(inputs, np.int32),
            outputs=np.array([index[v] for v in node.outputs], np.int32),
        )
        if intermediates := node.attrs.get("intermediates"):
            operator.intermediates = np.array([self._intermediate(spec, tensors) for spec in intermediates], np.int32)
        set_builtin_options(operator, node.op, node.attrs, self.place.__getitem__)
        return operator

    @staticmethod
    def _intermediate(spec: LiteTensorSpec | None, tensors: list[Any]) -> int:
        if spec is None:
            return -1
        tensors.append(tensor_of(spec))
        tensors[-1].name = spec.name
        return len(tensors) - 1

    def custom(self, node: Node, custom: CustomNode, index: Mapping[Value, int]) -> objects.TableObject:
        inside = self.custom_version_in == "options"
        operator = objects.Operator(
            opcode_index=self.code(node, 1 if inside else custom.version),
            inputs=np.array(_indices(custom.inputs, index), np.int32),
            outputs=np.array([index[v] for v in custom.outputs], np.int32),
            custom_options_format=FLEXBUFFERS,
        )
        if isinstance(node.op, ExternalOp):
            options = node.attrs["options"]
            operator.custom_options = None if options is None else np.frombuffer(options, np.uint8)
            return operator
        try:
            options = custom_options(node, custom.version, version_inside=inside)
            operator.custom_options = np.frombuffer(encode_options(options), np.uint8)
        except InvalidArgumentError as error:
            self.unsupported.append(UnsupportedNode(node, (error.message.splitlines()[0],), custom=False))
        return operator


def _values_read(graph: Graph) -> Callable[[Value], bool]:
    """Return a predicate: whether a node of the graph reads a value, or the graph returns it."""
    return {*(v for node in graph.nodes for v in node.operands), *graph.outputs}.__contains__


def _indices(operands: Sequence[Operand], index: Mapping[Value, int]) -> list[int]:
    return [-1 if v is None else index[v] for v in flat(operands)]


UNRANKED = ("READ_VARIABLE",)  # the official kernel gives another shape than the file's only where the file has none
TYPED_BY_TENSORS = ("CAST",)  # its options repeat the types of its tensors
KEEP_ABSENT = ("FULLY_CONNECTED",)  # with two inputs it is version 6, with an absent third version 1


def _signature(signature: GraphSignature, subgraphs: Sequence[Any]) -> object:
    subgraph = subgraphs[signature.graph]

    def maps(positions: Mapping[str, int], tensors: Any) -> list[Any]:
        return [objects.TensorMap(name=name, tensor_index=int(tensors[i])) for name, i in positions.items()]

    return objects.SignatureDef(
        signature_key=signature.key,
        subgraph_index=signature.graph,
        inputs=maps(signature.inputs, subgraph.inputs),
        outputs=maps(signature.outputs, subgraph.outputs),
    )


def set_builtin_options(
    operator: Any, op: LiteOperator, attrs: Mapping[str, Any], subgraph_index: Callable[[Graph], int]
) -> None:
    """Set the options table; left out where the official converter leaves it out and nothing is lost by it."""
    options = op.to_options(attrs, subgraph_index)
    if options is None:
        return
    if versions.facts(op.name).get("converter_writes_options") is False and not op.graphs:
        values = [getattr(options, name) for name in op.option_names]  # where there is no table, they read as zeros
        if op.name in TYPED_BY_TENSORS or not any(map(np.any, values)):
            return
    if options.table_name in schema.union_tags("BuiltinOptions"):
        operator.builtin_options = options
    else:
        operator.builtin_options_2 = options
