"""Images of ONNX: resizing in all of its modes, sampling on grids, regions, boxes.

Lives here: Resize, Upsample, GridSample, AffineGrid, RoiAlign, NonMaxSuppression. Not here: convolutions.
A resize is a product with a matrix of weights along each axis, which is computed at import; resizes that the catalogue
has (two axes, common coordinates) are its operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, int32, int64
from ....core.errors import InvalidArgumentError, UnimplementedError
from ....ops import array, image, linalg, math
from ....ops.array import cast
from ....ops.dispatch import to_tensor
from ....ops.image.resize_weights import keys_far, keys_near
from ....ops.registry import get
from ...constants import FOLDING
from ...importing import known as static
from ..execution import RULES
from ..operands import at, axis_of, dims, dtype_of, rank_of, static_dims
from .convolution import sample

rule = RULES.rule


@rule("Upsample")
def upsample(context: Any, inputs: Any, attributes: Any) -> Any:
    scales = attributes.get("scales")
    scales = context.required(inputs[1], "scales").tolist() if scales is None else scales
    mode = attributes.get("mode", "nearest")
    settings = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return _resized(inputs[0], list(range(len(scales))), list(scales), None, settings, None)


@rule("Resize")
def resize(context: Any, inputs: Any, attributes: Any) -> Any:
    x, rank = inputs[0], rank_of(inputs[0])
    if context.opset < 11:
        settings = {**attributes, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return _resized(x, list(range(rank)), context.required(inputs[1], "scales").tolist(), None, settings, None)
    axes = [axis_of(a, rank) for a in attributes.get("axes", range(rank))]
    roi, scales, sizes = (None if at(inputs, i) is None else inputs[i] for i in (1, 2, 3))
    scales = None if scales is None else context.required(scales, "scales").tolist()
    if not scales:
        scales = None
    if (y := _of_unknown_sizes(x, axes, scales, sizes, attributes)) is not None:
        return y
    sizes = None if sizes is None else context.required(sizes, "sizes").tolist()
    if sizes is not None and attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        whole = static_dims(x, "Resize")
        ratios = [s / whole[a] for s, a in zip(sizes, axes)]
        smaller = attributes["keep_aspect_ratio_policy"] == "not_larger"
        ratio = min(ratios) if smaller else max(ratios)
        sizes = [int(np.floor(ratio * whole[a] + 0.5)) for a in axes]
        scales = [ratio] * len(axes)
    crop = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    region = context.required(roi, "the region").tolist() if crop and roi is not None else None
    return _resized(x, axes, scales, sizes, attributes, region)


def _resized(x: Any, axes: list[int], scales: Any, sizes: Any, attributes: Any, roi: Any) -> Any:
    whole = dims(x)
    plans = []
    for i, axis in enumerate(axes):
        size = whole[axis]
        if size is None:
            if (scales is not None and scales[i] == 1) and roi is None:
                continue
            raise InvalidArgumentError(what="Resize needs the sizes of resized axes at import", found=whole)
        if sizes is None and not 0 < scales[i] < np.inf:
            raise InvalidArgumentError(what="a scale is not a positive number", found=scales)
        result = int(sizes[i]) if sizes is not None else int(np.floor(size * scales[i]))
        scale = scales[i] if scales is not None else result / size
        region = None if roi is None else (roi[i], roi[len(axes) + i])
        if result == size and scale == 1 and region is None:
            continue
        plans.append((axis, size, result, scale, region))
    if (native := _native(x, plans, attributes)) is not None:
        return native
    dtype = dtype_of(x)
    y = x
    mode = attributes.get("mode", "nearest")
    for axis, size, result, scale, region in plans:
        position = _coordinates(size, result, scale, region, attributes)
        if mode == "nearest":
            index = _nearest(position, attributes.get("nearest_mode", "round_prefer_floor"))
            y = array.gather(y, np.clip(index, 0, size - 1).astype(np.int32), axis=axis)
        else:
            weights = _weights(position, size, scale, mode, attributes)
            y = _along(y if dtype_of(y).is_floating else cast(y, float32), weights, axis)
    if roi is not None and attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        value = np.asarray(attributes.get("extrapolation_value", 0.0), dtype_of(y).np)
        for axis, size, result, scale, region in plans:
            position = _coordinates(size, result, scale, region, attributes)
            inside = (position >= 0) & (position <= size - 1)
            y = array.where(inside.reshape([-1 if i == axis else 1 for i in range(rank_of(y))]), y, value)
    return y if dtype_of(y) is dtype else cast(math.rint(y) if dtype.is_integer else y, dtype)


def _of_unknown_sizes(x: Any, axes: list[int], scales: Any, sizes: Any, attributes: Any) -> Any:
    """Return images resized to sizes that a run decides, or by whole factors of such sizes; None for other cases."""
    if rank_of(x) != 4 or dtype_of(x) is not float32 or attributes.get("antialias") or not {2, 3} <= {*axes}:
        return None
    if None not in dims(x)[2:]:
        return None
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    places = [axes.index(2), axes.index(3)]
    target: Any
    if sizes is None:
        others = [s for a, s in zip(axes, scales or []) if a < 2]
        factors = [scales[p] for p in places] if scales else [0.5]
        if set(others) > {1.0} or not all(f >= 1 and float(f).is_integer() for f in factors):
            return None
        target = math.multiply(array.shape(x)[2:4], np.asarray(factors, np.int32))
    elif (given := static(sizes)) is not None:
        target = np.asarray(given, np.int32)[places]
    else:  # those of the batch and of channels are the input's, as exporters write them
        target = cast(array.gather(to_tensor(sizes), np.asarray(places, np.int32)), int32)
    how = attributes.get("coordinate_transformation_mode", "half_pixel")
    if how == "pytorch_half_pixel":  # half pixels, but for results of one row or column, which are the first
        sides = array.where(math.equal(target, np.int32(1)), np.int32(1), array.shape(x)[2:4])
        x, how = to_tensor(x)[:, :, : sides[0], : sides[1]], "half_pixel"
    mode = attributes.get("mode", "nearest")
    if mode == "linear" and how in ("half_pixel", "align_corners", "asymmetric"):
        return _resized_images(x, "ResizeBilinear", target, how)
    if mode == "nearest" and how == "asymmetric" and attributes.get("nearest_mode") == "floor":
        return _resized_images(x, "ResizeNearestNeighbor", target, how)
    return None


def _resized_images(x: Any, name: str, size: Any, how: str) -> Any:
    last = array.transpose(x, [0, 2, 3, 1])
    y = get(name)(last, size, align_corners=how == "align_corners", half_pixel_centers=how == "half_pixel")
    return array.transpose(y, [0, 3, 1, 2])


def _native(x: Any, plans: list[Any], attributes: Any) -> Any:
    """Return the result of the catalogue's operator for the last two axes of four, or None."""
    if rank_of(x) != 4 or [p[0] for p in plans] != [2, 3] or dtype_of(x) is not float32 or attributes.get("antialias"):
        return None
    how = attributes.get("coordinate_transformation_mode", "half_pixel")
    exact = all(abs(size * scale - result) < 1e-6 for _, size, result, scale, _ in plans)
    enlarged = all(result >= size for _, size, result, _, _ in plans)
    mode = attributes.get("mode", "nearest")
    if mode == "linear" and exact and how in ("half_pixel", "align_corners", "asymmetric"):
        if how == "align_corners" and any(result == 1 for _, _, result, _, _ in plans):
            return None
        name = "ResizeBilinear"
    elif mode == "nearest" and exact and how == "asymmetric" and attributes.get("nearest_mode") == "floor" and enlarged:
        name = "ResizeNearestNeighbor"
    else:
        return None
    return _resized_images(x, name, np.asarray([p[2] for p in plans], np.int32), how)


