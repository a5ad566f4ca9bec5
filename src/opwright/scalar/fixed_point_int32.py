"""Fixed-point arithmetic of int32: rescaling, reciprocals, inverse square roots, over a namespace.

Lives here: `FixedPointInt32`.  Not here: multipliers (multipliers.py), functions of any width (fixed_point.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixed_point import FixedPoint

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
        """MBQM: x m 2^(e - 31): shifted left, which wraps, the product rounded, shifted right and rounded again.

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
        """`rescale` as the official run time's matrix library has it: saturated, halves of the last shift up."""
        m = self.namespace
        right = m.maximum(-e, 0)
        product = self.high_product(x << m.clamp(e, 0, MOST_LEFT), factor)
        return (product + ((m.value(1) << right) >> 1)) >> right

    def rescale_wide(self, x: Any, short: Any, e: Any) -> Any:
        """MBQM_64: sums of 64 bits by a short multiplier, short 2^(e - 15), rounded once, halves up."""
        m = self.namespace
        shift = m.minimum(15 - e, MOST_LEFT)
        half = m.value(1) << m.maximum(shift - 1, 0)
        return (x * short + half) >> m.maximum(shift, 0)

    # ---- functions ----------------------------------------------------------------------------------------------

    def floor_log2(self, x: Any) -> Any:
        """The greatest power of two in x > 0, which float64 has for its exponent: it holds x."""
        m = self.namespace
        return (m.bitcast(m.convert(x, m.f64), m.i64) >> 52) - 1023

    def leading_zeros(self, x: Any) -> Any:
        """Bits before the first 1 of 32, x > 0."""
        return 31 - self.floor_log2(x)

    def reciprocal(self, x: Any) -> tuple[Any, Any]:
        """(R, k) for a number x > 0 with 12 integer bits: 1 / x is R, without integer bits, times 2^-k."""
        zeros = self.leading_zeros(x)
        return self.reciprocal_of_sum((x << zeros) - (1 << 31)), 12 - zeros

    def reciprocal_of_integer(self, x: Any) -> tuple[Any, Any]:
        """(R, k) for an integer x > 0: 1 / x is R, without integer bits, times 2^-k."""
        r, k = self.reciprocal(x)
        return r, k + 19

    def inverse_root(self, x: Any) -> tuple[Any, Any]:
        """(m, e) with m 2^(e - 31) = 1 / sqrt(x) for an integer x, below 1 taken for 1: Newton's method."""
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
