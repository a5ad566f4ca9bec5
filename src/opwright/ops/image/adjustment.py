"""Adjustment of brightness, contrast, gamma, hue and saturation by given or random amounts.

Lives here: AdjustContrast, AdjustHue, AdjustSaturation; the functions on images of any dtype;
per_image_standardization.
Not here: color spaces (color_spaces.py).

The functions take images of any dtype: integers are converted to float32 in [0, 1], and the result back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32, float64, floating
from ...core.errors import InvalidArgumentError
from .. import array, lod_propagation, math
from ..accumulation import wide, wide_dtype
from ..array import cast
from ..array.shape_operators import shape_op
from ..definition import operator
from ..random import stateless_uniform, uniform
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from .color_spaces import (
    PixelExtrema,
    as_floats,
    check_channels,
    convert_image_dtype,
    hsv_from_rgb,
    hsv_to_rgb_gradient,
    hue,
    pure_color,
    pure_color_and_slope,
    rgb_from_hsv,
    rgb_to_hsv,
    rgb_to_hsv_gradient,
    with_three_channels,
)
from .geometry import check_image

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _widen(op: Any, *values: Any) -> list[Tensor]:
    """Cast tensors to the dtype of the computation."""
    dtype = wide_dtype(op.images.dtype)
    return [array.cast(value, dtype) for value in values]


@operator
class AdjustContrast(OperatorDefinition):
    """Scale the difference of each channel from its mean over the image.

    .. math:: output = mean + contrast\\_factor\\, (images - mean)

    images: [..., h, w, c]; contrast_factor: a scalar. 16-bit floats are computed in float32.
    raises InvalidArgumentError for images of fewer than three dimensions
    """

    images = Input(floating)
    contrast_factor = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_propagation.batched("images", 3)

    def infer(op) -> TensorSpec:
        if op.images.spec.shape.rank in (0, 1, 2):
            raise InvalidArgumentError(what="input must be at least 3-D", found=op.images.spec.short())
        return op.images.spec

    def compute(op, images: np.ndarray, contrast_factor: np.ndarray) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        mean = x.mean((-3, -2), keepdims=True) if x.size else x
        output: np.ndarray = (x - mean) * contrast_factor.astype(x.dtype) + mean
        return output.astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        x, factor, dy = _widen(op, op.images, op.contrast_factor, doutput)
        centred = x - math.reduce_mean(x, axis=[-3, -2], keepdims=True)
        dx = factor * dy + (1.0 - factor) * math.reduce_mean(dy, axis=[-3, -2], keepdims=True)
        dfactor = math.reduce_sum(dy * centred)
        return array.cast(dx, op.images.dtype), array.cast(dfactor, op.contrast_factor.dtype)


@operator
class AdjustHue(OperatorDefinition):
    """Rotate the hue of colors.

    .. math:: output = m + (M - m)\\, f\\big((H(images) + delta) \\bmod 1\\big)

    M, m: maximum and minimum of a pixel's channels; H: its hue; f: as in HSVToRGB. images: [..., h, w, 3]; delta: a
    scalar, 1 is a full rotation. 16-bit floats are computed in float32.
    raises InvalidArgumentError for fewer than three dimensions or other than three channels
    """

    images = Input(floating)
    delta = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_propagation.batched("images", 3)

    def infer(op) -> TensorSpec:
        check_channels(op.images, 3)
        return with_three_channels(op.images.spec)

    def compute(op, images: np.ndarray, delta: np.ndarray) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        top, low = x.max(-1), x.min(-1)
        rotated = np.mod(hue(x, top, top - low) + delta.astype(x.dtype), x.dtype.type(1))
        output: np.ndarray = low[..., None] + (top - low)[..., None] * pure_color(rotated)
        return output.astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        x, delta, dy = _widen(op, op.images, op.delta, doutput)
        extrema = PixelExtrema(x)
        rotated = math.mod(array.cast(rgb_to_hsv(x)[..., 0:1], x.dtype) + delta, array.ones_like(delta))
        pure, slope = pure_color_and_slope(rotated)
        dh = math.reduce_sum(dy * slope, axis=-1, keepdims=True) * extrema.span
        dtop = math.reduce_sum(dy * pure, axis=-1, keepdims=True)
        dlow = math.reduce_sum(dy * (1.0 - pure), axis=-1, keepdims=True)
        dx = extrema.hue_gradient(dh) + dtop * extrema.is_top + dlow * extrema.is_low
        return array.cast(dx, op.images.dtype), array.cast(math.reduce_sum(dh), op.delta.dtype)


@operator
class AdjustSaturation(OperatorDefinition):
    """Scale the saturation of colors, clipped to [0, 1].

    .. math:: output = RGB\\big(H,\\; clip_{[0, 1]}(scale\\, S),\\; V\\big)

    images: [..., h, w, 3]; scale: a scalar. 16-bit floats are computed in float32.
    raises InvalidArgumentError for fewer than three dimensions or other than three channels
    """

    images = Input(floating)
    scale = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_propagation.batched("images", 3)

    def infer(op) -> TensorSpec:
        check_channels(op.images, 3)
        return with_three_channels(op.images.spec)

    def compute(op, images: Any, scale: Any) -> np.ndarray:
        x = images.astype(wide(images.dtype), copy=False)
        h, s, v = hsv_from_rgb(x)
        return rgb_from_hsv(h, np.clip(s * scale.astype(x.dtype), 0, 1), v).astype(images.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        x, scale, dy = _widen(op, op.images, op.scale, doutput)
        hsv = rgb_to_hsv(x)
        h, s, v = hsv[..., 0:1], hsv[..., 1:2], hsv[..., 2:3]
        scaled = s * scale
        unclipped = array.cast(math.logical_and(scaled > 0.0, scaled < 1.0), x.dtype)
        dhsv = hsv_to_rgb_gradient(array.concat([h, math.clip_by_value(scaled, 0.0, 1.0), v], axis=-1), dy)
        ds = dhsv[..., 1:2] * unclipped
        dx = rgb_to_hsv_gradient(x, array.concat([dhsv[..., 0:1], ds * scale, dhsv[..., 2:3]], axis=-1))
        return array.cast(dx, op.images.dtype), array.cast(math.reduce_sum(ds * s), op.scale.dtype)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Add `delta`, a fraction of the range of the dtype, to all channels. Integers are clipped to their range."""
    floats, dtype = as_floats(image)
    return convert_image_dtype(floats + cast(delta, floats.dtype), dtype, saturate=True)


