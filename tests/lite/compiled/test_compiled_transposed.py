"""Transposed convolutions at sizes about those where the kernel changes its way, on both kinds of vectors.

The oracle of Convolution2DTransposeBias is its formula in float64, of TRANSPOSE_CONV with integer weights the official
reference kernel.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine_kit import engine, plan_of
from foreign import HERE
from lite_kit import Build, run

from opwright import lite
from opwright.lite.format import objects, versions
from thorough import THOROUGH

RNG = np.random.default_rng(8)
SIZES = [((1, 1, 1), 5), ((1, 1, 2), 5), ((1, 1, 3), 5), ((2, 4, 5), 4), ((1, 7, 6), 33)]
"""Images and channels: a product of one or two pixels, or of one channel, reads the filter in place."""
KINDS = [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (2, 2)), ((2, 3), (3, 1)), ((1, 1), (2, 2))]
"""Windows and strides."""
FEATURES = (1, 7, 8, 17)
"""Eight channels per tap are a separate product."""
BIASED = list(itertools.product(SIZES, KINDS, FEATURES, (1, 2)))[:: 9 if THOROUGH else 27]
HYBRID = list(itertools.product(SIZES, KINDS[:3], FEATURES, (False, True)))[:: 7 if THOROUGH else 21]


def spread(x, f, b, strides, padding):
    """y[n, p s + i, q s + j, o] = b[o] + sum x[n, p, q, c] f[o, i, j, c], and what SAME leaves out cut off."""
    n, h, w, _ = x.shape
    o, kh, kw, _ = f.shape
    sizes = [s * (m - 1) + k for m, k, s in zip((h, w), (kh, kw), strides)]
    y = np.zeros((n, *sizes, o))
    for p, q, i, j in itertools.product(range(h), range(w), range(kh), range(kw)):
        y[:, p * strides[0] + i, q * strides[1] + j] += x[:, p, q].astype(np.float64) @ f[:, i, j].astype(np.float64).T
    if padding == 1:  # SAME
        for axis, (m, k, s) in enumerate(zip((h, w), (kh, kw), strides), 1):
            spare = max(0, k - (m - 1) % s - 1)
            y = np.take(y, range(spare // 2, y.shape[axis] - spare + spare // 2), axis)
    return y + b


def with_bias(x, f, b, y, strides, padding):
    build = Build().tensor("x", x).tensor("f", data=f).tensor("b", data=b).tensor("y", y)
    raw = np.array([padding, strides[1], strides[0]], np.int32).view(np.uint8)
    code = versions.operator_code("CUSTOM", 1, "Convolution2DTransposeBias")
    return build.operator(code, "x f b", "y", custom_options=raw).done()


@pytest.mark.parametrize("target", HERE)
def test_the_bias_of_a_transposed_convolution(target):
    for (image, c), (size, strides), o, padding in BIASED:
        x = RNG.normal(size=(*image, c)).astype(np.float32)
        f, b = RNG.normal(size=(o, *size, c)).astype(np.float32), RNG.normal(size=o).astype(np.float32)
        expected = spread(x, f, b, strides, padding)
        if not expected.size:
            continue
        with engine(verify=True, target=target):
            interpreter = lite.Interpreter(model_content=with_bias(x.shape, f, b, expected.shape, strides, padding))
            (actual,) = run(interpreter, [x])
        assert plan_of(interpreter) == ["Opwright"]
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", HERE)
def test_floats_by_integer_weights(target):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    for (image, c), (size, strides), o, by_channel in HYBRID if THOROUGH or target == HERE[0] else HYBRID[::2]:
        n, h, w = image
        sizes = (n, h * strides[0], w * strides[1], o)
        scales = RNG.uniform(0.01, 0.03, o if by_channel else 1).astype(np.float32)
        q = objects.QuantizationParameters(scale=scales, zero_point=[0] * scales.size)
        build = Build().tensor("s", type="INT32", data=np.int32(sizes)).tensor("x", (*image, c)).tensor("y", sizes)
        build.tensor("f", type="INT8", data=RNG.integers(-127, 128, (o, *size, c)).astype(np.int8), quantization=q)
        build.tensor("b", data=RNG.normal(size=o).astype(np.float32))
        content = build.op("TRANSPOSE_CONV", "s f x b", "y", version=3, stride_h=strides[0], stride_w=strides[1]).done()
        x = RNG.normal(size=(*image, c)).astype(np.float32)
        reference = peer.OpResolverType.BUILTIN_REF
        (expected,) = run(peer.Interpreter(model_content=content, experimental_op_resolver_type=reference), [x])
        with engine(verify=True, target=target):
            interpreter = lite.Interpreter(model_content=content)
            (actual,) = run(interpreter, [x])
        assert plan_of(interpreter) == ["Opwright"]
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