def _coordinates(size: int, result: int, scale: float, region: Any, attributes: Any) -> Any:
    """Return the position in the input of each element of the result."""
    FOLDING.reserve(result)
    i: Any = np.arange(result, dtype=np.float64)
    match attributes.get("coordinate_transformation_mode", "half_pixel"):
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjustment = result / (scale * size)
            return size / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if result > 1 else np.full(result, -0.5 if size == 1 else 0.0) * 0
        case "align_corners":
            # By the whole size, as onnxruntime and PyTorch: the suite expects size * scale, which may be a fraction.
            return i * (size - 1) / max(result - 1, 1)
        case "asymmetric":
            return i / scale
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        case "tf_crop_and_resize":
            first, last = region
            if result > 1:
                return first * (size - 1) + i * (last - first) * (size - 1) / (result - 1)
            return np.full(result, 0.5 * (first + last) * (size - 1))
        case other:
            raise UnimplementedError(what="coordinates of Resize", found=other)


def _nearest(position: Any, mode: str) -> Any:
    match mode:
        case "round_prefer_floor":
            return np.ceil(position - 0.5)
        case "round_prefer_ceil":
            return np.floor(position + 0.5)
        case "floor":
            return np.floor(position)
    return np.ceil(position)


def _weights(position: np.ndarray, size: int, scale: float, mode: str, attributes: Any) -> np.ndarray:
    """Return the matrix [result, size] of weights."""
    a = attributes.get("cubic_coeff_a", -0.75)
    shrunk = min(scale, 1.0) if attributes.get("antialias") else 1.0

    def kernel(t: Any) -> Any:
        t = np.abs(t) * shrunk
        if mode == "linear":
            return np.maximum(1 - t, 0)
        return np.where(t <= 1, keys_near(t, a), np.where(t < 2, keys_far(t, a), 0))

    support = int(np.ceil((1 if mode == "linear" else 2) / shrunk)) + 1
    low = np.floor(position).astype(int)
    FOLDING.reserve(len(position), size)
    matrix = np.zeros((len(position), size))
    rows = np.arange(len(position))
    total = np.zeros(len(position))
    for move in range(-support, support + 1):
        place = low + move
        weight = kernel(position - place)
        if attributes.get("exclude_outside"):
            weight = np.where((place >= 0) & (place < size), weight, 0)
        total += weight
        np.add.at(matrix, (rows, np.clip(place, 0, size - 1)), weight)
    if attributes.get("antialias") or attributes.get("exclude_outside"):
        matrix /= total[:, None]
    return matrix.astype(np.float32)


