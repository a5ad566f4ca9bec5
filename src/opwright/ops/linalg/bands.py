"""Banded matrices.

Lives here: TridiagonalSolve, BandedTriangularSolve; tridiagonal_matmul, tridiagonal_solve, banded_triangular_solve.
Not here: full matrices (solvers.py, matmul.py), diagonals (diagonals.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape, broadcast
from .. import array, dispatch, lod_propagation
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..math.reduction import Sum
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from .diagonals import diag_part
from .einsum import matrix_transpose
from .solvers import SOLVABLE

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _next(x: Any) -> Tensor:
    """Shift elements along the last dimension to the previous position; append 0."""
    return array.concat([x[..., 1:], array.zeros_like(x[..., :1])], -1)


def _previous(x: Any) -> Tensor:
    return array.concat([array.zeros_like(x[..., :1]), x[..., :-1]], -1)


def _next_row(x: Any) -> Tensor:
    return array.concat([x[..., 1:, :], array.zeros_like(x[..., :1, :])], -2)


def _previous_row(x: Any) -> Tensor:
    return array.concat([array.zeros_like(x[..., :1, :]), x[..., :-1, :]], -2)


@operator
class TridiagonalSolve(OperatorDefinition):
    """Solve tridiagonal systems of linear equations by Gaussian elimination.

    .. math:: sub_i \\, output_{i-1} + main_i \\, output_i + super_i \\, output_{i+1} = rhs_i

    diagonals: [..., 3, n], super, main, sub; the last of super and the first of sub are ignored.
    rhs: [..., n, k].
    partial_pivoting: exchange rows for accuracy. perturb_singular: replace pivots close to 0 by small numbers; else the
    result is NaN if a pivot is 0.
    raises InvalidArgumentError for inconsistent shapes
    """

    diagonals = Input(SOLVABLE)
    rhs = Input(SOLVABLE, like="diagonals")
    output = Output(like="rhs")
    partial_pivoting = Attr(bool, default=True)
    perturb_singular = Attr(bool, default=False)
    lod = lod_propagation.batched("diagonals", 2)

    def infer(op) -> TensorSpec:
        a, b = op.diagonals.spec, op.rhs.spec
        for spec in (a, b):
            if spec.shape.rank is not None and spec.shape.rank < 2:
                raise InvalidArgumentError(what="Expected rank at least 2", found=spec.short())
        if a.shape.dims is None or b.shape.dims is None:
            return b if a.shape.dims is None else b.with_shape([*a.shape.dims[:-2], a.shape.dims[-1], None])
        *batch, three, n = a.shape.dims
        if three not in (3, None):
            raise InvalidArgumentError(what=f"Expected 3 diagonals got {three}", found=a.short())
        if not TensorShape([*batch, n]).is_compatible_with(b.shape.dims[:-1]):
            raise InvalidArgumentError(what="diagonals and rhs do not fit", found=f"{a.short()}, {b.short()}")
        return b.with_shape([*TensorShape([*batch, n]).merge_with(b.shape.dims[:-1]), b.shape.dims[-1]])

    def compute(op, diagonals: Any, rhs: Any) -> np.ndarray:
        main: Any
        upper, main, lower = (np.array(diagonals[..., i, :]) for i in range(3))
        n, b, upper2 = main.shape[-1], np.array(rhs), np.zeros_like(main)
        if not n:
            return b
        upper[..., -1] = 0
        for i in range(n - 1):
            first = [main[..., i], upper[..., i], upper2[..., i], b[..., i, :]]
            second = [lower[..., i + 1], main[..., i + 1], upper[..., i + 1], b[..., i + 1, :]]
            if op.partial_pivoting:
                swap = np.abs(second[0]) > np.abs(first[0])
                masks = (swap, swap, swap, swap[..., None])
                first, second = (
                    [np.where(m, y, x) for m, x, y in zip(masks, first, second)],
                    [np.where(m, x, y) for m, x, y in zip(masks, first, second)],
                )
            factor = np.where(first[0] == 0, first[0], second[0] / np.where(first[0] == 0, 1, first[0]))
            main[..., i], upper[..., i], upper2[..., i], b[..., i, :] = (x.copy() for x in first)
            main[..., i + 1] = second[1] - factor * first[1]
            upper[..., i + 1] = second[2] - factor * first[2]
            b[..., i + 1, :] = second[3] - factor[..., None] * first[3]
        if op.perturb_singular:
            info = np.finfo(main.dtype)
            largest = np.max([np.abs(main), np.abs(upper), np.abs(upper2)], axis=(0, -1))[..., None]
            min_pivot = np.maximum(info.eps * largest, info.tiny / info.eps)
            main = np.where(np.abs(main) < min_pivot, np.where(main.real < 0, -min_pivot, min_pivot), main).astype(
                b.dtype
            )
        else:
            main[(main == 0).any(-1)] = np.nan
        x = b
        for i in range(n - 1, -1, -1):
            for distance, row in ((1, upper), (2, upper2)):
                if i + distance < n:
                    x[..., i, :] -= row[..., i, None] * x[..., i + distance, :]
            x[..., i, :] /= main[..., i, None]
        return x

    def gradient(op, doutput: Any) -> tuple[Any, Tensor]:
        upper, main, lower = (op.diagonals[..., i, :] for i in range(3))
        adjoint_diagonals = array.stack([_next(_conj(lower)), _conj(main), _previous(_conj(upper))], -2)
        drhs = TridiagonalSolve(
            adjoint_diagonals, doutput, partial_pivoting=op.partial_pivoting, perturb_singular=op.perturb_singular
        )
        x = _conj(op.output)
        rows = [-Sum(drhs * y, axis=(-1,)) for y in (_next_row(x), x, _previous_row(x))]
        return array.stack(rows, -2), drhs


def _compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """Convert diagonals of any format to [..., 3, n]. Raises ValueError for other formats and shapes."""
    if diagonals_format == "compact":
        return dispatch.to_tensor(diagonals)
    if diagonals_format == "matrix":
        matrix = dispatch.to_tensor(diagonals)
        dims = matrix.shape.dims
        if dims is not None and None not in dims[-2:] and dims[-1] != dims[-2]:
            raise ValueError(f"Expected last two dimensions of diagonals to be same, got {dims[-1]} and {dims[-2]}")
        return diag_part(matrix, k=(-1, 1), align="LEFT_RIGHT")
    if diagonals_format != "sequence":
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    upper, main, lower = map(dispatch.to_tensor, diagonals)
    n = main.shape.dims[-1] if main.shape.dims else None
    return array.stack(
        [_padded(upper, n, "superdiagonal", after=True), main, _padded(lower, n, "subdiagonal", after=False)], -2
    )


def _padded(x: Tensor, n: int | None, name: str, after: bool) -> Tensor:
    dims = x.shape.dims
    m = dims[-1] if dims else None
    if not dims or m is None or n is None or m == n:
        return x
    if m != n - 1:
        raise ValueError(f"Expected {name} to be have length {n} or {n - 1}, got {m}.")
    return array.pad(x, [[0, 0]] * (len(dims) - 1) + [[0, 1] if after else [1, 0]])


def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Tensor:
    """Multiply tridiagonal matrices by matrices.

    .. math:: output_i = sub_i \\, rhs_{i-1} + main_i \\, rhs_i + super_i \\, rhs_{i+1}

    diagonals: "compact": [..., 3, n], super, main, sub; "sequence": these three, [..., n], or two [..., n - 1];
    "matrix": [..., n, n], of which other elements are ignored. rhs: [..., n, k].
    raises ValueError for other formats and shapes
    """
    diagonals = _compact(diagonals, diagonals_format)
    rhs = dispatch.to_tensor(rhs, diagonals.dtype)
    if None not in (diagonals.shape.rank, rhs.shape.rank) and diagonals.shape.rank != rhs.shape.rank:
        raise InvalidArgumentError(
            op="tridiagonal_matmul",
            what="All input tensors must have the same rank.",
            found=f"{diagonals.spec.short()}, {rhs.spec.short()}",
        )
    upper, main, lower = (array.expand_dims(diagonals[..., i, :], -1) for i in range(3))
    return array.identity(upper * _next_row(rhs) + main * rhs + lower * _previous_row(rhs), name=name)


@documented_by(TridiagonalSolve)
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solve tridiagonal systems of equations. diagonals_format: as in `tridiagonal_matmul`.

    rhs: [..., n, k], or [..., n] of one dimension less than compact diagonals. transpose_rhs, conjugate_rhs: applied to
    rhs first.
    raises ValueError for other formats and shapes
    """
    if perturb_singular and not partial_pivoting:
        raise ValueError("partial_pivoting must be True if perturb_singular is.")
    diagonals = _compact(diagonals, diagonals_format)
    rhs = dispatch.to_tensor(rhs, diagonals.dtype)
    rank, rhs_rank = diagonals.shape.rank, rhs.shape.rank
    if rank is not None and rhs_rank not in (rank - 1, rank, None):
        raise ValueError(f"Expected the rank of rhs to be {rank - 1} or {rank}, got {rhs_rank}")
    is_vector = rank is not None and rhs_rank == rank - 1
    if conjugate_rhs:
        rhs = _conj(rhs)
    if is_vector:
        rhs = array.expand_dims(rhs, -1)
    elif transpose_rhs:
        rhs = matrix_transpose(rhs)
    x = TridiagonalSolve(
        diagonals, rhs, partial_pivoting=partial_pivoting, perturb_singular=perturb_singular, name=name
    )
    return array.squeeze(x, [-1]) if is_vector else x


