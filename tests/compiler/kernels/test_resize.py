"""Resized images against the reference kernels of the file format, whole and in parts, and code for every target."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.resize import bilinear, bilinear_lines, nearest
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import Resize
from opwright.compiler.loops.expressions import apply, arg, parametrised, quantize, scalar
from opwright.core.dtypes import float32, int8, int16
from opwright.scalar.fixed_point_layers import Sampling
from thorough import crossed

RNG = np.random.default_rng(10)
MODES = [(False, False), (True, False), (False, True)]  # align_corners, half_pixel_centers
SIZES = [
    ((4, 5), (8, 10)),
    ((7, 3), (3, 7)),
    ((5, 6), (5, 6)),
    ((1, 1), (3, 4)),
    ((6, 9), (1, 1)),
    ((3, 3), (11, 13)),
    ((33, 21), (17, 50)),
]


def positions(mode, size, out):
    """In float64."""
    i = np.arange(out, dtype=np.float64)
    if mode[0] and out > 1:
        return i * (size - 1) / (out - 1)
    return (i + 0.5) * size / out - 0.5 if mode[1] else i * size / out


def weights(mode, size, out):
    """The matrix [out, size] of a linear interpolation."""
    at = positions(mode, size, out).clip(0, size - 1)
    low = np.floor(at).astype(int)
    result = np.zeros((out, size))
    result[np.arange(out), low] = 1 - (at - low)
    result[np.arange(out), np.minimum(low + 1, size - 1)] += at - low
    return result


def mean_of_four(x, sizes, mode):
    rows, columns = (weights(mode, n, out) for n, out in zip(x.shape[1:3], sizes))
    return np.einsum("ph,qw,nhwc->npqc", rows, columns, x.astype(np.float64))


def resized(x, kind, sizes, mode, expr):
    source = buffer(x)
    out = Buffer("y", expr.dtype, (x.shape[0], *sizes, x.shape[3]))
    form = Resize(out, source, kind, *mode, expr)
    got = run(form, {source: x})
    np.testing.assert_array_equal(split(form, {source: x}, 3), got)
    return got


@pytest.mark.parametrize(("channels", "mode"), crossed([1, 3, 16, 37], MODES))
def test_bilinear(channels, mode):
    for size, sizes in SIZES:
        x = RNG.standard_normal((2, *size, channels)).astype(np.float32)
        got = resized(x, "bilinear", sizes, mode, arg(0, float32))
        np.testing.assert_allclose(got, mean_of_four(x, sizes, mode), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_bilinear_of_bytes(dtype, mode):
    """Positions in steps of 1/1024: a pixel away from its place by up to half a step a pixel of the result."""
    for size, sizes in SIZES:
        x = (40 * RNG.standard_normal((1, *size, 19)) + (0 if dtype == np.int8 else 128)).clip(0, 127).astype(dtype)
        got = resized(x, "bilinear", sizes, mode, quantize(arg(0, float32), 0, buffer(x).dtype))
        away = 127 * (max(sizes) / 2048 * 2) if dtype == np.int8 else 0
        assert np.abs(got - mean_of_four(x, sizes, mode)).max() <= 0.5001 + away


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [1, 19])
def test_bilinear_of_int16(channels, mode):
    """Exactly the mean of four by weights in steps of 1/1024, which no sum of 32 bits holds."""
    for size, sizes in SIZES:
        x = RNG.integers(-32768, 32767, (2, *size, channels), endpoint=True).astype(np.int16)
        x[0] = RNG.choice([-32768, 32767], x[0].shape)
        actual = resized(x, "bilinear", sizes, mode, quantize(arg(0, float32), 0, int16))
        places = (Sampling(n, out, *mode).between_steps() for n, out in zip(x.shape[1:3], sizes))
        (top, bottom, down), (left, right, across) = places
        down, across = down[:, None, None], across[:, None]
        sums = np.zeros(actual.shape, np.int64)
        for rows, by in ((top, 1024 - down), (bottom, down)):
            for columns, along in ((left, 1024 - across), (right, across)):
                sums += x.astype(np.int64)[:, rows[:, None], columns] * by * along
        expected = np.sign(sums) * ((np.abs(sums) + (1 << 19)) >> 20)  # halves away from zero
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("dtype", "mode"), crossed([np.float32, np.int8, np.int16, np.int64], [*MODES, (True, True)]))
def test_nearest(dtype, mode):
    for size, sizes in SIZES:
        for channels in (1, 5, 70):
            x = RNG.integers(-100, 100, (2, *size, channels)).astype(dtype)
            at = []
            for n, out in zip(size, sizes):
                i = np.arange(out, dtype=np.float32) + np.float32(0.5 if mode[1] else 0)
                ends = (n - 1, out - 1) if mode[0] and out > 1 else (n, out)
                scale = np.float32(ends[0]) / np.float32(ends[1])
                at.append(np.floor(i * scale + np.float32(0.5 if mode[0] else 0)).astype(int).clip(0, n - 1))
            got = resized(x, "nearest", sizes, mode, arg(0, buffer(x).dtype))
            np.testing.assert_array_equal(got, x[:, at[0][:, None], at[1]])


@pytest.mark.parametrize(
    ("channels", "dtype", "mode"), crossed([1, 3, 21], [np.float32, np.int8, np.uint8], MODES, every=3)
)
def test_rows_interpolated_first_have_the_bits_of_single_pixels(channels, dtype, mode):
    """A part of a wider array is computed pixel by pixel, a dense one by lines."""
    for size, sizes in SIZES:
        x = (50 * RNG.standard_normal((2, *size, channels))).clip(0, 127).astype(dtype)
        source = buffer(x)
        expr = arg(0, float32) if dtype is np.float32 else quantize(arg(0, float32), 0, source.dtype)
        joined = Buffer("joined", source.dtype, (2, *sizes, channels + 3))
        part = Buffer("y", source.dtype, (2, *sizes, channels), None, joined, 2)
        single = run(Resize(part, source, "bilinear", *mode, expr), {source: x})[..., 2 : channels + 2]
        np.testing.assert_array_equal(resized(x, "bilinear", sizes, mode, expr), single)


def test_expressions_and_slices():
    whole = RNG.standard_normal((1, 4, 4, 30)).astype(np.float32)
    source, joined = Buffer("x", float32, whole.shape), Buffer("joined", float32, (1, 8, 8, 40))
    part = Buffer("x", float32, (1, 4, 4, 20), None, source, 5)
    out = Buffer("y", float32, (1, 8, 8, 20), None, joined, 9)
    expr = apply("mul", apply("relu", arg(0, float32)), scalar(3.0, float32))
    got = run(Resize(out, part, "nearest", False, False, expr), {source: whole})[..., 9:29]
    np.testing.assert_allclose(got, 3 * np.maximum(whole[..., 5:25], 0).repeat(2, 1).repeat(2, 2), rtol=1e-6)
    got = run(Resize(out, part, "bilinear", False, True, expr), {source: whole})[..., 9:29]
    want = 3 * np.maximum(mean_of_four(whole[..., 5:25], (8, 8), (False, True)), 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_other_dtypes_are_refused():
    x = np.zeros((1, 4, 4, 3), np.int32)
    with pytest.raises(NoKernel, match="int32"):
        resized(x, "bilinear", (2, 2), MODES[0], arg(0, float32))


ROUNDED = parametrised(quantize(arg(0, float32), 0, int8))[0]
ROUNDED_WIDE = parametrised(quantize(arg(0, float32), 0, int16))[0]


SUMS = {"params": (buffer(np.int32([0])).dtype,), "more": 1, "differences": False}


@targets(
    (bilinear, {"dtype": int8, "lanes": 4, "expr": ROUNDED, **SUMS}),
    (bilinear, {"dtype": int16, "lanes": 4, "expr": ROUNDED_WIDE, **SUMS}),
    (bilinear, {"dtype": float32, "lanes": 4, "expr": arg(0, float32), "params": (), "more": 0, "differences": True}),
    (bilinear_lines, {"dtype": int8, "lanes": 2, "expr": ROUNDED, **SUMS}),
    (nearest, {"dtype": int8, "lanes": 4, "expr": None, "params": (), "more": 0}),
)
def test_every_target(family, constants, names):
    compiles_for(names, family, **constants)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("size", "out"), SIZES)
def test_means_by_differences_next_to_infinities(size, out, mode):
    """TensorFlow's formula by NumPy: what an infinity makes of each pixel, and the values of the others."""
    x = RNG.standard_normal((2, *size, 5)).astype(np.float32)
    x[0, size[0] // 2, size[1] // 2, 1] = np.inf
    expected = x.astype(np.float64)
    for axis in (2, 1):
        at = positions(mode, size[axis - 1], out[axis - 1])
        low = np.floor(at)
        high, part = np.ceil(at).clip(0, size[axis - 1] - 1).astype(int), at - low
        first = np.take(expected, low.clip(0).astype(int), axis)
        part = part[:, None, None] if axis == 1 else part[:, None]
        with np.errstate(invalid="ignore"):
            expected = first + (np.take(expected, high, axis) - first) * part
    source, y = buffer(x), Buffer("y", float32, (2, *out, 5))
    got = run(Resize(y, source, "bilinear", *mode, arg(0, float32), True), {source: x})
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
