"""Shape rules of operators with an axis, an index or segments.

Lives here: added axes, equal parts, one-hot vectors, top-k, segments, reversed sequences and broadcasting to a shape,
of both dialects' operators, with their errors.
Not here: the operators (ops/array, ops/math, lite/ops), joins, gathers, paddings and reshapes (array_shapes.py).

A size is an int, or None where it is unknown; sizes that are None altogether are those of an unknown rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape, broadcast
from ..core.specs import TensorSpec
from .shape_inference import axis_in

Dims = list[int | None]


def expanded_dims(x: TensorSpec, axis: int, size: int | None = 1) -> Dims | None:
    """Return the sizes of x with a new dimension at an axis."""
    if x.shape.dims is None:
        return None
    axis = axis_in(axis, len(x.shape.dims) + 1)
    return [*x.shape.dims[:axis], size, *x.shape.dims[axis:]]


def checked_depth(depth: int) -> int:
    """Return the number of classes of one-hot vectors. Raises InvalidArgumentError below 0."""
    if depth < 0:
        raise InvalidArgumentError(what="depth must be non-negative", found=depth, wanted="at least 0")
    return depth


def one_hot_dims(indices: TensorSpec, depth: int | None, axis: int) -> Dims | None:
    """Return the sizes of a vector of `depth` for each index, along an axis. Raises InvalidArgumentError below 0."""
    return expanded_dims(indices, axis, None if depth is None else checked_depth(depth))


def equal_part_dims(x: TensorSpec, axis: int, count: int) -> Dims | None:
    """Return the sizes of one of `count` equal parts along an axis. Raises InvalidArgumentError if there are none."""
    if x.shape.dims is None:
        return None
    dims = list(x.shape.dims)
    axis = axis_in(axis, len(dims))
    size = dims[axis]
    if count == 0 or (size is not None and size % count):
        raise InvalidArgumentError(
            what=f"dimension {axis} of size {size} does not split evenly, into {count} equal parts",
            found=x.short(),
            wanted="a size that the number of parts divides",
        )
    dims[axis] = None if size is None else size // count
    return dims


def check_broadcast_to(x: TensorSpec, target: TensorShape) -> None:
    """Raise InvalidArgumentError unless x broadcasts to a shape."""
    try:
        if broadcast(x.shape, target).is_compatible_with(target):
            return
    except InvalidArgumentError:
        pass
    raise InvalidArgumentError(
        what="Incompatible shapes: Output shape must be broadcastable from input shape.",
        found={"input": x.short(), "shape": str(target)},
        wanted="sizes of the input that are 1 or those of the shape, aligned at the last dimension",
    )


def top_k_dims(x: TensorSpec, k: int | None) -> Dims | None:
    """Return the sizes of the k greatest along the last dimension. Raises InvalidArgumentError for other k."""
    if x.shape.rank == 0:
        raise InvalidArgumentError(
            what="the input is a scalar: input must be >= 1-D, got shape []",
            found=x.short(),
            wanted="at least one dimension",
        )
    if k is not None and k < 0:
        raise InvalidArgumentError(what=f"Need k >= 0, got {k}", wanted="k between 0 and the last dimension")
    if x.shape.dims is None:
        return None
    n = x.shape.dims[-1]
    if k is not None and n is not None and n < k:
        raise InvalidArgumentError(
            what=f"input must have at least k columns. Had {n}, needed {k}",
            found=x.short(),
            wanted="k between 0 and the last dimension: TopK k is higher than the internal dimension.",
        )
    return [*x.shape.dims[:-1], k]


def count_segments(ids: Any) -> int:
    """Return the last of sorted segment ids plus one. Raises InvalidArgumentError if ids fall or are negative."""
    if ids.size == 0:
        return 0
    if np.any(ids[1:] < ids[:-1]):
        raise InvalidArgumentError(
            what="segment ids are not increasing: they are not sorted",
            wanted="numbers of at least 0 that do not fall",
            do="the unsorted_segment functions take any order",
        )
    if ids[0] < 0:
        raise InvalidArgumentError(
            what=f"Segment id {ids[0]} out of range: segment ids are not sorted, or negative",
            wanted="segment ids of at least 0",
        )
    return int(ids[-1]) + 1


def segment_dims(x: TensorSpec, ids: TensorSpec, values: Any) -> Dims | None:
    """Return the sizes of a result with a row for each segment of rows of x. values: the ids as an array, or None.

    raises InvalidArgumentError if x has no rows, or not as many as there are ids, and as `count_segments`
    """
    count = None if values is None else count_segments(values)
    if x.shape.dims is None:
        return None
    if not x.shape.dims:
        raise InvalidArgumentError(what="data is a scalar", found=x.short(), wanted="at least one dimension")
    if not ids.shape.is_compatible_with(x.shape.dims[:1]):
        raise InvalidArgumentError(
            what="segment_ids should be the same size as dimension 0 of input: there is not one segment for each row",
            found={"input": x.short(), "segment_ids": ids.short()},
            wanted="segment_ids [input.shape[0]]",
        )
    return [count, *x.shape.dims[1:]]


def unsorted_segment_dims(x: TensorSpec, ids: TensorSpec, count: int | None) -> Dims | None:
    """Return the sizes of a result with a row for each of `count` segments, of elements of x by the first dimensions.

    raises InvalidArgumentError for a negative count, and unless the shape of x begins with that of ids
    """
    if count is not None and count < 0:
        raise InvalidArgumentError(
            what=f"Input num_segments == {count} must not be negative: num_segments is negative", wanted="at least 0"
        )
    if x.shape.dims is None or ids.shape.dims is None:
        return None
    depth = len(ids.shape.dims)
    if depth > len(x.shape.dims) or not ids.shape.is_compatible_with(x.shape.dims[:depth]):
        raise misfit_segments({"data": x.short(), "segment_ids": ids.short()})
    return [count, *x.shape.dims[depth:]]


def misfit_segments(shapes: Any) -> InvalidArgumentError:
    """Return the error of segment ids whose shape is not the beginning of the data's."""
    return InvalidArgumentError(
        what="data.shape does not start with segment_ids.shape", found=shapes, wanted="data [*segment_ids.shape, ...]"
    )


def check_sequences(x: TensorSpec, lengths: TensorSpec, seq: int, batch: int) -> None:
    """Raise InvalidArgumentError unless there is a length for each element along `batch`, another axis than `seq`."""
    if seq == batch:
        raise InvalidArgumentError(
            what=f"seq_axis and batch_axis are one dimension: batch_axis == seq_axis == {seq}",
            wanted="two different dimensions",
        )
    if not lengths.shape.is_compatible_with([x.shape[batch]]):
        raise InvalidArgumentError(
            what=f"Length of seq_lengths != input.dims({batch}): there is not one length for each slice of the batch",
            found={"input": x.short(), "seq_lengths": lengths.short()},
            wanted=f"seq_lengths [input.shape[{batch}]]",
        )