@operator
class BandedTriangularSolve(OperatorDefinition):
    """Solve banded triangular systems of linear equations by substitution.

    .. math:: A \\cdot output = rhs, \\quad A_{i, i-k} = bands_{k, i} \\text{ if lower}, \\quad
        A_{i, i+k} = bands_{K-1-k, i} \\text{ else}; \\quad A^H \\text{ instead of } A \\text{ if adjoint}

    bands: [..., K, n], the main diagonal first for a lower matrix, last for an upper one; elements outside the matrix
    are ignored. rhs: [..., n, m]; batches broadcast.
    raises InvalidArgumentError for a zero on the main diagonal or inconsistent shapes
    """

    bands = Input(SOLVABLE)
    rhs = Input(SOLVABLE, like="bands")
    output = Output(like="rhs")
    lower = Attr(bool, default=True)
    adjoint = Attr(bool, default=False)
    no_need_buffer = ("rhs",)
    lod = lod_propagation.batched("bands", 2)

    def infer(op) -> TensorSpec:
        a, b = op.bands.spec, op.rhs.spec
        for i, spec in enumerate((a, b)):
            if spec.shape.rank is not None and spec.shape.rank < 2:
                raise InvalidArgumentError(what=f"In[{i}] ndims must be >= 2: {spec.shape.rank}", found=spec.short())
        if a.shape.dims is None or b.shape.dims is None:
            return b.with_shape(UNKNOWN)
        if a.shape.dims[-2] == 0:
            raise InvalidArgumentError(what="bands must hold the main diagonal", found=a.short())
        n, m = a.shape.dims[-1], b.shape.dims[-2]
        if None not in (n, m) and n != m:
            raise InvalidArgumentError(
                what=f"In[0] mismatch In[1] shape: {n} vs. {m}", found=f"{a.short()}, {b.short()}"
            )
        batch = broadcast(TensorShape(a.shape.dims[:-2]), TensorShape(b.shape.dims[:-2]))
        return b.with_shape([*batch, n if m is None else m, b.shape.dims[-1]])

    def compute(op, bands: Any, rhs: Any) -> np.ndarray:
        rows = bands if op.lower else bands[..., ::-1, :]  # in order of distance from the main diagonal
        if not rows[..., 0, :].all():
            raise InvalidArgumentError(what="Input matrix is not invertible.", wanted="matrices of full rank")
        n, bandwidth = rows.shape[-1], min(rows.shape[-2], rows.shape[-1])
        x = np.array(np.broadcast_to(rhs, (*np.broadcast_shapes(rows.shape[:-2], rhs.shape[:-2]), *rhs.shape[-2:])))
        downward, rows = op.lower != op.adjoint, rows.conj() if op.adjoint else rows
        for i in range(n) if downward else reversed(range(n)):
            for k in range(1, bandwidth):
                j = i - k if downward else i + k
                if 0 <= j < n:  # element (i, j) of the adjoint is (j, i) of the matrix
                    x[..., i, :] -= rows[..., k, j if op.adjoint else i, None] * x[..., j, :]
            x[..., i, :] /= rows[..., 0, i, None]
        return x

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        drhs = BandedTriangularSolve(op.bands, doutput, lower=op.lower, adjoint=not op.adjoint)
        left, right = (op.output, drhs) if op.adjoint else (drhs, op.output)
        shape = array.shape_op(op.bands)
        count, n = shape[-2], shape[-1]
        i, k = array.expand_dims(array.range(n), 0), array.expand_dims(array.range(count), 1)
        j = i - k if op.lower else i + (count - 1 - k)
        in_matrix = (j >= 0) & (j < n)
        neighbors = array.gather(_conj(right), array.where(in_matrix, j, array.zeros_like(j)), axis=-2)
        rows = -Sum(array.expand_dims(left, -3) * neighbors, axis=(-1,))
        dbands = array.where(in_matrix, rows, array.zeros_like(rows))
        return array.sum_to_shape_of(dbands, op.bands), array.sum_to_shape_of(drhs, op.rhs)


@documented_by(BandedTriangularSolve)
def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solve banded triangular systems of equations."""
    return BandedTriangularSolve(bands, rhs, lower=lower, adjoint=adjoint, name=name)
