"""Depthwise convolution of int8 and uint8: the sums exactly, whole and in parts, and code for every target."""

import dataclasses
import itertools

import numpy as np
import pytest
from foreign import HERE
from form_kit import buffer, compiles_for, run, split, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import correlated, output_size

import opwright as ow
from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.depthwise_int8 import depthwise_any_int8, depthwise_int8
from opwright.compiler.kernels.depthwise_rows import bands_of, geometry_of
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.register_tiles import DepthwiseTile
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, lookup, parametrised, quantize, row_scale
from opwright.compiler.loops.ops import Depthwise
from opwright.core.dtypes import as_dtype, float32, int8, int32, int64, uint8
from thorough import THOROUGH, crossed, examples, sampled

RNG = np.random.default_rng(6)
SUM = arg(0, int32)
SAME3 = Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1))


def drawn(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def expected(x, filter, window, multiplier, x_zero, filter_zero):
    """The sums in int64, or float64; padding counts as x_zero."""
    wide = np.repeat(x if x.dtype == np.float64 else x.astype(np.int64), multiplier, axis=3) - x_zero
    return correlated(wide, window, lambda pixels, i, j: pixels * (filter[i, j].astype(np.int64) - filter_zero))


def made(x, filter, window, multiplier=1, x_zero=0, filter_zero=0, constant=True, expr=SUM, operands=()):
    shape = (x.shape[0], *output_size(x.shape, window), x.shape[3] * multiplier)
    source, taps = buffer(x), Buffer("filter", as_dtype(filter.dtype), filter.shape, filter if constant else None)
    given = {source: x} if constant else {source: x, taps: filter}
    known = tuple(Buffer("operand", as_dtype(a.dtype), a.shape, a) for a in operands)
    form = Depthwise(Buffer("y", expr.dtype, shape), source, taps, known, expr, window, multiplier, x_zero, filter_zero)
    return form, given


def check(x, filter, window, multiplier=1, x_zero=0, filter_zero=0, constant=True):
    form, given = made(x, filter, window, multiplier, x_zero, filter_zero, constant)
    got = run(form, given)
    np.testing.assert_array_equal(got, expected(x, filter, window, multiplier, x_zero, filter_zero))
    np.testing.assert_array_equal(split(form, given, 3), got)


@pytest.mark.parametrize(("size", "stride", "channels"), crossed((3, 5), (1, 2), (1, 2, 3, 5, 16, 17, 24, 67), every=7))
def test_channels(size, stride, channels):
    pad = size // 2
    window = Window((size, size), (stride, stride), (1, 1), (pad, pad, pad, pad))
    for height, width in ((1, 1), (7, 5), (8, 13)):
        check(drawn(np.int8, 2, height, width, channels), drawn(np.int8, size, size, channels), window, x_zero=-7)
    check(drawn(np.uint8, 1, 6, 9, channels), drawn(np.int8, size, size, channels), window, x_zero=131)


def test_images_of_one_column():
    """Test the windows that become rows: any stride, dilation and padding; tall windows are unchanged."""
    for high, stride, gap, (top, bottom) in ((9, 2, 1, (3, 4)), (3, 1, 4, (4, 4)), (25, 1, 1, (12, 12))):
        window = Window((high, 1), (stride, 2), (gap, 1), (top, bottom, 0, 0))
        for channels in (1, 67) if THOROUGH else (19,):
            check(drawn(np.int8, 2, 31, 1, channels), drawn(np.int8, high, 1, channels), window, x_zero=-7)
            check(drawn(np.uint8, 1, 31, 1, channels), drawn(np.uint8, high, 1, channels), window, 1, 131, 90)


@settings(deadline=None, max_examples=examples(40))
@given(st.data())
def test_any_window(data):
    size, strides, dilations = (tuple(data.draw(st.integers(1, n)) for _ in range(2)) for n in (6, 3, 3))
    padding = tuple(data.draw(st.integers(0, 4)) for _ in range(4))
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations)]
    height, width = (
        data.draw(st.integers(max(1, r - p - q), 21)) for r, p, q in zip(reach, padding[0::2], padding[1::2])
    )
    channels, multiplier = data.draw(st.sampled_from((1, 3, 18))), data.draw(st.sampled_from((1, 1, 2, 3)))
    x = drawn(data.draw(st.sampled_from((np.int8, np.uint8))), data.draw(st.integers(1, 2)), height, width, channels)
    check(
        x,
        drawn(np.int8, *size, channels * multiplier),
        Window(size, strides, dilations, padding),
        multiplier,
        data.draw(st.integers(0, 127)),
    )


ZEROS = [
    (np.uint8, 128),
    (np.uint8, 140),
    (np.uint8, 1),
    (np.uint8, 0),
    (np.uint8, 255),
    (np.int8, 5),
    (np.int8, -128),
    (np.int8, 127),
]


