"""Products of vectors and matrices in `keras.ops`.

Lives here: products, correlations, differences and integrals.  Not here: factors and solutions of matrices (linalg.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops import array, dispatch, math
from ...ops import linalg as ops_linalg
from ...ops import nn as ops_nn
from . import arrays
from .promotion import as_floating, convert, promote, rank_of

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def matmul(x1: Any, x2: Any) -> Tensor:
    """Multiply matrices along the last two axes; a vector is a row on the left and a column on the right."""
    a, b = promote(x1, x2)
    if a.dtype.name == "int8":
        a, b = convert(a, "int32"), convert(b, "int32")
    row, column = a.shape.rank == 1, b.shape.rank == 1
    if row and column:
        return math.reduce_sum(a * b)
    a = array.expand_dims(a, 0) if row else a
    b = array.expand_dims(b, -1) if column else b
    y = ops_linalg.matmul(a, b)
    return array.squeeze(y, [-2]) if row else array.squeeze(y, [-1]) if column else y


def dot(x1: Any, x2: Any) -> Tensor:
    """Sum products over the last axis of x1 and the last but one of x2, its only one of a vector."""
    a, b = promote(x1, x2)
    if a.shape.rank == 0 or b.shape.rank == 0:
        return a * b
    return ops_linalg.tensordot(a, b, [[-1], [-1 if b.shape.rank == 1 else -2]])


def inner(x1: Any, x2: Any) -> Tensor:
    """Sum products over the last axes, [..., k] and [*more, k] to [..., *more]; multiply if one is a scalar."""
    a, b = promote(x1, x2)
    if a.shape.rank == 0 or b.shape.rank == 0:
        return a * b
    return ops_linalg.tensordot(a, b, [[-1], [-1]])


def vdot(x1: Any, x2: Any) -> Tensor:
    """Sum products of all elements, the first conjugated."""
    a, b = promote(x1, x2)
    return math.reduce_sum(math.conj(array.reshape(a, [-1])) * array.reshape(b, [-1]))


def outer(x1: Any, x2: Any) -> Tensor:
    """Multiply each element of x1 by each of x2: a matrix."""
    a, b = promote(x1, x2)
    return array.reshape(a, [-1, 1]) * array.reshape(b, [1, -1])


def kron(x1: Any, x2: Any) -> Tensor:
    """Compute the Kronecker product: x2 scaled by each element of x1, in its place."""
    a, b = promote(x1, x2)
    rank = max(rank_of(a), rank_of(b))
    a = array.reshape(a, array.concat([array.ones([rank - rank_of(a)], "int32"), array.shape(a)], 0))
    b = array.reshape(b, array.concat([array.ones([rank - rank_of(b)], "int32"), array.shape(b)], 0))
    sizes = array.shape(a) * array.shape(b)
    a = arrays.expand_dims(a, tuple(range(1, 2 * rank, 2)))
    b = arrays.expand_dims(b, tuple(range(0, 2 * rank, 2)))
    return array.reshape(a * b, sizes)


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """Sum products over pairs of axes. axes: a number, the last of x1 with the first of x2, or two lists of axes."""
    a, b = promote(x1, x2)
    return ops_linalg.tensordot(a, b, axes)


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Sum products of elements by the notation of Einstein."""
    return ops_linalg.einsum(subscripts, *promote(*operands), **kwargs)


