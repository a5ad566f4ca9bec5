"""Layers that change the colors of images in training.

Lives here: RandomBrightness, RandomContrast, RandomHue, RandomSaturation, RandomGrayscale, RandomInvert,
RandomSharpness, RandomColorDegeneration, RandomPosterization, Solarization, AutoContrast, Equalization,
RandomGaussianBlur.
Not here: the base (image_layer.py), positions (geometric_augmentation.py), several layers (mixing_augmentation.py).

value_range: the least and greatest value of pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, uint8
from ...ops import array, bitwise, image, math, nn
from .. import backend
from .image_layer import ImageLayer, factor_range, rescaled, value_range_of

BYTES = (0, 255)


class _Color(ImageLayer):
    """Base of layers of colors."""

    _bounds = (0, 1)

    def _init_color(self, factor: Any, value_range: Any, seed: Any, data_format: Any = None, **more: Any) -> None:
        self._init_image_layer(
            seed, data_format, factor=factor_range(factor, "factor", *self._bounds), value_range=value_range, **more
        )

    def _batch(self, data: Any) -> Any:
        return self._size(self._images_of(data), 0)

    def _last(self, images: Any) -> Any:
        """Return images with channels last."""
        return array.transpose(images, [0, 2, 3, 1]) if self.data_format == "channels_first" else images

    def _back(self, images: Any) -> Any:
        return array.transpose(images, [0, 3, 1, 2]) if self.data_format == "channels_first" else images

    def _clipped(self, images: Any) -> Any:
        low, high = (array.cast(v, images.dtype) for v in self.value_range)
        return math.minimum(math.maximum(images, low), high)

    def _column(self, values: Any) -> Any:
        """Return a number per image, [batch, 1, 1, 1]."""
        return array.cast(array.reshape(values, [-1, 1, 1, 1]), self.compute_dtype)


class RandomBrightness(_Color):
    """Brightness in training: a share of the range of values, in [-1, 1], is added to all pixels of an image."""

    _bounds = (-1, 1)

    def __init__(self, factor: Any, value_range: Any = BYTES, seed: Any = None, **kwargs: Any) -> None:
        data_format = kwargs.pop("data_format", None)
        super().__init__(**kwargs)
        self._init_color(factor, value_range_of(value_range), seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "rgb_delta", [batch, 1, 1, 1]."""
        share = self._uniform(seed, [self._batch(data), 1, 1, 1], *self.factor)
        return {"rgb_delta": share * (self.value_range[1] - self.value_range[0])}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Add the difference, within the range of values."""
        return self._clipped(images + self._column(transformation["rgb_delta"])) if training else images


class RandomContrast(_Color):
    """Contrast in training: differences from the mean of each channel of an image times 1 - factor to 1 + factor.

    factor: in [0, 1], a number f for 1 to 1 + f, or a pair (a, b) for 1 - a to 1 + b.
    """

    def __init__(self, factor: Any, value_range: Any = BYTES, seed: Any = None, **kwargs: Any) -> None:
        data_format = kwargs.pop("data_format", None)
        super().__init__(**kwargs)
        self._init_color(factor, value_range, seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "contrast_factor", [batch, 1, 1, 1]."""
        low, high = 1.0 - self.factor[0], 1.0 + self.factor[1]
        return {"contrast_factor": self._uniform(seed, [self._batch(data), 1, 1, 1], low, high)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Scale the differences from the mean."""
        if not training:
            return images
        height, width, _ = self._axes()
        mean = math.reduce_mean(images, axis=[height, width], keepdims=True)
        return self._clipped((images - mean) * self._column(transformation["contrast_factor"]) + mean)


class RandomHue(_Color):
    """Hues of RGB images turned in training, by up to half of factor of a turn to either side; factor in [0, 1]."""

    def __init__(
        self, factor: Any, value_range: Any = BYTES, data_format: Any = None, seed: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._init_color(factor, value_range, seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "factor", [batch], of a turn."""
        shape = [self._batch(data)]
        side = array.where(self._uniform(seed, shape) > 0.5, -1.0, 1.0)
        return {"factor": side * self._uniform(seed, shape, *self.factor) * 0.5}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Rotate the hues."""
        if not training:
            return images
        pixels = image.rgb_to_hsv(rescaled(self._last(images), self.value_range, (0, 1)))
        hue = pixels[..., 0:1] + self._column(transformation["factor"])
        hue = array.where(hue > 1.0, hue - 1.0, hue)
        hue = array.where(hue < 0.0, hue + 1.0, hue)
        turned = math.clip_by_value(image.hsv_to_rgb(array.concat([hue, pixels[..., 1:]], -1)), 0.0, 1.0)
        return self._back(rescaled(turned, (0, 1), self.value_range))


class RandomSaturation(_Color):
    """Saturation of RGB images in training: f of factor, in [0, 1], scales it by f / (1 - f); 0.5 leaves it."""

    def __init__(
        self, factor: Any, value_range: Any = BYTES, data_format: Any = None, seed: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._init_color(factor, value_range_of(value_range), seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "factor", [batch], by which the saturation is multiplied."""
        share = self._uniform(seed, [self._batch(data)], *self.factor)
        return {"factor": share / (1.0 - share + backend.epsilon())}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Scale the saturation."""
        if not training:
            return images
        pixels = image.rgb_to_hsv(self._last(images))
        saturation = self._clipped(pixels[..., 1:2] * self._column(transformation["factor"]))
        return self._back(image.hsv_to_rgb(array.concat([pixels[..., :1], saturation, pixels[..., 2:]], -1)))


class RandomGrayscale(_Color):
    """RGB images made gray in training with a probability, factor."""

    def __init__(self, factor: float = 0.5, data_format: Any = None, seed: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= factor <= 1:
            raise ValueError(f"`factor` should be between 0 and 1. Received: factor={factor}")
        self._init_image_layer(seed, data_format, factor=factor)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw which images become gray, bool [batch, 1, 1, 1]."""
        return self._uniform(seed, [self._batch(data), 1, 1, 1]) < self.factor

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Return gray images, with as many channels."""
        if not training:
            return images
        gray = self._back(image.rgb_to_grayscale(self._last(images)))
        return array.where(transformation, gray, images)


class RandomInvert(_Color):
    """Inverted colors in training, with a probability, factor, or one drawn from a range."""

    def __init__(
        self, factor: Any = 1.0, value_range: Any = BYTES, seed: Any = None, data_format: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._init_color(factor, value_range, seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "apply_inversion", bool [batch]."""
        shape = [self._batch(data)]
        return {"apply_inversion": self._uniform(seed, shape) < self._uniform(seed, shape, *self.factor)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Invert images."""
        if not training:
            return images
        inverted = array.reshape(transformation["apply_inversion"], [-1, 1, 1, 1])
        return array.where(inverted, self.value_range[1] - images, images)


class RandomSharpness(_Color):
    """Sharpness in training: f of factor, in [0, 1]: 0 blurs, 0.5 leaves, 1 sharpens."""

    def __init__(
        self, factor: Any, value_range: Any = BYTES, data_format: Any = None, seed: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._init_color(factor, value_range_of(value_range), seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "factor", [batch]."""
        return {"factor": self._uniform(seed, [self._batch(data)], *self.factor)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Move pixels from the mean of their neighbours, or toward it."""
        if not training:
            return images
        pixels = self._last(images)
        kernel = np.full((3, 3), 1.0 / 13.0, np.float32)
        kernel[1, 1] = 5.0 / 13.0
        smooth = _filtered(pixels, kernel)
        factor = self._column(transformation["factor"]) * 2.0
        return self._back(self._clipped(pixels + (1.0 - factor) * (smooth - pixels)))


def _filtered(pixels: Any, kernel: Any) -> Any:
    """Return each channel of images convolved with a matrix; pixels beyond the edges are 0."""
    channels = pixels.shape[-1]
    if channels is None:
        raise ValueError(f"The number of channels must be known. Received: images.shape={pixels.shape}")
    weights = array.cast(array.expand_dims(array.expand_dims(kernel, -1), -1), pixels.dtype)
    return nn.depthwise_conv2d(pixels, array.tile(weights, [1, 1, channels, 1]), [1, 1, 1, 1], "SAME")


class RandomColorDegeneration(_Color):
    """Colors of RGB images mixed with their gray in training, by a share of factor, in [0, 1]."""

    def __init__(
        self, factor: Any, value_range: Any = BYTES, data_format: Any = None, seed: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._init_color(factor, value_range_of(value_range), seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "factor", [batch, 1, 1, 1]."""
        return {"factor": self._uniform(seed, [self._batch(data), 1, 1, 1], *self.factor)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Mix images with their gray."""
        if not training:
            return images
        gray = self._back(image.rgb_to_grayscale(self._last(images)))
        return self._clipped(images + self._column(transformation["factor"]) * (gray - images))


class RandomPosterization(_Color):
    """Fewer bits of colors in training: factor of 8, a number or a range of integers in [1, 8]."""

    _bounds = (1, 8)

    def __init__(
        self, factor: Any, value_range: Any = BYTES, data_format: Any = None, seed: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._init_color(factor, value_range_of(value_range), seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "shift_factor", uint8 [batch], the bits that are dropped."""
        low, high = self.factor
        bits = math.floor(self._uniform(seed, [self._batch(data)], float(low), float(high)))
        return {"shift_factor": array.cast(8.0 - bits, uint8)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Drop the low bits."""
        if not training:
            return images
        shift = array.reshape(array.cast(transformation["shift_factor"], uint8), [-1, 1, 1, 1])
        pixels = array.cast(rescaled(images, self.value_range, BYTES), uint8)
        kept = bitwise.left_shift(bitwise.right_shift(pixels, shift), shift)
        return rescaled(array.cast(kept, self.compute_dtype), BYTES, self.value_range)


class Solarization(_Color):
    """Bright pixels inverted in training: of a sum with a number, what is not below a threshold.

    addition_factor, threshold_factor: shares of 255, in [0, 1]: numbers f, for 0 to f, or ranges.
    """

    def __init__(
        self,
        addition_factor: Any = 0.0,
        threshold_factor: Any = 0.0,
        value_range: Any = BYTES,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        data_format = kwargs.pop("data_format", None)
        super().__init__(**kwargs)
        self._init_image_layer(
            seed,
            data_format,
            addition_factor=factor_range(addition_factor, "addition_factor", 0, 1),
            threshold_factor=factor_range(threshold_factor, "threshold_factor", 0, 1),
            value_range=value_range_of(value_range),
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "additions" and "thresholds", [batch, 1, 1, 1]."""
        shape = [self._batch(data), 1, 1, 1]
        parts = {"additions": self.addition_factor, "thresholds": self.threshold_factor}
        return {key: self._uniform(seed, shape, low, high * 255) for key, (low, high) in parts.items()}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Invert what is not below the threshold."""
        if not training or transformation is None:
            return images
        added = rescaled(images, self.value_range, BYTES) + self._column(transformation["additions"])
        added = math.clip_by_value(added, 0.0, 255.0)
        result = array.where(added < self._column(transformation["thresholds"]), added, 255.0 - added)
        return rescaled(result, BYTES, self.value_range)


class AutoContrast(_Color):
    """Colors of each channel of an image stretched to the whole range of values, in training and outside."""

    _draws = False

    def __init__(self, value_range: Any = BYTES, **kwargs: Any) -> None:
        data_format = kwargs.pop("data_format", None)
        super().__init__(**kwargs)
        self._init_image_layer(None, data_format, value_range=value_range_of(value_range))

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Stretch the colors."""
        pixels = rescaled(images, self.value_range, BYTES)
        height, width, _ = self._axes()
        low = math.reduce_min(pixels, axis=[height, width], keepdims=True)
        high = math.reduce_max(pixels, axis=[height, width], keepdims=True)
        scale = 255.0 / (high - low)
        stretched = rescaled(math.clip_by_value(pixels * scale - low * scale, 0.0, 255.0), BYTES, self.value_range)
        return array.where(high > low, stretched, images)

    def _outside(self, images: Any) -> Any:
        return self.transform_images(images)


class Equalization(_Color):
    """Histograms of each channel of an image equalized, in training. bins: the number of values distinguished."""

    _draws = False

    def __init__(self, value_range: Any = BYTES, bins: int = 256, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_image_layer(None, data_format, value_range=value_range_of(value_range), bins=bins)

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Equalize each channel."""
        if not training:
            return images
        bins = self.bins
        pixels = self._last(rescaled(images, self.value_range, BYTES))
        size = array.shape(pixels)
        # A row for each channel of each image, and a table of the new value of each bin.
        rows = array.reshape(array.transpose(pixels, [0, 3, 1, 2]), array.stack([size[0] * size[3], size[1] * size[2]]))
        places = math.clip_by_value(array.cast(rows * (bins - 1) / 255.0, int32), 0, bins - 1)
        counts = math.bincount(places, minlength=bins, maxlength=bins, axis=-1)
        total = math.cumsum(counts, axis=1)
        start = math.reduce_min(array.where(total > 0, total, total[:, -1:]), axis=1, keepdims=True)
        span = total[:, -1:] - start
        table = array.cast((total - start) * 255, float32) / array.cast(math.maximum(span, 1), float32)
        table = array.cast(math.clip_by_value(math.round(table), 0.0, 255.0), rows.dtype)
        flat = math.reduce_sum(array.cast(counts > 0, int32), axis=1, keepdims=True) <= 1
        lookup = math.clip_by_value(array.cast(rows / 255.0 * (bins - 1), int32), 0, bins - 1)
        equal = array.where(flat, rows, array.gather(table, lookup, batch_dims=1))
        result = array.transpose(array.reshape(equal, array.stack([size[0], size[3], size[1], size[2]])), [0, 2, 3, 1])
        return array.ensure_shape(rescaled(self._back(result), BYTES, self.value_range), images.shape)


class RandomGaussianBlur(_Color):
    """Blurred images in training, with a probability, factor, or one drawn from a range.

    kernel_size: an odd number of pixels, or two, of height and width. sigma: the deviation in pixels, or its range, in
    [0, 1].
    """

    def __init__(
        self,
        factor: Any = 1.0,
        kernel_size: Any = 3,
        sigma: Any = 1.0,
        value_range: Any = BYTES,
        data_format: Any = None,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        sizes = tuple(kernel_size) if isinstance(kernel_size, (tuple, list)) else (kernel_size, kernel_size)
        if len(sizes) != 2 or any(n % 2 == 0 for n in sizes):
            raise ValueError(f"kernel_size must be an odd number. Received: kernel_size={kernel_size}")
        sigmas = factor_range(sigma, "sigma", 0, 1)
        self._init_color(factor, value_range, seed, data_format, kernel_size=sizes, sigma=sigmas)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "should_apply_blur", bool [batch], and "blur_factor", the deviations of x and y."""
        if not training:
            return None
        shape = [self._batch(data)]
        blurred = self._uniform(seed, shape) < self._uniform(seed, shape, *self.factor)
        return {"should_apply_blur": blurred, "blur_factor": self._uniform(seed, [2], *self.sigma) + 1e-6}

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Blur images."""
        if not training or transformation is None:
            return images
        sigma = array.cast(transformation["blur_factor"], float32)
        parts = []
        for i, size in enumerate(self.kernel_size):
            x = array.cast(np.arange(size) - (size - 1) / 2, float32)
            weights = math.exp(-0.5 * math.square(x / sigma[1 - i]))
            parts.append(weights / math.reduce_sum(weights))
        kernel = array.expand_dims(parts[0], 1) * array.expand_dims(parts[1], 0)
        blurred = self._back(_filtered(self._last(images), kernel))
        chosen = array.reshape(transformation["should_apply_blur"], [-1, 1, 1, 1])
        return self._clipped(array.where(chosen, blurred, images))
