"""Fixed-point functions of int16: logistic and tanh as gemmlowp computes them, for LSTMs on integers.

Lives here: these two and what they need, which other rules of 16 bits need, too.
Not here: those of 32 bits (fixed_point.py), LOGISTIC and TANH as operators, which interpolate a table (sigmoid.py).

Arrays are int64 that hold int16 values. A number of `k` integer bits is raw / 2^(15 - k); results have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixed_point import shifted_right

ONE = 32767  # the greatest number without integer bits stands for 1
_LOW, _HIGH = -32768, 32767


def _short(value: int) -> int:
    """A constant of 32 bits in 16."""
    return int(shifted_right(np.int64(value), 16))


_EXP_EIGHTH, _ONE_THIRD = _short(1895147668), _short(715827883)  # e^(-1/8), 1/3
_EXP_FACTORS = tuple(map(_short, (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)))
_48_17, _32_17 = _short(1515870810), _short(-1010580540)  # 48/17 and -32/17 with two integer bits


def product(a: Any, b: Any) -> Any:
    """a b / 2^15 to the nearest, halves up, within int16."""
    return np.minimum((a * b + (1 << 14)) >> 15, _HIGH)


def saturated(x: Any) -> Any:
    """Within int16."""
    return np.clip(x, _LOW, _HIGH)


def exp_on_negatives(a: Any, bits: int) -> Any:
    """e^a for a <= 0 of `bits` integer bits: a polynomial on [-1/4, 0), then a factor for each higher bit."""
    quarter = 1 << (15 - bits - 2)
    u = (a & (quarter - 1)) - quarter
    x = saturated(u << bits) + (1 << 12)
    x2 = product(x, x)
    x3, x4 = product(x2, x), product(x2, x2)
    higher = shifted_right(product(shifted_right(x4, 2) + x3, np.int64(_ONE_THIRD)) + x2, 1)
    y = saturated(_EXP_EIGHTH + product(np.int64(_EXP_EIGHTH), x + higher))
    rest = u - a
    for exponent, factor in enumerate(_EXP_FACTORS, -2):
        if bits > exponent:
            y = np.where(rest & (1 << (15 - bits + exponent)), product(y, np.int64(factor)), y)
    if bits > 5:
        y = np.where(a < -(1 << (20 - bits)), 0, y)
    return np.where(a == 0, ONE, y)


def _reciprocal(a: Any) -> Any:
    """2 / (1 + a) for 0 <= a <= 1, with two integer bits: three steps of Newton."""
    total = a + ONE
    half = (total + 1) // 2  # the sum is never negative
    x = _48_17 + product(half, np.int64(_32_17))
    for _ in range(3):
        error = (1 << 13) - product(half, x)
        x = x + saturated(product(x, error) << 2)
    return x


def logistic(x: Any, bits: int = 3) -> Any:
    """1 / (1 + e^-x) of numbers with `bits` integer bits."""
    y = saturated(_reciprocal(exp_on_negatives(-np.abs(x), bits)) << 1)
    return np.where(x == 0, 1 << 14, np.where(x > 0, y, ONE - y))


def tanh(x: Any, bits: int) -> Any:
    """The hyperbolic tangent of numbers with `bits` integer bits."""
    y = saturated((_reciprocal(exp_on_negatives(-np.abs(x), bits + 1)) - (1 << 13)) << 2)
    return np.where(x == 0, 0, np.where(x > 0, y, -y))
