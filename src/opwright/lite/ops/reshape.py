"""Shapes changed and told, elements kept: RESHAPE to BROADCAST_ARGS, BITCAST.

Lives here: operators whose output holds the input's elements, or its shape.
Not here: concatenation and splitting (concatenation.py), parts of tensors (slices.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import int32, uint32
from ...core.shapes import TensorShape
from ...core.shapes import broadcast as broadcast_two
from ...core.specs import TensorSpec
from ...ops import array_functions
from ...ops.array_shapes import permutation, reshaped_dims, squeezed_dims, tiled_dims, with_inferred_size
from ...ops.index_shapes import check_broadcast_to, expanded_dims
from ...ops.shape_inference import bitcast_spec
from ...ops.slots import Input, Output
from . import types
from .definition import EnumAttr, LiteDefinition, lite_operator
from .shapes import ints, refuse, spec, spec_of_sizes, unknown
from .types import ANY, INDEX


@lite_operator("RESHAPE")
class ReshapeOp(LiteDefinition):
    """The elements in row-major order, in another shape; one size may be -1, which follows from the others.

    shape: int32 [rank]; where it is left out, or is no such list, the option new_shape counts.
    """

    x = Input(ANY)
    shape = Input(ANY, optional=True)
    y = Output(like="x")
    moves = True
    inplace = {"y": "x"}

    def infer(op: Any) -> TensorSpec:
        dtype = op.x.spec.dtype
        sizes: Any
        if op.shape is not None and _lists_sizes(op.shape.spec.dtype, op.shape.spec.shape.rank):
            sizes = ints(op.shape)
            if sizes is None:
                rank = op.shape.spec.shape[0]
                return spec(None if rank is None else unknown(rank), dtype)
        else:
            sizes = _new_shape(op)
        return spec(reshaped_dims(op.x.spec, sizes, zeros_cancel=False), dtype)

    def compute(op: Any, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
        has_shape = shape is not None and _lists_sizes(shape.dtype, shape.ndim)
        sizes = shape.tolist() if has_shape else _new_shape(op)
        return x.reshape(sizes if x.size else with_inferred_size(x.shape, sizes, zeros_cancel=False))


def _lists_sizes(dtype: Any, rank: int | None) -> bool:
    return int32 == dtype and rank in (None, 1)


def _new_shape(op: Any) -> list[Any]:
    """Return the option; old files specify a scalar by [0]."""
    return [] if op.new_shape == (0,) else list(op.new_shape)


@lite_operator("EXPAND_DIMS")
class ExpandDimsOp(LiteDefinition):
    """The input with a dimension of size 1 put in at an axis."""

    x = Input(ANY)
    axis = Input(INDEX)
    y = Output(like="x")
    moves = alike = True
    inplace = {"y": "x"}

    def infer(op: Any) -> TensorSpec:
        dims, axis = op.x.spec.shape.dims, ints(op.axis)
        if axis is not None and len(axis) != 1:
            raise refuse("axis is one number", found=axis, wanted="one number")
        if dims is None or axis is None:
            return spec(None if dims is None else (None,) * (len(dims) + 1), op.x.spec.dtype)
        return spec(expanded_dims(op.x.spec, axis[0]), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        return np.expand_dims(x, int(axis.reshape(-1)[0]))


@lite_operator("SQUEEZE")
class SqueezeOp(LiteDefinition):
    """The input without dimensions of size 1: those named by squeeze_dims, or all."""

    x = Input(ANY)
    y = Output(like="x")
    moves = True
    inplace = {"y": "x"}

    def infer(op: Any) -> TensorSpec:
        return spec(squeezed_dims(op.x.spec, op.squeeze_dims), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return np.squeeze(x, tuple({a % x.ndim for a in op.squeeze_dims}) or None)


@lite_operator("SHAPE")
class ShapeOp(LiteDefinition):
    """The sizes of the input, as out_type [rank]."""

    x = Input(ANY)
    y = Output(dtype=int32)
    moves = True
    shape_only = ("x",)

    def infer(op: Any) -> TensorSpec:
        if op.out_type not in ("INT32", "INT64"):
            raise refuse("out_type is not an index type", found=op.out_type, wanted="INT32 or INT64")
        return spec((op.x.spec.shape.rank,), types.dtype_of(op.out_type))

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return np.array(x.shape, types.dtype_of(op.out_type).np)


@lite_operator("RANK")
class RankOp(LiteDefinition):
    """The number of dimensions of the input, int32."""

    x = Input(ANY)
    y = Output(dtype=int32)
    moves = True
    shape_only = ("x",)

    def infer(op: Any) -> TensorSpec:
        return spec((), int32)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return np.array(x.ndim, np.int32)


@lite_operator("TRANSPOSE")
class TransposeOp(LiteDefinition):
    """The dimensions in another order.

    .. math:: y.shape[i] = x.shape[perm[i]]
    """

    x = Input(ANY)
    perm = Input((int32, uint32))
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims, perm = op.x.spec.shape.dims, ints(op.perm)
        if dims is None or perm is None:
            return spec(None if dims is None else (None,) * len(dims), op.x.spec.dtype)
        return spec((dims[p] for p in permutation(perm, len(dims))), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, perm: np.ndarray) -> np.ndarray:
        return x.transpose([int(p) for p in perm.reshape(-1)])


@lite_operator("BROADCAST_TO")
class BroadcastToOp(LiteDefinition):
    """The input stretched to a shape, int32 or int64 [rank]."""

    x = Input(ANY)
    shape = Input(INDEX, rank=1)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        result, sizes = spec_of_sizes(op.shape, op.x.spec.dtype)
        if sizes is not None:
            check_broadcast_to(op.x.spec, result.shape)
        return result

    def compute(op: Any, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, tuple(int(d) for d in shape))


@lite_operator("BROADCAST_ARGS")
class BroadcastArgsOp(LiteDefinition):
    """The shape that two shapes broadcast to; all are int32 or int64 [rank]."""

    x = Input(INDEX, rank=1)
    y = Input(INDEX, like="x", rank=1)
    z = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        ranks = [op.x.spec.shape[0], op.y.spec.shape[0]]
        a, b = ints(op.x), ints(op.y)
        if a is not None and b is not None:
            _broadcast_args(a, b)
        return spec((None if None in ranks else max(ranks),), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array(_broadcast_args(x.tolist(), y.tolist()), x.dtype)


def _broadcast_args(a: list[int], b: list[int]) -> list[int]:
    if min((*a, *b), default=0) < 0:
        raise refuse("a shape has a negative size", found=[a, b], wanted="sizes of at least 0")
    return [d or 0 for d in broadcast_two(TensorShape(a), TensorShape(b)).dims or ()]


@lite_operator("BITCAST", typed_by="output_type")
class BitcastOp(LiteDefinition):
    """The same bytes as elements of another type.

    To a smaller type a last dimension is added, to a larger one the last dimension is taken.
    """

    x = Input(tuple(d for d in ANY if d.size))
    y = Output(like="x")
    moves = True
    output_type = EnumAttr("TensorType")

    def infer(op: Any) -> TensorSpec:
        dtype = types.dtype_of(op.output_type)
        if not dtype.size:
            raise refuse(
                "a type whose elements have no fixed size", found=op.output_type, wanted="a type of numbers, or BOOL"
            )
        return bitcast_spec(op.x.spec, dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return array_functions.bitcast(x, types.dtype_of(op.output_type).np)


@lite_operator("TILE")
class TileOp(LiteDefinition):
    """The input repeated multiples[i] times along each dimension i."""

    x = Input(ANY)
    multiples = Input(INDEX, rank=1)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        return spec(tiled_dims(op.x.spec, ints(op.multiples)), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, multiples: np.ndarray) -> np.ndarray:
        times = tuple(int(m) for m in multiples)
        return np.tile(x, times if 0 not in times else (0,) * x.ndim).reshape([d * t for d, t in zip(x.shape, times)])
