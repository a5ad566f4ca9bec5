"""`keras.utils.bounding_boxes`: boxes around objects in images, in the formats of data sets and networks.

Lives here: formats, clipping, crops, affine transformations, differences from anchors, overlaps, dense batches.
Not here: the layers that move boxes with their images (layers/image_layer.py), non-maximum suppression (ops/image).

Boxes are [..., 4]; dictionaries have them as "boxes", and "labels", -1 for a box that is none. Formats: "xyxy" (left,
top, right, bottom), "yxyx", "xywh" (left, top, width, height), "center_xywh", "center_yxhw", in pixels; "rel_" before
them for shares of the image's width and height.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import float32
from ..ops import array, dispatch, math
from ..ops.ragged import RaggedTensor
from . import backend

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

__all__ = [
    "affine_transform",
    "clip_to_image_size",
    "compute_ciou",
    "compute_iou",
    "convert_format",
    "crop",
    "decode_deltas_to_boxes",
    "encode_box_to_deltas",
    "pad",
]


def columns(boxes: Any) -> list[Any]:
    """Return the four numbers of boxes, each [..., 1]."""
    parts: list[Any] = array.split(boxes, 4, axis=-1)
    return parts


def joined(*parts: Any) -> Tensor:
    """Return boxes of four numbers [..., 1]."""
    boxes: Tensor = array.concat(list(parts), -1)
    return boxes


def _corner_and_size(x: Any, y: Any, w: Any, h: Any) -> tuple[Any, ...]:
    return x, y, x + w, y + h


def _center_and_size(x: Any, y: Any, w: Any, h: Any) -> tuple[Any, ...]:
    return x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0


Numbers = Callable[..., tuple[Any, ...]]
LAYOUTS: dict[str, tuple[Numbers, Numbers]] = {
    "xyxy": (lambda *box: box, lambda *box: box),
    "yxyx": (lambda y, x, y2, x2: (x, y, x2, y2), lambda x, y, x2, y2: (y, x, y2, x2)),
    "xywh": (_corner_and_size, lambda x, y, x2, y2: (x, y, x2 - x, y2 - y)),
    "center_xywh": (_center_and_size, lambda x, y, x2, y2: (x + (x2 - x) / 2.0, y + (y2 - y) / 2.0, x2 - x, y2 - y)),
    "center_yxhw": (
        lambda y, x, h, w: _center_and_size(x, y, w, h),
        lambda x, y, x2, y2: (y + (y2 - y) / 2.0, x + (x2 - x) / 2.0, y2 - y, x2 - x),
    ),
}
"""By format without "rel_": its numbers to left, top, right and bottom, and back."""
FORMATS = (*LAYOUTS, "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh")


def convert_format(
    boxes: Any, source: str, target: str, height: Any = None, width: Any = None, dtype: Any = "float32"
) -> Any:
    """Return boxes, or a dictionary with boxes, in another format. height, width: of the image, for relative formats.

    raises ValueError for unknown formats, other shapes than [..., 4], and relative formats without height and width
    """
    if isinstance(boxes, dict):
        return {**boxes, "boxes": convert_format(boxes["boxes"], source, target, height, width, dtype)}
    boxes = dispatch.to_tensor(boxes)
    if boxes.shape[-1] != 4:
        raise ValueError(f"`boxes` must be a tensor with the last dimension of 4. Received: boxes.shape={boxes.shape}")
    source, target = source.lower(), target.lower()
    if source not in FORMATS or target not in FORMATS:
        raise ValueError(f"Invalid source or target format. Supported formats: {FORMATS}")
    if (source.startswith("rel_") or target.startswith("rel_")) and (width is None or height is None):
        raise ValueError(
            "convert_format() must receive `height` and `width` to transform between relative and absolute formats. "
            f"It received source=`{source}`, target=`{target}`, height={height} and width={width}."
        )
    boxes = array.cast(boxes, dtype)
    if source == target:
        return boxes
    numbers = LAYOUTS[source.removeprefix("rel_")][0](*columns(boxes))
    if source.startswith("rel_") != target.startswith("rel_"):
        sides = [array.cast(side, boxes.dtype) for side in (width, height)] * 2
        is_relative = source.startswith("rel_")
        numbers = tuple(n * side if is_relative else n / side for n, side in zip(numbers, sides))
    return joined(*LAYOUTS[target.removeprefix("rel_")][1](*numbers))


def _only_xyxy(bounding_box_format: str, allowed: tuple[str, ...] = ("xyxy",)) -> None:
    if bounding_box_format not in allowed:
        raise NotImplementedError(f"boxes must have the format {' or '.join(allowed)}, found {bounding_box_format!r}")


def clip_to_image_size(
    bounding_boxes: Any, height: Any = None, width: Any = None, bounding_box_format: str = "xyxy"
) -> Any:
    """Return a dictionary of boxes within the image; those without an area have label -1.

    raises ValueError for boxes in pixels without height and width, NotImplementedError for other formats than "xyxy"
    and "rel_xyxy"
    """
    _only_xyxy(bounding_box_format, ("xyxy", "rel_xyxy"))
    if bounding_box_format == "xyxy" and (height is None or width is None):
        raise ValueError("`height` and `width` must be set if `format='xyxy'`.")
    boxes = dispatch.to_tensor(bounding_boxes["boxes"])
    if bounding_box_format == "rel_xyxy":
        height = width = 1.0
    boxes = _clipped(columns(boxes), height, width, boxes.dtype)
    result = {**bounding_boxes, "boxes": boxes}
    if bounding_boxes.get("labels") is not None:
        labels = dispatch.to_tensor(bounding_boxes["labels"])
        covers = array.squeeze(_area(boxes), [-1]) > 0
        result["labels"] = array.where(covers, labels, array.cast(-1, labels.dtype))
    return result


def _clipped(numbers: Any, height: Any, width: Any, dtype: Any) -> Tensor:
    limits = [array.cast(side, dtype) for side in (width, height)] * 2
    zero = array.cast(0, dtype)
    return joined(*(math.minimum(math.maximum(n, zero), limit) for n, limit in zip(numbers, limits)))


def _area(boxes: Any) -> Any:
    x, y, x2, y2 = columns(boxes)
    return (x2 - x) * (y2 - y)


def crop(boxes: Any, top: Any, left: Any, height: Any, width: Any, bounding_box_format: str = "xyxy") -> Tensor:
    """Return boxes, in pixels, as they are in a part of the image. Raises NotImplementedError for other formats."""
    _only_xyxy(bounding_box_format)
    moved = pad(boxes, -top, -left)
    return _clipped(columns(moved), height, width, moved.dtype)


def pad(
    boxes: Any, top: Any, left: Any, height: Any = None, width: Any = None, bounding_box_format: str = "xyxy"
) -> Tensor:
    """Return boxes, in pixels, as they are in an image with a margin. Raises NotImplementedError for other formats."""
    _only_xyxy(bounding_box_format)
    boxes = dispatch.to_tensor(boxes)
    left, top = (array.cast(v, boxes.dtype) for v in (left, top))
    x, y, x2, y2 = columns(boxes)
    return joined(x + left, y + top, x2 + left, y2 + top)


def around(points_x: Any, points_y: Any) -> Tensor:
    """Return the smallest boxes around points: of x and y, each [..., n]."""
    ends = [
        reduce(p, axis=-1, keepdims=True) for reduce in (math.reduce_min, math.reduce_max) for p in (points_x, points_y)
    ]
    return joined(*ends)


def corners(boxes: Any) -> tuple[Any, Any]:
    """Return x and y of the corners of boxes, each [..., 4]."""
    x, y, x2, y2 = columns(boxes)
    return joined(x, x2, x2, x), joined(y, y, y2, y2)


def affine_transform(
    boxes: Any,
    angle: Any,
    translate_x: Any,
    translate_y: Any,
    scale: Any,
    shear_x: Any,
    shear_y: Any,
    height: Any,
    width: Any,
    center_x: Any = None,
    center_y: Any = None,
    bounding_box_format: str = "xyxy",
) -> Tensor:
    """Return the boxes around boxes [batch, n, 4] that are rotated, scaled, sheared and moved with their images.

    angle, shear_x, shear_y: degrees [batch]; translate_x, translate_y: shares of width and height [batch]; scale:
    [batch]; center_x, center_y: the fixed point as shares, by default 1/2. Raises NotImplementedError for other
    formats than "xyxy"
    """
    _only_xyxy(bounding_box_format)
    angle, shear_x, shear_y, translate_x, translate_y, scale = (
        array.cast(v, float32) for v in (angle, shear_x, shear_y, translate_x, translate_y, scale)
    )
    radians = python_math.pi / 180.0
    turn, across, down = -angle * radians, -shear_x * radians, -shear_y * radians
    last = [array.cast(side, float32) - 1.0 for side in (width, height)]
    middle_x, middle_y = ((0.5 if c is None else c) * side for c, side in zip((center_x, center_y), last))
    # Rotation times shear, of determinant 1; its inverse, scaled, acts on what is left of the fixed point.
    a = math.cos(turn - down) / math.cos(down)
    b = a * math.tan(across) + math.sin(turn)
    c = -math.sin(turn - down) / math.cos(down)
    d = math.cos(turn) - c * math.tan(across)
    rows = [[d * scale, -b * scale], [-c * scale, a * scale]]
    from_x, from_y = middle_x - translate_x * last[0], middle_y - translate_y * last[1]
    x, y = corners(array.cast(boxes, float32))
    places = []
    for (first, second), middle in zip(rows, (middle_x, middle_y)):
        offset = middle - first * from_x - second * from_y
        of_batch = [array.reshape(v, [-1, 1, 1]) for v in (first, second, offset)]
        places.append(of_batch[0] * x + of_batch[1] * y + of_batch[2])
    return around(*places)


# ---- anchors ---------------------------------------------------------------------------------------------------------


def _variance(variance: Any, format_name: str, argument: str) -> Any:
    if format_name not in ("center_xywh", "center_yxhw"):
        raise ValueError(f"`{argument}` should be 'center_xywh' or 'center_yxhw', but got '{format_name}'.")
    if variance is None:
        return None
    variance = dispatch.to_tensor(variance, float32)
    if variance.shape[-1] != 4:
        raise ValueError(f"`variance` must be length 4, got {variance}")
    return variance


def _sides(image_shape: Any) -> dict[str, Any]:
    return {} if image_shape is None else {"height": image_shape[0], "width": image_shape[1]}


def encode_box_to_deltas(
    anchors: Any,
    boxes: Any,
    anchor_format: str,
    box_format: str,
    encoding_format: str = "center_yxhw",
    variance: Any = None,
    image_shape: Any = None,
) -> Tensor:
    """Return boxes as differences from anchors: of centers, in sizes of the anchors, and logarithms of sizes' ratios.

    variance: four numbers by which the differences are divided. image_shape: (height, width, channels), for relative
    formats. Raises ValueError for another number of variances, and other encodings than centers and sizes
    """
    variance = _variance(variance, encoding_format, "encoding_format")
    anchors = convert_format(anchors, anchor_format, encoding_format, **_sides(image_shape))
    boxes = convert_format(boxes, box_format, encoding_format, **_sides(image_shape))
    size, box_size = (math.maximum(v[..., 2:], backend.epsilon()) for v in (anchors, boxes))
    deltas = array.concat([(boxes[..., :2] - anchors[..., :2]) / size, math.log(box_size / size)], -1)
    return deltas if variance is None else deltas / variance


def decode_deltas_to_boxes(
    anchors: Any,
    boxes_delta: Any,
    anchor_format: str,
    box_format: str,
    encoded_format: str = "center_yxhw",
    variance: Any = None,
    image_shape: Any = None,
) -> Any:
    """Return boxes for differences from anchors, as `encode_box_to_deltas` has them; of dictionaries, each member."""
    variance = _variance(variance, encoded_format, "encoded_format")
    if isinstance(anchors, dict) and isinstance(boxes_delta, dict):
        more = box_format, encoded_format, variance, image_shape
        return {k: decode_deltas_to_boxes(v, boxes_delta[k], anchor_format, *more) for k, v in anchors.items()}
    anchor = convert_format(anchors, anchor_format, encoded_format, **_sides(image_shape))
    deltas = dispatch.to_tensor(boxes_delta, None if hasattr(boxes_delta, "dtype") else float32)
    deltas = array.cast(deltas, float32)
    deltas = deltas if variance is None else deltas * variance
    size = anchor[..., 2:]
    boxes = array.concat([deltas[..., :2] * size + anchor[..., :2], math.exp(deltas[..., 2:]) * size], -1)
    return convert_format(boxes, encoded_format, box_format, **_sides(image_shape))


# ---- overlaps --------------------------------------------------------------------------------------------------------


def compute_iou(
    boxes1: Any,
    boxes2: Any,
    bounding_box_format: str,
    use_masking: bool = False,
    mask_val: Any = -1,
    image_shape: Any = None,
) -> Tensor:
    """Return the intersection over union of each pair: [..., n, m] of boxes [..., n, 4] and [..., m, 4].

    use_masking: mask_val for pairs with a box of negative numbers only. image_shape: as in `encode_box_to_deltas`.
    raises ValueError for ranks other than 2 and 3, and for relative formats without image_shape
    """
    boxes1, boxes2 = (dispatch.to_tensor(b) for b in (boxes1, boxes2))
    for name, boxes in ("boxes1", boxes1), ("boxes2", boxes2):
        if boxes.shape.rank not in (2, 3):
            raise ValueError(
                f"compute_iou() expects {name} to be batched, or to be unbatched. Received len(boxes1.shape)="
                f"{boxes1.shape.rank}, len(boxes2.shape)={boxes2.shape.rank}. Expected either 2 or 3."
            )
    if "rel" in bounding_box_format and image_shape is None:
        raise ValueError(
            "When using relative bounding box formats (e.g. `rel_yxyx`) the `image_shape` argument must be provided. "
            f"Received `image_shape`: {image_shape}"
        )
    first, second = (convert_format(b, bounding_box_format, "xyxy", **_sides(image_shape)) for b in (boxes1, boxes2))
    first, second = array.expand_dims(first, -2), array.expand_dims(second, -3)
    shared = array.squeeze(_shared_area(first, second), [-1])
    union = array.squeeze(_area(first) + _area(second), [-1]) - shared
    ratio = shared / (union + backend.epsilon())
    if not use_masking:
        return ratio
    none1, none2 = (math.reduce_max(b, axis=-1) < 0 for b in (boxes1, boxes2))
    masked = math.logical_or(array.expand_dims(none1, -1), array.expand_dims(none2, -2))
    return array.where(masked, array.cast(mask_val, ratio.dtype), ratio)


def _shared_area(first: Any, second: Any) -> Any:
    (x, y, x2, y2), (u, v, u2, v2) = columns(first), columns(second)
    width, height = math.minimum(x2, u2) - math.maximum(x, u), math.minimum(y2, v2) - math.maximum(y, v)
    return math.maximum(width, 0.0) * math.maximum(height, 0.0)


def compute_ciou(boxes1: Any, boxes2: Any, bounding_box_format: str, image_shape: Any = None) -> Tensor:
    """Return the complete intersection over union of boxes [..., 4] (Zheng et al. 2020): that less the squared distance
    of the centers, in diagonals of the box around both, and a penalty of different proportions.

    raises ValueError for relative formats, as Keras does
    """
    if "rel" in bounding_box_format:
        raise ValueError(
            "When using relative bounding box formats (e.g. `rel_yxyx`) the `image_shape` argument must be provided. "
            f"Received `image_shape`: {image_shape}"
        )
    first, second = (convert_format(b, bounding_box_format, "xyxy", **_sides(image_shape)) for b in (boxes1, boxes2))
    epsilon = backend.epsilon()
    (x, y, x2, y2), (u, v, u2, v2) = columns(first), columns(second)
    width, height, other_width, other_height = x2 - x, y2 - y + epsilon, u2 - u, v2 - v + epsilon
    shared = _shared_area(first, second)
    union = width * height + other_width * other_height - shared + epsilon
    ratio = shared / (union + epsilon)
    diagonal = (math.maximum(x2, u2) - math.minimum(x, u)) ** 2 + (math.maximum(y2, v2) - math.minimum(y, v)) ** 2
    distance = ((x + x2) / 2 - (u + u2) / 2) ** 2 + ((y + y2) / 2 - (v + v2) / 2) ** 2
    turned = math.atan(other_width / other_height) - math.atan(width / height)
    proportions = 4 / python_math.pi**2 * turned**2
    weight = proportions / (proportions - ratio + (1 + epsilon))
    return array.squeeze(ratio - (distance / (diagonal + epsilon) + proportions * weight), [-1])


# ---- batches ---------------------------------------------------------------------------------------------------------


def densify(bounding_boxes: Any, max_boxes: int | None = None) -> dict[str, Any]:
    """Return a dictionary of dense boxes and labels: of lists or ragged tensors, filled with zeros and label -1.

    max_boxes: how many of an image; by default the most that one has. Raises ValueError for others than a dictionary
    of "boxes" and "labels" whose shapes fit
    """
    check(bounding_boxes)
    boxes, labels = bounding_boxes["boxes"], bounding_boxes["labels"]
    if isinstance(boxes, list) and boxes and isinstance(boxes[0], list) and boxes[0] and isinstance(boxes[0][0], list):
        count = max(map(len, boxes)) if max_boxes is None else max_boxes
        boxes = [(b + [[0.0] * 4] * count)[:count] for b in boxes]
        labels = [(list(v) + [-1] * count)[:count] for v in labels]
    if isinstance(boxes, RaggedTensor):
        batch = [] if boxes.shape.rank == 2 else [None]
        sizes = None if max_boxes is None else [*batch, max_boxes, 4]
        counts = None if max_boxes is None else [*batch, max_boxes, *labels.shape[len(batch) + 1 :]]
        boxes, labels = boxes.to_tensor(0, shape=sizes), labels.to_tensor(-1, shape=counts)
    of_float = array.cast(dispatch.to_tensor(boxes), float32)
    return {**bounding_boxes, "boxes": of_float, "labels": dispatch.to_tensor(labels)}


def check(bounding_boxes: Any) -> None:
    """Raise ValueError for others than a dictionary of boxes and labels whose shapes fit."""
    if not isinstance(bounding_boxes, dict) or "labels" not in bounding_boxes or "boxes" not in bounding_boxes:
        raise ValueError(
            "Expected `bounding_boxes` argument to be a dict with keys 'boxes' and 'labels'. Received: "
            f"bounding_boxes={bounding_boxes}"
        )
    boxes, labels = bounding_boxes["boxes"], bounding_boxes["labels"]
    for kind, name in (list, "list"), (RaggedTensor, "ragged tensor"):
        if isinstance(boxes, kind) and not isinstance(labels, kind):
            raise ValueError(f"If `boxes` is a {name}, `labels` must also be one. Received: labels={labels}")
    if isinstance(boxes, list):
        if len(boxes) != len(labels):
            raise ValueError(
                f"`boxes` and `labels` must have the same length. Received: {len(boxes)} and {len(labels)}"
            )
    elif not isinstance(boxes, RaggedTensor):
        ranks = [len(np.shape(v)) if not hasattr(v, "shape") else len(v.shape) for v in (boxes, labels)]
        if ranks[0] not in (2, 3) or ranks[1] not in (ranks[0] - 1, ranks[0]):
            raise ValueError(
                "Expected `bounding_boxes['boxes']` to have rank 2 or 3, (num_boxes, 4) or (batch_size, num_boxes, 4), "
                f"and the labels that rank or one less. Received: ranks {ranks[0]} and {ranks[1]}"
            )
