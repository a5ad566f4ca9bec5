"""Nodes of the lite dialect for the lowering context, with the types of an interpreter's tensors.

Lives here: `LoadedModel`, `NodeGraph`, `LiteNode`.
Not here: reading files as graphs (lite/importer.py), the context (compiler/lowering/), which nodes are lowered
(partition_plans.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...compiler.lowering.context import NoLowering, RuleOperand
from ...compiler.lowering.nodes import GraphNode, operand_of
from ...compiler.lowering.registry import CUSTOM, LITE, USER
from ...core.dtypes import DType
from ...core.errors import OpError
from ...core.shapes import of_known
from ...core.specs import TensorSpec
from ...graph import Graph, GraphRewriter, Node, Value
from ...graph.builder import constant_node
from ...graph.ir import Operand as GraphOperand
from ...graph.ir import flat
from ...ops.definition import Operator
from ..customs.definition import CustomOperator
from ..customs.definition import find as find_custom
from ..format.flexbuffers import decode_options
from ..importer import INTERMEDIATES, ImportedSubgraph, Importer, operator_of
from ..ops.definition import LiteOperator
from ..ops.module import ExternalOp
from ..ops.specs import with_changes
from ..quantized_registration import as_real, is_quantized, kernel_of, real_dtype, rule_of, run_quantized
from ..registration import OperatorRegistration
from ..runtime.dynamic_shapes import is_folded
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT, Tensor
from ..shape_inference import RuleNode


class _FileConstant:
    """The Const operator of graphs that are lowered alone: importing the catalogue's takes 60 ms."""

    __slots__ = ()
    name, effect, catalogue = "Const", None, False
    inputs: tuple[Any, ...] = ()


FILE_CONSTANT = _FileConstant()
COMPOSITE = "STABLEHLO_COMPOSITE"


class LoadedModel(Importer):
    """The graphs of a model that an interpreter runs, each imported when the first plan of its subgraph is built.

    An interpreter rejects less than `import_model`: a node fails when it is prepared, and only if its own kernel runs
    it. Therefore nodes that do not match their operator become external operators, unsupported tensors handles, and a
    tensor may be an input twice, or be written by no node or several. family: all subgraphs.
    """

    def __init__(self, family: Sequence[Subgraph]) -> None:
        super().__init__(family[0].model, None)
        self._family = family
        self.const = FILE_CONSTANT

    def nodes(self, subgraph: Subgraph, numbers: Iterable[int]) -> NodeGraph:
        """Return nodes of a subgraph with the current types and constants of its tensors."""
        return NodeGraph(self.subgraph(subgraph.index), subgraph, numbers)

    def definition(self, subgraph: int, number: int, name: str, version: int) -> Operator | None:
        """Return the definition that serves a custom operator, None if it parses its options itself."""
        registration = self._family[subgraph].nodes[number].registration
        if not isinstance(registration, OperatorRegistration):
            return None
        operator = registration.operator
        return operator if isinstance(operator, LiteOperator) or type(registration) is OperatorRegistration else None

    def tensors(self, index: int) -> list[Tensor]:
        """Return a subgraph's tensors in the interpreter."""
        return [*self._family[index].tensors]

    def unreadable(self, error: OpError) -> None:
        """Ignore the error: the interpreter reports it if the node runs."""


