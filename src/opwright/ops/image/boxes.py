"""Drawing of bounding boxes; random crops that cover objects.

Lives here: DrawBoundingBoxes, SampleDistortedBoundingBox, StatelessSampleDistortedBoundingBox.
Not here: extraction of boxes (crops.py), non-maximum suppression (nms.py).

Boxes are (y_min, x_min, y_max, x_max), normalized by height and width.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import dispatch
from ..attributes import Attr, greater_than, length
from ..definition import operator
from ..random.state import generator_for, seeds_for
from ..random.stateless import SEEDS, check_seed, keyed
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor

SIZES = (uint8, int8, int16, int32, int64)
# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia; opaque.
PALETTE = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


def _check_palette(channels: int | None) -> None:
    """Raise InvalidArgumentError for a number of channels without a default palette."""
    if channels not in (None, 1, 3, 4):
        raise InvalidArgumentError(
            what="the image has no colors of its own",
            found=f"{channels} channels",
            wanted="1, 3 or 4 channels, or colors",
        )


@operator
class DrawBoundingBoxes(OperatorDefinition):
    """Draw the edges of boxes on images, one pixel wide.

    .. math:: output_{n,y,x} = \\begin{cases} colors_{b \\bmod k} & (y, x) \\text{ on the edge of box } b,
              \\text{ the last such} \\\\ images_{n,y,x} & \\text{else} \\end{cases}

    images: [n, h, w, c]; boxes: [n, m, 4]; colors: [k, c or more], by default a palette of ten. Edges outside the
    image and boxes with negative extent are not drawn.
    raises InvalidArgumentError for inconsistent shapes of boxes, images and colors
    """

    images = Input((float16, bfloat16, float32, float64), rank=4)
    boxes = Input((float32, float64), rank=3)
    colors = Input((float32, float64), rank=2, optional=True)
    output = Output(like="images")
    lod = "as images"
    gradient = None

    def infer(op) -> TensorSpec:
        images, boxes = op.images.spec.shape, op.boxes.spec.shape
        if not boxes.is_compatible_with([None if images.rank is None else images[0], None, 4]):
            raise InvalidArgumentError(
                what="boxes must be [batch, boxes, 4]",
                found={"images": op.images.spec.short(), "boxes": op.boxes.spec.short()},
            )
        colors = None if op.colors is None else op.colors.spec.shape
        columns = None if colors is None or colors.rank is None else colors[1]
        channels = None if images.rank is None else images[3]
        if columns is not None and channels is not None and columns < channels:
            raise InvalidArgumentError(
                what="colors must have at least as many columns as the image has channels",
                found={"image": channels, "colors": columns},
            )
        if colors is None or colors.num_elements() == 0:
            _check_palette(channels)
        return op.images.spec

    def compute(op, images: np.ndarray, boxes: np.ndarray, colors: np.ndarray) -> np.ndarray:
        n, height, width, depth = images.shape
        if colors is None or not colors.size:
            _check_palette(depth)
            colors = np.ones((1, 1), np.float32) if depth == 1 else PALETTE
        out = images.copy()
        for b in range(n):
            for k, box in enumerate(boxes[b]):
                _draw(out[b], box, colors[k % len(colors), :depth].astype(images.dtype), height, width)
        return out


def _draw(image: np.ndarray, box: np.ndarray, colour: np.ndarray, height: int, width: int) -> None:
    kind = box.dtype.type
    top, left = (int(box[i] * kind(n - 1)) for i, n in ((0, height), (1, width)))
    bottom, right = (int(box[i] * kind(n - 1)) for i, n in ((2, height), (3, width)))
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = colour
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = colour


@documented_by(DrawBoundingBoxes)
def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor:
    """Draw boxes on images. colors: None for a palette of ten."""
    return DrawBoundingBoxes(images, boxes, colors, name=name)


def _infer_sample(op: Any) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    if not op.image_size.spec.shape.is_compatible_with([3]):
        raise InvalidArgumentError(
            what="image_size must be [height, width, channels]", found=op.image_size.spec.short()
        )
    boxes = op.bounding_boxes.spec.shape
    if not boxes.is_compatible_with([None, None, 4]):
        raise InvalidArgumentError(
            what="bounding_boxes must be [batch, boxes, 4]", found=op.bounding_boxes.spec.short()
        )
    if boxes.num_elements() == 0 and not op.use_image_if_no_bounding_boxes:
        raise _no_boxes()
    for name in ("aspect_ratio_range", "area_range"):
        low, high = getattr(op, name)
        if not 0 < low <= high or (name == "area_range" and high > 1):
            limit = ", and not exceed 1" if name == "area_range" else ""
            raise InvalidArgumentError(what=f"{name} must be positive, the smaller first{limit}", found=(low, high))
    dtype = op.image_size.spec.dtype
    return TensorSpec([3], dtype), TensorSpec([3], dtype), TensorSpec([1, 1, 4], op.bounding_boxes.spec.dtype)


def _no_boxes() -> InvalidArgumentError:
    return InvalidArgumentError(
        what="No bounding boxes provided as input.",
        do="use_image_if_no_bounding_boxes=True if you wish to provide none",
    )


def _sample(
    op: Any, rng: np.random.Generator, image_size: np.ndarray, boxes: np.ndarray, min_covered: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample crops until one covers an object; return (begin, size, box) of it, or of the whole image."""
    height, width = int(image_size[0]), int(image_size[1])
    if min(height, width) < 1 or image_size[2] < 0:
        raise InvalidArgumentError(what="image height and width must be positive", found=image_size.tolist())
    boxes = boxes.reshape(-1, 4)
    if not len(boxes) and not op.use_image_if_no_bounding_boxes:
        raise _no_boxes()
    if ((boxes < 0) | (boxes > 1)).any() or (boxes[:, :2] >= boxes[:, 2:]).any():
        raise InvalidArgumentError(
            what="All bounding box coordinates must be in [0.0, 1.0], the smaller first",
            wanted="[y_min, x_min, y_max, x_max] between 0.0 and 1.0",
        )
    scaled = (
        np.trunc(boxes * np.array([height, width, height, width])) if len(boxes) else np.array([[0, 0, height, width]])
    )
    crop = (0, 0, height, width)
    for _ in range(op.max_attempts):
        candidate = _sample_crop(op, rng, height, width)
        if candidate is not None and _covers(candidate, scaled, min_covered):
            crop = candidate
            break
    top, left, rows, columns = crop
    kind = image_size.dtype
    box = np.array([top / height, left / width, (top + rows) / height, (left + columns) / width])
    return (
        np.array([top, left, 0]).astype(kind),
        np.array([rows, columns, -1]).astype(kind),
        box.astype(boxes.dtype).reshape(1, 1, 4),
    )


