"""Functions of torchvision that `torch.export` refuses, in a form without branches on the number of boxes.

Lives here: `exportable`, a context in which torchvision's detectors are exported. Not here: rules (rules/detection.py).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...ops.image.resize_weights import keys_weights


def nms_by_class(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """Return the boxes that remain of each class: those of different classes are moved apart, as torchvision does for
    few boxes, by the largest coordinate, of which no boxes have none."""
    import torch
    from torchvision.ops import nms

    largest = torch.cat([boxes.reshape(-1), boxes.new_zeros(1)]).max()
    return nms(boxes + (idxs.to(boxes) * (largest + 1))[:, None], scores, iou_threshold)


def regions_of_levels(
    x_filtered: Sequence[Any],
    boxes: Sequence[Any],
    output_size: Sequence[int],
    sampling_ratio: int,
    scales: Sequence[float],
    mapper: Any,
) -> Any:
    """Return the regions of all boxes, each pooled from the level of the pyramid that fits its size."""
    import torch
    from torchvision.ops import poolers, roi_align

    rois = poolers._convert_to_roi_format(list(boxes))
    result: Any = None
    levels: Any = mapper(boxes) if len(x_filtered) > 1 else None
    for level, (features, scale) in enumerate(zip(x_filtered, scales)):
        pooled = roi_align(features, rois, output_size, spatial_scale=scale, sampling_ratio=sampling_ratio)
        result = pooled if result is None else torch.where((levels == level)[:, None, None, None], pooled, result)
    return result


def pasted_masks(masks: Any, boxes: Any, img_shape: tuple[int, int], padding: int = 1) -> Any:
    """Return the masks [n, 1, height, width] of images: each box's mask [n, 1, m, m], resized to the box, at its place,
    as a product with two matrices of interpolation."""
    import torch
    from torchvision.models.detection import roi_heads

    masks, scale = roi_heads.expand_masks(masks, padding=padding)
    x0, y0, x1, y1 = roi_heads.expand_boxes(boxes, scale).to(dtype=torch.int64).unbind(1)
    rows, _ = _interpolation(y0, (y1 - y0 + 1).clamp(min=1), img_shape[0], masks.shape[-2], masks.dtype, _linear)
    columns, _ = _interpolation(x0, (x1 - x0 + 1).clamp(min=1), img_shape[1], masks.shape[-1], masks.dtype, _linear)
    return torch.matmul(torch.matmul(rows[:, None], masks), columns[:, None].transpose(-1, -2))


def places_of_keypoints(maps: Any, rois: Any, *, shapes: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
    """Return the keypoints [n, k, 3] of boxes and their scores [n, k]: the place of the largest value of each map
    [n, k, m, m], resized to its box as a product with two matrices of interpolation as large as an image of shapes."""
    import torch

    first = torch.zeros_like(rois[:, 0], dtype=torch.int64)
    width, height = ((rois[:, i + 2] - rois[:, i]).clamp(min=1) for i in (0, 1))
    across, down = width.ceil(), height.ceil()
    rows, columns = max(h for h, _ in shapes), max(w for _, w in shapes)
    vertical, below = _interpolation(first, down.to(torch.int64), rows, maps.shape[-2], maps.dtype, _cubic)
    horizontal, right = _interpolation(first, across.to(torch.int64), columns, maps.shape[-1], maps.dtype, _cubic)
    inside = below[:, :, None] & right[:, None, :]
    wide = torch.matmul(maps, horizontal[:, None].transpose(-1, -2))
    points, scores = [], []
    for keypoint in wide.unbind(1):  # one map of each box at a time: all would be as many images
        values = torch.matmul(vertical, keypoint)
        values = torch.where(inside, values, torch.full_like(values, -float("inf"))).flatten(1)
        place = values.argmax(1)
        x, y = place % columns, torch.div(place, columns, rounding_mode="floor")
        x, y = (x.to(rois.dtype) + 0.5) * (width / across), (y.to(rois.dtype) + 0.5) * (height / down)
        points.append(torch.stack([x + rois[:, 0], y + rois[:, 1], torch.ones_like(x)], 1))
        scores.append(values.amax(1))
    return torch.stack(points, 1), torch.stack(scores, 1)


def _linear(share: Any) -> list[Any]:
    """Return the weights of the points at and behind a place, which is a share behind the first."""
    return [1 - share, share]


def _cubic(share: Any, a: float = -0.75) -> list[Any]:
    """Return the weights of two points before a place and of two behind it: Keys' kernel, with PyTorch's parameter."""
    return keys_weights(share, a)


def _interpolation(
    first: Any, count: Any, size: Any, points: int, dtype: Any, kernel: Callable[[Any], list[Any]]
) -> tuple[Any, Any]:
    """Return matrices [n, size, points], the weights of points that are resized to count pixels from first on, and
    which pixels [n, size] these are; rows of others are zeros."""
    import torch

    pixel = torch.arange(size, device=first.device) - first[:, None]
    count = count[:, None]
    inside = (pixel >= 0) & (pixel < count)
    place = (pixel.to(dtype) + 0.5) * (points / count.to(dtype)) - 0.5
    left = place.floor()
    number = torch.arange(points, device=first.device)
    parts = kernel((place - left)[..., None])
    left = left.to(torch.int64)[..., None] - (len(parts) // 2 - 1)
    weights: Any = sum(part * (number == (left + i).clamp(0, points - 1)).to(dtype) for i, part in enumerate(parts))
    return torch.where(inside[..., None], weights, torch.zeros_like(weights)), inside


@contextmanager
def exportable() -> Iterator[None]:
    """Return a context in which torchvision, if it is imported, calls the functions of this module."""
    vision = sys.modules.get("torchvision")
    if vision is None or not hasattr(vision, "ops") or not hasattr(vision, "models"):
        yield
        return
    roi_heads, transform = vision.models.detection.roi_heads, vision.models.detection.transform
    shapes: list[tuple[int, int]] = []
    forward = roi_heads.RoIHeads.forward

    def noting_shapes(heads: Any, features: Any, proposals: Any, image_shapes: Any, targets: Any = None) -> Any:
        shapes[:] = image_shapes
        return forward(heads, features, proposals, image_shapes, targets)

    replaced = (
        (vision.ops.boxes, "batched_nms", nms_by_class),
        (vision.ops.poolers, "_multiscale_roi_align", regions_of_levels),
        (transform, "paste_masks_in_image", pasted_masks),
        (roi_heads.RoIHeads, "forward", noting_shapes),
        (roi_heads, "heatmaps_to_keypoints", functools.partial(places_of_keypoints, shapes=shapes)),
    )
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, function in replaced:
        setattr(module, name, function)
    try:
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)
