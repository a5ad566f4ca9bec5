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


@contextmanager
def exportable() -> Iterator[None]:
    """Return a context in which torchvision, if it is imported, calls the functions of this module."""
    vision = sys.modules.get("torchvision")
    if vision is None or not hasattr(vision, "ops"):
        yield
        return
    boxes, poolers = vision.ops.boxes, vision.ops.poolers
    before = boxes.batched_nms, poolers._multiscale_roi_align
    boxes.batched_nms, poolers._multiscale_roi_align = nms_by_class, regions_of_levels
    try:
        yield
    finally:
        boxes.batched_nms, poolers._multiscale_roi_align = before
