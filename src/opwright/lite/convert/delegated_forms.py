"""Forms of nodes that the delegate of official run times takes, instead of others of the same meaning.

Lives here: DELEGATED, rules of single nodes and their operands. Not here: rules that look at all readers of a tensor
(parts.py), what a slice of the catalogue means (rules/gather_scatter.py, rules/arrays.py).

XNNPACK, which official run times apply to float models, computes SLICE of known sizes, SPLIT into two to four parts and
broadcasts of arithmetic operators. It leaves STRIDED_SLICE that has strides, drops an axis or names some axes alone,
UNPACK, SPLIT_V, BROADCAST_TO and PADV2: each of these interrupts the part of the graph that it runs. Elements are
unchanged.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtypes import float32
from ...graph import Node, Value
from ...graph.passes.rewrite_rules import RewriteRule
from .canonicalization import BINARY
from .operator_fusion import NO
from .rewriter import LiteRewriter, RuleResult, fused_activation, reshaped, rule_table, sliced

SPLIT_PARTS = range(2, 5)
"""The numbers of parts into which XNNPACK splits."""
SLICE_RANK, TRANSPOSE_RANK = 5, 6


def static_sizes(value: Value) -> tuple[int, ...] | None:
    """Return the sizes of a computed float tensor that has elements, if all are known; None of others."""
    shape = value.spec.shape
    if value.dtype is not float32 or value.constant is not None or not shape.is_fully_defined():
        return None
    dims = tuple(d or 0 for d in shape.dims or ())
    return dims if 0 < len(dims) <= SLICE_RANK and 0 not in dims else None


def _by_slice(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace a STRIDED_SLICE of neighbouring elements."""
    x, *bounds = node.operands
    dims, attrs = static_sizes(x), node.attrs
    if dims is None or any(b.constant is None for b in bounds) or attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        return NO
    begins, ends, strides = ([*map(int, b.constant)] for b in bounds if b.constant is not None)
    if attrs["offset"] or any(s != 1 for s in strides):
        return NO
    first, sizes = [0] * len(dims), list(dims)
    for axis, (begin, end, size) in enumerate(zip(begins, ends, dims)):
        shrinks = attrs["shrink_axis_mask"] >> axis & 1
        open_begin, open_end = attrs["begin_mask"] >> axis & 1, attrs["end_mask"] >> axis & 1
        if shrinks:
            first[axis] = 0 if open_begin else begin + size if begin < 0 else begin
            sizes[axis] = 1
        else:
            start, stop, _ = slice(None if open_begin else begin, None if open_end else end).indices(size)
            first[axis], sizes[axis] = start, stop - start
        if not 0 <= first[axis] < size or sizes[axis] < 1:
            return NO
    dropped = [a for a in range(len(dims)) if attrs["shrink_axis_mask"] >> a & 1]
    y = sliced(rewriter, x, first, sizes)
    return reshaped(rewriter, y, [s for a, s in enumerate(sizes) if a not in dropped])


