"""Contractions of int16 by int8 against sums in int64: sums beyond int32, odd sizes, any split."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets
from test_gemm_int8 import PLAIN, SAME, integers, out_shape, sums

from opwright.compiler.kernels.convolution_int8 import convolution_int8
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemm_int8 import gemm_int8
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, quantize
from opwright.compiler.loops.ops import Contract
from opwright.core.dtypes import float32, int4, int8, int16, int32, int64
from thorough import crossed, sampled

BIASED = apply("add", arg(0, int64), arg(1, int64))
CASES = [  # shape of the input, features, window, groups
    ((37, 1, 1, 1), 5, PLAIN, 1),
    ((37, 1, 1, 21), 45, PLAIN, 1),
    ((1, 1, 1, 1202), 33, PLAIN, 1),
    ((1, 29, 1, 600), 16, PLAIN, 1),
    ((2, 9, 30, 5), 33, Window((3, 2), padding=(1, 1, 0, 1)), 1),
    ((1, 33, 31, 3), 32, Window((3, 3), (2, 2), padding=(0, 1, 0, 1)), 1),
    ((2, 7, 7, 12), 40, Window((3, 3), padding=SAME), 1),
    ((1, 12, 28, 12), 24, Window((3, 3), padding=SAME), 3),
    ((1, 20, 28, 5), 24, Window((3, 3), dilations=(1, 2), padding=(1, 1, 2, 2)), 1),
]


def made(x, features, window, groups, dtype, expr=BIASED, more=(), ends=False):
    rng = np.random.default_rng(7)
    xs, ws = integers(rng, int16, x), integers(rng, dtype, (features, *window.size, x[3] // groups))
    if ends:
        xs[:], ws[:] = -32768, -128
    bias = rng.integers(-(2**36), 2**36, features)
    source = buffer(xs)
    biases = Buffer("bias", int64, bias.shape, bias)
    out = Buffer("y", expr.dtype, out_shape(x, features, window))
    form = Contract(out, source, Buffer("w", dtype, ws.shape, ws), (biases, *more), expr, window, groups)
    return form, {source: xs}, sums(xs.astype(int), ws.astype(int), window, groups, out.shape) + bias


@pytest.mark.parametrize(("case", "dtype"), crossed(range(len(CASES)), [int8, int4]), ids=str)
def test_sums(case, dtype):
    x, features, window, groups = CASES[case]
    form, inputs, expected = made(x, features, window, groups, dtype)
    actual = run(form, inputs)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(split(form, inputs, 3), actual)


@pytest.mark.parametrize("depth", sampled([510, 512, 513, 4099]))
def test_sums_beyond_int32(depth):
    form, inputs, expected = made((3, 1, 1, depth), 17, PLAIN, 1, int8, ends=True)
    np.testing.assert_array_equal(run(form, inputs), expected)


def test_epilogue():
    factors = np.random.default_rng(1).uniform(2e-6, 2e-5, 40).astype(np.float32)
    expr = quantize(apply("mul", convert(BIASED, float32), arg(2, float32)), 0, int16)
    form, inputs, total = made(
        (1, 14, 28, 12), 40, Window((3, 3), padding=SAME), 1, int8, expr, (Buffer("f", float32, (40,), factors),)
    )
    expected = np.clip(np.rint(total * factors.astype(float)), -32768, 32767)
    off = np.abs(run(form, inputs) - expected)
    assert off.max() <= 1
    assert (off != 0).mean() < 0.01


EPILOGUE = Epilogue(convert(BIASED, int32), (("channel", int64),), ())
SHAPE = {
    "rows": 4,
    "vectors": 2,
    "short": True,
    "narrow": 1,
    "epilogue": EPILOGUE,
    "more": 1,
    "rounded": False,
    "wide": True,
    "tiled": None,
    "widened": None,
    "flipped": False,
    "bounded": 0,
    "grouped": None,
}


@targets(
    (gemm_int8, {**SHAPE, "parts": 1, "blocked": False, "halved": False}),
    (convolution_int8, {**SHAPE, "by_line": False}),
)
def test_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
