"""Convert images between dtypes and colour spaces.

Lives here: RGBToHSV, HSVToRGB and their gradients as functions; convert_image_dtype, grey images, YUV and YIQ.
Not here: changes of hue and saturation (adjustment.py).

In the formulas M and m are the largest and smallest of a pixel's channels, and d = M - m. 16-bit floats are computed
in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, lod_rules, math
from ..array import cast, concat, expand_dims, identity, ones, rank, saturate_cast, tile
from ..definition import operator
from ..linalg import matmul, tensordot
from ..math import floordiv, reduce_sum
from ..slots import Input, OperatorDefinition, Output
from ..windows import wide, wide_dtype

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor

FLOATS = (float16, bfloat16, float32, float64)
# Which difference of channels the hue is, by which channel is the largest, and where it begins, in sixths.
DIFFERENCES = np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
BEGINNINGS = np.array([0, 2, 4])
# red = |6 h - 3| - 1, green = 2 - |6 h - 2|, blue = 2 - |6 h - 4|, all clipped to [0, 1]
CENTRES, SIGNS, OFFSETS = np.array([3, 2, 4]), np.array([1, -1, -1]), np.array([-1, 2, 2])


def check_colours(images: Any, least: int = 1) -> None:
    """Raises InvalidArgumentError unless the last dimension holds three channels."""
    dims = images.spec.shape.dims
    if dims is not None and len(dims) < least:
        raise InvalidArgumentError(what=f"input must be at least {least}-D", found=images.spec.short())
    if dims is not None and dims[-1] not in (3, None):
        raise InvalidArgumentError(
            what="input must have 3 channels", found=images.spec.short(), wanted="a last dimension of 3"
        )


def with_colours(spec: TensorSpec) -> TensorSpec:
    """Return a spec with a last dimension of 3."""
    dims = spec.shape.dims
    return spec if dims is None else spec.with_shape([*dims[:-1], 3])


# ---- arrays -------------------------------------------------------------------------------------------------------


def hue(x: np.ndarray, top: np.ndarray, span: np.ndarray) -> np.ndarray:
    """The hue in [0, 1) of pixels [..., 3] of largest channel `top` and range `span`; 0 for grey."""
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    kind = x.dtype.type
    norm = kind(1) / (kind(6) * span)
    found = np.where(
        red == top,
        norm * (green - blue),
        np.where(green == top, norm * (blue - red) + kind(2 / 6), norm * (red - green) + kind(4 / 6)),
    )
    found = np.where(span > 0, found, kind(0))
    result: np.ndarray = np.where(found < 0, found + kind(1), found)
    return result


def fullness(h: np.ndarray) -> np.ndarray:
    """How much of each channel a pure colour of hue h has, [..., 3] in [0, 1]."""
    kind = h.dtype.type
    raw = [np.abs(h * kind(6) - kind(c)) * kind(s) + kind(o) for c, s, o in zip(CENTRES, SIGNS, OFFSETS)]
    return np.stack([np.clip(r, kind(0), kind(1)) for r in raw], -1)


def to_hsv(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hue, saturation and value of pixels [..., 3]."""
    top = x.max(-1)
    span = top - x.min(-1)
    return hue(x, top, span), np.where(top > 0, span / np.where(top > 0, top, 1), x.dtype.type(0)), top