@documented_by(AdjustContrast)
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scale the distance of each pixel from the mean of its channel."""
    floats, dtype = as_floats(images)
    return convert_image_dtype(AdjustContrast(floats, contrast_factor), dtype, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Apply gamma correction to values in [0, 1]. Integers are clipped to their range.

    .. math:: gain \\cdot image^{gamma}

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
    """Normalize each image to mean 0 and variance 1, as float32.

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


Sampler = Callable[[Any, Any, Any], "Tensor"]  # seed, low, high


def _random(seed: Any, low: Any, high: Any) -> Tensor:
    return uniform([], low, high, seed=seed)


def _stateless_random(seed: Any, low: Any, high: Any) -> Tensor:
    return stateless_uniform([], seed, low, high)


def _by_delta(
    adjust: Callable[..., Tensor], image: Any, delta: Any, sample: Sampler, seed: Any, limit: Any = None
) -> Tensor:
    if delta < 0:
        raise ValueError(f"max_delta must be non-negative; found {delta}")
    if limit is not None and delta > limit:
        raise ValueError(f"max_delta must be <= {limit}; found {delta}")
    return adjust(image, sample(seed, -delta, delta))


def _by_factor(adjust: Callable[..., Tensor], image: Any, lower: Any, upper: Any, sample: Sampler, seed: Any) -> Tensor:
    if upper <= lower:
        raise ValueError(f"upper must be > lower; found {lower} to {upper}")
    if lower < 0:
        raise ValueError(f"lower must be non-negative; found {lower}")
    return adjust(image, sample(seed, lower, upper))


def random_brightness(image: Any, max_delta: Any, seed: Any = None) -> Tensor:
    """Adjust brightness by a random number in [-max_delta, max_delta). Raises ValueError for a negative max_delta."""
    return _by_delta(adjust_brightness, image, max_delta, _random, seed)


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """Adjust brightness by a pseudo-random number in [-max_delta, max_delta), a function of `seed`, two integers.

    raises ValueError for a negative max_delta
    """
    return _by_delta(adjust_brightness, image, max_delta, _stateless_random, seed)


def random_hue(image: Any, max_delta: Any, seed: Any = None) -> Tensor:
    """Rotate hues by a random number in [-max_delta, max_delta). Raises ValueError for a max_delta out of [0, 0.5]."""
    return _by_delta(adjust_hue, image, max_delta, _random, seed, 0.5)


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """Rotate hues by a pseudo-random number in [-max_delta, max_delta), a function of `seed`, two integers.

    raises ValueError for a max_delta out of [0, 0.5]
    """
    return _by_delta(adjust_hue, image, max_delta, _stateless_random, seed, 0.5)


def random_contrast(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """Adjust contrast by a random factor in [lower, upper). Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_contrast, image, lower, upper, _random, seed)


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Tensor:
    """Adjust contrast by a pseudo-random factor in [lower, upper), a function of `seed`, two integers.

    raises ValueError unless 0 <= lower < upper
    """
    return _by_factor(adjust_contrast, image, lower, upper, _stateless_random, seed)


def random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """Adjust saturation by a random factor in [lower, upper). Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_saturation, image, lower, upper, _random, seed)


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """Adjust saturation by a pseudo-random factor in [lower, upper), a function of `seed`, two integers.

    raises ValueError unless 0 <= lower < upper
    """
    return _by_factor(adjust_saturation, image, lower, upper, _stateless_random, seed)
