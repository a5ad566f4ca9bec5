"""Fixed-point arithmetic over an array namespace: products, rounding shifts, exp, logistic, tanh, tables, rescaling.

Lives here: `FixedPoint`, of any width; `FixedPointInt32`, the functions that need 32 bits; `interpolation_table`.
Not here: multipliers (quantization.py).

A number of `width` bits with k integer bits is raw / 2^(width - 1 - k): a sign, k bits, then the fraction, written
Qk.(width - 1 - k) in the literature. The formulas are bit-identical to gemmlowp's fixedpoint.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .quantization import array_round_away

# 32 bits without integer bits, unless stated otherwise; numbers of fewer bits have them rounded.
_ONE_THIRD = 715827883
_EXP_MINUS_EIGHTH = 1895147668
_EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""e^(-2^k) from k = -2 on."""
_48_17, _MINUS_32_17 = 1515870810, -1010580540
"""The line 48/17 - 32/17 x, with two integer bits: the best start for Newton's method for 1 / x, 1/2 <= x <= 1."""
_NEWTON_STEPS = 3
ENTRIES = 513
"""Entries of a table for int16: one for each 2^_GAP integers, and one for the end."""
_GAP = 7


class FixedPoint:
    """Fixed-point arithmetic on `width` bits, stored in integers at least twice as wide, over an array namespace."""

    def __init__(self, namespace: Any, width: int) -> None:
        self.namespace, self.width = namespace, width
        self.least, self.greatest = -(1 << (width - 1)), (1 << (width - 1)) - 1
        self.one = self.greatest  # without integer bits the greatest number represents 1
        self.one_third, self.exp_minus_eighth = self._constant(_ONE_THIRD), self._constant(_EXP_MINUS_EIGHTH)
        self.exp_factors = tuple(map(self._constant, _EXP_FACTORS))
        self.line = self._constant(_48_17), self._constant(_MINUS_32_17)

    def _constant(self, value: int) -> int:
        """Return a 32-bit constant rounded to `width` bits, halves away from zero."""
        n = 32 - self.width
        return value if n == 0 else (value + (1 << (n - 1)) - (value < 0)) >> n

    # ---- rounding -----------------------------------------------------------------------------------------------

    def saturated(self, x: Any) -> Any:
        """Saturate to the width."""
        return self.namespace.clamp(x, self.least, self.greatest)

    def wrapped(self, x: Any) -> Any:
        """Wrap to the width."""
        spare = 8 * self.namespace.type_of(x).size - self.width
        return (x << spare) >> spare

    def high_product(self, a: Any, b: Any) -> Any:
        """Compute SRDHM: a b / 2^(width - 1), rounded half up; the one overflow saturates."""
        product = a * b + (1 << (self.width - 2))
        return self.namespace.minimum(product >> (self.width - 1), self.greatest)

    def shifted_right(self, x: Any, n: Any) -> Any:
        """Compute RDBP: x / 2^n, rounded half away from zero. n: a Python number, or int64."""
        m = self.namespace
        sign = x >> (8 * m.type_of(x).size - 1)
        if isinstance(n, int):
            return x if n == 0 else (x + (1 << (n - 1)) + sign) >> n
        return (x + ((m.value(1) << n) >> 1) + (sign & -m.convert(n > 0, m.i64))) >> n

    # ---- functions ----------------------------------------------------------------------------------------------

    def exp_on_negatives(self, a: Any, integer_bits: int) -> Any:
        """Compute e^a for a <= 0: a polynomial on [-1/4, 0), then a factor per higher bit."""
        m, fraction = self.namespace, self.width - 1 - integer_bits
        quarter = 1 << (fraction - 2)
        last = (a & (quarter - 1)) - quarter  # within [-1/4, 0)
        x = (last << integer_bits) + (1 << (self.width - 4))  # plus 1/8
        x2 = self.high_product(x, x)
        x3, x4 = self.high_product(x2, x), self.high_product(x2, x2)
        cubic = self.high_product(self.shifted_right(x4, 2) + x3, self.one_third)  # x^3 / 3 + x^4 / 12
        polynomial = x + self.shifted_right(cubic + x2, 1)
        y = self.saturated(self.high_product(polynomial, self.exp_minus_eighth) + self.exp_minus_eighth)
        remainder = last - a
        for exponent, factor in enumerate(self.exp_factors, -2):
            if integer_bits > exponent:
                y = m.select((remainder & (1 << (fraction + exponent))) != 0, self.high_product(y, factor), y)
        if integer_bits > 5:
            y = m.select(a < -(1 << (fraction + 5)), 0, y)
        return m.select(a == 0, self.one, y)

    def reciprocal_of_half(self, a: Any) -> Any:
        """Compute 2 / (1 + a) for 0 <= a <= 1, with two integer bits, by Newton's method."""
        half = (a + (self.one + 1)) >> 1
        start, slope = self.line
        x = self.high_product(half, slope) + start
        for _ in range(_NEWTON_STEPS):
            error = (1 << (self.width - 3)) - self.high_product(half, x)
            x = x + self.saturated(self.high_product(x, error) << 2)
        return x

    def reciprocal_of_sum(self, a: Any) -> Any:
        """Compute 1 / (1 + a) for 0 <= a <= 1."""
        return self.saturated(self.reciprocal_of_half(a) << 1)

    def logistic(self, x: Any, integer_bits: int) -> Any:
        """Compute 1 / (1 + e^-x)."""
        m = self.namespace
        y = self.reciprocal_of_sum(self.exp_on_negatives(-m.abs(x), integer_bits))
        return m.select(x == 0, 1 << (self.width - 2), m.select(x > 0, y, self.one - y))

    def tanh(self, x: Any, integer_bits: int) -> Any:
        """Compute the hyperbolic tangent: 2 / (1 + e^-2|x|) - 1."""
        m = self.namespace
        twice = self.reciprocal_of_half(self.exp_on_negatives(-m.abs(x), integer_bits + 1))
        y = self.saturated((twice - (1 << (self.width - 3))) << 2)
        return m.select(x == 0, 0, m.select(x > 0, y, -y))

    def interpolated(self, table: Any, v: Any) -> Any:
        """Interpolate at each int16 v between two of a table's ENTRIES; both have the same dtype.

        The difference of two entries wraps where a table leaps, as it does in the official kernels.
        """
        m = self.namespace
        i, offset = (v >> _GAP) + (ENTRIES >> 1), v & ((1 << _GAP) - 1)
        before, after = m.gather(table, i), m.gather(table, i + 1)
        return before + ((self.wrapped(after - before) * offset + (1 << (_GAP - 1))) >> _GAP)


