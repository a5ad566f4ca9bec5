"""Rows for images brought to other sizes and frames: `ops/image`.

Oracles are the definitions in float64: the weight of every pixel in every new one, as a matrix of rows and one of
columns; frames are slices and paddings.
"""

from __future__ import annotations

import math

import numpy as np
from harness import bad, case, f16, f32, f64, i16, u8

RESIZED = {"grad": False, "half": False}  # the result is float32 whatever goes in: gradients have rows of their own


def size(*n):
    return np.array(n, np.int32)


# ---- weights by definition ----------------------------------------------------------------------------------------


def place(p, n, m, align_corners=False, half_pixel_centers=False):
    """Where new pixel p of m lies in an image of n."""
    if align_corners and m > 1:
        return p * (n - 1) / (m - 1)
    return (p + 0.5) * n / m - 0.5 if half_pixel_centers else p * n / m


def triangle(n, m, **centres):
    actual = np.zeros((m, n))
    for p in range(m):
        s = min(max(place(p, n, m, **centres), 0), n - 1)
        for i in range(n):
            actual[p, i] = max(0.0, 1 - abs(s - i))
    return actual


def nearest(n, m, align_corners=False, half_pixel_centers=False):
    actual = np.zeros((m, n))
    for p in range(m):
        s = place(p, n, m, align_corners, half_pixel_centers) + (0.5 if align_corners or half_pixel_centers else 0)
        actual[p, min(math.floor(s), n - 1)] = 1
    return actual


def keys(x, a):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def cubic(n, m, half_pixel_centers=False, **centres):
    actual = np.zeros((m, n))
    for p in range(m):
        s = place(p, n, m, half_pixel_centers=half_pixel_centers, **centres)
        s = math.floor(s) + round((s - math.floor(s)) * 1024) / 1024
        for i in range(math.floor(s) - 1, math.floor(s) + 3):
            if half_pixel_centers and not 0 <= i < n:
                continue
            actual[p, min(max(i, 0), n - 1)] += keys(s - i, -0.5 if half_pixel_centers else -0.75)
    return actual / actual.sum(1, keepdims=True)


def area(n, m, align_corners=False):
    step = (n - 1) / (m - 1) if align_corners and m > 1 else n / m
    actual = np.zeros((m, n))
    for p in range(m):
        for i in range(n + 1):  # beyond the border the image goes on as it ends
            actual[p, min(i, n - 1)] += max(0.0, min(i + 1, (p + 1) * step) - max(i, p * step)) / step
    return actual


KERNELS = {
    "lanczos1": (1, lambda x: np.sinc(x) ** 2),
    "lanczos3": (3, lambda x: np.sinc(x) * np.sinc(x / 3)),
    "lanczos5": (5, lambda x: np.sinc(x) * np.sinc(x / 5)),
    "gaussian": (1.5, lambda x: math.exp(-2 * x * x)),
    "box": (0.5, lambda x: 1.0),
    "triangle": (1, lambda x: 1 - x),
    "keyscubic": (2, lambda x: keys(x, -0.5)),
    # Mitchell and Netravali 1988 with B = C = 1/3
    "mitchellcubic": (
        2,
        lambda x: (7 * x**3 - 12 * x**2 + 16 / 3) / 6 if x < 1 else (-7 / 3 * x**3 + 12 * x**2 - 20 * x + 32 / 3) / 6,
    ),
}


def spread(n, m, scale, shift, kernel, antialias):
    radius, weight = KERNELS[kernel]
    stretch = max(1 / scale, 1.0) if antialias else 1.0
    actual = np.zeros((m, n))
    for p in range(m):
        centre = (p + 0.5 - shift) / scale
        for i in range(n):
            x = abs(i + 0.5 - centre) / stretch
            actual[p, i] = weight(x) if x < radius and 0 <= centre <= n else 0.0
    total = actual.sum(1, keepdims=True)
    return np.divide(actual, total, out=np.zeros_like(actual), where=total != 0)


def by(weights, **options):
    """Apply the weights of a resize operator to images."""

    def oracle(images, size, *_):
        rows, columns = (weights(n, int(m), **options) for n, m in zip(images.shape[1:3], size))
        return np.einsum("pi,qj,nijc->npqc", rows, columns, images.astype(np.float64))

    return oracle


