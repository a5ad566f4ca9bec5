"""Activations: functions of one operand, float32 or quantised.

Lives here: the rules of RELU and its kin, LOGISTIC, TANH, HARD_SWISH.
Not here: that a function of one byte becomes a table (compiler/loops/fusion.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ....compiler.loops.expressions import Expr, apply
from ....compiler.loops.forms import Map
from ..nodes import At, Refused, clamped, real, stored
from . import rule

CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")


def unary(at: At, function: Callable[[Expr], Expr]) -> None:
    """y = function(x) of real numbers, element by element."""
    x = at.operand(0)
    y = at.output(x.shape)
    if x.dtype is not y.dtype:
        raise Refused(f"{x.dtype.name} to {y.dtype.name}")
    at.form(Map, y.buffer, (x.buffer,), stored(function(real(x, 0)), y))


@rule(*CLAMPS)
def clamp(at: At) -> None:
    unary(at, lambda x: clamped(x, at.node.name))


@rule("LOGISTIC")
def logistic(at: At) -> None:
    unary(at, lambda x: apply("sigmoid", x))


@rule("TANH")
def tanh(at: At) -> None:
    unary(at, lambda x: apply("tanh", x))


@rule("HARD_SWISH")
def hard_swish(at: At) -> None:
    unary(at, lambda x: apply("hard_swish", x))
