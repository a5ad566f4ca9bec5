"""Activations in float32 alone: how far they are from float64, and what they are at the ends."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lane_kit import compiled, fast_functions

from opwright.compiler import language as kl
from opwright.compiler.language import f32, i64, ptr
from opwright.scalar import table
from opwright.scalar.numerics import single

_erfc = np.vectorize(math.erfc, otypes=[float])
_erf = np.vectorize(math.erf, otypes=[float])

FUNCTIONS = fast_functions()
# name: (in float64, at inf, at -inf)
TABLE: dict[str, tuple[Callable[[np.ndarray], Any], float, float]] = {
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 1.0, 0.0),
    "silu": (lambda x: x / (1 + np.exp(-x)), math.inf, math.nan),
    "sin": (np.sin, math.nan, math.nan),
    "cos": (np.cos, math.nan, math.nan),
    "tanh": (np.tanh, 1.0, -1.0),
    "elu": (lambda x: np.where(x < 0, np.expm1(x), x), math.inf, -1.0),
    "erf": (_erf, 1.0, -1.0),
    "erfc": (_erfc, 0.0, 2.0),
    "gelu": (lambda x: x * _erfc(-x / math.sqrt(2)) / 2, math.inf, math.nan),
    "gelu_tanh": (lambda x: x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), math.inf, math.nan),
}
SMALL = 2e-36


def allowed(name: str, x: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How far the fast code may be from the exact value, as its row says."""
    row = table.FUNCTIONS[name]
    near, far = row.fast_error
    return np.abs(expected) * np.where(np.abs(x) <= 6, near, far) + row.argument_error * np.abs(x) + SMALL


def test_every_function_is_here_or_in_the_test_of_its_whole_range() -> None:
    assert set(TABLE) | {"exp"} | RELAXED == set(FUNCTIONS)


RELAXED = {"log"}
"""Whose fast code is that of `fast_math`, which test_fast_math.py has."""


