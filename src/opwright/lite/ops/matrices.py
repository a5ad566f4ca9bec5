"""Diagonals of matrices: MATRIX_DIAG, MATRIX_SET_DIAG.

Lives here: the two operators.  Not here: products of matrices (matmul.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int8, int16, int32, int64, uint8
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from .definition import lite_operator
from .shapes import refuse, same, spec, text

_TAKEN = (float32, uint8, int8, int16, int32, int64)


@lite_operator("MATRIX_DIAG")
class MatrixDiag:
    """Square matrices with the rows of x on their diagonals, and zeros beside.

    .. math:: y_{... ii} = x_{... i}
    """

    x = Input(_TAKEN)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims = op.x.spec.shape.dims
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if not dims:
            raise refuse("the input is a scalar", wanted="at least one dimension")
        return spec((*dims, dims[-1]), op.x.spec.dtype)

    def compute(op: Any, x: Any) -> Any:
        n = x.shape[-1]
        y = np.zeros((*x.shape, n), x.dtype)
        y[..., np.arange(n), np.arange(n)] = x
        return y


@lite_operator("MATRIX_SET_DIAG")
class MatrixSetDiag:
    """Matrices with their diagonals replaced.

    .. math:: y_{... ij} = i = j: diagonal_{... i},\\ \\text{else}\\ x_{... ij}

    x: [..., m, n]; diagonal: [..., min(m, n)]
    """

    x = Input(_TAKEN)
    diagonal = Input(_TAKEN, like="x")
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims, given = op.x.spec.shape.dims, op.diagonal.spec.shape.dims
        if dims is not None and len(dims) < 2:
            raise refuse("no matrices", found=text(dims), wanted="two dimensions or more")
        if dims is not None and given is not None:
            wanted = (*dims[:-2], None if None in dims[-2:] else min(dims[-2:]))
            if len(wanted) != len(given) or not all(map(same, wanted, given)):
                raise refuse("the diagonal does not fit the matrices", found={"x": text(dims), "diagonal": text(given)},
                             wanted=f"diagonal {text(wanted)}")  # fmt: skip
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: Any, diagonal: Any) -> Any:
        n = min(x.shape[-2:])
        y = np.array(x)
        y[..., np.arange(n), np.arange(n)] = diagonal
        return y
