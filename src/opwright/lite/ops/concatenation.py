"""Tensors joined, split, repeated, padded and turned round: CONCATENATION to REVERSE_V2.

Lives here: these operators.  Not here: slices and gathers (slices.py), blocks of space (images.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, int4, int8, int16, int32, int64, string, uint8, uint32
from ...core.dtypes import bool as bool_
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.array_functions import mirrored, padded
from ...ops.array_shapes import concatenated_dims, padded_dims, stacked_dims, unstacked_dims
from ...ops.index_shapes import equal_part_dims
from ...ops.shape_inference import part_sizes
from ...ops.slots import Input, Output
from .definition import LiteDefinition, lite_operator
from .shapes import axes_in, axis_in, check_one, ints, refuse, same, spec
from .tiling import Part, fuse
from .types import ANY, INDEX, NUMBER

_COMMON = (float32, int32, int64, int8, uint8, int16)
_PADDED = (*_COMMON, float16, bfloat16, bool_)
_WIDTHS = (*INDEX, int8, int16, bool_)


@lite_operator("CONCATENATION")
class ConcatenationOp(LiteDefinition):
    """Tensors one after the other along an axis; their other sizes agree."""

    xs = Input((*_PADDED, uint32, int4, string), repeated=True)
    y = Output(like="xs")
    quantized = "concatenation.concatenation"

    def infer(op: Any) -> TensorSpec:
        if not op.xs:
            raise refuse("CONCATENATION has no inputs", wanted="at least one")
        dtype = op.xs[0].spec.dtype
        if op.fused_activation_function != "NONE" and not dtype.is_floating:
            raise refuse(
                "a fused activation on a concatenation of no floats",
                found=dtype.name,
                wanted="float32, or no fused activation",
            )
        return spec(concatenated_dims(op.xs, op.axis, "xs"), dtype)

    def parts(op: Any, xs: Sequence[np.ndarray]) -> Iterator[Part]:
        for where, x in joined(xs, op.axis):
            yield where, x if op.fused_activation_function == "NONE" else fuse(op, x.copy())

    def compute(op: Any, xs: Sequence[np.ndarray]) -> np.ndarray:
        return fuse(op, np.concatenate(xs, op.axis))


def joined(arrays: Sequence[np.ndarray], axis: int) -> Iterator[Part]:
    """Concatenate arrays along an axis; yield them as parts of the result."""
    before, first = (slice(None),) * axis_in(axis, arrays[0].ndim), 0
    for array in arrays:
        last = first + array.shape[axis]
        yield (*before, slice(first, last)), array
        first = last


@lite_operator("PACK")
class PackOp(LiteDefinition):
    """Tensors of one shape stacked along a new axis."""

    xs = Input((*_PADDED, uint32), repeated=True)
    y = Output(like="xs")
    quantized = "concatenation.pack"

    def infer(op: Any) -> TensorSpec:
        if not op.xs or op.values_count not in (0, len(op.xs)):
            raise refuse(
                "values_count is not the number of inputs", found=op.values_count, wanted=len(op.xs) or "at least 1"
            )
        return spec(stacked_dims(op.xs, op.axis, "xs"), op.xs[0].spec.dtype)

    def parts(op: Any, xs: Sequence[np.ndarray]) -> Iterator[Part]:
        axis = axis_in(op.axis, xs[0].ndim + 1)
        return joined([np.expand_dims(x, axis) for x in xs], axis)

    def compute(op: Any, xs: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack(xs, op.axis)


@lite_operator("UNPACK")
class UnpackOp(LiteDefinition):
    """The slices along an axis, without it; num is their number."""

    x = Input(_PADDED)
    ys = Output(like="x", repeated=True)
    moves = alike = True

    def infer(op: Any) -> list[TensorSpec]:
        dims, dtype = op.x.spec.shape.dims, op.x.spec.dtype
        _check_count(op.num, "num")
        if dims is None:
            return [TensorSpec(UNKNOWN, dtype)] * op.num
        return [spec(unstacked_dims(op.x.spec, op.axis, op.num), dtype)] * op.num

    def compute(op: Any, x: np.ndarray) -> list[np.ndarray]:
        return list(np.moveaxis(x, op.axis, 0))


MAX_PARTS = 1 << 16


def _check_count(n: int, name: str) -> None:
    if not 0 <= n <= MAX_PARTS:
        raise refuse(f"{name} is out of range", found=n, wanted=f"between 0 and {MAX_PARTS}")


def _constant_axis(operand: Any, rank: int | None) -> int | None:
    axes = ints(operand)
    if axes is None or rank is None:
        return None
    if len(axes) != 1:
        raise refuse("axis is one number", found=axes, wanted="one number")
    return axis_in(axes[0], rank)


@lite_operator("SPLIT")
class SplitOp(LiteDefinition):
    """num_splits equal parts along an axis."""

    axis = Input(NUMBER)
    x = Input((*_COMMON, float16))
    ys = Output(like="x", repeated=True)
    moves = True

    def infer(op: Any) -> list[TensorSpec]:
        dims, dtype, n = op.x.spec.shape.dims, op.x.spec.dtype, op.num_splits
        _check_count(n, "num_splits")
        if dims is None:
            return [TensorSpec(UNKNOWN, dtype)] * n
        axis = _constant_axis(op.axis, len(dims))
        if axis is None:
            return [spec((None,) * len(dims), dtype)] * n
        return [spec(equal_part_dims(op.x.spec, axis, n), dtype)] * n

    def compute(op: Any, axis: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
        return np.split(x, op.num_splits, int(axis.reshape(-1)[0]))


@lite_operator("SPLIT_V")
class SplitVOp(LiteDefinition):
    """Parts of the given sizes along an axis; one size may be -1, which follows from the others."""

    x = Input(_COMMON)
    sizes = Input(INDEX, rank=1)
    axis = Input(NUMBER)
    ys = Output(like="x", repeated=True)
    moves = True

    def infer(op: Any) -> list[TensorSpec]:
        dims, dtype, n = op.x.spec.shape.dims, op.x.spec.dtype, op.num_splits
        _check_count(n, "num_splits")
        if not same(op.sizes.spec.shape[0], n):
            raise refuse("num_splits is not the number of sizes", found=n, wanted=op.sizes.spec.shape[0])
        axis = None if dims is None else _constant_axis(op.axis, len(dims))
        sizes = ints(op.sizes)
        if dims is None or axis is None:
            return [TensorSpec(UNKNOWN, dtype) if dims is None else spec((None,) * len(dims), dtype)] * n
        parts: Any = [None] * n if sizes is None or dims[axis] is None else part_sizes(sizes, dims[axis], axis)
        return [spec((*dims[:axis], part, *dims[axis + 1 :]), dtype) for part in parts]

    def compute(op: Any, x: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> list[np.ndarray]:
        dimension = int(axis.reshape(-1)[0])
        parts = part_sizes(sizes.tolist(), x.shape[dimension], dimension)
        return np.split(x, np.cumsum(parts)[:-1].tolist(), dimension) if parts else []


def _pairs(paddings: Any) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in paddings]


def surrounded(x: np.ndarray, pairs: Sequence[tuple[int, int]], value: Any = 0) -> Iterator[Part]:
    """Yield the parts of `padded`: the value everywhere, then `x` inside."""
    yield (slice(None),) * x.ndim, np.asarray(value, x.dtype)
    yield tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, pairs)), x


@lite_operator("PAD")
class PadOp(LiteDefinition):
    """Zeros around the input: paddings[i] = (before, after) dimension i."""

    x = Input(_PADDED)
    paddings = Input(_WIDTHS)
    y = Output(like="x")
    quantized = "concatenation.pad"

    def infer(op: Any) -> TensorSpec:
        return spec(padded_dims(op.x.spec, op.paddings), op.x.spec.dtype)

    def parts(op: Any, x: np.ndarray, paddings: np.ndarray) -> Iterator[Part]:
        return surrounded(x, _pairs(paddings))

    def compute(op: Any, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        return padded(x, _pairs(paddings))


@lite_operator("PADV2")
class PadV2Op(LiteDefinition):
    """One value around the input: paddings[i] = (before, after) dimension i."""

    x = Input(_PADDED)
    paddings = Input(_WIDTHS)
    value = Input(_PADDED, like="x")
    y = Output(like="x")
    quantized = "concatenation.pad_v2"

    def infer(op: Any) -> TensorSpec:
        check_one(op.value, "the padding value")
        return spec(padded_dims(op.x.spec, op.paddings), op.x.spec.dtype)

    def parts(op: Any, x: np.ndarray, paddings: np.ndarray, value: np.ndarray) -> Iterator[Part]:
        return surrounded(x, _pairs(paddings), value.reshape(-1)[0])

    def compute(op: Any, x: np.ndarray, paddings: np.ndarray, value: np.ndarray) -> np.ndarray:
        return padded(x, _pairs(paddings), value.reshape(-1)[0])


@lite_operator("MIRROR_PAD")
class MirrorPadOp(LiteDefinition):
    """The input continued by its mirror image. REFLECT: the edge is not repeated; SYMMETRIC: it is."""

    x = Input(tuple(d for d in ANY if d is not string))
    paddings = Input(INDEX)
    y = Output(like="x")
    moves = alike = True

    def infer(op: Any) -> TensorSpec:
        return spec(padded_dims(op.x.spec, op.paddings, op.mode, reflects_empty=True), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        return mirrored(x, _pairs(paddings), op.mode)


@lite_operator("REVERSE_V2")
class ReverseOp(LiteDefinition):
    """The elements along the given axes in reverse order."""

    x = Input(_PADDED)
    axes = Input((int32,), rank=1)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        axes, rank = ints(op.axes), op.x.spec.shape.rank
        if axes is not None and rank is not None:
            axes_in(axes, rank)
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.flip(x, tuple(int(a) for a in axes))