class NodeGraph:
    """Nodes of a subgraph as a graph, with the current types and constants of the interpreter's tensors.

    A tensor that none of these nodes writes, or that is folded, is a constant or an input. The key of an operand is its
    tensor's number.
    """

    def __init__(self, imported: ImportedSubgraph, subgraph: Subgraph, numbers: Iterable[int]) -> None:
        self._tensors = subgraph.tensors
        selected = [node for node in map(subgraph.nodes.__getitem__, numbers) if not is_folded(node)]
        self._names = {node.number: node.name for node in selected}
        self._nodes: dict[int, Node] = {}
        self._numbers: dict[Value, int] = {}
        self._values: dict[int, Value] = {}
        rewriter = GraphRewriter(imported.graph)
        rewriter.inputs, mapping = [], rewriter.mapping

        def add(old: Value, new: Value) -> None:
            number = imported.tensors[old]
            mapping[old] = self._values[number] = new
            self._numbers[new] = number

        for old in imported.graph.nodes:
            position = operator_of(old)
            if position is None or position[1] not in self._names:
                continue
            for value in old.operands:
                if value not in mapping:
                    source = _source(value, self._tensors[imported.tensors[value]])
                    add(value, source)
                    if source.node is None:
                        rewriter.inputs.append(source)
                    else:
                        rewriter.nodes.append(source.node)
            specs = [_present(v.spec, self._tensors[imported.tensors[v]]) for v in old.outputs]
            node = old.replaced(inputs=[rewriter.operand(o) for o in old.inputs], specs=specs)
            self._nodes[position[1]] = node
            rewriter.nodes.append(node)
            for value, output in zip(old.outputs, node.outputs):
                add(value, output)
        outputs = [v for node in self._nodes.values() for v in node.outputs]
        self.graph = Graph(imported.graph.name, rewriter.inputs, rewriter.nodes, outputs)

    def graph_node(self, number: int) -> Node:
        """Return a node of the graph by its number in the file."""
        return self._nodes[number]

    def node(self, number: int) -> LiteNode:
        """Return a node by its number. Raises NoLowering if its options or operands do not match its operator."""
        node = self._nodes[number]
        outputs = [self._numbers[v] for v in node.outputs]
        name = self._names[number]
        return LiteNode(node, name, f"{name} {number}", f"t{outputs[0]}" if outputs else f"n{number}")

    def value(self, tensor: int) -> Value:
        """Return the value of a tensor that one of the nodes reads or writes."""
        return self._values[tensor]

    def has(self, tensor: int) -> bool:
        """Return whether one of the nodes reads or writes a tensor."""
        return tensor in self._values

    def number(self, value: Value) -> int:
        """Return the number of a value's tensor."""
        return self._numbers[value]

    def operand(self, value: Value) -> RuleOperand:
        """Return a value as an operand. Raises NoLowering for types and sizes without support."""
        number = self._numbers.get(value)  # none: a value that only has scales
        return _operand(value, value.name if number is None else f"t{number}", number)


def _operand(value: Value, name: str, key: Any = None) -> RuleOperand:
    """Return a value as an operand, as `operand_of` does; raises NoLowering for scales by blocks of several
    dimensions, too."""
    blocks = None if value.spec.quantization is None else value.spec.quantization.blocks
    if blocks is not None and blocks.axes:
        raise NoLowering(f"scales of {value!r} by blocks of several dimensions")
    return operand_of(value, name, key)


def _present(spec: TensorSpec, t: Tensor) -> TensorSpec:
    """Return the file's type of a tensor with its current shape and element type."""
    if spec.dtype.is_handle or (spec.shape.dims == t.shape and spec.dtype is t.dtype):
        return spec
    return with_changes(spec, shape=of_known(t.shape), dtype=t.dtype, sizes=None)


def _source(value: Value, t: Tensor) -> Value:
    """Return a value that none of the selected nodes writes: of a Const node, if no run changes its elements."""
    spec = _present(value.spec, t)
    if t.constant is None or spec.dtype.is_handle:
        return Value(value.name, spec)
    array: Any = t.array if t.kind == CONSTANT else t.readonly  # the interpreter owns a folded tensor's memory
    return constant_node(FILE_CONSTANT, array, spec, value.name).outputs[0]


