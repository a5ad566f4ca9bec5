"""Rearrangement of spatial blocks into depth or batch, and its inverses.

Lives here: SpaceToDepth, DepthToSpace, SpaceToBatchND, BatchToSpaceND.  Not here: other permutations (permutation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index
from .. import array_functions, dispatch
from ..attributes import Attr, at_least, one_of
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..structural_shapes import batch_blocks_spec, blocks_size, depth_spec
from .constants import fill

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor

LAYOUT = one_of("NHWC", "NCHW")


def _depth_spec(op: Any, to_depth: bool) -> TensorSpec:
    return depth_spec(op.input.spec, (1, 2, 3) if op.data_format == "NHWC" else (2, 3, 1), op.block_size, to_depth)


def _on_channels_last(move: Callable[[Any, int], np.ndarray], op: Any, images: Any) -> np.ndarray:
    """Apply a rearrangement of NHWC images to images in the operator's data format."""
    if op.data_format == "NHWC":
        return move(images, op.block_size)
    return np.moveaxis(move(np.moveaxis(images, 1, -1), op.block_size), -1, 1)


@operator
class SpaceToDepth(OperatorDefinition):
    """Rearrange each block of block_size by block_size pixels into the channels of one pixel.

    .. math:: output[n, y, x, (b_y s + b_x) c + k] = input[n, y s + b_y, x s + b_x, k]

    input: [n, h, w, c] (NHWC) or [n, c, h, w] (NCHW).
    raises InvalidArgumentError if height or width are no multiples of block_size
    """

    input = Input(rank=4)
    output = Output(like="input")
    block_size = Attr(int, check=at_least(2))
    data_format = Attr(str, default="NHWC", check=LAYOUT)

    def infer(op) -> TensorSpec:
        return _depth_spec(op, True)

    def compute(op, input: Any) -> np.ndarray:
        return _on_channels_last(array_functions.space_to_depth, op, input)

    def gradient(op, doutput: Any) -> Tensor:
        return DepthToSpace(doutput, op.block_size, op.data_format)


@operator
class DepthToSpace(OperatorDefinition):
    """Rearrange the channels of each pixel into a block of pixels: the inverse of SpaceToDepth.

    .. math:: output[n, y s + b_y, x s + b_x, k] = input[n, y, x, (b_y s + b_x) c + k]

    input: [n, h, w, c s^2] (NHWC) or [n, c s^2, h, w] (NCHW).
    raises InvalidArgumentError if the channels are no multiple of block_size squared
    """

    input = Input(rank=4)
    output = Output(like="input")
    block_size = Attr(int, check=at_least(2))
    data_format = Attr(str, default="NHWC", check=LAYOUT)

    def infer(op) -> TensorSpec:
        return _depth_spec(op, False)

    def compute(op, input: Any) -> np.ndarray:
        return _on_channels_last(array_functions.depth_to_space, op, input)

    def gradient(op, doutput: Any) -> Tensor:
        return SpaceToDepth(doutput, op.block_size, op.data_format)


space_to_depth: signatures.SpaceToDepth = SpaceToDepth.as_function("space_to_depth")
depth_to_space: signatures.DepthToSpace = DepthToSpace.as_function("depth_to_space")


@operator
class SpaceToBatchND(OperatorDefinition):
    """Zero-pad the spatial dimensions and divide them into blocks; each position in a block becomes a batch entry.

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

    def infer(op) -> TensorSpec:
        return batch_blocks_spec(op.input.spec, op.block_shape, op.paddings, True)

    def compute(op, input: Any, block_shape: Any, paddings: Any) -> np.ndarray:
        sizes, pairs = block_shape.tolist(), paddings.tolist()
        for i, (d, b, (before, after)) in enumerate(zip(input.shape[1:], sizes, pairs), 1):
            blocks_size(i, d, b, before, after, True)
        return array_functions.space_to_batch(input, sizes, pairs)

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None]:
        return BatchToSpaceND(doutput, op.block_shape, op.paddings), None, None


@operator
class BatchToSpaceND(OperatorDefinition):
    """Rearrange batch entries into positions of spatial blocks, then crop: the inverse of SpaceToBatchND.

    .. math:: output[k, y s_1 + b_1 - c_1, x s_2 + b_2 - c_2] = input[(b_1 s_2 + b_2) n + k, y, x]

    input: [n prod(block_shape), spatial dimensions, rest]; block_shape: [m]; crops: [m, 2].
    raises InvalidArgumentError if the batch is no multiple of the block size, or the crops exceed a dimension
    """

    input = Input()
    block_shape = Input(index, rank=1)
    crops = Input(index, rank=2)
    output = Output(like="input")
    views = {"output": "input"}
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return batch_blocks_spec(op.input.spec, op.block_shape, op.crops, False)

    def compute(op, input: Any, block_shape: Any, crops: Any) -> np.ndarray:
        sizes, pairs = block_shape.tolist(), crops.tolist()
        for i, (d, b, (before, after)) in enumerate(zip(input.shape[1:], sizes, pairs), 1):
            blocks_size(i, d, b, before, after, False)
        output: np.ndarray = array_functions.batch_to_space(input, sizes, pairs)
        return output

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None]:
        return SpaceToBatchND(doutput, op.block_shape, op.crops), None, None


space_to_batch_nd: signatures.SpaceToBatchND = SpaceToBatchND.as_function("space_to_batch_nd")
space_to_batch = space_to_batch_nd


@documented_by(BatchToSpaceND)
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Move blocks of batch entries to spatial dimensions, and crop. block_shape: a number per crop, or one for all."""
    block_shape = dispatch.to_tensor(block_shape)
    if block_shape.shape.rank == 0:
        crops = dispatch.to_tensor(crops)
        block_shape = fill([crops.shape[0]], block_shape)
    return BatchToSpaceND(input, block_shape, crops, name=name)
