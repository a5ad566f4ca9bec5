"""Integer rules of arithmetic. Element by element: ADD to SQUARED_DIFFERENCE and comparisons, which broadcast; ABS,
EXP, LOG, SQRT, RSQRT. Over axes: MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN.

Lives here: these rules.
Not here: MAXIMUM and MINIMUM, which move integers unchanged; activations (activation.py); which axes there are
(lite/ops/reduction.py).

ADD, SUB: both inputs are rescaled to twice the greater of their scales, with L additional bits, added and rescaled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ....scalar.fixed_point import array_round_away as round_away
from ....scalar.fixed_point import multiplier, short_multiplier
from ..elementwise import check_nonzero
from ..reduction import axes_of
from .activation import real_of, single, tabled, wide_tabled
from .fixed_point import INT16, INT32, Function, finishing, tabulated
from .operand import Operand, check_same, check_scaled, check_symmetric, check_types, fused_bounds, quantize_real

TYPES = ("INT8 INT8 INT8", "UINT8 UINT8 UINT8", "INT16 INT16 INT16")
HEADROOM = {"INT8": 20, "UINT8": 20, "INT16": 15}  # L: bits that inputs of ADD and SUB are shifted left
REDUCED_TYPES = ("INT8 INT8", "UINT8 UINT8", "INT16 INT16")
_Pair = Callable[[Any, Any], Any]


def _checked(op: Any, types: tuple[str, ...], *operands: Operand) -> str:
    kind = check_types(op, types, *operands)
    check_scaled(*operands)
    if kind == "INT16":
        check_symmetric(*operands)
    return kind


def add(op: Any, x: Operand, y: Operand, z: Operand) -> _Pair:
    return _sum(op, x, y, z, np.add)


def subtract(op: Any, x: Operand, y: Operand, z: Operand) -> _Pair:
    return _sum(op, x, y, z, np.subtract)


def _sum(op: Any, x: Operand, y: Operand, z: Operand, combine: Any) -> _Pair:
    kind = _checked(op, TYPES, x, y, z)
    low, high = fused_bounds(op.fused_activation_function, z)
    if kind == "INT16" and op.pot_scale_int16:
        px, py, pz = x.log2_scale, y.log2_scale, z.log2_scale
        if px is not None and py is not None and pz is not None:
            return _by_shifts(z, [x.scale, y.scale, z.scale], pz - px, pz - py, combine, low, high)
    bits = HEADROOM[kind]
    twice = float(2 * max(x.scale, y.scale))
    mx, ex = multiplier(float(x.scale) / twice)
    my, ey = multiplier(float(y.scale) / twice)
    mz, ez = multiplier(twice / float(np.float32(1 << bits) * z.scale))
    if combine is np.add and ez > 0:
        raise z.wrong(
            "has too small a scale for the sum of such inputs", float(z.scale), wanted="a larger scale of the output"
        )

    left, right = _lifted(x, bits, mx, ex), _lifted(y, bits, my, ey)
    finish = finishing(mz, ez, 0, z.zero_point, low, high)
    return lambda a, b: finish(np.asarray(combine(left(a), right(b))))


def _lifted(o: Operand, bits: int, m: int, e: int) -> Callable[[Any], Any]:
    """Return a function that subtracts the zero point, shifts left by `bits` and rescales."""
    return tabulated(lambda q: INT32.rescale(o.centred(q) << bits, m, e), o)


def _by_shifts(z: Operand, scales: list[Any], nx: int, ny: int, combine: Any, low: int, high: int) -> _Pair:
    """Return the sum of int16 whose scales are powers of two: inputs of smaller scale are shifted by nx and ny bits."""
    if min(nx, ny) < 0 or max(nx, ny) > 30 or (nx and ny):
        raise z.wrong(
            "has a scale that neither input has",
            [float(scale) for scale in scales],
            "the greater of the inputs' scales, or pot_scale_int16=False",
        )

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = combine(INT32.shifted_right(a.astype(np.int64), nx), INT32.shifted_right(b.astype(np.int64), ny))
        result: np.ndarray = np.clip(total, low, high)
        return result

    return run


def multiply(op: Any, x: Operand, y: Operand, z: Operand) -> _Pair:
    """Multiply; outputs of int16 inputs may have 8 bits and a zero point.

    The official kernel of that case assumes scales of numbers below 1: z represents 2^23 times the product of x and y.
    Other scales are computed as specified.
    """
    kind = check_types(op, (*TYPES, "INT16 INT16 INT8", "INT16 INT16 UINT8"), x, y, z)
    check_scaled(x, y, z)
    if kind == "INT16":
        check_symmetric(x, y, *([z] if z.type == kind else []))
    m, e = multiplier(float(x.scale * y.scale / z.scale))
    low, high = fused_bounds(op.fused_activation_function, z)

    finish = finishing(m, e, 0, z.zero_point, low, high)

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = finish(np.asarray(x.centred(a) * y.centred(b)))
        return result

    def run_below_one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        product = INT16.high_product(a.astype(np.int64), b.astype(np.int64))
        return z.saturated(INT32.shifted_right(product, 8), low, high)

    return run_below_one if z.type != kind and (m, e) == (1 << 30, -22) else run


def divide(op: Any, x: Operand, y: Operand, z: Operand) -> Callable[..., Any]:
    """Multiply by the reciprocal of the divisor in fixed point."""
    check_types(op, TYPES, x, y, z)
    check_scaled(x, y, z)
    m, e = multiplier(float(x.scale / (y.scale * z.scale)))
    low, high = fused_bounds(op.fused_activation_function, z)

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        numerator, denominator = x.centred(a), y.centred(b)
        check_nonzero(denominator)
        numerator, denominator = np.where(denominator < 0, -numerator, numerator), np.abs(denominator)
        inverse, shift = INT32.reciprocal_of_integer(denominator)
        headroom = INT32.leading_zeros(np.maximum(np.where(numerator < 0, ~numerator, numerator), 1)) - 1
        headroom = np.where((numerator == 0) | (numerator == -1), 31, headroom)
        quotient = INT32.high_product(np.left_shift(numerator, headroom), inverse)
        exponent = e - shift - headroom
        quotient = INT32.saturated(np.left_shift(quotient, np.clip(exponent, 0, 31)))  # officially it wraps
        return z.saturated(INT32.rescale(quotient, m, np.minimum(exponent, 0)), low, high)

    return run


def squared_difference(op: Any, x: Operand, y: Operand, z: Operand) -> Callable[..., Any]:
    _checked(op, ("INT8 INT8 INT8",), x, y, z)
    bits = 7
    twice = 2.0 * float(max(x.scale, y.scale))
    mx, ex = multiplier(float(x.scale) / twice)
    my, ey = multiplier(float(y.scale) / twice)
    mz, ez = multiplier(twice * twice / float(np.float32(1 << (2 * bits)) * z.scale))

    left, right = _lifted(x, bits, mx, ex), _lifted(y, bits, my, ey)
    finish = finishing(mz, ez, 0, z.zero_point, z.low, z.high)
    return lambda a, b: finish(np.asarray(np.square(left(a) - right(b))))


def _comparison(compare: Any, raw: tuple[str, ...] = ()) -> Callable[..., _Pair]:
    """Return the rule of a comparison in fixed point with 8 additional bits; types in `raw` compare integers."""

    def rule(op: Any, x: Operand, y: Operand, z: Operand) -> _Pair:
        kind = check_types(op, ("INT8 INT8 BOOL", "UINT8 UINT8 BOOL", "INT16 INT16 BOOL"), x, y, z)
        check_scaled(x, y)
        if kind in raw:
            result: _Pair = compare
            return result
        left = _lifted(x, 8, *multiplier(float(x.scale)))
        right = _lifted(y, 8, *multiplier(float(y.scale)))
        return lambda a, b: compare(left(a), right(b))

    return rule


equal, not_equal = _comparison(np.equal), _comparison(np.not_equal)
less, less_equal = _comparison(np.less, ("INT16",)), _comparison(np.less_equal, ("INT16",))
greater, greater_equal = _comparison(np.greater, ("INT16",)), _comparison(np.greater_equal, ("INT16",))


_exp = tabled(np.exp)
_log = tabled(lambda v: np.where(v > 0, np.log(v), -np.inf))


def absolute(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    check_scaled(x, y)
    m, e = multiplier(float(x.scale / y.scale))

    def run(q: np.ndarray) -> np.ndarray:
        v = np.abs(x.centred(q))
        return y.saturated(v if x.scale == y.scale else INT32.rescale(v, m, e))

    return run


def exp(op: Any, x: Operand, y: Operand) -> Function:
    kind = check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    return _exp(x, y) if kind == "INT8" else wide_tabled(single(np.exp))(x, y)


def log(op: Any, x: Operand, y: Operand) -> Function:
    kind = check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    lowest = np.float32(real_of(y, y.low))  # what has no logarithm
    return _log(x, y) if kind == "INT8" else wide_tabled(lambda v: np.where(v > 0, single(np.log)(v), lowest))(x, y)


def _not_negative(x: Operand, q: Any, name: str) -> None:
    if q.size and int(q.min()) < x.zero_point:
        raise InvalidArgumentError(
            what=f"{name} is only defined for positive values",
            found=int(q.min()),
            wanted=f"integers from the zero point, {x.zero_point}, on",
        )


def rsqrt(op: Any, x: Operand, y: Operand) -> Function:
    """Compute 1 / sqrt(x) in fixed point, of int16 by table; for 0 return the greatest output."""
    if check_types(op, ("INT8 INT8", "INT16 INT16"), x, y) == "INT16":
        greatest = np.float32(real_of(y, y.high))
        wide = wide_tabled(lambda v: np.where(v > 0, np.float32(1) / np.sqrt(v), greatest))(x, y)

        def run_wide(q: np.ndarray) -> np.ndarray:
            _not_negative(x, q, "Rsqrt")
            result: np.ndarray = wide(q)
            return result

        return run_wide
    check_scaled(x, y)
    bits = 20  # that keep 1 / sqrt(q) an integer
    m, e = multiplier(1.0 / (math.sqrt(float(x.scale)) * float(y.scale)))

    def run(q: np.ndarray) -> np.ndarray:
        _not_negative(x, q, "Rsqrt")
        v = x.centred(q)
        root, shift = INT32.inverse_root(np.maximum(v, 1))
        inverse = INT32.rescale(INT32.rescale(np.ones_like(v), root, shift + bits), m, e - bits)
        return np.clip(np.where(v == 0, y.high, inverse + y.zero_point), y.low, y.high)

    return run


def sqrt(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """Compute sqrt(x) in float32, truncated."""
    check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    check_scaled(x, y)

    def run(q: np.ndarray) -> np.ndarray:
        _not_negative(x, q, "Sqrt")
        v = x.centred(q, np.float32)
        return np.clip(np.trunc(np.sqrt(x.scale * v) / y.scale) + np.float32(y.zero_point), y.low, y.high)

    return run


def _count(q: Any, axes: tuple[int, ...]) -> int:
    return math.prod(q.shape[a] for a in axes)


def _checked_reduction(op: Any, x: Operand, y: Operand, types: tuple[str, ...] = REDUCED_TYPES) -> None:
    if check_types(op, types, x, y) == "INT16":
        check_symmetric(x, y)
    check_scaled(x, y)


def _centred_sum(op: Any, x: Operand, q: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    result: np.ndarray = q.sum(axes, keepdims=op.keep_dims, dtype=np.int64) - x.zero_point * _count(q, axes)
    return result


def mean(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    """Rescale the sum by a multiplier that is divided by the number of elements."""
    _checked_reduction(op, x, y)
    m, e = multiplier(float(x.scale) / float(y.scale))

    @functools.lru_cache(maxsize=8)
    def divided(n: int) -> tuple[int, int]:
        if n == 0:
            return 0, 0
        shift = max(min(n.bit_length() - 1, 32, 31 + e), 0)
        return (m << shift) // n, e - shift

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        over = axes_of(a.reshape(-1).tolist(), q.ndim)
        total = _centred_sum(op, x, q, over)
        return y.saturated(INT32.rescale(total, *divided(_count(q, over))))

    return run


def reduce_sum(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    """Sum in float32, as the official kernels do (not in fixed point): round(sum s_x / s_y - z_x n s_x / s_y) + z_y."""
    _checked_reduction(op, x, y)
    scale = x.scale / y.scale

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        over = axes_of(a.reshape(-1).tolist(), q.ndim)
        total = np.asarray(q.sum(over, keepdims=op.keep_dims, dtype=np.int64)).astype(np.float32)
        real = total * scale + np.float32(-x.zero_point) * scale * np.float32(_count(q, over))
        return y.saturated(round_away(real).astype(np.float64))

    return run


def reduce_prod(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    """Multiply the elements one by one, rescaling after each so that the product remains an int32."""
    _checked_reduction(op, x, y, ("INT8 INT8", "INT16 INT16"))

    @functools.lru_cache(maxsize=8)
    def root(n: int) -> tuple[int, int]:
        m, e = multiplier(float(x.scale) / float(y.scale) ** (1.0 / max(n, 1)))
        return short_multiplier(m), e

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        over = axes_of(a.reshape(-1).tolist(), q.ndim)
        remaining = [i for i in range(q.ndim) if i not in over]
        n = _count(q, over)
        shape = (
            [1 if i in over else d for i, d in enumerate(q.shape)] if op.keep_dims else [q.shape[i] for i in remaining]
        )
        if n == 0:
            return np.full(shape, np.clip(quantize_real(1.0, y), y.low, y.high))
        rows = x.centred(q).transpose([*over, *remaining]).reshape(n, -1)
        factor = root(n)
        product, zero_stays = rows[0], not INT32.rescale_wide(np.zeros(1, np.int64), *factor).any()
        for i, row in enumerate(rows[1:]):
            if zero_stays and i % 64 == 0 and not product.any():  # as after few of many factors below 1
                break
            product = INT32.wrapped(INT32.rescale_wide(product * row, *factor))
        return y.saturated(INT32.rescale_wide(product, *factor)).reshape(shape)

    return run


def _reduce_raw(op: Any, x: Operand, axes: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, REDUCED_TYPES, x, y)
    check_scaled(x, y)
    check_same(x, y)
    result: Callable[..., Any] = op.reference
    return result


reduce_max = reduce_min = _reduce_raw
