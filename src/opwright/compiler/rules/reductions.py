"""Reductions: sums, means, extrema, counts along axes; running sums.

Lives here: their rules.  Not here: what needs whole rows (rows.py), pools (pools.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.dtypes import DType, int32
from ...core.dtypes import bool as bool_
from ..loops.expressions import Expr, apply, arg, const
from ..loops.forms import ArgReduce, Buffer, Reduce, Scan, View
from ..lowering.context import LoweringContext, NoLowering
from ..lowering.moves import layout, move_view, writing
from ..lowering.registry import rule
from .elementwise import mapped

KINDS = {"Sum": "sum", "Mean": "sum", "Max": "max", "Min": "min", "Prod": "prod", "Any": "any", "All": "all"}


@rule(*KINDS)
def reduction(ctx: LoweringContext) -> None:
    name, x = ctx.operator, ctx.operand(0).buffer
    axes = _axes(ctx.attr("axis"), len(x.shape))
    count = math.prod(x.shape[i] for i in axes)
    dtype = x.dtype
    whole = dtype is bool_ if name in ("Any", "All") else dtype.is_floating or (dtype is int32 and name != "Mean")
    if not whole or not count:
        raise NoLowering(f"{name} of {count} {dtype.name}")
    y, element, after = ctx.output().buffer, arg(0, dtype), arg(0, dtype)
    if count == 1:
        ctx.form(View, y, x)
        return
    if name == "Mean":
        after = apply("mul", after, const(1.0 / count, dtype))
    if name not in ("Max", "Min") or not dtype.is_floating:
        reduced(ctx, y, x, axes, KINDS[name], element, after)
        return
    extreme, wrong = ctx.new(dtype, y.shape), Buffer(f"{ctx.node.prefix}.nan", bool_, y.shape)
    reduced(ctx, extreme, x, axes, KINDS[name], element, after)
    reduced(ctx, wrong, x, axes, "any", apply("not_equal", element, element, dtype=bool_), arg(0, bool_))
    nan = const(math.nan, dtype)
    mapped(ctx, y, [extreme, wrong], lambda e, w: apply("select", w, nan, e, dtype=dtype))


def reduced(
    ctx: LoweringContext, y: Buffer, x: Buffer, axes: Sequence[int], kind: str, before: Expr, after: Expr
) -> None:
    """Add a reduction that writes y, whose shape is x's without the axes, with 1 there, or a mixture."""
    axes = tuple(axes)
    if not axes:
        raise NoLowering("a reduction along no axis")
    if y.size != math.prod(n for i, n in enumerate(x.shape) if i not in axes):
        raise NoLowering(f"{x} reduced to {y}")
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    left = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    shape = y.shape if y.shape in (kept, left) else left
    writing(ctx, y, shape, lambda out: ctx.form(Reduce, out, x, axes, kind, before, after))


def _axes(axis: object, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted({int(a) % max(rank, 1) for a in given}))


@rule("SumToLike")
def sum_to_like(ctx: LoweringContext) -> None:
    """The axes along which `like` was broadcast to x."""
    x, y = ctx.operand(0).buffer, ctx.output().buffer
    ahead = len(x.shape) - len(y.shape)
    axes = [i for i, n in enumerate(x.shape) if i < ahead or (y.shape[i - ahead] == 1 and n != 1)]
    _floating(x.dtype)
    if not axes:
        move_view(ctx, y, x, layout(x))
        return
    reduced(ctx, y, x, axes, "sum", arg(0, x.dtype), arg(0, x.dtype))


def _floating(dtype: DType) -> None:
    if not dtype.is_floating:
        raise NoLowering(f"a sum of {dtype.name}")


@rule("BiasAddGrad")
def bias_add_grad(ctx: LoweringContext) -> None:
    x = ctx.operand(0).buffer
    _floating(x.dtype)
    channel = len(x.shape) - 1 if ctx.attr("data_format").endswith("C") else 1
    axes = [i for i in range(len(x.shape)) if i != channel]
    reduced(ctx, ctx.output().buffer, x, axes, "sum", arg(0, x.dtype), arg(0, x.dtype))


@rule("L2Loss")
def l2_loss(ctx: LoweringContext) -> None:
    x = ctx.operand(0).buffer
    _floating(x.dtype)
    half = apply("mul", arg(0, x.dtype), const(0.5, x.dtype))
    reduced(ctx, ctx.output().buffer, x, range(len(x.shape)), "sum", apply("square", arg(0, x.dtype)), half)


@rule("ArgMax", "ArgMin")
def arg_extremum(ctx: LoweringContext) -> None:
    x = ctx.operand(0).buffer
    axis = int(ctx.attr("axis")) % max(len(x.shape), 1)
    if not x.shape or not x.shape[axis]:
        raise NoLowering(f"the place of an extremum of {x}")
    y = ctx.output(x.shape[:axis] + x.shape[axis + 1 :]).buffer
    ctx.form(ArgReduce, y, x, axis, "max" if ctx.operator == "ArgMax" else "min")


@rule("Cumsum")
def cumsum(ctx: LoweringContext) -> None:
    x = ctx.operand(0).buffer
    axis = int(ctx.attr("axis"))
    if not x.shape or not x.size or x.dtype is bool_:
        raise NoLowering(f"running sums of {x}")
    exclusive, reverse = bool(ctx.attr("exclusive")), bool(ctx.attr("reverse"))
    ctx.form(Scan, ctx.output(x.shape).buffer, x, axis % len(x.shape), exclusive, reverse)
