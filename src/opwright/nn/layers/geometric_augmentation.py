"""Layers that move the pixels of images in training.

Lives here: RandomFlip, RandomRotation, RandomZoom, RandomTranslation, RandomShear, RandomPerspective,
RandomCrop, CenterCrop.
Not here: the base and resampling (image_layer.py), colors (color_augmentation.py).
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32, int32
from ...ops import array, dispatch, math
from ..keras_ops.image_filters import perspective_transform
from .image_layer import ImageLayer, check_resampling, factor_range, warp
from .reshape import resize

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
        images = self._images_of(data)
        return {"flips": self._uniform(seed, [self._size(images, 0), 1, 1, 1]) <= 0.5} if training else None

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
        return {"angle": angle, "rotation_matrix": _rotation(angle, height, width)}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        return transformation["rotation_matrix"]


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
        return {"height_zoom": height, "width_zoom": width}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        x, y = (array.cast(transformation[key], float32)[:, 0] for key in ("width_zoom", "height_zoom"))
        height, width = (array.cast(self._size(images, axis), float32) for axis in (1, 2))
        return _row(x, 0.0, (width - 1.0) / 2.0 * (1.0 - x), 0.0, y, (height - 1.0) / 2.0 * (1.0 - y), 0.0, 0.0)


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
        return {"translations": array.concat([right, down], 1)}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        moves = array.cast(transformation["translations"], float32)
        return _row(1.0, 0.0, -moves[:, 0], 0.0, 1.0, -moves[:, 1], 0.0, 0.0)


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
        return {"shear_factor": array.concat([x, y], 1) * side}

    def _matrix(self, transformation: Any, images: Any) -> Any:
        shear = array.cast(transformation["shear_factor"], float32)
        return _row(1.0, shear[:, 0], 0.0, shear[:, 1], 1.0, 0.0, 0.0, 0.0)


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
        return {"apply_perspective": apply, "start_points": start, "end_points": start + start * moved}

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Resample images."""
        return self._seen(images, transformation, self.interpolation) if training and transformation else images

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Resample masks, without mixing classes."""
        return self._seen(segmentation_masks, transformation, "nearest") if transformation else segmentation_masks

    def _seen(self, images: Any, transformation: Any, interpolation: str) -> Any:
        start, end = (dispatch.to_tensor(transformation[name]) for name in ("start_points", "end_points"))
        images = dispatch.to_tensor(images)
        result = perspective_transform(images, start, end, interpolation, self.fill_value, self.data_format)
        chosen = dispatch.to_tensor(transformation["apply_perspective"])
        return array.where(array.reshape(chosen, [-1, *[1] * (images.shape.rank - 1)]), result, images)


class _SizedCrop(ImageLayer):
    """Base of layers whose images have one size."""

    def _init_crop(self, height: int, width: int, **arguments: Any) -> None:
        self._init_image_layer(height=height, width=width, **arguments)

    def _cut(self, images: Any, top: Any, left: Any) -> Any:
        rows, columns = slice(top, top + self.height), slice(left, left + self.width)
        if self.data_format == "channels_first":
            result = images[..., rows, columns]
        else:
            result = images[..., rows, columns, :]
        static_sizes = list(self.compute_output_shape(images.shape.as_list()))
        return array.ensure_shape(result, static_sizes)

    def _known_size(self, images: Any) -> tuple[int, int]:
        height, width, _ = (images.shape[axis] for axis in self._axes())
        if height is None or width is None:
            raise ValueError(
                f"{type(self).__name__} requires the input to have a fully defined height and width. Received: "
                f"images.shape={images.shape}"
            )
        return height, width

    def _resized_middle(self, images: Any) -> Any:
        """Return the greatest middle part of the target's proportions, resized."""
        height, width = self._known_size(images)
        rows = max(min(height, int(float(width * self.height) / self.width)), 1)
        columns = max(min(width, int(float(height * self.width) / self.height)), 1)
        top, left = int(float(height - rows) / 2), int(float(width - columns) / 2)
        first = images.shape.rank + self._axes()[0]
        keys = [slice(None)] * first + [slice(top, top + rows), slice(left, left + columns)]
        return array.cast(
            resize(images[tuple(keys)], [self.height, self.width], "bilinear", first, False), images.dtype
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the input shape with height and width replaced."""
        shape = list(input_shape)
        height, width, _ = self._axes()
        shape[height], shape[width] = self.height, self.width
        return tuple(shape)


class RandomCrop(_SizedCrop):
    """Parts of height x width of images, at one random position for a batch in training, else the middle resized.

    Images that are not larger in both directions are resized.
    """

    def __init__(self, height: int, width: int, seed: Any = None, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_crop(height, width, seed=seed, data_format=data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw the top and left of the part, int32 scalars; None where the middle is resized."""
        height, width = self._known_size(self._images_of(data))
        if not training or height <= self.height or width <= self.width:
            return None
        top = self._uniform(seed, [], 0.0, float(height - self.height + 1))
        left = self._uniform(seed, [], 0.0, float(width - self.width + 1))
        return array.cast(top, int32), array.cast(left, int32)

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Cut the part out."""
        if not training or transformation is None:
            return self._resized_middle(images)
        return self._cut(images, *transformation)

    def _outside(self, images: Any) -> Any:
        return self._resized_middle(images)


class CenterCrop(_SizedCrop):
    """The middle height x width of images, in training and outside; of smaller images the middle resized."""

    _draws = False

    def __init__(self, height: int, width: int, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_crop(height, width, data_format=data_format)

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Cut the middle out."""
        height, width, _ = (self._size(images, axis) for axis in self._axes())
        if all(isinstance(n, int) for n in (height, width)) and (height < self.height or width < self.width):
            return self._resized_middle(images)
        return self._cut(images, (height - self.height) // 2, (width - self.width) // 2)

    def _outside(self, images: Any) -> Any:
        return self.transform_images(images)
