"""Fake quantization for quantization-aware training: float32 rounded to the numbers of a quantized type.

Lives here: FakeQuantWithMinMaxArgs, FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel and their gradients,
`quantize_and_dequantize`.
Not here: quantization of trained models (lite/convert/quantize).

With q the smallest and Q the largest integer (0, or 1 with narrow_range, and 2^num_bits - 1)

    scale = (max - min) / (Q - q)      zero = round(q - min / scale), clipped to [q, Q]
    y = round((clip(x, low, high) - low) / scale) scale + low,   low = (q - zero) scale,   high = (Q - zero) scale

so that 0 is represented exactly. Gradients pass straight through where low <= x <= high; below they flow to min, above
to max.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.dtypes import float32, float64
from ..core.errors import InvalidArgumentError
from ..scalar.fixed_point import nudged
from . import array, dispatch, math
from .attributes import Attr
from .attributes import between as bounded
from .definition import operator
from .slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from ..core.specs import TensorSpec
    from . import signatures
    from .tensor import Tensor

SIZES = (float32, float64)


class Bits(NamedTuple):
    """The integers of a quantized type: num_bits bits, without the smallest one if the range is narrow."""

    num_bits: int
    narrow: bool

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest."""
        return float(self.narrow), float(2**self.num_bits - 1)


def _rounded(x: np.ndarray, low: Any, high: Any, bits: Bits) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        scale, low_end, high_end = nudged(low, high, *bits.ends)
        y = np.floor((np.clip(x, low_end, high_end) - low_end) * (1.0 / scale) + 0.5) * scale + low_end
    return np.where((low == 0) & (high == 0), 0.0, y).astype(x.dtype)


def _parts(x: Any, low: Any, high: Any, bits: Bits, dy: Any) -> tuple[Any, Any, Any]:
    """Return the gradients of x, min and max, each zero outside of its elements."""
    _, low_end, high_end = nudged(low, high, *bits.ends, math.clip_by_value, math.floor)
    none = array.zeros_like(dy)
    empty = math.logical_and(math.equal(low, 0.0), math.equal(high, 0.0))
    below = math.logical_and(x < low_end, math.logical_not(empty))
    above = math.logical_and(x > high_end, math.logical_not(empty))
    inside = math.logical_not(math.logical_or(below, above))
    return array.where(inside, dy, none), array.where(below, dy, none), array.where(above, dy, none)


@operator
class FakeQuantWithMinMaxArgs(OperatorDefinition):
    """Quantize and dequantize `inputs` with `num_bits` bits between `min` and `max`.

    .. math:: outputs = round((clip(inputs, low, high) - low) / s) s + low

    narrow_range: without the least integer
    raises InvalidArgumentError unless min < max
    """

    inputs = Input(SIZES)
    outputs = Output(like="inputs")
    min = Attr(float, default=-6.0)
    max = Attr(float, default=6.0)
    num_bits = Attr(int, default=8, check=bounded(2, 16))
    narrow_range = Attr(bool, default=False)

    def infer(op) -> TensorSpec:
        if not op.min < op.max:
            raise InvalidArgumentError(what="min has to be smaller than max", found={"min": op.min, "max": op.max})
        return op.inputs.spec

    def compute(op, inputs: Any) -> np.ndarray:
        kind = inputs.dtype.type
        return _rounded(inputs, kind(op.min), kind(op.max), Bits(op.num_bits, op.narrow_range))

    def gradient(op, dy: Any) -> Tensor:
        kind = op.inputs.dtype.np.type
        bits = Bits(op.num_bits, op.narrow_range)
        _, low_end, high_end = nudged(kind(op.min), kind(op.max), *bits.ends)
        inside = math.logical_and(op.inputs >= low_end, op.inputs <= high_end)
        return array.where(inside, dy, array.zeros_like(dy))


fake_quant_with_min_max_args: signatures.FakeQuantWithMinMaxArgs
fake_quant_with_min_max_args = FakeQuantWithMinMaxArgs.as_function("fake_quant_with_min_max_args")


