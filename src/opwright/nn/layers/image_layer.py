"""The base of layers that change images in training.

Lives here: `ImageLayer`: one transformation a call, drawn for each image, applied to images, labels, masks and boxes;
ranges of factors; `warp`, resampling of images at transformed positions.
Not here: the layers (geometric_augmentation.py, color_augmentation.py, mixing_augmentation.py), other sizes
(preprocessing.py).

A layer defines `get_random_transformation`, which draws, and `transform_images`, which computes without drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import nest
from ...core.dtypes import float32, int32
from ...ops import array, dispatch, math
from ..bounding_boxes import clip_to_image_size, convert_format, densify
from ..random import SeedGenerator
from .configurable_layer import ConfigurableLayer, data_format_name, if_training

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

Range = tuple[float, float]


def factor_range(value: Any, name: str, lower: float, upper: float) -> Range:
    """Return the range of a factor: f is from -f, or `lower`, to f. Raises ValueError beyond [lower, upper]."""
    message = (
        f"The `{name}` argument should be a number (or a list of two numbers) in the range [{lower}, {upper}]. "
        f"Received: {name}={value}"
    )
    numbers = value if isinstance(value, (tuple, list)) else (value,)
    if len(numbers) not in (1, 2) or not all(isinstance(v, (int, float, np.number)) for v in numbers):
        raise ValueError(message)
    if any(not lower <= v <= upper for v in numbers):
        raise ValueError(message)
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(message)
        return min(value), max(value)
    return max(-abs(value), lower), abs(value)


def value_range_of(value: Any) -> list[float]:
    """Return the least and greatest value of pixels. Raises ValueError for others than two numbers."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"The `value_range` argument should be a list of two numbers. Received: value_range={value}")
    return sorted(value)


def rescaled(images: Any, source: Any, target: Any) -> Any:
    """Return pixels of one range of values in another."""
    if tuple(source) == tuple(target):
        return images
    return (images - source[0]) / (source[1] - source[0]) * (target[1] - target[0]) + target[0]


