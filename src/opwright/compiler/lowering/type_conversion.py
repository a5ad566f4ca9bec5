"""Conversion of element types: casts, QUANTIZE and DEQUANTIZE, float16 computed in float32, elements below a byte.

Lives here: `in_float32`, a decorator of rules, `lower_widened`; int4, uint4 and int2 operands as bytes,
`check_whole_bytes` for rules that do not convert them; the rules of Cast and CAST, QUANTIZE, DEQUANTIZE,
NumericVerify, Table, DENSIFY.
Not here: fake quantization (fake_quantization.py), functions of quantized tensors, quantized values as expressions
(operand_expressions.py), other element-wise operators, whose expressions round (../kernels/expression.py), data
movement, which copies bytes, packed weights (contractions.py).

The reference kernels compute float16 operands in float32. The interpreter stores each element below a byte in one byte,
in its low bits; NumPy leaves the others undefined.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, bfloat16, complex64, float16, float32, int8, int16, int32, uint8
from ...core.dtypes import bool as bool_
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer
from ..loops.constant_folding import computed
from ..loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from ..loops.ops import Checked, LoopOp, Map, Reinterpret, View
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import (
    NARROW,
    as_type,
    every_integer,
    look_up,
    map_elements,
    mapped,
    plain,
    steps_per,
    tabulated,
)
from .registry import CATALOGUE, Rule, lower, rule
from .spectral import join, pairs, part

NARROW_FLOATS = (float16, bfloat16)
IN_FLOAT32 = frozenset(
    {
        "AvgPool",
        "AvgPoolGrad",
        "Conv2D",
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "Conv3D",
        "Conv3DBackpropFilter",
        "Conv3DBackpropInput",
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput",
        "Einsum",
        "MatMul",
        "MaxPool",
        "MaxPoolGrad",
        "Mean",
        "Sum",
        "SumToLike",
    }
)
"""Operators of the catalogue that compute 16-bit floats in float32 and round the result."""


class Widened(LoweringContext):
    """The context of a node with operands and outputs of 16-bit floats converted to float32, by maps that fusion merges
    into the kernels that read or write them."""

    __slots__ = ("_inputs", "_outputs")

    def __init__(self, ctx: LoweringContext) -> None:
        super().__init__(ctx.node, ctx.buffers)
        self.ops = ctx.ops
        self._inputs: dict[int, RuleOperand] = {}
        self._outputs: dict[int, tuple[RuleOperand, RuleOperand]] = {}

    def optional(self, index: int) -> RuleOperand | None:
        narrow = super().optional(index)
        if narrow is None or narrow.dtype not in NARROW_FLOATS:
            return narrow
        widened = self._inputs.get(index)
        if widened is None:
            buffer = Buffer(f"{self.node.prefix}.{narrow.buffer.name}.wide", float32, narrow.shape)
            self.add(Map, buffer, (narrow.buffer,), convert(arg(0, narrow.dtype), float32))
            widened = self._inputs[index] = narrow.with_buffer(buffer)
        return widened

    def output(self, shape: Sequence[int] | None = None, index: int = 0) -> RuleOperand:
        narrow = super().output(shape, index)
        if narrow.dtype not in NARROW_FLOATS:
            return narrow
        if index not in self._outputs:
            wide = Buffer(f"{narrow.buffer.name}.wide", float32, narrow.shape)
            self._outputs[index] = narrow, narrow.with_buffer(wide)
        return self._outputs[index][1]

    def close(self) -> None:
        """Round the outputs that the rule's operations have written."""
        for narrow, wide in self._outputs.values():
            self.add(Map, narrow.buffer, (wide.buffer,), convert(arg(0, float32), narrow.dtype))


def lower_widened(ctx: LoweringContext) -> list[LoopOp]:
    """Return the operations of a node of the catalogue, with 16-bit floats as float32 if IN_FLOAT32 has its operator.

    raises NoLowering
    """
    values = (*ctx.node.node.operands, *ctx.node.node.outputs)
    if ctx.operator not in IN_FLOAT32 or all(v.dtype not in NARROW_FLOATS for v in values):
        return lower(ctx)
    wide = Widened(ctx)
    lower(wide)
    wide.close()
    return ctx.ops


def in_float32(rule: Rule) -> Rule:
    """Decorate a rule of float32 so that it also lowers float16."""

    @functools.wraps(rule)
    def widened(ctx: LoweringContext) -> None:
        values = (*ctx.node.inputs[:1], *ctx.node.outputs) if ctx.node.dialect != CATALOGUE else ()
        if all(value is None or ctx.buffers.of(value).dtype is not float16 for value in values):
            rule(ctx)
            return
        wide = Widened(ctx)
        rule(wide)
        wide.close()

    return widened