def _sample_crop(op: Any, rng: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int] | None:
    """Sample a crop (top, left, rows, columns) of an aspect ratio and an area within their ranges."""
    ratio = rng.uniform(*op.aspect_ratio_range)
    min_area, max_area = (part * height * width for part in op.area_range)
    min_rows = round(math.sqrt(min_area / ratio))
    max_rows = min(round(math.sqrt(max_area / ratio)), height, int((width + 0.5 - 1e-7) / ratio))
    rows = int(rng.integers(min(min_rows, max_rows), max_rows + 1))
    columns = round(rows * ratio)
    for step in (1, -1):  # rounding may have left the range of areas
        if not min_area <= rows * columns <= max_area:
            adjusted = rows + step
            if min_area <= adjusted * round(adjusted * ratio) <= max_area:
                rows, columns = adjusted, round(adjusted * ratio)
    if not (min_area <= rows * columns <= max_area and 0 < rows <= height and 0 < columns <= width):
        return None
    return int(rng.integers(0, height - rows + 1)), int(rng.integers(0, width - columns + 1)), rows, columns


def _covers(crop: tuple[int, int, int, int], boxes: np.ndarray, share: float) -> bool:
    """Return whether a crop covers the given share of any box, in pixels."""
    top, left, rows, columns = crop
    low = np.maximum(boxes[:, :2], [top, left])
    sides = np.maximum(np.minimum(boxes[:, 2:], [top + rows, left + columns]) - low, 0)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return bool(((area > 0) & (sides.prod(1) >= share * area)).any())


def _attrs() -> list[Attr[Any]]:
    return [
        Attr([float], default=(0.75, 1.33), check=length(2)),
        Attr([float], default=(0.05, 1.0), check=length(2)),
        Attr(int, default=100, check=greater_than(0)),
        Attr(bool, default=False),
    ]


