"""Contrast, hue and saturation changed: the operators.

Lives here: AdjustContrast, AdjustHue, AdjustSaturation.
Not here: the functions that take images of any dtype (adjustments.py), colour spaces (colours.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, float64
from ...core.errors import InvalidArgumentError
from .. import array, lod_rules, math
from ..definition import Input, Output, operator
from ..windows import wide, wide_dtype
from .colours import (
    FLOATS,
    Shade,
    check_colours,
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


def _widened(op: Any, *values: Any) -> list[Any]:
    """Tensors in the dtype to compute in."""
    dtype = wide_dtype(op.images.dtype)
    return [array.cast(value, dtype) for value in values]


@operator
class AdjustContrast:
    """Every channel's distance from its mean over the image, times a factor.

    .. math:: output = mean + contrast\\_factor\\, (images - mean)

    images: [..., h, w, c]; contrast_factor: a scalar. 16-bit floats are computed in float32.
    raises InvalidArgumentError for images of fewer than three dimensions
    """

    images = Input(FLOATS)
    contrast_factor = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_rules.batched("images", 3)

    def infer(op) -> Any:
        if op.images.spec.shape.rank in (0, 1, 2):
            raise InvalidArgumentError(what="input must be at least 3-D", found=op.images.spec.short())
        return op.images.spec

    def compute(op, images, contrast_factor) -> Any:
        x = images.astype(wide(images.dtype), copy=False)
        mean = x.mean((-3, -2), keepdims=True) if x.size else x
        return ((x - mean) * contrast_factor.astype(x.dtype) + mean).astype(images.dtype, copy=False)

    def gradient(op, doutput) -> Any:
        x, factor, dy = _widened(op, op.images, op.contrast_factor, doutput)
        centred = x - math.reduce_mean(x, axis=[-3, -2], keepdims=True)
        dx = factor * dy + (1.0 - factor) * math.reduce_mean(dy, axis=[-3, -2], keepdims=True)
        dfactor = math.reduce_sum(dy * centred)
        return array.cast(dx, op.images.dtype), array.cast(dfactor, op.contrast_factor.dtype)


@operator
class AdjustHue:
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

    def infer(op) -> Any:
        check_colours(op.images, 3)
        return with_colours(op.images.spec)

    def compute(op, images, delta) -> Any:
        x = images.astype(wide(images.dtype), copy=False)
        top, low = x.max(-1), x.min(-1)
        turned = np.mod(hue(x, top, top - low) + delta.astype(x.dtype), x.dtype.type(1))
        return (low[..., None] + (top - low)[..., None] * fullness(turned)).astype(images.dtype, copy=False)

    def gradient(op, doutput) -> Any:
        x, delta, dy = _widened(op, op.images, op.delta, doutput)
        shade = Shade(x)
        turned = math.mod(array.cast(_hue_of(shade), x.dtype) + delta, array.ones_like(delta))
        full, slope = fullness_of(turned)
        dh = math.reduce_sum(dy * slope, axis=-1, keepdims=True) * shade.span
        dtop = math.reduce_sum(dy * full, axis=-1, keepdims=True)
        dlow = math.reduce_sum(dy * (1.0 - full), axis=-1, keepdims=True)
        dx = shade.back_from_hue(dh) + dtop * shade.is_top + dlow * shade.is_low
        return array.cast(dx, op.images.dtype), array.cast(math.reduce_sum(dh), op.delta.dtype)


def _hue_of(shade: Shade) -> Any:
    return rgb_to_hsv(shade.x)[..., 0:1]


@operator
class AdjustSaturation:
    """Colours' saturation times a factor, kept within [0, 1].

    .. math:: output = RGB\\big(H,\\; clip_{[0, 1]}(scale\\, S),\\; V\\big)

    images: [..., h, w, 3]; scale: a scalar. 16-bit floats are computed in float32.
    raises InvalidArgumentError for fewer than three dimensions or other than three channels
    """

    images = Input(FLOATS)
    scale = Input((float32, float64), rank=0)
    output = Output(like="images")
    lod = lod_rules.batched("images", 3)

    def infer(op) -> Any:
        check_colours(op.images, 3)
        return with_colours(op.images.spec)

    def compute(op, images, scale) -> Any:
        x = images.astype(wide(images.dtype), copy=False)
        h, s, v = to_hsv(x)
        return to_rgb(h, np.clip(s * scale.astype(x.dtype), 0, 1), v).astype(images.dtype, copy=False)

    def gradient(op, doutput) -> Any:
        x, scale, dy = _widened(op, op.images, op.scale, doutput)
        hsv = rgb_to_hsv(x)
        h, s, v = hsv[..., 0:1], hsv[..., 1:2], hsv[..., 2:3]
        more = s * scale
        inside = array.cast(math.logical_and(more > 0.0, more < 1.0), x.dtype)
        back = rgb_back(array.concat([h, math.clip_by_value(more, 0.0, 1.0), v], axis=-1), dy)
        ds = back[..., 1:2] * inside
        dx = hsv_back(x, array.concat([back[..., 0:1], ds * scale, back[..., 2:3]], axis=-1))
        return array.cast(dx, op.images.dtype), array.cast(math.reduce_sum(ds * s), op.scale.dtype)
