"""Operators that put elements among others: FILL, RANGE, ONE_HOT, DILATE, PADV2, STABLEHLO_PAD, MATRIX_DIAG,
MATRIX_SET_DIAG, BITCAST, BUCKETIZE.

Lives here: these rules.
Not here: padding without gaps (data_movement.py), updates at computed coordinates (gather_scatter.py).

Elements that are to be apart get an axis of their own, [d, step], whose first place they take; under the shape [d step]
that is the tensor with its gaps, and a box of it the result. A diagonal is such a tensor, with steps of n + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int32, int64
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.indexing_ops import Numbers
from ..loops.ops import Bitcast, Map, Move, View
from .context import LoweringContext, NoLowering, RuleOperand
from .data_movement import margins_of, pad, row_major
from .elementwise import truth
from .registry import rule
from .requantization import same_numbers
from .type_conversion import check_whole_bytes


@rule("FILL")
def fill(ctx: LoweringContext) -> None:
    """Of sizes that are known; the value may be computed."""
    value, sizes = ctx.operand(1), ctx.constant(0).reshape(-1).tolist()
    y = ctx.output(sizes)
    same_numbers(value, y)
    if value.size != 1:
        raise NoLowering(f"{value} in each place")
    flat = (y.size,)
    with ctx.reshaped(y, flat) as out:
        ctx.add(Move, out, (ctx.viewed(value.buffer, (1,)),), (IndexMap((0,), flat, 0, (0,)),))


FEWEST = 64
"""Numbers of a computed RANGE that there is memory for at least; else for twice as many as a run had."""


@rule("RANGE")
def numbers(ctx: LoweringContext) -> None:
    """Of known numbers: a constant."""
    given = ctx.operands
    if not all(o.is_constant for o in given):
        y, count = ctx.counted(lambda size: max(FEWEST, 2 * size))
        if y.dtype not in (int32, int64, float32) or any(o.dtype is not y.dtype or o.size != 1 for o in given):
            raise NoLowering(f"numbers {y} of {given}")
        ctx.add(Numbers, y.buffer, *(ctx.viewed(o.buffer, ()) for o in given), count)
        return
    (found,) = ctx.node.evaluate(given, [ctx.constant(i) for i in range(3)])
    y = ctx.output(found.shape)
    ctx.add(View, y.buffer, Buffer(f"{y.buffer.name}.numbers", y.dtype, y.shape, found))


@rule("OneHot", "ONE_HOT")
def one_hot(ctx: LoweringContext) -> None:
    indices, on, off = ctx.operand(0), ctx.operand(2), ctx.operand(3)
    depth, axis, rank = int(ctx.constant(1).reshape(-1)[0]), int(ctx.attr("axis")), len(indices.shape)
    if indices.dtype not in (int32, int64) or not -1 <= axis <= rank or on.size != 1 or off.size != 1 or depth < 1:
        raise NoLowering(f"{depth} places of {indices} along axis {axis}")
    axis %= rank + 1
    y = ctx.output((*indices.shape[:axis], depth, *indices.shape[axis:]))
    if on.dtype is not off.dtype or on.dtype is not y.dtype or y.dtype not in DTYPES:
        raise NoLowering(f"{on.dtype.name} and {off.dtype.name} to {y.dtype.name}")
    given = ctx.viewed(indices.buffer, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    shape = (depth, *(1,) * (rank - axis))
    places = np.arange(depth, dtype=indices.dtype.np).reshape(shape)
    values = [ctx.viewed(o.buffer, ()) for o in (on, off)]
    chosen = Expr(
        "select",
        y.dtype,
        (truth("equal", arg(0, indices.dtype), arg(1, indices.dtype)), arg(2, y.dtype), arg(3, y.dtype)),
    )
    ctx.add(Map, y.buffer, (given, Buffer(f"{y.buffer.name}.places", indices.dtype, shape, places), *values), chosen)


def _boxed(ctx: LoweringContext, y: Buffer, x: Buffer, box: IndexMap, value: RuleOperand | None) -> None:
    """y of a box of x, and of a value, by default 0, elsewhere. A value that is computed is read for all the boxes that
    the first leaves."""
    operands, boxes = ((x,), (box,)) if all(box.extent) else ((), ())
    known = value is None or (value.constant is not None and not value.dtype.is_complex)
    if not known:
        assert value is not None
        for axis, size in enumerate(y.shape):
            ends = box.start[axis] + box.extent[axis]
            for first, last in ((0, box.start[axis]), (ends, size)):
                start = (*box.start[:axis], first, *(0,) * (len(y.shape) - axis - 1))
                extent = (*box.extent[:axis], last - first, *y.shape[axis + 1 :])
                if all(extent):
                    operands, boxes = (*operands, value.buffer), (*boxes, IndexMap(start, extent, 0, (0,) * len(start)))
        ctx.add(Move, y, operands, boxes)
        return
    number = 0 if value is None or value.constant is None else value.constant.reshape(-1)[0].item()
    ctx.add(Move, y, operands, boxes, None if box.extent == y.shape else number)


PLANES = 4
"""Steps along the last axis up to which elements and gaps are planes, which a kernel interleaves in vectors."""


def _interleaved(ctx: LoweringContext, x: Buffer, step: int, value: RuleOperand | None) -> Buffer:
    """Elements of rows with step - 1 times the value behind each."""
    *outer, n = x.shape
    planes, made = ctx.new(x.dtype, (*outer, step, n), ".planes"), ctx.new(x.dtype, (*outer, n, step), ".interleaved")
    zeros, steps = (0,) * len(planes.shape), row_major(planes.shape)
    _boxed(ctx, planes, x, IndexMap(zeros, (*outer, 1, n), 0, (*row_major(x.shape)[:-1], 0, 1)), value)
    ctx.add(Move, made, (planes,), (IndexMap(zeros, made.shape, 0, (*steps[:-2], 1, n)),))
    return ctx.viewed(made, (*outer, n * step))


def _apart(ctx: LoweringContext, x: Buffer, steps: Sequence[int], value: RuleOperand | None = None) -> Buffer:
    """[d step, ...] for each axis [d]: elements with step - 1 times the value behind each."""
    if steps and 1 < steps[-1] <= PLANES:
        x, steps = _interleaved(ctx, x, steps[-1], value), (*steps[:-1], 1)
    if all(step == 1 for step in steps):
        return x
    shape = tuple(n for pair in zip(x.shape, steps) for n in pair)
    made = ctx.new(x.dtype, shape, ".apart")
    extent = tuple(n for d in x.shape for n in (d, 1))
    strides = tuple(s for stride in row_major(x.shape) for s in (stride, 1))
    _boxed(ctx, made, x, IndexMap((0,) * len(shape), extent, 0, strides), value)
    return ctx.viewed(made, tuple(d * step for d, step in zip(x.shape, steps)))


def _placed(
    ctx: LoweringContext,
    y: Buffer,
    x: Buffer,
    low: Sequence[int],
    sizes: Sequence[int],
    value: RuleOperand | None = None,
) -> None:
    """y of the first `sizes` elements of x, from `low` on, where that is in y; the value elsewhere."""
    start = tuple(max(a, 0) for a in low)
    first = [max(-a, 0) for a in low]
    extent = tuple(max(min(n - f, m - s), 0) for n, f, m, s in zip(sizes, first, y.shape, start))
    steps = row_major(x.shape)
    _boxed(ctx, y, x, IndexMap(start, extent, sum(f * s for f, s in zip(first, steps)), steps), value)


@rule("DILATE")
def dilate(ctx: LoweringContext) -> None:
    x, steps = ctx.operand(0), [int(n) for n in ctx.constant(1).reshape(-1)]
    if len(steps) != len(x.shape) or min(steps, default=0) < 1:
        raise NoLowering(f"{x} moved apart by {steps}")
    _padded(ctx, x, [0] * len(steps), [0] * len(steps), [n - 1 for n in steps], ctx.operand(2))


@rule("PADV2")
def pad_with(ctx: LoweringContext) -> None:
    x, value = ctx.operand(0), ctx.operand(2)
    if value.constant is not None:
        pad(ctx)
        return
    same_numbers(value, x)
    _padded(ctx, x, *margins_of(ctx), [0] * len(x.shape), value)


@rule("STABLEHLO_PAD")
def stablehlo_pad(ctx: LoweringContext) -> None:
    x, rank = ctx.operand(0), len(ctx.operand(0).shape)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    lists = [[int(n) for n in ctx.attr(name)] for name in names]
    if any(len(numbers) != rank for numbers in lists) or min(lists[2], default=0) < 0:
        raise NoLowering(f"{x} padded by {lists}")
    low, high, between = lists
    _padded(ctx, x, low, high, between, ctx.operand(1))


def _padded(
    ctx: LoweringContext, x: RuleOperand, low: list[int], high: list[int], between: list[int], value: RuleOperand
) -> None:
    """Raise NoLowering for other types."""
    y = ctx.output([a + n + b for a, n, b in zip(low, _sizes_apart(x, between), high)])
    same_numbers(x, y)
    padded(ctx, y.buffer, x, low, between, value)


def padded(
    ctx: LoweringContext, y: Buffer, x: RuleOperand, low: Sequence[int], between: Sequence[int], value: RuleOperand
) -> None:
    """y of x, `low` elements of the value before it, so many between its own, and as many behind as there is room for.

    raises NoLowering for other types
    """
    if not x.shape or value.size != 1 or value.dtype is not x.dtype:
        raise NoLowering(f"{x} with {value} between")
    apart = _apart(ctx, x.buffer, [k + 1 for k in between], value) if x.size else x.buffer
    _placed(ctx, y, apart, low, _sizes_apart(x, between), value)


def _sizes_apart(x: RuleOperand, between: Sequence[int]) -> list[int]:
    """Sizes with so many elements between those along each axis."""
    return [(d - 1) * (k + 1) + 1 if d else 0 for d, k in zip(x.shape, between)]


@rule("MATRIX_DIAG")
def matrix_diag(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    if not x.shape:
        raise NoLowering(f"a diagonal {x}")
    n = x.shape[-1]
    y = ctx.output((*x.shape, n))
    same_numbers(x, y)
    if not x.size:
        ctx.add(Move, y.buffer, (), (), 0)
        return
    rows = x.size // n
    spread = _apart(ctx, ctx.viewed(x.buffer, (rows, n)), (1, n + 1))
    with ctx.reshaped(y, (rows, n * n)) as target:
        _placed(ctx, target, spread, (0, 0), (rows, n * n))


@rule("MATRIX_SET_DIAG")
def matrix_set_diag(ctx: LoweringContext) -> None:
    x, diagonal = ctx.operand(0), ctx.operand(1)
    if len(x.shape) < 2 or diagonal.shape != (*x.shape[:-2], min(x.shape[-2:])) or x.dtype not in DTYPES:
        raise NoLowering(f"the diagonal {diagonal} of {x}")
    y = ctx.output(x.shape)
    same_numbers(x, y)
    same_numbers(diagonal, y)
    m, n = x.shape[-2:]
    along = ctx.viewed(diagonal.buffer, (*x.shape[:-2], m, 1) if m <= n else (*x.shape[:-2], 1, n))
    mask = Buffer(f"{y.buffer.name}.diagonal", bool_, (m, n), np.eye(m, n, dtype=bool))
    value = Expr("select", x.dtype, (arg(0, bool_), arg(1, x.dtype), arg(2, x.dtype)))
    ctx.add(Map, y.buffer, (mask, along, x.buffer), value)


@rule("BITCAST")
def bitcast(ctx: LoweringContext) -> None:
    x, y = ctx.operand(0), ctx.output()
    check_whole_bytes(x)
    check_whole_bytes(y)
    if x.size * x.dtype.size != y.size * y.dtype.size or x.dtype.is_bool or y.dtype.is_bool:
        raise NoLowering(f"{x} as {y}")
    ctx.add(Bitcast, y.buffer, x.buffer)


MOST_BOUNDS = 64
"""Boundaries that each element is compared with."""


@rule("BUCKETIZE")
def bucketize(ctx: LoweringContext) -> None:
    """How many boundaries are reached, which NaN is beyond."""
    x = ctx.operand(0)
    y, call = ctx.output(x.shape), ctx.node.call
    bounds: Any = getattr(call, "boundaries", ())
    if x.dtype not in (float32, float64, int32, int64) or y.dtype is not int32 or not 0 < len(bounds) <= MOST_BOUNDS:
        raise NoLowering(f"{len(bounds)} boundaries of {x}")
    wide = float64 if x.dtype is float64 else float32
    value = convert(arg(0, x.dtype), wide)
    total: Expr = const(0, int32)
    for bound in np.asarray(bounds, np.float32):
        below = truth("less", value, const(float(bound), wide))
        total = apply("add", total, Expr("select", int32, (below, const(0, int32), const(1, int32))))
    ctx.add(Map, y.buffer, (x.buffer,), total)
