"""Rules of factorisations, linear systems and Fourier transforms.

Lives here: cholesky, triangular_solve, lu, qr, geqrf, householder_product, eigh, eig, svd, tridiagonal_solve, fft.
Not here: products (contraction.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array, dispatch, linalg, math, signal
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import cast, dims, like


@RULES.rule("cholesky")
def cholesky(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the lower factor."""
    return linalg.cholesky(tensor_of(inputs[0]))


@RULES.rule("triangular_solve")
def triangular_solve(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x of op(a) x = b, or x op(a) = b if not left_side."""
    a, b = tensor_of(inputs[0]), tensor_of(inputs[1])
    lower, swap = bool(params["lower"]), bool(params["transpose_a"])
    if params["conjugate_a"] and a.dtype.is_complex:
        a = math.conj(a)
    if params["unit_diagonal"]:
        a = linalg.set_diag(a, array.ones_like(linalg.diag_part(a)))
    if not params["left_side"]:  # x op(a) = b is op(a)^T x^T = b^T
        swap = not swap
        b = linalg.matrix_transpose(b)
    if swap:
        a, lower = linalg.matrix_transpose(a), not lower
    x = linalg.triangular_solve(a, b, lower=lower)
    return x if params["left_side"] else linalg.matrix_transpose(x)


@RULES.rule("lu")
def lu(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the packed factors, the exchanges of rows, and the permutation."""
    factors, permutation = linalg.lu(tensor_of(inputs[0]))
    return [factors, _exchanges(permutation), permutation]


def _exchanges(permutation: Any) -> Any:
    """Return LAPACK's pivots of a permutation: at step i, row i is exchanged with the row that holds permutation[i]."""
    n = dims(permutation)[-1]
    positions = array.broadcast_to(tensor_of(np.arange(n, dtype=np.int32)), list(dims(permutation)))
    current, pivots = positions, []
    for i in range(n):
        sought = permutation[..., i : i + 1]
        holds = math.equal(current, sought)
        place = math.reduce_sum(array.where(holds, positions, array.zeros_like(positions)), -1, keepdims=True)
        displaced = current[..., i : i + 1]
        current = array.where(math.equal(positions, place), displaced, current)
        pivots.append(place)
    return array.concat(pivots, -1)


@RULES.rule("lu_pivots_to_permutation")
def lu_pivots_to_permutation(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the permutation that exchanges of rows are."""
    pivots, size = tensor_of(inputs[0]), int(params["permutation_size"])
    batch = list(dims(pivots)[:-1])
    positions = array.broadcast_to(tensor_of(np.arange(size, dtype=np.int32)), [*batch, size])
    current = positions
    for i in range(dims(pivots)[-1]):
        place = pivots[..., i : i + 1]
        holds = math.equal(positions, place)
        there = math.reduce_sum(array.where(holds, current, array.zeros_like(current)), -1, keepdims=True)
        here = current[..., i : i + 1]
        current = array.where(holds, here, current)
        current = array.where(math.equal(positions, tensor_of(np.asarray(i, np.int32))), there, current)
    return current


@RULES.rule("custom_linear_solve")
def custom_linear_solve(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return what the jaxpr of the solution computes."""
    counts, jaxprs = params["const_lengths"], params["jaxprs"]
    before = counts.matvec + counts.vecmat
    end = before + counts.solve + counts.transpose_solve
    return context.run(jaxprs.solve, [*inputs[before : before + counts.solve], *inputs[end:]])


@RULES.rule("qr")
def qr(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return Q and R."""
    if params.get("pivoting"):
        raise ValueError("QR with pivoting has no operator")
    return list(linalg.qr(tensor_of(inputs[0]), full_matrices=bool(params["full_matrices"])))


@RULES.rule("geqrf")
def geqrf(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return R with the reflectors of Q below its diagonal, and their factors tau, as LAPACK packs them."""
    a = tensor_of(inputs[0])
    *batch, rows, columns = dims(a)
    steps, taus, packed = min(rows, columns), [], []
    for k in range(steps):
        column = a[..., k:, k]
        alpha, rest = column[..., :1], column[..., 1:]
        squares = math.reduce_sum(math.square(math.abs(rest)), -1, keepdims=True)
        imaginary = array.zeros_like(squares) if not a.dtype.is_complex else math.imag(alpha)
        real = math.real(alpha) if a.dtype.is_complex else alpha
        norm = math.sqrt(math.add(math.add(math.square(real), math.square(imaginary)), squares))
        beta = cast(array.where(math.less(real, like(0, real)), norm, math.negative(norm)), a.dtype)
        still = math.equal(math.add(squares, math.abs(imaginary)), like(0, squares))  # nothing to reflect: tau is 0
        one = array.ones_like(alpha)
        tau = array.where(still, array.zeros_like(alpha), math.divide(math.subtract(beta, alpha), _safe(still, beta)))
        scale = math.divide(one, _safe(still, math.subtract(alpha, beta)))
        v = array.concat([one, array.where(still, array.zeros_like(rest), math.multiply(rest, scale))], -1)
        block = a[..., k:, k:]
        products = linalg.matmul(math.conj(v)[..., None, :], block)
        change = math.multiply(math.multiply(math.conj(tau), v)[..., None], products)
        reflected = math.subtract(block, change)
        upper = array.concat([a[..., :k, k:], reflected], -2) if k else reflected
        a = array.concat([a[..., :k], upper], -1) if k else upper
        below = array.zeros_like(a[..., : k + 1, k])
        packed.append(array.concat([below, v[..., 1:]], -1))
        taus.append(tau[..., 0])
    if not steps:
        return [a, array.zeros([*batch, 0], a.dtype)]
    reflectors = array.stack(packed, -1)
    if columns > steps:
        reflectors = array.concat([reflectors, array.zeros([*batch, rows, columns - steps], a.dtype)], -1)
    return [math.add(linalg.band_part(a, 0, -1), reflectors), array.stack(taus, -1)]


def _safe(still: Any, divisor: Any) -> Any:
    return array.where(still, array.ones_like(divisor), divisor)


@RULES.rule("householder_product")
def householder_product(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the first columns of the product of the reflectors 1 - tau v v^H that `geqrf` packs."""
    a, taus = tensor_of(inputs[0]), tensor_of(inputs[1])
    *batch, rows, columns = dims(a)
    q = linalg.eye(rows, columns, batch_shape=batch or None, dtype=a.dtype)
    for k in reversed(range(dims(taus)[-1])):
        v = array.concat([array.ones_like(a[..., :1, k]), a[..., k + 1 :, k]], -1)
        block = q[..., k:, :]
        products = linalg.matmul(math.conj(v)[..., None, :], block)
        block = math.subtract(block, math.multiply(math.multiply(taus[..., k : k + 1], v)[..., None], products))
        q = array.concat([q[..., :k, :], block], -2) if k else block
    return q


@RULES.rule("eigh")
def eigh(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return eigenvectors and ascending eigenvalues of self-adjoint matrices."""
    x = tensor_of(inputs[0])
    if not params.get("lower", True):
        x = linalg.adjoint(x)
    values, vectors = linalg.eigh(x)
    return [vectors, cast(values, x.dtype.real_dtype)]


@RULES.rule("eig")
def eig(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return eigenvalues and right eigenvectors."""
    if params.get("compute_left_eigenvectors"):
        raise ValueError("left eigenvectors have no operator")
    if not params.get("compute_right_eigenvectors", True):
        return [linalg.eigvals(tensor_of(inputs[0]))]
    return list(linalg.eig(tensor_of(inputs[0])))


@RULES.rule("svd")
def svd(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return singular values, U and V^H."""
    x = tensor_of(inputs[0])
    if not params["compute_uv"]:
        return [linalg.svd(x, compute_uv=False)]
    s, u, v = linalg.svd(x, full_matrices=bool(params["full_matrices"]))
    return [s, u, linalg.adjoint(v)]


@RULES.rule("tridiagonal_solve")
def tridiagonal_solve(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x of a tridiagonal system; the diagonals are vectors [lower, main, upper]."""
    lower, main, upper, b = map(tensor_of, inputs)
    diagonals = array.stack([upper, main, lower], -2)  # both have LAPACK's unused element at the same place
    return linalg.tridiagonal_solve(diagonals, b)


# ---- Fourier transforms ----------------------------------------------------------------------------------------------

FOURIER = {"FFT": signal.fftnd, "IFFT": signal.ifftnd, "RFFT": signal.rfftnd, "IRFFT": signal.irfftnd}


@RULES.rule("fft")
def fft(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return a transform over the last axes; IRFFT has fft_lengths as its result's sizes."""
    kind = getattr(params["fft_type"], "name", str(params["fft_type"])).rpartition(".")[2].upper()
    x, lengths = tensor_of(inputs[0]), [int(n) for n in params["fft_lengths"]]
    n, rank = len(lengths), len(dims(x))
    if n <= 3:
        functions = {
            "FFT": (signal.fft, signal.fft2d, signal.fft3d),
            "IFFT": (signal.ifft, signal.ifft2d, signal.ifft3d),
            "RFFT": (signal.rfft, signal.rfft2d, signal.rfft3d),
            "IRFFT": (signal.irfft, signal.irfft2d, signal.irfft3d),
        }
        function: Any = functions[kind][n - 1]
        return (
            function(x) if kind in ("FFT", "IFFT") else function(x, dispatch.to_tensor(np.asarray(lengths, np.int32)))
        )
    return FOURIER[kind](x, lengths, list(range(rank - n, rank)))
