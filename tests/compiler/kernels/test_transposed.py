"""Transposed convolution against the sum that defines it, in float64 or int64, and code for every target."""

import dataclasses

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.transposed_convolution import add_taps
from opwright.compiler.kernels.window_gradients import channel_filter_gradients, window_gradients
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, quantize
from opwright.compiler.loops.indexing_ops import ChannelFilterGradient, WindowGradient
from opwright.compiler.loops.ops import TransposedContract
from opwright.core.dtypes import as_dtype, float32, int8, int32
from thorough import crossed, examples

RNG = np.random.default_rng(9)


def drawn(dtype, *shape):
    return (RNG.standard_normal(shape) * (60 if dtype == np.int8 else 1)).clip(-128, 127).astype(dtype)


def expected(x, filter, window, sizes, x_zero=0, filter_zero=0):
    """Every pixel is spread over its window, then the padding is cut off."""
    kind = np.float64 if x.dtype == np.float32 else np.int64
    x, filter = x.astype(kind) - x_zero, filter.astype(kind) - filter_zero
    n, height, width, _ = x.shape
    features, kh, kw, _ = filter.shape
    (sh, sw), (dh, dw), (top, bottom, left, right) = window.strides, window.dilations, window.padding
    whole = np.zeros(
        (
            n,
            (height - 1) * sh + (kh - 1) * dh + 1 + top + bottom + sizes[0],
            (width - 1) * sw + (kw - 1) * dw + 1 + left + right + sizes[1],
            features,
        ),
        kind,
    )
    for i in range(kh):
        for j in range(kw):
            part = whole[:, i * dh : i * dh + (height - 1) * sh + 1 : sh, j * dw : j * dw + (width - 1) * sw + 1 : sw]
            part += np.einsum("nhwc,fc->nhwf", x, filter[:, i, j])
    return whole[:, top : top + sizes[0], left : left + sizes[1]]


def made(x, filter, window, sizes, expr, operands=(), zeros=(0, 0)):
    source, taps = buffer(x), Buffer("filter", as_dtype(filter.dtype), filter.shape, filter)
    known = tuple(Buffer("operand", as_dtype(a.dtype), a.shape, a) for a in operands)
    out = Buffer("y", expr.dtype, (x.shape[0], *sizes, filter.shape[0]))
    return TransposedContract(out, source, taps, known, expr, window, *zeros), {source: x}


def check(dtype, shape, features, window, x_zero=0, filter_zero=0):
    x, filter = drawn(dtype, *shape), drawn(dtype, features, *window.size, shape[3])
    sizes = tuple(
        max(1, (n - 1) * s + (k - 1) * d + 1 - p - q)
        for n, s, k, d, p, q in zip(
            shape[1:3], window.strides, window.size, window.dilations, window.padding[0::2], window.padding[1::2]
        )
    )
    expr = arg(0, float32 if dtype == np.float32 else int32)
    form, given = made(x, filter, window, sizes, expr, (), (x_zero, filter_zero))
    want, got = expected(x, filter, window, sizes, x_zero, filter_zero), run(form, given)
    if dtype == np.float32:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(split(form, given, 3), got)


@pytest.mark.parametrize(("features", "dtype"), crossed([1, 3, 7, 16, 37], [np.float32, np.int8]))
def test_upsampling(features, dtype):
    for size, strides, padding in ((2, 2, 0), (3, 2, 1), (4, 2, 1), (3, 1, 1), (5, 3, 0)):
        check(dtype, (2, 5, 4, 20), features, Window((size, size), (strides, strides), (1, 1), (padding,) * 4), 0)


def test_many_channels():
    """Filters of taps are copies, longer than what the allocator overwrites in memory that it got back."""
    check(np.int8, (1, 4, 3, 64), 32, Window((3, 3), (2, 2)), 5)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_one_and_two_pixels(dtype):
    for shape in ((1, 1, 1, 30), (1, 2, 1, 30)):
        check(dtype, shape, 37, Window((4, 4), (2, 2)))


def test_zero_points():
    check(np.int8, (1, 5, 7, 12), 9, Window((3, 3), (2, 2), (1, 1), (1, 0, 0, 1)), -7)


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_any_window(data):
    size, strides, dilations = (tuple(data.draw(st.integers(1, n)) for _ in range(2)) for n in (4, 3, 2))
    padding = tuple(data.draw(st.integers(0, 2)) for _ in range(4))
    shape = (1, data.draw(st.integers(3, 6)), data.draw(st.integers(1, 6)), data.draw(st.sampled_from((1, 4, 7))))
    dtype = data.draw(st.sampled_from((np.float32, np.int8)))
    zero = 5 if dtype == np.int8 else 0
    check(dtype, shape, data.draw(st.integers(1, 5)), Window(size, strides, dilations, padding), zero)


