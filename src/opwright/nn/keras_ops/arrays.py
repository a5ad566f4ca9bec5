"""Shapes in `keras.ops`: reshaping, permutations, joins, splits, repetition, padding.

Lives here: functions that move elements.  Not here: choices of elements by index or value (indexing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch
from ...ops import linalg as ops_linalg
from ...ops.array_shapes import axes_moved
from . import creation, reductions
from .promotion import as_tensor, convert, promote, rank_of

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def reshape(x: Any, newshape: Any) -> Tensor:
    """Return the elements in another shape, of which one size may be -1: that of the rest."""
    return array.reshape(dispatch.to_tensor(x), newshape)


def ravel(x: Any) -> Tensor:
    """Return all elements, row by row, as one axis."""
    return reshape(x, [-1])


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Permute axes: axis i of the result is axis axes[i] of x; by default axes are reversed."""
    x = dispatch.to_tensor(x)
    return array.transpose(x, None if axes is None else [a % rank_of(x) for a in axes])


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move axes to other places; the rest keep their order."""
    x = dispatch.to_tensor(x)
    return array.transpose(x, axes_moved(source, destination, rank_of(x)))


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes, which may count from the end."""
    x = dispatch.to_tensor(x)
    order = list(range(rank_of(x)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return array.transpose(x, order)


def expand_dims(x: Any, axis: Any) -> Tensor:
    """Insert axes of size 1 at positions in the result: one axis, or several."""
    x = dispatch.to_tensor(x)
    if isinstance(axis, int):
        return array.expand_dims(x, axis)
    rank = rank_of(x) + len(axis)
    for a in sorted(a % rank for a in axis):
        x = array.expand_dims(x, a)
    return as_tensor(x)


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Remove axes of size 1: all, one or several. Raises InvalidArgumentError for another size."""
    return array.squeeze(dispatch.to_tensor(x), list(axis) if isinstance(axis, tuple) else axis)


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """Repeat elements along axes of size 1, and new ones in front, to a shape."""
    return array.broadcast_to(dispatch.to_tensor(x), shape)


def concatenate(xs: Sequence[Any], axis: int | None = 0) -> Tensor:
    """Join tensors along an axis, None for that of the flat tensors."""
    parts = promote(*xs)
    return array.concat([ravel(x) for x in parts], 0) if axis is None else array.concat(list(parts), axis)


def append(x1: Any, x2: Any, axis: int | None = None) -> Tensor:
    """Join two tensors along an axis, None for that of the flat tensors."""
    return concatenate([x1, x2], axis)


def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis, promoted to one dtype."""
    return array.stack(list(promote(*x)), axis)


def _atleast(x: Tensor, rank: int) -> Tensor:
    while rank_of(x) < rank:
        x = array.expand_dims(x, 0 if rank_of(x) < 2 else -1)
    return x


def hstack(xs: Sequence[Any]) -> Tensor:
    """Join along the second axis, vectors along the first."""
    parts = [_atleast(x, 1) for x in promote(*xs)]
    return array.concat(parts, 0 if rank_of(parts[0]) == 1 else 1)


def vstack(xs: Sequence[Any]) -> Tensor:
    """Join tensors along the first axis, vectors as rows, promoted to one dtype."""
    return array.concat([_atleast(x, 2) for x in promote(*xs)], 0)


def dstack(xs: Sequence[Any]) -> Tensor:
    """Join tensors along the third axis, promoted to one dtype; vectors are [1, n, 1], matrices [m, n, 1]."""
    return array.concat([_atleast(x, 3) for x in promote(*xs)], 2)


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis, whose size has to be known or num."""
    return list(array.unstack(dispatch.to_tensor(x), num, axis))


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Split an axis into equal parts, or before indices. Raises ValueError for indices of an axis of unknown size."""
    x = dispatch.to_tensor(x)
    if isinstance(indices_or_sections, int):
        return list(array.split(x, indices_or_sections, axis))
    total = x.shape[axis]
    if total is None:
        raise ValueError(f"Cannot split at indices along axis {axis} of unknown size. Received: shape={x.shape}")
    bounds = [0, *(min(n + total if n < 0 else n, total) for n in map(int, indices_or_sections)), total]
    return list(array.split(x, [max(b - a, 0) for a, b in pairwise(bounds)], axis))


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Split into parts of sizes that differ by at most one, or at indices."""
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    x = dispatch.to_tensor(x)
    size, more = divmod(int(x.shape[axis]), indices_or_sections)
    sizes = [size + 1] * more + [size] * (indices_or_sections - more)
    return list(array.split(x, sizes, axis))


def hsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Split along the second axis, vectors along the first."""
    return split(x, indices_or_sections, 0 if creation.ndim(x) == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Split the first axis into equal parts, or before indices."""
    return split(x, indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Split the third axis into equal parts, or before indices."""
    return split(x, indices_or_sections, 2)


def tile(x: Any, repeats: Any) -> Tensor:
    """Repeat the whole tensor along axes; missing axes and repeats are in front."""
    x = dispatch.to_tensor(x)
    counts = [repeats] if isinstance(repeats, int) else list(repeats)
    while rank_of(x) < len(counts):
        x = array.expand_dims(x, 0)
    return array.tile(x, [1] * (rank_of(x) - len(counts)) + counts)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeat each slice along an axis, None for the flat tensor's elements."""
    return array.repeat(dispatch.to_tensor(x), repeats, axis)


def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """Move elements by shift positions along axes, the last ones to the front; None: of the flat tensor."""
    x = dispatch.to_tensor(x)
    if axis is None:
        return array.reshape(array.roll(array.reshape(x, [-1]), shift, 0), array.shape(x))
    return array.roll(x, shift, axis)


def flip(x: Any, axis: Any = None) -> Tensor:
    """Reverse the order of elements along axes, all by default."""
    x = dispatch.to_tensor(x)
    axes = list(range(rank_of(x))) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return array.reverse(x, axes)


def fliplr(x: Any) -> Tensor:
    """Reverse the order of elements along the second axis."""
    return flip(x, 1)


def flipud(x: Any) -> Tensor:
    """Reverse the order of elements along the first axis."""
    return flip(x, 0)


def rot90(array: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Rotate k times by 90 degrees from the first axis towards the second. Raises ValueError for equal axes."""
    x = dispatch.to_tensor(array)
    a, b = (axis % rank_of(x) for axis in axes)
    if a == b:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (a, b))
    return swapaxes(flip(x, b), a, b) if k == 1 else flip(swapaxes(x, a, b), b)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Tensor:
    """Extend axes on both sides.

    pad_width: elements before and after each axis: an integer, a pair for all axes, or a pair each. mode: "constant",
    "reflect", "symmetric" (with the edge), "edge" or "wrap"
    raises ValueError for another mode, or for a constant in another mode
    """
    x = dispatch.to_tensor(x)
    if mode != "constant" and constant_values is not None:
        raise ValueError(
            f"Argument `constant_values` can only be provided when `mode == 'constant'`. Received: {mode=}"
        )
    widths = _pairs(pad_width, rank_of(x))
    if mode in ("constant", "reflect", "symmetric"):
        value = convert(0 if constant_values is None else constant_values, x.dtype)
        return array.pad(x, widths, mode.upper(), value)
    if mode not in ("edge", "wrap"):
        raise ValueError(f"Argument `mode` must be constant, reflect, symmetric, edge or wrap. Received: {mode=}")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            places = array.range(-before, array.shape(x)[axis] + after)
            size = array.shape(x)[axis]
            if mode == "edge":
                places = array.where(places < 0, array.zeros_like(places), places)
                places = array.where(places < size, places, size - 1)
            else:
                places %= size
            x = array.gather(x, places, axis=axis)
    return as_tensor(x)


def _pairs(pad_width: Any, rank: int) -> list[list[int]]:
    if isinstance(pad_width, int):
        return [[pad_width, pad_width]] * rank
    widths = list(pad_width)
    if all(isinstance(w, int) for w in widths):
        return [widths * 2 if len(widths) == 1 else widths] * rank
    pairs = [list(w) if len(w) == 2 else [w[0], w[0]] for w in widths]
    return pairs * rank if len(pairs) == 1 else pairs


# ---- diagonals and triangles --------------------------------------------------------------------------------------


def tril(x: Any, k: int = 0) -> Tensor:
    """Set elements above the k-th diagonal of matrices to 0."""
    return _triangle(x, lambda column, row: column - row <= k)


def triu(x: Any, k: int = 0) -> Tensor:
    """Set elements below the k-th diagonal of matrices to 0."""
    return _triangle(x, lambda column, row: column - row >= k)


def _triangle(x: Any, kept: Any) -> Tensor:
    x = dispatch.to_tensor(x)
    sizes = array.shape(x)
    rows, columns = array.range(sizes[-2])[:, None], array.range(sizes[-1])[None, :]
    return array.where(kept(columns, rows), x, array.zeros_like(x))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return diagonals of matrices along two axes, as the last axis."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    return ops_linalg.diag_part(x, k=offset)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Sum diagonals of matrices along two axes."""
    return reductions.sum(diagonal(x, offset, axis1, axis2), -1)


def diagflat(x: Any, k: int = 0) -> Tensor:
    """Create a matrix with the elements of x on its k-th diagonal."""
    return ops_linalg.diag(ravel(x), k=k)


def diag(x: Any, k: int = 0) -> Tensor:
    """Create a matrix with a vector on its k-th diagonal, or return the k-th diagonal of a matrix.

    raises ValueError for other ranks
    """
    x = dispatch.to_tensor(x)
    if rank_of(x) == 1:
        return diagflat(x, k)
    if rank_of(x) == 2:
        return diagonal(x, k)
    raise ValueError(f"`x` must be 1d or 2d, but got shape: {x.shape}")
