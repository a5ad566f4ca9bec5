"""Bits of integers, element by element with broadcasting.

Lives here: the table of their operators.
Not here: logic of bools (math/comparison.py).
"""

from __future__ import annotations

from ..core.dtypes import integer
from .math.ufunc import ufunc

BitwiseAnd, bitwise_and = ufunc("bitwise_and", "x y -> z", integer, "The bits that both have.", r"z = x \mathbin{\&} y")
BitwiseOr, bitwise_or = ufunc(
    "bitwise_or", "x y -> z", integer, "The bits that one or both have.", r"z = x \mathbin{|} y"
)
BitwiseXor, bitwise_xor = ufunc("bitwise_xor", "x y -> z", integer, "The bits that exactly one has.", r"z = x \oplus y")
Invert, invert = ufunc("invert", "x -> y", integer, "Every bit turned over.", r"y = {\sim} x")
LeftShift, left_shift = ufunc(
    "left_shift",
    "x y -> z",
    integer,
    "Bits moved up, zeros coming in. A distance below 0 counts as 0, one past the width as the width less 1.",
    r"z = x \cdot 2^{y} \bmod 2^{width}",
)
RightShift, right_shift = ufunc(
    "right_shift",
    "x y -> z",
    integer,
    "Bits moved down; copies of the sign come in for signed dtypes, zeros for unsigned ones.\n\n"
    "A distance below 0 counts as 0, one past the width as the width less 1.",
    r"z = \lfloor x / 2^{y} \rfloor",
)

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
