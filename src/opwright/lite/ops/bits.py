"""Operators on the bits of integers: BITWISE_XOR, RIGHT_SHIFT.

Lives here: the two operators.  Not here: logic on truth values (comparison.py), arithmetic (arithmetic.py).
"""

from __future__ import annotations

from ...core.dtypes import int8, int16, int32, uint8, uint16, uint32
from .arithmetic import binary
from .same import SAME

INTEGERS = (int8, int16, int32, uint8, uint16, uint32)


BINARY = (
    ("BITWISE_XOR", SAME, r"x \oplus y", INTEGERS, "BitwiseXorOptions"),
    ("RIGHT_SHIFT", SAME, r"\lfloor x / 2^{\min(\max(y, 0), bits - 1)} \rfloor", INTEGERS, "RightShiftOptions"),
)

for row in BINARY:
    binary(*row, moves=True)
