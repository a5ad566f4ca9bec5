"""Counts of numbers as machine code: those of NumPy, and the operators' own errors."""

import functools

import numpy as np
import pytest
from form_kit import compiles_for, targets

import opwright as ow
from opwright.compiler.kernels.counts import count
from opwright.core.dtypes import float32, int64

RNG = np.random.default_rng(11)
NUMBERS = RNG.integers(0, 40, (7, 150)).astype(np.int32)


def counted(x, **options):
    return ow.math.bincount(x + 1, minlength=32, maxlength=32, **options)


def by_row(x, weights=None):
    rows = np.where(x + 1 < 32, x + 1, 32)
    return np.stack([np.bincount(r, w, 33)[:32] for r, w in zip(rows, weights if weights is not None else [None] * 7)])


def compiled(function, *args):
    """Return the result of a function that is one native call."""
    run = ow.function(function, jit_compile=True)
    assert "1 native calls, 0 as they are" in run.experimental_get_compiler_ir(*map(ow.constant, args))()
    return run(*map(ow.constant, args)).numpy()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_counts(dtype):
    x = NUMBERS.astype(dtype)
    for result in (np.int32, np.int64, np.float32, np.float64):
        actual = compiled(functools.partial(counted, axis=-1, dtype=ow.as_dtype(result)), x)
        assert actual.dtype == result
        np.testing.assert_array_equal(actual, by_row(x))
    np.testing.assert_array_equal(compiled(counted, x), by_row(x).sum(0))
    np.testing.assert_array_equal(compiled(lambda x: counted(x, axis=-1, binary_output=True), x), by_row(x) > 0)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_weights(dtype):
    weights = RNG.integers(-9, 9, NUMBERS.shape).astype(dtype)
    actual = compiled(lambda x, w: counted(x, weights=w, axis=-1), NUMBERS, weights)
    np.testing.assert_array_equal(actual, by_row(NUMBERS, weights))


def test_eager_counts_have_the_same_lengths():
    for least, most, size in ((50, 60, 50), (50, 45, 45), (None, 20, 20), (3, None, 40), (0, 0, 0)):
        x = np.append(NUMBERS.reshape(-1), 39)
        actual = ow.math.bincount(ow.constant(x), minlength=least, maxlength=most).numpy()
        np.testing.assert_array_equal(actual, np.bincount(x, minlength=size)[:size])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_histograms_are_the_operators(dtype):
    x = (RNG.standard_normal(4000) * 100).astype(dtype)
    x[:5] = 90, -75, 45, 200, -200  # the ends, and on an edge
    low, high = np.array([-75, 90], dtype)
    actual = compiled(lambda x: ow.histogram_fixed_width(x + x, [2 * low, 2 * high], 11), x)
    wide = np.clip(2 * x.astype(np.float64), 2 * float(low), 2 * float(high))
    expected = np.histogram(wide, 11, (2 * float(low), 2 * float(high)))[0]
    assert np.abs(actual - expected).sum() <= 2  # an element on an edge
    np.testing.assert_array_equal(actual, ow.histogram_fixed_width(ow.constant(x + x), [2 * low, 2 * high], 11))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: ow.histogram_fixed_width(x * 2.0, [-3.0, 3.0], 9), np.full(5000, np.nan, np.float32)),
        (counted, np.full(5000, -7, np.int32)),
    ],
)
def test_errors_are_the_operators(function, x):
    with pytest.raises(ow.errors.InvalidArgumentError) as eager:
        function(ow.constant(x))
    with pytest.raises(ow.errors.InvalidArgumentError) as native:
        ow.function(function, jit_compile=True)(ow.constant(x))
    assert str(eager.value).split(": ", 1)[1] in str(native.value)


@targets((count, {"index": int64, "source": float32, "weighted": True, "once": False}))
def test_compiles_for(family, constants, names):
    compiles_for(names, family, **constants)
