"""Matrix products of two int8 operands against sums in int64: zero points, batches, either the other way round."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets
from test_gemm_hybrid import rounded
from test_gemm_int8 import integers

from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemv_int8 import few_rows_int8
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg, convert, quantize, row_scale, scalar
from opwright.compiler.loops.ops import MatMul
from opwright.core.dtypes import float32, int8, int32, uint8
from thorough import crossed

SUM = arg(0, int32)
CASES = [  # shapes of a and b as [..., m, k] and [..., k, n], turned, zero points, dtypes
    ((29, 36), (36, 45), (False, False), (0, 0), (int8, int8)),
    ((29, 37), (37, 16), (False, True), (-5, 0), (int8, int8)),
    ((1, 64), (64, 33), (False, False), (3, -7), (int8, int8)),
    ((14, 20), (20, 64), (True, False), (127, 0), (int8, int8)),
    ((2, 3, 15, 21), (2, 3, 21, 40), (False, False), (1, 9), (int8, int8)),
    ((2, 3, 15, 21), (3, 21, 40), (True, True), (1, -128), (int8, int8)),
    ((4, 1, 7, 12), (1, 5, 12, 8), (False, True), (0, 0), (int8, int8)),
    ((5, 7, 12), (12, 50), (False, False), (-1, 2), (int8, int8)),
    ((5, 7, 12), (5, 12, 50), (False, False), (128, 121), (uint8, uint8)),
    ((2, 3, 1, 41), (2, 3, 41, 77), (False, True), (-128, 127), (int8, int8)),
    ((2, 3, 4, 41), (3, 41, 77), (True, False), (127, -128), (int8, int8)),
    ((6, 3, 32), (6, 32, 8), (False, True), (255, 0), (uint8, int8)),
    ((1, 130), (130, 5), (False, False), (0, 255), (uint8, uint8)),
]


@pytest.mark.parametrize(("case", "constant"), crossed(CASES, [False, True], every=4), ids=str)
def test_products(case, constant):
    a, b, turned, zeros, kinds = case
    rng = np.random.default_rng(3)
    x, y = integers(rng, kinds[0], a), integers(rng, kinds[1], b)
    expected = (x.astype(int) - zeros[0]) @ (y.astype(int) - zeros[1])
    x, y = (np.ascontiguousarray(v.swapaxes(-1, -2)) if t else v for v, t in zip((x, y), turned))
    left, right = buffer(x, "a"), Buffer("b", kinds[1], y.shape, y if constant else None)
    inputs = {left: x} if constant else {left: x, right: y}
    form = MatMul(Buffer("y", int32, expected.shape), left, right, (), SUM, *turned, *zeros)
    actual = run(form, inputs)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(split(form, inputs, 3), actual)


def test_epilogue():
    rng = np.random.default_rng(3)
    x, y = integers(rng, int8, (3, 17, 24)), integers(rng, int8, (3, 24, 33))
    left, right = buffer(x, "a"), buffer(y, "b")
    expr = quantize(apply("mul", convert(SUM, float32), scalar(0.00173, float32)), 11, int8)
    form = MatMul(Buffer("y", int8, (3, 17, 33)), left, right, (), expr, a_zero=4, b_zero=-3)
    total = (x.astype(int) - 4) @ (y.astype(int) + 3)
    expected = np.clip(np.rint(total * np.float64(np.float32(0.00173))) + 11, -128, 127)
    off = np.abs(run(form, {left: x, right: y}) - expected)
    assert off.max() <= 1
    assert (off != 0).sum() <= 2


@pytest.mark.parametrize("rounding", ["symmetric", "asymmetric"])
@pytest.mark.parametrize(("a", "b"), [((3, 17, 21), (3, 21, 33)), ((2, 3, 5, 24), (24, 16)), ((1, 7), (7, 40))])
def test_rounded_floats(a, b, rounding):
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal(a) * 3 + 1).astype(np.float32), integers(rng, int8, b)
    scales = rng.uniform(0.01, 0.1, b[-1]).astype(np.float32)
    left, right = buffer(x, "a"), buffer(y, "b")
    values, steps = rounded(x.reshape(-1, a[-1]), rounding == "symmetric")
    expected = (values * steps[:, None]).reshape(a) @ y.astype(float) * scales
    form = MatMul(
        Buffer("y", float32, expected.shape),
        left,
        right,
        (Buffer("s", float32, scales.shape, scales),),
        apply("mul", apply("mul", convert(SUM, float32), row_scale()), arg(1, float32)),
        rounding=rounding,
    )
    actual = run(form, {left: x, right: y})
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


BYTES = {"a_dtype": int8, "b_dtype": uint8, "more": 0, "epilogue": Epilogue(SUM, (), ())}


@targets((few_rows_int8, {"along": True, **BYTES}), (few_rows_int8, {"along": False, **BYTES}))
def test_targets(family, constants, names):
    compiles_for(names, family, **constants)
