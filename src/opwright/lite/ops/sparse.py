"""Tensors given by a few of their elements: SPARSE_TO_DENSE, DENSIFY.

Lives here: the two operators.  Not here: updates at places (SCATTER_ND in slicing.py), sparse constants of files
(format/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float16, float32, int8, int32, int64, uint8
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from .definition import lite_operator
from .shapes import check_one, ints, refuse, same, spec, text, unknown
from .types import INDEX

_VALUES = (float32, int32, int64, int8, uint8)


@lite_operator("SPARSE_TO_DENSE")
class SparseToDense:
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
                raise refuse("the indices do not fit the shape", found={"indices": text(i), "rank": rank},
                             wanted="[n, rank]")  # fmt: skip
            if v is not None and (len(v) > 1 or (v and not same(v[0], i[0] if i else 1))):
                raise refuse("the values do not fit the indices", found={"indices": text(i), "values": text(v)},
                             wanted="one value, or one an index")  # fmt: skip
        check_one(op.default_value, "default_value")
        if sizes is not None and min(sizes, default=0) < 0:
            raise refuse("output_shape has a negative size", found=sizes, wanted="sizes of at least 0")
        return spec(sizes if sizes is not None else None if rank is None else unknown(rank), op.values.spec.dtype)

    def compute(op: Any, indices: Any, output_shape: Any, values: Any, default_value: Any) -> Any:
        sizes = [int(d) for d in output_shape]
        rows = indices.reshape(-1, len(sizes)) if indices.ndim == 2 else indices.reshape(-1, 1)
        if rows.size and (np.any(rows < 0) or np.any(rows >= np.array(sizes))):
            raise refuse("an index is out of range", found=f"{rows.min()} to {rows.max()}", wanted=f"within {sizes}")
        y = np.full(sizes, default_value.reshape(-1)[0], values.dtype)
        if len(rows):
            y[tuple(rows.T)] = values
        return y


@lite_operator("DENSIFY")
class Densify:
    """A sparse constant with its zeros. Sparse constants get them when the model is read, so nothing is left to do."""

    x = Input((float32, float16, int8))
    y = Output(like="x")
    moves = True
    once = True

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: Any) -> Any:
        return x
