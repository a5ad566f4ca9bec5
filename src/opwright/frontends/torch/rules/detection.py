"""Operators of torchvision for detection.

Lives here: rules of the namespace torchvision: suppression of overlapping boxes, pooling of regions. Not here: ATen.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ....core.dtypes import int32, int64
from ....core.errors import UnimplementedError
from ....core.lazy_imports import import_module
from ....ops import array, image, math
from .table import AtenCall, aten, dim_size, tensor, to_nchw, to_nhwc


@aten("torchvision::nms")
def nms(op: AtenCall, boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the indices of the boxes that remain; overlaps are the same for [x, y] as for [y, x]."""
    boxes = tensor(boxes)
    count = array.shape(boxes)[0]
    return array.cast(image.non_max_suppression(boxes, tensor(scores), count, float(iou_threshold)), int64)


@functools.cache
def _takes_the_edge() -> bool:
    """Return whether the installed torchvision continues an image by its edge, as release 0.28 does; by its sources
    samples outside are zero."""
    torch: Any = import_module("torch")
    try:
        image, region = torch.ones(1, 1, 1, 1), torch.tensor([[0.0, 9, 9, 10, 10]])
        sample = torch.ops.torchvision.roi_align(image, region, 1.0, 1, 1, 1, True)
    except (AttributeError, NotImplementedError, RuntimeError):  # no torchvision, or its schemas alone
        return False
    return bool(sample.item())


def _samples(start: Any, size: Any, bins: int, count: int, limit: int) -> tuple[Any, Any, Any, Any]:
    """Return the rows [regions, bins * count] below and above each sample, the upper one's weight, which are taken."""
    dtype = start.dtype
    places = ((np.arange(bins * count) + 0.5) / (bins * count)).astype(dtype.np)
    at = array.expand_dims(start, 1) + array.expand_dims(size, 1) * tensor(places)
    inside = math.logical_and(at >= tensor(-1, dtype), at <= tensor(limit, dtype))
    if _takes_the_edge():
        inside = math.equal(at, at)  # all numbers
    at = math.minimum(math.maximum(at, tensor(0, dtype)), tensor(limit - 1, dtype))
    low = math.floor(at)
    high = math.minimum(low + tensor(1, dtype), tensor(limit - 1, dtype))
    return array.cast(low, int32), array.cast(high, int32), at - low, array.cast(inside, dtype)


@aten("torchvision::roi_align")
def roi_align(
    op: AtenCall,
    x: Any,
    regions: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    """Return the means of bilinear samples in bins [regions, c, h, w] (He et al., Mask R-CNN, 2017)."""
    x, regions = tensor(x), tensor(regions)
    if sampling_ratio <= 0:
        raise UnimplementedError(
            what="roi_align with sampling_ratio <= 0 has as many samples as a region is large", do="sampling_ratio=2"
        )
    height, width = (int(dim_size(x, axis)) for axis in (2, 3))
    dtype = x.dtype
    corners = regions[:, 1:] * tensor(spatial_scale, dtype) - tensor(0.5 if aligned else 0.0, dtype)
    left, top, right, bottom = array.unstack(corners, num=4, axis=1)
    wide, high = right - left, bottom - top
    if not aligned:
        wide, high = math.maximum(wide, tensor(1, dtype)), math.maximum(high, tensor(1, dtype))
    batch = array.reshape(array.cast(regions[:, 0], int32), [-1, 1, 1]) * tensor(height * width, int32)
    y0, y1, y_weight, y_inside = _samples(top, high, pooled_height, sampling_ratio, height)
    x0, x1, x_weight, x_inside = _samples(left, wide, pooled_width, sampling_ratio, width)
    channels = int(dim_size(x, 1))
    flat = array.reshape(to_nhwc(x), [-1, channels])
    total: Any = None
    one = tensor(1, dtype)
    for rows, row_weight in ((y0, one - y_weight), (y1, y_weight)):
        for columns, column_weight in ((x0, one - x_weight), (x1, x_weight)):
            place = batch + array.expand_dims(rows, 2) * tensor(width, int32) + array.expand_dims(columns, 1)
            weight = array.expand_dims(row_weight * y_inside, 2) * array.expand_dims(column_weight * x_inside, 1)
            part = array.gather(flat, place) * array.expand_dims(weight, 3)
            total = part if total is None else total + part
    bins = [-1, pooled_height, sampling_ratio, pooled_width, sampling_ratio, channels]
    return to_nchw(math.reduce_mean(array.reshape(total, bins), [2, 4]))
