"""Pools against NumPy: padding is not counted, integers are exact, whole and in parts, and code for every target."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import correlated, output_size, patches

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.pooling import pool
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, parametrised, quantize
from opwright.compiler.loops.ops import Pool
from opwright.core.dtypes import as_dtype, float32, int8, int32
from thorough import examples

RNG = np.random.default_rng(8)
COUNT = arg(1, float32)
MEAN = {
    np.float32: apply("div", arg(0, float32), COUNT),
    np.int8: quantize(apply("round_away", apply("div", convert(arg(0, int32), float32), COUNT)), 0, int8),
    np.int16: apply("div", convert(arg(0, int32), float32), COUNT),
}


def drawn(dtype, *shape):
    return (RNG.standard_normal(shape) * 60).astype(dtype)


def expected(x, kind, window):
    """In float64; a mean of integers is rounded, halves away from zero."""
    wide = x.astype(np.float64)
    if kind == "max":
        return np.max([p for _, _, p in patches(wide, window, -np.inf)], axis=0)
    sums = correlated(wide, window, lambda p, i, j: p)
    mean = sums / correlated(np.ones_like(wide), window, lambda p, i, j: p)
    return np.trunc(mean + np.copysign(0.5, mean)) if x.dtype == np.int8 else mean


def check(x, kind, window):
    expr = arg(0, as_dtype(x.dtype)) if kind == "max" else MEAN[x.dtype.type]
    source = buffer(x)
    out = Buffer("y", expr.dtype, (x.shape[0], *output_size(x.shape, window), x.shape[3]))
    form = Pool(out, source, kind, expr, window)
    got = run(form, {source: x})
    want = expected(x, kind, window)
    if expr.dtype is float32:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(split(form, {source: x}, 3), got)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16])
@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("channels", [1, 2, 3, 16, 37, 131])
def test_channels(channels, kind, dtype):
    for window in (Window((2, 2), (2, 2)), Window((3, 3), (2, 2), (1, 1), (1, 1, 1, 1)), Window((7, 6))):
        check(drawn(dtype, 2, 7, 9, channels), kind, window)


@settings(deadline=None, max_examples=examples(40))
@given(st.data())
def test_any_window(data):
    size, strides, dilations = (tuple(data.draw(st.integers(1, n)) for _ in range(2)) for n in (5, 3, 3))
    dtype, kind = data.draw(st.sampled_from((np.float32, np.int8))), data.draw(st.sampled_from(("max", "sum")))
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations)]
    padding = tuple(data.draw(st.integers(0, (k - 1) // 2)) for k in (size[0], size[0], size[1], size[1]))
    height, width = (data.draw(st.integers(r, 19)) for r in reach)
    check(drawn(dtype, 1, height, width, 5), kind, Window(size, strides, dilations, padding))


def test_means_of_bytes_round_halves_away_from_zero():
    x = np.array([1, 2, -1, -2, 127, 126, -128, -127], np.int8).reshape(1, 8, 1, 1)
    window = Window((2, 1), (2, 1))
    check(x, "sum", window)
    assert expected(x, "sum", window).ravel().tolist() == [2, -2, 127, -128]


def test_an_activation_and_slices():
    whole = drawn(np.float32, 1, 6, 6, 40)
    source, joined = Buffer("x", float32, whole.shape), Buffer("joined", float32, (1, 3, 3, 30))
    part = Buffer("x", float32, (1, 6, 6, 20), None, source, 7)
    out = Buffer("y", float32, (1, 3, 3, 20), None, joined, 10)
    expr = apply("relu", apply("div", arg(0, float32), COUNT))
    form = Pool(out, part, "sum", expr, Window((2, 2), (2, 2)))
    want = np.maximum(expected(whole[..., 7:27], "sum", form.window), 0)
    np.testing.assert_allclose(run(form, {source: whole})[..., 10:], want, rtol=1e-5, atol=1e-5)


def test_other_dtypes_are_refused():
    x = np.zeros((1, 4, 4, 3), np.int64)
    source = buffer(x)
    with pytest.raises(NoKernel, match="int64"):
        run(Pool(Buffer("y", source.dtype, x.shape), source, "max", arg(0, source.dtype), Window((1, 1))), {source: x})


BYTES, PARAMS = parametrised(MEAN[np.int8])


@targets(
    (
        pool,
        {
            "kind": "sum",
            "dtype": int8,
            "lanes": 4,
            "vectors": 2,
            "expr": BYTES,
            "params": (int32,),
            "more": 1,
            "propagates_nan": False,
        },
    ),
    (
        pool,
        {
            "kind": "max",
            "dtype": float32,
            "lanes": 4,
            "vectors": 2,
            "expr": arg(0, float32),
            "params": (),
            "more": 0,
            "propagates_nan": True,
        },
    ),
)
def test_every_target(family, constants, names):
    compiles_for(names, family, **constants)
