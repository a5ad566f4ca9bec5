"""Factors of matrices: LU, QR and Householder vectors, singular values, eigenvalues.

Lives here: rules of ATen's decompositions, whose results have LAPACK's signs and pivots. Not here: systems of equations
(matrices.py).

The catalogue's Lu takes invertible square matrices; others are factored by a step for each column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....core.errors import UnimplementedError
from ....ops import array, linalg, math
from .table import AtenCall, aten, rank_of, sizes, tensor

STEPS = 64
"""The columns that a factorization has at most whose steps are operators each."""


def _columns(x: Any) -> tuple[int, int]:
    rows, columns = sizes(x)[-2:]
    if rows is None or columns is None:
        raise ValueError("a decomposition of matrices of unknown size")
    return rows, columns


def _steps(count: int) -> range:
    if count > STEPS:
        raise UnimplementedError(what=f"a decomposition by steps of {count} columns", wanted=f"at most {STEPS}")
    return range(count)


def _column_of(x: Any, i: int) -> Any:
    """Return a column [..., m, 1]."""
    return x[..., i : i + 1]


# ---- LU ---------------------------------------------------------------------------------------------------------


def factors(x: Any, pivot: bool) -> tuple[Any, Any]:
    """Return L below the diagonal and U, in one matrix, and the order [..., m] of rows: x[order] = L U."""
    m, n = _columns(x)
    lead = sizes(x)[:-2]
    if m == n > STEPS and pivot:
        lu, rows = linalg.lu(x, int64)
        return lu, rows
    order: Any = array.broadcast_to(tensor(np.arange(m)), [*lead, m]) if None not in lead else _order(x, m)
    place = np.arange(m)
    for i in _steps(min(m - 1, n)):
        column = x[..., i]
        if pivot:
            size = array.where(tensor(place >= i), math.abs(column), tensor(-1, math.abs(column).dtype))
            best = array.expand_dims(math.argmax(size, axis=-1, output_type=int64), -1)
            swapped = _swapped(best, i, m)
            x = array.gather(x, swapped, axis=-2, batch_dims=rank_of(x) - 2)
            order = array.gather(order, swapped, axis=-1, batch_dims=rank_of(order) - 1)
        top = x[..., i : i + 1, i : i + 1]
        zero = math.equal(top, tensor(0, x.dtype))
        below = tensor((place > i)[:, None])
        factor = array.where(below, _column_of(x, i) / array.where(zero, array.ones_like(top), top), tensor(0, x.dtype))
        right = tensor((np.arange(n) > i)[None])
        update = array.where(right, x[..., i : i + 1, :], tensor(0, x.dtype))
        x = array.where(math.logical_and(below, tensor((np.arange(n) == i)[None])), factor, x - factor * update)
    return x, order


def _order(x: Any, m: int) -> Any:
    zeros = array.cast(array.zeros_like(x[..., 0]), int64)
    return zeros + tensor(np.arange(m))


def _swapped(best: Any, i: int, m: int) -> Any:
    """Return the positions [..., m] with i and best [..., 1] exchanged."""
    place = tensor(np.arange(m))
    return array.where(
        math.equal(place, tensor(i, int64)), best, array.where(math.equal(place, best), tensor(i, int64), place)
    )


def pivots_of(rows: Any, columns: int) -> Any:
    """Return LAPACK's pivots, from 1: the row that each row was exchanged with, from an order of rows."""
    m = int(sizes(rows)[-1] or 0)
    current: Any = array.zeros_like(rows) + tensor(np.arange(m), rows.dtype)
    pivots = []
    for i in range(min(m, columns)):
        row = rows[..., i : i + 1]
        at = array.expand_dims(math.argmax(array.cast(math.equal(current, row), "int32"), -1, output_type=int64), -1)
        pivots.append(at + tensor(1, int64))
        current = array.gather(current, _swapped(at, i, m), axis=-1, batch_dims=rank_of(current) - 1)
    return array.concat(pivots, -1) if pivots else array.cast(rows[..., :0], int64)


