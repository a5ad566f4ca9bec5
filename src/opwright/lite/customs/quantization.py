"""Operators around quantization: aeq.hadamard_rotation and NumericVerify.

Lives here: the rotation that spreads outliers before quantization, and the operator that TensorFlow's converter inserts
to measure the distance of a quantized tensor from the floats that it represents.
Not here: QUANTIZE and DEQUANTIZE (lite/ops/quantization.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float16, float32
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.quantized.operand import Operand, check_scaled
from ..ops.shapes import refuse, text
from .definition import custom_operator


@custom_operator("aeq.hadamard_rotation")
class HadamardRotation(LiteDefinition):
    """The normalised Walsh-Hadamard transform of each run of hadamard_size elements along the last axis.

    .. math:: y_i = n^{-1/2} \\sum_j (-1)^{|i \\wedge j|} x_j, \\quad n = hadamard\\_size

    x: [..., features], rank 2 or 3; hadamard_size: a power of 2 that divides features; i ∧ j: bits in both, counted.
    random_binary_vector is in files and has no effect.
    """

    x = Input((float32,))
    y = Output(like="x")
    hadamard_size = Attr(int, default=0)
    random_binary_vector = Attr([int], default=())

    def infer(op: Any) -> TensorSpec:
        n, shape = op.hadamard_size, op.x.spec.shape
        if n < 2 or n & (n - 1):
            raise refuse("hadamard_size is not a power of 2", found=n, wanted="2, 4, 8, ...")
        if shape.rank not in (None, 2, 3):
            raise refuse("x is neither a matrix nor a batch of them", found=text(shape), wanted="rank 2 or 3")
        if shape.rank and shape[-1] is not None and shape[-1] % n:
            raise refuse(
                "hadamard_size does not divide the features",
                found={"x": text(shape), "hadamard_size": n},
                wanted="a divisor of the last size of x",
            )
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        y, half = x.reshape(-1, op.hadamard_size).copy(), 1
        while half < op.hadamard_size:
            pairs = y.reshape(-1, 2, half)
            a, b = pairs[:, 0].copy(), pairs[:, 1]
            pairs[:, 0] += b
            np.subtract(a, b, out=b)
            half *= 2
        y *= np.float32(1.0 / np.sqrt(op.hadamard_size))
        return y.reshape(x.shape)


def _difference(op: Any, real: np.ndarray, reference: np.ndarray, scale: Any) -> np.ndarray:
    y: np.ndarray = real - reference
    limit = np.float32(op.tolerance) * np.float32(scale)
    if op.is_checked() and np.any(np.abs(y) > limit):
        position = int(np.argmax(np.abs(y) > limit))
        value, expected = real.reshape(-1)[position], reference.reshape(-1)[position]
        raise InvalidArgumentError(
            what=f"element {position} is quantised to {value:g}, too far from {expected:g}",
            found=f"a difference of {abs(y.reshape(-1)[position]):g}",
            wanted=f"at most tolerance * scale, {op.tolerance:g} * {scale:g}",
        )
    return y


def _quantized(op: Any, x: Operand, reference: Operand, y: Operand) -> Callable[..., Any]:
    if x.type not in ("INT8", "UINT8", "INT16"):
        raise x.wrong("is no quantised activation", x.type, "INT8, UINT8, INT16 or FLOAT16")
    check_scaled(x)
    return lambda q, r: _difference(op, x.centred(q, np.int32).astype(np.float32) * x.scale, r, x.scale)


@custom_operator("NumericVerify")
class NumericVerify(LiteDefinition):
    """The difference between a quantized tensor and its reference.

    .. math:: y = dequantized(x) - expected

    x: int8, uint8 or int16 with a scale, or float16 (whose scale counts as 0); expected: float32 of x's shape.
    log_if_failed, with a tolerance of 0.1 or more: a difference above tolerance * scale is an error.
    """

    x = Input((float32, float16))
    expected = Input((float32,))
    y = Output(dtype=float32)
    tolerance = Attr(float, default=0.0)
    log_if_failed = Attr(bool, default=False)
    quantized = _quantized

    def is_checked(op: Any) -> bool:
        """Whether too large a difference is an error: with smaller tolerances, differences are computed alone."""
        return bool(op.log_if_failed) and op.tolerance >= 0.1

    def infer(op: Any) -> TensorSpec:
        x, expected = op.x.spec.shape, op.expected.spec.shape
        if not x.is_compatible_with(expected):
            raise refuse(
                "x and expected differ in shape", found={"x": text(x), "expected": text(expected)}, wanted="one shape"
            )
        return TensorSpec(x, float32)

    def compute(op: Any, x: np.ndarray, expected: np.ndarray) -> np.ndarray:
        if x.dtype != np.float16:
            raise refuse("x is not quantised", found=str(x.dtype), wanted="int8, uint8, int16 or float16")
        return _difference(op, x.astype(np.float32), expected, 0.0)
