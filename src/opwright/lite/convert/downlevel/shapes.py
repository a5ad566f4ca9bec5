"""Older forms of operators on shapes and positions: broadcasting, selection, gathering, slices, images, high ranks.

Lives here: BROADCAST_TO, BROADCAST_ARGS, SELECT_V2, GATHER with batches, WHERE of numbers, DYNAMIC_UPDATE_SLICE;
RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR with half-pixel centers, DEPTH_TO_SPACE, blocks of batches; transposes, slices,
pads and broadcasts of five dimensions and more, by way of fewer.
Not here: later types (arithmetic.py), the pixels that resizing reads (scalar/fixed_point_layers.py).

One axis, all axes before it and all after it make three dimensions, and most operators work axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....core.dtypes import bool, float32, int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ...ops.images import sampling
from ..rewriter import LiteRewriter, NoMatch, RuleResult, constant_of, number, reshaped, rule_table, sizes


def around(dims: Sequence[int], axis: int) -> list[int]:
    """Return the shape of a tensor seen from one axis: the axes before it, itself, the axes after it."""
    return [math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :])]


def _transpose(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Merge axes that stay adjacent; then move each group to its position, past the groups before it."""
    x, order = node.operands
    perm, dims = constant_of(order, "the order").tolist(), sizes(x)
    if len(dims) <= 4:
        return NoMatch("there are few dimensions already")
    kept = [a for a in perm if dims[a] != 1]
    runs: list[list[int]] = []
    real = [a for a in range(len(dims)) if dims[a] != 1]
    for a in kept:
        if runs and real.index(a) == real.index(runs[-1][-1]) + 1:
            runs[-1].append(a)
        else:
            runs.append([a])
    now = sorted(runs)  # the groups in the order of memory
    for place, run in enumerate(runs):
        at = now.index(run)
        if at == place:
            continue

        def size(groups: list[list[int]]) -> int:
            return math.prod(dims[a] for group in groups for a in group)

        x = reshaped(rewriter, x, [size(now[:place]), size(now[place:at]), size([run]), size(now[at + 1 :])])
        x = rewriter.emit("TRANSPOSE", x, rewriter.int32([0, 2, 1, 3]))
        now.insert(place, now.pop(at))
    return reshaped(rewriter, x, sizes(node.outputs[0], "the shape of the result"))


def _slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, begin, size = node.operands
    dims, starts = sizes(x), constant_of(begin, "the begin").tolist()
    counts = constant_of(size, "the size").tolist()
    if len(dims) <= 4:
        return NoMatch("there are few dimensions already")
    for axis, (start, count) in enumerate(zip(starts, counts)):
        count = dims[axis] - start if count == -1 else count
        if (start, count) != (0, dims[axis]):
            before, _, after = around(dims, axis)
            x = rewriter.emit(
                "SLICE",
                reshaped(rewriter, x, around(dims, axis)),
                rewriter.int32([0, start, 0]),
                rewriter.int32([before, count, after]),
            )
            dims[axis] = count
    return reshaped(rewriter, x, dims)


def _strided_slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *bounds = node.operands
    dims, attrs = sizes(x), node.attrs
    if len(dims) <= 4:
        return NoMatch("there are few dimensions already")
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"] or attrs["offset"]:
        return NoMatch("STRIDED_SLICE with an ellipsis, new axes or offsets")
    begins, ends, strides = (constant_of(b, "a bound").tolist() for b in bounds)
    for axis, (begin, end, stride) in enumerate(zip(begins, ends, strides)):
        n = dims[axis]
        if attrs["shrink_axis_mask"] >> axis & 1:
            begin, end, stride = begin % n, begin % n + 1, 1
        open_begin, open_end = attrs["begin_mask"] >> axis & 1, attrs["end_mask"] >> axis & 1
        count = len(range(n)[None if open_begin else begin : None if open_end else end : stride])
        if count == n and stride == 1:
            continue
        before, _, after = around(dims, axis)
        x = rewriter.emit(
            "STRIDED_SLICE",
            reshaped(rewriter, x, [before, n, after]),
            rewriter.int32([0, begin, 0]),
            rewriter.int32([before, end, after]),
            rewriter.int32([1, stride, 1]),
            begin_mask=2 * open_begin,
            end_mask=2 * open_end,
        )
        dims[axis] = count
    return reshaped(rewriter, x, sizes(node.outputs[0], "the shape of the result"))


def _pad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, paddings, *value = node.operands
    dims, pads = sizes(x), constant_of(paddings, "the paddings").tolist()
    if len(dims) <= 4:
        return NoMatch("there are few dimensions already")
    for axis, (first, last) in enumerate(pads):
        if first or last:
            x = rewriter.emit(
                node.op.name,
                reshaped(rewriter, x, around(dims, axis)),
                rewriter.int32([[0, 0], [first, last], [0, 0]]),
                *value,
            )
            dims[axis] += first + last
    return reshaped(rewriter, x, dims)


