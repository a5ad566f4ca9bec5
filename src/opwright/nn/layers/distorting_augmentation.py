"""Layers that distort images in training.

Lives here: RandomPerspective, RandomElasticTransform.
Not here: the base and resampling (image_layer.py), affine transformations (geometric_augmentation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...ops import array, dispatch, math
from ...ops import random as ops_random
from ..bounding_boxes import around, corners
from ..keras_ops.image_filters import gaussian_blur, homography, perspective_transform
from .image_layer import ImageLayer, check_resampling, factor_range, sample


class RandomPerspective(ImageLayer):
    """Perspectives of images in training: their corners move by up to half of scale of their position.

    factor: the probability, a number or a range, from which one is drawn for each image. scale: in [0, 1].
    raises ValueError for another scale
    """

    def __init__(
        self,
        factor: Any = 1.0,
        scale: float = 1.0,
        interpolation: str = "bilinear",
        fill_value: float = 0.0,
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_resampling("constant", interpolation)
        if not 0 <= scale <= 1:
            raise ValueError(f"The `scale` argument should be a number in the range [0,1]. Received: scale={scale}")
        self._init_image_layer(
            seed,
            data_format,
            factor=factor_range(factor, "factor", 0, 1),
            scale=scale,
            interpolation=interpolation,
            fill_value=fill_value,
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "apply_perspective", bool [batch], and where corners go: "start_points", "end_points", [batch, 4, 2]."""
        if not training:
            return None
        images = self._images_of(data)
        height, width, _ = (array.cast(self._size(images, axis), float32) - 1.0 for axis in self._axes())
        batch = 1 if images.shape.rank == 3 else self._size(images, 0)
        apply = self._uniform(seed, [batch]) < self._uniform(seed, [batch], *self.factor)
        moved = self._uniform(seed, [batch, 4, 2], -0.5 * self.scale, 0.5 * self.scale)
        corners = array.reshape(array.stack([0.0, 0.0, width, 0.0, 0.0, height, width, height]), [1, 4, 2])
        start = corners + array.zeros_like(moved)
        points = {"start_points": start, "end_points": start + start * moved}
        return {"apply_perspective": apply, **points, "input_shape": self._shape(images)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Resample images."""
        return self._seen(images, transformation, self.interpolation) if training and transformation else images

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Resample masks, without mixing classes."""
        return self._seen(segmentation_masks, transformation, "nearest") if transformation else segmentation_masks

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Return the boxes around the corners of boxes where they are seen."""
        if not training or transformation is None:
            return bounding_boxes

        def move(boxes: Any, height: Any, width: Any) -> Any:
            matrix = homography(transformation["end_points"], transformation["start_points"])
            a, b, c, d, e, f, g, h = (array.reshape(v, [-1, 1, 1]) for v in array.split(matrix, 8, axis=-1))
            x, y = corners(boxes)
            scale = g * x + h * y + 1.0
            moved = around((a * x + b * y + c) / scale, (d * x + e * y + f) / scale)
            chosen = array.cast(dispatch.to_tensor(transformation["apply_perspective"]), "bool")
            return array.where(array.reshape(chosen, [-1, 1, 1]), moved, boxes)

        return self._moved_boxes(bounding_boxes, transformation, move)

    def _seen(self, images: Any, transformation: Any, interpolation: str) -> Any:
        start, end = (dispatch.to_tensor(transformation[name]) for name in ("start_points", "end_points"))
        images = dispatch.to_tensor(images)
        result = perspective_transform(images, start, end, interpolation, self.fill_value, self.data_format)
        chosen = dispatch.to_tensor(transformation["apply_perspective"])
        return array.where(array.reshape(chosen, [-1, *[1] * (images.shape.rank - 1)]), result, images)


class RandomElasticTransform(ImageLayer):
    """Elastic distortions of images in training: pixels move by smooth noise.

    factor: the probability, a number or a range, from which one is drawn for each image. scale: the strength, a number
    or a range in [0, 1], from which one is drawn for a batch: pixels move by a tenth of the longer side times noise
    that is smooth over a twentieth of the shorter. value_range: the least and greatest value of the results. Images and
    masks move alike.
    raises NotImplementedError for other modes and bounding boxes
    """

    def __init__(
        self,
        factor: Any = 1.0,
        scale: Any = 1.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        value_range: Any = (0, 255),
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_resampling(fill_mode, interpolation)
        self._init_image_layer(
            seed,
            data_format,
            factor=factor_range(factor, "factor", 0, 1),
            scale=factor_range(scale, "scale", 0, 1),
            interpolation=interpolation,
            fill_mode=fill_mode,
            fill_value=fill_value,
            value_range=value_range,
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "apply_transform", bool [batch], "distortion_factor", a scalar, and the "seed" of the noise, [2]."""
        if not training or self.scale[1] == 0 or self.factor[1] == 0:
            return None
        images = self._images_of(data)
        shape = [1 if images.shape.rank == 3 else self._size(images, 0)]
        generator = self.generator if seed is None else seed
        apply = self._uniform(seed, shape) < self._uniform(seed, shape, *self.factor)
        strength = self._uniform(seed, [], *self.scale)
        return {"apply_transform": apply, "distortion_factor": strength, "seed": generator.next()}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Move the pixels of images."""
        if not training or transformation is None:
            return images
        moved = self._distorted(array.cast(images, self.compute_dtype), transformation, self.interpolation)
        low, high = (array.cast(v, moved.dtype) for v in self.value_range)
        return math.minimum(math.maximum(moved, low), high)

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Move the pixels of masks, without mixing classes."""
        if not training or transformation is None:
            return segmentation_masks
        return self._distorted(dispatch.to_tensor(segmentation_masks), transformation, "nearest")

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Raise NotImplementedError in training, as Keras does."""
        if not training or transformation is None:
            return bounding_boxes
        raise NotImplementedError("RandomElasticTransform does not transform `bounding_boxes`")

    def _distorted(self, images: Any, transformation: Any, interpolation: str) -> Any:
        if images.shape.rank == 3:
            return array.squeeze(self._distorted(array.expand_dims(images, 0), transformation, interpolation), [0])
        height, width, _ = (images.shape[axis] for axis in self._axes())
        if height is None or width is None:
            raise ValueError(f"RandomElasticTransform needs images of known height and width, found {images.shape}")
        first = self.data_format == "channels_first"
        last = array.transpose(images, [0, 2, 3, 1]) if first else images
        strength = array.cast(transformation["distortion_factor"], float32)
        deviation = 0.05 * min(height, width)
        sigma = math.maximum(deviation * strength, 1e-3)
        size = int(6 * deviation * max(self.scale[1], 1e-3)) | 1
        seed = transformation["seed"]
        seed = np.array([seed, 0], np.int64) if isinstance(seed, int) else dispatch.to_tensor(seed)
        noise = ops_random.stateless_normal([self._size(last, 0), height, width, 2], seed, dtype=float32) * sigma
        move = gaussian_blur(noise, (size, size), (sigma, sigma), "channels_last") * (
            0.1 * max(height, width) * strength
        )
        rows = array.reshape(array.range(float(height)), [-1, 1]) + move[..., 0]
        columns = array.range(float(width)) + move[..., 1]
        moved = sample(last, rows, columns, interpolation, self.fill_mode, self.fill_value)
        moved = array.transpose(moved, [0, 3, 1, 2]) if first else moved
        applied = array.cast(dispatch.to_tensor(transformation["apply_transform"]), "bool")
        return array.where(array.reshape(applied, [-1, 1, 1, 1]), array.cast(moved, images.dtype), images)
