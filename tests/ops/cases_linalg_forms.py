"""Rows for linear algebra: general eigenvalues, roots and logarithms, LU, matrices with few diagonals.

Lives here: rows for eigen, roots, lower_upper and bands of `ops/linalg`.  Not here: the others (cases_linalg.py).
Oracles are the equations that must hold, the matrix written out in full, and literal values of TensorFlow 2.21.
"""

from __future__ import annotations

import math

import numpy as np
from cases_linalg import definite, dot, each, h, near, singular, taylor, well
from harness import bad, c64, c128, case, f32, f64, i32

nan = math.nan
GRADIENT_ONLY = "for the derivative; its operator's rows have the oracle"
A = np.array([[1.0, 2.0], [3.0, 4.0]])
# Two eigenvalues 2 with one eigenvector, in a basis where that cannot be seen
DEFECTIVE = np.array([[1.0, 2.0], [-1.0, 3.0]]) @ np.array([[2.0, 1.0], [0.0, 2.0]]) @ np.linalg.inv([[1, 2], [-1, 3]])


def is_eig(e, v, x):
    near(dot(x.astype(v.dtype), v), v * e[..., None, :])
    np.testing.assert_allclose(np.abs(v * v.conj()).sum(-2), 1, 1e-5)


def has_eigenvalues(e, x):
    for values, matrix in zip(e.reshape(-1, e.shape[-1]), x.reshape(-1, *x.shape[-2:])):
        for value in values:
            assert abs(np.linalg.det(matrix - value * np.eye(len(matrix)))) < 1e-3


def ordered(x):
    """Eigenvalues, and what of eigenvectors no choice of phases changes."""
    import opwright as ow

    e, v = ow.linalg.eig(x)
    return e, ow.abs(v) ** 3


def squares_to(root, x):
    near(dot(root, root), x)
    assert (np.linalg.eigvals(root).real > -1e-6).all()


def is_logarithm(log, x):
    near(taylor(log).astype(log.dtype), x)
    assert (np.abs(np.linalg.eigvals(log).imag) < math.pi + 1e-6).all()


def parts(lu):
    return np.tril(lu, -1) + np.eye(lu.shape[-1], dtype=lu.dtype), np.triu(lu)


def is_lu(lu, p, x):
    low, high = parts(lu)
    near(dot(low, high), np.take_along_axis(x, p[..., None], -2))
    assert (np.abs(np.tril(lu, -1)) <= 1 + 1e-9).all()
    np.testing.assert_array_equal(np.sort(p), np.broadcast_to(np.arange(p.shape[-1]), p.shape))


def in_full(d):
    """Of compact diagonals."""
    n = d.shape[-1]
    out = np.zeros((*d.shape[:-2], n, n), d.dtype)
    for i in range(n):
        out[..., i, i] = d[..., 1, i]
        if i + 1 < n:
            out[..., i, i + 1], out[..., i + 1, i] = d[..., 0, i], d[..., 2, i + 1]
    return out


def banded(b, lower, adjoint=False):
    count, n = b.shape[-2:]
    out = np.zeros((*b.shape[:-2], n, n), b.dtype)
    for k in range(count):
        for i in range(n):
            j = i - k if lower else i + k
            if 0 <= j < n:
                out[..., i, j] = b[..., k if lower else count - 1 - k, i]
    return h(out) if adjoint else out


def solved(a, b):
    return each(lambda x, y: np.linalg.inv(x) @ y, a, b)


def strong(d, row=1):
    """A main diagonal that is far from 0."""
    d = d.copy()
    d[..., row, :] += 6 * np.where(d[..., row, :].real < 0, -1, 1)
    return d


def band_case(b, rhs, lower=True, adjoint=False):
    b = strong(b, 0 if lower else -1)
    return case(b, rhs, lower=lower, adjoint=adjoint, expect=lambda b, r: solved(banded(b, lower, adjoint), r))


def lu_of(x):
    """lu and p of well conditioned matrices, by NumPy alone, as rows in the order of the largest first element."""
    low, high = parts(well(x))
    return (np.tril(low, -1) + high).astype(x.dtype)


perm = np.array([2, 0, 1], np.int32)
perms = np.array([[2, 0, 1], [0, 2, 1]], np.int32)


def put_back(lu, p):
    low, high = parts(lu)
    product = dot(low, high)
    p = np.broadcast_to(p, product.shape[:-1])
    out = np.empty_like(product)
    np.put_along_axis(out, p[..., None], product, -2)
    return out


def tridiagonal(alpha, beta):
    return np.diag(alpha.real) + np.diag(beta, 1) + np.diag(beta.conj(), -1)


def eigenvalues(alpha, beta, **_):
    return np.linalg.eigvalsh(tridiagonal(alpha, beta))


