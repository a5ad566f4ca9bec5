"""Element-wise operators composed of functions of the scalar table, and masks and marks of classes.

Lives here: the rules of Xlogy, Xlog1py, MulNoNan, ApproximateEqual, Cross; of SequenceMask, InTopK and
ConfusionMatrix; of AdjustContrast.
Not here: functions of one row of the table (functions.py), colors (colors.py).
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int32, int64
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.indexing_ops import Gather, ScatterAt
from ..loops.ops import Map, Move, Reduce
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import map_elements, truth
from .registry import rule

FLOATS = (float32, float64)


def _unless_zero(x: Expr, value: Expr) -> Expr:
    """Return a value, 0 where x is 0."""
    zero = const(0.0, x.dtype)
    return Expr("select", x.dtype, (truth("equal", x, zero), zero, value))


COMPOSED = {
    "Xlogy": lambda x, y: _unless_zero(x, apply("mul", x, apply("log", y))),
    "Xlog1py": lambda x, y: _unless_zero(x, apply("mul", x, apply("log1p", y))),
    "MulNoNan": lambda x, y: _unless_zero(y, apply("mul", x, y)),
}


@rule(*COMPOSED)
def composed(ctx: LoweringContext) -> None:
    """Lower a product that is 0 where a factor is, whatever the other."""
    map_elements(ctx, ctx.output().buffer, [o.buffer for o in ctx.operands], COMPOSED[ctx.operator])


@rule("ApproximateEqual")
def approximate_equal(ctx: LoweringContext) -> None:
    """Lower the test of a difference of floats, whose bound is rounded to float32."""
    x, y = (o.buffer for o in ctx.operands)
    if x.dtype not in FLOATS:
        raise NoLowering(f"differences of {x}")
    bound = const(float(np.float32(ctx.attr("tolerance"))), x.dtype)

    def expr(a: Expr, b: Expr) -> Expr:
        return truth("less", apply("abs", apply("sub", a, b)), bound)

    map_elements(ctx, ctx.output().buffer, [x, y], expr)


@rule("Cross")
def cross(ctx: LoweringContext) -> None:
    """Lower the product of vectors of three elements, by rotations of both."""
    a, b = ctx.operands
    y = ctx.output(a.shape)
    if a.shape != b.shape or a.dtype not in DTYPES or a.dtype.is_bool or not a.size:
        raise NoLowering(f"vectors {a} and {b}")
    rows = a.size // 3

    def rotated(x: RuleOperand, by: int) -> Buffer:
        result = ctx.new(x.dtype, (rows, 3), f".{x.buffer.name}{by}")
        boxes = (IndexMap((0, 0), (rows, 3 - by), by, (3, 1)), IndexMap((0, 3 - by), (rows, by), 0, (3, 1)))
        ctx.add(Move, result, (x.buffer,) * 2, boxes)
        return result

    operands = [rotated(a, 1), rotated(b, 2), rotated(a, 2), rotated(b, 1)]
    args = [arg(i, a.dtype) for i in range(4)]
    value = apply("sub", apply("mul", args[0], args[1]), apply("mul", args[2], args[3]))
    with ctx.reshaped(y, (rows, 3)) as out:
        ctx.add(Map, out, tuple(operands), value)


@rule("SequenceMask")
def sequence_mask(ctx: LoweringContext) -> None:
    """Lower a mask of a known number of steps to comparisons of their numbers with the lengths."""
    x, y = ctx.operand(0), ctx.output()
    if x.dtype not in DTYPES or not y.size:
        raise NoLowering(f"a mask of {x}")
    steps = np.arange(y.shape[-1]).astype(x.dtype.np)
    numbers = Buffer(f"{y.buffer.name}.steps", x.dtype, steps.shape, steps)
    below = truth("less", arg(0, x.dtype), arg(1, x.dtype))
    ctx.add(Map, y.buffer, (numbers, ctx.viewed(x.buffer, (*x.shape, 1))), convert(below, y.dtype))


@rule("InTopK")
def in_top_k(ctx: LoweringContext) -> None:
    """Lower the test whether fewer than k classes of a row of finite numbers are above the target."""
    targets, x, k = (ctx.operand(i) for i in range(3))
    y, dtype, (n, classes) = ctx.output(), x.dtype, x.shape
    if dtype not in FLOATS or targets.dtype not in (int32, int64) or not x.size:
        raise NoLowering(f"classes {targets} of {x}")
    column, index = ctx.viewed(targets.buffer, (n, 1)), arg(0, targets.dtype)
    zero, count = const(0, targets.dtype), const(classes, targets.dtype)
    is_class = apply("logical_and", truth("greater_equal", index, zero), truth("less", index, count), dtype=bool_)
    inside, chosen = ctx.new(targets.dtype, (n, 1), ".inside"), ctx.new(dtype, (n, 1), ".chosen")
    ctx.add(Map, inside, (column,), Expr("select", targets.dtype, (is_class, index, zero)))
    ctx.add(Gather, chosen, x.buffer, inside, 1, 1)
    above, higher = ctx.new(int32, (n, classes), ".above"), ctx.new(int32, (n,), ".higher")
    ctx.add(Map, above, (x.buffer, chosen), convert(truth("greater", arg(0, dtype), arg(1, dtype)), int32))
    ctx.add(Reduce, higher, above, (1,), "sum", arg(0, int32), arg(0, int32))
    finite = ctx.new(bool_, (n,), ".finite")
    ctx.add(Reduce, finite, x.buffer, (1,), "all", truth("is_finite", arg(0, dtype)), arg(0, bool_))
    rank = truth("less", convert(arg(1, int32), k.dtype), arg(3, k.dtype))
    value = apply("logical_and", apply("logical_and", is_class, rank, dtype=bool_), arg(2, bool_), dtype=bool_)
    ctx.add(Map, y.buffer, (targets.buffer, higher, finite, ctx.viewed(k.buffer, ())), value)


@rule("ConfusionMatrix")
def confusion_matrix(ctx: LoweringContext) -> None:
    """Lower counts of pairs of classes; a class out of range is a failed guard."""
    labels, predictions, weights = ctx.operand(0), ctx.operand(1), ctx.operand(3)
    n, (size,) = int(ctx.constant(2).reshape(-1)[0]), labels.shape
    y = ctx.output((n, n))
    if not size or not n or weights.shape != (size,):
        raise NoLowering(f"{labels} and {predictions}, weighted by {weights}")
    pairs = ctx.new(labels.dtype, (size, 2), ".pairs")
    boxes = (IndexMap((0, 0), (size, 1), 0, (1, 1)), IndexMap((0, 1), (size, 1), 0, (1, 1)))
    ctx.add(Move, pairs, (labels.buffer, predictions.buffer), boxes)
    ctx.add(ScatterAt, y.buffer, weights.buffer, pairs)


@rule("AdjustContrast")
def adjust_contrast(ctx: LoweringContext) -> None:
    """Lower a scaled distance from the mean of each channel of an image."""
    x, factor = ctx.operand(0), ctx.operand(1)
    y, dtype, rank = ctx.output(x.shape), x.dtype, len(x.shape)
    if dtype not in FLOATS or not x.size:
        raise NoLowering(f"images {x}")
    shape = (*x.shape[:-3], 1, 1, x.shape[-1])
    mean = ctx.new(dtype, shape, ".mean")
    divisor = const(float(math.prod(x.shape[-3:-1])), dtype)
    ctx.add(Reduce, mean, x.buffer, (rank - 3, rank - 2), "sum", arg(0, dtype), apply("div", arg(0, dtype), divisor))

    def expr(v: Expr, m: Expr, f: Expr) -> Expr:
        return apply("add", apply("mul", apply("sub", v, m), convert(f, dtype)), m)

    map_elements(ctx, y.buffer, [x.buffer, mean, ctx.viewed(factor.buffer, ())], expr)