def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Compute cross products of vectors of 3 or 2 components; of two of 2, the third component alone.

    axisa, axisb: the axes of components; axisc: their axis in the result; axis: all three of them
    raises ValueError for another number of components
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote(x1, x2)
    a, b = arrays.moveaxis(a, axisa, -1), arrays.moveaxis(b, axisb, -1)
    sizes = a.shape[-1], b.shape[-1]
    if not all(n in (2, 3) for n in sizes):
        raise ValueError(f"`x1`'s and `x2`'s dim on axis must be either 2 or 3. Received: {sizes[0]} and {sizes[1]}")
    zero = convert(0, a.dtype)
    ax, ay, az = (a[..., 0], a[..., 1], a[..., 2] if sizes[0] == 3 else zero)
    bx, by, bz = (b[..., 0], b[..., 1], b[..., 2] if sizes[1] == 3 else zero)
    z = ax * by - ay * bx
    if sizes == (2, 2):
        return z
    parts = [ay * bz - az * by + array.zeros_like(z), az * bx - ax * bz + array.zeros_like(z), z]
    return array.stack(parts, axis=axisc)


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Tensor:
    """Correlate two vectors; mode: "valid", "same" or "full" overlap. Raises ValueError for others."""
    if mode not in ("valid", "same", "full"):
        raise ValueError(f"mode must be either `valid`, `same`, or `full`. Received: mode={mode}")
    a, v = promote(x1, x2, floating=True)
    n, m = int(a.shape[0]), int(v.shape[0])
    swapped = n < m
    if swapped:
        a, v, n, m = v, a, m, n
    before, after = {"valid": (0, 0), "same": (m // 2, m - 1 - m // 2), "full": (m - 1, m - 1)}[mode]
    padded = array.pad(a, [[before, after]])
    y = array.reshape(ops_nn.conv1d(padded[None, :, None], v[:, None, None], 1, "VALID"), [-1])
    return array.reverse(y, [0]) if swapped else y


def corrcoef(x: Any) -> Tensor:
    """Compute correlation coefficients of the rows of a matrix."""
    x = as_floating(x)
    if x.shape.rank < 2:
        return array.ones([], x.dtype)
    centred = x - math.reduce_mean(x, -1, True)
    covariance = ops_linalg.matmul(centred, centred, transpose_b=True)
    scale = math.sqrt(ops_linalg.diag_part(covariance))
    return _bounded(covariance / (scale[:, None] * scale[None, :]))


def _bounded(x: Tensor) -> Tensor:
    """Return coefficients within [-1, 1]."""
    return math.minimum(math.maximum(x, convert(-1, x.dtype)), convert(1, x.dtype))


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Compute n-th differences of neighbours along an axis; of Booleans, whether they differ."""
    x = dispatch.to_tensor(a)
    for _ in range(n):
        x = arrays.moveaxis(x, axis, 0)
        x = math.not_equal(x[1:], x[:-1]) if x.dtype.name == "bool" else x[1:] - x[:-1]
        x = arrays.moveaxis(x, 0, axis)
    return x


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integrate along an axis by the trapezoidal rule over places x, or steps dx."""
    rows = arrays.moveaxis(as_floating(y), axis, -1)
    means = (rows[..., 1:] + rows[..., :-1]) * 0.5
    if x is None:
        return math.reduce_sum(means * convert(dx, means.dtype), -1)
    places = convert(x, rows.dtype)
    steps = places[1:] - places[:-1] if places.shape.rank == 1 else diff(arrays.moveaxis(places, axis, -1))
    return math.reduce_sum(means * steps, -1)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Create the matrix of powers of a vector, N columns, from the highest unless `increasing`."""
    x = dispatch.to_tensor(x)
    count = int(x.shape[0]) if N is None else N
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return math.pow(x[:, None], convert(powers, x.dtype)[None, :])


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Compute norms of vectors along one axis, of matrices along two, or of all elements.

    ord: of vectors a number (inf, -inf and 0, the number of elements that are not 0, too), by default 2; of matrices
    "fro", "nuc", 1, -1, 2, -2, inf or -inf
    raises ValueError for another one, and for axes out of range
    """
    x = as_floating(x)
    if axis is None and ord is None:
        y = math.sqrt(math.reduce_sum(math.square(math.abs(x))))
        return array.reshape(y, [1] * x.shape.rank) if keepdims else y
    axes = tuple(range(x.shape.rank)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -x.shape.rank <= a < x.shape.rank for a in axes):
        raise ValueError(f"Axes of `norm` must be in [-{x.shape.rank}, {x.shape.rank}). Received: axis={axis}")
    axes = tuple(a % x.shape.rank for a in axes)
    if len(axes) == 1:
        return _vector_norm(math.abs(x), ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"Improper number of axes for norm: {axes}; it is one or two, or None without `ord`")
    return _matrix_norm(x, ord, axes, keepdims)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Tensor:
    if ord in (float("inf"), float("-inf")):
        return (math.reduce_max if ord > 0 else math.reduce_min)(x, axis, keepdims)
    if ord == 0:
        return math.reduce_sum(array.cast(math.not_equal(x, convert(0, x.dtype)), x.dtype), axis, keepdims)
    if ord is None or ord == 2:
        return math.sqrt(math.reduce_sum(math.square(x), axis, keepdims))
    if not isinstance(ord, (int, float)):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    return math.pow(math.reduce_sum(math.pow(x, convert(ord, x.dtype)), axis, keepdims), convert(1 / ord, x.dtype))


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if ord in (None, "fro"):
        return math.sqrt(math.reduce_sum(math.square(math.abs(x)), list(axes), keepdims))
    if ord in (1, -1, float("inf"), float("-inf")):
        row, column = axes if abs(ord) == 1 else axes[::-1]
        sums = math.reduce_sum(math.abs(x), row, True)
        y = (math.reduce_max if ord > 0 else math.reduce_min)(sums, column, True)
    elif ord in (2, -2, "nuc"):
        s = ops_linalg.svd(arrays.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        reduce = math.reduce_sum if ord == "nuc" else math.reduce_max if ord == 2 else math.reduce_min
        y = arrays.expand_dims(reduce(s, -1), tuple(sorted(axes)))
    else:
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    return y if keepdims else array.squeeze(y, list(axes))
