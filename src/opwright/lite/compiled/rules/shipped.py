"""Shipped custom operators that are a few forms: Sign, Atan2, Roll, MeanVarianceNormalization, MaxPool3D, AvgPool3D,
aeq.hadamard_rotation, odml.scaled_dot_product_attention.

Lives here: their rules.  Not here: those with kernels of their own (landmarks.py, place_pools.py, suppression.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, const, convert, lookup
from ....compiler.loops.forms import Buffer, IndexMap, Map, MatMul, Move, Reduce, ReduceWindow, RowPass
from ....core.dtypes import DType, float32, float64, int8, int16, int32
from ....ops.windows import window
from ...customs.elementwise import looked_up
from ..nodes import At, Operand, Refused
from .elementwise import mapped, registered
from .moving import row_major, same_numbers
from .registry import rule

ELEMENTWISE = {"Sign": ("sign", (float32, float64, int32)), "Atan2": ("atan2", (float32,))}
"""By operator, the operation on operands of one shape, and of which types."""


@rule(*ELEMENTWISE)
def elementwise(at: At) -> None:
    operands, (name, dtypes) = at.operands, ELEMENTWISE[at.node.name]
    dtype, shape = operands[0].dtype, operands[0].shape
    if dtype not in dtypes or any((o.dtype, o.shape) != (dtype, shape) for o in operands):
        raise Refused(f"{name} of {operands}")
    mapped(at, at.output(shape), apply(name, *(arg(i, dtype) for i in range(len(operands)))), *operands)


@rule("Table")
def table(at: At) -> None:
    """Of a known table: what it gives for each integer, in the order of their bits."""
    x, entries = at.operand(0), at.constant(1)
    y = at.output(x.shape)
    if x.dtype not in (int8, int16) or y.dtype.np != entries.dtype or entries.size != (256 if x.dtype is int8 else 513):
        raise Refused(f"a table of {entries.size} for {x}")
    every = np.arange(1 << 8 * x.dtype.size, dtype=f"u{x.dtype.size}").view(x.dtype.np)
    found = np.ascontiguousarray(looked_up(every, entries))
    known = Buffer(f"{y.buffer.name}.table", y.dtype, found.shape, found)
    at.form(Map, y.buffer, (x.buffer, known), lookup(arg(0, x.dtype), arg(1, y.dtype)))


@rule("Roll")
def roll(at: At) -> None:
    """An axis after the other: what passes the end, and what does not."""
    x = at.operand(0)
    shifts, axes = (at.constant(place).reshape(-1).tolist() for place in (1, 2))
    y, rank = at.output(x.shape), len(x.shape)
    same_numbers(x, y)
    if len(shifts) != len(axes) or not axes or not x.size or any(not -rank <= a < rank for a in axes):
        raise Refused(f"{x} moved by {shifts} along {axes}")
    source, steps = x.buffer, row_major(x.shape)
    for number, (shift, axis) in enumerate(zip(shifts, axes)):
        target = y.buffer if number == len(axes) - 1 else at.new(x.dtype, x.shape, f".axis{number}")
        size, axis = x.shape[axis], axis % rank
        shift %= size
        boxes = []
        for first, extent, offset in ((0, shift, size - shift), (shift, size - shift, 0)):
            if extent:
                start = (*(0,) * axis, first, *(0,) * (rank - axis - 1))
                sizes = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
                boxes.append(IndexMap(start, sizes, offset * steps[axis], steps))
        at.form(Move, target, (source,) * len(boxes), tuple(boxes))
        source = target


@rule("MeanVarianceNormalization")
def normalize(at: At) -> None:
    x, call = at.operand(0), _call(at)
    y, rank = at.output(x.shape), len(x.shape)
    if x.dtype is not float32 or y.dtype is not float32 or not x.size or not rank:
        raise Refused(f"{x} normalised")
    axes = tuple(sorted(a % rank for a in call.axes)) or tuple(range(max(rank - 1, 1)))
    kept = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    count = const(float(math.prod(x.shape[a] for a in axes)), float32)
    a, b = arg(0, float32), arg(1, float32)
    mean = at.new(float32, kept, ".mean")
    at.form(Reduce, mean, x.buffer, axes, "sum", a, apply("div", a, count))
    if not call.normalize_variance:
        at.form(Map, y.buffer, (x.buffer, mean), apply("sub", a, b))
        return
    less, variance = at.new(float32, x.shape, ".less"), at.new(float32, kept, ".variance")
    at.form(Map, less, (x.buffer, mean), apply("sub", a, b))
    at.form(Reduce, variance, less, axes, "sum", apply("square", a), apply("div", a, count))
    deviation = apply("add", apply("sqrt", b), const(float(call.eps), float32))
    at.form(Map, y.buffer, (less, variance), apply("div", a, deviation))


def _call(at: At) -> Any:
    return registered(at)._call(at.node)


# ---- pools over volumes --------------------------------------------------------------------------------------------


@rule("MaxPool3D", "AvgPool3D", "AveragePool3D")
def pool(at: At) -> None:
    """An axis after the other; of integers the mean is rounded, halves away from zero."""
    x, call = at.operand(0), _call(at)
    if len(x.shape) != 5 or x.dtype not in (float32, int8, int16) or not x.size or (x.dtype is not float32
            and not x.is_quantized):  # fmt: skip
        raise Refused(f"a volume {x}")
    windows = [window(n, k, s, 1, call.padding) for n, k, s in zip(x.shape[1:4], call.ksize[1:4], call.strides[1:4])]
    y = at.output((x.shape[0], *(w.out for w in windows), x.shape[4]))
    same_numbers(x, y)
    greatest = at.node.name == "MaxPool3D"
    dtype = x.dtype if greatest or x.dtype is float32 else int32
    found = _reduced(at, _padded(at, x, windows, dtype, greatest), windows, dtype, "max" if greatest else "sum")
    value: Expr = arg(0, dtype)
    operands: tuple[Buffer, ...] = (found,)
    if not greatest:
        seen = [np.array([min(w.size, i * w.stride - w.before + w.kernel) - max(0, i * w.stride - w.before)
                          for i in range(w.out)], np.float32) for w in windows]  # fmt: skip
        counts = (seen[0][:, None, None] * seen[1][:, None] * seen[2])[..., None]
        operands = (found, Buffer(f"{y.buffer.name}.counts", float32, counts.shape, np.ascontiguousarray(counts)))
        value = apply("div", convert(value, float32), arg(1, float32))
        if dtype is int32:
            value = convert(apply("round_away", value), y.dtype)
    at.form(Map, y.buffer, operands, value)


def _padded(at: At, x: Operand, windows: list[Any], dtype: DType, greatest: bool) -> Buffer:
    """The volume as another type, with what changes no result around it."""
    source = x.buffer
    if dtype is not x.dtype:
        source = at.new(dtype, x.shape, ".wide")
        at.form(Map, source, (x.buffer,), convert(arg(0, x.dtype), dtype))
    spare = [max(0, (w.out - 1) * w.stride + w.kernel - w.size - w.before) for w in windows]
    low = (0, *(w.before for w in windows), 0)
    if not any((*low, *spare)):
        return source
    shape = (x.shape[0], *(w.before + w.size + more for w, more in zip(windows, spare)), x.shape[4])
    made = at.new(dtype, shape, ".padded")
    fill = 0.0 if not greatest else -math.inf if dtype is float32 else float(dtype.min)
    at.form(Move, made, (source,), (IndexMap(low, x.shape, 0, row_major(x.shape)),), fill)
    return made


def _reduced(at: At, source: Buffer, windows: list[Any], dtype: DType, kind: str) -> Buffer:
    for axis, w in enumerate(windows, 1):
        made = at.new(dtype, (*source.shape[:axis], w.out, *source.shape[axis + 1 :]), f".axis{axis}")
        at.form(ReduceWindow, made, source, axis, w.kernel, w.stride, 1, kind)
        source = made
    return source


# ---- of generative models ------------------------------------------------------------------------------------------

MOST_ROTATED = 1024
"""The longest run that is multiplied with a matrix."""


@rule("aeq.hadamard_rotation")
def rotate(at: At) -> None:
    """A product with Hadamard's matrix."""
    x, n = at.operand(0), int(_call(at).hadamard_size)
    if x.dtype is not float32 or not x.size or n > MOST_ROTATED:
        raise Refused(f"{x} rotated by runs of {n}")
    y, shape = at.output(x.shape), (x.size // n, n)
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    known = Buffer(f"{y.buffer.name}.hadamard", float32, (n, n), (matrix / math.sqrt(n)).astype(np.float32))
    target, close = at.under(y, shape)
    at.form(MatMul, target, at.viewed(x.buffer, shape), known, (), arg(0, float32))
    close()


@rule("odml.scaled_dot_product_attention")
def attention(at: At) -> None:
    """Heads before steps; the queries that share keys are rows of one product. Fusion makes attention of it."""
    q, k, v, mask = (at.operand(i) for i in range(4))
    if any(o.dtype is not float32 or len(o.shape) != 4 or not o.size for o in (q, k, v, mask)):
        raise Refused(f"attention of {q} to {k}")
    (b, s, n, h), (_, t, m, _) = q.shape, k.shape
    if n % m or mask.shape[1] not in (1, n):
        raise Refused(f"attention of {q} to {k} by {mask}")
    y, rows = at.output(q.shape), n // m * s
    scale = float(_call(at).scale)
    queries, keys, values = (_heads(at, o) for o in (q, k, v))
    scores, shown = at.new(float32, (b, m, rows, t), ".scores"), at.new(float32, (b, n, s, t), ".shown")
    factor = const(scale if scale > 0 else 1.0 / math.sqrt(h), float32)
    at.form(MatMul, scores, at.viewed(queries, (b, m, rows, h)), keys, (), apply("mul", arg(0, float32), factor),
            transpose_b=True)  # fmt: skip
    at.form(Map, shown, (at.viewed(scores, shown.shape), mask.buffer), apply("add", arg(0, float32), arg(1, float32)))
    shares, found = at.new(float32, shown.shape, ".shares"), at.new(float32, (b, m, rows, h), ".heads")
    at.form(RowPass, shares, shown, (), "softmax", arg(0, float32), arg(0, float32))
    at.form(MatMul, found, at.viewed(shares, scores.shape), values, (), arg(0, float32))
    at.form(Move, y.buffer, (at.viewed(found, (b, n, s, h)),),
            (IndexMap((0,) * 4, (b, s, n, h), 0, (n * s * h, h, s * h, 1)),))  # fmt: skip


def _heads(at: At, x: Operand) -> Buffer:
    """[b, steps, heads, h] as [b, heads, steps, h]."""
    b, s, n, h = x.shape
    made = at.new(float32, (b, n, s, h), f".{x.buffer.name}.heads")
    at.form(Move, made, (x.buffer,), (IndexMap((0,) * 4, made.shape, 0, (s * n * h, h, n * h, 1)),))
    return made
