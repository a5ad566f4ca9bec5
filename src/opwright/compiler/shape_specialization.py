"""Graphs for one set of input shapes: every size that follows from them is worked out.

Lives here: `specialize`.  Not here: what is compiled of such a graph (partitioner.py), passes (graph/passes/).
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


def specialize(graph: Graph, shapes: Sequence[Shape | None]) -> Graph:
    """Return the graph for inputs of these shapes, simplified. A shape is None for a handle.

    Shapes are inferred again, in program order; values that depend on shapes only are computed, so that computed shapes
    are known, too. Graphs of control flow are unchanged.
    """
    rewriter = GraphRewriter(graph)
    for i, (value, shape) in enumerate(zip(graph.inputs, shapes, strict=True)):
        spec = value.spec if shape is None else value.spec.with_shape(TensorShape(shape))
        rewriter.inputs[i] = rewriter.mapping[value] = Value(value.name, spec)
    for node in graph.nodes:
        operands = [rewriter.operand(o) for o in node.inputs]
        copy = node.replaced(inputs=operands, specs=_specs(node, operands))
        nodes = _folded(copy) or [copy]
        rewriter.nodes += nodes
        rewriter.replace(node, [v for fresh in nodes for v in fresh.outputs])
    result = rewriter.finish()
    result.keep_origin(graph.origin)
    return run_passes(result)


def _specs(node: Node, operands: Sequence[Any]) -> list[TensorSpec]:
    """Return the types of the outputs as inferred from the operands, if they are more specific than recorded."""
    recorded = [v.spec for v in node.outputs]
    if all(s.shape.is_fully_defined() for s in recorded) or any(True for _ in node.subgraphs):
        return recorded
    try:
        inferred = node.op.infer(node.op.bind(dict(node.attrs)), operands)
    except (OpError, TypeError, ValueError):
        return recorded  # the error is reported at run time
    flat = [s for spec in inferred for s in (spec if isinstance(spec, list) else (spec,))]
    if len(flat) != len(recorded):
        return recorded
    return [
        r if r.shape.is_fully_defined() or s.shape.rank is None else r.with_shape(s.shape)
        for r, s in zip(recorded, flat)
    ]


def _folded(node: Node) -> list[Node] | None:
    """Return constants that replace a pure node whose operands are constant, or read by shape only."""
    op = node.op
    if op.name == "Const" or node.effect is not None or any(True for _ in node.subgraphs) or not node.outputs:
        return None
    by_shape = set(getattr(op, "shape_only", ()))
    arrays: list[Any] = []
    for name, operand in zip(op.input_names, node.inputs):
        if operand is None:
            arrays.append(None)
            continue
        parts = operand if isinstance(operand, tuple) else (operand,)
        values = [_array(v, name in by_shape) for v in parts]
        if any(a is None for a in values):
            return None
        arrays.append(values if isinstance(operand, tuple) else values[0])
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
    """Return the value if it is constant; if only its shape is read, zeros without memory."""
    if value.constant is not None:
        return value.constant
    if not shape_alone or value.dtype.is_handle or not value.shape.is_fully_defined():
        return None
    dims: Any = value.shape.dims
    return np.broadcast_to(np.zeros((), value.dtype.np), dims)


def _constant(op: Any, value: Value, array: Any) -> Node:
    array = np.array(array, value.dtype.np)
    return constant_node(op.const_operator(), array, TensorSpec(array.shape, value.dtype), value.name)