def back(weights, **options):
    """The gradient: the weights the other way."""

    def oracle(grads, image, *_):
        shape = image.shape[1:3] if image.ndim == 4 else image
        rows, columns = (weights(int(n), m, **options) for n, m in zip(shape, grads.shape[1:3]))
        return np.einsum("pi,qj,npqc->nijc", rows, columns, grads.astype(np.float64))

    return oracle


def slope(name):
    """The gradient of an operator's images, by its rule."""

    def call(grads, images, *rest, **attrs):
        from opwright.eager.tape import GradientTape
        from opwright.ops import registry

        with GradientTape() as tape:
            tape.watch(images)
            y = registry.get(name)(images, *rest, **attrs)
        return tape.gradient(y, images, output_gradients=grads)

    return call


ALIGNED, HALF = {"align_corners": True}, {"half_pixel_centers": True}
SHAPES = [((2, 4, 5, 3), (7, 3)), ((1, 1, 3, 1), (2, 1)), ((1, 6, 2, 2), (6, 4))]


def resized(op, weights, *, with_dtype=False):
    """Return the rows of a resize operator and of its gradient."""
    rows = []
    for options in ({}, ALIGNED, HALF):
        for image, wanted in SHAPES:
            rows.append(case(f32(*image), size(*wanted), expect=by(weights, **options), **options, **RESIZED))
            grads = f32(image[0], *wanted, image[3])
            rows.append(
                case(
                    grads,
                    f32(*image),
                    size(*wanted),
                    call=slope(op),
                    expect=back(weights, **options),
                    **options,
                    **RESIZED,
                )
            )
    like = None if not with_dtype else "float64"
    rows.append(
        case(f64(1, 4, 3, 2), size(3, 5), expect=by(weights), gives=like or "float32", rtol=2e-6, atol=1e-6, **RESIZED)
    )
    rows.append(
        case(f16(1, 4, 3, 2), size(3, 5), expect=by(weights), gives="float16" if like else "float32", **RESIZED)
    )
    rows.append(case(f32(0, 4, 3, 2), size(3, 5), expect=lambda x, _: np.zeros((0, 3, 5, 2)), **RESIZED))
    return [*rows, *wrong()]


def wrong():
    return [
        bad(f32(4, 3, 2), size(3, 5), says="rank"),
        bad(f32(1, 4, 3, 2), size(3, 0), says="output dimensions must be positive"),
        bad(f32(1, 0, 3, 2), size(3, 5), says="non-zero size"),
        bad(f32(1, 4, 3, 2), size(3, 5, 1), says="2 elements"),
        bad(f32(1, 4, 3, 2), np.array([3.0, 5.0]), says="dtype"),
    ]


def back_rows(weights, *wanted):
    """Rows of the operator of a gradient: grads and an image."""
    rows = [
        case(f32(2, 7, 3, 3), f32(2, 4, 5, 3), expect=back(weights, **o), half=False, grad=[0], **o)
        for o in ({}, ALIGNED, HALF)
    ]
    return [
        *rows,
        case(f64(1, 2, 2, 1), f64(1, 3, 3, 1), expect=back(weights), half=False, grad=[0], rtol=1e-6),
        bad(f32(2, 7, 3, 3), f32(1, 4, 5, 3), says="differ in batch or channels"),
        bad(f32(1, 2, 2, 1), f32(1, 3, 3, 1), **ALIGNED, **HALF, says="must be False"),
    ]


BOTH = bad(f32(1, 4, 3, 2), size(3, 5), align_corners=True, half_pixel_centers=True, says="must be False")


def pixels(images, size, **options):
    return by(nearest, **options)(images, size).astype(images.dtype)


