"""The complex Schur form of a matrix, and roots and logarithms by it: plain NumPy, one matrix at a time.

Lives here: schur, square_root, logarithm.  Not here: the operators (roots.py).
"""

from __future__ import annotations

import numpy as np

_EPS = float(np.finfo(np.float64).eps)


def _hessenberg(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h, q with a = q h q^H, h zero below its first subdiagonal; by Householder's reflections."""
    n, h, q = len(a), a.copy(), np.eye(len(a), dtype=a.dtype)
    for k in range(n - 2):
        v = h[k + 1 :, k].copy()
        size = np.linalg.norm(v)
        if np.linalg.norm(v[1:]) == 0:
            continue
        v[0] += size * (v[0] / abs(v[0]) if v[0] else 1.0)
        v /= np.linalg.norm(v)
        h[k + 1 :] -= 2 * np.outer(v, v.conj() @ h[k + 1 :])
        h[:, k + 1 :] -= 2 * np.outer(h[:, k + 1 :] @ v, v.conj())
        q[:, k + 1 :] -= 2 * np.outer(q[:, k + 1 :] @ v, v.conj())
        h[k + 2 :, k] = 0
    return h, q


def _shift(h: np.ndarray, at: int, attempt: int) -> complex:
    """The eigenvalue of the last two rows that is nearer to the last element; now and then another, to get unstuck."""
    if attempt % 10 == 9:
        return complex(h[at, at] + abs(h[at, at - 1]))
    (a, b), (c, d) = h[at - 1 : at + 1, at - 1 : at + 1].tolist()
    half = (a - d) / 2
    root = np.sqrt(half * half + b * c)
    far = half + root if abs(half + root) >= abs(half - root) else half - root
    return complex(d - b * c / far) if far else complex(d)


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """t, q with a = q t q^H, t upper triangular, q unitary; complex128. By QR steps with shifts; NaN where there are.

    Source: Golub and Van Loan, Matrix Computations, 4th edition, 7.5.
    """
    n, a = len(a), a.astype(np.complex128)
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan), np.eye(n, dtype=a.dtype)
    t, q = _hessenberg(a)
    end, attempt = n - 1, 0
    smallest = _EPS * float(np.abs(t).max(initial=0.0))
    while end > 0 and attempt < 300:
        begin = end
        while begin > 0:
            near = abs(t[begin, begin]) + abs(t[begin - 1, begin - 1])
            if abs(t[begin, begin - 1]) <= _EPS * (near or smallest):
                t[begin, begin - 1] = 0
                break
            begin -= 1
        if begin == end:
            end, attempt = end - 1, 0
            continue
        rows, shift = slice(begin, end + 1), _shift(t, end, attempt)
        turn, _ = np.linalg.qr(t[rows, rows] - shift * np.eye(end + 1 - begin))
        t[rows, begin:] = turn.conj().T @ t[rows, begin:]
        t[: end + 1, rows] = t[: end + 1, rows] @ turn
        t[rows, rows] = np.triu(t[rows, rows], -1)
        q[:, rows] = q[:, rows] @ turn
        attempt += 1
    # No rounding error, nor the sign of a zero, decides on which side of the branch cut a negative eigenvalue lies
    t, values = np.triu(t), np.diagonal(t)
    cut = (values.real < 0) & (np.abs(values.imag) <= 100 * _EPS * np.abs(t).max(initial=0.0))
    np.fill_diagonal(t, np.where(cut, values.real + 0j, values))
    return t, q


def _triangular_root(t: np.ndarray) -> np.ndarray:
    """The principal root of an upper triangular matrix, column by column. Source: Björck and Hammarling, 1983."""
    root = np.diag(np.sqrt(np.diagonal(t)))
    for j in range(1, len(t)):
        for i in range(j - 1, -1, -1):
            rest = t[i, j] - root[i, i + 1 : j] @ root[i + 1 : j, j]
            root[i, j] = rest / (root[i, i] + root[j, j]) if rest else 0.0
    return root


def square_root(a: np.ndarray) -> np.ndarray:
    """The principal root, all NaN where there is none; of a real matrix real, so none for negative eigenvalues."""
    t, q = schur(a)
    root = q @ _triangular_root(t) @ q.conj().T
    if not np.isfinite(root).all():
        return np.full_like(a, np.nan)
    if a.dtype.kind != "c":
        if np.abs(root.imag).max(initial=0.0) > 1e-7 * np.abs(root).max(initial=0.0):
            return np.full_like(a, np.nan)
        root = root.real
    return root.astype(a.dtype)


def logarithm(a: np.ndarray) -> np.ndarray:
    """The principal logarithm of a complex matrix, all NaN where there is none.

    Roots are taken until the matrix is near 1, where Padé's approximant [8/8] is exact in float64; it is Gauss's
    quadrature of the integral of x / (1 + s x). Source: Higham, Functions of Matrices, 2008, chapter 11.
    """
    t, q = schur(a)
    values = np.diagonal(t)
    if not np.isfinite(t).all() or not values.all():
        return np.full_like(a, np.nan)
    exact, roots, one = np.log(values), 0, np.eye(len(t))
    while np.abs(t - one).sum(0).max(initial=0.0) > 0.25 and roots < 100:
        t, roots = _triangular_root(t), roots + 1
    x = t - one
    np.fill_diagonal(x, np.expm1(exact / 2.0**roots))
    places, weights = np.polynomial.legendre.leggauss(8)
    log = sum(w / 2 * np.linalg.solve(one + (1 + s) / 2 * x, x) for s, w in zip(places, weights)) * 2.0**roots
    log = np.triu(log)
    np.fill_diagonal(log, exact)
    return (q @ log @ q.conj().T).astype(a.dtype)
