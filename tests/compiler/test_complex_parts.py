"""Complex arithmetic and Fourier transforms of functions as machine code; oracle: eager results, computed by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.complex_parts import with_real_arithmetic
from thorough import THOROUGH

RNG = np.random.default_rng(5)
NEAR = {"complex64": 2e-6, "complex128": 2e-15}
"""The tolerance relative to the largest element, times the logarithm of a transform's length."""
DTYPES = sorted(NEAR)


def numbers(shape, dtype="complex64"):
    return ow.constant((RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype))


def reals(shape, dtype="complex64"):
    return ow.constant(RNG.standard_normal(shape).astype("float32" if dtype == "complex64" else "float64"))


def check(function, *arguments, whole=True, factor=8.0):
    """Compare a compiled function with its eager results. whole: whether no node remains uncompiled."""
    compiled = ow.function(function, jit_compile=True)
    expected, actual = (ow.nest.flatten(f(*arguments)) for f in (function, compiled))
    for e, a in zip(expected, actual, strict=True):
        e, a = e.numpy(), a.numpy()
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        near = NEAR["complex64" if e.dtype in (np.complex64, np.float32) else "complex128"]
        gap = np.abs(a - e).max()
        assert gap <= factor * near * np.abs(e).max(), gap
    report = compiled.experimental_get_compiler_ir(*arguments)()
    assert not whole or report.split("\n")[0].endswith("in 1 native calls, 0 as they are"), report


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype):
    x, y = numbers((6, 16), dtype), numbers((16,), dtype)
    check(lambda x, y: x * y + x / y - ow.math.conj(x) * ow.exp(y) - ow.math.reciprocal(x) + ow.square(x) * 2j, x, y)
    check(lambda x: (ow.abs(x), ow.math.angle(x), ow.math.real(x) - ow.math.imag(x), ow.sign(x)), x)
    check(lambda x, y: (ow.where(ow.equal(x, y), y, -x), ow.cast(x, y.dtype.real_dtype)), x, y)
    check(lambda x: ow.concat([ow.transpose(x)[2:5], ow.reverse(ow.reshape(x, [16, 6]), [0])[:3]], 0), x, factor=0.0)
    check(lambda x: (ow.reduce_sum(x, 1), ow.reduce_mean(x), ow.pad(x, [[1, 0], [0, 2]]), ow.gather(x, [3, 1])), x)


def test_products_of_matrices():
    a, b = numbers((3, 5, 7)), numbers((3, 7, 4))
    check(lambda a, b: (ow.matmul(a, b), ow.matmul(a, a, adjoint_a=True), ow.matmul(b, a, True, True)), a, b)
    check(lambda a, b: ow.einsum("bij,bjk->bik", a, b), a, b)


def test_overflow_and_infinities_agree_with_numpy():
    """Divisors whose squares overflow or underflow, and 0; infinities of exp and sign."""
    x = ow.constant(np.array([1 + 2j, 1e30 + 1e30j, 3e-30 - 1e-30j, 2j, 1 + 1j, 0j], np.complex64))
    y = ow.constant(np.array([3e30 - 1e30j, 2e30 + 1e25j, 1e-30 + 2e-30j, -4e-38 + 0j, 0j, 0j], np.complex64))
    e = ow.constant(np.array([89 + 1.5j, np.inf + 0j, -200 + 3j, 0j, -0.0 - 0j, 1 - 2j], np.complex64))
    s = ow.constant(np.array([0j, np.inf + 1j, complex(0, -np.inf), complex(np.nan, 1), 3e38 + 0j, -4j], np.complex64))
    functions = [(lambda x, y: x / y, (x, y)), (lambda e: ow.exp(e) * 1.0, (e,)), (lambda s: ow.sign(s) + 0.0, (s,))]
    for function, arguments in functions:
        expected = function(*arguments).numpy()
        actual = ow.function(function, jit_compile=True)(*arguments).numpy()
        np.testing.assert_allclose(actual.view(np.float32), expected.view(np.float32), rtol=2e-6)


