"""Products of matrices of float64 and int32: batches, broadcasting, transposes, any split."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.matmul_unpacked import matmul_unpacked
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.ops import MatMul
from opwright.core.dtypes import float64
from thorough import crossed

CASES = [
    ((1, 1), (1, 1)),
    ((3, 5), (5, 7)),
    ((4, 1), (1, 8)),
    ((49, 33), (33, 40)),
    ((2, 1, 9, 6), (1, 3, 6, 20)),
    ((5, 1, 6), (5, 6, 17)),
    ((4, 15, 6), (6, 9)),
]


@pytest.mark.parametrize(("shapes", "order", "dtype"), crossed(CASES, ["ab", "Ab", "aB", "AB"], ["float64", "int32"]))
def test_products(shapes, order, dtype):
    """order: capital letters are transposed. Products of int32 wrap."""
    rng, (a, b) = np.random.default_rng(5), shapes
    if dtype == "float64":
        xs, ys = rng.standard_normal(a), rng.standard_normal(b)
    else:
        xs, ys = (rng.integers(-(1 << 31), 1 << 31, shape, np.int64).astype(np.int32) for shape in shapes)
    expected = np.matmul(xs, ys)
    xs = np.ascontiguousarray(xs.swapaxes(-1, -2)) if "A" in order else xs
    ys = np.ascontiguousarray(ys.swapaxes(-1, -2)) if "B" in order else ys
    left, right = buffer(xs, "a"), buffer(ys, "b")
    y = Buffer("y", left.dtype, expected.shape)
    form = MatMul(y, left, right, (), arg(0, left.dtype), "A" in order, "B" in order)
    actual = run(form, {left: xs, right: ys})
    if dtype == "float64":
        np.testing.assert_allclose(actual, expected, 1e-13, 1e-13)
    else:
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(split(form, {left: xs, right: ys}, 3), actual)


def test_an_epilogue():
    rng = np.random.default_rng(2)
    xs, ys, bias = rng.standard_normal((6, 9)), rng.standard_normal((9, 11)), rng.standard_normal(11)
    left, right, added = buffer(xs, "a"), buffer(ys, "b"), buffer(bias, "bias")
    expr = apply("maximum", apply("add", arg(0, float64), arg(1, float64)), arg(0, float64))
    form = MatMul(Buffer("y", float64, (6, 11)), left, right, (added,), expr)
    expected = np.maximum(xs @ ys + bias, xs @ ys)
    np.testing.assert_allclose(run(form, {left: xs, right: ys, added: bias}), expected, 1e-13, 1e-13)


@targets((matmul_unpacked, {"more": 0, "source": float64, "height": 4, "epilogue": Epilogue(arg(0, float64), (), ())}))
def test_targets(family, constants, names):
    compiles_for(names, family, **constants)
