"""Reductions and searches as kernels, against NumPy in float64 or int64; whole and in parts."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.reductions import reduce_columns, reduce_rows
from opwright.compiler.kernels.sorting import search_columns, search_rows, search_short_rows
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg, convert, quantize, scalar
from opwright.compiler.loops.ops import ArgReduce, Reduce
from opwright.core import dtypes
from opwright.core.dtypes import float32, int8, int32, uint8
from thorough import crossed

RNG = np.random.default_rng(3)
SHAPES = [
    ((1,), (0,)),
    ((7,), (0,)),
    ((131,), (0,)),
    ((70001,), (0,)),
    ((3, 37), (1,)),
    ((5, 1000), (1,)),
    ((2, 8, 8, 24), (1, 2)),
    ((1, 7, 7, 320), (1, 2)),
    ((1, 7, 7, 131), (1, 2)),
    ((3000, 5), (0,)),
    ((1, 33, 67, 3), (1, 2)),
    ((5, 6, 7, 2, 3), (0, 2, 4)),
    ((5, 6, 7, 2, 3), (1, 3)),
    ((4, 1, 3), (1,)),
    ((4, 9), ()),
    ((), ()),
    ((2, 3, 5), (0, 1, 2)),
    ((2, 300, 17), (1,)),
]


def reduction(x, axes, kind, before=None, expr=None):
    operand = buffer(x)
    before = before or arg(0, operand.dtype)
    expr = expr or arg(0, before.dtype)
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return Reduce(Buffer("y", expr.dtype, shape), operand, axes, kind, before, expr), {operand: x}


def both(form, inputs):
    """Return the result; check that any split of the work gives the same bits."""
    result = run(form, inputs)
    np.testing.assert_array_equal(split(form, inputs, 3), result)
    return result


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
class TestShapes:
    def test_sum_of_float32(self, shape, axes):
        x = np.asarray(RNG.uniform(0.1, 1, shape), np.float32)
        result = both(*reduction(x, axes, "sum"))
        np.testing.assert_allclose(result, x.astype(np.float64).sum(axes), rtol=3e-6)

    def test_product_of_float32(self, shape, axes):
        x = np.asarray(np.exp(RNG.normal(0, 0.01, shape)), np.float32)
        result = both(*reduction(x, axes, "prod"))
        np.testing.assert_allclose(result, x.astype(np.float64).prod(axes), rtol=1e-4)

    def test_extremes_of_float32(self, shape, axes):
        x = np.asarray(RNG.normal(size=shape), np.float32)
        np.testing.assert_array_equal(both(*reduction(x, axes, "max")), x.max(axes))
        np.testing.assert_array_equal(both(*reduction(x, axes, "min")), x.min(axes))

    @pytest.mark.parametrize("dtype", [int8, uint8])
    def test_bytes(self, shape, axes, dtype):
        x = np.asarray(RNG.integers(int(dtype.min), int(dtype.max) + 1, shape), dtype.np)
        before = convert(arg(0, dtype), int32)
        np.testing.assert_array_equal(both(*reduction(x, axes, "sum", before)), x.sum(axes, dtype=np.int64))
        np.testing.assert_array_equal(both(*reduction(x, axes, "max")), x.max(axes))
        np.testing.assert_array_equal(both(*reduction(x, axes, "min")), x.min(axes))

    @pytest.mark.parametrize(
        "dtype", [np.int32, *(pytest.param(d, marks=pytest.mark.slow) for d in (np.int64, np.float64))]
    )
    def test_wider_numbers(self, shape, axes, dtype):
        x = np.asarray(RNG.integers(-1000, 1000, shape), dtype)
        np.testing.assert_array_equal(both(*reduction(x, axes, "sum")), x.sum(axes))
        np.testing.assert_array_equal(both(*reduction(x, axes, "min")), x.min(axes))

    def test_truth(self, shape, axes):
        for part in (0.0, 0.02, 0.98, 1.0):
            x = np.asarray(RNG.uniform(size=shape) < part)
            np.testing.assert_array_equal(both(*reduction(x, axes, "any")), x.any(axes))
            np.testing.assert_array_equal(both(*reduction(x, axes, "all")), x.all(axes))


@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("shape", [(1, 40, 50, 96), (1, 1000, 1, 31)])
def test_sums_of_extreme_bytes(shape, value):
    x = np.full(shape, value, np.int8)
    result = run(*reduction(x, (1, 2), "sum", convert(arg(0, int8), int32)))
    np.testing.assert_array_equal(result, x.sum((1, 2), dtype=np.int64))


def test_a_quantised_mean():
    x = RNG.integers(-128, 128, (2, 7, 7, 100)).astype(np.int8)
    scale, zero = 0.75 / 49, 3
    value = apply("mul", convert(arg(0, int32), float32), scalar(scale, float32))
    form, inputs = reduction(x, (1, 2), "sum", convert(arg(0, int8), int32), quantize(value, zero, int8))
    expected = np.clip(np.rint(x.sum((1, 2), dtype=np.int64) * scale) + zero, -128, 127)
    assert np.abs(both(form, inputs) - expected).max() <= 1  # ties


def test_a_long_sum_of_equal_terms():
    """Equal terms, which round alike, are the worst case of a sum: one after the other they lose 7.5e-6."""
    x = np.full((1, 65536), 0.51, np.float32)
    actual = both(*reduction(x, (1,), "sum"))
    np.testing.assert_allclose(actual, x.astype(np.float64).sum(1), rtol=1e-6)


def test_an_expression_before_and_behind():
    x = RNG.normal(size=(9, 200)).astype(np.float32)
    square = apply("mul", arg(0, float32), arg(0, float32))
    root = apply("sqrt", apply("mul", arg(0, float32), scalar(1 / 200, float32)))
    expected = np.sqrt(np.square(x, dtype=np.float64).mean(1))
    np.testing.assert_allclose(both(*reduction(x, (1,), "sum", square, root)), expected, rtol=1e-6)
    np.testing.assert_allclose(
        both(*reduction(np.ascontiguousarray(x.T), (0,), "sum", square, root)), expected, rtol=1e-6
    )


def test_nan_is_left_out_of_extremes():
    x = np.float32([[np.nan, 1, 3, np.nan], [np.nan] * 4, [-np.inf, np.nan, -np.inf, np.nan]])
    np.testing.assert_array_equal(run(*reduction(x, (1,), "max")), [3, -np.inf, -np.inf])
    np.testing.assert_array_equal(run(*reduction(np.ascontiguousarray(x.T), (0,), "max")), [3, -np.inf, -np.inf])


def test_what_is_refused():
    with pytest.raises(NoKernel):
        run(*reduction(np.zeros((0, 3), np.float32), (0,), "sum"))
    with pytest.raises(NoKernel):
        run(*reduction(np.zeros((2, 3), np.float16), (0,), "sum"))


def search(x, axis, kind, places=dtypes.int32):
    operand = buffer(x)
    shape = tuple(n for i, n in enumerate(x.shape) if i != axis % x.ndim)
    return ArgReduce(Buffer("y", places, shape), operand, axis, kind), {operand: x}


SEARCHED = [
    ((1,), 0),
    ((5, 131), -1),
    ((3, 1000), 1),
    ((7, 33), 0),
    ((2, 9, 5), 1),
    ((300, 2), 0),
    ((4, 9, 5), 2),
    ((37, 16), 1),
]


@pytest.mark.parametrize(
    ("case", "dtype", "places"),
    crossed(SEARCHED, [np.float32, np.int8, np.uint8, np.int32, np.bool_], [dtypes.int32, dtypes.int64], every=3),
)
def test_searches(case, dtype, places):
    shape, axis = case
    x = RNG.integers(0, 100 if dtype is not np.bool_ else 2, shape).astype(dtype)  # equals
    for kind, of in (("max", np.argmax), ("min", np.argmin)):
        np.testing.assert_array_equal(both(*search(x, axis, kind, places)), of(x, axis))


def test_searches_among_nan():
    x = np.float32([[np.nan, -np.inf, -np.inf], [np.nan, 2, 5], [np.nan] * 3, [1, np.nan, 1], [np.inf, np.nan, np.inf]])
    np.testing.assert_array_equal(run(*search(x, 1, "max")), [1, 2, 0, 0, 0])
    np.testing.assert_array_equal(run(*search(x, 1, "min")), [1, 1, 0, 0, 0])
    short = np.repeat(x, 7, 0)
    np.testing.assert_array_equal(run(*search(short, 1, "max")), np.repeat([1, 2, 0, 0, 0], 7))
    np.testing.assert_array_equal(run(*search(short, 1, "min")), np.repeat([1, 1, 0, 0, 0], 7))
    columns = np.ascontiguousarray(x.T)
    np.testing.assert_array_equal(run(*search(columns, 0, "max")), [1, 2, 0, 0, 0])


def plain(expr):
    return Epilogue(expr, (), ())


BYTES = {"source": int8, "before": plain(convert(arg(0, int8), int32)), "after": plain(convert(arg(0, int32), float32))}
FLOATS = {"source": float32, "before": plain(arg(0, float32)), "after": plain(arg(0, float32))}


@targets(
    (reduce_rows, {"kind": "sum", "more": 0, "is_long": False, **BYTES}),
    (reduce_rows, {"kind": "max", "more": 0, "is_long": False, **FLOATS}),
    (reduce_rows, {"kind": "sum", "more": 0, "is_long": True, **FLOATS}),
    (reduce_columns, {"kind": "sum", "more": 0, **BYTES}),
    (reduce_columns, {"kind": "sum", "more": 0, **FLOATS}),
    (search_rows, {"kind": "max", "source": int8, "places": dtypes.int64}),
    (search_short_rows, {"kind": "min", "source": int8, "places": dtypes.int64}),
    (search_columns, {"kind": "min", "source": float32, "places": int32}),
)
def test_reductions_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