class ImageLayer(ConfigurableLayer):
    """Base of layers that change images, [batch, height, width, channels] or without batch, in training.

    seed: for reproducible draws. data_format: "channels_last" or "channels_first". A call on a dict changes its
    "images", "labels", "segmentation_masks" and "bounding_boxes" (../bounding_boxes.py), of bounding_box_format.
    """

    _draws = True
    """Whether the layer has a seed."""
    _always = False
    """Whether the layer changes images outside of training, too."""

    def __init__(self, *, bounding_box_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bounding_box_format = bounding_box_format

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        own = {} if self.bounding_box_format is None else {"bounding_box_format": self.bounding_box_format}
        return {**super().get_config(), **own}

    def _init_image_layer(self, seed: Any = None, data_format: Any = None, **arguments: Any) -> None:
        self._set_arguments(**arguments, data_format=data_format_name(data_format))
        if self._draws:
            self._set_arguments(seed=seed)
            self.generator = SeedGenerator(seed)
        self._build_at_init()

    # ---- defined by layers -------------------------------------------------------------------------------------------

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw a transformation of a batch of images, or of a dict with one."""
        return None

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Return a batch of images transformed."""
        raise NotImplementedError(f"{type(self).__name__} must define transform_images(images, transformation)")

    def transform_labels(self, labels: Any, transformation: Any, training: bool = True) -> Any:
        """Return the labels of a batch, which most layers leave."""
        return labels

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Return the masks of a batch, which layers of colors leave."""
        return segmentation_masks

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Return the boxes and labels of a batch, which layers of colors leave."""
        return bounding_boxes

    def _boxes_of(self, parts: dict[str, Any], transformation: Any, training: bool) -> Any:
        """Return the boxes of a batch; for layers that need its images."""
        return self.transform_bounding_boxes(parts["bounding_boxes"], transformation, training=training)

    def _moved_boxes(
        self, bounding_boxes: Any, transformation: Any, move: Callable[..., Any], format_name: str = "xyxy"
    ) -> Any:
        """Return boxes moved within an image: move(boxes, height, width), in a format, whose results are clipped.

        transformation: has the shape of the images, "input_shape"
        """
        height, width, _ = (transformation["input_shape"][axis] for axis in self._axes())
        own = self._known_format()
        sides = {"height": height, "width": width}
        result = convert_format(bounding_boxes, own, format_name, **sides)
        result["boxes"] = move(result["boxes"], height, width)
        return convert_format(clip_to_image_size(result, height, width, format_name), format_name, own, **sides)

    def _known_format(self) -> str:
        if self.bounding_box_format is None:
            raise ValueError(
                "You passed an input with a 'bounding_boxes' key, but you didn't specify a bounding box format. Pass "
                f"`bounding_box_format` to your {type(self).__name__} layer, e.g. `bounding_box_format='xyxy'`."
            )
        return self.bounding_box_format

    # ---- shapes and draws --------------------------------------------------------------------------------------------

    def _images_of(self, data: Any) -> Any:
        return data["images"] if isinstance(data, dict) else data

    def _axes(self) -> tuple[int, int, int]:
        """Return the axes of height, width and channels."""
        return (-2, -1, -3) if self.data_format == "channels_first" else (-3, -2, -1)

    def _size(self, images: Any, axis: int) -> Any:
        """Return a size of images: a number if it is known, else a tensor."""
        static_size = images.shape[axis]
        return array.shape(images)[axis] if static_size is None else static_size

    def _shape(self, images: Any) -> tuple[Any, ...]:
        """Return the sizes of images: numbers where they are known."""
        return tuple(self._size(images, axis) for axis in range(images.shape.rank))

    def _uniform(self, seed: Any, shape: Any, low: Any = 0.0, high: Any = 1.0) -> Tensor:
        generator = self.generator if seed is None else seed
        return generator.uniform(shape, low, high) if low != high else array.fill(shape, array.cast(low, float32))

    # ---- calling -----------------------------------------------------------------------------------------------------

    def call(self, data: Any, training: Any = True) -> Any:
        """Return the images, or the dict of images, labels and masks, transformed in training."""
        if not isinstance(data, dict):
            images = array.cast(data, self.compute_dtype)
            return if_training(
                training, lambda: self._transform({"images": images}, True)["images"], lambda: self._outside(images)
            )
        parts = {**data, "images": array.cast(data["images"], self.compute_dtype)}
        if "bounding_boxes" in data:
            self._known_format()
            parts["bounding_boxes"] = densify(data["bounding_boxes"])
        if "labels" in parts:
            parts["labels"] = dispatch.to_tensor(parts["labels"])
        return if_training(training, lambda: self._transform(parts, True), lambda: self._untrained(parts))

    def _untrained(self, parts: dict[str, Any]) -> dict[str, Any]:
        if self._always:
            return self._transform(parts, False)
        return {**parts, "images": self._outside(parts["images"])}

    def _outside(self, images: Any) -> Any:
        """Return the images outside of training."""
        return array.identity(images)

    def _transform(self, parts: dict[str, Any], training: bool) -> dict[str, Any]:
        rank = parts["images"].shape.rank
        if rank not in (3, 4):
            raise ValueError(
                "Expected image tensor to have rank 3 (single image) or 4 (batch of images). Received: "
                f"data.shape={parts['images'].shape}"
            )
        if rank == 3:
            one = nest.map_structure(lambda value: array.expand_dims(value, 0), parts)
            moved: dict[str, Any] = self._transform(one, training)
            return {k: nest.map_structure(lambda value: array.squeeze(value, [0]), v) for k, v in moved.items()}
        transformation = self.get_random_transformation(parts, training=training)
        result = dict(parts)
        result["images"] = array.cast(
            self.transform_images(parts["images"], transformation, training=training), self.compute_dtype
        )
        if "labels" in parts:
            result["labels"] = self.transform_labels(parts["labels"], transformation, training=training)
        if "bounding_boxes" in parts:
            result["bounding_boxes"] = self._boxes_of(parts, transformation, training)
        if "segmentation_masks" in parts:
            masks = parts["segmentation_masks"]
            result["segmentation_masks"] = self.transform_segmentation_masks(masks, transformation, training=training)
        return result

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the input shape."""
        return input_shape


# ---- resampling ------------------------------------------------------------------------------------------------------

FILL_MODES = ("reflect", "wrap", "constant", "nearest")
INTERPOLATIONS = ("nearest", "bilinear")


def check_resampling(fill_mode: str, interpolation: str) -> None:
    """Raise NotImplementedError for other modes."""
    if fill_mode not in FILL_MODES:
        raise NotImplementedError(f"Unknown `fill_mode` {fill_mode}. Expected of one {FILL_MODES}.")
    if interpolation not in INTERPOLATIONS:
        raise NotImplementedError(f"Unknown `interpolation` {interpolation}. Expected of one {INTERPOLATIONS}.")


def warp(images: Any, transforms: Any, interpolation: str, fill_mode: str, fill_value: float) -> Any:
    """Return images resampled: the pixel at (x, y) is that of the input at the transformed position.

    .. math:: (x', y') = ((a_0 x + a_1 y + a_2) / k, (b_0 x + b_1 y + b_2) / k), \\quad k = c_0 x + c_1 y + 1

    images: [batch, height, width, channels]; transforms: float32 [batch, 8], (a0, a1, a2, b0, b1, b2, c0, c1).
    fill_mode: what is beyond the edges: "constant" (fill_value), "nearest" pixels, or the image again, by "reflect" or
    "wrap". source: TensorFlow's ImageProjectiveTransformV3
    """
    static_size = images.shape.as_list()
    sizes = array.shape(images)
    height, width = (sizes[i] if static_size[i] is None else static_size[i] for i in (1, 2))
    y, x = array.meshgrid(
        array.range(array.cast(height, float32)), array.range(array.cast(width, float32)), indexing="ij"
    )
    t = array.cast(array.reshape(transforms, [-1, 8, 1, 1]), float32)
    columns, rows = projected(t, x, y)
    return sample(images, rows, columns, interpolation, fill_mode, fill_value)


def projected(transforms: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the columns and rows at which projective transforms [n, 8, ...] read what they write at (x, y)."""
    t = transforms
    scale = t[:, 6] * x + t[:, 7] * y + 1.0
    return (t[:, 0] * x + t[:, 1] * y + t[:, 2]) / scale, (t[:, 3] * x + t[:, 4] * y + t[:, 5]) / scale


def sample(images: Any, rows: Any, columns: Any, interpolation: str, fill_mode: str, fill_value: float) -> Any:
    """Return the pixels of images at rows and columns, [batch, height, width]; see `warp` for the modes."""
    static_size = images.shape.as_list()
    sizes = array.shape(images)
    batch, height, width = (sizes[i] if static_size[i] is None else static_size[i] for i in range(3))
    columns, rows = _inside(columns, width, fill_mode), _inside(rows, height, fill_mode)
    flat = array.reshape(images, array.stack([batch * height * width, sizes[3]]))
    first = array.reshape(array.range(batch) * (height * width), [-1, 1, 1])

    def pixels(row: Any, column: Any) -> Any:
        """Return the pixels at whole positions; the fill value outside."""
        row, column = array.cast(row, int32), array.cast(column, int32)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        place = first + math.minimum(math.maximum(row, 0), height - 1) * width
        place = place + math.minimum(math.maximum(column, 0), width - 1)
        return array.where(array.expand_dims(inside, -1), array.gather(flat, place), array.cast(fill_value, flat.dtype))

    limit = 1e9  # positions of a singular transform are far outside, and integers
    rows, columns = (math.minimum(math.maximum(v, -limit), limit) for v in (rows, columns))
    if interpolation == "nearest":
        result = pixels(_rounded(rows), _rounded(columns))
    else:
        top, left = math.floor(rows), math.floor(columns)
        down, right = (array.cast(array.expand_dims(v, -1), images.dtype) for v in (rows - top, columns - left))
        upper = (1.0 - right) * pixels(top, left) + right * pixels(top, left + 1.0)
        lower = (1.0 - right) * pixels(top + 1.0, left) + right * pixels(top + 1.0, left + 1.0)
        result = (1.0 - down) * upper + down * lower
    return array.ensure_shape(result, static_size)


def _rounded(x: Any) -> Any:
    """Round to the nearest integer, halves away from zero."""
    return math.sign(x) * math.floor(math.abs(x) + 0.5)


def _inside(place: Any, size: Any, fill_mode: str) -> Any:
    """Return positions of pixels for those beyond the edges."""
    n = array.cast(size, float32)
    last = n - 1.0
    if fill_mode == "reflect":
        whole = 2.0 * n
        low = array.where(place < whole, whole * math.floor(-place / whole) + place, place)
        low = array.where(low < -n, low + whole, -low - 1.0)
        high = place - whole * math.floor(place / whole)
        high = array.where(high >= n, whole - high - 1.0, high)
        place = array.where(place < 0.0, low, array.where(place > last, high, place))
    elif fill_mode == "wrap":
        step = math.maximum(last, 1.0)
        low = place + n * (math.floor(-place / step) + 1.0)
        high = place - n * math.floor(place / step)
        place = array.where(place < 0.0, low, array.where(place > last, high, place))
    if fill_mode == "constant":
        return place
    return math.minimum(math.maximum(place, 0.0), last)
