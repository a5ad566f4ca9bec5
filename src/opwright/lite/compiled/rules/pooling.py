"""Pools: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D.

Lives here: these rules.  Not here: windows (contractions.py), reductions over whole axes (reductions.py).
"""

from __future__ import annotations

from ....compiler.loops.expressions import Expr, apply, arg, convert, quantize, scalar
from ....compiler.loops.forms import Map, Pool, Window
from ....core.dtypes import float16, float32, int8, int16, int32, uint8
from ..nodes import At, Operand, Refused, clamped, in_steps
from .contractions import window_of
from .registry import rule

NARROW = (int8, uint8, int16)


@rule("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(at: At) -> None:
    x, y, window = _images(at)
    activation = at.option("fused_activation_function")
    if x.dtype is float16 and y.dtype is float16 and at.node.name == "AVERAGE_POOL_2D":
        _in_float32(at, x, y, window, activation)
        return
    if x.dtype is not y.dtype or (x.dtype is not float32 and (x.dtype not in NARROW or not _alike(x, y))):
        raise Refused(f"a pool of {x} to {y}")
    if at.node.name == "MAX_POOL_2D":
        at.form(Pool, y.buffer, x.buffer, "max", _within(arg(0, x.dtype), y, activation), window)
        return
    count = arg(1, float32)
    if x.dtype is float32:
        expr = clamped(apply("div", arg(0, float32), count), activation)
    else:
        mean = apply("round_away", apply("div", convert(arg(0, int32), float32), count))  # as the official kernel
        expr = _within(quantize(mean, 0, y.dtype), y, activation)
    at.form(Pool, y.buffer, x.buffer, "sum", expr, window)


def _in_float32(at: At, x: Operand, y: Operand, window: Window, activation: object) -> None:
    """The mean of float16 in float32."""
    wide, mean = at.new(float32, x.shape, ".wide"), at.new(float32, y.shape, ".mean")
    at.form(Map, wide, (x.buffer,), convert(arg(0, float16), float32))
    at.form(Pool, mean, wide, "sum", apply("div", arg(0, float32), arg(1, float32)), window)
    at.form(Map, y.buffer, (mean,), clamped(convert(arg(0, float32), float16), activation))


@rule("L2_POOL_2D")
def root_of_squares(at: At) -> None:
    x, y, window = _images(at)
    if x.dtype is not float32 or y.dtype is not float32:
        raise Refused(f"a pool of {x} to {y}")
    squares = at.new(float32, x.shape)
    at.form(Map, squares, (x.buffer,), apply("square", arg(0, float32)))
    mean = apply("sqrt", apply("div", arg(0, float32), arg(1, float32)))
    at.form(Pool, y.buffer, squares, "sum", clamped(mean, at.option("fused_activation_function")), window)


def _images(at: At) -> tuple[Operand, Operand, Window]:
    """Input, output and window of a pool."""
    x = at.operand(0)
    if len(x.shape) != 4:
        raise Refused(f"images {x}")
    size = at.option("filter_height"), at.option("filter_width")
    strides = at.option("stride_h"), at.option("stride_w")
    window, sizes = window_of(at.option("padding") or "SAME", x.shape[1:3], size, strides)
    return x, at.output((x.shape[0], *sizes, x.shape[3])), window


def _alike(x: Operand, y: Operand) -> bool:
    return x.is_quantized and y.is_quantized and x.scale == y.scale and x.zero == y.zero


def _within(value: Expr, y: Operand, activation: object) -> Expr:
    """An element after an activation; integers stay integers."""
    if y.dtype is float32:
        return clamped(value, activation)
    if activation in (0, "NONE"):
        return value
    steps = apply("sub", convert(value, float32), scalar(y.zero, float32))
    return in_steps(steps, y, activation)
