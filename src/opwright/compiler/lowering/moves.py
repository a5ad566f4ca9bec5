"""Moves of elements by index maps, which are read off NumPy views; padding and joining.

Lives here: `layout`, `row_major`, `move`, `move_view`; the rules of Pad, Concat, Pack and their builtins, and of Roll.
Not here: operators whose results are views (views.py), blocks (blocks.py), moves themselves (../loops/forms.py).

An operator applied to an array of the operand's shape whose elements are never read returns a view; the view's offset
and strides are the index map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..loops.forms import Buffer, IndexMap, Move, View
from .context import LoweringContext, NoLowering, Operand
from .quantized import same_numbers
from .registry import rule


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


def move(
    ctx: LoweringContext, output: Buffer, *parts: tuple[Buffer, np.ndarray, Sequence[int]], fill: float | None = None
) -> None:
    """Add the move that writes each part's elements in the order of a view, from a place of the output on.

    parts: a buffer, a view of its layout, the place where its box begins. fill: of all other elements.
    """
    maps, buffers = [], []
    for buffer, view, start in parts:
        if view.size:
            maps.append(IndexMap(tuple(start), view.shape, _offset(view), view.strides))
            buffers.append(buffer)
    ctx.form(Move, output, tuple(buffers), tuple(maps), fill)


def move_view(ctx: LoweringContext, output: Buffer, source: Buffer, view: np.ndarray, whole: np.ndarray) -> None:
    """Write the elements of a view of the source's layout, in order; a View if these are all of them in their order.

    whole: the layout. raises NoLowering for an array that is no view of it
    """
    if math.prod(view.shape) != output.size or (view.size and not np.may_share_memory(view, whole)):
        raise NoLowering(f"{view.shape} is no view for {output}")
    offset, strides = _offset(view) if view.size else 0, tuple(view.strides)
    is_all = view.size == source.size and not offset
    if is_all and all(n == 1 or s == r for n, s, r in zip(view.shape, strides, row_major(view.shape))):
        ctx.form(View, output, source)
        return
    box = IndexMap((0,) * view.ndim, view.shape, offset, strides)
    with ctx.reshaped(output, view.shape) as y:
        ctx.form(Move, y, (source,), (box,))


def _offset(view: np.ndarray) -> int:
    """Bytes, and so elements, from the layout's first."""
    base: Any = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return int(view.__array_interface__["data"][0] - base.__array_interface__["data"][0])


# ---- padding and joining --------------------------------------------------------------------------------------------


def margins_of(ctx: LoweringContext) -> tuple[list[int], list[int]]:
    """Return the sizes of padding before and after each axis of the first input. Raises NoLowering."""
    margins, rank = ctx.constant(1), len(ctx.operand(0).shape)
    if margins.shape != (rank, 2) or (margins < 0).any():
        raise NoLowering(f"paddings {margins.tolist()}")
    return margins[:, 0].tolist(), margins[:, 1].tolist()


@rule("Pad", "PAD")
def pad(ctx: LoweringContext) -> None:
    """With a constant, by default what stands for 0."""
    x, value, (before, after) = ctx.operand(0), ctx.optional(2), margins_of(ctx)
    y = ctx.output([b + n + a for b, n, a in zip(before, x.shape, after)])
    same_numbers(x, y)
    fill = x.zero
    if value is not None:
        same_numbers(value, x)
        fill = ctx.constant(2).reshape(-1)[0].item()
    move(ctx, y.buffer, (x.buffer, layout(x), before), fill=fill)


@rule("Concat", "CONCATENATION", "Pack", "PACK")
def join(ctx: LoweringContext) -> None:
    """Along an axis, or along a new one."""
    parts, axis, packs = ctx.operands, int(ctx.attr("axis")), ctx.operator in ("Pack", "PACK")
    shape = list(parts[0].shape)
    rank = len(shape) + packs
    if not -rank <= axis < rank or ctx.node.activation != "NONE":
        raise NoLowering(f"joining along {axis} of {rank}")
    axis %= rank
    size, others = 0, shape if packs else shape[:axis] + shape[axis + 1 :]
    moves: list[tuple[Buffer, np.ndarray, Sequence[int]]] = []
    for part in parts:
        if list(part.shape if packs else part.shape[:axis] + part.shape[axis + 1 :]) != others:
            raise NoLowering(f"joining {parts} along {axis}")
        view = layout(part)
        view = view[(slice(None),) * axis + (None,)] if packs else view
        moves.append((part.buffer, view, [size if i == axis else 0 for i in range(rank)]))
        size += view.shape[axis]
    y = ctx.output((*others[:axis], size, *others[axis:]))
    for part in parts:
        same_numbers(part, y)
    move(ctx, y.buffer, *moves)


@rule("Roll")
def roll(ctx: LoweringContext) -> None:
    """An axis after the other: what passes the end, and what does not."""
    x = ctx.operand(0)
    shifts, axes = (ctx.constant(place).reshape(-1).tolist() for place in (1, 2))
    y, rank = ctx.output(x.shape), len(x.shape)
    same_numbers(x, y)
    if len(shifts) != len(axes) or not axes or not x.size or any(not -rank <= a < rank for a in axes):
        raise NoLowering(f"{x} moved by {shifts} along {axes}")
    source, steps = x.buffer, row_major(x.shape)
    for number, (shift, axis) in enumerate(zip(shifts, axes)):
        target = y.buffer if number == len(axes) - 1 else ctx.new(x.dtype, x.shape, f".axis{number}")
        size, axis = x.shape[axis], axis % rank
        shift %= size
        boxes = []
        for first, extent, offset in ((0, shift, size - shift), (shift, size - shift, 0)):
            if extent:
                start = (*(0,) * axis, first, *(0,) * (rank - axis - 1))
                sizes = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
                boxes.append(IndexMap(start, sizes, offset * steps[axis], steps))
        ctx.form(Move, target, (source,) * len(boxes), tuple(boxes))
        source = target
