"""Reuse of a node's step between runs, where the shapes of its outputs are determined during the run.

Lives here: `ReusableStep`; `RecordedOperand`, which records the values that shape rules read.
Not here: shape inference during a run (../registration.py).

Sizes, axes and paddings computed by a model are mostly the same in every run. Comparing them takes a microsecond;
inferring and checking shapes again takes ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensor import Tensor

if TYPE_CHECKING:
    from .node import Node

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
    def dtype(self) -> Any:
        """The element type."""
        return self.spec.dtype

    @property
    def shape(self) -> Any:
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
