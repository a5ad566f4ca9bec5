"""Matrices that are zero but near the diagonal.

Lives here: TridiagonalSolve, BandedTriangularSolve; tridiagonal_matmul, tridiagonal_solve, banded_triangular_solve.
Not here: full matrices (solving.py, matmul.py), diagonals of these (diagonals.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape, broadcast
from .. import array, dispatch, lod_rules
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..math.reduction import Sum
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .diagonals import diag_part
from .matrices import matrix_transpose
from .solving import SOLVABLE

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _next(x: Any) -> Tensor:
    """Along the last dimension each element's successor, behind the last 0."""
    return array.concat([x[..., 1:], array.zeros_like(x[..., :1])], -1)


def _previous(x: Any) -> Tensor:
    return array.concat([array.zeros_like(x[..., :1]), x[..., :-1]], -1)


def _next_row(x: Any) -> Tensor:
    return array.concat([x[..., 1:, :], array.zeros_like(x[..., :1, :])], -2)


def _previous_row(x: Any) -> Tensor:
    return array.concat([array.zeros_like(x[..., :1, :]), x[..., :-1, :]], -2)


@operator
class TridiagonalSolve(OperatorDefinition):
    """Solve systems of equations with tridiagonal matrices, by Gauss's elimination.

    .. math:: sub_i \\, output_{i-1} + main_i \\, output_i + super_i \\, output_{i+1} = rhs_i

    diagonals: [..., 3, n], super, main, sub; the last of super and the first of sub are not looked at.
    rhs: [..., n, k].
    partial_pivoting: rows are exchanged, for exactness. perturb_singular: pivots that are as good as 0 become small
    numbers; else the result is NaN where a pivot is 0.
    raises InvalidArgumentError where shapes do not fit
    """

    diagonals = Input(SOLVABLE)
    rhs = Input(SOLVABLE, like="diagonals")
    output = Output(like="rhs")
    partial_pivoting = Attr(bool, default=True)
    perturb_singular = Attr(bool, default=False)
    lod = lod_rules.batched("diagonals", 2)

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
        over, main, under = (np.array(diagonals[..., i, :]) for i in range(3))
        n, b, over2 = main.shape[-1], np.array(rhs), np.zeros_like(main)
        if not n:
            return b
        over[..., -1] = 0
        for i in range(n - 1):
            first = [main[..., i], over[..., i], over2[..., i], b[..., i, :]]
            second = [under[..., i + 1], main[..., i + 1], over[..., i + 1], b[..., i + 1, :]]
            if op.partial_pivoting:
                swap = np.abs(second[0]) > np.abs(first[0])
                masks = (swap, swap, swap, swap[..., None])
                first, second = (
                    [np.where(m, y, x) for m, x, y in zip(masks, first, second)],
                    [np.where(m, x, y) for m, x, y in zip(masks, first, second)],
                )
            factor = np.where(first[0] == 0, first[0], second[0] / np.where(first[0] == 0, 1, first[0]))
            main[..., i], over[..., i], over2[..., i], b[..., i, :] = (x.copy() for x in first)
            main[..., i + 1] = second[1] - factor * first[1]
            over[..., i + 1] = second[2] - factor * first[2]
            b[..., i + 1, :] = second[3] - factor[..., None] * first[3]
        if op.perturb_singular:
            info = np.finfo(main.dtype)
            largest = np.max([np.abs(main), np.abs(over), np.abs(over2)], axis=(0, -1))[..., None]
            least = np.maximum(info.eps * largest, info.tiny / info.eps)
            main = np.where(np.abs(main) < least, np.where(main.real < 0, -least, least), main).astype(b.dtype)
        else:
            main[(main == 0).any(-1)] = np.nan
        x = b
        for i in range(n - 1, -1, -1):
            for ahead, row in ((1, over), (2, over2)):
                if i + ahead < n:
                    x[..., i, :] -= row[..., i, None] * x[..., i + ahead, :]
            x[..., i, :] /= main[..., i, None]
        return x

    def gradient(op, doutput: Any) -> tuple[Any, Tensor]:
        over, main, under = (op.diagonals[..., i, :] for i in range(3))
        turned = array.stack([_next(_conj(under)), _conj(main), _previous(_conj(over))], -2)
        drhs = TridiagonalSolve(
            turned, doutput, partial_pivoting=op.partial_pivoting, perturb_singular=op.perturb_singular
        )
        x = _conj(op.output)
        rows = [-Sum(drhs * y, axis=(-1,)) for y in (_next_row(x), x, _previous_row(x))]
        return array.stack(rows, -2), drhs


def _compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """The diagonals as [..., 3, n], of whichever format. Raises ValueError."""
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
    over, main, under = map(dispatch.to_tensor, diagonals)
    n = main.shape.dims[-1] if main.shape.dims else None
    return array.stack(
        [_padded(over, n, "superdiagonal", after=True), main, _padded(under, n, "subdiagonal", after=False)], -2
    )


