"""Mathematical functions on lanes: within 1 unit in the last place of the exact value, over all float32; ends as in C.

Oracles: the C library in float64 (which is far nearer than half a unit of float32), and mpmath for that oracle itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import make_polynomials
import mpmath as mp
import numpy as np
import pytest
from lane_kit import compiled, exact_functions

from opwright.scalar import table

FUNCTIONS = exact_functions()
INF, NAN = math.inf, math.nan
SPECIAL = np.float32(
    [
        0.0,
        -0.0,
        1,
        -1,
        0.5,
        -0.5,
        2,
        -2,
        3,
        -3,
        0.25,
        1e-45,
        -1e-45,
        1e-39,
        -1e-39,
        2**-126,
        3.4028235e38,
        -3.4028235e38,
        2**28,
        -(2**28),
        2**28 - 32,
        88.72283,
        88.7229,
        -87.33655,
        -103.97208,
        -103.98,
        16777216,
        16777217,
        INF,
        -INF,
        NAN,
    ]
)

_erfc = np.vectorize(math.erfc, otypes=[float])


def _gelu(x: Any) -> Any:
    return 0.5 * x * _erfc(-x / math.sqrt(2))


ORACLES: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {  # in float64; in mpmath
    "acos": (np.arccos, mp.acos),
    "acosh": (np.arccosh, mp.acosh),
    "asin": (np.arcsin, mp.asin),
    "asinh": (np.arcsinh, mp.asinh),
    "atan": (np.arctan, mp.atan),
    "atan2": (np.arctan2, mp.atan2),
    "atanh": (np.arctanh, mp.atanh),
    "cos": (np.cos, mp.cos),
    "cosh": (np.cosh, mp.cosh),
    "erf": (np.vectorize(math.erf, otypes=[float]), mp.erf),
    "erfc": (_erfc, mp.erfc),
    "exp": (np.exp, mp.exp),
    "expm1": (np.expm1, mp.expm1),
    "gelu": (_gelu, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2),
    "log": (np.log, mp.log),
    "log1p": (np.log1p, mp.log1p),
    "pow": (np.power, mp.power),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mp.exp(-x))),
    "sin": (np.sin, mp.sin),
    "sinh": (np.sinh, mp.sinh),
    "softplus": (lambda x: np.logaddexp(0, x), lambda x: mp.log1p(mp.exp(x))),
    "tan": (np.tan, mp.tan),
    "tanh": (np.tanh, mp.tanh),
}
TWO = ("atan2", "pow")
WIDTHS = (0, 4, 16)


def patterns(count: int) -> np.ndarray:
    """float32 numbers evenly over all bit patterns, a random one of each stretch, and the special ones."""
    rng = np.random.default_rng(None if os.environ.get("OPWRIGHT_EXPLORE") == "1" else 0)
    stretch = (1 << 32) // count
    bits = np.arange(count, dtype=np.uint64) * stretch + rng.integers(0, stretch, count).astype(np.uint64)
    result = bits.astype(np.uint32).view(np.float32)  # NaNs of all kinds, too
    result[: SPECIAL.size] = SPECIAL
    return result


def operands(name: str, count: int) -> list[np.ndarray]:
    if name not in TWO:
        return [patterns(count)]
    rng, n = np.random.default_rng(1), SPECIAL.size
    pair = [np.repeat(SPECIAL, n), np.tile(SPECIAL, n)]
    usual = [np.exp(rng.uniform(-40, 40, count)) * rng.choice([1, -1], count), rng.uniform(-4, 4, count)]
    whole = [usual[0], np.rint(usual[1])]
    any_ = [rng.permutation(patterns(count)), rng.permutation(patterns(count))]
    with np.errstate(invalid="ignore"):
        joined = [np.concatenate(parts).astype(np.float32) for parts in zip(pair, usual, whole, any_)]
    return [a[: a.size // 16 * 16] for a in joined]  # whole vectors


def ulps(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far off, in units in the last place of the exact value; inf where one is no number or no finite one."""
    rounded = exact.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(rounded), np.float32(2.0**-126))).astype(np.float64)
    gap = np.abs(result.astype(np.float64) - exact) / np.where(np.isfinite(unit), unit, 2.0**104)
    ends = ~np.isfinite(rounded) | ~np.isfinite(result)
    equal = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    beyond = np.isfinite(exact) & (gap <= 1.0)  # rounding to inf or to the greatest number, on the edge
    return np.where(ends, np.where(equal | beyond, 0.0, np.inf), gap)


def test_every_function_has_an_oracle() -> None:
    assert set(ORACLES) == set(FUNCTIONS)


def check(name: str, count: int) -> None:
    arrays = operands(name, count)
    actual = {width: compiled(FUNCTIONS[name], len(arrays), width)(*arrays) for width in WIDTHS}
    with np.errstate(all="ignore"):
        expected = ORACLES[name][0](*(a.astype(np.float64) for a in arrays))
        gap = ulps(actual[0], expected)
    worst = int(np.argmax(gap))
    assert gap[worst] <= table.FUNCTIONS[name].exact_ulps, (
        [a[worst] for a in arrays],
        actual[0][worst],
        expected[worst],
    )
    zero = (expected == 0) & (actual[0] == 0)
    assert (np.signbit(actual[0]) == np.signbit(expected))[zero].all()
    for width in WIDTHS[1:]:  # the same bits wherever an element is
        np.testing.assert_array_equal(actual[width].view(np.int32), actual[0].view(np.int32))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_within_one_unit_in_the_last_place(name: str) -> None:
    check(name, 1 << 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_within_one_unit_in_the_last_place_of_many(name: str) -> None:
    check(name, 1 << 22)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_oracle_itself_is_near_mpmath(name: str) -> None:
    rng = np.random.default_rng(2)
    xs = rng.uniform(0.01, 0.99, 60).astype(np.float32).astype(np.float64)
    xs = xs + 1 if name == "acosh" else xs
    if name in ("sin", "cos", "tan"):
        far = patterns(256)
        xs = np.concatenate([xs, far[np.isfinite(far)].astype(np.float64)])
    pairs = [(x, 1.7) if name in TWO else (x,) for x in xs.tolist()]
    in_float64, exact = ORACLES[name]
    assert exact is not None
    with mp.workdps(80), np.errstate(all="ignore"):
        for pair in pairs:
            expected, actual = exact(*(mp.mpf(v) for v in pair)), float(in_float64(*map(np.float64, pair)))
            assert abs(actual - expected) <= abs(expected) * 1e-14, (pair, actual, expected)


def test_the_polynomials_are_those_of_their_script() -> None:
    assert make_polynomials.TARGET.read_text("utf-8") == make_polynomials.text()
