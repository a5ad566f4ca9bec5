"""Layers that erase parts of images, mix images with others, or apply other layers, in training.

Lives here: RandomErasing, MixUp, CutMix, RandomColorJitter, RandAugment.
Not here: the base (image_layer.py), single changes (geometric_augmentation.py, color_augmentation.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32
from ...ops import array, dispatch, math
from ...tracing.control import switch_case
from .. import random
from .color_augmentation import (
    BYTES,
    AutoContrast,
    Equalization,
    RandomBrightness,
    RandomColorDegeneration,
    RandomContrast,
    RandomHue,
    RandomPosterization,
    RandomSaturation,
    RandomSharpness,
    Solarization,
)
from .geometric_augmentation import RandomRotation, RandomShear, RandomTranslation
from .image_layer import ImageLayer, factor_range


class _Boxed(ImageLayer):
    """Base of layers that draw a box in each image."""

    def _bounds_of(self, seed: Any, count: Any, length: Any, share: Any) -> tuple[Any, Any]:
        """Draw the ends of a share of a length, float32 [batch]."""
        size = array.cast(length, float32)
        part = share * size
        start = self._uniform(seed, [count]) * (size - part)
        return start, start + part

    def _mask(self, images: Any, left: Any, right: Any, top: Any, bottom: Any) -> Any:
        """Return the pixels between the ends: bool [batch, height, width, 1]."""
        height, width, _ = (array.cast(self._size(images, axis), float32) for axis in self._axes())
        y, x = array.meshgrid(array.range(height), array.range(width), indexing="ij")
        left, right, top, bottom = (array.reshape(v, [-1, 1, 1]) for v in (left, right, top, bottom))
        mask = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        return array.expand_dims(mask, 1 if self.data_format == "channels_first" else 3)

    def _mixed_labels(self, labels: Any, transformation: Any) -> Any:
        weight = array.cast(transformation["mix_weight"], float32)
        numbers = labels if labels.dtype.is_floating else array.cast(labels, float32)
        weight = array.cast(array.reshape(weight, [-1, *[1] * (labels.shape.rank - 1)]), numbers.dtype)
        return weight * numbers + (1.0 - weight) * array.gather(numbers, transformation["permutation_order"])


class RandomErasing(_Boxed):
    """Boxes of images overwritten in training, with a probability, factor, or one drawn from a range.

    scale: the share of the area, in [0, 1], a number or a range. fill_value: a number, one for each of three channels,
    or None for noise.
    """

    def __init__(
        self,
        factor: Any = 1.0,
        scale: Any = (0.02, 0.33),
        fill_value: Any = None,
        value_range: Any = BYTES,
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(fill_value, (tuple, list)) and len(fill_value) != 3:
            raise ValueError(
                f"The `fill_value` argument should be a number (or a list of three numbers). Received: {fill_value}"
            )
        self._init_image_layer(
            seed,
            data_format,
            factor=factor_range(factor, "factor", 0, 1),
            scale=factor_range(scale, "scale", 0, 1),
            fill_value=fill_value,
            value_range=value_range,
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "batch_masks", "apply_erasing", bool [batch], and "fill_value"."""
        if not training:
            return None
        images = self._images_of(data)
        count, (height, width, _) = self._size(images, 0), self._axes()
        share = math.sqrt(self._uniform(seed, [count, 2], *self.scale))
        columns = self._bounds_of(seed, count, self._size(images, width), share[:, 0])
        rows = self._bounds_of(seed, count, self._size(images, height), share[:, 1])
        probability = self._uniform(seed, [count], *self.factor)
        applied = self._uniform(seed, [count]) < probability
        low, high = self.value_range
        if self.fill_value is None:
            generator = self.generator if seed is None else seed
            fill = generator.normal(array.shape(images)) * high
        else:
            fill = array.cast(self.fill_value, float32)
            if self.data_format == "channels_first" and fill.shape.rank:
                fill = array.reshape(fill, [-1, 1, 1])
        fill = math.clip_by_value(fill, float(low), float(high))
        return {"apply_erasing": applied, "batch_masks": self._mask(images, *columns, *rows), "fill_value": fill}

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Overwrite the boxes."""
        if not training or transformation is None:
            return images
        applied = array.reshape(transformation["apply_erasing"], [-1, 1, 1, 1])
        mask = math.logical_and(transformation["batch_masks"], applied)
        return array.where(mask, array.cast(transformation["fill_value"], images.dtype), images)


def _beta(shape: Any, alpha: Any, seed: Any) -> Any:
    """Draw from the beta distribution with both parameters alpha: of two draws of gamma, the share of one."""
    first, second = random.gamma(shape, alpha, seed=seed), random.gamma(shape, alpha, seed=seed)
    return first / math.maximum(first + second, 1e-30)


class MixUp(_Boxed):
    """Means of each image and another of the batch, and of their labels, with weights of beta(alpha, alpha).

    See Zhang et al. 2017. Call it on a dict of "images" and "labels", which are one-hot or other numbers.
    """

    def __init__(self, alpha: float = 0.2, data_format: Any = None, seed: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_image_layer(seed, data_format, alpha=alpha)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "mix_weight", [batch], and "permutation_order", int64 [batch]."""
        count = self._size(self._images_of(data), 0)
        generator = self.generator if seed is None else seed
        order = random.shuffle(array.range(array.cast(count, "int64")), seed=generator)
        return {"mix_weight": _beta([count], self.alpha, generator), "permutation_order": order}

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Mix images."""
        if not training or transformation is None:
            return images
        weight = array.cast(array.reshape(transformation["mix_weight"], [-1, 1, 1, 1]), images.dtype)
        return weight * images + (1.0 - weight) * array.gather(images, transformation["permutation_order"])

    def transform_labels(self, labels: Any, transformation: Any, training: bool = True) -> Any:
        """Mix labels."""
        return self._mixed_labels(labels, transformation) if training and transformation is not None else labels


class CutMix(_Boxed):
    """Boxes of images from another image of the batch, and labels by area, with shares of beta(factor, factor).

    See Yun et al. 2019. Call it on a dict of "images" and "labels", which are one-hot or other numbers. factor: a
    number or a range in [0, 1].
    """

    def __init__(self, factor: Any = 1.0, seed: Any = None, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_image_layer(seed, data_format, factor=factor_range(factor, "factor", 0, 1))

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "batch_masks", "permutation_order" and the share of the own image, "mix_weight", [batch, 1, 1, 1]."""
        if not training:
            return None
        images = self._images_of(data)
        generator = self.generator if seed is None else seed
        count, (height, width, _) = self._size(images, 0), self._axes()
        alpha = self._uniform(seed, [], *self.factor) + 1e-6
        ratio = math.sqrt(1.0 - _beta([count], alpha, generator))
        left, right = self._bounds_of(seed, count, self._size(images, width), ratio)
        top, bottom = self._bounds_of(seed, count, self._size(images, height), ratio)
        area = array.cast(self._size(images, width), float32) * array.cast(self._size(images, height), float32)
        return {
            "permutation_order": random.shuffle(array.range(count), seed=generator),
            "batch_masks": self._mask(images, left, right, top, bottom),
            "mix_weight": array.reshape(1.0 - (right - left) * (bottom - top) / area, [-1, 1, 1, 1]),
        }

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Put the boxes of the others into images."""
        if not training or transformation is None:
            return images
        others = array.gather(images, transformation["permutation_order"])
        return array.where(transformation["batch_masks"], others, images)

    def transform_labels(self, labels: Any, transformation: Any, training: bool = True) -> Any:
        """Mix labels by area."""
        return self._mixed_labels(labels, transformation) if training and transformation is not None else labels

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Put the boxes of the others into masks."""
        return self.transform_images(segmentation_masks, transformation, training)


