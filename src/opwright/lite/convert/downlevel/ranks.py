"""Older forms of operators on more dimensions than their first kernels took.

Lives here: transposes, slices, pads and broadcasts of five dimensions and more, by way of fewer.
Not here: broadcasting as such (indexing.py).

One axis, all axes before it and all after it make three dimensions, and most of these operators work axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from ..rules.emission import constant_of, reshaped, sizes


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
    RewriteRule("pad_by_axis", "PAD", _pad, "axis by axis"),
    RewriteRule("pad_by_axis", "PADV2", _pad, "axis by axis"),
    RewriteRule("select_flat", "SELECT", _select, "element by element"),
    *(RewriteRule("spread_first", op, _binary, "element by element") for op in ("SUB", "DIV", "MAXIMUM", "MINIMUM")),
)
