"""Pools: AvgPool, MaxPool, AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D.

Lives here: these rules.
Not here: their gradients (gradients.py), windows (windows.py), reductions over whole axes (reductions.py).
"""

from __future__ import annotations

from ...core.dtypes import float16, float32, int8, int16, int32, uint8
from ..loops.expressions import Expr, apply, arg, convert, quantize, scalar
from ..loops.forms import Map, Pool, Window
from .context import LoweringContext, NoLowering, Operand
from .quantized import clamped, in_steps
from .registry import CATALOGUE, rule
from .windows import window_of

NARROW = (int8, uint8, int16)


@rule("AvgPool", "MaxPool", "AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(ctx: LoweringContext) -> None:
    x, y, window = _images(ctx)
    activation = ctx.node.activation
    if x.dtype is float16 and y.dtype is float16 and ctx.operator == "AVERAGE_POOL_2D":
        _in_float32(ctx, x, y, window, activation)
        return
    if x.dtype is not y.dtype or (x.dtype is not float32 and (x.dtype not in NARROW or not _alike(x, y))):
        raise NoLowering(f"a pool of {x} to {y}")
    if ctx.operator in ("MaxPool", "MAX_POOL_2D"):
        ctx.form(Pool, y.buffer, x.buffer, "max", _within(arg(0, x.dtype), y, activation), window)
        return
    count = arg(1, float32)
    if x.dtype is float32:
        expr = clamped(apply("div", arg(0, float32), count), activation)
    else:
        mean = apply("round_away", apply("div", convert(arg(0, int32), float32), count))  # as the official kernel
        expr = _within(quantize(mean, 0, y.dtype), y, activation)
    ctx.form(Pool, y.buffer, x.buffer, "sum", expr, window)


def _in_float32(ctx: LoweringContext, x: Operand, y: Operand, window: Window, activation: object) -> None:
    """The mean of float16 in float32."""
    wide, mean = ctx.new(float32, x.shape, ".wide"), ctx.new(float32, y.shape, ".mean")
    ctx.form(Map, wide, (x.buffer,), convert(arg(0, float16), float32))
    ctx.form(Pool, mean, wide, "sum", apply("div", arg(0, float32), arg(1, float32)), window)
    ctx.form(Map, y.buffer, (mean,), clamped(convert(arg(0, float32), float16), activation))


@rule("L2_POOL_2D")
def root_of_squares(ctx: LoweringContext) -> None:
    x, y, window = _images(ctx)
    if x.dtype is not float32 or y.dtype is not float32:
        raise NoLowering(f"a pool of {x} to {y}")
    squares = ctx.new(float32, x.shape)
    ctx.form(Map, squares, (x.buffer,), apply("square", arg(0, float32)))
    mean = apply("sqrt", apply("div", arg(0, float32), arg(1, float32)))
    ctx.form(Pool, y.buffer, squares, "sum", clamped(mean, ctx.node.activation), window)


def _images(ctx: LoweringContext) -> tuple[Operand, Operand, Window]:
    """Return input, output and window of a pool."""
    x = ctx.operand(0)
    window, sizes = pool_window(ctx, x)
    return x, ctx.output((x.shape[0], *sizes, x.shape[3])), window


def pool_window(ctx: LoweringContext, x: Operand) -> tuple[Window, tuple[int, int]]:
    """Return the window of a pool over x, and how often it fits. Raises NoLowering for pools over other axes."""
    ksize = (
        ctx.attr("ksize")
        if ctx.node.dialect == CATALOGUE
        else (1, ctx.attr("filter_height"), ctx.attr("filter_width"), 1)
    )
    if len(x.shape) != 4 or len(ksize) != 4 or ksize[0] != 1 or ksize[3] != 1:
        raise NoLowering(f"a pool of {list(ksize)} over {x}")
    return window_of(ctx, x.shape, [int(k) for k in ksize[1:3]])


def _alike(x: Operand, y: Operand) -> bool:
    return x.is_quantized and y.is_quantized and x.scale == y.scale and x.zero == y.zero


def _within(value: Expr, y: Operand, activation: object) -> Expr:
    """An element after an activation; integers stay integers."""
    if y.dtype is float32:
        return clamped(value, activation)
    if activation == "NONE":
        return value
    steps = apply("sub", convert(value, float32), scalar(y.zero, float32))
    return in_steps(steps, y, activation)
