"""Division of floats with integral quotients: truncated and floored quotients, and their remainders.

Lives here: `remainder`, `floor_remainder`, `floor_quotient`, `truncated_quotient`, of float32 and float64.
Not here: division of integers (../formulas.py).

Remainders are exact, as C's fmod; by 0 they are NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.dtypes import float32, float64
from ..formulas import unlike_signs

if TYPE_CHECKING:
    from ..namespace import MathNamespace, Values

_EXACT = 2.0**28  # float64 has the product of a smaller quotient and a float32 exactly, fused or not
_STEPS = tuple(range(270, -1, -27))  # a quotient of float32 is below 2^277: each step removes 27 bits


def remainder(m: MathNamespace[Values], x: Values, y: Values) -> Values:
    """Compute x - y trunc(x / y), with the sign of x."""
    if m.type_of(x) is float64:
        return m.float_remainder(x, y)
    a, b = m.convert(x, float64), m.convert(y, float64)
    quotient = a / b
    left = _step(m, m.trunc(quotient), a, b)
    size = m.abs(quotient)
    large = (size >= _EXACT) & (size < float("inf"))
    left = m.where_any(large, lambda: m.select(large, _long_division(m, a, b, large), left), left)
    left = m.select(m.abs(b) == float("inf"), a + a * 0.0, left)
    return m.convert(m.copysign(left, a), float32)


def _step(m: MathNamespace[Values], quotient: Values, a: Values, b: Values) -> Values:
    """Compute a - quotient b exactly; if the quotient was rounded up to an integer, add |b| toward a's sign."""
    left = m.fma(-quotient, b, a)
    return m.select((left != 0.0) & ((left < 0.0) != (a < 0.0)), left + m.copysign(m.abs(b), a), left)


def _long_division(m: MathNamespace[Values], a: Values, b: Values, large: Values) -> Values:
    """Compute the remainder of large lanes; other lanes are undefined."""
    dividend = m.select(large, a, 0.0)
    for bits in _STEPS:
        divisor = m.select(large, b * 2.0**bits, 1.0)
        dividend = _step(m, m.trunc(dividend / divisor), dividend, divisor)
    return dividend


def floor_remainder(m: MathNamespace[Values], x: Values, y: Values) -> Values:
    """Compute x - y floor(x / y), with the sign of y; a zero of floats has it too."""
    left = remainder(m, x, y)
    adjusted = m.select(unlike_signs(m, left, y), left + y, left)
    return m.select(left == 0.0, m.copysign(left, y), adjusted)


def floor_quotient(m: MathNamespace[Values], x: Values, y: Values) -> Values:
    """Compute floor(x / y) from the exact remainder, so that x is nearly y z + mod.

    source: Python and NumPy, floor_divide
    """
    left = remainder(m, x, y)
    quotient = (x - left) / y
    quotient = m.select(unlike_signs(m, left, y), quotient - 1.0, quotient)
    return m.select(y == 0.0, x / y, _whole(m, quotient, x, y))


def truncated_quotient(m: MathNamespace[Values], x: Values, y: Values) -> Values:
    """Return trunc(x / y): of float32 from the quotient in float64, of float64 as `floor_quotient`."""
    if m.type_of(x) is not float64:
        return m.convert(m.trunc(m.convert(x, float64) / m.convert(y, float64)), float32)
    quotient = x / y
    near = _whole(m, (x - remainder(m, x, y)) / y, x, y)
    return m.select((m.abs(quotient) < float("inf")) & (m.abs(y) < float("inf")), near, m.trunc(quotient))


def _whole(m: MathNamespace[Values], quotient: Values, x: Values, y: Values) -> Values:
    """Round a quotient to the integer that it is but for rounding errors; a zero has the sign of x / y."""
    rounded = m.floor(quotient)
    rounded = m.select(quotient - rounded > 0.5, rounded + 1.0, rounded)
    return m.select(quotient == 0.0, m.copysign(m.full_like(x, 0.0), x / y), rounded)
