"""Eigenvalues; square roots and logarithms of matrices by the complex Schur decomposition.

Lives here: MatrixSquareRoot, MatrixLogarithm, Eig; eig, eigvals, eigh_tridiagonal; the Schur decomposition of single
matrices in NumPy.
Not here: eigenvalues of self-adjoint matrices (factorization.py), the exponential (matrix_functions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import complexes
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..math.complex_numbers import COMPLEX_OF, real
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .diagonals import diag, diag_part, set_diag
from .einsum import matrix_function_gradient
from .factorization import SelfAdjointEig, _differences
from .matmul import product
from .solvers import SOLVABLE, MatrixSolve, matrix_shape

if TYPE_CHECKING:
    from .. import signatures

_EPS = float(np.finfo(np.float64).eps)


def _hessenberg(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return h, q with a = q h q^H and h upper Hessenberg, by Householder reflections."""
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


def _shift(h: np.ndarray, last: int, attempt: int) -> complex:
    """Return the Wilkinson shift of the last two rows; every tenth attempt, an exceptional shift."""
    if attempt % 10 == 9:
        return complex(h[last, last] + abs(h[last, last - 1]))
    (a, b), (c, d) = h[last - 1 : last + 1, last - 1 : last + 1].tolist()
    half = (a - d) / 2
    root = np.sqrt(half * half + b * c)
    larger = half + root if abs(half + root) >= abs(half - root) else half - root
    return complex(d - b * c / larger) if larger else complex(d)


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return t, q with a = q t q^H, t upper triangular, q unitary, complex128, by shifted QR iterations.

    t is NaN if a has elements that are not finite. Source: Golub and Van Loan, Matrix Computations, 4th edition, 7.5.
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
            magnitude = abs(t[begin, begin]) + abs(t[begin - 1, begin - 1])
            if abs(t[begin, begin - 1]) <= _EPS * (magnitude or smallest):
                t[begin, begin - 1] = 0
                break
            begin -= 1
        if begin == end:
            end, attempt = end - 1, 0
            continue
        rows, shift = slice(begin, end + 1), _shift(t, end, attempt)
        rotation, _ = np.linalg.qr(t[rows, rows] - shift * np.eye(end + 1 - begin))
        t[rows, begin:] = rotation.conj().T @ t[rows, begin:]
        t[: end + 1, rows] = t[: end + 1, rows] @ rotation
        t[rows, rows] = np.triu(t[rows, rows], -1)
        q[:, rows] = q[:, rows] @ rotation
        attempt += 1
    # snap negative eigenvalues to the branch cut: rounding errors and signed zeros must not decide its side
    t = np.triu(t)
    values: Any = np.diagonal(t)
    cut = (values.real < 0) & (np.abs(values.imag) <= 100 * _EPS * np.abs(t).max(initial=0.0))
    np.fill_diagonal(t, np.where(cut, values.real + 0j, values))
    return t, q


def _triangular_root(t: np.ndarray) -> np.ndarray:
    """Return the principal square root of an upper triangular matrix. Source: Björck and Hammarling, 1983."""
    root = np.diag(np.sqrt(np.diagonal(t)))
    for j in range(1, len(t)):
        for i in range(j - 1, -1, -1):
            residual = t[i, j] - root[i, i + 1 : j] @ root[i + 1 : j, j]
            root[i, j] = residual / (root[i, i] + root[j, j]) if residual else 0.0
    return root


def square_root(a: np.ndarray) -> np.ndarray:
    """Return the principal square root; NaN if there is none, or none that is real for a real matrix."""
    t, q = schur(a)
    root: Any = q @ _triangular_root(t) @ q.conj().T
    if not np.isfinite(root).all():
        return np.full_like(a, np.nan)
    if a.dtype.kind != "c":
        if np.abs(root.imag).max(initial=0.0) > 1e-7 * np.abs(root).max(initial=0.0):
            return np.full_like(a, np.nan)
        root = root.real
    result: np.ndarray = root.astype(a.dtype)
    return result


def logarithm(a: np.ndarray) -> np.ndarray:
    """Return the principal logarithm of a complex matrix; NaN if there is none.

    By inverse scaling and squaring: square roots until the matrix is close to 1, where the [8/8] Padé approximant,
    Gaussian quadrature of the integral of x / (1 + s x), is exact in float64. Source: Higham, Functions of Matrices,
    2008, chapter 11.
    """
    t, q = schur(a)
    values = np.diagonal(t)
    if not np.isfinite(t).all() or not values.all():
        return np.full_like(a, np.nan)
    exact, roots, identity = np.log(values), 0, np.eye(len(t))
    while np.abs(t - identity).sum(0).max(initial=0.0) > 0.25 and roots < 100:
        t, roots = _triangular_root(t), roots + 1
    x = t - identity
    np.fill_diagonal(x, np.expm1(exact / 2.0**roots))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    log = sum(w / 2 * np.linalg.solve(identity + (1 + s) / 2 * x, x) for s, w in zip(nodes, weights)) * 2.0**roots
    log = np.triu(log)
    np.fill_diagonal(log, exact)
    result: np.ndarray = (q @ log @ q.conj().T).astype(a.dtype)
    return result