def rows_of(pivots: Any, m: int) -> Any:
    """Return the order of rows [..., m] of LAPACK's pivots [..., k]."""
    pivots = array.cast(tensor(pivots), int64)
    rows: Any = array.zeros_like(pivots[..., :1]) + tensor(np.arange(m)) if sizes(pivots)[-1] else None
    if rows is None:
        return array.cast(array.zeros([*sizes(pivots)[:-1], m], int64), int64) + tensor(np.arange(m))
    for i in range(int(sizes(pivots)[-1] or 0)):
        swapped = _swapped(pivots[..., i : i + 1] - tensor(1, int64), i, m)
        rows = array.gather(rows, swapped, axis=-1, batch_dims=rank_of(rows) - 1)
    return rows


def _unpacked(lu: Any) -> tuple[Any, Any]:
    """Return L [..., m, k], U [..., k, n] with k = min(m, n)."""
    m, n = _columns(lu)
    k = min(m, n)
    rows, columns = np.arange(m)[:, None], np.arange(n)[None]
    zero, one = tensor(0, lu.dtype), tensor(1, lu.dtype)
    lower = array.where(tensor((rows > columns)[:, :k]), lu[..., :k], tensor(np.eye(m, k, dtype=lu.dtype.np)) * one)
    return lower, array.where(tensor((rows <= columns)[:k]), lu[..., :k, :], zero)


def _permutation(rows: Any, dtype: Any) -> Any:
    """Return the matrix P of x = P (L U) for an order of rows."""
    m = int(sizes(rows)[-1] or 0)
    return linalg.matrix_transpose(array.one_hot(rows, m, dtype=dtype))


@aten("linalg_lu_factor_ex", "linalg_lu_factor", "_lu_with_info")
def lu_factor(op: AtenCall, x: Any, pivot: bool = True, *rest: Any, **options: Any) -> Any:
    lu, rows = factors(tensor(x), pivot)
    results = [lu, array.cast(pivots_of(rows, _columns(lu)[1]), op.dtypes[1])]
    return [*results, *(array.zeros(s, d) for s, d in zip(op.shapes[2:], op.dtypes[2:]))]


@aten("linalg_lu")
def linalg_lu(op: AtenCall, x: Any, pivot: bool = True) -> Any:
    lu, rows = factors(tensor(x), pivot)
    empty = array.zeros([0], op.dtype)
    return (_permutation(rows, op.dtype) if pivot else empty), *_unpacked(lu)


