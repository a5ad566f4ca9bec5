"""Conversion between real numbers and quantized integers: QUANTIZE, DEQUANTIZE, FAKE_QUANT, NumericVerify, Table,
DENSIFY.

Lives here: these rules.
Not here: functions of quantized tensors (elementwise.py), quantized values as expressions (requantization.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtypes import float16, float32, int8, int16, int32
from ...scalar.quantization import nudged
from ..loops.buffers import Buffer
from ..loops.constant_folding import computed
from ..loops.expressions import Expr, apply, arg, const, convert, lookup, quantize, scalar
from ..loops.ops import Checked, Map, View
from .context import LoweringContext, NoLowering, RuleOperand
from .elementwise import mapped, tabulated
from .registry import rule
from .requantization import NARROW, steps_per
from .type_conversion import BITS, as_bytes, check_whole_bytes, to_bytes

REALS = (float32, float16)


def _parameters(o: RuleOperand, inverse: bool) -> tuple[Expr, Expr, tuple[Buffer, ...]]:
    """Return scale (or its inverse) and zero point: numbers, or per channel, operands from arg 1 on."""
    scales = o.scales
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise NoLowering(f"the scales of {o.name!r}")
    q = o.quantization
    zeros: Any = q.zero_point if q.zero_point is not None and len(q.zero_point) else np.zeros(1, np.int64)
    if scales.size == 1:
        number = 1.0 / float(scales[0]) if inverse else float(scales[0])
        return scalar(number, float32), scalar(int(zeros[0]), int32), ()
    axis = int(q.axis)
    if not 0 <= axis < len(o.shape) or o.shape[axis] != scales.size:
        raise NoLowering(f"the scales of {o.name!r}")
    shape = (scales.size, *(1,) * (len(o.shape) - axis - 1))
    factors = (np.float32(1.0) / scales if inverse else scales).astype(np.float32).reshape(shape)
    points = np.resize(np.asarray(zeros, np.int32), scales.size).reshape(shape)
    buffers = (
        Buffer(f"{o.buffer.name}.scales", float32, shape, np.ascontiguousarray(factors)),
        Buffer(f"{o.buffer.name}.zeros", int32, shape, np.ascontiguousarray(points)),
    )
    return arg(1, float32), arg(2, int32), buffers


@rule("QUANTIZE")
def quantize_(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if x.dtype in REALS and y.dtype in REALS:
        mapped(ctx, y, convert(arg(0, x.dtype), y.dtype), x)
        return
    if not y.is_quantized or (y.dtype not in NARROW and y.dtype.name not in BITS):
        raise NoLowering(f"{x.dtype.name} to {y.dtype.name}")
    if x.dtype in REALS:
        inverse, zero, more = _parameters(y, True)
        value = apply("mul", convert(arg(0, x.dtype), float32), inverse)
        within = [scalar(int(limit), int32) for limit in y.dtype.limits] if y.dtype.name in BITS else []
        y, close = to_bytes(ctx, y)
        ctx.add(Map, y.buffer, (x.buffer, *more), Expr("quantize", y.dtype, (value, zero, *within)))
        close()
        return
    check_whole_bytes(y)
    if x.dtype.size == 1 and x.dtype in NARROW:
        tabulated(ctx, x, y)
        return
    if not x.is_quantized or x.dtype not in (*NARROW, int32):
        raise NoLowering(f"{x.dtype.name} to {y.dtype.name}")
    centred = apply("sub", convert(arg(0, x.dtype), float32), scalar(float(x.zero), float32))
    factor = steps_per(x.scale, y)
    exponent = math.frexp(factor)[1]
    if exponent > 0 and max(abs(int(v) - x.zero) for v in x.dtype.limits) << exponent >= 1 << 31:
        raise NoLowering(f"{x.dtype.name} times {factor:g}: the operator's left shift wraps")
    value = apply("mul", centred, scalar(factor, float32))
    mapped(ctx, y, quantize(value, y.zero, y.dtype), x)


@rule("DEQUANTIZE")
def dequantize(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    _dequantize(ctx, x, y)
    op = ctx.ops[-1]
    if x.is_constant and isinstance(op, Map):
        parameters = [b.constant for b in op.operands[1:] if b.constant is not None]
        y.follows(lambda: computed(op, [np.asarray(x.constant), *parameters]))


@rule("DENSIFY")
def densify(ctx: LoweringContext) -> None:
    """Lower DENSIFY of a constant, which was made dense when the model was read."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if x.buffer.constant is None or x.dtype is not y.dtype:
        raise NoLowering(f"{x} as a dense tensor")
    ctx.add(View, y.buffer, x.buffer)
    y.follows(lambda: np.asarray(x.constant))