def to_rgb(h: np.ndarray, s: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Pixels [..., 3] of hue, saturation and value."""
    result: np.ndarray = ((1 - s)[..., None] + s[..., None] * fullness(h)) * v[..., None]
    return result


# ---- gradients ----------------------------------------------------------------------------------------------------


def _one_of_three(first: Any, second: Any, dtype: Any) -> Tensor:
    """[..., 3]: 1 for the channel that `first`, else `second`, else neither says."""
    neither = math.logical_not(math.logical_or(first, second))
    parts = [first, math.logical_and(second, math.logical_not(first)), neither]
    return array.cast(array.stack(parts, axis=-1), dtype)


def _constant(values: np.ndarray, like: Any) -> Tensor:
    return array.cast(values.astype(np.float32), like.dtype)


class Shade:
    """What the gradients of a pixel's hue, saturation and value are made of; tensors."""

    def __init__(self, x: Tensor) -> None:
        self.x, red, green = x, x[..., 0], x[..., 1]
        self.top = math.reduce_max(array.stop_gradient(x), axis=-1)
        low = math.reduce_min(array.stop_gradient(x), axis=-1)
        self.is_top = _one_of_three(math.equal(red, self.top), math.equal(green, self.top), x.dtype)
        self.is_low = _one_of_three(math.equal(red, low), math.equal(green, low), x.dtype)
        # again, by products with what does not change, so that they are differentiated as they should
        self.top = math.reduce_sum(x * self.is_top, axis=-1, keepdims=True)
        self.low = math.reduce_sum(x * self.is_low, axis=-1, keepdims=True)
        self.span = self.top - self.low

    def back_from_hue(self, dh: Tensor) -> Tensor:
        """The gradient of pixels from that of their hue [..., 1]."""
        some = self.span > 0.0
        span = array.where(some, self.span, array.ones_like(self.span))
        change = (
            matmul(self.is_top, _constant(DIFFERENCES, self.x))
            if self.x.shape.rank != 1
            else array.squeeze(matmul(self.is_top[None, :], _constant(DIFFERENCES, self.x)), [0])
        )
        difference = math.reduce_sum(change * self.x, axis=-1, keepdims=True)
        slope = change / span - difference / (span * span) * (self.is_top - self.is_low)
        dh = array.where(some, dh, array.zeros_like(dh))
        return dh * slope / 6.0

    def back_from_saturation(self, ds: Tensor) -> Tensor:
        """The gradient of pixels from that of their saturation [..., 1]."""
        some = self.top > 0.0
        top = array.where(some, self.top, array.ones_like(self.top))
        ds = array.where(some, ds, array.zeros_like(ds))
        return ds * (self.low / (top * top) * self.is_top - self.is_low / top)


def hsv_back(x: Tensor, dhsv: Tensor) -> Tensor:
    """The gradient of pixels from that of their hue, saturation and value [..., 3]."""
    shade = Shade(x)
    dh, ds, dv = dhsv[..., 0:1], dhsv[..., 1:2], dhsv[..., 2:3]
    return shade.back_from_hue(dh) + shade.back_from_saturation(ds) + dv * shade.is_top


def fullness_of(h: Any) -> tuple[Any, Any]:
    """`fullness` of a tensor [..., 1] of hues, and its derivative, [..., 3]."""
    centred = h * 6.0 - _constant(CENTRES, h)
    raw = math.abs(centred) * _constant(SIGNS, h) + _constant(OFFSETS, h)
    inside = array.cast(math.logical_and(raw > 0.0, raw < 1.0), h.dtype)
    return math.clip_by_value(raw, 0.0, 1.0), inside * math.sign(centred) * _constant(SIGNS, h) * 6.0


def rgb_back(hsv: Any, drgb: Any) -> Tensor:
    """The gradient of hue, saturation and value from that of their pixels [..., 3]."""
    h, s, v = hsv[..., 0:1], hsv[..., 1:2], hsv[..., 2:3]
    full, slope = fullness_of(h)
    dh = math.reduce_sum(drgb * slope, axis=-1, keepdims=True) * s * v
    ds = math.reduce_sum(drgb * (full - 1.0), axis=-1, keepdims=True) * v
    dv = math.reduce_sum(drgb * (1.0 - s + s * full), axis=-1, keepdims=True)
    return array.concat([dh, ds, dv], axis=-1)


# ---- operators ----------------------------------------------------------------------------------------------------


@operator
class RGBToHSV(OperatorDefinition):
    """Colours as hue, saturation and value.

    .. math:: output = (H, S, V), \\quad V = M, \\quad S = d / M, \\quad
              H = \\frac{1}{6} \\begin{cases} (G - B) / d & M = R \\\\
              (B - R) / d + 2 & M = G \\\\ (R - G) / d + 4 & M = B \\end{cases} \\bmod 1

    images: [..., 3], red, green and blue in [0, 1]. Grey has hue 0, black saturation 0.
    raises InvalidArgumentError unless the last dimension is 3
    """

    images = Input(FLOATS)
    output = Output(like="images")
    lod = lod_rules.batched("images", 1)

    def infer(op) -> TensorSpec:
        _check_pixels(op)
        return with_colours(op.images.spec)

    def compute(op, images: Any) -> np.ndarray:
        return np.stack(to_hsv(images.astype(wide(images.dtype), copy=False)), -1).astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> Tensor:
        dtype = wide_dtype(op.images.dtype)
        return array.cast(hsv_back(array.cast(op.images, dtype), array.cast(doutput, dtype)), op.images.dtype)


def _check_pixels(op: Any) -> None:
    if op.images.spec.shape.rank == 0:
        raise InvalidArgumentError(what="input must be at least 1-D", found=op.images.spec.short())
    check_colours(op.images)


rgb_to_hsv: signatures.RGBToHSV = RGBToHSV.as_function("rgb_to_hsv")


@operator
class HSVToRGB(OperatorDefinition):
    """Colours of hue, saturation and value as red, green and blue.

    .. math:: output = (R, G, B) = V (1 - S + S\\, f(H)), \\quad
              f(H) = clip(|6H - 3| - 1,\\; 2 - |6H - 2|,\\; 2 - |6H - 4|)_{[0, 1]}

    images: [..., 3], all in [0, 1].
    raises InvalidArgumentError unless the last dimension is 3
    """

    images = Input(FLOATS)
    output = Output(like="images")
    lod = lod_rules.batched("images", 1)

    def infer(op) -> TensorSpec:
        _check_pixels(op)
        return with_colours(op.images.spec)

    def compute(op, images: Any) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        return to_rgb(x[..., 0], x[..., 1], x[..., 2]).astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> Tensor:
        dtype = wide_dtype(op.images.dtype)
        return array.cast(rgb_back(array.cast(op.images, dtype), array.cast(doutput, dtype)), op.images.dtype)


hsv_to_rgb: signatures.HSVToRGB = HSVToRGB.as_function("hsv_to_rgb")


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """An image in another dtype, with its range of values: floats are in [0, 1], integers from 0 to their largest.

    saturate: clip what the dtype does not hold, where else it wraps round.
    raises AttributeError for dtypes that are neither floating nor integer
    """
    image, wanted = dispatch.to_tensor(image), as_dtype(dtype)
    for found, what in ((wanted, "dtype"), (image.dtype, "image dtype")):
        if not found.is_floating and not found.is_integer:
            raise AttributeError(f"{what} must be either floating point or integer; found {found.name}")
    if image.dtype is wanted:
        return identity(image, name=name)
    to = saturate_cast if saturate else cast
    if wanted.is_floating:
        made = cast(image, wanted, name=name)
        result: Tensor = made if image.dtype.is_floating else made * (1.0 / int(image.dtype.max))
        return result
    if image.dtype.is_floating:
        with np.errstate(over="ignore"):  # float16 does not hold the largest int32
            return to(image * (float(int(wanted.max)) + 0.5), wanted, name=name)
    top, new_top = int(image.dtype.max), int(wanted.max)
    if top > new_top:
        return to(floordiv(image, (top + 1) // (new_top + 1)), wanted, name=name)
    return to(image, wanted, name=name) * ((new_top + 1) // (top + 1))


def as_floats(image: Any) -> tuple[Any, DType]:
    """The image with floating values, and the dtype it had."""
    image = dispatch.to_tensor(image)
    return image if image.dtype.is_floating else convert_image_dtype(image, float32), image.dtype


GREY = np.array([0.2989, 0.587, 0.114])  # how bright red, green and blue are


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Brightness: [..., 3] to [..., 1] in the same dtype.

    .. math:: 0.2989\\,R + 0.587\\,G + 0.114\\,B
    """
    floats, dtype = as_floats(images)
    grey = reduce_sum(floats * cast(GREY.astype(np.float32), floats.dtype), axis=-1, keepdims=True)
    return convert_image_dtype(grey, dtype, name=name)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Grey as red, green and blue alike: [..., 1] to [..., 3].

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


# The columns are what each new channel takes of the old ones.
RGB_TO_YIQ = np.array(
    [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
)
YIQ_TO_RGB = np.array([[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])
RGB_TO_YUV = np.array(
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
)
YUV_TO_RGB = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def _mixed(images: Any, matrix: np.ndarray) -> Tensor:
    images = dispatch.to_tensor(images)
    return tensordot(images, dispatch.to_tensor(matrix.astype(images.dtype.np), images.dtype), [[-1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Red, green and blue as luma and the chroma of the NTSC standard: [..., 3], in [0, 1]."""
    return _mixed(images, RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """Luma and chroma of the NTSC standard as red, green and blue: [..., 3]."""
    return _mixed(images, YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """Red, green and blue as luma and the chroma of the PAL standard: [..., 3], in [0, 1]."""
    return _mixed(images, RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """Luma and chroma of the PAL standard as red, green and blue: [..., 3]."""
    return _mixed(images, YUV_TO_RGB)
