"""Constant folding of nodes whose results are known when tensors are allocated, such as arithmetic on shapes.

Lives here: `fold`, `is_folded`, `nothing`.
Not here: kernels (lite/registration.py), when nodes are prepared (subgraph.py).

A model for inputs of any size computes shapes by nodes: SHAPE, a slice of it, a product, a list of sizes for RESHAPE.
All of these are known once the inputs have their shapes. Such a node runs once, in prepare; its outputs have the kind
FOLDED until tensors are allocated again, and its readers have static shapes, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.errors import OpError
from ...ops.dispatch import quietly
from ..ops.definition import LiteOperator
from .tensor import ARENA, FOLDED

if TYPE_CHECKING:
    from ...ops.definition import Operator
    from .node import Node

MOST = 1 << 12  # bytes of the outputs: sizes, axes, paddings; larger tensors are data


def is_folded(node: Node) -> bool:
    """Return whether a node was computed in prepare."""
    outputs = node.tensors_out
    return bool(outputs) and all(t.kind == FOLDED for t in outputs)


def nothing() -> None:
    """Do nothing: the step of a folded node."""


def fold(node: Node, operator: Operator, call: Any, bound: Callable[[Node], Callable[[], Any]]) -> None:
    """Compute a prepared node if its inputs are known and its result is small.

    call: the node's attributes. bound: returns the function that computes it. An error is ignored here, because the run
    raises it.
    """
    if not _is_known(node, operator, call):
        return
    subgraph, outputs = node.subgraph, node.tensors_out
    for t in outputs:
        t.set_kind(FOLDED)
        subgraph.allocate_own(t)
    try:
        quietly(bound(node))
    except (OpError, ArithmeticError, IndexError, TypeError, ValueError):
        subgraph.memory_usage.forget(outputs)
        for t in outputs:
            t.set_kind(ARENA)


def _is_known(node: Node, operator: Operator, call: Any) -> bool:
    inputs, outputs, subgraph = node.tensors_in, node.tensors_out, node.subgraph
    last = len(operator.inputs) - 1
    for position, t in enumerate(inputs):
        if (
            t is not None
            and t.constant is None
            and operator.inputs[min(position, last)].name not in operator.shape_only
        ):
            return False
    if not inputs or subgraph.running or not isinstance(operator, LiteOperator):
        return False
    if operator.effect is not None or hasattr(call, "resume"):  # side effects, or random numbers
        return False
    return sum(t.nbytes for t in outputs) <= MOST and all(
        t.kind == ARENA and t.index not in subgraph.outputs and subgraph.writers[t.index] == 1 for t in outputs
    )
