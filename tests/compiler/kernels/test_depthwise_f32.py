"""Depthwise convolution of float32 against float64, whole and in parts, and code for every target."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import correlated, output_size

from opwright.compiler.kernels.depthwise import depthwise_any_f32, depthwise_f32
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, parametrised, scalar
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Depthwise
from opwright.compiler.loops.planner import plan_of
from opwright.core.dtypes import float32
from thorough import crossed, examples, sampled

RNG = np.random.default_rng(5)
SUM, BIAS = arg(0, float32), arg(1, float32)
BIASED = apply("add", SUM, BIAS)
RELU6 = apply("minimum", apply("maximum", BIASED, scalar(0.0, float32)), scalar(6.0, float32))


def drawn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def expected(x, filter, window, multiplier=1):
    """The sums in float64: output channel c sees input channel c // multiplier."""
    wide = np.repeat(x.astype(np.float64), multiplier, axis=3)
    return correlated(wide, window, lambda pixels, i, j: pixels * filter[i, j].astype(np.float64))


def made(x, filter, window, multiplier=1, expr=SUM, operands=()):
    shape = (x.shape[0], *output_size(x.shape, window), x.shape[3] * multiplier)
    given = {buffer(a): a for a in (x, *operands)}
    source, *rest = given
    taps = Buffer("filter", float32, filter.shape, filter)
    return Depthwise(Buffer("y", float32, shape), source, taps, tuple(rest), expr, window, multiplier), given


def check(x, filter, window, multiplier=1):
    form, given = made(x, filter, window, multiplier)
    want = expected(x, filter, window, multiplier)
    got = run(form, given)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(split(form, given, 3), got)


CHANNELS = (1, 2, 3, 5, 16, 17, 24, 31, 48, 67)


@pytest.mark.parametrize(("size", "stride", "channels"), crossed((3, 5), (1, 2), CHANNELS, every=5))
def test_channels(size, stride, channels):
    for height, width in ((1, 1), (7, 5), (8, 13)):
        pad = size // 2
        check(
            drawn(2, height, width, channels),
            drawn(size, size, channels),
            Window((size, size), (stride, stride), (1, 1), (pad, pad, pad, pad)),
        )


@settings(deadline=None, max_examples=examples(40))
@given(st.data())
def test_any_window(data):
    size, strides, dilations = (tuple(data.draw(st.integers(1, n)) for _ in range(2)) for n in (5, 3, 3))
    padding = tuple(data.draw(st.integers(0, 4)) for _ in range(4))
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations)]
    height, width = (
        data.draw(st.integers(max(1, r - p - q), 19)) for r, p, q in zip(reach, padding[0::2], padding[1::2])
    )
    channels, multiplier = data.draw(st.sampled_from((1, 3, 18))), data.draw(st.sampled_from((1, 1, 2, 3)))
    check(
        drawn(data.draw(st.integers(1, 2)), height, width, channels),
        drawn(*size, channels * multiplier),
        Window(size, strides, dilations, padding),
        multiplier,
    )


def test_images_of_one_column():
    """Test the windows that become rows: any stride, dilation and padding; tall windows are unchanged."""
    for high, stride, gap, (top, bottom) in (
        (9, 2, 1, (3, 4)),
        (3, 1, 4, (4, 4)),
        (3, 2, 2, (2, 2)),
        (25, 1, 1, (9, 9)),
    ):
        window = Window((high, 1), (stride, 2), (gap, 1), (top, bottom, 0, 0))
        for channels in (1, 19, 67):
            check(drawn(2, 31, 1, channels), drawn(high, 1, channels), window)
    check(drawn(2, 31, 1, 19), drawn(5, 3, 19), Window((5, 3), (1, 1), (1, 1), (2, 2, 1, 1)))


@pytest.mark.parametrize(("channels", "multiplier"), sampled([(8, 4), (3, 2), (4, 24), (7, 3)]))
def test_several_outputs_of_a_channel(channels, multiplier):
    """In groups of one channel, as one step."""
    for window in (
        Window((3, 3), (1, 2), padding=(1, 1, 1, 1)),
        Window((2, 5), dilations=(2, 2), padding=(0, 2, 4, 4)),
    ):
        filter = drawn(*window.size, channels * multiplier)
        check(drawn(2, 7, 13, channels), filter, window, multiplier)
    form, arrays = made(drawn(2, 7, 13, channels), filter, window, multiplier)
    (step,) = plan_of(LoopGraph("groups", tuple(arrays), (form.output,), (form,))).steps
    assert "convolution_grouped" in step.code.name


def test_large_window():
    check(drawn(1, 12, 11, 19), drawn(9, 8, 19), Window((9, 8), (1, 1), (1, 1), (4, 4, 4, 3)))


def test_padding_does_not_touch_what_is_not_finite():
    x, window = drawn(1, 4, 4, 17), Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    x[0, 0, 0] = np.inf
    form, given = made(x, drawn(3, 3, 17), window)
    bad = ~np.isfinite(run(form, given))
    assert bad[0, :2, :2].all()
    assert not bad[0, 2:].any()
    assert not bad[0, :, 2:].any()


def test_bias_activation_and_what_is_beside():
    x, bias, filter = drawn(2, 9, 9, 40), drawn(40), 5 * drawn(3, 3, 40)
    window = Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    want = np.clip(expected(x, filter, window) + bias, 0, 6)
    form, given = made(x, filter, window, expr=RELU6, operands=(bias,))
    np.testing.assert_allclose(run(form, given), want, rtol=1e-5, atol=1e-5)
    constant = Buffer("bias", float32, bias.shape, bias)
    form = Depthwise(form.output, form.input, form.filter, (constant,), RELU6, window)
    np.testing.assert_allclose(run(form, {form.input: x}), want, rtol=1e-5, atol=1e-5)
    more = drawn(2, 9, 9, 40)
    form, given = made(x, filter, window, expr=apply("add", RELU6, arg(2, float32)), operands=(bias, more))
    np.testing.assert_allclose(run(form, given), want + more, rtol=1e-5, atol=1e-5)


def test_slices_of_a_concatenation():
    whole = drawn(1, 6, 7, 50)
    source = Buffer("x", float32, whole.shape)
    part = Buffer("part", float32, (1, 6, 7, 20), None, source, 13)
    joined = Buffer("joined", float32, (1, 6, 7, 31))
    filter, window = drawn(3, 3, 20), Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    out = Buffer("y", float32, (1, 6, 7, 20), None, joined, 11)
    form = Depthwise(out, part, Buffer("filter", float32, filter.shape, filter), (), SUM, window)
    got = run(form, {source: whole})[..., 11:]
    np.testing.assert_allclose(got, expected(whole[..., 13:33], filter, window), rtol=1e-5, atol=1e-5)


SKELETON = Epilogue(parametrised(RELU6)[0], (("channel", float32),), (float32, float32))
TILE = {"strides": (1, 1), "rows": 2, "lanes": 4, "has_bias": False, "dilated": False, "more": 3, "epilogue": SKELETON}


@targets(
    (depthwise_f32, {"size": (3, 3), **TILE}),
    (depthwise_f32, {"size": (5, 5), **TILE, "dilated": True}),
    (depthwise_any_f32, {"lanes": 4, "source": "multiplier", "more": 3, "epilogue": SKELETON}),
)
def test_every_target(family, constants, names):
    compiles_for(names, family, **constants)
