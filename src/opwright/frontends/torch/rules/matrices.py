"""Systems of equations, inverses, determinants.

Lives here: rules of ATen's operators on factors and solutions of square matrices. Not here: LU, QR and eigenvalues
(decompositions.py), products (linear.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....ops import array, linalg, math
from .decompositions import factors, pivots_of, rows_of
from .table import AtenCall, aten, dim_size, rank_of, sizes, tensor


def _zeros(op: AtenCall, place: int) -> Any:
    """Return an output of zeros: LAPACK's info, which is an error here."""
    return array.zeros(op.shapes[place], op.dtypes[place])


def _stacked(op: AtenCall, *matrices: Any) -> list[Any]:
    """Return stacks of matrices with the dimensions before the last two broadcast."""
    parts = [tensor(m) for m in matrices]
    leads = [sizes(p)[:-2] for p in parts]
    if all(lead == leads[0] for lead in leads):
        return parts
    if any(None in sizes(p) for p in parts):
        raise ValueError("stacks of matrices of different unknown sizes")
    lead = list(np.broadcast_shapes(*leads))  # type: ignore[arg-type]
    return [array.broadcast_to(p, [*lead, *sizes(p)[-2:]]) for p in parts]


@aten("linalg_inv_ex", "inverse", "linalg_inv")
def inverse(op: AtenCall, x: Any, check_errors: bool = False) -> Any:
    y = linalg.inv(tensor(x))
    return (y, array.zeros(op.shapes[1], op.dtypes[1])) if len(op.dtypes) > 1 else y


@aten("linalg_cholesky_ex", "linalg_cholesky", "cholesky")
def cholesky(op: AtenCall, x: Any, upper: bool = False, check_errors: bool = False) -> Any:
    y = linalg.cholesky(tensor(x))
    y = linalg.matrix_transpose(y) if upper else y
    return (y, array.zeros(op.shapes[1], op.dtypes[1])) if len(op.dtypes) > 1 else y


@aten("cholesky_solve")
def cholesky_solve(op: AtenCall, right: Any, factor: Any, upper: bool = False) -> Any:
    right, factor = tensor(right), tensor(factor)
    lead = sizes(right)[:-2]
    if lead != sizes(factor)[:-2]:
        if None in (*op.shape, *sizes(factor)):
            raise ValueError("stacks of matrices of different unknown sizes")
        lead = list(op.shape)[:-2]
        right, factor = (array.broadcast_to(v, [*lead, *sizes(v)[-2:]]) for v in (right, factor))
    return linalg.cholesky_solve(linalg.matrix_transpose(factor) if upper else factor, right)


@aten("cholesky_inverse")
def cholesky_inverse(op: AtenCall, factor: Any, upper: bool = False) -> Any:
    unit = np.eye(int(dim_size(factor, -1)), dtype=op.dtype.np)
    return cholesky_solve(op, array.broadcast_to(tensor(unit), array.shape(tensor(factor))), factor, upper)


@aten("linalg_det", "det")
def det(op: AtenCall, x: Any) -> Any:
    return linalg.det(tensor(x))


@aten("matrix_exp", "linalg_matrix_exp")
def matrix_exp(op: AtenCall, x: Any) -> Any:
    return linalg.expm(tensor(x))


@aten("trace")
def trace(op: AtenCall, x: Any) -> Any:
    return array.cast(linalg.trace(tensor(x)), op.dtype)


@aten("_linalg_det")
def linalg_det(op: AtenCall, x: Any) -> Any:
    return linalg.det(tensor(x)), *_lu_and_pivots(op, linalg.matrix_transpose(tensor(x)), 1)  # PyTorch factors A^T


@aten("_linalg_slogdet")
def linalg_slogdet(op: AtenCall, x: Any) -> Any:
    return *linalg.slogdet(tensor(x)), *_lu_and_pivots(op, linalg.matrix_transpose(tensor(x)), 2)


def _lu_and_pivots(op: AtenCall, x: Any, place: int) -> tuple[Any, Any]:
    """Return the outputs of factors and pivots."""
    lu, rows = factors(tensor(x), True)
    return lu, array.cast(pivots_of(rows, int(sizes(lu)[-1] or 0)), op.dtypes[place + 1])


def _solved(op: AtenCall, matrix: Any, right: Any, left: bool) -> Any:
    matrix, right = tensor(matrix), tensor(right)
    column = rank_of(right) == 1 or sizes(right) == sizes(matrix)[:-1]
    if column:
        right = array.expand_dims(right, -1)
    matrix, right = _stacked(op, matrix, right)
    if left:
        y = linalg.solve(matrix, right)
    else:
        y = linalg.matrix_transpose(linalg.solve(linalg.matrix_transpose(matrix), linalg.matrix_transpose(right)))
    return array.squeeze(y, [-1]) if column else y


@aten("_linalg_solve_ex")
def solve_ex(op: AtenCall, matrix: Any, right: Any, left: bool = True, check_errors: bool = False) -> Any:
    return _solved(op, matrix, right, left), *_lu_and_pivots(op, matrix, 1), _zeros(op, 3)


