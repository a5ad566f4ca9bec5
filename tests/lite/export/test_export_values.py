"""Exported C computes what the operator means: float64 formulas, and our interpreter's bits where `fma` rounds once."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
from export_kit import (
    NAMES,
    Blend,
    Clip,
    CubeRoot,
    Elementary,
    Escape,
    Pair,
    Root,
    Whole,
    Within,
    built,
    floats,
    model_of,
    needs_gcc,
    run,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.core import flags
from thorough import examples, sampled

pytestmark = needs_gcc
# this processor's own instructions: then C's arithmetic is that of the code compiled here
NATIVE = ("-O0", "-march=native") if platform.machine() in ("x86_64", "AMD64") else ("-O0",)

_erf, _erfc = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))
EXACT = {
    "erf": _erf,
    "erfc": _erfc,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "gelu": lambda x: np.where((x < -30) & (x > -np.inf), -0.0, 0.5 * x * _erfc(-x / 2**0.5)),  # NaN at -inf
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


@pytest.fixture(scope="module")
def customs(tmp_path_factory):
    """Each operator's C, for this very processor, built once."""
    return {
        op.name: built(op, tmp_path_factory.mktemp(op.name), flags=NATIVE)
        for op in (Clip, CubeRoot, Elementary, Pair, Escape, Whole, Within, Blend)
    }


def same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if a.dtype.kind == "f":  # one NaN is as good as another
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        kind = f"u{a.dtype.itemsize}"
        a, b = np.where(np.isnan(a), 0, a).view(kind), np.where(np.isnan(b), 0, b).view(kind)
    np.testing.assert_array_equal(a, b)


def here(op, customs, *arrays, **attrs):
    """Return the results of the compiled kernel and of the exported C."""
    model = model_of(op, *arrays, **attrs)
    with flags.override(compiled=True, background=False):
        ours = run(model, [op], *arrays)
    return ours, run(model, customs[op.name], *arrays)


@pytest.mark.parametrize("which", sampled(NAMES, 4))
def test_functions_of_float32(which, customs):
    x = floats(np.float32)
    ours, c = here(Elementary, customs, x, which=which)
    same_bits(c, ours)
    with np.errstate(all="ignore"):
        exact = EXACT.get(which, getattr(np, which, None))(x.astype(np.float64))
        ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    fine = np.isfinite(exact) & (np.abs(exact) < 3e38)
    assert np.all(np.abs(c[fine] - exact[fine]) <= 1.01 * ulp[fine])
    np.testing.assert_array_equal(np.isnan(c), np.isnan(exact))