@aten("lu_unpack")
def lu_unpack(op: AtenCall, lu: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    lu = tensor(lu)
    empty = array.zeros([0], op.dtype)
    order = _permutation(rows_of(pivots, _columns(lu)[0]), op.dtype) if unpack_pivots else empty
    return order, *(_unpacked(lu) if unpack_data else (empty, empty))


# ---- QR ---------------------------------------------------------------------------------------------------------


@aten("linalg_qr")
def qr(op: AtenCall, x: Any, mode: str = "reduced") -> Any:
    q, r = linalg.qr(tensor(x), full_matrices=mode == "complete")
    return (array.zeros([0], op.dtype) if mode == "r" else q), r


@aten("qr")
def qr_some(op: AtenCall, x: Any, some: bool = True) -> Any:
    return tuple(linalg.qr(tensor(x), full_matrices=not some))


@aten("geqrf")
def geqrf(op: AtenCall, x: Any) -> Any:
    """Return R, below it Householder vectors without their leading 1, and tau (LAPACK, xGEQRF)."""
    x = tensor(x)
    m, n = _columns(x)
    place, taus = np.arange(m)[:, None], []
    zero, one = tensor(0, x.dtype), tensor(1, x.dtype)
    for i in _steps(min(m, n)):
        column = array.where(tensor(place >= i), _column_of(x, i), zero)
        alpha = column[..., i : i + 1, :]
        rest = math.reduce_sum(math.square(array.where(tensor(place > i), column, zero)), [-2], True)
        size = math.sqrt(math.square(alpha) + rest)
        flat = math.equal(rest, zero)
        beta = array.where(flat, alpha, array.where(alpha < zero, size, -size))
        tau = array.where(flat, zero, (beta - alpha) / array.where(flat, one, beta))
        below = tensor(place > i)
        vector = array.where(below, column / array.where(flat, one, alpha - beta), zero)
        vector = array.where(tensor(place == i), one, array.where(flat, zero, vector))
        right = tensor((np.arange(n) > i)[None])
        change = tau * vector * linalg.matmul(vector, x, transpose_a=True)
        x = array.where(right, x - change, x)
        own = array.where(tensor(place == i), beta, array.where(below, vector, _column_of(x, i)))
        x = array.where(tensor((np.arange(n) == i)[None]), own, x)
        taus.append(tau[..., 0, :])
    return x, array.concat(taus, -1) if taus else array.zeros(op.shapes[1], op.dtype)


def _reflected(vectors: Any, tau: Any, x: Any, last_first: bool) -> Any:
    """Return the product of the reflections I - tau v v^T and x; the last is applied first, or last."""
    m, k = _columns(vectors)[0], int(sizes(tau)[-1] or 0)
    place = np.arange(m)[:, None]
    for i in reversed(_steps(k)) if last_first else _steps(k):
        vector = array.where(tensor(place > i), _column_of(vectors, i), tensor((place == i).astype(x.dtype.np)))
        scale = array.expand_dims(tau[..., i : i + 1], -1)
        x = x - scale * vector * linalg.matmul(vector, x, transpose_a=True)
    return x


@aten("linalg_householder_product", "orgqr")
def householder_product(op: AtenCall, vectors: Any, tau: Any) -> Any:
    vectors, tau = tensor(vectors), tensor(tau)
    m, n = _columns(vectors)
    lead = [1] * (rank_of(vectors) - 2)
    unit = tensor(np.eye(m, n, dtype=op.dtype.np).reshape([*lead, m, n]))
    return _reflected(vectors, tau, unit + array.zeros_like(vectors), True)


@aten("ormqr")
def ormqr(op: AtenCall, vectors: Any, tau: Any, x: Any, left: bool = True, transpose: bool = False) -> Any:
    vectors, tau, x = tensor(vectors), tensor(tau), tensor(x)
    if not left:
        return linalg.matrix_transpose(_reflected(vectors, tau, linalg.matrix_transpose(x), transpose))
    return _reflected(vectors, tau, x, not transpose)


# ---- values -----------------------------------------------------------------------------------------------------


@aten("_linalg_svd")
def svd(op: AtenCall, x: Any, full_matrices: bool = False, compute_uv: bool = True, driver: Any = None) -> Any:
    if not compute_uv:
        empty = array.zeros([0], op.dtype)
        return empty, linalg.svd(tensor(x), compute_uv=False), empty
    s, u, v = linalg.svd(tensor(x), full_matrices=full_matrices)
    return u, s, linalg.adjoint(v)


@aten("linalg_svdvals")
def svdvals(op: AtenCall, x: Any, driver: Any = None) -> Any:
    return linalg.svd(tensor(x), compute_uv=False)


@aten("_linalg_eigh")
def eigh(op: AtenCall, x: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    x = tensor(x)
    x = linalg.matrix_transpose(x) if uplo.upper() == "U" else x
    return linalg.eigh(x) if compute_v else (linalg.eigvalsh(x), array.zeros([0], op.dtype))


@aten("linalg_eig")
def eig(op: AtenCall, x: Any) -> Any:
    return linalg.eig(tensor(x))


@aten("linalg_eigvals", "_linalg_eigvals")
def eigvals(op: AtenCall, x: Any) -> Any:
    return linalg.eigvals(tensor(x))
