"""Quantized values as expressions: dequantization to real numbers or steps of a scale, requantization with activations.

Lives here: `real`, `steps`, `stored`, `in_steps`, `clamped`; `NARROW`, `same_numbers`.
Not here: operands and their scales (context.py), the operators that quantize and dequantize (quantization.py).
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ...core.constants import CLAMPS
from ...core.dtypes import float32, int8, int16, uint8
from ..loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from .context import NoLowering, RuleOperand

Scale = TypeVar("Scale", float, np.ndarray)

NARROW = (int8, uint8, int16)
"""Integers that represent real numbers by a scale and zero point per tensor."""
MAX_STEPS = float(1 << 16)
"""Largest ratio of an input's scale to the output's: beyond, all but 0 saturates here, while the operator wraps."""


def same_numbers(x: RuleOperand, y: RuleOperand) -> None:
    """Raise NoLowering if the elements of two operands represent different numbers."""
    same = x.dtype is y.dtype and x.is_quantized == y.is_quantized
    if same and x.is_quantized:
        same = np.array_equal(x.scales, y.scales) and x.zero == y.zero
    if not same:
        raise NoLowering(f"{x.name!r} and {y.name!r} have other types or scales")


def real(operand: RuleOperand, index: int) -> Expr:
    """Return the real value of operand `index` of an operation, float32; a constant of one element is a scalar.

    raises NoLowering for other types
    """
    value = steps(operand, index)
    if operand.dtype is float32 or (operand.size == 1 and operand.constant is not None):
        return value
    return apply("mul", value, scalar(operand.scale, float32))


def steps_per(scale: Scale, output: RuleOperand) -> Scale:
    """Return an input's scale in steps of the output. scale: may be an array. Raises NoLowering above MAX_STEPS."""
    ratio = scale / output.scale
    if not np.all(ratio <= MAX_STEPS):
        raise NoLowering(f"the scale {np.max(scale):g} is {np.max(ratio):g} steps of {output.name!r}")
    return ratio


def steps(operand: RuleOperand, index: int) -> Expr:
    """Return the value of an operand in steps of its scale, float32 q - zero point; of a constant of one element, its
    real value."""
    if operand.size == 1 and operand.constant is not None:
        return scalar(float(real_number(operand)), float32)
    if operand.dtype is float32:
        return arg(index, float32)
    if operand.dtype not in NARROW or not operand.is_quantized:
        raise NoLowering(f"elements of type {operand.dtype.name}")
    return apply("sub", convert(arg(index, operand.dtype), float32), scalar(operand.zero, float32))


def real_number(operand: RuleOperand) -> float:
    """Return the real value of a constant of one element."""
    assert operand.constant is not None
    value = operand.constant.reshape(-1)[0]
    if operand.dtype is float32:
        return float(value)
    return (float(value) - operand.zero) * operand.scale


def stored(value: Expr, output: RuleOperand, activation: Any = 0) -> Expr:
    """Return real values, after an activation, in the output's representation. Raises NoLowering for other types."""
    if output.dtype is float32:
        return clamped(value, activation)
    if output.dtype not in NARROW or not output.is_quantized:
        raise NoLowering(f"elements of type {output.dtype.name}")
    return in_steps(apply("mul", value, scalar(1.0 / output.scale, float32)), output, activation)


def in_steps(value: Expr, output: RuleOperand, activation: Any = 0) -> Expr:
    """Round values in steps of the output's scale to integers, after an activation."""
    low, high = bounds(activation)
    type_min, type_max = (int(v) for v in output.dtype.limits)
    zero, scale = output.zero, output.scale
    low_step = type_min if low is None else max(type_min, zero + round(low / scale))
    high_step = type_max if high is None else min(type_max, zero + round(high / scale))
    within = () if (low_step, high_step) == (type_min, type_max) else (low_step, high_step)
    return quantize(value, zero, output.dtype, *within)


def bounds(activation: Any) -> tuple[float | None, float | None]:
    """Return the bounds of a fused activation. Raises NoLowering for an activation that is no clamp."""
    if activation in (0, "NONE"):
        return None, None
    if activation not in CLAMPS:
        raise NoLowering(f"the activation {activation}")
    low, high = CLAMPS[activation]
    return float(low), None if high is None else float(high)


def clamped(value: Expr, activation: Any) -> Expr:
    """Clamp a value to the bounds of an activation; NaN stays."""
    low, high = bounds(activation)
    if low is not None:
        value = apply("maximum", const(low, value.dtype), value)
    if high is not None:
        value = apply("minimum", const(high, value.dtype), value)
    return value
