"""Special functions as kernels: against the C library, Python's statistics and NumPy, at the ends of their pieces."""

import math
import statistics

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.special_functions import special
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import SpecialFunction
from opwright.core.dtypes import bfloat16, float32
from opwright.ops.math import special_arrays

RNG = np.random.default_rng(8)
ENDS = [0.0, -0.0, 0.5, 0.6796875, 1.0, 1.5, 2.0, 3.0, 4.0, 10.0, 12.0, -1.0, -0.5, -2.5, -30.25, 1e-9, 1e8, 1e300]
ARGUMENTS = np.array([*ENDS, *np.nextafter(ENDS, np.inf), *RNG.uniform(-8, 20, 300), *RNG.uniform(0.9, 2.1, 99)])
INFINITE = np.array([np.inf, -np.inf, np.nan])
SHARES = np.array([0.0, 1.0, 0.5, 0.075, 0.925, 1e-11, 1 - 1e-11, 1e-300, -0.1, 1.1, np.nan, *RNG.random(300)])


def compute(kind, x):
    form = SpecialFunction(Buffer("y", buffer(x).dtype, x.shape), buffer(x), kind)
    actual = run(form, {form.input: x})
    np.testing.assert_array_equal(split(form, {form.input: x}, 3), actual)
    return actual


def _log_gamma(x):
    return np.inf if x <= 0 and x == np.floor(x) else math.lgamma(x)


def test_log_gamma():
    x = ARGUMENTS
    np.testing.assert_allclose(compute("log_gamma", x), [_log_gamma(v) for v in x], 2e-13, 1e-14)
    np.testing.assert_array_equal(compute("log_gamma", INFINITE), [np.inf, np.inf, np.nan])


def test_digamma():
    x = np.concatenate([ARGUMENTS, INFINITE])
    with np.errstate(all="ignore"):
        expected = special_arrays.digamma(x)
    np.testing.assert_allclose(compute("digamma", x), expected, 1e-12, 1e-14)
    y = RNG.uniform(0.1, 30, 200)  # psi(x + 1) - psi(x) = 1 / x
    np.testing.assert_allclose(compute("digamma", y + 1) - compute("digamma", y), 1 / y, 1e-11, 1e-13)
    assert compute("digamma", np.ones(1))[0] == pytest.approx(-np.euler_gamma, rel=1e-14)


def test_trigamma():
    x = np.concatenate([ARGUMENTS, INFINITE])
    with np.errstate(all="ignore"):
        expected = special_arrays.polygamma(np.ones_like(x), x)
    np.testing.assert_allclose(compute("trigamma", x), expected, 1e-12, 1e-14)
    assert compute("trigamma", np.ones(1))[0] == pytest.approx(math.pi**2 / 6, rel=1e-14)


def test_quantiles():
    normal = statistics.NormalDist()
    inside = (SHARES > 0) & (SHARES < 1)
    actual = compute("normal_quantile", SHARES)
    np.testing.assert_allclose(actual[inside], [normal.inv_cdf(p) for p in SHARES[inside]], 1e-13, 1e-14)
    np.testing.assert_array_equal(actual[~inside], [-np.inf, np.inf, np.nan, np.nan, np.nan])
    ends = compute("inverse_erf", np.array([-1.0, 1.0, 1.5, np.nan]))
    np.testing.assert_array_equal(ends, [-np.inf, np.inf, np.nan, np.nan])
    x = RNG.uniform(-0.999, 0.999, 200)
    np.testing.assert_allclose([math.erf(v) for v in compute("inverse_erf", x)], x, 1e-12)


def test_narrower_floats_are_rounded_once():
    for dtype in (np.float32, bfloat16.np):
        x = RNG.uniform(0.2, 15, 77).astype(dtype)
        expected = np.array([math.lgamma(float(v)) for v in x]).astype(dtype)
        assert (compute("log_gamma", x) == expected).mean() > 0.98


@targets((special, {"source": float32, "kind": "digamma"}), (special, {"source": float32, "kind": "inverse_erf"}))
def test_special_functions_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