@pytest.mark.parametrize(
    "which", [n if n in ("exp", "gelu", "softplus", "rint") else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_functions_of_float64_are_the_c_librarys_as_here(which, customs):
    same_bits(*reversed(here(Elementary, customs, floats(np.float64), which=which)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("which", ["pow", "atan2", "divide", "maximum", "minimum", "mix"])
def test_functions_of_two_numbers(which, dtype, customs):
    x, y = floats(dtype), floats(dtype, seed=2)
    y[: len(y) // 2] = np.round(y[: len(y) // 2])
    same_bits(*reversed(here(Pair, customs, x, y, which=which)))


@pytest.mark.parametrize("attrs", [{}, {"alpha": 0.3}, {"alpha": 1e-3, "limit": -1.7}, {"limit": 1.0}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attributes_are_read_from_the_node(attrs, dtype, customs):
    x = floats(dtype)
    ours, c = here(Clip, customs, x, **attrs)
    same_bits(c, ours)
    alpha, limit = attrs.get("alpha", 0.0), attrs.get("limit", 6.0)
    some = np.isfinite(x)
    with np.errstate(invalid="ignore"):
        want = np.minimum(x, limit) + alpha * np.maximum(x - np.float64(limit), 0)
    np.testing.assert_allclose(c[some], want[some].astype(dtype), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("limit", [0, 1, 20, 300])
def test_control_flow(limit, customs):
    grid = np.linspace(-2, 1, 37, dtype=np.float32), np.linspace(-1.2, 1.2, 23, dtype=np.float32)[:, None]
    ours, c = here(Escape, customs, *grid, limit=limit)
    same_bits(c, ours)
    assert c.shape == (23, 37)
    assert c.max() == limit
    assert abs(c - Escape(*map(np.float64, grid), limit=limit).numpy()).mean() < 0.02 * limit + 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loop_whose_condition_is_computed(dtype, customs):
    x = np.array([0.0, -0.0, 1.0, -8.0, 27.0, 1e-3, -12345.0, 3e10], dtype)
    within = 1e-6 if dtype is np.float32 else 1e-14
    ours, c = here(CubeRoot, customs, x, within=within)
    same_bits(c, ours)
    np.testing.assert_allclose(c, np.cbrt(x.astype(np.float64)), rtol=within)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("by", [3, -7, 2**31 - 1])
def test_integers_wrap(dtype, by, customs):
    ends = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.integers(ends.min, ends.max, 200), [ends.min, ends.max, 0, -1, 1]]).astype(dtype)
    y = np.concatenate([rng.integers(-9, 9, 200), [ends.min, ends.min, ends.max, 0, 5]]).astype(dtype)
    ours, c = here(Whole, customs, x, y, by=by)
    same_bits(c, ours)
    with np.errstate(all="ignore"):
        result = x * y + x * np.dtype(dtype).type(by) - np.where(y < 0, -y, y)
        same_bits(c, np.where(x > y, np.maximum(result, y), -result))


@pytest.mark.parametrize("attrs", [{}, {"above": 2.5}, {"negated": True}, {"above": -1.0, "negated": True}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_truth_comes_out_and_an_attribute_may_be_left_out(attrs, dtype, customs):
    x = floats("float32").astype(dtype) if dtype == "float32" else np.arange(-50, 50)
    low = np.full((), -1, dtype)
    c = run(model_of(Within, x, low, **attrs), customs[Within.name], x, low)
    with np.errstate(all="ignore"):
        want = (x >= low) & (x <= attrs["above"] if "above" in attrs else True)
    same_bits(c, want != attrs.get("negated", False))


DIMS = st.lists(st.integers(0, 3), max_size=5)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dims=DIMS,
    cuts=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 31)), min_size=4, max_size=4),
    whole=st.booleans(),
)
def test_shapes_are_broadcast_as_numpy_does_it(dims, cuts, whole, customs):
    rng = np.random.default_rng(5)
    shapes = [tuple(1 if ones >> i & 1 else d for i, d in enumerate(dims))[min(cut, len(dims)) :] for cut, ones in cuts]
    mask, *others = shapes
    arrays = [
        rng.integers(0, 2, mask).astype(bool),
        *(rng.integers(-9, 9, s).astype("int32" if whole else "float32") for s in others),
    ]
    c = run(model_of(Blend, *arrays), customs[Blend.name], *arrays)
    m, a, b, d = arrays
    same_bits(c, np.where(m, a, a * b + d).astype(a.dtype))


def test_shapes_may_change(customs):
    x = np.arange(24, dtype=np.float32)
    model = model_of(Clip, x, shapes=[[None, None]], alpha=0.5)
    interpreter = ow.lite.Interpreter(model_content=model, custom_ops=customs[Clip.name])
    for shape in ((2, 3), (4, 6), (0, 5), (1, 1)):
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        interpreter.allocate_tensors()
        part = x[: math.prod(shape)].reshape(shape)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], part)
        interpreter.invoke()
        result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(result, np.minimum(part, 6) + np.float32(0.5) * np.maximum(part - 6, 0))


@pytest.mark.parametrize("api", ["external", "struct"])
def test_the_other_generations_of_the_api(api, tmp_path):
    x = floats(np.float32).reshape(4, -1)
    model = model_of(Clip, x, alpha=0.3)
    same_bits(run(model, built(Clip, tmp_path, api=api), x), run(model, [Clip], x))


def test_values_given_before(tmp_path):
    customs = built(Root, tmp_path, attrs={"of": [2.0, 3.0]})
    x = floats(np.float32)
    for of in (2.0, 3.0):
        same_bits(run(model_of(Root, x, of=of), customs, x), x * np.float32(math.sqrt(of)))
    with pytest.raises(ow.errors.OpError, match="'of' has a value that this code is not made for"):
        run(model_of(Root, x, of=5.0), customs, x)


@pytest.mark.slow
def test_vectors_of_the_compiler_give_the_same_bits(tmp_path):
    customs = built(Elementary, tmp_path, flags=("-O3", *NATIVE[1:], "-fno-math-errno", "-fno-trapping-math"))
    for dtype in ("float32", "float64"):
        x = floats(dtype, 1003)
        for which in NAMES:
            same_bits(*reversed(here(Elementary, {Elementary.name: customs}, x, which=which)))


@pytest.mark.slow
def test_without_fma_it_is_within_one_unit(tmp_path):
    x = floats(np.float32)
    customs = built(Elementary, tmp_path, flags=("-O0",))
    for which in ("exp", "sin", "erf", "tanh", "log"):
        model = model_of(Elementary, x, which=which)
        with flags.override(compiled=True, background=False):
            ours = run(model, [Elementary], x)
        c = run(model, customs, x)
        some = np.isfinite(ours)
        assert np.all(np.abs(c[some].astype(float) - ours[some]) <= np.spacing(np.abs(ours[some])))
        np.testing.assert_array_equal(np.isnan(c), np.isnan(ours))
