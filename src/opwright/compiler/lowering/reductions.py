"""Reductions over axes and segments, argmax, sorting, and data-dependent sizes.

Lives here: these rules, of both dialects; sums that reverse broadcasting; Sort, TopK, TOPK_V2; LowerBound and
UpperBound; SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN, UnsortedSegmentSum to -Min; ReverseSequence; SHAPE,
RANK, BROADCAST_ARGS, BroadcastGradientArgs, WHERE, UNIQUE.
Not here: cumulative sums (scans.py), pooling (pooling.py), non-maximum suppression (images.py), updates at coordinates
(gather_scatter.py), sizes read by other nodes, which are folded before planning (lite/runtime/dynamic_shapes.py).

Sorted values are gathered by their positions. Sizes known before a run are constants that a run copies. WHERE and
UNIQUE have memory for the largest possible number of elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8
from ...core.dtypes import bool as bool_
from ...scalar.fixed_point import multiplier
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.domain_ops import FixedProduct
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.indexing_ops import BroadcastSizes, Distinct, Gather, InsertionPlaces, Places, ReverseStart, Segments
from ..loops.ops import ArgReduce, Move, Ordered, Reduce, View
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import NARROW, in_steps, map_elements, same_numbers, steps_per
from .registry import CATALOGUE, LITE, rule
from .type_conversion import check_whole_bytes

KINDS = {
    **dict.fromkeys(("Sum", "Mean", "SUM", "MEAN"), "sum"),
    **dict.fromkeys(("Max", "REDUCE_MAX"), "max"),
    **dict.fromkeys(("Min", "REDUCE_MIN"), "min"),
    **dict.fromkeys(("Prod", "REDUCE_PROD"), "prod"),
    **dict.fromkeys(("Any", "REDUCE_ANY"), "any"),
    **dict.fromkeys(("All", "REDUCE_ALL"), "all"),
}
MEANS = ("Mean", "MEAN")
BOOL_KINDS = {"sum": "any", "max": "any", "min": "all", "prod": "all", "any": "any", "all": "all"}
"""Kinds of reductions of booleans in files."""
NUMBERS = (float32, int32, int64, int8, uint8, int16)
INTEGERS = (int8, uint8, int16, int32, int64)
"""Integers of the catalogue that are reduced."""
SHORT = (float16, bfloat16)
"""Floats of files that are reduced in float32."""


def axes_of(ctx: LoweringContext, rank: int) -> tuple[int, ...]:
    """Return the axes of a reduction, ascending and distinct. Raises NoLowering if a file's are not constant."""
    axes = ctx.attr("axis") if ctx.node.dialect == CATALOGUE else ctx.constant(1).reshape(-1).tolist()
    if axes is None:
        return tuple(range(rank))
    axes = [int(a) for a in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if any(not -rank <= a < rank for a in axes):
        raise NoLowering(f"axes {axes} of {rank}")
    return tuple(sorted({a % rank for a in axes}))


def _check_sum(x: RuleOperand, count: int) -> None:
    """Raise NoLowering if a sum of `count` integers may overflow int32."""
    if count << (8 * x.dtype.size) > 1 << 31:
        raise NoLowering(f"a sum of {count} elements of {x.dtype.name}")


@rule(*KINDS)
def reduce(ctx: LoweringContext) -> None:
    """Lower a reduction over axes to `Reduce`; of quantized sums, means and products, rescale the result."""
    x = ctx.operand(0)
    axes = axes_of(ctx, len(x.shape))
    count = math.prod(x.shape[i] for i in axes)
    kind, is_mean, dtype = KINDS[ctx.operator], ctx.operator in MEANS, x.dtype
    if not count:
        raise NoLowering("a reduction of no elements")
    if ctx.node.dialect == CATALOGUE:
        _reduce_catalogue(ctx, x.buffer, axes, kind, count if is_mean else None)
        return
    keep_dims = bool(ctx.attr("keep_dims"))
    y = ctx.output([1 if i in axes else n for i, n in enumerate(x.shape) if keep_dims or i not in axes])
    if is_mean:
        _reduce_mean(ctx, x, y, axes, count)
        return
    if dtype is bool_:
        kind = BOOL_KINDS[kind]
    elif dtype not in (*NUMBERS, *SHORT) or kind in ("any", "all"):
        raise NoLowering(f"{kind} of {x}")
    if x.is_quantized and kind == "sum" and ctx.node.quantized:
        _quantized_sum(ctx, x, y, axes, count, 1)
    elif x.is_quantized and kind == "prod":
        _quantized_product(ctx, x, y, axes, count)
    else:
        same_numbers(x, y)
        _reduce_numbers(ctx, x, y, axes, kind)


def _reduce_catalogue(ctx: LoweringContext, x: Buffer, axes: tuple[int, ...], kind: str, count: int | None) -> None:
    """Lower a reduction of the catalogue, whose maximum and minimum of a set with NaN is NaN; count: see `_mean`.

    raises NoLowering for types that no kernel reduces
    """
    dtype = x.dtype
    is_bool, is_number = kind in ("any", "all"), dtype.is_floating or dtype in INTEGERS
    if not (dtype is bool_ if is_bool else is_number):
        raise NoLowering(f"{ctx.operator} of {x}")
    y, element, result = ctx.output().buffer, arg(0, dtype), arg(0, dtype)
    if math.prod(x.shape[i] for i in axes) == 1:
        ctx.add(View, y, x)
        return
    if dtype in INTEGERS and (kind in ("sum", "prod") or count is not None):
        _reduce_integers(ctx, y, x, axes, kind, count)
        return
    if count is not None:
        result = _mean(result, count)
    if kind not in ("max", "min") or not dtype.is_floating:
        reduced(ctx, y, x, axes, kind, element, result)
        return
    extremum, has_nan = ctx.new(dtype, y.shape), Buffer(f"{ctx.node.prefix}.nan", bool_, y.shape)
    reduced(ctx, extremum, x, axes, kind, element, result)
    reduced(ctx, has_nan, x, axes, "any", apply("not_equal", element, element, dtype=bool_), arg(0, bool_))
    nan = const(math.nan, dtype)
    map_elements(ctx, y, [extremum, has_nan], lambda e, n: apply("select", n, nan, e, dtype=dtype))


def _reduce_integers(
    ctx: LoweringContext, y: Buffer, x: Buffer, axes: tuple[int, ...], kind: str, count: int | None
) -> None:
    """Lower a sum or product of integers, which wraps, or their mean, which is cut toward zero."""
    wide = int32 if x.dtype.size <= 4 and count is None else int64
    result = arg(0, wide)
    if count is not None:
        result = apply("div", result, scalar(count, int64))
    reduced(ctx, y, x, axes, kind, convert(arg(0, x.dtype), wide), convert(result, x.dtype))


def _mean(total: Expr, count: int) -> Expr:
    """Divide a sum of `count` elements: by the rounded reciprocal, means of equal elements would differ from them, and
    their variances from 0."""
    return apply("div", total, scalar(count, total.dtype))


def _reduce_numbers(
    ctx: LoweringContext, x: RuleOperand, y: RuleOperand, axes: tuple[int, ...], kind: str, count: int | None = None
) -> None:
    """Reduce numbers in their own type, short floats in float32; count: see `_mean`."""
    element = convert(arg(0, x.dtype), float32 if x.dtype in SHORT else x.dtype)
    result = arg(0, element.dtype)
    if count is not None:
        result = _mean(result, count)
    ctx.add(Reduce, y.buffer, x.buffer, axes, kind, element, convert(result, x.dtype))


def _reduce_mean(ctx: LoweringContext, x: RuleOperand, y: RuleOperand, axes: tuple[int, ...], count: int) -> None:
    if x.dtype in (float32, *SHORT) and y.dtype is x.dtype:
        _reduce_numbers(ctx, x, y, axes, "sum", count)
    elif x.dtype.is_integer and y.dtype is x.dtype and not ctx.node.quantized:
        quotient = apply("div", arg(0, int64), scalar(count, int64))  # toward zero
        ctx.add(Reduce, y.buffer, x.buffer, axes, "sum", convert(arg(0, x.dtype), int64), convert(quotient, x.dtype))
    elif x.is_quantized:
        _quantized_sum(ctx, x, y, axes, count, count)
    else:
        raise NoLowering(f"a mean of {x} to {y}")


def _quantized_sum(
    ctx: LoweringContext, x: RuleOperand, y: RuleOperand, axes: tuple[int, ...], count: int, divisor: int
) -> None:
    """Sum the raw integers of a quantized tensor in int32, divide by a number, and rescale to steps of the output."""
    if x.dtype not in NARROW or y.dtype is not x.dtype or not y.is_quantized:
        raise NoLowering(f"a sum of {x} to {y}")
    _check_sum(x, count)
    factor, offset = steps_per(x.scale, y) / divisor, -x.zero * (count // divisor) * x.scale / y.scale
    value = apply("fma", convert(arg(0, int32), float32), scalar(factor, float32), scalar(offset, float32))
    ctx.add(Reduce, y.buffer, x.buffer, axes, "sum", convert(arg(0, x.dtype), int32), in_steps(value, y))


def _quantized_product(ctx: LoweringContext, x: RuleOperand, y: RuleOperand, axes: tuple[int, ...], count: int) -> None:
    """Lower a fixed-point product of quantized elements; reduced axes go first, so that each kernel iteration
    multiplies all results by one element."""
    if x.dtype not in (int8, int16) or y.dtype is not x.dtype or not y.is_quantized:
        raise NoLowering(f"a product of {x} to {y}")
    ctx.node.integer_kernel()  # raises NoLowering for operands that the operator rejects
    outer = [i for i in range(len(x.shape)) if i not in axes]
    strides, order = row_major(x.shape), [*axes, *outer]
    rows, extent = ctx.new(x.dtype, (count, y.size), ".rows"), tuple(x.shape[i] for i in order)
    transposed = Buffer(f"{rows.name}.axes", x.dtype, extent)
    ctx.add(Move, transposed, (x.buffer,), (IndexMap((0,) * len(extent), extent, 0, tuple(strides[i] for i in order)),))
    ctx.add(View, rows, transposed)
    factor = multiplier(float(x.scale) / float(np.float32(y.scale)) ** (1.0 / count))
    ctx.add(FixedProduct, y.buffer, rows, x.zero, factor, y.zero)


@rule("ArgMax", "ArgMin", "ARG_MAX", "ARG_MIN")
def search(ctx: LoweringContext) -> None:
    """Lower ArgMax and ArgMin."""
    x = ctx.operand(0)
    axis = axis_of(ctx, x)
    if not x.size or (x.dtype not in NUMBERS and x.dtype is not bool_ and ctx.node.dialect != CATALOGUE):
        raise NoLowering(f"argmax of {x}")
    y = ctx.output([n for i, n in enumerate(x.shape) if i != axis])
    misses = ctx.node.dialect == LITE and y.dtype.name.upper() != ctx.attr("output_type")
    if y.dtype not in (int32, int64) or misses:
        raise NoLowering(f"indices {y}")
    ctx.add(ArgReduce, y.buffer, x.buffer, axis, "max" if ctx.operator in ("ArgMax", "ARG_MAX") else "min")


def axis_of(ctx: LoweringContext, x: RuleOperand) -> int:
    """Return the one axis, not negative. Raises NoLowering if it is not constant."""
    axes, rank = ctx.attr("axis") if ctx.node.dialect == CATALOGUE else ctx.constant(1), len(x.shape)
    axes = np.reshape(axes, -1).tolist()
    if len(axes) != 1 or not -rank <= axes[0] < rank:
        raise NoLowering(f"axis {axes} of {x}")
    return int(axes[0]) % rank


def reduced(
    ctx: LoweringContext, y: Buffer, x: Buffer, axes: Sequence[int], kind: str, before: Expr, after: Expr
) -> None:
    """Add a reduction that writes y, whose shape is x's without the axes, with size 1 there, or a mixture."""
    axes = tuple(axes)
    if not axes:
        raise NoLowering("a reduction over no axes")
    if y.size != math.prod(n for i, n in enumerate(x.shape) if i not in axes):
        raise NoLowering(f"{x} reduced to {y}")
    with_ones = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    without = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    shape = y.shape if y.shape in (with_ones, without) else without
    with ctx.reshaped(y, shape) as out:
        ctx.add(Reduce, out, x, axes, kind, before, after)


@rule("SumToLike")
def sum_to_like(ctx: LoweringContext) -> None:
    """Lower a sum over the axes along which `like` was broadcast to x."""
    x, y = ctx.operand(0).buffer, ctx.output().buffer
    new_axes = len(x.shape) - len(y.shape)
    axes = [i for i, n in enumerate(x.shape) if i < new_axes or (y.shape[i - new_axes] == 1 and n != 1)]
    _floating(x.dtype)
    if not axes:
        ctx.add(View, y, x)
        return
    reduced(ctx, y, x, axes, "sum", arg(0, x.dtype), arg(0, x.dtype))


@rule("TileGrad")
def tile_gradient(ctx: LoweringContext) -> None:
    """Lower a sum over repetitions, each an axis before the one that it repeats."""
    x, y, multiples = ctx.operand(0).buffer, ctx.output().buffer, ctx.constant(1).reshape(-1).tolist()
    _floating(x.dtype)
    if len(multiples) != len(y.shape) or x.shape != tuple(m * d for m, d in zip(multiples, y.shape)) or not x.size:
        raise NoLowering(f"the gradient {x} of {y}, tiled by {multiples}")
    parts: list[int] = []
    axes: list[int] = []
    for m, d in zip(multiples, y.shape):
        if m > 1:
            axes.append(len(parts))
            parts.append(m)
        parts.append(d)
    if not axes:
        ctx.add(View, y, x)
        return
    reduced(ctx, y, ctx.viewed(x, parts), axes, "sum", arg(0, x.dtype), arg(0, x.dtype))


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


@rule("EuclideanNorm")
def euclidean_norm(ctx: LoweringContext) -> None:
    """Lower the root of a sum of squares."""
    x = ctx.operand(0).buffer
    if x.dtype not in (float32, float64) or not x.size:
        raise NoLowering(f"a norm of {x}")
    squares, element = apply("square", arg(0, x.dtype)), arg(0, x.dtype)
    reduced(ctx, ctx.output().buffer, x, axes_of(ctx, len(x.shape)), "sum", squares, apply("sqrt", element))


@rule("Sort")
def sort(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    _ordered(ctx, x, x.shape, ctx.attr("direction") == "ASCENDING", "last")


@rule("TopK", "TOPK_V2")
def top_k(ctx: LoweringContext) -> None:
    """Lower TopK. NaN counts as infinity in the catalogue and comes last in files."""
    x, k = ctx.operand(0), ctx.constant(1)
    check_whole_bytes(x)
    if not x.shape or k.size != 1 or not 0 < int(k.reshape(-1)[0]) <= x.shape[-1]:
        raise NoLowering(f"the first {k.tolist()} of {x}")
    shape = (*x.shape[:-1], int(k.reshape(-1)[0]))
    _ordered(ctx, x, shape, False, "infinite" if ctx.node.dialect == CATALOGUE else "last")


def _ordered(
    ctx: LoweringContext, x: RuleOperand, shape: tuple[int, ...], ascending: bool, nan: Literal["last", "infinite"]
) -> None:
    values, positions = ctx.output(shape), ctx.output(shape, 1)
    same_numbers(x, values)
    if positions.dtype not in (int16, int32):
        raise NoLowering(f"positions {positions}")
    axis = len(x.shape) - 1
    ctx.add(Ordered, positions.buffer, x.buffer, ascending, nan)
    ctx.add(Gather, values.buffer, x.buffer, positions.buffer, axis, axis)


@rule("LowerBound", "UpperBound")
def insertion_places(ctx: LoweringContext) -> None:
    """Lower a binary search in sorted rows."""
    keys, values = ctx.operand(0), ctx.operand(1)
    y = ctx.output(values.shape)
    if not keys.size or not values.size:
        raise NoLowering("no elements")
    ctx.add(InsertionPlaces, y.buffer, keys.buffer, values.buffer, ctx.operator == "UpperBound")


SEGMENT_KINDS = {
    "SEGMENT_SUM": "sum",
    "UNSORTED_SEGMENT_SUM": "sum",
    "UNSORTED_SEGMENT_PROD": "prod",
    "UNSORTED_SEGMENT_MAX": "max",
    "UNSORTED_SEGMENT_MIN": "min",
    "UnsortedSegmentSum": "sum",
    "UnsortedSegmentProd": "prod",
    "UnsortedSegmentMax": "max",
    "UnsortedSegmentMin": "min",
}
"""Kinds of segment reductions by operator; extremes of the catalogue's are exact, those of files ignore NaN."""


@rule(*SEGMENT_KINDS)
def segments(ctx: LoweringContext) -> None:
    x, ids = ctx.operand(0), ctx.operand(1)
    rank = len(ids.shape)
    if ctx.operator == "SEGMENT_SUM":
        constant_ids = ctx.constant(1)
        if constant_ids.size and ((constant_ids < 0).any() or (constant_ids[1:] < constant_ids[:-1]).any()):
            raise NoLowering("segment ids that are negative or descend")
        count = int(constant_ids[-1]) + 1 if constant_ids.size else 0
    else:
        count = int(ctx.constant(2).reshape(-1)[0])
        constant = ids.constant
        if constant is not None and constant.size and int(constant.max()) >= count:
            raise NoLowering("a segment id is out of range")
    if x.shape[:rank] != ids.shape:
        raise NoLowering(f"segments {ids} of {x}")
    y = ctx.output((count, *x.shape[rank:]))
    same_numbers(x, y)
    exact = ctx.operator in ("UnsortedSegmentMax", "UnsortedSegmentMin")
    ctx.add(Segments, y.buffer, x.buffer, ids.buffer, SEGMENT_KINDS[ctx.operator], exact)


@rule("ReverseSequence", "REVERSE_SEQUENCE")
def reverse_sequence(ctx: LoweringContext) -> None:
    x, lengths = ctx.operand(0), ctx.operand(1)
    y, rank = ctx.output(x.shape), len(x.shape)
    if ctx.node.dialect == CATALOGUE:  # checked when it was traced
        time, batch = ctx.attr("seq_axis") % rank, ctx.attr("batch_axis") % rank
    else:
        time, batch = ctx.attr("seq_dim"), ctx.attr("batch_dim")
    same_numbers(x, y)
    if not (0 <= time < len(x.shape) and 0 <= batch < len(x.shape)) or time == batch:
        raise NoLowering(f"axes {time} and {batch} of {x}")
    if lengths.dtype not in (int32, int64) or lengths.shape != (x.shape[batch],):
        raise NoLowering(f"lengths {lengths}")
    ctx.add(ReverseStart, y.buffer, x.buffer, lengths.buffer, time, batch)


@rule("SHAPE", "RANK")
def sizes(ctx: LoweringContext) -> None:
    shape = ctx.operand(0).shape
    values = np.asarray(shape if ctx.operator == "SHAPE" else len(shape))
    y = ctx.output(values.shape)
    if y.dtype not in (int32, int64):
        raise NoLowering(f"sizes {y}")
    constant = Buffer(f"{y.buffer.name}.sizes", y.dtype, values.shape, values.astype(y.dtype.np))
    ctx.add(Move, y.buffer, (constant,), (IndexMap((0,) * values.ndim, values.shape, 0, (1,) * values.ndim),))


@rule("BROADCAST_ARGS")
def broadcast_args(ctx: LoweringContext) -> None:
    a, b = ctx.operand(0), ctx.operand(1)
    if any(o.dtype not in (int32, int64) or o.dtype is not a.dtype or len(o.shape) != 1 for o in (a, b)):
        raise NoLowering(f"shapes {a} and {b}")
    y = ctx.output((max(a.size, b.size),))
    if not (a.size and b.size):
        ctx.add(View, y.buffer, (a if a.size else b).buffer)
        return
    ctx.add(BroadcastSizes, y.buffer, a.buffer, b.buffer)


@rule(custom=("BroadcastGradientArgs",))
def broadcast_axes(ctx: LoweringContext) -> None:
    """Lower to constants, which follow from the sizes: those of the file or of an earlier run."""
    for i, axes in enumerate(ctx.node.evaluate(ctx.operands, [ctx.constant(0), ctx.constant(1)])):
        y = ctx.output(axes.shape, i)
        ctx.add(View, y.buffer, Buffer(f"{y.buffer.name}.axes", y.dtype, y.shape, axes))


@rule("WHERE")
def where(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y, count = ctx.counted(lambda _: x.size)
    if y.dtype is not int64 or y.shape != (x.size, len(x.shape)):
        raise NoLowering(f"coordinates {y} of {x}")
    ctx.add(Places, y.buffer, x.buffer, count)


@rule("UNIQUE")
def unique(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    (y, count), positions = ctx.counted(lambda _: x.size), ctx.output(x.shape, 1)
    same_numbers(x, y)
    if len(x.shape) != 1 or y.shape != x.shape or positions.dtype not in (int32, int64):
        raise NoLowering(f"distinct elements of {x}")

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(Distinct, packed, x.buffer, count, results)

    ctx.with_results(make, y.buffer, positions.buffer)
