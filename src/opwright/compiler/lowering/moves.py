"""Index maps read off NumPy views, and the moves of elements that they describe.

Lives here: `layout`, `row_major`; `move`, `move_view`, `writing`.
Not here: which operators move elements (views.py, movement.py), moves themselves (../loops/forms.py).

An operator applied to an array of the operand's shape whose elements are never read returns a view; the view's offset
and strides are the index map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..loops.forms import Buffer, IndexMap, Move
from .context import LoweringContext, NoLowering, Operand


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the elements from one place to the next along each axis."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def layout(operand: Operand | Buffer) -> np.ndarray:
    """Return an array of the operand's shape, a byte for each element, that is never written."""
    return np.empty(operand.shape, np.int8)


def writing(ctx: LoweringContext, output: Buffer, shape: Sequence[int], make: Callable[[Buffer], Any]) -> None:
    """Let `make(buffer)` write a buffer of another shape, whose elements become the output's."""
    buffer, close = ctx.under(output, shape)
    make(buffer)
    close()


def move(ctx: LoweringContext, output: Buffer, *parts: tuple[Buffer, np.ndarray, Sequence[int]],
         fill: float | None = None) -> None:  # fmt: skip
    """Add the move that writes each part's elements in the order of a view, from a place of the output on.

    parts: a buffer, a view of its layout, the place where its box begins
    """
    maps, buffers = [], []
    for buffer, view, start in parts:
        if view.size:
            offset = view.__array_interface__["data"][0] - _origin(view)
            maps.append(IndexMap(tuple(start), view.shape, offset, view.strides))
            buffers.append(buffer)
    ctx.form(Move, output, tuple(buffers), tuple(maps), fill)


def move_view(ctx: LoweringContext, output: Buffer, source: Buffer, view: np.ndarray) -> None:
    """`move` one view that fills all of the output, perhaps under another shape."""
    if math.prod(view.shape) != output.size:
        raise NoLowering(f"{view.shape} elements for {output}")
    writing(ctx, output, view.shape, lambda y: move(ctx, y, (source, view, (0,) * view.ndim)))


def _origin(view: np.ndarray) -> int:
    base: Any = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return int(base.__array_interface__["data"][0])
