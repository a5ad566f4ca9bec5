"""Decompositions of matrices.

Lives here: Cholesky, Qr, Svd, SelfAdjointEig and their functions; Lu, lu_solve, lu_matrix_inverse, lu_reconstruct.
Not here: linear systems (solvers.py), functions of decompositions (matrix_functions.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation
from ..attributes import Attr, one_of
from ..definition import operator
from ..math.arithmetic import _conj
from ..math.sorting import argsort
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .diagonals import band_part, diag, diag_part, set_diag
from .einsum import adjoint
from .matmul import product
from .solvers import SOLVABLE, MatrixTriangularSolve, matrix_shape

if TYPE_CHECKING:
    from .. import signatures


@operator
class Cholesky(OperatorDefinition):
    """Compute the Cholesky factor of positive definite matrices. Reads only the lower triangle.

    .. math:: input = output \\cdot output^H, \\quad output \\text{ lower triangular}

    input: [..., n, n]. The gradient is symmetric: half of it in each triangle.
    raises InvalidArgumentError for matrices that are not positive definite
    """

    input = Input(SOLVABLE)
    output = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input: Any) -> np.ndarray:
        try:
            return np.linalg.cholesky(input)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(
                what="Cholesky decomposition was not successful. The input might not be valid.",
                wanted="positive definite matrices",
            ) from None

    def gradient(op, doutput: Any) -> Tensor:
        # Murray, Differentiation of the Cholesky decomposition, 2016, equation 10
        factor = op.output
        middle = product(factor, doutput, adjoint_a=True)
        middle = band_part(set_diag(middle, diag_part(middle) / 2), -1, 0)
        left = MatrixTriangularSolve(factor, middle, adjoint=True)
        both = MatrixTriangularSolve(factor, adjoint(left), adjoint=True)
        return (both + adjoint(both)) / 2


cholesky: signatures.Cholesky = Cholesky.as_function("cholesky")


class QrFactors(NamedTuple):
    """The result of `qr`."""

    q: Any
    r: Any


@operator
class Qr(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute the QR decomposition.

    .. math:: input = q \\cdot r, \\quad q^H q = 1, \\quad r \\text{ upper triangular}

    input: [..., m, n]; q: [..., m, p], r: [..., p, n] with p = min(m, n), or p = m with full_matrices.
    Differentiable for full rank, and with full_matrices for m <= n.
    """

    input = Input(SOLVABLE)
    q = Output(like="input")
    r = Output(like="input")
    full_matrices = Attr(bool, default=False)
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        spec, shape = op.input.spec, matrix_shape(op.input, square=False)
        if shape.dims is None:
            return spec, spec
        m, n = shape.dims[-2:]
        p = m if op.full_matrices else None if m is None or n is None else min(m, n)
        return spec.with_shape([*shape.dims[:-2], m, p]), spec.with_shape([*shape.dims[:-2], p, n])

    def compute(op, input: Any) -> tuple[np.ndarray, np.ndarray]:
        q, r = np.linalg.qr(input, "complete" if op.full_matrices else "reduced")
        return q, r

    def gradient(op, dq: Any, dr: Any) -> Tensor:
        m, n = op.input.shape.dims[-2:] if op.input.shape.dims else (None, None)
        if op.full_matrices and (m is None or n is None or m > n):
            raise UnimplementedError(
                op="Qr",
                what="no gradient with full_matrices where there are more rows than columns",
                found=f"{m} by {n}",
                do="full_matrices=False",
            )
        q, r = op.q, op.r
        if m is not None and n is not None and m >= n:
            return _qr_gradient(q, r, dq, dr)
        # The square left part of a wide matrix has the gradient of a square matrix plus a term of the right part, which
        # is empty for a tall matrix of unknown shape
        p = array.shape_op(q)[-1] if m is None or n is None else m
        right, dr_right = op.input[..., p:], dr[..., p:]
        left = _qr_gradient(q, r[..., :p], dq + product(right, dr_right, adjoint_b=True), dr[..., :p])
        return array.concat([left, product(q, dr_right)], -1)


def _qr_gradient(q: Any, r: Any, dq: Any, dr: Any) -> Tensor:
    """Compute the gradient for tall and square matrices.

    Source: Walter, Lehmann, Lamour, On evaluating higher-order derivatives of the QR decomposition, 2012.
    """

    def over_r(x: Any) -> Tensor:
        """Compute x r^-H."""
        return adjoint(MatrixTriangularSolve(r, adjoint(x), lower=False))

    qdq, rdr = product(q, dq, adjoint_a=True), product(r, dr, adjoint_b=True)
    below = band_part((qdq - adjoint(qdq)) + (rdr - adjoint(rdr)), -1, 0)
    result = product(q, dr + over_r(below)) + over_r(dq - product(q, qdq))
    if q.dtype.is_complex:
        skew = diag_part(rdr - adjoint(qdq))
        correction = diag(skew - _conj(skew)) / 2
        result = result + product(q, over_r(adjoint(correction)))
    return result


@documented_by(Qr)
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> QrFactors:
    """Return the QR decomposition."""
    return QrFactors(*Qr(input, full_matrices=full_matrices, name=name))


def _reciprocal(x: Tensor) -> Tensor:
    """Return 1 / x, and 0 at 0: omits the interaction of equal values."""
    return x / (x * x + 1e-20)


def _without_diagonal(x: Any) -> Tensor:
    return set_diag(x, array.zeros_like(diag_part(x)))


def _differences(x: Any) -> Tensor:
    """Return the matrix 1 / (x_j - x_i), 0 on the diagonal."""
    return _without_diagonal(_reciprocal(array.expand_dims(x, -2) - array.expand_dims(x, -1)))


