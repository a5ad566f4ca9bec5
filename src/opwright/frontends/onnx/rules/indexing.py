"""Gathering and scattering of ONNX, and operators whose results have as many elements as values say.

Lives here: rules of operators with positions among their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int32, int64
from ....core.errors import InvalidArgumentError
from ....ops import array, math
from ....ops.array import cast, where
from ...importing import known
from ..execution import RULES
from ..operands import at, axis_of, dims, dtype_of, rank_of, shape_of

rule = RULES.rule


def positive(indices: Any, size: Any) -> Any:
    """Return indices with negative ones counted from the end."""
    array_ = known(indices)
    if array_ is not None and isinstance(size, (int, np.integer)):
        return np.where(array_ < 0, array_ + size, array_).astype(array_.dtype)
    zero = np.zeros((), dtype_of(indices).np)
    size = (
        np.asarray(size, dtype_of(indices).np) if isinstance(size, (int, np.integer)) else cast(size, dtype_of(indices))
    )
    return where(math.less(indices, zero), math.add(indices, size), indices)


def _size(x: Any, axis: int) -> Any:
    size = dims(x)[axis]
    return shape_of(x)[axis] if size is None else size


@rule("Gather")
def gather(context: Any, inputs: Any, attributes: Any) -> Any:
    x, indices = inputs
    axis = axis_of(attributes.get("axis", 0), rank_of(x))
    return array.gather(x, positive(indices, _size(x, axis)), axis=axis)


@rule("GatherND")
def gather_nd(context: Any, inputs: Any, attributes: Any) -> Any:
    x, indices = inputs
    batch = attributes.get("batch_dims", 0)
    depth = dims(indices)[-1]
    sizes = shape_of(x)[batch : None if depth is None else batch + depth]
    return array.gather_nd(x, positive(indices, sizes) if known(sizes) is None else _all(indices, sizes), batch)


def _all(indices: Any, sizes: np.ndarray) -> Any:
    zero, whole = np.zeros((), dtype_of(indices).np), sizes.astype(dtype_of(indices).np)
    return where(math.less(indices, zero), math.add(indices, whole), indices)


def element_positions(indices: Any, axis: int, size: Any) -> Any:
    """Return complete positions [..., rank] of elements that `indices` name along one axis."""
    rank = rank_of(indices)
    indices = cast(positive(indices, size), int64)
    sizes = dims(indices)
    parts = []
    for i in range(rank):
        if i == axis:
            parts.append(indices)
        elif sizes[i] is not None and None not in sizes:
            line: Any = np.arange(sizes[i], dtype=np.int64).reshape([-1 if j == i else 1 for j in range(rank)])
            parts.append(np.broadcast_to(line, sizes))
        else:
            whole = shape_of(indices)
            line = array.reshape(array.range(np.int64(0), whole[i]), [-1 if j == i else 1 for j in range(rank)])
            parts.append(array.broadcast_to(line, whole))
    return array.stack(parts, -1)


@rule("GatherElements")
def gather_elements(context: Any, inputs: Any, attributes: Any) -> Any:
    x, indices = inputs
    axis = axis_of(attributes.get("axis", 0), rank_of(x))
    return array.gather_nd(x, element_positions(indices, axis, _size(x, axis)))


def scattered(x: Any, positions: Any, updates: Any, reduction: str) -> Any:
    """Return x with elements or slices at positions [..., k] replaced or combined."""
    match reduction:
        case "none":
            return array.tensor_scatter_nd_update(x, positions, updates)
        case "add":
            return array.tensor_scatter_nd_add(x, positions, updates)
        case "max":
            return array.tensor_scatter_nd_max(x, positions, updates)
        case "min":
            return array.tensor_scatter_nd_min(x, positions, updates)
    # A product: each element of x is multiplied by the product of all updates of its position.
    depth = dims(positions)[-1]
    sizes = dims(x)
    if depth is None or None in sizes:
        raise InvalidArgumentError(what="a scatter with products needs the shape at import", found=sizes)
    strides = np.cumprod([1, *sizes[:depth][::-1]])[:-1][::-1].astype(np.int64)
    flat = math.reduce_sum(math.multiply(cast(positions, int64), strides), -1)
    count = int(np.prod(sizes[:depth]))
    rest = list(sizes[depth:])
    factors = math.unsorted_segment_prod(
        array.reshape(updates, [-1, *rest]), array.reshape(flat, [-1]), np.int32(count)
    )
    return math.multiply(x, array.reshape(factors, list(sizes)))


@rule("ScatterElements", "Scatter")
def scatter_elements(context: Any, inputs: Any, attributes: Any) -> Any:
    x, indices, updates = inputs
    axis = axis_of(attributes.get("axis", 0), rank_of(x))
    positions = element_positions(indices, axis, _size(x, axis))
    return scattered(x, positions, updates, attributes.get("reduction", "none"))


@rule("ScatterND")
def scatter_nd(context: Any, inputs: Any, attributes: Any) -> Any:
    x, indices, updates = inputs
    depth = dims(indices)[-1]
    sizes = shape_of(x)[:depth]
    positions = _all(indices, sizes) if isinstance(sizes, np.ndarray) else positive(indices, sizes)
    return scattered(x, positions, updates, attributes.get("reduction", "none"))


@rule("TensorScatter")
def tensor_scatter(context: Any, inputs: Any, attributes: Any) -> Any:
    """Write the update of each batch into the cache from its own position on; circular ones wrap."""
    cache, update = inputs[0], inputs[1]
    axis = axis_of(attributes.get("axis", -2), rank_of(cache))
    sizes, parts = dims(cache), dims(update)
    length, batch = parts[axis], parts[0]
    start = at(inputs, 2)
    start = np.zeros(batch or 0, np.int64) if start is None else cast(start, int64)
    line = np.arange(length, dtype=np.int64)
    index = math.add(array.expand_dims(start, 1), line)
    if attributes.get("mode", "linear") == "circular":
        index = math.floormod(index, np.int64(sizes[axis] or 0))
    shape = [parts[0], *[1] * (rank_of(cache) - 1)]
    shape[axis] = length
    indices = array.broadcast_to(array.reshape(index, shape), list(parts))
    return array.tensor_scatter_nd_update(cache, element_positions(indices, axis, sizes[axis]), update)


@rule("NonZero")
def non_zero(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    mask = x if dtype_of(x).name == "bool" else math.not_equal(x, np.zeros((), dtype_of(x).np))
    return array.transpose(cast(where(mask), int64), [1, 0])


@rule("Compress")
def compress(context: Any, inputs: Any, attributes: Any) -> Any:
    x, condition = inputs
    indices = array.reshape(cast(where(condition), int64), [-1])
    if "axis" not in attributes:
        return array.gather(array.reshape(x, [-1]), indices)
    return array.gather(x, indices, axis=axis_of(attributes["axis"], rank_of(x)))


@rule("ReverseSequence")
def reverse_sequence(context: Any, inputs: Any, attributes: Any) -> Any:
    return array.reverse_sequence(
        inputs[0], inputs[1], seq_axis=attributes.get("time_axis", 0), batch_axis=attributes.get("batch_axis", 1)
    )


@rule("Unique")
def unique(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return elements, or slices along an axis, once each: sorted, or in the order of their first occurrence."""
    x, axis = inputs[0], attributes.get("axis")
    if axis is None:
        rows, flat = None, array.reshape(x, [-1])
    else:
        axis = axis_of(axis, rank_of(x))
        rows, flat = _row_numbers(x, axis)
    values, inverse, counts = array.unique_with_counts(flat, int64)
    numbers = array.range(np.int32(0), array.size(flat, int32))
    first = cast(math.unsorted_segment_min(numbers, inverse, array.size(values, int32)), int64)
    if attributes.get("sorted", 1):
        order = cast(math.argsort(values, stable=True), int64)
        rank = math.invert_permutation(order)
        values, counts, first = array.gather(values, order), array.gather(counts, order), array.gather(first, order)
        inverse = array.gather(rank, inverse)
    if rows is not None:
        values = array.gather(x, first, axis=axis)
    return values, first, inverse, cast(counts, int64)