def numbers() -> np.ndarray:
    rng = np.random.default_rng(0)
    n = 1 << 13
    usual = [
        rng.uniform(-90, 90, n),
        rng.uniform(-14, 14, n),
        rng.standard_normal(n),
        np.exp(rng.uniform(-60, 3, n)) * rng.choice([1, -1], n),
        rng.integers(-2607, 2608, n) * (math.pi / 2),  # where sin and cos are least, and beyond 2^12
        rng.uniform(-1e5, 1e5, n),
    ]
    return np.concatenate(usual).astype(np.float32)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_near_float64_and_right_at_the_ends(name: str) -> None:
    oracle, high, low = TABLE[name]
    x = numbers()
    actual = {width: compiled(FUNCTIONS[name], 1, width)(x) for width in (0, 4, 16)}
    with np.errstate(over="ignore"):
        expected = oracle(x.astype(np.float64))
    gap = np.abs(actual[0] - expected) / allowed(name, x, expected)
    worst = int(np.argmax(gap))
    assert gap[worst] <= 1, (x[worst], actual[0][worst], expected[worst])
    for width in (4, 16):  # the same bits wherever an element is
        np.testing.assert_array_equal(actual[width].view(np.int32), actual[0].view(np.int32))
    edges = np.array([math.inf, -math.inf, math.nan, 0.0, -0.0], np.float32)
    at_zero = {"sigmoid": 0.5, "erfc": 1.0, "cos": 1.0}.get(name, 0.0)
    found_there = compiled(FUNCTIONS[name], 1, 0)(edges)
    np.testing.assert_allclose(found_there, [high, low, math.nan, at_zero, at_zero], rtol=1e-7, atol=SMALL)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_nan_stays_nan(name: str) -> None:
    """Whatever its sign and payload: a NaN that x86 makes itself is negative, those of files are any."""
    payloads = np.random.default_rng(1).integers(1, 1 << 23, 512, np.uint32) | np.uint32(0x7F800000)
    x = np.concatenate([payloads, payloads | np.uint32(1 << 31)]).view(np.float32)
    for width in (0, 4, 16):
        assert np.isnan(compiled(FUNCTIONS[name], 1, width)(x)).all(), width


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_gelu_ends_in_its_argument_and_in_zero(name: str) -> None:
    """With a fused multiply-add and, on the generic target, without; its sign is its argument's everywhere."""
    bits = np.arange(0, 0x7F800000, 0x800F, np.uint32)
    x = np.concatenate([bits, bits | np.uint32(1 << 31), np.arange(0x40900000, 0x40C00000, 17, np.uint32)])
    x = x[: x.size // 16 * 16].view(np.float32)
    x = np.concatenate([x, -x])
    here = np.empty_like(x)
    kl.call(vectors.code(name=name, count=16), [x, here, x.size], items=1)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = TABLE[name][0](x.astype(np.float64))
    for y in (here, compiled(FUNCTIONS[name], 1, 16)(x)):
        far = np.abs(x) > 5.5
        np.testing.assert_array_equal(y[far], np.where(x > 0, x, np.float32(-0.0))[far])
        np.testing.assert_array_equal(np.signbit(y), np.signbit(x))
        assert (np.abs(y - expected)[~far] <= allowed(name, x, expected)[~far]).all()


@kl.family
def vectors(work, x: ptr[f32], y: ptr[f32], n: i64, *, name: str, count: int):
    for _ in work.items():
        for i in range(0, n, count):
            y.store(FUNCTIONS[name](x.load(i, count)), i)


@pytest.mark.parametrize("count", [8, 16, 64])
@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu_tanh"])
def test_in_kernels_with_instructions_of_their_own(name: str, count: int) -> None:
    oracle, high, low = TABLE[name]
    x = numbers()
    x = x[: x.size // 64 * 64]
    x[:16] = np.resize(np.array([math.inf, -math.inf, math.nan, 3e38, -3e38, 0.0, -0.0], np.float32), 16)
    y = np.empty_like(x)
    kl.call(vectors.code(name=name, count=count), [x, y, x.size], items=1)
    expected = oracle(x[16:].astype(np.float64))
    assert (np.abs(y[16:] - expected) <= allowed(name, x[16:], expected)).all()
    np.testing.assert_allclose(y[[0, 2, 3]], [high, math.nan, 1.0 if name == "sigmoid" else 3e38], rtol=1e-6)
    np.testing.assert_allclose(y[[1, 4]], [low, 0.0], atol=SMALL)


@pytest.mark.parametrize("count", [4, 16, 64])
def test_exp_over_all_of_its_range(count: int) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            [
                math.inf,
                -math.inf,
                math.nan,
                0.0,
                -0.0,
                88.72,
                88.73,
                3e38,
                -3e38,
                -87.4,
                -103.9,
                -104.1,
                1e-45,
                -1e-45,
                1.0,
                -1.0,
            ],
            rng.uniform(-104, 89, 4096),
            rng.uniform(-1, 1, 4144),
        ]
    )
    x = x.astype(np.float32)
    y = np.empty_like(x)
    kl.call(vectors.code(name="exp", count=count), [x, y, x.size], items=1)
    with np.errstate(over="ignore"):
        expected = np.exp(x.astype(np.float64))
        near = expected.astype(np.float32)
    ends = ~np.isfinite(near)
    np.testing.assert_array_equal(y[ends], near[ends])
    gap = np.abs(y[~ends] - expected[~ends]) / np.spacing(np.maximum(near[~ends], np.float32(1e-45)))
    assert gap.max() <= 2


@pytest.mark.parametrize("width", [0, 4, 16])
def test_exp_of_numbers_that_are_not_positive(width: int) -> None:
    """With a fused multiply-add and, on the generic target, without."""
    rng = np.random.default_rng(2)
    x = np.concatenate([[-math.inf, math.nan, 0.0, -0.0, -87.3, -88.0, -104.0, -3e38], -rng.uniform(0, 87.3, 8184)])
    x = x.astype(np.float32)
    y = compiled(functools.partial(kl.apply, single.exp_nonpositive), 1, width)(x)
    expected = np.exp(x.astype(np.float64))
    assert math.isnan(y[1])
    assert (y[[0, 6, 7]] == 0).all()
    x[1] = y[1] = expected[1] = 1.0
    assert (np.abs(y - expected) <= 2e-7 * expected + 1.2e-38).all()


@pytest.mark.parametrize("width", [0, 4, 16])
def test_exp_without_fused_multiply_add(width: int) -> None:
    x = np.random.default_rng(3).uniform(-87, 88, 8192).astype(np.float32)
    y = compiled(FUNCTIONS["exp"], 1, width)(x)
    expected = np.exp(x.astype(np.float64))
    assert (np.abs(y - expected) <= table.FUNCTIONS["exp"].fast_error[0] * expected).all()
