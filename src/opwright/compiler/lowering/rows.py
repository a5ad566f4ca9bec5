"""Operators that need a whole row at once: softmax and its logarithm, L2_NORMALIZATION, local response normalization.

Lives here: these rules.  Not here: the row kernels.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, int8, int16, int64, uint8
from ...scalar.tabled_softmax import tables_of
from ..loops.expressions import apply, arg, convert, quantize, scalar
from ..loops.forms import Buffer, RowPass, TabledSoftmax
from .context import LoweringContext, NoLowering, Operand
from .quantized import real, steps, stored
from .registry import CATALOGUE, rule

STEPS = {int8: 256.0, uint8: 256.0, int16: 65536.0}
"""Steps of 1 that SOFTMAX of 8 bits gives, from the least integer on."""


def _check_catalogue(ctx: LoweringContext) -> None:
    """Raise NoLowering for the catalogue's softmax along another axis, which files do not have, and of other types,
    which NumPy rounds at each step."""
    if ctx.node.dialect == CATALOGUE:
        x, axis = ctx.operand(0), int(ctx.attr("axis"))
        if axis not in (-1, len(x.shape) - 1) or x.dtype is not float32:
            raise NoLowering(f"softmax of {x} along {axis}")


def _row(ctx: LoweringContext) -> tuple[Operand, Operand]:
    """Of int16 the official kernels of other functions than softmax are further than a step from what they say."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if x.dtype is not y.dtype or x.dtype is int16 or not x.shape:
        raise NoLowering(f"rows of {x} to {y}")
    return x, y


@rule("Softmax", "SOFTMAX")
def softmax(ctx: LoweringContext) -> None:
    _check_catalogue(ctx)
    if ctx.operand(0).dtype is int16:
        _of_int16(ctx)
        return
    x = ctx.operand(0)
    wide = x.dtype in (int8, uint8) and ctx.output().dtype is int16
    x, y = (x, ctx.output(x.shape)) if wide and x.shape else _row(ctx)
    beta = 1.0 if ctx.node.dialect == CATALOGUE else ctx.attr("beta")
    # Below 0, beta * (x - max) has its greatest at the least x, which the row's pass does not subtract; from 1e30 on it
    # overflows before the difference is taken.
    if not 0 < beta < 1e30:
        raise NoLowering(f"softmax with beta {beta}")
    short = x.dtype in (float16, bfloat16)
    value = convert(arg(0, x.dtype), float32) if short else real(x, 0)
    before = value if ctx.node.dialect == CATALOGUE else apply("mul", value, scalar(beta, float32))
    found = arg(0, float32)
    if y.dtype in STEPS:  # whatever y's scale and zero point are
        if not y.is_quantized:
            raise NoLowering(f"rows of {x} to {y}")
        after = quantize(apply("mul", found, scalar(STEPS[y.dtype], float32)), int(y.dtype.min), y.dtype)
    else:
        after = convert(found, x.dtype) if short else stored(found, y)
    ctx.form(RowPass, y.buffer, x.buffer, (), "softmax", before, after)


def _of_int16(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if not x.shape or y.dtype is not int16:
        raise NoLowering(f"rows of {x} to {y}")
    ctx.node.integer_kernel()  # refuses scales that the operator refuses
    factor, *tables = tables_of(x.scale, ctx.attr("beta"))
    both = np.stack(tables).astype(np.int64)
    ctx.form(TabledSoftmax, y.buffer, x.buffer, Buffer("softmax.tables", int64, both.shape, both), factor)


@rule("LogSoftmax", "LOG_SOFTMAX")
def log_softmax(ctx: LoweringContext) -> None:
    _check_catalogue(ctx)
    x, y = _row(ctx)
    ctx.form(RowPass, y.buffer, x.buffer, (), "log_softmax", real(x, 0), stored(arg(0, float32), y))


@rule("L2_NORMALIZATION")
def l2_normalization(ctx: LoweringContext) -> None:
    """Normalise integers in steps: the scale cancels, and 1e-6 is below any sum of squares of integers but 0."""
    x, y = _row(ctx)
    ctx.form(RowPass, y.buffer, x.buffer, (), "l2_norm", steps(x, 0), stored(arg(0, float32), y), (1e-6,))


@rule("LRN", "LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(ctx: LoweringContext) -> None:
    x, y = _row(ctx)
    radius = ctx.attr("depth_radius" if ctx.node.dialect == CATALOGUE else "radius")
    bias, alpha, beta = (ctx.attr(name) for name in ("bias", "alpha", "beta"))
    if x.dtype is not float32 or len(x.shape) != 4 or radius < 0:
        raise NoLowering(f"rows of {x}, radius {radius}")
    numbers = (float(radius), float(bias), float(alpha), float(beta))
    kind = "response_of_positive" if bias > 0 and alpha >= 0 else "local_response"
    ctx.form(RowPass, y.buffer, x.buffer, (), kind, arg(0, float32), arg(0, float32), numbers)
