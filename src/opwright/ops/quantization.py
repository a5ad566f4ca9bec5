"""Fake quantization for quantization-aware training: float32 rounded to the numbers of a quantized type.

Lives here: FakeQuantWithMinMaxArgs, FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel.
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
from . import array, math
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

__all__ = ["fake_quant_with_min_max_args", "fake_quant_with_min_max_vars", "fake_quant_with_min_max_vars_per_channel"]
