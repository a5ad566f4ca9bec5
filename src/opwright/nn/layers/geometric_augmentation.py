"""Layers that move the pixels of images in training.

Lives here: RandomFlip, RandomRotation, RandomZoom, RandomTranslation, RandomShear.
Not here: the base and resampling (image_layer.py), perspectives (distorting_augmentation.py),
other sizes (sized_images.py), colors (color_augmentation.py).
"""

from __future__ import annotations

import math as python_math
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32
from ...ops import array, math
from ..bounding_boxes import affine_transform, columns, joined
from .image_layer import ImageLayer, check_resampling, factor_range, warp

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class RandomFlip(ImageLayer):
    """Flips of images in training, each with probability 1/2. mode: "horizontal", "vertical", or both by default."""

    def __init__(
        self, mode: str = "horizontal_and_vertical", seed: Any = None, data_format: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(f"`mode` must be 'horizontal', 'vertical' or 'horizontal_and_vertical'. Received: {mode}")
        self._init_image_layer(seed, data_format, mode=mode)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw which images are flipped: "flips", bool [batch, 1, 1, 1]."""
        if not training:
            return None
        images = self._images_of(data)
        flips = self._uniform(seed, [self._size(images, 0), 1, 1, 1]) <= 0.5
        return {"flips": flips, "input_shape": self._shape(images)}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Flip images."""
        if not training or transformation is None:
            return images
        rank, (height, width, _) = images.shape.rank, self._axes()
        for name, axis in ("horizontal", width), ("vertical", height):
            if name in self.mode:
                images = array.where(transformation["flips"], array.reverse(images, [rank + axis]), images)
        return images

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Flip masks."""
        return self.transform_images(segmentation_masks, transformation, training)

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Flip boxes."""
        if not training or transformation is None:
            return bounding_boxes
        flips = array.squeeze(transformation["flips"], [-1])

        def move(boxes: Any, height: Any, width: Any) -> Any:
            x, y, x2, y2 = columns(boxes)
            if "horizontal" in self.mode:
                x, x2 = array.where(flips, 1 - x2, x), array.where(flips, 1 - x, x2)
            if "vertical" in self.mode:
                y, y2 = array.where(flips, 1 - y2, y), array.where(flips, 1 - y, y2)
            return joined(x, y, x2, y2)

        return self._moved_boxes(bounding_boxes, transformation, move, "rel_xyxy")


class _Warping(ImageLayer):
    """Base of layers that resample images at transformed positions."""

    def _init_warping(self, fill_mode: str, interpolation: str, fill_value: float, **arguments: Any) -> None:
        check_resampling(fill_mode, interpolation)
        self._init_image_layer(fill_mode=fill_mode, interpolation=interpolation, fill_value=fill_value, **arguments)

    def _matrix(self, transformation: Any, images: Any) -> Any:
        """Return the coefficients of `warp`, [batch, 8]."""
        raise NotImplementedError(f"{type(self).__name__} has no matrix")

    def _warped(self, images: Any, transformation: Any, interpolation: str) -> Any:
        first = self.data_format == "channels_first"
        moved = array.transpose(images, [0, 2, 3, 1]) if first else images
        matrix = self._matrix(transformation, moved)
        result = warp(moved, matrix, interpolation, self.fill_mode, self.fill_value)
        return array.transpose(result, [0, 3, 1, 2]) if first else result

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Resample images."""
        if not training or transformation is None:
            return images
        return self._warped(array.cast(images, self.compute_dtype), transformation, self.interpolation)

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Resample masks, by the nearest pixel."""
        if not training or transformation is None:
            return segmentation_masks
        return self._warped(segmentation_masks, transformation, "nearest")

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Move boxes with their images."""
        if not training or transformation is None:
            return bounding_boxes
        move, format_name = partial(self._move, transformation), self._moves_in
        return self._moved_boxes(bounding_boxes, transformation, move, format_name)

    _moves_in = "xyxy"
    """The format of the boxes that `_move` takes."""

    def _move(self, transformation: Any, boxes: Any, height: Any, width: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not move boxes")


def _row(*parts: Any) -> Any:
    """Return eight coefficients [batch] as [batch, 8]."""
    zero = array.zeros_like(next(p for p in parts if not isinstance(p, (int, float))))
    return array.stack([p + zero for p in parts], 1)


class RandomRotation(_Warping):
    """Rotations of images in training, by up to `factor` of a whole turn to either side, or in a range of them."""

    def __init__(
        self,
        factor: Any,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: Any = None,
        fill_value: float = 0.0,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        factor = factor_range(factor, "factor", -1, 1)
        self._init_warping(fill_mode, interpolation, fill_value, seed=seed, data_format=data_format, factor=factor)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw angles, in degrees, [batch], and return them with the matrix of each."""
        if not training:
            return None
        images = self._images_of(data)
        low, high = (f * 360.0 for f in self.factor)
        angle = self._uniform(seed, [self._size(images, 0)], low, high)
        height, width, _ = (self._size(images, axis) for axis in self._axes())
        matrix = _rotation(angle, height, width)
        return {"angle": angle, "rotation_matrix": matrix, "input_shape": self._shape(images)}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        return transformation["rotation_matrix"]

    def _move(self, transformation: Any, boxes: Any, height: Any, width: Any) -> Any:
        angle = array.cast(transformation["angle"], float32)
        zeros = array.zeros_like(angle)
        return affine_transform(boxes, angle, zeros, zeros, array.ones_like(angle), zeros, zeros, height, width)


def _rotation(angle: Any, height: Any, width: Any) -> Tensor:
    """Return the matrices of rotations around the middle."""
    radians = angle * (python_math.pi / 180.0)
    cosine, sine = math.cos(radians), math.sin(radians)
    x, y = ((array.cast(size, float32) - 1.0) * 0.5 for size in (width, height))
    matrix: Tensor = _row(cosine, -sine, x - x * cosine + y * sine, sine, cosine, y - x * sine - y * cosine, 0.0, 0.0)
    return matrix


class RandomZoom(_Warping):
    """Zooms of images in training: positive factors zoom out, negative ones in.

    height_factor, width_factor: numbers or ranges in [-1, 1]; without width_factor both zoom alike.
    """

    def __init__(
        self,
        height_factor: Any,
        width_factor: Any = None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: Any = None,
        fill_value: float = 0.0,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._height = factor_range(height_factor, "height_factor", -1, 1)
        self._width = None if width_factor is None else factor_range(width_factor, "width_factor", -1, 1)
        self._init_warping(
            fill_mode,
            interpolation,
            fill_value,
            seed=seed,
            data_format=data_format,
            height_factor=height_factor,
            width_factor=width_factor,
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "height_zoom" and "width_zoom", [batch, 1]."""
        if not training:
            return None
        shape = [self._size(self._images_of(data), 0), 1]
        height = self._uniform(seed, shape, 1.0 + self._height[0], 1.0 + self._height[1])
        width = height
        if self._width is not None:
            width = self._uniform(seed, shape, 1.0 + self._width[0], 1.0 + self._width[1])
        return {"height_zoom": height, "width_zoom": width, "input_shape": self._shape(self._images_of(data))}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        x, y = (array.cast(transformation[key], float32)[:, 0] for key in ("width_zoom", "height_zoom"))
        height, width = (array.cast(self._size(images, axis), float32) for axis in (1, 2))
        return _row(x, 0.0, (width - 1.0) / 2.0 * (1.0 - x), 0.0, y, (height - 1.0) / 2.0 * (1.0 - y), 0.0, 0.0)

    def _move(self, transformation: Any, boxes: Any, height: Any, width: Any) -> Any:
        ends = []
        for key, side in ("width_zoom", width), ("height_zoom", height):
            zoom, size = array.cast(transformation[key], boxes.dtype), array.cast(side, boxes.dtype)
            zoom = array.expand_dims(zoom, 1)
            start = (size - 1.0) / 2.0 * (1.0 - zoom)
            ends.append((start, start + zoom * size, size))
        results = []
        for number, (start, end, size) in zip(columns(boxes), ends * 2):
            inside = math.minimum(math.maximum(number, start), end) - start
            results.append(inside / (end - start) * size)
        return joined(*results)


class RandomTranslation(_Warping):
    """Translations of images in training, by shares of the height and width, numbers or ranges in [-1, 1]."""

    def __init__(
        self,
        height_factor: Any,
        width_factor: Any,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: Any = None,
        fill_value: float = 0.0,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._height = factor_range(height_factor, "height_factor", -1, 1)
        self._width = factor_range(width_factor, "width_factor", -1, 1)
        self._init_warping(
            fill_mode,
            interpolation,
            fill_value,
            seed=seed,
            data_format=data_format,
            height_factor=height_factor,
            width_factor=width_factor,
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "translations", [batch, 2], of x and y in pixels."""
        if not training:
            return None
        images = self._images_of(data)
        height, width, _ = (self._size(images, axis) for axis in self._axes())
        shape = [self._size(images, 0), 1]
        down = self._uniform(seed, shape, *self._height) * array.cast(height, float32)
        right = self._uniform(seed, shape, *self._width) * array.cast(width, float32)
        return {"translations": array.concat([right, down], 1), "input_shape": self._shape(images)}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        moves = array.cast(transformation["translations"], float32)
        return _row(1.0, 0.0, -moves[:, 0], 0.0, 1.0, -moves[:, 1], 0.0, 0.0)

    def _move(self, transformation: Any, boxes: Any, height: Any, width: Any) -> Any:
        moves = array.cast(transformation["translations"], boxes.dtype)
        moves = array.expand_dims(moves, 1) if boxes.shape.rank == 3 else moves
        return boxes + array.concat([moves, moves], -1)


class RandomShear(_Warping):
    """Shears of images in training: x_factor and y_factor in [0, 1], numbers or ranges, to either side."""

    def __init__(
        self,
        x_factor: Any = 0.0,
        y_factor: Any = 0.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        data_format: Any = None,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._x = factor_range(x_factor, "x_factor", 0, 1)
        self._y = factor_range(y_factor, "y_factor", 0, 1)
        self._init_warping(
            fill_mode,
            interpolation,
            fill_value,
            seed=seed,
            data_format=data_format,
            x_factor=x_factor,
            y_factor=y_factor,
        )

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "shear_factor", [batch, 2], of x and y."""
        if not training:
            return None
        shape = [self._size(self._images_of(data), 0), 1]
        side = array.where(self._uniform(seed, shape) > 0.5, -1.0, 1.0)
        y, x = self._uniform(seed, shape, *self._y), self._uniform(seed, shape, *self._x)
        factor = array.concat([x, y], 1) * side
        return {"shear_factor": factor, "input_shape": self._shape(self._images_of(data))}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        shear = array.cast(transformation["shear_factor"], float32)
        return _row(1.0, shear[:, 0], 0.0, shear[:, 1], 1.0, 0.0, 0.0, 0.0)

    _moves_in = "rel_xyxy"

    def _move(self, transformation: Any, boxes: Any, height: Any, width: Any) -> Any:
        """Shear boxes in shares of the sides, as Keras does: exact for square images."""
        factors = array.expand_dims(array.cast(transformation["shear_factor"], boxes.dtype), 1)
        across, down = factors[..., :1], factors[..., 1:]
        x, y, x2, y2 = columns(boxes)
        low, high = array.where(across < 0, y, y2), array.where(across < 0, y2, y)
        x, x2 = x - across * low, x2 - across * high
        near, far = array.where(down > 0, x2, x), array.where(down > 0, x, x2)
        return joined(x, y - down * near, x2, y2 - down * far)
