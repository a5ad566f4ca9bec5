"""Fold nodes whose results are known when tensors are allocated: what is computed of shapes, and of that.

Lives here: `fold`, `is_folded`, `nothing`.
Not here: how a node computes (lite/registration.py), when nodes are prepared (subgraph.py).

A model for inputs of any size works out shapes by nodes: SHAPE, a slice of it, a product, a list of sizes that RESHAPE
reads. Once the inputs have their shapes all of that is known. Such a node runs once, in prepare; its outputs are of the
kind FOLDED until tensors are allocated again, and what reads them has a shape before it runs, too.
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

MOST = 1 << 12  # bytes of its outputs: sizes, axes, paddings. What is larger is data


def is_folded(node: Node) -> bool:
    """Whether a node has been computed when it was prepared."""
    outputs = node.tensors_out
    return bool(outputs) and all(t.kind == FOLDED for t in outputs)


def nothing() -> None:
    """The step of a node that has been computed."""


def fold(node: Node, operator: Operator, call: Any, bound: Callable[[Node], Callable[[], Any]]) -> None:
    """Compute a prepared node whose result follows from what is known, where that is small.

    call: the node's attributes; bound: makes the function that computes it. Where that fails nothing happens: the run
    says what is wrong.
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
        subgraph.holding.forget(outputs)
        for t in outputs:
            t.set_kind(ARENA)


def _is_known(node: Node, operator: Operator, call: Any) -> bool:
    inputs, outputs, subgraph = node.tensors_in, node.tensors_out, node.subgraph
    last = len(operator.inputs) - 1
    for place, t in enumerate(inputs):
        if t is not None and t.constant is None and operator.inputs[min(place, last)].name not in operator.shape_only:
            return False
    if not inputs or subgraph.running or not isinstance(operator, LiteOperator):
        return False
    if operator.effect is not None or hasattr(call, "resume"):  # the world, or random numbers
        return False
    return sum(t.nbytes for t in outputs) <= MOST and all(
        t.kind == ARENA and t.index not in subgraph.outputs and subgraph.writers[t.index] == 1 for t in outputs
    )
