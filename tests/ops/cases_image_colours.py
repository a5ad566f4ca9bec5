"""Rows for the colours of images, and for how images change and differ: `ops/image`.

Oracles: Python's colorsys, one pixel at a time, and sums written out in float64.
"""

from __future__ import annotations

import colorsys
import math

import numpy as np
from harness import bad, bf16, case, f16, f32, f64, i16, i32, pos, u8, u16


def light(x):
    """Map the values of a generator into (0.02, 0.98)."""
    return np.asarray(x * x.dtype.type(0.24) + x.dtype.type(0.5)).astype(x.dtype)


def pixelwise(function):
    """`function` of three numbers, for every pixel."""
    return lambda x, *args: np.apply_along_axis(lambda p: function(*map(float, p), *args), -1, x)


def turned(r, g, b, delta):
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb((h + float(delta)) % 1.0, s, v)


def saturated(r, g, b, scale):
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb(h, min(1.0, max(0.0, s * float(scale))), v)


def contrasted(x, factor):
    mean = x.mean((-3, -2), keepdims=True)
    return mean + float(factor) * (x - mean)


def n(x):
    return np.array(x, np.float32)


def whole(function, most=255):
    """`function` of the numbers in [0, 1] that integers stand for, brought back, clipped and cut off."""

    def oracle(x, *args):
        y = function((x.astype(np.float32) / np.float32(most)).astype(np.float64), *args)
        return np.floor(np.clip(y * (most + 0.5), 0, most)).astype(x.dtype)

    return oracle


def as_floats(most):
    return lambda x, *_, **__: x / most


def kind_of(dtype, **options):
    """An expectation of integers of another size."""
    return lambda x, *_, **__: np.asarray(options["then"](x.astype(object))).astype(dtype)


