"""Blocks of space moved to depth or to the batch, and back.

Lives here: SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND.
Not here: other changes of shape (shaping.py).
"""

from __future__ import annotations

from typing import Any

from ...core.dtypes import float16, float32, int8, int32, int64, string, uint8, uint32
from ...core.specs import TensorSpec
from ...ops import structural_arrays
from ...ops.definition import Input, Output
from ...ops.structural_shapes import batch_blocks_spec, depth_spec
from .definition import lite_operator
from .shapes import refuse
from .types import ANY

_DEPTH = (float32, int32, int64, int8, uint8)
_BLOCK = (int32, uint32)
_MOVED = tuple(d for d in ANY if d is not string)


def _depth_spec(op: Any, to_depth: bool) -> TensorSpec:
    if op.block_size < 1:
        raise refuse("block_size must be positive", found=op.block_size, wanted="at least 1")
    return depth_spec(op.x.spec, (1, 2, 3), op.block_size, to_depth)


@lite_operator("SPACE_TO_DEPTH")
class SpaceToDepth:
    """Blocks of b x b pixels become one pixel with b² times the channels. x: [n, h, w, c]"""

    x = Input(_DEPTH, rank=4)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return _depth_spec(op, True)

    def compute(op: Any, x: Any) -> Any:
        return structural_arrays.space_to_depth(x, op.block_size)


@lite_operator("DEPTH_TO_SPACE")
class DepthToSpace:
    """The inverse of SPACE_TO_DEPTH. x: [n, h, w, c b²]"""

    x = Input((*_DEPTH, float16), rank=4)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return _depth_spec(op, False)

    def compute(op: Any, x: Any) -> Any:
        return structural_arrays.depth_to_space(x, op.block_size)


@lite_operator("SPACE_TO_BATCH_ND")
class SpaceToBatch:
    """Blocks of space, after zero padding, moved to the batch.

    [n, s..., rest] -> [n prod(block), (s + before + after) / block..., rest]
    """

    x = Input(_MOVED)
    block_shape = Input(_BLOCK, rank=1)
    paddings = Input(_BLOCK)
    y = Output(like="x")
    quantized = "joining.space_to_batch"

    def infer(op: Any) -> TensorSpec:
        return batch_blocks_spec(op.x.spec, op.block_shape, op.paddings, True)

    def compute(op: Any, x: Any, block_shape: Any, paddings: Any) -> Any:
        return structural_arrays.space_to_batch(x, block_shape.tolist(), paddings.tolist())


@lite_operator("BATCH_TO_SPACE_ND")
class BatchToSpace:
    """The inverse of SPACE_TO_BATCH_ND: blocks of the batch moved to space, then cropped."""

    x = Input(_MOVED)
    block_shape = Input(_BLOCK, rank=1)
    crops = Input(_BLOCK)
    y = Output(like="x")
    moves = alike = True

    def infer(op: Any) -> TensorSpec:
        return batch_blocks_spec(op.x.spec, op.block_shape, op.crops, False)

    def compute(op: Any, x: Any, block_shape: Any, crops: Any) -> Any:
        return structural_arrays.batch_to_space(x, block_shape.tolist(), crops.tolist())
