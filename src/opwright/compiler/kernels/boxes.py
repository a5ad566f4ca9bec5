"""Boxes of arrays in memory: their axes, as few as describe them, for selectors and for kernels.

Lives here: `Axis`, `joined`, `table_of` and, in kernels, `place`.  Not here: what is done with boxes (moves.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import language as kl
from ..language import u8, u16, u32, u64

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

UNITS = {1: u8, 2: u16, 4: u32, 8: u64}
"""By bytes of an element, what it is moved as."""


class Axis(NamedTuple):
    """An axis of a box: its extent, and the bytes from one element to the next, in the input and in the output."""

    extent: int
    source: int
    target: int


def joined(axes: list[Axis]) -> list[Axis]:
    """The axes without those of one, neighbours joined where a step along the outer is a whole run of the inner."""
    found: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        before = found[-1] if found else None
        if before and before.source == axis.extent * axis.source and before.target == axis.extent * axis.target:
            found[-1] = Axis(before.extent * axis.extent, axis.source, axis.target)
        else:
            found.append(axis)
    return found


def table_of(axes: list[Axis], build: Builder) -> Any:
    """The outer axes for `place`."""
    if not axes:
        return 0
    return build.constant(np.array(axes, np.int64), key=("axes", tuple(axes)))


def place(item: Any, table: Any, axes: int) -> tuple[Any, Any]:
    """Where item i of a box's outer axes begins, in the input and the output. table: (extent, steps) of each axis."""
    rest, source, target = item, kl.value(0), kl.value(0)
    for axis in reversed(range(axes)):
        extent = table[3 * axis]
        at = rest % extent if axis else rest
        rest = rest // extent if axis else rest
        source = source + at * table[3 * axis + 1]
        target = target + at * table[3 * axis + 2]
    return source, target
