"""Transposition; cross products; derivatives of matrix functions.

Lives here: Cross; matrix_transpose, adjoint; the gradient of matrix functions.
Not here: products (matmul.py), norms (matrix_functions.py), decompositions (factorization.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import numeric
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, lod_rules
from ..definition import operator
from ..math.arithmetic import _conj
from ..slots import Input, OperatorDefinition, Output
from .einsum import Einsum

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor


def matrix_transpose(a: Any, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Transpose matrices. conjugate: also conjugate them.

    .. math:: output[..., j, i] = a[..., i, j]

    raises ValueError for a rank below 2
    """
    a = dispatch.to_tensor(a)
    rank = a.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2. Received shape: {a.shape}")
    if conjugate:
        a = _conj(a)
    if rank is None:
        return Einsum([a], equation="...ij->...ji", name=name)
    return array.transpose(a, [*range(rank - 2), rank - 1, rank - 2], name=name or "matrix_transpose")


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Return the conjugate transpose of matrices.

    .. math:: output[..., j, i] = \\overline{matrix[..., i, j]}
    """
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)


def matrix_function_gradient(op: Any, x: Any, doutput: Any) -> Tensor:
    """Compute the gradient of a matrix function f, the operator of `op`.

    f of [[A, E], [0, A]] has the derivative of f at A in direction E above its diagonal; the gradient uses A^H.
    """
    a = adjoint(x)
    top, bottom = array.concat([a, doutput], -1), array.concat([array.zeros_like(a), a], -1)
    block = op.operator(array.concat([top, bottom], -2))
    n = array.shape_op(a)[-1]
    return array.getitem(block, (..., slice(None, n), slice(n, None)))


@operator
class Cross(OperatorDefinition):
    """Compute the cross product of vectors of 3 elements.

    .. math:: product = a \\times b

    a, b: [..., 3], of one shape.
    raises InvalidArgumentError if shapes differ or the last dimension is not 3
    """

    a = Input(numeric)
    b = Input(numeric, like="a")
    product = Output(like="a")
    lod = lod_rules.batched("a", 1)

    def infer(op) -> TensorSpec:
        a, b = op.a.spec, op.b.spec
        if not a.shape.is_compatible_with(b.shape):
            raise InvalidArgumentError(what="Both inputs must be of same shape", found=f"{a.short()}, {b.short()}")
        shape = a.shape.merge_with(b.shape)
        if shape.rank == 0 or (shape.rank is not None and shape[-1] not in (3, None)):
            raise InvalidArgumentError(what="Cross-products are only defined for 3-element vectors", found=a.short())
        return a.with_shape(shape)

    def compute(op, a: Any, b: Any) -> np.ndarray:
        x1, x2, x3 = np.moveaxis(a, -1, 0)
        y1, y2, y3 = np.moveaxis(b, -1, 0)
        return np.stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], -1)

    def gradient(op, dproduct: Any) -> tuple[Tensor, Tensor]:
        return Cross(_conj(op.b), dproduct), Cross(dproduct, _conj(op.a))


cross: signatures.Cross = Cross.as_function("cross")
