"""Fixed-point functions of int16 in kernels: logistic and tanh, bit for bit as gemmlowp computes them.

Lives here: these two, roundings of products.  Not here: the same on NumPy arrays, with the formulas
(lite/ops/quantized/narrow_fixed_point.py).

Values are int32 that hold int16. A number of `k` integer bits is raw / 2^(15 - k); results have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import language as kl

if TYPE_CHECKING:
    from ..language import Value

ONE, LOW, HIGH = 32767, -32768, 32767
_EXP_EIGHTH, _ONE_THIRD = 28918, 10923  # e^(-1/8), 1/3
_EXP_FACTORS = 25520, 19875, 12055, 4435, 600, 11, 0  # e^(-2^k) of k from -2
_48_17, _32_17 = 23130, -15420  # 48/17 and -32/17 with two integer bits


def shifted(x: Value, n: int) -> Value:
    """x / 2^n to the nearest, halves away from zero; below 2^30."""
    return x if n == 0 else (x + (1 << (n - 1)) + (x >> 31)) >> n


def product(a: Value, b: Value | int) -> Value:
    """a b / 2^15 to the nearest, halves up, within int16."""
    return kl.minimum((a * b + (1 << 14)) >> 15, HIGH)


def saturated(x: Value) -> Value:
    """Within int16."""
    return kl.clamp(x, LOW, HIGH)


def _exp_on_negatives(a: Value, bits: int) -> Value:
    quarter = 1 << (15 - bits - 2)
    u = (a & (quarter - 1)) - quarter
    x = saturated(u << bits) + (1 << 12)
    x2 = product(x, x)
    x3, x4 = product(x2, x), product(x2, x2)
    higher = shifted(product(shifted(x4, 2) + x3, _ONE_THIRD) + x2, 1)
    y = saturated(product(x + higher, _EXP_EIGHTH) + _EXP_EIGHTH)
    rest = u - a
    for exponent, factor in enumerate(_EXP_FACTORS, -2):
        if bits > exponent:
            y = kl.select((rest & (1 << (15 - bits + exponent))) != 0, product(y, factor), y)
    if bits > 5:
        y = kl.select(a < -(1 << (20 - bits)), 0, y)
    return kl.select(a == 0, ONE, y)


def _reciprocal(a: Value) -> Value:
    total = a + ONE
    half = (total + 1) >> 1
    x = product(half, _32_17) + _48_17
    for _ in range(3):
        error = (1 << 13) - product(half, x)
        x = x + saturated(product(x, error) << 2)
    return x


def _exp_of_absolute(x: Value, bits: int) -> Value:
    return _reciprocal(_exp_on_negatives(-abs(x), bits))


def logistic(x: Value, bits: int) -> Value:
    """1 / (1 + e^-x) of numbers with `bits` integer bits."""
    y = saturated(_exp_of_absolute(x, bits) << 1)
    return kl.select(x == 0, 1 << 14, kl.select(x > 0, y, ONE - y))


def tanh(x: Value, bits: int) -> Value:
    """The hyperbolic tangent of numbers with `bits` integer bits."""
    y = saturated((_exp_of_absolute(x, bits + 1) - (1 << 13)) << 2)
    return kl.select(x == 0, 0, kl.select(x > 0, y, -y))
