"""Fixed-point arithmetic on NumPy arrays: the formulas of `scalar`, their in-place forms for large tensors, and lookup
tables of functions of 8 and 16 bits.

Lives here: `INT16`, `INT32`, `requantizer` and its variants, building and reading of tables.
Not here: the formulas (opwright/scalar), the rules that use them (activation.py, normalization.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.fixed_point import MOST_LEFT, FixedPoint, FixedPointInt32
from ....scalar.quantization import array_round_away as round_away
from ....scalar.quantization import short_multiplier
from ..parts import BLOCK
from .operand import Operand

INT16, INT32 = FixedPoint(numpy_namespace, 16), FixedPointInt32(numpy_namespace)
"""On int64 that hold int16, int32."""


def rounded_quotient(a: Any, n: Any) -> Any:
    """Divide integers, n > 0, rounding half away from zero."""
    return np.sign(a) * ((np.abs(a) + (n >> 1)) // n)


def exact_float(magnitude: int) -> Any:
    """Return the narrowest float dtype in which integers up to this magnitude are exact."""
    return np.float32 if magnitude <= 1 << 24 else np.float64


def finishing(m: Any, e: Any, bias: Any, zero_point: int, low: int, high: int) -> Callable[[Any], Any]:
    """Return a function that computes clamp(rescale(x + bias, m, e) + zero_point) in place on int64 [..., n].

    m, e, bias: numbers or vectors of n. The rounding offsets of `rescale` are precomputed.
    """
    left, right = np.minimum(np.maximum(e, 0), MOST_LEFT), np.maximum(-e, 0)
    shifts = left.any()
    offset = (1 << 30) + (0 if shifts else np.asarray(bias, np.int64) * m)
    half = (np.left_shift(1, right) >> 1) + np.left_shift(zero_point, right)
    some, every = (right > 0).any(), (right > 0).all()

    def finish(x: np.ndarray) -> np.ndarray:
        if shifts:
            x += bias
            x = INT32.wrapped(np.left_shift(x, left))
        x *= m
        x += offset
        x >>= 31
        if some:
            x += x >> 63 if every else np.where(right > 0, x >> 63, 0)
        x += half
        x >>= right
        return np.clip(x, low, high, out=x)

    return finish


def finishing_wide(m: Any, e: Any, bias: Any, zero_point: int, low: int, high: int) -> Callable[[Any], Any]:
    """Return the same function with `rescale_wide`."""
    short = short_multiplier(m)
    return lambda x: np.clip(INT32.rescale_wide(x + bias, short, e) + zero_point, low, high)


def by_rows(finish: Callable[[Any], Any], sums: Any, dtype: Any) -> Any:
    """Apply `finish` to blocks of rows of an array [..., n]; results, which fit, are stored as `dtype`."""
    rows = sums.reshape(-1, sums.shape[-1])
    if rows.size <= BLOCK:
        return finish(rows).reshape(sums.shape)
    out, step = np.empty(rows.shape, dtype), max(1, BLOCK // sums.shape[-1])
    for first in range(0, len(rows), step):
        np.copyto(out[first : first + step], finish(rows[first : first + step]), casting="unsafe")
    return out.reshape(sums.shape)


Function = Callable[[Any], Any]
_f = np.float32


def byte_table(f: Function, x: Operand, y: Operand) -> np.ndarray:
    """Tabulate f, a function on float32, from the 256 integers of x, ordered by their bytes, to those of y."""
    q = np.arange(x.low, x.high + 1)
    real = x.scale * (q - x.zero_point).astype(_f)
    t = round_away(f(real) * (_f(1) / y.scale)).astype(np.float64)
    entries = y.saturated(np.nan_to_num(t, posinf=2.0**40, neginf=-(2.0**40)))
    result: np.ndarray = np.roll(entries, x.low).astype(np.int16)
    return result


def look_up(table: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the table's entry for each 8-bit integer."""
    return table[q.view(np.uint8)]


def tabulated(f: Function, x: Operand) -> Function:
    """Return an element-wise function of x's integers, by table lookup if they have 8 bits."""
    if x.type not in BYTES:
        return f
    table = np.asarray(f(np.arange(256, dtype=np.uint8).view(BYTES[x.type])))
    return lambda q: look_up(table, q)


BYTES = {"INT8": np.int8, "UINT8": np.uint8}


def interpolated(table: np.ndarray, v: Any) -> Any:
    """Interpolate between the two nearest entries for each int16."""
    return INT16.interpolated(table, v.astype(np.int64, copy=False))
