"""`fast_math` off and on: what stays right at the ends, how far results may be, and that switching takes effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.core import flag_effects, flags

INF, NAN = np.inf, np.nan
EDGES = [
    0.0,
    -0.0,
    INF,
    -INF,
    NAN,
    1.0,
    -1.0,
    1e-45,
    -1e-45,
    1e-40,
    2.0**-126,
    3.4e38,
    -3.4e38,
    88.72283,
    88.7229,
    88.73,
    -87.34,
    -103.97,
    -103.98,
    -104.5,
    -150.0,
    0.5,
    0.624,
    0.626,
    9.01,
    20.0,
    -20.0,
]


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


FUNCTIONS: list[tuple[str, Callable[..., Any], Callable[..., Any], float]] = [  # ours, in float64, most ulp when on
    ("exp", lambda x: ow.exp(x), np.exp, 2.0),
    ("log", lambda x: ow.math.log(x), np.log, 2.0),
    ("tanh", lambda x: ow.tanh(x), np.tanh, 2.0),
    ("sigmoid", lambda x: ow.sigmoid(x), sigmoid, 4.0),
]


def compiled(function: Any, arity: int = 1) -> Any:
    """An operator that has `function` as its compiled kernel."""
    floats = (ow.float32, ow.float64)
    inputs = {"x": ow.Input(dtypes=floats), "y": ow.Input(dtypes=floats, like="x")}
    if arity == 1:
        del inputs["y"]

    def one(op: Any, x: Any) -> Any:
        raise AssertionError("the kernel computes")

    def two(op: Any, x: Any, y: Any) -> Any:
        raise AssertionError("the kernel computes")

    body = {
        **inputs,
        "z": ow.Output(like="x"),
        "elementwise": True,
        "compute": one if arity == 1 else two,
        "kernel": ow.kernel(function),
        "gradient": None,
    }
    return ow.operator(type("Staged", (), {"__doc__": ".. math:: z = f(x)", **body}))


def run(function: Any, *arrays: Any, fast: bool) -> np.ndarray:
    with ow.flags(fast_math=fast):
        if len(arrays) == 1:
            return compiled(lambda x: function(x))(*map(ow.constant, arrays)).numpy()
        return compiled(lambda x, y: function(x, y), 2)(*map(ow.constant, arrays)).numpy()


def ulps(result: np.ndarray, exact: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        want = exact.astype(result.dtype)
    ends = ~np.isfinite(want) | ~np.isfinite(result)
    np.testing.assert_array_equal(result[ends], want[ends])
    return float((np.abs(result[~ends].astype(np.float64) - exact[~ends]) / np.spacing(np.abs(want[~ends]))).max())


def test_it_is_off_and_listed() -> None:
    assert flags.fast_math is flags.tune is flags.cuda_deterministic is False
    assert {c.flag for c in flag_effects.FLAG_EFFECTS} == {"deterministic", "cuda_deterministic", "fast_math"}
    assert all(c.what and c.off and c.on and c.where for c in flag_effects.FLAG_EFFECTS)
    assert any("pow" in c.what for c in flag_effects.of("fast_math"))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("name", "function", "exact", "bound"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
def test_functions_are_near_float64_and_right_at_the_ends(
    name: Any, function: Any, exact: Any, bound: Any, fast: Any
) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [
            EDGES,
            rng.uniform(-104, 89, 50000),
            rng.standard_normal(50000),
            10.0 ** rng.uniform(-44, 38, 50000),
            -(10.0 ** rng.uniform(-44, 2, 5000)),
        ]
    ).astype(np.float32)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64))
    result = run(function, x, fast=fast)
    assert ulps(result, want) <= (bound if fast else 4.0)
    if name == "tanh":
        there = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(result[there]), np.signbit(want[there]))
        assert np.abs(result[np.abs(x) > 9.02]).min() == 1.0


@pytest.mark.parametrize("fast", [False, True])
def test_no_instruction_depends_on_where_an_element_lies(fast: bool) -> None:
    """The vector loop and the loop of what is left over give the same bits."""
    x = np.random.default_rng(2).uniform(-10, 10, 67).astype(np.float32)
    for _, function, _, _ in FUNCTIONS:
        with np.errstate(all="ignore"):
            whole = run(function, x, fast=fast)
            np.testing.assert_array_equal(run(function, np.roll(x, 5), fast=fast), np.roll(whole, 5))


POW = [
    (-2.0, 2.0, 4.0),
    (-3.0, 3.0, -27.0),
    (-2.0, 0.5, NAN),
    (-2.0, 1.5, NAN),
    (0.0, 0.0, 1.0),
    (NAN, 0.0, 1.0),
    (1.0, NAN, 1.0),
    (2.0, -1.0, 0.5),
    (-INF, 3.0, -INF),
    (-INF, 0.5, INF),
    (0.0, -1.0, INF),
    (-0.0, -1.0, -INF),
    (10.0, 39.0, INF),
    (10.0, -46.0, 0.0),
    (-1.0, INF, 1.0),
    (-8.0, 1 / 3, NAN),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fast", [False, True])
def test_pow_is_the_c_librarys_either_way(fast: bool, dtype: Any) -> None:
    x, y, want = (np.array(column, dtype) for column in zip(*POW))
    if dtype is np.float64:
        x, y, want = (a[(np.array(POW)[:, 0] != 10.0)] for a in (x, y, want))
    np.testing.assert_array_equal(run(lambda a, b: ow.pow(a, b), x, y, fast=fast), want)
    squares = run(lambda a: ow.pow(a, 2.0), x, fast=fast)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(squares, x * x)
        np.testing.assert_array_equal(
            np.isnan(run(lambda a: ow.pow(a, 0.5), x, fast=fast)), np.isnan(x) | ((x < 0) & np.isfinite(x))
        )


@pytest.mark.parametrize("fast", [False, True])
def test_nan_and_infinities_are_never_assumed_away(fast: bool) -> None:
    x = np.array([NAN, INF, -INF, 0.0, 1.0], np.float32)
    rows = [
        (lambda v: v - v, [NAN, NAN, NAN, 0, 0]),
        (lambda v: v * 0.0, [NAN, NAN, NAN, 0, 0]),
        (lambda v: v / v, [NAN, NAN, NAN, NAN, 1]),
        (lambda v: v + 1.0 - 1.0, [NAN, INF, -INF, 0, 1]),
        (lambda v: ow.maximum(v, 0.0), [NAN, INF, 0, 0, 1]),
        (lambda v: ow.where(v != v, 7.0, v), [7, INF, -INF, 0, 1]),
        (lambda v: 1.0 / v, [NAN, 0, 0, INF, 1]),
    ]
    for function, want in rows:
        np.testing.assert_array_equal(run(function, x, fast=fast), np.array(want, np.float32))


def test_sums_may_be_regrouped_and_stay_within_their_bound() -> None:
    x = np.random.default_rng(9).uniform(0.5, 2.0, 1000).astype(np.float32)

    def poly(v: Any) -> Any:
        return ((v * 0.3 + 0.7) * v + 1.1) * v / 3.0

    exact = ((x.astype(np.float64) * np.float32(0.3) + np.float32(0.7)) * x + np.float32(1.1)) * x / 3.0
    for fast in (False, True):
        assert ulps(run(poly, x, fast=fast), exact) <= 4.0


def test_switching_takes_effect_on_a_kernel_that_is_compiled() -> None:
    op = compiled(lambda x: ow.exp(x))
    x = np.random.default_rng(1).uniform(-5, 5, 20000).astype(np.float32)
    exact = op(ow.constant(x)).numpy()
    with ow.flags(fast_math=True):
        fast = op(ow.constant(x)).numpy()
        source = op.kernel_rule.source(op.bind({}), "float32")
        assert "double" not in source
    assert "double" in op.kernel_rule.source(op.bind({}), "float32")  # exact ones are computed in float64
    assert (exact != fast).any()
    np.testing.assert_array_equal(op(ow.constant(x)).numpy(), exact)
    f = ow.function(op)
    f(ow.constant(x))
    with ow.flags(fast_math=True):
        np.testing.assert_array_equal(f(ow.constant(x)).numpy(), fast)


def test_float64_functions_are_the_same_bits() -> None:
    x = np.random.default_rng(4).uniform(-5, 5, 1000)
    for _, function, _, _ in FUNCTIONS[:3]:
        np.testing.assert_array_equal(run(function, x, fast=True), run(function, x, fast=False))
