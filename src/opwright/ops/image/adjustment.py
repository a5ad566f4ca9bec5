"""Adjust brightness, contrast, gamma, hue and saturation of images, by a given amount or a random one.

Lives here: AdjustContrast, AdjustHue, AdjustSaturation; the functions on images of any dtype, also
per_image_standardization.
Not here: colour spaces (colours.py).

The functions take images of any dtype: integers are computed in float32 as numbers in [0, 1] and converted back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32, float64
from ...core.errors import InvalidArgumentError
from .. import array, lod_rules, math
from ..array import cast
from ..array.shaping import shape_op
from ..definition import operator
from ..public_functions import documented_by
from ..random import stateless_uniform, uniform
from ..slots import Input, OperatorDefinition, Output
from ..windows import wide, wide_dtype
from .colours import (
    FLOATS,
    Shade,
    as_floats,
    check_colours,
    convert_image_dtype,
    fullness,
    fullness_of,
    hsv_back,
    hue,
    rgb_back,
    rgb_to_hsv,
    to_hsv,
    to_rgb,
    with_colours,
)
from .sizes import check_image

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _widened(op: Any, *values: Any) -> list[Any]:
    """Tensors in the dtype to compute in."""
    dtype = wide_dtype(op.images.dtype)
    return [array.cast(value, dtype) for value in values]


@operator
class AdjustContrast(OperatorDefinition):
    """Every channel's distance from its mean over the image, times a factor.

    .. math:: output = mean + contrast\\_factor\\, (images - mean)

    images: [..., h, w, c]; contrast_factor: a scalar. 16-bit floats are computed in float32.
    raises InvalidArgumentError for images of fewer than three dimensions
    """

    images = Input(FLOATS)
    contrast_factor = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_rules.batched("images", 3)

    def infer(op) -> TensorSpec:
        if op.images.spec.shape.rank in (0, 1, 2):
            raise InvalidArgumentError(what="input must be at least 3-D", found=op.images.spec.short())
        return op.images.spec

    def compute(op, images: np.ndarray, contrast_factor: np.ndarray) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        mean = x.mean((-3, -2), keepdims=True) if x.size else x
        output: np.ndarray = ((x - mean) * contrast_factor.astype(x.dtype) + mean).astype(images.dtype, copy=False)
        return output

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        x, factor, dy = _widened(op, op.images, op.contrast_factor, doutput)
        centred = x - math.reduce_mean(x, axis=[-3, -2], keepdims=True)
        dx = factor * dy + (1.0 - factor) * math.reduce_mean(dy, axis=[-3, -2], keepdims=True)
        dfactor = math.reduce_sum(dy * centred)
        return array.cast(dx, op.images.dtype), array.cast(dfactor, op.contrast_factor.dtype)


@operator
class AdjustHue(OperatorDefinition):
    """Colours turned round the circle of hues.

    .. math:: output = m + (M - m)\\, f\\big((H(images) + delta) \\bmod 1\\big)

    M, m: the largest and smallest of a pixel's channels; H: its hue, f: HSVToRGB's. images: [..., h, w, 3]; delta: a
    scalar, 1 is once around. 16-bit floats are computed in float32.
    raises InvalidArgumentError for fewer than three dimensions or other than three channels
    """

    images = Input(FLOATS)
    delta = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_rules.batched("images", 3)

    def infer(op) -> TensorSpec:
        check_colours(op.images, 3)
        return with_colours(op.images.spec)

    def compute(op, images: np.ndarray, delta: np.ndarray) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        top, low = x.max(-1), x.min(-1)
        turned = np.mod(hue(x, top, top - low) + delta.astype(x.dtype), x.dtype.type(1))
        output: np.ndarray = (low[..., None] + (top - low)[..., None] * fullness(turned)).astype(
            images.dtype, copy=False
        )
        return output

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        x, delta, dy = _widened(op, op.images, op.delta, doutput)
        shade = Shade(x)
        turned = math.mod(array.cast(_hue_of(shade), x.dtype) + delta, array.ones_like(delta))
        full, slope = fullness_of(turned)
        dh = math.reduce_sum(dy * slope, axis=-1, keepdims=True) * shade.span
        dtop = math.reduce_sum(dy * full, axis=-1, keepdims=True)
        dlow = math.reduce_sum(dy * (1.0 - full), axis=-1, keepdims=True)
        dx = shade.back_from_hue(dh) + dtop * shade.is_top + dlow * shade.is_low
        return array.cast(dx, op.images.dtype), array.cast(math.reduce_sum(dh), op.delta.dtype)


def _hue_of(shade: Shade) -> Tensor:
    return rgb_to_hsv(shade.x)[..., 0:1]


@operator
class AdjustSaturation(OperatorDefinition):
    """Colours' saturation times a factor, kept within [0, 1].

    .. math:: output = RGB\\big(H,\\; clip_{[0, 1]}(scale\\, S),\\; V\\big)

    images: [..., h, w, 3]; scale: a scalar. 16-bit floats are computed in float32.
    raises InvalidArgumentError for fewer than three dimensions or other than three channels
    """

    images = Input(FLOATS)
    scale = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_rules.batched("images", 3)

    def infer(op) -> TensorSpec:
        check_colours(op.images, 3)
        return with_colours(op.images.spec)

    def compute(op, images: Any, scale: Any) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        h, s, v = to_hsv(x)
        return to_rgb(h, np.clip(s * scale.astype(x.dtype), 0, 1), v).astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        x, scale, dy = _widened(op, op.images, op.scale, doutput)
        hsv = rgb_to_hsv(x)
        h, s, v = hsv[..., 0:1], hsv[..., 1:2], hsv[..., 2:3]
        more = s * scale
        inside = array.cast(math.logical_and(more > 0.0, more < 1.0), x.dtype)
        back = rgb_back(array.concat([h, math.clip_by_value(more, 0.0, 1.0), v], axis=-1), dy)
        ds = back[..., 1:2] * inside
        dx = hsv_back(x, array.concat([back[..., 0:1], ds * scale, back[..., 2:3]], axis=-1))
        return array.cast(dx, op.images.dtype), array.cast(math.reduce_sum(ds * s), op.scale.dtype)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Every channel increased by `delta`, in parts of the whole range. Integers are clipped to their range."""
    floats, dtype = as_floats(image)
    return convert_image_dtype(floats + cast(delta, floats.dtype), dtype, saturate=True)


