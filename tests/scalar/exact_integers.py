"""Roundings as rationals have them, and integers to try them on.

Lives here: the oracle of fixed-point arithmetic, on Python's integers.  Not here: the formulas that are tested.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def nearest(x: Fraction) -> int:
    """Halves up."""
    return math.floor(x + Fraction(1, 2))


def nearest_away(x: Fraction) -> int:
    """Halves away from zero."""
    return nearest(x) if x >= 0 else -nearest(-x)


def wrapped(x: int, width: int) -> int:
    return (x + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))


def clamped(x: int, width: int) -> int:
    return min(max(x, -(1 << (width - 1))), (1 << (width - 1)) - 1)


def rescaled(x: int, m: int, e: int) -> int:
    """As the documentation of `rescale` has it, in rationals."""
    return nearest_away(Fraction(nearest(Fraction(wrapped(x << max(e, 0), 32) * m, 1 << 31)), 1 << max(-e, 0)))


def spread(seed: int, low: int, high: int, count: int) -> np.ndarray:
    """Return integers of all sizes, with the limits and their neighbours."""
    rng = np.random.default_rng(seed)
    some = rng.integers(low, high, count - 6, np.int64, endpoint=True) >> rng.integers(0, 31, count - 6)
    middle = max(low, 0)
    return np.array([low, low + 1, high - 1, high, middle, middle + 1, *np.clip(some, low, high)], np.int64)
