"""Blocks of space moved into depth or batch, and back.

Lives here: SpaceToDepth, DepthToSpace, SpaceToBatchND, BatchToSpaceND.  Not here: other movements (moving.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from .. import dispatch, structural_arrays
from ..attributes import Attr, at_least, one_of
from ..definition import Input, Output, operator
from .constants import fill

LAYOUT = one_of("NHWC", "NCHW")


def _image_dims(op: Any) -> tuple[list[int | None], int, int, int]:
    """The sizes of a batch of images and the places of height, width and channels among them."""
    dims = op.input.spec.shape.with_rank(4).as_list()
    return (dims, 1, 2, 3) if op.data_format == "NHWC" else (dims, 2, 3, 1)


def _on_channels_last(move: Callable[[Any, int], Any], op: Any, images: Any) -> Any:
    """Move blocks of images in the operator's data format."""
    if op.data_format == "NHWC":
        return move(images, op.block_size)
    return np.moveaxis(move(np.moveaxis(images, 1, -1), op.block_size), -1, 1)


@operator
class SpaceToDepth:
    """Each block of block_size by block_size pixels becomes one pixel with all their channels.

    .. math:: output[n, y, x, (b_y s + b_x) c + k] = input[n, y s + b_y, x s + b_x, k]

    input: [n, h, w, c] (NHWC) or [n, c, h, w] (NCHW).
    raises InvalidArgumentError if height or width are no multiples of block_size
    """

    input = Input(rank=4)
    output = Output(like="input")
    block_size = Attr(int, check=at_least(2))
    data_format = Attr(str, default="NHWC", check=LAYOUT)

    def infer(op) -> Any:
        dims, h, w, c = _image_dims(op)
        for i in (h, w):
            size = dims[i]
            if size is not None and size % op.block_size:
                raise InvalidArgumentError(
                    what=f"dimension {i} of size {size} should be divisible by block_size {op.block_size}",
                    found=op.input.spec.short(),
                )
            dims[i] = None if size is None else size // op.block_size
        dims[c] = None if dims[c] is None else dims[c] * op.block_size**2
        return op.input.spec.with_shape(dims)

    def compute(op, input) -> Any:
        return _on_channels_last(structural_arrays.space_to_depth, op, input)

    def gradient(op, doutput) -> Any:
        return DepthToSpace(doutput, op.block_size, op.data_format)


@operator
class DepthToSpace:
    """The channels of each pixel spread over a block of block_size by block_size pixels: the inverse of SpaceToDepth.

    .. math:: output[n, y s + b_y, x s + b_x, k] = input[n, y, x, (b_y s + b_x) c + k]

    input: [n, h, w, c s^2] (NHWC) or [n, c s^2, h, w] (NCHW).
    raises InvalidArgumentError if the channels are no multiple of block_size squared
    """

    input = Input(rank=4)
    output = Output(like="input")
    block_size = Attr(int, check=at_least(2))
    data_format = Attr(str, default="NHWC", check=LAYOUT)

    def infer(op) -> Any:
        dims, h, w, c = _image_dims(op)
        depth = dims[c]
        if depth is not None and depth % op.block_size**2:
            raise InvalidArgumentError(
                what=f"depth dimension {depth} should be divisible by block_size squared, {op.block_size**2}",
                found=op.input.spec.short(),
            )
        dims[c] = None if depth is None else depth // op.block_size**2
        for i in (h, w):
            dims[i] = None if dims[i] is None else dims[i] * op.block_size
        return op.input.spec.with_shape(dims)

    def compute(op, input) -> Any:
        return _on_channels_last(structural_arrays.depth_to_space, op, input)

    def gradient(op, doutput) -> Any:
        return SpaceToDepth(doutput, op.block_size, op.data_format)


space_to_depth = SpaceToDepth.as_function("space_to_depth")
depth_to_space = DepthToSpace.as_function("depth_to_space")


