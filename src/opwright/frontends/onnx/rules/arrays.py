"""Shapes and constants of ONNX: reshaping, joining, slicing, padding, filling.

Lives here: operators that move elements without looking at them. Not here: positions that are values (indexing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import bool as boolean
from ....core.dtypes import int64, string
from ....core.errors import InvalidArgumentError
from ....ops import array, math, random
from ....ops.array import cast
from ....ops.dispatch import to_tensor
from ...constants import FOLDING
from ...importing import known as static
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import at, axes_of, axis_of, dims, dtype_of, rank_of, shape_of

rule = RULES.rule
_FAR = 2**31 - 1
"""An end beyond any tensor: files have the greatest int64, and interpreters indices of 32 bits."""


@rule("Constant")
def constant(context: Any, inputs: Any, attributes: Any) -> Any:
    ((name, value),) = attributes.items()
    match name:
        case "value_float" | "value_floats":
            return np.asarray(value, np.float32)
        case "value_int" | "value_ints":
            return np.asarray(value, np.int64)
        case "value_string":
            return np.asarray(value.encode(), object)
        case "value_strings":
            return np.asarray([v.encode() for v in value], object)
    return value


@rule("ConstantOfShape")
def constant_of_shape(context: Any, inputs: Any, attributes: Any) -> Any:
    value = np.asarray(attributes.get("value", np.zeros(1, np.float32))).reshape(())
    return array.fill(inputs[0], value)


@rule("Shape")
def shape(context: Any, inputs: Any, attributes: Any) -> Any:
    whole = shape_of(inputs[0])
    rank = rank_of(inputs[0])
    start, end = (
        min(max(i + rank if i < 0 else i, 0), rank) for i in (attributes.get("start", 0), attributes.get("end", rank))
    )
    return whole[start : max(end, start)]


@rule("Size")
def size(context: Any, inputs: Any, attributes: Any) -> Any:
    sizes = dims(inputs[0])
    return array.size(inputs[0], int64) if None in sizes else np.asarray(np.prod(sizes, dtype=np.int64))


@rule("Reshape")
def reshape(context: Any, inputs: Any, attributes: Any) -> Any:
    """Reshape; a size of 0 is that of the input, unless allowzero, and -1 is what remains."""
    x, target = inputs[0], attributes.get("shape", at(inputs, 1))
    target = np.asarray(target, np.int64) if isinstance(target, tuple) else target
    known = static(target)
    if known is None:
        if attributes.get("allowzero") or rank_of(x) == 0:
            return array.reshape(x, target)
        count = dims(target)[0]
        sizes = shape_of(x)
        if count is None:
            return array.reshape(x, target)
        same = array.pad(sizes[:count], [[0, max(count - rank_of(x), 0)]])
        return array.reshape(x, array.where(math.equal(target, np.int64(0)), same, target))
    if attributes.get("allowzero"):
        return array.reshape(x, known)
    sizes = dims(x)
    if any(s == 0 and i >= len(sizes) for i, s in enumerate(known)):
        raise InvalidArgumentError(what="a size of 0 stands for one that the input lacks", found=known.tolist())
    whole = [sizes[i] if s == 0 else int(s) for i, s in enumerate(known)]
    if None not in whole:
        return array.reshape(x, np.asarray(whole, np.int64))
    if whole.count(None) == 1 and -1 not in whole:
        return array.reshape(x, np.asarray([-1 if s is None else s for s in whole], np.int64))
    dynamic = shape_of(x)
    return array.reshape(x, array.stack([dynamic[i] if s is None else np.int64(s) for i, s in enumerate(whole)]))


@rule("Flatten")
def flatten(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    axis = attributes.get("axis", 1)
    axis = axis + rank_of(x) if axis < 0 else axis
    return array.reshape(x, [*_two(x, axis)])


def _two(x: Any, axis: int) -> tuple[Any, Any]:
    """Return the sizes of a matrix whose rows are the first axes."""
    rows, columns = dims(x)[:axis], dims(x)[axis:]
    if None not in rows:
        return int(np.prod(rows)), -1 if None in columns else int(np.prod(columns))
    if None not in columns:
        return -1, int(np.prod(columns))
    return math.reduce_prod(shape_of(x)[:axis]), -1


@rule("Squeeze")
def squeeze(context: Any, inputs: Any, attributes: Any) -> Any:
    axes = axes_of(context, inputs, attributes, 1)
    return array.squeeze(inputs[0], axes)


@rule("Unsqueeze")
def unsqueeze(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    axes = axes_of(context, inputs, attributes, 1) or []
    rank = rank_of(x) + len(axes)
    places = sorted(axis_of(a, rank) for a in axes)
    if len(set(places)) < len(places):
        raise InvalidArgumentError(what="an axis is named twice", found=axes)
    sizes = list(dims(x))
    for place in places:
        sizes.insert(place, 1)
    if None not in sizes or sizes.count(None) == 1:
        return array.reshape(x, np.asarray([-1 if s is None else s for s in sizes], np.int64))
    for place in places:
        x = array.expand_dims(x, place)
    return x


@rule("Transpose")
def transpose(context: Any, inputs: Any, attributes: Any) -> Any:
    perm = attributes.get("perm")
    return array.transpose(inputs[0], None if perm is None else list(perm))


@rule("Concat")
def concat(context: Any, inputs: Any, attributes: Any) -> Any:
    axis = axis_of(attributes.get("axis", 1), rank_of(inputs[0]))
    return array.concat(list(inputs), axis) if len(inputs) > 1 else inputs[0]


@rule("Split")
def split(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    axis = axis_of(attributes.get("axis", 0), rank_of(x))
    sizes = attributes.get("split")
    if sizes is None and at(inputs, 1) is not None:
        sizes = context.required(inputs[1], "the sizes of parts").tolist()
    if sizes is None:
        whole = dims(x)[axis]
        count = attributes.get("num_outputs", len(context.node.output))
        if whole is None:
            return array.split(x, count, axis)
        if count != len(context.node.output):
            raise InvalidArgumentError(what="parts and outputs differ", found=count, wanted=len(context.node.output))
        part = -(-whole // count)
        sizes = [max(min(part, whole - i * part), 0) for i in range(count)]
    return array.split(x, [int(s) for s in sizes], axis)


@rule("Slice")
def slice_(context: Any, inputs: Any, attributes: Any) -> Any:
    """Slice as in NumPy; starts and ends may be computed, axes and steps may not."""
    x = inputs[0]
    if "starts" in attributes:
        starts, ends = (np.asarray(attributes[k], np.int64) for k in ("starts", "ends"))
        axes = list(attributes.get("axes", range(len(starts))))
        steps = [1] * len(starts)
    else:
        starts, ends = inputs[1:3]
        count = dims(starts)[0]
        if count is None:
            raise InvalidArgumentError(what="the number of starts must be known at import")
        axes = list(range(count))
        if at(inputs, 3) is not None:
            axes = context.required(inputs[3], "axes").tolist()
        steps = [1] * count
        if at(inputs, 4) is not None:
            steps = context.required(inputs[4], "steps").tolist()
    axes = [axis_of(int(a), rank_of(x)) for a in axes]
    first, last = static(starts), static(ends)
    index: list[Any] = [slice(None)] * rank_of(x)
    for i, (axis, step) in enumerate(zip(axes, steps)):
        begin = starts[i] if first is None else _clamped(first[i])
        end = ends[i] if last is None else _clamped(last[i])
        if last is not None and step < 0 and (last[i] <= -_FAR or (dims(x)[axis] or _FAR) < -last[i]):
            end = None
        index[axis] = slice(begin, end, int(step))
    return to_tensor(x)[tuple(index)]


def _clamped(value: Any) -> int:
    return int(min(max(int(value), -_FAR), _FAR))


@rule("Expand")
def expand(context: Any, inputs: Any, attributes: Any) -> Any:
    """Broadcast both shapes: a size of 1 keeps the input's."""
    x, target = inputs
    wanted = static(target)
    sizes = dims(x)
    if wanted is not None and None not in sizes:
        return array.broadcast_to(x, np.asarray(np.broadcast_shapes(sizes, tuple(wanted.tolist())), np.int64))
    return array.broadcast_to(x, array.broadcast_dynamic_shape(shape_of(x), cast(target, int64)))


