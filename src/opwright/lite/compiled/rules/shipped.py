"""Shipped custom operators that are a few forms: Sign, Atan2, Roll, MeanVarianceNormalization, MaxPool3D, AvgPool3D,
aeq.hadamard_rotation, odml.scaled_dot_product_attention.

Lives here: their rules.  Not here: those with kernels of their own (place_pools.py, images.py and
suppression.py of compiler/lowering/).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, const, convert, lookup, scalar
from ....compiler.loops.forms import (
    Buffer,
    Checked,
    IndexMap,
    Map,
    MatMul,
    Move,
    Reduce,
    ReduceWindow,
    RowPass,
    TransposedContract,
    Window,
)
from ....compiler.lowering.context import LoweringContext, NoLowering, Operand
from ....compiler.lowering.contractions import with_bias
from ....compiler.lowering.elementwise import mapped
from ....compiler.lowering.moves import row_major
from ....compiler.lowering.quantized import NARROW, same_numbers
from ....compiler.lowering.registry import rule
from ....core.dtypes import DType, float16, float32, float64, int8, int16, int32
from ....ops.windows import window
from ...customs.math import looked_up
from ...customs.quantization import LEAST
from ...customs.spatial import result_size

ELEMENTWISE = {"Sign": ("sign", (float32, float64, int32)), "Atan2": ("atan2", (float32,))}
"""By operator, the operation on operands of one shape, and of which types."""


@rule(*ELEMENTWISE)
def elementwise(ctx: LoweringContext) -> None:
    operands, (name, dtypes) = ctx.operands, ELEMENTWISE[ctx.operator]
    dtype, shape = operands[0].dtype, operands[0].shape
    if dtype not in dtypes or any((o.dtype, o.shape) != (dtype, shape) for o in operands):
        raise NoLowering(f"{name} of {operands}")
    mapped(ctx, ctx.output(shape), apply(name, *(arg(i, dtype) for i in range(len(operands)))), *operands)


@rule("Table")
def table(ctx: LoweringContext) -> None:
    """Of a known table: what it gives for each integer, in the order of their bits."""
    x, entries = ctx.operand(0), ctx.constant(1)
    y = ctx.output(x.shape)
    if x.dtype not in (int8, int16) or y.dtype.np != entries.dtype or entries.size != (256 if x.dtype is int8 else 513):
        raise NoLowering(f"a table of {entries.size} for {x}")
    every = np.arange(1 << 8 * x.dtype.size, dtype=f"u{x.dtype.size}").view(x.dtype.np)
    found = np.ascontiguousarray(looked_up(every, entries))
    known = Buffer(f"{y.buffer.name}.table", y.dtype, found.shape, found)
    ctx.form(Map, y.buffer, (x.buffer, known), lookup(arg(0, x.dtype), arg(1, y.dtype)))


@rule("Roll")
def roll(ctx: LoweringContext) -> None:
    """An axis after the other: what passes the end, and what does not."""
    x = ctx.operand(0)
    shifts, axes = (ctx.constant(place).reshape(-1).tolist() for place in (1, 2))
    y, rank = ctx.output(x.shape), len(x.shape)
    same_numbers(x, y)
    if len(shifts) != len(axes) or not axes or not x.size or any(not -rank <= a < rank for a in axes):
        raise NoLowering(f"{x} moved by {shifts} along {axes}")
    source, steps = x.buffer, row_major(x.shape)
    for number, (shift, axis) in enumerate(zip(shifts, axes)):
        target = y.buffer if number == len(axes) - 1 else ctx.new(x.dtype, x.shape, f".axis{number}")
        size, axis = x.shape[axis], axis % rank
        shift %= size
        boxes = []
        for first, extent, offset in ((0, shift, size - shift), (shift, size - shift, 0)):
            if extent:
                start = (*(0,) * axis, first, *(0,) * (rank - axis - 1))
                sizes = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
                boxes.append(IndexMap(start, sizes, offset * steps[axis], steps))
        ctx.form(Move, target, (source,) * len(boxes), tuple(boxes))
        source = target


@rule("MeanVarianceNormalization")
def normalize(ctx: LoweringContext) -> None:
    x, call = ctx.operand(0), ctx.node.call
    y, rank = ctx.output(x.shape), len(x.shape)
    if x.dtype is not float32 or y.dtype is not float32 or not x.size or not rank:
        raise NoLowering(f"{x} normalised")
    axes = tuple(sorted(a % rank for a in call.axes)) or tuple(range(max(rank - 1, 1)))
    kept = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    count = const(float(math.prod(x.shape[a] for a in axes)), float32)
    a, b = arg(0, float32), arg(1, float32)
    mean = ctx.new(float32, kept, ".mean")
    ctx.form(Reduce, mean, x.buffer, axes, "sum", a, apply("div", a, count))
    if not call.normalize_variance:
        ctx.form(Map, y.buffer, (x.buffer, mean), apply("sub", a, b))
        return
    less, variance = ctx.new(float32, x.shape, ".less"), ctx.new(float32, kept, ".variance")
    ctx.form(Map, less, (x.buffer, mean), apply("sub", a, b))
    ctx.form(Reduce, variance, less, axes, "sum", apply("square", a), apply("div", a, count))
    deviation = apply("add", apply("sqrt", b), const(float(call.eps), float32))
    ctx.form(Map, y.buffer, (less, variance), apply("div", a, deviation))


# ---- pools over volumes --------------------------------------------------------------------------------------------


@rule("MaxPool3D", "AvgPool3D", "AveragePool3D")
def pool(ctx: LoweringContext) -> None:
    """An axis after the other; of integers the mean is rounded, halves away from zero."""
    x, call = ctx.operand(0), ctx.node.call
    if (
        len(x.shape) != 5
        or x.dtype not in (float32, int8, int16)
        or not x.size
        or (x.dtype is not float32 and not x.is_quantized)
    ):
        raise NoLowering(f"a volume {x}")
    windows = [window(n, k, s, 1, call.padding) for n, k, s in zip(x.shape[1:4], call.ksize[1:4], call.strides[1:4])]
    y = ctx.output((x.shape[0], *(w.out for w in windows), x.shape[4]))
    same_numbers(x, y)
    greatest = ctx.operator == "MaxPool3D"
    dtype = x.dtype if greatest or x.dtype is float32 else int32
    found = _reduced(ctx, _padded(ctx, x, windows, dtype, greatest), windows, dtype, "max" if greatest else "sum")
    value: Expr = arg(0, dtype)
    operands: tuple[Buffer, ...] = (found,)
    if not greatest:
        seen = [
            np.array(
                [
                    min(w.size, i * w.stride - w.before + w.kernel) - max(0, i * w.stride - w.before)
                    for i in range(w.out)
                ],
                np.float32,
            )
            for w in windows
        ]
        counts = (seen[0][:, None, None] * seen[1][:, None] * seen[2])[..., None]
        operands = (found, Buffer(f"{y.buffer.name}.counts", float32, counts.shape, np.ascontiguousarray(counts)))
        value = apply("div", convert(value, float32), arg(1, float32))
        if dtype is int32:
            value = convert(apply("round_away", value), y.dtype)
    ctx.form(Map, y.buffer, operands, value)


def _padded(ctx: LoweringContext, x: Operand, windows: list[Any], dtype: DType, greatest: bool) -> Buffer:
    """The volume as another type, with what changes no result around it."""
    source = x.buffer
    if dtype is not x.dtype:
        source = ctx.new(dtype, x.shape, ".wide")
        ctx.form(Map, source, (x.buffer,), convert(arg(0, x.dtype), dtype))
    spare = [max(0, (w.out - 1) * w.stride + w.kernel - w.size - w.before) for w in windows]
    low = (0, *(w.before for w in windows), 0)
    if not any((*low, *spare)):
        return source
    shape = (x.shape[0], *(w.before + w.size + more for w, more in zip(windows, spare)), x.shape[4])
    made = ctx.new(dtype, shape, ".padded")
    fill = 0.0 if not greatest else -math.inf if dtype is float32 else float(dtype.min)
    ctx.form(Move, made, (source,), (IndexMap(low, x.shape, 0, row_major(x.shape)),), fill)
    return made


def _reduced(ctx: LoweringContext, source: Buffer, windows: list[Any], dtype: DType, kind: str) -> Buffer:
    for axis, w in enumerate(windows, 1):
        made = ctx.new(dtype, (*source.shape[:axis], w.out, *source.shape[axis + 1 :]), f".axis{axis}")
        ctx.form(ReduceWindow, made, source, axis, w.kernel, w.stride, 1, kind)
        source = made
    return source


# ---- of generative models ------------------------------------------------------------------------------------------

MOST_ROTATED = 1024
"""The longest run that is multiplied with a matrix."""


@rule("aeq.hadamard_rotation")
def rotate(ctx: LoweringContext) -> None:
    """A product with Hadamard's matrix."""
    x, n = ctx.operand(0), int(ctx.node.call.hadamard_size)
    if x.dtype is not float32 or not x.size or n > MOST_ROTATED:
        raise NoLowering(f"{x} rotated by runs of {n}")
    y, shape = ctx.output(x.shape), (x.size // n, n)
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    known = Buffer(f"{y.buffer.name}.hadamard", float32, (n, n), (matrix / math.sqrt(n)).astype(np.float32))
    with ctx.reshaped(y, shape) as target:
        ctx.form(MatMul, target, ctx.viewed(x.buffer, shape), known, (), arg(0, float32))


@rule("odml.scaled_dot_product_attention")
def attention(ctx: LoweringContext) -> None:
    """Heads before steps; the queries that share keys are rows of one product. Fusion makes attention of it."""
    q, k, v, mask = (ctx.operand(i) for i in range(4))
    if any(o.dtype is not float32 or len(o.shape) != 4 or not o.size for o in (q, k, v, mask)):
        raise NoLowering(f"attention of {q} to {k}")
    (b, s, n, h), (_, t, m, _) = q.shape, k.shape
    if n % m or mask.shape[1] not in (1, n):
        raise NoLowering(f"attention of {q} to {k} by {mask}")
    y, rows = ctx.output(q.shape), n // m * s
    scale = float(ctx.node.call.scale)
    queries, keys, values = (_heads(ctx, o) for o in (q, k, v))
    scores, shown = ctx.new(float32, (b, m, rows, t), ".scores"), ctx.new(float32, (b, n, s, t), ".shown")
    factor = const(scale if scale > 0 else 1.0 / math.sqrt(h), float32)
    ctx.form(
        MatMul,
        scores,
        ctx.viewed(queries, (b, m, rows, h)),
        keys,
        (),
        apply("mul", arg(0, float32), factor),
        transpose_b=True,
    )
    ctx.form(Map, shown, (ctx.viewed(scores, shown.shape), mask.buffer), apply("add", arg(0, float32), arg(1, float32)))
    shares, found = ctx.new(float32, shown.shape, ".shares"), ctx.new(float32, (b, m, rows, h), ".heads")
    ctx.form(RowPass, shares, shown, (), "softmax", arg(0, float32), arg(0, float32))
    ctx.form(MatMul, found, ctx.viewed(shares, scores.shape), values, (), arg(0, float32))
    ctx.form(
        Move,
        y.buffer,
        (ctx.viewed(found, (b, n, s, h)),),
        (IndexMap((0,) * 4, (b, s, n, h), 0, (n * s * h, h, s * h, 1)),),
    )


def _heads(ctx: LoweringContext, x: Operand) -> Buffer:
    """[b, steps, heads, h] as [b, heads, steps, h]."""
    b, s, n, h = x.shape
    made = ctx.new(float32, (b, n, s, h), f".{x.buffer.name}.heads")
    ctx.form(Move, made, (x.buffer,), (IndexMap((0,) * 4, made.shape, 0, (s * n * h, h, n * h, 1)),))
    return made


# ---- the rest -------------------------------------------------------------------------------------------------------


@rule("Convolution2DTransposeBias")
def transpose_conv_bias(ctx: LoweringContext) -> None:
    x, w = ctx.operand(0), ctx.operand(1)
    call: Any = ctx.node.call
    if len(x.shape) != 4 or len(w.shape) != 4 or x.shape[3] != w.shape[3] or not x.size or not w.size:
        raise NoLowering(f"a transposed convolution of {x} and {w}")
    size, strides = (w.shape[1], w.shape[2]), (call.stride_h, call.stride_w)
    (high, top), (wide, left) = (result_size(call, n, k, s) for n, k, s in zip(x.shape[1:3], size, strides))
    y = ctx.output((x.shape[0], high, wide, w.shape[0]))
    operands, expr = with_bias(ctx.operand(2), float32, w.shape[0])
    if (x.dtype, w.dtype, y.dtype) != (float32, float32, float32):
        raise NoLowering(f"{x.dtype.name} by {w.dtype.name} to {y.dtype.name}")
    ctx.form(
        TransposedContract,
        y.buffer,
        x.buffer,
        w.buffer,
        operands,
        expr,
        Window(size, strides, (1, 1), (top, 0, left, 0)),
    )


@rule("NumericVerify")
def verify(ctx: LoweringContext) -> None:
    """What reals lack to their reference; guarded where too much is an error."""
    x, expected, call = ctx.operand(0), ctx.operand(1), ctx.node.call
    y = ctx.output(x.shape)
    if expected.shape != x.shape or {expected.dtype, y.dtype} != {float32} or x.dtype not in (*NARROW, float16):
        raise NoLowering(f"{x} and {expected} to {y}")
    scale = 0.0 if x.dtype is float16 else x.scale
    checked = call.log_if_failed and call.tolerance >= LEAST
    given = arg(0, x.dtype)
    real = convert(given, float32)
    if x.dtype is not float16:
        steps = convert(apply("sub", convert(given, int32), scalar(x.zero, int32)), float32)
        real = apply("mul", steps, scalar(scale, float32))
    found = ctx.new(float32, x.shape, ".difference") if checked else y.buffer
    ctx.form(Map, found, (x.buffer, expected.buffer), apply("sub", real, arg(1, float32)))
    if checked:
        ctx.form(Checked, y.buffer, found, "beyond", float(np.float32(call.tolerance) * np.float32(scale)))