@operator
class SampleDistortedBoundingBox(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Sample a random crop that covers a minimum share of an object.

    .. math:: \\exists i: \\frac{|frame \\cap box_i|}{|box_i|} \\ge min\\_object\\_covered, \\quad
              \\frac{width}{height} \\in aspect\\_ratio\\_range, \\quad \\frac{|frame|}{|image|} \\in area\\_range

    image_size: [height, width, channels]; bounding_boxes: [n, m, 4]. After max_attempts the crop is the whole image.
    begin, size: arguments of Slice, [y, x, 0] and [height, width, -1]; bboxes: the crop, [1, 1, 4].
    raises InvalidArgumentError for invalid boxes, or no boxes without use_image_if_no_bounding_boxes
    """

    image_size = Input(SIZES, rank=1)
    bounding_boxes = Input((float32, float64), rank=3)
    min_object_covered = Input((float32, float64), rank=0)
    begin = Output(like="image_size")
    size = Output(like="image_size")
    bboxes = Output(like="bounding_boxes")
    seed = Attr(int, default=0)
    seed2 = Attr(int, default=0)
    stream = Attr(int, default=0)
    aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes = _attrs()
    effect = "random"
    lod = "vanishes"
    gradient = None
    infer = _infer_sample

    def compute(
        op, image_size: Any, bounding_boxes: Any, min_object_covered: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return _sample(op, generator_for(op), image_size, bounding_boxes, float(min_object_covered))


@operator
class StatelessSampleDistortedBoundingBox(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Sample a crop as SampleDistortedBoundingBox does, as a function of `seed`, two integers.

    .. math:: \\exists i: \\frac{|frame \\cap box_i|}{|box_i|} \\ge min\\_object\\_covered, \\quad
              \\frac{width}{height} \\in aspect\\_ratio\\_range, \\quad \\frac{|frame|}{|image|} \\in area\\_range

    After max_attempts the crop is the whole image. use_image_if_no_bounding_boxes: without boxes, the whole image is
    the object.
    """

    image_size = Input(SIZES, rank=1, doc="[height, width, channels]")
    bounding_boxes = Input((float32, float64), rank=3, doc="[y_min, x_min, y_max, x_max] each, between 0 and 1")
    min_object_covered = Input((float32, float64), rank=0)
    seed = Input(SEEDS, rank=1)
    begin = Output(like="image_size")
    size = Output(like="image_size", doc="the size of the part, for a slice")
    bboxes = Output(like="bounding_boxes", doc="the part as a box between 0 and 1")
    aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes = _attrs()
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        check_seed(op)
        return _infer_sample(op)

    def compute(
        op, image_size: Any, bounding_boxes: Any, min_object_covered: Any, seed: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return _sample(op, keyed(seed), image_size, bounding_boxes, float(min_object_covered))


class SampledBox(NamedTuple):
    """A sampled crop: begin and size of the slice, and the crop as a box [1, 1, 4]."""

    begin: Any
    size: Any
    bboxes: Any


def _non_none(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@documented_by(SampleDistortedBoundingBox)
def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: Any = None,
    use_image_if_no_bounding_boxes: Any = None,
    name: str | None = None,
) -> SampledBox:
    """Sample a random crop that covers objects, as (begin, size, bboxes). seed: 0 for none."""
    options = _non_none(
        aspect_ratio_range=aspect_ratio_range,
        area_range=area_range,
        max_attempts=max_attempts,
        use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
    )
    seeds = seeds_for(seed or None)
    outputs: Any = SampleDistortedBoundingBox(
        dispatch.to_tensor(image_size), bounding_boxes, min_object_covered, **seeds, **options, name=name
    )
    return SampledBox(*outputs)


@documented_by(SampleDistortedBoundingBox)
def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: Any,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: Any = None,
    use_image_if_no_bounding_boxes: Any = None,
    name: str | None = None,
) -> SampledBox:
    """Return a crop that covers objects, as (begin, size, bboxes), a function of `seed`."""
    options = _non_none(
        aspect_ratio_range=aspect_ratio_range,
        area_range=area_range,
        max_attempts=max_attempts,
        use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
    )
    outputs: Any = StatelessSampleDistortedBoundingBox(
        dispatch.to_tensor(image_size), bounding_boxes, min_object_covered, seed, **options, name=name
    )
    return SampledBox(*outputs)