def _dequantize(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    if x.dtype in REALS:
        mapped(ctx, y, convert(arg(0, x.dtype), float32), x)
        return
    if not x.is_constant:
        x = as_bytes(ctx, x)
    if not x.is_quantized or (x.dtype not in (*NARROW, int32) and x.dtype.name not in BITS) or y.dtype is not float32:
        raise NoLowering(f"{x.dtype.name} to {y.dtype.name}")
    scale, zero, more = _parameters(x, False)
    value: Expr = apply("sub", convert(arg(0, x.dtype), float32), _real(zero))
    ctx.add(Map, y.buffer, (x.buffer, *more), apply("mul", value, scale))


def _real(zero: Expr) -> Expr:
    """Return a zero point as float32."""
    return scalar(float(zero.value), float32) if zero.op == "scalar" else convert(zero, float32)


@rule("FAKE_QUANT")
def fake_quant(ctx: LoweringContext) -> None:
    """Lower FAKE_QUANT: floor((clamp(x, low, high) - low) / s + 1/2) s + low."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    low, high, bits = np.float32(ctx.attr("min")), np.float32(ctx.attr("max")), int(ctx.attr("num_bits"))
    if x.dtype is not float32 or not 2 <= bits <= 16 or not low < high:
        raise NoLowering("options out of range")
    f = np.float32
    step, low, high = nudged(low, high, f(bool(ctx.attr("narrow_range"))), f((1 << bits) - 1))
    origin = scalar(float(low), float32)
    clamped = apply("minimum", apply("maximum", arg(0, float32), origin), scalar(float(high), float32))
    steps = apply("mul", apply("sub", clamped, origin), scalar(float(f(1) / step), float32))
    rounded = apply("floor", apply("add", steps, const(0.5, float32)))
    mapped(ctx, y, apply("add", apply("mul", rounded, scalar(float(step), float32)), origin), x)


@rule(custom=("Table",))
def table(ctx: LoweringContext) -> None:
    """Lower a constant table to its results by integer, in the order of their bits."""
    x, entries = ctx.operand(0), ctx.constant(1)
    y = ctx.output(x.shape)
    if x.dtype not in (int8, int16) or y.dtype.np != entries.dtype or entries.size != (256 if x.dtype is int8 else 513):
        raise NoLowering(f"a table of {entries.size} for {x}")
    integers = np.arange(1 << 8 * x.dtype.size, dtype=f"u{x.dtype.size}").view(x.dtype.np)
    (results,) = map(np.ascontiguousarray, ctx.node.evaluate([x, ctx.operand(1)], [integers, entries]))
    lookup_table = Buffer(f"{y.buffer.name}.table", y.dtype, results.shape, results)
    ctx.add(Map, y.buffer, (x.buffer, lookup_table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


@rule(custom=("NumericVerify",))
def verify(ctx: LoweringContext) -> None:
    """Lower the difference to a reference; guarded if a large difference is an error."""
    x, expected, call = ctx.operand(0), ctx.operand(1), ctx.node.call
    y = ctx.output(x.shape)
    if expected.shape != x.shape or {expected.dtype, y.dtype} != {float32} or x.dtype not in (*NARROW, float16):
        raise NoLowering(f"{x} and {expected} to {y}")
    scale = 0.0 if x.dtype is float16 else x.scale
    checked = call.is_checked()
    raw = arg(0, x.dtype)
    real = convert(raw, float32)
    if x.dtype is not float16:
        steps = convert(apply("sub", convert(raw, int32), scalar(x.zero, int32)), float32)
        real = apply("mul", steps, scalar(scale, float32))
    difference = ctx.new(float32, x.shape, ".difference") if checked else y.buffer
    ctx.add(Map, difference, (x.buffer, expected.buffer), apply("sub", real, arg(1, float32)))
    if checked:
        ctx.add(Checked, y.buffer, difference, "beyond", float(np.float32(call.tolerance) * np.float32(scale)))
