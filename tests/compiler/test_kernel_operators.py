"""Operators of the catalogue in kernels on scalars, beyond plain arithmetic: as NumPy has them, at every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.kernel import Kernel
from thorough import THOROUGH, sampled

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 7.0, -7.0, 1e-30, 3e30, -3e30, np.inf, -np.inf, np.nan, 6.0, 88.0]


def numbers(dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind == "i":
        info = np.iinfo(dtype)
        edges = [0, 1, -1, 2, -2, 7, -7, 31, 32, 33, 63, 64, 65, info.min, info.max, info.min + 1]
        return np.array([*edges, *rng.integers(-50, 50, 25)], dtype)
    return np.array([*FLOATS, *rng.standard_normal(24) * 5], dtype)


def run(function: Any, *arrays: np.ndarray) -> np.ndarray:
    @ow.operator(name="KernelOperatorsTest")
    class Owner:
        """For its name alone."""

        x = ow.Input()
        y = ow.Output(like="x")

    return Kernel(function)(Owner.bind({}), *arrays)


def no_zero(function: Any) -> Any:
    """Return a division that yields 0 for an integer divisor of 0."""

    def of(x: Any, y: Any) -> Any:
        if x.dtype.kind != "i":
            return function(x, y)
        return np.where(y == 0, x.dtype.type(0), function(x, np.where(y == 0, x.dtype.type(1), y)))

    return of


def bits(shift: Any) -> Any:
    return lambda x, y: shift(x, np.clip(y, 0, 8 * x.dtype.itemsize - 1))


def truncated(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    quotient = np.abs(x.astype(object)) // np.abs(y.astype(object)) * (np.sign(x).astype(object) * np.sign(y))
    return np.array([int(q) & ((1 << 8 * x.dtype.itemsize) - 1) for q in quotient], f"u{x.itemsize}").view(x.dtype)


REAL, INTEGERS, FLOATING = ("f4", "f8", "i4", "i8"), ("i4", "i8"), ("f4", "f8")
TWO = [
    ("//", lambda x, y: x // y, no_zero(np.floor_divide), REAL),
    ("%", lambda x, y: x % y, no_zero(np.mod), REAL),
    ("truncatediv", lambda x, y: ow.math.truncatediv(x, y), no_zero(truncated), REAL),
    ("truncatemod", lambda x, y: ow.math.truncatemod(x, y), no_zero(np.fmod), REAL),
    ("&", lambda x, y: ow.bitwise.bitwise_and(x, y), np.bitwise_and, INTEGERS),
    ("|", lambda x, y: ow.bitwise.bitwise_or(x, y), np.bitwise_or, INTEGERS),
    ("^", lambda x, y: ow.bitwise.bitwise_xor(x, y), np.bitwise_xor, INTEGERS),
    ("<<", lambda x, y: ow.bitwise.left_shift(x, y), bits(np.left_shift), INTEGERS),
    (">>", lambda x, y: ow.bitwise.right_shift(x, y), bits(np.right_shift), INTEGERS),
    ("squared", lambda x, y: ow.math.squared_difference(x, y), lambda x, y: np.square(x - y), REAL),
]
ONE = [
    ("~", lambda x: ow.bitwise.invert(x), np.invert, INTEGERS),
    ("sign", lambda x: ow.sign(x), np.sign, REAL),
    ("reciprocal", lambda x: ow.math.reciprocal(x), lambda x: 1 / x, FLOATING),
    ("nan", lambda x: ow.math.is_nan(x), np.isnan, FLOATING),
    ("inf", lambda x: ow.math.is_inf(x), np.isinf, FLOATING),
    ("finite", lambda x: ow.math.is_finite(x), np.isfinite, FLOATING),
    ("clip", lambda x: ow.clip_by_value(x, -2, 5), lambda x: np.clip(x, x.dtype.type(-2), x.dtype.type(5)), REAL),
    ("relu6", lambda x: ow.nn.relu6(x), lambda x: np.clip(x, x.dtype.type(0), x.dtype.type(6)), REAL),
    ("leaky", lambda x: ow.nn.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, x / 4), FLOATING),
    ("elu", lambda x: ow.nn.elu(x), lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), FLOATING),
    (
        "selu",
        lambda x: ow.nn.selu(x),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543773 * np.expm1(np.minimum(x, 0))),
        FLOATING,
    ),
    ("softsign", lambda x: ow.nn.softsign(x), lambda x: x / (1 + np.abs(x)), FLOATING),
    ("silu", lambda x: ow.nn.silu(x), lambda x: x / (1 + np.exp(-x)), FLOATING),
]
EXACT = {"//", "%", "truncatemod", "sign", "clip", "reciprocal"}  # the last bit, -0.0 and NaN too


def compare(name: str, actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    assert actual.dtype == expected.dtype or name == "selu"
    if name in EXACT or actual.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        if actual.dtype.kind == "f":
            there = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(actual)[there], np.signbit(expected)[there])
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-6 if dtype == "f4" else 1e-14)


@pytest.mark.parametrize(
    ("name", "kernel", "oracle", "dtype"),
    sampled([(n, k, o, d) for n, k, o, ds in TWO for d in ds], every=4, by=lambda name, *_: name),
)
def test_two_numbers(name: str, kernel: Any, oracle: Any, dtype: str) -> None:
    every = numbers(dtype)
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    with np.errstate(all="ignore"):
        compare(name, run(kernel, x, y), np.asarray(oracle(x, y)), dtype)


@pytest.mark.parametrize(
    ("name", "kernel", "oracle", "dtype"),
    sampled([(n, k, o, d) for n, k, o, ds in ONE for d in ds], every=4, by=lambda name, *_: name),
)
def test_one_number(name: str, kernel: Any, oracle: Any, dtype: str) -> None:
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        compare(name, run(kernel, x), np.asarray(oracle(x)), dtype)


@ow.operator(name="KernelOperatorsMix")
class Mix:
    """Integers mixed, as Python writes it.

    .. math:: z = (x \\oplus x / 4) / y + by (x \\bmod y)
    """

    x = ow.Input((ow.int32, ow.int64))
    y = ow.Input((ow.int32, ow.int64), like="x")
    z = ow.Output(like="x")
    by = ow.Attr(int, default=3)
    gradient = None

    def compute(op, x: Any, y: Any) -> Any:
        y = np.where(y == 0, 1, y).astype(x.dtype)
        mixed = (x ^ (x >> 2)) // y + (x % y) * x.dtype.type(op.by)
        return np.where((x & 1) == 1, ~mixed, mixed | 5)

    @ow.kernel
    def kernel(x: Any, y: Any, *, by: int) -> Any:
        if y == 0:
            y = ow.ones_like(y)
        mixed = (x ^ ow.bitwise.right_shift(x, 2)) // y + x % y * by
        if x & 1 == 1:
            return ~mixed
        return mixed | 5


def test_python_s_own_signs_in_every_way_it_runs() -> None:
    every = numbers("i4")
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    cases = [{"x": x.astype("i8"), "y": y.astype("i8"), "by": -7}, *[{"x": x, "y": y}] * THOROUGH]
    result = ow.testing.check_operator(Mix, cases)
    assert {o.state for o in result if o.check in ("kernel is compute", "compiled")} == {"ok"}