CASES = {
    "ResizeBilinear": [
        *resized("ResizeBilinear", triangle),
        BOTH,
        case(u8(1, 4, 3, 2), size(3, 5), expect=by(triangle), gives="float32"),
        case(i16(1, 4, 3, 2), size(3, 5), expect=by(triangle), gives="float32"),
    ],
    "ResizeBilinearGrad": back_rows(triangle),
    "ResizeBicubic": [
        *resized("ResizeBicubic", cubic),
        BOTH,
        case(u8(1, 4, 3, 2), size(3, 5), expect=by(cubic), gives="float32"),
    ],
    "ResizeBicubicGrad": back_rows(cubic),
    "ResizeNearestNeighbor": [
        *resized("ResizeNearestNeighbor", nearest, with_dtype=True),
        BOTH,
        case(u8(2, 4, 3, 2), size(3, 5), expect=pixels, gives="uint8"),
        case(f64(2, 4, 3, 2), size(3, 5), expect=by(nearest, **HALF), **HALF),
    ],
    "ResizeNearestNeighborGrad": [
        *(case(f64(2, 7, 3, 3), size(4, 5), expect=back(nearest, **o), **o) for o in ({}, ALIGNED, HALF)),
        case(f32(1, 2, 3, 1), size(5, 1), expect=back(nearest)),
        case(u8(1, 2, 3, 1), size(2, 3), expect=lambda g, n: g),
        bad(f32(1, 2, 3, 1), size(0, 3), says="must be positive"),
        bad(f32(2, 3, 1), size(2, 3), says="rank"),
    ],
    "ResizeArea": [
        *(case(f32(*image), size(*wanted), expect=by(area), **RESIZED) for image, wanted in SHAPES),
        case(f32(2, 4, 5, 3), size(7, 3), expect=by(area, **ALIGNED), **ALIGNED, **RESIZED),
        case(u8(1, 4, 6, 1), size(2, 2), expect=lambda x, _: x.reshape(1, 2, 2, 2, 3, 1).mean((2, 4))),
        case(f32(1, 1, 1, 1), size(2, 2), expect=lambda x, _: np.broadcast_to(x, (1, 2, 2, 1)), **ALIGNED, **RESIZED),
        *wrong(),
    ],
    "ScaleAndTranslate": [],
    "ScaleAndTranslateGrad": [],
}


def _numbers(*values):
    return np.array(values, np.float32)


for _kernel in KERNELS:
    for _antialias in (True, False):
        _attrs = {"kernel_type": _kernel, "antialias": _antialias}

        def _rows_columns(shape, m, scale, shift, attrs=_attrs):
            return (
                spread(n, int(k), float(np.float32(s)), float(np.float32(t)), *attrs.values())
                for n, k, s, t in zip(shape, m, scale, shift)
            )

        def _forward(x, m, scale, shift, make=_rows_columns):
            rows, columns = make(x.shape[1:3], m, scale, shift)
            return np.einsum("pi,qj,nijc->npqc", rows, columns, x)

        def _backward(g, x, scale, shift, make=_rows_columns):
            rows, columns = make(x.shape[1:3], g.shape[1:3], scale, shift)
            return np.einsum("pi,qj,npqc->nijc", rows, columns, g)

        CASES["ScaleAndTranslate"].append(
            case(
                f32(1, 6, 7, 2),
                size(5, 4),
                _numbers(1.7, 0.43),
                _numbers(-1.3, 0.7),
                expect=_forward,
                **_attrs,
                **RESIZED,
                atol=5e-6,
            )
        )
        CASES["ScaleAndTranslateGrad"].append(
            case(
                f32(1, 5, 4, 2),
                f32(1, 6, 7, 2),
                _numbers(1.7, 0.43),
                _numbers(-1.3, 0.7),
                expect=_backward,
                **_attrs,
                half=False,
                grad=[0],
                atol=5e-6,
            )
        )
CASES["ScaleAndTranslate"] += [
    case(
        f32(1, 5, 4, 2),
        f32(1, 6, 7, 2),
        size(5, 4),
        _numbers(1.7, 0.43),
        _numbers(-1.3, 0.7),
        half=False,
        grad=False,
        call=slope("ScaleAndTranslate"),
        kernel_type="triangle",
        antialias=False,
        atol=5e-6,
        expect=lambda g, x, m, s, t: np.einsum(
            "pi,qj,npqc->nijc",
            spread(6, 5, np.float32(1.7), np.float32(-1.3), "triangle", False),
            spread(7, 4, np.float32(0.43), np.float32(0.7), "triangle", False),
            g,
        ),
    ),
    bad(f32(1, 6, 7, 2), size(5, 4), _numbers(0.0, 1.0), _numbers(0.0, 0.0), says="greater than zero"),
    bad(f32(1, 6, 7, 2), size(5, 4), _numbers(1.0), _numbers(0.0, 0.0), says="scale must be"),
    bad(f32(1, 6, 7, 2), size(5, 4), _numbers(1.0, 1.0), _numbers(0.0, 0.0), kernel_type="sinc", says="kernel_type"),
]
CASES["ScaleAndTranslateGrad"].append(
    bad(f32(1, 5, 4, 2), f32(1, 6, 7, 2), _numbers(1.0, 1.0), _numbers(1.0), says="translation must be")
)


