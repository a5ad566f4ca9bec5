"""Gradients of resized images as machine code: those of the interpolation matrices, in float64."""

import numpy as np
import pytest

import opwright as ow

SIZES = [((4, 5), (8, 10), 3), ((5, 7), (10, 21), 17), ((9, 6), (4, 3), 5), ((1, 2), (3, 5), 33), ((7, 7), (7, 7), 4)]


def interpolation(method, size, out):
    """Return the matrix [out, size] of half-pixel centers."""
    matrix, at = np.zeros((out, size)), (np.arange(out) + 0.5) * size / out
    if method == "nearest":
        matrix[np.arange(out), np.floor(at).astype(int)] = 1
        return matrix
    at = np.clip(at - 0.5, 0, size - 1)
    before = np.floor(at).astype(int)
    np.add.at(matrix, (np.arange(out), before), 1 - (at - before))
    np.add.at(matrix, (np.arange(out), np.minimum(before + 1, size - 1)), at - before)
    return matrix


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_gradients(method):
    @ow.function(jit_compile=True)
    def gradient(x, dy):
        with ow.GradientTape() as tape:
            tape.watch(x)
            total = ow.reduce_sum(ow.image.resize(x, dy.shape[1:3], method) * dy)
        return tape.gradient(total, x)

    rng = np.random.default_rng(0)
    for size, out, channels in SIZES:
        x, dy = ow.zeros([2, *size, channels]), rng.standard_normal((2, *out, channels)).astype(np.float32)
        rows, columns = (interpolation(method, n, m) for n, m in zip(size, out))
        expected = np.einsum("pi,qj,npqc->nijc", rows, columns, dy.astype(np.float64))
        np.testing.assert_allclose(gradient(x, ow.constant(dy)), expected, rtol=1e-5, atol=2e-6)
        assert ", 0 as they are" in gradient.experimental_get_compiler_ir(x, ow.constant(dy))()