def test_bias_and_requantisation():
    x, filter, bias = drawn(np.int8, 1, 6, 6, 16), drawn(np.int8, 24, 2, 2, 16), drawn(np.int8, 24).astype(np.int32)
    scale, window = RNG.random(24).astype(np.float32) * 0.01, Window((2, 2), (2, 2))
    value = apply("mul", convert(apply("add", arg(0, int32), arg(1, int32)), float32), arg(2, float32))
    form, given = made(x, filter, window, (12, 12), quantize(value, 3, int8), (bias, scale), (-4, 0))
    want = np.clip(np.rint((expected(x, filter, window, (12, 12), -4) + bias) * scale.astype(float)) + 3, -128, 127)
    got = run(form, given)
    assert np.abs(got - want).max() <= 1
    assert (got == want).mean() > 0.999


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_filters_that_are_not_constant(dtype):
    x, filter, window = drawn(dtype, 2, 5, 4, 12), drawn(dtype, 19, 3, 2, 12), Window((3, 2), (2, 2))
    form, _ = made(x, filter, window, (11, 8), arg(0, float32 if dtype == np.float32 else int32))
    taps = Buffer("filter", as_dtype(filter.dtype), filter.shape)
    form = dataclasses.replace(form, filter=taps)
    got = run(form, {form.input: x, taps: filter})
    np.testing.assert_allclose(got, expected(x, filter, window, (11, 8)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("channels", "window"),
    crossed([5, 24, 70], [Window((3, 3), (2, 2), (1, 1), (1, 1, 0, 1)), Window((5, 4), (1, 3))]),
    ids=str,
)
def test_gradients_of_windows_in_float64(channels, window):
    """Each window by itself, in float64; images and groups of channels are independent work items."""
    rng = np.random.default_rng(7)
    (kh, kw), (sh, sw), (top, _, left, _) = window.size, window.strides, window.padding
    high, wide = 4, 3
    x, dy = (rng.standard_normal((3, *s, channels)).astype(np.float32) for s in ((9, 11), (high, wide)))
    w = rng.standard_normal((kh, kw, channels, 1)).astype(np.float32)
    largest, mean, by_input, by_filter = (np.zeros(s) for s in (x.shape, x.shape, x.shape, w.shape))
    for p in range(high):
        for q in range(wide):
            i, j = p * sh - top, q * sw - left
            a, b, c, d = max(i, 0), min(i + kh, 9), max(j, 0), min(j + kw, 11)
            part, inner = x[:, a:b, c:d].astype(np.float64), (slice(None), slice(a, b), slice(c, d))
            share, taps = dy[:, p, q].astype(np.float64)[:, None, None], w[a - i : b - i, c - j : d - j, :, 0]
            largest[inner] += (part == part.max((1, 2), keepdims=True)) * share
            mean[inner] += share / ((b - a) * (d - c))
            by_input[inner] += share * taps
            by_filter[a - i : b - i, c - j : d - j, :, 0] += (part * share).sum(0)
    inputs = {"x": buffer(x, "x"), "dy": buffer(dy, "dy"), "w": buffer(w, "w")}
    y, dw = Buffer("y", float32, x.shape), Buffer("dw", float32, w.shape)
    arrays = {inputs["x"]: x, inputs["dy"]: dy, inputs["w"]: w}
    forms = [
        (WindowGradient(y, inputs["dy"], (inputs["x"],), "max", window), largest),
        (WindowGradient(y, inputs["dy"], (), "mean", window), mean),
        (WindowGradient(y, inputs["dy"], (inputs["w"],), "filter", window), by_input),
        (ChannelFilterGradient(dw, inputs["x"], inputs["dy"], window), by_filter),
    ]
    for form, exact in forms:
        read = {b: arrays[b] for b in form.inputs}
        actual = run(form, read)
        np.testing.assert_allclose(actual, exact, 1e-5, 1e-5, err_msg=str(form))
        for parts in (2, 3):
            np.testing.assert_array_equal(split(form, read, parts), actual)


SUM = {"more": 0, "epilogue": Epilogue(arg(0, float32), (), ())}


@targets(
    (
        add_taps,
        {"dtype": float32, "lanes": 4, "by_tap": True, "dilated": False, "rounded": False, "masked": True, **SUM},
    ),
    (
        add_taps,
        {"dtype": float32, "lanes": 4, "by_tap": False, "dilated": True, "rounded": True, "masked": False, **SUM},
    ),
    (window_gradients, {"kind": "max", "multiplier": 1, "whole": True, "covers": True, "size": (3, 3), "more": 8}),
    (window_gradients, {"kind": "filter", "multiplier": 2, "whole": False, "covers": False, "size": (0, 0), "more": 8}),
    (channel_filter_gradients, {"multiplier": 2, "whole": False, "size": (3, 3), "more": 8}),
)
def test_every_target(family, constants, names):
    compiles_for(names, family, **constants)
