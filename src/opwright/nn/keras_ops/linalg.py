"""`keras.ops.linalg`: factors, solutions and numbers of matrices.

Lives here: functions of matrices [..., m, n].  Not here: products and norms (products.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import nest
from ...eager.autodiff import ForwardAccumulator
from ...ops import array, dispatch
from ...ops import linalg as ops_linalg
from . import products
from .promotion import as_floating, of_one, promote

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

norm = products.norm
det = of_one(ops_linalg.det, floating=True)
inv = of_one(ops_linalg.inv, floating=True)
eig = of_one(ops_linalg.eig, floating=True)
eigh = of_one(ops_linalg.eigh, floating=True)


def cholesky(x: Any, upper: bool = False) -> Tensor:
    """Compute Cholesky factors of positive definite matrices, the upper ones if asked."""
    factor = ops_linalg.cholesky(as_floating(x))
    return ops_linalg.adjoint(factor) if upper else factor


def cholesky_inverse(x: Any, upper: bool = False) -> Tensor:
    """Invert matrices by their Cholesky factors x."""
    factor = as_floating(x)
    factor = ops_linalg.adjoint(factor) if upper else factor
    identity = array.eye(factor.shape[-1], dtype=factor.dtype)
    return ops_linalg.cholesky_solve(factor, array.broadcast_to(identity, array.shape(factor)))


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return a function's results, and the products of its Jacobian and tangents, alike.

    primals, tangents: lists or tuples of tensors, its arguments and the vectors. has_aux: whether the function returns
    results and something else, which is then the third
    """
    arguments = [dispatch.to_tensor(p) for p in primals]
    vectors = [array.cast(t, p.dtype) for p, t in zip(arguments, tangents, strict=True)]
    with ForwardAccumulator(arguments, vectors) as accumulator:
        returned = fun(*arguments)
    results, *others = returned if has_aux else (returned,)
    products = nest.map_structure(lambda y: array.zeros_like(y) if (t := accumulator.jvp(y)) is None else t, results)
    return results, products, *others


def lu_factor(x: Any) -> tuple[Tensor, Tensor]:
    """Compute LU factors of square matrices with rows exchanged: the factors in one matrix, and the permutation."""
    factors = ops_linalg.lu(as_floating(x))
    return factors[0], factors[1]


def qr(x: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Compute an orthogonal and an upper triangular factor; mode: "reduced" or "complete".

    raises ValueError for another mode
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"`mode` argument value not supported. Expected one of {{'reduced', 'complete'}}: mode={mode}")
    factors = ops_linalg.qr(as_floating(x), full_matrices=mode == "complete")
    return factors[0], factors[1]


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Compute singular values s, or (u, s, v^H) with x = u s v^H."""
    x = as_floating(x)
    if not compute_uv:
        return ops_linalg.svd(x, compute_uv=False)
    s, u, v = ops_linalg.svd(x, full_matrices=full_matrices)
    return u, s, ops_linalg.adjoint(v)


def solve(a: Any, b: Any) -> Tensor:
    """Solve systems of linear equations; b: vectors [..., n], of the rank of a less one, or matrices [..., n, k]."""
    a, b = promote(a, b, floating=True)
    if b.shape.rank == a.shape.rank - 1:
        return array.squeeze(ops_linalg.solve(a, array.expand_dims(b, -1)), [-1])
    return ops_linalg.solve(a, b)


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Tensor:
    """Solve triangular systems. Arguments: see `solve`."""
    a, b = promote(a, b, floating=True)
    if b.shape.rank == a.shape.rank - 1:
        return array.squeeze(ops_linalg.triangular_solve(a, array.expand_dims(b, -1), lower), [-1])
    return ops_linalg.triangular_solve(a, b, lower)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Tensor:
    """Solve linear least squares; of several solutions, the one of minimum norm.

    rcond: singular values below this times the greatest count as 0
    """
    a, b = promote(a, b, floating=True)
    vector = b.shape.rank == 1
    y = ops_linalg.matmul(ops_linalg.pinv(a, rcond), array.expand_dims(b, -1) if vector else b)
    return array.squeeze(y, [-1]) if vector else y


def slogdet(x: Any) -> tuple[Tensor, Tensor]:
    """Return signs and logarithms of absolute values of determinants."""
    result = ops_linalg.slogdet(as_floating(x))
    return result[0], result[1]


def logdet(x: Any) -> Tensor:
    """Return logarithms of determinants of positive definite matrices."""
    return slogdet(x)[1]


def pinv(x: Any, rcond: float | None = None) -> Tensor:
    """Compute Moore-Penrose inverses. rcond: see `lstsq`."""
    return ops_linalg.pinv(as_floating(x), rcond)


def matrix_rank(x: Any, tol: Any = None) -> Tensor:
    """Count singular values above a tolerance, by default max(m, n) epsilon times the greatest; int32."""
    return ops_linalg.matrix_rank(as_floating(x), tol)
