"""Norms by moments, and cross entropies: FusedBatchNorm, LayerNorm, MeanVarianceNormalization,
SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits.

Lives here: their rules.  Not here: the row kernels, softmax itself (rows.py).
"""

from __future__ import annotations

import math

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32
from ..loops.expressions import Expr, apply, arg, const
from ..loops.forms import Buffer, Gather, Map, Reduce, RowPass, View
from .context import LoweringContext, NoLowering
from .elementwise import map_elements
from .registry import rule


@rule("LayerNorm")
def layer_norm(ctx: LoweringContext) -> None:
    x, scale, offset = ctx.operand(0), ctx.optional(1), ctx.optional(2)
    axes = tuple(int(a) % max(len(x.shape), 1) for a in ctx.attr("axis"))
    if axes != (len(x.shape) - 1,) or x.dtype is not float32 or scale is None or offset is None:
        raise NoLowering(f"rows of {x} along {axes}, with scale {scale}, offset {offset}")
    y, value, epsilon = ctx.output(x.shape), arg(0, float32), float(ctx.attr("epsilon"))
    parameters = scale.buffer, offset.buffer
    ctx.form(RowPass, y.buffer, x.buffer, parameters, "layer_norm", value, value, (epsilon,))


def _log_softmax(ctx: LoweringContext, x: Buffer) -> Buffer:
    if x.dtype is not float32 or not x.shape or not x.size:
        raise NoLowering(f"softmax of {x}")
    made = ctx.new(float32, x.shape)
    ctx.form(RowPass, made, x, (), "log_softmax", arg(0, float32), arg(0, float32))
    return made


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(ctx: LoweringContext) -> None:
    """A label outside of the row is a failed guard."""
    labels, x = [o.buffer for o in ctx.operands]
    y = ctx.output(x.shape[:-1]).buffer
    found = _log_softmax(ctx, x)
    rows = ctx.viewed(found, (y.size, x.shape[-1]))
    taken = ctx.new(float32, (y.size,))
    ctx.form(Gather, taken, rows, ctx.viewed(labels, (y.size,)), 1, 1)
    map_elements(ctx, y, [ctx.viewed(taken, y.shape)], lambda p: apply("neg", p))


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(ctx: LoweringContext) -> None:
    """Labels of 0 give 0 beside a logit of minus infinity too."""
    labels, x = [o.buffer for o in ctx.operands]
    if labels.shape != x.shape or int(ctx.attr("axis")) not in (-1, len(x.shape) - 1):
        raise NoLowering(f"labels {labels} of {x} along {ctx.attr('axis')}")
    y = ctx.output(x.shape[:-1]).buffer
    terms = ctx.new(float32, x.shape)

    def term(wanted: Expr, p: Expr) -> Expr:
        zero = const(0, float32)
        return apply("select", apply("equal", wanted, zero, dtype=bool_), zero, apply("mul", wanted, p), dtype=float32)

    map_elements(ctx, terms, [labels, _log_softmax(ctx, x)], term)
    ctx.form(Reduce, y, terms, (len(x.shape) - 1,), "sum", arg(0, float32), apply("neg", arg(0, float32)))


@rule("FusedBatchNorm")
def batch_norm(ctx: LoweringContext) -> None:
    """With the moments that it is given: y = (x - mean) * scale / sqrt(variance + epsilon) + offset."""
    if ctx.attr("is_training") or ctx.attr("data_format") != "NHWC":
        raise NoLowering("moments of the batch, or channels first")
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
        ctx.output(place=0).buffer,
        [x, moments[2], factor, moments[1]],
        lambda a, m, f, o: apply("add", apply("mul", apply("sub", a, m), f), o),
    )
    for place, moment in ((1, moments[2]), (2, moments[3])):
        ctx.form(View, ctx.output(place=place).buffer, moment)


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
