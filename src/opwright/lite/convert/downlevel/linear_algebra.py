"""Older forms of matrix products, running sums and grouped convolutions.

Lives here: BATCH_MATMUL, FULLY_CONNECTED with its newer options, CUMSUM, UNSORTED_SEGMENT_SUM, CONV_2D of groups,
TRANSPOSE_CONV with bias or activation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....core.dtypes import float32, int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, constant_of, number, reshaped, rule_table, sizes
from .shapes import around

MOST_PARTS = 128  # more nodes than this for one would not help anybody


def _swapped(rewriter: LiteRewriter, x: Value) -> Value:
    """Return a matrix with rows and columns swapped."""
    if x.constant is not None:
        return rewriter.constant(np.ascontiguousarray(x.constant.T), x.dtype)
    m, n = sizes(x)
    return rewriter.emit("TRANSPOSE", x, rewriter.int32([1, 0]), like=x.spec.with_shape([n, m]))


def _batch_matmul(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, y = node.operands
    if x.dtype is not float32:
        return NoMatch(f"BATCH_MATMUL of {x.dtype.name}")
    adj_x, adj_y = node.attrs["adj_x"], node.attrs["adj_y"]
    out, (*batch_x, _, _), (*batch_y, _, _) = sizes(node.outputs[0], "the shape of the result"), sizes(x), sizes(y)

    def product(a: Value, b: Value) -> Value:
        a, b = (_swapped(rewriter, a) if adj_x else a), (b if adj_y else _swapped(rewriter, b))
        return rewriter.emit("FULLY_CONNECTED", a, b, None)

    if math.prod(batch_y) == 1 and not adj_x:
        flat = reshaped(rewriter, x, [math.prod(sizes(x)[:-1]), sizes(x)[-1]])
        return reshaped(rewriter, product(flat, reshaped(rewriter, y, sizes(y)[-2:])), out)
    count = math.prod(out[:-2])
    if not 0 < count <= MOST_PARTS:
        return NoMatch(f"BATCH_MATMUL of {count} matrices, more than {MOST_PARTS}")

    def matrices(value: Value, batch: list[int]) -> list[Value]:
        whole = sizes(value)
        if batch != out[:-2]:
            value = rewriter.emit("BROADCAST_TO", value, rewriter.int32([*out[:-2], *whole[-2:]]))
        flat = reshaped(rewriter, value, [count, *whole[-2:]])
        return list(rewriter.emit_many("UNPACK", flat, num=count, axis=0))

    products = [product(a, b) for a, b in zip(matrices(x, batch_x), matrices(y, batch_y))]
    stacked = rewriter.emit("PACK", tuple(products), values_count=count, axis=0)
    return reshaped(rewriter, stacked, out)


def _fully_connected(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Express keep_num_dims by reshapes."""
    x, weights, *bias = node.inputs
    assert isinstance(x, Value)
    assert isinstance(weights, Value)
    attrs = {**node.attrs, "keep_num_dims": False}
    if not node.attrs["keep_num_dims"]:
        return NoMatch("these weights came with this version")
    dims = node.outputs[0].spec.shape.dims
    if dims is None or dims.count(None) > 1:
        return NoMatch("the shape of the result is not known")
    flat = rewriter.emit("RESHAPE", x, rewriter.int32([-1, sizes(weights)[1]]))
    y = rewriter.emit("FULLY_CONNECTED", flat, weights, bias[0] if bias else None, **attrs)
    return rewriter.emit(
        "RESHAPE", y, rewriter.int32([-1 if d is None else d for d in dims]), like=node.outputs[0].spec
    )