def _each(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Apply a function to every matrix."""
    results = np.empty_like(x)
    for batch in np.ndindex(x.shape[:-2]):
        results[batch] = function(x[batch])
    return results


@operator
class MatrixSquareRoot(OperatorDefinition):
    """Compute the principal square root of square matrices, whose eigenvalues have nonnegative real parts.

    .. math:: output \\cdot output = input

    input: [..., n, n]. NaN for matrices without such a root, and for real matrices with a negative eigenvalue.
    """

    input = Input(SOLVABLE)
    output = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input: Any) -> np.ndarray:
        return _each(square_root, input)

    def gradient(op, doutput: Any) -> Tensor:
        return matrix_function_gradient(op, op.input, doutput)


sqrtm: signatures.MatrixSquareRoot = MatrixSquareRoot.as_function("sqrtm")


@operator
class MatrixLogarithm(OperatorDefinition):
    """Compute the principal logarithm of complex square matrices, whose eigenvalues have imaginary parts in (-pi, pi].

    .. math:: e^{output} = input

    input: [..., n, n]. NaN for singular matrices.
    """

    input = Input(complexes)
    output = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input: Any) -> np.ndarray:
        return _each(logarithm, input)

    def gradient(op, doutput: Any) -> Tensor:
        return matrix_function_gradient(op, op.input, doutput)


logm: signatures.MatrixLogarithm = MatrixLogarithm.as_function("logm")


@operator
class Eig(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute eigenvalues and eigenvectors of square matrices, in no particular order.

    .. math:: input \\cdot v = v \\cdot diag(e)

    input: [..., n, n]; e: complex [..., n]; v: complex [..., n, n], an eigenvector of length 1 in each column.
    compute_v: if False, v is empty. Differentiable for distinct values, and for functions independent of the phases of
    eigenvectors.
    """

    input = Input(SOLVABLE)
    e = Output()
    v = Output()
    compute_v = Attr(bool, default=True)
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        shape, dtype = matrix_shape(op.input), op.input.spec.dtype
        dtype = COMPLEX_OF.get(dtype, dtype)
        e = TensorSpec(shape if shape.dims is None else shape.dims[:-1], dtype)
        return e, TensorSpec(shape if op.compute_v else [0], dtype)

    def compute(op, input: Any) -> tuple[np.ndarray, Any] | tuple[np.ndarray, np.ndarray]:
        dtype = np.result_type(input.dtype, np.complex64)
        if not op.compute_v:
            return np.linalg.eigvals(input).astype(dtype), like_device.zeros(input, 0, dtype)
        e, v = np.linalg.eig(input)
        return e.astype(dtype), v.astype(dtype)

    def gradient(op, de: Any, dv: Any) -> Tensor:
        # Boeddeker et al., On the computation of complex-valued gradients, 2017, equation 4.77
        if op.compute_v:
            v = op.v
            vdv = product(v, dv, adjoint_a=True)
            radial = array.cast(real(diag_part(vdv)), vdv.dtype)  # would change the norm of eigenvectors
            vdv = vdv - product(v, v, adjoint_a=True) * array.expand_dims(radial, -2)
            middle = set_diag(_conj(_differences(op.e)) * vdv, de)
        else:
            _, v = Eig(op.input)
            middle = diag(de)
        dinput = MatrixSolve(v, product(middle, v, adjoint_b=True), adjoint=True)
        return dinput if op.input.dtype.is_complex else real(dinput)


@documented_by(Eig)
def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return eigenvalues e and eigenvectors v of square matrices."""
    return Eig(tensor, name=name)


@documented_by(Eig)
def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Return eigenvalues of square matrices."""
    return Eig(tensor, compute_v=False, name=name)[0]


def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Compute eigenvalues, ascending, of a self-adjoint tridiagonal matrix; and eigenvectors unless eigvals_only.

    .. math:: T_{ii} = \\Re \\alpha_i, \\quad T_{i, i+1} = \\beta_i = \\overline{T_{i+1, i}}

    alpha: [n]; beta: [n - 1]. select: "a" for all, "i" for indices in the closed interval select_range, "v" for values
    in it. tol: required accuracy; ignored, as results are accurate to the dtype. Result: real [k]; with vectors also
    [n, k], of alpha's dtype.
    raises ValueError for another select or different dtypes, InvalidArgumentError for an empty select_range
    """
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    alpha, beta = dispatch.to_tensor(alpha), dispatch.to_tensor(beta)
    if alpha.dtype is not beta.dtype:
        raise ValueError("'alpha' and 'beta' must have the same type.")
    if alpha.shape.rank not in (1, None):
        raise InvalidArgumentError(
            op="eigh_tridiagonal", what="alpha is one matrix's diagonal", found=alpha.spec.short(), wanted="rank 1"
        )
    size = array.shape_op(alpha)[0]
    main = array.cast(real(alpha), alpha.dtype) if alpha.dtype.is_complex else alpha
    below = array.pad(diag(_conj(beta)), [[1, 0], [0, 1]])  # SelfAdjointEig reads only the lower triangle
    matrix = array.reshape(diag(main) + below, array.stack([size, size]))
    if eigvals_only:
        values, vectors = real(SelfAdjointEig(matrix, compute_v=False)[0]), None
    else:
        values, vectors = SelfAdjointEig(matrix)
        values = real(values)
    if select != "a":
        low, high = (dispatch.to_tensor(x, dtypes.int32 if select == "i" else values.dtype) for x in select_range)
        empty = low > high if select == "i" else low >= high
        if empty.constant is not None and empty.constant:
            what = f"Got empty {'index range' if select == 'i' else 'interval'} in select_range."
            raise InvalidArgumentError(op="eigh_tridiagonal", what=what, found=(low, high))
        if select == "i":
            values, vectors = values[low : high + 1], None if vectors is None else vectors[:, low : high + 1]
        else:
            inside = (values >= low) & (values <= high)
            values = array.boolean_mask(values, inside)
            vectors = None if vectors is None else array.boolean_mask(vectors, inside, axis=1)
    values = array.identity(values, name=name)
    return values if vectors is None else (values, vectors)