def convert_rows():
    yield case(u8(7, high=255), "float32", expect=as_floats(255), gives="float32")
    yield case(u8(7, high=255), "float64", expect=as_floats(255), gives="float64")
    yield case(i16(7, low=0, high=32767), "float16", expect=as_floats(32767), gives="float16")
    yield case(light(f32(7)), "uint8", expect=lambda x, _: np.floor(x * 255.5), gives="uint8", half=False)
    yield case(light(f32(7)), "uint16", expect=lambda x, _: np.floor(x * 65535.5), half=False)
    yield case(
        f32(7), "uint8", saturate=True, half=False, expect=lambda x, *_, **__: np.floor(np.clip(x * 255.5, 0, 255))
    )
    yield case(u8(7, high=255), "uint16", expect=kind_of(np.uint16, then=lambda x: x * 256))
    yield case(u16(7, high=65535), "uint8", expect=kind_of(np.uint8, then=lambda x: x // 256))
    yield case(u8(7, high=255), "int8", expect=kind_of(np.int8, then=lambda x: x // 2))
    yield case(
        i16(7, low=-9, high=9), "uint8", saturate=True, expect=kind_of(np.uint8, then=lambda x: np.maximum(x // 128, 0))
    )
    yield case(f64(7), "float32", expect=lambda x, _: x, gives="float32", grad=False)
    yield case(f64(7), "float64", expect=lambda x, _: x)
    yield bad(f32(7), "string", raises=AttributeError, says="floating point or integer")


def matrix_of(rows):
    return lambda x: x @ np.array(rows).T


# The standards' definitions, a row for each new channel.
YIQ = [[0.299, 0.587, 0.114], [0.59590059, -0.27455667, -0.32134392], [0.2115, -0.52273617, 0.31119955]]
YUV = [[0.299, 0.587, 0.114], [-0.14714119, -0.28886916, 0.43601035], [0.61497538, -0.51496512, -0.10001026]]
FROM_YIQ = [[1, 0.95598634, 0.6208248], [1, -0.27201283, -0.64720424], [1, -1.10674021, 1.70423049]]
GREY = np.array([[[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]], np.float32)


def standard(x):
    axes = (-3, -2, -1)
    deviation = np.maximum(x.std(axes, keepdims=True), 1 / math.sqrt(np.prod(x.shape[-3:])))
    return (x - x.mean(axes, keepdims=True)) / deviation


CASES = {
    "RGBToHSV": [
        case(light(f64(2, 3, 3)), expect=pixelwise(colorsys.rgb_to_hsv)),
        case(light(f64(3)), expect=pixelwise(colorsys.rgb_to_hsv)),
        case(light(f32(5, 3)), expect=pixelwise(colorsys.rgb_to_hsv)),
        case(GREY, expect=lambda x: np.stack([0 * x[..., 0], 0 * x[..., 0], x[..., 0]], -1), grad=False),
        case(np.array([[-1.0, -2.0, -3.0]]), expect=np.array([[1 / 12, 0.0, -1.0]])),
        case(f32(0, 3), expect=lambda x: x),
        bad(f32(2, 4), says="3 channels"),
        bad(n(1.0), says="at least 1-D"),
        bad(i32(3), says="dtype"),
    ],
    "HSVToRGB": [
        case(light(f64(2, 3, 3)), expect=pixelwise(colorsys.hsv_to_rgb)),
        case(light(f64(3)), expect=pixelwise(colorsys.hsv_to_rgb)),
        case(light(f32(5, 3)), expect=pixelwise(colorsys.hsv_to_rgb)),
        bad(f32(2, 4), says="3 channels"),
    ],
    "AdjustContrast": [
        case(f64(2, 3, 4, 2), n(1.7), expect=contrasted),
        case(f64(3, 4, 2), np.array(-0.5), expect=contrasted),
        case(f16(3, 4, 2), n(1.5), expect=contrasted, gives="float16"),
        case(bf16(3, 4, 2), n(0.5), expect=contrasted, gives="bfloat16"),
        case(f32(0, 4, 2), n(0.5), expect=lambda x, _: x, grad=False),
        bad(f32(3, 4), n(0.5), says="at least 3-D"),
        bad(f32(3, 4, 2), f32(2), says="rank"),
    ],
    "AdjustHue": [
        case(light(f64(3, 4, 3)), np.array(0.3), expect=pixelwise(turned)),
        case(light(f64(2, 2, 1, 3)), np.array(-0.77), expect=pixelwise(turned)),
        case(light(f16(2, 2, 3)), n(0.4), expect=pixelwise(turned), gives="float16"),
        case(GREY[None], n(0.3), expect=lambda x, _: x, grad=False),
        bad(f32(2, 2, 4), n(0.3), says="3 channels"),
        bad(f32(2, 3), n(0.3), says="at least 3-D"),
    ],
    "AdjustSaturation": [
        case(light(f64(3, 4, 3)), np.array(0.6), expect=pixelwise(saturated)),
        case(light(f64(2, 2, 2, 3)), np.array(1.7), expect=pixelwise(saturated)),
        case(light(f16(2, 2, 3)), n(0.4), expect=pixelwise(saturated), gives="float16"),
        case(GREY[None], n(2.0), expect=lambda x, _: x, grad=False),
        bad(f32(2, 2, 4), n(0.3), says="3 channels"),
        bad(f32(2, 3), n(0.3), says="at least 3-D"),
    ],
    "image.adjust_brightness": [
        case(f64(2, 3, 1), 0.25, expect=lambda x, d: x + d),
        case(u8(4, 5, 1, high=255), 0.25, expect=whole(lambda x, d: x + d)),
        case(u8(4, 5, 1, high=255), -0.5, expect=whole(lambda x, d: x + d)),
    ],
    "image.adjust_contrast": [
        case(light(f64(2, 3, 4, 2)), 1.5, expect=contrasted),
        case(u8(3, 4, 1, high=255), 2.3, expect=whole(contrasted)),
        bad(f32(3, 4), 0.5, says="at least 3-D"),
    ],
    "image.adjust_hue": [
        case(light(f64(2, 4, 3)), 0.1875, expect=pixelwise(turned)),
        case(u8(2, 4, 3, high=255), 0.23, expect=whole(pixelwise(turned))),
        bad(f32(2, 4, 3), 1.5, says="[-1, 1]"),
    ],
    "image.adjust_saturation": [
        case(light(f64(2, 4, 3)), 1.25, expect=pixelwise(saturated)),
        case(u8(2, 4, 3, high=255), 0.4, expect=whole(pixelwise(saturated))),
    ],
    "image.adjust_gamma": [
        case(light(f64(2, 3, 1)), 2.2, 1.1, expect=lambda x, g, k: k * x**g),
        case(u8(2, 5, 1, high=255), 0.5, expect=whole(lambda x, g: x**g)),
        bad(f32(2, 3, 1), -1.0, says="non-negative"),
    ],
    "image.per_image_standardization": [
        case(f32(2, 3, 4, 2), expect=standard, gives="float32", half=False, grad=False),
        case(u8(3, 4, 2), expect=standard, gives="float32"),
        case(np.ones((3, 4, 1)), expect=np.zeros((3, 4, 1)), grad=False),
        bad(f32(3, 4), says="three-dimensional"),
    ],
    "image.convert_image_dtype": list(convert_rows()),
    "image.rgb_to_grayscale": [
        case(f64(2, 4, 3), expect=lambda x: (x @ [0.2989, 0.587, 0.114])[..., None], rtol=1e-6, atol=1e-6),
        case(
            u8(2, 4, 3, high=255),
            expect=lambda x: np.floor((x / 255) @ [0.2989, 0.587, 0.114] * 255.5)[..., None],
            gives="uint8",
        ),
    ],
    "image.grayscale_to_rgb": [
        case(f64(2, 4, 1), expect=lambda x: np.concatenate([x] * 3, -1)),
        case(u8(2, 1), expect=lambda x: np.concatenate([x] * 3, -1)),
        bad(f32(2, 4, 3), says="size 1"),
    ],
    "image.rgb_to_yiq": [case(f64(2, 3), expect=matrix_of(YIQ)), case(f32(2, 4, 3), expect=matrix_of(YIQ))],
    "image.rgb_to_yuv": [case(f64(2, 3), expect=matrix_of(YUV)), case(f32(2, 4, 3), expect=matrix_of(YUV))],
    "image.yiq_to_rgb": [
        case(f64(2, 3), expect=matrix_of(FROM_YIQ)),
        case(f64(4, 3), expect=matrix_of(np.linalg.inv(YIQ)), atol=5e-4),
    ],
    "image.yuv_to_rgb": [case(f64(2, 3), expect=matrix_of(np.linalg.inv(YUV)), rtol=1e-5, atol=1e-5)],
}


# ---- by chance ----------------------------------------------------------------------------------------------------


def one_number(measure, low, high):
    """The result is the image changed by one number, which `measure` finds for every element, in its range."""

    def holds(y, x, *_):
        result = measure(y.astype(np.float64), x.astype(np.float64))
        assert np.ptp(result) < 1e-4
        assert low - 1e-5 <= result.mean() <= high + 1e-5

    return holds


def contrast_of(y, x):
    return (y - y.mean((-3, -2), keepdims=True)) / (x - x.mean((-3, -2), keepdims=True))


def saturation_of(y, x):
    return np.array(
        [
            colorsys.rgb_to_hsv(*q)[1] / colorsys.rgb_to_hsv(*p)[1]
            for q, p in zip(y.reshape(-1, 3).tolist(), x.reshape(-1, 3).tolist())
        ]
    )


def hue_change(y, x):
    change = np.array(
        [
            colorsys.rgb_to_hsv(*q)[0] - colorsys.rgb_to_hsv(*p)[0]
            for q, p in zip(y.reshape(-1, 3).tolist(), x.reshape(-1, 3).tolist())
        ]
    )
    return (change + 0.5) % 1.0 - 0.5


DULL = np.array([[[0.5, 0.4, 0.3], [0.3, 0.5, 0.4], [0.45, 0.4, 0.55]]], np.float32)
for _name, _args, _holds, _wrong, _says in (
    ("brightness", (0.2,), one_number(lambda y, x: y - x, -0.2, 0.2), (-0.1,), "non-negative"),
    ("hue", (0.1,), one_number(hue_change, -0.1, 0.1), (0.6,), "0.5"),
    ("contrast", (0.2, 1.8), one_number(contrast_of, 0.2, 1.8), (2.0, 1.0), "upper must be > lower"),
    ("saturation", (0.2, 1.2), one_number(saturation_of, 0.2, 1.2), (-1.0, 1.0), "lower must be non-negative"),
):
    CASES[f"image.random_{_name}"] = [
        case(DULL, *_args, holds=_holds, grad=False),
        case(DULL, *_args, seed=5, holds=_holds, grad=False),
        bad(DULL, *_wrong, raises=ValueError, says=_says),
    ]
    CASES[f"image.stateless_random_{_name}"] = [
        *(case(DULL, *_args, seed=(k, 2), holds=_holds, grad=False) for k in range(3)),
        bad(DULL, *_wrong, seed=(1, 2), raises=ValueError, says=_says),
    ]


# ---- change and likeness ------------------------------------------------------------------------------------------


def sobel(x):
    filters = np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]])
    p = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    result = np.zeros((*x.shape, 2))
    for i, j in np.ndindex(3, 3):
        seen = p[:, i : i + x.shape[1], j : j + x.shape[2]]
        result += seen[..., None] * filters[:, i, j]
    return result


def variation(x):
    return np.abs(np.diff(x, axis=-3)).sum((-3, -2, -1)) + np.abs(np.diff(x, axis=-2)).sum((-3, -2, -1))


def differences(x):
    dy, dx = np.zeros_like(x), np.zeros_like(x)
    dy[:, :-1], dx[:, :, :-1] = np.diff(x, axis=1), np.diff(x, axis=2)
    return dy, dx


def decibels(a, b, most, *_):
    return 10 * np.log10(float(most) ** 2 / ((a - b) ** 2).mean((-3, -2, -1)))


def bell(size, sigma):
    g = np.exp(-((np.arange(size) - (size - 1) / 2) ** 2) / (2 * sigma**2))
    return np.outer(g, g) / g.sum() ** 2


def moments(a, b, size=11, sigma=1.5):
    """Means, variances and covariance in the window around each pixel."""

    def mean(x):
        views = np.lib.stride_tricks.sliding_window_view(x, (size, size), (-3, -2))
        return (views * bell(size, sigma)).sum((-2, -1))

    ma, mb = mean(a), mean(b)
    return ma, mb, mean(a * a) - ma**2, mean(b * b) - mb**2, mean(a * b) - ma * mb


def similar(a, b, most, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    a, b, most = a.astype(np.float64), b.astype(np.float64), float(most)
    ma, mb, va, vb, cov = moments(a, b, filter_size, filter_sigma)
    c1, c2 = (k1 * most) ** 2, (k2 * most) ** 2
    return (2 * ma * mb + c1) / (ma**2 + mb**2 + c1), (2 * cov + c2) / (va + vb + c2)


def ssim(a, b, most, *args, **options):
    luminance, structure = similar(a, b, most, *args, **options)
    return (luminance * structure).mean((-3, -2, -1))


def halved(x):
    x = np.pad(x, [(0, 0)] * (x.ndim - 3) + [(0, x.shape[-3] % 2), (0, x.shape[-2] % 2), (0, 0)], "edge")
    return (x[..., ::2, ::2, :] + x[..., 1::2, ::2, :] + x[..., ::2, 1::2, :] + x[..., 1::2, 1::2, :]) / 4


def over_scales(powers, size):
    def oracle(a, b, most, *_):
        a, b, total = a.astype(np.float64), b.astype(np.float64), 1.0
        for k, power in enumerate(powers):
            luminance, structure = similar(a, b, most, size)
            result = (structure if k < len(powers) - 1 else luminance * structure).mean((-3, -2))
            total = total * np.maximum(result, 0) ** power
            a, b = halved(a), halved(b)
        return total.mean(-1)

    return oracle


def noisy(x):
    """Another image that is like x."""
    return np.clip(x + light(f32(*x.shape)) * 0.2 - 0.1, 0, 1).astype(x.dtype)


FIRST = light(f32(2, 13, 14, 2))
SECOND = noisy(FIRST)
NEAR = {"rtol": 1e-4, "atol": 2e-6, "grad": False, "half": False}
BYTES, OTHERS = (np.round(x * 255).astype(np.uint8) for x in (FIRST, SECOND))

CASES |= {
    "image.sobel_edges": [
        case(f64(2, 4, 5, 2), expect=sobel),
        case(f32(1, 3, 3, 1), expect=sobel),
        bad(f32(3, 3, 1), says="4 dimensions"),
    ],
    "image.image_gradients": [
        case(f64(2, 4, 5, 2), expect=differences),
        case(i32(1, 3, 1, 2), expect=differences),
        bad(f32(3, 3, 1), says="4 dimensions"),
    ],
    "image.total_variation": [
        case(f64(2, 4, 5, 2), expect=variation),
        case(f64(4, 5, 1), expect=variation),
        bad(f32(3, 3), says="3 or 4"),
    ],
    "image.psnr": [
        case(FIRST, SECOND, 1.0, expect=decibels, **NEAR),
        case(FIRST[0], SECOND[0], 2.0, expect=decibels, **NEAR),
        case(BYTES, OTHERS, 255, expect=lambda a, b, m: decibels(a.astype(float), b.astype(float), m), **NEAR),
        case(FIRST, FIRST, 1.0, expect=np.array([np.inf, np.inf]), **NEAR),
        bad(FIRST, SECOND[:, :5], 1.0, says="not compatible"),
    ],
    "image.ssim": [
        case(FIRST, SECOND, 1.0, expect=ssim, **NEAR),
        case(FIRST[0], SECOND[0], 1.0, expect=ssim, **NEAR),
        case(BYTES, OTHERS, 255, expect=ssim, **NEAR),
        case(FIRST, FIRST, 1.0, expect=np.ones(2), **NEAR),
        case(FIRST, SECOND, 1.0, 7, 1.0, 0.02, 0.05, expect=ssim, **NEAR),
        case(
            FIRST,
            SECOND,
            1.0,
            return_index_map=True,
            **NEAR,
            expect=lambda a, b, m, **_: np.prod(similar(a, b, m), axis=0).mean(-1),
        ),
        bad(FIRST, SECOND[:, :5], 1.0, says="not compatible"),
        bad(FIRST[:, :9], SECOND[:, :9], 1.0, says="smaller"),
    ],
    "image.ssim_multiscale": [
        case(FIRST, SECOND, 1.0, (0.3, 0.7), 5, expect=over_scales((0.3, 0.7), 5), **NEAR),
        case(FIRST[0], SECOND[0], 1.0, (0.2, 0.3, 0.5), 3, expect=over_scales((0.2, 0.3, 0.5), 3), **NEAR),
        case(
            pos(f32(1, 1, 12, 11, 1)),
            pos(f32(1, 1, 12, 11, 1)),
            2.0,
            (1.0,),
            11,
            **NEAR,
            expect=over_scales((1.0,), 11),
        ),
        bad(FIRST, SECOND, 1.0, says="smaller"),
    ],
}
