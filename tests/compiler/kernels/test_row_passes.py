"""Softmax and norms as kernels, against NumPy in float64; whole and in parts."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.rows import row_pass
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg, const, convert, quantize, scalar
from opwright.compiler.loops.ops import RowPass
from opwright.core.dtypes import float32, int8, int16, uint8

RNG = np.random.default_rng(4)
SHAPES = [(1,), (3, 1), (7, 2), (5, 16), (2, 3, 37), (1, 1001), (2, 5000)]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, epsilon):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(np.square(x - mean).mean(-1, keepdims=True) + epsilon)


def local_response(x, radius, bias, alpha, beta):
    near = np.zeros_like(x)
    for i in range(x.shape[-1]):
        near[..., i] = np.square(x[..., max(i - int(radius), 0) : i + int(radius) + 1]).sum(-1)
    return x / (bias + alpha * near) ** beta


KINDS = {
    # kind: numbers, what it is in NumPy
    "softmax": ((), softmax),
    "log_softmax": ((), lambda x: np.log(softmax(x))),
    "l2_norm": ((1e-6,), lambda x, e: x / np.maximum(np.sqrt(np.square(x).sum(-1, keepdims=True)), e)),
    "rms_norm": ((1e-3,), lambda x, e: x / np.sqrt(np.square(x).mean(-1, keepdims=True) + e)),
    "layer_norm": ((1e-3,), layer_norm),
    "local_response": ((2.0, 1.0, 0.5, 0.75), local_response),
    "response_of_positive": ((3.0, 1.5, 0.25, 0.6), local_response),
}


def passed(x, kind, numbers=(), operands=(), before=None, expr=None):
    operand = buffer(x)
    more = {buffer(p, f"p{i}"): p for i, p in enumerate(operands)}
    before = before or arg(0, operand.dtype)
    expr = expr or arg(0, float32)
    form = RowPass(Buffer("y", expr.dtype, x.shape), operand, tuple(more), kind, before, expr, numbers)
    return form, {operand: x, **more}


def both(form, inputs):
    result = run(form, inputs)
    np.testing.assert_array_equal(split(form, inputs, 2), result)
    return result


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_float32(kind, shape):
    numbers, expected = KINDS[kind]
    x = RNG.normal(0, 3, shape).astype(np.float32)
    actual = both(*passed(x, kind, numbers))
    np.testing.assert_allclose(actual, expected(x.astype(np.float64), *numbers), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["softmax", "log_softmax", "rms_norm", "l2_norm"])
def test_long_rows_of_equal_terms(kind):
    """Equal terms, which round alike, are the worst case of a sum: one after the other they lose 1.2e-5."""
    numbers, expected = KINDS[kind]
    x = np.full((1, 65536), -0.1, np.float32)
    x[0, ::8192] = 0.0, 0.5, -0.5, 0.1, 0.2, -0.7, 0.0, 0.4
    actual = both(*passed(x, kind, numbers))
    np.testing.assert_allclose(actual, expected(x.astype(np.float64), *numbers), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [1, 5, 64, 131])
def test_a_radius_as_wide_as_the_row(n):
    x = RNG.normal(size=(3, n)).astype(np.float32)
    numbers = (200.0, 0.5, 2.0, 0.5)
    for kind in ("local_response", "response_of_positive"):
        result = both(*passed(x, kind, numbers))
        np.testing.assert_allclose(result, local_response(x.astype(np.float64), *numbers), rtol=1e-5)


def test_gamma_and_beta():
    x, gamma, beta = (RNG.normal(size=s).astype(np.float32) for s in ((6, 77), (77,), (77,)))
    actual = both(*passed(x, "layer_norm", (1e-5,), (gamma, beta)))
    np.testing.assert_allclose(actual, layer_norm(x.astype(np.float64), 1e-5) * gamma + beta, rtol=1e-5, atol=2e-6)
    actual = both(*passed(x, "rms_norm", (1e-5,), (gamma,)))
    expected = x.astype(np.float64) / np.sqrt(np.square(x, dtype=np.float64).mean(-1, keepdims=True) + 1e-5) * gamma
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "zero", "inverse"), [(int8, -128, 256), (uint8, 0, 256), (int16, 0, 32768)])
def test_quantised_softmax(dtype, zero, inverse):
    x = RNG.integers(int(dtype.min), int(dtype.max) + 1, (9, 101)).astype(dtype.np)
    scale = 12 / 2 ** (8 * dtype.size)
    before = apply("mul", convert(arg(0, dtype), float32), scalar(scale, float32))
    expr = quantize(apply("mul", arg(0, float32), scalar(inverse, float32)), zero, dtype)
    actual = both(*passed(x, "softmax", before=before, expr=expr))
    expected = np.clip(np.rint(softmax(x * scale) * inverse) + zero, dtype.min, dtype.max)
    assert np.abs(actual - expected).max() <= 1


def test_large_and_infinite_numbers():
    x = np.float32([[1e30, 1e30, -1e30], [-np.inf, 0, 0], [88, 89, 1000], [-1e4, -1e4, -1e4]])
    result = run(*passed(x, "softmax"))
    np.testing.assert_allclose(result, [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1], [1 / 3] * 3], rtol=1e-6)
    result = run(*passed(np.full((2, 9), np.nan, np.float32), "softmax"))
    assert np.isnan(result).all()


def test_row_passes_that_are_refused():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(NoKernel):
        run(*passed(x, "median"))
    with pytest.raises(NoKernel):
        run(*passed(x, "softmax", (1.0,)))
    with pytest.raises(NoKernel):
        run(*passed(x, "layer_norm", (1.0,), (np.zeros(4, np.float32),)))


def plain(expr):
    return Epilogue(expr, (), ())


BYTES = {
    "source": int8,
    "before": plain(convert(arg(0, int8), float32)),
    "after": plain(quantize(arg(0, float32), 3, int8)),
}
DOUBLED = plain(apply("mul", arg(0, float32), const(2.0, float32)))
FLOATS = {"source": float32, "before": plain(arg(0, float32)), "after": DOUBLED}


@targets(
    (row_pass, {"kind": "softmax", "operands": 0, "more": 0, "is_long": False, **BYTES}),
    (row_pass, {"kind": "layer_norm", "operands": 2, "more": 0, "is_long": True, **FLOATS}),
    (row_pass, {"kind": "response_of_positive", "operands": 0, "more": 0, "is_long": False, **FLOATS}),
)
def test_row_passes_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
