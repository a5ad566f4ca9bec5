"""Padding of tensors; rearrangement of spatial blocks into depth or batch, and its inverses.

Lives here: Pad, MirrorPad, MirrorPadGrad, `pad`; SpaceToDepth, DepthToSpace, SpaceToBatchND, BatchToSpaceND,
`required_space_to_batch_paddings`.
Not here: padding of convolutions and pools (ops/windows.py), other permutations (permutation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index
from ...core.specs import TensorSpec
from .. import array_functions, dispatch, like_device, lod_propagation, math
from ..array_functions import mirror_indices, mirrored, padded
from ..array_shapes import check_paddings, padded_dims
from ..attributes import Attr, at_least, one_of
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import batch_blocks_spec, blocks_size, depth_spec
from ..slots import Input, OperatorDefinition, Output
from .concatenation import stack
from .constants import fill, zeros_like
from .shape_operators import shape_op
from .slices import Slice, getitem
from .type_conversion import cast

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class Pad(OperatorDefinition):
    """Pad a tensor with a constant, by default zero.

    .. math:: output[i] = input[i - before] \\text{ inside, } constant\\_values \\text{ outside}

    paddings: int32 or int64 [rank, 2], before and after each dimension. constant_values: a scalar.
    raises InvalidArgumentError for a negative padding or paddings of another shape
    """

    input = Input()
    paddings = Input(index, rank=2)
    constant_values = Input(like="input", optional=True, rank=0)
    output = Output(like="input")
    no_need_buffer = ("input", "constant_values")
    lod = lod_propagation.first_of("paddings", "input", lambda sizes: not sizes.any())

    def infer(op) -> TensorSpec:
        return TensorSpec(padded_dims(op.input.spec, op.paddings), op.input.spec.dtype)

    def compute(op, input: Any, paddings: Any, constant_values: Any) -> np.ndarray:
        check_paddings(paddings.tolist(), input.shape)
        fill = constant_values if constant_values is not None else b"" if input.dtype == object else 0
        return padded(input, paddings.tolist(), fill)

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Tensor | None]:
        dx = Slice(doutput, getitem(op.paddings, (slice(None), 0)), shape_op(op.input, op.paddings.dtype))
        if op.constant_values is None:
            return dx, None, None
        return dx, None, math.reduce_sum(doutput) - math.reduce_sum(dx)


@operator
class MirrorPad(OperatorDefinition):
    """Pad a tensor by mirroring it at its edges: REFLECT omits the edge elements, SYMMETRIC repeats them.

    .. math:: output[i] = input[|i - before|] \\text{ (REFLECT, before the front)}

    paddings: int32 or int64 [rank, 2], at most the size of the dimension, for REFLECT one less.
    raises InvalidArgumentError for other paddings
    """

    input = Input()
    paddings = Input(index, rank=2)
    output = Output(like="input")
    mode = Attr(
        str, check=one_of("REFLECT", "SYMMETRIC"), doc="REFLECT omits the edge elements, SYMMETRIC repeats them"
    )
    lod = lod_propagation.first_of("paddings", "input", lambda sizes: not sizes.any())

    def infer(op) -> TensorSpec:
        return TensorSpec(padded_dims(op.input.spec, op.paddings, op.mode), op.input.spec.dtype)

    def compute(op, input: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        check_paddings(paddings.tolist(), input.shape, op.mode)
        return mirrored(input, paddings.tolist(), op.mode)

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return MirrorPadGrad(doutput, op.paddings, op.mode), None


@operator
class MirrorPadGrad(OperatorDefinition):
    """Compute the gradient of MirrorPad: add each border element to the element it copies.

    .. math:: output[j] = \\sum_{i \\text{ copy of } j} input[i]
    """

    input = Input()
    paddings = Input(index, rank=2, doc="elements added before and after each dimension")
    output = Output(like="input")
    mode = Attr(
        str, check=one_of("REFLECT", "SYMMETRIC"), doc="REFLECT omits the edge elements, SYMMETRIC repeats them"
    )
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return TensorSpec(padded_dims(op.input.spec, op.paddings, op.mode, -1), op.input.spec.dtype)

    def compute(op, input: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        folded = input
        for axis, (before, after) in enumerate(paddings.tolist()):
            n = folded.shape[axis] - before - after
            sums = like_device.zeros(input, (n, *folded.shape[:axis], *folded.shape[axis + 1 :]), input.dtype)
            indices = like_device.array(input, mirror_indices(n, before, after, op.mode))
            np.add.at(sums, indices, np.moveaxis(folded, axis, 0))
            folded = np.moveaxis(sums, 0, axis)
        return folded

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return MirrorPad(doutput, op.paddings, op.mode), None


@documented_by(Pad, MirrorPad)
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Pad a tensor with a value (CONSTANT) or by reflection (REFLECT, SYMMETRIC). mode: case-insensitive.

    raises ValueError for another mode
    """
    mode, tensor = str(mode).upper(), dispatch.to_tensor(tensor)
    if mode in ("REFLECT", "SYMMETRIC"):
        return MirrorPad(tensor, paddings, mode, name=name)
    if mode != "CONSTANT":
        raise ValueError(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. "
            f"Received `mode` = {mode}"
        )
    if not hasattr(constant_values, "dtype") and not isinstance(constant_values, (str, bytes)) and constant_values == 0:
        constant_values = None
    return Pad(tensor, paddings, constant_values, name=name)


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
    raises InvalidArgumentError if height or width are not multiples of block_size
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
    raises InvalidArgumentError if the channels are not a multiple of block_size squared
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
    raises InvalidArgumentError if a padded dimension is not a multiple of its block
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
    raises InvalidArgumentError if the batch is not a multiple of the block size, or the crops exceed a dimension
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


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the paddings with which blocks divide an image, and the crops that undo what exceeds base_paddings.

    input_shape, block_shape: integers [n]; base_paddings: [n, 2], the least paddings, 0 if None. Both results: [n, 2].
    """
    sizes: Any = dispatch.to_tensor(input_shape)
    blocks: Any = dispatch.to_tensor(block_shape, sizes.dtype)
    base: Any = zeros_like(stack([sizes, sizes], 1)) if base_paddings is None else dispatch.to_tensor(base_paddings)
    base = cast(base, sizes.dtype)
    before, after = base[:, 0], base[:, 1]
    extra = (blocks - (sizes + before + after) % blocks) % blocks
    none = zeros_like(extra)
    return stack([before, after + extra], 1), stack([none, extra], 1)