def _once(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Take a slice of a slice at once."""
    x, begin, size = node.operands
    inner = rewriter.producer(x, "SLICE")
    if inner is None or begin.constant is None or size.constant is None or x.spec.quantization is not None:
        return NO
    source, inner_begin, _ = inner.operands
    dims = x.spec.shape.dims
    if inner_begin.constant is None or dims is None or None in dims:
        return NO
    sizes = [d - int(b) if s == -1 else int(s) for b, s, d in zip(begin.constant, size.constant, dims) if d is not None]
    return rewriter.emit(
        "SLICE",
        source,
        rewriter.int32((inner_begin.constant + begin.constant).tolist()),
        rewriter.int32(sizes),
        like=node.outputs[0].spec,
    )


def _known_sizes(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Write the sizes of a SLICE that are -1."""
    x, begin, size = node.operands
    if static_sizes(x) is None or size.constant is None or begin.constant is None or -1 not in size.constant:
        return NO
    shape = node.outputs[0].spec.shape
    if not shape.is_fully_defined():
        return NO
    return rewriter.emit(
        "SLICE", x, begin, rewriter.int32([d or 0 for d in shape.dims or ()]), like=node.outputs[0].spec
    )


def _split_by_slices(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace a SPLIT_V into few parts."""
    x, sizes, axis = node.operands
    dims = static_sizes(x)
    if dims is None or sizes.constant is None or axis.constant is None or len(node.outputs) not in SPLIT_PARTS:
        return NO
    along, begin, parts = int(axis.constant) % len(dims), 0, []
    for value in node.outputs:
        size = value.spec.shape[along]
        if not size:
            return NO
        parts.append(part_along(rewriter, x, dims, along, begin, size))
        begin += size
    return parts


def part_along(rewriter: LiteRewriter, x: Value, dims: Sequence[int], axis: int, begin: int, size: int) -> Value:
    """Return `size` elements of `x` along an axis."""
    return sliced(
        rewriter,
        x,
        [begin if a == axis else 0 for a in range(len(dims))],
        [size if a == axis else d for a, d in enumerate(dims)],
    )


class _Strided(NamedTuple):
    """The elements of x at begin + i * step for i < size, along each axis."""

    x: Value
    begins: tuple[int, ...]
    steps: tuple[int, ...]
    sizes: tuple[int, ...]


def _strided(value: Value) -> _Strided | None:
    """Return a STRIDED_SLICE that drops no axis, or several in a row, as one; None of other values."""
    node = value.node
    if node is None or node.op.name != "STRIDED_SLICE":
        return None
    x, *bounds = node.operands
    dims, attrs = static_sizes(x), node.attrs
    if dims is None or any(b.constant is None for b in bounds) or attrs["offset"]:
        return None
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"] or attrs["shrink_axis_mask"]:
        return None
    numbers = [[*map(int, b.constant)] for b in bounds if b.constant is not None]
    found = _Strided(x, (0,) * len(dims), (1,) * len(dims), dims) if (inner := _strided(x)) is None else inner
    begins, steps, sizes = list(found.begins), list(found.steps), list(found.sizes)
    for axis, (begin, end, stride) in enumerate(zip(*numbers)):
        first = None if attrs["begin_mask"] >> axis & 1 else begin
        last = None if attrs["end_mask"] >> axis & 1 else end
        places = range(*slice(first, last, stride).indices(dims[axis]))
        if stride < 1 or not places:
            return None
        begins[axis] += places[0] * steps[axis]
        steps[axis] *= stride
        sizes[axis] = len(places)
    return _Strided(found.x, tuple(begins), tuple(steps), tuple(sizes))


def _strided_once(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Take a strided slice of a strided slice at once."""
    if rewriter.producer(next(node.operands), "STRIDED_SLICE") is None:
        return NO
    whole = _strided(node.outputs[0])
    if whole is None:
        return NO
    ends = [b + (n - 1) * s + 1 for b, s, n in zip(whole.begins, whole.steps, whole.sizes)]
    bounds = (rewriter.int32(list(v)) for v in (whole.begins, ends, whole.steps))
    return rewriter.emit("STRIDED_SLICE", whole.x, *bounds, like=node.outputs[0].spec)


def _interleaved(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace a concatenation of every n-th element, from each begin, by SPACE_TO_DEPTH or a transpose.

    Patches of 2 x 2 are merged so: concat(x[0::2, 0::2], x[1::2, 0::2], x[0::2, 1::2], x[1::2, 1::2]).
    """
    parts = [_strided(v) for v in node.operands]
    first = parts[0]
    if first is None or fused_activation(node) != "NONE":
        return NO
    x, rank = first.x, len(first.sizes)
    dims, along = static_sizes(x), node.attrs["axis"] % rank
    steps = {axis: step for axis, step in enumerate(first.steps) if step > 1}
    if dims is None or not steps or along in steps or rank + len(steps) > TRANSPOSE_RANK:
        return NO
    if any(dims[a] % s for a, s in steps.items()) or first.sizes != tuple(d // s for d, s in zip(dims, first.steps)):
        return NO
    begins = []
    for part in parts:
        if part is None or part.x is not x or (part.steps, part.sizes) != (first.steps, first.sizes):
            return NO
        begins.append(part.begins)
    for order in itertools.permutations(steps):
        places = itertools.product(*(range(steps[a]) for a in order))
        if begins == [tuple(dict(zip(order, p)).get(a, 0) for a in range(rank)) for p in places]:
            break
    else:
        return NO
    result = node.outputs[0].spec
    if order == (1, 2) and (rank, along) == (4, 3) and steps[1] == steps[2]:
        return rewriter.emit("SPACE_TO_DEPTH", x, block_size=steps[1], like=result)
    apart: list[int] = []
    place: dict[int, int] = {}
    for axis, size in enumerate(dims):
        place[axis] = len(apart)
        apart += [size // steps[axis], steps[axis]] if axis in steps else [size]
    moved = [p for a in range(rank) for p in ([place[b] + 1 for b in order] if a == along else []) + [place[a]]]
    y = rewriter.emit("TRANSPOSE", reshaped(rewriter, x, apart), rewriter.int32(moved))
    return reshaped(rewriter, y, [*first.sizes[:along], first.sizes[along] * len(parts), *first.sizes[along + 1 :]])


def _broadcast_by_reader(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Leave a broadcast to the arithmetic that reads it."""
    operands = list(node.operands)
    result = node.outputs[0].spec.shape
    for i, value in enumerate(operands):
        inner = value.node
        other = operands[1 - i]
        if inner is None or inner.op.name != "BROADCAST_TO" or other.spec.shape != result:
            continue
        operands[i] = next(inner.operands)
        if static_sizes(other) is not None and operands[i].spec.shape.is_fully_defined():
            return rewriter.recreate(node, *operands)
    return NO


NOT_NEGATIVE = frozenset(["RELU", "RELU6", "RELU_0_TO_1", "LOGISTIC", "SQUARE", "ABS", "EXP", "SOFTMAX"])
KEEP_SIGN = frozenset(["MAX_POOL_2D", "AVERAGE_POOL_2D", "CONCATENATION", "RESHAPE", "TRANSPOSE", "SLICE", "SPLIT"])


def _not_negative(value: Value, depth: int = 8) -> bool:
    node = value.node
    if node is None or not depth:
        return False
    if node.op.name in NOT_NEGATIVE or fused_activation(node) in NOT_NEGATIVE:
        return True
    floats = [v for v in node.operands if v.dtype is float32]
    return node.op.name in KEEP_SIGN and all(_not_negative(v, depth - 1) for v in floats)


def _zeros_around(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Pad with zeros before a maximum of numbers that are not negative."""
    pad = rewriter.producer(next(node.operands), "PADV2")
    if pad is None:
        return NO
    x, table, least = pad.operands
    rows, windows = table.constant, (node.attrs["filter_height"], node.attrs["filter_width"])
    if static_sizes(x) is None or rows is None or least.constant is None or not _not_negative(x):
        return NO
    if least.constant > 0 or rows.shape != (4, 2) or rows[[0, 3]].any():
        return NO
    if any(rows[1 + i].max() >= windows[i] for i in range(2)):  # a window of padding alone
        return NO
    return rewriter.recreate(node, rewriter.emit("PAD", x, table, like=pad.outputs[0].spec))


DELEGATED = rule_table(
    RewriteRule("slice", "STRIDED_SLICE", _by_slice, "the same neighbouring elements"),
    RewriteRule("strided_once", "STRIDED_SLICE", _strided_once, "the same elements"),
    RewriteRule("slice_once", "SLICE", _once, "the same elements"),
    RewriteRule("known_sizes", "SLICE", _known_sizes, "-1 takes the rest"),
    RewriteRule("split_by_slices", "SPLIT_V", _split_by_slices, "the same elements"),
    RewriteRule("interleaved", "CONCATENATION", _interleaved, "the same elements in order"),
    RewriteRule("broadcast_by_reader", f"{BINARY} SQUARED_DIFFERENCE", _broadcast_by_reader, "it broadcasts by itself"),
    RewriteRule("zeros_around", "MAX_POOL_2D", _zeros_around, "each window has an element that is at least 0"),
)
