"""Division and remainders of integers, floored and truncated: all signs, the ends of each dtype, by 0, by -1.

The oracle is Python's integers, wrapped to the dtype. By 0 graphs and files raise an error, `@ow.kernel` returns 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from function_ways import WAYS, NoForm

import opwright as ow
from thorough import crossed

OF_INTEGERS = ("eager", "traced", "jit_of_integers", "kernel", "lite", "lite_compiled")
"""Ways to run: those of all functions, and two of integers alone."""
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def toward_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "floordiv": (ow.math.floordiv, lambda x, y: x // y),
    "floormod": (ow.math.floormod, lambda x, y: x % y),
    "truncatediv": (ow.truncatediv, toward_zero),
    "truncatemod": (ow.truncatemod, lambda x, y: x - toward_zero(x, y) * y),
}


def operands(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of all special numbers, and any, also of numbers next to multiples; no divisor is 0."""
    ends = np.iinfo(dtype)
    usual = (-8, -7, -2, -1, 0, 1, 2, 3, 7, 8)
    special = [v for v in (ends.min, ends.min + 1, *usual, ends.max // 2, ends.max - 1, ends.max) if v >= ends.min]
    pairs = [(x, y) for x in special for y in special if y]
    rng = np.random.default_rng(0)
    x, y = (np.array([p[i] for p in pairs], dtype) for i in (0, 1))
    any_x, any_y = (rng.integers(ends.min, ends.max, 200, dtype=dtype, endpoint=True) for _ in range(2))
    few = rng.integers(1, 100, 200).astype(dtype)
    any_y = np.where(any_y == 0, 1, any_y).astype(dtype)
    near = [
        min(max(int(a) // int(b) * int(b) + int(d), ends.min), ends.max)
        for a, b, d in zip(any_x, few, rng.integers(-1, 2, 200))
    ]
    return np.concatenate([x, any_x, any_x, np.array(near, dtype)]), np.concatenate([y, any_y, few, few])


def in_kernel(function: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    def of_two(x: Any, y: Any) -> Any:
        return function(x, y)

    body = {
        "x": ow.Input(ow.integer),
        "y": ow.Input(ow.integer, like="x"),
        "z": ow.Output(like="x"),
        "elementwise": True,
        "kernel": ow.kernel(of_two),
    }
    try:
        result: np.ndarray = ow.operator(type("InKernel", (), body))(ow.constant(x), ow.constant(y)).numpy()
    except ow.errors.UnimplementedError as error:
        raise NoForm(str(error)) from None
    return result


@pytest.mark.parametrize(("name", "way"), crossed(FUNCTIONS, OF_INTEGERS, every=4))
def test_quotients_and_remainders(name: str, way: str) -> None:
    function, exact = FUNCTIONS[name]
    run = {**WAYS, "kernel": in_kernel, "jit_of_integers": jit_of_integers}[way]
    served = []
    for dtype in DTYPES:
        x, y = operands(dtype)
        wanted = np.array([exact(int(a), int(b)) & (2 ** (8 * x.itemsize) - 1) for a, b in zip(x, y)], np.uint64)
        try:
            found = run(function, x, y)
        except NoForm:
            continue
        served.append(dtype)
        bad = found != wanted.astype(f"u{x.itemsize}").view(x.dtype)
        if way.startswith("lite") and name.startswith("truncate"):  # DIV saturates the one quotient that overflows
            bad &= ~((x == np.iinfo(dtype).min) & (y == -1))
        bad = np.flatnonzero(bad)
        assert not bad.size, [(dtype, int(x[i]), int(y[i]), int(found[i])) for i in bad[:8]]
    assert "int32" in served or (way.startswith("lite") and name.startswith("truncate"))


def jit_of_integers(function: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Among other operators, which integers have."""
    compiled = ow.function(lambda x, y: (function(x, y), x * y, x + y), autograph=False, jit_compile=True)
    result: np.ndarray = compiled(ow.constant(x), ow.constant(y))[0].numpy()
    return result


@pytest.mark.parametrize(("name", "dtype"), crossed(FUNCTIONS, ["int8", "int32", "int64", "uint32"], every=4))
def test_by_zero(name: str, dtype: str) -> None:
    function = FUNCTIONS[name][0]
    x, y = np.array([7, 0, 1, 5], dtype), np.array([2, 0, 1, 0], dtype)
    for way in ("eager", "traced"):
        with pytest.raises(ow.errors.InvalidArgumentError, match="zero"):
            WAYS[way](function, x, y)
    with pytest.raises(ow.errors.InvalidArgumentError):
        jit_of_integers(function, x, y)
    for way in ("lite", "lite_compiled"):
        with pytest.raises((ow.errors.OpError, NoForm)):
            WAYS[way](function, x, y)
    try:
        found = in_kernel(function, x, y)
    except NoForm:
        return
    np.testing.assert_array_equal(found[[1, 3]], [0, 0])


def test_large_quotients_of_floats() -> None:
    """Between 2^20 and 2^28 every whole number counts, and float32 has each of them up to 2^24."""
    rng = np.random.default_rng(1)
    y = rng.uniform(0.5, 9.0, 4000).astype(np.float32) * rng.choice([-1, 1], 4000).astype(np.float32)
    x = (y * np.exp2(rng.uniform(20, 28, 4000))).astype(np.float32)
    exact = np.array([math.trunc(Fraction(float(a)) / Fraction(float(b))) for a, b in zip(x, y)], np.float64)
    for way in ("eager", "traced", "jit", "kernel"):
        np.testing.assert_array_equal(WAYS[way](ow.truncatediv, x, y), exact.astype(np.float32), err_msg=way)