BITS = {"int4": 4, "uint4": 4, "int2": 2}
"""Bits of the types below a byte, by name: two of them exist in files only."""


def check_whole_bytes(x: RuleOperand) -> None:
    """Raise NoLowering for elements below a byte."""
    if x.dtype.name in BITS:
        raise NoLowering(f"elements of type {x.dtype.name}")


def as_bytes(ctx: LoweringContext, x: RuleOperand) -> RuleOperand:
    """Return an operand with elements below a byte as int8 or uint8; others unchanged."""
    bits = BITS.get(x.dtype.name)
    if bits is None:
        return x
    dtype = uint8 if x.dtype.is_unsigned else int8
    if x.is_constant:
        elements = np.asarray(x.constant).astype(dtype.np)
        return x.with_buffer(Buffer(f"{x.buffer.name}.bytes", dtype, x.shape, elements))
    raw, spare = arg(0, dtype), const(8 - bits, dtype)
    value = apply("shift_right", apply("shift_left", raw, spare), spare)
    if dtype is uint8:
        value = apply("bitwise_and", raw, const((1 << bits) - 1, dtype))
    unpacked = ctx.new(dtype, x.shape, f".{x.buffer.name}.bytes")
    ctx.add(Map, unpacked, (ctx.bits(x.buffer, dtype, x.shape),), value)
    return x.with_buffer(unpacked)


def to_bytes(ctx: LoweringContext, y: RuleOperand) -> tuple[RuleOperand, Callable[[], None]]:
    """Return an output as bytes for an operation to write, and a function to call afterwards. Written values must be
    within the type."""
    if y.dtype.name not in BITS:
        return y, lambda: None
    unpacked = ctx.new(uint8 if y.dtype.is_unsigned else int8, y.shape, ".bytes")

    def close() -> None:
        ctx.add(Reinterpret, y.buffer, unpacked)

    return y.with_buffer(unpacked), close


def _catalogue_cast(x: Expr, dtype: DType) -> Expr:
    if dtype is bool_ and x.dtype is not bool_:
        return apply("not_equal", x, const(0, x.dtype), dtype=bool_)
    return convert(x, dtype)


@rule("Cast", "CAST")
def cast(ctx: LoweringContext) -> None:
    """Lower a conversion of elements; in files, complex numbers are converted by their real parts."""
    x = ctx.operand(0)
    y = ctx.output(x.shape)
    if ctx.node.dialect == CATALOGUE:
        map_elements(ctx, y.buffer, [x.buffer], lambda e: _catalogue_cast(e, y.dtype))
        return
    if x.dtype is y.dtype is complex64:
        ctx.add(View, y.buffer, x.buffer)
        return
    if x.dtype is complex64 and y.dtype in DTYPES:
        ctx.add(Map, y.buffer, (part(ctx, pairs(ctx, x), 0),), as_type(arg(0, float32), y.dtype))
        return
    plain(ctx, x := as_bytes(ctx, x))
    if y.dtype is complex64:
        real, imaginary = ctx.new(float32, x.shape, ".real"), ctx.new(float32, x.shape, ".imaginary")
        ctx.add(Map, real, (x.buffer,), as_type(arg(0, x.dtype), float32))
        ctx.add(Map, imaginary, (x.buffer,), const(0.0, float32))
        join(ctx, y, real, imaginary)
        return
    limits = [int(limit) for limit in y.dtype.limits] if y.dtype.name in BITS else []
    y, close = to_bytes(ctx, y)
    if y.dtype not in DTYPES:
        raise NoLowering(f"elements of type {y.dtype.name}")
    value = as_type(arg(0, x.dtype), y.dtype)
    if limits and not x.dtype.is_floating:
        raise NoLowering(f"{x.dtype.name} truncated to {ctx.output().dtype.name}")
    for op, limit in zip(("maximum", "minimum"), limits):
        value = apply(op, value, const(limit, y.dtype))
    mapped(ctx, y, value, x)
    close()


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
    if y.is_quantized and x.dtype in NARROW and (y.dtype is int32 or not x.is_quantized):
        tabulated(ctx, x, y)
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
    """Lower DENSIFY of a constant, which the reader of the model has converted to dense."""
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


@rule(custom=("Table",))
def table(ctx: LoweringContext) -> None:
    """Lower a constant table to its results by integer, in the order of their bits."""
    x, entries = ctx.operand(0), ctx.constant(1)
    y = ctx.output(x.shape)
    if x.dtype not in (int8, int16) or y.dtype.np != entries.dtype or entries.size != (256 if x.dtype is int8 else 513):
        raise NoLowering(f"a table of {entries.size} for {x}")
    operands = [every_integer(x.dtype), entries]
    (results,) = map(np.ascontiguousarray, ctx.node.evaluate([x, ctx.operand(1)], operands))
    look_up(ctx, x.buffer, y, results)


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
