"""Arithmetic of one element over an array namespace `m`: what processors have in several instructions, or in none.

Lives here: division, powers and shifts of integers; signs, roundings, bounds; what NaN does to a minimum; polynomials.
Not here: the namespaces (numpy_namespace.py, compiler/), functions of analysis (numerics/), activations
(activations.py), which function is called what (table.py).

Integers wrap. Divided by 0 they are 0, and so is what is left: in kernels no element may end the process, and operators
that refuse divisors of 0 look for them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dtypes import int64


def polynomial(m: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """Return coefficients[0] + coefficients[1] x + ..., by Horner's rule."""
    total = m.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = m.fma(total, x, c)
    return total


def is_nan(m: Any, x: Any) -> Any:
    """Return whether a float is NaN, which alone is not itself."""
    return x != x


# ---- division of integers -------------------------------------------------------------------------------------------


def quotient(m: Any, x: Any, y: Any) -> Any:
    """Return x / y rounded toward zero, 0 where y is 0.

    Processors trap on a divisor of 0, and on -1 where the quotient does not fit: they get another divisor there.
    """
    none = y == 0
    if m.type_of(x).is_unsigned:
        found = m.truncated_quotient(x, m.select(none, 1, y))
    else:
        minus = y == -1
        found = m.select(minus, -x, m.truncated_quotient(x, m.select(none | minus, 1, y)))
    return m.select(none, 0, found)


def remainder(m: Any, x: Any, y: Any) -> Any:
    """Return x - y (x / y) with the quotient rounded toward zero: it has the sign of x. 0 where y is 0."""
    return m.select(y == 0, 0, x - quotient(m, x, y) * y)


def unlike_signs(m: Any, rest: Any, y: Any) -> Any:
    """Return whether something is left of a division that has not the divisor's sign."""
    return (rest != 0) & ((rest < 0) != (y < 0))


def floor_quotient(m: Any, x: Any, y: Any) -> Any:
    """Return x / y rounded down, 0 where y is 0."""
    found = quotient(m, x, y)
    if m.type_of(x).is_unsigned:
        return found
    rest = m.select(y == 0, 0, x - found * y)
    return m.select(unlike_signs(m, rest, y), found - 1, found)


def floor_remainder(m: Any, x: Any, y: Any) -> Any:
    """Return x - y (x / y) with the quotient rounded down: it has the sign of y. 0 where y is 0."""
    rest = remainder(m, x, y)
    return rest if m.type_of(x).is_unsigned else m.select(unlike_signs(m, rest, y), rest + y, rest)


# ---- powers and shifts of integers ----------------------------------------------------------------------------------


def integer_power(m: Any, x: Any, y: Any) -> Any:
    """Return x^y by squaring; of y < 0 it is 1 / x^-y rounded toward zero, and 0 of x = 0."""
    dtype = m.type_of(x)
    total, base, rest = m.full_like(x, 1), x, m.maximum(y, 0)
    for _ in range(dtype.size * 8 - 1):
        total = m.select((rest & 1) != 0, total * base, total)
        base, rest = base * base, rest >> 1
    if dtype.is_unsigned:
        return total
    unit = m.select((y & 1) != 0, m.full_like(x, -1), 1)
    below = m.select(x == 1, 1, m.select(x == -1, unit, 0))
    return m.select(y < 0, below, total)


def power_or_least(m: Any, x: Any, y: Any) -> Any:
    """Return x^y of int32, the least int32 where it is beyond them; y is not negative."""
    most = 1 << 31
    base, rest = m.convert(x, int64), y
    total = m.full_like(base, 1)
    for _ in range(31):
        total = m.select((rest & 1) != 0, m.clamp(total * base, -most, most), total)
        base, rest = m.clamp(base * base, -most, most), rest >> 1
    return m.convert(m.select((total >= most) | (total <= -most), -most, total), m.type_of(x))


def _distance(m: Any, x: Any, by: Any) -> Any:
    """The distance of a shift, brought into [0, bits - 1]. source: TensorFlow, left_shift and right_shift"""
    return m.clamp(by, 0, m.type_of(x).size * 8 - 1)


def shift_left(m: Any, x: Any, by: Any) -> Any:
    """Return x 2^by without the bits beyond the dtype, `by` held within [0, bits - 1]."""
    return x << _distance(m, x, by)


def shift_left_or_zero(m: Any, x: Any, by: Any) -> Any:
    """Return x 2^by without the bits beyond the dtype; 0 where `by` is negative, or as many bits or more.

    source: the StableHLO specification, shift_left
    """
    inside = (by >= 0) & (by < m.type_of(x).size * 8)
    return m.select(inside, x << m.select(inside, by, 0), 0)


def shift_right(m: Any, x: Any, by: Any) -> Any:
    """Return x 2^-by rounded down, `by` held within [0, bits - 1]."""
    return x >> _distance(m, x, by)


# ---- signs, roundings, bounds ---------------------------------------------------------------------------------------


def divide(m: Any, x: Any, y: Any) -> Any:
    """Return x / y: of floats by IEEE 754, of integers rounded toward zero."""
    return x / y if m.type_of(x).is_floating else quotient(m, x, y)


def sign(m: Any, x: Any) -> Any:
    """Return -1, 0 or 1; NaN stays, and 0.0 is the sign of both zeros."""
    dtype = m.type_of(x)
    if dtype.is_unsigned:
        return m.minimum(x, 1)
    one = m.full_like(x, 1)
    return m.select(x > 0, one, m.select(x < 0, -one, x + 0.0 if dtype.is_floating else x))


def round_even(m: Any, x: Any) -> Any:
    """Return the nearest whole number, of two the even one; integers as they are."""
    return m.round_even(x) if m.type_of(x).is_floating else x


def round_away(m: Any, x: Any) -> Any:
    """Return the nearest whole number, of two the one away from zero."""
    whole = m.trunc(x)
    return whole + m.select(m.abs(x - whole) >= 0.5, sign(m, x), 0.0)


def squared_difference(m: Any, x: Any, y: Any) -> Any:
    """Return (x - y)^2."""
    difference = x - y
    return difference * difference


def bounded(m: Any, x: Any, low: Any, high: Any) -> Any:
    """Return x within [low, high], low <= high; NaN stays, and of equal zeros x's."""
    return m.minimum(high, m.maximum(low, x))


def ieee_maximum(m: Any, x: Any, y: Any) -> Any:
    """Return the larger of two, NaN where one is. source: IEEE 754-2019, maximum, but for the sign of zeros"""
    found = m.maximum(x, y)  # y where one is NaN
    return m.select(is_nan(m, x), x, found) if m.type_of(x).is_floating else found


def ieee_minimum(m: Any, x: Any, y: Any) -> Any:
    """Return the smaller of two, NaN where one is. source: IEEE 754-2019, minimum, but for the sign of zeros"""
    found = m.minimum(x, y)
    return m.select(is_nan(m, x), x, found) if m.type_of(x).is_floating else found


def clip(m: Any, x: Any, low: Any, high: Any) -> Any:
    """Return max(min(x, high), low), NaN where one is. Of bounds in the wrong order it is `low`."""
    return ieee_maximum(m, ieee_minimum(m, x, high), low)


def divide_no_nan(m: Any, x: Any, y: Any) -> Any:
    """Return x / y, 0 where y is 0."""
    return m.select(y == 0, 0, x / y)


def zero_or_quotient(m: Any, x: Any, y: Any) -> Any:
    """Return x / y, 0 where x is 0."""
    return m.select(x == 0, 0, x / y)