@rule("Tile")
def tile(context: Any, inputs: Any, attributes: Any) -> Any:
    return array.tile(inputs[0], inputs[1])


@rule("Pad")
def pad(context: Any, inputs: Any, attributes: Any) -> Any:
    """Pad, or with negative pads remove; modes constant, reflect, edge, wrap."""
    x, rank = inputs[0], rank_of(inputs[0])
    pads = attributes.get("pads", attributes.get("paddings"))
    value: Any = attributes.get("value", 0.0)
    axes = list(range(rank))
    if pads is None:
        pads = context.required(inputs[1], "pads").tolist()
        value = 0 if at(inputs, 2) is None else inputs[2]
        if at(inputs, 3) is not None:
            axes = [axis_of(int(a), rank) for a in context.required(inputs[3], "axes").tolist()]
    both = np.zeros((rank, 2), np.int64)
    both[axes] = np.reshape(pads, (2, -1)).T
    mode = attributes.get("mode", "constant")
    if (both < 0).any():
        x = to_tensor(x)[tuple(slice(int(-min(a, 0)), int(min(b, 0)) or None) for a, b in both)]
        both = np.maximum(both, 0)
    if not both.any():
        return x
    match mode:
        case "constant":
            fill = np.asarray(value, dtype_of(x).np) if not hasattr(value, "shape") else array.reshape(value, [])
            return array.pad(x, both, constant_values=fill)
        case "reflect":
            return array.pad(x, both, "REFLECT")
    for axis, (before, after) in enumerate(both.tolist()):
        if before or after:
            x = _padded(x, axis, before, after, mode)
    return x


