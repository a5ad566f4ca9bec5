"""Fixed-point arithmetic over an array namespace, and the quantization of real numbers to integers.

Lives here: `FixedPoint`, of any width: products, rounding shifts, exp, logistic, tanh, tables; `FixedPointInt32`, the
functions that need 32 bits; `interpolation_table`. Scales and zero points of ranges: `symmetric_steps`,
`asymmetric_steps` (of dynamic quantization), `nudged` (of quantization-aware training); `multiplier` and its like,
factors as integers; `array_round_away` and `finite_round_away`, faster forms of formulas.round_away.
Not here: loops over rows (lite/ops/quantized/hybrid.py, compiler/kernels/quantization.py), the arithmetic of
layers (fixed_point_layers.py).

A number of `width` bits with k integer bits is raw / 2^(width - 1 - k): a sign, k bits, then the fraction, written
Qk.(width - 1 - k) in the literature. The formulas are bit-identical to gemmlowp's fixedpoint.h.

A row of reals between lo <= 0 and hi >= 0 is quantized to integers q:

    symmetric   r = max(hi, -lo), scale = r / 127, q = round(x * (127 / r)), zero = 0
    asymmetric  step = float64(hi - lo) / 255, scale = float32(step)
                zero = round(-128 - lo / step), or round(127 - hi / step) where 128 + |lo / step| is not the smaller sum
                q = round(x * (1 / scale)) + zero

within [-127, 127] and [-128, 127], halves away from zero. Source: LiteRT,
kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from .namespace import Element, Namespace

Values = TypeVar("Values", bound="Element")

SYMMETRIC = -127, 127
"""The quantized range of symmetric quantization, with zero point 0."""
ASYMMETRIC = -128, 127


def symmetric_steps(m: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return scale and inverse scale of float32 between low <= 0 and high >= 0. For all zeros: 1 and 0."""
    bound, largest = m.maximum(high, -low), float(SYMMETRIC[1])
    some = low != high
    return m.select(some, bound / largest, 1.0), m.select(some, largest / m.select(some, bound, 1.0), 0.0)


