"""Older forms of broadcasting, selection by condition, gathers and updates of slices.

Lives here: BROADCAST_TO, BROADCAST_ARGS, SELECT_V2, GATHER with batches, WHERE of numbers, DYNAMIC_UPDATE_SLICE.
Not here: the same for many dimensions (ranks.py) or later types (carrying.py).
"""

from __future__ import annotations

import math

import numpy as np

from ....core.dtypes import bool, int32
from ....graph import Node
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from ..rules.building import number, reshaped, sizes
from .ranks import spread


def _broadcast_to(node: Node, low: LiteRewriter) -> RuleResult:
    (x, _), out = node.operands, sizes(node.outputs[0], "the shape of the result")
    dims = [1] * (len(out) - len(sizes(x))) + sizes(x)
    return low.emit(
        "TILE",
        reshaped(low, x, dims),
        low.int32([n // max(d, 1) for n, d in zip(out, dims)]),
        like=node.outputs[0].spec,
    )


def _broadcast_args(node: Node, low: LiteRewriter) -> RuleResult:
    """Of two sizes the one that is not 1."""
    shapes, (rank,) = list(node.operands), sizes(node.outputs[0], "the shape of the result")
    for i, shape in enumerate(shapes):
        missing = rank - sizes(shape)[0]
        if missing:
            ones = low.constant(np.ones(missing), shape.dtype)
            shapes[i] = low.emit("CONCATENATION", (ones, shape), axis=0)
    x, y = shapes
    return low.emit("SELECT", low.emit("EQUAL", x, number(low, 1, x)), y, x, like=node.outputs[0].spec)


def _select_v2(node: Node, low: LiteRewriter) -> RuleResult:
    out = sizes(node.outputs[0], "the shape of the result")
    return low.emit("SELECT", *(spread(low, v, out) for v in node.operands), like=node.outputs[0].spec)


def _gather_batches(node: Node, low: LiteRewriter) -> RuleResult:
    """The batches one after another, and each index moved on to its own."""
    (x, indices), b = list(node.operands)[:2], node.attrs["batch_dims"]
    dims, picked = sizes(x), sizes(indices)
    if b <= 0 or node.attrs["axis"] % len(dims) != b:
        return NoMatch("GATHER with batches, along the axis after them")
    batches, n = math.prod(dims[:b]), dims[b]
    each = math.prod(picked[b:])
    first = low.constant(np.arange(batches).reshape(-1, 1) * n, int32)
    flat = low.emit("ADD", reshaped(low, low.int32(indices), [batches, each]), first)
    rows = reshaped(low, x, [batches * n, *dims[b + 1 :]])
    y = low.emit("GATHER", rows, reshaped(low, flat, [batches * each]), axis=0)
    return reshaped(low, y, sizes(node.outputs[0], "the shape of the result"))


def _where(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if x.dtype is bool:
        return NoMatch("WHERE of bools is the oldest form")
    return low.emit("WHERE", low.emit("NOT_EQUAL", x, number(low, 0, x)), like=node.outputs[0].spec)


def _dynamic_update_slice(node: Node, low: LiteRewriter) -> RuleResult:
    """The update padded to the operand's shape, and chosen where it lies. Axes it covers whole are seen as one."""
    x, update, start = node.operands
    dims, size = sizes(x), sizes(update)
    begin = low.int32(start)
    covered = len(dims)
    while covered > 1 and dims[covered - 1] == size[covered - 1]:
        covered -= 1
    if covered < len(dims):
        tail = math.prod(dims[covered:])
        x, update = reshaped(low, x, [*dims[:covered], tail]), reshaped(low, update, [*size[:covered], tail])
        begin = low.emit("SLICE", begin, low.int32([0]), low.int32([covered]))
        begin = low.emit("CONCATENATION", (begin, low.int32([0])), axis=0)
        dims, size = [*dims[:covered], tail], [*size[:covered], tail]
    if not dims or x.dtype is bool:
        return NoMatch("DYNAMIC_UPDATE_SLICE of numbers, of one dimension or more")
    room = low.int32([n - s for n, s in zip(dims, size)])
    begin = low.emit("MINIMUM", low.emit("MAXIMUM", begin, low.constant(0, int32)), room)
    edges = low.emit("PACK", (begin, low.emit("SUB", room, begin)), values_count=2, axis=1)
    padded = low.emit("PAD", update, edges, like=x.spec)
    inside = low.emit("PAD", low.constant(np.ones(size), int32), edges, like=x.spec.with_dtype(int32))
    chosen = low.emit("SELECT", low.emit("NOT_EQUAL", inside, low.constant(0, int32)), padded, x)
    return reshaped(low, chosen, sizes(node.outputs[0], "the shape of the result"))


INDEXING = rule_table(
    RewriteRule("broadcast_by_tile", "BROADCAST_TO", _broadcast_to, "the same repetition"),
    RewriteRule("broadcast_args_by_select", "BROADCAST_ARGS", _broadcast_args, "its definition"),
    RewriteRule("select_after_broadcast", "SELECT_V2", _select_v2, "its definition"),
    RewriteRule("gather_flat", "GATHER", _gather_batches, "the same elements"),
    RewriteRule("where_not_0", "WHERE", _where, "its definition"),
    RewriteRule("update_by_select", "DYNAMIC_UPDATE_SLICE", _dynamic_update_slice, "its definition"),
)
