"""Operators whose outputs are parts of their input under other strides: TRANSPOSE to UNPACK.

Lives here: the rule of TRANSPOSE, SLICE, STRIDED_SLICE, BROADCAST_TO, REVERSE_V2, SPLIT, SPLIT_V and UNPACK; `moved`.
Not here: joining and padding (moving.py), blocks of space (blocks.py).

What an operator means is said once, where it is defined (lite/ops): its own `infer` and `compute` are asked about an
array of the input's shape whose elements nobody looks at, and what NumPy makes of its strides is the index map.
"""

from __future__ import annotations

import numpy as np

from ..loops.forms import Gather, IndexMap, Move, SliceAt, View
from .context import LoweringContext, NoLowering, Operand
from .moving import row_major
from .quantized import same_numbers
from .registry import rule

FEW = 4096  # elements that are numbered to find one of them


def layout(operand: Operand) -> np.ndarray:
    """An array of the operand's shape, a byte an element, which nobody has written to."""
    return np.empty(operand.shape, np.int8)


def asked(ctx: LoweringContext, place: int, places: np.ndarray) -> list[np.ndarray]:
    """What the operator makes of `places` in the place of its input, and of its other inputs, which are constants.

    raises NoLowering where it has something against the node, or another input is no constant
    """
    operands = ctx.operands
    return ctx.node.evaluate(operands, [places if i == place else ctx.constant(i) for i in range(len(operands))])


def moved(ctx: LoweringContext, y: Operand, x: Operand, view: np.ndarray, places: np.ndarray) -> None:
    """Make the output the elements of x that are a view of `places`, in their order."""
    start = places.__array_interface__["data"][0]
    offset = view.__array_interface__["data"][0] - start
    if view.size != y.size or not (np.may_share_memory(view, places) or not view.size):
        raise NoLowering(f"{view.shape} is no view for {y}")
    strides = tuple(view.strides)
    whole = view.size == x.size and not offset
    if whole and all(n == 1 or s == r for n, s, r in zip(view.shape, strides, row_major(view.shape))):
        ctx.form(View, y.buffer, x.buffer)
        return
    out, close = ctx.under(y, view.shape)
    box = IndexMap((0,) * view.ndim, view.shape, offset if view.size else 0, strides)
    ctx.form(Move, out, (x.buffer,), (box,))
    close()


PLACES = {"SPLIT": 1}
"""Where the input is whose elements are moved, if not first."""


@rule("TRANSPOSE", "SLICE", "STRIDED_SLICE", "BROADCAST_TO", "REVERSE_V2", "SPLIT", "SPLIT_V", "UNPACK")
def view(ctx: LoweringContext) -> None:
    place = PLACES.get(ctx.operator, 0)
    x = ctx.operand(place)
    if ctx.operator == "SLICE" and ctx.operand(1).constant is None:
        _slice_at(ctx, x)
        return
    if ctx.operator == "STRIDED_SLICE" and ctx.operand(1).constant is None and _is_element(ctx, x):
        _element_at(ctx, x)
        return
    places = layout(x)
    for i, part in enumerate(asked(ctx, place, places)):
        y = ctx.output(np.shape(part), i)
        same_numbers(x, y)
        if isinstance(part, np.ndarray):
            moved(ctx, y, x, part, places)
        elif x.size <= FEW:  # one element: NumPy gives that, and no view
            number = asked(ctx, place, np.arange(x.size).reshape(x.shape))[i]
            ctx.form(Move, y.buffer, (x.buffer,), (IndexMap((), (), int(number), ()),))
        else:
            raise NoLowering(f"one element of {x}")


def _is_element(ctx: LoweringContext, x: Operand) -> bool:
    """Whether a STRIDED_SLICE is x[i] along the first axis."""
    masks = [ctx.attr(f"{name}_mask") for name in ("begin", "ellipsis", "new_axis", "shrink_axis")]
    return ctx.operand(1).shape == (1,) and bool(x.shape) and masks == [0, 0, 0, 1]


def _element_at(ctx: LoweringContext, x: Operand) -> None:
    """x[i] along the first axis, i computed."""
    start = ctx.operand(1)
    y = ctx.output(x.shape[1:])
    same_numbers(x, y)
    ctx.form(Gather, y.buffer, x.buffer, ctx.viewed(start.buffer, ()), 0)


def _slice_at(ctx: LoweringContext, x: Operand) -> None:
    """A slice of a size that the file says, from a place that is computed."""
    starts, sizes = ctx.operand(1), tuple(int(n) for n in ctx.constant(2))
    if starts.shape != (len(x.shape),) or len(sizes) != len(x.shape) or any(
            not 0 <= s <= n for s, n in zip(sizes, x.shape)):  # fmt: skip
        raise NoLowering(f"a slice of {x} at {starts}")
    y = ctx.output(sizes)
    same_numbers(x, y)
    ctx.form(SliceAt, y.buffer, x.buffer, starts.buffer)
