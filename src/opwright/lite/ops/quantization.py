"""Operators between real numbers and integers that represent them: QUANTIZE, DEQUANTIZE, FAKE_QUANT.

Lives here: these operators.  Not here: their arithmetic (quantized/quantization.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float16, float32
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.fixed_point import nudged
from . import types
from .definition import EnumAttr, LiteDefinition, lite_operator
from .shapes import refuse
from .tiling import in_elements


@lite_operator("QUANTIZE", typed_by="output_type")
class QuantizeOp(LiteDefinition):
    """Real numbers as integers by the output's scale and zero point; integers by those of both, rescaled; float32 and
    float16 into each other.

    .. math:: q = clamp(round(x / s) + z)
    """

    x = Input((float32, float16))
    y = Output(like="x")
    output_type = EnumAttr("TensorType")
    quantized = "quantization.quantize"

    def infer(op: Any) -> TensorSpec:
        dtype = types.dtype_of(op.output_type)
        return TensorSpec(op.x.spec.shape, dtype if dtype.is_floating else float32)  # integers represent float32

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        dtype = types.dtype_of(op.output_type)
        if dtype not in (float32, float16):
            raise UnimplementedError(
                op="QUANTIZE",
                what="the output has no scale",
                found=op.output_type,
                wanted="integers with scales",
                explain="OW103",
            )
        return x.astype(dtype.np)

    parts = in_elements


@lite_operator("DEQUANTIZE")
class DequantizeOp(LiteDefinition):
    """Convert integers to the real numbers that they represent; float16 to float32.

    .. math:: y = s (q - z)
    """

    x = Input((float16, float32))
    y = Output(dtype=float32)
    quantized = "quantization.dequantize"
    once = True

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(op.x.spec.shape, float32)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return x.astype(np.float32)

    parts = in_elements


@lite_operator("FAKE_QUANT")
class FakeQuantOp(LiteDefinition):
    """Real numbers moved to the nearest that num_bits can tell apart between min and max, which are moved to have a 0.

    .. math:: y = round((clamp(x, min', max') - min') / s) s + min',   s = (max - min) / (2^{num\\_bits} - 1)
    """

    x = Input((float32,))
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        if not 2 <= op.num_bits <= 16:
            raise refuse("num_bits is out of range", found=op.num_bits, wanted="between 2 and 16")
        if not op.min < op.max:
            raise refuse("min and max are not a range", found=[op.min, op.max], wanted="min < max")
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        f = np.float32
        scale, low, high = nudged(f(op.min), f(op.max), f(op.narrow_range), f((1 << op.num_bits) - 1))
        inverse = f(1) / scale
        steps = (np.fmin(np.fmax(x, low), high) - low) * inverse  # NaN becomes the least
        result: np.ndarray = np.floor(steps + f(0.5)) * scale + low
        return result

    parts = in_elements
