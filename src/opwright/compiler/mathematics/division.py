"""Division with a whole quotient: truncated and floored, of floats and integers, and what is left.

Lives here: `divided` (integers), `remainder`, `floor_remainder`, `floor_quotient`, `truncated_quotient`.
Not here: the operators that use them (../lowering.py, ../kernels/expression.py).

Remainders of floats are exact, as C's fmod. By 0 an integer's quotient and remainder are 0, a float's remainder NaN.
"""

from __future__ import annotations

from ..lanes import F32, F64, Lanes, absolute, copysign, fma, select, truncate

_EXACT = 2.0**28  # float64 has the product of a smaller quotient and a float32 exactly, fused or not
_STEPS = tuple(range(270, -1, -27))  # a quotient of float32 is below 2^277: each step removes 27 bits


def divided(x: Lanes, y: Lanes, unsigned: bool = False) -> tuple[Lanes, Lanes]:
    """Quotient toward zero of integers, which wraps, and remainder; both are 0 where the divisor is.

    Processors trap on a divisor of 0, and where the quotient does not fit: they get another divisor there.
    """
    none = y == 0
    if unsigned:
        quotient = Lanes(x.b, x.b.udiv(x.x, select(none, 1, y).x))
    else:
        minus = y == -1
        quotient = Lanes(x.b, x.b.sdiv(x.x, select(none | minus, 1, y).x))
        quotient = select(minus, -x, quotient)
    return select(none, 0, quotient), select(none, 0, x - quotient * y)


def remainder(x: Lanes, y: Lanes) -> Lanes:
    """x - y trunc(x / y), with the sign of x."""
    if not x.is_float:
        return divided(x, y)[1]
    if x.kind != F32:
        return Lanes(x.b, x.b.frem(x.x, y.x))
    a, b = x.to(F64), y.to(F64)
    quotient = a / b
    left = _step(truncate(quotient), a, b)
    size = absolute(quotient)
    left = _large(a, b, left, (size >= _EXACT) & (size < float("inf")))
    left = select(absolute(b) == float("inf"), a + a * 0.0, left)
    return copysign(left, a).to(F32)


def _step(quotient: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """a - quotient b, exact; where the quotient was rounded up to a whole number, |b| more toward a's sign."""
    left = fma(-quotient, b, a)
    return select((left != 0.0) & ((left < 0.0) != (a < 0.0)), left + copysign(absolute(b), a), left)


def _large(a: Lanes, b: Lanes, left: Lanes, large: Lanes) -> Lanes:
    """`left`, and in large lanes the remainder of long division; the branch is taken where there are any."""
    builder = left.b
    entry = builder.block
    with builder.if_then(large.any(), likely=False):
        rest = select(large, a, 0.0)
        for bits in _STEPS:
            divisor = select(large, b * 2.0**bits, 1.0)
            rest = _step(truncate(rest / divisor), rest, divisor)
        found = select(large, rest, left)
        end = builder.block
    merged = builder.phi(left.x.type)
    merged.add_incoming(left.x, entry)
    merged.add_incoming(found.x, end)
    return Lanes(builder, merged)


def floor_remainder(x: Lanes, y: Lanes) -> Lanes:
    """x - y floor(x / y), with the sign of y; a zero of floats has it too."""
    left = remainder(x, y)
    found = select(_unlike(left, y), left + y, left)
    return select(left == 0.0, copysign(left, y), found) if x.is_float else found


def floor_quotient(x: Lanes, y: Lanes) -> Lanes:
    """floor(x / y). Of floats the quotient is computed from the exact remainder, so that x is nearly y z + mod.

    source: Python and NumPy, floor_divide
    """
    if not x.is_float:
        quotient, left = divided(x, y)
        return select(_unlike(left, y), quotient - 1, quotient)
    left = remainder(x, y)
    quotient = (x - left) / y
    quotient = select(_unlike(left, y), quotient - 1.0, quotient)
    return select(y == 0.0, x / y, _whole(quotient, x, y))


def truncated_quotient(x: Lanes, y: Lanes) -> Lanes:
    """trunc(x / y). Of floats as `floor_quotient`; where x is infinite, or y 0, x / y."""
    if not x.is_float:
        return divided(x, y)[0]
    quotient = x / y
    near = _whole((x - remainder(x, y)) / y, x, y)
    return select((absolute(quotient) < float("inf")) & (absolute(y) < float("inf")), near, truncate(quotient))


def _whole(quotient: Lanes, x: Lanes, y: Lanes) -> Lanes:
    """The whole number that a quotient is but for rounding; a zero has the sign of x / y."""
    whole = quotient.intrinsic("floor")
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    return select(quotient == 0.0, copysign(x.full(0.0), x / y), whole)


def _unlike(left: Lanes, y: Lanes) -> Lanes:
    """Where something is left that has not the divisor's sign."""
    return (left != 0) & ((left < 0) != (y < 0))
