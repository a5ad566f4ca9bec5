"""Images of another size: RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR.

Lives here: where pixels of the result lie on the image, and the two operators on reals.
Not here: convolutions and pools (convolution.py), blocks of space (spatial.py).

Pixel i of n lies at position

    align_corners:       i (size - 1) / (n - 1)      (n > 1)
    half_pixel_centers:  (i + 1/2) size / n - 1/2
    neither:             i size / n

of an image of that size. Positions are computed in float32, as the official kernels do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, int8, int16, int32, uint8, uint16, uint32
from ...core.dtypes import bool as bool_
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from .definition import lite_operator
from .parts import SCRATCH, Part, tiles, whole
from .shapes import ints, refuse, same, spec, text

_f = np.float32


def resized(op: Any, least: int) -> TensorSpec:
    """The output of a resize: x [n, h, w, c] with h and w from `size`, int32 [2], each at least `least`."""
    n, h, w, c = op.x.spec.shape.dims or (None,) * 4
    if 0 in (h, w):
        raise refuse("the image is empty", found=text(op.x.spec.shape), wanted="at least one pixel")
    if not same(op.size.spec.shape[0], 2):
        raise refuse("size is not two numbers", found=text(op.size.spec.shape), wanted="[height, width]")
    sizes = ints(op.size)
    if sizes is None:
        return spec((n, None, None, c), op.x.spec.dtype)
    if min(sizes) < least:
        raise refuse("the size is not positive", found=sizes, wanted=f"at least {least} pixels")
    return spec((n, *sizes, c), op.x.spec.dtype)


def scale_of(op: Any, size: int, out: int) -> Any:
    """Pixels of the image that a pixel of the result steps over, float32."""
    if op.align_corners and out > 1:
        return _f(size - 1) / _f(out - 1)
    return _f(size) / _f(max(out, 1))


def between(op: Any, size: int, out: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each position along one dimension: the pixel before it, the pixel after, and the weight of the latter."""
    at = np.arange(out, dtype=np.float32)
    scale = scale_of(op, size, out)
    at = (at + _f(0.5)) * scale - _f(0.5) if op.half_pixel_centers else at * scale
    before = np.maximum(np.floor(at).astype(np.int64), 0)
    after = np.minimum(np.ceil(at).astype(np.int64), size - 1)
    return np.minimum(before, size - 1), after, at - before.astype(np.float32)


Places = tuple[Any, Any, Any]
"""For each position along a dimension: the pixel before, the pixel after, the weight of the latter."""


def stretched(op: Any, x: Any, size: Any, places: Callable[[Any, int, int], Places], blend: Callable[..., Any],
              itemsize: int) -> Iterator[Part]:  # fmt: skip
    """A resize of x [n, h, w, c] in parts.

    blend: fn(images, rows, columns) -> images, the weights of rows and columns being [rows, 1, 1] and [columns, 1];
    itemsize: of the numbers that it computes with.
    """
    height, width = int(size[0]), int(size[1])
    if not (len(x) and height and width and x.shape[3]):  # the other size may be of any length
        return
    rows, (left, right, across) = places(op, x.shape[1], height), places(op, x.shape[2], width)
    for where in tiles((len(x), height), SCRATCH // max(6 * itemsize * width * x.shape[3], 1)):
        top, bottom, down = (v[where[1]] for v in rows)
        yield where, blend(x[where[0]], (top[:, None], bottom[:, None], down[:, None, None]),
                           (left, right, across[:, None]))  # fmt: skip


def _of_four(x: Any, rows: Places, columns: Places) -> Any:
    left, right, across = columns
    above, below = (x[:, r, left] * (_f(1) - across) + x[:, r, right] * across for r in rows[:2])
    return above * (_f(1) - rows[2]) + below * rows[2]


def nearest(op: Any, size: int, out: int) -> np.ndarray:
    """For each position along one dimension: the pixel it falls on."""
    at = np.arange(out, dtype=np.float32)
    if op.half_pixel_centers:
        at = at + _f(0.5)
    at = at * scale_of(op, size, out)
    pixel = np.floor(at + _f(0.5)) if op.align_corners else np.floor(at)
    return np.clip(pixel.astype(np.int64), 0, size - 1)


@lite_operator("RESIZE_BILINEAR", options="ResizeBilinearOptions", versions=(1, 4))
class ResizeBilinear:
    """An image stretched to a size, each pixel a weighted mean of the four around its position.

    .. math:: y_{pq} = \\sum_{ij} w_{pi} v_{qj} x_{ij}

    x: [n, h, w, c]; size: int32 [2], height and width
    """

    x = Input((float32,), rank=4)
    size = Input((int32,), rank=1)
    y = Output(like="x")
    quantized = "images.resize_bilinear"

    def infer(op: Any) -> TensorSpec:
        if op.half_pixel_centers and op.align_corners:
            raise refuse("half_pixel_centers and align_corners exclude each other", found="both are true",
                         wanted="at most one of them")  # fmt: skip
        return resized(op, 1)

    def parts(op: Any, x: Any, size: Any) -> Iterator[Part]:
        return stretched(op, x, size, between, _of_four, x.itemsize)

    def compute(op: Any, x: Any, size: Any) -> Any:
        return whole(op.parts(x, size), (len(x), *map(int, size), x.shape[3]), x.dtype)


@lite_operator("RESIZE_NEAREST_NEIGHBOR", options="ResizeNearestNeighborOptions", versions=(1, 4))
class ResizeNearestNeighbor:
    """An image stretched to a size, each pixel the one its position falls on. Both flags may be set.

    .. math:: y_{pq} = x_{\\lfloor p h / h' \\rfloor, \\lfloor q w / w' \\rfloor}

    x: [n, h, w, c]; size: int32 [2], height and width
    """

    x = Input((float32, uint8, int8, int16, float16, bfloat16, uint16, int32, uint32, bool_), rank=4)
    size = Input((int32,), rank=1)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return resized(op, 0)

    def parts(op: Any, x: Any, size: Any) -> Iterator[Part]:
        if not (len(x) and size.all() and x.shape[3]):  # the other size may be of any length
            return
        rows, columns = nearest(op, x.shape[1], int(size[0])), nearest(op, x.shape[2], int(size[1]))
        for where in tiles((len(x), len(rows)), SCRATCH // max(x.itemsize * len(columns) * x.shape[3], 1)):
            yield where, x[where[0]][:, rows[where[1]][:, None], columns]

    def compute(op: Any, x: Any, size: Any) -> Any:
        return whole(op.parts(x, size), (len(x), *map(int, size), x.shape[3]), x.dtype)