@operator
class FakeQuantWithMinMaxVars(OperatorDefinition):
    """Quantize and dequantize `inputs` between learnable bounds; if both are 0, the result is 0.

    .. math:: outputs = round((clip(inputs, low, high) - low) / s) s + low

    min, max: scalars. num_bits: of an integer. narrow_range: without the least integer
    """

    inputs = Input(SIZES)
    min = Input(SIZES, rank=0)
    max = Input(SIZES, rank=0)
    outputs = Output(like="inputs")
    num_bits = Attr(int, default=8, check=bounded(2, 16))
    narrow_range = Attr(bool, default=False)

    def infer(op) -> TensorSpec:
        return op.inputs.spec

    def compute(op, inputs: Any, min: Any, max: Any) -> np.ndarray:
        return _rounded(inputs, min, max, Bits(op.num_bits, op.narrow_range))

    def gradient(op, dy: Any) -> tuple[Any, Any, Any]:
        dx, below, above = _parts(op.inputs, op.min, op.max, Bits(op.num_bits, op.narrow_range), dy)
        return dx, math.reduce_sum(below), math.reduce_sum(above)


fake_quant_with_min_max_vars: signatures.FakeQuantWithMinMaxVars
fake_quant_with_min_max_vars = FakeQuantWithMinMaxVars.as_function("fake_quant_with_min_max_vars")


@operator
class FakeQuantWithMinMaxVarsPerChannel(OperatorDefinition):
    """Quantize and dequantize `inputs` between learnable bounds per slice of the last dimension.

    .. math:: outputs_{..c} = round((clip(inputs_{..c}, low_c, high_c) - low_c) / s_c) s_c + low_c

    inputs: [..., d]. min, max: [d]. num_bits: of an integer. narrow_range: without the least integer
    raises InvalidArgumentError where d differs
    """

    inputs = Input(SIZES)
    min = Input(SIZES, rank=1)
    max = Input(SIZES, rank=1)
    outputs = Output(like="inputs")
    num_bits = Attr(int, default=8, check=bounded(2, 16))
    narrow_range = Attr(bool, default=False)

    def infer(op) -> TensorSpec:
        spec = op.inputs.spec
        last = spec.shape[-1:] if spec.shape.rank else spec.shape
        if spec.shape.rank == 0 or any(not v.spec.shape.is_compatible_with(last) for v in (op.min, op.max)):
            raise InvalidArgumentError(
                what="min or max has another size than the last dimension of inputs",
                found={v: getattr(op, v).spec.short() for v in ("inputs", "min", "max")},
            )
        return spec

    def compute(op, inputs: Any, min: Any, max: Any) -> np.ndarray:
        return _rounded(inputs, min, max, Bits(op.num_bits, op.narrow_range))

    def gradient(op, dy: Any) -> tuple[Any, ...]:
        dx, below, above = _parts(op.inputs, op.min, op.max, Bits(op.num_bits, op.narrow_range), dy)
        rows = array.concat([[-1], array.shape(op.min)], 0)
        return dx, *(math.reduce_sum(array.reshape(part, rows), 0) for part in (below, above))


fake_quant_with_min_max_vars_per_channel: signatures.FakeQuantWithMinMaxVarsPerChannel = (
    FakeQuantWithMinMaxVarsPerChannel.as_function("fake_quant_with_min_max_vars_per_channel")
)


