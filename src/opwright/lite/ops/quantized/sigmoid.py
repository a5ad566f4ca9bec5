"""LOGISTIC and TANH of int16: a table of the logistic function, interpolated.

Lives here: the table and its two uses.  Not here: 8 bits, which have a table an operator (activation.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .operand import Operand

# The published table is 65536 / (1 + e^(-i / 24)) rounded, but for these entries, which are one more.
_ONE_MORE = (
    4,
    8,
    12,
    14,
    15,
    16,
    17,
    19,
    20,
    21,
    22,
    25,
    27,
    28,
    29,
    30,
    31,
    33,
    34,
    35,
    37,
    39,
    40,
    41,
    43,
    44,
    45,
    46,
    49,
    50,
    54,
    62,
    63,
    64,
    66,
    82,
    86,
    93,
    100,
    103,
    112,
    116,
    135,
)


def _table() -> np.ndarray:
    made = np.minimum(np.floor(65536 / (1 + np.exp(-np.arange(256) / 24)) + 0.5).astype(np.int64), 65535)
    made[list(_ONE_MORE)] += 1
    made[255] = 65535
    return np.append(made, 65535)  # what interpolation beyond the last entry reads and drops


LOGISTIC_TABLE = _table()


def _table_steps(x: Operand, most_shift: int) -> Any:
    """From integers of x to steps of the table, whose unit is 1 / (3 * 2^12).

    Scales of 2^-12 times 2^0..2^most_shift are met by a shift, others by a 15-bit factor.
    """
    exact = math.log2(float(x.scale)) if x.scale > 0 else 0.5
    shift = 12 + round(exact)
    if abs(exact - round(exact)) < 1e-3 and 0 <= shift <= most_shift:
        return lambda q: q.astype(np.int64) * (3 << shift)
    factor, n = float(x.scale) * 4096 * 3, 0
    while factor <= 32767 / 2 and n <= 30:
        factor, n = factor * 2, n + 1
    whole, half = math.trunc(min(factor, 2.0**31)), (1 << n) >> 1  # more is beyond the table for all but 0
    return lambda q: (q.astype(np.int64) * whole + half) >> n


def logistic_wide(x: Operand) -> Any:
    steps, table = _table_steps(x, 0), LOGISTIC_TABLE

    def run(q: Any) -> Any:
        v = steps(q)
        a = np.abs(v)
        i = np.minimum(a >> 9, 255)
        r = np.where(a >> 9 >= 255, 32767 << 10, (table[i] << 9) + (a & 511) * (table[i + 1] - table[i]))
        return np.where(v >= 0, r + 512, (1 << 25) - r + 511) >> 10

    return run


def tanh_wide(x: Operand) -> Any:
    steps, table = _table_steps(x, 1), LOGISTIC_TABLE

    def run(q: Any) -> Any:
        v = steps(q)
        a = np.abs(v)
        i = np.minimum(a >> 8, 255)
        r = np.where(a >> 8 >= 255, 65535 << 8, (table[i] << 8) + (a & 255) * (table[i + 1] - table[i]))
        return np.where(v >= 0, r - (1 << 23) + 128, -r + (1 << 23) + 127) >> 8

    return run
