"""Fixed-point numbers of any width: products, rounding shifts, exp, logistic, tanh and tables, over a namespace.

Lives here: `FixedPoint`, `interpolation_table`.  Not here: what needs 32 bits (fixed_point_int32.py).

A number of `width` bits with k integer bits is raw / 2^(width - 1 - k): a sign, k bits, then the fraction; the
literature writes Qk.(width - 1 - k) for it. The formulas are those of gemmlowp's fixedpoint.h, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .rounding import array_round_away

# Of 32 bits without integer bits, unless said otherwise; numbers of fewer bits have them rounded.
_ONE_THIRD = 715827883
_EXP_MINUS_EIGHTH = 1895147668
_EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""e^(-2^k) from k = -2 on."""
_48_17, _MINUS_32_17 = 1515870810, -1010580540
"""The line 48/17 - 32/17 x, with two integer bits: the best start for Newton's method for 1 / x, 1/2 <= x <= 1."""
_NEWTON_STEPS = 3
ENTRIES = 513
"""Of a table for int16: one for each 2^_GAP integers, and one for the end."""
_GAP = 7


class FixedPoint:
    """Arithmetic on numbers of `width` bits, held as integers of a dtype twice as wide at least, over a namespace."""

    def __init__(self, namespace: Any, width: int) -> None:
        self.namespace, self.width = namespace, width
        self.least, self.greatest = -(1 << (width - 1)), (1 << (width - 1)) - 1
        self.one = self.greatest  # without integer bits the greatest number stands for 1
        self.one_third, self.exp_minus_eighth = self._constant(_ONE_THIRD), self._constant(_EXP_MINUS_EIGHTH)
        self.exp_factors = tuple(map(self._constant, _EXP_FACTORS))
        self.line = self._constant(_48_17), self._constant(_MINUS_32_17)

    def _constant(self, value: int) -> int:
        """A constant of 32 bits in as many as there are here, halves away from zero."""
        n = 32 - self.width
        return value if n == 0 else (value + (1 << (n - 1)) - (value < 0)) >> n

    # ---- rounding -----------------------------------------------------------------------------------------------

    def saturated(self, x: Any) -> Any:
        """Within the width."""
        return self.namespace.clamp(x, self.least, self.greatest)

    def wrapped(self, x: Any) -> Any:
        """As arithmetic of this width would have it."""
        spare = 8 * self.namespace.type_of(x).size - self.width
        return (x << spare) >> spare

    def high_product(self, a: Any, b: Any) -> Any:
        """SRDHM: a b / 2^(width - 1) to the nearest, halves up; the one overflow gives the greatest number."""
        product = a * b + (1 << (self.width - 2))
        return self.namespace.minimum(product >> (self.width - 1), self.greatest)

    def shifted_right(self, x: Any, n: Any) -> Any:
        """RDBP: x / 2^n to the nearest, halves away from zero. n: a Python number, or int64."""
        m = self.namespace
        sign = x >> (8 * m.type_of(x).size - 1)
        if isinstance(n, int):
            return x if n == 0 else (x + (1 << (n - 1)) + sign) >> n
        return (x + ((m.value(1) << n) >> 1) + (sign & -m.convert(n > 0, m.i64))) >> n

    # ---- functions ----------------------------------------------------------------------------------------------

    def exp_on_negatives(self, a: Any, integer_bits: int) -> Any:
        """e^a for a <= 0 of so many integer bits: a polynomial on [-1/4, 0), then a factor for each higher bit."""
        m, fraction = self.namespace, self.width - 1 - integer_bits
        quarter = 1 << (fraction - 2)
        last = (a & (quarter - 1)) - quarter  # within [-1/4, 0)
        x = (last << integer_bits) + (1 << (self.width - 4))  # plus 1/8
        x2 = self.high_product(x, x)
        x3, x4 = self.high_product(x2, x), self.high_product(x2, x2)
        cubic = self.high_product(self.shifted_right(x4, 2) + x3, self.one_third)  # x^3 / 3 + x^4 / 12
        polynomial = x + self.shifted_right(cubic + x2, 1)
        y = self.saturated(self.high_product(polynomial, self.exp_minus_eighth) + self.exp_minus_eighth)
        rest = last - a
        for exponent, factor in enumerate(self.exp_factors, -2):
            if integer_bits > exponent:
                y = m.select((rest & (1 << (fraction + exponent))) != 0, self.high_product(y, factor), y)
        if integer_bits > 5:
            y = m.select(a < -(1 << (fraction + 5)), 0, y)
        return m.select(a == 0, self.one, y)

    def reciprocal_of_half(self, a: Any) -> Any:
        """2 / (1 + a) for 0 <= a <= 1, with two integer bits: Newton's method."""
        half = (a + (self.one + 1)) >> 1
        start, slope = self.line
        x = self.high_product(half, slope) + start
        for _ in range(_NEWTON_STEPS):
            error = (1 << (self.width - 3)) - self.high_product(half, x)
            x = x + self.saturated(self.high_product(x, error) << 2)
        return x

    def reciprocal_of_sum(self, a: Any) -> Any:
        """1 / (1 + a) for 0 <= a <= 1."""
        return self.saturated(self.reciprocal_of_half(a) << 1)

    def logistic(self, x: Any, integer_bits: int) -> Any:
        """1 / (1 + e^-x) of numbers with so many integer bits."""
        m = self.namespace
        y = self.reciprocal_of_sum(self.exp_on_negatives(-m.abs(x), integer_bits))
        return m.select(x == 0, 1 << (self.width - 2), m.select(x > 0, y, self.one - y))

    def tanh(self, x: Any, integer_bits: int) -> Any:
        """The hyperbolic tangent of numbers with so many integer bits: 2 / (1 + e^-2|x|) - 1."""
        m = self.namespace
        twice = self.reciprocal_of_half(self.exp_on_negatives(-m.abs(x), integer_bits + 1))
        y = self.saturated((twice - (1 << (self.width - 3))) << 2)
        return m.select(x == 0, 0, m.select(x > 0, y, -y))

    def interpolated(self, table: Any, v: Any) -> Any:
        """The value at each v, an int16, between two of a table's ENTRIES; both are held as the same dtype.

        The difference of two entries wraps where a table leaps, as it does in the official kernels.
        """
        m = self.namespace
        i, offset = (v >> _GAP) + (ENTRIES >> 1), v & ((1 << _GAP) - 1)
        before, after = m.gather(table, i), m.gather(table, i + 1)
        return before + ((self.wrapped(after - before) * offset + (1 << (_GAP - 1))) >> _GAP)


def interpolation_table(
    f: Callable[[Any], Any], first: float, last: float, out_first: float, out_last: float, dtype: Any
) -> np.ndarray:
    """Return ENTRIES numbers of 16 bits for f over [first, last], for outputs that stand for [out_first, out_last].

    Each entry is moved by half of the error of linear interpolation in the middle of its interval.
    """
    a, b = dtype(first), dtype(last)
    step = (b - a) / dtype(ENTRIES - 1)
    half = step / dtype(2)
    factor = dtype(65536) / (dtype(out_last) - dtype(out_first))
    points = a + np.arange(ENTRIES - 1, dtype=dtype) * step
    here = array_round_away(f(points) * factor)
    there = f(a + np.arange(1, ENTRIES, dtype=dtype) * step) * factor
    middle = array_round_away(f(points + half) * factor)
    bias = array_round_away((array_round_away((there + here) / dtype(2)) - middle) / dtype(2))
    entries = np.append(here - bias, array_round_away(f(np.atleast_1d(b)) * factor))
    array: np.ndarray = np.clip(entries, -32768, 32767).astype(np.int64)
    return array
