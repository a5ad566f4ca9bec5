"""Compiled convolutions over volumes and in groups, pools of volumes, and their gradients, against sums over the taps
of a window in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opwright as ow

RNG = np.random.default_rng(6)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def padding_of(sizes, kernel, strides, padding):
    """Padding before and after each axis, and the output sizes, as TensorFlow defines SAME and VALID."""
    if padding == "VALID":
        return [(0, 0)] * len(sizes), [(n - k) // s + 1 for n, k, s in zip(sizes, kernel, strides)]
    outs = [-(-n // s) for n, s in zip(sizes, strides)]
    totals = [max((o - 1) * s + k - n, 0) for n, k, s, o in zip(sizes, kernel, strides, outs)]
    return [(t // 2, t - t // 2) for t in totals], outs


def convolution(x, w, dy, strides, padding):
    """The convolution of x by w, and the gradients of its product with dy by x and by w."""
    x, w = x.astype(float), w.astype(float)
    axes, kernel = x.shape[1:-1], w.shape[: x.ndim - 2]
    pads, outs = padding_of(axes, kernel, strides, padding)
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    groups = x.shape[-1] // w.shape[-2]
    y, dx, dw = np.zeros((len(x), *outs, w.shape[-1])), np.zeros_like(padded), np.zeros_like(w)
    c, f = w.shape[-2], w.shape[-1] // groups
    for tap in itertools.product(*map(range, kernel)):
        box = (slice(None), *(slice(k, k + (o - 1) * s + 1, s) for k, o, s in zip(tap, outs, strides)))
        for g in range(groups):
            ins, to = slice(g * c, (g + 1) * c), slice(g * f, (g + 1) * f)
            y[..., to] += padded[(*box, ins)] @ w[(*tap, slice(None), to)]
            if dy is not None:
                dx[(*box, ins)] += dy[..., to] @ w[(*tap, slice(None), to)].T
                dw[(*tap, slice(None), to)] += padded[(*box, ins)].reshape(-1, c).T @ dy[..., to].reshape(-1, f)
    inside = (slice(None), *(slice(a, a + n) for (a, _), n in zip(pads, axes)))
    return y, dx[inside], dw


def compiled_gradients(f, dy, *xs):
    """Results of f and its gradients by one native call."""

    @ow.function(jit_compile=True)
    def run(dy, *xs):
        with ow.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return (y, *tape.gradient(y, xs, output_gradients=dy))

    args = [ow.constant(x) for x in (dy, *xs)]
    results = [np.asarray(y) for y in run(*args)]
    assert " in 1 native calls, 0 as they are" in run.experimental_get_compiler_ir(*args)()
    return results


CASES = [
    # x, w, strides
    ((2, 9, 10, 11, 5), (3, 3, 2, 5, 7), (1, 1, 1)),
    ((2, 9, 10, 11, 5), (3, 3, 2, 5, 7), (2, 2, 2)),
    ((1, 6, 17, 16, 19), (1, 3, 3, 19, 33), (1, 2, 2)),
    ((2, 13, 16, 6), (3, 3, 3, 12), (1, 1)),
    ((2, 13, 16, 6), (3, 3, 1, 12), (2, 2)),
    ((2, 14, 14, 64), (3, 3, 16, 64), (1, 1)),
]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("x", "w", "strides"), CASES, ids=str)
def test_convolutions(x, w, strides, padding):
    x, w = array(*x), array(*w)
    y, _, _ = convolution(x, w, None, strides, padding)
    dy = array(*y.shape)
    operator = ow.nn.conv3d if x.ndim == 5 else ow.nn.conv2d
    actual = compiled_gradients(lambda x, w: operator(x, w, [1, *strides, 1], padding), dy, x, w)
    for a, e in zip(actual, convolution(x, w, dy, strides, padding), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5 * np.abs(e).max())


@pytest.mark.parametrize("kind", ["max", "mean"])
def test_pools_of_volumes(kind):
    """Equal maxima, of the rounded numbers: the first of a window receives the gradient."""
    x, size = np.round(array(2, 8, 6, 9, 17)), (2, 3, 3)
    dy = array(2, 4, 2, 3, 17)
    operator = ow.nn.max_pool3d if kind == "max" else ow.nn.avg_pool3d
    y, dx = compiled_gradients(lambda x: operator(x, size, size, "VALID") * 1.0, dy, x)
    apart = x.reshape(2, 4, 2, 2, 3, 3, 3, 17).transpose(0, 1, 3, 5, 2, 4, 6, 7).reshape(2, 4, 2, 3, 18, 17)
    if kind == "max":
        share = np.arange(18)[:, None] == apart.argmax(4)[..., None, :]
    else:
        share = np.full_like(apart, 1 / 18)
    np.testing.assert_allclose(y, apart.max(4) if kind == "max" else apart.mean(4, dtype=float), rtol=1e-6, atol=1e-7)
    expected = (share * dy[..., None, :]).reshape(2, 4, 2, 3, 2, 3, 3, 17).transpose(0, 1, 4, 2, 5, 3, 6, 7)
    np.testing.assert_allclose(dx, expected.reshape(x.shape), rtol=1e-6, atol=1e-7)
