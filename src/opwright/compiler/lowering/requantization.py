"""Quantised values as expressions of a form: real numbers, steps of a scale, activations.

Lives here: `real`, `steps`, `stored`, `in_steps`, `clamped`; `quantized`, `same_numbers`.
Not here: operands and their scales (context.py), between reals and integers as operators (quantization.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.constants import CLAMPS
from ...core.dtypes import float32, int8, int16, uint8
from ..loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from .context import NoLowering, RuleOperand

NARROW = (int8, uint8, int16)
"""Integers that may stand for real numbers by one scale and zero point."""
MOST_STEPS = float(1 << 16)
"""Steps of an output that an integer of 1 may stand for: beyond, all but 0 saturates here, and the operator wraps."""


def same_numbers(x: RuleOperand, y: RuleOperand) -> None:
    """Raise NoLowering if the elements of two operands stand for different numbers."""
    same = x.dtype is y.dtype and x.is_quantized == y.is_quantized
    if same and x.is_quantized:
        same = np.array_equal(x.scales, y.scales) and x.zero == y.zero
    if not same:
        raise NoLowering(f"{x.name!r} and {y.name!r} have other types or scales")


def real(operand: RuleOperand, place: int) -> Expr:
    """The real numbers that the operand `place` of a form stands for, float32; one number is a scalar.

    raises NoLowering for other types
    """
    value = steps(operand, place)
    if operand.dtype is float32 or (operand.size == 1 and operand.constant is not None):
        return value
    return apply("mul", value, scalar(operand.scale, float32))


def steps_per(scale: Any, output: RuleOperand) -> Any:
    """Return steps of the output for one of `scale`, which may be an array. Raises NoLowering above MOST_STEPS."""
    ratio = scale / output.scale
    if not np.all(ratio <= MOST_STEPS):
        raise NoLowering(f"the scale {np.max(scale):g} is {np.max(ratio):g} steps of {output.name!r}")
    return ratio


def steps(operand: RuleOperand, place: int) -> Expr:
    """As `real`, in steps of the scale: float32 q - zero point. Constants of one element: their real number."""
    if operand.size == 1 and operand.constant is not None:
        return scalar(float(real_number(operand)), float32)
    if operand.dtype is float32:
        return arg(place, float32)
    if operand.dtype not in NARROW or not operand.is_quantized:
        raise NoLowering(f"elements of type {operand.dtype.name}")
    return apply("sub", convert(arg(place, operand.dtype), float32), scalar(operand.zero, float32))


def real_number(operand: RuleOperand) -> float:
    """What a constant of one element stands for."""
    assert operand.constant is not None
    value = operand.constant.reshape(-1)[0]
    if operand.dtype is float32:
        return float(value)
    return (float(value) - operand.zero) * operand.scale


def stored(value: Expr, output: RuleOperand, activation: Any = 0) -> Expr:
    """Real numbers, after an activation, as the output has them. Raises NoLowering for other types."""
    if output.dtype is float32:
        return clamped(value, activation)
    if output.dtype not in NARROW or not output.is_quantized:
        raise NoLowering(f"elements of type {output.dtype.name}")
    return in_steps(apply("mul", value, scalar(1.0 / output.scale, float32)), output, activation)


def in_steps(value: Expr, output: RuleOperand, activation: Any = 0) -> Expr:
    """Numbers in steps of the output's scale, after an activation, as integers."""
    low, high = bounds(activation)
    least, most = (int(v) for v in output.dtype.limits)
    zero, scale = output.zero, output.scale
    low_step = least if low is None else max(least, zero + round(low / scale))
    high_step = most if high is None else min(most, zero + round(high / scale))
    within = () if (low_step, high_step) == (least, most) else (low_step, high_step)
    return quantize(value, zero, output.dtype, *within)


def bounds(activation: Any) -> tuple[float | None, float | None]:
    """Return the bounds of a fused activation. Raises NoLowering for one that is no clamp."""
    if activation in (0, "NONE"):
        return None, None
    if activation not in CLAMPS:
        raise NoLowering(f"the activation {activation}")
    low, high = CLAMPS[activation]
    return float(low), None if high is None else float(high)


def clamped(value: Expr, activation: Any) -> Expr:
    """A value between the bounds of an activation; NaN stays."""
    low, high = bounds(activation)
    if low is not None:
        value = apply("maximum", const(low, value.dtype), value)
    if high is not None:
        value = apply("minimum", const(high, value.dtype), value)
    return value