@pytest.mark.parametrize(("channels", "multiplier"), sampled([(8, 4), (3, 2), (4, 24), (10, 3)]))
def test_several_outputs_of_a_channel(channels, multiplier):
    for window in (
        Window((3, 3), (1, 2), padding=(1, 1, 1, 1)),
        Window((2, 5), dilations=(2, 2), padding=(0, 2, 4, 4)),
    ):
        filter = drawn(np.int8, *window.size, channels * multiplier)
        check(drawn(np.int8, 2, 7, 13, channels), filter, window, multiplier, -7)
        check(drawn(np.uint8, 2, 7, 13, channels), filter, window, multiplier, 131)


@pytest.mark.parametrize(("dtype", "zero"), ZEROS)
def test_zero_points_of_filters(dtype, zero):
    info = np.iinfo(dtype)
    filter = drawn(dtype, 3, 3, 19)
    filter[:, :, :2] = info.min, info.max
    check(drawn(np.uint8, 1, 7, 6, 19), filter, SAME3, 1, 128, zero)


def test_filters_that_are_not_constant_and_large_ones():
    check(drawn(np.int8, 1, 7, 6, 19), drawn(np.int8, 3, 3, 19), SAME3, 1, 3, constant=False)
    check(drawn(np.int8, 1, 12, 11, 19), drawn(np.int8, 9, 8, 19), Window((9, 8), (1, 1), (1, 1), (4, 4, 4, 3)), 1, 3)


