"""Layers that erase parts of images or mix images with others, in training.

Lives here: RandomErasing, MixUp, CutMix.
Not here: the base (image_layer.py), single changes (geometric_augmentation.py, color_augmentation.py), several of them
(chained_augmentation.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float32
from ...ops import array, dispatch, math
from .. import random
from .color_augmentation import BYTES
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

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Mix masks."""
        masks = dispatch.to_tensor(segmentation_masks)
        return self.transform_images(
            masks if masks.dtype.is_floating else array.cast(masks, float32), transformation, training
        )

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Return the boxes of both images, and their labels."""
        if not training or transformation is None:
            return bounding_boxes
        order = dispatch.to_tensor(transformation["permutation_order"])
        parts = {key: dispatch.to_tensor(bounding_boxes[key]) for key in ("boxes", "labels")}
        both = {k: array.concat([v, array.gather(v, order)], min(len(v.shape) - 1, 1)) for k, v in parts.items()}
        return {**bounding_boxes, **both}


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

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Raise NotImplementedError: objects are cut."""
        raise NotImplementedError("CutMix does not transform `bounding_boxes`: it cuts through their objects")
