"""Extraction of resized boxes and of patches on a grid.

Lives here: CropAndResize, ExtractImagePatches.
Not here: crops in pixels (geometry.py), sliding windows (../windows.py).

The gradient of CropAndResize is composed of differentiable operators, so it has derivatives of every order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import any_dtype, float32, float64, int32, string
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, like_device, math
from ..array import range as range_
from ..array import reshape, transpose
from ..array.shape_operators import dims_tensor, shape_op
from ..attributes import Attr, one_of
from ..definition import operator
from ..math import reduce_prod, unsorted_segment_sum
from ..registry import documented_by
from ..shape_inference import elements_of
from ..slots import Input, OperatorDefinition, Output
from ..windows import AxisWindow, out_size, pad, taps, window
from .resize_operators import PIXELS

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


def _positions(first: np.ndarray, last: np.ndarray, out: int, size: int) -> np.ndarray:
    """Return the coordinates of the pixels of each crop along one image dimension, [boxes, out]."""
    kind = first.dtype.type
    if out == 1:
        result: np.ndarray = (kind(0.5) * (first + last) * kind(size - 1))[:, None]
        return result
    step = (last - first) * kind(size - 1) / kind(out - 1)
    steps = like_device.arange(first, out, first.dtype) * step[:, None]
    positions: np.ndarray = (first * kind(size - 1))[:, None] + steps
    return positions


def _rounded(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.floor(x + x.dtype.type(0.5))
    return result


@operator
class CropAndResize(OperatorDefinition):
    """Extract boxes from images and resize them to one size.

    .. math:: crops_{b,p,q} = image_{box\\_indices_b} \\left(y_1 (h-1) + p \\frac{(y_2 - y_1)(h-1)}{crop_h - 1},\\;
              x_1 (w-1) + q \\frac{(x_2 - x_1)(w-1)}{crop_w - 1}\\right)

    image: [n, h, w, c] of any real dtype; boxes: [k, 4], (y1, x1, y2, x2) normalized by height and width, flipped if
    y1 > y2; box_indices: int32 [k], indices of images; crop_size: int32 [2]. method: interpolation, "bilinear" or
    "nearest"; points outside the image have the value extrapolation_value. A crop of one pixel is the center of its
    box. crops: [k, *crop_size, c] in the dtype of boxes. The gradient of boxes is always that of "bilinear".
    raises InvalidArgumentError for a box_index out of range, or empty images or crops
    """

    image = Input(PIXELS, rank=4)
    boxes = Input((float32, float64), rank=2)
    box_indices = Input(int32, rank=1)
    crop_size = Input(int32, rank=1)
    crops = Output(like="boxes")
    method = Attr(str, default="bilinear", check=one_of("bilinear", "nearest"))
    extrapolation_value = Attr(float, default=0.0)
    lod = "as boxes"

    def infer(op) -> TensorSpec:
        image, boxes, indices = op.image.spec.shape, op.boxes.spec.shape, op.box_indices.spec.shape
        if not boxes.is_compatible_with([None, 4]):
            raise InvalidArgumentError(what="boxes must have 4 columns: y1, x1, y2, x2", found=op.boxes.spec.short())
        if not op.crop_size.spec.shape.is_compatible_with([2]):
            raise InvalidArgumentError(what="crop_size must be two integers", found=op.crop_size.spec.short())
        number = boxes[0] if boxes.rank else None
        index_count = indices[0] if indices.rank else None
        if None not in (number, index_count) and number != index_count:
            raise InvalidArgumentError(
                what="box_indices has incompatible shape",
                wanted="one for each box",
                found={"boxes": number, "box_indices": index_count},
            )
        crop_size = elements_of(op.crop_size) or [None, None]
        if any(d is not None and d < 1 for d in crop_size):
            raise InvalidArgumentError(what="crop dimensions must be positive", found=crop_size)
        if image.rank is not None and 0 in image[1:3]:
            raise InvalidArgumentError(what="image dimensions must be positive", found=op.image.spec.short())
        depth = image[3] if image.rank is not None else None
        return TensorSpec([index_count if number is None else number, *crop_size, depth], op.boxes.spec.dtype)

    def compute(op, image: Any, boxes: Any, box_indices: Any, crop_size: Any) -> np.ndarray:
        n, height, width, _ = image.shape
        if box_indices.size and (box_indices.min() < 0 or box_indices.max() >= n):
            raise InvalidArgumentError(what="box_index has values outside [0, batch_size)", found=f"batch of {n}")
        if (crop_size < 1).any():
            raise InvalidArgumentError(what="crop dimensions must be positive", found=crop_size.tolist())
        y = _positions(boxes[:, 0], boxes[:, 2], int(crop_size[0]), height)
        x = _positions(boxes[:, 1], boxes[:, 3], int(crop_size[1]), width)
        inside = ((y >= 0) & (y <= height - 1))[:, :, None] & ((x >= 0) & (x <= width - 1))[:, None, :]
        image_index = box_indices[:, None, None]

        def pixels(row: np.ndarray, column: np.ndarray) -> np.ndarray:
            row = np.clip(np.nan_to_num(row), 0, height - 1).astype(np.intp)[:, :, None]
            column = np.clip(np.nan_to_num(column), 0, width - 1).astype(np.intp)[:, None, :]
            result: np.ndarray = image[image_index, row, column].astype(boxes.dtype, copy=False)
            return result

        if op.method == "nearest":
            crops = pixels(_rounded(y), _rounded(x))
        else:
            down, right = (y - np.floor(y))[:, :, None, None], (x - np.floor(x))[:, None, :, None]
            top = pixels(np.floor(y), np.floor(x))
            top = top + (pixels(np.floor(y), np.ceil(x)) - top) * right
            low = pixels(np.ceil(y), np.floor(x))
            low = low + (pixels(np.ceil(y), np.ceil(x)) - low) * right
            crops = top + (low - top) * down
        return np.where(inside[..., None], crops, boxes.dtype.type(op.extrapolation_value))

    def gradient(op, dcrops: Any) -> tuple[Any | None, Any, None, None]:
        points = _sampling_points(op)
        dimage = _image_gradient(op, points, dcrops) if op.image.dtype.is_floating else None
        return dimage, _boxes_gradient(op, points, dcrops), None, None


class SamplingPoints(NamedTuple):
    """Image coordinates of the pixels of crops, as tensors. y: [k, rows, 1], x: [k, 1, columns]."""

    y: Any
    x: Any
    inside: Any  # [k, rows, columns, 1], 1 or 0
    fractions: tuple[Any, Any]  # position of each pixel in its box, 0 to 1: [rows, 1], [columns]
    max_index: Any  # [2]: height - 1 and width - 1 of the image

    def pixel_indices(self, image_index: Any, row: Any, column: Any) -> Tensor:
        """Return indices [k, rows, columns, 3] of adjacent pixels, clipped to the image."""
        shape = array.shape(self.inside)[:3]
        zero = array.zeros_like(self.max_index[0])
        row = array.broadcast_to(array.cast(math.clip_by_value(row, zero, self.max_index[0]), dtypes.int32), shape)
        column = array.cast(math.clip_by_value(column, zero, self.max_index[1]), dtypes.int32)
        column = array.broadcast_to(column, shape)
        return array.stack([array.broadcast_to(image_index[:, None, None], shape), row, column], axis=-1)


def _sampling_points(op: Any) -> SamplingPoints:
    dtype = op.boxes.dtype
    max_index = array.cast(shape_op(op.image)[1:3], dtype) - 1.0
    coordinates, fractions = [], []
    for side in (0, 1):
        out = op.crop_size[side]
        fraction = array.cast(array.range(out), dtype) / array.cast(math.maximum(out - 1, 1), dtype)
        fraction = array.where(out > 1, fraction, array.ones_like(fraction) * 0.5)
        first, last = op.boxes[:, side][:, None], op.boxes[:, side + 2][:, None]
        coordinates.append((first + fraction * (last - first)) * max_index[side])
        fractions.append(fraction)
    y, x = coordinates[0][:, :, None], coordinates[1][:, None, :]
    inside = math.logical_and(
        math.logical_and(y >= 0.0, y <= max_index[0]), math.logical_and(x >= 0.0, x <= max_index[1])
    )
    return SamplingPoints(y, x, array.cast(inside, dtype)[..., None], (fractions[0][:, None], fractions[1]), max_index)


def _image_gradient(op: Any, points: SamplingPoints, dcrops: Any) -> Tensor:
    """Scatter-add the gradient of each crop pixel to the image pixels it was interpolated from."""
    dcrops = array.where(points.inside > 0.0, dcrops, array.zeros_like(dcrops))
    shape = shape_op(op.image)
    if op.method == "nearest":
        nearest = points.pixel_indices(op.box_indices, math.floor(points.y + 0.5), math.floor(points.x + 0.5))
        return array.cast(array.scatter_nd(nearest, dcrops, shape), op.image.dtype)
    total: Any = None
    for row, row_weight in _neighbors(points.y):
        for column, column_weight in _neighbors(points.x):
            indices = points.pixel_indices(op.box_indices, row, column)
            part = array.scatter_nd(indices, dcrops * (row_weight * column_weight)[..., None], shape)
            total = part if total is None else total + part
    result: Tensor = array.cast(total, op.image.dtype)
    return result


def _neighbors(x: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the pixels before and after a coordinate, with their interpolation weights."""
    low = math.floor(x)
    return (low, 1.0 - (x - low)), (math.ceil(x), x - low)


