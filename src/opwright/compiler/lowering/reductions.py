"""Reductions over axes, searches and sums along one: SUM, MEAN, REDUCE_*, ARG_MAX, ARG_MIN, CUMSUM.

Lives here: these rules.  Not here: pools (pooling.py), the kernels.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, int8, int16, int32, int64, uint8
from ...core.dtypes import bool as bool_
from ...scalar.multipliers import multiplier
from ..loops.expressions import Expr, apply, arg, convert, scalar
from ..loops.fixed_forms import FixedProduct
from ..loops.forms import ArgReduce, Buffer, IndexMap, Move, Reduce, Scan, View
from .context import LoweringContext, NoLowering, Operand
from .moving import row_major
from .quantized import in_steps, same_numbers, steps_per
from .registry import rule

KINDS = {"SUM": "sum", "REDUCE_MAX": "max", "REDUCE_MIN": "min", "REDUCE_PROD": "prod", "REDUCE_ANY": "any",
         "REDUCE_ALL": "all"}  # fmt: skip
OF_TRUTH = {"sum": "any", "max": "any", "min": "all", "prod": "all", "any": "any", "all": "all"}
"""What reductions are of truth values."""
NUMBERS = (float32, int32, int64, int8, uint8, int16)
QUANTIZED = (int8, uint8, int16)
SHORT = (float16, bfloat16)
"""Floats that are reduced in float32."""


def axes_of(ctx: LoweringContext, rank: int) -> tuple[int, ...]:
    """The axes that the second input says, ascending, each once. Raises NoLowering where they are not known."""
    given = ctx.constant(1).reshape(-1).tolist()
    if any(not -rank <= a < rank for a in given):
        raise NoLowering(f"axes {given} of {rank}")
    return tuple(sorted({a % rank for a in given}))


def _operands(ctx: LoweringContext) -> tuple[Operand, Operand, tuple[int, ...], int]:
    """Input, output, axes, and how many elements go into one."""
    x = ctx.operand(0)
    axes = axes_of(ctx, len(x.shape))
    keep = bool(ctx.attr("keep_dims"))
    y = ctx.output([1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes])
    count = math.prod(x.shape[i] for i in axes)
    if not count:
        raise NoLowering("a reduction of nothing")
    return x, y, axes, count


def _check_sum(x: Operand, count: int) -> None:
    """Raises NoLowering where the sum of so many integers may not fit into int32."""
    if count << (8 * x.dtype.size) > 1 << 31:
        raise NoLowering(f"a sum of {count} elements of {x.dtype.name}")


@rule("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
def reduce(ctx: LoweringContext) -> None:
    x, y, axes, count = _operands(ctx)
    kind = KINDS[ctx.operator]
    if x.dtype is bool_:
        kind = OF_TRUTH[kind]
    elif x.dtype not in (*NUMBERS, *SHORT) or kind in ("any", "all"):
        raise NoLowering(f"{kind} of {x}")
    if x.is_quantized and kind == "sum" and ctx.node.quantized:
        _quantized_sum(ctx, x, y, axes, count)
        return
    if x.is_quantized and kind == "prod":
        _quantized_product(ctx, x, y, axes, count)
        return
    same_numbers(x, y)
    before = _wide(x)
    ctx.form(Reduce, y.buffer, x.buffer, axes, kind, before, convert(arg(0, before.dtype), x.dtype))


def _wide(x: Operand) -> Expr:
    """An element as it is accumulated."""
    return convert(arg(0, x.dtype), float32 if x.dtype in SHORT else x.dtype)


def _quantized_sum(ctx: LoweringContext, x: Operand, y: Operand, axes: tuple[int, ...], count: int) -> None:
    if x.dtype not in QUANTIZED or y.dtype is not x.dtype or not y.is_quantized:
        raise NoLowering(f"a sum of {x} to {y}")
    _check_sum(x, count)
    _scaled_sum(ctx, x, y, axes, steps_per(x.scale, y), -x.zero * count * x.scale / y.scale)


def _scaled_sum(
    ctx: LoweringContext, x: Operand, y: Operand, axes: tuple[int, ...], factor: float, more: float
) -> None:
    """sum * factor + more, in steps of the output."""
    value = apply("fma", convert(arg(0, int32), float32), scalar(factor, float32), scalar(more, float32))
    ctx.form(Reduce, y.buffer, x.buffer, axes, "sum", convert(arg(0, x.dtype), int32), in_steps(value, y))


def _quantized_product(ctx: LoweringContext, x: Operand, y: Operand, axes: tuple[int, ...], count: int) -> None:
    """The elements go first, so that each turn of the kernel joins another of all results."""
    if x.dtype not in (int8, int16) or y.dtype is not x.dtype or not y.is_quantized:
        raise NoLowering(f"a product of {x} to {y}")
    ctx.node.integer_kernel()  # refuses what the operator refuses
    kept = [i for i in range(len(x.shape)) if i not in axes]
    strides, order = row_major(x.shape), [*axes, *kept]
    rows, extent = ctx.new(x.dtype, (count, y.size), ".rows"), tuple(x.shape[i] for i in order)
    turned = Buffer(f"{rows.name}.axes", x.dtype, extent)
    ctx.form(Move, turned, (x.buffer,), (IndexMap((0,) * len(extent), extent, 0, tuple(strides[i] for i in order)),))
    ctx.form(View, rows, turned)
    factor = multiplier(float(x.scale) / float(np.float32(y.scale)) ** (1.0 / count))
    ctx.form(FixedProduct, y.buffer, rows, x.zero, factor, y.zero)


@rule("MEAN")
def mean(ctx: LoweringContext) -> None:
    x, y, axes, count = _operands(ctx)
    if x.dtype in (float32, *SHORT) and y.dtype is x.dtype:
        part = apply("mul", arg(0, float32), scalar(1.0 / count, float32))
        ctx.form(Reduce, y.buffer, x.buffer, axes, "sum", _wide(x), convert(part, x.dtype))
        return
    if x.dtype.is_integer and y.dtype is x.dtype and not ctx.node.quantized:
        part = apply("div", arg(0, int64), scalar(count, int64))  # toward zero
        ctx.form(Reduce, y.buffer, x.buffer, axes, "sum", convert(arg(0, x.dtype), int64), convert(part, x.dtype))
        return
    if x.dtype not in QUANTIZED or y.dtype is not x.dtype or not (x.is_quantized and y.is_quantized):
        raise NoLowering(f"a mean of {x} to {y}")
    _check_sum(x, count)
    _scaled_sum(ctx, x, y, axes, steps_per(x.scale, y) / count, -x.zero * x.scale / y.scale)


@rule("ARG_MAX", "ARG_MIN")
def search(ctx: LoweringContext) -> None:
    x, axis = ctx.operand(0), ctx.constant(1).reshape(-1).tolist()
    rank = len(x.shape)
    if len(axis) != 1 or not -rank <= axis[0] < rank or not x.size:
        raise NoLowering(f"axis {axis} of {x}")
    if x.dtype not in NUMBERS and x.dtype is not bool_:
        raise NoLowering(f"a search in {x}")
    at_axis = axis[0] % rank
    y = ctx.output([n for i, n in enumerate(x.shape) if i != at_axis])
    if y.dtype not in (int32, int64) or y.dtype.name.upper() != ctx.attr("output_type"):
        raise NoLowering(f"places {y}")
    ctx.form(ArgReduce, y.buffer, x.buffer, at_axis, "max" if ctx.operator == "ARG_MAX" else "min")


@rule("CUMSUM")
def running_sums(ctx: LoweringContext) -> None:
    x, axis = ctx.operand(0), ctx.constant(1).reshape(-1).tolist()
    rank = len(x.shape)
    if len(axis) != 1 or not -rank <= axis[0] < rank or x.dtype not in (float32, int32, int64):
        raise NoLowering(f"running sums of {x} along {axis}")
    y = ctx.output(x.shape)
    same_numbers(x, y)
    ctx.form(Scan, y.buffer, x.buffer, axis[0] % rank, bool(ctx.attr("exclusive")), bool(ctx.attr("reverse")))
