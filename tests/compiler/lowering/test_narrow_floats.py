"""Compiled training of 16-bit floats: sums in float32, rounded once, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow

RNG = np.random.default_rng(9)
DTYPES = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half the distance of 1 and the next number."""


def narrow(dtype, *shape):
    """Numbers of a type as a tensor, and in float64."""
    x = ow.cast(ow.constant(RNG.standard_normal(shape).astype(np.float32)), dtype)
    return x, np.asarray(ow.cast(x, ow.float64))


def close(actual, expected, dtype):
    """Within one rounding of the type, and the float32 arithmetic before it."""
    assert actual.dtype.name == dtype
    y = np.asarray(ow.cast(actual, ow.float64))
    np.testing.assert_allclose(y, expected, rtol=1.01 * DTYPES[dtype], atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_sums_and_their_gradients(dtype):
    (x, x64), (w, w64), (b, _), (dy, dy64) = (narrow(dtype, *s) for s in ((70, 90), (90, 50), (50,), (70, 50)))

    @ow.function(jit_compile=True)
    def run(x, w, b, dy):
        with ow.GradientTape() as tape:
            tape.watch((x, w, b))
            y = ow.matmul(x, w)
            z = y + b
        return (y, ow.reduce_mean(x, 0), *tape.gradient(z, (x, w, b), output_gradients=dy))

    expected = (x64 @ w64, x64.mean(0), dy64 @ w64.T, x64.T @ dy64, dy64.sum(0))
    for actual, e in zip(run(x, w, b, dy), expected, strict=True):
        close(actual, e, dtype)
    assert ", 0 as they are" in run.experimental_get_compiler_ir(x, w, b, dy)()


@pytest.mark.parametrize("dtype", DTYPES)
def test_convolutions_and_pools(dtype):
    (x, x64), (w, w64) = narrow(dtype, 2, 8, 8, 6), narrow(dtype, 1, 1, 6, 10)
    dy, dy64 = narrow(dtype, 2, 4, 4, 10)

    @ow.function(jit_compile=True)
    def run(x, w, dy):
        with ow.GradientTape() as tape:
            tape.watch((x, w))
            y = ow.nn.conv2d(ow.nn.max_pool2d(x, 2, 2, "VALID"), w, 1, "VALID")
        return (y, *tape.gradient(y, (x, w), output_gradients=dy))

    windows = x64.reshape(2, 4, 2, 4, 2, 6)
    pooled = windows.max((2, 4))
    is_first = windows == pooled[:, :, None, :, None]
    dx = (is_first * (dy64 @ w64[0, 0].T)[:, :, None, :, None]).reshape(x64.shape)
    expected = (pooled @ w64[0, 0], dx, np.einsum("nhwc,nhwf->cf", pooled, dy64)[None, None])
    for actual, e in zip(run(x, w, dy), expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(ow.cast(actual, ow.float64)), e, rtol=2.1 * DTYPES[dtype], atol=4 * DTYPES[dtype]
        )
    assert ", 0 as they are" in run.experimental_get_compiler_ir(x, w, dy)()