def _boxes_gradient(op: Any, points: SamplingPoints, dcrops: Any) -> Tensor:
    """Compute the gradient with respect to sampling points, and sum it over each box for its corners."""
    image = array.cast(op.image, op.boxes.dtype)
    (top, bottom), (left, right) = (tuple(row for row, _ in _neighbors(s)) for s in (points.y, points.x))
    pixels = [
        [array.gather_nd(image, points.pixel_indices(op.box_indices, row, column)) for column in (left, right)]
        for row in (top, bottom)
    ]
    down, over = (points.y - top)[..., None], (points.x - left)[..., None]
    by_y = (1.0 - over) * (pixels[1][0] - pixels[0][0]) + over * (pixels[1][1] - pixels[0][1])
    by_x = (1.0 - down) * (pixels[0][1] - pixels[0][0]) + down * (pixels[1][1] - pixels[1][0])
    dcrops = array.where(points.inside > 0.0, dcrops, array.zeros_like(dcrops))
    dy = math.reduce_sum(by_y * dcrops, axis=-1) * points.max_index[0]
    dx = math.reduce_sum(by_x * dcrops, axis=-1) * points.max_index[1]
    y_fraction, x_fraction = points.fractions
    parts = [dy * (1.0 - y_fraction), dx * (1.0 - x_fraction), dy * y_fraction, dx * x_fraction]
    return array.stack([math.reduce_sum(part, axis=[1, 2]) for part in parts], axis=1)