def _cumsum(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Add over spans of 1, 2, 4, ... elements (Hillis and Steele 1986)."""
    x, axis = node.operands
    dims = sizes(x)
    place = int(constant_of(axis, "the axis").reshape(-1)[0]) % max(len(dims), 1)
    n = dims[place]
    before, _, after = around(dims, place)
    reverse = node.attrs["reverse"]

    def shifted(y: Value, by: int) -> Value:
        begin, pads = (by, [0, by]) if reverse else (0, [by, 0])
        kept = rewriter.emit("SLICE", y, rewriter.int32([0, begin, 0]), rewriter.int32([before, n - by, after]))
        return rewriter.emit("PAD", kept, rewriter.int32([[0, 0], pads, [0, 0]]), like=y.spec)

    y, by = reshaped(rewriter, x, [before, n, after]), 1
    if node.attrs["exclusive"] and n > 0:
        y = shifted(y, 1) if n > 1 else rewriter.emit("MUL", y, number(rewriter, 0, y))
    while by < n:
        y = rewriter.emit("ADD", y, shifted(y, by))
        by *= 2
    return reshaped(rewriter, y, dims)


def _unsorted_segment_sum(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Scatter-add into a row for each segment, and into one more for rows without segment."""
    data, ids, count = node.operands
    n, rest = int(constant_of(count, "the number of segments").reshape(-1)[0]), sizes(data)[len(sizes(ids)) :]
    rows = math.prod(sizes(ids))
    flat = reshaped(rewriter, rewriter.int32(ids), [rows])
    nowhere = rewriter.constant(np.full(rows, n), int32)
    flat = rewriter.emit("SELECT", rewriter.emit("LESS", flat, rewriter.constant(0, int32)), nowhere, flat)
    summed = rewriter.emit(
        "SCATTER_ND",
        reshaped(rewriter, flat, [rows, 1]),
        reshaped(rewriter, data, [rows, *rest]),
        rewriter.int32([n + 1, *rest]),
    )
    return rewriter.emit(
        "SLICE", summed, rewriter.int32([0] * (1 + len(rest))), rewriter.int32([n, *rest]), like=node.outputs[0].spec
    )


def _grouped_conv(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, filters, bias = (*node.operands, None)[:3]
    assert x is not None
    assert filters is not None
    channels, (_out, *_, each) = sizes(filters)[0], sizes(filters)
    dims = x.spec.shape.dims
    if dims is None or dims[3] is None or dims[3] % each:
        return NoMatch("the number of channels is not known")
    groups = dims[3] // each
    if not 1 < groups <= MOST_PARTS or channels % groups:
        return NoMatch(f"a convolution of {groups} groups")

    def parts(value: Value | None, axis: int) -> Sequence[Value | None]:
        if value is None:
            return [None] * groups
        if value.constant is not None:
            return [
                rewriter.constant(np.ascontiguousarray(c), value.dtype) for c in np.split(value.constant, groups, axis)
            ]
        return rewriter.emit_many("SPLIT", rewriter.int32(axis), value, num_splits=groups)  # type: ignore[arg-type]

    done = [
        rewriter.emit("CONV_2D", a, f, b, **node.attrs)
        for a, f, b in zip(parts(x, 3), parts(filters, 0), parts(bias, 0))
    ]
    return rewriter.emit("CONCATENATION", tuple(done), axis=3, like=node.outputs[0].spec)


def _transpose_conv(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Move bias and activation into an addition."""
    shape, filters, x, *bias = node.inputs
    activation = node.attrs["fused_activation_function"]
    if (not bias or bias[0] is None) and activation == "NONE":
        return NoMatch("there is nothing to take apart")
    attrs = {**node.attrs, "fused_activation_function": "NONE"}
    like = node.outputs[0].spec
    y = rewriter.emit("TRANSPOSE_CONV", shape, filters, x, None, like=like, **attrs)
    added = bias[0] if bias and bias[0] is not None else number(rewriter, 0, y)
    return rewriter.emit("ADD", y, added, fused_activation_function=activation, like=like)


PRODUCTS = rule_table(
    RewriteRule("matmul_by_fully_connected", "BATCH_MATMUL", _batch_matmul, "one product for each matrix"),
    RewriteRule("flat_fully_connected", "FULLY_CONNECTED", _fully_connected, "the rows are the same"),
    RewriteRule("cumsum_by_doubling", "CUMSUM", _cumsum, "the same terms, added in another order"),
    RewriteRule("segments_by_scatter", "UNSORTED_SEGMENT_SUM", _unsorted_segment_sum, "SCATTER_ND adds what meets"),
    RewriteRule("groups_apart", "CONV_2D", _grouped_conv, "groups know nothing of each other"),
    RewriteRule("transpose_conv_apart", "TRANSPOSE_CONV", _transpose_conv, "the kernel adds and clamps after the sum"),
)