def test_extremes_are_exact():
    for x, w in ((-128, -128), (127, -128), (-128, 127)):
        check(
            np.full((1, 6, 6, 16), x, np.int8),
            np.full((5, 5, 16), w, np.int8),
            Window((5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
            x_zero=-128,
        )


def test_requantised():
    x, filter, bias = drawn(np.int8, 1, 9, 9, 40), drawn(np.int8, 3, 3, 40), drawn(np.int16, 40).astype(np.int32)
    scale = RNG.random(40).astype(np.float32) * 0.004
    scaled = apply("mul", convert(apply("add", SUM, arg(1, int32)), float32), arg(2, float32))
    sums = expected(x, filter, SAME3, 1, -4, 0) + bias
    want = np.clip(np.rint(sums * scale.astype(np.float64)) + 3, -128, 127)
    form, given = made(x, filter, SAME3, 1, -4, expr=quantize(scaled, 3, int8), operands=(bias, scale))
    got = run(form, given)
    assert np.abs(got - want).max() <= 1
    assert (got == want).mean() > 0.999
    form, given = made(x, filter, SAME3, 1, -4, expr=scaled, operands=(bias, scale))
    np.testing.assert_allclose(run(form, given), sums * scale, rtol=1e-6)


@pytest.mark.parametrize("name", HERE)
def test_looked_up_beside_an_operand(name):
    """Several columns and rows are finished at a time, the last of a line by themselves."""
    table = drawn(np.int8, 256)
    last = lookup(quantize(apply("mul", convert(SUM, float32), arg(1, float32)), 3, int8), arg(2, int8))
    value = lookup(quantize(apply("mul", convert(SUM, float32), arg(1, float32)), 3, int8), arg(3, int8))
    value = apply("add", convert(value, int32), convert(arg(2, int8), int32))
    value = quantize(convert(value, float32), 0, int8)
    windows = (
        SAME3,
        Window((3, 3), (2, 2), padding=(0, 1, 0, 1)),
        Window((5, 5), padding=(2, 2, 2, 2)),
        Window((3, 3), dilations=(2, 2), padding=(2, 2, 2, 2)),
    )
    for width, window in itertools.product((4, 9, 11), windows):
        x, filter = drawn(np.int8, 1, 9, width, 40), drawn(np.int8, *window.size, 40)
        scale = (RNG.random(40) * 0.004).astype(np.float32)
        sums = expected(x, filter, window, 1, -4, 0)
        rest = drawn(np.int8, *sums.shape)
        form, given = made(x, filter, window, 1, -4, expr=value, operands=(scale, rest, table))
        index = np.clip(np.rint(sums.astype(np.float32) * scale) + 3, -128, 127).astype(np.int8).view(np.uint8)
        want = np.clip(table[index].astype(int) + rest, -128, 127)
        alone, given_alone = made(x, filter, window, 1, -4, expr=last, operands=(scale, table))
        with ow.flags(target=name):
            np.testing.assert_array_equal(run(form, given), want, err_msg=f"{width} {window}")
            np.testing.assert_array_equal(run(alone, given_alone), table[index], err_msg=f"alone {width} {window}")


@pytest.mark.parametrize("name", HERE)
def test_wide_images_are_computed_in_segments(name):
    """Test rows of several segments, the last one shorter: plain sums, and looked up a few columns at a time."""
    table, scale = drawn(np.int8, 256), (RNG.random(72) * 0.004).astype(np.float32)
    index = quantize(apply("mul", convert(SUM, float32), arg(1, float32)), 3, int8)
    for stride, width in ((1, 151), (2, 133)):
        window = Window((5, 5), (stride, stride), padding=(2, 2, 2, 2))
        x, filter = drawn(np.int8, 2, 5, width, 72), drawn(np.int8, 5, 5, 72)
        form, arrays = made(x, filter, window, x_zero=-7, expr=lookup(index, arg(2, int8)), operands=(scale, table))
        bands = bands_of(form, geometry_of(form), 2, 8)
        assert bands.segments == -(-form.output.shape[2] // bands.columns) > 1
        assert form.output.shape[2] % bands.columns
        sums = expected(x, filter, window, 1, -7, 0)
        want = table[np.clip(np.rint(sums.astype(np.float32) * scale) + 3, -128, 127).astype(np.int8).view(np.uint8)]
        plain, plain_arrays = made(x, filter, window, x_zero=-7)
        with ow.flags(target=name):
            np.testing.assert_array_equal(run(form, arrays), want)
            np.testing.assert_array_equal(split(form, arrays, 3), want)
            np.testing.assert_array_equal(run(plain, plain_arrays), sums)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("rounding", ["symmetric", "asymmetric"])
def test_floats_that_are_rounded(rounding, multiplier):
    """Each image by its own range: half a step of it a tap, at most, and exact where the pixels are whole steps."""
    x, filter = RNG.integers(-127, 128, (3, 8, 9, 20)).astype(np.float32), drawn(np.int8, 3, 3, 20 * multiplier)
    x[:, 0, 0, 0], x[:, 0, 0, 1] = -128, 127
    x = x.clip(-127) if rounding == "symmetric" else x
    x *= np.float32([1, 0.5, 4])[:, None, None, None]
    scale, bias = RNG.random(20 * multiplier).astype(np.float32), drawn(np.int8, 20 * multiplier).astype(np.float32)
    scaled = apply("mul", apply("mul", convert(SUM, float32), row_scale()), arg(1, float32))
    value = apply("add", scaled, arg(2, float32))
    form, given = made(x, filter, SAME3, multiplier, expr=value, operands=(scale, bias))
    form = dataclasses.replace(form, rounding=rounding)
    want = expected(x.astype(np.float64), filter, SAME3, multiplier, 0, 0) * scale + bias
    got = run(form, given)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(split(form, given, 3), got)


def test_slices_of_a_concatenation():
    whole = drawn(np.int8, 1, 6, 7, 50)
    source, joined = Buffer("x", int8, whole.shape), Buffer("joined", int32, (1, 6, 7, 31))
    filter = drawn(np.int8, 3, 3, 20)
    out, part = Buffer("y", int32, (1, 6, 7, 20), None, joined, 11), Buffer("x", int8, (1, 6, 7, 20), None, source, 13)
    form = Depthwise(out, part, Buffer("filter", int8, filter.shape, filter), (), SUM, SAME3, 1, 9)
    np.testing.assert_array_equal(
        run(form, {source: whole})[..., 11:], expected(whole[..., 13:33], filter, SAME3, 1, 9, 0)
    )


@pytest.mark.parametrize("multiplier", [1, 2])
def test_int16(multiplier):
    x, filter = drawn(np.int16, 1, 7, 6, 19), drawn(np.int8, 3, 3, 19 * multiplier)
    form, given = made(x, filter, SAME3, multiplier, expr=arg(0, int64))
    np.testing.assert_array_equal(run(form, given), expected(x, filter, SAME3, multiplier, 0, 0))


def test_other_dtypes_are_refused():
    x = drawn(np.int32, 1, 4, 4, 3)
    form, given = made(x, drawn(np.int8, 3, 3, 3), SAME3)
    with pytest.raises(NoKernel, match="int32"):
        run(form, given)


EPILOGUE = Epilogue(
    parametrised(quantize(apply("mul", convert(SUM, float32), arg(1, float32)), 3, int8))[0],
    (("channel", float32),),
    (int32,),
)
CODE = {"lanes": 4, "more": 2, "epilogue": EPILOGUE}
ANY = {"source": "multiplier", "x_dtype": int8, "filter_dtype": uint8, "rounded": False}


QUICK = {"together": 1, "more": 2, "epilogue": EPILOGUE, "signed": True, "dilated": False, "rounded": False}


@targets(
    (depthwise_int8, {"tile": DepthwiseTile((3, 3), (1, 1), 4, 2, 1, 4), **QUICK}),
    (depthwise_any_int8, {**ANY, **CODE}),
    (depthwise_int8, {"tile": DepthwiseTile((5, 5), (1, 1), 2, 2, 2, 4), **QUICK, "dilated": True}),
)
def test_every_target(family, constants, names):
    compiles_for(names, family, **constants)
