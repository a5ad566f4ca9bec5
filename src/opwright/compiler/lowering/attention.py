"""Operators of generative models: odml.scaled_dot_product_attention, aeq.hadamard_rotation.

Lives here: their rules.  Not here: the form of attention, which fusion builds of these and of others' products
(../loops/fusion.py), key-value caches (lookups.py).
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import apply, arg, const
from ..loops.forms import Buffer, IndexMap, Map, MatMul, Move, RowPass
from .context import LoweringContext, NoLowering, Operand
from .registry import rule

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