def is_tridiagonal_eigh(e, v, alpha, beta):
    near(tridiagonal(alpha, beta) @ v, v * e)
    assert (np.diff(e) > 0).all()


V = np.array([0.7647123253168926, 1.8794974627463175, 2.960650543066017, 4.3951396688707725])
ALPHA, BETA = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.6, 0.7])

CASES = {
    "Eig": [
        case(well(f64(3, 3)), holds=is_eig, grad=False),
        case(well(f32(2, 3, 3)), holds=is_eig, grad=False, gives=["complex64", "complex64"]),
        case(c128(2, 3, 3), holds=is_eig, grad=False),
        case(np.array([[0.0, 1.0], [-1.0, 0.0]]), holds=is_eig, grad=False),
        case(f64(3, 3), call=ordered, says_nothing=GRADIENT_ONLY, rtol=1e-4),
        case(c128(2, 3, 3), call=ordered, says_nothing=GRADIENT_ONLY, rtol=1e-4),
        case(f64(3, 3), compute_v=False, holds=lambda e, v, x: has_eigenvalues(e, x)),
        case(np.zeros((0, 0), np.float32), holds=lambda e, v, x: e.shape == (0,), grad=False),
        bad(f32(2, 3), says="square"),
        bad(f32(3), says="rank >= 2"),
        bad(i32(2, 2), says="dtype"),
    ],
    "linalg.eig": [case(c128(3, 3), holds=is_eig, grad=False)],
    "linalg.eigvals": [
        case(f64(3, 3), holds=has_eigenvalues),
        case(np.diag([1.0, 3.0]), expect=np.array([1.0, 3.0], np.complex128)),
    ],
    "linalg.eigh_tridiagonal": [
        case(ALPHA, BETA, expect=V),
        case(f64(5), f64(4), expect=eigenvalues),
        case(c128(4), c128(3), expect=eigenvalues, gives="float64"),
        case(f64(4), f64(3), eigvals_only=False, holds=is_tridiagonal_eigh, grad=False),
        case(c128(4), c128(3), eigvals_only=False, holds=is_tridiagonal_eigh, grad=False),
        case(ALPHA, BETA, select="i", select_range=(1, 2), expect=V[1:3]),
        case(ALPHA, BETA, select="v", select_range=(1.5, 3.5), expect=V[1:3]),
        case(ALPHA, BETA, select="v", select_range=(-3.0, -2.0), expect=V[:0]),
        case(
            ALPHA,
            BETA,
            select="i",
            select_range=(0, 1),
            eigvals_only=False,
            grad=False,
            holds=lambda e, v, *_: near(tridiagonal(ALPHA, BETA) @ v, v * e),
        ),
        case(f64(1), f64(0), expect=lambda a, b: a),
        bad(ALPHA, BETA, select="x", says="select", raises=ValueError),
        bad(ALPHA, BETA, select="i", select_range=(2, 1), says="empty index range"),
        bad(ALPHA, BETA, select="v", select_range=(2.0, 1.0), says="empty interval"),
        bad(ALPHA, f32(3), says="same type", raises=ValueError),
        bad(f64(2, 2), f64(2, 1), says="rank 1"),
    ],
    "MatrixSquareRoot": [
        case(definite(f64(3, 3)), holds=squares_to),
        case(well(f64(2, 3, 3)), holds=squares_to),
        case(well(c128(2, 3, 3), 3.0), holds=squares_to),
        case(definite(f32(4, 4)), holds=squares_to, grad=False),
        case(DEFECTIVE, holds=squares_to, rtol=1e-4),
        case(np.array([[0.0, -1.0], [1.0, 0.0]]), expect=np.array([[1.0, -1.0], [1.0, 1.0]]) * math.sqrt(0.5)),
        case(A @ A.T, expect=[[1.2004900959975622, 1.886484436567596], [1.886484436567596, 4.630461798847737]]),
        case(A, expect=np.full((2, 2), nan), grad=False),
        case(
            A.astype(np.complex64),
            expect=np.array(
                [[0.55368853 + 0.46439406j, 0.8069607 - 0.21242645j], [1.210441 - 0.31863967j, 1.7641295 + 0.14575444j]]
            ),
            rtol=1e-5,
            grad=False,
        ),
        case(-np.eye(2), expect=np.full((2, 2), nan), grad=False),
        case(np.zeros((2, 2)), expect=np.zeros((2, 2)), grad=False),
        case(np.array([[0.0, 1.0], [0.0, 0.0]]), expect=np.full((2, 2), nan), grad=False),
        case(np.zeros((0, 0), np.float32), expect=np.zeros((0, 0), np.float32)),
        bad(f32(2, 3), says="square"),
        bad(i32(2, 2), says="dtype"),
    ],
    "MatrixLogarithm": [
        case(well(c128(2, 3, 3), 3.0), holds=is_logarithm),
        case(c128(3, 3), holds=is_logarithm),
        case(DEFECTIVE + 0j, holds=is_logarithm, rtol=1e-4),
        case(well(c64(3, 3)), holds=is_logarithm, grad=False),
        case(
            A + 0j,
            grad=False,
            expect=np.array(
                [  # an eigenvalue is negative
                    [-0.3504398139985536 + 2.391117954451725j, 0.9293512057047018 - 1.0937621702091036j],
                    [1.3940268085570526 - 1.6406432553136558j, 1.0435869945584992 + 0.7504746991380689j],
                ]
            ),
        ),
        case(
            np.array([[2, 1], [0, 2]], np.complex64),
            expect=np.array([[math.log(2), 0.5], [0, math.log(2)]]) + 0j,
            rtol=1e-6,
        ),
        case(np.diag([-1.0, -2.0]) + 0j, expect=np.diag([math.pi * 1j, math.log(2) + math.pi * 1j]), grad=False),
        case(np.zeros((2, 2), np.complex64), expect=np.full((2, 2), nan + nan * 1j), grad=False),
        case(np.zeros((3, 0, 0), np.complex64), expect=np.zeros((3, 0, 0), np.complex64)),
        bad(f32(2, 2), says="dtype"),
        bad(c64(2, 3), says="square"),
    ],
    "Lu": [
        case(f64(3, 3), holds=is_lu),
        case(f64(2, 4, 4), holds=is_lu),
        case(c128(2, 3, 3), output_idx_type="int64", holds=is_lu, gives=["complex128", "int64"]),
        case(f32(3, 3), holds=is_lu, gives=["float32", "int32"], grad=False),
        case(A, expect=[np.array([[3.0, 4.0], [1 / 3, 2 / 3]]), np.array([1, 0], np.int32)]),
        case(np.zeros((2, 0, 0)), expect=[np.zeros((2, 0, 0)), np.zeros((2, 0), np.int32)]),
        bad(singular, says="not invertible"),
        bad(f32(2, 3), says="square"),
        bad(f32(2, 2), output_idx_type="int8", says="output_idx_type"),
    ],
    "linalg.lu": [case(f64(3, 3), holds=is_lu)],
    "linalg.lu_solve": [
        case(lu_of(f64(3, 3)), perm, f64(3, 2), expect=lambda a, p, b: solved(put_back(a, p), b)),
        case(lu_of(f64(3, 3)), perm, f64(2, 3, 2), expect=lambda a, p, b: solved(put_back(a, p), b)),
        case(lu_of(f64(2, 3, 3)), perms, f64(3, 2), expect=lambda a, p, b: solved(put_back(a, p), b)),
        case(lu_of(c128(2, 3, 3)), perms, c128(2, 3, 1), expect=lambda a, p, b: solved(put_back(a, p), b)),
        bad(lu_of(f32(3, 3)), perm, f32(3), says="at least 2 dimensions", raises=ValueError),
        bad(f32(2, 3), perm, f32(3, 1), says="square", raises=ValueError),
        bad(lu_of(f32(3, 3)), perm[:2], f32(3, 1), says="each of 3 rows", raises=ValueError),
    ],
    "linalg.lu_matrix_inverse": [
        case(lu_of(f64(3, 3)), perm, expect=lambda a, p: np.linalg.inv(put_back(a, p))),
        case(lu_of(f64(2, 3, 3)), perms, expect=lambda a, p: np.linalg.inv(put_back(a, p))),
    ],
    "linalg.lu_reconstruct": [
        case(lu_of(f64(3, 3)), perm, expect=put_back),
        case(lu_of(c128(2, 3, 3)), perms, expect=put_back),
        bad(f32(3), perm, says="at least 2 dimensions", raises=ValueError),
    ],
    "TridiagonalSolve": [
        case(strong(f64(3, 4)), f64(4, 2), expect=lambda d, b: solved(in_full(d), b)),
        case(strong(f64(2, 3, 4)), f64(2, 4, 1), partial_pivoting=False, expect=lambda d, b: solved(in_full(d), b)),
        case(strong(c128(2, 3, 3)), c128(2, 3, 2), expect=lambda d, b: solved(in_full(d), b)),
        # What comes first is 0, so that rows must be exchanged, or are as good as 0
        case(
            np.array([[1.0, 2.0, 9.0], [0.0, 1.0, 3.0], [9.0, 2.0, 1.0]]),
            f64(3, 2),
            expect=lambda d, b: solved(in_full(d), b),
        ),
        case(
            np.array([[1.0, 2.0, 9.0], [1e-20, 1.0, 3.0], [9.0, 2.0, 1.0]]),
            f64(3, 2),
            grad=False,
            expect=lambda d, b: solved(in_full(d), b),
        ),
        case(strong(f32(3, 3)), f32(3, 2), expect=lambda d, b: solved(in_full(d), b), grad=False),
        case(np.ones((3, 1)), f64(1, 2), expect=lambda d, b: b),
        case(np.ones((3, 0)), f64(0, 2), expect=lambda d, b: b),
        case(
            np.array([[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]),
            f64(3, 1),
            expect=np.full((3, 1), nan),
            grad=False,
        ),
        case(np.zeros((3, 3)), f64(3, 1), perturb_singular=True, holds=lambda x, *_: np.isfinite(x).all(), grad=False),
        case(strong(f64(3, 3)), f64(3, 1), perturb_singular=True, expect=lambda d, b: solved(in_full(d), b)),
        bad(f32(2, 3), f32(3, 1), says="Expected 3 diagonals got 2"),
        bad(f32(3, 3), f32(4, 1), says="do not fit"),
        bad(f32(3), f32(4, 1), says="rank at least 2"),
    ],
    "linalg.tridiagonal_solve": [
        case(strong(f64(3, 4)), f64(4), expect=lambda d, b: solved(in_full(d), b[:, None])[:, 0], unknown=False),
        case(strong(f64(3, 4)), f64(2, 4), transpose_rhs=True, expect=lambda d, b: solved(in_full(d), b.T)),
        case(strong(c128(3, 4)), c128(4, 2), conjugate_rhs=True, expect=lambda d, b: solved(in_full(d), b.conj())),
        case(
            [f64(3), f64(4) + 6, f64(3)],
            f64(4, 2),
            diagonals_format="sequence",
            unknown=False,
            expect=lambda d, b: solved(np.diag(d[1]) + np.diag(d[0], 1) + np.diag(d[2], -1), b),
        ),
        case(
            well(f64(3, 3)),
            f64(3, 2),
            diagonals_format="matrix",
            expect=lambda a, b: solved(np.triu(np.tril(a, 1), -1), b),
        ),
        bad(f32(3, 4), f32(4, 1), "x", says="Unrecognized diagonals_format", raises=ValueError),
        bad(
            f32(3, 4), f32(4, 1), partial_pivoting=False, perturb_singular=True, says="must be True", raises=ValueError
        ),
        bad(f32(3, 4), f32(2, 4, 1), says="rank of rhs", raises=ValueError),
        bad([f32(1), f32(4), f32(3)], f32(4, 1), "sequence", says="superdiagonal", raises=ValueError),
        bad([f32(1), f32(4)], f32(4, 1), "sequence", says="length 3", raises=ValueError),
        bad(f32(3, 4), f32(4, 1), "matrix", says="to be same", raises=ValueError),
    ],
    "linalg.tridiagonal_matmul": [
        case(f64(3, 4), f64(4, 2), expect=lambda d, b: in_full(d) @ b),
        case(c128(2, 3, 4), c128(2, 4, 2), expect=lambda d, b: in_full(d) @ b),
        case(
            [f64(4), f64(4), f64(4)],
            f64(4, 2),
            diagonals_format="sequence",
            expect=lambda d, b: in_full(np.stack(d)) @ b,
        ),
        case(f64(3, 3), f64(3, 2), diagonals_format="matrix", expect=lambda a, b: np.triu(np.tril(a, 1), -1) @ b),
        bad(f32(3, 4), f32(4), says="same rank"),
    ],
    "BandedTriangularSolve": [
        band_case(f64(2, 4), f64(4, 2)),
        band_case(f64(3, 4), f64(4, 2), lower=False),
        band_case(f64(2, 2, 4), f64(4, 1), adjoint=True),
        band_case(f64(2, 4), f64(2, 4, 1), lower=False, adjoint=True),
        band_case(c128(2, 3), c128(3, 2)),
        band_case(c128(2, 3), c128(3, 2), adjoint=True),
        band_case(c128(2, 3), c128(3, 2), lower=False, adjoint=True),
        band_case(f64(4, 3), f64(3, 1)),
        band_case(f64(4, 3), f64(3, 1), lower=False),
        band_case(f64(1, 3), f64(3, 1)),
        case(
            np.array([[2.0, 3, 4], [9, 1, 2]]),
            np.array([[1.0, 2], [3, 4], [5, 6]]),
            expect=[[0.5, 1.0], [5 / 6, 1.0], [5 / 6, 1.0]],
        ),
        bad(np.array([[0.0, 3, 4], [9, 1, 2]]), f64(3, 1), says="not invertible"),
        bad(f64(2, 3), f64(4, 1), says="mismatch"),
        bad(f64(2, 3), f64(3), says="ndims must be >= 2"),
    ],
}