def _along(x: Any, weights: np.ndarray, axis: int) -> Any:
    """Return the product of a matrix with one axis of x."""
    weights = weights.astype(dtype_of(x).np)
    order = [i for i in range(rank_of(x)) if i != axis] + [axis]
    moved = array.transpose(x, order)
    y = linalg.matmul(moved, weights.T) if rank_of(x) > 1 else linalg.matmul(array.expand_dims(moved, 0), weights.T)[0]
    return array.transpose(y, np.argsort(order).tolist())


@rule("GridSample")
def grid_sample(context: Any, inputs: Any, attributes: Any) -> Any:
    """Sample [n, c, ...] at positions from -1 to 1, of which the last axis has x first."""
    x, grid = inputs
    sizes = static_dims(x, "GridSample")[2:]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        attributes.get("mode", "linear"), attributes.get("mode", "linear")
    )
    border, corners = attributes.get("padding_mode", "zeros"), bool(attributes.get("align_corners"))
    positions = []
    for i, size in enumerate(sizes):
        g = cast(grid, dtype_of(x))[..., len(sizes) - 1 - i]
        p = (g + 1.0) * ((size - 1) / 2) if corners else ((g + 1.0) * float(size) - 1.0) * 0.5
        if border == "border" and mode != "cubic":
            p = math.minimum(math.maximum(p, np.asarray(0, dtype_of(p).np)), np.asarray(size - 1, dtype_of(p).np))
        elif border == "reflection" and mode != "cubic":
            p = _reflected(p, size, corners)
            p = math.minimum(math.maximum(p, np.asarray(0, dtype_of(p).np)), np.asarray(size - 1, dtype_of(p).np))
        positions.append(p)
    last = array.transpose(x, [0, *range(2, rank_of(x)), 1])
    y = sample(last, positions, mode, "zeros" if border == "zeros" else "border")
    return array.transpose(y, [0, rank_of(x) - 1, *range(1, rank_of(x) - 1)])


