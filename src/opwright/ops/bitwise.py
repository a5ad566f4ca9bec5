"""Bitwise operators on integers, element-wise with broadcasting.

Lives here: the table of their operators.
Not here: logic of bools (math/ufunc.py).
"""

from __future__ import annotations

from ..core.dtypes import integer
from .math.ufunc import ufunc

BitwiseAnd, bitwise_and = ufunc("bitwise_and", "x y -> z", integer, "Bitwise and.", r"z = x \mathbin{\&} y")
BitwiseOr, bitwise_or = ufunc("bitwise_or", "x y -> z", integer, "Bitwise or.", r"z = x \mathbin{|} y")
BitwiseXor, bitwise_xor = ufunc("bitwise_xor", "x y -> z", integer, "Bitwise exclusive or.", r"z = x \oplus y")
Invert, invert = ufunc("invert", "x -> y", integer, "Bitwise complement.", r"y = {\sim} x")
LeftShift, left_shift = ufunc(
    "left_shift",
    "x y -> z",
    integer,
    "Left shift, filled with zeros. A distance below 0 counts as 0, one past the width as the width less 1.",
    r"z = x \cdot 2^{y} \bmod 2^{width}",
)
RightShift, right_shift = ufunc(
    "right_shift",
    "x y -> z",
    integer,
    "Right shift: arithmetic for signed dtypes, logical for unsigned ones.\n\n"
    "A distance below 0 counts as 0, one past the width as the width less 1.",
    r"z = \lfloor x / 2^{y} \rfloor",
)

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