def interpolation_table(
    f: Callable[[Any], Any], first: float, last: float, out_first: float, out_last: float, dtype: Any
) -> np.ndarray:
    """Return ENTRIES numbers of 16 bits for f over [first, last], quantized to the output range [out_first, out_last].

    Each entry is moved by half of the error of linear interpolation in the middle of its interval.
    """
    a, b = dtype(first), dtype(last)
    step = (b - a) / dtype(ENTRIES - 1)
    half = step / dtype(2)
    factor = dtype(65536) / (dtype(out_last) - dtype(out_first))
    points = a + np.arange(ENTRIES - 1, dtype=dtype) * step
    left = array_round_away(f(points) * factor)
    right = f(a + np.arange(1, ENTRIES, dtype=dtype) * step) * factor
    middle = array_round_away(f(points + half) * factor)
    bias = array_round_away((array_round_away((right + left) / dtype(2)) - middle) / dtype(2))
    entries = np.append(left - bias, array_round_away(f(np.atleast_1d(b)) * factor))
    array: np.ndarray = np.clip(entries, -32768, 32767).astype(np.int64)
    return array


_ROOT_OF_HALF = 1518500250  # sqrt(1/2) in Q0.31
_THREE_HALVES = (1 << 28) + (1 << 27)  # 3/2 in Q3.28
_INVERSE_ROOT_STEPS = 5
MOST_LEFT = 62
"""How far int64 may be shifted to the left; of an int32 nothing is left long before."""


