"""Bits of integers, element by element with broadcasting.

Lives here: BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift.
Not here: logic of bools (math/comparison.py).
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import integer
from ..scalar.table import FUNCTIONS
from .definition import Input, Output, operator


@operator
class BitwiseAnd:
    """The bits that both have.

    .. math:: z = x \\mathbin{\\&} y
    """

    x = Input(integer)
    y = Input(integer, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": "x"}
    gradient = None
    compute = FUNCTIONS["bitwise_and"].numpy


bitwise_and = BitwiseAnd.as_function("bitwise_and")


@operator
class BitwiseOr:
    """The bits that one or both have.

    .. math:: z = x \\mathbin{|} y
    """

    x = Input(integer)
    y = Input(integer, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": "x"}
    gradient = None
    compute = FUNCTIONS["bitwise_or"].numpy


bitwise_or = BitwiseOr.as_function("bitwise_or")


@operator
class BitwiseXor:
    """The bits that exactly one has.

    .. math:: z = x \\oplus y
    """

    x = Input(integer)
    y = Input(integer, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": "x"}
    gradient = None
    compute = FUNCTIONS["bitwise_xor"].numpy


bitwise_xor = BitwiseXor.as_function("bitwise_xor")


@operator
class Invert:
    """Every bit turned over.

    .. math:: y = {\\sim} x
    """

    x = Input(integer)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    gradient = None
    compute = FUNCTIONS["bitwise_not"].numpy


invert = Invert.as_function("invert")


@operator
class LeftShift:
    """Bits moved up, zeros coming in. A distance below 0 counts as 0, one past the width as the width less 1.

    .. math:: z = x \\cdot 2^{y} \\bmod 2^{width}
    """

    x = Input(integer)
    y = Input(integer, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": "x"}
    gradient = None

    def compute(op, x, y, *, out=None) -> Any:
        return FUNCTIONS["shift_left"].numpy(x, y, out)


left_shift = LeftShift.as_function("left_shift")


@operator
class RightShift:
    """Bits moved down; copies of the sign come in for signed dtypes, zeros for unsigned ones.

    .. math:: z = \\lfloor x / 2^{y} \\rfloor

    A distance below 0 counts as 0, one past the width as the width less 1.
    """

    x = Input(integer)
    y = Input(integer, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": "x"}
    gradient = None

    def compute(op, x, y, *, out=None) -> Any:
        return FUNCTIONS["shift_right"].numpy(x, y, out)


right_shift = RightShift.as_function("right_shift")

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