def _row_numbers(x: Any, axis: int) -> tuple[Any, Any]:
    """Return a number for each slice along an axis: equal ones for equal slices, ordered as the slices are."""
    perm = [axis, *(i for i in range(rank_of(x)) if i != axis)]
    moved = array.transpose(x, perm)
    rows = dims(moved)[0]
    if rows is None:
        raise InvalidArgumentError(what="Unique along an axis needs its size at import")
    matrix = array.reshape(moved, [rows, -1])
    left, right = array.expand_dims(matrix, 1), array.expand_dims(matrix, 0)
    differs = math.not_equal(left, right)
    column = math.argmax(cast(differs, int32), -1)  # the first column that differs decides
    places = array.stack([np.broadcast_to(np.arange(rows)[:, None], (rows, rows)), column], -1)
    others = array.stack([np.broadcast_to(np.arange(rows)[None], (rows, rows)), column], -1)
    greater = math.greater(array.gather_nd(matrix, places), array.gather_nd(matrix, others))
    return matrix, math.reduce_sum(cast(greater, int64), 1)


@rule("ai.onnx.ml::ArrayFeatureExtractor")
def array_feature_extractor(context: Any, inputs: Any, attributes: Any) -> Any:
    x, indices = inputs
    return array.gather(x, array.reshape(indices, [-1]), axis=rank_of(x) - 1)


@rule("ai.onnx.ml::Binarizer")
def binarizer(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    limit = np.asarray(attributes.get("threshold", 0.0), dtype_of(x).np)
    return cast(math.greater(x, limit), dtype_of(x))


@rule("ai.onnx.ml::Scaler")
def scaler(context: Any, inputs: Any, attributes: Any) -> Any:
    x = cast(inputs[0], np.float32)
    offset, scale = (np.asarray(attributes[k], np.float32) for k in ("offset", "scale"))
    return math.multiply(math.subtract(x, offset), scale)
