"""Rules that move or create elements: shapes, axes, slices, padding.

Lives here: primitives whose result has elements of the operand in other places. Not here: indices that are computed
(indexing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ops import array
from ...importing import known, tensor_of
from ..execution import RULES, JaxprContext
from ..operands import broadcast, cast, dims, dtype_of, reshape, sized, transpose
from ..sizes import is_open, open_sizes


@RULES.rule("broadcast_in_dim")
def broadcast_in_dim(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x with its axis i as axis broadcast_dimensions[i] of the shape, repeated along the others."""
    x, shape = inputs[0], tuple(params["shape"])
    sizes = [1] * len(shape)
    for axis, size in zip(params["broadcast_dimensions"], dims(x)):
        sizes[axis] = size
    return broadcast(reshape(x, sizes), shape)


@RULES.rule("reshape")
def reshape_(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the elements in another shape; dimensions: the order of axes in which they are read, or None."""
    x = inputs[0] if params.get("dimensions") is None else transpose(inputs[0], params["dimensions"])
    return reshape(x, params["new_sizes"])


@RULES.rule("squeeze")
def squeeze(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x without the axes `dimensions`."""
    return reshape(inputs[0], [s for i, s in enumerate(dims(inputs[0])) if i not in params["dimensions"]])


@RULES.rule("expand_dims")
def expand_dims(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x with new axes of size 1 at `dimensions`."""
    return reshape(inputs[0], context.shape)


@RULES.rule("transpose")
def transpose_(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x with its axes permuted."""
    return transpose(inputs[0], params["permutation"])


@RULES.rule("concatenate")
def concatenate(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the operands joined along an axis; empty ones are omitted."""
    parts = [tensor_of(v) for v in inputs if 0 not in dims(v)] or [tensor_of(inputs[0])]
    return parts[0] if len(parts) == 1 else array.concat(parts, params["dimension"])


@RULES.rule("stack")
def stack(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the operands along a new axis."""
    return array.stack([tensor_of(v) for v in inputs], params.get("axis", params.get("dimension", 0)))


@RULES.rule("unstack")
def unstack(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the slices along an axis."""
    return array.unstack(tensor_of(inputs[0]), axis=params.get("axis", params.get("dimension", 0)))


@RULES.rule("split")
def split(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return consecutive parts of the given sizes along an axis."""
    return list(array.split(tensor_of(inputs[0]), [int(s) for s in params["sizes"]], params["axis"]))


@RULES.rule("tile")
def tile(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x repeated along each axis."""
    return array.tile(tensor_of(inputs[0]), [int(n) for n in params["reps"]])


def strided(x: Any, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """Return a static slice, x itself if it is whole; arrays become views."""
    steps = [1] * len(begin) if strides is None else [int(s) for s in strides]
    if [*begin] == [0] * len(begin) and tuple(end) == dims(x) and set(steps) <= {1}:
        return x
    if isinstance(x, np.ndarray):
        return x[tuple(slice(int(b), int(e), s) for b, e, s in zip(begin, end, steps))]
    if is_open([*begin, *end]):
        return _open_slice(x, begin, end, steps)
    if set(steps) <= {1}:
        return array.slice(x, [int(b) for b in begin], [int(e) - int(b) for b, e in zip(begin, end)])
    return array.strided_slice(x, [int(b) for b in begin], [int(e) for e in end], steps)


def _open_slice(x: Any, begin: Sequence[Any], end: Sequence[Any], steps: Sequence[int]) -> Any:
    """Return a slice with open bounds; ends of axes stay open."""
    sizes, bounds = dims(x), open_sizes()
    places = tuple(
        slice(bounds.value(b), None if e is size or e == size else bounds.value(e), step)
        for b, e, size, step in zip(begin, end, sizes, steps)
    )
    return sized(x[places], [(e - b + step - 1) // step for b, e, step in zip(begin, end, steps)])


def part(x: Any, axis: int, begin: int, end: int, step: int = 1) -> Any:
    """Return a static slice along one axis."""
    sizes = dims(x)
    lows, highs, steps = [0] * len(sizes), list(sizes), [1] * len(sizes)
    lows[axis], highs[axis], steps[axis] = begin, end, step
    return strided(x, lows, highs, steps)


@RULES.rule("slice")
def slice_(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the elements from start_indices to limit_indices."""
    return strided(inputs[0], params["start_indices"], params["limit_indices"], params["strides"])


@RULES.rule("rev")
def reverse(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x reversed along axes."""
    axes = list(params["dimensions"])
    if isinstance(inputs[0], np.ndarray):
        return np.flip(inputs[0], tuple(axes))
    return array.reverse(inputs[0], axes) if axes else inputs[0]


@RULES.rule("pad")
def pad(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return x padded by `padding_value`: (low, high, interior) for each axis; negative ones remove elements."""
    return padded(inputs[0], inputs[1], params["padding_config"])


def padded(x: Any, value: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    """Return x with elements of `value` before, behind and between those of each axis; negative counts remove some."""
    config = [(int(low), int(high), int(interior)) for low, high, interior in config]
    constant = known(value)
    scalar = {"constant_values": tensor_of(value)} if constant is None or constant.any() else {}
    zero = scalar or {"constant_values": tensor_of(np.zeros((), dtype_of(x).as_numpy_dtype))}
    zero = {} if not scalar and not dtype_of(x).is_bool else zero
    x = tensor_of(x)
    for axis, (_, _, interior) in enumerate(config):
        sizes = list(dims(x))
        if interior and sizes[axis] > 1:
            split_axis = [*sizes[: axis + 1], 1, *sizes[axis + 1 :]]
            paddings = [[0, interior if i == axis + 1 else 0] for i in range(len(split_axis))]
            spaced = reshape(x, split_axis)
            split_axis[axis + 1] += interior
            spaced = sized(array.pad(spaced, paddings, **zero), split_axis)
            merged = reshape(spaced, [*sizes[:axis], sizes[axis] * (interior + 1), *sizes[axis + 1 :]])
            x = part(merged, axis, 0, (sizes[axis] - 1) * (interior + 1) + 1)
    current = dims(x)
    if all(max(-low, 0) + max(-high, 0) <= size for size, (low, high, _) in zip(current, config)):
        x = _cropped(x, config)
        config = [(max(low, 0), max(high, 0), 0) for low, high, _ in config]
    if any(low > 0 or high > 0 for low, high, _ in config):
        sizes = [size + max(low, 0) + max(high, 0) for size, (low, high, _) in zip(dims(x), config)]
        x = sized(array.pad(x, [[max(low, 0), max(high, 0)] for low, high, _ in config], **zero), sizes)
    return _cropped(x, config)


def _cropped(x: Any, config: Sequence[tuple[int, ...]]) -> Any:
    begin = [max(-row[0], 0) for row in config]
    if not any(begin) and not any(row[1] < 0 for row in config):
        return x
    end = [max(b, size - max(-row[1], 0)) for b, size, row in zip(begin, dims(x), config)]
    return strided(x, begin, end)


@RULES.rule("dim_as_value", pure=False)
def dim_as_value(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return an open size as a scalar."""
    return cast(open_sizes().value(params["dim"]), context.dtype)


@RULES.rule("shape_assertion", pure=False)
def shape_assertion(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return nothing: operators check their sizes."""
    return []


@RULES.rule("iota")
def iota(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return 0, 1, ... along an axis of the shape."""
    return positions(params["shape"], params["dimension"], params["dtype"])


def positions(shape: Sequence[Any], axis: int, dtype: Any = np.int32) -> Any:
    """Return an array or tensor of 0, 1, ... along an axis of a shape."""
    sizes = [shape[axis] if i == axis else 1 for i in range(len(shape))]
    if not is_open(shape):
        return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(sizes), shape)
    row: Any = np.arange(shape[axis], dtype=np.int32) if not is_open(sizes) else None
    if row is None:
        row = sized(array.range(open_sizes().value(shape[axis])), [shape[axis]])
    return broadcast(reshape(cast(row, dtype), sizes), shape)


@RULES.rule("empty", "empty2")
def empty(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return zeros of the shape, whose elements nothing reads."""
    return broadcast(np.zeros((), context.dtype.as_numpy_dtype), context.shape)
