"""Padding, dilation and generated tensors: FILL, RANGE, ONE_HOT, DILATE, PADV2, STABLEHLO_PAD, MATRIX_DIAG,
MATRIX_SET_DIAG, BITCAST, BUCKETIZE.

Lives here: these rules.
Not here: padding by constants without gaps (data_movement.py), updates at computed coordinates (gather_scatter.py).

Dilated elements get an axis of their own, [d, step], and are written at its first index; viewed as [d step], that is
the dilated tensor, of which the result is a box. A diagonal is such a tensor with steps of n + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int32, int64, uint8, uint16, uint32
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.indexing_ops import Numbers
from ..loops.ops import Map, Move, Reinterpret, View
from ..target import host
from .context import LoweringContext, NoLowering, RuleOperand
from .data_movement import margins_of, pad
from .operand_expressions import same_numbers, truth
from .registry import CATALOGUE, rule
from .type_conversion import check_whole_bytes


@rule("FILL", "Fill")
def fill(ctx: LoweringContext) -> None:
    """Lower FILL of constant sizes; the value may be computed."""
    value, sizes = ctx.operand(1), ctx.constant(0).reshape(-1).tolist()
    y = ctx.output(sizes)
    same_numbers(value, y)
    if value.size != 1:
        raise NoLowering(f"{value} as fill value")
    flat = (y.size,)
    with ctx.reshaped(y, flat) as out:
        ctx.add(Move, out, (ctx.viewed(value.buffer, (1,)),), (IndexMap((0,), flat, 0, (0,)),))


MIN_RANGE = 64
"""Minimum capacity of a computed RANGE; otherwise twice the size of an earlier run."""


@rule("RANGE")
def numbers(ctx: LoweringContext) -> None:
    """Lower RANGE; of constants, to a constant."""
    operands = ctx.operands
    if not all(o.is_constant for o in operands):
        y, count = ctx.counted(lambda size: max(MIN_RANGE, 2 * size))
        if y.dtype not in (int32, int64, float32) or any(o.dtype is not y.dtype or o.size != 1 for o in operands):
            raise NoLowering(f"numbers {y} of {operands}")
        ctx.add(Numbers, y.buffer, *(ctx.viewed(o.buffer, ()) for o in operands), count)
        return
    (values,) = ctx.node.evaluate(operands, [ctx.constant(i) for i in range(3)])
    y = ctx.output(values.shape)
    ctx.add(View, y.buffer, Buffer(f"{y.buffer.name}.numbers", y.dtype, y.shape, values))


@rule("OneHot", "ONE_HOT")
def one_hot(ctx: LoweringContext) -> None:
    indices, on, off = ctx.operand(0), ctx.operand(2), ctx.operand(3)
    depth, axis, rank = int(ctx.constant(1).reshape(-1)[0]), int(ctx.attr("axis")), len(indices.shape)
    if indices.dtype not in (int32, int64) or not -1 <= axis <= rank or on.size != 1 or off.size != 1 or depth < 1:
        raise NoLowering(f"{depth} classes of {indices} along axis {axis}")
    axis %= rank + 1
    y = ctx.output((*indices.shape[:axis], depth, *indices.shape[axis:]))
    if on.dtype is not off.dtype or on.dtype is not y.dtype or y.dtype not in DTYPES:
        raise NoLowering(f"{on.dtype.name} and {off.dtype.name} to {y.dtype.name}")
    expanded = ctx.viewed(indices.buffer, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    shape = (depth, *(1,) * (rank - axis))
    classes = np.arange(depth, dtype=indices.dtype.np).reshape(shape)
    values = [ctx.viewed(o.buffer, ()) for o in (on, off)]
    value = Expr(
        "select",
        y.dtype,
        (truth("equal", arg(0, indices.dtype), arg(1, indices.dtype)), arg(2, y.dtype), arg(3, y.dtype)),
    )
    ctx.add(Map, y.buffer, (expanded, Buffer(f"{y.buffer.name}.places", indices.dtype, shape, classes), *values), value)


def _boxed(ctx: LoweringContext, y: Buffer, x: Buffer, box: IndexMap, value: RuleOperand | None) -> None:
    """Write a box of x to y and the value, by default 0, elsewhere; a computed value is read by moves to the remaining
    boxes."""
    operands, boxes = ((x,), (box,)) if all(box.extent) else ((), ())
    is_constant = value is None or (value.constant is not None and not value.dtype.is_complex)
    if not is_constant:
        assert value is not None
        for axis, size in enumerate(y.shape):
            end = box.start[axis] + box.extent[axis]
            for first, last in ((0, box.start[axis]), (end, size)):
                start = (*box.start[:axis], first, *(0,) * (len(y.shape) - axis - 1))
                extent = (*box.extent[:axis], last - first, *y.shape[axis + 1 :])
                if all(extent):
                    operands, boxes = (*operands, value.buffer), (*boxes, IndexMap(start, extent, 0, (0,) * len(start)))
        ctx.add(Move, y, operands, boxes)
        return
    number = 0 if value is None or value.constant is None else value.constant.reshape(-1)[0].item()
    ctx.add(Move, y, operands, boxes, None if box.extent == y.shape else number)


MAX_PLANES = 4
"""Steps along the last axis up to which elements and gaps are separate planes, which a vector kernel interleaves."""


def _interleaved(ctx: LoweringContext, x: Buffer, step: int, value: RuleOperand | None) -> Buffer:
    """Return rows dilated by `step`, with the value in the gaps."""
    *outer, n = x.shape
    planes, interleaved = (
        ctx.new(x.dtype, (*outer, step, n), ".planes"),
        ctx.new(x.dtype, (*outer, n, step), ".interleaved"),
    )
    zeros, steps = (0,) * len(planes.shape), row_major(planes.shape)
    _boxed(ctx, planes, x, IndexMap(zeros, (*outer, 1, n), 0, (*row_major(x.shape)[:-1], 0, 1)), value)
    ctx.add(Move, interleaved, (planes,), (IndexMap(zeros, interleaved.shape, 0, (*steps[:-2], 1, n)),))
    return ctx.viewed(interleaved, (*outer, n * step))


def _dilated(ctx: LoweringContext, x: Buffer, steps: Sequence[int], value: RuleOperand | None = None) -> Buffer:
    """Dilate each axis [d] to [d step], with the value in the gaps."""
    if steps and 1 < steps[-1] <= MAX_PLANES:
        x, steps = _interleaved(ctx, x, steps[-1], value), (*steps[:-1], 1)
    if all(step == 1 for step in steps):
        return x
    shape = tuple(n for pair in zip(x.shape, steps) for n in pair)
    dilated = ctx.new(x.dtype, shape, ".apart")
    extent = tuple(n for d in x.shape for n in (d, 1))
    strides = tuple(s for stride in row_major(x.shape) for s in (stride, 1))
    _boxed(ctx, dilated, x, IndexMap((0,) * len(shape), extent, 0, strides), value)
    return ctx.viewed(dilated, tuple(d * step for d, step in zip(x.shape, steps)))


def _placed(
    ctx: LoweringContext,
    y: Buffer,
    x: Buffer,
    low: Sequence[int],
    sizes: Sequence[int],
    value: RuleOperand | None = None,
) -> None:
    """Write the first `sizes` elements of x into y from `low` on, cropped to y; the value elsewhere."""
    start = tuple(max(a, 0) for a in low)
    first = [max(-a, 0) for a in low]
    extent = tuple(max(min(n - f, m - s), 0) for n, f, m, s in zip(sizes, first, y.shape, start))
    steps = row_major(x.shape)
    _boxed(ctx, y, x, IndexMap(start, extent, sum(f * s for f, s in zip(first, steps)), steps), value)


@rule("DILATE")
def dilate(ctx: LoweringContext) -> None:
    x, steps = ctx.operand(0), [int(n) for n in ctx.constant(1).reshape(-1)]
    if len(steps) != len(x.shape) or min(steps, default=0) < 1:
        raise NoLowering(f"{x} dilated by {steps}")
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
    """Lower a dilation and padding. Raises NoLowering for other types."""
    y = ctx.output([a + n + b for a, n, b in zip(low, _dilated_sizes(x, between), high)])
    same_numbers(x, y)
    padded(ctx, y.buffer, x, low, between, value)


def padded(
    ctx: LoweringContext, y: Buffer, x: RuleOperand, low: Sequence[int], between: Sequence[int], value: RuleOperand
) -> None:
    """Write x to y with `low` elements of the value before it, `between` in each gap, and the rest of y after it.

    raises NoLowering for other types
    """
    if not x.shape or value.size != 1 or value.dtype is not x.dtype:
        raise NoLowering(f"{x} with {value} between")
    dilated = _dilated(ctx, x.buffer, [k + 1 for k in between], value) if x.size else x.buffer
    _placed(ctx, y, dilated, low, _dilated_sizes(x, between), value)


def _dilated_sizes(x: RuleOperand, between: Sequence[int]) -> list[int]:
    """Return the sizes of a tensor with `between` elements in each gap."""
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
    dilated = _dilated(ctx, ctx.viewed(x.buffer, (rows, n)), (1, n + 1))
    with ctx.reshaped(y, (rows, n * n)) as target:
        _placed(ctx, target, dilated, (0, 0), (rows, n * n))


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


@rule("Bitcast", "BITCAST")
def bitcast(ctx: LoweringContext) -> None:
    """Lower BITCAST: numbers become others as they are in files, whose order is little-endian; those of the catalogue
    as they are in memory."""
    x, y = ctx.operand(0), ctx.output()
    check_whole_bytes(x)
    check_whole_bytes(y)
    if x.size * x.dtype.size != y.size * y.dtype.size or x.dtype.is_bool or y.dtype.is_bool:
        raise NoLowering(f"{x} as {y}")
    least, most = sorted(t.dtype.size // (1 + t.dtype.is_complex) for t in (x, y))
    if not host().is_big_endian or least == most or ctx.node.dialect == CATALOGUE:
        ctx.add(Reinterpret, y.buffer, x.buffer)
        return
    parts = most // least
    shape = x.size * x.dtype.size // most, parts
    unit = {1: uint8, 2: uint16, 4: uint32}[least]
    reverse = ctx.new(unit, shape, ".parts")
    ctx.add(Move, reverse, (ctx.bits(x.buffer, unit, shape),), (IndexMap((0, 0), shape, parts - 1, (parts, -1)),))
    ctx.add(Reinterpret, y.buffer, reverse)


MAX_BOUNDARIES = 64
"""Maximum number of boundaries, each of which is compared with each element."""


@rule("BUCKETIZE")
def bucketize(ctx: LoweringContext) -> None:
    """Lower BUCKETIZE to a count of the boundaries that an element reaches; NaN is beyond all."""
    x = ctx.operand(0)
    y, call = ctx.output(x.shape), ctx.node.call
    bounds: Any = getattr(call, "boundaries", ())
    if x.dtype not in (float32, float64, int32, int64) or y.dtype is not int32 or not 0 < len(bounds) <= MAX_BOUNDARIES:
        raise NoLowering(f"{len(bounds)} boundaries of {x}")
    compared = float64 if x.dtype is float64 else float32
    value = convert(arg(0, x.dtype), compared)
    total: Expr = const(0, int32)
    for bound in np.asarray(bounds, np.float32):
        below = truth("less", value, const(float(bound), compared))
        total = apply("add", total, Expr("select", int32, (below, const(0, int32), const(1, int32))))
    ctx.add(Map, y.buffer, (x.buffer,), total)
