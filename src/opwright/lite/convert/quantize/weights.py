"""Quantisation of weights alone, which needs no data: float16, and dynamic range.

Lives here: `float16`, `dynamic_range`.
Not here: integer activations (plan.py, graph_quantizer.py), hybrid kernels (lite/ops/quantized).

Float16: each float32 constant that a node reads is stored in half the bytes and restored by a DEQUANTIZE.
Dynamic range: weights of the operators in HYBRID are int8; their kernels quantise activations at run time. Small
weights stay float: they would save nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ...ops.definition import LiteOperator
from ...ops.module import is_source
from ...ops.specs import name_of, with_changes
from .calibrated_graph import constant, operand
from .modes import Mode
from .parameters import of_weights, quantized
from .plan import late
from .rewriter import ConstantRewriter
from .sparsity import SPARSE_BLOCKS, in_blocks

LEAST_ELEMENTS = 1024  # of weights that are worth it
ASYMMETRIC = "asymmetric_quantize_inputs"
HALF_LIMIT = float(np.finfo(np.float16).max)
HALF_LEAST = float(np.finfo(np.float16).tiny)


class WeightForm(NamedTuple):
    """How the weights of a hybrid operator are quantised: by slices of an axis, or as a whole; its activations between
    their extremes, or symmetrically."""

    axis: int | None
    asymmetric: bool


class HybridOperator(NamedTuple):
    """operand: which input has the weights. axis: of output channels where each may have its scale. needs_axis: the
    kernel takes no single scale. asymmetric: the options say how activations are quantised. moves: the kernel moves
    elements, so its result is integers, too."""

    operand: int = 1
    axis: int | None = None
    needs_axis: bool = False
    asymmetric: bool = False
    moves: bool = False


HYBRID = {
    "CONV_2D": HybridOperator(axis=0),
    "DEPTHWISE_CONV_2D": HybridOperator(axis=3, needs_axis=True),
    "TRANSPOSE_CONV": HybridOperator(axis=0),
    "FULLY_CONNECTED": HybridOperator(axis=0, asymmetric=True),
    "BATCH_MATMUL": HybridOperator(asymmetric=True),
    "GATHER": HybridOperator(operand=0, moves=True),
    "EMBEDDING_LOOKUP": HybridOperator(),
}


def float16(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    """Return a graph with its float32 constants in float16, except constants beyond its range.

    inside: returns the same of a graph that nodes hold.
    """
    rewriter = ConstantRewriter(graph, inside)
    for node in graph.nodes:
        for value in node.outputs if is_source(node) else ():
            array = constant(value)
            if array is None or not array.size or _beyond(array) or value not in rewriter.read:
                continue
            spec = with_changes(value.spec, dtype="float16")
            half = rewriter.add_constant(array.astype(np.float16), spec, f"{name_of(value)}_float16")
            rewriter.substitutes[value] = rewriter.unary("DEQUANTIZE", half, value.spec, name_of(value))
    for node in graph.nodes:
        if is_source(node):
            rewriter.copy_source(node, rewriter.substitutes)
        else:
            rewriter.copy_with(node)
    return rewriter.finish()


def dynamic_range(graph: Graph, inside: Callable[[Graph], Graph], mode: Mode) -> Graph:
    """Return a graph with weights of 1024 elements or more in int8. inside: as `float16`."""
    rewriter = ConstantRewriter(graph, inside)
    forms = {n: f for n in graph.nodes if isinstance(n.op, LiteOperator) and (f := _form(n, mode)) is not None}
    axes: dict[Value, dict[int | None, None]] = {}  # of weights, those of their scales
    for node, form in forms.items():
        axes.setdefault(_weights(node), {})[form.axis] = None
    replaced = axes.keys() - {
        v for n in graph.nodes for i, v in enumerate(flat(n.inputs)) if not _is_weights(n, i, forms)
    }
    weights: dict[tuple[Value, int | None], Value] = {}
    for node in graph.nodes:
        if is_source(node):
            rewriter.copy_source(node, replaced)
            (value,) = node.outputs
            for axis in axes.get(value, ()):
                array = node.attrs["value"]
                parameters = of_weights(array, axis)
                integers = quantized(array, parameters, narrow=True)
                weights[value, axis] = rewriter.add_constant(integers, parameters.of(value.spec), name_of(value))
            continue
        if node not in forms:
            rewriter.copy_with(node)
            continue
        row, form = HYBRID[node.op.name], forms[node]
        fresh = weights[_weights(node), form.axis]
        attrs = {ASYMMETRIC: form.asymmetric} if row.asymmetric else {}
        if not row.moves:
            rewriter.copy_with(node, {row.operand: fresh}, attrs=attrs)
            continue
        (real,) = node.outputs
        spec = with_changes(real.spec, dtype=fresh.dtype, quantization=fresh.spec.quantization)
        moving = {real: (spec, f"{name_of(real)}_int8")}
        moved = rewriter.copy_with(node, {row.operand: fresh}, moving, attrs).outputs[0]
        rewriter.mapping[real] = rewriter.unary("DEQUANTIZE", moved, real.spec, name_of(real))
    return rewriter.finish()


def _weights(node: Node) -> Value:
    value = operand(node, HYBRID[node.op.name].operand)
    assert value is not None
    return value


def _is_weights(node: Node, place: int, forms: Mapping[Node, WeightForm]) -> bool:
    """Return whether an operand of a node takes the form of hybrid weights."""
    return node in forms and place == HYBRID[node.op.name].operand


def _form(node: Node, mode: Mode) -> WeightForm | None:
    """Return how a node's weights are best in int8: the first way that the run time has; None to leave them."""
    row = HYBRID.get(node.op.name)
    value = None if row is None else operand(node, row.operand)
    array = constant(value)
    if row is None or value is None or array is None or array.size < LEAST_ELEMENTS or not np.isfinite(array).all():
        return None
    per_channel = mode.per_channel_dense if node.op.name == "FULLY_CONNECTED" else mode.per_channel
    if mode.sparse and node.op.name == "FULLY_CONNECTED" and in_blocks(array, SPARSE_BLOCKS["int8"]):
        per_channel = False  # the hybrid kernel of sparse weights takes one scale
    axes = [row.axis] if row.needs_axis else [row.axis, None] if per_channel and row.axis is not None else [None]
    for axis in axes:
        for asymmetric in (True, False) if row.asymmetric else (False,):
            parameters = of_weights(array, axis)
            specs = {v: parameters.of(v.spec) for v in (value, *(node.outputs if row.moves else ()))}
            attrs = {ASYMMETRIC: asymmetric} if row.asymmetric else {}
            if not late(mode, node, specs, **attrs):
                return WeightForm(axis, asymmetric)
    return None


def _beyond(array: np.ndarray) -> bool:
    """Return whether float16 overflows a finite element, or flushes all of them to zero or nearly so, as an epsilon."""
    most = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    return bool(most > HALF_LIMIT or 0 < most < HALF_LEAST)