# ---- gradients under TensorFlow's names -----------------------------------------------------------------------------


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of `fake_quant_with_min_max_args` by its inputs, for gradients of its outputs."""
    x: Any = dispatch.to_tensor(inputs)
    low, high = x.dtype.np.type(min), x.dtype.np.type(max)
    result: Tensor = _parts(x, low, high, Bits(num_bits, narrow_range), dispatch.to_tensor(gradients))[0]
    return result


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> FakeQuantGradients:
    """Return the gradients of `fake_quant_with_min_max_vars` by inputs, min and max, for gradients of its outputs."""
    x: Any = dispatch.to_tensor(inputs)
    low, high = (dispatch.to_tensor(v, x.dtype) for v in (min, max))
    dx, below, above = _parts(x, low, high, Bits(num_bits, narrow_range), dispatch.to_tensor(gradients))
    return FakeQuantGradients(dx, math.reduce_sum(below), math.reduce_sum(above))


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> FakeQuantGradients:
    """Return the gradients of `fake_quant_with_min_max_vars_per_channel` by inputs, min and max."""
    x: Any = dispatch.to_tensor(inputs)
    low, high = (dispatch.to_tensor(v, x.dtype) for v in (min, max))
    parts = _parts(x, low, high, Bits(num_bits, narrow_range), dispatch.to_tensor(gradients))
    rows = array.concat([[-1], array.shape(low)], 0)
    below, above = (math.reduce_sum(array.reshape(part, rows), 0) for part in parts[1:])
    return FakeQuantGradients(parts[0], below, above)


per_channel_gradient = fake_quant_with_min_max_vars_per_channel_gradient


class FakeQuantGradients(NamedTuple):
    """Gradients of a fake quantization by its inputs and bounds."""

    backprops_wrt_input: Any
    backprop_wrt_min: Any
    backprop_wrt_max: Any


# ---- symmetric rounding ----------------------------------------------------------------------------------------------


def _symmetric(
    x: Any,
    low: Any,
    high: Any,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int | None,
) -> tuple[Any, Any, Any]:
    """Return x rounded to multiples of a scale, and its bounds as given, broadcast to x. 0 stays exact."""
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise InvalidArgumentError(
            op="quantize_and_dequantize", what="unknown round_mode", found=round_mode, wanted="HALF_TO_EVEN or HALF_UP"
        )
    shape = None
    if axis is not None:
        shape = [1] * x.shape.rank
        shape[axis % x.shape.rank] = -1
    bounds = [v if shape is None else array.reshape(v, shape) for v in (low, high)]
    if range_given:
        least, greatest = bounds
    else:
        others = None if axis is None else [i for i in range(x.shape.rank) if i != axis % x.shape.rank]
        least, greatest = (f(x, others, keepdims=True) for f in (math.reduce_min, math.reduce_max))
    smallest = -(2.0 ** (num_bits - 1)) + narrow_range if signed_input else 0.0
    largest = 2.0 ** (num_bits - 1 if signed_input else num_bits) - 1
    far = array.fill(array.shape(least), dispatch.to_tensor(x.dtype.max, x.dtype))
    below, above = (
        array.where(v * q > 0.0, math.divide_no_nan(array.ones_like(v) * q, v), far)
        for v, q in ((least, smallest), (greatest, largest))
    )
    scale = math.minimum(below, above)
    step = array.where(
        below < above, least / smallest if smallest else array.zeros_like(least), greatest / largest
    )  # computed from the bound, not as 1 / scale
    inside = math.clip_by_value(x, smallest * step, largest * step) if range_given else x
    rounded = math.round(inside * scale) if round_mode == "HALF_TO_EVEN" else math.floor(inside * scale + 0.5)
    limit = dispatch.to_tensor(largest, x.dtype)
    return math.minimum(rounded, limit) * step, bounds[0], bounds[1]


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Round numbers to those of a symmetric integer type, with 0 exact; gradients pass where input is in its range.

    input_min, input_max: the range, scalars or a vector over `axis`; range_given=False: that of the input. The scale is
    the one with which both ends fit. signed_input, num_bits, narrow_range: the integers; round_mode: "HALF_TO_EVEN" or
    "HALF_UP". Elements outside of [input_min, input_max] have gradient 0, and so do both bounds, as in TensorFlow.
    """
    x: Any = dispatch.to_tensor(input)
    low, high = (dispatch.to_tensor(v, x.dtype) for v in (input_min, input_max))
    y, least, greatest = _symmetric(x, low, high, signed_input, num_bits, range_given, round_mode, narrow_range, axis)
    clipped = math.minimum(math.maximum(x, array.stop_gradient(least)), array.stop_gradient(greatest))
    result: Tensor = array.stop_gradient(y) + (clipped - array.stop_gradient(clipped))
    return result


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Round numbers as `quantize_and_dequantize_v2`, with the gradient of the identity."""
    x: Any = dispatch.to_tensor(input)
    low, high = (dispatch.to_tensor(v, x.dtype) for v in (input_min, input_max))
    y = _symmetric(x, low, high, signed_input, num_bits, range_given, round_mode, narrow_range, axis)[0]
    result: Tensor = array.stop_gradient(y) + (x - array.stop_gradient(x))
    return result


__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize_and_dequantize",
    "quantize_and_dequantize_v2",
]
