"""Norms, the matrix exponential, pseudoinverse, rank and least squares.

Lives here: MatrixExponential; norm, normalize, expm, logdet, cholesky_solve, pinv, lstsq, matrix_rank.
Not here: decompositions (factorization.py), linear systems (solvers.py), roots and logarithms (spectral.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from .. import array, dispatch, like_device, lod_propagation, math
from ..array_shapes import axes_last
from ..definition import operator
from ..math.arithmetic import _conj
from ..math.elementary import log, sqrt
from ..math.reduction import Max, Sum
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from .diagonals import diag_part, set_diag
from .einsum import matrix_function_gradient
from .factorization import Cholesky, svd
from .matmul import product
from .solvers import SOLVABLE, MatrixTriangularSolve, matrix_shape

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None
) -> Tensor:
    """Compute the norm of all elements, of vectors along one axis, or of matrices along two.

    ord: "euclidean" or 2, 1, infinity or any positive number p for (sum |x|^p)^(1/p); of matrices "euclidean" or "fro",
    1 (largest column sum), infinity (largest row sum), 2 (largest singular value). axis: None, an int, or a pair.
    raises ValueError for other orders and axes
    """
    tensor = dispatch.to_tensor(tensor)
    pair = isinstance(axis, (list, tuple)) and len(axis) == 2 and axis[0] != axis[1]
    if not (axis is None or isinstance(axis, (int, np.integer)) or pair):
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if pair:
        if ord not in ("euclidean", "fro", 1, 2, np.inf):
            raise ValueError(f"'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}")
    elif ord != "euclidean" and (isinstance(ord, str) or not ord > 0):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    axes: Any = None if axis is None else tuple(int(a) for a in np.ravel(axis))
    size = math.abs(tensor)
    if pair and ord == 2:
        result = _spectral_norm(tensor, axes)
    elif ord in ("euclidean", "fro", 2):
        result = sqrt(Sum(tensor * _conj(tensor), axis=axes, keepdims=True))
    elif pair:
        assert axes is not None
        sum_axis, max_axis = axes if ord == 1 else axes[::-1]
        result = Max(Sum(size, axis=(sum_axis,), keepdims=True), axis=(max_axis,), keepdims=True)
    elif ord == np.inf:
        result = Max(size, axis=axes, keepdims=True)
    elif ord == 1:
        result = Sum(size, axis=axes, keepdims=True)
    else:
        result = Sum(size ** float(ord), axis=axes, keepdims=True) ** (1.0 / float(ord))
    if keepdims:
        return array.identity(result, name=name)
    if axes is None:
        return array.reshape(result, [], name=name)
    return array.squeeze(result, list(axes), name=name)


def _spectral_norm(tensor: Any, axes: Any) -> Tensor:
    """Return the largest singular values; the axes remain with size 1."""
    rank = tensor.shape.rank
    if rank is None:
        raise TypeError("norm: the rank must be known while tracing for ord=2 of matrices")
    order, _ = axes_last(axes, rank)
    result = Max(svd(array.transpose(tensor, order), compute_uv=False), axis=(-1,), keepdims=False)
    for axis in sorted(order[-2:]):
        result = array.expand_dims(result, axis)
    return result


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Divide a tensor by its norm; return the quotient and the norm, whose reduced dimensions remain with size 1.

    .. math:: output = tensor / \\|tensor\\|

    ord, axis: as in `norm`.
    """
    tensor = dispatch.to_tensor(tensor)
    size = norm(tensor, ord, axis, keepdims=True)
    if size.dtype is not tensor.dtype:
        size = array.cast(size, tensor.dtype)
    return array.identity(tensor / size, name=name), size


# fmt: off
# Coefficients of the [13/13] Padé approximant of exp, and the largest 1-norm for which it is exact in float64:
# Higham, The scaling and squaring method for the matrix exponential revisited, 2005, table 2.3 and equation 2.2
_PADE = (64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
         10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.)
# fmt: on
_PADE_NORM = 5.371920351148152


@operator
class MatrixExponential(OperatorDefinition):
    """Compute the exponential of square matrices by scaling and squaring.

    .. math:: output = \\sum_{n=0}^\\infty \\frac{input^n}{n!}

    input: [..., n, n].
    """

    input = Input(SOLVABLE)
    output = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input: np.ndarray) -> np.ndarray:
        if input.size == 0:
            return input
        norm = np.abs(input).sum(-2).max(-1).astype(np.float64)
        _, exponent = np.frexp(norm / _PADE_NORM)
        halvings = np.where(np.isfinite(norm), np.maximum(exponent, 0), 0)
        wide = np.complex128 if input.dtype.kind == "c" else np.float64
        a = input.astype(wide) / np.exp2(halvings)[..., None, None]
        identity, b = like_device.array(a, np.eye(a.shape[-1])), _PADE
        a2 = a @ a
        a4, a6 = a2 @ a2, a2 @ a2 @ a2
        odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity)
        even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
        result = np.linalg.solve(even - odd, even + odd)
        for step in range(int(halvings.max())):
            result = np.where((step < halvings)[..., None, None], result @ result, result)
        return result.astype(input.dtype)

    def gradient(op, doutput: Any) -> Tensor:
        return matrix_function_gradient(op, op.input, doutput)


