"""Shapes of an imported graph for inputs of given sizes, by the shape rules of its operators.

Lives here: `with_shapes`; `ValueTensor` and `RuleNode`, values and nodes as rules see tensors and nodes of files.
Not here: reading files (importer.py), the rules (ops/), shapes while a model runs (runtime/).

Values that follow from shapes alone, SHAPE of a known shape and small arithmetic on it, become constants, as when the
interpreter allocates tensors (runtime/dynamic_shapes.py); so a graph for inputs of any size has no open
shape once they have one. Nodes keep their names and the operators they came from; types keep all that is not a shape.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..graph import Graph, GraphRewriter, Node, Value
from ..graph.builder import constant_node, subgraphs_mapped
from ..graph.ir import Operand, flat
from ..ops import registry
from .ops.definition import LiteOperator
from .ops.module import VARIABLE, ExternalOp
from .ops.specs import with_changes
from .quantized_registration import another_number_of_outputs, as_real, is_quantized
from .runtime.dynamic_shapes import MOST, can_fold
from .runtime.errors import COMPUTE_ERRORS

STATED = ("READ_VARIABLE",)  # the official kernel gives another shape than the file's only where the file has none
NO_ELEMENTS = np.zeros((), np.int8)


def with_shapes(graph: Graph, shapes: Mapping[int, Any] | None = None) -> Graph:
    """Return the graph with the shapes that its values have once inputs have theirs.

    shapes: of inputs, by position; the others have the sizes that the file states. Graphs that nodes run have the
    shapes of the nodes' operands; a loop's variable that changes its shape has an open one.
    raises InvalidArgumentError for shapes of another rank or size than the input's, and what shape rules raise
    """
    shapes_by_input = shapes or {}
    input_shapes = [
        as_shape(shapes_by_input[i]) if i in shapes_by_input else _static(v.spec) for i, v in enumerate(graph.inputs)
    ]
    for value, shape in zip(graph.inputs, input_shapes):
        if not shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                what=f"input {value.name!r} cannot have this shape",
                found=TensorSpec(shape, value.dtype).short(),
                wanted=value.spec.short(),
            )
    return _Shaper().graph(graph, input_shapes)


def _static(spec: TensorSpec) -> TensorShape:
    """Return the shape with the sizes that the file has where it is open."""
    sizes = getattr(spec, "sizes", None)
    if sizes is not None or spec.shape.dims is None:
        return as_shape(sizes or ())
    return as_shape([1 if d is None else d for d in spec.shape.dims])


class ValueTensor:
    """A value as rules of operators see a tensor: shape rules, and those of quantized operators.

    blocks: scales by block along the last dimension, or None; the rest as of `runtime.Tensor`.
    """

    __slots__ = ("constant", "dtype", "is_quantized", "is_variable", "name", "quantization", "spec", "type")

    def __init__(self, value: Value) -> None:
        self.name, self.dtype, self.constant = value.name, value.dtype, value.constant
        self.spec = TensorSpec(value.shape, value.dtype)
        self.quantization = value.spec.quantization
        self.is_variable = getattr(value.spec, "is_variable", False)
        self.type = SimpleNamespace(name=value.dtype.name.upper())
        self.is_quantized = _has_scales(value.spec)

    @property
    def blocks(self) -> Any:
        return None if self.quantization is None else self.quantization.blocks

    @property
    def shape(self) -> TensorShape | tuple[int | None, ...]:
        dims = self.spec.shape.dims
        return self.spec.shape if dims is None or None in dims else tuple(dims)


class RuleNode:
    """A node with operands of an imported graph, as rules of quantized operators see it.

    tensors_in, tensors_out: flat, None for an input left out.
    """

    __slots__ = ("grouping", "name", "tensors_in", "tensors_out")

    def __init__(self, node: Node, inputs: Sequence[Operand]) -> None:
        self.name, self.grouping = node.op.name, [len(o) if isinstance(o, tuple) else None for o in inputs]
        self.tensors_in: Any = [None if v is None else ValueTensor(v) for v in flat(inputs)]
        self.tensors_out: Any = [ValueTensor(v) for v in node.outputs]

    def grouped(self, items: Sequence[Any]) -> list[Any]:
        """Return the operand of each declared input: a tuple for a repeated one."""
        left = iter(items)
        return [next(left) if n is None else tuple(itertools.islice(left, n)) for n in self.grouping]


def _has_scales(spec: TensorSpec) -> bool:
    return spec.quantization is not None and spec.quantization.has_scales and spec.dtype.is_integer


class _Shaper:
    """Graphs with shapes, by the original graph and the shapes of its inputs."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[Graph, tuple[Any, ...]], Graph] = {}

    def graph(self, graph: Graph, shapes: Sequence[TensorShape]) -> Graph:
        key = graph, tuple(s.dims for s in shapes)
        if key not in self._graphs:
            self._graphs[key] = self._shaped(graph, shapes)
        return self._graphs[key]

    def _shaped(self, graph: Graph, shapes: Sequence[TensorShape]) -> Graph:
        rewriter = GraphRewriter(graph)
        rewriter.inputs = [Value(v.name, _with_shape(v.spec, shape)) for v, shape in zip(graph.inputs, shapes)]
        rewriter.mapping.update(zip(graph.inputs, rewriter.inputs))
        outer = set(graph.outputs)
        for old in graph.nodes:
            if old.op.name == "Const" or old.op is VARIABLE:
                replacements = [old]
            else:
                node = self._node(old, [rewriter.operand(o) for o in old.inputs])
                settled = [] if outer.intersection(old.outputs) else _settled(node)
                replacements = settled or [node]
            rewriter.nodes += replacements
            rewriter.replace(old, [v for node in replacements for v in node.outputs])
        return rewriter.finish()

    def _node(self, old: Node, inputs: Sequence[Operand]) -> Node:
        attrs = subgraphs_mapped(old.attrs, lambda held: self._callee(old, held, inputs))
        specs = _inferred(old, inputs, attrs)
        return old.replaced(inputs=inputs, attrs=attrs, specs=specs)

    def _callee(self, node: Node, held: Graph, inputs: Sequence[Operand]) -> Graph:
        """Return a graph that a node runs, on the node's last operands."""
        operands = [v.shape for v in flat(inputs)][len(flat(inputs)) - len(held.inputs) :]
        if node.op.name != "WHILE":
            return self.graph(held, operands)
        while True:  # each iteration opens a dimension or ends
            body = self.graph(node.attrs["body"], operands)
            turned = [a.most_specific_common_supertype([v.shape]) for a, v in zip(operands, body.outputs)]
            if [s.dims for s in turned] == [s.dims for s in operands]:
                return body if held is node.attrs["body"] else self.graph(held, operands)
            operands = turned