def test_logarithms():
    """Against NumPy's in complex128, each part by itself, also near 1, at the ends of float32, and its gradient."""
    x = numbers((40, 50))
    edges = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-30, 3e38, -1e-20, 1 + 2**-20, 2**-24], np.float32)
    z = np.empty((12, 12), np.complex64)
    z.real, z.imag = edges[:, None], edges
    logarithm = ow.function(lambda z: ow.math.log(ow.reshape(z, [-1])), jit_compile=True)
    for values in (x.numpy(), z):
        with np.errstate(all="ignore"):
            expected = np.log(values.astype(np.complex128)).astype(np.complex64).reshape(-1)
        actual = logarithm(ow.constant(values)).numpy()
        np.testing.assert_allclose(actual.view(np.float32), expected.view(np.float32), rtol=3e-7)

    def gradient(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.abs(ow.math.log(x))
        return tape.gradient(y, x)

    check(gradient, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_transforms_of_rows(dtype):
    """Powers of two by stages, others by chirps, short ones in float32 by a matrix; cropped and padded rows."""
    for n in (1, 2, 7, 16, 64, 97, 128, 360, 1000, 1024) if THOROUGH else (1, 7, 64, 97, 360):
        z, r = numbers((3, n), dtype), reals((3, n), dtype)
        check(lambda z: (ow.signal.fft(z), ow.signal.ifft(z)), z)
        check(lambda r, n=n: (ow.signal.rfft(r), ow.signal.irfft(ow.signal.rfft(r) * 2.0, [n])), r)
    r = reals((2, 100), dtype)
    check(lambda r: (ow.signal.rfft(r, [64]), ow.signal.rfft(r, [150]), ow.signal.irfft(ow.signal.rfft(r), [70])), r)


@pytest.mark.parametrize("dtype", DTYPES)
def test_transforms_of_images_and_volumes(dtype):
    z, r = numbers((2, 6, 16, 30), dtype), reals((2, 6, 10, 64), dtype)
    check(lambda z: (ow.signal.fft3d(z), ow.signal.ifft2d(z)), z)
    check(lambda r: (ow.signal.rfft3d(r), ow.signal.rfft2d(r, [8, 70])), r)
    check(lambda r: ow.signal.irfft3d(ow.signal.rfft3d(r), [5, 12, 60]), r)
    check(
        lambda z: (ow.signal.fftnd(z, axes=[1, 3], norm="ortho"), ow.signal.ifftnd(z, [4, 20], [0, 2])), z, whole=False
    )
    check(lambda r: ow.signal.irfftnd(ow.signal.rfftnd(r, axes=[3, 1]), axes=[3, 1]), r)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype):
    def gradient(z, r):
        with ow.GradientTape() as tape:
            tape.watch([z, r])
            spectrum = ow.signal.fft(z * z) + ow.cast(r, z.dtype) / z
            loss = ow.reduce_sum(ow.abs(spectrum)) + ow.reduce_sum(ow.math.real(ow.signal.rfft(r)) ** 2)
        return tape.gradient(loss, [z, r])

    check(gradient, numbers((3, 64), dtype), reals((3, 64), dtype), factor=64.0)


def test_a_loop_over_a_wave():
    """A variable of a loop is two, and the loop is part of the native call."""

    def split_step(z, n):
        for _ in ow.range(n):
            z = ow.signal.ifft(ow.signal.fft(z) * 0.9) + z * 0.1j
        return z, ow.reduce_sum(ow.abs(z))

    check(split_step, numbers((3, 64)), ow.constant(5), factor=32.0)
    branch = ow.function(lambda z, c: ow.cond(c, lambda: z * 2j, lambda: z - 1.0), jit_compile=True)
    z = numbers((4, 8))
    for c in (True, False):
        np.testing.assert_array_equal(branch(z, ow.constant(c)), z.numpy() * 2j if c else z.numpy() - 1)


def test_whole_numbers_remain_for_nodes_without_rule():
    z = numbers((4, 16))
    check(lambda z: ow.math.log(z * z) + ow.signal.fft(z), z, whole=False)
    v = ow.Variable(z)
    step = ow.function(lambda: v.assign(v * 0.5 + 1j), jit_compile=True)
    step()
    np.testing.assert_allclose(v.numpy(), z.numpy() * 0.5 + 1j, rtol=1e-6)


def test_graphs_of_single_or_real_numbers_stay():
    for function, argument in ((lambda x: x * x + 1.0, ow.ones([4])), (lambda x: x * x, ow.constant(1 + 2j))):
        graph = ow.function(function).get_concrete_function(argument).program.plan.graph
        assert with_real_arithmetic(graph) is graph
