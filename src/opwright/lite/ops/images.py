"""Images resized, and blocks of space moved: RESIZE_BILINEAR to BATCH_TO_SPACE_ND.

Lives here: RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR on reals, going over an image in parts; SPACE_TO_DEPTH,
DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND.
Not here: where pixels of the result lie on the image (opwright/scalar/fixed_point_layers.py), how blocks move
(opwright/ops/array_functions.py), convolutions and pools (convolution.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, int8, int16, int32, int64, string, uint8, uint16, uint32
from ...core.dtypes import bool as bool_
from ...core.specs import TensorSpec
from ...ops import array_functions
from ...ops.shape_inference import batch_blocks_spec, depth_spec
from ...ops.slots import Input, Output
from ...scalar.fixed_point_layers import Places, Sampling
from .definition import LiteDefinition, lite_operator
from .shapes import ints, refuse, same, spec, text
from .tiling import SCRATCH, Part, merge_parts, tiles
from .types import ANY

_f = np.float32


def resized(op: Any, minimum: int) -> TensorSpec:
    """Infer the result of resizing x [n, h, w, c] to `size`, int32 [2], whose elements are at least `minimum`."""
    n, h, w, c = op.x.spec.shape.dims or (None,) * 4
    if 0 in (h, w):
        raise refuse("the image is empty", found=text(op.x.spec.shape), wanted="at least one pixel")
    if not same(op.size.spec.shape[0], 2):
        raise refuse("size is not two numbers", found=text(op.size.spec.shape), wanted="[height, width]")
    sizes = ints(op.size)
    if sizes is None:
        return spec((n, None, None, c), op.x.spec.dtype)
    if min(sizes) < minimum:
        raise refuse("the size is not positive", found=sizes, wanted=f"at least {minimum} pixels")
    return spec((n, *sizes, c), op.x.spec.dtype)


def sampling(op: Any, size: int, out: int) -> Sampling:
    """Return the sampling positions along one dimension, as the operator's options specify."""
    return Sampling(size, out, op.align_corners, op.half_pixel_centers)


def stretched(
    op: Any, x: Any, size: Any, places: Callable[[Sampling], Places], blend: Callable[..., Any], itemsize: int
) -> Iterator[Part]:
    """Resize x [n, h, w, c] in parts.

    blend: fn(images, rows, columns) -> images, the weights of rows and columns being [rows, 1, 1] and [columns, 1];
    itemsize: of the numbers that it computes with.
    """
    height, width = int(size[0]), int(size[1])
    if not (len(x) and height and width and x.shape[3]):  # the other size may be of any length
        return
    rows, (left, right, across) = (places(sampling(op, *n)) for n in ((x.shape[1], height), (x.shape[2], width)))
    for where in tiles((len(x), height), SCRATCH // max(6 * itemsize * width * x.shape[3], 1)):
        top, bottom, down = (v[where[1]] for v in rows)
        yield (
            where,
            blend(x[where[0]], (top[:, None], bottom[:, None], down[:, None, None]), (left, right, across[:, None])),
        )


def _of_four(x: np.ndarray, rows: Places, columns: Places) -> np.ndarray:
    left, right, across = columns
    above, below = (x[:, r, left] * (_f(1) - across) + x[:, r, right] * across for r in rows[:2])
    result: np.ndarray = above * (_f(1) - rows[2]) + below * rows[2]
    return result


def from_parts(op: Any, x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Compute a resized image as its parts."""
    return merge_parts(op.parts(x, size), (len(x), *map(int, size), x.shape[3]), x.dtype)


@lite_operator("RESIZE_BILINEAR")
class ResizeBilinearOp(LiteDefinition):
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
            raise refuse(
                "half_pixel_centers and align_corners exclude each other",
                found="both are true",
                wanted="at most one of them",
            )
        return resized(op, 1)

    def parts(op: Any, x: np.ndarray, size: np.ndarray) -> Iterator[Part]:
        return stretched(op, x, size, Sampling.between, _of_four, x.itemsize)

    compute = from_parts


@lite_operator("RESIZE_NEAREST_NEIGHBOR")
class ResizeNearestNeighborOp(LiteDefinition):
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

    def parts(op: Any, x: np.ndarray, size: np.ndarray) -> Iterator[Part]:
        if not (len(x) and size.all() and x.shape[3]):  # the other size may be of any length
            return
        rows, columns = (sampling(op, n, int(out)).nearest() for n, out in zip(x.shape[1:3], size))
        for where in tiles((len(x), len(rows)), SCRATCH // max(x.itemsize * len(columns) * x.shape[3], 1)):
            yield where, x[where[0]][:, rows[where[1]][:, None], columns]

    compute = from_parts


_DEPTH = (float32, int32, int64, int8, uint8)
_BLOCK = (int32, uint32)
_MOVED = tuple(d for d in ANY if d is not string)


def _depth_spec(op: Any, to_depth: bool) -> TensorSpec:
    if op.block_size < 1:
        raise refuse("block_size must be positive", found=op.block_size, wanted="at least 1")
    return depth_spec(op.x.spec, (1, 2, 3), op.block_size, to_depth)


@lite_operator("SPACE_TO_DEPTH")
class SpaceToDepthOp(LiteDefinition):
    """Blocks of b x b pixels become one pixel with b² times the channels. x: [n, h, w, c]"""

    x = Input(_DEPTH, rank=4)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return _depth_spec(op, True)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return array_functions.space_to_depth(x, op.block_size)


@lite_operator("DEPTH_TO_SPACE")
class DepthToSpaceOp(LiteDefinition):
    """The inverse of SPACE_TO_DEPTH. x: [n, h, w, c b²]"""

    x = Input((*_DEPTH, float16), rank=4)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return _depth_spec(op, False)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return array_functions.depth_to_space(x, op.block_size)


@lite_operator("SPACE_TO_BATCH_ND")
class SpaceToBatchOp(LiteDefinition):
    """Blocks of space, after zero padding, moved to the batch.

    [n, s..., rest] -> [n prod(block), (s + before + after) / block..., rest]
    """

    x = Input(_MOVED)
    block_shape = Input(_BLOCK, rank=1)
    paddings = Input(_BLOCK)
    y = Output(like="x")
    quantized = "concatenation.space_to_batch"

    def infer(op: Any) -> TensorSpec:
        return batch_blocks_spec(op.x.spec, op.block_shape, op.paddings, True)

    def compute(op: Any, x: np.ndarray, block_shape: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        return array_functions.space_to_batch(x, block_shape.tolist(), paddings.tolist())


@lite_operator("BATCH_TO_SPACE_ND")
class BatchToSpaceOp(LiteDefinition):
    """The inverse of SPACE_TO_BATCH_ND: blocks of the batch moved to space, then cropped."""

    x = Input(_MOVED)
    block_shape = Input(_BLOCK, rank=1)
    crops = Input(_BLOCK)
    y = Output(like="x")
    moves = alike = True

    def infer(op: Any) -> TensorSpec:
        return batch_blocks_spec(op.x.spec, op.block_shape, op.crops, False)

    def compute(op: Any, x: np.ndarray, block_shape: np.ndarray, crops: np.ndarray) -> np.ndarray:
        return array_functions.batch_to_space(x, block_shape.tolist(), crops.tolist())
