"""Special functions as kernels: against the C library, Python's statistics and NumPy, at the ends of their pieces."""

import math
import statistics
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.special_functions import special
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import SpecialFunction
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.ops import Map
from opwright.core.dtypes import bfloat16, float32, float64
from opwright.ops.math import bessel, special_arrays
from opwright.scalar import table

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


BESSEL_ENDS = [0.0, 1e-300, 1e-9, 2.0, 8.0, 10.0, 25.0, 600.0, 708.0, 713.5]


@pytest.mark.parametrize("letter", ["i", "k"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("scaled", [False, True])
def test_modified_bessel_functions(letter, order, scaled):
    x = np.array([*BESSEL_ENDS[1:], *np.nextafter(BESSEL_ENDS, -1)[2:], *RNG.uniform(0, 12, 200)])
    with mp.workdps(40):
        exact = [getattr(mp, f"bessel{letter}")(order, mp.mpf(float(v))) for v in x]
        if scaled:
            exact = [y * mp.exp(-mp.mpf(float(v)) if letter == "i" else mp.mpf(float(v))) for y, v in zip(exact, x)]
        expected = np.array([float(y) for y in exact])
    kind = f"bessel_{letter}{order}{'e' * scaled}"
    np.testing.assert_allclose(compute(kind, x), expected, 4e-15, 1e-320)
    uncompiled = partial(getattr(bessel, f"{letter}_{'scaled' if scaled else 'plain'}_array"), order)
    np.testing.assert_allclose(uncompiled(x), expected, 4e-15, 1e-320)
    ends = np.array([0.0, -0.0, -1.0, -30.0, np.inf, -np.inf, np.nan, 720.0, 1e300])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(compute(kind, ends), uncompiled(ends), 4e-15)


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "erf", "erfc"])
def test_functions_of_float64(name):
    """Within the bounds of scalar/numerics/double.py; ends as in NumPy."""
    reach = {"exp": 700.0, "expm1": 700.0, "tanh": 23.0, "erf": 7.0, "erfc": 26.5}.get(name, 1e3)
    x = np.concatenate([RNG.uniform(-1, 1, 300), RNG.uniform(-reach, reach, 300), RNG.uniform(-1e-3, 1e-3, 100)])
    x = x[x > -1] if name == "log1p" else np.abs(x) if name == "log" else x
    x = np.append(x, np.float64([5e-324, 1e-310, 1e-200]))
    bound = {"expm1": 2, "tanh": 3, "erf": 3, "erfc": 6}.get(name, 1)
    with mp.workdps(40):
        exact = [getattr(mp, name)(mp.mpf(float(v))) for v in x]
        gaps = [
            abs(mp.mpf(float(y)) - z) / math.ulp(max(abs(float(z)), 2.0**-1022))
            for y, z in zip(_mapped(name, x), exact)
        ]
    assert max(gaps) <= bound
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 709.79, -744.0, -746.0, 1e308, -1e308, 30.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(_mapped(name, ends), table.FUNCTIONS[name].of_arrays(ends), 2e-15, 1e-323)
    zeros = np.array([0.0, -0.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            np.signbit(_mapped(name, zeros)), np.signbit(table.FUNCTIONS[name].of_arrays(zeros))
        )


def _mapped(name, x):
    form = Map(Buffer("y", buffer(x).dtype, x.shape), (buffer(x),), apply(name, arg(0, float64)))
    return run(form, {form.operands[0]: x})


def test_narrower_floats_are_rounded_once():
    for dtype in (np.float32, bfloat16.np):
        x = RNG.uniform(0.2, 15, 77).astype(dtype)
        expected = np.array([math.lgamma(float(v)) for v in x]).astype(dtype)
        assert (compute("log_gamma", x) == expected).mean() > 0.98


@targets(
    *((special, {"source": float32, "kind": kind}) for kind in ("digamma", "inverse_erf", "bessel_i0", "bessel_k1e"))
)
def test_special_functions_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
