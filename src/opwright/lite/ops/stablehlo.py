"""Operators of StableHLO that the official run time has kernels for: STABLEHLO_ADD to _GATHER.

Lives here: operators without subgraphs.  Not here: STABLEHLO_CASE and _COMPOSITE (control.py), reductions by a
subgraph (stablehlo_reduction.py); the others, which official converters write for delegates only and no official kernel
runs.

Arithmetic is of operands of one shape: nothing is broadcast. Quantized tensors are their integers, as officially.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import int8, int16, int32, int64
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.table import FUNCTIONS
from . import types
from .definition import LiteDefinition, LiteOperator, lite_operator
from .shapes import check_one, refuse, spec, text

INTEGERS = (dtypes.bool, *dtypes.integer)
NUMBERS = (dtypes.float16, dtypes.float32, dtypes.float64, *INTEGERS)
BITS = (int8, int16, int32)


def _one_shape(op: Any) -> TensorSpec:
    x, y = op.x.spec.shape, op.y.spec.shape
    if not x.is_compatible_with(y):
        raise refuse("the operands differ in shape", found={"x": text(x), "y": text(y)}, wanted="one shape")
    return TensorSpec(x.merge_with(y), op.x.spec.dtype)


def binary(name: str, compute: Any, formula: str, dtypes: Any) -> LiteOperator:
    """Define an operator of two tensors of one shape."""

    def computed(op: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        result: np.ndarray = compute(x, y)
        return result

    body = {
        "__doc__": f"{name}, of operands of one shape.\n\n.. math:: z = {formula}",
        "__module__": __name__,
        "x": Input(dtypes),
        "y": Input(dtypes, like="x"),
        "z": Output(like="x"),
        "infer": _one_shape,
        "compute": compute if isinstance(compute, np.ufunc) else computed,
        "moves": True,
    }
    return lite_operator(name)(type(name, (), body))


shift_left = FUNCTIONS["shift_left_or_zero"].of_arrays

BINARY = (
    ("STABLEHLO_ADD", np.add, "x + y", NUMBERS),
    ("STABLEHLO_MULTIPLY", np.multiply, "x y", NUMBERS),
    ("STABLEHLO_MAXIMUM", np.maximum, r"\max(x, y)", NUMBERS),
    ("STABLEHLO_MINIMUM", np.minimum, r"\min(x, y)", NUMBERS),
    ("STABLEHLO_AND", np.bitwise_and, r"x \wedge y, \text{bit by bit}", INTEGERS),
    ("STABLEHLO_SHIFT_LEFT", shift_left, "x 2^y, or 0", BITS),
)

for row in BINARY:
    binary(*row)


@lite_operator("STABLEHLO_PAD")
class StablehloPadOp(LiteDefinition):
    """A value around the elements and between them; around them less than nothing cuts elements off.

    edge_padding_low, edge_padding_high: before and after each dimension, may be negative; interior_padding: between
    two elements. padding_value: one number
    """

    x = Input(types.FIXED)
    padding_value = Input(types.FIXED, like="x")
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims = op.x.spec.shape.dims
        check_one(op.padding_value, "the padding value")
        if min(op.interior_padding, default=0) < 0:
            raise refuse(
                "interior_padding is negative", found=list(op.interior_padding), wanted="numbers of at least 0"
            )
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        lists = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
        if any(len(v) != len(dims) for v in lists) or not dims:
            raise refuse(
                "the paddings do not fit the input",
                found=[list(v) for v in lists],
                wanted=f"{len(dims)} numbers each, at least 1",
            )
        out = [None if d is None else (d - 1) * (k + 1) + 1 + a + b if d else a + b for d, a, b, k in zip(dims, *lists)]
        if any(o is not None and o <= 0 for o in out):
            out = [0] * len(out)  # as in the official kernel
        return spec(out, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, padding_value: np.ndarray) -> np.ndarray:
        steps = [k + 1 for k in op.interior_padding]
        dilated = [(d - 1) * s + 1 if d else 0 for d, s in zip(x.shape, steps)]
        sizes = [max(n + a + b, 0) for n, a, b in zip(dilated, op.edge_padding_low, op.edge_padding_high)]
        if 0 in sizes:
            return np.zeros([0] * x.ndim, x.dtype)
        return dilated_and_padded(x, padding_value.reshape(-1)[0], sizes, op.edge_padding_low, steps)


def dilated_and_padded(
    x: np.ndarray, value: Any, sizes: Sequence[int], low: Sequence[int], steps: Sequence[int]
) -> np.ndarray:
    """Return an array of `sizes` filled with `value`, with element i of x at low + i * step along each dimension.

    Elements outside of the array are dropped, as negative padding crops.
    """
    y = np.full(tuple(sizes), value, x.dtype)
    source, target = [], []
    for size, step, start, d in zip(sizes, steps, low, x.shape):
        first = max(0, -(start // step))  # the first element inside, and the first behind the end
        last = max(min(d, -((start - size) // step)), first)
        source.append(slice(first, last))
        target.append(slice(start + first * step, max(start + (last - 1) * step + 1, 0), step))
    if all(s.stop > s.start for s in source):
        y[tuple(target)] = x[tuple(source)]
    return y


@lite_operator("STABLEHLO_GATHER")
class StablehloGatherOp(LiteDefinition):
    """Slices of a tensor at index vectors; where a slice would leave the tensor, it is moved inside.

    start_indices: int32 or int64; index_vector_dim: the dimension of the vectors; start_index_map: the dimension of x
    that each of their numbers is of; slice_sizes: of x, of which collapsed_slice_dims, all 1, are dropped;
    offset_dims: where in y the others are.
    """

    x = Input((*NUMBERS, dtypes.bfloat16, dtypes.complex64))
    start_indices = Input((int32, int64))
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        x, i = op.x.spec.shape.dims, op.start_indices.spec.shape.dims
        if x is None or i is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        sizes, vector_dim = op.slice_sizes, op.index_vector_dim
        if len(sizes) != len(x) or any(s < 0 or (d is not None and s > d) for s, d in zip(sizes, x)):
            raise refuse("slice_sizes do not fit the input", found=list(sizes), wanted=f"sizes within {text(x)}")
        if not 0 <= vector_dim <= len(i):
            raise refuse("index_vector_dim is out of range", found=vector_dim, wanted=f"0 to {len(i)}")
        depth = i[vector_dim] if vector_dim < len(i) else 1
        if (depth is not None and depth != len(op.start_index_map)) or not distinct(op.start_index_map, len(x)):
            raise refuse(
                "start_index_map does not fit the index vectors",
                found=list(op.start_index_map),
                wanted="a dimension of the operand for each element of an index vector",
            )
        if not distinct(op.collapsed_slice_dims, len(x)) or any(sizes[d] != 1 for d in op.collapsed_slice_dims):
            raise refuse(
                "collapsed_slice_dims are not dimensions of size 1",
                found=list(op.collapsed_slice_dims),
                wanted="dimensions whose slice_sizes are 1",
            )
        slice_dims = [s for d, s in enumerate(sizes) if d not in op.collapsed_slice_dims]
        batch = [d for j, d in enumerate(i) if j != vector_dim]
        rank = len(slice_dims) + len(batch)
        if len(op.offset_dims) != len(slice_dims) or not distinct(op.offset_dims, rank):
            raise refuse(
                "offset_dims do not fit the slices", found=[*op.offset_dims], wanted=f"{len(slice_dims)} of {rank}"
            )
        slice_iterator, batch_iterator = iter(slice_dims), iter(batch)
        return spec(
            (next(slice_iterator) if d in op.offset_dims else next(batch_iterator) for d in range(rank)),
            op.x.spec.dtype,
        )

    def compute(op: Any, x: np.ndarray, start_indices: np.ndarray) -> np.ndarray:
        vectors = start_indices if op.index_vector_dim < start_indices.ndim else start_indices[..., None]
        vectors = np.moveaxis(vectors, op.index_vector_dim, -1)
        batch = vectors.shape[:-1]
        index = []
        for d, size in enumerate(op.slice_sizes):
            start = np.zeros(batch, np.int64)
            if d in op.start_index_map:
                start = vectors[..., list(op.start_index_map).index(d)].astype(np.int64)
            start = np.clip(start, 0, x.shape[d] - size).reshape((*batch, *(1,) * x.ndim))
            within = np.arange(size).reshape([-1 if j == d else 1 for j in range(x.ndim)])
            index.append(start + within)
        slices = x[tuple(np.broadcast_arrays(*index))] if index else np.broadcast_to(x, batch)
        sizes = [s for d, s in enumerate(op.slice_sizes) if d not in op.collapsed_slice_dims]
        slice_dims = slices.reshape((*batch, *sizes))
        rank = slice_dims.ndim
        positions = [d for d in range(rank) if d not in op.offset_dims] + sorted(op.offset_dims)
        return np.moveaxis(slice_dims, range(rank), positions)


def distinct(dims: Any, rank: int) -> bool:
    return len(set(dims)) == len(dims) and all(0 <= d < rank for d in dims)
