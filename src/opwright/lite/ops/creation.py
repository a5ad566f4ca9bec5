"""Tensors filled in from a few elements: FILL, RANGE, ONE_HOT, diagonals, SPARSE_TO_DENSE, DENSIFY.

Lives here: these operators.  Not here: broadcasting (reshape.py), updates by index (SCATTER_ND in slices.py),
sparse constants of files (format/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float16, float32, int8, int16, int32, int64, uint8
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.array_functions import one_hot
from ...ops.index_shapes import one_hot_dims
from ...ops.shape_inference import number_of_steps
from ...ops.slots import Input, Output
from .definition import LiteDefinition, lite_operator
from .shapes import check_one, ints, one_int, refuse, same, spec, text, unknown
from .types import ANY, INDEX, NUMBER


@lite_operator("FILL")
class FillOp(LiteDefinition):
    """A tensor of shape `dims` filled with one value."""

    dims = Input(INDEX, rank=1)
    value = Input(ANY, rank=0)
    y = Output(like="value")
    moves = alike = True

    def infer(op: Any) -> TensorSpec:
        sizes = ints(op.dims)
        if sizes is None:
            rank = op.dims.spec.shape[0]
            return spec(None if rank is None else unknown(rank), op.value.spec.dtype)
        if min(sizes, default=0) < 0:
            raise refuse("Fill dimensions must be >= 0", found=sizes, wanted="sizes of at least 0")
        return spec(sizes, op.value.spec.dtype)

    def compute(op: Any, dims: np.ndarray, value: np.ndarray) -> np.ndarray:
        return np.full(tuple(int(d) for d in dims), value, value.dtype)


@lite_operator("RANGE")
class RangeOp(LiteDefinition):
    """Numbers from start, up to but without limit, in steps of delta.

    .. math:: y_0 = start, \\quad y_{i+1} = y_i + delta

    Floats are counted and added up in float32, so the sums are those of the official kernel.
    """

    start = Input((float32, int32, int64))
    limit = Input((float32, int32, int64), like="start")
    delta = Input((float32, int32, int64), like="start")
    y = Output(like="start")

    def infer(op: Any) -> TensorSpec:
        for operand, name in ((op.start, "start"), (op.limit, "limit"), (op.delta, "delta")):
            check_one(operand, name)
        values = [op.start.constant, op.limit.constant, op.delta.constant]
        is_constant = all(v is not None for v in values)
        return spec((_count(*(v.reshape(-1)[0] for v in values)) if is_constant else None,), op.start.spec.dtype)

    def compute(op: Any, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
        y = np.full(_count(*(v.reshape(-1)[0] for v in (start, limit, delta))), delta.reshape(-1)[0], start.dtype)
        y[:1] = start.reshape(-1)
        return np.add.accumulate(y, out=y)


def _count(start: Any, limit: Any, delta: Any) -> int:
    operands = {name: v.item() for name, v in (("start", start), ("limit", limit), ("delta", delta))}
    if delta == 0 or (start > limit and delta > 0) or (start < limit and delta < 0):
        raise refuse(
            "delta does not lead from start to limit",
            found=operands,
            wanted="a delta other than 0, of the sign of limit - start",
        )
    count = number_of_steps(start, limit, delta)
    if count is None:
        raise refuse("the range has no end", found=operands, wanted="finite numbers")
    return count


@lite_operator("ONE_HOT")
class OneHotOp(LiteDefinition):
    """For each index a vector of `depth`, on_value at the index and off_value elsewhere, put along `axis`."""

    indices = Input((int32, int64))
    depth = Input(NUMBER)
    on_value = Input((float32, int32, int64, int8, uint8, bool_))
    off_value = Input((float32, int32, int64, int8, uint8, bool_), like="on_value")
    y = Output(like="on_value")
    moves = True

    def infer(op: Any) -> TensorSpec:
        for operand, name in ((op.on_value, "on_value"), (op.off_value, "off_value")):
            check_one(operand, name)
        depth = one_int(op.depth, "depth")
        return spec(one_hot_dims(op.indices.spec, depth, op.axis), op.on_value.spec.dtype)

    def compute(
        op: Any, indices: np.ndarray, depth: np.ndarray, on_value: np.ndarray, off_value: np.ndarray
    ) -> np.ndarray:
        depth, on, off = (a.reshape(-1)[0] for a in (depth, on_value, off_value))
        return one_hot(indices, int(depth), on, off, op.axis)


_DIAGONAL = (float32, uint8, int8, int16, int32, int64)


@lite_operator("MATRIX_DIAG")
class MatrixDiagOp(LiteDefinition):
    """Square matrices with the rows of x on their diagonals, and zeros elsewhere.

    .. math:: y_{... ii} = x_{... i}
    """

    x = Input(_DIAGONAL)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims = op.x.spec.shape.dims
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if not dims:
            raise refuse("the input is a scalar", wanted="at least one dimension")
        return spec((*dims, dims[-1]), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        n = x.shape[-1]
        y = np.zeros((*x.shape, n), x.dtype)
        y[..., np.arange(n), np.arange(n)] = x
        return y


@lite_operator("MATRIX_SET_DIAG")
class MatrixSetDiagOp(LiteDefinition):
    """Matrices with their diagonals replaced.

    .. math:: y_{... ij} = i = j: diagonal_{... i},\\ \\text{else}\\ x_{... ij}

    x: [..., m, n]; diagonal: [..., min(m, n)]
    """

    x = Input(_DIAGONAL)
    diagonal = Input(_DIAGONAL, like="x")
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims, diagonal = op.x.spec.shape.dims, op.diagonal.spec.shape.dims
        if dims is not None and len(dims) < 2:
            raise refuse("no matrices", found=text(dims), wanted="two dimensions or more")
        if dims is not None and diagonal is not None:
            expected = (*dims[:-2], None if None in dims[-2:] else min(dims[-2:]))
            if len(expected) != len(diagonal) or not all(map(same, expected, diagonal)):
                raise refuse(
                    "the diagonal does not fit the matrices",
                    found={"x": text(dims), "diagonal": text(diagonal)},
                    wanted=f"diagonal {text(expected)}",
                )
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        n = min(x.shape[-2:])
        y = np.array(x)
        y[..., np.arange(n), np.arange(n)] = diagonal
        return y


_VALUES = (float32, int32, int64, int8, uint8)


@lite_operator("SPARSE_TO_DENSE")
class SparseToDenseOp(LiteDefinition):
    """A tensor of one value, with others at some places; of a place named twice the last counts.

    .. math:: y_{indices_i} = values_i

    indices: [n, rank], or [n] or a number for rank 1; output_shape: [rank]; values: [n] or one for all;
    default_value: one number. validate_indices has no effect: indices out of range are errors always.
    """

    indices = Input(INDEX)
    output_shape = Input(INDEX, rank=1)
    values = Input(_VALUES)
    default_value = Input(_VALUES, like="values")
    y = Output(like="values")
    moves = True

    def infer(op: Any) -> TensorSpec:
        i, v, sizes = op.indices.spec.shape.dims, op.values.spec.shape.dims, ints(op.output_shape)
        rank = op.output_shape.spec.shape[0]
        if i is not None:
            if len(i) > 2 or not same(rank, i[1] if len(i) == 2 else 1):
                raise refuse(
                    "the indices do not fit the shape", found={"indices": text(i), "rank": rank}, wanted="[n, rank]"
                )
            if v is not None and (len(v) > 1 or (v and not same(v[0], i[0] if i else 1))):
                raise refuse(
                    "the values do not fit the indices",
                    found={"indices": text(i), "values": text(v)},
                    wanted="one value, or one an index",
                )
        check_one(op.default_value, "default_value")
        if sizes is not None and min(sizes, default=0) < 0:
            raise refuse("output_shape has a negative size", found=sizes, wanted="sizes of at least 0")
        return spec(sizes if sizes is not None else None if rank is None else unknown(rank), op.values.spec.dtype)

    def compute(
        op: Any, indices: np.ndarray, output_shape: np.ndarray, values: np.ndarray, default_value: np.ndarray
    ) -> np.ndarray:
        sizes = [int(d) for d in output_shape]
        rows = indices.reshape(-1, len(sizes)) if indices.ndim == 2 else indices.reshape(-1, 1)
        if rows.size and (np.any(rows < 0) or np.any(rows >= np.array(sizes))):
            raise refuse("an index is out of range", found=f"{rows.min()} to {rows.max()}", wanted=f"within {sizes}")
        y = np.full(sizes, default_value.reshape(-1)[0], values.dtype)
        if len(rows):
            y[tuple(rows.T)] = values
        return y


@lite_operator("DENSIFY")
class DensifyOp(LiteDefinition):
    """A sparse constant with its zeros. Sparse constants get them when the model is read, so nothing is left to do."""

    x = Input((float32, float16, int8))
    y = Output(like="x")
    moves = True
    once = True

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return x