def _select(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Flatten operands of one shape."""
    out = sizes(node.outputs[0], "the shape of the result")
    if len(out) <= 4 or any(sizes(v) != out for v in node.operands):
        return NoMatch("SELECT of more than four dimensions, of one shape")
    condition, x, y = (reshaped(rewriter, v, [math.prod(out)]) for v in node.operands)
    return reshaped(rewriter, rewriter.emit("SELECT", condition, x, y), out)


def _binary(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Broadcast both operands before the operator."""
    out = sizes(node.outputs[0], "the shape of the result")
    if len(out) <= 4 or all(sizes(v) == out for v in node.operands):
        return NoMatch("the operands have one shape already, or few dimensions")
    x, y = (spread(rewriter, v, out) for v in node.operands)
    return rewriter.recreate(node, x, y)


def spread(rewriter: LiteRewriter, x: Value, shape: list[int]) -> Value:
    """Return `x` broadcast to a shape."""
    return x if sizes(x) == shape else rewriter.emit("BROADCAST_TO", x, rewriter.int32(shape))


RANKS = rule_table(
    RewriteRule("transpose_by_steps", "TRANSPOSE", _transpose, "permutations compose"),
    RewriteRule("slice_by_axis", "SLICE", _slice, "axis by axis"),
    RewriteRule("strided_slice_by_axis", "STRIDED_SLICE", _strided_slice, "axis by axis"),
    RewriteRule("pad_by_axis", "PAD PADV2", _pad, "axis by axis"),
    RewriteRule("select_flat", "SELECT", _select, "element by element"),
    RewriteRule("spread_first", "SUB DIV MAXIMUM MINIMUM", _binary, "element by element"),
)


def _broadcast_to(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x, _), out = node.operands, sizes(node.outputs[0], "the shape of the result")
    dims = [1] * (len(out) - len(sizes(x))) + sizes(x)
    return rewriter.emit(
        "TILE",
        reshaped(rewriter, x, dims),
        rewriter.int32([n // max(d, 1) for n, d in zip(out, dims)]),
        like=node.outputs[0].spec,
    )


def _broadcast_args(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Select, of two sizes, the one that is not 1."""
    shapes, (rank,) = list(node.operands), sizes(node.outputs[0], "the shape of the result")
    for i, shape in enumerate(shapes):
        missing = rank - sizes(shape)[0]
        if missing:
            ones = rewriter.constant(np.ones(missing), shape.dtype)
            shapes[i] = rewriter.emit("CONCATENATION", (ones, shape), axis=0)
    x, y = shapes
    return rewriter.emit("SELECT", rewriter.emit("EQUAL", x, number(rewriter, 1, x)), y, x, like=node.outputs[0].spec)


def _select_v2(node: Node, rewriter: LiteRewriter) -> RuleResult:
    out = sizes(node.outputs[0], "the shape of the result")
    return rewriter.emit("SELECT", *(spread(rewriter, v, out) for v in node.operands), like=node.outputs[0].spec)


def _gather_batches(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Concatenate the batches, and offset each index to its batch."""
    (x, indices), b = list(node.operands)[:2], node.attrs["batch_dims"]
    dims, picked = sizes(x), sizes(indices)
    if b <= 0 or node.attrs["axis"] % len(dims) != b:
        return NoMatch("GATHER with batches, along the axis after them")
    batches, n = math.prod(dims[:b]), dims[b]
    each = math.prod(picked[b:])
    first = rewriter.constant(np.arange(batches).reshape(-1, 1) * n, int32)
    flat = rewriter.emit("ADD", reshaped(rewriter, rewriter.int32(indices), [batches, each]), first)
    rows = reshaped(rewriter, x, [batches * n, *dims[b + 1 :]])
    y = rewriter.emit("GATHER", rows, reshaped(rewriter, flat, [batches * each]), axis=0)
    return reshaped(rewriter, y, sizes(node.outputs[0], "the shape of the result"))


def _where(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if x.dtype is bool:
        return NoMatch("WHERE of bools is the oldest form")
    return rewriter.emit("WHERE", rewriter.emit("NOT_EQUAL", x, number(rewriter, 0, x)), like=node.outputs[0].spec)


def _dynamic_update_slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Pad the update to the operand's shape and select it where it lies. Axes that it covers whole are merged."""
    x, update, start = node.operands
    dims, size = sizes(x), sizes(update)
    begin = rewriter.int32(start)
    covered = len(dims)
    while covered > 1 and dims[covered - 1] == size[covered - 1]:
        covered -= 1
    if covered < len(dims):
        tail = math.prod(dims[covered:])
        x, update = reshaped(rewriter, x, [*dims[:covered], tail]), reshaped(rewriter, update, [*size[:covered], tail])
        begin = rewriter.emit("SLICE", begin, rewriter.int32([0]), rewriter.int32([covered]))
        begin = rewriter.emit("CONCATENATION", (begin, rewriter.int32([0])), axis=0)
        dims, size = [*dims[:covered], tail], [*size[:covered], tail]
    if not dims or x.dtype is bool:
        return NoMatch("DYNAMIC_UPDATE_SLICE of numbers, of one dimension or more")
    room = rewriter.int32([n - s for n, s in zip(dims, size)])
    begin = rewriter.emit("MINIMUM", rewriter.emit("MAXIMUM", begin, rewriter.constant(0, int32)), room)
    edges = rewriter.emit("PACK", (begin, rewriter.emit("SUB", room, begin)), values_count=2, axis=1)
    padded = rewriter.emit("PAD", update, edges, like=x.spec)
    inside = rewriter.emit("PAD", rewriter.constant(np.ones(size), int32), edges, like=x.spec.with_dtype(int32))
    chosen = rewriter.emit("SELECT", rewriter.emit("NOT_EQUAL", inside, rewriter.constant(0, int32)), padded, x)
    return reshaped(rewriter, chosen, sizes(node.outputs[0], "the shape of the result"))


INDEXING = rule_table(
    RewriteRule("broadcast_by_tile", "BROADCAST_TO", _broadcast_to, "the same repetition"),
    RewriteRule("broadcast_args_by_select", "BROADCAST_ARGS", _broadcast_args, "its definition"),
    RewriteRule("select_after_broadcast", "SELECT_V2", _select_v2, "its definition"),
    RewriteRule("gather_flat", "GATHER", _gather_batches, "the same elements"),
    RewriteRule("where_not_0", "WHERE", _where, "its definition"),
    RewriteRule("update_by_select", "DYNAMIC_UPDATE_SLICE", _dynamic_update_slice, "its definition"),
)


def _target(node: Node) -> tuple[Value, list[tuple[int, int]]]:
    """Return the image, and its input and output size for rows and columns."""
    x, size = node.operands
    out = constant_of(size, "the size").reshape(-1).tolist()
    dims = x.spec.shape.dims
    sizes_in = [1, 1] if dims is None else [d or 0 for d in dims[1:3]]
    return x, list(zip(sizes_in, out))


def _nearest(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, axes = _target(node)
    for axis, (n, out) in enumerate(axes, 1):
        if n == 0:
            return NoMatch("the size of the image is not known")
        x = rewriter.emit(
            "GATHER", x, rewriter.int32(sampling(node.op.bind(dict(node.attrs)), n, out).nearest().tolist()), axis=axis
        )
    return x


def _bilinear(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, axes = _target(node)
    if x.dtype is not float32:
        return NoMatch(f"RESIZE_BILINEAR of {x.dtype.name}")
    for axis, (n, out) in enumerate(axes, 1):
        if n == 0:
            return NoMatch("the size of the image is not known")
        low_place, high_place, fraction = sampling(node.op.bind(dict(node.attrs)), n, out).between()
        weight = np.asarray(fraction, np.float32).reshape([out if a == axis else 1 for a in range(4)])
        first, second = (
            rewriter.emit("GATHER", x, rewriter.int32(p.tolist()), axis=axis) for p in (low_place, high_place)
        )
        x = rewriter.emit(
            "ADD",
            rewriter.emit("MUL", first, rewriter.constant(1 - weight, float32)),
            rewriter.emit("MUL", second, rewriter.constant(weight, float32)),
        )
    return x


def _depth_to_space(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Permute [n, h, w, (i, j, c)] to [n, (h, i), (w, j), c]: only h, w and i change places."""
    (x,), block = node.operands, node.attrs["block_size"]
    dims = x.spec.shape.dims
    if dims is None or None in dims[1:]:
        return NoMatch("the size of the image is not known")
    h, w, c = (int(d) for d in dims[1:] if d is not None)
    y = rewriter.emit("RESHAPE", x, rewriter.int32([-1, w, block, c // block]))
    y = rewriter.emit("TRANSPOSE", y, rewriter.int32([0, 2, 1, 3]))
    return rewriter.emit(
        "RESHAPE", y, rewriter.int32([-1, h * block, w * block, c // block**2]), like=node.outputs[0].spec
    )


def _batches(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Treat [n, l, c] as an image of width 1."""
    x, block, borders = node.operands
    if x.spec.shape.rank != 3:
        return NoMatch("blocks of one dimension, or two")
    blocks = constant_of(block, "the block").reshape(-1).tolist()
    edges = constant_of(borders, "the borders").reshape(-1, 2).tolist()
    image = rewriter.emit("EXPAND_DIMS", x, rewriter.int32([2]))
    y = rewriter.emit(node.op.name, image, rewriter.int32([*blocks, 1]), rewriter.int32([*edges, [0, 0]]))
    return rewriter.emit("SQUEEZE", y, squeeze_dims=[2], like=node.outputs[0].spec)


IMAGES = rule_table(
    RewriteRule("nearest_by_gather", "RESIZE_NEAREST_NEIGHBOR", _nearest, "the same pixels"),
    RewriteRule("bilinear_by_gather", "RESIZE_BILINEAR", _bilinear, "rows, then columns, with the same weights"),
    RewriteRule("depth_to_space_apart", "DEPTH_TO_SPACE", _depth_to_space, "the same elements"),
    RewriteRule("batches_of_images", "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND", _batches, "a width of 1"),
)
