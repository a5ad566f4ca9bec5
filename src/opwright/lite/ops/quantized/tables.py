"""Lookup tables of quantised functions: 8-bit, and 16-bit with interpolation.

Lives here: making and reading tables.  Not here: which operator uses which function (activation.py, normalization.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....scalar.quantization import array_round_away as round_away
from .fixed_point import INT16
from .operand import Operand

Function = Callable[[Any], Any]
_f = np.float32


def byte_table(f: Function, x: Operand, y: Operand) -> np.ndarray:
    """y's integer for each of x's 256, in the order of their bytes. f: of float32."""
    q = np.arange(x.low, x.high + 1)
    real = x.scale * (q - x.zero_point).astype(_f)
    t = round_away(f(real) * (_f(1) / y.scale)).astype(np.float64)
    made = np.clip(np.nan_to_num(t, posinf=2.0**40, neginf=-(2.0**40)) + y.zero_point, y.low, y.high)
    return np.roll(made, x.low).astype(np.int16)  # an int8 -128 is byte 128


def look_up(table: np.ndarray, q: np.ndarray) -> Any:
    """The table's entry for each 8-bit integer."""
    return table[q.view(np.uint8)]


def tabulated(f: Function, x: Operand) -> Function:
    """f of x's integers, looked up where there are 256 of them. f: element by element, and right for each of them."""
    if x.type not in BYTES:
        return f
    table = np.asarray(f(np.arange(256, dtype=np.uint8).view(BYTES[x.type])))
    return lambda q: look_up(table, q)


BYTES = {"INT8": np.int8, "UINT8": np.uint8}


def interpolated(table: np.ndarray, v: Any) -> Any:
    """The value at each int16, between two entries."""
    return INT16.interpolated(table, v.astype(np.int64, copy=False))
