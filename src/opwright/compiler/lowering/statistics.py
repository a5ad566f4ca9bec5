"""Counts: DenseBincount, HistogramFixedWidth.

Lives here: their rules.
Not here: reductions to segments (reductions.py), the kernel (../kernels/counts.py).
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import float64, int64
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.indexing_ops import Counts
from ..loops.ops import Map
from .context import LoweringContext, NoLowering
from .operand_expressions import truth
from .registry import rule


@rule("DenseBincount")
def bincount(ctx: LoweringContext) -> None:
    """Lower counts of numbers by row, up to a constant size."""
    x, size, y = ctx.operand(0), int(ctx.constant(1).reshape(-1)[0]), ctx.output()
    weights = ctx.operand(2)
    if not x.size or not y.size or y.shape[-1] != size or (weights.size and weights.shape != x.shape):
        raise NoLowering(f"counts {y} of {x} with weights {weights}")
    rows = math.prod(x.shape[:-1])
    numbers = ctx.viewed(x.buffer, (rows, x.shape[-1]))
    once = bool(ctx.attr("binary_output"))
    values = ctx.viewed(weights.buffer, numbers.shape) if weights.size and not once else None
    with ctx.reshaped(y, (rows, size)) as out:
        ctx.add(Counts, out, numbers, values, once)


@rule("HistogramFixedWidth")
def histogram(ctx: LoweringContext) -> None:
    """Lower the counts of values by interval of a constant range; the operator's arithmetic in the same steps."""
    x, bounds, bins = ctx.operand(0), ctx.constant(1).reshape(-1), int(ctx.constant(2).reshape(-1)[0])
    y = ctx.output((bins,))
    if x.dtype.is_integer:
        bounds = bounds.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        width = bounds[1] - bounds[0]
    if bins < 1 or not bounds[0] < bounds[1] or not np.isfinite(width) or not x.size:
        raise NoLowering(f"{bins} bins of {bounds.tolist()} for {x}")
    dtype = float64 if x.dtype.is_integer else x.dtype
    value = convert(arg(0, x.dtype), dtype)
    low, high = (const(float(b), dtype) for b in bounds)
    inside = apply("minimum", apply("maximum", value, low), high)
    place = apply("div", convert(apply("sub", inside, low), float64), const(float(np.float64(width) / bins), float64))
    number = apply("minimum", convert(place, int64), const(bins - 1, int64))
    # NaN is a negative number: a failed guard
    number = Expr("select", int64, (truth("equal", value, value), number, const(-1, int64)))
    numbers = ctx.new(int64, (1, x.size), ".bins")
    ctx.add(Map, numbers, (ctx.viewed(x.buffer, numbers.shape),), number)
    with ctx.reshaped(y, (1, bins)) as out:
        ctx.add(Counts, out, numbers)