@operator
class Svd(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Compute the singular value decomposition, values in descending order.

    .. math:: input = u \\cdot diag(s) \\cdot v^H

    input: [..., m, n]; s: real [..., p] with p = min(m, n); u: [..., m, p], v: [..., n, p], or [..., m, m] and
    [..., n, n] with full_matrices. compute_uv: if False, u and v are empty.
    Differentiable for distinct values, and with full_matrices for m = n.
    """

    tensor = Input(SOLVABLE, doc="matrices, in the last two dimensions")
    s = Output()
    u = Output(like="tensor")
    v = Output(like="tensor")
    full_matrices = Attr(bool, default=False)
    compute_uv = Attr(bool, default=True)
    lod = lod_propagation.batched("tensor", 2)

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        spec, shape = op.tensor.spec, matrix_shape(op.tensor, square=False)
        empty, real = TensorSpec([0], spec.dtype), spec.dtype.real_dtype
        if shape.dims is None:
            s = TensorSpec(None, real)
            return (s, spec, spec) if op.compute_uv else (s, empty, empty)
        m, n = shape.dims[-2:]
        p, batch = None if m is None or n is None else min(m, n), shape.dims[:-2]
        s = TensorSpec([*batch, p], real)
        if not op.compute_uv:
            return s, empty, empty
        wide, tall = (m, n) if op.full_matrices else (p, p)
        return s, spec.with_shape([*batch, m, wide]), spec.with_shape([*batch, n, tall])

    def compute(op, tensor: Any) -> tuple[np.ndarray, Any, Any] | tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not op.compute_uv:
            empty = like_device.zeros(tensor, 0, tensor.dtype)
            return np.linalg.svd(tensor, compute_uv=False), empty, empty
        u, s, vh = np.linalg.svd(tensor, full_matrices=op.full_matrices)
        return s, u, np.swapaxes(vh, -1, -2).conj()

    def gradient(op, ds: Any, du: Any, dv: Any) -> Tensor:
        # Townsend, Differentiating the singular value decomposition, 2016
        dtype = op.tensor.dtype
        if not op.compute_uv:
            _, u, v = Svd(op.tensor)
            return product(u * array.expand_dims(array.cast(ds, dtype), -2), v, adjoint_b=True)
        dims = op.tensor.shape.dims
        if op.full_matrices and (dims is None or None in dims[-2:] or dims[-2] != dims[-1]):
            raise UnimplementedError(
                op="Svd",
                what="no gradient with full_matrices where the matrices are not square",
                do="full_matrices=False",
            )
        s, u, v = array.cast(op.s, dtype), op.u, op.v
        among = _differences(s * s)
        columns, rows = array.expand_dims(s, -2), array.expand_dims(s, -1)
        inverse = _reciprocal(columns)
        udu, vdv = product(u, du, adjoint_a=True), product(v, dv, adjoint_a=True)
        core = (among * (udu - adjoint(udu))) * columns + rows * (among * (vdv - adjoint(vdv)))
        core = set_diag(core, array.cast(ds, dtype))
        if dtype.is_complex:
            skew = diag_part(udu)
            core = core + diag((skew - _conj(skew)) / 2 * _reciprocal(s))
        outside_u = (du - product(u, udu)) * inverse
        outside_v = (dv - product(v, vdv)) * inverse
        return product(product(u, core) + outside_u, v, adjoint_b=True) + product(u, outside_v, adjoint_b=True)


@documented_by(Svd)
def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor] | Tensor:
    """Return the singular value decomposition s, u, v; only s without compute_uv."""
    s, u, v = Svd(tensor, full_matrices=full_matrices, compute_uv=compute_uv, name=name)
    return (s, u, v) if compute_uv else s


@operator
class SelfAdjointEig(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute eigenvalues, ascending, and eigenvectors of self-adjoint matrices. Reads only the lower triangle.

    .. math:: input \\cdot v = v \\cdot diag(e)

    input: [..., n, n]; e: [..., n], of input's dtype; v: [..., n, n], an eigenvector in each column.
    compute_v: if False, v is empty. Differentiable for distinct values.
    """

    input = Input(SOLVABLE)
    e = Output(like="input")
    v = Output(like="input")
    compute_v = Attr(bool, default=True)
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        spec, shape = op.input.spec, matrix_shape(op.input)
        v = spec.with_shape(shape) if op.compute_v else spec.with_shape([0])
        return spec.with_shape(shape if shape.dims is None else shape.dims[:-1]), v

    def compute(op, input: Any) -> tuple[np.ndarray, Any] | tuple[np.ndarray, np.ndarray]:
        if not op.compute_v:
            return np.linalg.eigvalsh(input, "L").astype(input.dtype), like_device.zeros(input, 0, input.dtype)
        e, v = np.linalg.eigh(input, "L")
        return e.astype(input.dtype), v

    def gradient(op, de: Any, dv: Any) -> Tensor:
        if op.compute_v:
            v = op.v
            middle = set_diag(_differences(op.e) * product(v, dv, adjoint_a=True), de)
        else:
            _, v = SelfAdjointEig(op.input)
            middle = diag(de)
        full = product(v, product(middle, v, adjoint_b=True))
        half = band_part(full + adjoint(full), -1, 0)  # accumulate in the triangle that is read
        return set_diag(half, diag_part(half) / 2)


@documented_by(SelfAdjointEig)
def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return eigenvalues e and eigenvectors v of self-adjoint matrices."""
    return SelfAdjointEig(tensor, name=name)


@documented_by(SelfAdjointEig)
def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Return eigenvalues of self-adjoint matrices."""
    return SelfAdjointEig(tensor, compute_v=False, name=name)[0]


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
    lod = lod_propagation.batched("input", 2)

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
