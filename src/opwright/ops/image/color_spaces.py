"""Conversion of images between dtypes and color spaces.

Lives here: RGBToHSV, HSVToRGB and their gradients as functions; convert_image_dtype, grayscale, YUV and YIQ.
Not here: adjustment of hue and saturation (adjustment.py).

In the formulas M and m are the maximum and minimum of a pixel's channels, and d = M - m. 16-bit floats are computed
in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, as_dtype, float32, floating
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, lod_propagation, math
from ..accumulation import wide, wide_dtype
from ..array import cast, concat, expand_dims, identity, ones, rank, saturate_cast, tile
from ..definition import operator
from ..linalg import matmul, tensordot
from ..math import floordiv, reduce_sum
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor

# The difference of channels that determines the hue, by the index of the largest channel.
DIFFERENCES = np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
# red = |6 h - 3| - 1, green = 2 - |6 h - 2|, blue = 2 - |6 h - 4|, all clipped to [0, 1]
CENTRES, SIGNS, OFFSETS = np.array([3, 2, 4]), np.array([1, -1, -1]), np.array([-1, 2, 2])


def check_channels(images: Any, min_rank: int = 1) -> None:
    """Raise InvalidArgumentError unless the last dimension has three channels."""
    dims = images.spec.shape.dims
    if dims is not None and len(dims) < min_rank:
        raise InvalidArgumentError(what=f"input must be at least {min_rank}-D", found=images.spec.short())
    if dims is not None and dims[-1] not in (3, None):
        raise InvalidArgumentError(
            what="input must have 3 channels", found=images.spec.short(), wanted="a last dimension of 3"
        )


def with_three_channels(spec: TensorSpec) -> TensorSpec:
    """Return a spec with a last dimension of 3."""
    dims = spec.shape.dims
    return spec if dims is None else spec.with_shape([*dims[:-1], 3])


# ---- arrays -------------------------------------------------------------------------------------------------------


def hue(x: np.ndarray, top: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Return the hue in [0, 1) of pixels [..., 3] with maximum `top` and range `span`; 0 for gray."""
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    kind = x.dtype.type
    norm = kind(1) / (kind(6) * span)
    h: np.ndarray = np.where(
        red == top,
        norm * (green - blue),
        np.where(green == top, norm * (blue - red) + kind(2 / 6), norm * (red - green) + kind(4 / 6)),
    )
    h = np.where(span > 0, h, kind(0))
    return np.where(h < 0, h + kind(1), h)


def pure_color(h: np.ndarray) -> np.ndarray:
    """Return the color of hue h, saturation 1 and value 1, [..., 3]."""
    kind = h.dtype.type
    raw = [np.abs(h * kind(6) - kind(c)) * kind(s) + kind(o) for c, s, o in zip(CENTRES, SIGNS, OFFSETS)]
    return np.stack([np.clip(r, kind(0), kind(1)) for r in raw], -1)


