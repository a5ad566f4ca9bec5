"""Quantization of ONNX, computed as it is written: QuantizeLinear, DequantizeLinear, QLinear operators.

Lives here: scales and zero points, of tensors, channels and blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, float64, int32, uint8
from ....core.errors import UnimplementedError
from ....ops import array, linalg, math
from ....ops.array import cast
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import at, axis_of, dims, dtype_of, rank_of, static_dims
from .arithmetic import number
from .convolution import convolved, windows_of

rule = RULES.rule
_RANGES = {"int4": (-8, 7)}


def _spread(v: Any, x: Any, axis: int, block: int) -> Any:
    """Return a scale or zero point in a form that broadcasts to x."""
    if v is None or rank_of(v) == 0:
        return v
    axis = axis_of(axis, rank_of(x))
    if block:
        wide = array.expand_dims(v, axis + 1)
        shape = list(static_dims(v, "blocks of scales"))
        repeated = array.tile(wide, [block if i == axis + 1 else 1 for i in range(len(shape) + 1)])
        shape[axis] *= block
        whole = static_dims(x, "blocks of scales")[axis]
        repeated = array.reshape(repeated, shape)
        return repeated if shape[axis] == whole else repeated[(*[slice(None)] * axis, slice(0, whole))]
    if dims(v) == (1,):
        return array.reshape(v, [])
    return array.reshape(v, [-1 if i == axis else 1 for i in range(rank_of(x))])


def limits(dtype: Any) -> tuple[int, int]:
    """Return the least and greatest value of an integer dtype."""
    if dtype.name in _RANGES:
        return _RANGES[dtype.name]
    if not dtype.is_integer:
        raise UnimplementedError(what="quantization to this dtype", found=dtype.name)
    return int(np.iinfo(dtype.np).min), int(np.iinfo(dtype.np).max)


def quantized(real: Any, scale: Any, zero: Any, dtype: Any) -> Any:
    """Return real / scale, rounded to even, plus zero, saturated."""
    q = math.rint(math.realdiv(real, scale))
    wide = float64 if dtype.size >= 4 else dtype_of(q)
    q = cast(q, wide)
    if zero is not None:
        q = math.add(q, cast(zero, wide))
    low, high = limits(dtype)
    q = math.minimum(math.maximum(q, number(low, q)), number(high, q))
    if dtype.name == "int4":
        return cast(cast(q, np.int8), dtype)
    return cast(q, dtype)


@rule("QuantizeLinear", "com.microsoft::QuantizeLinear")
def quantize_linear(context: Any, inputs: Any, attributes: Any) -> Any:
    x, scale, zero = inputs[0], inputs[1], at(inputs, 2)
    to = dtype_of(zero) if zero is not None else uint8
    if zero is None and attributes.get("output_dtype"):
        to = dtype_of_code(attributes["output_dtype"], "QuantizeLinear")
    axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
    axis = min(axis, rank_of(x) - 1) if rank_of(x) else 0
    x = cast(x, float32) if dtype_of(x) is int32 or dtype_of(x).size < 4 else x
    scale = cast(scale, dtype_of(x))
    return quantized(x, _spread(scale, x, axis, block), _spread(zero, x, axis, block), to)


@rule("DequantizeLinear", "com.microsoft::DequantizeLinear")
def dequantize_linear(context: Any, inputs: Any, attributes: Any) -> Any:
    x, scale, zero = inputs[0], inputs[1], at(inputs, 2)
    axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
    axis = min(axis, rank_of(x) - 1) if rank_of(x) else 0
    to = (
        dtype_of_code(attributes["output_dtype"], "DequantizeLinear")
        if attributes.get("output_dtype")
        else dtype_of(scale)
    )
    return cast(dequantized(x, _spread(scale, x, axis, block), _spread(zero, x, axis, block)), to)


def dequantized(x: Any, scale: Any, zero: Any) -> Any:
    """Return (x - zero) * scale; the difference is exact."""
    wide = cast(cast(x, np.int8) if dtype_of(x).name == "int4" else x, int32)
    if zero is not None:
        wide = math.subtract(wide, cast(cast(zero, np.int8) if dtype_of(zero).name == "int4" else zero, int32))
    real = cast(wide, float32)
    return math.multiply(real, cast(scale, float32))


@rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(context: Any, inputs: Any, attributes: Any) -> Any:
    (x,) = inputs
    zero = np.float32(0)
    high, low = math.maximum(math.reduce_max(x), zero), math.minimum(math.reduce_min(x), zero)
    scale = math.realdiv(math.subtract(high, low), np.float32(255))
    point = math.rint(math.realdiv(math.negative(low), scale))
    point = cast(math.minimum(math.maximum(point, zero), np.float32(255)), uint8)
    return [quantized(x, scale, point, uint8), scale, point]


def _difference(x: Any, zero: Any, column: bool) -> Any:
    """Return x - zero as integers. column: a vector of zero points is one per row of a left operand."""
    x = cast(x, int32)
    if zero is None:
        return x
    zero = cast(zero, int32)
    if column and rank_of(zero) == 1 and dims(zero) != (1,):
        zero = array.expand_dims(zero, -1)
    return math.subtract(x, zero)


def _product(a: Any, b: Any) -> Any:
    """Return the product of integer matrices."""
    return linalg.matmul(a, b)


@rule("MatMulInteger")
def matmul_integer(context: Any, inputs: Any, attributes: Any) -> Any:
    a, b = inputs[:2]
    return _product(_difference(a, at(inputs, 2), True), _difference(b, at(inputs, 3), False))


def _scale_of_rows(v: Any) -> Any:
    return array.expand_dims(v, -1) if rank_of(v) == 1 and dims(v) != (1,) else v


@rule("QLinearMatMul")
def qlinear_matmul(context: Any, inputs: Any, attributes: Any) -> Any:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    total = cast(_product(_difference(a, a_zero, True), _difference(b, b_zero, False)), float32)
    a_scale, b_scale, y_scale = (cast(v, float32) for v in (a_scale, b_scale, y_scale))
    real = math.multiply(total, math.multiply(_scale_of_rows(a_scale), b_scale))
    return quantized(real, y_scale, y_zero, dtype_of(y_zero))


@rule("QLinearConv")
def qlinear_conv(context: Any, inputs: Any, attributes: Any) -> Any:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = inputs[:8]
    bias = at(inputs, 8)
    x = cast(_difference(x, x_zero, False), float64)
    zero = array.reshape(w_zero, [-1, *[1] * (rank_of(w) - 1)]) if rank_of(w_zero) else w_zero
    w = cast(math.subtract(cast(w, int32), cast(zero, int32)), float64)
    kernel = attributes.get("kernel_shape") or static_dims(w, "a convolution's weights")[2:]
    total = convolved(x, w, windows_of(dims(x)[2:], kernel, attributes), attributes.get("group", 1))
    shape = [1, -1, *[1] * (rank_of(x) - 2)]
    if bias is not None:
        total = math.add(total, array.reshape(cast(bias, float64), shape))
    w_scale = array.reshape(w_scale, shape) if rank_of(w_scale) else w_scale
    factor = math.realdiv(math.multiply(x_scale, w_scale), y_scale)
    real = math.multiply(total, cast(factor, float64))
    return quantized(real, np.float64(1), y_zero, dtype_of(y_zero))


def _qlinear_binary(function: Any) -> Any:
    def binary(context: Any, inputs: Any, attributes: Any) -> Any:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale = inputs[:7]
        real = function(dequantized(a, a_scale, a_zero), dequantized(b, b_scale, b_zero))
        return quantized(real, y_scale, at(inputs, 7), dtype_of(a))

    return binary


rule("com.microsoft::QLinearAdd")(_qlinear_binary(math.add))
rule("com.microsoft::QLinearMul")(_qlinear_binary(math.multiply))


@rule("com.microsoft::QLinearSigmoid")
def qlinear_sigmoid(context: Any, inputs: Any, attributes: Any) -> Any:
    x, x_scale, x_zero, y_scale = inputs[:4]
    return quantized(math.sigmoid(dequantized(x, x_scale, x_zero)), y_scale, at(inputs, 4), dtype_of(x))


@rule("com.microsoft::QLinearGlobalAveragePool")
def qlinear_global_average_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    x, x_scale, x_zero, y_scale, y_zero = inputs
    axes = list(range(1, rank_of(x) - 1)) if attributes.get("channels_last") else list(range(2, rank_of(x)))
    return quantized(math.reduce_mean(dequantized(x, x_scale, x_zero), axes, True), y_scale, y_zero, dtype_of(x))


@rule("com.microsoft::MatMulNBits")
def matmul_n_bits(context: Any, inputs: Any, attributes: Any) -> Any:
    """Multiply by weights of 4 or 8 bits [n, blocks, bytes] with a scale, and a zero point, of each block."""
    a, packed, scales = inputs[:3]
    zero, bias = at(inputs, 3), at(inputs, 5)
    n, k, bits, block = (attributes[key] for key in ("N", "K", "bits", "block_size"))
    if bits not in (4, 8):
        raise UnimplementedError(what="MatMulNBits of this number of bits", found=bits)
    b = context.required(packed, "packed weights")
    blocks = -(-k // block)
    values = _elements(b.reshape(n, blocks, -1), bits).reshape(n, blocks, -1)[:, :, :block].astype(np.float32)
    if zero is None:
        points: Any = np.float32(2 ** (bits - 1))
    else:
        z = context.required(zero, "zero points")
        points = z if z.dtype.kind == "f" else _elements(z.reshape(n, -1), bits)[:, :blocks]
        points = points.reshape(n, blocks, 1).astype(np.float32)
    scale = context.required(scales, "scales").reshape(n, blocks, 1).astype(np.float32)
    weights = ((values - points) * scale).reshape(n, -1)[:, :k].astype(dtype_of(a).np)
    y = linalg.matmul(a, np.ascontiguousarray(weights.T))
    return y if bias is None else math.add(y, bias)


def _elements(packed: np.ndarray, bits: int) -> np.ndarray:
    if bits == 8:
        return packed
    both: np.ndarray = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    return both
