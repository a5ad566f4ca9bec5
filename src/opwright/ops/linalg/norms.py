"""Norms of vectors and matrices.

Lives here: norm, normalize.  Not here: singular values, which one of them needs (factoring.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import array, dispatch, math
from ..math.arithmetic import _conj
from ..math.elementary import sqrt
from ..math.reduction import Max, Sum
from .factoring import svd


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None) -> Any:
    """The norm of all elements, of vectors along one axis, or of matrices in two.

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
    axes = None if axis is None else tuple(int(a) for a in axis) if pair else (int(axis),)
    size = math.abs(tensor)
    if pair and ord == 2:
        result = _spectral(tensor, axes)
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


def _spectral(tensor: Any, axes: Any) -> Any:
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