def _padded(x: Any, n: int | None, name: str, after: bool) -> Any:
    m = x.shape.dims[-1] if x.shape.dims else None
    if m is None or n is None or m == n:
        return x
    if m != n - 1:
        raise ValueError(f"Expected {name} to be have length {n} or {n - 1}, got {m}.")
    return array.pad(x, [[0, 0]] * (x.shape.rank - 1) + [[0, 1] if after else [1, 0]])


def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Tensor:
    """A tridiagonal matrix times matrices.

    .. math:: output_i = sub_i \\, rhs_{i-1} + main_i \\, rhs_i + super_i \\, rhs_{i+1}

    diagonals: "compact": [..., 3, n], super, main, sub; "sequence": these three, [..., n], or two [..., n - 1];
    "matrix": [..., n, n], of which the rest is not looked at. rhs: [..., n, k].
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
    over, main, under = (array.expand_dims(diagonals[..., i, :], -1) for i in range(3))
    return array.identity(over * _next_row(rhs) + main * rhs + under * _previous_row(rhs), name=name)


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

    rhs: [..., n, k], or [..., n] of one dimension less than compact diagonals. transpose_rhs, conjugate_rhs: what is
    done to it first.
    raises ValueError for other formats and shapes
    """
    if perturb_singular and not partial_pivoting:
        raise ValueError("partial_pivoting must be True if perturb_singular is.")
    diagonals = _compact(diagonals, diagonals_format)
    rhs = dispatch.to_tensor(rhs, diagonals.dtype)
    rank, of_rhs = diagonals.shape.rank, rhs.shape.rank
    if rank is not None and of_rhs not in (rank - 1, rank, None):
        raise ValueError(f"Expected the rank of rhs to be {rank - 1} or {rank}, got {of_rhs}")
    vector = rank is not None and of_rhs == rank - 1
    if conjugate_rhs:
        rhs = _conj(rhs)
    if vector:
        rhs = array.expand_dims(rhs, -1)
    elif transpose_rhs:
        rhs = matrix_transpose(rhs)
    found = TridiagonalSolve(
        diagonals, rhs, partial_pivoting=partial_pivoting, perturb_singular=perturb_singular, name=name
    )
    return array.squeeze(found, [-1]) if vector else found


@operator
class BandedTriangularSolve(OperatorDefinition):
    """Solve systems of equations with triangular matrices that are zero but for some diagonals, by substitution.

    .. math:: A \\cdot output = rhs, \\quad A_{i, i-k} = bands_{k, i} \\text{ if lower}, \\quad
        A_{i, i+k} = bands_{K-1-k, i} \\text{ else}; \\quad A^H \\text{ in its place if adjoint}

    bands: [..., K, n], the main diagonal first of a lower matrix, last of an upper one; what lies outside of the matrix
    is not looked at. rhs: [..., n, m]; batches broadcast.
    raises InvalidArgumentError for a zero on the main diagonal or shapes that do not fit
    """

    bands = Input(SOLVABLE)
    rhs = Input(SOLVABLE, like="bands")
    output = Output(like="rhs")
    lower = Attr(bool, default=True)
    adjoint = Attr(bool, default=False)
    no_need_buffer = ("rhs",)
    lod = lod_rules.batched("bands", 2)

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
        rows = bands if op.lower else bands[..., ::-1, :]  # the k-th from the main diagonal
        if not rows[..., 0, :].all():
            raise InvalidArgumentError(what="Input matrix is not invertible.", wanted="matrices of full rank")
        n, away = rows.shape[-1], min(rows.shape[-2], rows.shape[-1])
        x = np.array(np.broadcast_to(rhs, (*np.broadcast_shapes(rows.shape[:-2], rhs.shape[:-2]), *rhs.shape[-2:])))
        downward, rows = op.lower != op.adjoint, rows.conj() if op.adjoint else rows
        for i in range(n) if downward else reversed(range(n)):
            for k in range(1, away):
                j = i - k if downward else i + k
                if 0 <= j < n:  # the adjoint's element (i, j) is that of (j, i)
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
        inside = (j >= 0) & (j < n)
        taken = array.gather(_conj(right), array.where(inside, j, array.zeros_like(j)), axis=-2)
        rows = -Sum(array.expand_dims(left, -3) * taken, axis=(-1,))
        dbands = array.where(inside, rows, array.zeros_like(rows))
        return array.sum_to_shape_of(dbands, op.bands), array.sum_to_shape_of(drhs, op.rhs)


@documented_by(BandedTriangularSolve)
def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solve banded triangular systems of equations."""
    return BandedTriangularSolve(bands, rhs, lower=lower, adjoint=adjoint, name=name)
