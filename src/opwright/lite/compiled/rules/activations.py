"""Activations: functions of one operand, float32 or quantised.

Lives here: the rules of RELU and its kin, LOGISTIC, TANH, HARD_SWISH, ELU, GELU, LEAKY_RELU, PRELU.
Not here: quantised ones, which are tables (elementwise.py), but for PRELU.
"""

from __future__ import annotations

import math

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, const, convert, scalar
from ....core.constants import GELU_CUBIC, GELU_SLOPE
from ....core.dtypes import float16, float32, int8, int16, uint8
from ....scalar.table import OF_BUILTIN
from ..nodes import At, Refused, clamped, in_steps, real_number, steps, steps_per
from .elementwise import alike, broadcast, mapped, plain, quantized, truth, unary
from .registry import rule

CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
FUNCTIONS = ("LOGISTIC", "HARD_SWISH", "ELU")


@rule(*CLAMPS)
def clamp(at: At) -> None:
    unary(at, lambda x: clamped(x, at.node.name))


@rule(*FUNCTIONS)
def function(at: At) -> None:
    unary(at, lambda x: apply(OF_BUILTIN[at.node.name].name, x))


@rule("GELU")
def gelu(at: At) -> None:
    if at.operand(0).dtype is float16:
        unary(at, _gelu_by_steps if at.option("approximate") else _gelu_by_complement)
        return
    unary(at, lambda x: apply("gelu_tanh" if at.option("approximate") else "gelu", x))


def _gelu_by_steps(x: Expr) -> Expr:
    """x (1 + tanh(a (x + b x^3))) / 2, each step of which is rounded to float16."""
    slope, cubic, half, one = (const(float(np.float16(n)), float16) for n in (GELU_SLOPE, GELU_CUBIC, 0.5, 1.0))
    cube = apply("mul", apply("mul", x, x), x)
    inner = apply("mul", slope, apply("add", x, apply("mul", cubic, cube)))
    return apply("mul", apply("mul", half, x), apply("add", one, apply("tanh", inner)))


def _gelu_by_complement(x: Expr) -> Expr:
    """x erfc(-x / sqrt 2) / 2, each step of which is rounded to float16."""
    slope, half = const(float(np.float16(-math.sqrt(0.5))), float16), const(0.5, float16)
    return apply("mul", apply("mul", half, x), apply("erfc", apply("mul", x, slope)))


@rule("LEAKY_RELU")
def leaky_relu(at: At) -> None:
    unary(at, lambda x: _leaky(x, convert(scalar(float(at.option("alpha")), float32), x.dtype)))


def _leaky(x: Expr, alpha: Expr) -> Expr:
    return apply("select", truth("greater", x, const(0.0, x.dtype)), x, apply("mul", x, alpha), dtype=x.dtype)


@rule("PRELU")
def prelu(at: At) -> None:
    """x, below 0 alpha x; of integers in steps of the output: x s_x / s_y and x alpha s_x s_alpha / s_y."""
    x, alpha = at.operand(0), at.operand(1)
    y = at.output(broadcast(x, alpha))
    if y.shape != x.shape:
        raise Refused("alpha is larger than x")
    if not quantized(at):
        alike(x, alpha)
        dtype = plain(at, x, alpha)
        a, b = arg(0, dtype), arg(1, dtype)
        below = truth("less", a, const(0.0, dtype))
        mapped(at, y, apply("select", below, apply("mul", a, b), a, dtype=dtype), x, alpha)
        return
    if (x.dtype, alpha.dtype, y.dtype) not in ((int8,) * 3, (uint8,) * 3, (int16, int8, int16)):
        raise Refused(f"{x.dtype.name} and {alpha.dtype.name} to {y.dtype.name}")
    factor = steps_per(x.scale, y)
    value = steps(x, 0)
    if alpha.size == 1 and alpha.constant is not None:
        below = apply("mul", value, scalar(factor * real_number(alpha), value.dtype))
    else:
        below = apply("mul", apply("mul", value, steps(alpha, 1)), scalar(factor * alpha.scale, value.dtype))
    above = apply("mul", value, scalar(factor, value.dtype))
    negative = truth("less", value, const(0.0, value.dtype))
    mapped(at, y, in_steps(apply("select", negative, below, above, dtype=value.dtype), y), x, alpha)