def _with_shape(spec: TensorSpec, shape: TensorShape) -> TensorSpec:
    return with_changes(spec, shape=shape, sizes=None)


def _inferred(node: Node, inputs: Sequence[Operand], attrs: Mapping[str, Any]) -> list[TensorSpec]:
    """Return the types of a node's outputs: their shapes, and the dtype if the operator determines it."""
    if node.op.name in STATED:
        return [v.spec for v in node.outputs]
    if isinstance(node.op, ExternalOp):
        alike = all(a.shape.dims == _static(b.spec).dims for a, b in zip(flat(inputs), node.operands) if a is not None)
        return [_with_shape(v.spec, _static(v.spec) if alike else TensorShape(None)) for v in node.outputs]
    view: Any = RuleNode(node, inputs)
    seen = as_real(node.op, view, lambda t: t) if is_quantized(node.op, view) else view.tensors_in
    grouped = view.grouped(seen)
    specs = flat(tuple(s) if isinstance(s, list) else s for s in node.op.infer(node.op.bind(dict(attrs)), grouped))
    if len(specs) < len(node.outputs):
        raise another_number_of_outputs(node.op.name, len(node.outputs), len(specs), node.name)
    if getattr(node.op, "retypes", False):
        return [with_changes(v.spec, shape=s.shape, dtype=s.dtype, sizes=None) for v, s in zip(node.outputs, specs)]
    return [_with_shape(v.spec, s.shape) for v, s in zip(node.outputs, specs)]


def _settled(node: Node) -> list[Node]:
    """Return constants for a node whose small results follow from known values; none for other nodes."""
    op = node.op
    if not isinstance(op, LiteOperator) or op.control:
        return []
    specs = [v.spec for v in node.outputs]
    if any(_has_scales(s) or s.dtype.np.kind == "O" or not s.shape.is_fully_defined() for s in specs):
        return []
    call = op.bind(dict(node.attrs))
    unknown = [v is not None and (v.constant is None or _has_scales(v.spec)) for v in flat(node.inputs)]
    size = sum((s.shape.num_elements() or 0) * s.dtype.np.itemsize for s in specs)
    if size > MOST or not can_fold(op, call, unknown):
        return []
    arrays = []
    for declared, operand in zip(op.inputs, node.inputs):
        values = flat([operand])
        elements = [_elements(v, declared.name in op.shape_only) for v in values]
        if any(v is not None and array is None for array, v in zip(elements, values)):
            return []  # of one whose shape alone is read, the shape is unknown
        arrays.append(elements if isinstance(operand, tuple) else elements[0])
    try:
        results = op.compute(call, arrays)
    except COMPUTE_ERRORS:
        return []  # a run reports the error
    constants = []
    for value, result in zip(node.outputs, results):
        array = np.array(result)
        if array.shape != tuple(value.shape.as_list()) or array.dtype != value.dtype.np:
            return []
        constants.append(constant_node(registry.get("Const"), array, value.spec, value.name, node.at))
    return constants


def _elements(value: Value | None, shape_only: bool) -> np.ndarray | None:
    if value is None or value.constant is not None or not shape_only or not value.shape.is_fully_defined():
        return None if value is None else value.constant
    dims: Any = value.shape.dims
    return np.broadcast_to(NO_ELEMENTS, dims)