class RandomColorJitter(ImageLayer):
    """Brightness, contrast, saturation and hue in training, one after another, each with its factor; None leaves it."""

    def __init__(
        self,
        value_range: Any = BYTES,
        brightness_factor: Any = None,
        contrast_factor: Any = None,
        saturation_factor: Any = None,
        hue_factor: Any = None,
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        factors = (brightness_factor, contrast_factor, saturation_factor, hue_factor)
        self._init_image_layer(
            seed,
            data_format,
            value_range=value_range,
            brightness_factor=brightness_factor,
            contrast_factor=contrast_factor,
            saturation_factor=saturation_factor,
            hue_factor=hue_factor,
        )
        classes = RandomBrightness, RandomContrast, RandomSaturation, RandomHue
        common = {"value_range": value_range, "seed": seed, "data_format": data_format, "dtype": self.dtype_policy}
        self._steps = [cls(factor, **common) for cls, factor in zip(classes, factors) if factor is not None]

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw a transformation of each layer, in a list."""
        return [step.get_random_transformation(data, training, self.generator) for step in self._steps]

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Apply the layers in order."""
        if training:
            for step, drawn in zip(self._steps, transformation):
                images = step.transform_images(images, drawn)
        return images


class RandAugment(ImageLayer):
    """Random changes of a batch in training: num_ops layers, drawn from eleven, with `factor` as their strength.

    See Cubuk et al. 2019. factor: a number or range in [0, 1].
    """

    LAYERS = (
        *("random_shear", "random_translation", "random_rotation", "random_brightness", "random_color_degeneration"),
        *("random_contrast", "random_sharpness", "random_posterization", "solarization", "auto_contrast"),
        "equalization",
    )

    def __init__(
        self,
        value_range: Any = BYTES,
        num_ops: int = 2,
        factor: Any = 0.5,
        interpolation: str = "bilinear",
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        factor = factor_range(factor, "factor", 0, 1)
        self._init_image_layer(
            seed, data_format, value_range=value_range, num_ops=num_ops, factor=factor, interpolation=interpolation
        )
        moved = {"interpolation": interpolation, "seed": seed, "data_format": data_format, "dtype": self.dtype_policy}
        colored = {"value_range": value_range, "seed": seed, "data_format": data_format, "dtype": self.dtype_policy}
        plain = {"value_range": value_range, "data_format": data_format, "dtype": self.dtype_policy}
        self.random_shear = RandomShear(factor, factor, **moved)
        self.random_translation = RandomTranslation(factor, factor, **moved)
        self.random_rotation = RandomRotation(factor, **moved)
        self.random_brightness = RandomBrightness(factor, **colored)
        self.random_color_degeneration = RandomColorDegeneration(factor, **colored)
        self.random_contrast = RandomContrast(factor, **colored)
        self.random_sharpness = RandomSharpness(factor, **colored)
        self.random_posterization = RandomPosterization(max(1, int(8 * factor[1])), **colored)
        self.solarization = Solarization(factor, factor, **colored)
        self.auto_contrast = AutoContrast(**plain)
        self.equalization = Equalization(**plain)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "layer_idxes", int32 [num_ops], and a transformation of each layer, "transforms"."""
        if not training:
            return None
        generator = self.generator if seed is None else seed
        chosen = random.randint([self.num_ops], 0, len(self.LAYERS), seed=generator)
        layers = {name: getattr(self, name) for name in self.LAYERS}
        return {
            "transforms": {k: layer.get_random_transformation(data, True, generator) for k, layer in layers.items()},
            "layer_idxes": chosen,
        }

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Apply the layers drawn, of which only these are computed."""
        if not training or transformation is None:
            return images
        chosen: Any = dispatch.to_tensor(transformation["layer_idxes"])
        for i in range(self.num_ops):
            images = self._apply(chosen[i], images, transformation["transforms"])
        return images

    def _apply(self, index: Any, images: Any, transforms: dict[str, Any]) -> Any:
        def branch(name: str) -> Any:
            return lambda: array.ensure_shape(
                array.cast(getattr(self, name).transform_images(images, transforms[name]), images.dtype), images.shape
            )

        return switch_case(index, [branch(name) for name in self.LAYERS])
