"""Operators on the bits of integers: BITWISE_XOR, RIGHT_SHIFT.

Lives here: the two operators.  Not here: logic on truth values (comparison.py), arithmetic (arithmetic.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import int8, int16, int32, uint8, uint16, uint32
from .arithmetic import binary

INTEGERS = (int8, int16, int32, uint8, uint16, uint32)


def right_shift(x: Any, y: Any) -> Any:
    """x >> y, with y brought between 0 and the number of bits less 1; negative x fill with ones."""
    return np.right_shift(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype))


BINARY = (
    ("BITWISE_XOR", np.bitwise_xor, r"x \oplus y", INTEGERS, "BitwiseXorOptions"),
    ("RIGHT_SHIFT", right_shift, r"\lfloor x / 2^{\min(\max(y, 0), bits - 1)} \rfloor", INTEGERS, "RightShiftOptions"),
)

for row in BINARY:
    binary(*row, moves=True)
