"""LU decomposition, and solutions from it.

Lives here: Lu; lu_solve, lu_matrix_inverse, lu_reconstruct.  Not here: direct solvers (solvers.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_rules
from ..attributes import Attr, one_of
from ..definition import operator
from ..math.sorting import argsort
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .diagonals import band_part, diag, diag_part, set_diag
from .matmul import product
from .matrices import adjoint
from .solvers import SOLVABLE, MatrixTriangularSolve, matrix_shape


class LuFactors(NamedTuple):
    """The result of `lu`."""

    lu: Any
    p: Any


@operator
class Lu(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute the LU decomposition of invertible matrices, with partial pivoting.

    .. math:: input_{p_i, j} = (L U)_{ij}, \\quad L \\text{ lower triangular with ones}, U \\text{ upper triangular}

    input: [..., n, n]; lu: [..., n, n], U, and below it L without its diagonal; p: [..., n], of output_idx_type.
    raises InvalidArgumentError for singular matrices
    """

    input = Input(SOLVABLE)
    lu = Output(like="input")
    p = Output()
    output_idx_type = Attr(DType, default=dtypes.int32, check=one_of(dtypes.int32, dtypes.int64))
    lod = lod_rules.batched("input", 2)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        shape = matrix_shape(op.input)
        p = TensorSpec(shape if shape.dims is None else shape.dims[:-1], op.output_idx_type)
        return op.input.spec.with_shape(shape), p

    def compute(op, input: Any) -> tuple[Any, np.ndarray]:
        n = input.shape[-1]
        empty = like_device.zeros(input, (0, n, n), input.dtype)
        lu = like_device.copy(input).reshape(-1, n, n) if input.size else empty
        p, batch = np.tile(like_device.arange(lu, n), (len(lu), 1)), like_device.arange(lu, len(lu))
        for k in range(n):
            pivot = k + np.abs(lu[:, k:, k]).argmax(-1)
            for rows in (lu, p):
                rows[batch, k], rows[batch, pivot] = rows[batch, pivot], rows[batch, k].copy()
            if not lu[:, k, k].all():
                raise InvalidArgumentError(what="Input is not invertible.", wanted="matrices of full rank")
            lu[:, k + 1 :, k] /= lu[:, k, k, None]
            lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, k, None, k + 1 :]
        return lu.reshape(input.shape), p.reshape(input.shape[:-1]).astype(op.output_idx_type.np)

    def gradient(op, dlu: Any, dp: Any) -> Tensor:
        # L^-H (the lower half of L^H dL + the upper half of dU U^H) U^-H
        low, high = _parts(op.lu)
        below = _below(product(low, _below(dlu), adjoint_a=True))
        above = band_part(product(band_part(dlu, 0, -1), high, adjoint_b=True), 0, -1)
        left = MatrixTriangularSolve(low, below + above, adjoint=True)
        permuted = adjoint(MatrixTriangularSolve(high, adjoint(left), lower=False))
        return _permute_rows(permuted, argsort(op.p, axis=-1))


def _below(x: Any) -> Tensor:
    """Return the strictly lower triangular part, in which L is variable."""
    return set_diag(band_part(x, -1, 0), array.zeros_like(diag_part(x)))


def _parts(lower_upper: Any) -> tuple[Any, Any]:
    """Return L, with its unit diagonal, and U."""
    ones = array.ones_like(diag_part(lower_upper))
    return set_diag(band_part(lower_upper, -1, 0), ones), band_part(lower_upper, 0, -1)


def _permute_rows(x: Any, perm: Any) -> Tensor:
    """Permute the rows of each matrix; batches broadcast."""
    if perm.shape.rank == 1:
        return array.gather(x, perm, axis=-2)
    batch = array.broadcast_dynamic_shape(array.shape_op(x)[:-2], array.shape_op(perm)[:-1])
    n, k = array.shape_op(x)[-2], array.shape_op(x)[-1]
    flat = array.reshape(array.broadcast_to(x, array.concat([batch, [n, k]], 0)), array.stack([-1, n, k]))
    indices = array.reshape(array.broadcast_to(perm, array.concat([batch, [n]], 0)), array.stack([-1, n]))
    permuted = array.gather(flat, indices, axis=1, batch_dims=1)
    return array.reshape(permuted, array.concat([batch, [n, k]], 0))


@documented_by(Lu)
def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> LuFactors:
    """Return the LU decomposition with partial pivoting."""
    return LuFactors(*Lu(input, output_idx_type=output_idx_type, name=name))


def _as_tensors(lower_upper: Any, perm: Any, rhs: Any = None) -> tuple[Tensor, Tensor]:
    """Convert factors and permutation to tensors. Raises ValueError for inconsistent static shapes."""
    lower_upper, perm = dispatch.to_tensor(lower_upper), dispatch.to_tensor(perm)
    for name, x in (("lower_upper", lower_upper), ("rhs", rhs)):
        if x is not None and x.shape.rank is not None and x.shape.rank < 2:
            raise ValueError(f"Input `{name}` must have at least 2 dimensions.")
    dims = lower_upper.shape.dims
    if dims is not None and None not in dims[-2:] and dims[-1] != dims[-2]:
        raise ValueError("`lower_upper` must be square.")
    rows = perm.shape.dims[-1] if perm.shape.dims else None
    if dims is not None and None not in (dims[-1], rows) and rows != dims[-1]:
        raise ValueError(f"`perm` must name each of {dims[-1]} rows; found shape {perm.shape}")
    return lower_upper, perm


@documented_by(MatrixTriangularSolve)
def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Solve A x = rhs from the result of `lu` of A; rhs [..., n, k], batches broadcast.

    .. math:: L U x = rhs_p

    raises ValueError for a rank below 2, or matrices that are not square
    """
    lower_upper = dispatch.to_tensor(lower_upper)
    rhs = dispatch.to_tensor(rhs, lower_upper.dtype)
    lower_upper, perm = _as_tensors(lower_upper, perm, rhs)
    low, high = _parts(lower_upper)
    return MatrixTriangularSolve(high, MatrixTriangularSolve(low, _permute_rows(rhs, perm)), lower=False, name=name)


def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Compute the inverse of A from the result of `lu` of A.

    .. math:: output = U^{-1} L^{-1} P

    raises ValueError for a rank below 2, or matrices that are not square
    """
    lower_upper, perm = _as_tensors(lower_upper, perm)
    identity = diag(array.ones(array.shape_op(lower_upper)[-1:], lower_upper.dtype))
    return lu_solve(lower_upper, perm, identity, name=name)


def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Reconstruct A from the result of `lu` of A.

    .. math:: A_{p_i, j} = (L U)_{ij}

    raises ValueError for a rank below 2, or matrices that are not square
    """
    lower_upper, perm = _as_tensors(lower_upper, perm)
    low, high = _parts(lower_upper)
    return array.identity(_permute_rows(product(low, high), argsort(perm, axis=-1)), name=name)
