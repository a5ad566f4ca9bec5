"""Compiled training of 16-bit floats: sums in float32 and steps of optimizers, rounded once, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright.ops.optimizer_rules import RULES

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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", [r if r == "adam" else pytest.param(r, marks=pytest.mark.slow) for r in RULES])
def test_steps(rule, dtype):
    """A step of each rule is that of float64, rounded once."""
    states, scalars = RULES[rule].state, RULES[rule].scalars
    (w, w64), (g, g64) = narrow(dtype, 33, 65), narrow(dtype, 33, 65)
    slots = [narrow(dtype, 33, 65) for _ in states]
    slots = [(ow.abs(s) * 0.1 + (1 - (n == "mean")), n) for (s, _), n in zip(slots, states)]
    exact = [np.asarray(ow.cast(s, ow.float64)) for s, _ in slots]
    numbers = [ow.cast(ow.constant(c), dtype) for c in RNG.uniform(0.1, 0.3, len(scalars)).astype(np.float32)]
    variable, variables = ow.Variable(w), [ow.Variable(s) for s, _ in slots]

    @ow.function(jit_compile=True)
    def step(g, *c):
        handles = [v.handle for v in variables]
        ow.ops.get("UpdateVariable")(variable.handle, handles, g, list(c), rule=rule)

    step(g, *numbers)
    w64, c64 = w64.copy(), [np.float64(np.asarray(ow.cast(c, ow.float64))) for c in numbers]
    exact = [e.copy() for e in exact]
    RULES[rule].update(g64, w64, exact, c64)
    for actual, e in zip((variable, *variables), (w64, *exact), strict=True):
        y = np.asarray(ow.cast(actual.read_value(), ow.float64))
        np.testing.assert_allclose(y, e, rtol=1.05 * DTYPES[dtype], atol=2e-6)
    assert "UpdateVariable UpdateVariable" not in step.experimental_get_compiler_ir(g, *numbers)()
