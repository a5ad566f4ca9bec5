"""Blocks of space moved to depth or to the batch, and back.

Lives here: SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND.
Not here: other changes of shape (shaping.py).
"""

from __future__ import annotations

import math
from typing import Any

from ...core.dtypes import float16, float32, int8, int32, int64, string, uint8, uint32
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops import structural_arrays
from ...ops.definition import Input, Output
from .definition import lite_operator
from .shapes import ints, refuse, same, spec, text
from .types import ANY

_DEPTH = (float32, int32, int64, int8, uint8)
_BLOCK = (int32, uint32)
_MOVED = tuple(d for d in ANY if d is not string)


def _block(op: Any) -> int:
    if op.block_size < 1:
        raise refuse("block_size must be positive", found=op.block_size, wanted="at least 1")
    return int(op.block_size)


def _divided(size: int | None, by: int, what: str, dims: Any) -> int | None:
    if size is not None and size % by:
        raise refuse(
            f"{what} is not a multiple of the block",
            found={"input": text(dims), "block": by},
            wanted="a size that the block divides",
        )
    return None if size is None else size // by


def _times(size: int | None, by: int) -> int | None:
    return None if size is None else size * by


@lite_operator("SPACE_TO_DEPTH")
class SpaceToDepth:
    """Blocks of b x b pixels become one pixel with b² times the channels. x: [n, h, w, c]"""

    x = Input(_DEPTH, rank=4)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        b, dims = _block(op), op.x.spec.shape.dims
        n, h, w, c = dims or (None,) * 4
        return spec(
            (n, _divided(h, b, "the height", dims), _divided(w, b, "the width", dims), _times(c, b * b)),
            op.x.spec.dtype,
        )

    def compute(op: Any, x: Any) -> Any:
        return structural_arrays.space_to_depth(x, op.block_size)


@lite_operator("DEPTH_TO_SPACE")
class DepthToSpace:
    """The inverse of SPACE_TO_DEPTH. x: [n, h, w, c b²]"""

    x = Input((*_DEPTH, float16), rank=4)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        b, dims = _block(op), op.x.spec.shape.dims
        n, h, w, c = dims or (None,) * 4
        return spec((n, _times(h, b), _times(w, b), _divided(c, b * b, "the depth", dims)), op.x.spec.dtype)

    def compute(op: Any, x: Any) -> Any:
        return structural_arrays.depth_to_space(x, op.block_size)


def _blocks(op: Any, pairs: Any, what: str) -> tuple[list[int] | None, list[int] | None]:
    """The known block sizes and pairs, after checking them against the input."""
    rank, m = op.x.spec.shape.rank, op.block_shape.spec.shape[0]
    shape = pairs.spec.shape
    if rank is not None and m is not None and m + 1 > rank:
        raise refuse(
            "block_shape has more entries than the input has spatial dimensions",
            found={"input": text(op.x.spec.shape), "block_shape": m},
            wanted="one entry for each spatial dimension",
        )
    if shape.rank not in (None, 2) or not same(shape[0], m) or not same(shape[1], 2):
        raise refuse(f"{what} is no list of pairs", found=text(shape), wanted=f"[{m},2]")
    block, flat = ints(op.block_shape), ints(pairs)
    if block is not None and min(block, default=1) < 1:
        raise refuse("block_shape must be positive", found=block, wanted="numbers of at least 1")
    if flat is not None and min(flat, default=0) < 0:
        raise refuse(f"{what} must not be negative", found=flat, wanted="numbers of at least 0")
    return block, flat


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
        dims = op.x.spec.shape.dims
        block, pads = _blocks(op, op.paddings, "paddings")
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        m = op.block_shape.spec.shape[0]
        if block is None or pads is None:
            return spec((None, *(None,) * (m or 0), *dims[(m or 0) + 1 :]) if m is not None else None, op.x.spec.dtype)
        space = [
            _divided(None if d is None else d + a + b, k, "a padded size", dims)
            for d, k, a, b in zip(dims[1:], block, pads[::2], pads[1::2])
        ]
        return spec((_times(dims[0], math.prod(block)), *space, *dims[1 + len(block) :]), op.x.spec.dtype)

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
        dims = op.x.spec.shape.dims
        block, crops = _blocks(op, op.crops, "crops")
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        m = op.block_shape.spec.shape[0]
        if block is None or crops is None:
            return spec((None, *(None,) * (m or 0), *dims[(m or 0) + 1 :]) if m is not None else None, op.x.spec.dtype)
        space = []
        for d, k, a, b in zip(dims[1:], block, crops[::2], crops[1::2]):
            if d is not None and a + b > d * k:
                raise refuse("the crops are larger than the image", found=crops, wanted=f"at most {d * k} together")
            space.append(None if d is None else d * k - a - b)
        return spec(
            (_divided(dims[0], math.prod(block), "the batch", dims), *space, *dims[1 + len(block) :]), op.x.spec.dtype
        )

    def compute(op: Any, x: Any, block_shape: Any, crops: Any) -> Any:
        return structural_arrays.batch_to_space(x, block_shape.tolist(), crops.tolist())
