"""Operators of StableHLO that combine numbers by a subgraph: STABLEHLO_SCATTER, STABLEHLO_REDUCE_WINDOW.

Lives here: the two operators.  Not here: windows (tiling.py), operators without subgraphs (stablehlo.py).

As in the official run time the subgraph has one operator of two numbers, or for SCATTER none: the second number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import any_dtype
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...graph import Graph
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..registration import Registration
from . import types
from .definition import LiteDefinition, lite_operator
from .module import is_source
from .pooling import reduce_windows, windows_over
from .shapes import bounded, refuse, text
from .stablehlo import dilated_and_padded, distinct

UFUNCS: Mapping[str, np.ufunc] = {
    "STABLEHLO_ADD": np.add,
    "STABLEHLO_MULTIPLY": np.multiply,
    "STABLEHLO_MAXIMUM": np.maximum,
    "STABLEHLO_MINIMUM": np.minimum,
    "STABLEHLO_AND": np.logical_and,
    "STABLEHLO_OR": np.logical_or,
    "ADD": np.add,
    "MUL": np.multiply,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
}


def combination(operators: Sequence[str], arity: int, is_second: bool) -> np.ufunc | None:
    """Return the function of two numbers that a subgraph computes; None for the second number itself.

    operators: the names of its nodes' operators; arity: number of its inputs; is_second: whether it returns the second
    of two inputs, which the caller allows. raises UnimplementedError for other functions
    """
    if is_second and not operators:
        return None
    if len(operators) != 1 or operators[0] not in UFUNCS or arity != 2:
        raise UnimplementedError(
            what="a subgraph combines numbers in a way that has no kernel",
            found=list(operators),
            wanted=f"one of {', '.join(UFUNCS)}",
        )
    return UFUNCS[operators[0]]


def _graph_combination(graph: Graph, may_be_second: bool = False) -> np.ufunc | None:
    """Return the function of two numbers that a node's graph computes."""
    is_second = may_be_second and len(graph.inputs) == 2 and graph.outputs == graph.inputs[1:]
    return combination([node.op.name for node in graph.nodes if not is_source(node)], len(graph.inputs), is_second)


def _computation(node: Any, index: int, may_be_second: bool = False) -> np.ufunc | None:
    """Return the function of the subgraph of this index."""
    family = node.subgraph.family
    if not 0 <= index < len(family):
        raise refuse("no such subgraph", found=index, wanted=f"below {len(family)}")
    graph = family[index]
    is_second = may_be_second and len(graph.inputs) == 2 and list(graph.outputs) == [graph.inputs[1]]
    return combination([n.name for n in graph.nodes if n.delegate is None], len(graph.inputs), is_second)


