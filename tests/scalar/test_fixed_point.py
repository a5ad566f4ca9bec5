"""Fixed-point arithmetic: on arrays and in kernels what exact rationals say, and functions as near to the real ones as
their number of bits allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_integers import clamped, nearest, nearest_away, rescaled, spread, wrapped
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.compiler import language as kl
from opwright.compiler.language import i32, i64, ptr
from opwright.compiler.language.compilation import call
from opwright.compiler.target import host
from opwright.core.errors import InvalidArgumentError
from opwright.lite.ops.quantized.fixed_point import finishing, finishing_wide
from opwright.scalar import numpy_namespace
from opwright.scalar.fixed_point import ENTRIES, FixedPoint, FixedPointInt32, multiplier, multipliers, short_multiplier

EVERY_INT16 = np.arange(-(1 << 15), 1 << 15)
NUMBERS = 64
"""Elements of a random array."""


def rescaled_halves_up(x: int, m: int, e: int) -> int:
    high = min(nearest(Fraction((x << max(e, 0)) * m, 1 << 31)), (1 << 31) - 1)
    return nearest(Fraction(high, 1 << max(-e, 0)))


def shifted_left(x: int, e: int) -> int:
    """x, or what of it may be shifted so far within int32."""
    return x >> max(e, 0)


Function = Callable[..., Any]
EXACT: dict[str, tuple[int, Function, Function]] = {
    # name: (width, formula of a, b, e with 0 <= b and -31 <= e <= 20, the same of Python's integers)
    "saturated": (32, lambda f, a, b, e: f.saturated(a * 3), lambda a, b, e: clamped(a * 3, 32)),
    "saturated of 16": (16, lambda f, a, b, e: f.saturated(a * 3), lambda a, b, e: clamped(a * 3, 16)),
    "wrapped": (32, lambda f, a, b, e: f.wrapped(a * 5), lambda a, b, e: wrapped(a * 5, 32)),
    "wrapped of 16": (16, lambda f, a, b, e: f.wrapped(a * 5), lambda a, b, e: wrapped(a * 5, 16)),
    "high_product": (
        32,
        lambda f, a, b, e: f.high_product(a, b),
        lambda a, b, e: clamped(nearest(Fraction(a * b, 1 << 31)), 32),
    ),
    "high_product of a number": (32, lambda f, a, b, e: f.high_product(a, -(1 << 31)), lambda a, b, e: clamped(-a, 32)),
    "high_product of 16": (
        16,
        lambda f, a, b, e: f.high_product(a, -b),
        lambda a, b, e: clamped(nearest(Fraction(-a * b, 1 << 15)), 16),
    ),
    "shifted_right": (32, lambda f, a, b, e: f.shifted_right(a, 7), lambda a, b, e: nearest_away(Fraction(a, 128))),
    "shifted_right by 0": (32, lambda f, a, b, e: f.shifted_right(a, 0), lambda a, b, e: a),
    "shifted_right by many": (
        32,
        lambda f, a, b, e: f.shifted_right(a, f.namespace.maximum(-e, 0)),
        lambda a, b, e: nearest_away(Fraction(a, 1 << max(-e, 0))),
    ),
    "shifted_right of 16": (
        16,
        lambda f, a, b, e: f.shifted_right(a * b, 15),
        lambda a, b, e: nearest_away(Fraction(a * b, 1 << 15)),
    ),
    "rescale": (32, lambda f, a, b, e: f.rescale(a, b, e), rescaled),
    "rescale to the right": (32, lambda f, a, b, e: f.rescale(a, b, -9), lambda a, b, e: rescaled(a, b, -9)),
    "rescale to the left": (32, lambda f, a, b, e: f.rescale(a, b, 4), lambda a, b, e: rescaled(a, b, 4)),
    "rescale by 1 to the left": (32, lambda f, a, b, e: f.rescale(a, b, 1), lambda a, b, e: rescaled(a, b, 1)),
    "rescale_halves_up": (
        32,
        lambda f, a, b, e: f.rescale_halves_up(a >> f.namespace.maximum(e, 0), b, e),
        lambda a, b, e: rescaled_halves_up(shifted_left(a, e), b, e),
    ),
    "rescale_wide": (
        32,
        lambda f, a, b, e: f.rescale_wide(a * 8, b >> 16, f.namespace.minimum(e, 14)),
        lambda a, b, e: nearest(Fraction(a * 8 * (b >> 16), 1 << (15 - min(e, 14)))),
    ),
    "floor_log2": (32, lambda f, a, b, e: f.floor_log2(b), lambda a, b, e: b.bit_length() - 1),
    "leading_zeros": (32, lambda f, a, b, e: f.leading_zeros(b), lambda a, b, e: 32 - b.bit_length()),
}
NEAR: dict[str, tuple[Function, Function, float]] = {
    # name: (formula of b > 0 and of e, as a pair that stands for m 2^k or as a number without integer bits, the real
    # function, its greatest error as a share of the result or, without integer bits, of 1)
    "reciprocal_of_integer": (lambda f, b: f.reciprocal_of_integer(b), lambda b: 1 / b, 2.0**-27),
    "inverse_root": (lambda f, b: f.inverse_root(b), lambda b: 1 / math.sqrt(b), 2.0**-19),
    "exp_on_negatives": (lambda f, b: (f.exp_on_negatives(-b, 5), b * 0), lambda b: math.exp(-b / 2**26), 2.0**-22),
}


@kl.family
def exactly(work, a: ptr[i64], b: ptr[i64], e: ptr[i64], y: ptr[i64], n: i64, *, width: int):
    """An item is a vector; y: a row of n for each formula of a width."""
    dtype = i64 if width == 32 else i32
    lanes, formulas = work.target.vector_bytes // 8, [f for w, f, _ in EXACT.values() if w == width]
    numbers = FixedPointInt32(kl) if width == 32 else FixedPoint(kl, 16)
    for item in work.items():
        at = item * lanes
        given = [p.load(at, lanes).to(dtype) for p in (a, b, e)]
        for row, formula in enumerate(formulas):
            (y + row * n).store(formula(numbers, *given).to(i64), at)


@kl.family
def nearly(work, b: ptr[i64], y: ptr[i64], n: i64, *, lanes: int):
    """As `exactly`: two rows for each formula of NEAR. lanes: 0 for numbers."""
    for item in work.items():
        at = item * max(lanes, 1)
        for row, (formula, _, _) in enumerate(NEAR.values()):
            result, power = formula(FixedPointInt32(kl), b.load(at, lanes))
            (y + 2 * row * n).store(result, at)
            (y + (2 * row + 1) * n).store(kl.value(power).splat(lanes) if lanes else power, at)


def drawn(low: int, high: int) -> Any:
    """Arrays of integers of all sizes within limits, and the limits."""
    return st.lists(st.integers(low, high), min_size=NUMBERS - 2, max_size=NUMBERS - 2).map(
        lambda some: np.array([low, high, *some], np.int64)
    )


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), e=drawn(-31, 20))
def test_roundings_are_exact(seed: int, e: np.ndarray) -> None:
    for width in (32, 16):
        a, b = (
            spread(seed + i, low, (1 << (width - 1)) - 1, NUMBERS) for i, low in enumerate((-(1 << (width - 1)), 1))
        )
        of_width = {name: row for name, row in EXACT.items() if row[0] == width}
        numbers: Any = FixedPointInt32(numpy_namespace) if width == 32 else FixedPoint(numpy_namespace, 16)
        compiled = np.zeros((len(of_width), NUMBERS), np.int64)
        call(exactly.code(width=width), [a, b, e, compiled, NUMBERS], NUMBERS // (host().vector_bytes // 8))
        for (name, (_, formula, exact)), in_kernels in zip(of_width.items(), compiled):
            expected = [exact(int(x), int(y), int(z)) for x, y, z in zip(a, b, e)]
            np.testing.assert_array_equal(formula(numbers, a, b, e), expected, f"{name} on arrays")
            np.testing.assert_array_equal(in_kernels, expected, f"{name} in kernels")


@settings(max_examples=10, deadline=None)
@given(b=drawn(1, (1 << 31) - 1))
def test_functions_of_int32_are_near_the_real_ones(b: np.ndarray) -> None:
    compiled = [np.zeros((len(NEAR), 2, NUMBERS), np.int64) for _ in range(2)]
    for lanes, y in zip((0, host().vector_bytes // 8), compiled):
        call(nearly.code(lanes=lanes), [b, y, NUMBERS], NUMBERS // max(lanes, 1))
    for row, (name, (formula, real, share)) in enumerate(NEAR.items()):
        actual, power = formula(FixedPointInt32(numpy_namespace), b)
        for in_kernels in compiled:
            np.testing.assert_array_equal(in_kernels[row], [actual, power], f"{name} in kernels")
        power = -power if name.startswith("reciprocal") else power
        expected = np.array([real(int(x)) for x in b])
        scale = 1.0 if name.startswith("exp") else expected
        assert np.max(np.abs(np.ldexp(actual.astype(float), power - 31) - expected) / scale) < share, name


OF_INT16: dict[str, tuple[Function, tuple[int, ...], float]] = {
    # name: (the real function, numbers of integer bits, the greatest error)
    "exp_on_negatives": (np.exp, (0, 3, 5, 6), 2.0**-14),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), (3,), 2.0**-12),
    "tanh": (np.tanh, (0, 2, 3, 4, 5, 6), 2.0**-11),
}
ROWS = [(name, bits) for name, (_, each, _) in OF_INT16.items() for bits in each]


@kl.family
def of_every_int16(work, x: ptr[i32], y: ptr[i32], n: i64):
    """An item is a vector; y: a row of n for each of ROWS."""
    lanes = work.lanes(i32)
    for item in work.items():
        v = x.load(item * lanes, lanes)
        for row, (name, bits) in enumerate(ROWS):
            given = kl.minimum(v, 0) if name.startswith("exp") else v
            (y + row * n).store(getattr(FixedPoint(kl, 16), name)(given, bits), item * lanes)


def test_functions_of_every_int16() -> None:
    compiled = np.zeros((len(ROWS), EVERY_INT16.size), np.int32)
    call(
        of_every_int16.code(),
        [EVERY_INT16.astype(np.int32), compiled, EVERY_INT16.size],
        EVERY_INT16.size // (host().vector_bytes // 4),
    )
    for (name, bits), in_kernels in zip(ROWS, compiled):
        given = np.minimum(EVERY_INT16, 0) if name.startswith("exp") else EVERY_INT16
        result = getattr(FixedPoint(numpy_namespace, 16), name)(given, bits)
        np.testing.assert_array_equal(in_kernels, result, f"{name} with {bits} integer bits in kernels")
        real, _, most = OF_INT16[name]
        assert np.max(np.abs(result / 2.0**15 - real(given / 2.0 ** (15 - bits)))) < most, (name, bits)


def test_tables_are_interpolated() -> None:
    """A straight line has its own values between the entries; a leap beyond the width wraps."""
    line = (np.arange(ENTRIES) - ENTRIES // 2) * 64
    result = FixedPoint(numpy_namespace, 16).interpolated(line, EVERY_INT16)
    np.testing.assert_array_equal(result, [nearest(Fraction(int(v), 2)) for v in EVERY_INT16])
    leap = np.where(np.arange(ENTRIES) < ENTRIES // 2, -100, 100)
    result = FixedPoint(numpy_namespace, 8).interpolated(leap, np.array([-128, -64, -1, 0]))
    step = wrapped(200, 8)
    np.testing.assert_array_equal(
        result, [-100, -100 + nearest(Fraction(step * 64, 128)), -100 + nearest(Fraction(step * 127, 128)), 100]
    )


def test_multipliers_are_the_nearest() -> None:
    rng = np.random.default_rng(3)
    reals = np.concatenate(
        [2.0 ** rng.uniform(-31, 30, 200), [1.0, 0.5, np.nextafter(1.0, 0.0), np.nextafter(2.0, 0.0)]]
    )
    for real in map(float, reals):
        m, e = multiplier(real)
        assert 1 << 30 <= m < 1 << 31
        assert abs(Fraction(m) * Fraction(2) ** (e - 31) - Fraction(real)) <= Fraction(2) ** (e - 32), real
        short = int(short_multiplier(m))
        assert short < 1 << 15
        assert abs(Fraction(short, 1 << 15) - Fraction(m, 1 << 31)) <= Fraction(
            1, 1 << (16 if short < (1 << 15) - 1 else 15)
        )
    assert multiplier(2.0**-33) == multiplier(0.0) == (0, 0)
    result = multipliers(reals)
    np.testing.assert_array_equal(result, np.transpose([multiplier(float(r)) for r in reals]))
    assert [n.shape for n in multipliers([0.5])] == [(), ()]
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(InvalidArgumentError, match="scales that make no multiplier"):
            multiplier(wrong)


def test_what_is_done_in_place_is_the_formula() -> None:
    """The forms that NumPy kernels take for speed, with a number or a vector for what they multiply by."""
    rng = np.random.default_rng(4)
    one = FixedPointInt32(numpy_namespace)
    for reals in ([0.3], [7.0], [2.0**-9, 0.7, 1e-6, 0.1], [2.0**-9, 3.0, 1e-6, 0.1]):
        m, e = multipliers(reals)
        bias = rng.integers(-1000, 1000, 4)
        x = rng.integers(-(1 << 20), 1 << 20, (50, 4))
        held = x + bias
        expected = np.clip(one.rescale(held, m, e) + 3, -900, 1000)
        np.testing.assert_array_equal(finishing(m, e, bias, 3, -900, 1000)(x.copy()), expected)
        wide = np.clip(one.rescale_wide(held, short_multiplier(m), e) + 3, -900, 1000)
        np.testing.assert_array_equal(finishing_wide(m, e, bias, 3, -900, 1000)(x.copy()), wide)
