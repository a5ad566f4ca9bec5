"""Eigenvalues and eigenvectors of matrices that need not be self-adjoint, and of tridiagonal ones.

Lives here: Eig; eig, eigvals, eigh_tridiagonal.  Not here: of self-adjoint matrices (factoring.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, beside, dispatch, lod_rules
from ..attributes import Attr
from ..definition import Input, Output, operator
from ..math.arithmetic import _conj
from ..math.complexes import real
from .diagonals import diag, diag_part, set_diag
from .factoring import SelfAdjointEig, _differences
from .matmul import product
from .solving import SOLVABLE, MatrixSolve, matrix_shape

_COMPLEX: dict[DType, DType] = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


@operator
class Eig:
    """Eigenvalues and eigenvectors of square matrices, in no order.

    .. math:: input \\cdot v = v \\cdot diag(e)

    input: [..., n, n]; e: complex [..., n]; v: complex [..., n, n], an eigenvector of length 1 in each column.
    compute_v: without it v is empty. The gradient is for distinct values, and for what does not depend on the phases of
    eigenvectors.
    """

    input = Input(SOLVABLE)
    e = Output()
    v = Output()
    compute_v = Attr(bool, default=True)
    lod = lod_rules.batched("input", 2)

    def infer(op) -> Any:
        shape, dtype = matrix_shape(op.input), op.input.spec.dtype
        dtype = _COMPLEX.get(dtype, dtype)
        e = TensorSpec(shape if shape.dims is None else shape.dims[:-1], dtype)
        return e, TensorSpec(shape if op.compute_v else [0], dtype)

    def compute(op, input) -> Any:
        dtype = np.result_type(input.dtype, np.complex64)
        if not op.compute_v:
            return np.linalg.eigvals(input).astype(dtype), beside.zeros(input, 0, dtype)
        e, v = np.linalg.eig(input)
        return e.astype(dtype), v.astype(dtype)

    def gradient(op, de, dv) -> Any:
        # Boeddeker et al., On the computation of complex-valued gradients, 2017, equation 4.77
        if op.compute_v:
            v = op.v
            turned = product(v, dv, adjoint_a=True)
            along = array.cast(real(diag_part(turned)), turned.dtype)  # what would change the length
            turned = turned - product(v, v, adjoint_a=True) * array.expand_dims(along, -2)
            middle = set_diag(_conj(_differences(op.e)) * turned, de)
        else:
            _, v = Eig(op.input)
            middle = diag(de)
        found = MatrixSolve(v, product(middle, v, adjoint_b=True), adjoint=True)
        return found if op.input.dtype.is_complex else real(found)


def eig(tensor: Any, name: str | None = None) -> Any:
    """The eigenvalues e and eigenvectors v. See Eig."""
    return Eig(tensor, name=name)


def eigvals(tensor: Any, name: str | None = None) -> Any:
    """The eigenvalues alone. See Eig."""
    return Eig(tensor, compute_v=False, name=name)[0]


def eigh_tridiagonal(alpha: Any, beta: Any, eigvals_only: bool = True, select: str = "a", select_range: Any = None,
                     tol: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """Eigenvalues of a self-adjoint tridiagonal matrix, the smallest first; and eigenvectors, unless eigvals_only.

    .. math:: T_{ii} = \\Re \\alpha_i, \\quad T_{i, i+1} = \\beta_i = \\overline{T_{i+1, i}}

    alpha: [n]; beta: [n - 1]. select: "a" for all of them, "i" for those of numbers select_range[0] to
    select_range[1], "v" for those between select_range[0] and select_range[1], both included. tol: how exact the values
    must be at least; they are as exact as the dtype allows. Result: real [k]; with vectors also [n, k], of alpha's
    dtype.
    raises ValueError for another select or different dtypes, InvalidArgumentError for an empty select_range
    """
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    alpha, beta = dispatch.to_tensor(alpha), dispatch.to_tensor(beta)
    if alpha.dtype is not beta.dtype:
        raise ValueError("'alpha' and 'beta' must have the same type.")
    if alpha.shape.rank not in (1, None):
        raise InvalidArgumentError(op="eigh_tridiagonal", what="alpha is one matrix's diagonal",
                                   found=alpha.spec.short(), wanted="rank 1")  # fmt: skip
    size = array.shape_op(alpha)[0]
    main = array.cast(real(alpha), alpha.dtype) if alpha.dtype.is_complex else alpha
    below = array.pad(diag(_conj(beta)), [[1, 0], [0, 1]])  # only the lower half is looked at
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
