"""Matrices as wholes: transposing, norms, scaling, cross products.

Lives here: Cross; matrix_transpose, adjoint, norm, normalize.
Not here: products (matmul.py), decompositions (factoring.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import numeric
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, lod_rules
from ..definition import Input, Output, operator
from ..math.arithmetic import _conj
from ..math.elementary import sqrt
from ..math.reduction import Max, Sum
from .einsum import Einsum


def matrix_transpose(a: Any, name: str | None = "matrix_transpose", conjugate: bool = False) -> Any:
    """The last two dimensions exchanged: output[..., j, i] = a[..., i, j], conjugated if told.

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


def adjoint(matrix: Any, name: str | None = None) -> Any:
    """Transposed and conjugated: output[..., j, i] = conj(matrix[..., i, j])."""
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)


@operator
class Cross:
    """Cross product of vectors of 3.

    .. math:: product = a \\times b

    a, b: [..., 3], of one shape.
    raises InvalidArgumentError where shapes differ or the last dimension is not 3
    """

    a = Input(numeric)
    b = Input(numeric, like="a")
    product = Output(like="a")
    lod = lod_rules.batched("a", 1)

    def infer(op) -> Any:
        a, b = op.a.spec, op.b.spec
        if not a.shape.is_compatible_with(b.shape):
            raise InvalidArgumentError(what="Both inputs must be of same shape", found=f"{a.short()}, {b.short()}")
        shape = a.shape.merge_with(b.shape)
        if shape.rank == 0 or (shape.rank is not None and shape[-1] not in (3, None)):
            raise InvalidArgumentError(what="Cross-products are only defined for 3-element vectors", found=a.short())
        return a.with_shape(shape)

    def compute(op, a, b) -> Any:
        x1, x2, x3 = np.moveaxis(a, -1, 0)
        y1, y2, y3 = np.moveaxis(b, -1, 0)
        return np.stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], -1)

    def gradient(op, dproduct) -> Any:
        return Cross(_conj(op.b), dproduct), Cross(dproduct, _conj(op.a))


cross = Cross.as_function("cross")


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None) -> Any:
    """The norm of all elements, of vectors along one axis, or of matrices in two.

    ord: "euclidean" or 2, 1, infinity or any positive number p for (sum |x|^p)^(1/p); of matrices "euclidean" or "fro",
    1 (largest column sum), infinity (largest row sum), 2 (largest singular value). axis: None, an int, or a pair.
    raises ValueError for other orders and axes
    """
    from .factoring import svd

    tensor = dispatch.to_tensor(tensor)
    pair = isinstance(axis, (list, tuple)) and len(axis) == 2 and axis[0] != axis[1]
    if not (axis is None or isinstance(axis, (int, np.integer)) or pair):
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if pair:
        if ord not in ("euclidean", "fro", 1, 2, np.inf):
            raise ValueError(f"'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}")
    elif ord != "euclidean" and (isinstance(ord, str) or not ord > 0):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    axes = None if axis is None else tuple(int(a) for a in axis) if pair else (int(axis),)
    size = magnitude(tensor)
    if pair and ord == 2:
        result = _spectral(tensor, axes, svd)
    elif ord in ("euclidean", "fro", 2):
        result = sqrt(Sum(tensor * _conj(tensor), axis=axes, keepdims=True))
    elif pair:
        summed, best = axes if ord == 1 else axes[::-1]
        result = Max(Sum(size, axis=(summed,), keepdims=True), axis=(best,), keepdims=True)
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


def magnitude(x: Any) -> Any:
    """|x|, element by element."""
    from .. import math

    return math.abs(x)


def _spectral(tensor: Any, axes: Any, svd: Any) -> Any:
    """The largest singular values, in dimensions of size 1."""
    rank = tensor.shape.rank
    if rank is None:
        raise TypeError("norm: the rank must be known while tracing for ord=2 of matrices")
    last = [a % rank for a in axes]
    moved = array.transpose(tensor, [*(i for i in range(rank) if i not in last), *last])
    result = Max(svd(moved, compute_uv=False), axis=(-1,), keepdims=False)
    for axis in sorted(last):
        result = array.expand_dims(result, axis)
    return result


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The tensor divided by its norm, and that norm with its dimensions kept. See `norm`."""
    tensor = dispatch.to_tensor(tensor)
    size = norm(tensor, ord, axis, keepdims=True)
    if size.dtype is not tensor.dtype:
        size = array.cast(size, tensor.dtype)
    return array.identity(tensor / size, name=name), size