def hsv_from_rgb(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return hue, saturation and value of pixels [..., 3]."""
    top = x.max(-1)
    span = top - x.min(-1)
    return hue(x, top, span), np.where(top > 0, span / np.where(top > 0, top, 1), x.dtype.type(0)), top


def rgb_from_hsv(h: np.ndarray, s: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return pixels [..., 3] of hue, saturation and value."""
    result: np.ndarray = ((1 - s)[..., None] + s[..., None] * pure_color(h)) * v[..., None]
    return result


# ---- gradients ----------------------------------------------------------------------------------------------------


def _channel_mask(first: Any, second: Any, dtype: Any) -> Tensor:
    """Return a one-hot mask [..., 3] of the first channel if `first`, of the second if `second`, else of the third."""
    neither = math.logical_not(math.logical_or(first, second))
    parts = [first, math.logical_and(second, math.logical_not(first)), neither]
    return array.cast(array.stack(parts, axis=-1), dtype)


def _constant(values: np.ndarray, like: Any) -> Tensor:
    return array.cast(values.astype(np.float32), like.dtype)


class PixelExtrema:
    """Maximum and minimum channels of pixels as tensors, and the gradients of hue and saturation."""

    def __init__(self, x: Tensor) -> None:
        self.x, red, green = x, x[..., 0], x[..., 1]
        self.top = math.reduce_max(array.stop_gradient(x), axis=-1)
        low = math.reduce_min(array.stop_gradient(x), axis=-1)
        self.is_top = _channel_mask(math.equal(red, self.top), math.equal(green, self.top), x.dtype)
        self.is_low = _channel_mask(math.equal(red, low), math.equal(green, low), x.dtype)
        # as products with constant masks, whose derivatives are exact
        self.top = math.reduce_sum(x * self.is_top, axis=-1, keepdims=True)
        self.low = math.reduce_sum(x * self.is_low, axis=-1, keepdims=True)
        self.span = self.top - self.low

    def hue_gradient(self, dh: Tensor) -> Tensor:
        """Return the gradient with respect to pixels, given the gradient with respect to hue [..., 1]."""
        chromatic = self.span > 0.0
        span = array.where(chromatic, self.span, array.ones_like(self.span))
        change = (
            matmul(self.is_top, _constant(DIFFERENCES, self.x))
            if self.x.shape.rank != 1
            else array.squeeze(matmul(self.is_top[None, :], _constant(DIFFERENCES, self.x)), [0])
        )
        difference = math.reduce_sum(change * self.x, axis=-1, keepdims=True)
        slope = change / span - difference / (span * span) * (self.is_top - self.is_low)
        dh = array.where(chromatic, dh, array.zeros_like(dh))
        return dh * slope / 6.0

    def saturation_gradient(self, ds: Tensor) -> Tensor:
        """Return the gradient with respect to pixels, given the gradient with respect to saturation [..., 1]."""
        positive = self.top > 0.0
        top = array.where(positive, self.top, array.ones_like(self.top))
        ds = array.where(positive, ds, array.zeros_like(ds))
        return ds * (self.low / (top * top) * self.is_top - self.is_low / top)


def rgb_to_hsv_gradient(x: Tensor, dhsv: Tensor) -> Tensor:
    """Return the gradient with respect to pixels, given the gradient with respect to their HSV form [..., 3]."""
    extrema = PixelExtrema(x)
    dh, ds, dv = dhsv[..., 0:1], dhsv[..., 1:2], dhsv[..., 2:3]
    return extrema.hue_gradient(dh) + extrema.saturation_gradient(ds) + dv * extrema.is_top


def pure_color_and_slope(h: Any) -> tuple[Any, Any]:
    """Return `pure_color` of hues [..., 1] as a tensor, and its derivative, [..., 3]."""
    centred = h * 6.0 - _constant(CENTRES, h)
    raw = math.abs(centred) * _constant(SIGNS, h) + _constant(OFFSETS, h)
    unclipped = array.cast(math.logical_and(raw > 0.0, raw < 1.0), h.dtype)
    return math.clip_by_value(raw, 0.0, 1.0), unclipped * math.sign(centred) * _constant(SIGNS, h) * 6.0


def hsv_to_rgb_gradient(hsv: Any, drgb: Any) -> Tensor:
    """Return the gradient with respect to HSV pixels, given the gradient with respect to their RGB form [..., 3]."""
    h, s, v = hsv[..., 0:1], hsv[..., 1:2], hsv[..., 2:3]
    pure, slope = pure_color_and_slope(h)
    dh = math.reduce_sum(drgb * slope, axis=-1, keepdims=True) * s * v
    ds = math.reduce_sum(drgb * (pure - 1.0), axis=-1, keepdims=True) * v
    dv = math.reduce_sum(drgb * (1.0 - s + s * pure), axis=-1, keepdims=True)
    return array.concat([dh, ds, dv], axis=-1)


# ---- operators ----------------------------------------------------------------------------------------------------


@operator
class RGBToHSV(OperatorDefinition):
    """Convert colors from red, green and blue to hue, saturation and value.

    .. math:: output = (H, S, V), \\quad V = M, \\quad S = d / M, \\quad
              H = \\frac{1}{6} \\begin{cases} (G - B) / d & M = R \\\\
              (B - R) / d + 2 & M = G \\\\ (R - G) / d + 4 & M = B \\end{cases} \\bmod 1

    images: [..., 3], red, green and blue in [0, 1]. Gray has hue 0, black saturation 0.
    raises InvalidArgumentError unless the last dimension is 3
    """

    images = Input(floating)
    output = Output(like="images")
    lod = lod_propagation.batched("images", 1)

    def infer(op) -> TensorSpec:
        _check_pixels(op)
        return with_three_channels(op.images.spec)

    def compute(op, images: Any) -> np.ndarray:
        return np.stack(hsv_from_rgb(images.astype(wide(images.dtype), copy=False)), -1).astype(
            images.dtype, copy=False
        )

    def gradient(op, doutput: Any) -> Tensor:
        dtype = wide_dtype(op.images.dtype)
        return array.cast(
            rgb_to_hsv_gradient(array.cast(op.images, dtype), array.cast(doutput, dtype)), op.images.dtype
        )


def _check_pixels(op: Any) -> None:
    if op.images.spec.shape.rank == 0:
        raise InvalidArgumentError(what="input must be at least 1-D", found=op.images.spec.short())
    check_channels(op.images)


rgb_to_hsv: signatures.RGBToHSV = RGBToHSV.as_function("rgb_to_hsv")


@operator
class HSVToRGB(OperatorDefinition):
    """Convert colors from hue, saturation and value to red, green and blue.

    .. math:: output = (R, G, B) = V (1 - S + S\\, f(H)), \\quad
              f(H) = clip(|6H - 3| - 1,\\; 2 - |6H - 2|,\\; 2 - |6H - 4|)_{[0, 1]}

    images: [..., 3], all in [0, 1].
    raises InvalidArgumentError unless the last dimension is 3
    """

    images = Input(floating)
    output = Output(like="images")
    lod = lod_propagation.batched("images", 1)

    def infer(op) -> TensorSpec:
        _check_pixels(op)
        return with_three_channels(op.images.spec)

    def compute(op, images: Any) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        return rgb_from_hsv(x[..., 0], x[..., 1], x[..., 2]).astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> Tensor:
        dtype = wide_dtype(op.images.dtype)
        return array.cast(
            hsv_to_rgb_gradient(array.cast(op.images, dtype), array.cast(doutput, dtype)), op.images.dtype
        )


hsv_to_rgb: signatures.HSVToRGB = HSVToRGB.as_function("hsv_to_rgb")


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """Convert an image to another dtype and its range of values: [0, 1] for floats, [0, max] for integers.

    saturate: clip values out of range, which otherwise wrap around.
    raises AttributeError for dtypes that are neither floating nor integer
    """
    image, target = dispatch.to_tensor(image), as_dtype(dtype)
    for checked, what in ((target, "dtype"), (image.dtype, "image dtype")):
        if not checked.is_floating and not checked.is_integer:
            raise AttributeError(f"{what} must be either floating point or integer; found {checked.name}")
    if image.dtype is target:
        return identity(image, name=name)
    convert = saturate_cast if saturate else cast
    if target.is_floating:
        floats = cast(image, target, name=name)
        result: Tensor = floats if image.dtype.is_floating else floats * (1.0 / int(image.dtype.max))
        return result
    if image.dtype.is_floating:
        with np.errstate(over="ignore"):  # the largest int32 exceeds float16
            return convert(image * (float(int(target.max)) + 0.5), target, name=name)
    maximum, new_maximum = int(image.dtype.max), int(target.max)
    if maximum > new_maximum:
        return convert(floordiv(image, (maximum + 1) // (new_maximum + 1)), target, name=name)
    return convert(image, target, name=name) * ((new_maximum + 1) // (maximum + 1))


def as_floats(image: Any) -> tuple[Any, DType]:
    """Convert an image to floating point; return it with its original dtype."""
    image = dispatch.to_tensor(image)
    return image if image.dtype.is_floating else convert_image_dtype(image, float32), image.dtype


LUMA = np.array([0.2989, 0.587, 0.114])  # of red, green and blue


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Convert RGB images [..., 3] to grayscale [..., 1] in the same dtype.

    .. math:: 0.2989\\,R + 0.587\\,G + 0.114\\,B
    """
    floats, dtype = as_floats(images)
    gray = reduce_sum(floats * cast(LUMA.astype(np.float32), floats.dtype), axis=-1, keepdims=True)
    return convert_image_dtype(gray, dtype, name=name)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Convert grayscale images [..., 1] to RGB [..., 3].

    raises InvalidArgumentError unless the last dimension is 1
    """
    images = dispatch.to_tensor(images)
    shape = images.shape
    if shape.rank == 0 or (shape.rank is not None and shape[-1] not in (1, None)):
        raise InvalidArgumentError(
            op="grayscale_to_rgb",
            what="Last dimension of a grayscale image should be size 1.",
            found=images.spec.short(),
        )
    if shape.rank is None:
        times = concat([ones(expand_dims(rank(images) - 1, 0), "int32"), dispatch.to_tensor([3])], 0)
        return tile(images, times, name=name)
    return tile(images, [*[1] * (shape.rank - 1), 3], name=name)


# Columns are the weights of the old channels in each new one.
RGB_TO_YIQ = np.array(
    [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
)
YIQ_TO_RGB = np.array([[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])
RGB_TO_YUV = np.array(
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
)
YUV_TO_RGB = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def _transform_channels(images: Any, matrix: np.ndarray) -> Tensor:
    images = dispatch.to_tensor(images)
    return tensordot(images, dispatch.to_tensor(matrix.astype(images.dtype.np), images.dtype), [[-1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Convert RGB images [..., 3] in [0, 1] to YIQ, the color space of the NTSC standard."""
    return _transform_channels(images, RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """Convert YIQ images [..., 3], the color space of the NTSC standard, to RGB."""
    return _transform_channels(images, YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """Convert RGB images [..., 3] in [0, 1] to YUV, the color space of the PAL standard."""
    return _transform_channels(images, RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """Convert YUV images [..., 3], the color space of the PAL standard, to RGB."""
    return _transform_channels(images, YUV_TO_RGB)