def _block_spec(op: Any, borders: Any, to_batch: bool) -> Any:
    """The output's spec. borders: paddings or crops."""
    spec, form, blocks = op.input.spec, borders.spec.shape, op.block_shape.constant
    m = op.block_shape.spec.shape[0] if op.block_shape.spec.shape.rank else None
    if not form.is_compatible_with((m, 2)):
        raise InvalidArgumentError(
            what=f"{borders_name(to_batch)} must have a row of 2 for each of block_shape's {m} sizes", found=form
        )
    dims = spec.shape.dims
    if dims is None:
        return spec.with_shape(UNKNOWN)
    if m is None:
        return spec.with_shape([None] * len(dims))
    if len(dims) < m + 1:
        raise InvalidArgumentError(what=f"input rank should be >= {m + 1} instead of {len(dims)}", found=spec.short())
    out = [None] * (m + 1) + list(dims[m + 1 :])
    if blocks is None:
        return spec.with_shape(out)
    sizes = blocks.tolist()
    if any(b < 1 for b in sizes):
        raise InvalidArgumentError(what="block_shape values must be positive", found=sizes)
    block = math.prod(sizes)
    if dims[0] is not None:
        if not to_batch and dims[0] % block:
            raise InvalidArgumentError(
                what=f"Batch dimension {dims[0]} should be divisible by {block}, the product of block_shape",
                found=spec.short(),
            )
        out[0] = dims[0] * block if to_batch else dims[0] // block
    if borders.constant is not None:
        for i, (size, b, (before, after)) in enumerate(zip(dims[1 : m + 1], sizes, borders.constant.tolist()), 1):
            if before < 0 or after < 0:
                raise InvalidArgumentError(what=f"{borders_name(to_batch)} cannot be negative", found=[before, after])
            if size is not None:
                out[i] = _block_size(i, size, b, before, after, to_batch)
    return spec.with_shape(out)


def borders_name(to_batch: bool) -> str:
    """What the third input is called."""
    return "paddings" if to_batch else "crops"


def _block_size(i: int, size: int, block: int, before: int, after: int, to_batch: bool) -> int:
    if not to_batch:
        if size * block < before + after:
            raise InvalidArgumentError(
                what=f"crops {before} and {after} are more than dimension {i} has, {size * block}"
            )
        return size * block - before - after
    if (size + before + after) % block:
        raise InvalidArgumentError(
            what=f"padded dimension {i} of size {size + before + after} is not divisible by its block {block}"
        )
    return (size + before + after) // block


@operator
class SpaceToBatchND:
    """The spatial dimensions, padded with zeros and cut into blocks; each place in a block becomes a batch entry.

    .. math:: output[(b_1 s_2 + b_2) n + k, y, x] = padded[k, y s_1 + b_1, x s_2 + b_2]

    input: [n, spatial dimensions, rest]; block_shape: [m]; paddings: [m, 2].
    raises InvalidArgumentError if a padded dimension is no multiple of its block
    """

    input = Input()
    block_shape = Input(index, rank=1)
    paddings = Input(index, rank=2)
    output = Output(like="input")
    views = {"output": "input"}
    lod = "vanishes"

    def infer(op) -> Any:
        return _block_spec(op, op.paddings, True)

    def compute(op, input, block_shape, paddings) -> Any:
        sizes, pairs = block_shape.tolist(), paddings.tolist()
        for i, (d, b, (before, after)) in enumerate(zip(input.shape[1:], sizes, pairs), 1):
            _block_size(i, d, b, before, after, True)
        return structural_arrays.space_to_batch(input, sizes, pairs)

    def gradient(op, doutput) -> Any:
        return BatchToSpaceND(doutput, op.block_shape, op.paddings), None, None


@operator
class BatchToSpaceND:
    """Batch entries put back as the places of blocks, then cropped: the inverse of SpaceToBatchND.

    .. math:: output[k, y s_1 + b_1 - c_1, x s_2 + b_2 - c_2] = input[(b_1 s_2 + b_2) n + k, y, x]

    input: [n prod(block_shape), spatial dimensions, rest]; block_shape: [m]; crops: [m, 2].
    raises InvalidArgumentError if the batch is no multiple of the blocks, or the crops are larger than what there is
    """

    input = Input()
    block_shape = Input(index, rank=1)
    crops = Input(index, rank=2)
    output = Output(like="input")
    views = {"output": "input"}
    lod = "vanishes"

    def infer(op) -> Any:
        return _block_spec(op, op.crops, False)

    def compute(op, input, block_shape, crops) -> Any:
        sizes, pairs = block_shape.tolist(), crops.tolist()
        for i, (d, b, (before, after)) in enumerate(zip(input.shape[1:], sizes, pairs), 1):
            _block_size(i, d, b, before, after, False)
        return structural_arrays.batch_to_space(input, sizes, pairs)

    def gradient(op, doutput) -> Any:
        return SpaceToBatchND(doutput, op.block_shape, op.crops), None, None


space_to_batch_nd = SpaceToBatchND.as_function("space_to_batch_nd")
space_to_batch = space_to_batch_nd


def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Any:
    """See BatchToSpaceND. block_shape: one for each of the crops, or one number for all."""
    block_shape = dispatch.to_tensor(block_shape)
    if block_shape.shape.rank == 0:
        crops = dispatch.to_tensor(crops)
        block_shape = fill([crops.shape[0]], block_shape)
    return BatchToSpaceND(input, block_shape, crops, name=name)
