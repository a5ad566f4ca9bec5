"""Normalization and softmax: operators that read a whole row, or the moments of axes.

Lives here: the rules of Softmax, LogSoftmax, LRN and L2_NORMALIZATION in both dialects; FusedBatchNorm, LayerNorm,
MeanVarianceNormalization; SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, ClassLabels.
Not here: the row kernels (../kernels/).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, float64, int8, int16, int64, uint8
from ...core.dtypes import bool as bool_
from ...scalar.fixed_point_layers import tables_of
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer
from ..loops.domain_ops import TabledSoftmax
from ..loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from ..loops.indexing_ops import Gather
from ..loops.ops import Checked, Map, Reduce, RowPass, View
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import map_elements, real, steps, stored
from .registry import CATALOGUE, rule

STEPS = {int8: 256.0, uint8: 256.0, int16: 65536.0}
"""Quantized softmax results per 1, from the least integer on."""


def _is_row_pass(x: Buffer, axis: int, dtypes: Sequence[DType] = (float32,)) -> bool:
    """Return whether rows along the last axis are read, of types that the row kernels compute."""
    return x.dtype in dtypes and axis in (-1, len(x.shape) - 1)


def _wide(dtype: DType) -> DType:
    """Return the type in which floats are computed. Raises NoLowering for others."""
    if not dtype.is_floating or dtype not in DTYPES:
        raise NoLowering(f"softmax of {dtype.name}")
    return float64 if dtype is float64 else float32


def _over_axis(ctx: LoweringContext, y: Buffer, x: Buffer, axis: int, is_log: bool) -> None:
    """Add softmax, or its logarithm, along any axis: exponentials of distances to the maximum, and their sum."""
    if not x.size or not x.shape:
        raise NoLowering(f"softmax of {x}")
    axis, wide = axis % len(x.shape), _wide(x.dtype)
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    top, total = ctx.new(wide, shape, f".{y.name}.top"), ctx.new(wide, shape, f".{y.name}.sum")
    value = convert(arg(0, x.dtype), wide)
    ctx.add(Reduce, top, x, (axis,), "max", value, arg(0, wide))
    distance = apply("sub", value, arg(1, wide))
    powers, before = ctx.new(wide, x.shape, f".{y.name}.powers"), arg(0, wide)
    kept = distance if is_log else apply("exp", distance)
    ctx.add(Map, powers, (x, top), kept)
    ctx.add(Reduce, total, powers, (axis,), "sum", apply("exp", before) if is_log else before, before)
    second = arg(1, wide)
    result = apply("sub", before, apply("log", second)) if is_log else apply("div", before, second)
    ctx.add(Map, y, (powers, total), convert(result, y.dtype))


def _row(ctx: LoweringContext) -> tuple[RuleOperand, RuleOperand]:
    """Return input and output of a function of rows; the only one of int16 is softmax, here and officially."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if x.dtype is not y.dtype or x.dtype is int16 or not x.shape:
        raise NoLowering(f"rows of {x} to {y}")
    return x, y


@rule("Softmax", "SOFTMAX")
def softmax(ctx: LoweringContext) -> None:
    if ctx.node.dialect == CATALOGUE and not _is_row_pass(
        ctx.operand(0).buffer, ctx.attr("axis"), (float32, float16, bfloat16)
    ):
        _over_axis(ctx, ctx.output().buffer, ctx.operand(0).buffer, ctx.attr("axis"), False)
        return
    if ctx.operand(0).dtype is int16:
        _of_int16(ctx)
        return
    x = ctx.operand(0)
    widens = x.dtype in (int8, uint8) and ctx.output().dtype is int16
    x, y = (x, ctx.output(x.shape)) if widens and x.shape else _row(ctx)
    beta = 1.0 if ctx.node.dialect == CATALOGUE else ctx.attr("beta")
    # With beta < 0, the maximum of beta * x is at the least x, which the row pass does not subtract; from 1e30 on, the
    # product overflows before the difference is computed.
    if not 0 < beta < 1e30:
        raise NoLowering(f"softmax with beta {beta}")
    short = x.dtype in (float16, bfloat16)
    value = convert(arg(0, x.dtype), float32) if short else _scores(x, beta)
    before = value if beta == 1.0 else apply("mul", value, scalar(beta, float32))
    probability = arg(0, float32)
    if y.dtype in STEPS:  # independently of y's scale and zero point
        if not y.is_quantized:
            raise NoLowering(f"rows of {x} to {y}")
        after = quantize(apply("mul", probability, scalar(STEPS[y.dtype], float32)), int(y.dtype.min), y.dtype)
    else:
        after = convert(probability, x.dtype) if short else stored(probability, y)
    ctx.add(RowPass, y.buffer, x.buffer, (), "softmax", before, after)


def _scores(x: RuleOperand, beta: float) -> Expr:
    """Return the real values of a softmax's operand, which masks of attention bring near the least float32.

    raises NoLowering if beta times their distances overflows
    """
    if x.dtype not in (int8, uint8) or not x.is_quantized:
        return real(x, 0)
    scale = x.unbounded_scale
    if not 0 < 256 * scale * max(beta, 1.0) < float32.max:
        raise NoLowering(f"softmax of {x.name!r}, whose scale is {scale:g}, with beta {beta:g}")
    return apply("mul", steps(x, 0), scalar(scale, float32))


