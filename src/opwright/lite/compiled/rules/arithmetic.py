"""Element-wise arithmetic of two operands: ADD, SUB, MUL, with an activation.

Lives here: these rules.  Not here: functions of one operand (activations.py).

Quantised sums and products need few steps each: with a = q_a - zero_a and so on, in steps of the output,

    y = a (s_a / s_y) +- b (s_b / s_y)      as two fused multiply-adds, the zero points in one constant
    y = a b (s_a s_b / s_y)
"""

from __future__ import annotations

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, convert, scalar
from ....compiler.loops.forms import Map
from ....core.dtypes import float32, int32, int64
from ..nodes import At, Operand, Refused, clamped, in_steps, real_number, steps
from . import rule

OPS = {"ADD": "add", "SUB": "sub", "MUL": "mul"}


@rule(*OPS)
def binary(at: At) -> None:
    a, b = at.operand(0), at.operand(1)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise Refused(f"{a} and {b} do not broadcast") from None
    y, name = at.output(shape), at.node.name
    activation = at.option("fused_activation_function")
    if a.dtype is not y.dtype or b.dtype is not y.dtype:
        raise Refused(f"{a.dtype.name} and {b.dtype.name} to {y.dtype.name}")
    if y.dtype in (float32, int32, int64) and not y.is_quantized:
        expr = clamped(apply(OPS[name], arg(0, y.dtype), arg(1, y.dtype)), activation)
    else:
        expr = in_steps(_product(a, b, y) if name == "MUL" else _sum(a, b, y, -1.0 if name == "SUB" else 1.0),
                        y, activation)  # fmt: skip
    at.form(Map, y.buffer, (a.buffer, b.buffer), expr)


def _sum(a: Operand, b: Operand, y: Operand, sign: float) -> Expr:
    offset, terms = 0.0, []
    for place, o, factor in ((0, a, 1.0), (1, b, sign)):
        if o.constant is not None and o.size == 1:
            offset += factor * real_number(o) / y.scale
            continue
        factor *= o.scale / y.scale
        offset -= factor * o.zero
        terms.append((apply_float(place, o), factor))
    total = scalar(offset, float32)
    for x, factor in terms:
        total = apply("fma", x, scalar(factor, float32), total)
    return total


def apply_float(place: int, o: Operand) -> Expr:
    """The integers of an operand as float32."""
    if not o.is_quantized:
        raise Refused(f"integers {o} without a scale")
    return convert(arg(place, o.dtype), float32)


def _product(a: Operand, b: Operand, y: Operand) -> Expr:
    factor, parts = 1.0 / y.scale, []
    for place, o in ((0, a), (1, b)):
        if o.constant is not None and o.size == 1:
            factor *= real_number(o)
        else:
            factor *= o.scale
            parts.append(steps(o, place))
    total = scalar(factor, float32)
    for x in reversed(parts):
        total = apply("mul", x, total)
    return total
