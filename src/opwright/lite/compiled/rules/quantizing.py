"""Between real numbers and the integers that stand for them: QUANTIZE, DEQUANTIZE, FAKE_QUANT, NumericVerify; and
DENSIFY, which comes before DEQUANTIZE.

Lives here: these rules.  Not here: functions of quantised tensors (elementwise.py).
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from ....compiler.loops.forms import Buffer, Checked, Map, View
from ....compiler.loops.fusing_constants import computed
from ....core.dtypes import float16, float32, int32
from ....scalar.quantization import nudged
from ...customs.verifying import LEAST
from ..nodes import NARROW, At, Operand, Refused, steps_per
from .below_a_byte import BITS, as_bytes, check_whole_bytes, to_bytes
from .elementwise import mapped, registered, tabulated
from .registry import rule

REALS = (float32, float16)


def _parameters(o: Operand, inverse: bool) -> tuple[Expr, Expr, tuple[Buffer, ...]]:
    """Scale (or its inverse) and zero point: numbers, or, where there are several, operands from arg 1 on."""
    scales = o.scales
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise Refused(f"the scales of {o.tensor.name!r}")
    q = o.tensor.quantization
    zeros: Any = q.zero_point if q.zero_point is not None and len(q.zero_point) else np.zeros(1, np.int64)
    if scales.size == 1:
        number = 1.0 / float(scales[0]) if inverse else float(scales[0])
        return scalar(number, float32), scalar(int(zeros[0]), int32), ()
    axis = int(q.quantized_dimension)
    if not 0 <= axis < len(o.shape) or o.shape[axis] != scales.size:
        raise Refused(f"the scales of {o.tensor.name!r}")
    shape = (scales.size, *(1,) * (len(o.shape) - axis - 1))
    factors = (np.float32(1.0) / scales if inverse else scales).astype(np.float32).reshape(shape)
    points = np.resize(np.asarray(zeros, np.int32), scales.size).reshape(shape)
    buffers = (Buffer(f"{o.buffer.name}.scales", float32, shape, np.ascontiguousarray(factors)),
               Buffer(f"{o.buffer.name}.zeros", int32, shape, np.ascontiguousarray(points)))  # fmt: skip
    return arg(1, float32), arg(2, int32), buffers


@rule("QUANTIZE")
def quantize_(at: At) -> None:
    x = at.operand(0)
    y = at.output(x.shape)
    if x.dtype in REALS and y.dtype in REALS:
        mapped(at, y, convert(arg(0, x.dtype), y.dtype), x)
        return
    if not y.is_quantized or y.dtype not in (*NARROW, *BITS):
        raise Refused(f"{x.dtype.name} to {y.dtype.name}")
    if x.dtype in REALS:
        inverse, zero, more = _parameters(y, True)
        value = apply("mul", convert(arg(0, x.dtype), float32), inverse)
        within = [scalar(int(limit), int32) for limit in y.dtype.limits] if y.dtype in BITS else []
        y, close = to_bytes(at, y)
        at.form(Map, y.buffer, (x.buffer, *more), Expr("quantize", y.dtype, (value, zero, *within)))
        close()
        return
    check_whole_bytes(y)
    if x.dtype.size == 1 and x.dtype in NARROW:
        tabulated(at, x, y)
        return
    if not x.is_quantized or x.dtype not in (*NARROW, int32):
        raise Refused(f"{x.dtype.name} to {y.dtype.name}")
    centred = apply("sub", convert(arg(0, x.dtype), float32), scalar(float(x.zero), float32))
    factor = steps_per(x.scale, y)
    exponent = math.frexp(factor)[1]
    if exponent > 0 and max(abs(int(v) - x.zero) for v in x.dtype.limits) << exponent >= 1 << 31:
        raise Refused(f"{x.dtype.name} times {factor:g}: what the operator shifts to the left wraps")
    value = apply("mul", centred, scalar(factor, float32))
    mapped(at, y, quantize(value, y.zero, y.dtype), x)


@rule("DEQUANTIZE")
def dequantize(at: At) -> None:
    x = at.operand(0)
    y = at.output(x.shape)
    _dequantize(at, x, y)
    form = at.forms[-1]
    if x.is_constant and isinstance(form, Map):
        parameters = [b.constant for b in form.operands[1:] if b.constant is not None]
        y.follows(lambda: computed(form, [np.asarray(x.constant), *parameters]))


@rule("NumericVerify")
def verify(at: At) -> None:
    """What reals lack to their reference; guarded where too much is an error."""
    x, expected, call = at.operand(0), at.operand(1), cast(Any, registered(at))._call(at.node)
    y = at.output(x.shape)
    if expected.shape != x.shape or {expected.dtype, y.dtype} != {float32} or x.dtype not in (*NARROW, float16):
        raise Refused(f"{x} and {expected} to {y}")
    scale = 0.0 if x.dtype is float16 else x.scale
    checked = call.log_if_failed and call.tolerance >= LEAST
    given = arg(0, x.dtype)
    real = convert(given, float32)
    if x.dtype is not float16:
        steps = convert(apply("sub", convert(given, int32), scalar(x.zero, int32)), float32)
        real = apply("mul", steps, scalar(scale, float32))
    found = at.new(float32, x.shape, ".difference") if checked else y.buffer
    at.form(Map, found, (x.buffer, expected.buffer), apply("sub", real, arg(1, float32)))
    if checked:
        at.form(Checked, y.buffer, found, "beyond", float(np.float32(call.tolerance) * np.float32(scale)))


@rule("DENSIFY")
def densify(at: At) -> None:
    """The constant as it is: its zeros were put in when the model was read."""
    x = at.operand(0)
    y = at.output(x.shape)
    if x.buffer.constant is None or x.dtype is not y.dtype:
        raise Refused(f"{x} made dense")
    at.form(View, y.buffer, x.buffer)
    y.follows(lambda: np.asarray(x.constant))


def _dequantize(at: At, x: Operand, y: Operand) -> None:
    if x.dtype in REALS:
        mapped(at, y, convert(arg(0, x.dtype), float32), x)
        return
    if not x.is_constant:
        x = as_bytes(at, x)
    if not x.is_quantized or x.dtype not in (*NARROW, *BITS, int32) or y.dtype is not float32:
        raise Refused(f"{x.dtype.name} to {y.dtype.name}")
    scale, zero, more = _parameters(x, False)
    value: Expr = apply("sub", convert(arg(0, x.dtype), float32), _real(zero))
    at.form(Map, y.buffer, (x.buffer, *more), apply("mul", value, scale))


def _real(zero: Expr) -> Expr:
    """A zero point as float32."""
    return scalar(float(zero.value), float32) if zero.op == "scalar" else convert(zero, float32)


@rule("FAKE_QUANT")
def fake_quant(at: At) -> None:
    """floor((clamp(x, low, high) - low) / s + 1/2) s + low."""
    x = at.operand(0)
    y = at.output(x.shape)
    low, high, bits = np.float32(at.option("min")), np.float32(at.option("max")), int(at.option("num_bits"))
    if x.dtype is not float32 or not 2 <= bits <= 16 or not low < high:
        raise Refused("options out of range")
    f = np.float32
    step, low, high = nudged(low, high, f(bool(at.option("narrow_range"))), f((1 << bits) - 1))
    first = scalar(float(low), float32)
    held = apply("minimum", apply("maximum", arg(0, float32), first), scalar(float(high), float32))
    steps = apply("mul", apply("sub", held, first), scalar(float(f(1) / step), float32))
    whole = apply("floor", apply("add", steps, const(0.5, float32)))
    mapped(at, y, apply("add", apply("mul", whole, scalar(float(step), float32)), first), x)