# ---- functions ----------------------------------------------------------------------------------------------------


def resize_by(weights, **options):
    def oracle(x, wanted, *_, **__):
        actual = by(weights, **options)(x if x.ndim == 4 else x[None], np.asarray(wanted))
        return actual if x.ndim == 4 else actual[0]

    return oracle


def smooth(kernel, antialias):
    return lambda n, m: spread(n, m, m / n, 0.0, kernel, antialias)


def resize_rows():
    methods = {"bilinear": (triangle, HALF), "bicubic": (cubic, HALF), "nearest": (nearest, HALF), "area": (area, {})}
    for method, (weights, options) in methods.items():
        for image, wanted in SHAPES:
            yield case(f32(*image), wanted, method, expect=resize_by(weights, **options), **RESIZED)
        yield case(f32(4, 5, 2), size(3, 8), method, expect=resize_by(weights, **options), **RESIZED)
    own = {kernel: kernel for kernel in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")}
    for method, kernel in {"bilinear": "triangle", "bicubic": "keyscubic", **own}.items():
        yield case(
            f32(2, 8, 5, 1),
            (3, 9),
            method,
            antialias=True,
            expect=resize_by(smooth(kernel, True)),
            atol=5e-6,
            **RESIZED,
        )
        if kernel not in ("triangle", "keyscubic"):
            yield case(f32(8, 5, 1), (3, 9), method, expect=resize_by(smooth(kernel, False)), atol=5e-6, **RESIZED)
    yield case(
        f32(8, 4, 1),
        (5, 5),
        preserve_aspect_ratio=True,
        **RESIZED,
        expect=lambda x, _: resize_by(triangle, **HALF)(x, (5, 2)),
    )
    yield case(u8(2, 8, 4, 1), (5, 5), 1, expect=lambda x, *_: pixels(x, (5, 5), **HALF), gives="uint8")
    yield bad(f32(4, 5), (2, 2), says="3 or 4 dimensions")
    yield bad(f32(4, 5, 1), (2, 2, 2), says="'size'")
    yield bad(f32(4, 5, 1), (2, 2), "sinc", raises=ValueError, says="sinc")


def framed(x, top, left, high, wide):
    """x in a frame of zeros; what does not fit is cut off."""
    out = np.zeros((*x.shape[:-3], high, wide, x.shape[-1]), x.dtype)
    for i in range(high):
        for j in range(wide):
            if 0 <= i - top < x.shape[-3] and 0 <= j - left < x.shape[-2]:
                out[..., i, j, :] = x[..., i - top, j - left, :]
    return out


def in_the_middle(x, high, wide):
    def start(have, want):
        return (want - have) // 2 if want >= have else -((have - want) // 2)

    return framed(x, start(x.shape[-3], high), start(x.shape[-2], wide), high, wide)


def with_pad(x, high, wide, *_):
    ratio = max(x.shape[-2] / wide, x.shape[-3] / high)
    exact = x.shape[-3] / ratio, x.shape[-2] / ratio
    small = resize_by(triangle, **HALF)(x, [math.floor(e) for e in exact])
    return framed(small, *(max(0, math.floor((t - e) / 2)) for t, e in zip((high, wide), exact)), high, wide)


CASES["image.resize"] = list(resize_rows())
CASES["image.resize_with_pad"] = [
    case(f32(4, 6, 2), 5, 5, expect=with_pad, **RESIZED),
    case(f32(2, 7, 3, 1), 4, 9, expect=with_pad, **RESIZED),
    bad(f32(4, 6, 2), 0, 5, says="target_height must be > 0"),
]
CASES["image.resize_with_crop_or_pad"] = [
    case(f64(4, 6, 2), 5, 3, expect=in_the_middle),
    case(f64(2, 5, 3, 1), 2, 8, expect=in_the_middle),
    case(u8(5, 3, 1), 5, 3, expect=lambda x, *_: x),
    bad(f32(4, 6, 2), 5, -1, says="target_width must be > 0"),
    bad(f32(4, 6), 5, 1, says="three-dimensional"),
]
CASES["image.crop_to_bounding_box"] = [
    case(f64(2, 5, 6, 1), 1, 2, 3, 4, expect=lambda x, *_: x[:, 1:4, 2:6]),
    case(u8(5, 6, 2), 0, 5, 5, 1, expect=lambda x, *_: x[:, 5:]),
    case(f32(5, 6, 2), size(1)[0], size(2)[0], size(3)[0], size(3)[0], expect=lambda x, *_: x[1:4, 2:5]),
    bad(f32(5, 6, 2), 3, 0, 3, 2, says="height must be >= target + offset"),
    bad(f32(5, 6, 2), -1, 0, 3, 2, says="offset_height must be >= 0"),
    bad(f32(5, 6, 2), 0, 0, 0, 2, says="target_height must be > 0"),
    bad(f32(1, 1, 5, 6, 2), 0, 0, 1, 2, says="3 or 4 dimensions"),
]
CASES["image.pad_to_bounding_box"] = [
    case(f64(2, 2, 3, 1), 1, 2, 4, 6, expect=framed),
    case(u8(2, 3, 2), 0, 0, 2, 3, expect=framed),
    case(f32(2, 3, 2), size(1)[0], size(0)[0], size(4)[0], size(5)[0], expect=lambda x, *n: framed(x, *map(int, n))),
    bad(f32(2, 3, 2), 1, 0, 2, 3, says="height must be <= target - offset"),
    bad(f32(2, 3, 2), 0, -1, 2, 3, says="offset_width must be >= 0"),
]
CASES["image.central_crop"] = [
    case(f64(2, 5, 8, 1), 0.5, expect=lambda x, _: x[:, 1:4, 2:6]),
    case(f64(7, 4, 2), 0.3, expect=lambda x, _: x[2:5, 1:3]),
    case(u8(7, 4, 2), 1.0, expect=lambda x, _: x),
    bad(f32(7, 4, 2), 0.0, says="central_fraction"),
    bad(f32(7, 4), 0.5, says="rank = 3"),
]
CASES["image.flip_left_right"] = [
    case(f64(3, 4, 2), expect=lambda x: x[:, ::-1]),
    case(u8(2, 3, 4, 1), expect=lambda x: x[:, :, ::-1]),
    bad(f32(3, 4), says="three-dimensional"),
    bad(f32(1, 1, 3, 4, 2), says="3 or 4"),
]
CASES["image.flip_up_down"] = [
    case(f64(3, 4, 2), expect=lambda x: x[::-1]),
    case(u8(2, 3, 4, 1), expect=lambda x: x[:, ::-1]),
    bad(f32(3, 0, 1), says="must be > 0"),
]
CASES["image.transpose"] = [
    case(f64(3, 4, 2), expect=lambda x: x.swapaxes(0, 1)),
    case(u8(2, 3, 4, 1), expect=lambda x: x.swapaxes(1, 2)),
    bad(f32(3, 4), says="three-dimensional"),
]
CASES["image.rot90"] = [
    *(case(f64(3, 4, 2), k, expect=np.rot90) for k in (-3, 0, 1, 2, 3, 6)),
    *(case(f64(2, 3, 4, 1), size(k)[0], expect=lambda x, k: np.rot90(x, k, (1, 2))) for k in (0, 1, 2, 7)),
    case(u8(3, 4, 2), size(-1)[0], expect=lambda x, k: np.rot90(x, k)),
    bad(f32(3, 4), says="three-dimensional"),
]


def either(*choices):
    def holds(y, x, *_):
        turned = [choice(x) for choice in choices]
        ys, xs = (y[None], [t[None] for t in turned]) if y.ndim == 3 else (y, turned)
        assert all(any(np.array_equal(one, t[k].astype(one.dtype)) for t in xs) for k, one in enumerate(ys))

    return holds


SIDES = either(lambda x: x, lambda x: x[..., ::-1, :])
UPSIDE = either(lambda x: x, lambda x: x[..., ::-1, :, :])
for _name, _holds in {"left_right": SIDES, "up_down": UPSIDE}.items():
    CASES[f"image.random_flip_{_name}"] = [
        case(f64(3, 4, 1), holds=_holds),
        case(u8(6, 3, 4, 2), 7, holds=_holds),
        bad(f32(3, 4), says="three-dim"),
    ]
    CASES[f"image.stateless_random_flip_{_name}"] = [
        *(case(f64(3, 4, 1), size(k, 5), holds=_holds) for k in range(3)),
        case(f32(6, 3, 4, 2), (1, 2), holds=_holds),
        bad(f32(3, 4, 1), (1, 2, 3), says="seed"),
    ]


def is_part(y, x, *_):
    views = np.lib.stride_tricks.sliding_window_view(x, y.shape)
    assert (views.reshape(-1, *y.shape).astype(y.dtype) == y).all(tuple(range(1, y.ndim + 1))).any()


CASES["image.random_crop"] = [
    case(f64(5, 6, 2), (3, 2, 2), holds=is_part, grad=False),
    case(u8(7), size(3), 5, holds=is_part),
    bad(f32(5, 6, 2), (6, 2, 2), says="Need value.shape >= size"),
]
CASES["image.stateless_random_crop"] = [
    case(f64(5, 6, 2), (3, 2, 2), (1, 2), holds=is_part),
    case(f64(5, 6, 2), size(5, 6, 2), size(1, 2), holds=is_part),
    bad(f32(5, 6, 2), (3, 2), (1, 2), says="Need value.shape >= size"),
]


# ---- patches ------------------------------------------------------------------------------------------------------


def patches(x, sizes, strides, rates, padding):
    high, wide = x.shape[1:3]
    before, out = [], []
    for n, k, s, r in zip((high, wide), sizes[1:3], strides[1:3], rates[1:3]):
        extent = (k - 1) * r + 1
        out.append(-(-n // s) if padding == "SAME" else (n - extent) // s + 1)
        before.append(max((out[-1] - 1) * s + extent - n, 0) // 2 if padding == "SAME" else 0)
    actual = np.zeros((len(x), *out, sizes[1], sizes[2], x.shape[3]), x.dtype)
    for p, q, i, j in np.ndindex(*out, *sizes[1:3]):
        row, column = (at * s + k * r - b for at, s, k, r, b in zip((p, q), strides[1:], (i, j), rates[1:], before))
        if 0 <= row < high and 0 <= column < wide:
            actual[:, p, q, i, j] = x[:, row, column]
    return actual.reshape(len(x), *out, -1)


def patch_case(image, k, s, r, padding):
    args = {"sizes": (1, *k, 1), "strides": (1, *s, 1), "rates": (1, *r, 1), "padding": padding}
    return case(image, expect=lambda x: patches(x, **args), **args)


ONES = {"strides": (1, 1, 1, 1), "rates": (1, 1, 1, 1), "padding": "VALID"}
CASES["ExtractImagePatches"] = [
    *(patch_case(f64(2, 5, 6, 2), (2, 3), (1, 2), (1, 1), p) for p in ("SAME", "VALID")),
    *(patch_case(f64(1, 5, 6, 1), (2, 2), (2, 1), (3, 2), p) for p in ("SAME", "VALID")),
    patch_case(f32(1, 4, 4, 2), (1, 1), (3, 3), (1, 1), "SAME"),
    patch_case(u8(1, 4, 4, 2), (3, 2), (1, 1), (1, 1), "SAME"),
    bad(f32(1, 4, 4, 2), sizes=(2, 2, 2, 1), **ONES, says="sizes must be"),
    bad(f32(1, 4, 4, 2), sizes=(1, 2, 2), **ONES, says="sizes must be"),
    bad(f32(4, 4, 2), sizes=(1, 2, 2, 1), **ONES, says="rank"),
]
CASES["image.extract_patches"] = [
    case(f32(1, 4, 4, 2), (1, 2, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), "VALID", expect=patches),
    bad(f32(1, 4, 4, 2), (1, 2, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), "FULL", says="padding"),
]