def _reflected(p: Any, size: int, corners: bool) -> Any:
    """Return positions reflected at the borders: of the outer elements, or half an element outside."""
    low, high = (0.0, float(size - 1)) if corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return array.zeros_like(p)
    t = math.floormod(p - low, np.asarray(2 * span, dtype_of(p).np))
    return math.subtract(np.asarray(span, dtype_of(p).np), math.abs(t - span)) + low


@rule("RoiAlign")
def roi_align(context: Any, inputs: Any, attributes: Any) -> Any:
    """Sample each bin of each region, bilinearly, and take the average or the greatest weighted sample."""
    x, rois, batches = inputs
    _, c, h, w = static_dims(x, "RoiAlign")
    count = static_dims(rois, "RoiAlign")[0]
    oh, ow = attributes.get("output_height", 1), attributes.get("output_width", 1)
    ratio, scale = attributes.get("sampling_ratio", 0), attributes.get("spatial_scale", 1.0)
    half = attributes.get(
        "coordinate_transformation_mode", "half_pixel" if context.opset >= 16 else "output_half_pixel"
    )
    offset = 0.5 if half == "half_pixel" else 0.0
    if ratio <= 0:
        known = context.required(rois, "regions with an adaptive number of samples") * scale
        ratios = [(max(int(np.ceil((b[3] - b[1]) / oh)), 1), max(int(np.ceil((b[2] - b[0]) / ow)), 1)) for b in known]
        if len(set(ratios)) > 1:
            parts = [
                _aligned(x, np.asarray(rois)[i : i + 1], batches[i : i + 1], attributes, offset, oh, ow, *r, scale)
                for i, r in enumerate(ratios)
            ]
            return array.concat(parts, 0)
        rows, cols = ratios[0] if ratios else (1, 1)
    else:
        rows = cols = ratio
    del c, h, w, count
    return _aligned(x, rois, batches, attributes, offset, oh, ow, rows, cols, scale)


def _aligned(
    x: Any,
    rois: Any,
    batches: Any,
    attributes: Any,
    offset: float,
    oh: int,
    ow: int,
    rows: int,
    cols: int,
    scale: float,
) -> Any:
    _, c, h, w = static_dims(x, "RoiAlign")
    count = dims(rois)[0] or 0
    rois = math.multiply(rois, np.asarray(scale, dtype_of(rois).np)) - float(offset)
    x1, y1, x2, y2 = (rois[:, i] for i in range(4))
    width, height = x2 - x1, y2 - y1
    if not offset:
        width = math.maximum(width, np.asarray(1, dtype_of(width).np))
        height = math.maximum(height, np.asarray(1, dtype_of(height).np))
    ys = (np.arange(oh * rows) + 0.5) / (oh * rows)
    xs = (np.arange(ow * cols) + 0.5) / (ow * cols)
    py = array.expand_dims(y1, 1) + array.expand_dims(height, 1) * ys.astype(dtype_of(x).np)
    px = array.expand_dims(x1, 1) + array.expand_dims(width, 1) * xs.astype(dtype_of(x).np)
    shape = [count, oh * rows, ow * cols]
    py = array.broadcast_to(array.expand_dims(py, 2), shape)
    px = array.broadcast_to(array.expand_dims(px, 1), shape)
    # Samples up to one element outside count as those on the border; farther ones are zero.
    inside = math.logical_and(
        math.logical_and(
            math.greater_equal(py, np.asarray(-1, dtype_of(py).np)), math.less_equal(py, np.asarray(h, dtype_of(py).np))
        ),
        math.logical_and(
            math.greater_equal(px, np.asarray(-1, dtype_of(px).np)), math.less_equal(px, np.asarray(w, dtype_of(px).np))
        ),
    )
    zero = np.asarray(0, dtype_of(py).np)
    py = math.minimum(math.maximum(py, zero), np.asarray(h - 1, dtype_of(py).np))
    px = math.minimum(math.maximum(px, zero), np.asarray(w - 1, dtype_of(px).np))
    images = array.gather(array.transpose(x, [0, 2, 3, 1]), cast(batches, int32))
    if attributes.get("mode", "avg") == "avg":
        values = sample(images, [py, px], "linear", "border")
        values = array.where(array.expand_dims(inside, -1), values, np.zeros((), dtype_of(x).np))
        values = math.reduce_mean(array.reshape(values, [count, oh, rows, ow, cols, c]), [2, 4])
    else:
        values = _greatest_weighted(images, py, px, inside)
        values = math.reduce_max(array.reshape(values, [count, oh, rows, ow, cols, c]), [2, 4])
    return array.transpose(values, [0, 3, 1, 2])