def _of_int16(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if not x.shape or y.dtype is not int16:
        raise NoLowering(f"rows of {x} to {y}")
    ctx.node.integer_kernel()  # raises NoLowering for scales that the operator rejects
    factor, *tables = tables_of(x.scale, ctx.attr("beta"))
    both = np.stack(tables).astype(np.int64)
    ctx.add(TabledSoftmax, y.buffer, x.buffer, Buffer("softmax.tables", int64, both.shape, both), factor)


@rule("LogSoftmax", "LOG_SOFTMAX")
def log_softmax(ctx: LoweringContext) -> None:
    if ctx.node.dialect == CATALOGUE and not _is_row_pass(ctx.operand(0).buffer, ctx.attr("axis")):
        _over_axis(ctx, ctx.output().buffer, ctx.operand(0).buffer, ctx.attr("axis"), True)
        return
    x, y = _row(ctx)
    ctx.add(RowPass, y.buffer, x.buffer, (), "log_softmax", real(x, 0), stored(arg(0, float32), y))


@rule("L2_NORMALIZATION")
def l2_normalization(ctx: LoweringContext) -> None:
    """Lower L2_NORMALIZATION; integers are normalized in steps, as scales cancel, and 1e-6 is below any positive sum of
    squares."""
    x, y = _row(ctx)
    ctx.add(RowPass, y.buffer, x.buffer, (), "l2_norm", steps(x, 0), stored(arg(0, float32), y), (1e-6,))


@rule("LRN", "LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(ctx: LoweringContext) -> None:
    x, y = _row(ctx)
    radius = ctx.attr("depth_radius" if ctx.node.dialect == CATALOGUE else "radius")
    bias, alpha, beta = (ctx.attr(name) for name in ("bias", "alpha", "beta"))
    if x.dtype is not float32 or len(x.shape) != 4 or radius < 0:
        raise NoLowering(f"rows of {x}, radius {radius}")
    numbers = (float(radius), float(bias), float(alpha), float(beta))
    kind = "response_of_positive" if bias > 0 and alpha >= 0 else "local_response"
    ctx.add(RowPass, y.buffer, x.buffer, (), kind, arg(0, float32), arg(0, float32), numbers)


@rule("LayerNorm")
def layer_norm(ctx: LoweringContext) -> None:
    """Lower layer normalization to a pass over rows of float32, or to moments of any axes."""
    x, scale, offset = ctx.operand(0), ctx.optional(1), ctx.optional(2)
    axes = tuple(int(a) % max(len(x.shape), 1) for a in ctx.attr("axis"))
    y, epsilon = ctx.output(x.shape), float(ctx.attr("epsilon"))
    if axes != (len(x.shape) - 1,) or x.dtype is not float32 or scale is None or offset is None:
        _norm_over_axes(ctx, axes, epsilon)
        return
    value, parameters = arg(0, float32), (scale.buffer, offset.buffer)
    ctx.add(RowPass, y.buffer, x.buffer, parameters, "layer_norm", value, value, (epsilon,))


def _norm_over_axes(ctx: LoweringContext, axes: tuple[int, ...], epsilon: float) -> None:
    """Add (x - mean) / sqrt(variance + epsilon), times the scale, plus the offset, where they are."""
    x, y = ctx.operand(0).buffer, ctx.output().buffer
    if not x.size or not axes:
        raise NoLowering(f"a norm of {x}")
    wide, shape = _wide(x.dtype), tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    count = scalar(float(math.prod(x.shape[i] for i in axes)), wide)
    mean, variance = ctx.new(wide, shape, ".mean"), ctx.new(wide, shape, ".variance")
    centred, value, element = ctx.new(wide, x.shape, ".centred"), convert(arg(0, x.dtype), wide), arg(0, wide)
    mean_of = apply("div", element, count)
    ctx.add(Reduce, mean, x, tuple(sorted(axes)), "sum", value, mean_of)
    ctx.add(Map, centred, (x, mean), apply("sub", value, arg(1, wide)))
    ctx.add(Reduce, variance, centred, tuple(sorted(axes)), "sum", apply("square", element), mean_of)
    result = apply("div", element, apply("sqrt", apply("add", arg(1, wide), const(epsilon, wide))))
    operands = [centred, variance]
    for index, op in ((1, "mul"), (2, "add")):
        parameter = ctx.optional(index)
        if parameter is not None:
            operands.append(ctx.viewed(parameter.buffer, [n if i in axes else 1 for i, n in enumerate(x.shape)]))
            result = apply(op, result, convert(arg(len(operands) - 1, parameter.dtype), wide))
    ctx.add(Map, y, tuple(operands), convert(result, y.dtype))


def _log_softmax(ctx: LoweringContext, x: Buffer, axis: int = -1) -> Buffer:
    """Return the logarithm of softmax of float32 or float64."""
    if x.dtype not in (float32, float64) or not x.shape or not x.size:
        raise NoLowering(f"softmax of {x}")
    result = ctx.new(x.dtype, x.shape)
    if _is_row_pass(x, axis):
        ctx.add(RowPass, result, x, (), "log_softmax", arg(0, float32), arg(0, float32))
    else:
        _over_axis(ctx, result, x, axis, True)
    return result


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(ctx: LoweringContext) -> None:
    """Lower sparse cross entropy; a label outside of the row is a failed guard."""
    labels, x = [o.buffer for o in ctx.operands]
    y = ctx.output(x.shape[:-1]).buffer
    log_probabilities = _log_softmax(ctx, x)
    rows = ctx.viewed(log_probabilities, (y.size, x.shape[-1]))
    selected = ctx.new(x.dtype, (y.size,))
    ctx.add(Gather, selected, rows, ctx.viewed(labels, (y.size,)), 1, 1)
    map_elements(ctx, y, [ctx.viewed(selected, y.shape)], lambda p: apply("neg", p))


@rule("ClassLabels")
def class_labels(ctx: LoweringContext) -> None:
    """Lower checked labels; one that is not a class is a failed guard."""
    labels, classes = ctx.operand(0), int(ctx.constant(1).reshape(-1)[0])
    y, positive = ctx.output(labels.shape).buffer, ctx.new(labels.dtype, labels.shape, ".positive")
    ctx.add(Checked, positive, labels.buffer, "below", 0)
    ctx.add(Checked, y, positive, "beyond", classes - 1)


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(ctx: LoweringContext) -> None:
    """Lower cross entropy; a label of 0 contributes 0 even for a logit of minus infinity."""
    labels, x = [o.buffer for o in ctx.operands]
    axis, dtype = int(ctx.attr("axis")) % max(len(x.shape), 1), x.dtype
    if labels.shape != x.shape:
        raise NoLowering(f"labels {labels} of {x}")
    y = ctx.output([n for i, n in enumerate(x.shape) if i != axis]).buffer
    terms = ctx.new(dtype, x.shape)

    def term(label: Expr, p: Expr) -> Expr:
        zero = const(0, dtype)
        return apply("select", apply("equal", label, zero, dtype=bool_), zero, apply("mul", label, p), dtype=dtype)

    map_elements(ctx, terms, [labels, _log_softmax(ctx, x, axis)], term)
    ctx.add(Reduce, y, terms, (axis,), "sum", arg(0, dtype), apply("neg", arg(0, dtype)))


@rule("FusedBatchNorm")
def batch_norm(ctx: LoweringContext) -> None:
    """Lower inference: y = (x - mean) * scale / sqrt(variance + epsilon) + offset."""
    if ctx.attr("is_training") or ctx.attr("data_format") != "NHWC":
        raise NoLowering("training, or channels first")
    x, *moments = [o.buffer for o in ctx.operands]
    if any(b.dtype is not float32 for b in (x, *moments)):
        raise NoLowering(f"a norm of {x}")
    epsilon = const(float(ctx.attr("epsilon")), float32)
    factor = ctx.new(float32, moments[0].shape)
    map_elements(
        ctx, factor, [moments[0], moments[3]], lambda s, v: apply("div", s, apply("sqrt", apply("add", v, epsilon)))
    )
    map_elements(
        ctx,
        ctx.output(index=0).buffer,
        [x, moments[2], factor, moments[1]],
        lambda a, m, f, o: apply("add", apply("mul", apply("sub", a, m), f), o),
    )
    for index, moment in ((1, moments[2]), (2, moments[3])):
        ctx.add(View, ctx.output(index=index).buffer, moment)


@rule(custom=("MeanVarianceNormalization",))
def normalize(ctx: LoweringContext) -> None:
    x, call = ctx.operand(0), ctx.node.call
    y, rank = ctx.output(x.shape), len(x.shape)
    if x.dtype is not float32 or y.dtype is not float32 or not x.size or not rank:
        raise NoLowering(f"normalization of {x}")
    axes = tuple(sorted(a % rank for a in call.axes)) or tuple(range(max(rank - 1, 1)))
    reduced = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    count = scalar(float(math.prod(x.shape[a] for a in axes)), float32)
    a, b = arg(0, float32), arg(1, float32)
    mean = ctx.new(float32, reduced, ".mean")
    ctx.add(Reduce, mean, x.buffer, axes, "sum", a, apply("div", a, count))
    if not call.normalize_variance:
        ctx.add(Map, y.buffer, (x.buffer, mean), apply("sub", a, b))
        return
    centered, variance = ctx.new(float32, x.shape, ".less"), ctx.new(float32, reduced, ".variance")
    ctx.add(Map, centered, (x.buffer, mean), apply("sub", a, b))
    ctx.add(Reduce, variance, centered, axes, "sum", apply("square", a), apply("div", a, count))
    deviation = apply("add", apply("sqrt", b), const(float(call.eps), float32))
    ctx.add(Map, y.buffer, (centered, variance), apply("div", a, deviation))
