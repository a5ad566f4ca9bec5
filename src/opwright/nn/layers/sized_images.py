"""Layers that change the size of images, or the number of their boxes.

Lives here: Resizing, CenterCrop, RandomCrop, MaxNumBoundingBoxes.
Not here: the base (image_layer.py), resampling (reshape.py), boxes (../bounding_boxes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import int32
from ...ops import array, math
from ..bounding_boxes import clip_to_image_size, convert_format, crop
from .image_layer import ImageLayer
from .reshape import check_interpolation, resize

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _SizedCrop(ImageLayer):
    """Base of layers whose images have one size."""

    _always = True

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

    def _middle(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return top, left, height and width of the greatest middle part of the target's proportions."""
        rows = max(min(height, int(float(width * self.height) / self.width)), 1)
        across = max(min(width, int(float(height * self.width) / self.height)), 1)
        return int(float(height - rows) / 2), int(float(width - across) / 2), rows, across

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Cut the part out of masks."""
        return self.transform_images(segmentation_masks, transformation, training)

    def _cut_boxes(self, bounding_boxes: Any, part: tuple[Any, Any, Any, Any], height: Any, width: Any) -> Any:
        """Return boxes in a part (top, left, height, width) of the image, of which the result is resized."""
        own, (top, left, rows, across) = self._known_format(), part
        result = convert_format(bounding_boxes, own, "xyxy", height, width)
        boxes = crop(result["boxes"], top, left, rows, across)
        down, right = (array.cast(a / b, boxes.dtype) for a, b in ((self.height, rows), (self.width, across)))
        result["boxes"] = boxes * array.stack([right, down, right, down])
        return convert_format(clip_to_image_size(result, self.height, self.width), "xyxy", own, self.height, self.width)

    def _resized_middle(self, images: Any) -> Any:
        """Return the greatest middle part of the target's proportions, resized."""
        top, left, rows, across = self._middle(*self._known_size(images))
        first = images.shape.rank + self._axes()[0]
        keys = [slice(None)] * first + [slice(top, top + rows), slice(left, left + across)]
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

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Return boxes in pixels as they are in the part."""
        if not training or transformation is None:
            return bounding_boxes
        return self._cut_boxes(bounding_boxes, (*transformation, self.height, self.width), None, None)

    def _boxes_of(self, parts: dict[str, Any], transformation: Any, training: bool) -> Any:
        height, width = self._known_size(parts["images"])
        drawn = training and transformation is not None
        part = (*transformation, self.height, self.width) if drawn else self._middle(height, width)
        return self._cut_boxes(parts["bounding_boxes"], part, height, width)

    def _outside(self, images: Any) -> Any:
        return self._resized_middle(images)


class CenterCrop(_SizedCrop):
    """The middle height x width of images, in training and outside; of smaller images the middle resized."""

    _draws = False

    def __init__(self, height: int, width: int, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_crop(height, width, data_format=data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Return the shape of the images, "input_shape"."""
        return {"input_shape": self._shape(self._images_of(data))}

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Return boxes as they are in the middle."""
        height, width, _ = (transformation["input_shape"][axis] for axis in self._axes())
        inside = (height - self.height) // 2, (width - self.width) // 2, self.height, self.width
        part = inside if height >= self.height and width >= self.width else self._middle(height, width)
        return self._cut_boxes(bounding_boxes, part, height, width)

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Cut the middle out."""
        height, width, _ = (self._size(images, axis) for axis in self._axes())
        if all(isinstance(n, int) for n in (height, width)) and (height < self.height or width < self.width):
            return self._resized_middle(images)
        return self._cut(images, (height - self.height) // 2, (width - self.width) // 2)

    def _outside(self, images: Any) -> Any:
        return self.transform_images(images)


class Resizing(_SizedCrop):
    """Resizing of images to height x width.

    interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5". crop_to_aspect_ratio: crop instead of
    distorting. pad_to_aspect_ratio: pad with fill_value instead. antialias: average over the area of a new pixel.
    inputs: [batch, height, width, channels] or without batch, or channels first by data_format.
    raises ValueError for both crop and pad
    """

    _draws = False

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Only one of `crop_to_aspect_ratio` & `pad_to_aspect_ratio` can be set to `True`.")
        if fill_mode != "constant":
            raise ValueError(f"Only fill_mode='constant' is supported by Resizing. Received: fill_mode={fill_mode}")
        check_interpolation(interpolation.lower(), ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"))
        self._init_crop(
            height,
            width,
            interpolation=interpolation.lower(),
            crop_to_aspect_ratio=crop_to_aspect_ratio,
            pad_to_aspect_ratio=pad_to_aspect_ratio,
            fill_mode=fill_mode,
            fill_value=fill_value,
            antialias=antialias,
            data_format=data_format,
        )

    def call(self, data: Any, training: Any = True) -> Any:
        """Resize the images; of a dict also masks and boxes."""
        if isinstance(data, dict):
            return super().call(data, training)
        return self.transform_images(data)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Return height and width of the images."""
        images = self._images_of(data)
        return tuple(self._size(images, axis) for axis in self._axes()[:2])

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Resize images."""
        return self._resized(array.cast(images, self.compute_dtype), self.interpolation)

    def transform_segmentation_masks(
        self, segmentation_masks: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """Resize masks, by the nearest pixel."""
        return self._resized(segmentation_masks, "nearest")

    def _resized(self, x: Any, interpolation: str) -> Any:
        first = x.shape.rank + self._axes()[0]
        if self.crop_to_aspect_ratio or self.pad_to_aspect_ratio:
            x = self._fit_aspect_ratio(x, first)
        return resize(x, [self.height, self.width], interpolation, first, self.antialias)

    def _fit_aspect_ratio(self, x: Any, first: int) -> Tensor:
        height, width = x.shape[first], x.shape[first + 1]
        if height is None or width is None:
            raise ValueError(f"Resizing to an aspect ratio needs known sizes of the image; found {x.shape}")
        if self.crop_to_aspect_ratio:
            rows = max(min(height, int(float(width * self.height) / self.width)), 1)
            columns = max(min(width, int(float(height * self.width) / self.height)), 1)
            top, left = int((height - rows) / 2), int((width - columns) / 2)
            before = (slice(None),) * first
            cropped: Tensor = x[(*before, slice(top, top + rows), slice(left, left + columns))]
            return cropped
        rows = max(height, int(float(width * self.height) / self.width))
        columns = max(width, int(float(height * self.width) / self.height))
        ends = [[0, 0] for _ in range(x.shape.rank)]
        for axis, (size, target) in zip((first, first + 1), ((height, rows), (width, columns))):
            ends[axis] = [(target - size) // 2] * 2  # equal on both sides: an odd pixel is dropped
        return array.pad(x, ends, constant_values=self.fill_value)

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Return boxes as they are in the resized image; those of zeros or -1 are zeros."""
        own, (height, width) = self._known_format(), transformation
        original = array.cast(bounding_boxes["boxes"], "float32")
        none = math.reduce_all(math.equal(original, -1.0), axis=-1, keepdims=True)
        none = math.logical_or(none, math.reduce_all(math.equal(original, 0.0), axis=-1, keepdims=True))
        result = convert_format(bounding_boxes, own, "xyxy", height, width)
        boxes = result["boxes"]
        right, down = (
            array.cast(a, boxes.dtype) / array.cast(b, boxes.dtype)
            for a, b in ((self.width, width), (self.height, height))
        )
        left: Any = 0.0
        top: Any = 0.0
        if self.pad_to_aspect_ratio or self.crop_to_aspect_ratio:
            right = down = (math.minimum if self.pad_to_aspect_ratio else math.maximum)(right, down)
            margins = (
                array.cast(size, boxes.dtype) - array.cast(side, boxes.dtype) * right
                for size, side in ((self.width, width), (self.height, height))
            )
            left, top = (math.floor(math.abs(m) / 2.0) * math.sign(m) for m in margins)
        scales, offsets = (
            array.stack([right, down] * 2),
            array.stack([array.cast(v, boxes.dtype) for v in (left, top)] * 2),
        )
        result = clip_to_image_size({**result, "boxes": boxes * scales + offsets}, self.height, self.width)
        result["boxes"] = array.where(none, array.zeros_like(result["boxes"]), result["boxes"])
        return convert_format(result, "xyxy", own, self.height, self.width)


class MaxNumBoundingBoxes(ImageLayer):
    """The first max_number bounding boxes of each image, filled with boxes and labels of fill_value."""

    _draws = False
    _always = True

    def __init__(self, max_number: int, fill_value: int = -1, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_image_layer(data_format=data_format, max_number=int(max_number), fill_value=int(fill_value))

    def transform_images(self, images: Any, transformation: Any = None, training: bool = True) -> Any:
        """Return the images."""
        return images

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Cut or fill boxes, [batch, n, 4], and labels, [batch, n]."""
        result = dict(bounding_boxes)
        for key, sizes in ("boxes", (4,)), ("labels", ()):
            kept = bounding_boxes[key][:, : self.max_number]
            missing = self.max_number - self._size(kept, 1)
            ends = array.stack([[0, 0], array.stack([0, missing]), *[[0, 0]] * len(sizes)])
            filled = array.pad(kept, ends, constant_values=array.cast(self.fill_value, kept.dtype))
            result[key] = array.ensure_shape(filled, [kept.shape[0], self.max_number, *sizes])
        return result

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the input shape, in which each image has max_number boxes. Raises KeyError for parts of boxes."""
        if not isinstance(input_shape, dict) or "bounding_boxes" not in input_shape:
            return input_shape
        boxes = input_shape["bounding_boxes"]
        if extra := set(boxes) - {"boxes", "labels"}:
            raise KeyError(
                f"There are unsupported keys in `bounding_boxes`: {sorted(extra)}; there are boxes and labels"
            )
        counted = {key: (shape[0], self.max_number, *shape[2:]) for key, shape in boxes.items()}
        return {**input_shape, "bounding_boxes": counted}