@documented_by(AdjustContrast)
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scale the distance of each pixel from the mean of its channel."""
    floats, dtype = as_floats(images)
    return convert_image_dtype(AdjustContrast(floats, contrast_factor), dtype, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * image ** gamma, of values in [0, 1]. Integers are clipped to their range.

    raises InvalidArgumentError for a negative gamma
    """
    floats, dtype = as_floats(image)
    constant = getattr(gamma, "constant", gamma)
    if constant is not None and constant < 0:
        raise InvalidArgumentError(
            op="adjust_gamma", what="Gamma should be a non-negative real number.", found=f"gamma {constant}"
        )
    return convert_image_dtype(gain * floats**gamma, dtype, saturate=True)


@documented_by(AdjustHue)
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Rotate hues by `delta`, in [-1, 1].

    raises InvalidArgumentError for a delta out of range
    """
    constant = getattr(delta, "constant", delta)
    if constant is not None and not -1 <= constant <= 1:
        raise InvalidArgumentError(
            op="adjust_hue", node=name, what="delta must be in the interval [-1, 1]", found=f"delta {constant}"
        )
    floats, dtype = as_floats(image)
    return convert_image_dtype(AdjustHue(floats, delta, name=name), dtype)


@documented_by(AdjustSaturation)
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Scale the saturation of colours."""
    floats, dtype = as_floats(image)
    return convert_image_dtype(AdjustSaturation(floats, saturation_factor, name=name), dtype)


def per_image_standardization(image: Any) -> Tensor:
    """Every image scaled to mean 0 and variance 1, as float32; no more than by the root of its number of elements.

    .. math:: \\frac{image - mean}{\\max(\\sigma, 1 / \\sqrt{h\\,w\\,c})}

    image: [..., h, w, c]. raises InvalidArgumentError for fewer than three dimensions
    """
    image = cast(check_image(image, "per_image_standardization"), float32)
    axes = [-1, -2, -3]
    number = cast(math.reduce_prod(shape_op(image)[-3:]), float32)
    centred = image - math.reduce_mean(image, axis=axes, keepdims=True)
    deviation = math.maximum(math.reduce_std(image, axis=axes, keepdims=True), math.rsqrt(number))
    result: Tensor = centred / deviation
    return result


# ---- by chance ----------------------------------------------------------------------------------------------------


def _drawn(seed: Any, low: Any, high: Any) -> Tensor:
    result: Tensor = uniform([], low, high, seed=seed)
    return result


def _drawn_by(seed: Any, low: Any, high: Any) -> Tensor:
    result: Tensor = stateless_uniform([], seed, low, high)
    return result


Draw = Callable[[Any, Any, Any], Any]


def _by_delta(adjust: Callable[..., Tensor], image: Any, delta: Any, draw: Draw, seed: Any, most: Any = None) -> Tensor:
    if delta < 0:
        raise ValueError(f"max_delta must be non-negative; found {delta}")
    if most is not None and delta > most:
        raise ValueError(f"max_delta must be <= {most}; found {delta}")
    return adjust(image, draw(seed, -delta, delta))


def _by_factor(adjust: Callable[..., Tensor], image: Any, lower: Any, upper: Any, draw: Draw, seed: Any) -> Tensor:
    if upper <= lower:
        raise ValueError(f"upper must be > lower; found {lower} to {upper}")
    if lower < 0:
        raise ValueError(f"lower must be non-negative; found {lower}")
    return adjust(image, draw(seed, lower, upper))


def random_brightness(image: Any, max_delta: Any, seed: Any = None) -> Tensor:
    """adjust_brightness by a number in [-max_delta, max_delta). Raises ValueError for a negative max_delta."""
    return _by_delta(adjust_brightness, image, max_delta, _drawn, seed)


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """As random_brightness, a function of `seed`, two integers. Raises ValueError for a negative max_delta."""
    return _by_delta(adjust_brightness, image, max_delta, _drawn_by, seed)


def random_hue(image: Any, max_delta: Any, seed: Any = None) -> Tensor:
    """adjust_hue by a number in [-max_delta, max_delta). Raises ValueError for a max_delta out of [0, 0.5]."""
    return _by_delta(adjust_hue, image, max_delta, _drawn, seed, 0.5)


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """As random_hue, a function of `seed`, two integers. Raises ValueError for a max_delta out of [0, 0.5]."""
    return _by_delta(adjust_hue, image, max_delta, _drawn_by, seed, 0.5)


def random_contrast(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """adjust_contrast by a factor in [lower, upper). Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_contrast, image, lower, upper, _drawn, seed)


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """As random_contrast, a function of `seed`, two integers. Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_contrast, image, lower, upper, _drawn_by, seed)


def random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """adjust_saturation by a factor in [lower, upper). Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_saturation, image, lower, upper, _drawn, seed)


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """As random_saturation, a function of `seed`, two integers. Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_saturation, image, lower, upper, _drawn_by, seed)