def _greatest_weighted(images: Any, py: Any, px: Any, inside: Any) -> Any:
    """Return the greatest of the four weighted neighbours of each sample, as the standard's maximum is defined."""
    low_y, low_x = math.floor(py), math.floor(px)
    part_y, part_x = py - low_y, px - low_x
    _, h, w, _ = dims(images)
    best: Any = None
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (part_y if dy else 1.0 - part_y) * (part_x if dx else 1.0 - part_x)
            row = math.minimum(low_y + float(dy), np.asarray((h or 1) - 1, dtype_of(py).np))
            col = math.minimum(low_x + float(dx), np.asarray((w or 1) - 1, dtype_of(px).np))
            value = array.gather_nd(images, array.stack([cast(row, int32), cast(col, int32)], -1), 1)
            value = math.multiply(value, array.expand_dims(weight, -1))
            best = value if best is None else math.maximum(best, value)
    return array.where(array.expand_dims(inside, -1), best, np.zeros((), dtype_of(images).np))


@rule("AffineGrid")
def affine_grid(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the points (x, y) or (x, y, z) of a regular grid over [-1, 1], mapped by matrices: [n, *sizes, points]."""
    theta, sizes = inputs[0], context.required(inputs[1], "the size").tolist()[2:]

    def places(count: int) -> np.ndarray:
        if attributes.get("align_corners"):
            return np.linspace(-1, 1, count)
        return (2 * np.arange(count) + 1) / count - 1

    FOLDING.reserve(len(sizes) + 1, *sizes)
    grids = np.meshgrid(*map(places, sizes), indexing="ij")[::-1]
    points = np.stack([*grids, np.ones(sizes)], -1).reshape(1, -1, len(sizes) + 1).astype(dtype_of(theta).np)
    result = linalg.matmul(points, array.transpose(theta, [0, 2, 1]))
    return array.reshape(result, [-1, *sizes, len(sizes)])


@rule("NonMaxSuppression")
def non_max_suppression(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return rows of batch, class and box: each class of each batch for itself."""
    boxes, scores = inputs[:2]
    limit, iou, least = (at(inputs, i) for i in (2, 3, 4))
    batches, classes = static_dims(scores, "NonMaxSuppression")[:2]
    if limit is None:
        return np.zeros((0, 3), np.int64)
    if attributes.get("center_point_box"):
        centre, half = boxes[..., :2], boxes[..., 2:] * 0.5
        boxes = array.concat([centre - half, centre + half], -1)
        boxes = array.gather(boxes, np.asarray([1, 0, 3, 2], np.int32), axis=-1)
    rows = []
    for b in range(batches):
        for c in range(classes):
            chosen = image.non_max_suppression(
                boxes[b],
                scores[b, c],
                cast(array.reshape(limit, []), int32),
                np.float32(0) if iou is None else array.reshape(iou, []),
                np.float32(-np.inf) if least is None else array.reshape(least, []),
            )
            chosen = array.expand_dims(cast(chosen, int64), 1)
            fixed = array.ones_like(chosen)
            rows.append(array.concat([fixed * np.int64(b), fixed * np.int64(c), chosen], 1))
    return array.concat(rows, 0)