class FixedPointInt32(FixedPoint):
    """Arithmetic on int32, held as int64."""

    def __init__(self, namespace: Any) -> None:
        super().__init__(namespace, 32)

    # ---- by multipliers -----------------------------------------------------------------------------------------

    def rescale(self, x: Any, factor: Any, e: Any) -> Any:
        """Compute MBQM: x m 2^(e - 31), by a left shift, which wraps, a rounded product and a rounding right shift.

        factor: m; e: a Python number, or int64
        """
        m = self.namespace
        if isinstance(e, int | np.integer):
            left, right = min(max(int(e), 0), MOST_LEFT), max(-int(e), 0)
            x = self.wrapped(x << left) if left else x
        else:
            left, right = m.clamp(e, 0, MOST_LEFT), m.maximum(-e, 0)
            x = self.wrapped(x << left)
        return self.shifted_right((x * factor + (1 << 30)) >> 31, right)

    def rescale_halves_up(self, x: Any, factor: Any, e: Any) -> Any:
        """Compute `rescale` as the official run time's matrix library: saturating, the last shift rounds half up."""
        m = self.namespace
        right = m.maximum(-e, 0)
        product = self.high_product(x << m.clamp(e, 0, MOST_LEFT), factor)
        return (product + ((m.value(1) << right) >> 1)) >> right

    def rescale_wide(self, x: Any, short: Any, e: Any) -> Any:
        """Compute MBQM_64: 64-bit sums times a short multiplier, short 2^(e - 15), rounded once, halves up."""
        m = self.namespace
        shift = m.minimum(15 - e, MOST_LEFT)
        half = m.value(1) << m.maximum(shift - 1, 0)
        return (x * short + half) >> m.maximum(shift, 0)

    # ---- functions ----------------------------------------------------------------------------------------------

    def floor_log2(self, x: Any) -> Any:
        """Return floor(log2(x)) for x > 0: the exponent of x in float64, which represents it exactly."""
        m = self.namespace
        return (m.bitcast(m.convert(x, m.f64), m.i64) >> 52) - 1023

    def leading_zeros(self, x: Any) -> Any:
        """Count the leading zeros of 32 bits, x > 0."""
        return 31 - self.floor_log2(x)

    def reciprocal(self, x: Any) -> tuple[Any, Any]:
        """Compute (R, k) for a number x > 0 with 12 integer bits: 1 / x is R, without integer bits, times 2^-k."""
        zeros = self.leading_zeros(x)
        return self.reciprocal_of_sum((x << zeros) - (1 << 31)), 12 - zeros

    def reciprocal_of_integer(self, x: Any) -> tuple[Any, Any]:
        """Compute (R, k) for an integer x > 0: 1 / x is R, without integer bits, times 2^-k."""
        r, k = self.reciprocal(x)
        return r, k + 19

    def inverse_root(self, x: Any) -> tuple[Any, Any]:
        """Compute (m, e) with m 2^(e - 31) = 1 / sqrt(x) for an integer x, at least 1, by Newton's method."""
        m = self.namespace
        x = m.maximum(x, 1)
        small, shift = x <= 1, m.full(m.i64, 0, 11)
        for _ in range(2):
            large = x >= 1 << 29
            x, shift = m.select(large, x >> 2, x), m.select(large, shift + 1, shift)
        pairs = ((self.leading_zeros(x) - 1) >> 1) - 1
        shift = shift - pairs
        scaled = m.select(small, 1 << 28, x << (m.maximum(pairs, 0) * 2)) >> 1
        half, root = self.shifted_right(scaled, 1), m.full(m.i64, 0, 1 << 28)
        for _ in range(_INVERSE_ROOT_STEPS):
            cube = self.saturated(self.high_product(self.high_product(root, root), root) << 6)
            change = self.high_product(root, _THREE_HALVES) - self.high_product(half, cube)
            root = self.saturated(change << 3)
        root = self.high_product(root, _ROOT_OF_HALF) << m.maximum(-shift, 0)
        return m.select(small, self.greatest, root), m.select(small, 0, m.minimum(-shift, 0))
