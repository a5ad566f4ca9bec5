"""Windows of images and volumes at any place: `extract_glimpse`, `extract_volume_patches`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, math, random
from ..tensor import Tensor
from ..windows import window


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Return a window of each image at an offset; pixels outside of the image are noise.

    input: float32 [batch, height, width, channels]; size: [height, width] of the windows; offsets: [batch, 2], y and x.
    normalized and centered: an offset is the center of the window, from -1 to 1 over the image; otherwise it is its
    corner, from the corner of the image in units of its size if normalized, in pixels from its center if centered, else
    in pixels from its corner. noise: "uniform" between the least and the greatest element of
    the image, "gaussian" with its mean and deviation, or "zero".
    raises InvalidArgumentError for another noise
    """
    if noise not in ("uniform", "gaussian", "zero"):
        raise InvalidArgumentError(
            op="image.extract_glimpse", what="unknown noise", found=noise, wanted="uniform, gaussian or zero"
        )
    x: Any = dispatch.to_tensor(input)
    height, width = array.unstack(array.cast(size, dtypes.int32), num=2)
    places: Any = array.cast(offsets, dtypes.float32)
    image_size = array.cast(array.shape(x)[1:3], dtypes.float32)
    half = array.cast(array.stack([height, width]), dtypes.float32) / 2.0
    if normalized and centered:
        places = (places + 1.0) * image_size / 2.0 - half
    elif normalized:
        places = places * image_size
    elif centered:
        places = places + image_size / 2.0
    corner = array.cast(places, dtypes.int32)
    rows = array.expand_dims(corner[:, 0], 1) + array.range(height)
    columns = array.expand_dims(corner[:, 1], 1) + array.range(width)
    sizes = array.shape(x)
    count = sizes[0]
    clipped = [math.clip_by_value(i, 0, sizes[axis] - 1) for axis, i in ((1, rows), (2, columns))]
    batch = array.reshape(array.range(count), [-1, 1, 1])
    grid = [
        array.broadcast_to(each, array.stack([count, height, width]))
        for each in (batch, array.expand_dims(clipped[0], 2), array.expand_dims(clipped[1], 1))
    ]
    pixels = array.gather_nd(x, array.stack(grid, 3))
    inside = math.logical_and(
        array.expand_dims(math.equal(rows, clipped[0]), 2), array.expand_dims(math.equal(columns, clipped[1]), 1)
    )
    return array.where(array.expand_dims(inside, 3), pixels, _noise(x, noise, array.shape(pixels)), name=name)


def _noise(images: Any, kind: str, shape: Any) -> Any:
    if kind == "zero":
        return array.zeros(shape, images.dtype)
    axes = [1, 2, 3]
    if kind == "uniform":
        least, greatest = (f(images, axes, keepdims=True) for f in (math.reduce_min, math.reduce_max))
        return least + random.uniform(shape, dtype=images.dtype) * (greatest - least)
    mean = math.reduce_mean(images, axes, keepdims=True)
    deviation = math.reduce_std(images, axes, keepdims=True)
    return mean + random.normal(shape, dtype=images.dtype) * deviation


def extract_volume_patches(
    input: Any, ksizes: Sequence[int], strides: Sequence[int], padding: str, name: str | None = None
) -> Tensor:
    """Return the patches of a grid of windows of volumes [batch, depth, height, width, channels].

    ksizes, strides: [1, depth, height, width, 1]; padding: "VALID", or "SAME" with zeros. Elements of a patch are the
    channels of the result. raises InvalidArgumentError for other sizes and unknown ones
    """
    x: Any = dispatch.to_tensor(input)
    sizes = [None] * 3 if x.shape.rank is None else x.shape.as_list()[1:4]
    for what, values in (("ksizes", ksizes), ("strides", strides)):
        if len(values) != 5 or values[0] != 1 or values[4] != 1 or min(values) < 1:
            raise InvalidArgumentError(
                op="extract_volume_patches", what=f"{what} are [1, depth, height, width, 1]", found=list(values)
            )
    if x.shape.rank != 5 or None in sizes or padding not in ("SAME", "VALID"):
        raise InvalidArgumentError(
            op="extract_volume_patches",
            what="volumes of rank 5 and known sizes, padded SAME or VALID, are taken",
            found=(x.shape, padding),
        )
    windows = [window(n, k, s, 1, padding, (0, 0)) for n, k, s in zip(sizes, ksizes[1:4], strides[1:4])]
    x = array.pad(x, [[0, 0], *[[w.before, w.after] for w in windows], [0, 0]])
    for axis, (w, k, s) in enumerate(zip(windows, ksizes[1:4], strides[1:4])):
        places = np.arange(w.out)[:, None] * s + np.arange(k)
        x = array.gather(x, places, axis=1 + 2 * axis)
    patches = array.transpose(x, [0, 1, 3, 5, 2, 4, 6, 7])
    depth = None if x.shape[-1] is None else x.shape[-1] * int(np.prod(ksizes))
    shape = array.concat([array.shape(patches)[:4], [-1 if depth is None else depth]], 0)
    return array.reshape(patches, shape, name=name)
