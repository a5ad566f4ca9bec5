"""Runs of a node whose outputs get their shapes as the model runs, while these stay what they were.

Lives here: `ReusableStep`, `RecordedOperand`, which shape rules read to make one.
Not here: how shapes follow from values (../registration.py).

Sizes, axes and paddings that a node is given while the model runs are mostly those of the run before. To compare them
takes a microsecond, to work out and to check shapes again ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensor import Tensor

if TYPE_CHECKING:
    from .node import Node

MOST_READ = 1 << 8  # bytes of the values that shapes follow from: what is larger is data
MOST_HELD = 1 << 16  # bytes of a node's tensors, which live as long as its step


class RecordedOperand:
    """A tensor whose elements are there now, which notes that shape rules ask for them."""

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
    def dtype(self) -> Any:
        """The element type."""
        return self.spec.dtype

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.spec.shape


class ReusableStep:
    """A node's step, right while its tensors lie where they did and values that shapes followed from are the same."""

    __slots__ = ("_held", "_read", "step")

    def __init__(self, node: Node, read: Sequence[Tensor], step: Callable[[], Any]) -> None:
        self._held = [(t, t.array) for t in (*node.tensors_in, *node.tensors_out) if t is not None]
        self._read = [
            (t.array, t.array.tobytes())
            for t in {id(t): t for t in read}.values()
            if t.constant is None and t.array is not None
        ]
        self.step = step

    @classmethod
    def of(cls, node: Node, read: Sequence[Tensor], step: Callable[[], Any]) -> ReusableStep | None:
        """The repeat of a step that has just run; None where too much would be compared or held. read: the tensors
        whose elements shape rules asked for."""
        tensors = [t for t in (*node.tensors_in, *node.tensors_out) if t is not None and t.constant is None]
        if any(t.array is None or t.is_object for t in tensors):
            return None
        small = sum(t.nbytes for t in tensors) <= MOST_HELD and sum(t.nbytes for t in read) <= MOST_READ
        return cls(node, read, step) if small else None

    @property
    def is_right(self) -> bool:
        """Whether the step does what the node is to do now."""
        for t, array in self._held:
            if t.array is not array:
                return False
        return all(array.tobytes() == was for array, was in self._read)