class _ReductionRegistration(Registration):
    """prepare(options, node) -> (output's shape, function of the inputs' arrays)."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable[[Any, Any], tuple[Any, Callable[..., Any]]], inputs: int) -> None:
        def init(context: Any, options: Any) -> list[Any]:
            return [options, None]

        def prepare(context: Any, node: Any) -> None:
            if node.user_data[0] is None:
                raise refuse("the node has no options", wanted="its options")
            if len(node.tensors_in) != inputs or None in node.tensors_in or len(node.tensors_out) != 1:
                raise refuse(
                    "the node has the wrong number of inputs or outputs",
                    found=(len(node.tensors_in), len(node.tensors_out)),
                    wanted=(inputs, 1),
                )
            if node.tensors_in[0].is_object:
                raise refuse(
                    "there are no numbers to bring together", found=node.tensors_in[0].short(), wanted="numbers"
                )
            if node.tensors_out[0].type != node.tensors_in[0].type:
                raise refuse(
                    "input and output differ in type",
                    found=[t.short() for t in node.tensors_out],
                    wanted=node.tensors_in[0].dtype.name,
                )
            shape, node.user_data[1] = rule(node.user_data[0], node)
            context.resize(node.tensors_out[0], shape)

        def invoke(context: Any, node: Any) -> None:
            np.copyto(node.tensors_out[0].array, node.user_data[1](*(t.readonly for t in node.tensors_in)))

        super().__init__(init, None, prepare, invoke)
        self.rule = rule


def _numbers(options: Any, name: str) -> list[int]:
    numbers = getattr(options, name)
    return [] if numbers is None else [int(v) for v in numbers]


_SCATTERED = 1 << 16
"""Updates whose places are computed at a time: they take 8 bytes for each dimension, updates may take one."""


def _scatter(options: Any, node: Any) -> tuple[Any, Callable[..., Any]]:
    operand, indices, updates = (t.shape for t in node.tensors_in)
    window, inserted, operand_dims = (
        _numbers(options, n) for n in ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    vector_dim, rank = int(options.index_vector_dim), len(operand)
    depth = indices[vector_dim] if 0 <= vector_dim < len(indices) else 1
    batch = [d for i, d in enumerate(indices) if i != vector_dim]
    if not (
        0 <= vector_dim <= len(indices)
        and depth == len(operand_dims)
        and distinct(operand_dims, rank)
        and distinct(inserted, rank)
        and distinct(window, len(updates))
        and len(window) + len(inserted) == rank
        and [d for i, d in enumerate(updates) if i not in window] == batch
    ):
        raise refuse(
            "operand, indices and updates do not fit each other",
            found={"operand": text(operand), "indices": text(indices), "updates": text(updates)},
            wanted="updates of a window, at each index vector, that lie in the operand",
        )
    if node.tensors_in[1].dtype not in types.INDEX or node.tensors_in[2].type != node.tensors_in[0].type:
        raise refuse(
            "indices are integers, updates of the operand's type",
            found=[t.short() for t in node.tensors_in],
            wanted="int32 or int64 indices, and updates of the operand's type",
        )
    apply = _computation(node, int(options.update_computation_subgraph_index), may_be_second=True)
    window_axes = [d for d in range(rank) if d not in inserted]

    batch_axes = [i for i in range(len(updates)) if i not in window]

    def run(x: np.ndarray, vectors: np.ndarray, new: np.ndarray) -> np.ndarray:
        vectors = np.moveaxis(vectors if vector_dim < vectors.ndim else vectors[..., None], vector_dim, -1).astype(
            np.int64
        )
        y, flat = x.copy(), new.reshape(-1)
        for first in range(0, new.size, _SCATTERED):  # of equal places, the last in the file's order counts
            part = slice(first, min(first + _SCATTERED, new.size))
            position = np.unravel_index(np.arange(part.start, part.stop), new.shape) if new.ndim else ()
            start = vectors[tuple(position[i] for i in batch_axes)]
            coordinates = [np.zeros(part.stop - part.start, np.int64) for _ in range(rank)]
            for k, d in enumerate(operand_dims):
                coordinates[d] += start[..., k]
            for axis, d in zip(window, window_axes):
                coordinates[d] += position[axis]
            inside = np.ones(part.stop - part.start, bool)
            for component, size in zip(coordinates, operand):
                inside &= (component >= 0) & (component < size)
            chosen = tuple(component[inside] for component in coordinates)
            if apply is None:
                y[chosen] = flat[part][inside]
            else:
                apply.at(y, chosen, flat[part][inside])
        return y

    return operand, run


@lite_operator("STABLEHLO_SCATTER", graphs={"update_computation_subgraph_index": "update_computation"})
class StablehloScatterOp(LiteDefinition):
    """A tensor with updates brought in at index vectors; what would lie outside is left out.

    .. math:: y_{p} = computation(y_{p}, u),\\ p = start + window

    x: any shape; indices: integers, vectors along index_vector_dim, each number of the dimension of x that
    scatter_dims_to_operand_dims says; updates: the dimensions update_window_dims are those of x but for
    inserted_window_dims.
    """

    x = Input(any_dtype)
    indices = Input(any_dtype)
    updates = Input(any_dtype)
    y = Output(like="x")
    update_computation = Attr(Graph)

    def combination(op: Any) -> np.ufunc | None:
        """Return the function that brings an update in; None for the update itself."""
        return _graph_combination(op.update_computation, may_be_second=True)

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def registration(operator: Any) -> Registration:
        return _ReductionRegistration(_scatter, 3)


def _windows(options: Any, node: Any) -> tuple[Any, Callable[..., Any]]:
    shape, initial = (t.shape for t in node.tensors_in)
    rank = len(shape)
    window, strides, base, dilations = (
        _numbers(options, n) or [1] * rank
        for n in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    )
    padding = _numbers(options, "padding") or [0] * (2 * rank)
    lists = (window, strides, base, dilations)
    if any(len(v) != rank for v in lists) or len(padding) != 2 * rank or np.prod(initial) != 1 or min(base) < 1:
        raise refuse(
            "the windows do not fit the input",
            found={"input": text(shape), "window": window},
            wanted="one window, stride, dilation and pair of paddings for each dimension",
        )
    if node.tensors_in[1].type != node.tensors_in[0].type:
        raise refuse(
            "init_value is of the input's type", found=node.tensors_in[1].short(), wanted=node.tensors_in[0].dtype.name
        )
    apply = _computation(node, int(options.body_subgraph_index))
    low, high = padding[::2], padding[1::2]
    apart = [(d - 1) * b + 1 if d else 0 for d, b in zip(shape, base)]
    wide = [max(d + a + b, 0) for d, a, b in zip(apart, low, high)]
    bounded(wide, node.tensors_in[0].dtype, "the padded input")

    def run(x: np.ndarray, init: np.ndarray) -> np.ndarray:
        start = init.reshape(-1)[0]
        padded = dilated_and_padded(x, start, wide, low, base)
        return reduce_windows(padded, apply, start, window, strides, dilations)

    return windows_over(wide, window, strides, dilations), run


@lite_operator("STABLEHLO_REDUCE_WINDOW", graphs={"body_subgraph_index": "body"})
class StablehloReduceWindowOp(LiteDefinition):
    """Each window of a tensor, which is spread and padded with init_value first, brought to one element.

    .. math:: y_p = \\operatorname{body}_q x_{p \\cdot strides + q \\cdot dilations}

    padding: before and after each dimension, in turn; base_dilations: spread the tensor; window_dilations: the window.
    """

    x = Input(any_dtype)
    init_value = Input(any_dtype)
    y = Output(like="x")
    body = Attr(Graph)

    def combination(op: Any) -> np.ufunc | None:
        """Return the function that reduces a window."""
        return _graph_combination(op.body)

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(None, op.x.spec.dtype)

    def registration(operator: Any) -> Registration:
        return _ReductionRegistration(_windows, 2)
