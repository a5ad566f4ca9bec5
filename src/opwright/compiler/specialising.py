"""Graphs for one set of input shapes: every size that follows from them is worked out.

Lives here: `specialised`.  Not here: what is compiled of such a graph (partitioner.py), passes (graph/passes/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import OpError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..graph import Graph, GraphRewriter, Node, Value
from ..graph.builder import constant_node
from ..graph.passes import FOLD_LIMIT_BYTES, run_passes

Shape = tuple[int, ...]


def specialised(graph: Graph, shapes: Sequence[Shape | None]) -> Graph:
    """The graph for inputs of these shapes, simplified; None for a handle, which has none.

    Shapes inferred anew, in program order; what is known by shapes alone is computed, so that shapes that are computed
    in the graph are known too. Graphs of control flow stay as they are.
    """
    rewriter = GraphRewriter(graph)
    for i, (value, shape) in enumerate(zip(graph.inputs, shapes, strict=True)):
        spec = value.spec if shape is None else value.spec.with_shape(TensorShape(shape))
        rewriter.inputs[i] = rewriter.mapping[value] = Value(value.name, spec)
    for node in graph.nodes:
        operands = [rewriter.operand(o) for o in node.inputs]
        copy = node.replaced(inputs=operands, specs=_specs(node, operands))
        nodes = _known(copy) or [copy]
        rewriter.nodes += nodes
        rewriter.replace(node, [v for fresh in nodes for v in fresh.outputs])
    result = rewriter.finish()
    result.keep_origin(graph.origin)
    return run_passes(result)


def _specs(node: Node, operands: Sequence[Any]) -> list[TensorSpec]:
    """Of each output what follows from the operands, where that says more than the recording."""
    recorded = [v.spec for v in node.outputs]
    if all(s.shape.is_fully_defined() for s in recorded) or any(True for _ in node.subgraphs):
        return recorded
    try:
        found = node.op.infer(node.op.bind(dict(node.attrs)), operands)
    except (OpError, TypeError, ValueError):
        return recorded  # what is wrong is said when it runs
    flat = [s for spec in found for s in (spec if isinstance(spec, list) else (spec,))]
    if len(flat) != len(recorded):
        return recorded
    return [
        r if r.shape.is_fully_defined() or s.shape.rank is None else r.with_shape(s.shape)
        for r, s in zip(recorded, flat)
    ]


def _known(node: Node) -> list[Node] | None:
    """Constants in the place of a pure node that reads constants, or of its operands only shapes that are known."""
    op = node.op
    if op.name == "Const" or node.effect is not None or any(True for _ in node.subgraphs) or not node.outputs:
        return None
    by_shape = set(getattr(op, "shape_only", ()))
    arrays: list[Any] = []
    for name, operand in zip(op.input_names, node.inputs):
        if operand is None:
            arrays.append(None)
            continue
        several = operand if isinstance(operand, tuple) else (operand,)
        found = [_array(v, name in by_shape) for v in several]
        if any(a is None for a in found):
            return None
        arrays.append(found if isinstance(operand, tuple) else found[0])
    if not arrays or any(v.dtype.is_handle or not _small(v) for v in node.outputs):
        return None
    try:
        results = op.compute(op.bind(dict(node.attrs)), arrays)
    except OpError:
        return None
    return [_constant(op, v, array) for v, array in zip(node.outputs, results)]


def _small(value: Value) -> bool:
    size = value.shape.num_elements()
    return size is not None and size * (value.dtype.size or 8) <= FOLD_LIMIT_BYTES // 16


def _array(value: Value, shape_alone: bool) -> np.ndarray | None:
    """The value where it is known; where only its shape counts, zeros that take no memory."""
    if value.constant is not None:
        return value.constant
    if not shape_alone or value.dtype.is_handle or not value.shape.is_fully_defined():
        return None
    dims: Any = value.shape.dims
    return np.broadcast_to(np.zeros((), value.dtype.np), dims)


def _constant(op: Any, value: Value, array: Any) -> Node:
    array = np.array(array, value.dtype.np)
    return constant_node(op.const_operator(), array, TensorSpec(array.shape, value.dtype), value.name)