expm: signatures.MatrixExponential = MatrixExponential.as_function("expm")


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Compute the logarithm of the determinant of positive definite matrices, from the Cholesky factor L.

    .. math:: output = 2 \\sum_i \\log L_{ii}

    raises InvalidArgumentError for matrices that are not positive definite
    """
    diagonal = diag_part(Cholesky(matrix))
    return 2 * Sum(log(math.real(diagonal) if diagonal.dtype.is_complex else diagonal), axis=(-1,), name=name)


@documented_by(MatrixTriangularSolve)
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solve A x = rhs from the Cholesky factor chol [..., n, n] of A; rhs [..., n, k]."""
    return MatrixTriangularSolve(chol, MatrixTriangularSolve(chol, rhs), adjoint=True, name=name)


def _singular_value_cutoff(s: Tensor, a: Tensor, factor: float) -> Tensor:
    """Return the threshold of zero singular values: factor * max(m, n) * epsilon, times the largest value."""
    eps = factor * float(np.finfo(s.dtype.np).eps)
    dims = a.shape.dims
    static = () if dims is None else [n for n in dims[-2:] if n is not None]
    if len(static) == 2:
        return eps * max(static) * Max(s, axis=(-1,), keepdims=True)
    size = Max(array.shape_op(a)[-2:], axis=None)
    return eps * array.cast(size, s.dtype) * Max(s, axis=(-1,), keepdims=True)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Compute the Moore-Penrose inverse [..., n, m] of matrices [..., m, n] from their singular values.

    .. math:: output = V \\Sigma^+ U^H

    rcond: singular values up to rcond times the largest are treated as zero; by default 10 max(m, n) epsilon.
    """
    a = dispatch.to_tensor(a)
    s, u, v = svd(a)
    if rcond is None:
        limit = _singular_value_cutoff(s, a, 10.0)
    else:
        rcond = dispatch.to_tensor(rcond, s.dtype)
        limit = array.expand_dims(rcond, -1) * Max(s, axis=(-1,), keepdims=True)
    return array.identity(product(v * _pseudoinverse(s, s > limit, a.dtype), u, adjoint_b=True), name=name)


def _pseudoinverse(s: Any, used: Any, dtype: Any) -> Tensor:
    """Return 1 / s where used, else 0, as [..., 1, p], which scales columns."""
    ones = array.ones_like(s)
    inverse = array.where(used, ones / array.where(used, s, ones), array.zeros_like(s))
    return array.expand_dims(array.cast(inverse, dtype), -2)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Count the singular values of each matrix above tol, int32.

    tol: by default max(m, n) epsilon times the largest; broadcasts with the singular values [..., min(m, n)], so
    [..., 1] for one per matrix. Shape: that of the singular values without the last dimension.
    """
    a = dispatch.to_tensor(a)
    s: Any = svd(a, compute_uv=False)
    limit = _singular_value_cutoff(s, a, 1.0) if tol is None else dispatch.to_tensor(tol, s.dtype)
    return Sum(array.cast(s > limit, dtypes.int32), axis=(-1,), name=name)


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None) -> Tensor:
    """Solve linear least squares problems; of several solutions, return the one of minimum norm.

    .. math:: x = \\mathrm{argmin} \\; |matrix \\cdot x - rhs|^2 + l2\\_regularizer |x|^2

    matrix: [..., m, n]; rhs: [..., m, k]; x: [..., n, k]. fast: solve the normal equations by Cholesky decomposition,
    which requires well-conditioned matrices of full rank; else use the SVD and ignore l2_regularizer.
    raises InvalidArgumentError if fast and the normal equations are not positive definite
    """
    matrix = dispatch.to_tensor(matrix)
    rhs = dispatch.to_tensor(rhs, matrix.dtype)
    dims = matrix.shape.dims
    m, n = dims[-2:] if dims is not None and len(dims) >= 2 else (None, None)
    if not fast or m is None or n is None:
        s, u, v = svd(matrix)
        weight = _pseudoinverse(s, s > _singular_value_cutoff(s, matrix, 1.0), matrix.dtype)
        if fast and l2_regularizer:
            values = array.expand_dims(array.cast(s, matrix.dtype), -2)
            weight = values / (values * values + l2_regularizer)
        return array.identity(product(v * weight, product(u, rhs, adjoint_a=True)), name=name)
    tall = m >= n
    gram = product(matrix, matrix, adjoint_a=tall, adjoint_b=not tall)
    if l2_regularizer:
        gram = set_diag(gram, diag_part(gram) + l2_regularizer)
    factor = Cholesky(gram)
    if tall:
        return cholesky_solve(factor, product(matrix, rhs, adjoint_a=True), name=name)
    return array.identity(product(matrix, cholesky_solve(factor, rhs), adjoint_a=True), name=name)