def _padded(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    whole = dims(x)[axis]
    if whole is None and mode == "edge":
        ends = [array.gather(x, np.zeros(before, np.int32), axis=axis)] if before else []
        last = array.gather(array.reverse(x, [axis]), np.zeros(after, np.int32), axis=axis) if after else None
        return array.concat([*ends, x, *([] if last is None else [last])], axis)
    if whole is None:
        raise InvalidArgumentError(what=f"padding of mode {mode} needs the size at import")
    position = np.arange(-before, whole + after)
    index = position % whole if mode == "wrap" else np.clip(position, 0, whole - 1)
    return array.gather(x, index.astype(np.int32), axis=axis)


@rule("Range")
def range_(context: Any, inputs: Any, attributes: Any) -> Any:
    start, limit, delta = (array.reshape(v, []) for v in inputs)
    return array.range(start, limit, delta)


@rule("EyeLike")
def eye_like(context: Any, inputs: Any, attributes: Any) -> Any:
    rows, columns = dims(inputs[0])
    to = dtype_of_code(attributes["dtype"], "EyeLike") if "dtype" in attributes else dtype_of(inputs[0])
    FOLDING.reserve(rows, columns)
    return np.eye(rows, columns, attributes.get("k", 0)).astype(to.np)


@rule("Trilu")
def triangle(context: Any, inputs: Any, attributes: Any) -> Any:
    x, k = inputs[0], at(inputs, 1)
    k = 0 if k is None else int(context.required(k, "k").reshape(-1)[0])
    sizes = dims(x)[-2:]
    if None in sizes:
        rows = array.range(np.int64(0), shape_of(x)[-2])
        columns = array.range(np.int64(0), shape_of(x)[-1])
        away = math.subtract(array.expand_dims(columns, 0), array.expand_dims(rows, 1))
        kept = (math.greater_equal if attributes.get("upper", 1) else math.less_equal)(away, np.int64(k))
        return array.where(kept, x, np.zeros((), dtype_of(x).np))
    mask = np.ones(sizes, bool)
    mask = np.triu(mask, k) if attributes.get("upper", 1) else np.tril(mask, k)
    return array.where(mask, x, np.zeros((), dtype_of(x).np))


@rule("OneHot")
def one_hot(context: Any, inputs: Any, attributes: Any) -> Any:
    """Encode; negative indices count from the end, and those outside have no one."""
    indices, depth, values = inputs
    depth = int(context.required(depth, "depth").reshape(-1)[0])
    indices = cast(indices, int64)
    indices = array.where(math.less(indices, np.int64(0)), math.add(indices, np.int64(depth)), indices)
    values = to_tensor(values)
    axis = attributes.get("axis", -1)
    axis = axis + rank_of(indices) + 1 if axis < 0 else axis
    hot = array.one_hot(indices, depth, on_value=True, off_value=False, axis=axis, dtype=boolean)
    return array.where(hot, values[1], values[0])


@rule("DepthToSpace")
def depth_to_space(context: Any, inputs: Any, attributes: Any) -> Any:
    x, b = inputs[0], attributes["blocksize"]
    n, c, h, w = array_sizes(x)
    if attributes.get("mode", "DCR") == "DCR":
        y = array.transpose(array.reshape(x, [n, b, b, c // b**2, h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = array.transpose(array.reshape(x, [n, c // b**2, b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return array.reshape(y, [n, c // b**2, h * b, w * b])


@rule("SpaceToDepth")
def space_to_depth(context: Any, inputs: Any, attributes: Any) -> Any:
    x, b = inputs[0], attributes["blocksize"]
    n, c, h, w = array_sizes(x)
    order = [0, 3, 5, 1, 2, 4] if attributes.get("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    y = array.transpose(array.reshape(x, [n, c, h // b, b, w // b, b]), order)
    return array.reshape(y, [n, c * b**2, h // b, w // b])


def array_sizes(x: Any) -> list[Any]:
    """Return sizes as numbers where they are known, -1 for an unknown first one, else as scalars of the graph."""
    sizes = list(dims(x))
    if sizes.count(None) == 1 and sizes[0] is None:
        return [-1, *sizes[1:]]
    dynamic: Any = shape_of(x) if None in sizes else None
    return [dynamic[i] if s is None else s for i, s in enumerate(sizes)]


@rule("Dropout")
def dropout(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the input, in training with random elements left out, which no two frameworks choose alike."""
    training = at(inputs, 2)
    ratio = attributes.get("ratio", 0.5) if at(inputs, 1) is None else float(context.required(inputs[1], "the ratio"))
    if training is not None and bool(context.required(training, "training_mode")) and ratio:
        kept = math.greater_equal(random.uniform(shape_of(inputs[0]), seed=attributes.get("seed")), np.float32(ratio))
        scale = np.asarray(1 / (1 - ratio), dtype_of(inputs[0]).np)
        dropped = array.where(kept, math.multiply(inputs[0], scale), np.zeros((), dtype_of(inputs[0]).np))
        return dropped, kept
    x = inputs[0]
    return [x, array.fill(shape_of(x), True) if context.opset >= 10 else array.ones_like(x)][: len(context.node.output)]


@rule("CenterCropPad")
def center_crop_pad(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    target = context.required(inputs[1], "the shape").tolist()
    axes = [axis_of(a, rank_of(x)) for a in attributes.get("axes", range(rank_of(x)))]
    both = np.zeros((rank_of(x), 2), np.int64)
    index = [slice(None)] * rank_of(x)
    for axis, size_ in zip(axes, target):
        whole = dims(x)[axis]
        if whole is None:
            raise InvalidArgumentError(what="CenterCropPad needs all sizes at import")
        if size_ < whole:
            start = (whole - size_) // 2
            index[axis] = slice(start, start + size_)
        else:
            both[axis] = [(size_ - whole) // 2, size_ - whole - (size_ - whole) // 2]
    fill: Any = b"" if dtype_of(x) is string else np.zeros((), dtype_of(x).np)
    return array.pad(to_tensor(x)[tuple(index)], both, constant_values=fill)