@aten("linalg_solve")
def solve(op: AtenCall, matrix: Any, right: Any, left: bool = True) -> Any:
    return _solved(op, matrix, right, left)


def _triangular(matrix: Any, right: Any, upper: bool, adjoint: bool = False, unit: bool = False) -> Any:
    if unit:
        matrix = linalg.set_diag(matrix, array.ones_like(linalg.diag_part(matrix)))
    return linalg.triangular_solve(matrix, right, lower=not upper, adjoint=adjoint)


@aten("linalg_solve_triangular")
def solve_triangular(
    op: AtenCall, matrix: Any, right: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    matrix, right = _stacked(op, matrix, right)
    if left:
        return _triangular(matrix, right, upper, unit=unitriangular)
    y = _triangular(matrix, linalg.matrix_transpose(right), upper, True, unitriangular)
    return linalg.matrix_transpose(y)


@aten("triangular_solve")
def triangular_solve(
    op: AtenCall, right: Any, matrix: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    matrix, right = _stacked(op, matrix, right)
    return _triangular(matrix, right, upper, transpose, unitriangular), matrix


@aten("linalg_lu_solve")
def lu_solve(op: AtenCall, lu: Any, pivots: Any, right: Any, left: bool = True, adjoint: bool = False) -> Any:
    """Solve A X = B, A^T X = B, X A = B or X A^T = B from A = P L U."""
    lu, right = _stacked(op, lu, right)
    rows = rows_of(pivots, int(sizes(lu)[-1] or 0))
    if sizes(rows)[:-1] != sizes(lu)[:-2]:
        rows = array.broadcast_to(rows, sizes(lu)[:-1])
    if not left:
        right = linalg.matrix_transpose(right)
    if left != adjoint:  # P L U X = B
        y = _triangular(lu, array.gather(right, rows, axis=-2, batch_dims=rank_of(rows) - 1), False, unit=True)
        y = _triangular(lu, y, True)
    else:  # U^T L^T P^T X = B
        y = _triangular(lu, _triangular(lu, right, True, True), False, True, True)
        back = array.cast(math.argsort(rows, axis=-1), int64)
        y = array.gather(y, back, axis=-2, batch_dims=rank_of(rows) - 1)
    return y if left else linalg.matrix_transpose(y)


@aten("linalg_pinv.atol_rtol_tensor", "linalg_pinv", "linalg_pinv.atol_rtol_float", "pinverse")
def pinv(op: AtenCall, x: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Return the inverse of the part of singular values above the larger of both tolerances."""
    x = tensor(x)
    if not all(sizes(x)):
        return array.zeros(op.shape, op.dtype)
    if hermitian:  # which reads the lower triangle alone
        lower = linalg.band_part(x, -1, 0)
        x = lower + linalg.matrix_transpose(linalg.band_part(x, -1, 0) - linalg.band_part(x, 0, 0))
    s, u, v = linalg.svd(x)
    limit: Any = tensor(0.0, s.dtype) if atol is None else tensor(atol, s.dtype)
    if rtol is None:
        rtol = 0.0 if atol is not None else max(sizes(x)[-2:]) * np.finfo(s.dtype.np).eps  # type: ignore[type-var]
    largest = math.reduce_max(s, [-1], True)
    limit, relative = (array.expand_dims(t, -1) if rank_of(t) else t for t in (limit, tensor(rtol, s.dtype)))
    kept = s > math.maximum(limit, relative * largest)
    inverse = array.where(kept, math.reciprocal(array.where(kept, s, array.ones_like(s))), array.zeros_like(s))
    return linalg.matmul(v * array.expand_dims(inverse, -2), u, transpose_b=True)


@aten("linalg_lstsq")
def lstsq(op: AtenCall, matrix: Any, right: Any, rcond: Any = None, driver: Any = None) -> Any:
    """Return the solution of least norm, residuals (of one full-rank tall system), rank, singular values (empty)."""
    matrix, right = tensor(matrix), tensor(right)
    column = rank_of(right) == 1 or (rank_of(right) == rank_of(matrix) - 1 and sizes(right) == sizes(matrix)[:-1])
    if column:
        right = array.expand_dims(right, -1)
    matrix, right = _stacked(op, matrix, right)
    solution = linalg.matmul(pinv(op, matrix, None, rcond), right)
    rest: list[Any] = []
    for place in (1, 2, 3):
        dims = list(op.shapes[place])
        if place == 1 and all(dims):
            apart = math.square(linalg.matmul(matrix, solution) - right)
            rest.append(math.reduce_sum(apart, [-1, -2] if column else [-2]))
        elif place == 2 and None not in dims:
            rank = min(d or 0 for d in sizes(matrix)[-2:])
            rest.append(array.fill([d or 0 for d in dims], tensor(rank, op.dtypes[2])))
        elif place == 3 and all(dims):
            rest.append(linalg.svd(matrix, compute_uv=False))
        else:
            rest.append(array.zeros([d or 0 for d in dims], op.dtypes[place]))
    return (array.squeeze(solution, [-1]) if column else solution), *rest


@aten("_linalg_check_errors", pure=False)
def check_errors(op: AtenCall, *args: Any, **options: Any) -> Any:
    return None  # operators of the catalogue raise for singular matrices themselves
