"""Fixed-point arithmetic of quantised kernels, on NumPy arrays: multipliers, rescaling, rounding, exp and reciprocal.

Lives here: what every integer kernel shares.  Not here: lookup tables (tables.py), the kernels themselves.

Integers are int64 arrays that hold int32 values unless said otherwise; a multiplier is a pair (m, e): m * 2^(e - 31).
`rescale` and its like were checked, bit for bit, against the official reference kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ..parts import BLOCK

_BELOW_HALF = {np.dtype(t): np.nextafter(t(0.5), t(0)) for t in (np.float32, np.float64)}


def round_away(x: Any) -> Any:
    """Floats to the nearest integer, halves away from zero."""
    return np.trunc(x + np.copysign(_BELOW_HALF[x.dtype], x))


def multiplier(real: float) -> tuple[int, int]:
    """The (m, e) nearest to a factor of at least 0, with 2^30 <= m < 2^31; (0, 0) below 2^-32.

    raises InvalidArgumentError for a factor that is negative or not finite
    """
    if not math.isfinite(real) or real < 0:
        raise InvalidArgumentError(what="scales that make no multiplier", found=real,
                                   wanted="positive, finite scales")  # fmt: skip
    fraction, e = math.frexp(real)
    m = math.floor(fraction * (1 << 31) + 0.5)
    if m == 1 << 31:
        m, e = m // 2, e + 1
    return (0, 0) if e < -31 or m == 0 else (m, e)


def multipliers(reals: Any) -> tuple[np.ndarray, np.ndarray]:
    """`multiplier` of each element of a vector, as two vectors (scalars where the vector has one element)."""
    m, e = zip(*(multiplier(float(r)) for r in np.atleast_1d(reals)))
    shape = (len(m),) if len(m) > 1 else ()
    return np.array(m, np.int64).reshape(shape), np.array(e, np.int64).reshape(shape)


def exact_float(most: int) -> Any:
    """The narrowest float in which integers up to |most|, and so sums that stay below it, are exact."""
    return np.float32 if most <= 1 << 24 else np.float64


def wrapped(x: Any) -> Any:
    """int64 as 32-bit arithmetic would have it."""
    return x.astype(np.int32).astype(np.int64)


def high_product(a: Any, b: Any) -> Any:
    """SRDHM: a b / 2^31 to the nearest, halves up; the one overflow gives the greatest int32."""
    return np.minimum((a * b + (1 << 30)) >> 31, 2**31 - 1)


def shifted_right(x: Any, n: Any) -> Any:
    """RDBP: x / 2^n to the nearest, halves away from zero. n: one number, or an array."""
    if isinstance(n, (int, np.integer)):
        return x if n == 0 else (x + (1 << (int(n) - 1)) + (x >> 63)) >> n
    out = x + (np.left_shift(1, n) >> 1)
    out += x >> 63 if (n > 0).all() else np.where(n > 0, x >> 63, 0)
    out >>= n
    return out


def rescale(x: Any, m: Any, e: Any) -> Any:
    """MBQM: x m 2^(e - 31) as gemmlowp has it: shifted left, product rounded, shifted right and rounded again."""
    left, right = np.minimum(np.maximum(e, 0), 62), np.maximum(-e, 0)
    if left.any() if isinstance(left, np.ndarray) else left:
        x = wrapped(np.left_shift(x, left))
    y = x * m
    y += 1 << 30
    y >>= 31
    return shifted_right(y, int(right) if np.ndim(right) == 0 else right)


def finishing(m: Any, e: Any, bias: Any, zero_point: int, low: int, high: int) -> Callable[[Any], Any]:
    """clamp(rescale(x + bias, m, e) + zero_point) of int64 arrays [..., n], which are overwritten.

    m, e, bias: numbers or vectors of n. What does not depend on x is added up before: of `rescale`, the halves.
    """
    left, right = np.minimum(np.maximum(e, 0), 62), np.maximum(-e, 0)
    shifts = left.any()
    offset = (1 << 30) + (0 if shifts else np.asarray(bias, np.int64) * m)
    half = (np.left_shift(1, right) >> 1) + np.left_shift(zero_point, right)
    some, every = (right > 0).any(), (right > 0).all()

    def finish(x: Any) -> Any:
        if shifts:
            x += bias
            x = wrapped(np.left_shift(x, left))
        x *= m
        x += offset
        x >>= 31
        if some:
            x += x >> 63 if every else np.where(right > 0, x >> 63, 0)
        x += half
        x >>= right
        return np.clip(x, low, high, out=x)

    return finish


def finishing_wide(m: Any, e: Any, bias: Any, zero_point: int, low: int, high: int) -> Callable[[Any], Any]:
    """As `finishing`, with `rescale_wide`."""
    return lambda x: np.clip(rescale_wide(x + bias, m, e) + zero_point, low, high)


def by_rows(finish: Callable[[Any], Any], sums: Any, dtype: Any) -> Any:
    """`finish` of an array [..., n], some rows at a time; its results, which fit, as `dtype`."""
    rows = sums.reshape(-1, sums.shape[-1])
    if rows.size <= BLOCK:
        return finish(rows).reshape(sums.shape)
    out, step = np.empty(rows.shape, dtype), max(1, BLOCK // sums.shape[-1])
    for first in range(0, len(rows), step):
        np.copyto(out[first : first + step], finish(rows[first : first + step]), casting="unsafe")
    return out.reshape(sums.shape)


def rescale_wide(x: Any, m: Any, e: Any) -> Any:
    """MBQM_64: int64 accumulators times the multiplier reduced to 16 bits, rounded once."""
    short = np.where(m < 0x7FFF0000, (m + (1 << 15)) >> 16, 0x7FFF)
    shift = np.minimum(15 - e, 62)
    return (x * short + np.left_shift(1, np.maximum(shift - 1, 0))) >> np.maximum(shift, 0)


def exp_on_negatives(a: Any) -> Any:
    """e^a for a <= 0 in Q5.26, as Q0.31: a polynomial on [-1/4, 0), then a factor for each higher bit."""
    u = (a & ((1 << 24) - 1)) - (1 << 24)
    y = (u << 5) + (1 << 28)
    y2 = high_product(y, y)
    y3, y4 = high_product(y2, y), high_product(y2, y2)
    p = shifted_right(high_product(shifted_right(y4, 2) + y3, _ONE_THIRD) + y2, 1)
    r = _EXP_EIGHTH + high_product(np.int64(_EXP_EIGHTH), y + p)
    rest = u - a
    for bit, factor in enumerate(_EXP_FACTORS, 24):
        r = np.where(rest & (1 << bit), high_product(r, np.int64(factor)), r)
    return np.where(a == 0, 2**31 - 1, r)


_ONE_THIRD, _EXP_EIGHTH = 715827883, 1895147668  # 1/3 and e^(-1/8) in Q0.31
_EXP_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # e^(-2^k), k = -2..4


def leading_zeros(x: Any) -> Any:
    """Leading zero bits of positive int32 values."""
    return 31 - np.floor(np.log2(x.astype(np.float64))).astype(np.int64)  # exact: doubles hold them, log2 is monotone


def inverse_root(x: Any) -> tuple[Any, Any]:
    """(m, e) with m 2^(e - 31) = 1 / sqrt(x) for int32 x >= 0 (0 counts as 1): five steps of Newton in Q3.28."""
    x = np.maximum(x, 1)
    small = x <= 1
    shift = np.full(x.shape, 11, np.int64)
    for _ in range(2):
        large = x >= 1 << 29
        x, shift = np.where(large, x >> 2, x), shift + large
    pairs = (leading_zeros(x) - 1) // 2 - 1
    shift = shift - pairs
    scaled = np.where(small, 1 << 28, np.left_shift(x, 2 * np.maximum(pairs, 0))) >> 1
    half = shifted_right(scaled, 1)
    root = np.full(x.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = saturated(high_product(high_product(root, root), root) << 6)
        difference = high_product(np.int64((1 << 28) + (1 << 27)), root) - high_product(half, cube)
        root = saturated(difference << 3)
    root = high_product(root, np.int64(1518500250))  # sqrt(1/2)
    root = np.left_shift(root, np.maximum(-shift, 0))
    return np.where(small, 2**31 - 1, root), np.where(small, 0, -np.maximum(shift, 0))


def saturated(x: Any) -> Any:
    """Within int32."""
    return np.clip(x, -(2**31), 2**31 - 1)


def reciprocal_of(s: Any) -> tuple[Any, Any]:
    """(R, k) for integers S > 0: 1 / S is R in Q0.31 times 2^-k."""
    r, k = reciprocal(s)
    return r, k + 19


def reciprocal(s: Any) -> tuple[Any, Any]:
    """(R, k) for S > 0 in Q12.19: 1 / S is R in Q0.31 times 2^-k; three steps of Newton on 1 / (1 + x)."""
    h = leading_zeros(s)
    w = np.left_shift(s, h) - (1 << 31)
    half = (w + (1 << 31)) >> 1
    x = 1515870810 + high_product(half, np.int64(-1010580540))
    for _ in range(3):
        error = (1 << 29) - high_product(half, x)
        x = x + saturated(high_product(x, error) << 2)
    return saturated(x << 1), 12 - h
