"""Scans along an axis: cumulative sums, products and logarithms of sums of exponentials, linear recurrences.

Lives here: the rules of Cumsum, its builtin, Cumprod, CumulativeLogsumexp, LinearRecurrence and ShiftByOne.
Not here: reductions to one element (reductions.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, int32, int64
from ..loops.buffers import IndexMap, row_major
from ..loops.expressions import Expr, apply, arg, const
from ..loops.ops import Move, Scan
from .context import LoweringContext, NoLowering
from .operand_expressions import same_numbers, truth
from .reductions import axis_of
from .registry import CATALOGUE, rule


def _log_of_sum(x: Expr, y: Expr) -> Expr:
    """Return log(e^x + e^y), of equal infinities themselves."""
    apart = apply("neg", apply("abs", apply("sub", x, y)))
    between = Expr("select", x.dtype, (truth("equal", x, y), const(0.0, x.dtype), apart))
    return apply("add", apply("ieee_maximum", x, y), apply("log1p", apply("exp", between)))


STEPS: dict[str, tuple[Callable[[Expr, Expr], Expr], float]] = {
    "Cumsum": (lambda x, y: apply("add", x, y), 0),
    "CUMSUM": (lambda x, y: apply("add", x, y), 0),
    "Cumprod": (lambda x, y: apply("mul", x, y), 1),
    "CumulativeLogsumexp": (_log_of_sum, -math.inf),
}
"""By operator, what is combined, and the combination of no elements."""


@rule(*STEPS)
def scan(ctx: LoweringContext) -> None:
    """Lower a cumulative sum, product, or logarithm of a sum of exponentials."""
    x = ctx.operand(0)
    axis, y = axis_of(ctx, x), ctx.output(x.shape)
    if x.dtype is bool_ or (x.dtype not in (float32, int32, int64) and ctx.node.dialect != CATALOGUE):
        raise NoLowering(f"cumulative sums of {x}")
    same_numbers(x, y)
    combine, start = STEPS[ctx.operator]
    step = combine(arg(0, x.dtype), arg(1, x.dtype))
    exclusive, reverse = bool(ctx.attr("exclusive")), bool(ctx.attr("reverse"))
    ctx.add(Scan, y.buffer, (x.buffer,), axis, step, start, exclusive, reverse)


@rule("LinearRecurrence")
def linear_recurrence(ctx: LoweringContext) -> None:
    """Lower y_i = x_i + factor_i y_(i-1)."""
    x, factor = ctx.operand(0), ctx.operand(1)
    axis, y = axis_of(ctx, x), ctx.output(x.shape)
    if factor.shape != x.shape:
        raise NoLowering(f"factors {factor} of {x}")
    total, element, decay = (arg(i, x.dtype) for i in range(3))
    step = apply("add", element, apply("mul", decay, total))
    ctx.add(Scan, y.buffer, (x.buffer, factor.buffer), axis, step, 0, False, bool(ctx.attr("reverse")))


@rule("ShiftByOne")
def shift_by_one(ctx: LoweringContext) -> None:
    """Lower a shift by one along an axis, with a zero where no element is."""
    x = ctx.operand(0)
    axis, y, reverse = axis_of(ctx, x), ctx.output(x.shape), bool(ctx.attr("reverse"))
    if not x.size:
        raise NoLowering("no elements")
    steps, size = row_major(x.shape), x.shape[axis] - 1
    extent = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    start = tuple(int(i == axis and not reverse) for i in range(len(x.shape)))
    boxes = (IndexMap(start, extent, steps[axis] if reverse else 0, steps),) if size else ()
    ctx.add(Move, y.buffer, (x.buffer,) * len(boxes), boxes, 0)
