"""Images made brighter, sharper in contrast, of other hues: by a given amount or one drawn at random.

Lives here: adjust_brightness ... adjust_saturation, their random and stateless forms, per_image_standardization.
Not here: the operators (adjusting.py).

Images of any dtype are taken: integers are computed in float32 as numbers in [0, 1], and given back in their dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import float32
from ...core.errors import InvalidArgumentError
from .. import math
from ..array import cast
from ..array.shaping import shape_op
from ..random import stateless_uniform, uniform
from .adjusting import AdjustContrast, AdjustHue, AdjustSaturation
from .conversions import as_floats, convert_image_dtype
from .sizes import check_image


def adjust_brightness(image: Any, delta: Any) -> Any:
    """Every channel increased by `delta`, in parts of the whole range. Integers are clipped to their range."""
    floats, dtype = as_floats(image)
    return convert_image_dtype(floats + cast(delta, floats.dtype), dtype, saturate=True)


def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """Every channel's distance from its mean over the image, times a factor. See AdjustContrast."""
    floats, dtype = as_floats(images)
    return convert_image_dtype(AdjustContrast(floats, contrast_factor), dtype, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """gain * image ** gamma, of values in [0, 1]. Integers are clipped to their range.

    raises InvalidArgumentError for a negative gamma
    """
    floats, dtype = as_floats(image)
    constant = getattr(gamma, "constant", gamma)
    if constant is not None and constant < 0:
        raise InvalidArgumentError(op="adjust_gamma", what="Gamma should be a non-negative real number.",
                                   found=f"gamma {constant}")  # fmt: skip
    return convert_image_dtype(gain * floats**gamma, dtype, saturate=True)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Any:
    """Colours turned round the circle of hues by `delta`, in [-1, 1]. See AdjustHue.

    raises InvalidArgumentError for a delta out of range
    """
    constant = getattr(delta, "constant", delta)
    if constant is not None and not -1 <= constant <= 1:
        raise InvalidArgumentError(op="adjust_hue", node=name, what="delta must be in the interval [-1, 1]",
                                   found=f"delta {constant}")  # fmt: skip
    floats, dtype = as_floats(image)
    return convert_image_dtype(AdjustHue(floats, delta, name=name), dtype)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Any:
    """Colours' saturation times a factor. See AdjustSaturation."""
    floats, dtype = as_floats(image)
    return convert_image_dtype(AdjustSaturation(floats, saturation_factor, name=name), dtype)


def per_image_standardization(image: Any) -> Any:
    """Every image scaled to mean 0 and variance 1, as float32; no more than by the root of its number of elements.

    .. math:: \\frac{image - mean}{\\max(\\sigma, 1 / \\sqrt{h\\,w\\,c})}

    image: [..., h, w, c]. raises InvalidArgumentError for fewer than three dimensions
    """
    image = cast(check_image(image, "per_image_standardization"), float32)
    axes = [-1, -2, -3]
    number = cast(math.reduce_prod(shape_op(image)[-3:]), float32)
    centred = image - math.reduce_mean(image, axis=axes, keepdims=True)
    deviation = math.maximum(math.reduce_std(image, axis=axes, keepdims=True), math.rsqrt(number))
    return centred / deviation


# ---- by chance ----------------------------------------------------------------------------------------------------


def _drawn(seed: Any, low: Any, high: Any) -> Any:
    return uniform([], low, high, seed=seed)


def _drawn_by(seed: Any, low: Any, high: Any) -> Any:
    return stateless_uniform([], seed, low, high)


Draw = Callable[[Any, Any, Any], Any]


def _by_delta(adjust: Callable[..., Any], image: Any, delta: Any, draw: Draw, seed: Any, most: Any = None) -> Any:
    if delta < 0:
        raise ValueError(f"max_delta must be non-negative; found {delta}")
    if most is not None and delta > most:
        raise ValueError(f"max_delta must be <= {most}; found {delta}")
    return adjust(image, draw(seed, -delta, delta))


def _by_factor(adjust: Callable[..., Any], image: Any, lower: Any, upper: Any, draw: Draw, seed: Any) -> Any:
    if upper <= lower:
        raise ValueError(f"upper must be > lower; found {lower} to {upper}")
    if lower < 0:
        raise ValueError(f"lower must be non-negative; found {lower}")
    return adjust(image, draw(seed, lower, upper))


def random_brightness(image: Any, max_delta: Any, seed: Any = None) -> Any:
    """adjust_brightness by a number in [-max_delta, max_delta). Raises ValueError for a negative max_delta."""
    return _by_delta(adjust_brightness, image, max_delta, _drawn, seed)


def stateless_random_brightness(image: Any, max_delta: Any, seed: Any) -> Any:
    """As random_brightness, a function of `seed`, two integers. Raises ValueError for a negative max_delta."""
    return _by_delta(adjust_brightness, image, max_delta, _drawn_by, seed)


def random_hue(image: Any, max_delta: Any, seed: Any = None) -> Any:
    """adjust_hue by a number in [-max_delta, max_delta). Raises ValueError for a max_delta out of [0, 0.5]."""
    return _by_delta(adjust_hue, image, max_delta, _drawn, seed, 0.5)


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Any:
    """As random_hue, a function of `seed`, two integers. Raises ValueError for a max_delta out of [0, 0.5]."""
    return _by_delta(adjust_hue, image, max_delta, _drawn_by, seed, 0.5)


def random_contrast(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """adjust_contrast by a factor in [lower, upper). Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_contrast, image, lower, upper, _drawn, seed)


def stateless_random_contrast(image: Any, lower: Any, upper: Any, seed: Any) -> Any:
    """As random_contrast, a function of `seed`, two integers. Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_contrast, image, lower, upper, _drawn_by, seed)


def random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """adjust_saturation by a factor in [lower, upper). Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_saturation, image, lower, upper, _drawn, seed)


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Any:
    """As random_saturation, a function of `seed`, two integers. Raises ValueError unless 0 <= lower < upper."""
    return _by_factor(adjust_saturation, image, lower, upper, _drawn_by, seed)
