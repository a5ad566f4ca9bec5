"""Shapes that a model computes: constant folding when tensors are allocated, and reuse of steps between runs.

Lives here: `fold`, `can_fold`, `is_folded`, `nothing`; `ReusableStep`; `RecordedOperand`, which records the values
that shape rules read.
Not here: kernels and shape inference during a run (../registration.py), when nodes are prepared (node_preparation.py).

A model for inputs of any size computes shapes by nodes: SHAPE, a slice of it, a product, a list of sizes for RESHAPE.
All of these are known once the inputs have their shapes. Such a node runs once, in prepare; its outputs have the kind
FOLDED until tensors are allocated again, and its readers have static shapes, too.

Sizes, axes and paddings computed during a run are mostly the same in every run. Comparing them takes a microsecond;
inferring and checking shapes again takes ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from ...core.shapes import TensorShape
from ...ops.dispatch import quietly
from ..ops.definition import LiteOperator
from .errors import COMPUTE_ERRORS
from .tensor import ARENA, FOLDED, Tensor

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
    except COMPUTE_ERRORS:
        subgraph.memory_usage.forget(outputs)
        for t in outputs:
            t.set_kind(ARENA)


def _is_known(node: Node, operator: Operator, call: Any) -> bool:
    inputs, outputs, subgraph = node.tensors_in, node.tensors_out, node.subgraph
    if subgraph.running or not can_fold(operator, call, [t is not None and t.constant is None for t in inputs]):
        return False
    return sum(t.nbytes for t in outputs) <= MOST and all(
        t.kind == ARENA and t.index not in subgraph.outputs and subgraph.writers[t.index] == 1 for t in outputs
    )


def can_fold(operator: Operator, call: Any, unknown: Sequence[bool]) -> bool:
    """Return whether all elements that a call reads are known before a run, and it has neither effects nor state.

    unknown: by input, flat, whether its elements are unknown
    """
    last = len(operator.inputs) - 1
    for position, is_unknown in enumerate(unknown):
        if is_unknown and operator.inputs[min(position, last)].name not in operator.shape_only:
            return False
    if not unknown or not isinstance(operator, LiteOperator):
        return False
    return operator.effect is None and not hasattr(call, "resume")  # side effects, or random numbers


MOST_READ = 1 << 8  # bytes of the values that determine shapes; larger tensors are data
MOST_HELD = 1 << 16  # bytes of a node's tensors, which its step keeps alive


class RecordedOperand:
    """An operand of a shape rule during a run, which records that the rule reads its elements."""

    __slots__ = ("_read", "_tensor", "spec")
    fixed = False

    def __init__(self, t: Tensor, read: list[Tensor]) -> None:
        self._tensor, self._read, self.spec = t, read, t.spec

    @property
    def constant(self) -> np.ndarray | None:
        """The elements."""
        self._read.append(self._tensor)
        return self._tensor.array

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return self.spec.shape


class ReusableStep:
    """A node's step, valid while its tensors stay where they are and the values that determined the shapes are
    unchanged."""

    __slots__ = ("_read", "_tensors", "step")

    def __init__(self, node: Node, read: Sequence[Tensor], step: Callable[[], Any]) -> None:
        self._tensors = [(t, t.array) for t in (*node.tensors_in, *node.tensors_out) if t is not None]
        self._read = [
            (t.array, t.array.tobytes())
            for t in {id(t): t for t in read}.values()
            if t.constant is None and t.array is not None
        ]
        self.step = step

    @classmethod
    def of(cls, node: Node, read: Sequence[Tensor], step: Callable[[], Any]) -> ReusableStep | None:
        """Return the reusable step of a run that has just finished; None if it would compare or keep too much.

        read: the tensors whose elements shape rules read.
        """
        tensors = [t for t in (*node.tensors_in, *node.tensors_out) if t is not None and t.constant is None]
        if any(t.array is None or t.is_object for t in tensors):
            return None
        small = sum(t.nbytes for t in tensors) <= MOST_HELD and sum(t.nbytes for t in read) <= MOST_READ
        return cls(node, read, step) if small else None

    @property
    def is_valid(self) -> bool:
        """Whether the step is valid for the present inputs."""
        for t, array in self._tensors:
            if t.array is not array:
                return False
        return all(array.tobytes() == was for array, was in self._read)
