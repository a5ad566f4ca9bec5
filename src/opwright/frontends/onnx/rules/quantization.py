"""Quantization of ONNX, computed as it is written: QuantizeLinear, DequantizeLinear, QLinear operators.

Lives here: scales and zero points, of tensors, channels and blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, float64, int32, uint8
from ....core.errors import UnimplementedError
from ....ops import array, linalg, math, nn
from ....ops.array import cast
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import at, axis_of, dims, dtype_of, rank_of, static_dims
from .arithmetic import number
from .convolution import channels_last, channels_second

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


# ---- operators on integers, as operators on the real numbers that they represent -----------------------------------
# A file of `.tflite` computes them on integers again: its converter recognises the pairs.


def _real(inputs: Any, place: int, axis: int | None = None) -> Any:
    """Return the real numbers of three inputs: integers, scale, zero point. axis: of scales by slice."""
    x, scale, zero = inputs[place : place + 3]
    if axis is None:
        return dequantized(x, _flat(scale), _flat(zero))
    return dequantized(x, _spread(scale, x, axis, 0), _spread(zero, x, axis, 0))


def _flat(v: Any) -> Any:
    """Return a scale or zero point of one element as a scalar."""
    return array.reshape(v, []) if v is not None and dims(v) == (1,) else v


def _stored(real: Any, inputs: Any, place: int, dtype: Any) -> Any:
    """Return real numbers as integers by two inputs: scale, zero point."""
    return quantized(real, cast(_flat(inputs[place]), float32), _flat(at(inputs, place + 1)), dtype)


def _of_rows(v: Any) -> Any:
    return array.expand_dims(v, -1) if v is not None and rank_of(v) == 1 and dims(v) != (1,) else v


@rule("QLinearMatMul")
def qlinear_matmul(context: Any, inputs: Any, attributes: Any) -> Any:
    a, a_scale, a_zero = inputs[:3]
    a = dequantized(a, cast(_of_rows(a_scale), float32), _of_rows(a_zero))
    return _stored(linalg.matmul(a, _real(inputs, 3)), inputs, 6, dtype_of(inputs[7]))


@rule("QLinearConv", "com.microsoft::QLinearConv")
def qlinear_conv(context: Any, inputs: Any, attributes: Any) -> Any:
    last = attributes.get("channels_last")
    x, w = _real(inputs, 0), _real(inputs, 3, 0)
    x = channels_second(x) if last else x
    operands = [x, w]
    if (bias := at(inputs, 8)) is not None:
        operands.append(_bias_of(bias, inputs[1], inputs[4]))
    y = _call("Conv", context, operands, attributes)
    return _stored(channels_last(y) if last else y, inputs, 6, dtype_of(inputs[7]))


def _bias_of(bias: Any, *scales: Any) -> Any:
    """Return an int32 bias, whose scale is the product of these, as real numbers."""
    product = math.multiply(*(cast(_flat(s), float32) for s in scales))
    return math.multiply(cast(bias, float32), product)


def _call(name: str, context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the result of another operator's rule."""
    function = RULES.find(name)
    assert function is not None
    return function(context, inputs, attributes)


def _qlinear(name: str, count: int) -> Any:
    """Return the rule of an operator on integers by that on real numbers. count: of its operands."""

    def apply(context: Any, inputs: Any, attributes: Any) -> Any:
        real = [_real(inputs, 3 * i) for i in range(count)]
        last = attributes.get("channels_last")
        if last:
            real = [channels_second(x) for x in real]
        y = _call(name, context, real, attributes)
        return _stored(channels_last(y) if last else y, inputs, 3 * count, dtype_of(inputs[0]))

    return apply


for _name, _count in {
    "Add": 2,
    "Mul": 2,
    "Sigmoid": 1,
    "LeakyRelu": 1,
    "AveragePool": 1,
    "GlobalAveragePool": 1,
}.items():
    rule(f"com.microsoft::QLinear{_name}")(_qlinear(_name, _count))


@rule("com.microsoft::QLinearReduceMean")
def qlinear_reduce_mean(context: Any, inputs: Any, attributes: Any) -> Any:
    y = math.reduce_mean(_real(inputs, 0), attributes.get("axes"), bool(attributes.get("keepdims", 1)))
    return _stored(y, inputs, 3, dtype_of(inputs[0]))


@rule("com.microsoft::QLinearSoftmax")
def qlinear_softmax(context: Any, inputs: Any, attributes: Any) -> Any:
    x, axis = _real(inputs, 0), attributes.get("axis", -1)
    if attributes.get("opset", 13) < 13:  # of all dimensions from the axis on
        axis = axis_of(axis, rank_of(x))
        sizes = static_dims(x, "Softmax")
        y = nn.softmax(array.reshape(x, [int(np.prod(sizes[:axis])), int(np.prod(sizes[axis:]))]))
        return _stored(array.reshape(y, sizes), inputs, 3, dtype_of(inputs[0]))
    return _stored(nn.softmax(x, axis), inputs, 3, dtype_of(inputs[0]))


@rule("com.microsoft::QLinearConcat")
def qlinear_concat(context: Any, inputs: Any, attributes: Any) -> Any:
    parts = [_real(inputs, place) for place in range(2, len(inputs), 3)]
    return _stored(array.concat(parts, attributes["axis"]), inputs, 0, dtype_of(inputs[2]))


@rule("com.microsoft::QLinearWhere")
def qlinear_where(context: Any, inputs: Any, attributes: Any) -> Any:
    y = array.where(inputs[0], _real(inputs, 1), _real(inputs, 4))
    return _stored(y, inputs, 7, dtype_of(inputs[1]))


@rule("com.microsoft::QGemm")
def qgemm(context: Any, inputs: Any, attributes: Any) -> Any:
    """Multiply matrices of integers; without a scale of the result it is real."""
    b_scale = inputs[4]
    a, b = _real(inputs, 0), _real(inputs, 3, 0 if attributes.get("transB") else 1)
    operands = [a, b]
    if (c := at(inputs, 6)) is not None:
        alpha = np.float32(attributes.get("alpha", 1.0))
        operands.append(math.multiply(_bias_of(c, inputs[1], b_scale), alpha))
    y = _call("Gemm", context, operands, {k: v for k, v in attributes.items() if k != "beta"})
    return y if at(inputs, 7) is None else _stored(y, inputs, 7, dtype_of(inputs[0]))


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