crop_and_resize: signatures.CropAndResize = CropAndResize.as_function("crop_and_resize")


def _check_windows(op: Any) -> None:
    for name in ("sizes", "strides", "rates"):
        values = getattr(op, name)
        if len(values) != 4 or min(values) < 1 or values[0] != 1 or values[3] != 1:
            raise InvalidArgumentError(
                what=f"{name} must be [1, rows, columns, 1]",
                found=list(values),
                wanted="positive, and 1 for batch and depth",
            )


def _windows(op: Any, shape: Any) -> list[AxisWindow]:
    return [window(shape[i], op.sizes[i], op.strides[i], op.rates[i], op.padding) for i in (1, 2)]


@operator
class ExtractImagePatches(OperatorDefinition):
    """Extract patches of images by sliding windows, flattened into the depth dimension.

    .. math:: patches_{n,p,q,(i,j,c)} = images_{n,\\; p\\,s_1 + i\\,r_1 - before,\\; q\\,s_2 + j\\,r_2 - before,\\; c}

    images: [n, h, w, c]; sizes, strides, rates: [1, rows, columns, 1]: patch size, distance between patches, distance
    between pixels of a patch. padding: "VALID", or "SAME" with zeros. patches: [n, rows, columns, sizes_1 sizes_2 c].
    raises InvalidArgumentError for invalid sizes, strides or rates
    """

    images = Input(tuple(d for d in any_dtype if d is not string), rank=4)
    patches = Output(like="images")
    sizes = Attr([int])
    strides = Attr([int])
    rates = Attr([int])
    padding = Attr(str, check=one_of("VALID", "SAME"))
    no_need_buffer = ("images",)
    lod = "as images"

    def infer(op) -> TensorSpec:
        _check_windows(op)
        dims = op.images.spec.shape.dims or [None] * 4
        out = [out_size(dims[i], op.sizes[i], op.strides[i], op.rates[i], op.padding) for i in (1, 2)]
        depth = None if dims[3] is None else dims[3] * op.sizes[1] * op.sizes[2]
        return op.images.spec.with_shape([dims[0], *out, depth])

    def compute(op, images: Any) -> np.ndarray:
        windows = _windows(op, images.shape)
        n, depth = images.shape[0], images.shape[3]
        padded = pad(images, windows)
        shape = (n, windows[0].out, windows[1].out, op.sizes[1], op.sizes[2], depth)
        out = like_device.empty(images, shape, images.dtype)
        for (i, j), (rows, columns) in taps(windows):
            out[:, :, :, i, j] = padded[:, rows, columns]
        return out.reshape(*out.shape[:3], op.sizes[1] * op.sizes[2] * depth)

    def gradient(op, dpatches: Any) -> Tensor:
        shape = shape_op(op.images)
        n, pixels, depth = shape[0], reduce_prod(shape[1:3]), shape[3]
        pixel_ids = reshape(range_(1, pixels + 1), dims_tensor([1, shape[1], shape[2], 1]))  # 0 is the padding
        sources = ExtractImagePatches(pixel_ids, **op.attrs)
        parts = transpose(reshape(dpatches, dims_tensor([n, -1, depth])), [1, 0, 2])
        total = unsorted_segment_sum(parts, reshape(sources, [-1]), pixels + 1)[1:]
        return reshape(transpose(total, [1, 0, 2]), shape)


@documented_by(ExtractImagePatches)
def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """Extract the patches of a grid of windows."""
    return ExtractImagePatches(images, sizes, strides, rates, padding, name=name)
