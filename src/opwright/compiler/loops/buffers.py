"""Buffers of a loop graph, and the windows and boxes that index them.

Lives here: `Buffer`, a tensor; `RowBand`, `Ring` and `SameMemory`, views of other buffers; `Window`, `IndexMap`,
`row_major`.
Not here: operations on buffers (ops.py and *_ops.py), their memory (planner.py).

Buffers are immutable and compared by identity. Arrays are dense and row-major; images are NHWC.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.dtypes import DType
from ...core.errors import InternalError
from ...core.records import record


def row_major(shape: Sequence[int], pitch: int | None = None) -> tuple[int, ...]:
    """Return the strides of an array in elements. pitch: from row to row of the last axis; None if it is dense."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step, pitch = step * n if pitch is None else pitch, None
    return tuple(reversed(strides))


@record
class Buffer:
    """A tensor of the loop graph. constant: its elements, if known at compile time.

    A buffer with a parent is a slice of the parent's last axis from `start` on: a part of a concatenation that its
    producer writes in place.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    constant: np.ndarray | None = None
    parent: Buffer | None = None
    start: int = 0

    def __post_init__(self) -> None:
        constant = self.constant
        if constant is not None and (constant.dtype != self.dtype.np or constant.size != self.size):
            raise InternalError(
                op="loop graph",
                what=f"the constant {self!r} does not have the elements of its buffer",
                found=f"{constant.dtype}{list(constant.shape)}",
            )

    @property
    def pitch(self) -> int:
        """Elements from one row (all but the last axis) to the next."""
        if self.parent is not None:
            return self.parent.pitch
        return self.shape[-1] if self.shape else 1

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype.short}{list(self.shape)}"


@record
class RowBand(Buffer):
    """Consecutive rows (all but the last axis) of another buffer, from its row `first` on: a band of an image."""

    of: Buffer = None  # type: ignore[assignment]
    first: int = 0

    @property
    def pitch(self) -> int:
        """Pitch of the other buffer."""
        return self.of.pitch


@record
class Ring(Buffer):
    """An image of which a few lines are stored: line i is line (i + shift) mod `lines` of another buffer."""

    of: Buffer = None  # type: ignore[assignment]
    lines: int = 1
    shift: int = 0


@record
class SameMemory(Buffer):
    """The memory of another buffer under its own shape; of a variable, its value after the graph has run."""

    of: Buffer = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Window:
    """A kernel's window over an image: (height, width) each; padding: (top, bottom, left, right) in pixels, negative to
    crop."""

    size: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)


STRANDS = 2
"""Number of strands of row bands, and so of threads with work. Each additional strand computes a few lines twice."""


def ring_lines(window: Window, lines: int) -> int:
    """Return the lines of a ring for a window that computes `lines` output lines at a time: at least the lines
    that it reads, and a multiple of its advance, so that new lines are contiguous."""
    step = lines * window.strides[0]
    window_lines = step - window.strides[0] + window.size[0]
    return -(-window_lines // step) * step


@dataclass(frozen=True)
class IndexMap:
    """An affine map from an output element at (i0, i1, ...) to the element offset + sum i_k strides_k of a flat input,
    for a box of the output: `extent` elements along each axis from `start` on."""

    start: tuple[int, ...]
    extent: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]