class LiteNode(GraphNode):
    """A node of a file: of a builtin operator, a shipped custom one, or a user's. name: the operator's in the file.

    raises NoLowering if its options or operands do not match its operator
    """

    __slots__ = ("_rules",)

    def __init__(self, node: Node, name: str, origin: str, prefix: str) -> None:
        if isinstance(node.op, ExternalOp):
            raise NoLowering("its operands or options are not its operator's")
        self.node = node
        self.dialect, self.operator = LITE, name
        if isinstance(node.op, CustomOperator):
            self.dialect = CUSTOM
        elif not isinstance(node.op, LiteOperator):
            self.dialect = self.operator = USER
        self.origin, self.prefix = origin, prefix
        self._rules: RuleNode | None = None

    @property
    def inputs(self) -> Sequence[GraphOperand]:
        """Values by position in the file, None for an omitted one; of users' operators as declared."""
        if self.dialect == USER:
            return self.node.inputs
        operands = flat(self.node.inputs)
        while operands and operands[-1] is None:
            operands.pop()
        return operands

    @property
    def intermediates(self) -> Sequence[Value]:  # type: ignore[override]
        """Values with the scales of intermediate results."""
        specs = [spec for spec in self.attr(INTERMEDIATES) or () if spec is not None]
        return [
            Value(spec.name or f"{self.prefix}.{i}", with_changes(spec, shape=spec.shape.dims or ()))
            for i, spec in enumerate(specs)
        ]

    @property
    def activation(self) -> str:  # type: ignore[override]
        """The fused activation."""
        return self.attr("fused_activation_function") or "NONE"

    @property
    def rules(self) -> Any:
        """The node in the form that rules of quantized operators read."""
        if self._rules is None:
            self._rules = RuleNode(self.node, self.node.inputs)
        return self._rules

    @property
    def quantized(self) -> bool:  # type: ignore[override]
        """Whether integers of the node represent real numbers, and it does not merely move them."""
        op = self.node.op
        moves = op.quantized_rule == "integers" if self.dialect == USER else op.moves
        return not moves and is_quantized(op, self.rules)

    def takes(self, index: int, dtype: DType) -> bool:
        """Return whether the operator declares this type for an input."""
        declared = self.node.op.inputs
        return dtype in declared[min(index, len(declared) - 1)].dtypes

    def evaluate(self, operands: Sequence[RuleOperand], arrays: Sequence[Any]) -> list[Any]:
        """Compute the operator's reference on arrays. Raises NoLowering if its rules reject them."""
        op, call = self.node.op, self.call
        try:
            op.infer(call, [_Inferred(o) for o in operands])
            return list(op.compute(call, arrays))
        except OpError as error:
            raise NoLowering(str(error)) from None

    def integer_kernel(self) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """Return the operator's kernel on raw integers, (inputs, outputs) -> None. Raises NoLowering if it rejects the
        node."""
        op, node = self.node.op, self.rules
        try:
            kernel = kernel_of(op, rule_of(op, node), self.call, node, lambda _, items, node: node.grouped(items))
        except OpError as error:
            raise NoLowering(error.message) from None
        return lambda inputs, outputs: run_quantized(kernel, list(inputs), list(outputs), op.name)

    def named_composite(self) -> GraphNode:
        operator = find_custom(self.attr("composite_name"), 1) if self.operator == COMPOSITE else None
        return super().named_composite() if operator is None else _NamedComposite(self, operator)

    def decomposed(self) -> tuple[Graph, Callable[[Value], RuleOperand], Sequence[GraphNode]]:
        if self.operator != COMPOSITE:
            return super().decomposed()
        graph: Graph = self.attr("decomposition")
        nodes = [
            LiteNode(node, node.op.name, self.origin, f"{self.prefix}.{number}")
            for number, node in enumerate(graph.nodes)
            if node.op is not FILE_CONSTANT
        ]
        values = (*graph.inputs, *(value for node in graph.nodes for value in node.outputs))
        names = {value: f"{self.prefix}.value{number}" for number, value in enumerate(values)}
        return graph, lambda value: _operand(value, names.get(value, value.name)), nodes

    def check_results(self) -> None:
        """Raise NoLowering if the operator's rules reject the node, or infer other results than the file's."""
        op, node, quantized = self.node.op, self.rules, self.quantized
        seen = node.tensors_in
        try:
            if quantized:
                rule_of(op, node)
                seen = as_real(op, node, lambda t: t)
            specs = op.infer(self.call, node.grouped(seen))
        except (OpError, TypeError, ValueError, AttributeError) as error:  # preparing or running it reports the error
            raise NoLowering(str(error).splitlines()[0]) from None
        inferred = [
            (tuple(s.shape.dims), s.dtype) if isinstance(s, TensorSpec) and s.shape.dims is not None else None
            for s in specs
        ]
        if inferred != [(t.shape, real_dtype(t) if quantized else t.dtype) for t in node.tensors_out]:
            raise NoLowering("its results' shapes do not follow from those of its inputs")


class _NamedComposite(LiteNode):
    """A composite as a node of the shipped custom operator of its name, whose options its attributes are.

    raises NoLowering for attributes that the operator does not have: the decomposition says what they mean
    """

    __slots__ = ("_call",)

    def __init__(self, composite: LiteNode, operator: CustomOperator) -> None:
        super().__init__(composite.node, operator.name, composite.origin, composite.prefix)
        options = bytes(composite.attr("composite_attributes"))
        try:
            unknown = decode_options(options).keys() - operator.attr_defs.keys()
            self._call = operator.from_options(options)
        except OpError as error:
            raise NoLowering(error.message) from None
        if unknown:
            raise NoLowering(f"attributes {sorted(unknown)} of {operator.name}")
        self.dialect = CUSTOM

    @property
    def call(self) -> Any:
        return self._call


class _Inferred:
    """An operand for an operator's `infer`: its type, and its elements if they are constant or assumed."""

    __slots__ = ("constant", "spec")

    def __init__(self, operand: RuleOperand) -> None:
        self.spec, self.constant = TensorSpec(operand.shape, operand.dtype), operand.constant
