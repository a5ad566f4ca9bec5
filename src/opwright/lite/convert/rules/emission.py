"""Emission helpers of rules: numbers, shapes, elements at constant positions.

Lives here: functions that emit nodes for several families of rules.  Not here: rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import DType, float32, int32
from ....core.errors import InvalidArgumentError
from ....graph import Node, Value
from ....ops import registry
from ..rewriter import LiteRewriter


class UnmatchedNode(InvalidArgumentError):
    """A rule cannot take the node, for the reason given; the walk takes it as NoMatch."""

    def __init__(self, what: str) -> None:
        super().__init__(what=what)


def sizes(value: Value, what: str = "the shape") -> list[int]:
    """Return the sizes of a value, all known. Raises UnmatchedNode."""
    dims = value.spec.shape.dims
    if dims is None or None in dims:
        raise UnmatchedNode(f"{what} is not known")
    return [int(d) for d in dims if d is not None]


def rank_of(value: Value) -> int:
    """Return the rank of a value. Raises UnmatchedNode if it is unknown."""
    rank = value.spec.shape.rank
    if rank is None:
        raise UnmatchedNode("the rank is not known")
    return rank


def constant_of(value: Value, what: str) -> np.ndarray:
    """Return the elements of a constant. Raises UnmatchedNode."""
    if value.constant is None:
        raise UnmatchedNode(f"{what} is not constant")
    return value.constant


def only(value: Value, *dtypes: DType) -> None:
    """Raise UnmatchedNode for a value of another dtype."""
    if value.dtype not in dtypes:
        raise UnmatchedNode(f"taken are {', '.join(d.name for d in dtypes)}, found {value.dtype.name}")


def number(rewriter: LiteRewriter, value: Any, like: Value) -> Value:
    """Return a scalar constant of the dtype of another value."""
    return rewriter.constant(value, like.dtype)


def reshaped(rewriter: LiteRewriter, x: Value, dims: Sequence[int | None]) -> Value:
    """Return `x` with these sizes, of which one may be unknown. Raises UnmatchedNode for more."""
    if x.spec.shape.dims == tuple(dims) and None not in dims:
        return x
    if list(dims).count(None) > 1:
        raise UnmatchedNode("more than one size is not known")
    return rewriter.emit(
        "RESHAPE", x, rewriter.int32([-1 if d is None else d for d in dims]), like=x.spec.with_shape(dims)
    )


def size_along(rewriter: LiteRewriter, x: Value, axis: int) -> Value:
    """Return one size of a value as a scalar int32, a constant if it is known."""
    dims = x.spec.shape.dims
    if dims is not None and dims[axis] is not None:
        return rewriter.constant(dims[axis], int32)
    shape = rewriter.emit("SHAPE", x, out_type="INT32")
    return rewriter.emit(
        "STRIDED_SLICE",
        shape,
        rewriter.int32([axis]),
        rewriter.int32([axis + 1]),
        rewriter.int32([1]),
        shrink_axis_mask=1,
    )


def sliced(rewriter: LiteRewriter, x: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
    """Return a slice of `x`; a size of -1 takes the rest."""
    if all(b == 0 for b in begin) and all(s in (-1, d) for s, d in zip(size, x.spec.shape.dims or ())):
        return x
    dims = x.spec.shape.dims or (None,) * len(begin)
    result = [s if s >= 0 else None if d is None else d - b for b, s, d in zip(begin, size, dims)]
    return rewriter.emit("SLICE", x, rewriter.int32(begin), rewriter.int32(size), like=x.spec.with_shape(result))


def padded(rewriter: LiteRewriter, x: Value, pads: Sequence[tuple[int, int]], value: float | None = None) -> Value:
    """Return `x` padded with zeros, or another number."""
    if not any(a or b for a, b in pads):
        return x
    if len(pads) > 5:
        raise UnmatchedNode("PAD takes ranks up to 5")
    table = rewriter.int32([list(p) for p in pads])
    return (
        rewriter.emit("PAD", x, table)
        if value is None
        else rewriter.emit("PADV2", x, table, number(rewriter, value, x))
    )


def picked(
    rewriter: LiteRewriter, x: Value, inner: Sequence[int], places: np.ndarray, outside: Value | float = 0.0
) -> Value:
    """Gather elements of the last dimensions of `x`, of sizes `inner`, by flat index; -1 stands for `outside`.

    The places are those of the result's last dimensions.
    """
    lead = list((x.spec.shape.dims or ())[: rank_of(x) - len(inner)])
    flat = reshaped(rewriter, x, [*lead, int(np.prod(inner, dtype=np.int64))])
    y = rewriter.emit("GATHER", flat, rewriter.int32(np.maximum(places, 0).tolist()), axis=len(lead))
    if (places >= 0).all():
        return y
    fill = outside if isinstance(outside, Value) else number(rewriter, outside, x)
    return rewriter.emit("SELECT_V2", rewriter.constant(places >= 0), y, fill)


def numbered(shape: Sequence[int]) -> np.ndarray:
    """Return an array of flat indices counted from 1, so that a 0 in an operator's result marks an element from
    outside."""
    return np.arange(1, int(np.prod(shape, dtype=np.int64)) + 1, dtype=np.int32).reshape(shape)


def run(node: Node, *arrays: Any, **attrs: Any) -> np.ndarray:
    """Run the catalogue's operator on arrays; attrs: replace those of the node."""
    op = registry.get(node.op.name)
    result: np.ndarray = op.compute(op.bind({**node.attrs, **attrs}), arrays)[0]
    return result


def matrix_of(function: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """Return the matrix of a linear function, its results on unit vectors: the channels of [1, n, 1, n]."""
    unit = np.eye(size, dtype=np.float32).reshape(1, size, 1, size)
    return function(unit).reshape(-1, size).astype(np.float32)


def along(rewriter: LiteRewriter, x: Value, matrix: np.ndarray, axis: int) -> Value:
    """Apply a constant matrix [out, in] to one dimension of `x`."""
    dims = list(x.spec.shape.dims or ())
    if np.array_equal(matrix, np.eye(*matrix.shape)):
        return x
    out, rank = len(matrix), len(dims)
    before = dims[:axis]
    rest = _product(dims[axis + 1 :])
    weights = rewriter.constant(matrix, float32)
    if axis == rank - 1:
        return rewriter.emit("FULLY_CONNECTED", x, weights, None, keep_num_dims=rank > 2)
    flat = reshaped(rewriter, x, [_product(before), dims[axis], rest])
    y = rewriter.emit("BATCH_MATMUL", weights, flat, like=x.spec.with_shape([_product(before), out, rest]))
    return reshaped(rewriter, y, [*before, out, *dims[axis + 1 :]])


def _product(dims: Sequence[int | None]) -> int | None:
    return None if None in dims else math.prod(d for d in dims if d is not None)