def asymmetric_steps(m: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Return scale, inverse scale and zero point of float32, computed in float64 from the range, a float32. For all
    zeros: 1, 1, 0."""
    smallest, largest = map(float, ASYMMETRIC)
    below, above = m.convert(low, m.f64), m.convert(high, m.f64)
    step = m.select(below != above, m.convert(high - low, m.f64) / (largest - smallest), 1.0)
    below, above = below / step, above / step
    exact = m.clamp(m.select(-smallest - below < largest + above, smallest - below, largest - above), smallest, largest)
    scale = m.convert(step, m.f32)
    return scale, 1.0 / scale, m.convert(m.select(below != above, finite_round_away(m, exact), 0.0), m.f32)


def nudged(
    low: Any,
    high: Any,
    smallest: Any,
    largest: Any,
    clip: Callable[..., Any] = np.clip,
    floor: Callable[..., Any] = np.floor,
) -> tuple[Any, Any, Any]:
    """Return the scale of a range for integers in [smallest, largest], and its ends nudged so that 0 is exact.

    low < high: arrays, or with other functions tensors
    """
    scale = (high - low) / (largest - smallest)
    zero = floor(clip(smallest - low / scale, smallest, largest) + 0.5)
    return scale, (smallest - zero) * scale, (largest - zero) * scale


def multiplier(real: float) -> tuple[int, int]:
    """Return the (m, e) nearest to a factor of at least 0; (0, 0) below 2^-32.

    raises InvalidArgumentError for a factor that is negative or not finite
    """
    m, e = multipliers(real)
    return int(m), int(e)


def multipliers(reals: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return `multiplier` of each element of a vector, as two vectors (scalars if it has one element)."""
    factors = np.atleast_1d(np.asarray(reals, np.float64))
    wrong = ~np.isfinite(factors) | (factors < 0)
    if wrong.any():
        found = float(factors[wrong][0])
        raise InvalidArgumentError(what="scales that make no multiplier", found=found, wanted="positive, finite scales")
    fractions, exponents = np.frexp(factors)
    m, e = np.floor(fractions * (1 << 31) + 0.5).astype(np.int64), exponents.astype(np.int64)
    full = m == 1 << 31
    m, e = np.where(full, m >> 1, m), e + full
    none = (e < -31) | (m == 0)
    m, e = np.where(none, 0, m), np.where(none, 0, e)
    return (m, e) if len(m) > 1 else (m.reshape(()), e.reshape(()))


def log2_of_scale(scale: float) -> int | None:
    """Return the exponent of a scale that is a power of two within 0.1 %, as official kernels do; None for others."""
    exponent = math.log2(scale) if scale > 0 else 0.5
    return round(exponent) if abs(exponent - round(exponent)) < 1e-3 else None


def short_multiplier(m: Any) -> Any:
    """Return the 31 bits of m rounded to 15, so that its product with an int32 has 47: m 2^-31 is about short 2^-15."""
    return np.minimum((m + (1 << 15)) >> 16, (1 << 15) - 1)


_BELOW_HALF = {np.dtype(t): np.nextafter(t(0.5), t(0)) for t in (np.float32, np.float64)}


def array_round_away(x: np.ndarray) -> np.ndarray:
    """Compute `round_away` of arrays of float32 or float64."""
    result: np.ndarray = np.trunc(x + np.copysign(_BELOW_HALF[x.dtype], x))
    return result


def finite_round_away(m: Namespace[Values], x: Values) -> Values:
    """Compute `round_away` of a finite float, with fewer instructions."""
    truncated = m.trunc(x)
    return truncated + m.trunc((x - truncated) * 2.0)


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


class FixedPoint(Generic[Values]):
    """Fixed-point arithmetic on `width` bits, stored in integers at least twice as wide, over an array namespace."""

    def __init__(self, namespace: Namespace[Values], width: int) -> None:
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

    def saturated(self, x: Values) -> Values:
        """Saturate to the width."""
        return self.namespace.clamp(x, self.least, self.greatest)

    def wrapped(self, x: Values) -> Values:
        """Wrap to the width."""
        spare = 8 * self.namespace.type_of(x).size - self.width
        return (x << spare) >> spare

    def high_product(self, a: Values, b: Values | int) -> Values:
        """Compute SRDHM: a b / 2^(width - 1), rounded half up; the one overflow saturates."""
        product = a * b + (1 << (self.width - 2))
        return self.namespace.minimum(product >> (self.width - 1), self.greatest)

    def shifted_right(self, x: Values, n: Values | int) -> Values:
        """Compute RDBP: x / 2^n, rounded half away from zero. n: a Python number, or int64."""
        m = self.namespace
        sign = x >> (8 * m.type_of(x).size - 1)
        if isinstance(n, int):
            return x if n == 0 else (x + (1 << (n - 1)) + sign) >> n
        return (x + ((m.value(1) << n) >> 1) + (sign & -m.convert(n > 0, m.i64))) >> n

    # ---- functions ----------------------------------------------------------------------------------------------

    def exp_on_negatives(self, a: Values, integer_bits: int) -> Values:
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

    def reciprocal_of_half(self, a: Values) -> Values:
        """Compute 2 / (1 + a) for 0 <= a <= 1, with two integer bits, by Newton's method."""
        half = (a + (self.one + 1)) >> 1
        start, slope = self.line
        x = self.high_product(half, slope) + start
        for _ in range(_NEWTON_STEPS):
            error = (1 << (self.width - 3)) - self.high_product(half, x)
            x = x + self.saturated(self.high_product(x, error) << 2)
        return x

    def reciprocal_of_sum(self, a: Values) -> Values:
        """Compute 1 / (1 + a) for 0 <= a <= 1."""
        return self.saturated(self.reciprocal_of_half(a) << 1)

    def logistic(self, x: Values, integer_bits: int) -> Values:
        """Compute 1 / (1 + e^-x)."""
        m = self.namespace
        y = self.reciprocal_of_sum(self.exp_on_negatives(-m.abs(x), integer_bits))
        return m.select(x == 0, 1 << (self.width - 2), m.select(x > 0, y, self.one - y))

    def tanh(self, x: Values, integer_bits: int) -> Values:
        """Compute the hyperbolic tangent: 2 / (1 + e^-2|x|) - 1."""
        m = self.namespace
        twice = self.reciprocal_of_half(self.exp_on_negatives(-m.abs(x), integer_bits + 1))
        y = self.saturated((twice - (1 << (self.width - 3))) << 2)
        return m.select(x == 0, 0, m.select(x > 0, y, -y))

    def interpolated(self, table: Any, v: Values) -> Values:
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


class FixedPointInt32(FixedPoint[Values]):
    """Arithmetic on int32, held as int64."""

    def __init__(self, namespace: Namespace[Values]) -> None:
        super().__init__(namespace, 32)

    # ---- by multipliers -----------------------------------------------------------------------------------------

    def rescale(self, x: Values, factor: Values | int, e: Values | int) -> Values:
        """Compute MBQM: x m 2^(e - 31), by a left shift, which wraps, a rounded product and a rounding right shift.

        factor: m; e: a Python number, or int64
        """
        m = self.namespace
        if isinstance(e, int | np.integer):
            left = min(int(e), MOST_LEFT)
            x = self.wrapped(x << left) if left > 0 else x
            return self.shifted_right((x * factor + (1 << 30)) >> 31, max(-int(e), 0))
        shift, right = m.clamp(e, 0, MOST_LEFT), m.maximum(-e, 0)
        return self.shifted_right((self.wrapped(x << shift) * factor + (1 << 30)) >> 31, right)

    def rescale_halves_up(self, x: Values, factor: Values | int, e: Values | int) -> Values:
        """Compute `rescale` as the official run time's matrix library: saturating, the last shift rounds half up."""
        m = self.namespace
        exponent = m.value(e)
        right = m.maximum(-exponent, 0)
        product = self.high_product(x << m.clamp(exponent, 0, MOST_LEFT), factor)
        return (product + ((m.value(1) << right) >> 1)) >> right

    def rescale_wide(self, x: Values, short: Values | int, e: Values | int) -> Values:
        """Compute MBQM_64: 64-bit sums times a short multiplier, short 2^(e - 15), rounded once, halves up."""
        m = self.namespace
        shift = m.minimum(15 - e, MOST_LEFT)
        half = m.value(1) << m.maximum(shift - 1, 0)
        return (x * short + half) >> m.maximum(shift, 0)

    # ---- functions ----------------------------------------------------------------------------------------------

    def floor_log2(self, x: Values) -> Values:
        """Return floor(log2(x)) for x > 0: the exponent of x in float64, which represents it exactly."""
        m = self.namespace
        return (m.bitcast(m.convert(x, m.f64), m.i64) >> 52) - 1023

    def leading_zeros(self, x: Values) -> Values:
        """Count the leading zeros of 32 bits, x > 0."""
        return 31 - self.floor_log2(x)

    def reciprocal(self, x: Values) -> tuple[Values, Values]:
        """Compute (R, k) for a number x > 0 with 12 integer bits: 1 / x is R, without integer bits, times 2^-k."""
        zeros = self.leading_zeros(x)
        return self.reciprocal_of_sum((x << zeros) - (1 << 31)), 12 - zeros

    def reciprocal_of_integer(self, x: Values) -> tuple[Values, Values]:
        """Compute (R, k) for an integer x > 0: 1 / x is R, without integer bits, times 2^-k."""
        r, k = self.reciprocal(x)
        return r, k + 19

    def inverse_root(self, x: Values) -> tuple[Values, Values]:
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
