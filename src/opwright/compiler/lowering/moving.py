"""Operators that move elements: PAD, RESHAPE, SQUEEZE, EXPAND_DIMS, CONCATENATION, PACK.

Lives here: these rules.  Not here: moves as index maps (compiler/loops/forms.py), kernels.
"""

from __future__ import annotations

import numpy as np

from ..loops.forms import IndexMap, Move, View
from .context import LoweringContext, NoLowering, Operand
from .registry import rule


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one place to the next along each axis."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def same_numbers(x: Operand, y: Operand) -> None:
    """Raises NoLowering where the elements of two operands stand for different numbers."""
    alike = x.dtype is y.dtype and x.is_quantized == y.is_quantized
    if alike and x.is_quantized:
        alike = np.array_equal(x.scales, y.scales) and x.zero == y.zero
    if not alike:
        raise NoLowering(f"{x.value!r} and {y.value!r} have other types or scales")


def margins_of(ctx: LoweringContext) -> tuple[list[int], list[int]]:
    """What is to be added before and after each axis of the first input. Raises NoLowering."""
    margins, rank = ctx.constant(1), len(ctx.operand(0).shape)
    if margins.shape != (rank, 2) or (margins < 0).any():
        raise NoLowering(f"paddings {margins.shape}")
    return margins[:, 0].tolist(), margins[:, 1].tolist()


@rule("PAD")
def pad(ctx: LoweringContext) -> None:
    """Also PADV2 with a constant."""
    x, (before, after) = ctx.operand(0), margins_of(ctx)
    y = ctx.output([b + n + a for b, n, a in zip(before, x.shape, after)])
    same_numbers(x, y)
    if ctx.operator == "PADV2":
        value = ctx.operand(2)
        same_numbers(value, x)
        fill = ctx.constant(2).reshape(-1)[0].item()
    else:
        fill = x.zero if x.is_quantized else 0
    box = IndexMap(tuple(before), x.shape, 0, row_major(x.shape))
    ctx.form(Move, y.buffer, (x.buffer,), (box,), fill)


@rule("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def view(ctx: LoweringContext) -> None:
    """The output's shape is the file's: the interpreter's shape rules say the same wherever they need no values."""
    x, y = ctx.operand(0), ctx.output()
    same_numbers(x, y)
    if x.size != y.size:
        raise NoLowering(f"{x} under the shape {list(y.shape)}")
    _check_shape(ctx, x, y)
    ctx.form(View, y.buffer, x.buffer)


def _check_shape(ctx: LoweringContext, x: Operand, y: Operand) -> None:
    """Raises NoLowering where the output's shape is not what the operator says."""
    name = ctx.operator
    if name == "EXPAND_DIMS":
        axis = int(ctx.constant(1).reshape(-1)[0])
        shape = list(x.shape)
        shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
        ctx.output(shape)
    elif name == "SQUEEZE":
        given = ctx.attr("squeeze_dims")
        rank = len(x.shape)
        axes = [] if isinstance(given, int) or given is None else [int(a) % rank for a in given]
        axes = axes or [i for i, n in enumerate(x.shape) if n == 1]
        ctx.output([n for i, n in enumerate(x.shape) if i not in axes])
    else:
        given = ctx.optional(1)
        sizes = ctx.constant(1) if given is not None else ctx.attr("new_shape")
        wanted = [] if sizes is None or isinstance(sizes, int) else np.asarray(sizes).reshape(-1).tolist()
        known = int(np.prod([n for n in wanted if n != -1], dtype=np.int64))
        ctx.output([x.size // known if n == -1 and known else n for n in wanted])


@rule("CONCATENATION")
def concatenation(ctx: LoweringContext) -> None:
    y, parts = ctx.output(), ctx.operands
    rank = len(y.shape)
    axis = ctx.attr("axis")
    if not -rank <= axis < rank or ctx.attr("fused_activation_function") not in (0, "NONE"):
        raise NoLowering(f"joining along {axis} of {rank}")
    axis %= rank
    if any(len(p.shape) != rank for p in parts):
        raise NoLowering("ranks differ")
    for p in parts:
        same_numbers(p, y)
    ctx.output([sum(p.shape[axis] for p in parts) if i == axis else n for i, n in enumerate(parts[0].shape)])
    maps, at_row = [], 0
    for p in parts:
        if p.shape[:axis] + p.shape[axis + 1 :] != y.shape[:axis] + y.shape[axis + 1 :]:
            raise NoLowering("sizes differ")
        start = tuple(at_row if i == axis else 0 for i in range(rank))
        maps.append(IndexMap(start, p.shape, 0, row_major(p.shape)))
        at_row += p.shape[axis]
    ctx.form(Move, y.buffer, tuple(p.buffer for p in parts), tuple(maps))


@rule("PACK")
def pack(ctx: LoweringContext) -> None:
    parts = ctx.operands
    shape, axis = parts[0].shape, ctx.attr("axis")
    rank = len(shape) + 1
    if not -rank <= axis < rank or any(p.shape != shape for p in parts):
        raise NoLowering(f"stacking {parts} along {axis}")
    axis %= rank
    y = ctx.output((*shape[:axis], len(parts), *shape[axis:]))
    for p in parts:
        same_numbers(p, y)
    strides, extent = row_major(shape), (*shape[:axis], 1, *shape[axis:])
    maps = tuple(
        IndexMap(tuple(i if k == axis else 0 for k in range(rank)), extent, 0, (*strides[:axis], 0, *strides[axis:]))
        for i in range(len(parts))
    )
    ctx.form(Move, y.buffer, tuple(p.buffer for p in parts), maps)
