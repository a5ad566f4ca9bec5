"""Functions of torchvision that `torch.export` refuses, in a form without branches on the number of boxes.

Lives here: `exportable`, a context in which torchvision's detectors are exported. Not here: rules (rules/detection.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


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
    rows = _interpolation(y0, y1, img_shape[0], masks.shape[-2], masks.dtype)
    columns = _interpolation(x0, x1, img_shape[1], masks.shape[-1], masks.dtype)
    return torch.matmul(torch.matmul(rows[:, None], masks), columns[:, None].transpose(-1, -2))


def _interpolation(first: Any, last: Any, size: Any, points: int, dtype: Any) -> Any:
    """Return matrices [n, size, points]: the weights of points that are resized to the pixels from first to last."""
    import torch

    count = (last - first + 1).clamp(min=1)[:, None]
    pixel = torch.arange(size, device=first.device) - first[:, None]
    inside = (pixel >= 0) & (pixel < count)
    place = ((pixel.to(dtype) + 0.5) * (points / count.to(dtype)) - 0.5).clamp(0, points - 1)
    left = place.floor()
    share = (place - left)[..., None]
    number = torch.arange(points, device=first.device)
    left = left.to(torch.int64)[..., None]
    weights = (1 - share) * (number == left).to(dtype) + share * (number == left + 1).to(dtype)
    return torch.where(inside[..., None], weights, torch.zeros_like(weights))


@contextmanager
def exportable() -> Iterator[None]:
    """Return a context in which torchvision, if it is imported, calls the functions of this module."""
    vision = sys.modules.get("torchvision")
    if vision is None or not hasattr(vision, "ops") or not hasattr(vision, "models"):
        yield
        return
    transform = vision.models.detection.transform
    replaced = (
        (vision.ops.boxes, "batched_nms", nms_by_class),
        (vision.ops.poolers, "_multiscale_roi_align", regions_of_levels),
        (transform, "paste_masks_in_image", pasted_masks),
    )
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, function in replaced:
        setattr(module, name, function)
    try:
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)
